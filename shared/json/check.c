#include "json/check.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "json/check_internal.h"
#include "json/clean.h"
#include "json/json.h"

#define NAMES_MAX ((size_t)4096) /* the choices of one field, as a sentence */

/* ---- readers, one for each type ---- */

static void read_str(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	const char *s = json_string_value(v);
	int64_t chars;

	if (!s) {
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
		return;
	}
	if (f->has_min || f->has_max) {
		chars = (int64_t)hs_utf8_chars(s, strlen(s));
		if (f->has_min && chars < f->min) {
			hs_fault_length(ck, false, f->min, v);
			return;
		}
		if (f->has_max && chars > f->max) {
			hs_fault_length(ck, true, f->max, v);
			return;
		}
	}
	if ((f->flags & HS_NOT_BLANK) && hs_str_blank(s)) {
		hs_check_value_error(ck, v, "%s must not be blank", f->name);
		return;
	}
	*(const char **)place = hs_pool_strdup(ck->pool, s);
}

struct whole {
	int64_t v;
	bool beyond; /* outside 64 bits; v is the nearest end */
};

static struct whole whole_from_double(double d)
{
	if (d >= 0x1p63)
		return (struct whole){INT64_MAX, true};
	if (d < -0x1p63)
		return (struct whole){INT64_MIN, true};
	return (struct whole){(int64_t)d, false};
}

/* "3", " 3 ", "+3", "3.0"; digits beyond 64 bits saturate. */
static bool whole_from_text(struct hs_pool *pool, const char *s, struct whole *ret)
{
	char *t = hs_str_trim(pool, s), *point = strchr(t, '.');
	size_t sign = t[0] == '-' || t[0] == '+';
	const char *digits;

	if (point) {
		if (point[1] == '\0' || strspn(point + 1, "0") != strlen(point + 1))
			return false;
		*point = '\0';
	}
	digits = t + sign;
	if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits))
		return false;
	if (hs_str_to_i64(t[0] == '+' ? digits : t, &ret->v)) {
		ret->beyond = false;
		return true;
	}
	*ret = (struct whole){t[0] == '-' ? INT64_MIN : INT64_MAX, true};
	return true;
}

/* Lax integer; reports the fault itself and gives false when there is none. */
static bool lax_int(struct hs_check *ck, const struct hs_field *f, json_t *v, struct whole *ret)
{
	if (json_is_integer(v)) {
		*ret = (struct whole){json_integer_value(v), false};
	} else if (json_is_boolean(v) && !(f->flags & HS_NO_BOOL)) {
		*ret = (struct whole){json_is_true(v), false};
	} else if (json_is_real(v)) {
		if (floor(json_real_value(v)) != json_real_value(v)) {
			hs_check_fault(ck, "int_from_float",
				"Input should be a valid integer, got a number with a fractional part",
				v, NULL);
			return false;
		}
		*ret = whole_from_double(json_real_value(v));
	} else if (json_is_string(v)) {
		if (!whole_from_text(ck->pool, json_string_value(v), ret)) {
			hs_check_fault(ck, "int_parsing",
				"Input should be a valid integer, unable to parse string as an integer",
				v, NULL);
			return false;
		}
	} else {
		hs_check_fault(ck, "int_type", "Input should be a valid integer", v, NULL);
		return false;
	}
	return true;
}

static void read_int(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct whole w;

	if (!lax_int(ck, f, v, &w))
		return;
	if (f->has_min && w.v < f->min) {
		hs_fault_limit(
			ck, "greater_than_equal", "greater than or equal to", f->min, "ge", v);
		return;
	}
	if (f->has_max && w.v > f->max) {
		if (!(f->flags & HS_CLAMP_MAX)) {
			hs_fault_limit(
				ck, "less_than_equal", "less than or equal to", f->max, "le", v);
			return;
		}
		w = (struct whole){f->max, false};
	}
	if (w.beyond) {
		hs_check_fault(ck, "int_parsing_size",
			"Unable to parse input string as an integer, exceeded maximum size", v,
			NULL);
		return;
	}
	*(int64_t *)place = w.v;
}

