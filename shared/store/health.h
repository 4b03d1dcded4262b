/*
 * health - what `hindsight-admin check` and /metrics ask the database.
 *
 * Floor:   store. Reads server variables, embedders, unit_embeddings, async_operations,
 *          memory_units over all banks.
 */
#ifndef HS_STORE_HEALTH_H
#define HS_STORE_HEALTH_H

#include "db/db.h"

struct hs_server_facts {
	const char *version;
	int64_t max_connections, connections, max_packet;
	bool durable; /* a commit is on disk when it is acknowledged */
};
HS_MUST enum hs_rc hs_server_facts(
	struct hs_db *db, struct hs_pool *pool, struct hs_server_facts *ret, struct hs_err *err);
/* Vectors of the embedder with this tag, and of every other. */
HS_MUST enum hs_rc hs_vector_counts(struct hs_db *db, struct hs_pool *pool, const char *tag,
	int64_t *ret_own, int64_t *ret_foreign, struct hs_err *err);
/* Banks there are, and deleted ones whose rows are still to be removed. */
HS_MUST enum hs_rc hs_bank_counts(struct hs_db *db, struct hs_pool *pool, int64_t *ret_banks,
	int64_t *ret_purging, struct hs_err *err);

/* Work that waits, over all banks. */
struct hs_backlog {
	struct hs_rows operations;  /* type, status (pending, processing, failed), count */
	int64_t unconsolidated, consolidation_failed;  /* memories */
};
HS_MUST enum hs_rc hs_backlog(struct hs_db *db, struct hs_pool *pool, struct hs_backlog *ret, struct hs_err *err);

extern const struct hs_sql_list hs_health_sql;

#endif
