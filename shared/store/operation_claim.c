/* The worker's side of the queue: claim, renew, finish, recover. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "db/row.h"
#include "db/tx.h"
#include "json/json.h"
#include "store/operation.h"
#include "text/hash.h"

#define RECOVER_MAX 100 /* rows of one look */
#define SAMPLE_MAX 5    /* extraction errors a parent shows */
#define LAST_ERROR "last_retry_error"

/* Waiting, with something to run, and not parked. */
#define CLAIMABLE(o)                                                                               \
	o ".status = 'pending' AND " o ".task_payload IS NOT NULL AND (" o ".next_retry_at IS NULL OR " \
	o ".next_retry_at <= UTC_TIMESTAMP(6))"
/* The rows of the same subject in one state. Named indexes: the optimizer would read a bank's whole
 * history instead. */
#define PEERS(state)                                                                               \
	"NOT EXISTS (SELECT 1 FROM async_operations p FORCE INDEX (operations_subject) WHERE "     \
	"p.bank_no = o.bank_no AND p.operation_type = o.operation_type AND p.subject_id = "        \
	"o.subject_id AND p.status = '" state "'"
/* Nobody runs the subject, and no older one of it can be claimed. */
#define NOT_BLOCKED                                                                                \
	"(o.subject_id IS NULL OR (" PEERS("processing") ") AND " PEERS("pending") " AND "         \
	CLAIMABLE("p") " AND (p.created_at < o.created_at OR (p.created_at = o.created_at AND "    \
	"p.operation_id < o.operation_id)))))"

