#include "db/tx.h"

#include <assert.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "db/driver.h"

#define PAUSE_US 2000 /* doubled on each try, times 0.5 to 1.5 */
#define PAUSE_MAX_US 200000
#define LOST_TRIES 2 /* runs after a connection broke before COMMIT */
#define TRYING_US (20 * HS_SECOND_US) /* no further run after this: each lock wait may take 10 s */

static enum hs_rc run_once(struct hs_db *db, hs_tx_fn *fn, void *arg, struct hs_err *err)
{
	enum hs_rc rc;

	HS_TRY(hs_db_begin(db, err));
	rc = fn(db, arg, err);
	if (rc == HS_OK)
		rc = hs_db_commit(db, err);
	if (rc != HS_OK)
		hs_db_rollback(db);
	return rc;
}

static void pause_before(int tries)
{
	int64_t us = PAUSE_US << (tries < 8 ? tries : 8);

	if (us > PAUSE_MAX_US)
		us = PAUSE_MAX_US;
	hs_sleep_us((int64_t)((double)us * (0.5 + hs_random_unit())));
}

enum hs_rc hs_tx_run(struct hs_db *db, hs_tx_fn *fn, void *arg, struct hs_err *err)
{
	struct hs_err mine;
	enum hs_rc rc = HS_OK;
	int64_t started_us = hs_mono_us();
	int lost = 0;

	assert(!hs_tx_open(db));
	for (int tries = 0; tries < HS_TX_TRIES; tries++) {
		hs_err_clear(&mine);
		rc = run_once(db, fn, arg, &mine);
		if (rc == HS_E_DB_DOWN && hs_db_was_lost(db)) {
			if (++lost > LOST_TRIES)
				break;
		} else if (rc != HS_E_DB_DEADLOCK) {
			break;
		}
		if (hs_mono_us() - started_us > TRYING_US)
			break;
		pause_before(tries);
	}
	if (rc != HS_OK && err)
		*err = mine;
	return rc;
}
