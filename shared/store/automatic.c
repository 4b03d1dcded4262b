#include "store/automatic.h"

#include "base/clock.h"
#include "db/tx.h"

#define C_MODEL                                                                                    \
	"m.bank_no, m.id, m.name, m.tags, m.trigger_json, m.last_refreshed_at,"                    \
	" m.last_memory_seen_at, m.read_until, m.last_refresh_failed_at, m.last_full_refreshed_at"

enum { SQL_AFTER_CONSOLIDATION, SQL_SCHEDULED, SQL_COUNT };

static const char *const sql[] = {
	[SQL_AFTER_CONSOLIDATION] =
		"SELECT " C_MODEL ", NULL FROM mental_models m WHERE m.bank_no = ?"
		" AND m.after_consolidation = 1 AND m.last_refresh_failed_at IS NULL"
		" ORDER BY m.id",
	/* every bank's: the tick serves the whole installation, a page at a time */
	[SQL_SCHEDULED] = "SELECT " C_MODEL ", m.last_cron_checked_at FROM mental_models m"
			  " FORCE INDEX (mental_models_cron) WHERE m.has_cron = 1"
			  " AND (m.bank_no > ? OR (m.bank_no = ? AND m.id > ?))"
			  " AND m.last_refresh_failed_at IS NULL ORDER BY m.bank_no, m.id LIMIT ?",
	[SQL_COUNT] = "SELECT (SELECT COUNT(*) FROM mental_models WHERE has_cron = 1),"
		      " (SELECT COUNT(*) FROM mental_models WHERE last_refresh_failed_at IS NOT NULL"
		      " AND (has_cron = 1 OR after_consolidation = 1)),"
		      " (SELECT updated_at FROM server_state WHERE name = '" HS_TICK_STATE "')",
};
HS_SQL_LIST(hs_automatic_sql, sql);

#define T struct hs_auto_model
static const struct hs_col columns[] = {
	HS_COL_INT(T, m.bank_no),
	HS_COL_STR(T, m.id),
	HS_COL_STR(T, m.name),
	HS_COL_STR(T, m.tags),
	HS_COL_STR(T, m.trigger),
	HS_COL_TIME(T, m.last_refreshed_us),
	HS_COL_TIME(T, m.last_memory_seen_us),
	HS_COL_TIME(T, m.read_until_us),
	HS_COL_TIME(T, m.last_refresh_failed_us),
	HS_COL_TIME(T, m.last_full_refreshed_us),
	HS_COL_TIME(T, cron_checked_us),
};
#undef T

static struct hs_auto_model *models(struct hs_pool *pool, const struct hs_rows *rows)
{
	return hs_rows_read(pool, columns, HS_COUNT(columns), sizeof(struct hs_auto_model), rows);
}

enum hs_rc hs_auto_after_consolidation(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_mm **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_auto_model *v;
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_AFTER_CONSOLIDATION], HS_BINDS(hs_b_int(bank_no)), &rows, err));
	v = models(pool, &rows);
	*ret = HS_NEW_ARRAY(pool, struct hs_mm, rows.n ? rows.n : 1);
	*ret_n = rows.n;
	for (size_t i = 0; i < rows.n; i++)
		(*ret)[i] = v[i].m;
	return HS_OK;
}

enum hs_rc hs_auto_scheduled(struct hs_db *db, struct hs_pool *pool, int64_t after_no,
	const char *after_id, size_t limit, struct hs_auto_model **ret, size_t *ret_n,
	struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_SCHEDULED],
		HS_BINDS(hs_b_int(after_no), hs_b_int(after_no), hs_b_str(after_id),
			hs_b_int((int64_t)limit)),
		&rows, err));
	*ret = models(pool, &rows);
	*ret_n = rows.n;
	return HS_OK;
}

enum hs_rc hs_auto_clocks(struct hs_db *db, struct hs_pool *pool, const int64_t *bank_no, size_t n,
	int64_t *ret_us, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	for (size_t i = 0; i < n; i++)
		ret_us[i] = HS_TIME_NONE;
	if (n == 0)
		return HS_OK;
	hs_sql_add(&q, "SELECT bank_no, last_write_at FROM bank_clock WHERE bank_no IN (");
	hs_sql_list_int(&q, bank_no, n);
	hs_sql_add(&q, ")");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < rows.n; k++)
			if (hs_row(&rows, k)[0].i == bank_no[i])
				ret_us[i] = hs_row(&rows, k)[1].i;
	return HS_OK;
}

/* "(bank_no = ? AND <key> IN (…)) OR …": a part a bank, so that the index is used, in its order. */
static void of_models(struct hs_sql *q, const char *key, const struct hs_mm *const *v, size_t n)
{
	size_t end;

	hs_sql_add(q, "(");
	for (size_t at = 0; at < n; at = end) {
		struct hs_strs ids = {0, NULL};

		for (end = at; end < n && v[end]->bank_no == v[at]->bank_no; end++)
			hs_strs_add(q->pool, &ids, v[end]->id);
		hs_sql_add(q, at ? " OR (bank_no = ? AND " : "(bank_no = ? AND ");
		hs_sql_bind(q, hs_b_int(v[at]->bank_no));
		hs_sql_add(q, key);
		hs_sql_add(q, " IN (");
		hs_sql_list_str(q, &ids);
		hs_sql_add(q, "))");
	}
	hs_sql_add(q, ")");
}

enum hs_rc hs_auto_open(struct hs_db *db, struct hs_pool *pool, const struct hs_mm *const *v,
	size_t n, bool *ret_open, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	for (size_t i = 0; i < n; i++)
		ret_open[i] = false;
	if (n == 0)
		return HS_OK;
	hs_sql_add(&q, "SELECT bank_no, subject_id FROM async_operations WHERE operation_type ="
		       " 'refresh_mental_model' AND status IN ('pending', 'processing') AND ");
	of_models(&q, "subject_id", v, n);
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < rows.n && !ret_open[i]; k++)
			ret_open[i] = hs_row(&rows, k)[0].i == v[i]->bank_no &&
				      hs_str_eq(hs_row(&rows, k)[1].s, v[i]->id);
	return HS_OK;
}

struct checking {
	struct hs_pool *pool;
	const struct hs_mm *const *v;
	size_t n;
	int64_t now_us;
};

static enum hs_rc check_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct checking *c = arg;
	struct hs_sql q = hs_sql_new(c->pool);

	hs_sql_add(&q, "UPDATE mental_models SET last_cron_checked_at = ? WHERE ");
	hs_sql_bind(&q, hs_b_time(c->now_us));
	of_models(&q, "id", c->v, c->n);
	return hs_sql_exec(db, &q, NULL, err);
}

enum hs_rc hs_auto_checked(struct hs_db *db, struct hs_pool *pool, const struct hs_mm *const *v,
	size_t n, int64_t now_us, struct hs_err *err)
{
	struct checking c = {pool, v, n, now_us};

	return n > 0 ? hs_tx_run(db, check_in_tx, &c, err) : HS_OK;
}

enum hs_rc hs_auto_count(struct hs_db *db, struct hs_pool *pool, struct hs_auto_counts *ret,
	struct hs_err *err)
{
	static const struct hs_col cols[] = {
		HS_COL_INT(struct hs_auto_counts, scheduled),
		HS_COL_INT(struct hs_auto_counts, paused),
		HS_COL_TIME(struct hs_auto_counts, tick_us),
	};
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_COUNT], HS_NO_BINDS, &rows, err));
	hs_row_read(pool, cols, HS_COUNT(cols), rows.v, ret);
	return HS_OK;
}
