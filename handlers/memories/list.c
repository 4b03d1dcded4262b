#include "read.h"

#include <string.h>

#include "engine/memory_view.h"

/* ---- GET …/memories/list ---- */

static const char *const consolidation_names[] = {
	[HS_CONSOLIDATION_FAILED] = "failed",
	[HS_CONSOLIDATION_PENDING] = "pending",
	[HS_CONSOLIDATION_DONE] = "done",
};

static enum hs_rc read_states(
	struct hs_ctx *c, const struct memory_list_query *q, struct hs_memory_filter *f)
{
	f->consolidation = -1;
	for (size_t i = 0; i < HS_COUNT(consolidation_names); i++)
		if (q->consolidation_state &&
			hs_str_ieq_ascii(q->consolidation_state, consolidation_names[i]))
			f->consolidation = (int)i;
	f->invalidated = hs_str_eq(q->state, "invalidated");
	if (!hs_str_empty(q->state) && !f->invalidated && !hs_str_eq(q->state, "valid"))
		return hs_fail(&c->err, HS_E_BAD_REQUEST,
			"Invalid state '%s': expected 'valid' or 'invalidated'.", q->state);
	if (!hs_str_empty(q->consolidation_state) && f->consolidation < 0)
		return hs_fail(&c->err, HS_E_BAD_REQUEST,
			"Invalid consolidation_state '%s': expected 'failed', 'pending', or 'done'.",
			q->consolidation_state);
	if (!hs_str_empty(q->entity_id))
		HS_TRY(read_uuid(c, "entity_id", q->entity_id, &f->entity_id));
	return HS_OK;
}

enum hs_rc memory_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct memory_list_query *q = query;
	struct hs_memory_filter f = {
		.type = q->type,
		.q = q->q,
		.document_id = q->document_id,
		.scope = hs_scope_all(),
		.limit = q->limit,
		.offset = q->offset,
	};
	struct hs_memory_page page;
	struct hs_bank bank;
	struct hs_out o;

	(void)body;
	HS_TRY(read_window(c, q->time_field, 0, q->start_date, q->end_date, &f.window));
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(read_states(c, q, &f));
	HS_TRY(read_window_order(c, &f.window));
	f.scope.tags = q->tags;
	f.scope.match = (enum hs_tags_match)q->tags_match;
	HS_TRY(hs_memory_list(c->db, c->pool, bank.bank_no, &f, &page, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < page.n; i++)
		hs_memory_put_listed(c->pool, &o, bank.bank_id, &page.v[i]);
	hs_out_close(&o, ']');
	read_page_end(&o, page.total, q->limit, q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- GET …/memories/{memory_id} ---- */

enum hs_rc memory_get(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_out o = hs_reply(c);

	(void)query;
	(void)body;
	return hs_memory_put(c->db, c->pool, &o, c->bank_id, hs_param(c, "memory_id"), &c->err);
}

/* ---- DELETE …/memories ---- */

static enum hs_rc clear(
	struct hs_ctx *c, const struct hs_bank *bank, void *arg, struct hs_deleted *ret)
{
	return hs_memory_clear(c->db, c->pool, bank->bank_no, arg, ret, &c->err);
}

enum hs_rc memory_clear(struct hs_ctx *c, const void *query, const void *body)
{
	const char *type = ((const struct memory_clear_query *)query)->type;
	const char *bank_id = c->bank_id;
	struct hs_deleted deleted = {0};
	struct hs_bank bank;
	struct hs_out o;
	enum hs_rc rc = hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err);

	(void)body;
	if (rc == HS_OK) {
		bank_id = bank.bank_id;
		rc = read_delete(c, &bank, clear, (void *)type, &deleted);
	}
	/* deleting everything of a bank that is not there leaves nothing to say */
	if (rc == HS_E_BANK_MISSING)
		hs_err_clear(&c->err);
	else
		HS_TRY(rc);
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_bool(&o, "success", true);
	hs_out_str(&o, "message",
		hs_pool_printf(c->pool, "Cleared %lld memory unit(s)%s%s%s from bank '%s'",
			(long long)deleted.units, type ? " of type '" : "", type ? type : "",
			type ? "'" : "", bank_id));
	hs_out_int(&o, "deleted_count", deleted.units);
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- GET …/tags ---- */

enum hs_rc tag_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct tag_list_query *q = query;
	struct hs_tag_query want = {
		.models = q->source == 1, .q = q->q, .limit = q->limit, .offset = q->offset};
	struct hs_tag_count *tags;
	struct hs_bank bank;
	int64_t total;
	struct hs_out o;
	size_t n;

	(void)body;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(hs_tags_list(c->db, c->pool, bank.bank_no, &want, &tags, &n, &total, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < n; i++) {
		hs_out_open(&o, NULL, '{');
		hs_out_str(&o, "tag", tags[i].tag);
		hs_out_int(&o, "count", tags[i].count);
		hs_out_close(&o, '}');
	}
	hs_out_close(&o, ']');
	read_page_end(&o, total, q->limit, q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}
