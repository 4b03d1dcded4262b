#include "models.h"

#include "engine/model_scope.h"

/* A member that a level does not show, or that is not asked, is null. */
enum answer { NO, YES, UNASKED };

static void out_answer(struct hs_out *o, const char *key, enum answer a)
{
	if (a == UNASKED)
		hs_out_null(o, key);
	else
		hs_out_bool(o, key, a == YES);
}

static void out_content(struct hs_ctx *c, struct hs_out *o, const struct hs_mm *m, bool shown)
{
	hs_out_str(o, "source_query", shown ? m->source_query : NULL);
	hs_out_str(o, "content", shown ? m->content : NULL);
	hs_out_raw(o, "tags", m->tags, "[]");
	if (!shown) {
		hs_out_null(o, "max_tokens");
		hs_out_null(o, "trigger");
		return;
	}
	hs_out_int(o, "max_tokens", m->max_tokens);
	hs_out_raw(o, "trigger", mm_trigger_shown(c, m->trigger), "null");
}

static void out_model(struct hs_ctx *c, struct hs_out *o, const struct hs_mm *m,
	enum hs_detail detail, enum answer page, enum answer stale)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", m->id);
	hs_out_str(o, "bank_id", c->bank_id);
	hs_out_str(o, "name", m->name);
	out_content(c, o, m, detail >= HS_CONTENT);
	hs_out_time(o, "last_refreshed_at", m->last_refreshed_us);
	hs_out_time(o, "last_memory_seen_at", m->last_memory_seen_us);
	hs_out_time(o, "last_refresh_failed_at", m->last_refresh_failed_us);
	hs_out_time(o, "last_full_refreshed_at", m->last_full_refreshed_us);
	hs_out_time(o, "created_at", m->created_us);
	out_answer(o, "is_knowledge_page", page);
	hs_out_raw(o, "reflect_response", detail == HS_FULL ? m->reflect_response : NULL, "null");
	out_answer(o, "is_stale", stale);
	hs_out_close(o, '}');
}

enum hs_rc mm_reply(struct hs_ctx *c, const char *id)
{
	struct hs_mm m;
	struct hs_out o;

	HS_TRY(hs_mm_get(c->db, c->pool, c->bank_id, id, HS_FULL, &m, &c->err));
	o = hs_reply(c);
	out_model(c, &o, &m, HS_FULL, UNASKED, UNASKED);
	return HS_OK;
}

enum hs_rc mm_get(struct hs_ctx *c, const void *query, const void *body)
{
	const struct mm_get_query *q = query;
	const char *id = hs_param(c, "mental_model_id");
	bool stale = false;
	struct hs_mm m;
	struct hs_out o;

	(void)body;
	HS_TRY(hs_mm_get(c->db, c->pool, c->bank_id, id, (enum hs_detail)q->detail, &m, &c->err));
	if (q->detail == HS_FULL)
		HS_TRY(hs_model_stale(c->db, c->pool, &m, &stale, &c->err));
	hs_reply_etag(c);
	o = hs_reply(c);
	out_model(c, &o, &m, (enum hs_detail)q->detail, NO,
		q->detail < HS_FULL ? UNASKED
		: stale             ? YES
				    : NO);
	return HS_OK;
}

enum hs_rc mm_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct mm_list_query *q = query;
	struct hs_mm_list in = {
		.bank_id = c->bank_id,
		.tags = q->tags,
		.match = q->tags_match,
		.detail = (enum hs_detail)q->detail,
		.limit = q->limit,
		.offset = q->offset,
	};
	struct hs_mm_page page;
	struct hs_out o;
	bool *stale;

	(void)body;
	HS_TRY(hs_mm_list(c->db, c->pool, &in, &page, &c->err));
	stale = HS_NEW_ARRAY(c->pool, bool, page.n + 1);
	HS_TRY(hs_models_stale(
		c->db, c->pool, page.bank_no, page.clock_us, page.v, page.n, stale, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < page.n; i++)
		out_model(c, &o, &page.v[i], in.detail, NO, stale[i] ? YES : NO);
	hs_out_close(&o, ']');
	hs_out_int(&o, "total", page.total);
	hs_out_int(&o, "limit", q->limit);
	hs_out_int(&o, "offset", q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}

enum hs_rc mm_create(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_model_new in = hs_model_new_of(c->bank_id, body);
	struct hs_run run = mm_run(c);
	const char *id, *operation_id;
	struct hs_out o;

	(void)query;
	HS_TRY(hs_model_create(&run, &in, &id, &operation_id, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "mental_model_id", id);
	hs_out_str(&o, "operation_id", operation_id);
	hs_out_close(&o, '}');
	return HS_OK;
}

enum hs_rc mm_patch(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_model_patch in =
		hs_model_patch_of(c->bank_id, hs_param(c, "mental_model_id"), body);
	struct hs_run run = mm_run(c);

	(void)query;
	HS_TRY(hs_model_patch(&run, &in, &c->err));
	return mm_reply(c, in.id);
}

enum hs_rc mm_delete(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_out o;

	(void)query;
	(void)body;
	HS_TRY(hs_mm_delete(c->db, c->pool, c->bank_id, hs_param(c, "mental_model_id"), &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "status", "deleted");
	hs_out_close(&o, '}');
	return HS_OK;
}
