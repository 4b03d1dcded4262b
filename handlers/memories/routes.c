#include "memories.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "text/words.h"

#define BANK "/v1/default/banks/{bank_id}"

static const char *const update_modes[] = {"replace", "append", NULL};
const char *const recall_budgets[] = {"low", "mid", "high", NULL};

/* ---- readers of an item ---- */

#define EMPTY_CONTENT "content cannot be empty"

/* One block's text; NULL with a fault when it is no text block. */
static const char *block_text(struct hs_check *ck, json_t *block)
{
	const char *type = json_string_value(json_object_get(block, "type"));
	json_t *text = json_object_get(block, "text");

	if (!type)
		hs_check_value_error(ck, block, "a content block needs a type");
	else if (strcmp(type, "image") == 0 || strcmp(type, "file") == 0)
		hs_check_value_error(ck, block,
			"content blocks of type '%s' are not supported; send text", type);
	else if (strcmp(type, "text") != 0)
		hs_check_value_error(ck, block, "unknown content block type; expected 'text'");
	else if (!json_is_string(text))
		hs_check_fault(ck, "string_type", "Input should be a valid string", text, NULL);
	else
		return json_string_value(text);
	return NULL;
}

/* A string, or blocks whose texts are joined. */
static void read_content(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct hs_pool *pool = hs_check_pool(ck);
	struct hs_strs parts = {0};
	const char *text;
	json_t *block;
	size_t i;

	(void)f;
	if (!json_is_string(v) && !json_is_array(v)) {
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
		return;
	}
	json_array_foreach(v, i, block) {
		hs_check_push_index(ck, i);
		text = block_text(ck, block);
		hs_check_pop(ck);
		if (!text)
			return;
		hs_strs_add(pool, &parts, text);
	}
	text = json_is_string(v) ? hs_pool_strdup(pool, json_string_value(v))
				 : hs_strs_join(pool, &parts, "");
	if (hs_str_blank(text))
		hs_check_value_error(ck, v, EMPTY_CONTENT);
	else
		*(const char **)place = text;
}

static void read_timestamp(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct item_time *t = place;
	const char *s = json_string_value(v);
	struct hs_civil c;

	(void)f;
	t->us = HS_TIME_NONE;
	if (!v || json_is_null(v) || (s && !*s))
		return;
	if (!s) {
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
		return;
	}
	if (hs_str_ieq_ascii(s, "unset")) {
		t->unset = true;
		return;
	}
	if (!hs_time_parse(s, &t->us)) {
		hs_check_value_error(ck, v,
			"Invalid timestamp/event_date format: '%.100s'. Expected an ISO 8601 date-time, "
			"for example 2024-01-15T10:30:00Z, or 'unset'",
			s);
		return;
	}
	c = hs_civil_from_us(t->us);
	if (c.year <= 1 || c.year >= 9999) {
		hs_check_value_error(ck, v,
			"timestamp year %d is a placeholder, not a date; send a real date or 'unset' "
			"to store without one.",
			c.year);
		return;
	}
	t->given = true;
	t->text = hs_pool_strdup(hs_check_pool(ck), s);
}

static void read_metadata(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	const char *key;
	json_t *member;

	(void)f;
	if (!json_is_object(v)) {
		hs_check_fault(ck, "dict_type", "Input should be a valid dictionary", v, NULL);
		return;
	}
	json_object_foreach(v, key, member) {
		if (json_is_string(member))
			continue;
		hs_check_push(ck, key);
		hs_check_fault(ck, "string_type", "Input should be a valid string", member, NULL);
		hs_check_pop(ck);
	}
	*(json_t **)place = v;
}

static const struct hs_field entity_fields[] = {
	HS_STR(struct entity_body, text, .flags = HS_REQUIRED, .doc = "name of the entity"),
	HS_STR(struct entity_body, type, .flags = HS_NULLABLE, .doc = "kind of entity, for people"),
};
static const struct hs_shape entity_shape = HS_SHAPE(entity_body, entity_fields);

static void read_entities(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	json_t *member;
	size_t i;

	(void)f;
	if (!json_is_array(v)) {
		hs_check_fault(ck, "list_type", "Input should be a valid list", v, NULL);
		return;
	}
	if (json_array_size(v) > HS_ENTITIES_PER_ITEM) {
		hs_check_value_error(
			ck, NULL, "an item may name at most %d entities", HS_ENTITIES_PER_ITEM);
		return;
	}
	json_array_foreach(v, i, member) {
		hs_check_push_index(ck, i);
		(void)hs_check_sub(ck, &entity_shape, member);
		hs_check_pop(ck);
	}
	*(json_t **)place = v;
}

