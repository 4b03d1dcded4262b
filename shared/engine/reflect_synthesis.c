#include "engine/reflect_run.h"

#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/tokens.h"
#include "json/json.h"

#define SYNTHESIS_SHARE 0.8
#define SYNTHESIS_FLOOR 1024
#define MANY_PARTS 4 /* beyond: a warning */

static const char *const list_keys[] = {"observations", "memories", "results"};

/* Splitting an over-long history into parts, nothing dropped: whole results first, then entries of
 * a result's list, then a cut entry. */
struct parts {
	struct hs_pool *pool;
	int64_t budget;
	struct hs_strs done;
	struct hs_strs open; /* blocks of the part being filled */
	int64_t open_tokens;
};

static int64_t tokens_of(const char *text)
{
	return (int64_t)hs_tokens(text);
}

static void close_part(struct parts *p)
{
	if (p->open.n == 0)
		return;
	hs_strs_add(p->pool, &p->done, hs_strs_join(p->pool, &p->open, "\n"));
	p->open = (struct hs_strs){0};
	p->open_tokens = 0;
}

static void pack(struct parts *p, const char *block)
{
	int64_t n = tokens_of(block) + 1;

	if (p->open_tokens + n > p->budget)
		close_part(p);
	hs_strs_add(p->pool, &p->open, block);
	p->open_tokens += n;
}

/* What is bigger than a part by itself is cut to it, and says so. */
static void pack_cut(struct parts *p, const char *text)
{
	json_t *v = hs_json_keep(p->pool, json_object());
	int64_t room = p->budget * 3 / 4;

	json_object_set_new(v, "truncated", json_true());
	json_object_set_new(v, "content", json_string(hs_tokens_cut(p->pool, text, (size_t)room)));
	pack(p, hs_json_text(p->pool, v));
}

static void pack_value(struct parts *p, json_t *v)
{
	const char *text = hs_json_text(p->pool, v);

	if (tokens_of(text) + 1 > p->budget)
		pack_cut(p, text);
	else
		pack(p, text);
}

/* A member that would fill more than half of every part is packed once, by its own entries. */
static void pack_big_member(struct parts *p, const char *key, json_t *member)
{
	const char *name;
	json_t *v;
	size_t i;

	if (json_is_object(member)) {
		json_object_foreach(member, name, v)
			pack_value(p, hs_json_keep(p->pool, json_pack("{s:{s:O}}", key, name, v)));
		return;
	}
	if (json_is_array(member)) {
		json_array_foreach(member, i, v)
			pack_value(p, hs_json_keep(p->pool, json_pack("{s:[O]}", key, v)));
		return;
	}
	pack_value(p, hs_json_keep(p->pool, json_pack("{s:O}", key, member)));
}

/* The members repeated in every part; the big ones are packed aside. */
static json_t *frame_of(struct parts *p, json_t *block, const char *list_key)
{
	json_t *frame = hs_json_keep(p->pool, json_object()), *v;
	const char *key;

	json_object_foreach(block, key, v) {
		if (strcmp(key, list_key) == 0)
			continue;
		if (tokens_of(hs_json_text(p->pool, v)) > p->budget / 2)
			pack_big_member(p, key, v);
		else
			json_object_set(frame, key, v);
	}
	return frame;
}

static json_t *framed(struct parts *p, json_t *frame, const char *list_key, json_t *entries)
{
	json_t *v = hs_json_keep(p->pool, json_copy(frame));

	json_object_set_new(v, list_key, json_copy(entries));
	return v;
}

