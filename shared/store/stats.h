/*
 * stats - what a bank holds, counted by SQL and kept for a while in a shared table.
 *
 * Floor:   store. Table bank_stats_cache; reads memory_units, memory_links, unit_entities, documents,
 *          async_operations. Rules: contract banks 4.4, retain-recall 3.3.
 * Cache:   by bank, at most ttl_s old. A failure of it means computing; two misses may compute twice.
 *          last_memory_write_at is never in it: read it live.
 * Owns:    the object lives in the pool given.
 */
#ifndef HS_STORE_STATS_H
#define HS_STORE_STATS_H

#include <jansson.h>

#include "db/db.h"

/* The members of the answer from total_nodes to total_observations, without bank_id and
 * last_memory_write_at. ttl_s <= 0: no cache. refresh: compute and store anew. */
HS_MUST enum hs_rc hs_stats_get(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t ttl_s, bool refresh, json_t **ret, struct hs_err *err);
/* The newest updated_at of the bank's units; HS_TIME_NONE when it has none. */
HS_MUST enum hs_rc hs_stats_last_write(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t *ret_us, struct hs_err *err);
/* Forget what is cached: after clearing memories or observations. */
HS_MUST enum hs_rc hs_stats_forget(struct hs_db *db, int64_t bank_no, struct hs_err *err);

extern const struct hs_sql_list hs_stats_sql;

#endif
