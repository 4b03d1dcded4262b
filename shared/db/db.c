#include "db/db.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "db/driver.h"
#include "db/tx.h"

#define CONNECT_MAX_S 10           /* a host that does not answer must not hold a request longer */
#define IDLE_CHECK_US HS_SECOND_US /* connections idle for longer are looked at before use */
#define SE_NO_TABLE 1146
#define SE_NO_COLUMN 1054

struct hs_db {
	const struct hs_config *cfg;
	struct hs_conn *conn;
	enum hs_rc (*hook)(struct hs_db *db, void *arg, struct hs_err *err);
	void *hook_arg;
	bool in_hook, in_tx, streaming;
	bool lost;   /* the last failure was a broken connection */
	bool verify; /* a table or column was missing: ask the hook again */
	uint64_t max_packet, statements, insert_id;
	int64_t used_us;
};

struct hs_db *hs_db_new(const struct hs_config *cfg)
{
	struct hs_db *db = calloc(1, sizeof(*db));

	if (!db)
		hs_out_of_memory(sizeof(*db));
	db->cfg = cfg;
	return db;
}

void hs_db_free(struct hs_db **dbp)
{
	struct hs_db *db = *dbp;

	if (!db)
		return;
	hs_conn_close(&db->conn);
	free(db);
	*dbp = NULL;
}

void hs_db_on_connect(struct hs_db *db,
	enum hs_rc (*fn)(struct hs_db *db, void *arg, struct hs_err *err), void *arg)
{
	db->hook = fn;
	db->hook_arg = arg;
}

uint64_t hs_db_max_packet(struct hs_db *db)
{
	return db->max_packet;
}

uint64_t hs_db_statements(const struct hs_db *db)
{
	return db->statements;
}

uint64_t hs_db_insert_id(const struct hs_db *db)
{
	return db->insert_id;
}

bool hs_tx_open(const struct hs_db *db)
{
	return db->in_tx;
}

bool hs_db_was_lost(const struct hs_db *db)
{
	return db->lost;
}

/* ---- connecting ---- */

static const char *or_null(const char *s)
{
	return hs_str_empty(s) ? NULL : s;
}

/* The shorter of the two limits that are set. */
static unsigned command_seconds(const struct hs_config *cfg)
{
	int64_t a = hs_cfg_int(cfg, HS_S_db_command_timeout),
		b = hs_cfg_int(cfg, HS_S_db_statement_timeout);

	if (a <= 0 || (b > 0 && b < a))
		a = b;
	return a > 0 && a < 86400 ? (unsigned)a : 0;
}

static enum hs_rc open_conn(struct hs_db *db, struct hs_err *err)
{
	int64_t wait_s = hs_cfg_int(db->cfg, HS_S_db_acquire_timeout);
	struct hs_conn_cfg c = {
		.host = or_null(hs_cfg_str(db->cfg, HS_S_database_host)),
		.socket = or_null(hs_cfg_str(db->cfg, HS_S_database_socket)),
		.user = or_null(hs_cfg_str(db->cfg, HS_S_database_user)),
		.password = hs_cfg_str(db->cfg, HS_S_database_password),
		.name = or_null(hs_cfg_str(db->cfg, HS_S_database_name)),
		.port = (unsigned)hs_cfg_int(db->cfg, HS_S_database_port),
		.connect_s =
			wait_s > 0 && wait_s < CONNECT_MAX_S ? (unsigned)wait_s : CONNECT_MAX_S,
		.command_s = command_seconds(db->cfg),
	};

	if (c.socket)
		c.host = NULL;
	HS_TRY(hs_conn_open(&c, &db->conn, err));
	return hs_conn_number(db->conn, "SELECT @@max_allowed_packet", &db->max_packet, err);
}

static void drop_conn(struct hs_db *db)
{
	hs_conn_close(&db->conn);
	db->lost = true;
}

static enum hs_rc run_hook(struct hs_db *db, struct hs_err *err)
{
	enum hs_rc rc;

	if (!db->hook || db->in_hook)
		return HS_OK;
	db->in_hook = true;
	rc = db->hook(db, db->hook_arg, err);
	db->in_hook = false;
	db->verify = false;
	if (rc != HS_OK)
		hs_conn_close(&db->conn);
	return rc;
}

/* A usable connection for a statement outside a transaction. */
static enum hs_rc ready(struct hs_db *db, struct hs_err *err)
{
	int64_t now = hs_mono_us();
	enum hs_rc rc;

	if (db->in_tx) {
		if (!db->conn)
			return hs_fail(err, HS_E_DB_DOWN,
				"the connection to the database was lost in a transaction");
		return HS_OK;
	}
	if (db->conn && now - db->used_us > IDLE_CHECK_US && !hs_conn_alive(db->conn))
		hs_conn_close(&db->conn);
	db->used_us = now;
	if (db->conn)
		return db->verify ? run_hook(db, err) : HS_OK;
	rc = open_conn(db, err);
	if (rc != HS_OK) {
		hs_conn_close(&db->conn);
		db->lost = false;
		return rc;
	}
	return run_hook(db, err);
}

