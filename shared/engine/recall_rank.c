#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/recall_run.h"

#define BOOST_RECENCY 0.2
#define BOOST_PROOF 0.1
#define NEUTRAL 0.5
/* Share of the vector arm with the hash embedder: the best of 0 … 0.3 on LoCoMo (0.620 of the evidence
 * among the first ten; 0.614 by keywords alone). */
#define HASH_WEIGHT 0.15

/* ---- boosts (contract 4.7) ---- */

static double clamp(double v, double low, double high)
{
	return v < low ? low : v > high ? high : v;
}

/* Does the span from start to end fill a whole calendar month or year (one day of slack)? */
static bool whole_period(int64_t start_us, int64_t end_us)
{
	struct hs_civil c;
	int64_t span = end_us - start_us, month, year;

	if (start_us == HS_TIME_NONE || end_us == HS_TIME_NONE)
		return false;
	c = hs_civil_from_us(start_us);
	month = hs_days_in_month(c.year, c.month) * HS_DAY_US;
	year = (hs_days_in_month(c.year, 2) == 29 ? 366 : 365) * HS_DAY_US;
	return (span >= month - HS_DAY_US && span <= month) ||
	       (span >= year - HS_DAY_US && span <= year);
}

static double decay(const struct hs_config *cfg, double days)
{
	const char *how = hs_cfg_str(cfg, HS_S_recency_decay_function);

	if (strcmp(how, "none") == 0)
		return NEUTRAL;
	if (strcmp(how, "exponential") == 0)
		return clamp(
			pow(0.5, days / hs_cfg_num(cfg, HS_S_recency_decay_halflife_days)), 0, 1);
	return clamp(1.0 - days / hs_cfg_num(cfg, HS_S_recency_decay_linear_window_days), 0.1, 1.0);
}

static double recency(const struct recall *r, const struct hs_unit_row *u, int64_t now_us)
{
	int64_t at = u->occurred_start_us;
	bool period = whole_period(u->occurred_start_us, u->occurred_end_us);
	double score;

	if (period)
		at = u->occurred_end_us;
	if (at == HS_TIME_NONE)
		at = u->mentioned_us != HS_TIME_NONE ? u->mentioned_us : u->occurred_end_us;
	if (at == HS_TIME_NONE)
		return NEUTRAL;
	score = decay(r->in->cfg, (double)(now_us - at) / (double)HS_DAY_US);
	return period && score > NEUTRAL ? NEUTRAL : score;
}

static double proof(const struct hs_unit_row *u)
{
	return u->proof_count > 0 ? clamp(NEUTRAL + log((double)u->proof_count) / 10.0, 0, 1)
				  : NEUTRAL;
}

static double boosted(const struct recall *r, const struct recall_candidate *c, int64_t now_us)
{
	double v = c->base * (1.0 + BOOST_RECENCY * (recency(r, &c->row, now_us) - NEUTRAL)) *
		   (1.0 + BOOST_PROOF * (proof(&c->row) - NEUTRAL));

	return isnan(v) ? 0 : v;
}

/* ---- ranking ---- */

static double semantic_weight(const struct recall *r)
{
	const struct hs_embedder *e = r->run->embedder;

	if (!hs_cfg_null(r->in->cfg, HS_S_recall_semantic_weight))
		return hs_cfg_num(r->in->cfg, HS_S_recall_semantic_weight);
	if (!e || hs_embedder_none(e))
		return 0.0;
	return hs_embedder_is_hash(e) ? HASH_WEIGHT : 0.5;
}

static size_t candidate_cap(const struct recall *r)
{
	static const struct {
		const char *level;
		enum hs_setting_id id;
	} levels[] = {{"low", HS_S_reranker_max_candidates_low},
		{"mid", HS_S_reranker_max_candidates_mid},
		{"high", HS_S_reranker_max_candidates_high}};
	const char *budget = r->in->budget ? r->in->budget : "mid";

	for (size_t i = 0; i < HS_COUNT(levels); i++)
		if (strcmp(levels[i].level, budget) == 0 &&
			hs_cfg_int(r->in->cfg, levels[i].id) > 0)
			return (size_t)hs_cfg_int(r->in->cfg, levels[i].id);
	return (size_t)hs_cfg_int(r->in->cfg, HS_S_reranker_max_candidates);
}

static enum hs_fusion fusion_of(const struct recall *r)
{
	if (r->in->rank_by_arm)
		return HS_FUSE_ROUND_ROBIN;
	return strcmp(hs_cfg_str(r->in->cfg, HS_S_recall_fusion), "rrf") == 0 ? HS_FUSE_RRF
									      : HS_FUSE_SCORES;
}

static double base_score(enum hs_fusion how, const struct hs_fused *f, size_t rank, size_t n)
{
	switch (how) {
	case HS_FUSE_SCORES:
		return f[0].score > 0 ? 0.1 + 0.9 * f[rank].score / f[0].score : 0.1;
	case HS_FUSE_RRF:
		return n > 1 ? 1.0 - 0.9 * (double)rank / (double)(n - 1) : 1.0;
	case HS_FUSE_ROUND_ROBIN:
		break;
	}
	return f[rank].score;
}

static int by_final(const void *a, const void *b)
{
	const struct recall_candidate *x = a, *y = b;

	if (x->final > y->final || x->final < y->final)
		return x->final > y->final ? -1 : 1;
	if (x->base > y->base || x->base < y->base)
		return x->base > y->base ? -1 : 1;
	return x->row.unit_no < y->row.unit_no ? -1 : x->row.unit_no > y->row.unit_no;
}

/* Rows of the fused candidates, scored; units deleted meanwhile are left out. */
static enum hs_rc load(struct recall *r, enum hs_fusion how, const struct hs_fused *fused, size_t n,
	struct hs_err *err)
{
	int64_t now_us = r->in->query_us == HS_TIME_NONE ? hs_now_us() : r->in->query_us;
	int64_t *nos = HS_NEW_ARRAY(r->run->pool, int64_t, n + 1);
	struct hs_unit_row *rows;
	size_t n_rows;

	for (size_t i = 0; i < n; i++)
		nos[i] = fused[i].unit_no;
	HS_TRY(hs_units_load(r->run->db, r->run->pool, r->bank_no, nos, n, &rows, &n_rows, err));
	r->v = HS_NEW_ARRAY(r->run->pool, struct recall_candidate, n_rows + 1);
	for (size_t i = 0, k = 0; i < n && k < n_rows; i++) {
		struct recall_candidate *c = &r->v[r->n];

		if (rows[k].unit_no != fused[i].unit_no)
			continue;
		c->row = rows[k++];
		c->type = (enum hs_fact_type)hs_fact_type_find(c->row.fact_type);
		c->base = base_score(how, fused, i, n);
		c->final = r->in->rank_by_arm ? c->base : boosted(r, c, now_us);
		memcpy(c->arm, fused[i].arm, sizeof(c->arm));
		if (!isnan(r->in->min_reranker) && c->base < r->in->min_reranker)
			continue;
		if (!isnan(r->in->min_final) && c->final < r->in->min_final)
			continue;
		r->n++;
	}
	return HS_OK;
}

enum hs_rc hs_recall_rank(struct recall *r, struct hs_err *err)
{
	enum hs_fusion how = fusion_of(r);
	size_t n, cap = candidate_cap(r);
	struct hs_fused *fused =
		hs_fuse(r->run->pool, how, r->arms, &r->below, semantic_weight(r), &n);

	if (n > cap)
		n = cap;
	HS_TRY(load(r, how, fused, n, err));
	qsort(r->v, r->n, sizeof(*r->v), by_final);
	return HS_OK;
}