static void read_num(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	double d;

	if (json_is_number(v)) {
		d = json_number_value(v);
	} else if (json_is_boolean(v)) {
		d = json_is_true(v);
	} else if (json_is_string(v)) {
		if (!hs_str_to_double(json_string_value(v), &d)) {
			hs_check_fault(ck, "float_parsing",
				"Input should be a valid number, unable to parse string as a number",
				v, NULL);
			return;
		}
	} else {
		hs_check_fault(ck, "float_type", "Input should be a valid number", v, NULL);
		return;
	}
	if (f->has_min && d < (double)f->min) {
		hs_fault_limit(
			ck, "greater_than_equal", "greater than or equal to", f->min, "ge", v);
		return;
	}
	if (f->has_max && d > (double)f->max) {
		if (!(f->flags & HS_CLAMP_MAX)) {
			hs_fault_limit(
				ck, "less_than_equal", "less than or equal to", f->max, "le", v);
			return;
		}
		d = (double)f->max;
	}
	*(double *)place = d;
}

static void read_bool(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	bool b = false, ok;

	(void)f;
	if (json_is_boolean(v)) {
		b = json_is_true(v);
		ok = true;
	} else if (json_is_number(v)) {
		double d = json_number_value(v);

		b = d == 1.0;
		ok = d == 1.0 || d == 0.0;
	} else if (json_is_string(v)) {
		ok = hs_str_to_bool(json_string_value(v), &b);
	} else {
		hs_check_fault(ck, "bool_type", "Input should be a valid boolean", v, NULL);
		return;
	}
	if (!ok) {
		hs_check_fault(ck, "bool_parsing",
			"Input should be a valid boolean, unable to interpret input", v, NULL);
		return;
	}
	*(bool *)place = b;
}

static int name_index(const char *const *names, const char *s)
{
	for (int i = 0; s && names[i]; i++)
		if (strcmp(names[i], s) == 0)
			return i;
	return -1;
}

/* 'a', 'b' or 'c' */
static const char *names_text(struct hs_pool *pool, const char *const *names)
{
	struct hs_buf *b = hs_buf_new(pool, NAMES_MAX);

	for (size_t i = 0; names[i]; i++) {
		if (i > 0)
			hs_buf_str(b, names[i + 1] ? ", " : " or ");
		hs_buf_printf(b, "'%s'", names[i]);
	}
	return b->data;
}

static void enum_fault(struct hs_check *ck, const struct hs_field *f, json_t *v)
{
	const char *names = names_text(ck->pool, f->names);

	hs_check_fault(ck, f->flags & HS_ENUM_ERROR ? "enum" : "literal_error",
		hs_pool_printf(ck->pool, "Input should be %s", names), v,
		hs_pool_printf(ck->pool, "{\"expected\":\"%s\"}", names));
}

static void read_enum(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	int i = name_index(f->names, json_string_value(v));

	if (i < 0)
		enum_fault(ck, f, v);
	else
		*(int *)place = i;
}

/* Number of members within the field's limits? */
static bool count_fits(struct hs_check *ck, const struct hs_field *f, json_t *v)
{
	size_t n = json_array_size(v);
	int64_t min = f->has_min ? f->min : 0, max = f->has_max ? f->max : INT64_MAX;

	if ((f->flags & HS_NOT_EMPTY) && min < 1)
		min = 1;
	/* each string may become a placeholder of a statement, which takes 65,535 */
	if (f->type == HS_F_STRS && !f->has_max)
		max = HS_STRS_PER_LIST;
	if ((f->flags & HS_TAG_LIST) && max > HS_TAGS_PER_ITEM)
		max = HS_TAGS_PER_ITEM;
	if ((int64_t)n >= min && (int64_t)n <= max)
		return true;
	hs_fault_count(ck, (int64_t)n > max, (int64_t)n > max ? max : min, n, v);
	return false;
}