enum hs_rc hs_db_ping(struct hs_db *db, struct hs_err *err)
{
	return hs_db_script(db, "DO 1", err);
}

/* ---- running ---- */

static bool repeatable(const char *sql)
{
	return hs_str_starts(sql, "SELECT ") || hs_str_starts(sql, "WITH ") ||
	       hs_str_starts(sql, "DO ") || hs_str_starts(sql, "START ");
}

/* Books a failure: closes a broken connection; true when the statement may simply run again. */
static bool after_failure(
	struct hs_db *db, const char *sql, bool rows_seen, enum hs_rc *rc, struct hs_err *err)
{
	bool unsent;

	db->lost = false;
	if (err->foreign == SE_NO_TABLE || err->foreign == SE_NO_COLUMN)
		db->verify = true;
	if (!db->conn || !hs_conn_lost(db->conn))
		return false;
	unsent = hs_conn_unsent(db->conn);
	drop_conn(db);
	if (db->in_tx || rows_seen || *rc == HS_E_DB_TIMEOUT)
		return false;
	if (unsent || repeatable(sql))
		return true;
	hs_fail_context(err, "the connection was lost while the statement ran");
	err->rc = *rc = HS_E_DB_UNKNOWN;
	return false;
}

static enum hs_rc check_size(
	struct hs_db *db, const struct hs_bind *binds, size_t n_binds, struct hs_err *err)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n_binds; i++)
		if (binds[i].type == HS_B_STR || binds[i].type == HS_B_BLOB)
			bytes += binds[i].n;
	if (bytes < HS_PACKET_MARGIN || db->max_packet == 0 ||
		bytes + HS_PACKET_MARGIN / 16 < db->max_packet)
		return HS_OK;
	return hs_fail(err, HS_E_TOO_LARGE,
		"%zu bytes are more than the database takes at once (max_allowed_packet is %llu)",
		bytes, (unsigned long long)db->max_packet);
}

struct watch {
	hs_db_row_fn *fn;
	void *arg;
	bool seen;
};

static enum hs_rc watch_row(void *arg, const struct hs_val *row, size_t cols, struct hs_err *err)
{
	struct watch *w = arg;

	w->seen = true;
	return w->fn(w->arg, row, cols, err);
}

static enum hs_rc run(struct hs_db *db, struct hs_conn_run *r, struct hs_err *err)
{
	struct watch w = {r->fn, r->arg, false};
	struct hs_conn_run watched = *r;
	struct hs_err mine;
	enum hs_rc rc = HS_OK;

	assert(!db->streaming);
	if (r->fn) {
		watched.fn = watch_row;
		watched.arg = &w;
	}
	for (int tries = 0; tries < 2; tries++) {
		hs_err_clear(&mine);
		rc = ready(db, &mine);
		if (rc != HS_OK)
			break;
		rc = check_size(db, r->binds, r->n_binds, &mine);
		if (rc != HS_OK)
			break;
		db->statements++;
		db->streaming = true;
		rc = hs_conn_exec(db->conn, &watched, &mine);
		db->streaming = false;
		if (rc == HS_OK) {
			r->affected = watched.affected;
			r->insert_id = watched.insert_id;
			r->cols = watched.cols;
			return rc;
		}
		if (!after_failure(db, r->sql, w.seen, &rc, &mine))
			break;
	}
	if (err)
		*err = mine;
	return rc;
}

enum hs_rc hs_db_script(struct hs_db *db, const char *sql, struct hs_err *err)
{
	struct hs_err mine;
	enum hs_rc rc = HS_OK;

	assert(!db->streaming);
	for (int tries = 0; tries < 2; tries++) {
		hs_err_clear(&mine);
		rc = ready(db, &mine);
		if (rc != HS_OK)
			break;
		db->statements++;
		rc = hs_conn_text(db->conn, sql, &mine);
		if (rc == HS_OK)
			return rc;
		if (!after_failure(db, sql, false, &rc, &mine))
			break;
	}
	if (err)
		*err = mine;
	return rc;
}

enum hs_rc hs_db_prepare(struct hs_db *db, const char *sql, struct hs_err *err)
{
	HS_TRY(ready(db, err));
	return hs_conn_prepare(db->conn, sql, err);
}

/* ---- rows ---- */

struct collect {
	struct hs_val *v;
	size_t n, cap, cols;
};

static enum hs_rc collect_row(void *arg, const struct hs_val *row, size_t cols, struct hs_err *err)
{
	struct collect *c = arg;

