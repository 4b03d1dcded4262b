#include "base/clock.h"
#include "base/limits.h"
#include "json/json.h"
#include "json/clean.h"
#include "prompt/build.h"

#include <string.h>

/* What each extraction mode says. */
struct mode_texts {
	const char *name, *task, *heading, *guidelines, *what, *why, *user_task, *reply;
	bool examples, verbatim;
};

enum mode { MODE_CONCISE, MODE_VERBOSE, MODE_VERBATIM };

static const struct mode_texts modes[] = {
	[MODE_CONCISE] = {"concise", hs_tpl_retain_task_concise, hs_tpl_retain_heading_keep,
		hs_tpl_retain_guidelines_concise, hs_tpl_retain_fields_what,
		hs_tpl_retain_fields_why, hs_tpl_retain_user_task, hs_tpl_retain_reply_schema, true,
		false},
	[MODE_VERBOSE] = {"verbose", hs_tpl_retain_task_verbose, hs_tpl_retain_heading_keep,
		hs_tpl_retain_guidelines_verbose, hs_tpl_retain_fields_what_verbose,
		hs_tpl_retain_fields_why_verbose, hs_tpl_retain_user_task,
		hs_tpl_retain_reply_schema, false, false},
	[MODE_VERBATIM] = {"verbatim", hs_tpl_retain_task_verbatim, hs_tpl_retain_heading_give,
		hs_tpl_retain_guidelines_verbatim, "", "", hs_tpl_retain_user_task_verbatim,
		hs_tpl_retain_reply_schema_verbatim, false, true},
};

struct build {
	struct hs_pool *pool;
	const struct hs_retain_prompt_in *in;
	const struct hs_config *cfg;
	const struct mode_texts *mode;
	const char *custom; /* own guidelines; NULL = none */
	bool custom_mode;
	bool causal, optional;
	json_t *labels; /* list of groups; NULL = none */
	struct hs_prompt *ret;
};

/* A builtin block of the system message: it is part of the extraction mode. */
static void add(struct build *b, const char *text)
{
	hs_block_chosen(b->pool, &b->ret->system, b->cfg, HS_S_retain_extraction_mode, text);
}

static void add_setting(struct build *b, enum hs_setting_id id, const char *text)
{
	hs_block_setting(b->pool, &b->ret->system, b->cfg, id, text);
}

static const struct mode_texts *mode_find(const char *name)
{
	for (size_t i = 0; i < HS_COUNT(modes); i++)
		if (hs_str_eq(modes[i].name, name))
			return &modes[i];
	return &modes[MODE_CONCISE];
}

static json_t *label_groups(const struct hs_config *cfg)
{
	json_t *v = hs_cfg_json(cfg, HS_S_entity_labels);

	if (json_is_object(v))
		v = json_object_get(v, "attributes");
	return json_array_size(v) ? v : NULL;
}

/* The heading stands in front of the bank's own text too, so the slot has one place. */
static void guidelines(struct build *b)
{
	const char *heading = hs_prompt_cat(b->pool, b->mode->heading, "\n", NULL);

	if (!b->custom_mode) {
		add(b, hs_prompt_cat(b->pool, heading, b->mode->guidelines, HS_GAP, NULL));
		return;
	}
	add(b, heading);
	add_setting(b, HS_S_retain_custom_instructions,
		b->custom ? hs_prompt_cat(b->pool, b->custom, HS_GAP, NULL) : NULL);
	if (!b->custom)
		add(b, hs_prompt_cat(b->pool, b->mode->guidelines, HS_GAP, NULL));
}

static const char *line(struct build *b, const char *text)
{
	return *text ? hs_prompt_cat(b->pool, text, "\n", NULL) : "";
}

static void fields(struct build *b)
{
	add(b, hs_prompt_cat(b->pool, "## MEMBERS OF A FACT\n", line(b, b->mode->what),
		       hs_tpl_retain_fields_when_where_who, "\n", line(b, b->mode->why),
		       hs_tpl_retain_fields_rest, HS_GAP, NULL));
	add(b, hs_prompt_cat(b->pool, hs_tpl_retain_fields_rules, HS_GAP, NULL));
}

/* What stands in a member that the text says nothing about: behind its slot, so that the switch moves
 * nothing in front of it. */
static void empty_members(struct build *b)
{
	add_setting(b, HS_S_retain_optional_fact_dimensions,
		b->optional ? hs_prompt_cat(b->pool, hs_tpl_retain_optional, HS_GAP, NULL) : NULL);
	if (!b->optional)
		add(b, hs_prompt_cat(b->pool, hs_tpl_retain_filler, HS_GAP, NULL));
}

