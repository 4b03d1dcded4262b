#include "json/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "json/clean.h"
#include "json/out.h"

/* Walks over JSON text outside strings. */
struct walk {
	const char *p, *end;
	bool in_string;
};

/* The next byte that is not inside a string; 0 at the end. */
static char walk_next(struct walk *w)
{
	while (w->p < w->end) {
		char c = *w->p++;

		if (w->in_string) {
			if (c == '\\' && w->p < w->end)
				w->p++;
			else if (c == '"')
				w->in_string = false;
		} else if (c == '"') {
			w->in_string = true;
		} else if (c != '\0') {
			return c;
		}
	}
	return 0;
}

#define OBJECT_VALUES 4 /* an object takes the memory of so many other values */

/* Where a text goes beyond what is read; at is n when it does not. */
struct excess {
	size_t at;
	bool deep; /* else too many values */
};

static struct excess excess_of(const char *text, size_t n)
{
	struct walk w = {text, text + n, false};
	size_t depth = 0, values = 1;
	char c;

	while ((c = walk_next(&w))) {
		if (c == '{' || c == '[') {
			values += c == '{' ? OBJECT_VALUES : 1;
			depth++;
		} else if (c == ',') {
			values++;
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
		if (depth > HS_JSON_DEPTH || values > HS_JSON_VALUES)
			return (struct excess){(size_t)(w.p - text) - 1, depth > HS_JSON_DEPTH};
	}
	return (struct excess){n, false};
}

static enum hs_rc refuse(const struct excess *x, struct hs_err *err)
{
	if (x->deep)
		return hs_fail(err, HS_E_PARSE, "JSON is nested deeper than %d", HS_JSON_DEPTH);
	return hs_fail(err, HS_E_PARSE, "JSON holds more than %d values", HS_JSON_VALUES);
}

static bool number_char(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* Integers beyond 64 bits become reals: jansson refuses them, and clients may send them. */
static char *widen_integers(struct hs_pool *pool, const char *text, size_t n, size_t *ret_n)
{
	struct hs_buf *b = hs_buf_new(pool, 3 * n + 8);
	struct walk w = {text, text + n, false};
	const char *copied = text;
	char c;

	while ((c = walk_next(&w))) {
		const char *start = w.p - 1;
		int64_t v;
		char *number;

		if (c != '-' && !(c >= '0' && c <= '9'))
			continue;
		while (w.p < w.end && number_char(*w.p))
			w.p++;
		if (w.p - start < 19 || memchr(start, '.', (size_t)(w.p - start)) ||
			memchr(start, 'e', (size_t)(w.p - start)) ||
			memchr(start, 'E', (size_t)(w.p - start)))
			continue;
		number = hs_pool_strndup(pool, start, (size_t)(w.p - start));
		if (hs_str_to_i64(number, &v))
			continue;
		hs_buf_add(b, copied, (size_t)(w.p - copied));
		hs_buf_str(b, ".0");
		copied = w.p;
	}
	hs_buf_add(b, copied, (size_t)(text + n - copied));
	*ret_n = b->len;
	return b->data;
}

/* jansson stops behind the token it could not use and names short ones: "… near 'token'". */
static size_t fault_bytes(const json_error_t *e, size_t n)
{
	size_t at = e->position < 0 ? 0 : (size_t)e->position;
	const char *near = strstr(e->text, " near '");
	size_t len;

	if (at > n)
		at = n;
	if (!near)
		return at;
	len = strlen(near + 7);
	if (len > 0)
		len--;
	return len <= at ? at - len : at;
}

/* at: offset in the cleaned text; clients count in what they sent. */
static void set_fault(struct hs_json_fault *fault, const char *bytes, size_t n, size_t at,
	bool deep, const char *reason)
{
	if (!fault)
		return;
	memset(fault, 0, sizeof(*fault));
	fault->offset_chars = hs_utf8_chars(bytes, hs_clean_json_origin(bytes, n, at));
	fault->too_deep = deep;
	snprintf(fault->text, sizeof(fault->text), "%s", reason);
	if (!hs_utf8_valid(fault->text, strlen(fault->text))) {
		char *near = strstr(fault->text, " near '");

		if (near)
			*near = '\0';
		else
			snprintf(fault->text, sizeof(fault->text), "invalid text");
	}
}

static json_t *load(struct hs_pool *pool, const char *text, size_t n, json_error_t *e)
{
	json_t *v = json_loadb(text, n, JSON_DECODE_ANY, e);

	if (!v && json_error_code(e) == json_error_numeric_overflow) {
		size_t wide_n;
		const char *wide = widen_integers(pool, text, n, &wide_n);

		v = json_loadb(wide, wide_n, JSON_DECODE_ANY, e);
	}
	return v;
}

enum hs_rc hs_json_parse(struct hs_pool *pool, const char *bytes, size_t n, json_t **ret,
	struct hs_json_fault *fault, struct hs_err *err)
{
	size_t clean_n;
	struct excess over;
	const char *text = hs_clean_json(pool, bytes, n, &clean_n);
	json_error_t e = {0};
	json_t *v;

	over = excess_of(text, clean_n);
	if (over.at < clean_n) {
		set_fault(fault, bytes, n, over.at, over.deep,
			over.deep ? "nested too deep" : "too many values");
		return refuse(&over, err);
	}
	v = load(pool, text, clean_n, &e);
	if (!v) {
		set_fault(fault, bytes, n, fault_bytes(&e, clean_n), false, e.text);
		return hs_fail(err, HS_E_PARSE, "cannot read JSON: %s", e.text);
	}
	*ret = hs_json_keep(pool, v);
	return HS_OK;
}

enum hs_rc hs_json_load(struct hs_pool *pool, const char *text, json_t **ret, struct hs_err *err)
{
	json_error_t e = {0};
	json_t *v;

	if (hs_str_empty(text)) {
		*ret = NULL;
		return HS_OK;
	}
	v = load(pool, text, strlen(text), &e);
	if (!v)
		return hs_fail(err, HS_E_PARSE, "cannot read stored JSON: %s at byte %d", e.text,
			e.position);
	*ret = hs_json_keep(pool, v);
	return HS_OK;
}

static void release(void *arg)
{
	json_decref(arg);
}

json_t *hs_json_keep(struct hs_pool *pool, json_t *v)
{
	if (!v)
		hs_out_of_memory(0);
	hs_pool_defer(pool, release, v);
	return v;
}

char *hs_json_text(struct hs_pool *pool, const json_t *v)
{
	struct hs_buf *b = hs_buf_new(pool, HS_REPLY_MAX);
	struct hs_out o = hs_out_to(b);

	hs_out_json(&o, NULL, v);
	if (b->failed)
		hs_out_of_memory(HS_REPLY_MAX);
	return b->data;
}

const char *hs_json_str(const json_t *obj, const char *key)
{
	return json_string_value(json_object_get(obj, key));
}

const char *hs_json_str_or(const json_t *obj, const char *key, const char *def)
{
	const char *s = hs_json_str(obj, key);

	return s ? s : def;
}

int64_t hs_json_int(const json_t *obj, const char *key, int64_t def)
{
	const json_t *v = json_object_get(obj, key);
	double d;

	if (json_is_integer(v))
		return json_integer_value(v);
	if (!json_is_real(v))
		return def;
	d = json_real_value(v);
	/* 2^63 itself is out of range */
	return floor(d) == d && d >= -0x1p63 && d < 0x1p63 ? (int64_t)d : def;
}

double hs_json_num(const json_t *obj, const char *key, double def)
{
	const json_t *v = json_object_get(obj, key);

	return json_is_number(v) ? json_number_value(v) : def;
}

bool hs_json_bool(const json_t *obj, const char *key, bool def)
{
	const json_t *v = json_object_get(obj, key);

	return json_is_boolean(v) ? json_is_true(v) : def;
}

json_t *hs_json_obj(const json_t *obj, const char *key)
{
	json_t *v = json_object_get(obj, key);

	return json_is_object(v) ? v : NULL;
}

json_t *hs_json_arr(const json_t *obj, const char *key)
{
	json_t *v = json_object_get(obj, key);

	return json_is_array(v) ? v : NULL;
}

struct hs_strs hs_json_strs(struct hs_pool *pool, const json_t *arr)
{
	struct hs_strs list = {0, NULL};
	size_t n = json_array_size(arr);

	if (n == 0)
		return list;
	list.v = HS_NEW_ARRAY(pool, const char *, n);
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(arr, i));

		if (s)
			list.v[list.n++] = hs_pool_strdup(pool, s);
	}
	return list;
}

json_t *hs_json_from_strs(const struct hs_strs *list)
{
	json_t *arr = json_array();

	if (!arr)
		hs_out_of_memory(0);
	for (size_t i = 0; list && i < list->n; i++)
		if (json_array_append_new(arr, json_string_nocheck(list->v[i])) != 0)
			hs_out_of_memory(0);
	return arr;
}
