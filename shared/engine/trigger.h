/*
 * trigger - how and when a mental model refreshes: field table, stored form, merge of a PATCH.
 *
 * Floor:   engine; pure. Rules: contract mental-models 3.4, 5, 7.
 * Shapes:  a stored trigger is JSON text with every member; hs_trigger_read takes anything and puts a
 *          broken member at its default, so that one bad row never fails a list.
 * Owns:    results live in the pool; JSON members are borrowed from what was read.
 */
#ifndef HS_ENGINE_TRIGGER_H
#define HS_ENGINE_TRIGGER_H

#include "config/config.h"
#include "json/check.h"
#include "json/out.h"
#include "store/scope.h"

enum hs_refresh_mode { HS_MODE_FULL, HS_MODE_DELTA };

struct hs_trigger {
	struct hs_seen seen;
	int mode;   /* enum hs_refresh_mode */
	int budget; /* index into hs_budget_names; -1 = null: mid */
	bool refresh_after_consolidation;
	const char *refresh_cron, *full_refresh_cron; /* trimmed and valid; NULL = none */
	int64_t min_refresh_interval_seconds;         /* nullable: hs_trigger_has */
	struct hs_strs fact_types;                    /* none = all */
	bool exclude_mental_models;
	struct hs_strs exclude_mental_model_ids;
	int tags_match;                                      /* enum hs_tags_match; -1 = null */
	struct hs_groups *tag_groups;                        /* NULL = null */
	bool include_chunks;                                 /* nullable */
	int64_t recall_max_tokens, recall_chunks_max_tokens; /* nullable */
	int64_t reflect_search_observations_max_tokens;      /* nullable */
	bool reflect_search_observations_include_entities;   /* nullable */
	int64_t reflect_search_mental_models_max_tokens;     /* nullable */
	json_t *response_schema;                             /* NULL = none */
	bool keep_trace;
};
extern const char *const hs_refresh_mode_names[]; /* full, delta */
extern const char *const hs_budget_names[];       /* low, mid, high */

/* Create: null of mode and the booleans is refused. PATCH: null resets any member. */
extern const struct hs_shape hs_trigger_shape, hs_trigger_patch_shape;

/* Has the nullable member a value? name as on the wire. */
bool hs_trigger_has(const struct hs_trigger *t, const char *name);
/* Stored text; NULL gives the defaults. */
struct hs_trigger *hs_trigger_read(struct hs_pool *pool, const char *text);
/* Every member at its effective value: the answer's form and the stored one. */
void hs_trigger_out(
	struct hs_pool *pool, struct hs_out *o, const char *key, const struct hs_trigger *t);
const char *hs_trigger_text(struct hs_pool *pool, const struct hs_trigger *t);
/* What a PATCH sent over what is stored. A schedule sent alone ends refresh_after_consolidation, and
 * the other way round. */
struct hs_trigger *hs_trigger_merge(
	struct hs_pool *pool, const struct hs_trigger *stored, const struct hs_trigger *sent);
/* Seconds between automatic refreshes: the trigger's, else the bank's setting; 0 = no floor. */
int64_t hs_trigger_interval(const struct hs_trigger *t, const struct hs_config *cfg);

#endif
