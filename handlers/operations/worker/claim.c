#include "worker.h"

#include <string.h>

/* Looked at ahead of what is needed: someone else may take the first ones. */
#define SPARE 4

/* The candidates of one kind, oldest first. */
struct list {
	const char *type;
	enum slot_kind kind;
	struct hs_candidate *v;
	size_t n, at;
};
struct round {
	struct worker *w;
	struct hs_pool *pool;
	struct slots slots;
	struct list *lists;
	size_t n_lists, taken;
};

size_t worker_running(struct worker *w)
{
	size_t n = 0;

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_jobs; i++)
		n += w->jobs[i].state != JOB_IDLE;
	pthread_mutex_unlock(&w->lock);
	return n;
}

static void count_running(struct worker *w, struct slots *s)
{
	slots_init(s, w->cfg);
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].state != JOB_IDLE)
			s->running[slot_of(w->jobs[i].op.operation_type)]++;
	pthread_mutex_unlock(&w->lock);
}

static struct job *idle_job(struct worker *w)
{
	struct job *found = NULL;

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_jobs && !found; i++)
		if (w->jobs[i].state == JOB_IDLE)
			found = &w->jobs[i];
	pthread_mutex_unlock(&w->lock);
	return found;
}

static void start_job(struct worker *w, struct job *j)
{
	j->claim = (struct hs_claim){j->op.operation_id, w->id, j->op.attempt};
	j->lost = false;
	j->stop = false;
	j->stage[0] = '\0';
	pthread_mutex_lock(&w->lock);
	j->state = JOB_READY;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

/* Claim one candidate into an idle slot. */
static enum hs_rc take(
	struct round *r, const struct hs_candidate *c, bool *ret_taken, struct hs_err *err)
{
	struct job *j = idle_job(r->w);

	*ret_taken = false;
	if (!j)
		return HS_OK;
	hs_pool_clear(j->pool);
	HS_TRY(hs_queue_claim(
		r->w->db, j->pool, c, r->w->id, r->w->lease_s, &j->op, ret_taken, err));
	if (!*ret_taken)
		return HS_OK;
	start_job(r->w, j);
	r->slots.running[slot_of(c->operation_type)]++;
	r->taken++;
	return HS_OK;
}

static enum hs_rc load_lists(struct round *r, struct hs_err *err)
{
	struct hs_strs types;

	HS_TRY(hs_queue_types(r->w->db, r->pool, &types, err));
	r->lists = HS_NEW_ARRAY(r->pool, struct list, types.n);
	r->n_lists = types.n;
	for (size_t i = 0; i < types.n; i++) {
		struct hs_candidate_query q = {
			.types = {1, &types.v[i]}, .limit = (size_t)r->slots.max + SPARE};
		struct list *l = &r->lists[i];

		l->type = types.v[i];
		l->kind = slot_of(l->type);
		HS_TRY(hs_queue_candidates(r->w->db, r->pool, &q, &l->v, &l->n, err));
	}
	return HS_OK;
}

/* ---- reserved slots ---- */

static enum hs_rc claim_reserved(struct round *r, struct hs_err *err)
{
	for (size_t i = 0; i < r->n_lists; i++) {
		struct list *l = &r->lists[i];
		bool taken;

		while (l->at < l->n && slots_free_reserved(&r->slots, l->kind) > 0)
			HS_TRY(take(r, &l->v[l->at++], &taken, err));
	}
	return HS_OK;
}

/* ---- the shared pool ---- */

static bool may_share(const struct round *r, enum slot_kind kind)
{
	if (kind == SLOT_CONSOLIDATION)
		return false;
	return kind != SLOT_RETAIN || slots_retain_may_share(&r->slots);
}

static bool was_listed(const struct round *r, const struct hs_candidate *c)
{
	for (size_t i = 0; i < r->n_lists; i++)
		for (size_t k = 0; k < r->lists[i].at; k++)
			if (strcmp(r->lists[i].v[k].operation_id, c->operation_id) == 0)
				return true;
	return false;
}

/* The first of a bank: retains before other kinds. NULL when there is none to be had. */
static enum hs_rc first_of_bank(struct round *r, int64_t bank_no, bool retains_only,
	const struct hs_candidate **ret, struct hs_err *err)
{
	static const char *retain = "retain", *consolidation = "consolidation";
	struct hs_candidate_query q = {.types = {1, &retain}, .bank_no = bank_no, .limit = SPARE};
	struct hs_candidate *v;
	size_t n;

	*ret = NULL;
	if (may_share(r, SLOT_RETAIN)) {
		HS_TRY(hs_queue_candidates(r->w->db, r->pool, &q, &v, &n, err));
		for (size_t i = 0; i < n && !*ret; i++)
			if (!was_listed(r, &v[i]))
				*ret = &v[i];
	}
	if (*ret || retains_only)
		return HS_OK;
	q.types.v = &consolidation;
	q.others = true;
	q.limit = (size_t)r->slots.max + SPARE;
	HS_TRY(hs_queue_candidates(r->w->db, r->pool, &q, &v, &n, err));
	for (size_t i = 0; i < n && !*ret; i++)
		if (may_share(r, slot_of(v[i].operation_type)) && !was_listed(r, &v[i]))
			*ret = &v[i];
	return HS_OK;
}

static bool older(const struct hs_candidate *a, const struct hs_candidate *b)
{
	return a->created_us < b->created_us ||
	       (a->created_us == b->created_us && strcmp(a->operation_id, b->operation_id) < 0);
}

static struct list *oldest_list(struct round *r)
{
	struct list *best = NULL;

	for (size_t i = 0; i < r->n_lists; i++) {
		struct list *l = &r->lists[i];

		if (l->at < l->n && may_share(r, l->kind) &&
			(!best || older(&l->v[l->at], &best->v[best->at])))
			best = l;
	}
	return best;
}

/* One row for the bank after the one served last: a backlog shuts nobody out. */
static enum hs_rc claim_fair(struct round *r, struct hs_err *err)
{
	const struct hs_candidate *c;
	int64_t bank_no;
	bool taken;

	if (slots_free_shared(&r->slots) == 0 || r->n_lists == 0)
		return HS_OK;
	HS_TRY(hs_queue_next_bank(r->w->db, r->pool, r->w->last_bank, &bank_no, err));
	if (bank_no == 0)
		return HS_OK;
	r->w->last_bank = bank_no;
	HS_TRY(first_of_bank(r, bank_no, false, &c, err));
	return c ? take(r, c, &taken, err) : HS_OK;
}

static enum hs_rc claim_shared(struct round *r, struct hs_err *err)
{
	struct list *l;

	while (slots_free_shared(&r->slots) > 0 && (l = oldest_list(r))) {
		const struct hs_candidate *c = &l->v[l->at], *first = NULL;
		bool taken;

		if (l->kind != SLOT_RETAIN)
			HS_TRY(first_of_bank(r, c->bank_no, true, &first, err));
		if (first) {
			HS_TRY(take(r, first, &taken, err));
			if (taken)
				continue;
		}
		l->at++;
		HS_TRY(take(r, c, &taken, err));
	}
	return HS_OK;
}

/* What is left of the shared pool. */
static enum hs_rc claim_consolidations(struct round *r, struct hs_err *err)
{
	for (size_t i = 0; i < r->n_lists; i++) {
		struct list *l = &r->lists[i];
		bool taken;

		while (l->kind == SLOT_CONSOLIDATION && l->at < l->n &&
			slots_free_shared(&r->slots) > 0)
			HS_TRY(take(r, &l->v[l->at++], &taken, err));
	}
	return HS_OK;
}

enum hs_rc worker_claim(struct worker *w, size_t *ret_n, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct round r = {.w = w, .pool = pool};
	enum hs_rc rc;

	*ret_n = 0;
	count_running(w, &r.slots);
	if (!idle_job(w))
		return HS_OK;
	rc = load_lists(&r, err);
	if (rc == HS_OK && r.n_lists > 0)
		rc = claim_reserved(&r, err);
	if (rc == HS_OK && r.n_lists > 0)
		rc = claim_fair(&r, err);
	if (rc == HS_OK && r.n_lists > 0)
		rc = claim_shared(&r, err);
	if (rc == HS_OK && r.n_lists > 0)
		rc = claim_consolidations(&r, err);
	*ret_n = r.taken;
	return rc;
}
