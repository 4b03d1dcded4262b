#include "mcp.h"

#include <string.h>

#include "engine/trigger.h"
#include "json/json.h"

/* What a field is for a client, whatever reads it. */
enum kind { TEXT, WHOLE, NUMBER, TRUTH, CHOICE, TEXTS, OBJECT, TEXT_MAP, OBJECTS, TRIGGER };

static const enum kind kinds[] = {
	[HS_F_STR] = TEXT,
	[HS_F_INT] = WHOLE,
	[HS_F_NUM] = NUMBER,
	[HS_F_BOOL] = TRUTH,
	[HS_F_ENUM] = CHOICE,
	[HS_F_STRS] = TEXTS,
	[HS_F_OBJ] = OBJECT,
	[HS_F_OBJS] = OBJECTS,
	[HS_F_DICT] = OBJECT,
	[HS_F_JSON] = OBJECT,
	[HS_F_TIME] = TEXT,
	[HS_F_ENUMS] = TEXTS,
};
/* Fields with a reader of their own. */
static const struct {
	const char *name;
	enum kind kind;
} customs[] = {
	{"metadata", TEXT_MAP},
	{"tag_groups", OBJECTS},
	{"trigger", TRIGGER},
	{"response_schema", OBJECT},
};

static enum kind kind_of(const struct hs_field *f)
{
	if (f->type != HS_F_CUSTOM)
		return kinds[f->type];
	for (size_t i = 0; i < HS_COUNT(customs); i++)
		if (strcmp(customs[i].name, f->name) == 0)
			return customs[i].kind;
	return TEXT;
}

const struct hs_field mcp_bank_field = {.name = "bank_id",
	.type = HS_F_STR,
	.flags = HS_NULLABLE,
	.doc = "memory bank to work on; left out, the connection's own"};

/* ---- printing ---- */

static void put_field(struct hs_out *o, const struct hs_field *f);

static void put_choices(struct hs_out *o, const char *const *names)
{
	hs_out_open(o, "enum", '[');
	for (size_t i = 0; names[i]; i++)
		hs_out_str(o, NULL, names[i]);
	hs_out_close(o, ']');
}

static void put_texts(struct hs_out *o, const struct hs_field *f)
{
	hs_out_str(o, "type", "array");
	hs_out_open(o, "items", '{');
	hs_out_str(o, "type", "string");
	if (f->type == HS_F_ENUMS)
		put_choices(o, f->names);
	hs_out_close(o, '}');
	if (f->flags & HS_NOT_EMPTY)
		hs_out_int(o, "minItems", 1);
}

static void put_trigger(struct hs_out *o)
{
	const struct hs_shape *shape = &hs_trigger_patch_shape;

	hs_out_str(o, "type", "object");
	hs_out_open(o, "properties", '{');
	for (size_t i = 0; i < shape->n_fields; i++)
		put_field(o, &shape->fields[i]);
	hs_out_close(o, '}');
	hs_out_bool(o, "additionalProperties", false);
}

static void put_limits(struct hs_out *o, const struct hs_field *f)
{
	if (f->has_min)
		hs_out_int(o, "minimum", f->min);
	if (f->has_max && !(f->flags & HS_CLAMP_MAX))
		hs_out_int(o, "maximum", f->max);
}

/* "type" and what belongs to it. */
static void put_type(struct hs_out *o, const struct hs_field *f)
{
	switch (kind_of(f)) {
	case TEXT:
		hs_out_str(o, "type", "string");
		break;
	case WHOLE:
		hs_out_str(o, "type", "integer");
		put_limits(o, f);
		break;
	case NUMBER:
		hs_out_str(o, "type", "number");
		put_limits(o, f);
		break;
	case TRUTH:
		hs_out_str(o, "type", "boolean");
		break;
	case CHOICE:
		hs_out_str(o, "type", "string");
		put_choices(o, f->names);
		break;
	case TEXTS:
		put_texts(o, f);
		break;
	case OBJECT:
		hs_out_raw(o, "type", "\"object\"", NULL);
		hs_out_bool(o, "additionalProperties", true);
		break;
	case TEXT_MAP:
		hs_out_str(o, "type", "object");
		hs_out_raw(o, "additionalProperties", "{\"type\":\"string\"}", NULL);
		break;
	case OBJECTS:
		hs_out_str(o, "type", "array");
		hs_out_raw(o, "items", "{\"type\":\"object\",\"additionalProperties\":true}", NULL);
		break;
	case TRIGGER:
		put_trigger(o);
		break;
	}
}

