#include "engine/operation_view.h"

#include "base/clock.h"
#include "json/json.h"

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

/* ---- members of an answer ---- */

static json_t *metadata(struct hs_pool *pool, const struct hs_operation *op)
{
	json_t *meta = NULL;

	/* unreadable metadata never fails a page */
	if (hs_json_load(pool, op->result_metadata, &meta, NULL) != HS_OK || !json_is_object(meta))
		return hs_json_keep(pool, json_object());
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

void hs_operation_put_listed(struct hs_pool *pool, struct hs_out *o, const struct hs_operation *op)
{
	json_t *meta = metadata(pool, op);

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

/* ---- one operation ---- */

static void out_children(
	struct hs_pool *pool, struct hs_out *o, const struct hs_operation *ops, size_t n)
{
	hs_out_open(o, "child_operations", '[');
	for (size_t i = 0; i < n; i++) {
		json_t *meta = metadata(pool, &ops[i]);

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

enum hs_rc hs_operation_put(struct hs_db *db, struct hs_pool *pool, struct hs_out *o,
	const char *id, const struct hs_operation *op, bool payload, struct hs_err *err)
{
	static const struct hs_operation none = {.next_retry_us = HS_TIME_NONE,
		.created_us = HS_TIME_NONE,
		.updated_us = HS_TIME_NONE,
		.completed_us = HS_TIME_NONE};
	const struct hs_operation *row = op ? op : &none;
	json_t *meta = op ? metadata(pool, op) : NULL;
	struct hs_operation *children = NULL;
	size_t n = 0;

	if (op && op->is_parent)
		HS_TRY(hs_operation_children(db, pool, op->operation_id, &children, &n, err));
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "operation_id", id);
	hs_out_str(o, "id", id);
	hs_out_str(o, "status", op ? op->status : "not_found");
	hs_out_str(o, "operation_type", row->operation_type);
	hs_out_str(o, "task_type", row->operation_type);
	hs_out_str(o, "mental_model_id", hs_json_str(meta, "mental_model_id"));
	hs_out_time(o, "created_at", row->created_us);
	hs_out_time(o, "updated_at", row->updated_us);
	hs_out_time(o, "completed_at", row->completed_us);
	hs_out_str(o, "error_message", row->error_message);
	hs_out_json(
		o, "retry_count", op ? hs_json_keep(pool, json_integer(op->retry_count)) : NULL);
	hs_out_time(o, "next_retry_at", row->next_retry_us);
	out_progress(o, meta);
	hs_out_json(o, "result_metadata", meta);
	out_details(o, row, meta);
	if (op && op->is_parent)
		out_children(pool, o, children, n);
	else
		hs_out_null(o, "child_operations");
	hs_out_raw(o, "task_payload", payload ? row->task_payload : NULL, "null");
	hs_out_close(o, '}');
	return HS_OK;
}

bool hs_operation_open(const struct hs_operation *op)
{
	return hs_str_eq(op->status, "pending") || hs_str_eq(op->status, "processing");
}

enum hs_rc hs_operation_read_one(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, bool payload, struct hs_operation *ret, struct hs_err *err)
{
	HS_TRY(hs_operation_get(db, pool, bank_no, id, payload, ret, err));
	if (!ret->is_parent || !hs_operation_open(ret))
		return HS_OK;
	HS_TRY(hs_operation_heal(db, pool, ret, err));
	return hs_operation_get(db, pool, bank_no, id, payload, ret, err);
}
