/*
 * tick - the program `hindsight-refresh-tick`: what is due now, once, then it ends.
 *
 * Floor:   handlers. Rules: contract mental-models 13, banks 16. By a timer or cron; any number may
 *          run at once, on several hosts: each job claims its turn in the database.
 * Jobs:    operations of dead workers come back, scheduled refreshes are queued, forgotten facts
 *          get a consolidation. One that fails does not keep the others from their turn.
 */
#ifndef HS_TICK_H
#define HS_TICK_H

#include "config/config.h"
#include "db/db.h"

/* Exit status: 0, also when nothing was due or another run has the turn; 1 when a job failed. */
int tick(struct hs_db *db, const struct hs_config *cfg);

#endif
