/*
 * check - field tables: JSON or query text -> C struct, every fault collected.
 *
 * Floor:   json. One table per shape says name, type, place, limits, default and sentence; there are
 *          no hand-written checks beside it. Coercions are lax, as contract banks 1.2 says, and live
 *          in check.c alone; PATCH /config is strict and has its own (config/value.h).
 * Shapes:  the target struct begins with `struct hs_seen seen;`. Absent members get the table's
 *          default; `seen` tells absent, null and given apart.
 * Owns:    strings, lists and sub-structs live in the pool given.
 * Errors:  HS_E_INVALID with err->fields (at most HS_FIELD_ERRORS), in the 422 shape of the contract.
 *          HS_E_LIMIT never: caps are faults of the field.
 */
#ifndef HS_JSON_CHECK_H
#define HS_JSON_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"

enum hs_ftype {
	HS_F_STR,    /* const char *; NULL when absent or null without default */
	HS_F_INT,    /* int64_t */
	HS_F_NUM,    /* double */
	HS_F_BOOL,   /* bool */
	HS_F_ENUM,   /* int: index into names; -1 when null or absent without default */
	HS_F_STRS,   /* struct hs_strs */
	HS_F_OBJ,    /* pointer to a sub-struct (sub table); NULL when absent or null */
	HS_F_OBJS,   /* struct hs_list of pointers to sub-structs */
	HS_F_DICT,   /* json_t *: any object */
	HS_F_JSON,   /* json_t *: anything; JSON null is NULL */
	HS_F_TIME,   /* int64_t µs, ISO 8601 text; HS_TIME_NONE when absent or null */
	HS_F_ENUMS,  /* struct hs_strs: list whose members are among names */
	HS_F_CUSTOM, /* the field's own reader */
};

/* flags of a field */
#define HS_REQUIRED 0x01u     /* absent -> "missing" */
#define HS_NULLABLE 0x02u     /* null counts as absent; without it null is the type's fault */
#define HS_NOT_BLANK 0x04u    /* string must hold more than white space */
#define HS_SECRET 0x08u       /* never logged or traced */
#define HS_NOT_EMPTY 0x10u    /* list must have a member */
#define HS_STR_LIST_LAX 0x20u /* a string is taken for a list: JSON array text, else one member */
#define HS_REPEATED 0x40u     /* query: the parameter may stand several times (HS_F_STRS) */
#define HS_ENUM_ERROR 0x80u   /* the fault's type is "enum" instead of "literal_error" */
#define HS_CLAMP_MAX 0x100u   /* above max: served as max instead of refused */
#define HS_TAG_LIST 0x200u    /* members are tags: not empty, HS_TAG_CHARS, HS_TAGS_PER_ITEM */
#define HS_NO_BOOL 0x400u     /* true and false are no integers */

struct hs_seen {
	uint64_t given; /* bit i: field i was in the input and not null */
	uint64_t null;  /* bit i: field i was null in the input */
};

struct hs_list {
	size_t n;
	void **v;
};

struct hs_field;
struct hs_check;

/* Reads one value into *place; reports faults with hs_check_fault and goes on. */
typedef void hs_custom_fn(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place);

struct hs_field {
	const char *name; /* wire name */
	enum hs_ftype type;
	size_t offset;
	unsigned flags;
	int64_t min, max; /* numbers: the value; HS_F_STR: characters; lists: members */
	bool has_min, has_max;
	const char *def;            /* see hs_field_default; NULL = zero value of the type */
	const char *const *names;   /* HS_F_ENUM, HS_F_ENUMS: NULL-ended */
	const struct hs_shape *sub; /* HS_F_OBJ, HS_F_OBJS */
	hs_custom_fn *custom;
	const char *doc; /* one sentence */
};

/* Whole-object rule, asked only when every field was fine. */
typedef void hs_rule_fn(struct hs_check *ck, void *obj);

struct hs_shape {
	const char *name;
	const struct hs_field *fields;
	size_t n_fields; /* at most 64 */
	size_t size;     /* sizeof the struct */
	hs_rule_fn *rule;
	bool strict_keys; /* unknown keys are faults ("extra_forbidden") */
};

