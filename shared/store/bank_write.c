#include "store/bank_write.h"

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "config/overrides.h"
#include "db/tx.h"
#include "json/json.h"
#include "store/clock.h"

enum {
	SQL_LOCK, SQL_UPDATE, SQL_COUNT_UNITS, SQL_COUNT_ENTITIES, SQL_COUNT_DOCUMENTS,
	SQL_DELETE_BANK, SQL_DELETE_CLOCK, SQL_DELETE_OPERATIONS, SQL_DELETE_STATS, SQL_PURGE
};
static const char *const sql[] = {
	[SQL_LOCK] = "SELECT bank_no FROM banks WHERE bank_id = ? FOR UPDATE",
	[SQL_UPDATE] = "UPDATE banks SET name = ?, config = ?, updated_at = ? WHERE bank_no = ?",
	[SQL_COUNT_UNITS] = "SELECT COUNT(*) FROM memory_units WHERE bank_no = ?",
	[SQL_COUNT_ENTITIES] = "SELECT COUNT(*) FROM entities WHERE bank_no = ?",
	[SQL_COUNT_DOCUMENTS] = "SELECT COUNT(*) FROM documents WHERE bank_no = ?",
	[SQL_DELETE_BANK] = "DELETE FROM banks WHERE bank_no = ?",
	[SQL_DELETE_CLOCK] = "DELETE FROM bank_clock WHERE bank_no = ?",
	[SQL_DELETE_OPERATIONS] = "DELETE FROM async_operations WHERE bank_no = ?",
	[SQL_DELETE_STATS] = "DELETE FROM bank_stats_cache WHERE bank_no = ?",
	[SQL_PURGE] = "INSERT INTO purge_queue (bank_no, bank_id, queued_at) VALUES (?, ?, ?)",
};
HS_SQL_LIST(hs_bank_write_sql, sql);

/* ---- list ---- */

/* LOCATE, not LIKE: '%' and '_' in q are plain characters. */
static void add_filter(struct hs_sql *q, const char *text)
{
	if (hs_str_empty(text))
		return;
	hs_sql_add(q, " WHERE (LOCATE(LOWER(?), LOWER(b.bank_id)) > 0 OR LOCATE(LOWER(?), LOWER(b.name)) > 0)");
	hs_sql_bind(q, hs_b_str(text));
	hs_sql_bind(q, hs_b_str(text));
}

static enum hs_rc count_banks(struct hs_db *db, struct hs_pool *pool, const char *text,
	int64_t *ret, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&q, "SELECT COUNT(*) FROM banks b");
	add_filter(&q, text);
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	*ret = rows.v[0].i;
	return HS_OK;
}

/* Numbers and last writes of one page, in order; the wide columns are read for these banks only. */
static enum hs_rc page(struct hs_db *db, struct hs_pool *pool, const char *text, int64_t limit,
	int64_t offset, struct hs_rows *ret, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);

	/* ORDER BY … LIMIT 1 reads one index entry; MAX() in a correlated query reads all of the bank's */
	hs_sql_add(&q, "SELECT t.bank_no, GREATEST(COALESCE(t.d, t.u), COALESCE(t.u, t.d)) AS last_write FROM "
		"(SELECT b.bank_no, b.bank_id, b.created_at, "
		"(SELECT updated_at FROM documents WHERE bank_no = b.bank_no ORDER BY updated_at DESC LIMIT 1) AS d, "
		"(SELECT updated_at FROM memory_units WHERE bank_no = b.bank_no ORDER BY updated_at DESC LIMIT 1) "
		"AS u FROM banks b");
	add_filter(&q, text);
	hs_sql_add(&q, ") t ORDER BY COALESCE(GREATEST(COALESCE(t.d, t.u), COALESCE(t.u, t.d)), t.created_at) "
		"DESC, t.bank_id ASC LIMIT ? OFFSET ?");
	hs_sql_bind(&q, hs_b_int(limit));
	hs_sql_bind(&q, hs_b_int(offset));
	return hs_sql_select(db, &q, ret, err);
}

