#include "operations.h"

#include "base/clock.h"
#include "base/id.h"
#include "json/json.h"
#include "store/bank.h"
#include "store/operation.h"

#define WAIT_STEP_US INT64_C(150000)

static const char *const outcomes[] = {"content_written", "content_unchanged",
	"content_preserved_no_new_facts", "refresh_failed_empty_candidate",
	"refresh_failed_delta_not_applied", "refresh_failed_structured_output",
	"refresh_failed_error", NULL};
static const char *const reasons[] = {"empty_candidate", "structured_doc_unreadable",
	"delta_ops_failed", "delta_ops_all_skipped", "delta_not_applied",
	"structured_output_failed", "retrieval_failed", "no_answer", "unexpected_error", NULL};

static bool is_among(const char *const *names, const char *s)
{
	for (size_t i = 0; names[i]; i++)
		if (hs_str_eq(names[i], s))
			return true;
	return false;
}

enum hs_rc op_id_format(struct hs_ctx *c)
{
	const char *id = hs_param(c, "operation_id");
	char normal[HS_UUID_TEXT];

	if (hs_uuid_parse(id, normal))
		return HS_OK;
	return hs_fail(&c->err, HS_E_BAD_REQUEST, "Invalid operation_id format: %s", id);
}

/* The normal form of the id in the path; op_id_format has looked at it. */
static const char *normal_id(struct hs_ctx *c)
{
	char *id = hs_pool_alloc(c->pool, HS_UUID_TEXT);

	return hs_uuid_parse(hs_param(c, "operation_id"), id) ? id : "";
}

/* ---- members of an answer ---- */

static json_t *metadata(struct hs_ctx *c, const struct hs_operation *op)
{
	json_t *meta = NULL;

	/* unreadable metadata never fails a page */
	if (hs_json_load(c->pool, op->result_metadata, &meta, NULL) != HS_OK ||
		!json_is_object(meta))
		return hs_json_keep(c->pool, json_object());
	return meta;
}

static void out_details(struct hs_out *o, const struct hs_operation *op, const json_t *meta)
{
	const char *outcome = hs_json_str(meta, "outcome"),
		   *reason = hs_json_str(meta, "failure_reason");

	if (!hs_str_eq(op->operation_type, "refresh_mental_model") ||
		!is_among(outcomes, outcome) || (reason && !is_among(reasons, reason))) {
		hs_out_null(o, "details");
		return;
	}
	hs_out_open(o, "details", '{');
	hs_out_str(o, "operation_type", op->operation_type);
	hs_out_str(o, "outcome", outcome);
	hs_out_str(o, "failure_reason", reason);
	hs_out_close(o, '}');
}

static void out_progress(struct hs_out *o, json_t *meta)
{
	json_t *p = hs_json_obj(meta, "progress");

	if (!p) {
		hs_out_null(o, "progress");
		return;
	}
	hs_out_open(o, "progress", '{');
	hs_out_json(o, "stage", json_object_get(p, "stage"));
	hs_out_json(o, "at", json_object_get(p, "at"));
	hs_out_json(o, "processed", json_object_get(p, "processed"));
	hs_out_json(o, "total", json_object_get(p, "total"));
	hs_out_json(o, "detail", json_object_get(p, "detail"));
	hs_out_close(o, '}');
}

static void out_listed(struct hs_ctx *c, struct hs_out *o, const struct hs_operation *op)
{
	json_t *meta = metadata(c, op);

	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", op->operation_id);
	hs_out_str(o, "operation_id", op->operation_id);
	hs_out_str(o, "task_type", op->operation_type);
	hs_out_str(o, "operation_type", op->operation_type);
	hs_out_str(o, "status", op->status);
	hs_out_int(o, "items_count", hs_json_int(meta, "items_count", 0));
	hs_out_str(o, "document_id", hs_json_str(meta, "document_id"));
	hs_out_str(o, "filename", hs_json_str(meta, "original_filename"));
	hs_out_str(o, "mental_model_id", hs_json_str(meta, "mental_model_id"));
	hs_out_time(o, "created_at", op->created_us);
	hs_out_time(o, "updated_at", op->updated_us);
	hs_out_str(o, "error_message", op->error_message);
	hs_out_int(o, "retry_count", op->retry_count);
	hs_out_time(o, "next_retry_at", op->next_retry_us);
	out_details(o, op, meta);
	out_progress(o, meta);
	hs_out_close(o, '}');
}

