#include "engine/mind_llm.h"

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "json/json.h"

#define ENOUGH_PERCENT 80
#define SPLIT_DEPTH 16
#define ERROR_SAMPLES 5
#define CONSOLIDATION_PAUSE_S 1
#define CONSOLIDATION_LONGEST_PAUSE_S 8

/* ---- extraction ---- */

struct extraction {
	struct hs_run *run;
	const struct hs_retain_prompt_in *in; /* of the piece */
	bool verbatim;
	int64_t attempts;
};

/* What one reply gave. */
struct reading {
	struct hs_facts facts;
	size_t returned, malformed;
	const char *keys; /* of the first malformed fact */
};

static const char *keys_of(struct hs_pool *pool, json_t *v)
{
	struct hs_strs keys = {0};
	const char *key;
	json_t *member;

	json_object_foreach(v, key, member)
		if (keys.n < 20)
			hs_strs_add(pool, &keys, key);
	return keys.n ? hs_strs_join(pool, &keys, ", ") : "none";
}

/* The list of facts in a reply; NULL when it has none. */
static json_t *facts_list(json_t *value)
{
	json_t *first = json_array_get(value, 0);

	if (json_is_array(value))
		return json_is_object(first) || !first ? value : NULL;
	return hs_json_arr(value, "facts");
}

static void read_facts(struct extraction *x, json_t *list, struct reading *ret)
{
	struct hs_pool *pool = x->run->pool;
	size_t n = json_array_size(list), i;
	int64_t *place = HS_NEW_ARRAY(pool, int64_t, n + 1);
	json_t *v;

	*ret = (struct reading){.returned = n};
	ret->facts.v = HS_NEW_ARRAY(pool, struct hs_fact, n + 1);
	json_array_foreach(list, i, v) {
		struct hs_fact *f = &ret->facts.v[ret->facts.n];
		enum hs_fact_read got =
			hs_fact_from_json(pool, v, i, x->in->event_us, x->verbatim, f);
		size_t kept = 0;

		place[i] = got == HS_FACT_KEPT ? (int64_t)ret->facts.n : -1;
		if (got == HS_FACT_MALFORMED && !ret->malformed++)
			ret->keys = keys_of(pool, v);
		if (got != HS_FACT_KEPT)
			continue;
		for (size_t k = 0; k < f->n_causes; k++)
			if (place[f->causes[k]] >= 0)
				f->causes[kept++] = place[f->causes[k]];
		f->n_causes = kept;
		ret->facts.n++;
	}
}

static enum hs_rc ask(
	struct extraction *x, const char *more, json_t **ret_value, struct hs_err *err)
{
	struct hs_run *run = x->run;
	struct hs_llm_reply reply;
	struct hs_prompt prompt;
	struct hs_llm_call call;

	hs_prompt_retain(run->pool, x->in, &prompt);
	call = (struct hs_llm_call){
		.operation = "retain",
		.scope = "retain_extract_facts",
		.messages = hs_json_keep(run->pool, hs_prompt_messages(run->pool, &prompt)),
		.json = true,
		.schema = prompt.schema,
		.temperature = hs_llm_temperature(x->in->cfg, "retain"),
		.max_tokens = hs_cfg_int(x->in->cfg, HS_S_retain_max_completion_tokens),
		.max_retries = -1,
	};
	if (more)
		json_array_append_new(
			call.messages, json_pack("{s:s, s:s}", "role", "user", "content", more));
	HS_TRY(hs_run_chat(run, &call, &reply, err));
	*ret_value = reply.value;
	return HS_OK;
}

/* Enough of the reply is usable, or no better one may be asked for. */
static bool acceptable(const struct extraction *x, const struct reading *r, int64_t attempt)
{
	if (!r->malformed)
		return true;
	if (attempt < x->attempts)
		return r->facts.n * 100 >= r->returned * ENOUGH_PERCENT;
	return r->malformed < r->returned;
}

/* One piece: ask until the reply has the right shape. */
static enum hs_rc extract_piece(struct extraction *x, struct hs_facts *ret, struct hs_err *err)
{
	const char *more = NULL;
	struct reading r = {0};
	json_t *value, *list = NULL;

