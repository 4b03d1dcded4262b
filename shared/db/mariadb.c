#include "db/driver.h"

#include <errno.h>
#include <mysql.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/limits.h"

#define DECIMAL_TEXT 96
#define READ_MARGIN_S 10u /* the server's own limit ends a statement first */

/* server error numbers */
#define SE_CON_COUNT 1040
#define SE_UNKNOWN_COM 1047 /* Galera: the node is not ready */
#define SE_BAD_DB 1049
#define SE_SHUTDOWN 1053
#define SE_DUPLICATE 1062
#define SE_TOO_LARGE 1153
#define SE_TOO_MANY_USER 1203
#define SE_LOCK_WAIT 1205
#define SE_DEADLOCK 1213
#define SE_USER_LIMIT 1226
#define SE_UNKNOWN_STMT 1243
#define SE_STMT_COUNT 1461
#define SE_DUPLICATE_KEY_NAME 1586
#define SE_REPREPARE 1615
#define SE_CONN_KILLED 1927
#define SE_STATEMENT_TIME 1969
/* client error numbers */
#define CE_CONNECT 2002
#define CE_CONNECT_HOST 2003
#define CE_UNKNOWN_HOST 2005
#define CE_GONE 2006
#define CE_LOST 2013
#define CE_LOST_AT 2055
#define CE_NEW_METADATA 2057

static const struct {
	int no;
	enum hs_rc rc;
	bool lost;
} errors[] = {
	{SE_CON_COUNT, HS_E_DB_BUSY, false},
	{SE_TOO_MANY_USER, HS_E_DB_BUSY, false},
	{SE_USER_LIMIT, HS_E_DB_BUSY, false},
	{SE_STMT_COUNT, HS_E_DB_BUSY, false},
	{SE_UNKNOWN_COM, HS_E_DB_DOWN, false},
	{1044, HS_E_DB_DOWN, false}, /* access denied */
	{1045, HS_E_DB_DOWN, false},
	{1698, HS_E_DB_DOWN, false},
	{SE_BAD_DB, HS_E_DB_SCHEMA, false},
	{SE_SHUTDOWN, HS_E_DB_DOWN, true},
	{SE_CONN_KILLED, HS_E_DB_DOWN, true},
	{CE_CONNECT, HS_E_DB_DOWN, true},
	{CE_CONNECT_HOST, HS_E_DB_DOWN, true},
	{CE_UNKNOWN_HOST, HS_E_DB_DOWN, true},
	{CE_GONE, HS_E_DB_DOWN, true},
	{CE_LOST, HS_E_DB_DOWN, true},
	{CE_LOST_AT, HS_E_DB_DOWN, true},
	{SE_DUPLICATE, HS_E_DB_DUPLICATE, false},
	{SE_DUPLICATE_KEY_NAME, HS_E_DB_DUPLICATE, false},
	{SE_LOCK_WAIT, HS_E_DB_DEADLOCK, false},
	{SE_DEADLOCK, HS_E_DB_DEADLOCK, false},
	{SE_STATEMENT_TIME, HS_E_DB_TIMEOUT, false},
	{SE_TOO_LARGE, HS_E_TOO_LARGE, false},
};

enum col_kind { COL_INT, COL_NUM, COL_DECIMAL, COL_TIME, COL_TEXT };

struct col {
	enum col_kind kind;
	union {
		long long i;
		double d;
		MYSQL_TIME t;
		char dec[DECIMAL_TEXT];
	} v;
	unsigned long len;
	my_bool null;
};

struct stmt {
	MYSQL_STMT *h;
	uint64_t hash, used;
	char *sql;
	unsigned cols;
	struct col *col;
	MYSQL_BIND *bind;
	struct hs_val *row;
};

struct hs_conn {
	MYSQL *my;
	struct stmt stmts[HS_STMT_CACHE];
	size_t n_stmts;
	uint64_t tick;
	bool lost, unsent;
	unsigned read_s;
	struct hs_pool *scratch;
};

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void library_init(void)
{
	mysql_library_init(0, NULL, NULL);
}

