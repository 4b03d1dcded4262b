/*
 * operation - the queue: submit, fold, claim, renew, finish, cancel, retry, list.
 *
 * Floor:   store. Table async_operations. Rules: contract banks 8, 9; DESIGN 7. operation.c submits,
 *          operation_claim.c is the worker's side, operation_list.c the clients'.
 * Claim:   candidates are read without a lock, then compare-and-set to processing with worker id,
 *          lease and run_key; 1062 on run_key means that someone has the subject: take the next.
 * Finish:  WHERE operation_id AND worker_id AND attempt AND status='processing'; 0 rows =
 *          HS_E_CLAIM_LOST: the caller's transaction rolls back.
 * Time:    leases and retry times are compared with the database's clock: hosts need not agree.
 * Lock order: operations come last, parent before child.
 */
#ifndef HS_STORE_OPERATION_H
#define HS_STORE_OPERATION_H

#include <jansson.h>

#include "db/db.h"

struct hs_operation {
	const char *operation_id, *operation_type, *status;
	const char *task_payload;    /* JSON text or NULL */
	const char *result_metadata; /* JSON object text */
	const char *error_message, *worker_id, *subject_id, *parent_id;
	int64_t bank_no, retry_count, attempt;
	bool is_parent;
	int64_t next_retry_us, claimed_us, lease_until_us, created_us, updated_us, completed_us;
};

struct hs_submit {
	const char *operation_id; /* NULL = made here */
	const char *operation_type;
	json_t *payload;        /* NULL = none (parents) */
	json_t *metadata;       /* NULL = {} */
	const char *subject_id; /* model, document or NULL; one at a time runs of each subject */
	const char *parent_id;
	bool is_parent;
};
/* Insert a pending row in the caller's transaction. *ret_id lives in the pool. HS_E_DB_DUPLICATE
 * when the client's own id exists. After the commit call hs_queue_poke. */
HS_MUST enum hs_rc hs_operation_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_submit *s, const char **ret_id, struct hs_err *err);
/* Wake idle workers of this host: a datagram to run_dir/worker.sock, best effort. */
void hs_queue_poke(const struct hs_config *cfg);

/* HS_E_NOT_FOUND when there is none in this bank. */
HS_MUST enum hs_rc hs_operation_get(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *operation_id, bool with_payload, struct hs_operation *ret, struct hs_err *err);
/* Any bank's: a client's own id may be taken. HS_E_NOT_FOUND when there is none. */
HS_MUST enum hs_rc hs_operation_find(struct hs_db *db, struct hs_pool *pool,
	const char *operation_id, struct hs_operation *ret, struct hs_err *err);

/* What follows from writes; in the caller's transaction, under the bank's clock row. */
struct hs_consolidation_submit {
	json_t *scopes; /* observation_scopes, NULL = unscoped */
	int64_t round;  /* number of the round in a chain, from 1 */
	bool manual;    /* goes on though auto-consolidation is off */
};
/* Payload: {"observation_scopes": …|null, "round": n, "manual": bool}. */
HS_MUST enum hs_rc hs_submit_consolidation(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_consolidation_submit *s, const char **ret_id, bool *ret_deduplicated,
	struct hs_err *err);
struct hs_refresh_submit {
	const char *mental_model_id, *name;
	bool automatic; /* cron, after consolidation: folds into processing too */
	bool full;      /* _mode: full */
};
/* Locks the model row, looks for an open operation, folds or inserts (mental-models 11). Payload:
 * {"mental_model_id": …, "_automatic": true?, "_mode": "full"?}. An automatic one of a model whose
 * last refresh failed is not made: *ret_id = NULL. HS_E_NOT_FOUND without the model. */
HS_MUST enum hs_rc hs_submit_refresh(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_refresh_submit *s, const char **ret_id, bool *ret_folded,
	struct hs_err *err);

/* ---- the worker's side ---- */

