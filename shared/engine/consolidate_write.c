#include <string.h>

#include "base/clock.h"
#include "db/tx.h"
#include "engine/consolidate_run.h"
#include "store/clock.h"
#include "store/observation.h"

/* What the transaction needs; vectors are made before it. */
struct write {
	struct consolidation *c;
	const struct batch *b;
	const struct shown *shown;
	const struct plan *p;
	struct hs_vec *vecs; /* updates with a new text, then creates */
	int64_t stamp_us;
	struct outcome *out;
	int64_t created, updated, merged, deleted, skipped;
};

/* ---- vectors ---- */

static bool new_text(const struct write *w, size_t i)
{
	const struct plan_update *u = &w->p->updates[i];

	return u->text && strcmp(u->text, w->shown[u->shown].text) != 0;
}

static enum hs_rc embed(struct write *w, struct hs_err *err)
{
	struct hs_run *run = w->c->run;
	struct hs_strs texts = {0};
	struct hs_vec *got;
	size_t k = 0;

	w->vecs = HS_NEW_ARRAY(run->pool, struct hs_vec, w->p->n_updates + w->p->n_creates + 1);
	if (!w->c->embedder_no)
		return HS_OK;
	for (size_t i = 0; i < w->p->n_updates; i++)
		if (new_text(w, i))
			hs_strs_add(run->pool, &texts, w->p->updates[i].text);
	for (size_t i = 0; i < w->p->n_creates; i++)
		hs_strs_add(run->pool, &texts, w->p->creates[i].text);
	if (!texts.n)
		return HS_OK;
	got = HS_NEW_ARRAY(run->pool, struct hs_vec, texts.n);
	HS_TRY(hs_embed(run->embedder, run->pool, &texts, false, run->deadline_us, got, err));
	for (size_t i = 0; i < w->p->n_updates; i++)
		if (new_text(w, i))
			w->vecs[i] = got[k++];
	memcpy(w->vecs + w->p->n_updates, got + k, w->p->n_creates * sizeof(*got));
	return HS_OK;
}

/* ---- facts as they are now ---- */

static bool same(const struct hs_unit_row *read, const struct hs_unit_row *now)
{
	return read->updated_us == now->updated_us && read->edited_us == now->edited_us &&
	       hs_str_eq(read->observation_scopes, now->observation_scopes);
}

/* Under the clock row nobody else writes memories of the bank, so plain reads are final. */
static enum hs_rc recheck(struct hs_db *db, struct write *w, struct hs_err *err)
{
	struct hs_pool *pool = w->c->run->pool;
	int64_t *nos = HS_NEW_ARRAY(pool, int64_t, w->b->n + 1);
	struct hs_unit_row *rows;
	size_t n, k = 0;

	for (size_t i = 0; i < w->b->n; i++)
		nos[i] = w->b->facts[i].unit_no;
	HS_TRY(hs_units_load(db, pool, w->c->bank->bank_no, nos, w->b->n, &rows, &n, err));
	for (size_t i = 0; i < w->b->n; i++) {
		w->out->gone[i] = k == n || rows[k].unit_no != nos[i];
		if (w->out->gone[i])
			continue;
		if (!same(&w->b->facts[i], &rows[k]) || rows[k].consolidated_us != HS_TIME_NONE)
			w->out->discarded = true;
		k++;
	}
	return HS_OK;
}

/* ---- dates ---- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a == HS_TIME_NONE ? b : b == HS_TIME_NONE ? a : a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
	return a == HS_TIME_NONE ? b : b == HS_TIME_NONE ? a : a > b ? a : b;
}

/* Live facts of a set and what their dates come to. */
struct sum {
	int64_t *nos;
	size_t n;
	int64_t event_us, start_us, end_us, mentioned_us;
};

static struct sum sum_of(struct write *w, const struct fact_set *set)
{
	struct sum s = {
		HS_NEW_ARRAY(w->c->run->pool, int64_t, set->n + 1),
		0,
		HS_TIME_NONE,
		HS_TIME_NONE,
		HS_TIME_NONE,
		HS_TIME_NONE,
	};

	for (size_t i = 0; i < set->n; i++) {
		const struct hs_unit_row *f = &w->b->facts[set->v[i]];

		if (w->out->gone[set->v[i]])
			continue;
		s.nos[s.n++] = f->unit_no;
		s.event_us = earlier(s.event_us, f->event_us);
		s.start_us = earlier(s.start_us, f->occurred_start_us);
		s.end_us = later(s.end_us, f->occurred_end_us);
		s.mentioned_us = later(s.mentioned_us, f->mentioned_us);
	}
	return s;
}