enum hs_rc op_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct op_list_query *q = query;
	struct hs_operation_filter f = {
		q->status, q->type, q->exclude_parents, q->limit, q->offset};
	struct hs_operation *ops;
	struct hs_bank bank;
	int64_t total;
	struct hs_out o;
	size_t n;

	(void)body;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(hs_operation_list(c->db, c->pool, bank.bank_no, &f, &ops, &n, &total, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "bank_id", c->bank_id);
	hs_out_int(&o, "total", total);
	hs_out_int(&o, "limit", q->limit);
	hs_out_int(&o, "offset", q->offset);
	hs_out_open(&o, "operations", '[');
	for (size_t i = 0; i < n; i++)
		out_listed(c, &o, &ops[i]);
	hs_out_close(&o, ']');
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- one operation ---- */

static void out_children(
	struct hs_ctx *c, struct hs_out *o, const struct hs_operation *ops, size_t n)
{
	hs_out_open(o, "child_operations", '[');
	for (size_t i = 0; i < n; i++) {
		json_t *meta = metadata(c, &ops[i]);

		hs_out_open(o, NULL, '{');
		hs_out_str(o, "operation_id", ops[i].operation_id);
		hs_out_str(o, "status", ops[i].status);
		hs_out_json(o, "sub_batch_index", json_object_get(meta, "sub_batch_index"));
		hs_out_json(o, "items_count", json_object_get(meta, "items_count"));
		hs_out_str(o, "error_message", ops[i].error_message);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
}

/* The declared members, in one order for found and missing operations; op NULL = missing. */
static enum hs_rc reply_one(struct hs_ctx *c, const struct hs_operation *op, bool payload)
{
	static const struct hs_operation none = {.next_retry_us = HS_TIME_NONE,
		.created_us = HS_TIME_NONE,
		.updated_us = HS_TIME_NONE,
		.completed_us = HS_TIME_NONE};
	const struct hs_operation *row = op ? op : &none;
	json_t *meta = op ? metadata(c, op) : NULL;
	struct hs_operation *children = NULL;
	struct hs_out o;
	size_t n = 0;

	if (op && op->is_parent)
		HS_TRY(hs_operation_children(
			c->db, c->pool, op->operation_id, &children, &n, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "operation_id", hs_param(c, "operation_id"));
	hs_out_str(&o, "id", hs_param(c, "operation_id"));
	hs_out_str(&o, "status", op ? op->status : "not_found");
	hs_out_str(&o, "operation_type", row->operation_type);
	hs_out_str(&o, "task_type", row->operation_type);
	hs_out_str(&o, "mental_model_id", hs_json_str(meta, "mental_model_id"));
	hs_out_time(&o, "created_at", row->created_us);
	hs_out_time(&o, "updated_at", row->updated_us);
	hs_out_time(&o, "completed_at", row->completed_us);
	hs_out_str(&o, "error_message", row->error_message);
	hs_out_json(&o, "retry_count",
		op ? hs_json_keep(c->pool, json_integer(op->retry_count)) : NULL);
	hs_out_time(&o, "next_retry_at", row->next_retry_us);
	out_progress(&o, meta);
	hs_out_json(&o, "result_metadata", meta);
	out_details(&o, row, meta);
	if (op && op->is_parent)
		out_children(c, &o, children, n);
	else
		hs_out_null(&o, "child_operations");
	hs_out_raw(&o, "task_payload", payload ? row->task_payload : NULL, "null");
	hs_out_close(&o, '}');
	return HS_OK;
}

static bool is_open(const struct hs_operation *op)
{
	return hs_str_eq(op->status, "pending") || hs_str_eq(op->status, "processing");
}

static enum hs_rc still_open(
	struct hs_ctx *c, int64_t bank_no, const char *id, bool *ret, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_operation op;

	HS_TRY(hs_operation_get(c->db, pool, bank_no, id, false, &op, err));
	*ret = is_open(&op);
	return HS_OK;
}

/* Returns when the operation has ended, the seconds have passed or the client has left. */
static enum hs_rc wait_for_end(struct hs_ctx *c, int64_t bank_no, const char *id, int64_t seconds)
{
	int64_t end = hs_mono_us() + seconds * HS_SECOND_US;
	bool open = true;

	for (;;) {
		HS_TRY(still_open(c, bank_no, id, &open, &c->err));
		if (!open || hs_mono_us() >= end)
			return HS_OK;
		if (hs_request_gone(c))
			return hs_fail(&c->err, HS_E_CLIENT_GONE,
				"the client left while it waited for %s", id);
		hs_sleep_us(WAIT_STEP_US);
	}
}

static enum hs_rc find_one(struct hs_ctx *c, const struct op_get_query *q, struct hs_operation *op)
{
	const char *id = normal_id(c);
	struct hs_bank bank;

	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	if (q->wait > 0)
		HS_TRY(wait_for_end(c, bank.bank_no, id, q->wait));
	HS_TRY(hs_operation_get(c->db, c->pool, bank.bank_no, id, q->include_payload, op, &c->err));
	if (!op->is_parent || !is_open(op))
		return HS_OK;
	HS_TRY(hs_operation_heal(c->db, c->pool, op, &c->err));
	return hs_operation_get(c->db, c->pool, bank.bank_no, id, q->include_payload, op, &c->err);
}

enum hs_rc op_get(struct hs_ctx *c, const void *query, const void *body)
{
	const struct op_get_query *q = query;
	struct hs_operation op;
	enum hs_rc rc = find_one(c, q, &op);

	(void)body;
	if (rc == HS_E_NOT_FOUND || rc == HS_E_BANK_MISSING) {
		hs_err_clear(&c->err);
		return reply_one(c, NULL, false);
	}
	return rc == HS_OK ? reply_one(c, &op, q->include_payload) : rc;
}

/* ---- changes ---- */

typedef enum hs_rc change_fn(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const char *operation_id, struct hs_err *err);

static enum hs_rc change(struct hs_ctx *c, change_fn *fn, const char *done)
{
	const char *given = hs_param(c, "operation_id"), *id = normal_id(c);
	struct hs_bank bank;
	enum hs_rc rc = hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err);
	struct hs_out o;

	if (rc == HS_E_BANK_MISSING)
		return hs_operation_missing(c->bank_id, given, &c->err);
	HS_TRY(rc);
	HS_TRY(fn(c->db, c->pool, bank.bank_no, c->bank_id, id, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_bool(&o, "success", true);
	hs_out_str(&o, "message", hs_pool_printf(c->pool, "Operation %s %s", given, done));
	hs_out_str(&o, "operation_id", given);
	hs_out_close(&o, '}');
	return HS_OK;
}

enum hs_rc op_cancel(struct hs_ctx *c, const void *query, const void *body)
{
	(void)query;
	(void)body;
	return change(c, hs_operation_cancel, "cancelled");
}

enum hs_rc op_retry(struct hs_ctx *c, const void *query, const void *body)
{
	(void)query;
	(void)body;
	HS_TRY(change(c, hs_operation_retry, "queued for retry"));
	hs_queue_poke(c->cfg);
	return HS_OK;
}

enum hs_rc op_delete(struct hs_ctx *c, const void *query, const void *body)
{
	(void)query;
	(void)body;
	return change(c, hs_operation_delete, "deleted");
}
