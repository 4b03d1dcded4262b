#include "store/pending.h"

#include "json/json.h"

enum { SQL_LIST, SQL_COUNT, SQL_WAITING, SQL_OLDEST, SQL_OBSERVATIONS };
static const char *const fragments[] = {
	[SQL_LIST] = "SELECT u.unit_no FROM memory_units u WHERE u.bank_no = ?",
	[SQL_COUNT] = "SELECT COUNT(*) FROM memory_units u WHERE u.bank_no = ?",
	[SQL_WAITING] = (" AND u.consolidated_at IS NULL AND u.consolidation_failed_at IS NULL AND "
			 "u.fact_type IN ('world','experience')"),
	[SQL_OLDEST] = " ORDER BY u.created_at, u.unit_no LIMIT ?",
	[SQL_OBSERVATIONS] = " AND u.fact_type = 'observation'",
};

/* One leaf a scope, joined by "or"; a scope without tags lets everything through. */
static struct hs_scope scope_of(struct hs_pool *pool, json_t *scopes)
{
	struct hs_scope s = hs_scope_all();
	size_t n = json_array_size(scopes), i;
	struct hs_group *any = HS_NEW(pool, struct hs_group);
	json_t *tags;

	if (n == 0)
		return s;
	any->kind = HS_GROUP_OR;
	any->kids = HS_NEW_ARRAY(pool, struct hs_group *, n);
	json_array_foreach(scopes, i, tags) {
		struct hs_group *leaf = HS_NEW(pool, struct hs_group);

		leaf->kind = HS_GROUP_LEAF;
		leaf->match = HS_ALL_STRICT;
		leaf->tags = hs_json_strs(pool, tags);
		if (leaf->tags.n == 0)
			return s;
		any->kids[any->n_kids++] = leaf;
	}
	s.has_groups = true;
	s.groups = hs_pool_memdup(pool, &any, sizeof(any));
	s.n_groups = 1;
	return s;
}

static struct hs_sql waiting(struct hs_pool *pool, int64_t bank_no, json_t *scopes, const char *head)
{
	struct hs_scope scope = scope_of(pool, scopes);
	struct hs_sql q = hs_sql_new(pool);

	hs_sql_add(&q, head);
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_add(&q, fragments[SQL_WAITING]);
	hs_scope_sql(&q, &scope, &hs_scope_units);
	return q;
}

enum hs_rc hs_pending_facts(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, json_t *scopes, int64_t max, struct hs_unit_row **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_sql q = waiting(pool, bank_no, scopes, fragments[SQL_LIST]);
	struct hs_rows rows;
	int64_t *nos;

	hs_sql_add(&q, fragments[SQL_OLDEST]);
	hs_sql_bind(&q, hs_b_int(max));
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	nos = HS_NEW_ARRAY(pool, int64_t, rows.n + 1);
	for (size_t i = 0; i < rows.n; i++)
		nos[i] = hs_row(&rows, i)[0].i;
	return hs_units_load(db, pool, bank_no, nos, rows.n, ret, ret_n, err);
}

enum hs_rc hs_pending_count(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, json_t *scopes, int64_t *ret_n, struct hs_err *err)
{
	struct hs_sql q = waiting(pool, bank_no, scopes, fragments[SQL_COUNT]);
	struct hs_rows rows;

	HS_TRY(hs_sql_select(db, &q, &rows, err));
	*ret_n = rows.n ? hs_row(&rows, 0)[0].i : 0;
	return HS_OK;
}

enum hs_rc hs_observations_count(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const struct hs_strs *tags, int64_t *ret_n, struct hs_err *err)
{
	struct hs_scope scope = hs_scope_all();
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	scope.tags = *tags;
	scope.match = HS_ALL_STRICT;
	hs_sql_add(&q, fragments[SQL_COUNT]);
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_add(&q, fragments[SQL_OBSERVATIONS]);
	hs_scope_sql(&q, &scope, &hs_scope_units);
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	*ret_n = rows.n ? hs_row(&rows, 0)[0].i : 0;
	return HS_OK;
}
