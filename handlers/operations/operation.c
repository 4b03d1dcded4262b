#include "operations.h"

#include "base/clock.h"
#include "base/id.h"
#include "engine/operation_view.h"
#include "store/bank.h"

#define WAIT_STEP_US INT64_C(150000)

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
		hs_operation_put_listed(c->pool, &o, &ops[i]);
	hs_out_close(&o, ']');
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- one operation ---- */

static enum hs_rc still_open(
	struct hs_ctx *c, int64_t bank_no, const char *id, bool *ret, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_operation op;

	HS_TRY(hs_operation_get(c->db, pool, bank_no, id, false, &op, err));
	*ret = hs_operation_open(&op);
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
	return hs_operation_read_one(
		c->db, c->pool, bank.bank_no, id, q->include_payload, op, &c->err);
}

/* op NULL = missing */
static enum hs_rc reply_one(struct hs_ctx *c, const struct hs_operation *op, bool payload)
{
	struct hs_out o = hs_reply(c);

	return hs_operation_put(
		c->db, c->pool, &o, hs_param(c, "operation_id"), op, payload, &c->err);
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