/* Bank-wide by design: a worker serves every bank. */
enum {
	SQL_NEXT_TYPE, SQL_NEXT_BANK, SQL_CLAIM, SQL_READ, SQL_HOLD, SQL_CHECK, SQL_EXPIRED, SQL_LOCK,
	SQL_LOCK_CHILD, SQL_COMPLETE, SQL_FAIL, SQL_RETRY, SQL_DEFER, SQL_METADATA,
	SQL_OPEN_CHILDREN, SQL_CHILDREN, SQL_END_PARENT, SQL_WAITING_CONSOLIDATION, SQL_FORGOTTEN,
	SQL_STATE_INSERT, SQL_STATE_CLAIM, SQL_COUNT, SQL_STRANDED,
};
static const char *const sql[] = {
	[SQL_NEXT_TYPE] = ("SELECT MIN(operation_type) FROM async_operations WHERE status = 'pending' "
		"AND operation_type > ?"),
	[SQL_NEXT_BANK] = ("SELECT o.bank_no FROM async_operations o FORCE INDEX "
		"(operations_fair) WHERE o.bank_no > ? AND o.operation_type <> 'consolidation' "
		"AND " CLAIMABLE("o") " AND " NOT_BLOCKED " ORDER BY o.bank_no LIMIT 1"),
	[SQL_CLAIM] = ("UPDATE async_operations SET status = 'processing', worker_id = ?, "
		"claimed_at = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6), lease_until = "
		"UTC_TIMESTAMP(6) + INTERVAL ? SECOND, attempt = attempt + 1, run_key = ? WHERE "
		"operation_id = ? AND status = 'pending' AND (next_retry_at IS NULL OR "
		"next_retry_at <= UTC_TIMESTAMP(6))"),
	[SQL_READ] = ("SELECT task_payload, " HS_OPERATION_COLUMNS " FROM async_operations WHERE "
		"operation_id = ?"),
	[SQL_HOLD] = ("SELECT 1 FROM async_operations WHERE operation_id = ? AND worker_id = ? "
		"AND attempt = ? AND status = 'processing' FOR UPDATE"),
	[SQL_CHECK] = ("SELECT 1 FROM async_operations WHERE operation_id = ? AND worker_id = ? "
		"AND attempt = ? AND status = 'processing'"),
	[SQL_EXPIRED] = ("SELECT NULL, " HS_OPERATION_COLUMNS " FROM async_operations WHERE "
		"status = 'processing' AND lease_until < UTC_TIMESTAMP(6) ORDER BY lease_until "
		"LIMIT ?"),
	[SQL_LOCK] = "SELECT operation_id FROM async_operations WHERE operation_id = ? FOR UPDATE",
	[SQL_LOCK_CHILD] = ("SELECT result_metadata, retry_count, lease_until < UTC_TIMESTAMP(6) "
		"FROM async_operations WHERE operation_id = ? AND worker_id = ? AND attempt = ? "
		"AND status = 'processing' FOR UPDATE"),
	[SQL_COMPLETE] = ("UPDATE async_operations SET status = 'completed', result_metadata = ?, "
		"error_message = NULL, lease_until = NULL, run_key = NULL, completed_at = "
		"UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6) WHERE operation_id = ?"),
	[SQL_FAIL] = ("UPDATE async_operations SET status = 'failed', result_metadata = ?, "
		"error_message = ?, lease_until = NULL, run_key = NULL, completed_at = "
		"UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6) WHERE operation_id = ?"),
	[SQL_RETRY] = ("UPDATE async_operations SET status = 'pending', result_metadata = ?, "
		"error_message = ?, lease_until = NULL, run_key = NULL, worker_id = NULL, "
		"claimed_at = NULL, retry_count = retry_count + 1, next_retry_at = "
		"UTC_TIMESTAMP(6) + INTERVAL ? SECOND, updated_at = UTC_TIMESTAMP(6) WHERE "
		"operation_id = ?"),
	[SQL_DEFER] = ("UPDATE async_operations SET status = 'pending', result_metadata = ?, "
		"lease_until = NULL, run_key = NULL, worker_id = NULL, claimed_at = NULL, "
		"next_retry_at = ?, updated_at = UTC_TIMESTAMP(6) WHERE operation_id = ?"),
	[SQL_METADATA] = ("UPDATE async_operations SET result_metadata = ?, updated_at = "
		"UTC_TIMESTAMP(6) WHERE operation_id = ?"),
	[SQL_OPEN_CHILDREN] = ("SELECT COUNT(*) FROM async_operations WHERE parent_id = ? AND "
		"status IN ('pending', 'processing')"),
	[SQL_CHILDREN] = ("SELECT status, error_message, result_metadata FROM async_operations "
		"WHERE parent_id = ? ORDER BY created_at, operation_id"),
	[SQL_END_PARENT] = ("UPDATE async_operations SET status = ?, error_message = ?, "
		"result_metadata = ?, completed_at = IF(? = 'cancelled', NULL, UTC_TIMESTAMP(6)), "
		"updated_at = UTC_TIMESTAMP(6) WHERE operation_id = ? AND status IN ('pending', "
		"'failed')"),
	[SQL_WAITING_CONSOLIDATION] = ("SELECT 1 FROM async_operations WHERE bank_no = ? AND "
		"operation_type = 'consolidation' AND status = 'pending' LIMIT 1"),
	[SQL_FORGOTTEN] = ("SELECT b.bank_no FROM banks b WHERE b.bank_no > ? AND EXISTS (SELECT 1 "
		"FROM memory_units u WHERE u.bank_no = b.bank_no AND u.consolidated_at IS NULL "
		"AND u.consolidation_failed_at IS NULL AND u.fact_type IN ('world', "
		"'experience')) AND NOT EXISTS (SELECT 1 FROM async_operations o FORCE INDEX "
		"(operations_subject) WHERE o.bank_no = b.bank_no AND o.operation_type = "
		"'consolidation' AND o.status IN ('pending', 'processing')) ORDER BY b.bank_no "
		"LIMIT ?"),
	[SQL_STRANDED] = ("SELECT p.operation_id FROM async_operations p WHERE p.status = 'pending' AND "
		"p.is_parent = 1 AND NOT EXISTS (SELECT 1 FROM async_operations c WHERE "
		"c.parent_id = p.operation_id AND c.status IN ('pending', 'processing')) LIMIT ?"),
	[SQL_STATE_INSERT] = ("INSERT INTO server_state (name, value, updated_at) VALUES (?, '', "
		"UTC_TIMESTAMP(6))"),
	/* a moment far ahead was written before the clock was set right: it counts for nothing */
	[SQL_STATE_CLAIM] = ("UPDATE server_state SET updated_at = UTC_TIMESTAMP(6) WHERE name = "
		"? AND (updated_at <= UTC_TIMESTAMP(6) - INTERVAL ? SECOND OR "
		"updated_at > UTC_TIMESTAMP(6) + INTERVAL 1 HOUR)"),
	[SQL_COUNT] = ("SELECT COALESCE(SUM(status = 'pending' AND task_payload IS NOT NULL), 0), "
		"COALESCE(SUM(status = 'pending' AND next_retry_at > UTC_TIMESTAMP(6)), 0), "
		"COALESCE(SUM(status = 'processing'), 0), COALESCE(SUM(status = 'processing' AND "
		"lease_until < UTC_TIMESTAMP(6)), 0), COALESCE(SUM(status = 'failed'), 0), "
		"MIN(IF(status = 'pending' AND task_payload IS NOT NULL AND (next_retry_at IS "
		"NULL OR next_retry_at <= UTC_TIMESTAMP(6)), created_at, NULL)) FROM "
		"async_operations WHERE status IN ('pending', 'processing', 'failed')"),
};
HS_SQL_LIST(hs_operation_claim_sql, sql);

