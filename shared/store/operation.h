/*
 * operation - the queue: submit, fold, claim, renew, finish, cancel, retry, list.
 *
 * Floor:   store. Table async_operations. Rules: contract banks 8, 9; DESIGN 7.
 * Claim:   candidates are read without a lock, then compare-and-set to processing with worker id,
 *          lease and run_key; 1062 on run_key means that someone has the subject: take the next.
 * Finish:  WHERE operation_id AND worker_id AND attempt AND status='processing'; 0 rows =
 *          HS_E_CLAIM_LOST: the caller's transaction rolls back.
 * Lock order: operations come last, parent before child.
 */
#ifndef HS_STORE_OPERATION_H
#define HS_STORE_OPERATION_H

#include <jansson.h>

#include "db/db.h"

struct hs_operation {
	const char *operation_id, *operation_type, *status;
	const char *task_payload;      /* JSON text or NULL */
	const char *result_metadata;   /* JSON object text */
	const char *error_message, *worker_id, *subject_id, *parent_id;
	int64_t bank_no, retry_count, attempt;
	bool is_parent;
	int64_t next_retry_us, claimed_us, lease_until_us, created_us, updated_us, completed_us;
};

struct hs_submit {
	const char *operation_id;      /* NULL = made here */
	const char *operation_type;
	json_t *payload;               /* NULL = none (parents) */
	json_t *metadata;              /* NULL = {} */
	const char *subject_id;        /* model, document or NULL */
	const char *parent_id;
	bool is_parent;
};
/* Insert a pending row in the caller's transaction. *ret_id lives in the pool. HS_E_DB_DUPLICATE
 * when the client's own id exists. After the commit call hs_queue_poke. */
HS_MUST enum hs_rc hs_operation_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const struct hs_submit *s, const char **ret_id, struct hs_err *err);
/* Wake idle workers of this host: a datagram to run_dir/worker.sock, best effort. */
void hs_queue_poke(const struct hs_config *cfg);

/* HS_E_NOT_FOUND when there is none in this bank. */
HS_MUST enum hs_rc hs_operation_get(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const char *operation_id, bool with_payload, struct hs_operation *ret, struct hs_err *err);

/* What follows from writes; in the caller's transaction, under the bank's clock row. */
struct hs_consolidation_submit {
	json_t *scopes;                /* observation_scopes, NULL = unscoped */
	int64_t round;                 /* number of the round in a chain, from 1 */
	bool manual;                   /* goes on though auto-consolidation is off */
};
HS_MUST enum hs_rc hs_submit_consolidation(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const struct hs_consolidation_submit *s, const char **ret_id, bool *ret_deduplicated, struct hs_err *err);
struct hs_refresh_submit {
	const char *mental_model_id, *name;
	bool automatic;                /* cron, after consolidation: folds into processing too */
	bool full;                     /* _mode: full */
};
/* Locks the model row, looks for an open operation, folds or inserts (mental-models 11). */
HS_MUST enum hs_rc hs_submit_refresh(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const struct hs_refresh_submit *s, const char **ret_id, bool *ret_folded, struct hs_err *err);

#endif
