#include "tick.h"

#include <inttypes.h>

#include "base/log.h"
#include "engine/tick.h"
#include "engine/upkeep.h"

static enum hs_rc recover(struct hs_db *db, const struct hs_config *cfg, struct hs_err *err)
{
	size_t n;

	HS_TRY(hs_upkeep_recover(db, cfg, &n, err));
	if (n > 0)
		hs_log(HS_LOG_WARN, "recovered", "operations=%zu", n);
	return HS_OK;
}

static enum hs_rc refresh(struct hs_db *db, const struct hs_config *cfg, struct hs_err *err)
{
	struct hs_tick t;
	bool mine;

	HS_TRY(hs_tick_run(db, cfg, &mine, &t, err));
	hs_log(mine ? HS_LOG_INFO : HS_LOG_DEBUG, "tick",
		"claimed=%d models=%" PRId64 " due=%" PRId64 " fresh=%" PRId64 " queued=%" PRId64
		" bad_schedules=%" PRId64,
		mine, t.seen, t.due, t.fresh, t.queued, t.bad);
	return HS_OK;
}

static enum hs_rc reconcile(struct hs_db *db, const struct hs_config *cfg, struct hs_err *err)
{
	size_t n;

	HS_TRY(hs_upkeep_reconcile(db, cfg, &n, err));
	if (n > 0)
		hs_log(HS_LOG_INFO, "reconciled", "consolidations=%zu", n);
	return HS_OK;
}

static const struct {
	const char *name;
	enum hs_rc (*run)(struct hs_db *db, const struct hs_config *cfg, struct hs_err *err);
} jobs[] = {
	{"recover", recover},
	{"refresh", refresh},
	{"reconcile", reconcile},
};

int tick(struct hs_db *db, const struct hs_config *cfg)
{
	int status = 0;

	for (size_t i = 0; i < HS_COUNT(jobs); i++) {
		struct hs_err err;

		hs_err_clear(&err);
		if (jobs[i].run(db, cfg, &err) == HS_OK)
			continue;
		hs_log(HS_LOG_ERROR, jobs[i].name, "error=%s", hs_log_quote(err.msg));
		status = 1;
	}
	return status;
}