/* ---- choosing ---- */

static const struct hs_col candidate_cols[] = {
	HS_COL_STR(struct hs_candidate, operation_id),
	HS_COL_STR(struct hs_candidate, operation_type),
	HS_COL_STR(struct hs_candidate, subject_id),
	HS_COL_INT(struct hs_candidate, bank_no),
	HS_COL_TIME(struct hs_candidate, created_us),
};

enum hs_rc hs_queue_candidates(struct hs_db *db, struct hs_pool *pool,
	const struct hs_candidate_query *q, struct hs_candidate **ret, size_t *ret_n,
	struct hs_err *err)
{
	struct hs_sql s = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&s,
		"SELECT o.operation_id, o.operation_type, o.subject_id, o.bank_no, o.created_at "
		"FROM async_operations o FORCE INDEX (");
	hs_sql_add(&s, q->bank_no ? "operations_fair" : "operations_claim");
	hs_sql_add(&s,
		") WHERE " CLAIMABLE("o") " AND " NOT_BLOCKED " AND o.operation_type ");
	hs_sql_add(&s, q->others ? "NOT IN (" : "IN (");
	hs_sql_list_str(&s, &q->types);
	hs_sql_add(&s, ")");
	if (q->bank_no) {
		hs_sql_add(&s, " AND o.bank_no = ?");
		hs_sql_bind(&s, hs_b_int(q->bank_no));
	}
	hs_sql_add(&s, " ORDER BY o.created_at, o.operation_id LIMIT ?");
	hs_sql_bind(&s, hs_b_int((int64_t)q->limit));
	HS_TRY(hs_sql_select(db, &s, &rows, err));
	*ret = hs_rows_read(pool, candidate_cols, HS_COUNT(candidate_cols), sizeof(**ret), &rows);
	*ret_n = rows.n;
	return HS_OK;
}

static void add_column(struct hs_pool *pool, const struct hs_rows *rows, struct hs_strs *ret)
{
	*ret = (struct hs_strs){0};
	for (size_t i = 0; i < rows->n; i++)
		hs_strs_add(pool, ret, hs_row(rows, i)[0].s);
}

/* From name to name along the index: the rows between are not read. */
enum hs_rc hs_queue_types(
	struct hs_db *db, struct hs_pool *pool, struct hs_strs *ret, struct hs_err *err)
{
	const char *last = "";
	struct hs_rows rows;

	*ret = (struct hs_strs){0};
	for (;;) {
		HS_TRY(hs_db_select(
			db, pool, sql[SQL_NEXT_TYPE], HS_BINDS(hs_b_str(last)), &rows, err));
		if (rows.v[0].null)
			return HS_OK;
		last = rows.v[0].s;
		if (!hs_str_eq(last, "batch_retain"))
			hs_strs_add(pool, ret, last);
	}
}

enum hs_rc hs_queue_held(struct hs_db *db, struct hs_pool *pool, const char *worker_id,
	const struct hs_strs *ids, struct hs_strs *ret_held, struct hs_err *err)
{
	struct hs_sql s = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&s,
		"SELECT operation_id FROM async_operations WHERE status = 'processing' AND worker_id = ? "
		"AND operation_id IN (");
	hs_sql_bind(&s, hs_b_str(worker_id));
	hs_sql_list_str(&s, ids);
	hs_sql_add(&s, ")");
	HS_TRY(hs_sql_select(db, &s, &rows, err));
	add_column(pool, &rows, ret_held);
	return HS_OK;
}

enum hs_rc hs_queue_next_bank(struct hs_db *db, struct hs_pool *pool, int64_t after_no,
	int64_t *ret_no, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_NEXT_BANK], HS_BINDS(hs_b_int(after_no)), &rows, err));
	if (rows.n == 0 && after_no > 0)
		HS_TRY(hs_db_select(
			db, pool, sql[SQL_NEXT_BANK], HS_BINDS(hs_b_int(0)), &rows, err));
	*ret_no = rows.n ? rows.v[0].i : 0;
	return HS_OK;
}

