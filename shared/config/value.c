#include "config/value.h"

#include <math.h>
#include <string.h>

#include "json/json.h"

bool hs_choice_has(const char *choices, const char *text)
{
	size_t n = strlen(text);

	for (const char *p = choices; *p;) {
		size_t len = strcspn(p, "|");

		if (len == n && memcmp(p, text, n) == 0)
			return true;
		p += len;
		if (*p == '|')
			p++;
	}
	return false;
}

static enum hs_rc bad(
	const struct hs_setting *s, const char *want, const char *text, struct hs_err *err)
{
	if (s->flags & HS_SF_SECRET)
		return hs_fail(err, HS_E_CONFIG, "%s must be %s", s->name, want);
	return hs_fail(err, HS_E_CONFIG, "%s must be %s, got '%.200s'", s->name, want, text);
}

static enum hs_rc in_range(
	const struct hs_setting *s, double v, const char *text, struct hs_err *err)
{
	bool low, limits = s->min <= s->max;

	if (!limits)
		return HS_OK;
	low = s->flags & HS_SF_ABOVE_MIN ? v <= s->min : v < s->min;
	if (low)
		return hs_fail(err, HS_E_CONFIG, "%s must be %s %g, got %.200s", s->name,
			s->flags & HS_SF_ABOVE_MIN ? "above" : "at least", s->min, text);
	if (v > s->max)
		return hs_fail(err, HS_E_CONFIG, "%s must be at most %g, got %.200s", s->name,
			s->max, text);
	return HS_OK;
}

static enum hs_rc str_from_text(struct hs_pool *pool, const struct hs_setting *s, const char *text,
	struct hs_value *v, struct hs_err *err)
{
	if (!s->choices) {
		v->u.str = hs_pool_strdup(pool, text);
		return HS_OK;
	}
	v->u.str = hs_str_lower_ascii(pool, hs_str_trim(pool, text));
	if (!hs_choice_has(s->choices, v->u.str))
		return bad(s,
			hs_pool_printf(
				pool, "one of %s", hs_str_replace(pool, s->choices, "|", ", ")),
			text, err);
	return HS_OK;
}

static bool omitted(const char *text)
{
	static const char *const words[] = {"", "none", "default", "off", "unset"};

	for (size_t i = 0; i < HS_COUNT(words); i++)
		if (hs_str_ieq_ascii(text, words[i]))
			return true;
	return false;
}

static enum hs_rc json_from_text(struct hs_pool *pool, const struct hs_setting *s, const char *text,
	struct hs_value *v, struct hs_err *err)
{
	struct hs_err reason = {0};

	if (hs_json_parse(pool, text, strlen(text), &v->u.json, NULL, &reason) != HS_OK) {
		if (!(s->flags & HS_SF_TEXT))
			return hs_fail(err, HS_E_CONFIG, "%s: %s", s->name, reason.msg);
		v->u.json = hs_json_keep(pool, json_string_nocheck(text));
	}
	if (json_is_null(v->u.json)) {
		v->null = true;
		return HS_OK;
	}
	return hs_value_type_check(s, v->u.json, err);
}

static enum hs_rc from_text(struct hs_pool *pool, const struct hs_setting *s, const char *text,
	struct hs_value *v, struct hs_err *err)
{
	switch (s->type) {
	case HS_ST_STR:
		return str_from_text(pool, s, text, v, err);
	case HS_ST_INT:
		if (!hs_str_to_i64(text, &v->u.num_int))
			return bad(s, "an integer", text, err);
		return in_range(s, (double)v->u.num_int, text, err);
	case HS_ST_NUM:
		if (!hs_str_to_double(text, &v->u.num))
			return bad(s, "a number", text, err);
		return in_range(s, v->u.num, text, err);
	case HS_ST_BOOL:
		return hs_str_to_bool(text, &v->u.yes) ? HS_OK : bad(s, "true or false", text, err);
	case HS_ST_LIST:
		v->u.list = hs_str_split(pool, text, ',');
		return HS_OK;
	case HS_ST_JSON:
		return json_from_text(pool, s, text, v, err);
	}
	return hs_fail(err, HS_E_INTERNAL, "%s has no type", s->name);
}

enum hs_rc hs_value_from_text(struct hs_pool *pool, const struct hs_setting *s, const char *text,
	struct hs_value *ret, struct hs_err *err)
{
	struct hs_value v = {0};

	if (!text || ((s->flags & HS_SF_OMIT) && omitted(hs_str_trim(pool, text))))
		v.null = true;
	else if (text[0] == '\0' && (s->flags & HS_SF_NULL))
		v.null = true;
	else
		HS_TRY(from_text(pool, s, text, &v, err));
	*ret = v;
	return HS_OK;
}

