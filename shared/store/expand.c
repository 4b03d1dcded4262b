#include "store/expand.h"

#include "base/clock.h"
#include "db/row.h"

static const struct hs_col columns[] = {
	HS_COL_STR(struct hs_expand_row, id),
	HS_COL_STR(struct hs_expand_row, text),
	HS_COL_STR(struct hs_expand_row, fact_type),
	HS_COL_STR(struct hs_expand_row, context),
	HS_COL_TIME(struct hs_expand_row, occurred_start_us),
	HS_COL_TIME(struct hs_expand_row, occurred_end_us),
	HS_COL_TIME(struct hs_expand_row, mentioned_us),
	HS_COL_STR(struct hs_expand_row, metadata),
	HS_COL_STRS(struct hs_expand_row, tags),
	HS_COL_STR(struct hs_expand_row, document_id),
	HS_COL_INT(struct hs_expand_row, chunk_index),
	HS_COL_STR(struct hs_expand_row, chunk_text),
	HS_COL_BOOL(struct hs_expand_row, document_found),
	HS_COL_STRS(struct hs_expand_row, document_tags),
	HS_COL_STR(struct hs_expand_row, retain_params),
	HS_COL_STR(struct hs_expand_row, original_text),
};

enum hs_rc hs_store_expand(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_strs *ids, bool with_text, struct hs_expand_row **ret, size_t *ret_n,
	struct hs_err *err)
{
	struct hs_sql q;
	struct hs_rows rows;

	if (ids->n == 0) {
		*ret = NULL;
		*ret_n = 0;
		return HS_OK;
	}
	q = hs_sql_new(pool);
	hs_sql_add(&q,
		"SELECT u.id, u.text, u.fact_type, u.context, u.occurred_start, u.occurred_end, "
		"u.mentioned_at,"
		" u.metadata, u.tags, u.document_id, IFNULL(u.chunk_index, -1), c.chunk_text,"
		" d.document_id IS NOT NULL, d.tags");
	hs_sql_add(&q, with_text ? ", d.retain_params, d.original_text" : ", NULL, NULL");
	hs_sql_add(&q,
		" FROM memory_units u"
		" LEFT JOIN documents d ON d.bank_no = u.bank_no AND d.document_id = u.document_id"
		" LEFT JOIN chunks c ON c.bank_no = u.bank_no AND c.document_id = u.document_id"
		" AND c.chunk_index = u.chunk_index"
		" WHERE u.bank_no = ? AND u.id IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_str(&q, ids);
	hs_sql_add(&q, ")");
	HS_TRY(hs_sql_select(db, &q, &rows, err));

	*ret = hs_rows_read(pool, columns, HS_COUNT(columns), sizeof(**ret), &rows);
	*ret_n = rows.n;
	return HS_OK;
}
