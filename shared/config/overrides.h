/*
 * overrides - a bank's overrides: normalise keys, validate a PATCH, merge.
 *
 * Floor:   config. Rules and their order: contract banks 5.3, 5.4.
 * Errors:  HS_E_BAD_REQUEST (400) with a text naming the field; HS_E_UNPROCESSABLE (422) for
 *          memory_defense.
 */
#ifndef HS_CONFIG_OVERRIDES_H
#define HS_CONFIG_OVERRIDES_H

#include "config/config.h"
#include "json/check.h"

/* Validate `updates` against the stored overrides and give the merged object (new reference kept by
 * the pool). Nulls clear: the key leaves the object. */
HS_MUST enum hs_rc hs_overrides_patch(struct hs_pool *pool, const struct hs_config *server,
	json_t *stored, json_t *updates, json_t **ret_merged, struct hs_err *err);
/* The same, with the shape that knowledge_page_default_trigger must fit (it belongs to a floor
 * above; hs_overrides_patch only asks for an object). */
HS_MUST enum hs_rc hs_overrides_patch_shaped(struct hs_pool *pool, const struct hs_config *server,
	const struct hs_shape *trigger, json_t *stored, json_t *updates, json_t **ret_merged,
	struct hs_err *err);
/* "HINDSIGHT_API_RETAIN_MISSION", "RETAIN_MISSION" and "retain_mission" are one name. */
const char *hs_overrides_name(struct hs_pool *pool, const char *key);
/* {"config": …} of GET: every bank-configurable field with its effective value. New reference. */
json_t *hs_overrides_effective(const struct hs_config *bank_cfg);
/* Active overrides of the stored object (known names, no nulls). New reference. */
json_t *hs_overrides_active(json_t *stored);

#endif
