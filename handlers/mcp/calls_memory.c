#include "mcp.h"

#include "base/clock.h"
#include "engine/memory_view.h"
#include "engine/recall_body.h"
#include "engine/recall_view.h"
#include "engine/reflect_body.h"
#include "engine/retain_item.h"
#include "engine/trigger.h"
#include "json/json.h"

#define SHOWN_CHARS 100 /* of a refused text */

/* The word in lower case when it is a budget, else what unknown words mean. */
static const char *budget(struct hs_pool *pool, const char *given, const char *otherwise)
{
	const char *word = hs_str_lower_ascii(pool, given);

	for (size_t i = 0; hs_budget_names[i]; i++)
		if (hs_str_eq(word, hs_budget_names[i]))
			return word;
	return otherwise;
}

enum hs_rc mcp_time(struct mcp_call *k, const char *text, int64_t *ret_us)
{
	*ret_us = HS_TIME_NONE;
	if (hs_str_empty(text))
		return HS_OK;
	if (!hs_time_parse(text, ret_us))
		return hs_fail(k->err, HS_E_BAD_REQUEST,
			"Invalid timestamp format '%s'. Expected ISO format like '2024-01-15T10:30:00' or "
			"'2024-01-15T10:30:00Z'",
			hs_utf8_cut(k->c->pool, text, SHOWN_CHARS));
	if (hs_time_is_placeholder(*ret_us))
		return hs_fail(k->err, HS_E_BAD_REQUEST,
			"Timestamp year %d is a placeholder, not a date.",
			hs_civil_from_us(*ret_us).year);
	return HS_OK;
}

/* ---- retain ---- */

struct retain_args {
	struct hs_seen seen;
	const char *content, *context, *timestamp, *document_id, *strategy, *update_mode;
	struct hs_strs tags;
	json_t *metadata;
};
#define T struct retain_args
static const struct hs_field retain_fields[] = {
	HS_STR(T, content, .flags = HS_REQUIRED, .doc = "what to remember, in full sentences"),
	HS_STR(T, context, .def = "general",
		.doc = "category, for example preferences or work_history"),
	HS_STR(T, timestamp, .flags = HS_NULLABLE, .doc = "when it happened or was said, ISO 8601"),
	HS_STRS(T, tags, .flags = HS_NULLABLE | HS_STR_LIST_LAX,
		.doc = "labels to filter by later"),
	HS_CUSTOM(T, metadata, hs_string_dict_read, .flags = HS_NULLABLE,
		.doc = "texts kept with the memory"),
	HS_STR(T, document_id, .flags = HS_NULLABLE,
		.doc = "document to store it as; replaces that one"),
	HS_STR(T, strategy, .flags = HS_NULLABLE,
		.doc = "named set of retain settings of the bank"),
	HS_STR(T, update_mode, .flags = HS_NULLABLE,
		.doc = "replace or append, for a document_id that exists"),
};
#undef T
const struct hs_shape mcp_retain_args = HS_SHAPE(retain_args, retain_fields);

/* The arguments as one item of HTTP's retain. */
static enum hs_rc read_item(
	struct mcp_call *k, const struct retain_args *a, struct hs_retain_item *ret)
{
	json_t *body = hs_json_keep(k->c->pool, json_object());
	const struct hs_strs no_tags = {0};
	int64_t time_us;
	void *item;

	HS_TRY(mcp_time(k, a->timestamp, &time_us));
	for (size_t i = 0; i < mcp_retain_args.n_fields; i++)
		mcp_keep(body, k->sent, mcp_retain_args.fields[i].name);
	json_object_set_new(body, "context", json_string(a->context));
	HS_TRY(mcp_body(k, &hs_item_shape, body, &item));
	*ret = hs_item_make(k->c->pool, item, &no_tags);
	return hs_items_check(k->run, k->bank_id, ret, 1, k->err);
}

enum hs_rc mcp_retain(struct mcp_call *k, const void *args)
{
	struct hs_retain_item item;
	const char *id;
	int64_t count;