const char *hs_json_type_word(const json_t *v)
{
	static const char *const words[] = {
		[JSON_OBJECT] = "dict",
		[JSON_ARRAY] = "list",
		[JSON_STRING] = "str",
		[JSON_INTEGER] = "int",
		[JSON_REAL] = "float",
		[JSON_TRUE] = "bool",
		[JSON_FALSE] = "bool",
		[JSON_NULL] = "null",
	};

	return v ? words[json_typeof(v)] : "null";
}

/* What a JSON value of the setting may be, in words. */
static const char *wanted(const struct hs_setting *s)
{
	switch (s->type) {
	case HS_ST_STR:
		return "a string";
	case HS_ST_INT:
		return "an integer";
	case HS_ST_NUM:
		return "a number";
	case HS_ST_BOOL:
		return "a boolean";
	case HS_ST_LIST:
		return "a list";
	case HS_ST_JSON:
		break;
	}
	if (s->flags & HS_SF_TEXT)
		return "a string or a list";
	if ((s->flags & HS_SF_OBJECT) && (s->flags & HS_SF_ARRAY))
		return "a list or an object";
	return s->flags & HS_SF_OBJECT ? "an object" : "a list";
}

static bool type_fits(const struct hs_setting *s, const json_t *v)
{
	switch (s->type) {
	case HS_ST_STR:
		return json_is_string(v);
	case HS_ST_INT:
		return json_is_integer(v);
	case HS_ST_NUM:
		return json_is_number(v);
	case HS_ST_BOOL:
		return json_is_boolean(v);
	case HS_ST_LIST:
		return json_is_array(v);
	case HS_ST_JSON:
		return (json_is_object(v) && (s->flags & HS_SF_OBJECT)) ||
		       (json_is_array(v) && (s->flags & HS_SF_ARRAY)) ||
		       (json_is_string(v) && (s->flags & HS_SF_TEXT));
	}
	return false;
}

enum hs_rc hs_value_type_check(const struct hs_setting *s, const json_t *v, struct hs_err *err)
{
	json_t *member;
	size_t i;

	if (!type_fits(s, v))
		return hs_fail(err, HS_E_CONFIG, "%s must be %s, got %s", s->name, wanted(s),
			hs_json_type_word(v));
	if (s->type != HS_ST_LIST)
		return HS_OK;
	json_array_foreach((json_t *)v, i, member)
		if (!json_is_string(member))
			return hs_fail(err, HS_E_CONFIG,
				"%s must be a list of strings, got %s in it", s->name,
				hs_json_type_word(member));
	return HS_OK;
}

enum hs_rc hs_value_range_check(const struct hs_setting *s, const json_t *v, struct hs_err *err)
{
	char text[32];

	if (!json_is_number(v) || (s->type != HS_ST_INT && s->type != HS_ST_NUM))
		return HS_OK;
	hs_double_print(json_number_value(v), false, text);
	return in_range(s, json_number_value(v), text, err);
}

enum hs_rc hs_value_from_json(struct hs_pool *pool, const struct hs_setting *s, json_t *v,
	struct hs_value *ret, struct hs_err *err)
{
	struct hs_value out = {.given = true};

	if (json_is_null(v)) {
		out.null = true;
		*ret = out;
		return HS_OK;
	}
	HS_TRY(hs_value_type_check(s, v, err));
	switch (s->type) {
	case HS_ST_STR:
		out.u.str = hs_pool_strdup(pool, json_string_value(v));
		break;
	case HS_ST_INT:
		out.u.num_int = json_integer_value(v);
		break;
	case HS_ST_NUM:
		out.u.num = json_number_value(v);
		break;
	case HS_ST_BOOL:
		out.u.yes = json_is_true(v);
		break;
	case HS_ST_LIST:
		out.u.list = hs_json_strs(pool, v);
		break;
	case HS_ST_JSON:
		out.u.json = hs_json_keep(pool, json_incref(v));
		break;
	}
	*ret = out;
	return HS_OK;
}

json_t *hs_value_to_json(const struct hs_setting *s, const struct hs_value *v)
{
	if (v->null)
		return json_null();
	switch (s->type) {
	case HS_ST_STR:
		return json_string_nocheck(v->u.str);
	case HS_ST_INT:
		return json_integer(v->u.num_int);
	case HS_ST_NUM:
		/* 0 and 1 as written in the table, not as 0.0 */
		return floor(v->u.num) == v->u.num && fabs(v->u.num) < 0x1p53
			       ? json_integer((json_int_t)v->u.num)
			       : json_real(v->u.num);
	case HS_ST_BOOL:
		return json_boolean(v->u.yes);
	case HS_ST_LIST:
		return hs_json_from_strs(&v->u.list);
	case HS_ST_JSON:
		return json_incref(v->u.json);
	}
	return json_null();
}
