#include "store/entity_read.h"

#include "db/row.h"

#define ITEM_COLUMNS                                                                               \
	"e.id, e.canonical_name, e.metadata, e.mention_count, e.first_seen, e.last_seen"

static const struct hs_col item_cols[] = {
	HS_COL_STR(struct hs_entity_item, id),
	HS_COL_STR(struct hs_entity_item, canonical_name),
	HS_COL_STR(struct hs_entity_item, metadata),
	HS_COL_INT(struct hs_entity_item, mention_count),
	HS_COL_TIME(struct hs_entity_item, first_seen_us),
	HS_COL_TIME(struct hs_entity_item, last_seen_us),
};

enum { SQL_COUNT, SQL_LIST, SQL_GET };
static const char *const sql[] = {
	[SQL_COUNT] = "SELECT COUNT(*) FROM entities WHERE bank_no = ?",
	[SQL_LIST] = "SELECT " ITEM_COLUMNS " FROM entities e WHERE e.bank_no = ? "
		     "ORDER BY e.mention_count DESC, e.last_seen DESC, e.id LIMIT ? OFFSET ?",
	[SQL_GET] = "SELECT " ITEM_COLUMNS " FROM entities e JOIN banks b ON b.bank_no = e.bank_no "
		    "WHERE b.bank_id = ? AND e.id = ?",
};
HS_SQL_LIST(hs_entity_read_sql, sql);

enum hs_rc hs_entity_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t limit,
	int64_t offset, struct hs_entity_item **ret, size_t *ret_n, int64_t *ret_total,
	struct hs_err *err)
{
	struct hs_rows count, rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_COUNT], HS_BINDS(hs_b_int(bank_no)), &count, err));
	HS_TRY(hs_db_select(db, pool, sql[SQL_LIST],
		HS_BINDS(hs_b_int(bank_no), hs_b_int(limit), hs_b_int(offset)), &rows, err));
	*ret = hs_rows_read(pool, item_cols, HS_COUNT(item_cols), sizeof(**ret), &rows);
	*ret_n = rows.n;
	*ret_total = hs_row(&count, 0)[0].i;
	return HS_OK;
}

enum hs_rc hs_entity_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, struct hs_entity_item *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_GET], HS_BINDS(hs_b_str(bank_id), hs_b_str(id)), &rows, err));
	if (rows.n == 0)
		return hs_fail(err, HS_E_NOT_FOUND, "Entity %s not found", id);
	hs_row_read(pool, item_cols, HS_COUNT(item_cols), hs_row(&rows, 0), ret);
	return HS_OK;
}