	HS_TRY(read_item(k, args, &item));
	HS_TRY(hs_retain_submit(k->run, k->bank_id, NULL, &item, 1, &id, &count, k->err));
	hs_out_open(k->o, NULL, '{');
	hs_out_str(k->o, "status", "accepted");
	hs_out_str(k->o, "message", "Memory storage initiated");
	hs_out_str(k->o, "operation_id", id);
	hs_out_close(k->o, '}');
	return HS_OK;
}

/* ---- recall ---- */

struct recall_args {
	struct hs_seen seen;
	const char *query, *budget, *query_timestamp;
	int64_t max_tokens, max_chunk_tokens, max_entity_tokens, max_source_facts_tokens;
	struct hs_strs types, tags;
	bool prefer_observations, include_chunks, include_entities, include_source_facts;
	int tags_match;
	json_t *tag_groups, *min_scores, *temporal_window;
};
#define T struct recall_args
static const struct hs_field recall_fields[] = {
	HS_STR(T, query, .flags = HS_REQUIRED, .doc = "what to look for, in natural language"),
	HS_INT(T, max_tokens, .flags = HS_NO_BOOL, .def = "4096",
		.doc = "tokens of returned texts"),
	HS_STR(T, budget, .def = "high", .doc = "depth of the search: low, mid or high"),
	HS_STRS(T, types, .flags = HS_NULLABLE,
		.doc = "world, experience, observation; null is all"),
	HS_BOOL(T, prefer_observations, .flags = HS_NULLABLE,
		.doc = "leave out facts that a returned observation covers; null is the bank's setting"),
	HS_STRS(T, tags, .flags = HS_NULLABLE, .doc = "only memories with these tags"),
	HS_ENUM(T, tags_match, hs_tags_match_names, .def = "any",
		.doc = "any or all of the tags, untagged ones too unless strict; exact: this very set"),
	HS_CUSTOM(T, tag_groups, mcp_objects_read, .flags = HS_NULLABLE,
		.doc = "boolean filter of {tags, match}, {and}, {or}, {not}; not beside tags"),
	HS_STR(T, query_timestamp, .flags = HS_NULLABLE,
		.doc = "when the question is asked, ISO 8601"),
	HS_DICT(T, min_scores, .flags = HS_NULLABLE,
		.doc = "least scores: semantic, keyword, reranker, final"),
	HS_DICT(T, temporal_window, .flags = HS_NULLABLE,
		.doc = "time asked about: start and end, ISO 8601"),
	HS_BOOL(T, include_chunks, .def = "false", .doc = "add the source texts"),
	HS_INT(T, max_chunk_tokens, .flags = HS_NO_BOOL, .def = "8192",
		.doc = "tokens of source texts"),
	HS_BOOL(T, include_entities, .def = "false", .doc = "add the people and things named"),
	HS_INT(T, max_entity_tokens, .flags = HS_NO_BOOL, .def = "500",
		.doc = "tokens of entities"),
	HS_BOOL(T, include_source_facts, .def = "false",
		.doc = "add the facts that observations rest on"),
	HS_INT(T, max_source_facts_tokens, .flags = HS_NO_BOOL, .def = "4096",
		.doc = "tokens of those facts"),
};
#undef T
const struct hs_shape mcp_recall_args = HS_SHAPE(recall_args, recall_fields);

static void add_include(json_t *include, const char *key, bool on, int64_t max_tokens)
{
	if (on)
		json_object_set_new(
			include, key, json_pack("{s:I}", "max_tokens", (json_int_t)max_tokens));
}