static void act(struct write *w, const struct fact_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		w->out->acted[set->v[i]] = true;
}

/* ---- the four kinds of writes ---- */

static struct hs_observation_change change(const struct write *w, size_t shown)
{
	return (struct hs_observation_change){
		.observation_no = w->shown[shown].unit_no,
		.embedder_no = w->c->embedder_no,
		.event_us = HS_TIME_NONE,
		.occurred_start_us = HS_TIME_NONE,
		.occurred_end_us = HS_TIME_NONE,
		.mentioned_us = HS_TIME_NONE,
		.history = hs_cfg_bool(w->c->cfg, HS_S_enable_observation_history),
		.history_max = hs_cfg_int(w->c->cfg, HS_S_observation_history_max_entries),
	};
}

static enum hs_rc write_update(struct hs_db *db, struct write *w, size_t i, struct hs_err *err)
{
	const struct plan_update *u = &w->p->updates[i];
	struct hs_observation_change c = change(w, u->shown);
	struct sum s = sum_of(w, &u->facts);
	bool found;

	if (!s.n) {
		w->skipped++;
		return HS_OK;
	}
	c.text = new_text(w, i) ? u->text : NULL;
	c.vec = w->vecs[i].v;
	c.dim = w->vecs[i].dim;
	c.add_tags = w->b->scope;
	c.sources = s.nos;
	c.n_sources = s.n;
	c.event_us = s.event_us;
	c.occurred_start_us = s.start_us;
	c.occurred_end_us = s.end_us;
	c.mentioned_us = s.mentioned_us;
	HS_TRY(hs_observation_apply(
		db, w->c->run->pool, w->c->bank->bank_no, w->stamp_us, &c, &found, err));
	if (!found) {
		w->skipped++;
		return HS_OK;
	}
	act(w, &u->facts);
	w->updated += u->text != NULL;
	return HS_OK;
}

/* The sources and dates of an observation that goes move to the one that stays. */
static enum hs_rc hand_over(struct hs_db *db, struct write *w, const struct plan_delete *d,
	bool *ret_found, struct hs_err *err)
{
	struct hs_pool *pool = w->c->run->pool;
	int64_t from = w->shown[d->shown].unit_no, *nos;
	struct hs_observation_change c = change(w, (size_t)d->into);
	struct hs_source *sources;
	struct hs_unit_row *row;
	size_t n, rows;

	HS_TRY(hs_observation_sources(db, pool, w->c->bank->bank_no, &from, 1, &sources, &n, err));
	HS_TRY(hs_units_load(db, pool, w->c->bank->bank_no, &from, 1, &row, &rows, err));
	nos = HS_NEW_ARRAY(pool, int64_t, n + 1);
	for (size_t i = 0; i < n; i++)
		nos[i] = sources[i].source_no;
	c.sources = nos;
	c.n_sources = n;
	if (rows) {
		c.event_us = row->event_us;
		c.occurred_start_us = row->occurred_start_us;
		c.occurred_end_us = row->occurred_end_us;
		c.mentioned_us = row->mentioned_us;
	}
	return hs_observation_apply(db, pool, w->c->bank->bank_no, w->stamp_us, &c, ret_found, err);
}

static enum hs_rc write_delete(
	struct hs_db *db, struct write *w, const struct plan_delete *d, struct hs_err *err)
{
	struct hs_deleted gone = {0};
	bool found = true;

	if (d->into >= 0)
		HS_TRY(hand_over(db, w, d, &found, err));
	HS_TRY(hs_observation_delete(db, w->c->run->pool, w->c->bank->bank_no,
		&w->shown[d->shown].unit_no, 1, d->requeue || !found, &gone, err));
	w->deleted += gone.observations;
	w->merged += d->into >= 0 && found && gone.observations;
	w->skipped += gone.observations == 0;
	return HS_OK;
}

static enum hs_rc write_create(struct hs_db *db, struct write *w, size_t i, struct hs_err *err)
{
	const struct plan_create *p = &w->p->creates[i];
	struct hs_unit u = hs_unit_new(HS_OBSERVATION, p->text);
	struct sum s = sum_of(w, &p->facts);
	bool made;

