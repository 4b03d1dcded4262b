/*
 * labels - is a value of entity_labels well formed?
 *
 * Floor:   config. A list of groups, or an object whose `attributes` is one: contract banks 5.4,
 *          step 4. Groups of type map hold fields, which are groups without keys of their own.
 * Errors:  HS_E_BAD_REQUEST naming the place.
 */
#ifndef HS_CONFIG_LABELS_H
#define HS_CONFIG_LABELS_H

#include <jansson.h>

#include "base/err.h"

/* NULL and null are fine. */
HS_MUST enum hs_rc hs_labels_check(const json_t *labels, struct hs_err *err);

#endif