/* ---- claiming ---- */

/* SHA-1 of bank, kind and subject; NULL for work that has no subject. */
static struct hs_bind run_key(struct hs_pool *pool, const struct hs_candidate *c)
{
	unsigned char *key;
	const char *text;

	if (!c->subject_id)
		return hs_b_null();
	key = hs_pool_alloc(pool, HS_SHA1_BYTES);
	text = hs_pool_printf(
		pool, "%" PRId64 "/%s/%s", c->bank_no, c->operation_type, c->subject_id);
	hs_sha1(text, strlen(text), key);
	return hs_b_blob(key, HS_SHA1_BYTES);
}

enum hs_rc hs_queue_claim(struct hs_db *db, struct hs_pool *pool, const struct hs_candidate *c,
	const char *worker_id, int64_t lease_s, struct hs_operation *ret, bool *ret_taken,
	struct hs_err *err)
{
	struct hs_rows rows;
	struct hs_err mine;
	uint64_t found = 0;
	enum hs_rc rc;

	*ret_taken = false;
	hs_err_clear(&mine);
	rc = hs_db_exec(db, sql[SQL_CLAIM],
		HS_BINDS(hs_b_str(worker_id), hs_b_int(lease_s), run_key(pool, c),
			hs_b_str(c->operation_id)),
		&found, &mine);
	/* someone has the subject, or wants the same row at this moment */
	if (rc == HS_E_DB_DUPLICATE || rc == HS_E_DB_DEADLOCK)
		return HS_OK;
	if (rc != HS_OK)
		return hs_fail_foreign(err, rc, mine.foreign, "%s", mine.msg);
	if (found == 0)
		return HS_OK;
	HS_TRY(hs_db_select(
		db, pool, sql[SQL_READ], HS_BINDS(hs_b_str(c->operation_id)), &rows, err));
	if (rows.n == 0)
		return HS_OK;
	hs_operation_read(pool, rows.v, ret);
	*ret_taken = hs_str_eq(ret->worker_id, worker_id) && hs_str_eq(ret->status, "processing");
	return HS_OK;
}

enum hs_rc hs_queue_renew(struct hs_db *db, struct hs_pool *pool, const char *worker_id,
	const struct hs_strs *ids, int64_t lease_s, struct hs_err *err)
{
	struct hs_sql s;

	if (ids->n == 0)
		return HS_OK;
	s = hs_sql_new(pool);
	hs_sql_add(&s,
		"UPDATE async_operations SET lease_until = UTC_TIMESTAMP(6) + INTERVAL ? SECOND "
		"WHERE status = 'processing' AND worker_id = ? AND operation_id IN (");
	hs_sql_bind(&s, hs_b_int(lease_s));
	hs_sql_bind(&s, hs_b_str(worker_id));
	hs_sql_list_str(&s, ids);
	hs_sql_add(&s, ")");
	return hs_sql_exec(db, &s, NULL, err);
}

static enum hs_rc claim_row(struct hs_db *db, struct hs_pool *pool, int which,
	const struct hs_claim *c, struct hs_rows *ret, struct hs_err *err)
{
	return hs_db_select(db, pool, sql[which],
		HS_BINDS(hs_b_str(c->operation_id), hs_b_str(c->worker_id), hs_b_int(c->attempt)),
		ret, err);
}

static enum hs_rc claim_lost(const struct hs_claim *c, struct hs_err *err)
{
	return hs_fail(err, HS_E_CLAIM_LOST, "operation %s is no longer held", c->operation_id);
}

enum hs_rc hs_claim_hold(struct hs_db *db, const struct hs_claim *claim, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_rows rows;

	HS_TRY(claim_row(db, pool, SQL_HOLD, claim, &rows, err));
	return rows.n ? HS_OK : claim_lost(claim, err);
}

enum hs_rc hs_claim_check(
	struct hs_db *db, const struct hs_claim *claim, bool *ret_held, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_rows rows;

	HS_TRY(claim_row(db, pool, SQL_CHECK, claim, &rows, err));
	*ret_held = rows.n > 0;
	return HS_OK;
}

/* ---- parents ---- */

enum hs_rc hs_operation_lock(
	struct hs_db *db, struct hs_pool *pool, const char *operation_id, struct hs_err *err)
{
	struct hs_rows rows;

