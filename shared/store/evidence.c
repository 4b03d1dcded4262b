#include "store/evidence.h"

#include "base/clock.h"
#include "db/row.h"

enum { SQL_PENDING };
static const char *const sql[] = {
	[SQL_PENDING] = "SELECT COUNT(*) FROM (SELECT 1 FROM memory_units WHERE bank_no = ?"
			" AND consolidated_at IS NULL AND consolidation_failed_at IS NULL"
			" AND fact_type IN ('world', 'experience') LIMIT ?) p",
};
HS_SQL_LIST(hs_evidence_sql, sql);

static const struct hs_col columns[] = {
	HS_COL_STR(struct hs_evidence_row, id),
	HS_COL_STR(struct hs_evidence_row, context),
	HS_COL_STR(struct hs_evidence_row, document_id),
	HS_COL_STR(struct hs_evidence_row, metadata),
	HS_COL_INT(struct hs_evidence_row, chunk_index),
	HS_COL_TIME(struct hs_evidence_row, mentioned_us),
	HS_COL_STRS(struct hs_evidence_row, tags),
};

enum hs_rc hs_store_evidence(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_strs *ids, struct hs_evidence_row **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_sql q;
	struct hs_rows rows;

	if (ids->n == 0) {
		*ret = NULL;
		*ret_n = 0;
		return HS_OK;
	}
	q = hs_sql_new(pool);
	hs_sql_add(&q, "SELECT id, context, document_id, metadata, IFNULL(chunk_index, -1), "
		       "mentioned_at, tags"
		       " FROM memory_units WHERE bank_no = ? AND id IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_str(&q, ids);
	hs_sql_add(&q, ")");
	HS_TRY(hs_sql_select(db, &q, &rows, err));

	*ret = hs_rows_read(pool, columns, HS_COUNT(columns), sizeof(**ret), &rows);
	*ret_n = rows.n;
	return HS_OK;
}

enum hs_rc hs_store_pending(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t most,
	int64_t *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_PENDING], HS_BINDS(hs_b_int(bank_no), hs_b_int(most)),
		&rows, err));

	*ret = rows.n > 0 ? hs_row(&rows, 0)[0].i : 0;
	return HS_OK;
}

enum hs_rc hs_store_model_ids(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, int64_t most, struct hs_strs *ret, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	*ret = (struct hs_strs){0};
	hs_sql_add(&q, "SELECT m.id FROM mental_models m WHERE m.bank_no = ?");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_scope_sql(&q, scope, &hs_scope_models);
	hs_sql_add(&q, " ORDER BY m.last_refreshed_at DESC, m.id LIMIT ?");
	hs_sql_bind(&q, hs_b_int(most));
	HS_TRY(hs_sql_select(db, &q, &rows, err));

	for (size_t i = 0; i < rows.n; i++)
		hs_strs_add(pool, ret, hs_row(&rows, i)[0].s);
	return HS_OK;
}
