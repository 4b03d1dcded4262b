/* Recovers operations of dead workers, purges deleted banks, submits forgotten consolidations. */
#include "worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/upkeep.h"
#include "store/schema.h"

#define LOOK_US HS_SECOND_US
#define PURGE_MS 200
#define RECONCILE_LOOK_US (5 * HS_SECOND_US)

struct upkeep {
	struct worker *w;
	struct hs_db *db;
	int64_t reconcile_us; /* when to look next */
	bool parents;         /* those left by a crash have been looked for */
};

static enum hs_rc recover(struct upkeep *u, struct hs_err *err)
{
	size_t n;

	HS_TRY(hs_upkeep_recover(u->db, u->w->cfg, &n, err));
	if (n > 0)
		hs_log(HS_LOG_WARN, "recovered", "operations=%zu", n);
	return HS_OK;
}

/* At the start only: a running queue ends its parents itself. */
static enum hs_rc end_parents(struct upkeep *u, struct hs_err *err)
{
	size_t n;

	if (u->parents)
		return HS_OK;
	HS_TRY(hs_upkeep_parents(u->db, &n, err));
	u->parents = true;
	if (n > 0)
		hs_log(HS_LOG_WARN, "stranded", "parents=%zu", n);
	return HS_OK;
}

static enum hs_rc purge(struct upkeep *u, struct hs_err *err)
{
	bool more = false;
	enum hs_rc rc = hs_upkeep_purge(u->db, PURGE_MS, &more, err);

	u->w->purging = rc == HS_OK && more;
	return rc;
}

static enum hs_rc reconcile(struct upkeep *u, struct hs_err *err)
{
	size_t n;

	if (hs_mono_us() < u->reconcile_us)
		return HS_OK;
	u->reconcile_us = hs_mono_us() + RECONCILE_LOOK_US;
	HS_TRY(hs_upkeep_reconcile(u->db, u->w->cfg, &n, err));
	if (n > 0)
		hs_log(HS_LOG_INFO, "reconciled", "consolidations=%zu", n);
	return HS_OK;
}

void *upkeep_thread(void *arg)
{
	static enum hs_rc (*const steps[])(struct upkeep *u, struct hs_err *err) = {
		recover, end_parents, reconcile, purge};
	struct worker *w = arg;
	struct upkeep u = {.w = w, .db = hs_db_new(w->cfg)};

	hs_db_on_connect(u.db, hs_schema_check, NULL);
	do {
		for (size_t i = 0; i < HS_COUNT(steps); i++) {
			struct hs_err err;

			hs_err_clear(&err);
			if (steps[i](&u, &err) != HS_OK)
				hs_log(HS_LOG_WARN, "upkeep", "error=%s", hs_log_quote(err.msg));
		}
	} while (worker_sleep(w, w->purging ? 0 : LOOK_US));
	hs_db_free(&u.db);
	return NULL;
}
