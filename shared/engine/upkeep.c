#include "engine/upkeep.h"

#include "base/clock.h"
#include "db/tx.h"
#include "store/bank.h"
#include "store/operation.h"
#include "store/purge.h"

#define BANKS_A_PAGE 100
#define PURGE_ROWS 1000

enum hs_rc hs_upkeep_recover(
	struct hs_db *db, const struct hs_config *cfg, size_t *ret_n, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	return hs_queue_recover(db, pool, hs_cfg_int(cfg, HS_S_worker_max_retries), ret_n, err);
}

enum hs_rc hs_upkeep_parents(struct hs_db *db, size_t *ret_n, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	size_t n;

	*ret_n = 0;
	do {
		HS_TRY(hs_queue_end_stranded(db, pool, &n, err));
		*ret_n += n;
		hs_pool_clear(pool);
	} while (n > 0);
	return HS_OK;
}

/* ---- forgotten consolidations ---- */

struct submit {
	struct hs_pool *pool;
	int64_t bank_no;
	bool made;
};

static enum hs_rc submit(struct hs_db *db, void *arg, struct hs_err *err)
{
	static const struct hs_consolidation_submit what = {.round = 1};
	struct submit *s = arg;
	bool deduplicated;
	const char *id;

	HS_TRY(hs_submit_consolidation(db, s->pool, s->bank_no, &what, &id, &deduplicated, err));
	s->made = !deduplicated;
	return HS_OK;
}

static enum hs_rc reconcile_bank(struct hs_db *db, struct hs_pool *pool,
	const struct hs_config *cfg, int64_t bank_no, size_t *made, struct hs_err *err)
{
	struct submit s = {pool, bank_no, false};
	struct hs_config *bank_cfg;
	struct hs_bank bank;
	enum hs_rc rc = hs_bank_find_no(db, pool, bank_no, &bank, err);

	if (rc == HS_E_BANK_MISSING)
		return HS_OK;
	HS_TRY(rc);
	HS_TRY(hs_bank_config(pool, cfg, &bank, &bank_cfg, err));
	if (!hs_cfg_bool(bank_cfg, HS_S_enable_observations) ||
		!hs_cfg_bool(bank_cfg, HS_S_enable_auto_consolidation))
		return HS_OK;
	rc = hs_tx_run(db, submit, &s, err);
	if (rc == HS_E_BANK_MISSING)
		return HS_OK;
	HS_TRY(rc);
	*made += s.made;
	return HS_OK;
}

enum hs_rc hs_upkeep_reconcile(
	struct hs_db *db, const struct hs_config *cfg, size_t *ret_n, struct hs_err *err)
{
	int64_t every_s = hs_cfg_int(cfg, HS_S_consolidation_reconcile_interval_seconds), after = 0;
	bool mine = false;

	*ret_n = 0;
	if (every_s <= 0)
		return HS_OK;
	HS_TRY(hs_state_claim(db, "consolidation_reconcile", every_s, &mine, err));
	while (mine) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_rows rows;

		HS_TRY(hs_queue_forgotten_banks(db, pool, after, BANKS_A_PAGE, &rows, err));
		for (size_t i = 0; i < rows.n; i++) {
			after = hs_row(&rows, i)[0].i;
			HS_TRY(reconcile_bank(db, pool, cfg, after, ret_n, err));
		}
		mine = rows.n == BANKS_A_PAGE;
	}
	if (*ret_n)
		hs_queue_poke(cfg);
	return HS_OK;
}

enum hs_rc hs_upkeep_purge(struct hs_db *db, int64_t ms, bool *ret_more, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	int64_t end = hs_mono_us() + ms * 1000;

	do {
		HS_TRY(hs_purge_step(db, pool, PURGE_ROWS, ret_more, err));
		hs_pool_clear(pool);
	} while (*ret_more && hs_mono_us() < end);
	return HS_OK;
}
