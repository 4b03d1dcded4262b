#include <string.h>

#include "base/log.h"
#include "db/tx.h"
#include "engine/fusion.h"
#include "engine/retain_run.h"
#include "store/clock.h"
#include "store/vector.h"

#define LINKS_PER_FACT 20
/* Vectors are read from the database here (1,024 of 384 floats: 4 ms of both sides' time): new facts are
 * compared with the newest ones only, and many new facts share one reading. */
#define NEWEST 256
#define TOGETHER 256

struct waiting {
	int64_t unit_no;
	enum hs_fact_type type;
	const float *vec;
};
struct retain_links {
	struct hs_run *run;
	int64_t bank_no, embedder_no;
	double floor;
	struct waiting v[TOGETHER];
	size_t n, dim;
	struct hs_pool *pool; /* vectors of those that wait; NULL while none do */
};

struct retain_links *hs_retain_links_new(struct hs_run *run, const struct hs_bank *bank,
	const struct hs_config *cfg, int64_t embedder_no)
{
	struct retain_links *l = HS_NEW(run->pool, struct retain_links);

	l->run = run;
	l->bank_no = bank->bank_no;
	l->embedder_no = embedder_no;
	l->floor = hs_cfg_num(cfg, HS_S_semantic_link_min_similarity);
	return l;
}

void hs_retain_links_add(struct retain_links *l, const struct retain_batch *b)
{
	for (size_t i = 0; i < b->n_facts; i++) {
		const struct hs_unit *u = &b->facts[i].unit;

		if (!u->vec || !u->embedder_no)
			continue;
		if (!l->pool)
			l->pool = hs_pool_new();
		l->dim = u->dim;
		l->v[l->n++] = (struct waiting){u->unit_no, u->type,
			hs_pool_memdup(l->pool, u->vec, u->dim * sizeof(float))};
		if (l->n == TOGETHER)
			hs_retain_links_flush(l);
	}
}

struct search {
	const struct retain_links *l;
	struct hs_best *best; /* one a waiting fact */
};

static void compare(void *arg, int64_t unit_no, enum hs_fact_type type, const float *vec)
{
	struct search *s = arg;

	for (size_t i = 0; i < s->l->n; i++) {
		const struct waiting *w = &s->l->v[i];
		double like;

		if (w->type != type || w->unit_no == unit_no)
			continue;
		like = hs_dot(w->vec, vec, s->l->dim);
		if (like >= s->l->floor)
			hs_best_offer(&s->best[i], unit_no, like > 1.0 ? 1.0 : like);
	}
}

struct links_write {
	const struct retain_links *l;
	struct hs_link *links;
	size_t n;
};

static enum hs_rc links_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct links_write *w = arg;

	HS_TRY(hs_clock_lock(db, w->l->bank_no, err));
	return hs_links_insert(db, w->l->pool, w->l->bank_no, w->links, w->n, err);
}

static enum hs_rc link_waiting(struct retain_links *l, struct hs_err *err)
{
	struct search s = {l, HS_NEW_ARRAY(l->pool, struct hs_best, l->n)};
	struct links_write w = {l, NULL, 0};
	struct hs_scope facts = hs_scope_all();
	size_t total = 0;

	facts.facts = HS_FACT_BIT(HS_WORLD) | HS_FACT_BIT(HS_EXPERIENCE);
	for (size_t i = 0; i < l->n; i++)
		s.best[i] = hs_best_new(l->pool, LINKS_PER_FACT);
	HS_TRY(hs_vectors_each(l->run->db, l->pool, l->bank_no, l->embedder_no, l->dim, &facts,
		NEWEST, compare, &s, err));
	for (size_t i = 0; i < l->n; i++)
		total += s.best[i].n;
	if (!total)
		return HS_OK;
	w.links = HS_NEW_ARRAY(l->pool, struct hs_link, total);
	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < s.best[i].n; k++)
			w.links[w.n++] = (struct hs_link){l->v[i].unit_no, s.best[i].v[k].unit_no,
				"semantic", s.best[i].v[k].score};
	return hs_tx_run(l->run->db, links_tx, &w, err);
}

void hs_retain_links_flush(struct retain_links *l)
{
	struct hs_err err = {0};

	if (l->n && link_waiting(l, &err) != HS_OK)
		hs_log(HS_LOG_DEBUG, "semantic_links_skipped", "bank_no=%lld reason=%s",
			(long long)l->bank_no, hs_log_quote(err.msg));
	l->n = 0;
	hs_pool_free(&l->pool);
}
