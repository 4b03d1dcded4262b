#include "store/stats.h"

#include "base/clock.h"
#include "base/log.h"
#include "json/json.h"

#define TEMPORAL_NEIGHBOURS 20

enum {
	SQL_NODES, SQL_DATED, SQL_LINKS, SQL_ENTITY_LINKS, SQL_DOCUMENTS, SQL_OPERATIONS,
	SQL_LAST_WRITE, SQL_CACHE_GET, SQL_CACHE_PUT, SQL_CACHE_DROP
};
static const char *const sql[] = {
	[SQL_NODES] = ("SELECT fact_type, COUNT(*), MAX(consolidated_at), "
		"SUM(consolidated_at IS NULL AND consolidation_failed_at IS NULL), "
		"SUM(consolidation_failed_at IS NOT NULL) "
		"FROM memory_units WHERE bank_no = ? GROUP BY fact_type"),
	[SQL_DATED] = ("SELECT COUNT(*) FROM memory_units WHERE bank_no = ? AND fact_type IN ('world', "
		"'experience') AND event_date IS NOT NULL GROUP BY fact_type"),
	[SQL_LINKS] = "SELECT link_type, COUNT(*) FROM memory_links WHERE bank_no = ? GROUP BY link_type",
	/* each unit to its next 10 sharing the entity */
	[SQL_ENTITY_LINKS] = ("SELECT COALESCE(SUM(LEAST(t.n - 1, 10)), 0) FROM (SELECT COUNT(*) AS n FROM "
		"unit_entities WHERE bank_no = ? GROUP BY entity_no) t"),
	[SQL_DOCUMENTS] = "SELECT COUNT(*) FROM documents WHERE bank_no = ?",
	[SQL_OPERATIONS] = "SELECT status, COUNT(*) FROM async_operations WHERE bank_no = ? GROUP BY status",
	[SQL_LAST_WRITE] = "SELECT MAX(updated_at) FROM memory_units WHERE bank_no = ?",
	[SQL_CACHE_GET] = "SELECT body FROM bank_stats_cache WHERE bank_no = ? AND computed_at > ?",
	/* nothing is kept for a bank that went away meanwhile */
	[SQL_CACHE_PUT] = ("INSERT INTO bank_stats_cache (bank_no, computed_at, body) "
		"SELECT bank_no, ?, ? FROM banks WHERE bank_no = ? "
		"ON DUPLICATE KEY UPDATE computed_at = VALUES(computed_at), body = VALUES(body)"),
	[SQL_CACHE_DROP] = "DELETE FROM bank_stats_cache WHERE bank_no = ?",
};
HS_SQL_LIST(hs_stats_sql, sql);

static void set_int(json_t *obj, const char *key, int64_t v)
{
	json_object_set_new(obj, key, json_integer(v));
}

/* {"name": count, …} of a statement's rows; *ret_sum is the sum of the counts. */
static json_t *counts(const struct hs_rows *rows, int64_t *ret_sum)
{
	json_t *obj = json_object();

	*ret_sum = 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct hs_val *row = hs_row(rows, i);

		set_int(obj, row[0].s, row[1].i);
		*ret_sum += row[1].i;
	}
	return obj;
}

static enum hs_rc run(struct hs_db *db, struct hs_pool *pool, int which, int64_t bank_no,
	struct hs_rows *ret, struct hs_err *err)
{
	return hs_db_select(db, pool, sql[which], HS_BINDS(hs_b_int(bank_no)), ret, err);
}

static enum hs_rc add_nodes(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, json_t *out,
	struct hs_err *err)
{
	int64_t total, last_us = HS_TIME_NONE, pending = 0, failed = 0, observations = 0;
	struct hs_rows rows;
	json_t *by_type;

	HS_TRY(run(db, pool, SQL_NODES, bank_no, &rows, err));
	by_type = counts(&rows, &total);
	for (size_t i = 0; i < rows.n; i++) {
		const struct hs_val *row = hs_row(&rows, i);

		if (!row[2].null && row[2].i > last_us)
			last_us = row[2].i;
		if (hs_str_eq(row[0].s, "observation")) {
			observations = row[1].i;
			continue;
		}
		pending += row[3].i;
		failed += row[4].i;
	}
	set_int(out, "total_nodes", total);
	json_object_set_new(out, "nodes_by_fact_type", by_type);
	json_object_set_new(out, "last_consolidated_at",
		last_us == HS_TIME_NONE ? json_null() : json_string(hs_time_text(pool, last_us)));
	set_int(out, "pending_consolidation", pending);
	set_int(out, "failed_consolidation", failed);
	set_int(out, "total_observations", observations);
	return HS_OK;
}

/* Neighbours in time are derived: each dated fact has up to 20 of its own type. */
static enum hs_rc temporal_links(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t *ret, struct hs_err *err)
{
	struct hs_rows rows;

