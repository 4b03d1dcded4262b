#include "engine/automatic.h"

#include <inttypes.h>

#include "base/log.h"
#include "db/tx.h"
#include "engine/mind.h"
#include "engine/model_scope.h"
#include "store/automatic.h"
#include "store/clock.h"
#include "store/operation.h"

bool hs_automatic_possible(const struct hs_config *server)
{
	return hs_mind_for(server, "mental_model_refresh") != HS_MIND_NONE;
}

struct submission {
	struct hs_pool *pool;
	int64_t bank_no;
	struct hs_refresh_submit in;
	const char *operation_id;
};

static enum hs_rc submit_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct submission *s = arg;

	return hs_submit_refresh(db, s->pool, s->bank_no, &s->in, &s->operation_id, NULL, err);
}

/* The next model would fare the same. */
static bool is_away(enum hs_rc rc)
{
	return rc == HS_E_DB_DOWN || rc == HS_E_DB_BUSY || rc == HS_E_DB_SCHEMA;
}

enum hs_rc hs_automatic_submit(struct hs_db *db, struct hs_pool *pool, const struct hs_mm *m,
	bool full, bool *ret_queued, struct hs_err *err)
{
	struct submission s = {pool, m->bank_no,
		{.mental_model_id = m->id, .name = m->name, .automatic = true, .full = full}, NULL};
	struct hs_err own;
	enum hs_rc rc;

	*ret_queued = false;
	hs_err_clear(&own);
	rc = hs_tx_run(db, submit_in_tx, &s, &own);
	if (is_away(rc))
		return hs_fail_foreign(err, rc, own.foreign, "%s", own.msg);
	/* deleted since it was read: nothing to refresh */
	if (rc != HS_OK && rc != HS_E_NOT_FOUND)
		hs_log(HS_LOG_WARN, "automatic_refresh",
			"bank_no=%" PRId64 " mental_model_id=%s error=%s", m->bank_no,
			hs_log_quote(m->id), hs_log_quote(own.msg));
	*ret_queued = rc == HS_OK && s.operation_id;
	return HS_OK;
}

enum hs_rc hs_automatic_after_consolidation(struct hs_db *db, struct hs_pool *pool,
	const struct hs_config *server, int64_t bank_no, int64_t *ret_n, struct hs_err *err)
{
	int64_t clock_us;
	struct hs_mm *v;
	bool *stale, queued;
	size_t n;

	*ret_n = 0;
	if (!hs_automatic_possible(server))
		return HS_OK;
	HS_TRY(hs_auto_after_consolidation(db, pool, bank_no, &v, &n, err));
	if (n == 0)
		return HS_OK;
	HS_TRY(hs_clock_read(db, bank_no, &clock_us, err));
	stale = HS_NEW_ARRAY(pool, bool, n);
	HS_TRY(hs_models_stale(db, pool, bank_no, clock_us, v, n, stale, err));
	for (size_t i = 0; i < n; i++) {
		if (!stale[i])
			continue;
		HS_TRY(hs_automatic_submit(db, pool, &v[i], false, &queued, err));
		*ret_n += queued;
	}
	if (*ret_n > 0)
		hs_queue_poke(server);
	return HS_OK;
}
