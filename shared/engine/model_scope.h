/*
 * model_scope - which memories a mental model reads.
 *
 * Floor:   engine; pure. Rules: contract mental-models 8.
 */
#ifndef HS_ENGINE_MODEL_SCOPE_H
#define HS_ENGINE_MODEL_SCOPE_H

#include "engine/stale.h"
#include "engine/trigger.h"
#include "store/mental_model.h"

/* The refresh scope, without a window: groups of the trigger in place of the model's tags, else the
 * tags under the trigger's match (all_strict when it names none), and the fact types. */
struct hs_scope hs_model_scope(
	struct hs_pool *pool, const struct hs_trigger *t, const char *tags_json);
/* Is this model (read with HS_FULL) stale? Asks clock and newest row before it groups. */
HS_MUST enum hs_rc hs_model_stale(struct hs_db *db, struct hs_pool *pool, const struct hs_mm *m,
	bool *ret, struct hs_err *err);
/* Is each of these models of one bank stale? ret[i] for v[i]; rows need trigger, tags and since. */
HS_MUST enum hs_rc hs_models_stale(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t clock_us, const struct hs_mm *v, size_t n, bool *ret, struct hs_err *err);

#endif