static void labels(struct build *b)
{
	bool free_form = hs_cfg_bool(b->cfg, HS_S_entities_allow_free_form);

	if (!b->labels) {
		add_setting(b, HS_S_entity_labels, NULL);
		return;
	}
	add_setting(
		b, HS_S_entity_labels, hs_prompt_cat(b->pool, hs_tpl_retain_labels, "\n", NULL));
	add_setting(b, HS_S_entities_allow_free_form,
		hs_prompt_cat(b->pool,
			free_form ? hs_tpl_retain_labels_free : hs_tpl_retain_labels_only, "\n",
			NULL));
	add_setting(b, HS_S_entity_labels,
		hs_prompt_cat(b->pool, hs_tpl_retain_labels_groups, "\n",
			hs_json_text(b->pool, b->labels), HS_GAP, NULL));
}

static void system_message(struct build *b)
{
	const char *language = hs_output_language(b->cfg);

	b->ret->system.role = "system";
	add(b, hs_prompt_cat(b->pool, b->mode->task, HS_GAP, NULL));
	if (!language)
		add_setting(b, HS_S_llm_output_language,
			hs_prompt_cat(b->pool, hs_tpl_retain_language, HS_GAP, NULL));
	guidelines(b);
	fields(b);
	if (b->mode->examples && !b->custom)
		add(b, hs_prompt_cat(b->pool, hs_tpl_retain_examples, HS_GAP, NULL));
	if (!b->mode->verbatim)
		add_setting(b, HS_S_retain_extract_causal_links,
			b->causal ? hs_prompt_cat(b->pool, hs_tpl_retain_causal, HS_GAP, NULL)
				  : NULL);
	empty_members(b);
	if (!b->in->strict)
		add(b, hs_prompt_cat(b->pool, b->mode->reply, "\n",
			       hs_json_text(b->pool, b->ret->schema), HS_GAP, NULL));
	labels(b);
	if (language)
		add_setting(
			b, HS_S_llm_output_language, hs_output_language_text(b->pool, language));
}

/* "Monday, January 5, 2026 (2026-01-05T10:00:00+00:00)"; the day is that of the client's offset. */
static const char *event_date(struct build *b)
{
	const struct hs_retain_prompt_in *in = b->in;
	const char *iso = in->event_text;
	struct hs_civil c;
	int64_t day_us;

	if (in->event_us == HS_TIME_NONE)
		return "Unknown";
	if (hs_str_empty(iso))
		iso = hs_time_text(b->pool, in->event_us);
	if (!hs_time_parse(hs_pool_strndup(b->pool, iso, strnlen(iso, 10)), &day_us))
		day_us = in->event_us;
	c = hs_civil_from_us(day_us);
	return hs_pool_printf(b->pool, "%s, %s %d, %d (%s)", hs_weekday_name(c.weekday),
		hs_month_name(c.month), c.day, c.year, iso);
}

static const char *metadata_lines(struct build *b)
{
	struct hs_buf *lines = hs_buf_new(b->pool, HS_PROMPT_MAX);
	const char *key;
	json_t *v;

	if (!json_object_size(b->in->metadata)) {
		hs_buf_char(lines, '\n');
		return lines->data;
	}
	hs_buf_str(lines, "Metadata:\n");
	json_object_foreach(b->in->metadata, key, v) {
		hs_buf_str(lines, "- ");
		hs_buf_str(lines, key);
		hs_buf_str(lines, ": ");
		hs_buf_str(
			lines, json_is_string(v) ? json_string_value(v) : hs_json_text(b->pool, v));
		hs_buf_char(lines, '\n');
	}
	hs_buf_char(lines, '\n');
	return lines->data;
}

static void user_message(struct build *b)
{
	const struct hs_retain_prompt_in *in = b->in;
	const char *mission = hs_cfg_str(b->cfg, HS_S_retain_mission);
	struct hs_message *m = &b->ret->user;
	const char *focus = NULL;

	m->role = "user";
	if (!hs_str_blank(mission)) {
		const char *fence = hs_fence_for(b->pool, mission);

		focus = hs_prompt_cat(b->pool, hs_tpl_retain_focus, "\n", fence, "\n", mission,
			"\n", fence, HS_GAP, NULL);
	}
	hs_block_setting(b->pool, m, b->cfg, HS_S_retain_mission, focus);
	hs_block_builtin(b->pool, m,
		hs_prompt_cat(b->pool, b->mode->user_task, "\n",
			hs_pool_printf(b->pool, "Chunk: %zu/%zu\n", in->chunk_no, in->n_chunks),
			"Event date: ", event_date(b), "\n",
			"Context: ", hs_str_blank(in->context) ? "none" : in->context, "\n",
			metadata_lines(b), NULL));
	hs_block_builtin(b->pool, m,
		hs_prompt_cat(b->pool, "## TEXT\n",
			hs_clean_text(b->pool, in->chunk, strlen(in->chunk)), NULL));
}

static void drop_member(json_t *item, const char *name)
{
	json_t *required = json_object_get(item, "required");
	size_t i;
	json_t *v;

	json_object_del(json_object_get(item, "properties"), name);
	json_array_foreach(required, i, v)
		if (hs_str_eq(json_string_value(v), name)) {
			json_array_remove(required, i);
			return;
		}
}

