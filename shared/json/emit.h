/*
 * emit - the field tables the other way: C struct -> JSON text, and -> JSON value.
 *
 * Floor:   json. Every declared field is written, null when empty (contract banks 1.3).
 */
#ifndef HS_JSON_EMIT_H
#define HS_JSON_EMIT_H

#include "json/check.h"
#include "json/out.h"

/* All members of the struct as one object; HS_F_CUSTOM members are left out. A nullable number,
 * boolean or empty list without a default is null unless `seen.given` has its bit. */
void hs_emit(struct hs_out *o, const char *key, const struct hs_shape *shape, const void *obj);
/* JSON Schema (draft 2020-12 subset) of the shape: names, types, defaults, docs. New reference. */
json_t *hs_emit_schema(const struct hs_shape *shape);

#endif