/* What a worker holds. */
struct hs_claim {
	const char *operation_id, *worker_id;
	int64_t attempt;
};
/* In the result's transaction, before its commit: HS_E_CLAIM_LOST when the row is no longer ours,
 * cancelled included. */
HS_MUST enum hs_rc hs_claim_hold(
	struct hs_db *db, const struct hs_claim *claim, struct hs_err *err);
/* The same, read plainly: the cancel test. */
HS_MUST enum hs_rc hs_claim_check(
	struct hs_db *db, const struct hs_claim *claim, bool *ret_held, struct hs_err *err);

struct hs_candidate {
	const char *operation_id, *operation_type, *subject_id;
	int64_t bank_no, created_us;
};
struct hs_candidate_query {
	struct hs_strs types; /* only these, or … */
	bool others;          /* … every type but these */
	int64_t bank_no;      /* 0 = every bank */
	size_t limit;
};
/* Claimable now, oldest first: nobody runs their subject and they are its oldest. */
HS_MUST enum hs_rc hs_queue_candidates(struct hs_db *db, struct hs_pool *pool,
	const struct hs_candidate_query *q, struct hs_candidate **ret, size_t *ret_n,
	struct hs_err *err);
/* The kinds that wait, parents left out. */
HS_MUST enum hs_rc hs_queue_types(
	struct hs_db *db, struct hs_pool *pool, struct hs_strs *ret, struct hs_err *err);
/* Which of these operations does the worker still hold? The others were cancelled or taken over. */
HS_MUST enum hs_rc hs_queue_held(struct hs_db *db, struct hs_pool *pool, const char *worker_id,
	const struct hs_strs *ids, struct hs_strs *ret_held, struct hs_err *err);
/* The first bank after after_no (by number, wrapping) with something claimable that is no
 * consolidation; 0 = none. */
HS_MUST enum hs_rc hs_queue_next_bank(struct hs_db *db, struct hs_pool *pool, int64_t after_no,
	int64_t *ret_no, struct hs_err *err);
/* Compare-and-set to processing. *ret_taken false: someone else was faster. */
HS_MUST enum hs_rc hs_queue_claim(struct hs_db *db, struct hs_pool *pool,
	const struct hs_candidate *c, const char *worker_id, int64_t lease_s,
	struct hs_operation *ret, bool *ret_taken, struct hs_err *err);
HS_MUST enum hs_rc hs_queue_renew(struct hs_db *db, struct hs_pool *pool, const char *worker_id,
	const struct hs_strs *ids, int64_t lease_s, struct hs_err *err);
/* Rows whose lease has run out return to pending, or fail after max_retries. */
HS_MUST enum hs_rc hs_queue_recover(struct hs_db *db, struct hs_pool *pool, int64_t max_retries,
	size_t *ret_n, struct hs_err *err);
/* Waiting parents without an open child, left by a crash, are ended by their children; one without
 * any fails. */
HS_MUST enum hs_rc hs_queue_end_stranded(
	struct hs_db *db, struct hs_pool *pool, size_t *ret_n, struct hs_err *err);
/* Is another consolidation of the bank waiting? */
HS_MUST enum hs_rc hs_queue_consolidation_waits(
	struct hs_db *db, struct hs_pool *pool, int64_t bank_no, bool *ret, struct hs_err *err);

enum hs_finish_kind {
	HS_FINISH_COMPLETED,
	HS_FINISH_FAILED,
	HS_FINISH_RETRY, /* pending, retry_count + 1, after delay_s; error kept as last_retry_error */
	HS_FINISH_DEFER, /* pending, not before retry_at_us; retry_count and error as they were */
	HS_FINISH_HAND_BACK, /* as a lease that ran out */
};
struct hs_finish {
	struct hs_claim claim;
	enum hs_finish_kind kind;
	const char *parent_id, *error;
	int64_t delay_s, retry_at_us, max_retries;
	json_t *metadata; /* merged into result_metadata; NULL = nothing */
};
/* A transaction of its own; ends the parent when this was the last open child. HS_E_CLAIM_LOST when
 * the claim is no longer held. */
