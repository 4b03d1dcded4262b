/*
 * purge - the rows of deleted banks, removed in batches.
 *
 * Floor:   store. Table purge_queue names the bank numbers; every table with a bank_no is emptied,
 *          then the number goes. Numbers are never given again, so nothing here can be seen or hit.
 */
#ifndef HS_STORE_PURGE_H
#define HS_STORE_PURGE_H

#include "db/db.h"

/* One batch of at most `rows` rows of one table. *ret_more false: nothing is left to purge. */
HS_MUST enum hs_rc hs_purge_step(
	struct hs_db *db, struct hs_pool *pool, int64_t rows, bool *ret_more, struct hs_err *err);

extern const struct hs_sql_list hs_purge_sql;

#endif
