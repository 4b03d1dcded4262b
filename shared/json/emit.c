#include "json/emit.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"

/* A nullable number that the input did not hold and that has no default is null. */
static bool unset(const struct hs_field *f, uint64_t bit, const void *obj)
{
	const struct hs_seen *seen = obj;

	return (f->flags & HS_NULLABLE) && !f->def && !(seen->given & bit);
}

static void emit_list(struct hs_out *o, const struct hs_field *f, const struct hs_list *list)
{
	hs_out_open(o, f->name, '[');
	for (size_t i = 0; i < list->n; i++)
		hs_emit(o, NULL, f->sub, list->v[i]);
	hs_out_close(o, ']');
}

static void emit_number(struct hs_out *o, const struct hs_field *f, const void *place)
{
	if (f->type == HS_F_INT)
		hs_out_int(o, f->name, *(const int64_t *)place);
	else if (f->type == HS_F_NUM)
		hs_out_num(o, f->name, *(const double *)place);
	else
		hs_out_bool(o, f->name, *(const bool *)place);
}

static void emit_field(struct hs_out *o, const struct hs_field *f, uint64_t bit, const void *obj)
{
	const void *place = (const char *)obj + f->offset;
	int choice;

	switch (f->type) {
	case HS_F_STR:
		hs_out_str(o, f->name, *(const char *const *)place);
		break;
	case HS_F_INT:
	case HS_F_NUM:
	case HS_F_BOOL:
		if (unset(f, bit, obj))
			hs_out_null(o, f->name);
		else
			emit_number(o, f, place);
		break;
	case HS_F_ENUM:
		choice = *(const int *)place;
		hs_out_str(o, f->name, choice < 0 ? NULL : f->names[choice]);
		break;
	case HS_F_STRS:
	case HS_F_ENUMS:
		if (unset(f, bit, obj) && ((const struct hs_strs *)place)->n == 0)
			hs_out_null(o, f->name);
		else
			hs_out_strs(o, f->name, place);
		break;
	case HS_F_OBJ:
		if (*(void *const *)place)
			hs_emit(o, f->name, f->sub, *(void *const *)place);
		else
			hs_out_null(o, f->name);
		break;
	case HS_F_OBJS:
		emit_list(o, f, place);
		break;
	case HS_F_DICT:
	case HS_F_JSON:
		hs_out_json(o, f->name, *(json_t *const *)place);
		break;
	case HS_F_TIME:
		hs_out_time(o, f->name, *(const int64_t *)place);
		break;
	case HS_F_CUSTOM:
		break;
	}
}

void hs_emit(struct hs_out *o, const char *key, const struct hs_shape *shape, const void *obj)
{
	hs_out_open(o, key, '{');
	for (size_t i = 0; i < shape->n_fields; i++)
		emit_field(o, &shape->fields[i], UINT64_C(1) << i, obj);
	hs_out_close(o, '}');
}

/* ---- schema ---- */

static const char *const type_names[] = {
	[HS_F_STR] = "string",
	[HS_F_INT] = "integer",
	[HS_F_NUM] = "number",
	[HS_F_BOOL] = "boolean",
	[HS_F_ENUM] = "string",
	[HS_F_STRS] = "array",
	[HS_F_OBJ] = "object",
	[HS_F_OBJS] = "array",
	[HS_F_DICT] = "object",
	[HS_F_JSON] = NULL,
	[HS_F_TIME] = "string",
	[HS_F_ENUMS] = "array",
	[HS_F_CUSTOM] = NULL,
};

static void put(json_t *object, const char *key, json_t *v)
{
	if (!v || json_object_set_new_nocheck(object, key, v) != 0)
		hs_out_of_memory(0);
}

static json_t *name_list(const char *const *names)
{
	json_t *list = json_array();

	for (size_t i = 0; names[i]; i++)
		json_array_append_new(list, json_string(names[i]));
	return list;
}

static json_t *item_schema(const struct hs_field *f)
{
	json_t *s;

	if (f->type == HS_F_OBJS)
		return hs_emit_schema(f->sub);
	s = json_pack("{s:s}", "type", "string");
	if (f->type == HS_F_ENUMS)
		put(s, "enum", name_list(f->names));
	return s;
}

/* Names of the lower and the upper limit by what they count. */
static void put_limits(json_t *s, const struct hs_field *f, bool list)
{
	bool text = f->type == HS_F_STR;
	const char *low = list ? "minItems" : text ? "minLength" : "minimum";
	const char *high = list ? "maxItems" : text ? "maxLength" : "maximum";

	if (f->has_min)
		put(s, low, json_integer(f->min));
	else if (list && (f->flags & HS_NOT_EMPTY))
		put(s, low, json_integer(1));
	if (f->has_max && !(f->flags & HS_CLAMP_MAX))
		put(s, high, json_integer(f->max));
}

static json_t *field_schema(const struct hs_field *f)
{
	json_t *s = f->type == HS_F_OBJ ? hs_emit_schema(f->sub) : json_object();
	bool list = f->type == HS_F_STRS || f->type == HS_F_OBJS || f->type == HS_F_ENUMS;
	const char *type = type_names[f->type];

	if (!s)
		hs_out_of_memory(0);
	if (type && (f->flags & HS_NULLABLE))
		put(s, "type", json_pack("[s, s]", type, "null"));
	else if (type)
		put(s, "type", json_string(type));
	if (f->type == HS_F_ENUM) {
		put(s, "enum", name_list(f->names));
		if (f->flags & HS_NULLABLE)
			json_array_append_new(json_object_get(s, "enum"), json_null());
	}
	if (f->type == HS_F_TIME)
		put(s, "format", json_string("date-time"));
	if (list)
		put(s, "items", item_schema(f));
	put_limits(s, f, list);
	if (f->def)
		put(s, "default", hs_field_default(f));
	else if ((f->flags & HS_NULLABLE) && !(f->flags & HS_REQUIRED))
		put(s, "default", json_null());
	if (f->doc)
		put(s, "description", json_string(f->doc));
	return s;
}

json_t *hs_emit_schema(const struct hs_shape *shape)
{
	json_t *s = json_pack("{s:s, s:s}", "title", shape->name, "type", "object");
	json_t *properties = json_object(), *required = json_array();

	if (!s || !properties || !required)
		hs_out_of_memory(0);
	for (size_t i = 0; i < shape->n_fields; i++) {
		const struct hs_field *f = &shape->fields[i];

		put(properties, f->name, field_schema(f));
		if (f->flags & HS_REQUIRED)
			json_array_append_new(required, json_string(f->name));
	}
	put(s, "properties", properties);
	if (json_array_size(required) > 0)
		put(s, "required", required);
	else
		json_decref(required);
	if (shape->strict_keys)
		put(s, "additionalProperties", json_false());
	return s;
}
