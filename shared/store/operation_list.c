/* The clients' side of the queue: list, children, cancel, retry, delete. */
#include <string.h>

#include "db/tx.h"
#include "json/json.h"
#include "store/operation.h"

enum {
	SQL_CHILDREN,
	SQL_FIND,
	SQL_LOCK,
	SQL_CANCEL,
	SQL_RETRY,
	SQL_RETRY_CHILDREN,
	SQL_REVIVE,
	SQL_OPEN_WORK,
	SQL_DELETE,
};
static const char *const sql[] = {
	/* children carry their parent's global id; the parent was looked up in its bank */
	[SQL_CHILDREN] = ("SELECT NULL, " HS_OPERATION_COLUMNS " FROM async_operations WHERE "
			  "parent_id = ? ORDER BY created_at, operation_id"),
	[SQL_FIND] = ("SELECT task_payload, " HS_OPERATION_COLUMNS " FROM async_operations WHERE "
		      "operation_id = ? AND bank_no = ?"),
	[SQL_LOCK] = ("SELECT task_payload, " HS_OPERATION_COLUMNS " FROM async_operations WHERE "
		      "operation_id = ? AND bank_no = ? FOR UPDATE"),
	[SQL_CANCEL] =
		("UPDATE async_operations SET status = 'cancelled', lease_until = NULL, "
		 "run_key = NULL, updated_at = UTC_TIMESTAMP(6) WHERE operation_id = ? AND bank_no "
		 "= ? AND status IN ('pending', 'processing')"),
	[SQL_RETRY] =
		("UPDATE async_operations SET status = 'pending', error_message = NULL, "
		 "completed_at = NULL, next_retry_at = NULL, worker_id = NULL, claimed_at = NULL, "
		 "retry_count = 0, task_payload = ?, updated_at = UTC_TIMESTAMP(6) WHERE "
		 "operation_id = ? AND bank_no = ? AND (status IN ('failed', 'cancelled') OR "
		 "(status = 'pending' AND next_retry_at > UTC_TIMESTAMP(6)))"),
	[SQL_RETRY_CHILDREN] =
		("UPDATE async_operations SET status = 'pending', error_message = "
		 "NULL, completed_at = NULL, next_retry_at = NULL, worker_id = NULL, claimed_at = "
		 "NULL, retry_count = 0, updated_at = UTC_TIMESTAMP(6) WHERE parent_id = ? AND "
		 "bank_no = ? AND (status IN ('failed', 'cancelled') OR (status = 'pending' AND "
		 "next_retry_at > UTC_TIMESTAMP(6)))"),
	[SQL_REVIVE] =
		("UPDATE async_operations SET status = 'pending', error_message = NULL, "
		 "completed_at = NULL, next_retry_at = NULL, retry_count = 0, updated_at = "
		 "UTC_TIMESTAMP(6) WHERE operation_id = ? AND bank_no = ? AND status IN ('failed', "
		 "'cancelled')"),
	[SQL_OPEN_WORK] = ("SELECT COUNT(*) FROM async_operations WHERE parent_id = ? AND bank_no "
			   "= ? AND status <> 'completed'"),
	[SQL_DELETE] = ("DELETE FROM async_operations WHERE operation_id = ? AND bank_no = ? AND "
			"status IN ('failed', 'cancelled', 'completed')"),
};
HS_SQL_LIST(hs_operation_list_sql, sql);

/* ---- reading ---- */

static void add_filter(struct hs_sql *q, int64_t bank_no, const struct hs_operation_filter *f)
{
	hs_sql_add(q, " FROM async_operations WHERE bank_no = ?");
	hs_sql_bind(q, hs_b_int(bank_no));
	if (!hs_str_empty(f->status)) {
		hs_sql_add(q, " AND status = ?");
		hs_sql_bind(q, hs_b_str(f->status));
	}
	if (!hs_str_empty(f->operation_type)) {
		hs_sql_add(q, " AND operation_type = ?");
		hs_sql_bind(q, hs_b_str(f->operation_type));
	}
	if (f->exclude_parents)
		hs_sql_add(q, " AND is_parent = 0");
}

