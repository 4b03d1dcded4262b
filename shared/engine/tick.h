/*
 * tick - schedules of mental models: which have fired, which are stale, what is queued.
 *
 * Floor:   engine. Rules: contract mental-models 6, 13. Called by hindsight-refresh-tick; any
 *          number of calls may run at once, on several hosts.
 * Rules:   full_refresh_cron first, without asking for staleness, when something ran since the last
 *          full refresh; else refresh_cron, and then staleness decides. Both due: one full refresh.
 *          Due but fresh: the moment is noted, the model is asked again at its next boundary.
 * Cost:    one statement a page of models; open refreshes, clocks and staleness are asked for due
 *          models only.
 */
#ifndef HS_ENGINE_TICK_H
#define HS_ENGINE_TICK_H

#include "config/config.h"
#include "db/db.h"

struct hs_tick {
	int64_t seen; /* models with a schedule that are not paused */
	int64_t due, fresh, queued;
	int64_t bad; /* schedules that cannot be read: logged and passed over */
};
/* At most once per mental_model_refresh_tick_seconds over all hosts (0 = never). *ret_mine: this
 * call did it. */
HS_MUST enum hs_rc hs_tick_run(struct hs_db *db, const struct hs_config *cfg, bool *ret_mine,
	struct hs_tick *ret, struct hs_err *err);
/* The work itself, as of now_us. */
HS_MUST enum hs_rc hs_tick_look(
	struct hs_db *db, int64_t now_us, struct hs_tick *ret, struct hs_err *err);

#endif
