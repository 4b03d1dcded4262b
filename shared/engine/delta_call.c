#include "engine/delta_call.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/tokens.h"
#include "json/json.h"
#include "prompt/delta.h"

#define RESERVE_LEAST 512
#define RESERVE_MOST 4096
#define DOCUMENT_LEAST 1024
#define DOCUMENT_PERCENT 85
#define FAULTS_MAX 20
#define MAP_CHARS 80

#define FAILED "delta_ops_failed"
#define ALL_SKIPPED "delta_ops_all_skipped"

struct editing {
	struct hs_run *run;
	struct hs_pool *pool;
	const struct hs_delta_in *in;
	struct hs_delta_out *out;
	struct hs_document doc; /* as edited so far */
	/* of the call at hand */
	struct hs_strs hidden;
	json_t *messages, *schema;
};

/* ---- what is shown ---- */

static const char *shown_json(
	struct hs_pool *pool, const struct hs_document *doc, const struct hs_strs *hidden)
{
	json_t *v = hs_json_keep(pool, hs_document_json(doc)), *section, *block;
	size_t left = hidden->n, i, k;

	json_object_del(v, "version");
	for (i = doc->n; i-- > 0 && left;) {
		section = json_array_get(json_object_get(v, "sections"), i);
		for (k = doc->sections[i].n_blocks; k-- > 0 && left; left--) {
			block = json_array_get(json_object_get(section, "blocks"), k);
			json_object_set_new(block, "text", json_string(HS_NOT_SHOWN));
		}
	}
	return hs_json_text(pool, v);
}

/* Hide further blocks, from the end on, until about `spare` tokens are saved. */
static void hide(
	struct hs_pool *pool, const struct hs_document *doc, size_t spare, struct hs_strs *hidden)
{
	size_t seen = 0, saved = 0;

	for (size_t i = doc->n; i-- > 0;)
		for (size_t k = doc->sections[i].n_blocks; k-- > 0;) {
			if (seen++ < hidden->n)
				continue;
			if (saved >= spare)
				return;
			saved += hs_tokens(doc->sections[i].blocks[k].text);
			hs_strs_add(pool, hidden, doc->sections[i].blocks[k].id);
		}
}

const char *hs_delta_shown(struct hs_pool *pool, const struct hs_document *doc, size_t max_tokens,
	struct hs_strs *ret_hidden)
{
	struct hs_strs hidden = {0};
	const char *text = shown_json(pool, doc, &hidden);
	size_t tokens, before;

	while ((tokens = hs_tokens(text)) > max_tokens) {
		before = hidden.n;
		hide(pool, doc, tokens - max_tokens, &hidden);
		if (hidden.n == before)
			break;
		text = shown_json(pool, doc, &hidden);
	}
	*ret_hidden = hidden;
	return text;
}

static size_t reserve(void)
{
	size_t r = HS_DELTA_INPUT / 8;

	return r < RESERVE_LEAST ? RESERVE_LEAST : r > RESERVE_MOST ? RESERVE_MOST : r;
}

static size_t document_share(size_t fixed)
{
	size_t used = fixed + reserve(), share;

	share = used < HS_DELTA_INPUT ? (HS_DELTA_INPUT - used) * DOCUMENT_PERCENT / 100 : 0;
	return share < DOCUMENT_LEAST ? DOCUMENT_LEAST : share;
}

/* The facts from *at on that fit, at least one. */
static const char *facts_that_fit(struct editing *e, size_t slot, size_t *at)
{
	struct hs_buf *b = hs_buf_new(e->pool, HS_PROMPT_MAX);
	size_t used = 0;

	for (; *at < e->in->facts->n; (*at)++) {
		size_t n = hs_tokens(e->in->facts->v[*at]);

		if (b->len && used + n > slot)
			break;
		hs_buf_str(b, e->in->facts->v[*at]);
		used += n;
	}
	return b->data;
}

static size_t prompt_tokens(struct hs_pool *pool, const struct hs_prompt *p)
{
	return hs_tokens(hs_message_text(pool, &p->system)) +
	       hs_tokens(hs_message_text(pool, &p->user));
}

