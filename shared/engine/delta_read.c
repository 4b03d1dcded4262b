#include <string.h>

#include "base/limits.h"
#include "engine/delta_ops.h"
#include "json/json.h"
#include "llm/llm.h"

#define LEVEL_DEFAULT 2

const char *const hs_delta_names[HS_DELTA_KIND__MAX] = {
	[HS_DELTA_APPEND_BLOCK] = "append_block",
	[HS_DELTA_INSERT_BLOCK] = "insert_block",
	[HS_DELTA_REPLACE_BLOCK] = "replace_block",
	[HS_DELTA_REMOVE_BLOCK] = "remove_block",
	[HS_DELTA_ADD_SECTION] = "add_section",
	[HS_DELTA_REMOVE_SECTION] = "remove_section",
	[HS_DELTA_REPLACE_BLOCKS] = "replace_section_blocks",
	[HS_DELTA_RENAME_SECTION] = "rename_section",
};

/* ---- fields ---- */

enum field_type { TEXT, NULLABLE_TEXT, LEVEL, TEXTS };
enum field_id {
	F_SECTION,
	F_BLOCK,
	F_TEXT,
	F_AFTER_BLOCK,
	F_HEADING,
	F_NEW_HEADING,
	F_LEVEL,
	F_BLOCKS,
	F_AFTER_SECTION,
	F_NEW_ID,
	F__MAX
};
static const struct field {
	const char *name;
	enum field_type type;
	bool optional;
	bool content; /* left out of the audit */
} fields[F__MAX] = {
	[F_SECTION] = {"section_id", TEXT, false, false},
	[F_BLOCK] = {"block_id", TEXT, false, false},
	[F_TEXT] = {"text", TEXT, false, true},
	[F_AFTER_BLOCK] = {"after_block_id", NULLABLE_TEXT, true, false},
	[F_HEADING] = {"heading", TEXT, false, false},
	[F_NEW_HEADING] = {"new_heading", TEXT, false, false},
	[F_LEVEL] = {"level", LEVEL, true, false},
	[F_BLOCKS] = {"blocks", TEXTS, true, true},
	[F_AFTER_SECTION] = {"after_section_id", NULLABLE_TEXT, true, false},
	[F_NEW_ID] = {"new_id", NULLABLE_TEXT, true, false},
};

#define BIT(f) (1u << (f))
static const unsigned kind_fields[HS_DELTA_KIND__MAX] = {
	[HS_DELTA_APPEND_BLOCK] = BIT(F_SECTION) | BIT(F_TEXT),
	[HS_DELTA_INSERT_BLOCK] = BIT(F_SECTION) | BIT(F_AFTER_BLOCK) | BIT(F_TEXT),
	[HS_DELTA_REPLACE_BLOCK] = BIT(F_SECTION) | BIT(F_BLOCK) | BIT(F_TEXT),
	[HS_DELTA_REMOVE_BLOCK] = BIT(F_SECTION) | BIT(F_BLOCK),
	[HS_DELTA_ADD_SECTION] = BIT(F_HEADING) | BIT(F_LEVEL) | BIT(F_BLOCKS) |
				 BIT(F_AFTER_SECTION) | BIT(F_NEW_ID),
	[HS_DELTA_REMOVE_SECTION] = BIT(F_SECTION),
	[HS_DELTA_REPLACE_BLOCKS] = BIT(F_SECTION) | BIT(F_BLOCKS),
	[HS_DELTA_RENAME_SECTION] = BIT(F_SECTION) | BIT(F_NEW_HEADING),
};

static bool fits(const json_t *v, enum field_type type)
{
	switch (type) {
	case TEXT:
		return json_is_string(v);
	case NULLABLE_TEXT:
		return json_is_string(v) || json_is_null(v);
	case LEVEL:
		return json_is_integer(v) && json_integer_value(v) >= 1 &&
		       json_integer_value(v) <= 6;
	default:
		return json_is_array(v);
	}
}

static const char *wanted(enum field_type type)
{
	static const char *const names[] = {
		[TEXT] = "a string",
		[NULLABLE_TEXT] = "a string or null",
		[LEVEL] = "a whole number from 1 to 6",
		[TEXTS] = "an array of strings",
	};

	return names[type];
}

