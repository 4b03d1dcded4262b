#include "reflect.h"

#include <string.h>

#include "base/limits.h"
#include "engine/response_schema.h"

const char *const reflect_budgets[] = {"low", "mid", "high", NULL};

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
	const struct reflect_body *b = obj;

	if (hs_str_blank(b->query) && hs_str_blank(b->context))
		hs_check_value_error(ck, NULL, "query must not be blank");
	else if (hs_given(&reflect_body_shape, b, "tags") &&
		 hs_given(&reflect_body_shape, b, "tag_groups"))
		hs_check_value_error(ck, NULL,
			"tags and tag_groups exclude each other; use tag_groups for compound "
			"filters");
}

static const struct hs_field tool_calls_fields[] = {
	HS_BOOL(struct reflect_tool_calls, output, .def = "true",
		.doc = "false leaves the outputs out of the trace"),
};
static const struct hs_shape tool_calls_shape = HS_SHAPE(reflect_tool_calls, tool_calls_fields);

static const struct hs_shape facts_shape = {
	.name = "reflect_facts", .size = sizeof(struct reflect_facts)};

static const struct hs_field include_fields[] = {
	HS_OBJ(struct reflect_include, facts, &facts_shape, .flags = HS_NULLABLE,
		.doc = "{} adds based_on"),
	HS_OBJ(struct reflect_include, tool_calls, &tool_calls_shape, .flags = HS_NULLABLE,
		.doc = "{} adds trace"),
};
static const struct hs_shape include_shape = HS_SHAPE(reflect_include, include_fields);

/* clang-format off */
#define OPTION_FIELDS(T)                                                                           \
	HS_INT(T, reflect_search_observations_max_tokens, .flags = HS_NULLABLE, HS_MIN(1),         \
		.doc = "token budget of an observation search"),                                   \
	HS_BOOL(T, reflect_search_observations_include_entities, .flags = HS_NULLABLE,             \
		.doc = "entity names beside observations"),                                        \
	HS_INT(T, reflect_search_mental_models_max_tokens, .flags = HS_NULLABLE, HS_MIN(1),        \
		.doc = "token budget of mental models shown in full")
/* clang-format on */

static const struct hs_field options_fields[] = {OPTION_FIELDS(struct reflect_options)};
const struct hs_shape reflect_options_shape = HS_SHAPE(reflect_options, options_fields);

#define T struct reflect_body
static const struct hs_field body_fields[] = {
	HS_STR(T, query, .flags = HS_REQUIRED, .doc = "the question"),
	HS_ENUM(T, budget, reflect_budgets, .flags = HS_ENUM_ERROR, .def = "low",
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
const struct hs_shape reflect_body_shape = HS_SHAPE(reflect_body, body_fields, .rule = body_rule);

const struct hs_route reflect_routes[] = {
	{
		.method = HS_POST,
		.pattern = "/v1/default/banks/{bank_id}/reflect",
		.fn = reflect_post,
		.body = &reflect_body_shape,
		.flags = HS_R_LONG | HS_R_READ,
		.long_name = "reflect",
	},
	{.pattern = NULL},
};