	(void)err;
	if ((c->n + 1) * cols > c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 8 * cols;
		struct hs_val *v = realloc(c->v, cap * sizeof(*v));

		if (!v)
			hs_out_of_memory(cap * sizeof(*v));
		c->v = v;
		c->cap = cap;
	}
	memcpy(c->v + c->n * cols, row, cols * sizeof(*row));
	c->n++;
	c->cols = cols;
	return HS_OK;
}

enum hs_rc hs_db_select(struct hs_db *db, struct hs_pool *pool, const char *sql,
	const struct hs_bind *binds, size_t n_binds, struct hs_rows *ret, struct hs_err *err)
{
	struct collect c = {0};
	struct hs_conn_run r = {.sql = sql,
		.binds = binds,
		.n_binds = n_binds,
		.pool = pool,
		.fn = collect_row,
		.arg = &c};
	enum hs_rc rc = run(db, &r, err);

	if (rc == HS_OK) {
		ret->n = c.n;
		ret->cols = r.cols;
		ret->v = c.n ? hs_pool_memdup(pool, c.v, c.n * c.cols * sizeof(*c.v)) : NULL;
	}
	free(c.v);
	return rc;
}

enum hs_rc hs_db_each(struct hs_db *db, const char *sql, const struct hs_bind *binds,
	size_t n_binds, hs_db_row_fn *fn, void *arg, struct hs_err *err)
{
	struct hs_conn_run r = {
		.sql = sql, .binds = binds, .n_binds = n_binds, .fn = fn, .arg = arg};

	return run(db, &r, err);
}

enum hs_rc hs_db_exec(struct hs_db *db, const char *sql, const struct hs_bind *binds,
	size_t n_binds, uint64_t *ret_affected, struct hs_err *err)
{
	struct hs_conn_run r = {.sql = sql, .binds = binds, .n_binds = n_binds};

	HS_TRY(run(db, &r, err));
	db->insert_id = r.insert_id;
	if (ret_affected)
		*ret_affected = r.affected;
	return HS_OK;
}

/* ---- transactions, for tx.c ---- */

enum hs_rc hs_db_begin(struct hs_db *db, struct hs_err *err)
{
	HS_TRY(hs_db_script(db, "START TRANSACTION", err));
	db->in_tx = true;
	return HS_OK;
}

enum hs_rc hs_db_commit(struct hs_db *db, struct hs_err *err)
{
	struct hs_err mine;
	enum hs_rc rc;

	db->in_tx = false;
	hs_err_clear(&mine);
	if (!db->conn)
		return hs_fail(
			err, HS_E_DB_DOWN, "the connection to the database was lost before COMMIT");
	db->statements++;
	rc = hs_conn_text(db->conn, "COMMIT", &mine);
	if (rc == HS_OK)
		return rc;
	if (hs_conn_lost(db->conn)) {
		if (!hs_conn_unsent(db->conn))
			mine.rc = rc = HS_E_DB_UNKNOWN;
		drop_conn(db);
	}
	if (err)
		*err = mine;
	return rc;
}

void hs_db_rollback(struct hs_db *db)
{
	struct hs_err ignored;

	db->in_tx = false;
	if (!db->conn)
		return;
	db->statements++;
	hs_err_clear(&ignored);
	/* a connection that cannot roll back is closed: the server rolls back then */
	if (hs_conn_text(db->conn, "ROLLBACK", &ignored) != HS_OK)
		hs_conn_close(&db->conn);
}

/* ---- binds ---- */

struct hs_bind hs_b_int(int64_t v)
{
	return (struct hs_bind){.type = HS_B_INT, .i = v};
}

struct hs_bind hs_b_uint(uint64_t v)
{
	return (struct hs_bind){.type = HS_B_UINT, .i = (int64_t)v};
}

struct hs_bind hs_b_num(double v)
{
	return (struct hs_bind){.type = HS_B_NUM, .d = v};
}

struct hs_bind hs_b_null(void)
{
	return (struct hs_bind){.type = HS_B_NULL};
}

struct hs_bind hs_b_strn(const char *s, size_t n)
{
	return s ? (struct hs_bind){.type = HS_B_STR, .p = s, .n = n} : hs_b_null();
}

struct hs_bind hs_b_str(const char *s)
{
	return hs_b_strn(s, s ? strlen(s) : 0);
}

struct hs_bind hs_b_blob(const void *p, size_t n)
{
	return p ? (struct hs_bind){.type = HS_B_BLOB, .p = p, .n = n} : hs_b_null();
}

struct hs_bind hs_b_time(int64_t us)
{
	return us == HS_TIME_NONE ? hs_b_null() : (struct hs_bind){.type = HS_B_TIME, .i = us};
}

struct hs_bind hs_b_bool(bool v)
{
	return hs_b_int(v ? 1 : 0);
}