/* The arguments as HTTP's recall body. */
static json_t *recall_body(struct mcp_call *k, const struct recall_args *a)
{
	static const char *const same[] = {"query", "max_tokens", "types", "prefer_observations",
		"tags", "tag_groups", "query_timestamp", "min_scores", "temporal_window"};
	json_t *body = hs_json_keep(k->c->pool, json_object()), *include = json_object();

	for (size_t i = 0; i < HS_COUNT(same); i++)
		mcp_keep(body, k->sent, same[i]);
	if (json_object_get(body, "tags"))
		json_object_set_new(
			body, "tags_match", json_string(hs_tags_match_names[a->tags_match]));
	json_object_set_new(body, "budget", json_string(budget(k->c->pool, a->budget, "high")));
	if (!a->include_entities)
		json_object_set_new(include, "entities", json_null());
	add_include(include, "entities", a->include_entities, a->max_entity_tokens);
	add_include(include, "chunks", a->include_chunks, a->max_chunk_tokens);
	add_include(include, "source_facts", a->include_source_facts, a->max_source_facts_tokens);
	json_object_set_new(body, "include", include);
	return body;
}

enum hs_rc mcp_recall(struct mcp_call *k, const void *args)
{
	const struct recall_args *a = args;
	struct hs_recall_out out;
	struct hs_recall_in in;
	int64_t query_us;
	void *body;

	HS_TRY(mcp_time(k, a->query_timestamp, &query_us));
	HS_TRY(mcp_body(k, &hs_recall_body_shape, recall_body(k, a), &body));
	HS_TRY(hs_recall_call(k->run, k->bank_id, body, &in, &out, k->err));
	hs_recall_put(k->o, HS_RECALL_MCP, &in, &out);
	return HS_OK;
}

/* ---- reflect ---- */

struct reflect_args {
	struct hs_seen seen;
	const char *query, *context, *budget;
	int64_t max_tokens;
	json_t *response_schema;
	struct hs_strs tags;
	int tags_match;
	bool apply_all_directives, include_based_on, include_trace;
};
#define T struct reflect_args
static const struct hs_field reflect_fields[] = {
	HS_STR(T, query, .flags = HS_REQUIRED, .doc = "the question"),
	HS_STR(T, context, .flags = HS_NULLABLE,
		.doc = "why it is asked, or what else to consider"),
	HS_STR(T, budget, .def = "low", .doc = "depth of the search: low, mid or high"),
	HS_INT(T, max_tokens, .flags = HS_NO_BOOL, .def = "4096",
		.doc = "wanted length of the answer"),
	HS_DICT(T, response_schema, .flags = HS_NULLABLE,
		.doc = "JSON Schema of a structured answer"),
	HS_STRS(T, tags, .flags = HS_NULLABLE, .doc = "only memories with these tags"),
	HS_ENUM(T, tags_match, hs_tags_match_names, .def = "any",
		.doc = "any or all of the tags, untagged ones too unless strict; exact: this very set"),
	HS_BOOL(T, apply_all_directives, .def = "false",
		.doc = "follow every directive, whatever its tags"),
	HS_BOOL(T, include_based_on, .def = "false", .doc = "add the memories the answer rests on"),
	HS_BOOL(T, include_trace, .def = "false", .doc = "add how the answer was found"),
};
#undef T
const struct hs_shape mcp_reflect_args = HS_SHAPE(reflect_args, reflect_fields);

static json_t *reflect_body(struct mcp_call *k, const struct reflect_args *a)
{
	static const char *const same[] = {"query", "context", "max_tokens", "response_schema",
		"tags", "apply_all_directives"};
	json_t *body = hs_json_keep(k->c->pool, json_object());

	for (size_t i = 0; i < HS_COUNT(same); i++)
		mcp_keep(body, k->sent, same[i]);
	if (json_object_get(body, "tags"))
		json_object_set_new(
			body, "tags_match", json_string(hs_tags_match_names[a->tags_match]));
	json_object_set_new(body, "budget", json_string(budget(k->c->pool, a->budget, "low")));
	return body;
}

