/*
 * tx - the one transaction runner.
 *
 * Floor:   db. Begins, calls fn, commits on HS_OK, else rolls back. On HS_E_DB_DEADLOCK (1213, 1205,
 *          at COMMIT too) it rolls back and calls fn again, up to HS_TX_TRIES times within 20 s, with
 *          growing random pauses. A connection lost before COMMIT: reconnect, run again. Lost
 *          during COMMIT: HS_E_DB_UNKNOWN, not run again.
 * Rules:   fn may run more than once: it sets its outputs afresh and touches nothing but the
 *          database. No network call inside. One transaction at a time; nesting is an assert.
 *          Lock order: bank_clock, documents, units, queue rows, entities, models, operations
 *          (parent before child); a worker's finish comes last.
 */
#ifndef HS_DB_TX_H
#define HS_DB_TX_H

#include "db/db.h"

typedef enum hs_rc hs_tx_fn(struct hs_db *db, void *arg, struct hs_err *err);
HS_MUST enum hs_rc hs_tx_run(struct hs_db *db, hs_tx_fn *fn, void *arg, struct hs_err *err);
bool hs_tx_open(const struct hs_db *db);

#endif
