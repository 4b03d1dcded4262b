#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/recall_run.h"
#include "store/bulk.h"
#include "store/posting.h"
#include "store/vector.h"
#include "text/words.h"

#define BM25_K1 0.9
#define BM25_B 0.4

/* ---- the best of each type ---- */

struct per_type {
	struct hs_best best[HS_FACT_TYPE__MAX];
};

static struct per_type per_type_new(const struct recall *r)
{
	struct per_type p;

	for (int t = 0; t < HS_FACT_TYPE__MAX; t++)
		p.best[t] = hs_best_new(r->run->pool, r->facts & HS_FACT_BIT(t) ? r->per_arm : 0);
	return p;
}

static struct hs_arm_list joined(const struct recall *r, const struct per_type *p)
{
	struct hs_arm_list arm = hs_best_join(r->run->pool, p->best, HS_FACT_TYPE__MAX);
	int64_t most = hs_cfg_int(r->in->cfg, HS_S_recall_max_candidates_per_source);

	if (most > 0 && arm.n > (size_t)most)
		arm.n = (size_t)most;
	return arm;
}

/* ---- keyword arm ---- */

/* Scores by unit: open addressing, sized by the document frequencies. */
struct slot {
	int64_t unit_no; /* 0 = free */
	double score;
	int type;
};
struct scorer {
	struct slot *slots;
	size_t mask;
	const struct hs_term_df *terms;
	const double *idf;
	size_t n_terms;
	double mean_len;
};

static void add_score(void *arg, const struct hs_posting *p)
{
	struct scorer *s = arg;
	size_t at = (size_t)((uint64_t)p->unit_no * UINT64_C(0x9E3779B97F4A7C15) >> 24) & s->mask,
	       term = 0;
	double tf = p->tf;

	while (term + 1 < s->n_terms && s->terms[term].term != p->term)
		term++;
	while (s->slots[at].unit_no && s->slots[at].unit_no != p->unit_no)
		at = (at + 1) & s->mask;
	s->slots[at].unit_no = p->unit_no;
	s->slots[at].type = p->type;
	s->slots[at].score += s->idf[term] * tf * (BM25_K1 + 1.0) /
			      (tf + BM25_K1 * (1.0 - BM25_B + BM25_B * p->len / s->mean_len));
}

static int by_df(const void *a, const void *b)
{
	const struct hs_term_df *x = a, *y = b;

	if (x->df != y->df)
		return x->df < y->df ? -1 : 1;
	return x->term < y->term ? -1 : x->term > y->term;
}

/* The terms of the query that the bank knows: the rarest, or the first ones. */
static enum hs_rc query_terms(const struct recall *r, struct hs_term_df **ret, size_t *ret_n,
	struct hs_posting_stats *stats, struct hs_err *err)
{
	int64_t most = hs_cfg_int(r->in->cfg, HS_S_bm25_max_query_terms);
	bool rarest = hs_cfg_bool(r->in->cfg, HS_S_bm25_selective_terms);
	struct hs_query_terms q;
	struct hs_term_df *v;
	size_t n = 0;

	hs_words_query(r->run->pool, r->in->query, NULL, &q);
	if (!rarest && most > 0 && q.n > (size_t)most)
		q.n = (size_t)most;
	v = HS_NEW_ARRAY(r->run->pool, struct hs_term_df, q.n + 1);
	for (size_t i = 0; i < q.n; i++)
		v[i].term = hs_posting_term(q.v[i].hash);
	HS_TRY(hs_posting_stats(r->run->db, r->run->pool, r->bank_no, v, q.n, stats, err));
	for (size_t i = 0; i < q.n; i++)
		if (v[i].df > 0)
			v[n++] = v[i];
	qsort(v, n, sizeof(*v), by_df);
	if (most > 0 && n > (size_t)most)
		n = (size_t)most;
	*ret = v;
	*ret_n = n;
	return HS_OK;
}

static enum hs_rc keyword_arm(struct recall *r, const struct hs_scope *scope, struct hs_err *err)
{
	struct hs_pool *pool = r->run->pool;
	double floor = isnan(r->in->min_keyword) ? hs_cfg_num(r->in->cfg, HS_S_bm25_min_score)
						 : r->in->min_keyword;
	struct hs_posting_stats stats;
	struct hs_term_df *terms;
	struct scorer s = {.mask = 64};
	struct per_type best = per_type_new(r);
	double *idf;
	int64_t rows = 0;

	HS_TRY(query_terms(r, &terms, &s.n_terms, &stats, err));
	if (!s.n_terms || stats.units <= 0)
		return HS_OK;
	idf = HS_NEW_ARRAY(pool, double, s.n_terms);
	for (size_t i = 0; i < s.n_terms; i++) {
		double df = (double)terms[i].df;

		idf[i] = log(1.0 + ((double)stats.units - df + 0.5) / (df + 0.5));
		rows += terms[i].df;
	}
	/* one free slot at least, whatever was written since the frequencies were read */
	while (s.mask < 2 * (size_t)rows + 1024)
		s.mask *= 2;
	s.slots = hs_pool_calloc(pool, s.mask, sizeof(*s.slots));
	s.mask--;
	s.terms = terms;
	s.idf = idf;
	s.mean_len = stats.total_len > 0 ? (double)stats.total_len / (double)stats.units : 1.0;
	HS_TRY(hs_postings_each(
		r->run->db, pool, r->bank_no, terms, s.n_terms, scope, add_score, &s, err));
	for (size_t i = 0; i <= s.mask; i++)
		if (s.slots[i].unit_no && s.slots[i].score > 0 && s.slots[i].score >= floor)
			hs_best_offer(
				&best.best[s.slots[i].type], s.slots[i].unit_no, s.slots[i].score);
	r->arms[HS_ARM_KEYWORD] = joined(r, &best);
	return HS_OK;
}

