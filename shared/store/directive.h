/*
 * directive - rules a bank's answers must follow: list, load for a run, make, change, delete.
 *
 * Floor:   store. Tables directives, directive_tags. Rules: contract banks 7, reflect A4.
 * Lock:    writers hold the bank's clock row (without advancing it), so nothing is stored for a bank
 *          that is being deleted.
 * Order:   priority, created_at, id, all descending.
 * Owns:    rows live in the pool given.
 * Errors:  HS_E_NOT_FOUND "Directive '<id>' not found"; HS_E_BANK_MISSING when the bank went away.
 */
#ifndef HS_STORE_DIRECTIVE_H
#define HS_STORE_DIRECTIVE_H

#include "db/db.h"
#include "store/scope.h"

#define HS_DIRECTIVES_LOADED 100   /* a run reads at most so many */

struct hs_directive {
	const char *id, *name, *content;
	int64_t priority;
	bool is_active;
	struct hs_strs tags;
	int64_t created_us, updated_us;
};

struct hs_directive_filter {
	struct hs_strs tags;            /* none: no filter; untagged rows always pass one */
	enum hs_tags_match match;       /* HS_ANY, HS_ALL, HS_EXACT */
	bool active_only;
	int64_t limit, offset;
};
HS_MUST enum hs_rc hs_directives_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_directive_filter *filter, struct hs_directive **ret, size_t *ret_n,
	int64_t *ret_total, struct hs_err *err);
/* The active ones in a scope (tags and groups), in order, at most HS_DIRECTIVES_LOADED. NULL scope =
 * all; a scope of HS_EXACT without tags = untagged only (reflect without tags). */
HS_MUST enum hs_rc hs_directives_load(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, struct hs_directive **ret, size_t *ret_n, struct hs_err *err);
HS_MUST enum hs_rc hs_directive_get(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, struct hs_directive *ret, struct hs_err *err);
/* Fills id (when NULL), created_us and updated_us. Opens a transaction of its own. */
HS_MUST enum hs_rc hs_directive_create(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_directive *d, struct hs_err *err);

/* What changes; NULL = stays. */
struct hs_directive_change {
	const char *name, *content;
	const int64_t *priority;
	const bool *is_active;
	const struct hs_strs *tags;
};
/* *ret is the row afterwards; updated_at moves in any case. Opens a transaction of its own. */
HS_MUST enum hs_rc hs_directive_update(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, const struct hs_directive_change *change, struct hs_directive *ret,
	struct hs_err *err);
HS_MUST enum hs_rc hs_directive_delete(struct hs_db *db, int64_t bank_no, const char *id,
	struct hs_err *err);

extern const struct hs_sql_list hs_directive_sql;

#endif
