#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/consolidate_run.h"
#include "engine/mind.h"
#include "engine/recall.h"
#include "json/json.h"
#include "store/pending.h"

#define LOOKS 3 /* a batch, what it left out, and each of those alone */

/* ---- what is known already ---- */

struct known {
	struct shown *shown; /* union over the facts, in order of first appearance */
	size_t n;
	json_t *json; /* as the call sees them */
};

static void set_time(json_t *o, const char *key, int64_t us)
{
	char text[HS_TIME_TEXT];

	if (us == HS_TIME_NONE)
		return;
	hs_time_format(us, text);
	json_object_set_new(o, key, json_string(text));
}

static void set_dates(json_t *o, const struct hs_hit *h)
{
	set_time(o, "occurred_start", h->occurred_start_us);
	set_time(o, "occurred_end", h->occurred_end_us);
	set_time(o, "mentioned_at", h->mentioned_us);
}

static json_t *source_json(const struct hs_hit *h)
{
	json_t *o = json_pack("{s:s}", "text", h->text);

	if (o && !hs_str_empty(h->context))
		json_object_set_new(o, "context", json_string(h->context));
	if (o)
		set_dates(o, h);
	return o;
}

static json_t *observation_json(const struct hs_hit *h, const struct hs_recall_out *found)
{
	json_t *sources = json_array();
	json_t *o = json_pack("{s:s, s:s, s:I}", "id", h->id, "text", h->text, "proof_count",
		(json_int_t)h->proof_count);

	if (!o || !sources)
		hs_out_of_memory(sizeof(void *));
	set_dates(o, h);
	for (size_t i = 0; i < found->n_sources; i++)
		if (hs_strs_has(&h->source_fact_ids, found->sources[i].id))
			json_array_append_new(sources, source_json(&found->sources[i]));
	json_object_set_new(o, "source_memories", sources);
	return o;
}

static bool is_known(const struct known *k, int64_t unit_no)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->shown[i].unit_no == unit_no)
			return true;
	return false;
}

static void add_known(struct consolidation *c, struct known *k, const struct hs_recall_out *found)
{
	struct hs_pool *pool = c->run->pool;

	k->shown = hs_pool_regrow(pool, k->shown, k->n * sizeof(*k->shown),
		(k->n + found->n_hits + 1) * sizeof(*k->shown));
	for (size_t i = 0; i < found->n_hits; i++) {
		const struct hs_hit *h = &found->hits[i];

		if (is_known(k, h->unit_no))
			continue;
		k->shown[k->n++] = (struct shown){h->unit_no, h->id, h->text};
		json_array_append_new(k->json, observation_json(h, found));
	}
}

static struct hs_recall_in recall_in(
	const struct consolidation *c, const struct batch *b, size_t fact)
{
	struct hs_recall_in in = hs_recall_defaults(c->bank, c->cfg, b->facts[fact].text);

	in.scope.facts = HS_FACT_BIT(HS_OBSERVATION);
	in.scope.tags = b->scope;
	in.scope.match = b->scope.n ? HS_ALL_STRICT : HS_ANY;
	in.budget = hs_cfg_str(c->cfg, HS_S_consolidation_recall_budget);
	in.max_tokens = hs_cfg_int(c->cfg, HS_S_consolidation_max_tokens);
	in.with_source_facts = true;
	in.source_tokens = hs_cfg_int(c->cfg, HS_S_consolidation_source_facts_max_tokens);
	in.source_tokens_each =
		hs_cfg_int(c->cfg, HS_S_consolidation_source_facts_max_tokens_per_observation);
	in.prefer_observations = 0;
	in.rank_by_arm = true;
	in.strict = true;
	return in;
}

/* One embedding call for the batch, then a look-up for every fact. */
static enum hs_rc look_up(
	struct consolidation *c, const struct batch *b, struct known *ret, struct hs_err *err)
{
	struct hs_run *run = c->run;
	struct hs_vec *vecs = HS_NEW_ARRAY(run->pool, struct hs_vec, b->n + 1);
	struct hs_strs texts = {0};

	*ret = (struct known){.json = hs_json_keep(run->pool, json_array())};
	for (size_t i = 0; i < b->n; i++)
		hs_strs_add(run->pool, &texts, b->facts[i].text);
	if (c->embedder_no)
		HS_TRY(hs_embed(
			run->embedder, run->pool, &texts, true, run->deadline_us, vecs, err));
	for (size_t i = 0; i < b->n; i++) {
		struct hs_recall_in in = recall_in(c, b, i);
		struct hs_recall_out found;

		in.query_vec = vecs[i];
		HS_TRY(hs_recall(run, &in, &found, err));
		add_known(c, ret, &found);
	}
	return HS_OK;
}

/* Observations the scope has room for; -1 = no limit. Untagged scopes have none. */
static enum hs_rc free_slots(
	struct consolidation *c, const struct batch *b, int64_t *ret, struct hs_err *err)
{
	int64_t max = hs_cfg_int(c->cfg, HS_S_max_observations_per_scope), n;

