#include "engine/reflect_body.h"

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "engine/response_schema.h"
#include "engine/trigger.h"

#define CONTEXT_LABEL "Additional context: "

/* ---- the body ---- */

static bool known_fact_type(struct hs_check *ck, size_t i, json_t *v)
{
	const char *s = json_string_value(v);

	if (s && hs_fact_type_find(s) >= 0)
		return true;
	hs_check_push_index(ck, i);
	hs_check_fault(ck, "literal_error",
		"Input should be 'world', 'experience' or 'observation'", v,
		"{\"expected\":\"'world', 'experience' or 'observation'\"}");
	hs_check_pop(ck);
	return false;
}

/* Null is all types; an empty list would be none and is refused. */
static void read_fact_types(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct hs_strs types = {0};
	json_t *member;
	size_t i;

	(void)f;
	if (!json_is_array(v)) {
		hs_check_fault(ck, "list_type", "Input should be a valid list", v, NULL);
		return;
	}
	if (json_array_size(v) == 0) {
		hs_check_value_error(
			ck, v, "fact_types must not be empty; leave it out for all types");
		return;
	}
	json_array_foreach(v, i, member) {
		const char *s = json_string_value(member);

		if (known_fact_type(ck, i, member) && !hs_strs_has(&types, s))
			hs_strs_add(hs_check_pool(ck), &types, s);
	}
	*(struct hs_strs *)place = types;
}

/* Whole-body rules, in this order; the first one alone is reported. */
static void body_rule(struct hs_check *ck, void *obj)
{
	const struct hs_reflect_body *b = obj;

	if (hs_str_blank(b->query) && hs_str_blank(b->context))
		hs_check_value_error(ck, NULL, "query must not be blank");
	else if (hs_given(&hs_reflect_body_shape, b, "tags") &&
		 hs_given(&hs_reflect_body_shape, b, "tag_groups"))
		hs_check_value_error(ck, NULL,
			"tags and tag_groups exclude each other; use tag_groups for compound "
			"filters");
}

static const struct hs_field tool_calls_fields[] = {
	HS_BOOL(struct hs_reflect_tool_calls, output, .def = "true",
		.doc = "false leaves the outputs out of the trace"),
};
static const struct hs_shape tool_calls_shape = HS_SHAPE(hs_reflect_tool_calls, tool_calls_fields);

static const struct hs_shape facts_shape = {
	.name = "hs_reflect_facts", .size = sizeof(struct hs_reflect_facts)};

static const struct hs_field include_fields[] = {
	HS_OBJ(struct hs_reflect_include, facts, &facts_shape, .flags = HS_NULLABLE,
		.doc = "{} adds based_on"),
	HS_OBJ(struct hs_reflect_include, tool_calls, &tool_calls_shape, .flags = HS_NULLABLE,
		.doc = "{} adds trace"),
};
static const struct hs_shape include_shape = HS_SHAPE(hs_reflect_include, include_fields);

/* clang-format off */
#define OPTION_FIELDS(T)                                                                           \
	HS_INT(T, reflect_search_observations_max_tokens, .flags = HS_NULLABLE, HS_MIN(1),         \
		.doc = "token budget of an observation search"),                                   \
	HS_BOOL(T, reflect_search_observations_include_entities, .flags = HS_NULLABLE,             \
		.doc = "entity names beside observations"),                                        \
	HS_INT(T, reflect_search_mental_models_max_tokens, .flags = HS_NULLABLE, HS_MIN(1),        \
		.doc = "token budget of mental models shown in full")
/* clang-format on */

static const struct hs_field options_fields[] = {OPTION_FIELDS(struct hs_reflect_options)};
static const struct hs_shape options_shape = HS_SHAPE(hs_reflect_options, options_fields);

#define T struct hs_reflect_body
static const struct hs_field body_fields[] = {
	HS_STR(T, query, .flags = HS_REQUIRED, .doc = "the question"),
	HS_ENUM(T, budget, hs_budget_names, .flags = HS_ENUM_ERROR, .def = "low",
		.doc = "depth of the search"),
	HS_STR(T, context, .flags = HS_NULLABLE, .doc = "deprecated: appended to the query"),
	HS_INT(T, max_tokens, .def = "4096", .doc = "wanted length of the answer"),
	HS_OBJ(T, include, &include_shape, .doc = "what to add to the answer"),
	HS_CUSTOM(T, response_schema, hs_response_schema_read, .flags = HS_NULLABLE,
		.doc = "JSON Schema of a structured answer"),
	HS_STRS(T, tags, .flags = HS_NULLABLE | HS_TAG_LIST, .doc = "tag scope"),
	HS_ENUM(T, tags_match, hs_tags_match_names, .def = "any", .doc = "how tags select"),
	HS_CUSTOM(T, tag_groups, hs_groups_read, .flags = HS_NULLABLE, .doc = "boolean tag scope"),
	HS_BOOL(T, apply_all_directives, .def = "false",
		.doc = "every active directive, whatever its tags"),
	HS_CUSTOM(T, fact_types, read_fact_types, .flags = HS_NULLABLE,
		.doc = "kinds of memories read; null is all"),
	HS_BOOL(T, exclude_mental_models, .def = "false", .doc = "no mental models"),
	HS_STRS(T, exclude_mental_model_ids, .flags = HS_NULLABLE, HS_RANGE(0, HS_EXPAND_IDS),
		.doc = "mental models to hide"),
	OPTION_FIELDS(T),
};
#undef T
const struct hs_shape hs_reflect_body_shape =
	HS_SHAPE(hs_reflect_body, body_fields, .rule = body_rule);