	*ret = 0;
	HS_TRY(run(db, pool, SQL_DATED, bank_no, &rows, err));
	for (size_t i = 0; i < rows.n; i++) {
		int64_t n = hs_row(&rows, i)[0].i;

		*ret += n * (n - 1 < TEMPORAL_NEIGHBOURS ? n - 1 : TEMPORAL_NEIGHBOURS);
	}
	return HS_OK;
}

static enum hs_rc add_links(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, json_t *out,
	struct hs_err *err)
{
	struct hs_rows stored, entity;
	int64_t total, temporal;
	json_t *by_type;

	HS_TRY(run(db, pool, SQL_LINKS, bank_no, &stored, err));
	HS_TRY(run(db, pool, SQL_ENTITY_LINKS, bank_no, &entity, err));
	HS_TRY(temporal_links(db, pool, bank_no, &temporal, err));
	by_type = counts(&stored, &total);
	if (temporal > 0)
		set_int(by_type, "temporal", temporal);
	if (entity.v[0].i > 0)
		set_int(by_type, "entity", entity.v[0].i);
	set_int(out, "total_links", total + temporal + entity.v[0].i);
	json_object_set_new(out, "links_by_link_type", by_type);
	json_object_set_new(out, "links_by_fact_type", json_object());
	json_object_set_new(out, "links_breakdown", json_object());
	return HS_OK;
}

static enum hs_rc add_operations(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	json_t *out, struct hs_err *err)
{
	struct hs_rows rows;
	json_t *by_status;
	int64_t total;

	HS_TRY(run(db, pool, SQL_OPERATIONS, bank_no, &rows, err));
	by_status = counts(&rows, &total);
	set_int(out, "pending_operations", hs_json_int(by_status, "pending", 0));
	set_int(out, "failed_operations", hs_json_int(by_status, "failed", 0));
	json_object_set_new(out, "operations_by_status", by_status);
	return HS_OK;
}

static enum hs_rc compute(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, json_t **ret,
	struct hs_err *err)
{
	json_t *out = hs_json_keep(pool, json_object());
	struct hs_rows documents;

	HS_TRY(add_nodes(db, pool, bank_no, out, err));
	HS_TRY(add_links(db, pool, bank_no, out, err));
	HS_TRY(run(db, pool, SQL_DOCUMENTS, bank_no, &documents, err));
	set_int(out, "total_documents", documents.v[0].i);
	HS_TRY(add_operations(db, pool, bank_no, out, err));
	*ret = out;
	return HS_OK;
}

/* NULL when nothing fresh is cached, or the cache cannot be read. */
static json_t *cached(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t ttl_s)
{
	int64_t oldest_us = hs_now_us() - ttl_s * HS_SECOND_US;
	struct hs_err err = {0};
	struct hs_rows rows;
	json_t *body;

	if (hs_db_select(db, pool, sql[SQL_CACHE_GET], HS_BINDS(hs_b_int(bank_no),
		hs_b_time(oldest_us)), &rows, &err) == HS_OK) {
		if (rows.n == 0)
			return NULL;
		if (hs_json_load(pool, rows.v[0].s, &body, &err) == HS_OK && json_is_object(body))
			return body;
	}
	hs_log(HS_LOG_DEBUG, "stats_cache", "error=%s", hs_log_quote(err.msg));
	return NULL;
}

static void keep(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const json_t *body)
{
	struct hs_err err = {0};

	if (hs_db_exec(db, sql[SQL_CACHE_PUT], HS_BINDS(hs_b_time(hs_now_us()),
		hs_b_str(hs_json_text(pool, body)), hs_b_int(bank_no)), NULL, &err) != HS_OK)
		hs_log(HS_LOG_DEBUG, "stats_cache", "error=%s", hs_log_quote(err.msg));
}

enum hs_rc hs_stats_get(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t ttl_s,
	bool refresh, json_t **ret, struct hs_err *err)
{
	json_t *body = ttl_s > 0 && !refresh ? cached(db, pool, bank_no, ttl_s) : NULL;

	if (!body) {
		HS_TRY(compute(db, pool, bank_no, &body, err));
		if (ttl_s > 0)
			keep(db, pool, bank_no, body);
	}
	*ret = body;
	return HS_OK;
}

enum hs_rc hs_stats_last_write(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t *ret_us, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(run(db, pool, SQL_LAST_WRITE, bank_no, &rows, err));
	*ret_us = rows.v[0].null ? HS_TIME_NONE : rows.v[0].i;
	return HS_OK;
}

enum hs_rc hs_stats_forget(struct hs_db *db, int64_t bank_no, struct hs_err *err)
{
	return hs_db_exec(db, sql[SQL_CACHE_DROP], HS_BINDS(hs_b_int(bank_no)), NULL, err);
}
