/* Structural repair of almost-JSON: a parser that goes on where a strict one stops. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "json/clean.h"
#include "json/json.h"
#include "llm/clean.h"

struct reader {
	struct hs_pool *pool;
	const char *s, *end;
	struct hs_buf *text; /* of the string being read */
	int depth;
};

static json_t *read_value(struct reader *r);

static void skip_blanks(struct reader *r)
{
	while (r->s < r->end && ((unsigned char)*r->s <= 0x20))
		r->s++;
}

/* A quote ends its string when what follows can follow a string. */
static bool ends_string(const struct reader *r, const char *quote)
{
	const char *p = quote + 1;
	bool new_line = false;

	while (p < r->end && (unsigned char)*p <= 0x20)
		new_line |= *p++ == '\n';
	if (p >= r->end || strchr(",:}]", *p))
		return true;
	return new_line && (*p == '"' || *p == '\'');
}

static int hex4(const struct reader *r, const char *p)
{
	int v = 0;

	if (r->end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		const char *digits = "0123456789abcdef", *at;

		at = p[i] ? strchr(digits, tolower((unsigned char)p[i])) : NULL;
		if (!at)
			return -1;
		v = v * 16 + (int)(at - digits);
	}
	return v;
}

/* The escape at r->s (behind the backslash). Lone surrogates and what is no escape fall out. */
static void read_escape(struct reader *r, struct hs_buf *b)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *known = strchr(from, *r->s);
	uint32_t cp;
	char utf8[4];
	int v;

	if (*r->s != 'u') {
		hs_buf_char(b, known && *known ? to[known - from] : *r->s);
		r->s++;
		return;
	}
	v = hex4(r, r->s + 1);
	r->s += v < 0 ? 1 : 5;
	if (v < 0)
		return;
	cp = (uint32_t)v;
	if (cp >= 0xd800 && cp < 0xdc00 && r->end - r->s >= 6 && r->s[0] == '\\' &&
		r->s[1] == 'u') {
		int low = hex4(r, r->s + 2);

		if (low >= 0xdc00 && low < 0xe000) {
			cp = 0x10000 + ((cp - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
			r->s += 6;
		}
	}
	hs_buf_add(b, utf8, hs_utf8_put(cp, utf8));
}

static const char *read_string(struct reader *r)
{
	struct hs_buf *b = r->text;
	char quote = *r->s++;

	hs_buf_reset(b);
	while (r->s < r->end) {
		char c = *r->s;

		if (c == quote && ends_string(r, r->s)) {
			r->s++;
			break;
		}
		r->s++;
		if (c == '\\' && r->s < r->end)
			read_escape(r, b);
		else if (c == '\n' || c == '\t' || c == '\r' || (unsigned char)c >= 0x20)
			hs_buf_char(b, c);
		else
			hs_buf_char(b, ' ');
	}
	return hs_clean_text(r->pool, b->data, b->len);
}

/* A run of characters outside quotes: a number, true, false, null or a text without quotes. */
static const char *read_word(struct reader *r)
{
	const char *from = r->s;

	while (r->s < r->end && !strchr(",:{}[]\n\"", *r->s))
		r->s++;
	return hs_str_trim(r->pool, hs_pool_strndup(r->pool, from, (size_t)(r->s - from)));
}

static json_t *word_value(const char *word)
{
	int64_t i;
	double d;

	if (!strcasecmp(word, "true"))
		return json_true();
	if (!strcasecmp(word, "false"))
		return json_false();
	if (!strcasecmp(word, "null") || !strcasecmp(word, "none"))
		return json_null();
	if (hs_str_to_i64(word, &i))
		return json_integer(i);
	if (hs_str_to_double(word, &d))
		return json_real(d);
	return json_stringn_nocheck(word, strlen(word));
}

static const char *read_key(struct reader *r)
{
	if (*r->s == '"' || *r->s == '\'')
		return read_string(r);
	return read_word(r);
}

static json_t *read_object(struct reader *r)
{
	json_t *object = json_object();

	r->s++;
	for (;;) {
		const char *key, *before;
		json_t *v;

		skip_blanks(r);
		if (r->s >= r->end || *r->s == ']')
			return object;
		if (*r->s == '}') {
			r->s++;
			return object;
		}
		if (*r->s == ',') {
			r->s++;
			continue;
		}
		before = r->s;
		key = read_key(r);
		skip_blanks(r);
		if (r->s < r->end && *r->s == ':')
			r->s++;
		skip_blanks(r);
		v = r->s < r->end && !strchr("}],", *r->s) ? read_value(r) : json_null();
		if (*key)
			json_object_set_new(object, key, v);
		else
			json_decref(v);
		if (r->s == before)
			r->s++;
	}
}

static json_t *read_array(struct reader *r)
{
	json_t *array = json_array();

	r->s++;
	for (;;) {
		const char *before;

		skip_blanks(r);
		if (r->s >= r->end || *r->s == '}')
			return array;
		if (*r->s == ']') {
			r->s++;
			return array;
		}
		if (*r->s == ',' || *r->s == ':') {
			r->s++;
			continue;
		}
		before = r->s;
		json_array_append_new(array, read_value(r));
		if (r->s == before)
			r->s++;
	}
}

static json_t *read_value(struct reader *r)
{
	json_t *v;

	skip_blanks(r);
	if (r->s >= r->end)
		return json_null();
	if (*r->s != '{' && *r->s != '[') {
		if (*r->s == '"' || *r->s == '\'')
			return json_string(read_string(r));
		return word_value(read_word(r));
	}
	if (r->depth >= HS_JSON_DEPTH) {
		r->s = r->end;
		return json_null();
	}
	r->depth++;
	v = *r->s == '{' ? read_object(r) : read_array(r);
	r->depth--;
	return v;
}

json_t *hs_json_repair(struct hs_pool *pool, const char *text)
{
	struct reader r = {.pool = pool, .s = strpbrk(text, "{["), .end = text + strlen(text)};
	json_t *v;

	if (!r.s)
		return NULL;
	r.text = hs_buf_new(pool, HS_LLM_REPLY_MAX);
	v = hs_json_keep(pool, read_value(&r));
	if (!json_object_size(v) && !json_array_size(v))
		return NULL;
	return v;
}