/* An object of strict mode: closed, every member required. Takes the reference. */
static json_t *closed_object(json_t *properties, bool nullable)
{
	json_t *required = json_array(), *v;
	const char *name;

	json_object_foreach(properties, name, v)
		json_array_append_new(required, json_string(name));
	return json_pack("{s:o, s:o, s:o, s:b}", "type",
		nullable ? json_pack("[s,s]", "object", "null") : json_string("object"),
		"properties", properties, "required", required, "additionalProperties", 0);
}

/* `type`, or what its two older spellings mean. */
static const char *group_type(json_t *group, const char *unset)
{
	const char *type = hs_json_str(group, "type");

	if (type)
		return type;
	if (hs_json_bool(group, "free_values", false))
		return "text";
	return hs_json_bool(group, "multi_value", false) ? "multi-values" : unset;
}

static json_t *string_schema(json_t *group, bool listed, bool nullable)
{
	json_t *names = json_array(), *v, *one;
	size_t i;

	json_array_foreach(hs_json_arr(group, "values"), i, v)
		if (listed && hs_json_str(v, "value"))
			json_array_append_new(names, json_string(hs_json_str(v, "value")));
	one = json_pack("{s:o}", "type",
		nullable ? json_pack("[s,s]", "string", "null") : json_string("string"));
	if (nullable && json_array_size(names))
		json_array_append_new(names, json_null());
	if (json_array_size(names))
		json_object_set(one, "enum", names);
	json_decref(names);
	return one;
}

/* Schema of one label group, or of one field of a map, for strict replies. */
static json_t *label_schema(json_t *group, const char *unset)
{
	const char *type = group_type(group, unset), *name;
	bool nullable = hs_json_bool(group, "optional", true), listed = hs_str_ends(type, "values");
	json_t *properties, *field;

	if (hs_str_eq(type, "map")) {
		properties = json_object();
		json_object_foreach(hs_json_obj(group, "fields"), name, field)
			json_object_set_new(properties, name, label_schema(field, "text"));
		return closed_object(properties, nullable);
	}
	if (!hs_str_starts(type, "multi"))
		return string_schema(group, hs_str_eq(type, "value"), nullable);
	return json_pack("{s:o, s:o}", "type",
		nullable ? json_pack("[s,s]", "array", "null") : json_string("array"), "items",
		string_schema(group, listed, false));
}

static void add_label_schema(struct build *b, json_t *item)
{
	json_t *properties = json_object(), *group;
	size_t i;

	json_array_foreach(b->labels, i, group) {
		const char *key = hs_json_str(group, "key");

		if (!hs_str_blank(key))
			json_object_set_new(properties, key, label_schema(group, "value"));
	}
	json_object_set_new(
		json_object_get(item, "properties"), "labels", closed_object(properties, false));
	json_array_append_new(json_object_get(item, "required"), json_string("labels"));
}

static void schema(struct build *b)
{
	static const char *const dimensions[] = {"when", "where", "who", "why"};
	json_t *root = hs_json_keep(b->pool, json_loads(hs_tpl_retain_schema_json, 0, NULL));
	json_t *facts = json_object_get(json_object_get(root, "properties"), "facts");
	json_t *item = json_object_get(facts, "items");

	if (b->mode->verbatim) {
		drop_member(item, "what");
		drop_member(item, "why");
	}
	if (!b->causal || b->mode->verbatim)
		drop_member(item, "causal_relations");
	for (size_t i = 0; b->optional && i < HS_COUNT(dimensions); i++) {
		json_t *v = json_object_get(json_object_get(item, "properties"), dimensions[i]);

		if (v)
			json_object_set_new(v, "type", json_pack("[s,s]", "string", "null"));
	}
	if (b->in->strict && b->labels)
		add_label_schema(b, item);
	b->ret->schema = root;
}

void hs_prompt_retain(
	struct hs_pool *pool, const struct hs_retain_prompt_in *in, struct hs_prompt *ret)
{
	const char *name = hs_cfg_str(in->cfg, HS_S_retain_extraction_mode);
	const char *custom = hs_cfg_str(in->cfg, HS_S_retain_custom_instructions);
	struct build b = {.pool = pool, .in = in, .cfg = in->cfg, .ret = ret};

	*ret = (struct hs_prompt){.system = {.role = "system"}, .user = {.role = "user"}};
	if (hs_str_eq(name, "chunks")) {
		add_setting(&b, HS_S_retain_extraction_mode, NULL);
		return;
	}
	b.mode = mode_find(name);
	b.custom_mode = hs_str_eq(name, "custom");
	b.custom = b.custom_mode && !hs_str_blank(custom) ? custom : NULL;
	b.causal = hs_cfg_bool(in->cfg, HS_S_retain_extract_causal_links);
	b.optional = hs_cfg_bool(in->cfg, HS_S_retain_optional_fact_dimensions);
	b.labels = label_groups(in->cfg);
	schema(&b);
	system_message(&b);
	user_message(&b);
}
