/*
 * response_schema - may this JSON Schema be asked of a model?
 *
 * Floor:   engine; pure. Rules: contract reflect A3, mental-models 7: an object with a non-empty map
 *          of properties, simple types, known required names. Only the top level is looked at.
 */
#ifndef HS_ENGINE_RESPONSE_SCHEMA_H
#define HS_ENGINE_RESPONSE_SCHEMA_H

#include "json/check.h"

/* Custom reader for field tables: a json_t * member; null counts as absent. Faults are "dict_type"
 * for what is no object, "value_error" for the rest. */
void hs_response_schema_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place);

#endif
