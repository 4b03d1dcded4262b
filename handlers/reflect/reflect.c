#include "reflect.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/reflect.h"
#include "json/json.h"
#include "web/program.h"

#define CONTEXT_LABEL "Additional context: "
#define MODEL_CONTEXT "concept (structural)"

/* ---- from the body to the engine ---- */

static const char *question(struct hs_pool *pool, const struct reflect_body *b)
{
	if (hs_str_blank(b->context))
		return b->query;
	if (hs_str_blank(b->query))
		return hs_pool_printf(pool, CONTEXT_LABEL "%s", b->context);
	return hs_pool_printf(pool, "%s\n\n" CONTEXT_LABEL "%s", b->query, b->context);
}

static struct hs_scope scope_of(const struct reflect_body *b)
{
	struct hs_scope s = hs_scope_all();

	s.tags = b->tags;
	s.match = (enum hs_tags_match)b->tags_match;
	if (b->tag_groups) {
		s.has_groups = true;
		s.groups = b->tag_groups->v;
		s.n_groups = b->tag_groups->n;
	}
	for (size_t i = 0; i < b->fact_types.n; i++)
		s.facts |= HS_FACT_BIT(hs_fact_type_find(b->fact_types.v[i]));
	return s;
}

/* Copy the options that were given. */
static void lay_over(struct hs_reflect_in *in, const struct hs_shape *shape, const void *obj,
	int64_t observations, bool entities, int64_t models)
{
	if (hs_given(shape, obj, "reflect_search_observations_max_tokens"))
		in->observations_tokens = observations;
	if (hs_given(shape, obj, "reflect_search_observations_include_entities"))
		in->observations_entities = entities;
	if (hs_given(shape, obj, "reflect_search_mental_models_max_tokens"))
		in->models_tokens = models;
}

/* Shipped values, then the bank's reflect_default_options, then the request. */
static void set_options(struct hs_ctx *c, struct hs_reflect_in *in, const struct reflect_body *b)
{
	json_t *stored = hs_cfg_json(in->cfg, HS_S_reflect_default_options);
	struct hs_err ignored = {0};
	void *v;

	if (json_is_object(stored) && hs_check_object(c->pool, &reflect_options_shape, "body",
					      stored, &v, NULL, &ignored) == HS_OK) {
		const struct reflect_options *o = v;

		lay_over(in, &reflect_options_shape, o, o->reflect_search_observations_max_tokens,
			o->reflect_search_observations_include_entities,
			o->reflect_search_mental_models_max_tokens);
	}
	lay_over(in, &reflect_body_shape, b, b->reflect_search_observations_max_tokens,
		b->reflect_search_observations_include_entities,
		b->reflect_search_mental_models_max_tokens);
}

static struct hs_reflect_in input(struct hs_ctx *c, const struct reflect_body *b,
	const struct hs_bank *bank, const struct hs_config *cfg)
{
	struct hs_reflect_in in = hs_reflect_defaults(bank, cfg, question(c->pool, b));

	in.budget = reflect_budgets[b->budget];
	in.max_tokens = b->max_tokens;
	in.scope = scope_of(b);
	in.apply_all_directives = b->apply_all_directives;
	in.exclude_mental_models = b->exclude_mental_models;
	in.exclude_mental_model_ids = b->exclude_mental_model_ids;
	in.response_schema = b->response_schema;
	set_options(c, &in, b);
	return in;
}

static bool gone(void *arg)
{
	return hs_request_gone(arg);
}

static struct hs_run run_of(struct hs_ctx *c, const struct hs_config *cfg, int64_t started_us)
{
	const struct reflect_data *data = c->app->data;
	int64_t wall_s = hs_cfg_int(cfg, HS_S_reflect_wall_timeout);

	return (struct hs_run){
		.db = c->db,
		.pool = c->pool,
		.server = c->cfg,
		.llm = data->llm,
		.embedder = data->embedder,
		.cancelled = gone,
		.cancel_arg = c,
		.deadline_us = wall_s > 0 ? started_us + wall_s * HS_SECOND_US : 0,
		.source = "api",
	};
}

/* ---- the answer ---- */

static void out_text(struct hs_out *o, const char *key, const char *v)
{
	if (!hs_str_empty(v))
		hs_out_str(o, key, v);
}

