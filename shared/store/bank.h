/*
 * bank - banks: find, make, change, delete.
 *
 * Floor:   store. Tables banks, bank_clock, purge_queue.
 * Errors:  HS_E_BANK_MISSING "Bank '<id>' not found"; HS_E_BAD_REQUEST for an id that cannot be made.
 */
#ifndef HS_STORE_BANK_H
#define HS_STORE_BANK_H

#include "db/db.h"

struct hs_bank {
	int64_t bank_no;
	const char *bank_id, *name, *mission;
	int64_t skepticism, literalism, empathy; /* legacy columns, 1-5 */
	const char *config;                      /* JSON text of the overrides */
	int64_t created_us, updated_us;
};

/* Rules for a new id, in order (contract banks 3): empty, over 192 bytes, control character, '_'. */
HS_MUST enum hs_rc hs_bank_id_check(const char *bank_id, struct hs_err *err);
/* HS_E_BANK_MISSING when there is none. */
HS_MUST enum hs_rc hs_bank_find(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	struct hs_bank *ret, struct hs_err *err);
HS_MUST enum hs_rc hs_bank_find_no(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_bank *ret, struct hs_err *err);
/* Find or make, in the caller's transaction or alone (then in one of its own). *ret_made may be NULL. */
HS_MUST enum hs_rc hs_bank_ensure(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	struct hs_bank *ret, bool *ret_made, struct hs_err *err);
/* The effective configuration of a bank (overrides laid over the server's). */
HS_MUST enum hs_rc hs_bank_config(struct hs_pool *pool, const struct hs_config *server,
	const struct hs_bank *bank, struct hs_config **ret, struct hs_err *err);
extern const struct hs_sql_list hs_bank_sql;
/* Fail with the contract's text. */
enum hs_rc hs_bank_missing(const char *bank_id, struct hs_err *err);

#endif