	if (!operation_id)
		return HS_OK;
	return hs_db_select(db, pool, sql[SQL_LOCK], HS_BINDS(hs_b_str(operation_id)), &rows, err);
}

/* The most frequent error that is not blank, the earliest among equals. */
static const char *common_error(const struct hs_rows *children)
{
	const char *best = "One or more sub-batches failed";
	size_t best_n = 0;

	for (size_t i = 0; i < children->n; i++) {
		const struct hs_val *row = hs_row(children, i);
		size_t n = 0;

		if (!hs_str_eq(row[0].s, "failed") || hs_str_blank(row[1].s))
			continue;
		for (size_t j = i; j < children->n; j++) {
			const struct hs_val *other = hs_row(children, j);

			n += hs_str_eq(other[0].s, "failed") && hs_str_eq(other[1].s, row[1].s);
		}
		if (n > best_n) {
			best = row[1].s;
			best_n = n;
		}
	}
	return best;
}

static void add_sample(json_t *sample, const json_t *child)
{
	json_t *list = hs_json_arr(child, "extraction_errors_sample"), *text;
	size_t i;

	json_array_foreach(list, i, text) {
		if (json_array_size(sample) >= SAMPLE_MAX)
			return;
		json_array_append(sample, text);
	}
}

/* The sums a completed parent shows. */
static enum hs_rc sum_children(
	struct hs_pool *pool, const struct hs_rows *children, json_t *meta, struct hs_err *err)
{
	int64_t units = 0, errors = 0;
	json_t *sample = hs_json_keep(pool, json_array());

	for (size_t i = 0; i < children->n; i++) {
		json_t *child;

		HS_TRY(hs_json_load(pool, hs_row(children, i)[2].s, &child, err));
		units += hs_json_int(child, "unit_ids_count", 0);
		errors += hs_json_int(child, "extraction_errors_count", 0);
		add_sample(sample, child);
	}
	json_object_set_new(meta, "unit_ids_count", json_integer(units));
	json_object_set_new(meta, "extraction_errors_count", json_integer(errors));
	if (json_array_size(sample))
		json_object_set(meta, "extraction_errors_sample", sample);
	return HS_OK;
}

static bool any_child(const struct hs_rows *children, const char *status)
{
	for (size_t i = 0; i < children->n; i++)
		if (hs_str_eq(hs_row(children, i)[0].s, status))
			return true;
	return false;
}

static enum hs_rc end_parent(struct hs_db *db, struct hs_pool *pool,
	const struct hs_operation *parent, struct hs_err *err)
{
	const char *status = "completed", *error = NULL;
	struct hs_rows children;
	json_t *meta;

	HS_TRY(hs_db_select(db, pool, sql[SQL_CHILDREN], HS_BINDS(hs_b_str(parent->operation_id)),
		&children, err));
	HS_TRY(hs_json_load(pool, parent->result_metadata, &meta, err));
	if (children.n == 0) {
		status = "failed";
		error = "The parts of this operation are missing: send the request again";
	} else if (any_child(&children, "failed")) {
		status = "failed";
		error = common_error(&children);
	} else if (any_child(&children, "cancelled")) {
		status = "cancelled";
	} else {
		HS_TRY(sum_children(pool, &children, meta, err));
	}
	return hs_db_exec(db, sql[SQL_END_PARENT],
		HS_BINDS(hs_b_str(status), hs_b_str(error), hs_b_str(hs_json_text(pool, meta)),
			hs_b_str(status), hs_b_str(parent->operation_id)),
		NULL, err);
}

enum hs_rc hs_operation_roll_up(
	struct hs_db *db, struct hs_pool *pool, const char *parent_id, struct hs_err *err)
{
	struct hs_operation parent;
	struct hs_rows open, rows;

	if (!parent_id)
		return HS_OK;
	HS_TRY(hs_operation_lock(db, pool, parent_id, err));
	HS_TRY(hs_db_select(
		db, pool, sql[SQL_OPEN_CHILDREN], HS_BINDS(hs_b_str(parent_id)), &open, err));
	if (open.v[0].i > 0)
		return HS_OK;
	HS_TRY(hs_db_select(db, pool, sql[SQL_READ], HS_BINDS(hs_b_str(parent_id)), &rows, err));
	if (rows.n == 0)
		return HS_OK;
	hs_operation_read(pool, rows.v, &parent);
	return end_parent(db, pool, &parent, err);
}

