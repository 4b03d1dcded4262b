#include "mcp.h"

#include "base/id.h"
#include "engine/operation_view.h"
#include "json/json.h"
#include "store/bank.h"

struct list_args {
	struct hs_seen seen;
	const char *status, *type;
	int64_t limit, offset;
	bool exclude_parents;
};
#define T struct list_args
static const struct hs_field list_fields[] = {
	HS_STR(T, status, .flags = HS_NULLABLE,
		.doc = "only in this state: pending, processing, completed, failed, cancelled"),
	HS_STR(T, type, .flags = HS_NULLABLE,
		.doc = "only of this type, for example refresh_mental_model"),
	HS_INT(T, limit, HS_RANGE(1, 100), .flags = HS_NO_BOOL, .def = "20",
		.doc = "rows of the page"),
	HS_INT(T, offset, HS_MIN(0), .flags = HS_NO_BOOL, .def = "0", .doc = "rows to skip"),
	HS_BOOL(T, exclude_parents, .def = "false", .doc = "leave out the parents of batches"),
};
#undef T
const struct hs_shape mcp_list_operations_args = HS_SHAPE(list_args, list_fields);

enum hs_rc mcp_list_operations(struct mcp_call *k, const void *args)
{
	const struct list_args *a = args;
	struct hs_operation_filter f = {
		a->status, a->type, a->exclude_parents, a->limit, a->offset};
	struct hs_operation *ops;
	struct hs_bank bank;
	int64_t total;
	size_t n;

	HS_TRY(hs_bank_find(k->c->db, k->c->pool, k->bank_id, &bank, k->err));
	HS_TRY(hs_operation_list(k->c->db, k->c->pool, bank.bank_no, &f, &ops, &n, &total, k->err));
	hs_out_open(k->o, NULL, '{');
	hs_out_int(k->o, "total", total);
	hs_out_open(k->o, "operations", '[');
	for (size_t i = 0; i < n; i++)
		hs_operation_put_listed(k->c->pool, k->o, &ops[i]);
	hs_out_close(k->o, ']');
	hs_out_close(k->o, '}');
	return HS_OK;
}

/* ---- one operation ---- */

struct one_args {
	struct hs_seen seen;
	const char *operation_id;
};
static const struct hs_field one_fields[] = {
	HS_STR(struct one_args, operation_id, .flags = HS_REQUIRED, .doc = "id of the operation"),
};
const struct hs_shape mcp_operation_args = HS_SHAPE(one_args, one_fields);

/* id in normal form; *ret the bank. */
static enum hs_rc find(
	struct mcp_call *k, const char *given, char id[HS_UUID_TEXT], struct hs_bank *ret)
{
	if (!hs_uuid_parse(given, id))
		return hs_fail(k->err, HS_E_BAD_REQUEST, "Invalid operation_id format: %s", given);
	return hs_bank_find(k->c->db, k->c->pool, k->bank_id, ret, k->err);
}

static void put_missing(struct hs_out *o, const char *id)
{
	static const char *const empty[] = {"operation_type", "task_type", "created_at",
		"updated_at", "completed_at", "error_message"};

	hs_out_open(o, NULL, '{');
	hs_out_str(o, "operation_id", id);
	hs_out_str(o, "id", id);
	hs_out_str(o, "status", "not_found");
	for (size_t i = 0; i < HS_COUNT(empty); i++)
		hs_out_null(o, empty[i]);
	hs_out_close(o, '}');
}

enum hs_rc mcp_get_operation(struct mcp_call *k, const void *args)
{
	const char *given = ((const struct one_args *)args)->operation_id;
	char id[HS_UUID_TEXT];
	struct hs_operation op;
	struct hs_bank bank;
	enum hs_rc rc = find(k, given, id, &bank);

	if (rc == HS_OK)
		rc = hs_operation_read_one(
			k->c->db, k->c->pool, bank.bank_no, id, false, &op, k->err);
	if (rc == HS_E_NOT_FOUND || rc == HS_E_BANK_MISSING) {
		hs_err_clear(k->err);
		put_missing(k->o, given);
		return HS_OK;
	}
	HS_TRY(rc);
	return hs_operation_put(k->c->db, k->c->pool, k->o, given, &op, false, k->err);
}

enum hs_rc mcp_cancel_operation(struct mcp_call *k, const void *args)
{
	const char *given = ((const struct one_args *)args)->operation_id;
	char id[HS_UUID_TEXT];
	struct hs_bank bank;
	enum hs_rc rc = find(k, given, id, &bank);

	if (rc == HS_E_BANK_MISSING)
		return hs_operation_missing(k->bank_id, given, k->err);
	HS_TRY(rc);
	HS_TRY(hs_operation_cancel(k->c->db, k->c->pool, bank.bank_no, k->bank_id, id, k->err));
	hs_out_open(k->o, NULL, '{');
	hs_out_bool(k->o, "success", true);
	hs_out_str(k->o, "message", hs_pool_printf(k->c->pool, "Operation %s cancelled", given));
	hs_out_str(k->o, "operation_id", given);
	hs_out_str(k->o, "bank_id", k->bank_id);
	hs_out_close(k->o, '}');
	return HS_OK;
}