static bool member_fits(struct hs_check *ck, const struct hs_field *f, json_t *v)
{
	const char *s = json_string_value(v);

	if (!s) {
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
		return false;
	}
	if (f->type == HS_F_ENUMS && name_index(f->names, s) < 0) {
		enum_fault(ck, f, v);
		return false;
	}
	if (!(f->flags & HS_TAG_LIST))
		return true;
	if (s[0] == '\0') {
		hs_fault_length(ck, false, 1, v);
		return false;
	}
	if (hs_utf8_chars(s, strlen(s)) > HS_TAG_CHARS) {
		hs_fault_length(ck, true, HS_TAG_CHARS, v);
		return false;
	}
	return true;
}

/* A string in a lax list field: JSON array text, else one member. */
static json_t *list_from_text(struct hs_check *ck, json_t *v)
{
	const char *s = json_string_value(v);
	json_t *list;

	if (hs_str_starts(hs_str_trim(ck->pool, s), "[") &&
		hs_json_parse(ck->pool, s, strlen(s), &list, NULL, NULL) == HS_OK &&
		json_is_array(list))
		return list;
	return hs_json_keep(ck->pool, json_pack("[O]", v));
}

static void read_strs(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct hs_strs list = {0, NULL};
	json_t *member;
	size_t i;

	if (json_is_string(v) && (f->flags & HS_STR_LIST_LAX))
		v = list_from_text(ck, v);
	if (!json_is_array(v)) {
		hs_check_fault(ck, "list_type", "Input should be a valid list", v, NULL);
		return;
	}
	if (!count_fits(ck, f, v))
		return;
	if (json_array_size(v) > 0)
		list.v = HS_NEW_ARRAY(ck->pool, const char *, json_array_size(v));
	json_array_foreach(v, i, member) {
		hs_check_push_index(ck, i);
		if (member_fits(ck, f, member))
			list.v[list.n++] = hs_pool_strdup(ck->pool, json_string_value(member));
		hs_check_pop(ck);
	}
	*(struct hs_strs *)place = list;
}

static void read_obj(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	*(void **)place = hs_check_sub(ck, f->sub, v);
}

static void read_objs(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct hs_list list = {0, NULL};
	json_t *member;
	size_t i;

	if (!json_is_array(v)) {
		hs_check_fault(ck, "list_type", "Input should be a valid list", v, NULL);
		return;
	}
	if (!count_fits(ck, f, v))
		return;
	if (json_array_size(v) > 0)
		list.v = HS_NEW_ARRAY(ck->pool, void *, json_array_size(v));
	json_array_foreach(v, i, member) {
		hs_check_push_index(ck, i);
		list.v[list.n] = hs_check_sub(ck, f->sub, member);
		if (list.v[list.n])
			list.n++;
		hs_check_pop(ck);
	}
	*(struct hs_list *)place = list;
}

static void read_dict(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	(void)f;
	if (json_is_object(v))
		*(json_t **)place = v;
	else
		hs_check_fault(ck, "dict_type", "Input should be a valid dictionary", v, NULL);
}

static void read_json(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	(void)ck;
	(void)f;
	*(json_t **)place = v;
}

static void read_time(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	(void)f;
	if (!json_is_string(v))
		hs_check_fault(ck, "datetime_type", "Input should be a valid datetime", v, NULL);
	else if (!hs_time_parse(json_string_value(v), place))
		hs_check_fault(ck, "datetime_from_date_parsing",
			"Input should be a valid datetime or date", v,
			"{\"error\":\"not an ISO 8601 date or date-time\"}");
}

static void read_custom(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	f->custom(ck, f, v, place);
}

typedef void read_fn(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place);

static read_fn *const readers[] = {
	[HS_F_STR] = read_str,
	[HS_F_INT] = read_int,
	[HS_F_NUM] = read_num,
	[HS_F_BOOL] = read_bool,
	[HS_F_ENUM] = read_enum,
	[HS_F_STRS] = read_strs,
	[HS_F_OBJ] = read_obj,
	[HS_F_OBJS] = read_objs,
	[HS_F_DICT] = read_dict,
	[HS_F_JSON] = read_json,
	[HS_F_TIME] = read_time,
	[HS_F_ENUMS] = read_strs,
	[HS_F_CUSTOM] = read_custom,
};

/* ---- defaults ---- */