static void split_list(struct parts *p, json_t *block, const char *list_key)
{
	json_t *frame = frame_of(p, block, list_key), *entry,
	       *entries = hs_json_keep(p->pool, json_array());
	int64_t frame_tokens = tokens_of(hs_json_text(p->pool, frame)) + 8, used = frame_tokens;
	size_t i;

	json_array_foreach(hs_json_arr(block, list_key), i, entry) {
		int64_t n = tokens_of(hs_json_text(p->pool, entry)) + 1;

		if (json_array_size(entries) > 0 && used + n > p->budget) {
			pack_value(p, framed(p, frame, list_key, entries));
			json_array_clear(entries);
			used = frame_tokens;
		}
		if (frame_tokens + n > p->budget) {
			pack_value(p, entry);
			continue;
		}
		json_array_append(entries, entry);
		used += n;
	}
	if (json_array_size(entries) > 0)
		pack_value(p, framed(p, frame, list_key, entries));
}

static void pack_block(struct parts *p, const char *text)
{
	struct hs_err ignored = {0};
	json_t *block = NULL;

	if (tokens_of(text) + 1 <= p->budget) {
		pack(p, text);
		return;
	}
	if (hs_json_load(p->pool, text, &block, &ignored) == HS_OK)
		for (size_t i = 0; i < HS_COUNT(list_keys); i++)
			if (json_array_size(hs_json_arr(block, list_keys[i])) > 0) {
				split_list(p, block, list_keys[i]);
				return;
			}
	pack_cut(p, text);
}

static struct hs_strs split_history(struct hs_reflection *r, int64_t budget)
{
	struct parts p = {.pool = r->pool, .budget = budget};

	for (size_t i = 0; i < r->history.n; i++)
		pack_block(&p, r->history.v[i]);
	close_part(&p);
	return p.done;
}

static enum hs_rc ask(struct hs_reflection *r, const struct hs_prompt *prompt, bool claims,
	const char *trace, const char **ret_text, struct hs_err *err)
{
	struct hs_reflect_ask a = {
		.scope = "reflect",
		.messages = hs_json_keep(r->pool, hs_prompt_messages(r->pool, prompt)),
		.claims = claims,
		.trace = trace,
	};
	struct hs_llm_reply reply;

	HS_TRY(hs_reflect_ask(r, &a, &reply, err));
	*ret_text = hs_str_trim(r->pool, reply.text);
	return HS_OK;
}

static enum hs_rc claims_of(struct hs_reflection *r, const struct hs_strs *parts,
	struct hs_strs *ret, struct hs_err *err)
{
	if (parts->n > MANY_PARTS)
		hs_log(HS_LOG_WARN, "reflect_split", "parts=%zu", parts->n);
	for (size_t i = 0; i < parts->n; i++) {
		struct hs_prompt prompt;
		const char *text;

		hs_prompt_claims(r->pool, &r->prompt, parts->v[i], &prompt);
		HS_TRY(ask(r, &prompt, true, hs_pool_printf(r->pool, "final_map_%zu", i + 1), &text,
			err));
		hs_strs_add(r->pool, ret, text);
	}
	return HS_OK;
}

enum hs_rc hs_reflect_synthesis(struct hs_reflection *r, struct hs_err *err)
{
	int64_t budget = (int64_t)((double)r->limit_tokens * SYNTHESIS_SHARE), total = 0;
	struct hs_prompt prompt;
	const char *text;
	enum hs_rc rc;

	if (budget < SYNTHESIS_FLOOR)
		budget = SYNTHESIS_FLOOR;
	for (size_t i = 0; i < r->history.n; i++)
		total += tokens_of(r->history.v[i]) + 1;
	if (total <= budget) {
		hs_prompt_synthesis(r->pool, &r->prompt, &r->history, &prompt);
	} else {
		struct hs_strs parts = split_history(r, budget), claims = {0};

		HS_TRY(claims_of(r, &parts, &claims, err));
		hs_prompt_reduce(r->pool, &r->prompt, &claims, &prompt);
	}
	rc = ask(r, &prompt, false, "final", &text, err);

	if (rc == HS_E_LLM_EMPTY || (rc == HS_OK && hs_str_blank(text)))
		return hs_fail(
			err, HS_E_NO_ANSWER, "the model gave no answer: the final text is empty");
	HS_TRY(rc);
	r->out->text = hs_view_resolve(&r->view, text);
	r->cited = (struct hs_citations){0};
	return HS_OK;
}
