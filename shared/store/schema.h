/*
 * schema - which schema version the programs know.
 *
 * Floor:   store. Table schema_migrations(version, checksum, applied_at) is made by `migrate`.
 * Errors:  HS_E_DB_SCHEMA "database schema is version 1, this program needs 2: run hindsight-admin migrate".
 */
#ifndef HS_STORE_SCHEMA_H
#define HS_STORE_SCHEMA_H

#include "db/db.h"

#define HS_SCHEMA_VERSION 1

/* For hs_db_on_connect and the start. The answer is remembered for 5 s when it was bad. */
HS_MUST enum hs_rc hs_schema_check(struct hs_db *db, void *arg, struct hs_err *err);
extern const struct hs_sql_list hs_schema_sql;

#endif