/* ---- finishing ---- */

struct finish {
	struct hs_pool *pool;
	const struct hs_finish *in;
	bool expired_only; /* recovery: the lease must still have run out */
};

static const char *cut_error(struct hs_pool *pool, const char *error)
{
	return hs_utf8_cut(pool, hs_str_empty(error) ? "failed without a reason" : error,
		HS_ERROR_MESSAGE_CHARS);
}

static enum hs_rc write_finish(
	struct hs_db *db, struct finish *f, int64_t retries, json_t *meta, struct hs_err *err)
{
	const struct hs_finish *in = f->in;
	struct hs_bind id = hs_b_str(in->claim.operation_id);
	const char *error = cut_error(f->pool, in->error);
	enum hs_finish_kind kind = in->kind;

	if (kind == HS_FINISH_HAND_BACK) {
		kind = retries < in->max_retries ? HS_FINISH_RETRY : HS_FINISH_FAILED;
		if (kind == HS_FINISH_FAILED)
			error = hs_pool_printf(f->pool,
				"%s; recovery attempts exhausted after %" PRId64 " retries", error,
				retries);
	}
	if (kind == HS_FINISH_RETRY)
		json_object_set_new(meta, LAST_ERROR, json_string(error));
	switch (kind) {
	case HS_FINISH_COMPLETED:
		return hs_db_exec(db, sql[SQL_COMPLETE],
			HS_BINDS(hs_b_str(hs_json_text(f->pool, meta)), id), NULL, err);
	case HS_FINISH_RETRY:
		return hs_db_exec(db, sql[SQL_RETRY],
			HS_BINDS(hs_b_str(hs_json_text(f->pool, meta)), hs_b_str(error),
				hs_b_int(in->delay_s), id),
			NULL, err);
	case HS_FINISH_DEFER:
		return hs_db_exec(db, sql[SQL_DEFER],
			HS_BINDS(hs_b_str(hs_json_text(f->pool, meta)), hs_b_time(in->retry_at_us),
				id),
			NULL, err);
	default:
		return hs_db_exec(db, sql[SQL_FAIL],
			HS_BINDS(hs_b_str(hs_json_text(f->pool, meta)), hs_b_str(error), id), NULL,
			err);
	}
}

static enum hs_rc finish(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct finish *f = arg;
	struct hs_rows rows;
	json_t *meta;

	HS_TRY(hs_operation_lock(db, f->pool, f->in->parent_id, err));
	HS_TRY(claim_row(db, f->pool, SQL_LOCK_CHILD, &f->in->claim, &rows, err));
	if (rows.n == 0 || (f->expired_only && !rows.v[2].i))
		return claim_lost(&f->in->claim, err);
	HS_TRY(hs_json_load(f->pool, rows.v[0].s, &meta, err));
	if (!json_is_object(meta))
		return hs_fail(err, HS_E_PARSE, "result_metadata of operation %s",
			f->in->claim.operation_id);
	if (f->in->metadata)
		json_object_update(meta, f->in->metadata);
	HS_TRY(write_finish(db, f, rows.v[1].i, meta, err));
	return hs_operation_roll_up(db, f->pool, f->in->parent_id, err);
}

enum hs_rc hs_queue_finish(
	struct hs_db *db, struct hs_pool *pool, const struct hs_finish *f, struct hs_err *err)
{
	struct finish arg = {pool, f, false};

	return hs_tx_run(db, finish, &arg, err);
}

enum hs_rc hs_queue_recover(struct hs_db *db, struct hs_pool *pool, int64_t max_retries,
	size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;
	struct hs_operation *ops;

	*ret_n = 0;
	HS_TRY(hs_db_select(
		db, pool, sql[SQL_EXPIRED], HS_BINDS(hs_b_int(RECOVER_MAX)), &rows, err));
	ops = hs_operations_read(pool, &rows);
	for (size_t i = 0; i < rows.n; i++) {
		struct hs_finish f = {
			.claim = {ops[i].operation_id, ops[i].worker_id, ops[i].attempt},
			.kind = HS_FINISH_HAND_BACK,
			.parent_id = ops[i].parent_id,
			.error = "the worker stopped while it ran this",
			.max_retries = max_retries,
		};
		struct finish arg = {pool, &f, true};
		struct hs_err mine;
		enum hs_rc rc = hs_tx_run(db, finish, &arg, &mine);

		if (rc == HS_OK)
			++*ret_n;
		else if (rc != HS_E_CLAIM_LOST)
			return hs_fail_foreign(err, rc, mine.foreign, "%s", mine.msg);
	}
	return HS_OK;
}