HS_MUST enum hs_rc hs_queue_finish(
	struct hs_db *db, struct hs_pool *pool, const struct hs_finish *f, struct hs_err *err);
/* result_metadata.progress of a held claim. */
HS_MUST enum hs_rc hs_queue_progress(struct hs_db *db, struct hs_pool *pool,
	const struct hs_claim *claim, json_t *progress, struct hs_err *err);
/* Locks the parent and ends it by its children, when all have ended (8.4). In the caller's
 * transaction, which has locked it before it touched a child. */
HS_MUST enum hs_rc hs_operation_roll_up(
	struct hs_db *db, struct hs_pool *pool, const char *parent_id, struct hs_err *err);
HS_MUST enum hs_rc hs_operation_lock(
	struct hs_db *db, struct hs_pool *pool, const char *operation_id, struct hs_err *err);

/* Banks with facts to consolidate and no open consolidation: candidates of the reconcile. */
HS_MUST enum hs_rc hs_queue_forgotten_banks(struct hs_db *db, struct hs_pool *pool,
	int64_t after_no, size_t limit, struct hs_rows *ret, struct hs_err *err);
/* Compare-and-set on server_state: true for the one caller that may do `name` now. */
HS_MUST enum hs_rc hs_state_claim(
	struct hs_db *db, const char *name, int64_t every_s, bool *ret_mine, struct hs_err *err);

/* ---- the clients' side; bank_id is for messages only ---- */

struct hs_operation_filter {
	const char *status, *operation_type; /* NULL or "" = any */
	bool exclude_parents;
	int64_t limit, offset;
};
HS_MUST enum hs_rc hs_operation_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_operation_filter *f, struct hs_operation **ret, size_t *ret_n,
	int64_t *ret_total, struct hs_err *err);
/* By sub_batch_index; without payloads. */
HS_MUST enum hs_rc hs_operation_children(struct hs_db *db, struct hs_pool *pool,
	const char *parent_id, struct hs_operation **ret, size_t *ret_n, struct hs_err *err);
/* A waiting parent whose children have all ended (or that has none) is ended. */
HS_MUST enum hs_rc hs_operation_heal(
	struct hs_db *db, struct hs_pool *pool, const struct hs_operation *op, struct hs_err *err);
/* HS_E_NOT_FOUND, HS_E_CONFLICT with the contract's texts. */
HS_MUST enum hs_rc hs_operation_cancel(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const char *operation_id, struct hs_err *err);
HS_MUST enum hs_rc hs_operation_retry(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const char *operation_id, struct hs_err *err);
HS_MUST enum hs_rc hs_operation_delete(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const char *operation_id, struct hs_err *err);
enum hs_rc hs_operation_missing(const char *bank_id, const char *operation_id, struct hs_err *err);

/* Counts of the whole queue, for `check`. */
struct hs_queue_counts {
	int64_t pending, parked, processing, expired, failed, oldest_pending_us;
};
HS_MUST enum hs_rc hs_queue_count(
	struct hs_db *db, struct hs_pool *pool, struct hs_queue_counts *ret, struct hs_err *err);

/* Shared by the three files: the columns of one row, but task_payload, which comes first. */
#define HS_OPERATION_COLUMNS                                                                            \
	"operation_id, operation_type, status, result_metadata, error_message, worker_id, subject_id, " \
	"parent_id, bank_no, retry_count, attempt, is_parent, next_retry_at, claimed_at, lease_until, " \
	"created_at, updated_at, completed_at"
void hs_operation_read(struct hs_pool *pool, const struct hs_val *row, struct hs_operation *ret);
struct hs_operation *hs_operations_read(struct hs_pool *pool, const struct hs_rows *rows);

extern const struct hs_sql_list hs_operation_sql, hs_operation_claim_sql, hs_operation_list_sql;

#endif
