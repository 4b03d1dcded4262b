#include "engine/stale.h"

#include "base/clock.h"
#include "json/json.h"

enum { SQL_NEWER };

static const char *const sql[] = {
	[SQL_NEWER] = "SELECT fact_type, tags, MAX(updated_at) FROM memory_units"
		      " WHERE bank_no = ? AND updated_at > ? GROUP BY fact_type, tags",
};
HS_SQL_LIST(hs_stale_sql, sql);

/* Oldest since among those that the clock does not prove fresh; false when there is none. */
static bool oldest_since(const struct hs_stale_query *q, size_t n, int64_t clock_us, int64_t *ret_us)
{
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		if (q[i].since_us >= clock_us)
			continue;
		if (!found || q[i].since_us < *ret_us)
			*ret_us = q[i].since_us;
		found = true;
	}
	return found;
}

struct group {
	int type;
	struct hs_strs tags;
	int64_t newest_us;
};

static void read_group(struct hs_pool *pool, const struct hs_val *row, struct group *ret)
{
	json_t *tags = NULL;

	if (hs_json_load(pool, row[1].s, &tags, NULL) != HS_OK)
		tags = NULL;
	ret->type = hs_fact_type_find(row[0].s);
	ret->tags = hs_json_strs(pool, tags);
	ret->newest_us = row[2].i;
}

static bool is_stale(const struct hs_scope *scope, int64_t since_us, const struct group *g, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (g[i].newest_us > since_us && g[i].type >= 0 &&
			hs_scope_match(scope, &g[i].tags, (enum hs_fact_type)g[i].type, g[i].newest_us))
			return true;
	return false;
}

enum hs_rc hs_stale_ask(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t clock_us,
	struct hs_stale_query *q, size_t n, struct hs_err *err)
{
	int64_t oldest_us = 0;
	struct hs_rows rows;
	struct group *groups;

	for (size_t i = 0; i < n; i++)
		q[i].stale = false;
	if (!oldest_since(q, n, clock_us, &oldest_us))
		return HS_OK;
	HS_TRY(hs_db_select(db, pool, sql[SQL_NEWER], HS_BINDS(hs_b_int(bank_no), hs_b_time(oldest_us)), &rows,
		err));
	groups = HS_NEW_ARRAY(pool, struct group, rows.n ? rows.n : 1);
	for (size_t i = 0; i < rows.n; i++)
		read_group(pool, hs_row(&rows, i), &groups[i]);
	for (size_t i = 0; i < n; i++) {
		struct hs_scope scope = hs_scope_for_staleness(pool, &q[i].scope);

		scope.after_us = scope.until_us = HS_TIME_NONE;
		q[i].stale = q[i].since_us < clock_us && is_stale(&scope, q[i].since_us, groups, rows.n);
	}
	return HS_OK;
}