/* Turn an error number of server or client into our code; marks the connection when it is gone. */
static enum hs_rc fail_no(
	struct hs_conn *conn, int no, const char *text, const char *what, struct hs_err *err)
{
	enum hs_rc rc = HS_E_DB;

	for (size_t i = 0; i < HS_COUNT(errors); i++) {
		if (errors[i].no != no)
			continue;
		rc = errors[i].rc;
		conn->lost = conn->lost || errors[i].lost;
	}
	conn->unsent = no == CE_GONE;
	return hs_fail_foreign(err, rc, no, "%s: %s (%d)", what, text, no);
}

static enum hs_rc fail_conn(struct hs_conn *conn, const char *what, struct hs_err *err)
{
	return fail_no(conn, (int)mysql_errno(conn->my), mysql_error(conn->my), what, err);
}

/* The start of the statement names it in the log. */
static enum hs_rc fail_stmt(
	struct hs_conn *conn, MYSQL_STMT *h, const char *sql, struct hs_err *err)
{
	char what[80];
	size_t n = strcspn(sql, "\n");

	snprintf(what, sizeof(what), "%.*s", n > 70 ? 70 : (int)n, sql);
	/* an error that ends a result row by row stands at the connection only */
	if (mysql_stmt_errno(h) == 0)
		return fail_conn(conn, what, err);
	return fail_no(conn, (int)mysql_stmt_errno(h), mysql_stmt_error(h), what, err);
}

static void set_options(MYSQL *my, const struct hs_conn_cfg *cfg)
{
	my_bool off = 0;

	mysql_options(my, MYSQL_OPT_RECONNECT, &off);
	mysql_options(my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (cfg->connect_s)
		mysql_options(my, MYSQL_OPT_CONNECT_TIMEOUT, &cfg->connect_s);
	if (cfg->command_s) {
		unsigned s = cfg->command_s + READ_MARGIN_S;

		mysql_options(my, MYSQL_OPT_READ_TIMEOUT, &s);
		mysql_options(my, MYSQL_OPT_WRITE_TIMEOUT, &s);
	}
}

static enum hs_rc set_session(
	struct hs_conn *conn, const struct hs_conn_cfg *cfg, struct hs_err *err)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
		"SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin, time_zone = '+00:00', autocommit = 1, "
		"sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
		"NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 10, max_statement_time = %u",
		cfg->command_s);
	HS_TRY(hs_conn_text(conn, sql, err));
	return hs_conn_text(conn, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", err);
}

static struct {
	_Atomic int open;
	_Atomic int64_t wait_us;
} figures;

struct hs_db_figures hs_db_figures(void)
{
	return (struct hs_db_figures){
		.open = atomic_load(&figures.open),
		.wait_us = atomic_load(&figures.wait_us),
	};
}

enum hs_rc hs_conn_open(const struct hs_conn_cfg *cfg, struct hs_conn **ret, struct hs_err *err)
{
	int64_t began_us = hs_mono_us();
	struct hs_conn *conn;
	enum hs_rc rc;

	pthread_once(&library_once, library_init);
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		hs_out_of_memory(sizeof(*conn));
	conn->my = mysql_init(NULL);
	if (!conn->my)
		hs_out_of_memory(sizeof(MYSQL));
	conn->scratch = hs_pool_new();
	conn->read_s = cfg->command_s ? cfg->command_s + READ_MARGIN_S : 0;
	set_options(conn->my, cfg);
	atomic_fetch_add(&figures.open, 1);
	if (mysql_real_connect(conn->my, cfg->host, cfg->user, cfg->password, cfg->name, cfg->port,
		    cfg->socket, CLIENT_FOUND_ROWS))
		rc = set_session(conn, cfg, err);
	else
		rc = fail_conn(conn, "cannot connect to the database", err);
	atomic_store(&figures.wait_us, hs_mono_us() - began_us);
	if (rc != HS_OK)
		hs_conn_close(&conn);
	else
		*ret = conn;
	return rc;
}

