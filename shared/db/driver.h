/*
 * driver - what the db floor asks of the client library; private to shared/db.
 *
 * Floor:   db; mariadb.c implements the connection, db.c the policy around it.
 * Lost:    hs_conn_lost says that the connection is of no use any more: close it.
 */
#ifndef HS_DB_DRIVER_H
#define HS_DB_DRIVER_H

#include "db/db.h"

struct hs_conn;

struct hs_conn_cfg {
	const char *host, *socket, *user, *password, *name;
	unsigned port;
	unsigned connect_s, command_s; /* 0 = no limit */
};

/* One run of one statement. */
struct hs_conn_run {
	const char *sql;
	const struct hs_bind *binds;
	size_t n_binds;
	struct hs_pool *pool; /* texts go here; NULL = lent until fn returns */
	hs_db_row_fn *fn;     /* NULL = rows are dropped */
	void *arg;
	uint64_t affected, insert_id; /* answers */
	size_t cols;
};

HS_MUST enum hs_rc hs_conn_open(
	const struct hs_conn_cfg *cfg, struct hs_conn **ret, struct hs_err *err);
void hs_conn_close(struct hs_conn **connp);
HS_MUST enum hs_rc hs_conn_exec(struct hs_conn *conn, struct hs_conn_run *run, struct hs_err *err);
HS_MUST enum hs_rc hs_conn_prepare(struct hs_conn *conn, const char *sql, struct hs_err *err);
HS_MUST enum hs_rc hs_conn_text(struct hs_conn *conn, const char *sql, struct hs_err *err);
bool hs_conn_lost(const struct hs_conn *conn);
/* The last statement surely did not reach the server. */
bool hs_conn_unsent(const struct hs_conn *conn);
/* Looks at the idle socket: false when the server has closed it. */
bool hs_conn_alive(struct hs_conn *conn);
/* One integer of a query without parameters (server variables). */
HS_MUST enum hs_rc hs_conn_number(
	struct hs_conn *conn, const char *sql, uint64_t *ret, struct hs_err *err);

/* For tx.c, implemented in db.c. */
HS_MUST enum hs_rc hs_db_begin(struct hs_db *db, struct hs_err *err);
HS_MUST enum hs_rc hs_db_commit(struct hs_db *db, struct hs_err *err);
void hs_db_rollback(struct hs_db *db);
/* The connection was there and broke (it was not refused). */
bool hs_db_was_lost(const struct hs_db *db);

#endif