/* Field makers; the compiler refuses a member of another C type. */
/* clang-format off */
#define HS_AT(T, m, ctype) (offsetof(T, m) + _Generic(((T *)0)->m, ctype: (size_t)0))
#define HS_STR(T, m, ...) {.name = #m, .type = HS_F_STR, .offset = HS_AT(T, m, const char *), __VA_ARGS__}
#define HS_INT(T, m, ...) {.name = #m, .type = HS_F_INT, .offset = HS_AT(T, m, int64_t), __VA_ARGS__}
#define HS_NUM(T, m, ...) {.name = #m, .type = HS_F_NUM, .offset = HS_AT(T, m, double), __VA_ARGS__}
#define HS_BOOL(T, m, ...) {.name = #m, .type = HS_F_BOOL, .offset = HS_AT(T, m, bool), __VA_ARGS__}
#define HS_ENUM(T, m, list, ...) \
	{.name = #m, .type = HS_F_ENUM, .offset = HS_AT(T, m, int), .names = (list), __VA_ARGS__}
#define HS_STRS(T, m, ...) {.name = #m, .type = HS_F_STRS, .offset = HS_AT(T, m, struct hs_strs), __VA_ARGS__}
#define HS_ENUMS(T, m, list, ...) \
	{.name = #m, .type = HS_F_ENUMS, .offset = HS_AT(T, m, struct hs_strs), .names = (list), __VA_ARGS__}
#define HS_OBJ(T, m, shape, ...) \
	{.name = #m, .type = HS_F_OBJ, .offset = offsetof(T, m), .sub = (shape), __VA_ARGS__}
#define HS_OBJS(T, m, shape, ...) \
	{.name = #m, .type = HS_F_OBJS, .offset = HS_AT(T, m, struct hs_list), .sub = (shape), __VA_ARGS__}
#define HS_DICT(T, m, ...) {.name = #m, .type = HS_F_DICT, .offset = HS_AT(T, m, json_t *), __VA_ARGS__}
#define HS_JSON(T, m, ...) {.name = #m, .type = HS_F_JSON, .offset = HS_AT(T, m, json_t *), __VA_ARGS__}
#define HS_TIME(T, m, ...) {.name = #m, .type = HS_F_TIME, .offset = HS_AT(T, m, int64_t), __VA_ARGS__}
#define HS_CUSTOM(T, m, fn, ...) \
	{.name = #m, .type = HS_F_CUSTOM, .offset = offsetof(T, m), .custom = (fn), __VA_ARGS__}
#define HS_SHAPE(T, table, ...) \
	{.name = #T, .fields = (table), .n_fields = HS_COUNT(table), .size = sizeof(struct T), __VA_ARGS__}
/* clang-format on */
#define HS_RANGE(lo, hi) .has_min = true, .min = (lo), .has_max = true, .max = (hi)
#define HS_MIN(lo) .has_min = true, .min = (lo)

/* Check an object (a parsed body). root is the first part of every loc: "body". On HS_OK *ret is a
 * fresh struct of shape->size. Unknown top-level keys are appended to *ignored when it is not NULL. */
HS_MUST enum hs_rc hs_check_object(struct hs_pool *pool, const struct hs_shape *shape,
	const char *root, json_t *value, void **ret, struct hs_strs *ignored, struct hs_err *err);

struct hs_pair {
	const char *name, *value;
};
/* The same for decoded query parameters; root "query". */
HS_MUST enum hs_rc hs_check_query(struct hs_pool *pool, const struct hs_shape *shape,
	const struct hs_pair *pairs, size_t n_pairs, void **ret, struct hs_strs *ignored,
	struct hs_err *err);

/* Was the field in the input with a value / as null? Unknown names are an assert. */
bool hs_given(const struct hs_shape *shape, const void *obj, const char *name);
bool hs_was_null(const struct hs_shape *shape, const void *obj, const char *name);

/* The default as JSON value, new reference; f->def is text for strings, choices and times, JSON text
 * for the other types. */
json_t *hs_field_default(const struct hs_field *f);

/* For custom readers and rules. */
struct hs_pool *hs_check_pool(struct hs_check *ck);
/* loc is the place being read; the fault is recorded there. ctx_json may be NULL. */
void hs_check_fault(struct hs_check *ck, const char *type, const char *msg, json_t *input,
	const char *ctx_json);
/* "value_error": msg gets "Value error, " in front, ctx {"error":{}}. */
void hs_check_value_error(struct hs_check *ck, json_t *input, const char *fmt, ...) HS_PRINTF(3, 4);
/* Go into a member for faults inside it, and out again. */
void hs_check_push(struct hs_check *ck, const char *key);
void hs_check_push_index(struct hs_check *ck, size_t index);
void hs_check_pop(struct hs_check *ck);
/* Read a sub-object with a table inside a custom reader; NULL when it had faults. */
void *hs_check_sub(struct hs_check *ck, const struct hs_shape *shape, json_t *v);
/* Custom reader into a `json_t *`: an object whose members are all strings. */
void hs_string_dict_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place);
/* Add one ready fault to an error (bodies that are no JSON, path ids). loc_json is JSON array text. */
void hs_fault_add(struct hs_pool *pool, struct hs_err *err, const char *type, const char *loc_json,
	const char *msg, const char *input_json, const char *ctx_json);

#endif
