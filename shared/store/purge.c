#include "store/purge.h"

#define DELETE_FROM(table) "DELETE FROM " table " WHERE bank_no = ? LIMIT ?"

/* Side tables before the rows they point at, so that a broken run leaves no row without its owner. */
enum { SQL_NEXT, SQL_DONE, SQL_TABLES };
static const char *const sql[] = {
	[SQL_NEXT] = "SELECT bank_no FROM purge_queue ORDER BY queued_at, bank_no LIMIT 1",
	[SQL_DONE] = "DELETE FROM purge_queue WHERE bank_no = ?",
	[SQL_TABLES] = DELETE_FROM("postings"),
	DELETE_FROM("posting_terms"),
	DELETE_FROM("posting_stats"),
	DELETE_FROM("unit_embeddings"),
	DELETE_FROM("memory_links"),
	DELETE_FROM("unit_entities"),
	DELETE_FROM("entity_cooccurrences"),
	DELETE_FROM("entities"),
	DELETE_FROM("unit_tags"),
	DELETE_FROM("observation_sources"),
	DELETE_FROM("observation_history"),
	DELETE_FROM("memory_units"),
	DELETE_FROM("chunks"),
	DELETE_FROM("document_tags"),
	DELETE_FROM("documents"),
	DELETE_FROM("mental_model_tags"),
	DELETE_FROM("mental_model_history"),
	DELETE_FROM("mental_models"),
	DELETE_FROM("directive_tags"),
	DELETE_FROM("directives"),
	DELETE_FROM("bank_stats_cache"),
	DELETE_FROM("async_operations"),
};
HS_SQL_LIST(hs_purge_sql, sql);

enum hs_rc hs_purge_step(struct hs_db *db, struct hs_pool *pool, int64_t rows, bool *ret_more, struct hs_err *err)
{
	struct hs_rows next;
	uint64_t deleted;

	HS_TRY(hs_db_select(db, pool, sql[SQL_NEXT], HS_NO_BINDS, &next, err));
	*ret_more = next.n > 0;
	if (next.n == 0)
		return HS_OK;
	for (size_t i = SQL_TABLES; i < HS_COUNT(sql); i++) {
		HS_TRY(hs_db_exec(db, sql[i], HS_BINDS(hs_b_int(next.v[0].i), hs_b_int(rows)), &deleted, err));
		if (deleted > 0)
			return HS_OK;
	}
	return hs_db_exec(db, sql[SQL_DONE], HS_BINDS(hs_b_int(next.v[0].i)), NULL, err);
}
