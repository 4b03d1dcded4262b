/*
 * value - one value of a setting: from text, from JSON, to JSON.
 *
 * Floor:   config; inside this folder only.
 * Owns:    strings, lists and JSON live in the pool given.
 * Errors:  HS_E_CONFIG with a text that begins with the setting's name.
 */
#ifndef HS_CONFIG_VALUE_H
#define HS_CONFIG_VALUE_H

#include <jansson.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"
#include "config/settings.h"

struct hs_value {
	bool null;
	bool given; /* by file, environment or override, not by default */
	union {
		const char *str;
		int64_t num_int;
		double num;
		bool yes;
		struct hs_strs list;
		json_t *json;
	} u;
};

/* From the file, the environment or a default; text NULL = null. */
HS_MUST enum hs_rc hs_value_from_text(struct hs_pool *pool, const struct hs_setting *s,
	const char *text, struct hs_value *ret, struct hs_err *err);
/* From a bank's overrides: strict types, choices and limits are not looked at. */
HS_MUST enum hs_rc hs_value_from_json(struct hs_pool *pool, const struct hs_setting *s, json_t *v,
	struct hs_value *ret, struct hs_err *err);
/* New reference. */
json_t *hs_value_to_json(const struct hs_setting *s, const struct hs_value *v);
/* "<field> must be a string, got int": the strict type check of one JSON value. */
HS_MUST enum hs_rc hs_value_type_check(
	const struct hs_setting *s, const json_t *v, struct hs_err *err);
/* A number within the limits of its row? Other values and null always are. */
HS_MUST enum hs_rc hs_value_range_check(
	const struct hs_setting *s, const json_t *v, struct hs_err *err);
/* Type words of error texts: "str", "int", "float", "bool", "list", "dict", "null". */
const char *hs_json_type_word(const json_t *v);
/* Is text one of the choices "a|b|c"? */
bool hs_choice_has(const char *choices, const char *text);

#endif