/* Trimmed, without leading marks, on one line. */
static const char *heading_of(struct hs_pool *pool, const char *given)
{
	char *text = hs_str_trim(pool, given);

	for (char *p = text; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	while (*text == '#')
		text++;
	return hs_str_trim(pool, text);
}

/* ---- one operation ---- */

static void fault(struct hs_pool *pool, struct hs_delta_op *op, const char *fmt, ...)
	HS_PRINTF(3, 4);
static void fault(struct hs_pool *pool, struct hs_delta_op *op, const char *fmt, ...)
{
	va_list ap;

	if (op->fault)
		return;
	va_start(ap, fmt);
	op->fault = hs_pool_vprintf(pool, fmt, ap);
	va_end(ap);
}

/* A text as it is, or {"text": …} with or without an id. */
static const char *block_text(json_t *v)
{
	size_t known = json_object_get(v, "id") ? 2 : 1;

	if (json_is_string(v))
		return json_string_value(v);
	return json_object_size(v) == known ? hs_json_str(v, "text") : NULL;
}

static void read_blocks(struct hs_pool *pool, json_t *list, struct hs_delta_op *op)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) {
		const char *text = block_text(v);

		if (text)
			hs_strs_add(pool, &op->blocks, text);
		else
			fault(pool, op, "blocks[%zu] must be a string", i);
	}
}

static void read_field(struct hs_pool *pool, struct hs_delta_op *op, enum field_id id, json_t *v)
{
	const char **const texts[F__MAX] = {
		[F_SECTION] = &op->section_id,
		[F_BLOCK] = &op->block_id,
		[F_TEXT] = &op->text,
		[F_AFTER_BLOCK] = &op->after_block_id,
		[F_HEADING] = &op->heading,
		[F_NEW_HEADING] = &op->heading,
		[F_AFTER_SECTION] = &op->after_section_id,
		[F_NEW_ID] = &op->new_id,
	};

	if (id == F_LEVEL)
		op->level = (int)json_integer_value(v);
	else if (id == F_BLOCKS)
		read_blocks(pool, v, op);
	else
		*texts[id] = json_string_value(v);
}

static void set_default(struct hs_delta_op *op, enum field_id id)
{
	if (fields[id].content)
		return;
	json_object_set_new(op->audit, fields[id].name,
		id == F_LEVEL ? json_integer(LEVEL_DEFAULT) : json_null());
}

static void read_fields(struct hs_pool *pool, json_t *v, struct hs_delta_op *op)
{
	for (int id = 0; id < F__MAX; id++) {
		const struct field *f = &fields[id];
		json_t *member = json_object_get(v, f->name);

		if (!(kind_fields[op->kind] & BIT(id)))
			continue;
		if (!member && f->optional) {
			set_default(op, id);
		} else if (!member) {
			fault(pool, op, "%s: \"%s\" is missing", hs_delta_names[op->kind], f->name);
		} else if (!fits(member, f->type)) {
			fault(pool, op, "%s: \"%s\" must be %s", hs_delta_names[op->kind], f->name,
				wanted(f->type));
		} else {
			if (!f->content)
				json_object_set(op->audit, f->name, member);
			read_field(pool, op, id, member);
		}
	}
	if (op->heading)
		op->heading = heading_of(pool, op->heading);
}

/* A key that the operation does not have; NULL when there is none. */
static const char *extra_key(json_t *v, enum hs_delta_kind kind)
{
	const char *key;
	json_t *member;

	json_object_foreach(v, key, member) {
		bool known = strcmp(key, "op") == 0;

		for (int id = 0; id < F__MAX && !known; id++)
			known = (kind_fields[kind] & BIT(id)) && strcmp(key, fields[id].name) == 0;
		if (!known)
			return key;
	}
	return NULL;
}

static int find_kind(const char *name)
{
	for (int i = 0; name && i < HS_DELTA_KIND__MAX; i++)
		if (strcmp(hs_delta_names[i], name) == 0)
			return i;
	return -1;
}

