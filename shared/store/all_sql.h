/*
 * all_sql - every numbered statement of the store, for the test that prepares them all.
 *
 * Floor:   store. A new store file adds its HS_SQL_LIST here; the test names lists that are missing.
 */
#ifndef HS_STORE_ALL_SQL_H
#define HS_STORE_ALL_SQL_H

#include "db/db.h"

extern const struct hs_sql_list *const hs_all_sql[]; /* NULL-ended */

#endif