	*ret = -1;
	if (max < 0 || b->scope.n == 0)
		return HS_OK;
	HS_TRY(hs_observations_count(
		c->run->db, c->run->pool, c->bank->bank_no, &b->scope, &n, err));
	*ret = n < max ? max - n : 0;
	return HS_OK;
}

/* ---- the call ---- */

static enum hs_rc ask(struct consolidation *c, const struct batch *b, const struct known *k,
	struct plan *ret, struct hs_err *err)
{
	struct hs_consolidation_fact *facts =
		HS_NEW_ARRAY(c->run->pool, struct hs_consolidation_fact, b->n + 1);
	struct hs_consolidation_prompt_in in = {
		.cfg = c->cfg, .facts = facts, .n_facts = b->n, .observations = k->json};
	json_t *actions;

	for (size_t i = 0; i < b->n; i++)
		facts[i] = (struct hs_consolidation_fact){
			.id = b->facts[i].id,
			.text = b->facts[i].text,
			.occurred_start_us = b->facts[i].occurred_start_us,
			.occurred_end_us = b->facts[i].occurred_end_us,
			.mentioned_us = b->facts[i].mentioned_us,
		};
	HS_TRY(free_slots(c, b, &in.free_slots, err));
	HS_TRY(hs_mind_consolidate(c->run, &in, &actions, err));
	hs_plan_read(c->run->pool, actions, b, k->shown, k->n, in.free_slots, ret);
	return HS_OK;
}

/* A call that failed so may succeed with fewer facts; every other failure is the job's. */
static bool is_batch_failure(enum hs_rc rc)
{
	static const enum hs_rc codes[] = {
		HS_E_LLM_REPLY,
		HS_E_LLM_EMPTY,
		HS_E_LLM_LENGTH,
		HS_E_LLM_OVERFLOW,
		HS_E_LLM_REFUSED,
		HS_E_LLM_POLICY,
		HS_E_LLM_DOWN,
		HS_E_LLM_TIMEOUT,
	};

	for (size_t i = 0; i < HS_COUNT(codes); i++)
		if (codes[i] == rc)
			return true;
	return false;
}

/* ---- one batch ---- */

static enum hs_rc pass(
	struct consolidation *c, const struct batch *b, int look, struct hs_err *err);

static enum hs_rc halves(
	struct consolidation *c, const struct batch *b, int look, struct hs_err *err)
{
	struct batch first = *b, second = *b;

	first.n = b->n / 2;
	second.facts = b->facts + first.n;
	second.n = b->n - first.n;
	HS_TRY(pass(c, &first, look, err));
	return pass(c, &second, look, err);
}

/* The facts no applied action cites: together once more, then each alone. */
static enum hs_rc look_again(struct consolidation *c, const struct batch *b,
	const struct outcome *o, int look, struct hs_err *err)
{
	struct hs_unit_row *rest = HS_NEW_ARRAY(c->run->pool, struct hs_unit_row, b->n + 1);
	struct batch left = {rest, 0, b->scope};

	for (size_t i = 0; i < b->n; i++)
		if (!o->acted[i] && !o->gone[i])
			rest[left.n++] = b->facts[i];
	if (left.n == 0)
		return HS_OK;
	if (look + 1 < LOOKS)
		return pass(c, &left, look + 1, err);
	for (size_t i = 0; i < left.n; i++) {
		struct batch one = {rest + i, 1, b->scope};

		HS_TRY(pass(c, &one, LOOKS, err));
	}
	return HS_OK;
}

static void count_done(struct consolidation *c, const struct batch *b, const struct outcome *o)
{
	for (size_t i = 0; i < b->n; i++) {
		bool done = !o->gone[i] && (o->acted[i] || b->n == 1);

		c->processed += done;
		c->skipped += done && !o->acted[i];
	}
}

static enum hs_rc pass(struct consolidation *c, const struct batch *b, int look, struct hs_err *err)
{
	struct outcome o = {0};
	struct known known;
	struct plan plan;
	enum hs_rc rc;

	HS_TRY(hs_run_check(c->run, err));
	HS_TRY(look_up(c, b, &known, err));
	rc = ask(c, b, &known, &plan, err);
	if (is_batch_failure(rc)) {
		c->batch_failures++;
		hs_metrics_consolidation_failure(hs_rc_retry(rc) != HS_RETRY_NEVER, hs_rc_name(rc));
		hs_err_clear(err);
		return b->n > 1 ? halves(c, b, look, err) : hs_consolidation_fail(c, b, err);
	}
	HS_TRY(rc);
	HS_TRY(hs_plan_write(c, b, known.shown, &plan, &o, err));
	/* an edited fact stays pending and is read again with its new text */
	if (o.discarded)
		return HS_OK;
	count_done(c, b, &o);
	return b->n > 1 ? look_again(c, b, &o, look, err) : HS_OK;
}

enum hs_rc hs_consolidation_pass(struct consolidation *c, const struct batch *b, struct hs_err *err)
{
	return pass(c, b, 1, err);
}