static void put_facts(struct hs_out *o, const struct hs_reflect_out *r, enum hs_fact_type type)
{
	const char *name = hs_fact_type_names[type];

	hs_out_open(o, name, '[');
	for (size_t i = 0; i < r->n_facts; i++)
		if (hs_str_eq(r->facts[i].type ? r->facts[i].type : "world", name))
			hs_reflect_put_fact(o, &r->facts[i]);
	hs_out_close(o, ']');
}

static void put_directives(struct hs_out *o, const char *key, const struct hs_reflect_out *r)
{
	hs_out_open(o, key, '[');
	for (size_t i = 0; i < r->n_directives; i++) {
		hs_out_open(o, NULL, '{');
		hs_out_str(o, "id", r->directives[i].id);
		hs_out_str(o, "name", r->directives[i].name);
		hs_out_str(o, "content", r->directives[i].content);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
}

/* The evidence by kind. */
static void put_based_on(struct hs_out *o, const struct hs_reflect_out *r)
{
	hs_out_open(o, "based_on", '{');
	for (int type = 0; type < HS_FACT_TYPE__MAX; type++)
		put_facts(o, r, (enum hs_fact_type)type);
	hs_out_open(o, "mental-models", '[');
	for (size_t i = 0; i < r->n_models; i++) {
		hs_out_open(o, NULL, '{');
		hs_out_str(o, "id", r->models[i].id);
		hs_out_str(o, "text", r->models[i].text);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
	put_directives(o, "directives", r);
	hs_out_close(o, '}');
}

static void put_trace(struct hs_out *o, const struct hs_reflect_out *r)
{
	hs_out_open(o, "tool_trace", '[');
	for (size_t i = 0; i < r->n_tools; i++) {
		hs_out_open(o, NULL, '{');
		hs_out_str(o, "tool", r->tools[i].tool);
		hs_out_json(o, "input", r->tools[i].input);
		hs_out_json(o, "output", r->tools[i].output);
		hs_out_int(o, "duration_ms", r->tools[i].duration_ms);
		hs_out_int(o, "iteration", r->tools[i].iteration);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
	hs_out_open(o, "llm_trace", '[');
	for (size_t i = 0; i < r->n_calls; i++) {
		hs_out_open(o, NULL, '{');
		hs_out_str(o, "scope", r->calls[i].scope);
		hs_out_int(o, "duration_ms", r->calls[i].duration_ms);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
	put_directives(o, "directives_applied", r);
}

enum hs_rc mcp_reflect(struct mcp_call *k, const void *args)
{
	const struct reflect_args *a = args;
	struct hs_reflect_out out;
	void *body;

	HS_TRY(mcp_body(k, &hs_reflect_body_shape, reflect_body(k, a), &body));
	HS_TRY(hs_reflect_call(k->run, k->bank_id, body, &out, k->err));
	hs_out_open(k->o, NULL, '{');
	hs_out_str(k->o, "text", out.text);
	hs_out_json(k->o, "structured_output", out.structured_output);
	hs_out_str(k->o, "structured_output_error", out.structured_error);
	hs_reflect_put_usage(k->o, &out.usage);
	if (a->include_based_on)
		put_based_on(k->o, &out);
	if (a->include_trace)
		put_trace(k->o, &out);
	hs_out_close(k->o, '}');
	return HS_OK;
}

/* ---- get_memory ---- */

struct memory_args {
	struct hs_seen seen;
	const char *memory_id;
};
static const struct hs_field memory_fields[] = {
	HS_STR(struct memory_args, memory_id, .flags = HS_REQUIRED, .doc = "id of the memory"),
};
const struct hs_shape mcp_memory_args = HS_SHAPE(memory_args, memory_fields);

enum hs_rc mcp_get_memory(struct mcp_call *k, const void *args)
{
	const char *id = ((const struct memory_args *)args)->memory_id;
	enum hs_rc rc = hs_memory_put(k->c->db, k->c->pool, k->o, k->bank_id, id, k->err);

	if (rc == HS_E_NOT_FOUND)
		return hs_fail(k->err, rc, "Memory '%s' not found", id);
	return rc;
}