/* The messages of the next call; *at moves behind the facts it holds. */
static void prepare(struct editing *e, size_t *at)
{
	struct hs_delta_prompt_in in = {
		.cfg = e->in->cfg,
		.name = e->in->name,
		.topic = e->in->topic,
		.document = "",
		.facts = "",
		.tokens = (int64_t)hs_tokens(hs_document_render(e->pool, &e->doc)),
		.max_tokens = e->in->max_tokens,
		.hidden = true,
		.strict = hs_llm_strict(e->in->cfg, "mental_model_refresh"),
	};
	struct hs_prompt prompt;
	size_t fixed, used;

	hs_prompt_delta(e->pool, &in, &prompt);
	fixed = prompt_tokens(e->pool, &prompt);
	in.document = hs_delta_shown(e->pool, &e->doc, document_share(fixed), &e->hidden);
	in.hidden = e->hidden.n > 0;
	if (e->hidden.n > e->out->hidden)
		e->out->hidden = e->hidden.n;
	used = fixed + hs_tokens(in.document) + reserve();
	in.facts = facts_that_fit(
		e, reserve() + (used < HS_DELTA_INPUT ? HS_DELTA_INPUT - used : 0), at);
	hs_prompt_delta(e->pool, &in, &prompt);
	e->messages = hs_json_keep(e->pool, hs_prompt_messages(e->pool, &prompt));
	e->schema = prompt.schema;
}

/* ---- one reply ---- */

struct reply {
	const char *text;
	struct hs_delta_list list;
	struct hs_delta_result result;
};

static void note_call(struct hs_pool *pool, struct hs_delta_out *out, const struct hs_llm_usage *u,
	int64_t duration_ms)
{
	out->usage.input += u->input;
	out->usage.output += u->output;
	out->usage.cached += u->cached;
	out->usage.thoughts += u->thoughts;
	out->asked_ms = hs_pool_regrow(pool, out->asked_ms, out->n_asked * sizeof(int64_t),
		(out->n_asked + 1) * sizeof(int64_t));
	out->asked_ms[out->n_asked++] = duration_ms;
}

static enum hs_rc ask(struct editing *e, struct reply *ret, struct hs_err *err)
{
	const struct hs_config *cfg = e->in->cfg;
	int64_t started = hs_mono_us();
	struct hs_llm_reply got;
	struct hs_llm_call call = {
		.operation = "mental_model_refresh",
		.scope = "mental_model_delta_ops",
		.messages = e->messages,
		.json = true,
		.text_only = true,
		.schema = e->schema,
		.temperature = hs_llm_temperature(cfg, "mental_model_refresh"),
		.max_tokens = hs_cfg_null(cfg, HS_S_reflect_max_completion_tokens)
				      ? 0
				      : hs_cfg_int(cfg, HS_S_reflect_max_completion_tokens),
		.max_retries = -1,
	};
	enum hs_rc rc = hs_run_chat(e->run, &call, &got, err);

	note_call(e->pool, e->out, &got.usage, (hs_mono_us() - started) / 1000);
	if (rc == HS_E_LLM_EMPTY) {
		/* empty after all its retries: as unreadable as any other */
		hs_err_clear(err);
		got.text = "";
		rc = HS_OK;
	}
	HS_TRY(rc);
	ret->text = got.text;
	hs_delta_read(e->pool, got.text, true, &ret->list);
	hs_delta_apply(e->pool, &e->doc, &ret->list, &e->hidden, &ret->result);
	return HS_OK;
}

static bool misshapen(const struct reply *r)
{
	return r->list.unreadable || r->list.malformed > 0;
}

static bool is_bad(const struct reply *r)
{
	return misshapen(r) || (r->list.n > 0 && r->result.n_applied == 0);
}

/* ---- asking again ---- */

static struct hs_strs faults_of(struct hs_pool *pool, const struct reply *r)
{
	struct hs_strs faults = {0};
	size_t skipped = 0;

	if (r->list.unreadable)
		hs_strs_add(pool, &faults, r->list.unreadable);
	for (size_t i = 0; i < r->list.n && faults.n < FAULTS_MAX; i++) {
		const char *why = r->list.v[i].fault;

		/* nothing applied: the entries stand in the order of the list */
		if (!why && !misshapen(r))
			why = hs_json_str(json_array_get(r->result.skipped, skipped++), "reason");
		if (why)
			hs_strs_add(pool, &faults,
				hs_pool_printf(pool, "operation %zu: %s", i + 1, why));
	}
	return faults;
}

static bool names_block(enum hs_delta_kind kind)
{
	return kind == HS_DELTA_INSERT_BLOCK || kind == HS_DELTA_REPLACE_BLOCK ||
	       kind == HS_DELTA_REMOVE_BLOCK;
}

