/*
 * stale - is a mental model out of date? One rule, one aggregate statement a bank.
 *
 * Floor:   engine. Rules: contract mental-models 8, 9.
 */
#ifndef HS_ENGINE_STALE_H
#define HS_ENGINE_STALE_H

#include "db/db.h"
#include "store/scope.h"

struct hs_stale_query {
	struct hs_scope scope;            /* refresh scope (stale.c makes the staleness scope of it) */
	int64_t since_us;                 /* coalesce(last_memory_seen_at, read_until) */
	bool stale;                       /* answer */
};
/* Answers all of them: nothing is asked when every since >= clock_us. */
HS_MUST enum hs_rc hs_stale_ask(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t clock_us, struct hs_stale_query *q, size_t n, struct hs_err *err);

#endif
