/*
 * json - parse with caps, look up, print. json_t is our value type above base.
 *
 * Floor:   json; jansson.
 * Limits:  HS_JSON_DEPTH nesting, the caller's byte cap. The last of duplicate keys wins.
 * Owns:    values from hs_json_parse and hs_json_keep are released with the pool; getters lend.
 * Errors:  HS_E_PARSE with the reason; for request bodies see check.h.
 */
#ifndef HS_JSON_JSON_H
#define HS_JSON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"

/* Where and why parsing stopped. */
struct hs_json_fault {
	size_t offset_chars; /* code points before the fault */
	bool too_deep;       /* nested deeper than HS_JSON_DEPTH */
	char text[160];
};

/* Clean the raw bytes (json/clean.h), then parse any JSON value. */
HS_MUST enum hs_rc hs_json_parse(struct hs_pool *pool, const char *bytes, size_t n, json_t **ret,
	struct hs_json_fault *fault, struct hs_err *err);
/* Parse stored or built-in text; NULL or "" gives *ret = NULL and HS_OK. */
HS_MUST enum hs_rc hs_json_load(
	struct hs_pool *pool, const char *text, json_t **ret, struct hs_err *err);
/* Tie a new reference to the pool; hands v back. NULL ends the process (out of memory). */
json_t *hs_json_keep(struct hs_pool *pool, json_t *v);
/* Compact text, raw UTF-8, keys in insertion order, "null" for NULL. */
char *hs_json_text(struct hs_pool *pool, const json_t *v);

/* Lookups on an object; obj may be NULL or no object. Wrong type counts as absent. */
const char *hs_json_str(const json_t *obj, const char *key); /* NULL when absent */
const char *hs_json_str_or(const json_t *obj, const char *key, const char *def);
int64_t hs_json_int(const json_t *obj, const char *key, int64_t def); /* integral reals count */
double hs_json_num(const json_t *obj, const char *key, double def);
bool hs_json_bool(const json_t *obj, const char *key, bool def);
json_t *hs_json_obj(const json_t *obj, const char *key); /* object or NULL */
json_t *hs_json_arr(const json_t *obj, const char *key); /* array or NULL */
/* Strings of an array; other members are left out. arr may be NULL. */
struct hs_strs hs_json_strs(struct hs_pool *pool, const json_t *arr);
json_t *hs_json_from_strs(const struct hs_strs *list); /* new reference */

#endif
