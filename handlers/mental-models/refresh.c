#include "models.h"

#include "json/json.h"
#include "web/program.h"

struct hs_run mm_run(struct hs_ctx *c)
{
	const struct mm_data *data = c->app->data;

	return (struct hs_run){
		.db = c->db,
		.pool = c->pool,
		.server = c->cfg,
		.llm = data->llm,
		.embedder = data->embedder,
		.source = "api",
	};
}

enum hs_rc mm_refresh(struct hs_ctx *c, const void *query, const void *body)
{
	const struct mm_refresh *b = body;
	struct hs_run run = mm_run(c);
	const char *operation_id;
	struct hs_out o;

	(void)query;
	HS_TRY(hs_model_refresh(&run, c->bank_id, hs_param(c, "mental_model_id"), b->mode == 0,
		&operation_id, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "operation_id", operation_id);
	hs_out_str(&o, "status", "queued");
	hs_out_close(&o, '}');
	return HS_OK;
}

enum hs_rc mm_clear(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_run run = mm_run(c);
	const char *id = hs_param(c, "mental_model_id");

	(void)query;
	(void)body;
	HS_TRY(hs_model_clear(&run, c->bank_id, id, &c->err));
	return mm_reply(c, id);
}

/* A version has no `kind`; only a failed refresh does, and tells why it failed. */
static void out_event(struct hs_ctx *c, struct hs_out *o, const struct hs_mm_event *e)
{
	json_t *v = NULL;

	if (hs_json_load(c->pool, e->content, &v, NULL) != HS_OK)
		v = NULL;
	hs_out_open(o, NULL, '{');
	hs_out_json(o, "previous_content", json_object_get(v, "previous_content"));
	hs_out_json(
		o, "previous_reflect_response", json_object_get(v, "previous_reflect_response"));
	hs_out_time(o, "changed_at", e->changed_us);
	if (e->failed) {
		hs_out_str(o, "kind", "refresh_failed");
		hs_out_str(o, "outcome", hs_json_str(v, "outcome"));
		hs_out_str(o, "failure_reason", hs_json_str(v, "failure_reason"));
		hs_out_str(o, "error_message", hs_json_str(v, "error_message"));
	}
	hs_out_close(o, '}');
}

enum hs_rc mm_history(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_mm_event *events;
	struct hs_out o;
	size_t n;

	(void)query;
	(void)body;
	HS_TRY(hs_mm_history(
		c->db, c->pool, c->bank_id, hs_param(c, "mental_model_id"), &events, &n, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '[');
	for (size_t i = 0; i < n; i++)
		out_event(c, &o, &events[i]);
	hs_out_close(&o, ']');
	return HS_OK;
}