	if (!s.n) {
		w->skipped++;
		return HS_OK;
	}
	u.event_us = s.event_us == HS_TIME_NONE ? w->stamp_us : s.event_us;
	u.mentioned_us = s.mentioned_us == HS_TIME_NONE ? w->stamp_us : s.mentioned_us;
	u.occurred_start_us = s.start_us;
	u.occurred_end_us = s.end_us;
	u.tags = w->b->scope;
	u.vec = w->vecs[w->p->n_updates + i].v;
	u.dim = w->vecs[w->p->n_updates + i].dim;
	u.embedder_no = w->c->embedder_no;
	hs_unit_terms(w->c->run->pool, &u);
	HS_TRY(hs_observation_insert(
		db, w->c->run->pool, w->c->bank->bank_no, w->stamp_us, &u, s.nos, s.n, &made, err));
	if (!made) {
		w->skipped++;
		return HS_OK;
	}
	act(w, &p->facts);
	w->created++;
	return HS_OK;
}

/* ---- the transaction ---- */

static enum hs_rc mark_done(struct hs_db *db, struct write *w, struct hs_err *err)
{
	int64_t *nos = HS_NEW_ARRAY(w->c->run->pool, int64_t, w->b->n + 1);
	size_t n = 0;

	for (size_t i = 0; i < w->b->n; i++)
		if (!w->out->gone[i] && (w->out->acted[i] || w->b->n == 1))
			nos[n++] = w->b->facts[i].unit_no;
	return hs_units_mark(
		db, w->c->run->pool, w->c->bank->bank_no, nos, n, false, hs_now_us(), err);
}

/* Marks and deletes alone do not move the clock. */
static enum hs_rc lock(struct hs_db *db, struct write *w, struct hs_err *err)
{
	bool content = w->p->n_updates || w->p->n_creates;

	for (size_t i = 0; i < w->p->n_deletes; i++)
		content = content || w->p->deletes[i].into >= 0;
	if (content)
		return hs_clock_advance(db, w->c->bank->bank_no, &w->stamp_us, err);
	return hs_clock_lock(db, w->c->bank->bank_no, err);
}

static enum hs_rc write_all(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct write *w = arg;

	w->created = w->updated = w->merged = w->deleted = w->skipped = 0;
	w->out->discarded = false;
	memset(w->out->acted, 0, w->b->n * sizeof(bool));
	HS_TRY(lock(db, w, err));
	HS_TRY(recheck(db, w, err));
	if (w->out->discarded)
		return HS_OK;
	for (size_t i = 0; i < w->p->n_updates; i++)
		HS_TRY(write_update(db, w, i, err));
	for (size_t i = 0; i < w->p->n_deletes; i++)
		HS_TRY(write_delete(db, w, &w->p->deletes[i], err));
	for (size_t i = 0; i < w->p->n_creates; i++)
		HS_TRY(write_create(db, w, i, err));
	return mark_done(db, w, err);
}

enum hs_rc hs_plan_write(struct consolidation *c, const struct batch *b, const struct shown *shown,
	const struct plan *p, struct outcome *ret, struct hs_err *err)
{
	struct write w = {.c = c, .b = b, .shown = shown, .p = p, .out = ret};

	ret->acted = HS_NEW_ARRAY(c->run->pool, bool, b->n + 1);
	ret->gone = HS_NEW_ARRAY(c->run->pool, bool, b->n + 1);
	HS_TRY(embed(&w, err));
	HS_TRY(hs_tx_run(c->run->db, write_all, &w, err));
	if (ret->discarded)
		return HS_OK;
	c->created += w.created;
	c->updated += w.updated;
	c->merged += w.merged + p->folds;
	c->deleted += w.deleted;
	c->skipped += w.skipped;
	c->unresolved += p->unresolved;
	c->actions += w.created + w.updated + w.deleted + p->folds;
	return HS_OK;
}

static enum hs_rc mark_failed(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct write *w = arg;
	int64_t *nos = HS_NEW_ARRAY(w->c->run->pool, int64_t, w->b->n + 1);

	for (size_t i = 0; i < w->b->n; i++)
		nos[i] = w->b->facts[i].unit_no;
	HS_TRY(hs_clock_lock(db, w->c->bank->bank_no, err));
	return hs_units_mark(
		db, w->c->run->pool, w->c->bank->bank_no, nos, w->b->n, true, hs_now_us(), err);
}

enum hs_rc hs_consolidation_fail(struct consolidation *c, const struct batch *b, struct hs_err *err)
{
	struct write w = {.c = c, .b = b};

	HS_TRY(hs_tx_run(c->run->db, mark_failed, &w, err));
	c->failed += (int64_t)b->n;
	return HS_OK;
}