static bool asks_for_blocks(const struct reply *r, const char *section_id)
{
	for (size_t i = 0; i < r->list.n; i++)
		if (names_block(r->list.v[i].kind) && r->list.v[i].section_id &&
			strcmp(r->list.v[i].section_id, section_id) == 0)
			return true;
	return false;
}

/* Sections that exist, with the blocks of those whose blocks were aimed at. */
static const char *map_of(const struct editing *e, const struct reply *r)
{
	struct hs_buf *b = hs_buf_new(e->pool, HS_PROMPT_MAX);

	for (size_t i = 0; i < e->doc.n; i++) {
		const struct hs_doc_section *s = &e->doc.sections[i];

		hs_buf_printf(b, "- section %s: %s\n", s->id, s->heading);
		for (size_t k = 0; k < s->n_blocks && asks_for_blocks(r, s->id); k++)
			hs_buf_printf(b, "  - block %s: %s\n", s->blocks[k].id,
				hs_str_replace(e->pool,
					hs_utf8_cut(e->pool, s->blocks[k].text, MAP_CHARS), "\n",
					" "));
	}
	return b->data;
}

static void add_message(struct editing *e, const char *role, const char *text)
{
	json_array_append_new(e->messages, json_pack("{s:s, s:s}", "role", role, "content", text));
}

static enum hs_rc ask_again(
	struct editing *e, const struct reply *first, struct reply *ret, struct hs_err *err)
{
	struct hs_strs faults = faults_of(e->pool, first);

	add_message(e, "assistant", *first->text ? first->text : "(nothing)");
	add_message(e, "user",
		hs_prompt_delta_reask(e->pool, &faults, misshapen(first) ? "" : map_of(e, first)));
	return ask(e, ret, err);
}

/* ---- one edit call ---- */

static void take(struct editing *e, const struct reply *r)
{
	struct hs_delta_result *sum = &e->out->result;

	json_array_extend(sum->applied, r->result.applied);
	json_array_extend(sum->skipped, r->result.skipped);
	sum->n_applied += r->result.n_applied;
	sum->n_skipped += r->result.n_skipped;
	e->doc = sum->doc = r->result.doc;
}

static enum hs_rc refuse(struct editing *e, const struct reply *last, struct hs_err *err)
{
	struct hs_strs faults = faults_of(e->pool, last);
	const char *why = faults.n ? faults.v[0] : "the list is empty";

	e->out->reason = misshapen(last) ? FAILED : ALL_SKIPPED;
	json_array_extend(e->out->result.skipped, last->result.skipped);
	e->out->result.n_skipped += last->result.n_skipped;
	return hs_fail(err, HS_E_REFRESH,
		misshapen(last) ? "the edit operations could not be read, asked twice: %s"
				: "none of the edit operations could be applied, asked twice: %s",
		why);
}

static enum hs_rc edit_once(struct editing *e, struct hs_err *err)
{
	struct reply first = {0}, second = {0};
	const struct reply *better;

	HS_TRY(ask(e, &first, err));
	if (!is_bad(&first)) {
		take(e, &first);
		return HS_OK;
	}
	HS_TRY(ask_again(e, &first, &second, err));
	if (!is_bad(&second) && (second.list.n > 0 || first.list.n == 0)) {
		take(e, &second);
		return HS_OK;
	}
	better = second.result.n_applied > first.result.n_applied ? &second : &first;
	if (better->result.n_applied == 0)
		return refuse(e, &second, err);
	e->out->settled++;
	take(e, better);
	return HS_OK;
}

enum hs_rc hs_delta_edit(struct hs_run *run, const struct hs_delta_in *in, struct hs_delta_out *ret,
	struct hs_err *err)
{
	struct editing e = {.run = run, .pool = run->pool, .in = in, .out = ret, .doc = *in->doc};
	size_t at = 0;

	*ret = (struct hs_delta_out){.result = {.doc = *in->doc}};
	ret->result.applied = hs_json_keep(run->pool, json_array());
	ret->result.skipped = hs_json_keep(run->pool, json_array());
	while (at < in->facts->n) {
		enum hs_rc rc;

		prepare(&e, &at);
		rc = edit_once(&e, err);
		if (rc != HS_OK && !ret->reason)
			ret->reason = FAILED;
		HS_TRY(rc);
	}
	return HS_OK;
}