/* ---- from the body to the engine ---- */

static const char *question(struct hs_pool *pool, const struct hs_reflect_body *b)
{
	if (hs_str_blank(b->context))
		return b->query;
	if (hs_str_blank(b->query))
		return hs_pool_printf(pool, CONTEXT_LABEL "%s", b->context);
	return hs_pool_printf(pool, "%s\n\n" CONTEXT_LABEL "%s", b->query, b->context);
}

static struct hs_scope scope_of(const struct hs_reflect_body *b)
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
static void set_options(
	struct hs_pool *pool, struct hs_reflect_in *in, const struct hs_reflect_body *b)
{
	json_t *stored = hs_cfg_json(in->cfg, HS_S_reflect_default_options);
	struct hs_err ignored = {0};
	void *v;

	if (json_is_object(stored) && hs_check_object(pool, &options_shape, "body", stored, &v,
					      NULL, &ignored) == HS_OK) {
		const struct hs_reflect_options *o = v;

		lay_over(in, &options_shape, o, o->reflect_search_observations_max_tokens,
			o->reflect_search_observations_include_entities,
			o->reflect_search_mental_models_max_tokens);
	}
	lay_over(in, &hs_reflect_body_shape, b, b->reflect_search_observations_max_tokens,
		b->reflect_search_observations_include_entities,
		b->reflect_search_mental_models_max_tokens);
}

static struct hs_reflect_in input(struct hs_pool *pool, const struct hs_reflect_body *b,
	const struct hs_bank *bank, const struct hs_config *cfg)
{
	struct hs_reflect_in in = hs_reflect_defaults(bank, cfg, question(pool, b));

	in.budget = hs_budget_names[b->budget];
	in.max_tokens = b->max_tokens;
	in.scope = scope_of(b);
	in.apply_all_directives = b->apply_all_directives;
	in.exclude_mental_models = b->exclude_mental_models;
	in.exclude_mental_model_ids = b->exclude_mental_model_ids;
	in.response_schema = b->response_schema;
	set_options(pool, &in, b);
	return in;
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

static void count(
	struct hs_run *run, const struct hs_reflect_body *b, enum hs_rc rc, int64_t started_us)
{
	if (rc != HS_E_CLIENT_GONE)
		hs_metrics_operation("reflect", run->source, hs_budget_names[b->budget],
			hs_pool_printf(run->pool, "%lld", (long long)b->max_tokens), rc == HS_OK,
			hs_mono_us() - started_us);
}

enum hs_rc hs_reflect_call(struct hs_run *run, const char *bank_id, const struct hs_reflect_body *b,
	struct hs_reflect_out *ret, struct hs_err *err)
{
	int64_t started_us = hs_mono_us(), wall_s;
	struct hs_reflect_in in;
	struct hs_config *cfg;
	struct hs_bank bank;
	enum hs_rc rc;

	HS_TRY(hs_reflect_ready(run->server, "reflect", err));
	HS_TRY(hs_bank_ensure(run->db, run->pool, bank_id, &bank, NULL, err));
	HS_TRY(hs_bank_config(run->pool, run->server, &bank, &cfg, err));

	wall_s = hs_cfg_int(cfg, HS_S_reflect_wall_timeout);
	run->deadline_us = wall_s > 0 ? started_us + wall_s * HS_SECOND_US : 0;
	in = input(run->pool, b, &bank, cfg);
	rc = hs_reflect(run, &in, ret, err);
	if (rc != HS_OK)
		rc = failed(cfg, rc, err);
	count(run, b, rc, started_us);
	return rc;
}

/* ---- parts of the answer ---- */

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

void hs_reflect_put_fact(struct hs_out *o, const struct hs_reflect_fact *f)
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

void hs_reflect_put_usage(struct hs_out *o, const struct hs_llm_usage *u)
{
	hs_out_open(o, "usage", '{');
	hs_out_int(o, "input_tokens", u->input);
	hs_out_int(o, "output_tokens", u->output);
	hs_out_int(o, "total_tokens", u->input + u->output);
	hs_out_int(o, "cached_tokens", u->cached);
	hs_out_int(o, "thoughts_tokens", u->thoughts);
	hs_out_close(o, '}');
}
