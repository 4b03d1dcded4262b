/*
 * check_internal - the state of one check, shared by check.c (readers) and fault.c (the 422 list).
 *
 * Floor:   json; inside this folder only.
 */
#ifndef HS_JSON_CHECK_INTERNAL_H
#define HS_JSON_CHECK_INTERNAL_H

#include "json/check.h"

struct part {
	const struct part *up;
	const char *key; /* NULL: index */
	size_t index;
};

struct hs_check {
	struct hs_pool *pool;
	struct hs_err *err;
	const char *root;
	const struct part *at;
	size_t faults;                /* all of them, also those beyond the list's cap */
	const struct hs_field *field; /* being read: says whether its value may be shown */
	struct hs_strs *ignored;      /* of the outermost object only */
};

/* Faults of limits: msg and ctx from the numbers. */
void hs_fault_limit(struct hs_check *ck, const char *type, const char *what, int64_t n,
	const char *ctx_name, json_t *v);
void hs_fault_length(struct hs_check *ck, bool too_long, int64_t n, json_t *v);
void hs_fault_count(struct hs_check *ck, bool too_many, int64_t n, size_t actual, json_t *v);

#endif