json_t *hs_field_default(const struct hs_field *f)
{
	bool text = f->type == HS_F_STR || f->type == HS_F_ENUM || f->type == HS_F_TIME;
	json_t *v = text ? json_string(f->def) : json_loads(f->def, JSON_DECODE_ANY, NULL);

	assert(v);
	return v;
}

static void set_default(struct hs_check *ck, const struct hs_field *f, void *place)
{
	size_t before = ck->faults;
	json_t *v;

	if (f->type == HS_F_ENUM)
		*(int *)place = -1;
	else if (f->type == HS_F_TIME)
		*(int64_t *)place = HS_TIME_NONE;
	if (!f->def)
		return;
	v = hs_json_keep(ck->pool, hs_field_default(f));
	if (!json_is_null(v))
		readers[f->type](ck, f, v, place);
	assert(ck->faults == before);
	(void)before;
}

/* ---- objects ---- */

static bool is_query(const struct hs_check *ck)
{
	return strcmp(ck->root, "query") == 0;
}

static void read_field(
	struct hs_check *ck, const struct hs_field *f, uint64_t bit, json_t *object, void *obj)
{
	struct hs_seen *seen = obj;
	json_t *v = json_object_get(object, f->name);
	void *place = (char *)obj + f->offset;
	const struct hs_field *outer = ck->field;

	ck->field = f;
	hs_check_push(ck, f->name);
	if (json_is_null(v))
		seen->null |= bit;
	else if (v)
		seen->given |= bit;
	if (!v && (f->flags & HS_REQUIRED)) {
		ck->field = outer;
		hs_check_fault(ck, "missing", "Field required", is_query(ck) ? NULL : object, NULL);
		ck->field = f;
	} else if (!v || (json_is_null(v) && (f->flags & HS_NULLABLE))) {
		set_default(ck, f, place);
	} else if (json_is_null(v) && f->type == HS_F_JSON) {
		*(json_t **)place = NULL;
	} else {
		/* a refused value leaves the neutral one behind, not what another type would read as */
		if (f->type == HS_F_ENUM)
			*(int *)place = -1;
		else if (f->type == HS_F_TIME)
			*(int64_t *)place = HS_TIME_NONE;
		readers[f->type](ck, f, v, place);
	}
	hs_check_pop(ck);
	ck->field = outer;
}

static const struct hs_field *field_named(const struct hs_shape *shape, const char *name)
{
	for (size_t i = 0; i < shape->n_fields; i++)
		if (strcmp(shape->fields[i].name, name) == 0)
			return &shape->fields[i];
	return NULL;
}

static void unknown_keys(struct hs_check *ck, const struct hs_shape *shape, json_t *object)
{
	const char *key;
	json_t *v;

	if (!shape->strict_keys && !ck->ignored)
		return;
	json_object_foreach(object, key, v) {
		if (field_named(shape, key))
			continue;
		if (shape->strict_keys) {
			hs_check_push(ck, key);
			hs_check_fault(
				ck, "extra_forbidden", "Extra inputs are not permitted", v, NULL);
			hs_check_pop(ck);
		} else {
			hs_strs_add(ck->pool, ck->ignored, hs_pool_strdup(ck->pool, key));
		}
	}
}

/* A fresh struct; NULL when anything in it was refused. */
static void *read_object(struct hs_check *ck, const struct hs_shape *shape, json_t *object)
{
	size_t before = ck->faults;
	void *obj = hs_pool_calloc(ck->pool, 1, shape->size);

	assert(shape->n_fields <= 64 && shape->size >= sizeof(struct hs_seen));
	for (size_t i = 0; i < shape->n_fields; i++)
		read_field(ck, &shape->fields[i], UINT64_C(1) << i, object, obj);
	unknown_keys(ck, shape, object);
	if (ck->faults == before && shape->rule)
		shape->rule(ck, obj);
	return ck->faults == before ? obj : NULL;
}

void *hs_check_sub(struct hs_check *ck, const struct hs_shape *shape, json_t *v)
{
	struct hs_strs *ignored = ck->ignored;
	void *obj;

	if (!json_is_object(v)) {
		hs_check_fault(ck, "model_attributes_type",
			"Input should be a valid dictionary or object to extract fields from", v,
			NULL);
		return NULL;
	}
	ck->ignored = NULL;
	obj = read_object(ck, shape, v);
	ck->ignored = ignored;
	return obj;
}