/* One value by bank number for the page's banks; rows come in any order. */
static enum hs_rc by_bank(struct hs_db *db, struct hs_pool *pool, const char *select,
	const int64_t *nos, size_t n, struct hs_rows *ret, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);

	hs_sql_add(&q, select);
	hs_sql_add(&q, " WHERE bank_no IN (");
	hs_sql_list_int(&q, nos, n);
	hs_sql_add(&q, ") GROUP BY bank_no");
	return hs_sql_select(db, &q, ret, err);
}

static const struct hs_val *of_bank(const struct hs_rows *rows, int64_t bank_no)
{
	for (size_t i = 0; i < rows->n; i++)
		if (hs_row(rows, i)[0].i == bank_no)
			return hs_row(rows, i) + 1;
	return NULL;
}

static enum hs_rc fill(struct hs_db *db, struct hs_pool *pool, const struct hs_rows *found,
	struct hs_bank_listed *list, size_t *ret_n, struct hs_err *err)
{
	int64_t *nos = HS_NEW_ARRAY(pool, int64_t, found->n);
	struct hs_rows facts, documents;
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++)
		nos[i] = hs_row(found, i)[0].i;
	HS_TRY(by_bank(db, pool, "SELECT bank_no, COUNT(*) FROM memory_units", nos, found->n,
		&facts, err));
	HS_TRY(by_bank(db, pool, "SELECT bank_no, MAX(created_at) FROM documents", nos, found->n,
		&documents, err));
	for (size_t i = 0; i < found->n; i++) {
		const struct hs_val *count = of_bank(&facts, nos[i]),
			*document = of_bank(&documents, nos[i]);
		const struct hs_val *written = &hs_row(found, i)[1];
		struct hs_bank_listed *b = &list[n];
		enum hs_rc rc = hs_bank_find_no(db, pool, nos[i], &b->bank, err);

		if (rc == HS_E_BANK_MISSING)
			continue;
		HS_TRY(rc);
		b->fact_count = count ? count->i : 0;
		b->last_document_us = document && !document->null ? document->i : HS_TIME_NONE;
		b->last_write_us = written->null ? HS_TIME_NONE : written->i;
		n++;
	}
	*ret_n = n;
	return HS_OK;
}

enum hs_rc hs_banks_list(struct hs_db *db, struct hs_pool *pool, const char *q, int64_t limit,
	int64_t offset, struct hs_bank_listed **ret, size_t *ret_n, int64_t *ret_total,
	struct hs_err *err)
{
	struct hs_rows found;

	*ret = NULL;
	*ret_n = 0;
	HS_TRY(count_banks(db, pool, q, ret_total, err));
	if (limit == 0 || *ret_total == 0)
		return HS_OK;
	HS_TRY(page(db, pool, q, limit, offset, &found, err));
	if (found.n == 0)
		return HS_OK;
	*ret = HS_NEW_ARRAY(pool, struct hs_bank_listed, found.n);
	return fill(db, pool, &found, *ret, ret_n, err);
}

/* ---- change ---- */

struct change {
	struct hs_pool *pool;
	const struct hs_config *server;
	const char *bank_id;
	const struct hs_bank_change *want;
	struct hs_bank *bank;
	bool made, clear;
};

/* The locked row as it is committed; made when it is missing and may be. */
static enum hs_rc lock_bank(struct hs_db *db, struct change *c, struct hs_err *err)
{
	struct hs_rows rows;

	c->made = false;
	if (c->want->make)
		HS_TRY(hs_bank_ensure(db, c->pool, c->bank_id, c->bank, &c->made, err));
	else if (strlen(c->bank_id) > HS_BANK_ID_BYTES)
		return hs_bank_missing(c->bank_id, err);
	HS_TRY(hs_db_select(db, c->pool, sql[SQL_LOCK], HS_BINDS(hs_b_str(c->bank_id)), &rows,
		err));
	if (rows.n == 0)
		return c->want->make ?
			hs_fail(err, HS_E_DB_DEADLOCK, "bank '%s' came and went", c->bank_id) :
			hs_bank_missing(c->bank_id, err);
	return hs_bank_find(db, c->pool, c->bank_id, c->bank, err);
}

static enum hs_rc store(struct hs_db *db, struct change *c, const char *config, struct hs_err *err)
{
	struct hs_bank *b = c->bank;

