/*
 * automatic - refreshes that nobody asked for: after consolidation; the tick uses the submit.
 *
 * Floor:   engine. Rules: contract mental-models 11, 13. Staleness alone decides; a model whose
 *          last refresh failed is never queued; open refreshes take the wish in.
 * Errors:  what concerns one model is logged and does not stop the others; only a database that is
 *          away is an error.
 */
#ifndef HS_ENGINE_AUTOMATIC_H
#define HS_ENGINE_AUTOMATIC_H

#include "config/config.h"
#include "store/mental_model.h"

/* Could a refresh run at all? Not without a provider. */
bool hs_automatic_possible(const struct hs_config *server);
/* Queue one. *ret_queued: an operation will run, a new one or one that was open. */
HS_MUST enum hs_rc hs_automatic_submit(struct hs_db *db, struct hs_pool *pool,
	const struct hs_mm *m, bool full, bool *ret_queued, struct hs_err *err);
/* The bank's stale models with refresh_after_consolidation. *ret_n: how many will refresh. */
HS_MUST enum hs_rc hs_automatic_after_consolidation(struct hs_db *db, struct hs_pool *pool,
	const struct hs_config *server, int64_t bank_no, int64_t *ret_n, struct hs_err *err);

#endif