static void stmt_done(struct stmt *s)
{
	if (s->h)
		mysql_stmt_close(s->h);
	free(s->sql);
	free(s->col);
	free(s->bind);
	free(s->row);
	memset(s, 0, sizeof(*s));
}

static void drop_stmt(struct hs_conn *conn, struct stmt *s)
{
	stmt_done(s);
	*s = conn->stmts[--conn->n_stmts];
	memset(&conn->stmts[conn->n_stmts], 0, sizeof(*s));
}

static void drop_all_stmts(struct hs_conn *conn)
{
	while (conn->n_stmts)
		drop_stmt(conn, &conn->stmts[conn->n_stmts - 1]);
}

void hs_conn_close(struct hs_conn **connp)
{
	struct hs_conn *conn = *connp;

	if (!conn)
		return;
	atomic_fetch_sub(&figures.open, 1);
	drop_all_stmts(conn);
	mysql_close(conn->my);
	hs_pool_free(&conn->scratch);
	free(conn);
	*connp = NULL;
}

bool hs_conn_lost(const struct hs_conn *conn)
{
	return conn->lost;
}

bool hs_conn_unsent(const struct hs_conn *conn)
{
	return conn->unsent;
}

bool hs_conn_alive(struct hs_conn *conn)
{
	char c;
	ssize_t n = recv((int)mysql_get_socket(conn->my), &c, 1, MSG_PEEK | MSG_DONTWAIT);

	/* an idle connection has nothing to say: bytes are a farewell, 0 is the end */
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

/* ---- prepared statements ---- */

static uint64_t hash_text(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return h;
}

static struct stmt *find_stmt(struct hs_conn *conn, uint64_t hash, const char *sql)
{
	for (size_t i = 0; i < conn->n_stmts; i++) {
		struct stmt *s = &conn->stmts[i];

		if (s->hash == hash && strcmp(s->sql, sql) == 0)
			return s;
	}
	return NULL;
}

static struct stmt *free_slot(struct hs_conn *conn)
{
	struct stmt *oldest = &conn->stmts[0];

	if (conn->n_stmts < HS_STMT_CACHE)
		return &conn->stmts[conn->n_stmts++];
	for (size_t i = 1; i < conn->n_stmts; i++)
		if (conn->stmts[i].used < oldest->used)
			oldest = &conn->stmts[i];
	stmt_done(oldest);
	return oldest;
}

static void *must_calloc(size_t n, size_t bytes)
{
	void *p = calloc(n ? n : 1, bytes);

	if (!p)
		hs_out_of_memory(n * bytes);
	return p;
}

static void bind_column(const MYSQL_FIELD *f, struct col *c, MYSQL_BIND *b)
{
	b->buffer = &c->v;
	b->length = &c->len;
	b->is_null = &c->null;
	switch (f->type) {
	case MYSQL_TYPE_TINY:
	case MYSQL_TYPE_SHORT:
	case MYSQL_TYPE_INT24:
	case MYSQL_TYPE_LONG:
	case MYSQL_TYPE_LONGLONG:
	case MYSQL_TYPE_YEAR:
		c->kind = COL_INT;
		b->buffer_type = MYSQL_TYPE_LONGLONG;
		b->is_unsigned = (f->flags & UNSIGNED_FLAG) != 0;
		return;
	case MYSQL_TYPE_FLOAT:
	case MYSQL_TYPE_DOUBLE:
		c->kind = COL_NUM;
		b->buffer_type = MYSQL_TYPE_DOUBLE;
		return;
	case MYSQL_TYPE_DECIMAL:
	case MYSQL_TYPE_NEWDECIMAL:
		c->kind = COL_DECIMAL;
		b->buffer_type = MYSQL_TYPE_STRING;
		b->buffer_length = DECIMAL_TEXT - 1;
		return;
	case MYSQL_TYPE_DATE:
	case MYSQL_TYPE_DATETIME:
	case MYSQL_TYPE_TIMESTAMP:
		c->kind = COL_TIME;
		b->buffer_type = MYSQL_TYPE_DATETIME;
		b->buffer_length = sizeof(MYSQL_TIME);
		return;
	default:
		/* texts of any length: fetched into place once the length is known */
		c->kind = COL_TEXT;
		b->buffer_type = (f->flags & BINARY_FLAG) ? MYSQL_TYPE_BLOB : MYSQL_TYPE_STRING;
		b->buffer = NULL;
		b->buffer_length = 0;
	}
}

static void bind_columns(struct stmt *s)
{
	MYSQL_RES *meta = mysql_stmt_result_metadata(s->h);

	if (!meta)
		return;
	s->cols = mysql_num_fields(meta);
	s->col = must_calloc(s->cols, sizeof(*s->col));
	s->bind = must_calloc(s->cols, sizeof(*s->bind));
	s->row = must_calloc(s->cols, sizeof(*s->row));
	for (unsigned i = 0; i < s->cols; i++)
		bind_column(mysql_fetch_field_direct(meta, i), &s->col[i], &s->bind[i]);
	mysql_free_result(meta);
}

static enum hs_rc prepare_once(
	struct hs_conn *conn, uint64_t hash, const char *sql, struct stmt **ret, struct hs_err *err)
{
	struct stmt *s = free_slot(conn);
	enum hs_rc rc;

	s->hash = hash;
	s->sql = strdup(sql);
	s->h = mysql_stmt_init(conn->my);
	if (!s->sql || !s->h)
		hs_out_of_memory(strlen(sql));
	if (mysql_stmt_prepare(s->h, sql, strlen(sql))) {
		rc = fail_stmt(conn, s->h, sql, err);
		drop_stmt(conn, s);
		return rc;
	}
	bind_columns(s);
	*ret = s;
	return HS_OK;
}

static enum hs_rc get_stmt(
	struct hs_conn *conn, const char *sql, struct stmt **ret, struct hs_err *err)
{
	uint64_t hash = hash_text(sql);
	struct stmt *s = find_stmt(conn, hash, sql);
	enum hs_rc rc = HS_OK;

	if (!s) {
		struct hs_err first;

		hs_err_clear(&first);
		rc = prepare_once(conn, hash, sql, &s, &first);
		if (rc != HS_OK && first.foreign == SE_STMT_COUNT) {
			/* the server's limit over all connections: give ours back */
			drop_all_stmts(conn);
			rc = prepare_once(conn, hash, sql, &s, &first);
		}
		if (rc != HS_OK)
			return hs_fail_foreign(err, rc, first.foreign, "%s", first.msg);
	}
	s->used = ++conn->tick;
	*ret = s;
	return rc;
}

static void bind_param(const struct hs_bind *p, MYSQL_BIND *b, MYSQL_TIME *t)
{
	struct hs_civil c;

	switch (p->type) {
	case HS_B_NULL:
		b->buffer_type = MYSQL_TYPE_NULL;
		return;
	case HS_B_INT:
	case HS_B_UINT:
		b->buffer_type = MYSQL_TYPE_LONGLONG;
		b->is_unsigned = p->type == HS_B_UINT;
		b->buffer = (void *)(uintptr_t)&p->i;
		return;
	case HS_B_NUM:
		b->buffer_type = MYSQL_TYPE_DOUBLE;
		b->buffer = (void *)(uintptr_t)&p->d;
		return;
	case HS_B_STR:
	case HS_B_BLOB:
		b->buffer_type = p->type == HS_B_STR ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
		b->buffer = (void *)(uintptr_t)p->p;
		b->buffer_length = p->n;
		return;
	case HS_B_TIME:
		c = hs_civil_from_us(p->i);
		*t = (MYSQL_TIME){.year = (unsigned)c.year,
			.month = (unsigned)c.month,
			.day = (unsigned)c.day,
			.hour = (unsigned)c.hour,
			.minute = (unsigned)c.minute,
			.second = (unsigned)c.second,
			.second_part = (unsigned long)c.us,
			.time_type = MYSQL_TIMESTAMP_DATETIME};
		b->buffer_type = MYSQL_TYPE_DATETIME;
		b->buffer = t;
		return;
	}
}

/* ---- rows ---- */

static int64_t time_us(const MYSQL_TIME *t)
{
	struct hs_civil c = {.year = (int)t->year,
		.month = (int)t->month,
		.day = (int)t->day,
		.hour = (int)t->hour,
		.minute = (int)t->minute,
		.second = (int)t->second,
		.us = (int)t->second_part};

	return t->year == 0 ? HS_TIME_NONE : hs_civil_to_us(&c);
}

static enum hs_rc read_text(struct hs_conn *conn, struct stmt *s, unsigned i, struct hs_pool *pool,
	struct hs_val *v, struct hs_err *err)
{
	unsigned long n = s->col[i].len;
	char *text = hs_pool_alloc(pool, n + 1);

	if (n) {
		unsigned long got = 0;
		my_bool null = 0;
		MYSQL_BIND b = {.buffer_type = s->bind[i].buffer_type,
			.buffer = text,
			.buffer_length = n,
			.length = &got,
			.is_null = &null};

		if (mysql_stmt_fetch_column(s->h, &b, i, 0))
			return fail_stmt(conn, s->h, s->sql, err);
	}
	text[n] = '\0';
	v->s = text;
	v->n = n;
	return HS_OK;
}

static enum hs_rc read_value(struct hs_conn *conn, struct stmt *s, unsigned i, struct hs_pool *pool,
	struct hs_val *v, struct hs_err *err)
{
	struct col *c = &s->col[i];

	*v = (struct hs_val){.null = c->null != 0};
	if (v->null) {
		if (c->kind == COL_TIME)
			v->i = HS_TIME_NONE;
		return HS_OK;
	}
	switch (c->kind) {
	case COL_INT:
		v->i = c->v.i;
		v->d = s->bind[i].is_unsigned ? (double)(unsigned long long)c->v.i : (double)c->v.i;
		return HS_OK;
	case COL_NUM:
		v->d = c->v.d;
		v->i = v->d > -9.2e18 && v->d < 9.2e18 ? (int64_t)v->d : 0;
		return HS_OK;
	case COL_DECIMAL:
		c->v.dec[c->len < DECIMAL_TEXT ? c->len : DECIMAL_TEXT - 1] = '\0';
		v->i = strtoll(c->v.dec, NULL, 10);
		if (!hs_str_to_double(c->v.dec, &v->d))
			return hs_fail(
				err, HS_E_PARSE, "decimal value \"%s\" of the database", c->v.dec);
		return HS_OK;
	case COL_TIME:
		v->i = time_us(&c->v.t);
		v->null = v->i == HS_TIME_NONE;
		return HS_OK;
	case COL_TEXT:
		return read_text(conn, s, i, pool, v, err);
	}
	return HS_OK;
}

static enum hs_rc read_rows(
	struct hs_conn *conn, struct stmt *s, struct hs_conn_run *run, struct hs_err *err)
{
	struct hs_pool *pool = run->pool ? run->pool : conn->scratch;

	if (mysql_stmt_bind_result(s->h, s->bind))
		return fail_stmt(conn, s->h, s->sql, err);

	for (;;) {
		int got = mysql_stmt_fetch(s->h);

		if (got == MYSQL_NO_DATA)
			return HS_OK;
		if (got == 1)
			return fail_stmt(conn, s->h, s->sql, err);
		if (!run->fn)
			continue;
		for (unsigned i = 0; i < s->cols; i++)
			HS_TRY(read_value(conn, s, i, pool, &s->row[i], err));
		HS_TRY(run->fn(run->arg, s->row, s->cols, err));
		if (!run->pool)
			hs_pool_clear(conn->scratch);
	}
}

static enum hs_rc execute(
	struct hs_conn *conn, struct stmt *s, struct hs_conn_run *run, struct hs_err *err)
{
	MYSQL_BIND *binds = hs_pool_calloc(conn->scratch, run->n_binds, sizeof(*binds));
	MYSQL_TIME *times = hs_pool_calloc(conn->scratch, run->n_binds, sizeof(*times));

	if (mysql_stmt_param_count(s->h) != run->n_binds)
		return hs_fail(err, HS_E_INTERNAL, "%.70s: %lu placeholders, %zu values", s->sql,
			mysql_stmt_param_count(s->h), run->n_binds);
	for (size_t i = 0; i < run->n_binds; i++)
		bind_param(&run->binds[i], &binds[i], &times[i]);
	if (run->n_binds && mysql_stmt_bind_param(s->h, binds))
		return fail_stmt(conn, s->h, s->sql, err);
	if (mysql_stmt_execute(s->h))
		return fail_stmt(conn, s->h, s->sql, err);
	/* INSERT … RETURNING tells its columns only now */
	if (s->cols == 0 && mysql_stmt_field_count(s->h) > 0)
		bind_columns(s);
	run->cols = s->cols;
	if (s->cols == 0) {
		run->affected = mysql_stmt_affected_rows(s->h);
		run->insert_id = mysql_stmt_insert_id(s->h);
		return HS_OK;
	}
	return read_rows(conn, s, run, err);
}

/* The plan on the server is outdated: prepare again, once. The statement has not run (2057 comes
 * from statements with rows only). */
static bool is_stale_plan(int no)
{
	return no == CE_NEW_METADATA || no == SE_REPREPARE || no == SE_UNKNOWN_STMT;
}

enum hs_rc hs_conn_exec(struct hs_conn *conn, struct hs_conn_run *run, struct hs_err *err)
{
	int64_t start_us = hs_mono_us();
	enum hs_rc rc = HS_OK;

	conn->unsent = false;
	for (int tries = 0; tries < 2; tries++) {
		struct stmt *s = NULL;
		struct hs_err mine;

		hs_err_clear(&mine);
		rc = get_stmt(conn, run->sql, &s, &mine);
		if (rc == HS_OK) {
			rc = execute(conn, s, run, &mine);
			if (mysql_stmt_free_result(s->h) && rc == HS_OK)
				rc = fail_stmt(conn, s->h, s->sql, &mine);
		}
		hs_pool_clear(conn->scratch);
		if (rc == HS_OK)
			return rc;
		if (tries == 0 && s && is_stale_plan(mine.foreign)) {
			drop_stmt(conn, s);
			continue;
		}
		if (conn->lost && conn->read_s &&
			hs_mono_us() - start_us >= conn->read_s * HS_SECOND_US)
			mine.rc = rc = HS_E_DB_TIMEOUT;
		if (err)
			*err = mine;
		return rc;
	}
	return rc;
}

enum hs_rc hs_conn_prepare(struct hs_conn *conn, const char *sql, struct hs_err *err)
{
	struct stmt *s;

	return get_stmt(conn, sql, &s, err);
}

enum hs_rc hs_conn_text(struct hs_conn *conn, const char *sql, struct hs_err *err)
{
	char what[80];

	conn->unsent = false;
	snprintf(what, sizeof(what), "%.70s", sql);
	if (mysql_real_query(conn->my, sql, strlen(sql)))
		return fail_conn(conn, what, err);
	if (mysql_field_count(conn->my)) {
		MYSQL_RES *res = mysql_store_result(conn->my);

		if (!res)
			return fail_conn(conn, what, err);
		mysql_free_result(res);
	}
	return HS_OK;
}

enum hs_rc hs_conn_number(struct hs_conn *conn, const char *sql, uint64_t *ret, struct hs_err *err)
{
	MYSQL_RES *res;
	MYSQL_ROW row;

	if (mysql_real_query(conn->my, sql, strlen(sql)))
		return fail_conn(conn, sql, err);
	res = mysql_store_result(conn->my);
	if (!res)
		return fail_conn(conn, sql, err);
	row = mysql_fetch_row(res);
	*ret = row && row[0] ? strtoull(row[0], NULL, 10) : 0;
	mysql_free_result(res);
	return HS_OK;
}