static enum hs_rc outcome(const struct hs_check *ck, void *obj, void **ret)
{
	if (ck->faults > 0) {
		if (!ck->err)
			return HS_E_INVALID;
		ck->err->rc = HS_E_INVALID;
		return HS_E_INVALID;
	}
	*ret = obj;
	return HS_OK;
}

enum hs_rc hs_check_object(struct hs_pool *pool, const struct hs_shape *shape, const char *root,
	json_t *value, void **ret, struct hs_strs *ignored, struct hs_err *err)
{
	struct hs_check ck = {.pool = pool, .err = err, .root = root, .ignored = ignored};
	void *obj = NULL;

	if (!value)
		hs_check_fault(&ck, "missing", "Field required", NULL, NULL);
	else if (!json_is_object(value))
		hs_check_fault(&ck, "model_attributes_type",
			"Input should be a valid dictionary or object to extract fields from",
			value, NULL);
	else
		obj = read_object(&ck, shape, value);
	return outcome(&ck, obj, ret);
}

/* A query value as JSON string: cleaned, broken UTF-8 replaced by U+FFFD. */
static json_t *query_value(struct hs_pool *pool, const char *s)
{
	size_t n = strlen(s), len;
	char *clean = hs_clean_text(pool, s, n);
	struct hs_buf *b;
	uint32_t cp;

	n = strlen(clean);
	if (hs_utf8_valid(clean, n))
		return json_stringn(clean, n);
	b = hs_buf_new(pool, 3 * n + 1);
	for (const char *p = clean; *p; p += len ? len : 1) {
		len = hs_utf8_next(p, (size_t)(clean + n - p), &cp);
		if (len)
			hs_buf_add(b, p, len);
		else
			hs_buf_str(b, "\xEF\xBF\xBD");
	}
	return json_stringn(b->data, b->len);
}

/* Repeatable parameters become lists, of the others the last one counts. */
static json_t *query_object(
	struct hs_pool *pool, const struct hs_shape *shape, const struct hs_pair *pairs, size_t n)
{
	json_t *object = hs_json_keep(pool, json_object()), *list;

	for (size_t i = 0; i < n; i++) {
		const struct hs_field *f = field_named(shape, pairs[i].name);
		json_t *v = query_value(pool, pairs[i].value ? pairs[i].value : "");
		bool listed = f && (f->flags & HS_REPEATED);

		if (!f) {
			json_t *key = hs_json_keep(pool, query_value(pool, pairs[i].name));

			json_object_set_new(object, json_string_value(key), v);
			continue;
		}
		if (!listed) {
			json_object_set_new(object, f->name, v);
			continue;
		}
		list = json_object_get(object, f->name);
		if (!list) {
			list = json_array();
			json_object_set_new(object, f->name, list);
		}
		json_array_append_new(list, v);
	}
	return object;
}

enum hs_rc hs_check_query(struct hs_pool *pool, const struct hs_shape *shape,
	const struct hs_pair *pairs, size_t n_pairs, void **ret, struct hs_strs *ignored,
	struct hs_err *err)
{
	struct hs_check ck = {.pool = pool, .err = err, .root = "query", .ignored = ignored};
	void *obj = read_object(&ck, shape, query_object(pool, shape, pairs, n_pairs));

	return outcome(&ck, obj, ret);
}

/* ---- what was in the input ---- */

static uint64_t bit_of(const struct hs_shape *shape, const char *name)
{
	const struct hs_field *f = field_named(shape, name);

	assert(f);
	return UINT64_C(1) << (f - shape->fields);
}

bool hs_given(const struct hs_shape *shape, const void *obj, const char *name)
{
	return ((const struct hs_seen *)obj)->given & bit_of(shape, name);
}

bool hs_was_null(const struct hs_shape *shape, const void *obj, const char *name)
{
	return ((const struct hs_seen *)obj)->null & bit_of(shape, name);
}

void hs_string_dict_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
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
