#include "reflect.h"

#include "json/json.h"
#include "web/program.h"

#define MODEL_CONTEXT "concept (structural)"

/* ---- the answer ---- */

static void out_based_on(struct hs_out *o, const struct hs_reflect_out *r)
{
	hs_out_open(o, "based_on", '{');
	hs_out_open(o, "memories", '[');
	for (size_t i = 0; i < r->n_facts; i++)
		hs_reflect_put_fact(o, &r->facts[i]);
	hs_out_close(o, ']');
	hs_out_open(o, "mental_models", '[');
	for (size_t i = 0; i < r->n_models; i++) {
		hs_out_open(o, NULL, '{');
		hs_out_str(o, "id", r->models[i].id);
		hs_out_str(o, "text", r->models[i].text);
		hs_out_str(o, "context", MODEL_CONTEXT);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
	hs_out_open(o, "directives", '[');
	for (size_t i = 0; i < r->n_directives; i++) {
		hs_out_open(o, NULL, '{');
		hs_out_str(o, "id", r->directives[i].id);
		hs_out_str(o, "name", r->directives[i].name);
		hs_out_str(o, "content", r->directives[i].content);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
	hs_out_close(o, '}');
}

static void out_trace(struct hs_out *o, const struct hs_reflect_out *r, bool with_output)
{
	hs_out_open(o, "trace", '{');
	hs_out_open(o, "tool_calls", '[');
	for (size_t i = 0; i < r->n_tools; i++) {
		const struct hs_tool_trace *t = &r->tools[i];

		hs_out_open(o, NULL, '{');
		hs_out_str(o, "tool", t->tool);
		hs_out_json(o, "input", t->input);
		if (with_output)
			hs_out_json(o, "output", t->output);
		hs_out_int(o, "duration_ms", t->duration_ms);
		hs_out_int(o, "iteration", t->iteration);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
	hs_out_open(o, "llm_calls", '[');
	for (size_t i = 0; i < r->n_calls; i++) {
		hs_out_open(o, NULL, '{');
		hs_out_str(o, "scope", r->calls[i].scope);
		hs_out_int(o, "duration_ms", r->calls[i].duration_ms);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
	hs_out_close(o, '}');
}

static void answer(
	struct hs_ctx *c, const struct hs_reflect_include *include, const struct hs_reflect_out *r)
{
	struct hs_out o = hs_reply(c);

	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "text", r->text);
	if (include && include->facts)
		out_based_on(&o, r);
	if (r->structured_output)
		hs_out_json(&o, "structured_output", r->structured_output);
	if (!hs_str_empty(r->structured_error))
		hs_out_str(&o, "structured_output_error", r->structured_error);
	hs_reflect_put_usage(&o, &r->usage);
	if (include && include->tool_calls)
		out_trace(&o, r, include->tool_calls->output);
	hs_out_close(&o, '}');
}

/* ---- the call ---- */

static bool gone(void *arg)
{
	return hs_request_gone(arg);
}

enum hs_rc reflect_post(struct hs_ctx *c, const void *query, const void *body)
{
	const struct hs_reflect_body *b = body;
	const struct reflect_data *data = c->app->data;
	struct hs_reflect_out out;
	struct hs_run run = {
		.db = c->db,
		.pool = c->pool,
		.server = c->cfg,
		.llm = data->llm,
		.embedder = data->embedder,
		.cancelled = gone,
		.cancel_arg = c,
		.source = "api",
	};

	(void)query;
	HS_TRY(hs_reflect_call(&run, c->bank_id, b, &out, &c->err));
	answer(c, b->include, &out);
	return HS_OK;
}
