/*
 * pending - facts that wait for consolidation.
 *
 * Floor:   store. Table memory_units, index memory_units_pending. Rules: contract retain-recall 5.2.
 *          Waiting = world or experience, neither consolidated_at nor consolidation_failed_at.
 */
#ifndef HS_STORE_PENDING_H
#define HS_STORE_PENDING_H

#include <jansson.h>

#include "store/memory.h"

/* The oldest `max` waiting facts. scopes: array of arrays of tags, a fact carries all tags of at least
 * one; NULL = every fact. */
HS_MUST enum hs_rc hs_pending_facts(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, json_t *scopes, int64_t max, struct hs_unit_row **ret, size_t *ret_n, struct hs_err *err);
HS_MUST enum hs_rc hs_pending_count(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, json_t *scopes, int64_t *ret_n, struct hs_err *err);
/* Observations that carry all these tags. */
HS_MUST enum hs_rc hs_observations_count(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const struct hs_strs *tags, int64_t *ret_n, struct hs_err *err);

#endif
