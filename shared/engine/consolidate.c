#include "engine/consolidate.h"

#include <string.h>

#include "base/clock.h"
#include "db/tx.h"
#include "engine/automatic.h"
#include "engine/consolidate_run.h"
#include "engine/mind.h"
#include "json/json.h"
#include "store/operation.h"
#include "store/pending.h"
#include "store/vector.h"

#define LOOK_AHEAD 5   /* times the fetch size: how far the fair pick looks */
#define ROUNDS_TO_REFRESH 10 /* a chain that does not end refreshes models after so many rounds */
#define IDLE_FETCHES 3 /* fetches in a row that finished nothing before a round gives up */

/* ---- picking facts ---- */

/* Facts with the same tags are consolidated together. */
struct group {
	const char *key;
	struct hs_strs scope;
	struct hs_unit_row *facts;
	size_t n;
};
struct groups {
	struct group *v;
	size_t n;
};

static const char *key_of(struct hs_pool *pool, const struct hs_strs *tags)
{
	struct hs_strs set = hs_strs_sorted_set(pool, tags);
	json_t *v = hs_json_keep(pool, hs_json_from_strs(&set));

	return hs_json_text(pool, v);
}

static size_t group_of(struct hs_pool *pool, struct groups *g, const struct hs_unit_row *f)
{
	const char *key = key_of(pool, &f->tags);
	size_t i = 0;

	while (i < g->n && strcmp(g->v[i].key, key) != 0)
		i++;
	if (i == g->n)
		g->v[g->n++] = (struct group){.key = key, .scope = f->tags};
	return i;
}

/* At most `take` facts: each group its share, oldest first, a lone group as many as there are. */
static struct groups pick(
	struct hs_pool *pool, const struct hs_unit_row *rows, size_t n, size_t take, size_t share)
{
	struct groups g = {HS_NEW_ARRAY(pool, struct group, n + 1), 0};
	size_t *of = HS_NEW_ARRAY(pool, size_t, n + 1), taken = 0;

	for (size_t i = 0; i < n; i++)
		of[i] = group_of(pool, &g, &rows[i]);
	if (g.n == 1)
		share = take;
	for (size_t i = 0; i < g.n; i++)
		g.v[i].facts = HS_NEW_ARRAY(pool, struct hs_unit_row, share + 1);
	for (size_t i = 0; i < n && taken < take; i++) {
		struct group *to = &g.v[of[i]];

		if (to->n == share)
			continue;
		to->facts[to->n++] = rows[i];
		taken++;
	}
	return g;
}

/* ---- one round ---- */

struct round {
	struct consolidation c;
	const struct hs_consolidate_in *in;
	int64_t total, limit;
	int64_t refreshed;             /* models queued for a refresh */
	const char *status;
	bool no_model;                 /* provider none */
};

static int64_t finished(const struct round *r)
{
	return r->c.processed + r->c.failed;
}

static json_t *counts(const struct round *r)
{
	const struct consolidation *c = &r->c;
	json_t *v = json_pack("{s:I, s:I, s:I, s:I, s:I}", "observations_created",
		(json_int_t)c->created, "observations_updated", (json_int_t)c->updated,
		"observations_merged", (json_int_t)c->merged, "observations_deleted",
		(json_int_t)c->deleted, "memories_failed", (json_int_t)c->failed);

	if (!v)
		hs_out_of_memory(sizeof(void *));
	return v;
}

static json_t *result(const struct round *r)
{
	const struct consolidation *c = &r->c;
	json_t *v = counts(r);

	json_object_set_new(v, "status", json_string(r->status));
	json_object_set_new(v, "memories_processed", json_integer(c->processed));
	json_object_set_new(v, "actions_executed", json_integer(c->actions));
	json_object_set_new(
		v, "skipped", r->no_model ? json_true() : json_integer(c->skipped));
	json_object_set_new(v, "llm_batch_failures", json_integer(c->batch_failures));
	json_object_set_new(v, "unresolved_actions", json_integer(c->unresolved));
	json_object_set_new(v, "mental_models_refreshed", json_integer(r->refreshed));
	return v;
}

/* After every batch: progress for watchers, and the wall limit counts anew. */
static void report(struct round *r)
{
	struct hs_run *run = r->c.run;
	int64_t wall = hs_cfg_int(r->c.cfg, HS_S_consolidation_wall_timeout);

	if (finished(r) > r->total)
		r->total = finished(r);
	if (run->deadline_us && wall > 0)
		run->deadline_us = hs_mono_us() + wall * HS_SECOND_US;
	if (run->progress)
		run->progress(run->progress_arg, "consolidating", finished(r), r->total,
			hs_json_keep(run->pool, counts(r)));
}

static enum hs_rc run_group(struct round *r, const struct group *g, struct hs_err *err)
{
	size_t size = (size_t)hs_cfg_int(r->c.cfg, HS_S_consolidation_llm_batch_size);

	for (size_t at = 0; at < g->n; at += size) {
		struct batch b = {g->facts + at, g->n - at < size ? g->n - at : size, g->scope};

		HS_TRY(hs_consolidation_pass(&r->c, &b, err));
		report(r);
	}
	return HS_OK;
}

/* One fetch; *ret_n: facts it looked at. */
static enum hs_rc fetch(struct round *r, size_t *ret_n, struct hs_err *err)
{
	struct hs_pool *pool = r->c.run->pool;
	int64_t size = hs_cfg_int(r->c.cfg, HS_S_consolidation_batch_size);
	int64_t ways = hs_cfg_int(r->c.cfg, HS_S_consolidation_llm_parallelism),
		share = (size + ways - 1) / ways;
	int64_t left = r->limit > 0 ? r->limit - finished(r) : size;
	struct hs_unit_row *rows;
	struct groups groups;