/* ---- vector arm ---- */

struct nearest {
	struct per_type best;
	struct hs_vec query;
	double floor;
	const int64_t *words; /* units of the keyword arm, ascending */
	size_t n_words;
	struct hs_arm_list cosines; /* theirs */
};

static void compare(void *arg, int64_t unit_no, enum hs_fact_type type, const float *vec)
{
	struct nearest *s = arg;
	double like = hs_dot(s->query.v, vec, s->query.dim);

	if (like >= s->floor)
		hs_best_offer(&s->best.best[type], unit_no, like);
	if (hs_nos_has(s->words, s->n_words, unit_no) && s->cosines.n < s->n_words)
		s->cosines.v[s->cosines.n++] = (struct hs_arm_hit){unit_no, like};
}

static void watch_words(struct recall *r, struct nearest *s)
{
	const struct hs_arm_list *l = &r->arms[HS_ARM_KEYWORD];
	int64_t *nos = HS_NEW_ARRAY(r->run->pool, int64_t, l->n + 1);

	for (size_t i = 0; i < l->n; i++)
		nos[i] = l->v[i].unit_no;
	s->words = hs_nos_sorted(r->run->pool, nos, l->n, &s->n_words);
	s->cosines.v = HS_NEW_ARRAY(r->run->pool, struct hs_arm_hit, s->n_words + 1);
}

/* Keyword hits that the vector arm did not return keep their cosine for the ranking. */
static void keep_below(struct recall *r, const struct nearest *s)
{
	const struct hs_arm_list *l = &r->arms[HS_ARM_SEMANTIC];
	int64_t *nos = HS_NEW_ARRAY(r->run->pool, int64_t, l->n + 1);
	size_t n;

	for (size_t i = 0; i < l->n; i++)
		nos[i] = l->v[i].unit_no;
	nos = hs_nos_sorted(r->run->pool, nos, l->n, &n);
	r->below.v = HS_NEW_ARRAY(r->run->pool, struct hs_arm_hit, s->cosines.n + 1);
	for (size_t i = 0; i < s->cosines.n; i++)
		if (!hs_nos_has(nos, n, s->cosines.v[i].unit_no))
			r->below.v[r->below.n++] = s->cosines.v[i];
}

static bool has_embedder(const struct recall *r)
{
	return r->run->embedder && !hs_embedder_none(r->run->embedder);
}

/* A lost embedding service loses the arm, unless nothing else would search. */
static enum hs_rc embed_query(struct recall *r, struct hs_vec *ret, struct hs_err *err)
{
	struct hs_strs texts = {0};
	struct hs_err why = {0};
	enum hs_rc rc;

	if (r->in->query_vec.v) {
		*ret = r->in->query_vec;
		return HS_OK;
	}
	hs_strs_add(r->run->pool, &texts, r->in->query);
	rc = hs_embed(r->run->embedder, r->run->pool, &texts, true, r->run->deadline_us, ret, &why);
	if (rc == HS_OK || rc == HS_E_CANCELLED || rc == HS_E_TIMEOUT) {
		*err = why;
		return rc;
	}
	if (r->in->strict || !hs_cfg_bool(r->in->cfg, HS_S_enable_text_search))
		return hs_fail(err, HS_E_RETRIEVAL, "the query could not be embedded: %s", why.msg);
	hs_log(HS_LOG_DEBUG, "vector_arm_lost", "reason=%s", hs_log_quote(why.msg));
	r->out->arm_lost = true;
	ret->v = NULL;
	return HS_OK;
}

static enum hs_rc vector_arm(struct recall *r, const struct hs_scope *scope, struct hs_err *err)
{
	struct nearest s = {.best = per_type_new(r)};
	int64_t embedder_no;

	if (!has_embedder(r))
		return HS_OK;
	s.floor = isnan(r->in->min_semantic) ? hs_cfg_num(r->in->cfg, HS_S_semantic_min_similarity)
					     : r->in->min_semantic;
	HS_TRY(hs_embedder_find(
		r->run->db, r->run->pool, hs_embedder_tag(r->run->embedder), &embedder_no, err));
	if (!embedder_no)
		return HS_OK;
	HS_TRY(embed_query(r, &s.query, err));
	if (!s.query.v)
		return HS_OK;
	watch_words(r, &s);
	HS_TRY(hs_vectors_each(r->run->db, r->run->pool, r->bank_no, embedder_no, s.query.dim,
		scope, 0, compare, &s, err));
	r->arms[HS_ARM_SEMANTIC] = joined(r, &s.best);
	keep_below(r, &s);
	return HS_OK;
}

enum hs_rc hs_recall_arms(struct recall *r, struct hs_err *err)
{
	struct hs_scope scope = r->in->scope;

	scope.facts = r->facts;
	if (hs_cfg_bool(r->in->cfg, HS_S_enable_text_search))
		HS_TRY(keyword_arm(r, &scope, err));
	return vector_arm(r, &scope, err);
}