enum hs_rc hs_operation_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_operation_filter *f, struct hs_operation **ret, size_t *ret_n,
	int64_t *ret_total, struct hs_err *err)
{
	struct hs_sql count = hs_sql_new(pool), page = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&count, "SELECT COUNT(*)");
	add_filter(&count, bank_no, f);
	HS_TRY(hs_sql_select(db, &count, &rows, err));
	*ret_total = rows.v[0].i;
	hs_sql_add(&page, "SELECT NULL, " HS_OPERATION_COLUMNS);
	add_filter(&page, bank_no, f);
	hs_sql_add(&page, " ORDER BY created_at DESC, operation_id DESC LIMIT ? OFFSET ?");
	hs_sql_bind(&page, hs_b_int(f->limit));
	hs_sql_bind(&page, hs_b_int(f->offset));
	HS_TRY(hs_sql_select(db, &page, &rows, err));
	*ret = hs_operations_read(pool, &rows);
	*ret_n = rows.n;
	return HS_OK;
}

static int64_t child_index(struct hs_pool *pool, const struct hs_operation *op)
{
	json_t *meta;

	/* a child without a readable place comes first */
	if (hs_json_load(pool, op->result_metadata, &meta, NULL) != HS_OK)
		return 0;
	return hs_json_int(meta, "sub_batch_index", 0);
}

/* Children are written in their order: this moves few rows, when clocks gave equal stamps. */
static void sort_children(struct hs_pool *pool, struct hs_operation *ops, size_t n)
{
	int64_t *index = HS_NEW_ARRAY(pool, int64_t, n);

	for (size_t i = 0; i < n; i++)
		index[i] = child_index(pool, &ops[i]);
	for (size_t i = 1; i < n; i++) {
		struct hs_operation op = ops[i];
		int64_t key = index[i];
		size_t j = i;

		for (; j > 0 && index[j - 1] > key; j--) {
			ops[j] = ops[j - 1];
			index[j] = index[j - 1];
		}
		ops[j] = op;
		index[j] = key;
	}
}

enum hs_rc hs_operation_children(struct hs_db *db, struct hs_pool *pool, const char *parent_id,
	struct hs_operation **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_CHILDREN], HS_BINDS(hs_b_str(parent_id)), &rows, err));
	*ret = hs_operations_read(pool, &rows);
	*ret_n = rows.n;
	sort_children(pool, *ret, rows.n);
	return HS_OK;
}

/* ---- changing ---- */

struct change {
	struct hs_pool *pool;
	int64_t bank_no;
	const char *bank_id, *id;
};

static enum hs_rc roll_up(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct change *c = arg;

	return hs_operation_roll_up(db, c->pool, c->id, err);
}

enum hs_rc hs_operation_heal(
	struct hs_db *db, struct hs_pool *pool, const struct hs_operation *op, struct hs_err *err)
{
	struct change c = {.pool = pool, .id = op->operation_id};

	if (!op->is_parent || !hs_str_eq(op->status, "pending"))
		return HS_OK;
	return hs_tx_run(db, roll_up, &c, err);
}

static enum hs_rc read_row(
	struct hs_db *db, struct change *c, int which, struct hs_operation *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, c->pool, sql[which],
		HS_BINDS(hs_b_str(c->id), hs_b_int(c->bank_no)), &rows, err));
	if (rows.n == 0)
		return hs_operation_missing(c->bank_id, c->id, err);
	hs_operation_read(c->pool, rows.v, ret);
	return HS_OK;
}

/* A child's parent never changes: it is read first, so that the parent can be locked before the child. */
static enum hs_rc lock_row(
	struct hs_db *db, struct change *c, struct hs_operation *ret, struct hs_err *err)
{
	HS_TRY(read_row(db, c, SQL_FIND, ret, err));
	HS_TRY(hs_operation_lock(db, c->pool, ret->parent_id, err));
	return read_row(db, c, SQL_LOCK, ret, err);
}

static enum hs_rc conflict(
	const struct change *c, const char *what, const struct hs_operation *op, struct hs_err *err)
{
	return hs_fail(
		err, HS_E_CONFLICT, "Operation %s cannot be %s: it is %s", c->id, what, op->status);
}