	b->name = c->want->name ? c->want->name : b->name;
	b->config = config;
	b->updated_us = c->made ? b->created_us : hs_now_us();
	return hs_db_exec(db, sql[SQL_UPDATE], HS_BINDS(hs_b_str(b->name), hs_b_str(b->config),
		hs_b_time(b->updated_us), hs_b_int(b->bank_no)), NULL, err);
}

static enum hs_rc change(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct change *c = arg;
	json_t *stored, *merged;

	HS_TRY(lock_bank(db, c, err));
	if (c->clear)
		return store(db, c, "{}", err);
	if (!c->want->name && json_object_size(c->want->updates) == 0)
		return HS_OK;
	if (json_object_size(c->want->updates) == 0)
		return store(db, c, c->bank->config, err);
	HS_TRY(hs_json_load(c->pool, c->bank->config, &stored, err));
	HS_TRY(hs_overrides_patch_shaped(c->pool, c->server, c->want->page_trigger, stored,
		c->want->updates, &merged, err));
	return store(db, c, hs_json_text(c->pool, merged), err);
}

enum hs_rc hs_bank_change(struct hs_db *db, struct hs_pool *pool, const struct hs_config *server,
	const char *bank_id, const struct hs_bank_change *want, struct hs_bank *ret,
	bool *ret_made, struct hs_err *err)
{
	struct change c = {.pool = pool, .server = server, .bank_id = bank_id, .want = want,
		.bank = ret};

	HS_TRY(hs_tx_run(db, change, &c, err));
	if (ret_made)
		*ret_made = c.made;
	return HS_OK;
}

enum hs_rc hs_bank_config_clear(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	struct hs_bank *ret, struct hs_err *err)
{
	static const struct hs_bank_change nothing;
	struct change c = {.pool = pool, .bank_id = bank_id, .want = &nothing, .bank = ret,
		.clear = true};

	return hs_tx_run(db, change, &c, err);
}

/* ---- delete ---- */

struct removal {
	struct hs_pool *pool;
	const char *bank_id;
	int64_t count;
};

static enum hs_rc add_count(struct hs_db *db, struct removal *r, int which, int64_t bank_no,
	struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, r->pool, sql[which], HS_BINDS(hs_b_int(bank_no)), &rows, err));
	r->count += rows.v[0].i;
	return HS_OK;
}

static enum hs_rc remove_rows(struct hs_db *db, const struct removal *r, int64_t bank_no,
	struct hs_err *err)
{
	static const int statements[] = {
		SQL_DELETE_BANK, SQL_DELETE_OPERATIONS, SQL_DELETE_STATS, SQL_DELETE_CLOCK
	};

	for (size_t i = 0; i < HS_COUNT(statements); i++)
		HS_TRY(hs_db_exec(db, sql[statements[i]], HS_BINDS(hs_b_int(bank_no)), NULL, err));
	return hs_db_exec(db, sql[SQL_PURGE],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(r->bank_id), hs_b_time(hs_now_us())), NULL,
			err);
}

static enum hs_rc remove_bank(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct removal *r = arg;
	struct hs_err gone = {0};
	struct hs_bank bank;
	enum hs_rc rc = hs_bank_find(db, r->pool, r->bank_id, &bank, &gone);

	r->count = 0;
	if (rc == HS_OK)
		rc = hs_clock_lock(db, bank.bank_no, &gone);
	/* missing, or another delete was first */
	if (rc == HS_E_BANK_MISSING)
		return HS_OK;
	if (rc != HS_OK) {
		*err = gone;
		return rc;
	}
	HS_TRY(add_count(db, r, SQL_COUNT_UNITS, bank.bank_no, err));
	HS_TRY(add_count(db, r, SQL_COUNT_ENTITIES, bank.bank_no, err));
	HS_TRY(add_count(db, r, SQL_COUNT_DOCUMENTS, bank.bank_no, err));
	return remove_rows(db, r, bank.bank_no, err);
}

enum hs_rc hs_bank_delete(struct hs_db *db, const char *bank_id, int64_t *ret_count,
	struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct removal r = {.pool = pool, .bank_id = bank_id};

	HS_TRY(hs_tx_run(db, remove_bank, &r, err));
	*ret_count = r.count;
	return HS_OK;
}
