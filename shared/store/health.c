#include "store/health.h"

#include "db/row.h"

/* Over all banks by design: these are facts of the installation. */
enum { SQL_FACTS, SQL_CONNECTIONS, SQL_VECTORS, SQL_BANKS, SQL_WAITING_OPERATIONS,
	SQL_WAITING_MEMORIES };
static const char *const sql[] = {
	[SQL_FACTS] = ("SELECT VERSION(), @@max_connections, @@max_allowed_packet, "
		"@@innodb_flush_log_at_trx_commit = 1"),
	[SQL_CONNECTIONS] = ("SELECT CAST(variable_value AS SIGNED) FROM "
		"information_schema.global_status WHERE variable_name = 'Threads_connected'"),
	[SQL_VECTORS] = ("SELECT COALESCE(SUM(e.tag = ?), 0), COALESCE(SUM(e.tag <> ?), 0) FROM "
		"unit_embeddings v JOIN embedders e ON e.embedder_no = v.embedder_no"),
	[SQL_BANKS] = "SELECT (SELECT COUNT(*) FROM banks), (SELECT COUNT(*) FROM purge_queue)",
	[SQL_WAITING_OPERATIONS] = ("SELECT operation_type, status, COUNT(*) FROM async_operations "
		"WHERE status IN ('pending', 'processing', 'failed') AND is_parent = 0 "
		"GROUP BY operation_type, status"),
	/* one range of memory_units_pending a bank */
	[SQL_WAITING_MEMORIES] = ("SELECT COALESCE(SUM(u.consolidation_failed_at IS NULL), 0), "
		"COALESCE(SUM(u.consolidation_failed_at IS NOT NULL), 0) FROM banks b "
		"JOIN memory_units u ON u.bank_no = b.bank_no AND u.consolidated_at IS NULL "
		"AND u.fact_type IN ('world', 'experience')"),
};
HS_SQL_LIST(hs_health_sql, sql);

enum hs_rc hs_server_facts(
	struct hs_db *db, struct hs_pool *pool, struct hs_server_facts *ret, struct hs_err *err)
{
	struct hs_rows facts, connections;

	HS_TRY(hs_db_select(db, pool, sql[SQL_FACTS], HS_NO_BINDS, &facts, err));
	HS_TRY(hs_db_select(db, pool, sql[SQL_CONNECTIONS], HS_NO_BINDS, &connections, err));
	*ret = (struct hs_server_facts){
		.version = facts.v[0].s,
		.max_connections = facts.v[1].i,
		.max_packet = facts.v[2].i,
		.durable = facts.v[3].i != 0,
		.connections = connections.n ? connections.v[0].i : 0,
	};
	return HS_OK;
}

enum hs_rc hs_vector_counts(struct hs_db *db, struct hs_pool *pool, const char *tag,
	int64_t *ret_own, int64_t *ret_foreign, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_VECTORS], HS_BINDS(hs_b_str(tag), hs_b_str(tag)), &rows, err));
	*ret_own = rows.v[0].i;
	*ret_foreign = rows.v[1].i;
	return HS_OK;
}

enum hs_rc hs_bank_counts(struct hs_db *db, struct hs_pool *pool, int64_t *ret_banks,
	int64_t *ret_purging, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_BANKS], HS_NO_BINDS, &rows, err));
	*ret_banks = rows.v[0].i;
	*ret_purging = rows.v[1].i;
	return HS_OK;
}

enum hs_rc hs_backlog(
	struct hs_db *db, struct hs_pool *pool, struct hs_backlog *ret, struct hs_err *err)
{
	struct hs_rows memories;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_WAITING_OPERATIONS], HS_NO_BINDS, &ret->operations, err));
	HS_TRY(hs_db_select(db, pool, sql[SQL_WAITING_MEMORIES], HS_NO_BINDS, &memories, err));
	ret->unconsolidated = memories.v[0].i;
	ret->consolidation_failed = memories.v[1].i;
	return HS_OK;
}