	for (int64_t attempt = 1; attempt <= x->attempts; attempt++) {
		HS_TRY(ask(x, more, &value, err));
		list = facts_list(value);
		if (!list) {
			more = "Your reply had no list \"facts\" at its top. Answer again with one json object: "
			       "{\"facts\": [...]}, with {\"facts\": []} when nothing is to be kept.";
			continue;
		}
		read_facts(x, list, &r);
		if (acceptable(x, &r, attempt)) {
			*ret = r.facts;
			return HS_OK;
		}
		more = hs_pool_printf(x->run->pool,
			"Some facts of your reply could not be used: one has the members %s. Each "
			"fact is an object with the members %swhen, where, who, %sfact_kind, occurred_start, occurred_end, "
			"fact_type and a list entities. Answer again with one json object {\"facts\": [...]}.",
			r.keys, x->verbatim ? "" : "what, ", x->verbatim ? "" : "why, ");
	}
	if (!list)
		return hs_fail(err, HS_E_EXTRACT,
			"Fact extraction failed: LLM reply had no top-level 'facts' list after %lld "
			"attempts",
			(long long)x->attempts);
	return hs_fail(err, HS_E_EXTRACT,
		"Fact extraction failed: all %zu facts returned by the LLM were unusable after "
		"%lld attempts",
		r.returned, (long long)x->attempts);
}

static void append(struct hs_pool *pool, struct hs_facts *to, const struct hs_facts *more)
{
	struct hs_fact *v = HS_NEW_ARRAY(pool, struct hs_fact, to->n + more->n + 1);

	for (size_t i = 0; i < to->n; i++)
		v[i] = to->v[i];
	for (size_t i = 0; i < more->n; i++) {
		v[to->n + i] = more->v[i];
		for (size_t k = 0; k < more->v[i].n_causes; k++)
			more->v[i].causes[k] += (int64_t)to->n;
	}
	to->v = v;
	to->n += more->n;
	to->errors += more->errors;
	for (size_t i = 0; i < more->error_sample.n && to->error_sample.n < ERROR_SAMPLES; i++)
		hs_strs_add(pool, &to->error_sample, more->error_sample.v[i]);
}

/* A reply that was cut off is answered by asking for each half of the text. */
static enum hs_rc extract_split(
	struct extraction *x, int depth, struct hs_facts *ret, struct hs_err *err)
{
	struct hs_pool *pool = x->run->pool;
	const char *halves[2];
	enum hs_rc rc = extract_piece(x, ret, err);

	if (rc != HS_E_LLM_LENGTH)
		return rc;
	hs_err_clear(err);
	*ret = (struct hs_facts){0};
	if (depth >= SPLIT_DEPTH || !hs_text_halves(pool, x->in->chunk, &halves[0], &halves[1])) {
		ret->errors = 1;
		hs_strs_add(pool, &ret->error_sample,
			hs_pool_printf(pool,
				"chunk %zu: the reply was cut off and the text cannot be split further",
				x->in->chunk_no));
		return HS_OK;
	}
	for (size_t i = 0; i < 2; i++) {
		struct hs_retain_prompt_in in = *x->in;
		struct extraction half = *x;
		struct hs_facts facts = {0};

		in.chunk = halves[i];
		half.in = &in;
		HS_TRY(extract_split(&half, depth + 1, &facts, err));
		append(pool, ret, &facts);
	}
	return HS_OK;
}

enum hs_rc hs_llm_extract(struct hs_run *run, const struct hs_retain_prompt_in *in,
	struct hs_facts *ret, struct hs_err *err)
{
	const struct hs_config *cfg = in->cfg;
	bool own = !hs_cfg_null(cfg, HS_S_retain_llm_max_retries);
	struct hs_err local = {0};
	struct hs_retain_prompt_in asked = *in;
	struct extraction x = {
		.run = run,
		.in = &asked,
		.verbatim = hs_str_eq(hs_cfg_str(cfg, HS_S_retain_extraction_mode), "verbatim"),
		.attempts =
			hs_cfg_int(cfg, own ? HS_S_retain_llm_max_retries : HS_S_llm_max_retries) +
			1,
	};