struct stranded {
	struct hs_pool *pool;
	const char *id;
};

static enum hs_rc end_stranded(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct stranded *s = arg;

	return hs_operation_roll_up(db, s->pool, s->id, err);
}

enum hs_rc hs_queue_end_stranded(
	struct hs_db *db, struct hs_pool *pool, size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_STRANDED], HS_BINDS(hs_b_int(RECOVER_MAX)), &rows, err));
	*ret_n = rows.n;
	for (size_t i = 0; i < rows.n; i++) {
		struct stranded s = {pool, hs_row(&rows, i)[0].s};

		HS_TRY(hs_tx_run(db, end_stranded, &s, err));
	}
	return HS_OK;
}

struct progress {
	struct hs_pool *pool;
	const struct hs_claim *claim;
	json_t *value;
};

static enum hs_rc write_progress(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct progress *p = arg;
	struct hs_rows rows;
	json_t *meta;

	HS_TRY(claim_row(db, p->pool, SQL_LOCK_CHILD, p->claim, &rows, err));
	if (rows.n == 0)
		return claim_lost(p->claim, err);
	HS_TRY(hs_json_load(p->pool, rows.v[0].s, &meta, err));
	json_object_set(meta, "progress", p->value);
	return hs_db_exec(db, sql[SQL_METADATA],
		HS_BINDS(hs_b_str(hs_json_text(p->pool, meta)), hs_b_str(p->claim->operation_id)),
		NULL, err);
}

enum hs_rc hs_queue_progress(struct hs_db *db, struct hs_pool *pool, const struct hs_claim *claim,
	json_t *progress, struct hs_err *err)
{
	struct progress p = {pool, claim, progress};

	return hs_tx_run(db, write_progress, &p, err);
}

/* ---- upkeep ---- */

enum hs_rc hs_queue_consolidation_waits(
	struct hs_db *db, struct hs_pool *pool, int64_t bank_no, bool *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_WAITING_CONSOLIDATION], HS_BINDS(hs_b_int(bank_no)), &rows, err));
	*ret = rows.n > 0;
	return HS_OK;
}

enum hs_rc hs_queue_forgotten_banks(struct hs_db *db, struct hs_pool *pool, int64_t after_no,
	size_t limit, struct hs_rows *ret, struct hs_err *err)
{
	return hs_db_select(db, pool, sql[SQL_FORGOTTEN],
		HS_BINDS(hs_b_int(after_no), hs_b_int((int64_t)limit)), ret, err);
}

enum hs_rc hs_state_claim(
	struct hs_db *db, const char *name, int64_t every_s, bool *ret_mine, struct hs_err *err)
{
	struct hs_err mine;
	uint64_t found;
	enum hs_rc rc;

	*ret_mine = false;
	HS_TRY(hs_db_exec(db, sql[SQL_STATE_CLAIM], HS_BINDS(hs_b_str(name), hs_b_int(every_s)),
		&found, err));
	if (found) {
		*ret_mine = true;
		return HS_OK;
	}
	hs_err_clear(&mine);
	rc = hs_db_exec(db, sql[SQL_STATE_INSERT], HS_BINDS(hs_b_str(name)), NULL, &mine);
	*ret_mine = rc == HS_OK;
	if (rc == HS_OK || rc == HS_E_DB_DUPLICATE)
		return HS_OK;
	return hs_fail_foreign(err, rc, mine.foreign, "%s", mine.msg);
}

enum hs_rc hs_queue_count(
	struct hs_db *db, struct hs_pool *pool, struct hs_queue_counts *ret, struct hs_err *err)
{
	static const struct hs_col cols[] = {
		HS_COL_INT(struct hs_queue_counts, pending),
		HS_COL_INT(struct hs_queue_counts, parked),
		HS_COL_INT(struct hs_queue_counts, processing),
		HS_COL_INT(struct hs_queue_counts, expired),
		HS_COL_INT(struct hs_queue_counts, failed),
		HS_COL_TIME(struct hs_queue_counts, oldest_pending_us),
	};
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_COUNT], HS_NO_BINDS, &rows, err));
	hs_row_read(pool, cols, HS_COUNT(cols), rows.v, ret);
	return HS_OK;
}
