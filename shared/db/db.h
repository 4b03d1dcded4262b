/*
 * db - one connection to MariaDB, statements, rows.
 *
 * Floor:   db; db/mariadb.c is the only file that includes <mysql.h>.
 * Thread:  a connection belongs to one thread. It is opened on first use, has no automatic
 *          reconnect; outside a transaction a lost connection is opened again once and the
 *          statement runs again. Session: READ COMMITTED, utf8mb4, strict mode, +00:00,
 *          CLIENT_FOUND_ROWS.
 * Owns:    rows live in the pool given.
 * Errors:  HS_E_DB_DOWN, HS_E_DB_BUSY (1040, 1203, 1226), HS_E_DB_DEADLOCK (1213, 1205),
 *          HS_E_DB_DUPLICATE (1062), HS_E_DB_TIMEOUT, HS_E_DB_SCHEMA, HS_E_DB; foreign = errno.
 */
#ifndef HS_DB_DB_H
#define HS_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"
#include "config/config.h"

struct hs_db;

/* Does not connect; ends the process on no memory. */
struct hs_db *hs_db_new(const struct hs_config *cfg);
void hs_db_free(struct hs_db **dbp);
HS_MUST enum hs_rc hs_db_ping(struct hs_db *db, struct hs_err *err); /* connects when needed */
/* Called once after each connect (schema check); NULL = none. */
void hs_db_on_connect(struct hs_db *db,
	enum hs_rc (*fn)(struct hs_db *db, void *arg, struct hs_err *err), void *arg);
uint64_t hs_db_max_packet(struct hs_db *db);       /* max_allowed_packet, 0 while unknown */
uint64_t hs_db_statements(const struct hs_db *db); /* statements sent so far; tests and bench */

/* The connections of this process, and how long opening the last one took. */
struct hs_db_figures {
	int open;
	int64_t wait_us;
};
struct hs_db_figures hs_db_figures(void);

/* One bound parameter. */
enum hs_btype { HS_B_NULL, HS_B_INT, HS_B_UINT, HS_B_NUM, HS_B_STR, HS_B_BLOB, HS_B_TIME };
struct hs_bind {
	enum hs_btype type;
	int64_t i; /* HS_B_INT; HS_B_UINT: the same 64 bits; HS_B_TIME: µs */
	double d;
	const void *p; /* HS_B_STR, HS_B_BLOB: lent until the call returns */
	size_t n;
};
struct hs_bind hs_b_int(int64_t v);
struct hs_bind hs_b_uint(uint64_t v); /* beyond INT64_MAX too; read back as int64_t bits */
struct hs_bind hs_b_num(double v);
struct hs_bind hs_b_str(const char *s); /* NULL binds NULL */
struct hs_bind hs_b_strn(const char *s, size_t n);
struct hs_bind hs_b_blob(const void *p, size_t n); /* p NULL binds NULL */
struct hs_bind hs_b_time(int64_t us);              /* HS_TIME_NONE binds NULL */
struct hs_bind hs_b_bool(bool v);
struct hs_bind hs_b_null(void);

/* One value of a row. Text and blobs are NUL-terminated copies. */
struct hs_val {
	bool null;
	int64_t i; /* integers; DATETIME columns: µs (HS_TIME_NONE when null) */
	double d;
	const char *s; /* text or blob; NULL when null */
	size_t n;
};
struct hs_rows {
	size_t n, cols;
	struct hs_val *v; /* n * cols */
};
static inline const struct hs_val *hs_row(const struct hs_rows *r, size_t row)
{
	return r->v + row * r->cols;
}

/* HS_BINDS(hs_b_int(1), hs_b_str("x")) gives the two arguments binds, n_binds. */
#define HS_BINDS(...)                                                                              \
	((const struct hs_bind[]){__VA_ARGS__}),                                                   \
		(sizeof((const struct hs_bind[]){__VA_ARGS__}) / sizeof(struct hs_bind))
#define HS_NO_BINDS ((const struct hs_bind *)NULL), ((size_t)0)

/* Run a statement; rows (also of INSERT … RETURNING) go to *ret in the pool. */
HS_MUST enum hs_rc hs_db_select(struct hs_db *db, struct hs_pool *pool, const char *sql,
	const struct hs_bind *binds, size_t n_binds, struct hs_rows *ret, struct hs_err *err);
/* Run a statement without rows. ret_affected: rows found (CLIENT_FOUND_ROWS); may be NULL. */
HS_MUST enum hs_rc hs_db_exec(struct hs_db *db, const char *sql, const struct hs_bind *binds,
	size_t n_binds, uint64_t *ret_affected, struct hs_err *err);
uint64_t hs_db_insert_id(const struct hs_db *db); /* of the last hs_db_exec */
/* Stream rows: fn sees each, values are lent until it returns; a result other than HS_OK stops. fn
 * runs no statement on the same connection. */
typedef enum hs_rc hs_db_row_fn(
	void *arg, const struct hs_val *row, size_t cols, struct hs_err *err);
HS_MUST enum hs_rc hs_db_each(struct hs_db *db, const char *sql, const struct hs_bind *binds,
	size_t n_binds, hs_db_row_fn *fn, void *arg, struct hs_err *err);
/* Text of one statement without parameters, not prepared (migrations, session settings). */
HS_MUST enum hs_rc hs_db_script(struct hs_db *db, const char *sql, struct hs_err *err);

/* The numbered statements of one store file: a test prepares every one of them. */
struct hs_sql_list {
	const char *name;
	const char *const *sql;
	size_t n;
};
#define HS_SQL_LIST(symbol, array)                                                                 \
	const struct hs_sql_list symbol = {#symbol, (array), sizeof(array) / sizeof((array)[0])}
/* Prepare without running; HS_E_DB with the server's words for a statement that is wrong. */
HS_MUST enum hs_rc hs_db_prepare(struct hs_db *db, const char *sql, struct hs_err *err);

/* SQL text and its binds, built together from fixed fragments. */
struct hs_sql {
	struct hs_pool *pool;
	struct hs_buf *text;
	struct hs_bind *binds;
	size_t n, cap;
};
struct hs_sql hs_sql_new(struct hs_pool *pool);
void hs_sql_add(struct hs_sql *q, const char *fragment); /* no values in here */
void hs_sql_bind(struct hs_sql *q, struct hs_bind b);
/* "?, ?, ?" for the list, padded to 1, 2, 4, 8, 16 … with the last value; n == 0 gives "NULL". */
void hs_sql_list_str(struct hs_sql *q, const struct hs_strs *list);
void hs_sql_list_int(struct hs_sql *q, const int64_t *v, size_t n);
HS_MUST enum hs_rc hs_sql_select(
	struct hs_db *db, struct hs_sql *q, struct hs_rows *ret, struct hs_err *err);
HS_MUST enum hs_rc hs_sql_exec(
	struct hs_db *db, struct hs_sql *q, uint64_t *ret_affected, struct hs_err *err);

#endif