	asked.strict = hs_llm_strict(cfg, "retain");
	return extract_split(&x, 0, ret, err ? err : &local);
}

/* ---- consolidation ---- */

/* A list of objects, a missing one empty; false when it is something else. */
static bool list_ok(json_t *actions, const char *key)
{
	json_t *list = json_object_get(actions, key), *v;
	size_t i;

	if (!list || json_is_null(list)) {
		json_object_set_new(actions, key, json_array());
		return true;
	}
	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, v)
		if (!json_is_object(v))
			return false;
	return true;
}

/* One id alone is a list of one; `id` is another word for observation_id. */
static void normalise(json_t *list)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) {
		json_t *ids = json_object_get(v, "source_fact_ids"), *id = json_object_get(v, "id");

		if (json_is_string(ids))
			json_object_set_new(v, "source_fact_ids", json_pack("[O]", ids));
		if (id && !json_object_get(v, "observation_id"))
			json_object_set(v, "observation_id", id);
	}
}

static enum hs_rc read_actions(json_t *value, json_t **ret, struct hs_err *err)
{
	static const char *const lists[] = {"creates", "updates", "deletes"};

	if (!json_is_object(value))
		return hs_fail(err, HS_E_LLM_REPLY, "the consolidation reply is no object");
	for (size_t i = 0; i < HS_COUNT(lists); i++) {
		if (!list_ok(value, lists[i]))
			return hs_fail(err, HS_E_LLM_REPLY,
				"the consolidation reply's '%s' is no list of objects", lists[i]);
		normalise(json_object_get(value, lists[i]));
	}
	*ret = value;
	return HS_OK;
}

static enum hs_rc pause_s(const struct hs_run *run, int64_t seconds, struct hs_err *err)
{
	int64_t end = hs_mono_us() + seconds * HS_SECOND_US;

	for (int64_t left; (left = end - hs_mono_us()) > 0;) {
		HS_TRY(hs_run_check(run, err));
		hs_sleep_us(left < 50000 ? left : 50000);
	}
	return HS_OK;
}

enum hs_rc hs_llm_consolidate(struct hs_run *run, const struct hs_consolidation_prompt_in *in,
	json_t **ret_actions, struct hs_err *err)
{
	int64_t attempts = hs_cfg_int(in->cfg, HS_S_consolidation_max_attempts),
		wait = CONSOLIDATION_PAUSE_S;
	struct hs_consolidation_prompt_in asked = *in;
	struct hs_llm_reply reply;
	struct hs_prompt prompt;
	struct hs_llm_call call;
	enum hs_rc rc;

	asked.strict = hs_llm_strict(in->cfg, "consolidation");
	hs_prompt_consolidation(run->pool, &asked, &prompt);
	call = (struct hs_llm_call){
		.operation = "consolidation",
		.scope = "consolidation",
		.messages = hs_json_keep(run->pool, hs_prompt_messages(run->pool, &prompt)),
		.json = true,
		.schema = prompt.schema,
		.temperature = hs_llm_temperature(in->cfg, "consolidation"),
		.max_tokens = hs_cfg_int(in->cfg, HS_S_consolidation_max_completion_tokens),
		.max_retries = -1,
	};
	for (int64_t attempt = 1;; attempt++) {
		rc = hs_run_chat(run, &call, &reply, err);
		if (rc == HS_OK)
			return read_actions(reply.value, ret_actions, err);
		/* what another try may heal; a smaller batch is the answer to the rest */
		if ((rc != HS_E_LLM_DOWN && rc != HS_E_LLM_TIMEOUT) || attempt >= attempts)
			return rc;
		HS_TRY(pause_s(run, wait, err));
		hs_err_clear(err);
		wait = 2 * wait > CONSOLIDATION_LONGEST_PAUSE_S ? CONSOLIDATION_LONGEST_PAUSE_S
								: 2 * wait;
	}
}
