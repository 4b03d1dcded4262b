/*
 * automatic - mental models that refresh by themselves: after consolidation, by schedule.
 *
 * Floor:   store. Table mental_models; clocks of bank_clock, open refreshes of async_operations.
 * Rules:   contract mental-models 13. Models whose last refresh failed are never among them.
 * Shapes:  a row holds what staleness and a submit need (no texts); which schedule has fired is the
 *          engine's business.
 * Owns:    everything in the pool given.
 */
#ifndef HS_STORE_AUTOMATIC_H
#define HS_STORE_AUTOMATIC_H

#include "store/mental_model.h"

struct hs_auto_model {
	struct hs_mm m;          /* level HS_METADATA, without created_us */
	int64_t cron_checked_us; /* last tick that found it due but fresh; HS_TIME_NONE = none */
};

/* Of one bank: those with refresh_after_consolidation, by id. */
HS_MUST enum hs_rc hs_auto_after_consolidation(struct hs_db *db, struct hs_pool *pool,
	int64_t bank_no, struct hs_mm **ret, size_t *ret_n, struct hs_err *err);
/* Of every bank: models with a schedule, by bank and id, behind (after_no, after_id); 0 and ""
 * begin. */
HS_MUST enum hs_rc hs_auto_scheduled(struct hs_db *db, struct hs_pool *pool, int64_t after_no,
	const char *after_id, size_t limit, struct hs_auto_model **ret, size_t *ret_n,
	struct hs_err *err);
/* The clocks of these banks, in one statement; HS_TIME_NONE for a deleted one. */
HS_MUST enum hs_rc hs_auto_clocks(struct hs_db *db, struct hs_pool *pool, const int64_t *bank_no,
	size_t n, int64_t *ret_us, struct hs_err *err);
/* Which of them have a refresh that waits or runs? One statement; v is in the order of
 * hs_auto_scheduled. */
HS_MUST enum hs_rc hs_auto_open(struct hs_db *db, struct hs_pool *pool,
	const struct hs_mm *const *v, size_t n, bool *ret_open, struct hs_err *err);
/* They were due and fresh at now_us: one statement, in a transaction of its own. v as above. */
HS_MUST enum hs_rc hs_auto_checked(struct hs_db *db, struct hs_pool *pool,
	const struct hs_mm *const *v, size_t n, int64_t now_us, struct hs_err *err);

/* hs_state_claim's name of the tick. */
#define HS_TICK_STATE "last_refresh_tick"
/* For `check`. */
struct hs_auto_counts {
	int64_t scheduled;             /* models with a schedule */
	int64_t paused;                /* that refresh by themselves, but failed last */
	int64_t tick_us;               /* HS_TIME_NONE = never */
};
HS_MUST enum hs_rc hs_auto_count(struct hs_db *db, struct hs_pool *pool, struct hs_auto_counts *ret,
	struct hs_err *err);

extern const struct hs_sql_list hs_automatic_sql;

#endif
