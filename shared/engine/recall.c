#include "engine/recall.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/tokens.h"
#include "engine/recall_run.h"
#include "store/bulk.h"
#include "store/document.h"
#include "store/observation.h"

struct hs_recall_in hs_recall_defaults(
	const struct hs_bank *bank, const struct hs_config *cfg, const char *query)
{
	return (struct hs_recall_in){
		.bank = bank,
		.cfg = cfg,
		.query = query,
		.scope = hs_scope_all(),
		.budget = "mid",
		.max_tokens = 4096,
		.query_us = HS_TIME_NONE,
		.chunk_tokens = 8192,
		.source_tokens = 4096,
		.source_tokens_each = -1,
		.prefer_observations = -1,
		.min_semantic = NAN,
		.min_keyword = NAN,
		.min_reranker = NAN,
		.min_final = NAN,
	};
}

/* ---- budget (contract 4.4) ---- */

struct level {
	const char *name;
	enum hs_setting_id fixed, adaptive;
};
static const struct level levels[] = {
	{"low", HS_S_recall_budget_fixed_low, HS_S_recall_budget_adaptive_low},
	{"mid", HS_S_recall_budget_fixed_mid, HS_S_recall_budget_adaptive_mid},
	{"high", HS_S_recall_budget_fixed_high, HS_S_recall_budget_adaptive_high},
};

static size_t per_arm(const struct hs_recall_in *in)
{
	const struct level *l = &levels[1];
	int64_t low = hs_cfg_int(in->cfg, HS_S_recall_budget_min),
		high = hs_cfg_int(in->cfg, HS_S_recall_budget_max);
	double want;

	for (size_t i = 0; i < HS_COUNT(levels); i++)
		if (in->budget && strcmp(in->budget, levels[i].name) == 0)
			l = &levels[i];
	if (strcmp(hs_cfg_str(in->cfg, HS_S_recall_budget_function), "adaptive") != 0)
		return (size_t)hs_cfg_int(in->cfg, l->fixed);
	want = round((double)in->max_tokens * hs_cfg_num(in->cfg, l->adaptive));
	want = want > (double)high ? (double)high : want;
	return (size_t)(want < (double)low ? (double)low : want);
}

/* ---- selection (contract 4.8) ---- */

struct hs_hit hs_recall_hit(const struct recall *r, const struct hs_unit_row *row)
{
	return (struct hs_hit){
		.unit_no = row->unit_no,
		.id = row->id,
		.text = row->text,
		.context = row->context,
		.document_id = row->document_id,
		.chunk_id = row->document_id && row->chunk_index >= 0
				    ? hs_chunk_id(r->run->pool, r->in->bank->bank_id,
					      row->document_id, row->chunk_index)
				    : NULL,
		.metadata = row->metadata,
		.type = (enum hs_fact_type)hs_fact_type_find(row->fact_type),
		.occurred_start_us = row->occurred_start_us,
		.occurred_end_us = row->occurred_end_us,
		.mentioned_us = row->mentioned_us,
		.updated_us = row->updated_us,
		.chunk_index = row->chunk_index,
		.proof_count = row->proof_count,
		.tags = row->tags,
		.score = {NAN, NAN, NAN},
	};
}

static bool prefers_observations(const struct recall *r)
{
	unsigned raw = HS_FACT_BIT(HS_WORLD) | HS_FACT_BIT(HS_EXPERIENCE);
	bool want = r->in->prefer_observations < 0
			    ? hs_cfg_bool(r->in->cfg, HS_S_recall_prefer_observations)
			    : r->in->prefer_observations > 0;

	return want && (r->facts & HS_FACT_BIT(HS_OBSERVATION)) && (r->facts & raw);
}

/* Facts that an observation among the first 2T rests on leave the list. */
static enum hs_rc drop_covered(struct recall *r, size_t first, struct hs_err *err)
{
	int64_t *observations = HS_NEW_ARRAY(r->run->pool, int64_t, r->n + 1), *covered;
	struct hs_source *sources;
	size_t n = 0, n_sources, n_covered, m = 0;

	for (size_t i = 0; i < r->n && i < first; i++)
		if (r->v[i].type == HS_OBSERVATION)
			observations[n++] = r->v[i].row.unit_no;
	HS_TRY(hs_observation_sources(
		r->run->db, r->run->pool, r->bank_no, observations, n, &sources, &n_sources, err));
	covered = HS_NEW_ARRAY(r->run->pool, int64_t, n_sources + 1);
	for (size_t i = 0; i < n_sources; i++)
		covered[i] = sources[i].source_no;
	covered = hs_nos_sorted(r->run->pool, covered, n_sources, &n_covered);
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i].type == HS_OBSERVATION ||
			!hs_nos_has(covered, n_covered, r->v[i].row.unit_no))
			r->v[m++] = r->v[i];
	r->n = m;
	return HS_OK;
}

static void take(struct recall *r, size_t i)
{
	struct hs_hit *h = &r->out->hits[r->out->n_hits++];

	*h = hs_recall_hit(r, &r->v[i].row);
	h->score = (struct hs_score){
		r->v[i].final, r->v[i].arm[HS_ARM_SEMANTIC], r->v[i].arm[HS_ARM_KEYWORD]};
}

/* Every fact that still fits, in order; the best one whole when none does. */
static void pack(struct recall *r)
{
	int64_t left = r->in->max_tokens;

	r->out->hits = HS_NEW_ARRAY(r->run->pool, struct hs_hit, r->kept + 1);
	if (left <= 0)
		return;
	for (size_t i = 0; i < r->kept; i++) {
		int64_t tokens = (int64_t)hs_tokens(r->v[i].row.text);

		if (tokens > left)
			continue;
		left -= tokens;
		take(r, i);
	}
	if (!r->out->n_hits && r->kept)
		take(r, 0);
}

enum hs_rc hs_recall(struct hs_run *run, const struct hs_recall_in *in, struct hs_recall_out *ret,
	struct hs_err *err)
{
	struct hs_recall_in own = *in;
	struct recall r = {.run = run, .in = &own, .out = ret, .bank_no = in->bank->bank_no};
	int64_t most = hs_cfg_int(in->cfg, HS_S_recall_max_query_tokens);

	*ret = (struct hs_recall_out){0};
	HS_TRY(hs_run_check(run, err));
	if (most > 0)
		own.query = hs_tokens_cut(run->pool, in->query, (size_t)most);
	r.facts = in->scope.facts ? in->scope.facts : HS_FACTS_ALL;
	r.per_arm = per_arm(&own);
	HS_TRY(hs_recall_arms(&r, err));
	HS_TRY(hs_recall_rank(&r, err));
	if (prefers_observations(&r))
		HS_TRY(drop_covered(&r, 2 * r.per_arm, err));
	r.kept = r.n < 2 * r.per_arm ? r.n : 2 * r.per_arm;
	pack(&r);
	return hs_recall_extras(&r, err);
}
