/*
 * upkeep - what keeps queue and banks in order: lease recovery, forgotten consolidations, purge.
 *
 * Floor:   engine. Called by the worker's loop and by the refresh tick; every call may run on several
 *          hosts at once.
 */
#ifndef HS_ENGINE_UPKEEP_H
#define HS_ENGINE_UPKEEP_H

#include "config/config.h"
#include "db/db.h"

/* Operations of dead workers go back into the queue, or fail. */
HS_MUST enum hs_rc hs_upkeep_recover(
	struct hs_db *db, const struct hs_config *cfg, size_t *ret_n, struct hs_err *err);
/* Parents of batches that a crash left without an open part are ended, all of them. */
HS_MUST enum hs_rc hs_upkeep_parents(struct hs_db *db, size_t *ret_n, struct hs_err *err);
/* Once per consolidation_reconcile_interval_seconds over all hosts: banks with facts nobody
 * consolidates get a consolidation. *ret_n: how many. */
HS_MUST enum hs_rc hs_upkeep_reconcile(
	struct hs_db *db, const struct hs_config *cfg, size_t *ret_n, struct hs_err *err);
/* Remove rows of deleted banks for about `ms` milliseconds. *ret_more: some are left. */
HS_MUST enum hs_rc hs_upkeep_purge(
	struct hs_db *db, int64_t ms, bool *ret_more, struct hs_err *err);

#endif
