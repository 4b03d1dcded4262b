#include <string.h>

#include "base/log.h"
#include "db/tx.h"
#include "engine/fusion.h"
#include "engine/retain_run.h"
#include "store/clock.h"
#include "store/vector.h"

#define LINKS_PER_FACT 20
/* Vectors are read from the database here, about 2 ms of both sides' time for 1,024 of 384 floats: a new
 * fact is compared with the newest ones only. */
#define NEWEST 1024

struct search {
	struct retain_batch *b;
	struct hs_best *best;           /* one a fact */
	double floor;
	size_t dim;
};

static void compare(void *arg, int64_t unit_no, enum hs_fact_type type, const float *vec)
{
	struct search *s = arg;

	for (size_t i = 0; i < s->b->n_facts; i++) {
		const struct hs_unit *u = &s->b->facts[i].unit;
		double like;

		if (u->type != type || u->unit_no == unit_no)
			continue;
		like = hs_dot(u->vec, vec, s->dim);
		if (like >= s->floor)
			hs_best_offer(&s->best[i], unit_no, like > 1.0 ? 1.0 : like);
	}
}

struct links_write {
	struct hs_pool *pool;
	int64_t bank_no;
	struct hs_link *links;
	size_t n;
};

static enum hs_rc links_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct links_write *w = arg;

	HS_TRY(hs_clock_lock(db, w->bank_no, err));
	return hs_links_insert(db, w->pool, w->bank_no, w->links, w->n, err);
}

static enum hs_rc link_batch(const struct retain_doc *d, struct retain_batch *b, struct hs_err *err)
{
	struct search s = {b, HS_NEW_ARRAY(b->pool, struct hs_best, b->n_facts), 0, b->facts[0].unit.dim};
	struct links_write w = {b->pool, d->bank->bank_no, NULL, 0};
	struct hs_scope facts = hs_scope_all();
	size_t total = 0;

	s.floor = hs_cfg_num(d->cfg, HS_S_semantic_link_min_similarity);
	facts.facts = HS_FACT_BIT(HS_WORLD) | HS_FACT_BIT(HS_EXPERIENCE);
	for (size_t i = 0; i < b->n_facts; i++)
		s.best[i] = hs_best_new(b->pool, LINKS_PER_FACT);
	HS_TRY(hs_vectors_each(b->run.db, b->pool, w.bank_no, d->embedder_no, s.dim, &facts, NEWEST, compare, &s, err));
	for (size_t i = 0; i < b->n_facts; i++)
		total += s.best[i].n;
	if (!total)
		return HS_OK;
	w.links = HS_NEW_ARRAY(b->pool, struct hs_link, total);
	for (size_t i = 0; i < b->n_facts; i++)
		for (size_t k = 0; k < s.best[i].n; k++)
			w.links[w.n++] = (struct hs_link){b->facts[i].unit.unit_no, s.best[i].v[k].unit_no, "semantic",
				s.best[i].v[k].score};
	return hs_tx_run(b->run.db, links_tx, &w, err);
}

void hs_retain_links(const struct retain_doc *d, struct retain_batch *b)
{
	struct hs_err err = {0};

	if (!d->embedder_no || !b->n_facts || !b->facts[0].unit.vec)
		return;
	if (link_batch(d, b, &err) != HS_OK)
		hs_log(HS_LOG_DEBUG, "semantic_links_skipped", "bank_no=%lld reason=%s", (long long)d->bank->bank_no,
			hs_log_quote(err.msg));
}
