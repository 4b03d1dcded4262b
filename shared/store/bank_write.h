/*
 * bank_write - list banks, change them and their configuration, delete them.
 *
 * Floor:   store. Tables banks, bank_clock, purge_queue, async_operations, bank_stats_cache.
 * Rules:   contract banks 3, 4, 5.3. A configuration changes under the lock of the bank's row, and
 *          its rules are checked against what is stored then.
 * Lock:    bank_clock before banks where both are taken (delete).
 * Owns:    rows live in the pool given.
 */
#ifndef HS_STORE_BANK_WRITE_H
#define HS_STORE_BANK_WRITE_H

#include <jansson.h>

#include "json/check.h"
#include "store/bank.h"

struct hs_bank_listed {
	struct hs_bank bank;
	int64_t fact_count;
	int64_t last_document_us;       /* newest creation; HS_TIME_NONE = no document */
	int64_t last_write_us;          /* newest change of a document or unit; HS_TIME_NONE = empty */
};
/* Newest write first (creation when there is none), then by id. q: part of id or name, without case,
 * NULL or "" = all. limit 0 gives no rows; *ret_total counts all that match. */
HS_MUST enum hs_rc hs_banks_list(struct hs_db *db, struct hs_pool *pool, const char *q,
	int64_t limit, int64_t offset, struct hs_bank_listed **ret, size_t *ret_n,
	int64_t *ret_total, struct hs_err *err);

struct hs_bank_change {
	const char *name;               /* NULL = stays */
	json_t *updates;                /* as of PATCH config; NULL or {} = none */
	const struct hs_shape *page_trigger; /* what knowledge_page_default_trigger must fit (a shape of
	                                      * the engine); NULL = any object */
	bool make;                      /* make a missing bank */
};
/* Validate and store in one transaction; *ret is the bank afterwards. A refused change makes no bank.
 * HS_E_BANK_MISSING without make; HS_E_BAD_REQUEST for values and ids. *ret_made may be NULL. */
HS_MUST enum hs_rc hs_bank_change(struct hs_db *db, struct hs_pool *pool,
	const struct hs_config *server, const char *bank_id, const struct hs_bank_change *change,
	struct hs_bank *ret, bool *ret_made, struct hs_err *err);
/* Drop all overrides; HS_E_BANK_MISSING when there is no such bank. */
HS_MUST enum hs_rc hs_bank_config_clear(struct hs_db *db, struct hs_pool *pool,
	const char *bank_id, struct hs_bank *ret, struct hs_err *err);
/* Remove the bank row, its clock, operations and cached stats, and queue its number for the purge.
 * *ret_count: its units, entities and documents; 0 when there is no such bank. */
HS_MUST enum hs_rc hs_bank_delete(struct hs_db *db, const char *bank_id, int64_t *ret_count,
	struct hs_err *err);

extern const struct hs_sql_list hs_bank_write_sql;

#endif