/* A list of lists of tags. */
static void read_tag_lists(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	json_t *list, *tag;
	size_t i, k;

	(void)f;
	if (!json_is_array(v)) {
		hs_check_fault(ck, "list_type", "Input should be a valid list", v, NULL);
		return;
	}
	json_array_foreach(v, i, list) {
		hs_check_push_index(ck, i);
		if (!json_is_array(list))
			hs_check_fault(ck, "list_type", "Input should be a valid list", list, NULL);
		json_array_foreach(list, k, tag) {
			hs_check_push_index(ck, k);
			if (!json_is_string(tag))
				hs_check_fault(ck, "string_type", "Input should be a valid string",
					tag, NULL);
			hs_check_pop(ck);
		}
		hs_check_pop(ck);
	}
	*(json_t **)place = v;
}

/* One of the named ways, or a list of lists of tags: a fault a branch. */
static void read_scopes(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	static const char *const ways[] = {"per_tag", "combined", "all_combinations", "shared"};
	const char *s = json_string_value(v);

	for (size_t i = 0; s && i < HS_COUNT(ways); i++)
		if (strcmp(s, ways[i]) == 0) {
			*(json_t **)place = v;
			return;
		}
	if (!json_is_array(v))
		hs_check_fault(ck, "literal_error",
			"Input should be 'per_tag', 'combined', 'all_combinations' or 'shared'", v,
			"{\"expected\":\"'per_tag', 'combined', 'all_combinations' or 'shared'\"}");
	hs_check_push(ck, "list[list[str]]");
	read_tag_lists(ck, f, v, place);
	hs_check_pop(ck);
}

static void read_operation_id(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	char id[HS_UUID_TEXT];
	const char *s = json_string_value(v);

	(void)f;
	if (!s)
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
	else if (!hs_uuid_parse(s, id))
		hs_check_value_error(ck, v, "operation_id must be a valid UUID");
	else
		*(const char **)place = hs_pool_strdup(hs_check_pool(ck), id);
}

static void item_rule(struct hs_check *ck, void *obj)
{
	const struct item_body *it = obj;

	if (!it->document_id || strlen(it->document_id) <= HS_DOCUMENT_ID_BYTES)
		return;
	hs_check_push(ck, "document_id");
	hs_check_value_error(
		ck, NULL, "document_id must be at most %d bytes", HS_DOCUMENT_ID_BYTES);
	hs_check_pop(ck);
}

#define T struct item_body
static const struct hs_field item_fields[] = {
	HS_CUSTOM(T, content, read_content, .flags = HS_REQUIRED, .doc = "text, or text blocks"),
	HS_CUSTOM(T, timestamp, read_timestamp, .flags = HS_NULLABLE,
		.doc = "when it was said; 'unset' for no time"),
	HS_STR(T, context, .flags = HS_NULLABLE, .doc = "what the content is about"),
	HS_CUSTOM(T, metadata, read_metadata, .flags = HS_NULLABLE,
		.doc = "strings kept with every fact"),
	HS_STR(T, document_id, .flags = HS_NULLABLE, .doc = "document to store it as"),
	HS_CUSTOM(T, entities, read_entities, .flags = HS_NULLABLE,
		.doc = "entities to link to every fact"),
	HS_BOOL(T, resolve_entities, .def = "true",
		.doc = "false: supplied names are taken literally"),
	HS_STRS(T, tags, .flags = HS_NULLABLE | HS_STR_LIST_LAX | HS_TAG_LIST,
		.doc = "tags of every fact"),
	HS_CUSTOM(T, observation_scopes, read_scopes, .flags = HS_NULLABLE,
		.doc = "how its facts are consolidated"),
	HS_STR(T, strategy, .flags = HS_NULLABLE, .doc = "named set of retain settings"),
	HS_ENUM(T, update_mode, update_modes, .flags = HS_NULLABLE,
		.doc = "replace the document or append to it"),
};
#undef T
static const struct hs_shape item_shape = HS_SHAPE(item_body, item_fields, .rule = item_rule);

/* document_tags count to every item's tags. */
static void retain_rule(struct hs_check *ck, void *obj)
{
	const struct retain_body *b = obj;

	for (size_t i = 0; i < b->items.n; i++) {
		const struct item_body *it = b->items.v[i];

		if (it->tags.n + b->document_tags.n <= HS_TAGS_PER_ITEM)
			continue;
		hs_check_push(ck, "items");
		hs_check_push_index(ck, i);
		hs_check_value_error(
			ck, NULL, "an item may have at most %d tags", HS_TAGS_PER_ITEM);
		hs_check_pop(ck);
		hs_check_pop(ck);
	}
}

