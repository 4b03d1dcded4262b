#include "engine/retain_item.h"

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"

enum { UPDATE_REPLACE, UPDATE_APPEND };
static const char *const update_modes[] = {"replace", "append", NULL};

/* ---- readers of an item ---- */

#define EMPTY_CONTENT "content cannot be empty"
#define SHOWN_CHARS 100 /* of a refused text */

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

bool hs_time_is_placeholder(int64_t us)
{
	int year = hs_civil_from_us(us).year;

	return year <= 1 || year >= 9999;
}

static void read_timestamp(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct hs_item_time *t = place;
	const char *s = json_string_value(v);

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
			"Invalid timestamp/event_date format: '%s'. Expected an ISO 8601 date-time, "
			"for example 2024-01-15T10:30:00Z, or 'unset'",
			hs_utf8_cut(hs_check_pool(ck), s, SHOWN_CHARS));
		return;
	}
	if (hs_time_is_placeholder(t->us)) {
		hs_check_value_error(ck, v,
			"timestamp year %d is a placeholder, not a date; send a real date or 'unset' "
			"to store without one.",
			hs_civil_from_us(t->us).year);
		return;
	}
	t->given = true;
	t->text = hs_pool_strdup(hs_check_pool(ck), s);
}

struct entity {
	struct hs_seen seen;
	const char *text, *type;
};
static const struct hs_field entity_fields[] = {
	HS_STR(struct entity, text, .flags = HS_REQUIRED, .doc = "name of the entity"),
	HS_STR(struct entity, type, .flags = HS_NULLABLE, .doc = "kind of entity, for people"),
};
static const struct hs_shape entity_shape = HS_SHAPE(entity, entity_fields);

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
void hs_tag_lists_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
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
	hs_tag_lists_read(ck, f, v, place);
	hs_check_pop(ck);
}

static void item_rule(struct hs_check *ck, void *obj)
{
	const struct hs_item_in *it = obj;

	if (!it->document_id || strlen(it->document_id) <= HS_DOCUMENT_ID_BYTES)
		return;
	hs_check_push(ck, "document_id");
	hs_check_value_error(
		ck, NULL, "document_id must be at most %d bytes", HS_DOCUMENT_ID_BYTES);
	hs_check_pop(ck);
}

#define T struct hs_item_in
static const struct hs_field item_fields[] = {
	HS_CUSTOM(T, content, read_content, .flags = HS_REQUIRED, .doc = "text, or text blocks"),
	HS_CUSTOM(T, timestamp, read_timestamp, .flags = HS_NULLABLE,
		.doc = "when it was said; 'unset' for no time"),
	HS_STR(T, context, .flags = HS_NULLABLE, .doc = "what the content is about"),
	HS_CUSTOM(T, metadata, hs_string_dict_read, .flags = HS_NULLABLE,
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
const struct hs_shape hs_item_shape = HS_SHAPE(hs_item_in, item_fields, .rule = item_rule);
/* ---- the engine's form ---- */

static struct hs_strs joined_tags(
	struct hs_pool *pool, const struct hs_strs *own, const struct hs_strs *more)
{
	struct hs_strs tags = {0};

	for (size_t i = 0; i < own->n; i++)
		hs_strs_add(pool, &tags, own->v[i]);
	for (size_t i = 0; i < more->n; i++)
		hs_strs_add(pool, &tags, more->v[i]);
	return hs_strs_unique(pool, &tags);
}

static const char *filled(const char *s)
{
	return hs_str_empty(s) ? NULL : s;
}

struct hs_retain_item hs_item_make(
	struct hs_pool *pool, const struct hs_item_in *it, const struct hs_strs *more_tags)
{
	return (struct hs_retain_item){
		.content = it->content,
		.has_time = it->timestamp.given,
		.unset_time = it->timestamp.unset,
		.time_us = it->timestamp.given ? it->timestamp.us : HS_TIME_NONE,
		.time_text = it->timestamp.text,
		.context = filled(it->context),
		.document_id = filled(it->document_id),
		.strategy = filled(it->strategy),
		.metadata = it->metadata,
		.entities = it->entities,
		.resolve_entities = it->resolve_entities,
		.tags = joined_tags(pool, &it->tags, more_tags),
		.observation_scopes = it->observation_scopes,
		.append = it->update_mode == UPDATE_APPEND,
	};
}

/* ---- rules beyond single fields ---- */

/* The bank's configuration, the server's for a bank that is not made yet. */
static enum hs_rc config_of(
	struct hs_run *run, const char *bank_id, const struct hs_config **ret, struct hs_err *err)
{
	struct hs_err miss = {0};
	struct hs_config *cfg;
	struct hs_bank bank;
	enum hs_rc rc = hs_bank_find(run->db, run->pool, bank_id, &bank, &miss);

	*ret = run->server;
	if (rc == HS_E_BANK_MISSING)
		return HS_OK;
	if (rc != HS_OK) {
		*err = miss;
		return rc;
	}
	HS_TRY(hs_bank_config(run->pool, run->server, &bank, &cfg, err));
	*ret = cfg;
	return HS_OK;
}

enum hs_rc hs_items_check(struct hs_run *run, const char *bank_id,
	const struct hs_retain_item *items, size_t n, struct hs_err *err)
{
	const struct hs_config *cfg;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		any = any || items[i].append;
		if (items[i].append && !items[i].document_id)
			return hs_fail(err, HS_E_BAD_REQUEST,
				"update_mode='append' requires a document_id");
	}
	if (!any)
		return HS_OK;
	HS_TRY(config_of(run, bank_id, &cfg, err));
	if (!hs_cfg_bool(cfg, HS_S_store_document_text))
		return hs_fail(err, HS_E_BAD_REQUEST,
			"update_mode='append' needs the stored text of the document, and "
			"store_document_text is off; use update_mode='replace'");
	return hs_fail(err, HS_E_NOT_IMPLEMENTED, "update_mode='append' is not implemented yet");
}