static void out_time(struct hs_out *o, const char *key, int64_t us)
{
	if (us != HS_TIME_NONE)
		hs_out_time(o, key, us);
}

static void out_fact(struct hs_out *o, const struct hs_reflect_fact *f)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", f->id);
	hs_out_str(o, "text", f->text);
	hs_out_str(o, "type", f->type ? f->type : "world");
	out_text(o, "context", f->context);
	out_time(o, "occurred_start", f->occurred_start_us);
	out_time(o, "occurred_end", f->occurred_end_us);
	out_time(o, "mentioned_at", f->mentioned_us);
	out_text(o, "document_id", f->document_id);
	out_text(o, "chunk_id", f->chunk_id);
	hs_out_strs(o, "tags", &f->tags);
	if (!hs_str_empty(f->metadata))
		hs_out_raw(o, "metadata", f->metadata, "{}");
	hs_out_close(o, '}');
}

static void out_based_on(struct hs_out *o, const struct hs_reflect_out *r)
{
	hs_out_open(o, "based_on", '{');
	hs_out_open(o, "memories", '[');
	for (size_t i = 0; i < r->n_facts; i++)
		out_fact(o, &r->facts[i]);
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

static void out_usage(struct hs_out *o, const struct hs_llm_usage *u)
{
	hs_out_open(o, "usage", '{');
	hs_out_int(o, "input_tokens", u->input);
	hs_out_int(o, "output_tokens", u->output);
	hs_out_int(o, "total_tokens", u->input + u->output);
	hs_out_int(o, "cached_tokens", u->cached);
	hs_out_int(o, "thoughts_tokens", u->thoughts);
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
	struct hs_ctx *c, const struct reflect_include *include, const struct hs_reflect_out *r)
{
	struct hs_out o = hs_reply(c);

	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "text", r->text);
	if (include && include->facts)
		out_based_on(&o, r);
	if (r->structured_output)
		hs_out_json(&o, "structured_output", r->structured_output);
	out_text(&o, "structured_output_error", r->structured_error);
	out_usage(&o, &r->usage);
	if (include && include->tool_calls)
		out_trace(&o, r, include->tool_calls->output);
	hs_out_close(&o, '}');
}

/* ---- the call ---- */

static enum hs_rc failed(const struct hs_config *cfg, enum hs_rc rc, struct hs_err *err)
{
	switch (rc) {
	case HS_E_CANCELLED:
		return hs_fail(
			err, HS_E_CLIENT_GONE, "the client closed the connection during reflect");
	case HS_E_TIMEOUT:
	case HS_E_WALL_CLOCK:
		return hs_fail(err, HS_E_WALL_CLOCK,
			"reflect did not finish within %lld seconds; try a lower budget or a "
			"simpler question",
			(long long)hs_cfg_int(cfg, HS_S_reflect_wall_timeout));
	default:
		return rc;
	}
}

static void count(struct hs_ctx *c, const struct reflect_body *b, enum hs_rc rc, int64_t started_us)
{
	if (rc != HS_E_CLIENT_GONE)
		hs_metrics_operation("reflect", "api", reflect_budgets[b->budget],
			hs_pool_printf(c->pool, "%lld", (long long)b->max_tokens), rc == HS_OK,
			hs_mono_us() - started_us);
}

enum hs_rc reflect_post(struct hs_ctx *c, const void *query, const void *body)
{
	const struct reflect_body *b = body;
	int64_t started_us = hs_mono_us();
	struct hs_reflect_out out;
	struct hs_reflect_in in;
	struct hs_config *cfg;
	struct hs_bank bank;
	struct hs_run run;
	enum hs_rc rc;

	(void)query;
	HS_TRY(hs_reflect_ready(c->cfg, "reflect", &c->err));
	HS_TRY(hs_bank_ensure(c->db, c->pool, c->bank_id, &bank, NULL, &c->err));
	HS_TRY(hs_bank_config(c->pool, c->cfg, &bank, &cfg, &c->err));

	in = input(c, b, &bank, cfg);
	run = run_of(c, cfg, started_us);
	rc = hs_reflect(&run, &in, &out, &c->err);
	if (rc != HS_OK)
		rc = failed(cfg, rc, &c->err);
	count(c, b, rc, started_us);
	HS_TRY(rc);

	answer(c, b->include, &out);
	return HS_OK;
}
