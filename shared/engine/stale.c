#include "engine/stale.h"

#include "base/clock.h"
#include "store/mental_model.h"

/* Oldest since among those that the clock does not prove fresh; false when there is none. */
static bool oldest_since(
	const struct hs_stale_query *q, size_t n, int64_t clock_us, int64_t *ret_us)
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

static bool is_stale(
	const struct hs_scope *scope, int64_t since_us, const struct hs_mm_writes *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (w[i].newest_us > since_us && w[i].type >= 0 &&
			hs_scope_match(
				scope, &w[i].tags, (enum hs_fact_type)w[i].type, w[i].newest_us))
			return true;
	return false;
}

enum hs_rc hs_stale_ask(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t clock_us,
	struct hs_stale_query *q, size_t n, struct hs_err *err)
{
	int64_t oldest_us = 0;
	struct hs_mm_writes *writes;
	size_t n_writes;

	for (size_t i = 0; i < n; i++)
		q[i].stale = false;
	if (!oldest_since(q, n, clock_us, &oldest_us))
		return HS_OK;
	HS_TRY(hs_mm_writes_since(db, pool, bank_no, oldest_us, &writes, &n_writes, err));
	for (size_t i = 0; i < n; i++) {
		struct hs_scope scope = hs_scope_for_staleness(pool, &q[i].scope);

		scope.after_us = scope.until_us = HS_TIME_NONE;
		q[i].stale = q[i].since_us < clock_us &&
			     is_stale(&scope, q[i].since_us, writes, n_writes);
	}
	return HS_OK;
}
