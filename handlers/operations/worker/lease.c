/* Keeps the leases of running jobs, and sees which of them were cancelled or taken over. */
#include "worker.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/schema.h"

#define LOOK_US (HS_SECOND_US / 2)
#define RENEWALS_A_LEASE 3

bool worker_sleep(struct worker *w, int64_t us)
{
	struct timespec until;
	bool ending;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += us / HS_SECOND_US;
	until.tv_nsec += us % HS_SECOND_US * 1000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&w->lock);
	while (!w->ending && pthread_cond_timedwait(&w->wake, &w->lock, &until) != ETIMEDOUT)
		;
	ending = w->ending;
	pthread_mutex_unlock(&w->lock);
	return !ending;
}

static struct hs_strs running_ids(struct worker *w, struct hs_pool *pool)
{
	struct hs_strs ids = {0};

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].state != JOB_IDLE)
			hs_strs_add(
				pool, &ids, hs_pool_strdup(pool, w->jobs[i].claim.operation_id));
	pthread_mutex_unlock(&w->lock);
	return ids;
}

/* Jobs that were asked about and are not held any more; a slot may have got a new one meanwhile. */
static void mark_lost(struct worker *w, const struct hs_strs *asked, const struct hs_strs *held)
{
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_jobs; i++) {
		struct job *j = &w->jobs[i];

		if (j->state != JOB_IDLE && hs_strs_has(asked, j->claim.operation_id) &&
			!hs_strs_has(held, j->claim.operation_id))
			j->lost = true;
	}
	pthread_mutex_unlock(&w->lock);
}

static enum hs_rc look(struct worker *w, struct hs_db *db, bool renew, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_strs ids = running_ids(w, pool), held;

	if (ids.n == 0)
		return HS_OK;
	if (renew)
		HS_TRY(hs_queue_renew(db, pool, w->id, &ids, w->lease_s, err));
	HS_TRY(hs_queue_held(db, pool, w->id, &ids, &held, err));
	mark_lost(w, &ids, &held);
	return HS_OK;
}

void *lease_thread(void *arg)
{
	struct worker *w = arg;
	int64_t every_us = w->lease_s * HS_SECOND_US / RENEWALS_A_LEASE, next_us = 0;
	struct hs_db *db = hs_db_new(w->cfg);

	hs_db_on_connect(db, hs_schema_check, NULL);
	while (worker_sleep(w, LOOK_US)) {
		bool renew = hs_mono_us() >= next_us;
		struct hs_err err;

		hs_err_clear(&err);
		if (look(w, db, renew, &err) != HS_OK)
			hs_log(HS_LOG_WARN, "lease", "error=%s", hs_log_quote(err.msg));
		else if (renew)
			next_us = hs_mono_us() + every_us;
	}
	hs_db_free(&db);
	return NULL;
}