	HS_TRY(hs_pending_facts(r->c.run->db, pool, r->c.bank->bank_no, r->in->scopes,
		size * LOOK_AHEAD, &rows, ret_n, err));
	groups = pick(pool, rows, *ret_n, (size_t)(left < size ? left : size), (size_t)share);
	for (size_t i = 0; i < groups.n; i++)
		HS_TRY(run_group(r, &groups.v[i], err));
	return HS_OK;
}

/* A fetch has memory of its own: a job without a limit may go on for days. */
static enum hs_rc run_fetch(struct round *r, size_t *ret_n, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_run *job = r->c.run, own = *job;
	enum hs_rc rc;

	own.pool = pool;
	r->c.run = &own;
	rc = fetch(r, ret_n, err);
	r->c.run = job;
	job->usage = own.usage;
	job->deadline_us = own.deadline_us;
	return rc;
}

/* Until nothing waits or the limit is reached; *ret_more: facts may be left. */
static enum hs_rc run_fetches(struct round *r, bool *ret_more, struct hs_err *err)
{
	int idle = 0;
	size_t n;

	*ret_more = false;
	for (;;) {
		int64_t before = finished(r);

		HS_TRY(run_fetch(r, &n, err));
		if (n == 0)
			return HS_OK;
		idle = finished(r) == before ? idle + 1 : 0;
		if (idle == IDLE_FETCHES || (r->limit > 0 && finished(r) >= r->limit))
			break;
	}
	*ret_more = true;
	return HS_OK;
}

/* ---- the chain ---- */

static enum hs_rc submit_next(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct round *r = arg;
	struct hs_consolidation_submit s = {
		.scopes = r->in->scopes, .round = r->in->round + 1, .manual = r->in->manual};
	const char *id;

	return hs_submit_consolidation(db, r->c.run->pool, r->c.bank->bank_no, &s, &id, NULL, err);
}

/* The rest follows in another job; an automatic chain ends when it was switched off meanwhile.
 * *ret_goes_on: the chain has not ended. */
static enum hs_rc follow_up(struct round *r, bool *ret_goes_on, struct hs_err *err)
{
	struct hs_run *run = r->c.run;
	struct hs_config *now;
	struct hs_bank bank;
	int64_t left;

	*ret_goes_on = false;
	HS_TRY(hs_pending_count(run->db, run->pool, r->c.bank->bank_no, r->in->scopes, &left, err));
	if (left == 0)
		return HS_OK;
	HS_TRY(hs_bank_find_no(run->db, run->pool, r->c.bank->bank_no, &bank, err));
	HS_TRY(hs_bank_config(run->pool, run->server, &bank, &now, err));
	if (!r->in->manual && !hs_cfg_bool(now, HS_S_enable_auto_consolidation))
		return HS_OK;
	HS_TRY(hs_tx_run(run->db, submit_next, r, err));
	hs_queue_poke(run->server);
	*ret_goes_on = true;
	return HS_OK;
}

/* The chain has ended, or has run long: what it left stale is refreshed. A round that a killed worker
 * had finished but not reported finds nothing to do and comes here, too. */
static enum hs_rc refresh_models(struct round *r, struct hs_err *err)
{
	struct hs_run *run = r->c.run;

	HS_TRY(hs_run_check(run, err));
	if (r->total > 0 && run->progress)
		run->progress(run->progress_arg, "refreshing_mental_models", finished(r), r->total, NULL);
	return hs_automatic_after_consolidation(
		run->db, run->pool, run->server, r->c.bank->bank_no, &r->refreshed, err);
}

static enum hs_rc run_round(struct round *r, struct hs_err *err)
{
	struct hs_run *run = r->c.run;
	bool more, goes_on = false;

	HS_TRY(hs_bank_config(run->pool, run->server, r->in->bank, &r->c.cfg, err));
	r->no_model = hs_mind_for(r->c.cfg, "consolidation") == HS_MIND_NONE;
	if (r->no_model || !hs_cfg_bool(r->c.cfg, HS_S_enable_observations)) {
		r->status = "disabled";
		return HS_OK;
	}
	if (run->embedder && !hs_embedder_none(run->embedder))
		HS_TRY(hs_embedder_no(run->db, run->pool, hs_embedder_tag(run->embedder),
			&r->c.embedder_no, err));
	r->limit = hs_cfg_int(r->c.cfg, HS_S_consolidation_max_memories_per_round);
	HS_TRY(hs_pending_count(
		run->db, run->pool, r->in->bank->bank_no, r->in->scopes, &r->total, err));
	if (r->total == 0) {
		r->status = "no_new_memories";
		return refresh_models(r, err);
	}
	report(r);
	HS_TRY(run_fetches(r, &more, err));
	if (more)
		HS_TRY(follow_up(r, &goes_on, err));
	if (goes_on && r->in->round % ROUNDS_TO_REFRESH != 0)
		return HS_OK;
	return refresh_models(r, err);
}

enum hs_rc hs_consolidate_run(struct hs_run *run, const struct hs_consolidate_in *in,
	json_t **ret_result, struct hs_err *err)
{
	struct round r = {.c = {.run = run, .bank = in->bank}, .in = in, .status = "completed"};
	enum hs_rc rc = run_round(&r, err);

	if (rc == HS_E_CANCELLED)
		r.status = "cancelled";
	else if (rc == HS_E_BANK_MISSING)
		r.status = "bank_not_found";
	else if (rc != HS_OK)
		r.status = "failed";
	*ret_result = result(&r);
	return rc;
}