#define T struct retain_body
static const struct hs_field retain_fields[] = {
	HS_OBJS(T, items, &item_shape, .flags = HS_REQUIRED, HS_RANGE(0, HS_ITEMS_PER_REQUEST),
		.doc = "what to store"),
	HS_BOOL(T, async, .def = "false", .doc = "answer at once, store in the background"),
	HS_STRS(T, document_tags, .flags = HS_NULLABLE | HS_TAG_LIST,
		.doc = "deprecated: added to every item's tags"),
	HS_CUSTOM(T, operation_id, read_operation_id, .flags = HS_NULLABLE,
		.doc = "own id of the operation"),
};
#undef T
static const struct hs_shape retain_shape =
	HS_SHAPE(retain_body, retain_fields, .rule = retain_rule);

/* ---- recall ---- */

static void saw_word(void *arg, const struct hs_word *w)
{
	(void)w;
	*(bool *)arg = true;
}

static bool has_word(const char *s)
{
	bool found = strchr(s, '_') != NULL;

	hs_words_each(s, strlen(s), saw_word, &found);
	return found;
}

static void read_query(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	(void)f;
	if (!json_is_string(v))
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
	else if (!has_word(json_string_value(v)))
		hs_check_value_error(ck, v,
			"query must contain at least one word character after normalization");
	else
		*(const char **)place = hs_pool_strdup(hs_check_pool(ck), json_string_value(v));
}

/* Null and [] are all types; 'opinion' is an old name that selects nothing. */
static void read_types(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct recall_types *t = place;
	struct hs_strs unknown = {0};
	json_t *member;
	size_t i;

	(void)f;
	if (!json_is_array(v)) {
		hs_check_fault(ck, "list_type", "Input should be a valid list", v, NULL);
		return;
	}
	json_array_foreach(v, i, member) {
		const char *s = json_string_value(member);
		int type = s ? hs_fact_type_find(s) : -1;

		if (!s) {
			hs_check_push_index(ck, i);
			hs_check_fault(
				ck, "string_type", "Input should be a valid string", member, NULL);
			hs_check_pop(ck);
		} else if (type >= 0) {
			t->facts |= HS_FACT_BIT(type);
		} else if (strcmp(s, "opinion") != 0) {
			hs_strs_add(hs_check_pool(ck), &unknown, s);
		}
	}
	t->nothing = json_array_size(v) > 0 && !t->facts;
	if (unknown.n)
		hs_check_value_error(ck, v,
			"Invalid fact type(s): %s. Must be one of: experience, observation, world",
			hs_strs_join(hs_check_pool(ck), &unknown, ", "));
}

static const struct hs_field include_entities_fields[] = {
	HS_INT(struct include_entities, max_tokens, .def = "500", .doc = "budget of entity texts"),
};
static const struct hs_shape include_entities_shape =
	HS_SHAPE(include_entities, include_entities_fields);
static const struct hs_field include_chunks_fields[] = {
	HS_INT(struct include_chunks, max_tokens, .def = "8192", .doc = "budget of chunk texts"),
};
static const struct hs_shape include_chunks_shape = HS_SHAPE(include_chunks, include_chunks_fields);
static const struct hs_field include_sources_fields[] = {
	HS_INT(struct include_sources, max_tokens, .def = "4096",
		.doc = "budget of all source facts; -1 unlimited"),
	HS_INT(struct include_sources, max_tokens_per_observation, .def = "-1",
		.doc = "budget an observation; -1 none"),
};
static const struct hs_shape include_sources_shape =
	HS_SHAPE(include_sources, include_sources_fields);

static const struct hs_field recall_include_fields[] = {
	HS_OBJ(struct recall_include, entities, &include_entities_shape, .flags = HS_NULLABLE,
		.doc = "null turns entities off"),
	HS_OBJ(struct recall_include, chunks, &include_chunks_shape, .flags = HS_NULLABLE,
		.doc = "{} adds chunks"),
	HS_OBJ(struct recall_include, source_facts, &include_sources_shape, .flags = HS_NULLABLE,
		.doc = "{} adds source facts"),
};
const struct hs_shape recall_include_shape = HS_SHAPE(recall_include, recall_include_fields);

static const struct hs_field min_scores_fields[] = {
	HS_NUM(struct min_scores, semantic, .flags = HS_NULLABLE, .doc = "least cosine"),
	HS_NUM(struct min_scores, keyword, .flags = HS_NULLABLE, .doc = "least keyword score"),
	HS_NUM(struct min_scores, reranker, .flags = HS_NULLABLE, .doc = "least reranker score"),
	HS_NUM(struct min_scores, final, .flags = HS_NULLABLE, .doc = "least final score"),
};
const struct hs_shape min_scores_shape = HS_SHAPE(min_scores, min_scores_fields);