/* What can be told of an operation whose name means nothing. */
static void audit_rest(struct hs_delta_op *op, json_t *v)
{
	for (int id = 0; id < F__MAX; id++) {
		json_t *member = json_object_get(v, fields[id].name);

		if (!fields[id].content && member && !json_is_object(member) &&
			!json_is_array(member))
			json_object_set(op->audit, fields[id].name, member);
	}
}

static void read_op(struct hs_pool *pool, json_t *v, struct hs_delta_op *op)
{
	const char *name = hs_json_str(v, "op"), *extra;
	int kind = find_kind(name);

	*op = (struct hs_delta_op){
		.level = LEVEL_DEFAULT, .audit = hs_json_keep(pool, json_object())};
	if (!json_is_object(v)) {
		fault(pool, op, "an operation must be an object");
		return;
	}
	if (name)
		json_object_set(op->audit, "op", json_object_get(v, "op"));
	if (kind < 0) {
		audit_rest(op, v);
		if (name)
			fault(pool, op, "unknown op \"%s\"", name);
		else
			fault(pool, op, "\"op\" is missing or no string");
		return;
	}
	op->kind = (enum hs_delta_kind)kind;
	read_fields(pool, v, op);
	extra = extra_key(v, op->kind);
	if (extra)
		fault(pool, op, "%s: unknown field \"%s\"", name, extra);
}

/* ---- the list ---- */

static json_t *list_in(json_t *v)
{
	return json_is_array(v) ? v : hs_json_arr(v, "operations");
}

void hs_delta_read_value(struct hs_pool *pool, json_t *v, struct hs_delta_list *ret)
{
	json_t *list = list_in(v), *entry;
	size_t i;

	*ret = (struct hs_delta_list){0};
	if (!list) {
		ret->unreadable = json_is_object(v)
					  ? "the object has no \"operations\" array"
					  : "the reply is no JSON object with \"operations\"";
		return;
	}
	if (json_array_size(list) > HS_DELTA_OPS) {
		ret->unreadable =
			hs_pool_printf(pool, "more than %d operations in one reply", HS_DELTA_OPS);
		return;
	}
	ret->n = json_array_size(list);
	ret->v = HS_NEW_ARRAY(pool, struct hs_delta_op, ret->n + 1);
	json_array_foreach(list, i, entry) {
		read_op(pool, entry, &ret->v[i]);
		ret->malformed += ret->v[i].fault != NULL;
	}
}

/* The first {…} whose brackets close, strings skipped; NULL when there is none. */
static const char *first_object(struct hs_pool *pool, const char *text)
{
	const char *from = strchr(text, '{');
	bool inside = false, escaped = false;
	size_t depth = 0;

	for (const char *p = from; p && *p; p++) {
		if (inside) {
			inside = escaped || *p != '"';
			escaped = *p == '\\' && !escaped;
			continue;
		}
		inside = *p == '"';
		depth += *p == '{';
		if (*p == '}' && --depth == 0)
			return hs_pool_strndup(pool, from, (size_t)(p + 1 - from));
	}
	return NULL;
}

/* A value with a list of operations in it; NULL when this reading gives none. */
static json_t *try_reading(struct hs_pool *pool, const char *text, bool repair)
{
	json_t *v = text ? hs_json_lenient(pool, text, repair) : NULL;
	json_t *list = list_in(v);

	if (json_is_array(v) && json_array_size(list) && !json_is_object(json_array_get(list, 0)))
		return NULL; /* brackets of the prose around it */
	return list ? v : NULL;
}

void hs_delta_read(struct hs_pool *pool, const char *text, bool repair, struct hs_delta_list *ret)
{
	const char *slice = first_object(pool, text);
	json_t *v = try_reading(pool, text, false);

	if (!v)
		v = try_reading(pool, slice, false);
	if (!v && repair)
		v = try_reading(pool, text, true);
	if (!v && repair)
		v = try_reading(pool, slice, true);
	*ret = (struct hs_delta_list){0};
	if (hs_str_blank(text))
		ret->unreadable = "the reply is empty";
	else if (v || (v = hs_json_lenient(pool, text, false)))
		hs_delta_read_value(pool, v, ret);
	else
		ret->unreadable = "the reply is not valid JSON";
}