static enum hs_rc cancel(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct change *c = arg;
	struct hs_operation op;
	uint64_t found;

	HS_TRY(lock_row(db, c, &op, err));
	HS_TRY(hs_db_exec(
		db, sql[SQL_CANCEL], HS_BINDS(hs_b_str(c->id), hs_b_int(c->bank_no)), &found, err));
	if (found == 0)
		return hs_fail(err, HS_E_CONFLICT,
			"Operation %s cannot be cancelled: status is '%s', only 'pending' and "
			"'processing' operations can be cancelled",
			op.operation_id, op.status);
	return hs_operation_roll_up(db, c->pool, op.parent_id, err);
}

/* Deferred work runs now: the mark that would park it again goes. */
static enum hs_rc payload_for_retry(
	struct hs_pool *pool, const struct hs_operation *op, const char **ret, struct hs_err *err)
{
	json_t *payload;

	*ret = op->task_payload;
	if (!hs_str_eq(op->operation_type, "refresh_mental_model") ||
		!hs_str_eq(op->status, "pending"))
		return HS_OK;
	HS_TRY(hs_json_load(pool, op->task_payload, &payload, err));
	if (!json_is_object(payload))
		return HS_OK;
	json_object_del(payload, "_automatic");
	*ret = hs_json_text(pool, payload);
	return HS_OK;
}

static enum hs_rc retry_parent(
	struct hs_db *db, struct change *c, const struct hs_operation *op, struct hs_err *err)
{
	struct hs_rows open;

	HS_TRY(hs_db_select(db, c->pool, sql[SQL_OPEN_WORK],
		HS_BINDS(hs_b_str(c->id), hs_b_int(c->bank_no)), &open, err));
	if (open.v[0].i == 0)
		return hs_fail(err, HS_E_CONFLICT,
			"Operation %s cannot be queued for retry: all of its parts are completed",
			op->operation_id);
	HS_TRY(hs_db_exec(db, sql[SQL_RETRY_CHILDREN],
		HS_BINDS(hs_b_str(c->id), hs_b_int(c->bank_no)), NULL, err));
	return hs_db_exec(
		db, sql[SQL_REVIVE], HS_BINDS(hs_b_str(c->id), hs_b_int(c->bank_no)), NULL, err);
}

static enum hs_rc retry(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct change *c = arg;
	struct hs_operation op;
	const char *payload;
	uint64_t found;

	HS_TRY(lock_row(db, c, &op, err));
	if (op.is_parent)
		return retry_parent(db, c, &op, err);
	HS_TRY(payload_for_retry(c->pool, &op, &payload, err));
	HS_TRY(hs_db_exec(db, sql[SQL_RETRY],
		HS_BINDS(hs_b_str(payload), hs_b_str(c->id), hs_b_int(c->bank_no)), &found, err));
	return found ? HS_OK : conflict(c, "queued for retry", &op, err);
}

static enum hs_rc delete_row(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct change *c = arg;
	struct hs_operation op;
	uint64_t found;

	HS_TRY(lock_row(db, c, &op, err));
	HS_TRY(hs_db_exec(
		db, sql[SQL_DELETE], HS_BINDS(hs_b_str(c->id), hs_b_int(c->bank_no)), &found, err));
	return found ? HS_OK : conflict(c, "deleted", &op, err);
}

enum hs_rc hs_operation_cancel(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const char *operation_id, struct hs_err *err)
{
	struct change c = {pool, bank_no, bank_id, operation_id};

	return hs_tx_run(db, cancel, &c, err);
}

enum hs_rc hs_operation_retry(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const char *operation_id, struct hs_err *err)
{
	struct change c = {pool, bank_no, bank_id, operation_id};

	return hs_tx_run(db, retry, &c, err);
}

enum hs_rc hs_operation_delete(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const char *operation_id, struct hs_err *err)
{
	struct change c = {pool, bank_no, bank_id, operation_id};

	return hs_tx_run(db, delete_row, &c, err);
}
