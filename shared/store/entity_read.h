/*
 * entity_read - entities as clients read them.
 *
 * Floor:   store. Table entities. Rules: contract retain-recall 3.3.
 * Owns:    rows live in the pool given.
 * Errors:  HS_E_NOT_FOUND "Entity <id> not found" (a missing bank too).
 */
#ifndef HS_STORE_ENTITY_READ_H
#define HS_STORE_ENTITY_READ_H

#include "db/db.h"

struct hs_entity_item {
	const char *id, *canonical_name;
	const char *metadata; /* JSON text; NULL = none */
	int64_t mention_count, first_seen_us, last_seen_us;
};
/* Most mentioned first, then the latest seen. */
HS_MUST enum hs_rc hs_entity_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t limit, int64_t offset, struct hs_entity_item **ret, size_t *ret_n,
	int64_t *ret_total, struct hs_err *err);
HS_MUST enum hs_rc hs_entity_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, struct hs_entity_item *ret, struct hs_err *err);

extern const struct hs_sql_list hs_entity_read_sql;

#endif