static void window_rule(struct hs_check *ck, void *obj)
{
	const struct temporal_window *w = obj;

	if (w->end < w->start)
		hs_check_value_error(ck, NULL, "temporal_window end must not be before start");
}

static const struct hs_field window_fields[] = {
	HS_TIME(struct temporal_window, start, .flags = HS_REQUIRED, .doc = "begin of the window"),
	HS_TIME(struct temporal_window, end, .flags = HS_REQUIRED, .doc = "end of the window"),
};
static const struct hs_shape window_shape =
	HS_SHAPE(temporal_window, window_fields, .rule = window_rule);

static void recall_rule(struct hs_check *ck, void *obj)
{
	if (hs_given(&recall_body_shape, obj, "tags") &&
		hs_given(&recall_body_shape, obj, "tag_groups"))
		hs_check_value_error(ck, NULL,
			"'tags' and 'tag_groups' are mutually exclusive. Use 'tag_groups' for compound filtering.");
}

#define T struct recall_body
static const struct hs_field recall_fields[] = {
	HS_CUSTOM(T, query, read_query, .flags = HS_REQUIRED, .doc = "what to look for"),
	HS_CUSTOM(T, types, read_types, .flags = HS_NULLABLE,
		.doc = "kinds of memories; null is all"),
	HS_BOOL(T, prefer_observations, .flags = HS_NULLABLE,
		.doc = "leave out facts a returned observation covers"),
	HS_ENUM(T, budget, recall_budgets, .flags = HS_ENUM_ERROR, .def = "mid",
		.doc = "depth of the search"),
	HS_INT(T, max_tokens, .def = "4096", .doc = "tokens of returned texts"),
	HS_BOOL(T, trace, .def = "false", .doc = "accepted for compatibility"),
	HS_STR(T, query_timestamp, .flags = HS_NULLABLE, .doc = "when the question is asked"),
	HS_OBJ(T, include, &recall_include_shape, .doc = "what to add to the answer"),
	HS_STRS(T, tags, .flags = HS_NULLABLE, .doc = "tag filter"),
	HS_ENUM(T, tags_match, hs_tags_match_names, .def = "any", .doc = "how tags select"),
	HS_CUSTOM(T, tag_groups, hs_groups_read, .flags = HS_NULLABLE, .doc = "boolean tag filter"),
	HS_OBJ(T, min_scores, &min_scores_shape, .flags = HS_NULLABLE,
		.doc = "least scores, each inclusive"),
	HS_OBJ(T, temporal_window, &window_shape, .flags = HS_NULLABLE,
		.doc = "time the question is about"),
};
#undef T
const struct hs_shape recall_body_shape = HS_SHAPE(recall_body, recall_fields, .rule = recall_rule);

/* ---- consolidate ---- */

static const struct hs_field consolidate_fields[] = {
	HS_CUSTOM(struct consolidate_body, observation_scopes, read_tag_lists, .flags = HS_NULLABLE,
		.doc = "only facts whose tags contain one of these sets"),
};
static const struct hs_shape consolidate_shape = HS_SHAPE(consolidate_body, consolidate_fields);

/* Storing now is long when a model or an embedding service is called; handing it to the worker never is. */
static bool retain_is_long(const struct hs_config *cfg, const void *query, const void *body)
{
	static const char *const built_in[] = {"extractive", "none", "hash", "local"};
	const char *used[] = {
		hs_cfg_llm_provider(cfg, "retain"), hs_cfg_str(cfg, HS_S_embeddings_provider)};
	const struct retain_body *b = body;
	size_t local = 0;

	(void)query;
	for (size_t i = 0; i < HS_COUNT(used); i++)
		for (size_t k = 0; k < HS_COUNT(built_in); k++)
			local += strcmp(used[i], built_in[k]) == 0;
	return !b->async && b->items.n > 0 && local < HS_COUNT(used);
}

const struct hs_route memories_routes[] = {
	HS_ROUTE(POST, BANK "/memories", retain_post, .body = &retain_shape, .flags = HS_R_LONG,
		.long_call = retain_is_long, .long_name = "retain"),
	HS_ROUTE(POST, BANK "/memories/recall", recall_post, .body = &recall_body_shape,
		.flags = HS_R_READ),
	HS_ROUTE(POST, BANK "/consolidate", consolidate_post, .body = &consolidate_shape,
		.flags = HS_R_BODY_OPTIONAL),
	{.pattern = NULL},
};
