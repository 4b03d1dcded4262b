#include "json/out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

struct hs_out hs_out_to(struct hs_buf *buf)
{
	return (struct hs_out){.buf = buf};
}

/* Short escapes; other control characters are written as \u00XX. */
static const char *const escapes[128] = {
	['\b'] = "\\b",
	['\t'] = "\\t",
	['\n'] = "\\n",
	['\f'] = "\\f",
	['\r'] = "\\r",
	['"'] = "\\\"",
	['\\'] = "\\\\",
};

void hs_json_quote(struct hs_buf *buf, const char *s, size_t n)
{
	size_t run = 0;

	hs_buf_char(buf, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c >= 128 || (c >= 0x20 && !escapes[c]))
			continue;
		hs_buf_add(buf, s + run, i - run);
		if (escapes[c])
			hs_buf_str(buf, escapes[c]);
		else
			hs_buf_printf(buf, "\\u%04x", (unsigned)c);
		run = i + 1;
	}
	hs_buf_add(buf, s + run, n - run);
	hs_buf_char(buf, '"');
}

/* Comma and key in front of a value. */
static void begin(struct hs_out *o, const char *key)
{
	if (o->comma)
		hs_buf_char(o->buf, ',');
	o->comma = true;
	if (key) {
		hs_json_quote(o->buf, key, strlen(key));
		hs_buf_char(o->buf, ':');
	}
}

void hs_out_open(struct hs_out *o, const char *key, char bracket)
{
	begin(o, key);
	hs_buf_char(o->buf, bracket);
	o->comma = false;
}

void hs_out_close(struct hs_out *o, char bracket)
{
	hs_buf_char(o->buf, bracket);
	o->comma = true;
}

void hs_out_str(struct hs_out *o, const char *key, const char *v)
{
	if (v)
		hs_out_strn(o, key, v, strlen(v));
	else
		hs_out_null(o, key);
}

void hs_out_strn(struct hs_out *o, const char *key, const char *v, size_t n)
{
	begin(o, key);
	hs_json_quote(o->buf, v, n);
}

void hs_out_int(struct hs_out *o, const char *key, int64_t v)
{
	begin(o, key);
	hs_buf_int(o->buf, v);
}

void hs_out_num(struct hs_out *o, const char *key, double v)
{
	char s[32];

	begin(o, key);
	hs_double_print(isfinite(v) ? v : 0.0, true, s);
	hs_buf_str(o->buf, s);
}

void hs_out_bool(struct hs_out *o, const char *key, bool v)
{
	begin(o, key);
	hs_buf_str(o->buf, v ? "true" : "false");
}

void hs_out_null(struct hs_out *o, const char *key)
{
	begin(o, key);
	hs_buf_str(o->buf, "null");
}

void hs_out_time(struct hs_out *o, const char *key, int64_t us)
{
	char s[HS_TIME_TEXT];

	if (us == HS_TIME_NONE) {
		hs_out_null(o, key);
		return;
	}
	hs_time_format(us, s);
	hs_out_str(o, key, s);
}

void hs_out_strs(struct hs_out *o, const char *key, const struct hs_strs *list)
{
	hs_out_open(o, key, '[');
	for (size_t i = 0; list && i < list->n; i++)
		hs_out_str(o, NULL, list->v[i]);
	hs_out_close(o, ']');
}

static void out_object(struct hs_out *o, const char *key, const json_t *v)
{
	const char *name;
	json_t *member;

	hs_out_open(o, key, '{');
	json_object_foreach((json_t *)v, name, member) {
		if (o->buf->failed)
			break;
		hs_out_json(o, name, member);
	}
	hs_out_close(o, '}');
}

static void out_array(struct hs_out *o, const char *key, const json_t *v)
{
	size_t n = json_array_size(v);

	hs_out_open(o, key, '[');
	for (size_t i = 0; i < n && !o->buf->failed; i++)
		hs_out_json(o, NULL, json_array_get(v, i));
	hs_out_close(o, ']');
}

void hs_out_json(struct hs_out *o, const char *key, const json_t *v)
{
	if (!v) {
		hs_out_null(o, key);
		return;
	}
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		out_object(o, key, v);
		break;
	case JSON_ARRAY:
		out_array(o, key, v);
		break;
	case JSON_STRING:
		hs_out_strn(o, key, json_string_value(v), json_string_length(v));
		break;
	case JSON_INTEGER:
		hs_out_int(o, key, json_integer_value(v));
		break;
	case JSON_REAL:
		hs_out_num(o, key, json_real_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		hs_out_bool(o, key, json_is_true(v));
		break;
	case JSON_NULL:
		hs_out_null(o, key);
		break;
	}
}

void hs_out_raw(struct hs_out *o, const char *key, const char *json_text, const char *absent)
{
	begin(o, key);
	hs_buf_str(o->buf, hs_str_empty(json_text) ? absent : json_text);
}