static void put_default(struct hs_out *o, const struct hs_field *f)
{
	json_t *v;

	if (f->flags & HS_NULLABLE) {
		hs_out_null(o, "default");
	} else if (f->def) {
		v = hs_field_default(f);
		hs_out_json(o, "default", v);
		json_decref(v);
	}
}

static void put_field(struct hs_out *o, const struct hs_field *f)
{
	hs_out_open(o, f->name, '{');
	if (f->flags & HS_NULLABLE) {
		hs_out_open(o, "anyOf", '[');
		hs_out_open(o, NULL, '{');
		put_type(o, f);
		hs_out_close(o, '}');
		hs_out_raw(o, NULL, "{\"type\":\"null\"}", NULL);
		hs_out_close(o, ']');
	} else {
		put_type(o, f);
	}
	put_default(o, f);
	hs_out_str(o, "description", f->doc);
	hs_out_close(o, '}');
}

void mcp_schema_put(struct hs_out *o, const char *key, const struct hs_shape *shape, bool with_bank)
{
	struct hs_strs required = {0};
	const char *names[64];

	required.v = names;
	hs_out_open(o, key, '{');
	hs_out_str(o, "type", "object");
	hs_out_open(o, "properties", '{');
	for (size_t i = 0; i < shape->n_fields; i++) {
		put_field(o, &shape->fields[i]);
		if (shape->fields[i].flags & HS_REQUIRED)
			names[required.n++] = shape->fields[i].name;
	}
	if (with_bank)
		put_field(o, &mcp_bank_field);
	hs_out_close(o, '}');
	if (required.n > 0)
		hs_out_strs(o, "required", &required);
	hs_out_close(o, '}');
}

/* ---- texts that stand for lists and objects ---- */

json_t *mcp_coerce(struct hs_pool *pool, const struct hs_shape *shape, json_t *arguments)
{
	json_t *all = hs_json_keep(pool, arguments ? json_copy(arguments) : json_object());

	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct hs_field *f = &shape->fields[i];
		enum kind kind = kind_of(f);
		const char *text = hs_json_str(all, f->name);
		json_t *v = NULL;

		if (!text || kind < TEXTS ||
			hs_json_parse(pool, text, strlen(text), &v, NULL, NULL) != HS_OK)
			continue;
		if (kind == TEXTS || kind == OBJECTS ? json_is_array(v) : json_is_object(v))
			json_object_set(all, f->name, v);
	}
	return all;
}

/* ---- readers ---- */

void mcp_objects_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	json_t *member;
	size_t i;

	(void)f;
	if (!json_is_array(v)) {
		hs_check_fault(ck, "list_type", "Input should be a valid list", v, NULL);
		return;
	}
	json_array_foreach(v, i, member) {
		if (json_is_object(member))
			continue;
		hs_check_push_index(ck, i);
		hs_check_fault(ck, "dict_type", "Input should be a valid dictionary", member, NULL);
		hs_check_pop(ck);
	}
	*(json_t **)place = v;
}

static bool trigger_member(const char *name)
{
	const struct hs_shape *shape = &hs_trigger_patch_shape;

	for (size_t i = 0; i < shape->n_fields; i++)
		if (strcmp(shape->fields[i].name, name) == 0)
			return true;
	return false;
}

/* Members must be known and valid; what was sent is handed on as it is. */
void mcp_trigger_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	const char *key;
	json_t *member;

	(void)f;
	if (!json_is_object(v)) {
		hs_check_fault(ck, "dict_type", "Input should be a valid dictionary", v, NULL);
		return;
	}
	json_object_foreach(v, key, member) {
		if (trigger_member(key))
			continue;
		hs_check_push(ck, key);
		hs_check_fault(
			ck, "extra_forbidden", "Extra inputs are not permitted", member, NULL);
		hs_check_pop(ck);
	}
	(void)hs_check_sub(ck, &hs_trigger_patch_shape, v);
	*(json_t **)place = v;
}
