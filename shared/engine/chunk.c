#include "engine/chunk.h"

#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "json/json.h"
#include "json/out.h"

struct chunker {
	struct hs_pool *pool;
	size_t max, structured;
	struct hs_strs out;
};

/* A stretch of the text. */
struct span {
	const char *p;
	size_t n, chars;
};

static struct span span_of(const char *p, size_t n)
{
	return (struct span){p, n, hs_utf8_chars(p, n)};
}

/* ---- plain text ---- */

/* Breaks from the largest to the smallest; one opens the piece that follows it. */
static const char *const breaks[] = {"\n\n", "\n", ". ", "! ", "? ", "; ", ", ", " "};

static const char *find(const char *p, size_t n, const char *what)
{
	return n ? memmem(p, n, what, strlen(what)) : NULL;
}

static void emit(struct chunker *c, struct span s)
{
	const char *piece = hs_str_trim(c->pool, hs_pool_strndup(c->pool, s.p, s.n));

	if (*piece)
		hs_strs_add(c->pool, &c->out, piece);
}

/* No break is left: cut between characters. */
static void cut(struct chunker *c, struct span s, size_t limit)
{
	while (s.n > 0) {
		size_t n = hs_utf8_bytes_of(s.p, s.n, limit);

		emit(c, (struct span){s.p, n, limit});
		s.p += n;
		s.n -= n;
	}
}

/* Neighbouring pieces are joined while they fit; a piece that is too long alone goes down a level. */
static void split(struct chunker *c, struct span s, size_t limit, size_t level)
{
	const char *end = s.p + s.n;
	struct span held = {s.p, 0, 0};

	while (level < HS_COUNT(breaks) && !find(s.p, s.n, breaks[level]))
		level++;
	if (level == HS_COUNT(breaks)) {
		cut(c, s, limit);
		return;
	}
	for (const char *p = s.p; p < end;) {
		size_t skip = strlen(breaks[level]);
		bool opened = (size_t)(end - p) >= skip && memcmp(p, breaks[level], skip) == 0;
		const char *from = p + (opened ? skip : 0),
			   *next = find(from, (size_t)(end - from), breaks[level]);
		struct span piece = span_of(p, (size_t)((next ? next : end) - p));

		p = next ? next : end;
		if (held.n && held.chars + piece.chars > limit) {
			emit(c, held);
			held.n = held.chars = 0;
		}
		if (piece.chars > limit) {
			split(c, piece, limit, level + 1);
			continue;
		}
		if (!held.n)
			held.p = piece.p;
		held.n += piece.n;
		held.chars += piece.chars;
	}
	if (held.n)
		emit(c, held);
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void split_text(struct chunker *c, const char *text, size_t limit)
{
	struct span s = span_of(text, strlen(text));

	if (s.chars <= limit)
		emit(c, s);
	else
		split(c, s, limit, 0);
}

/* ---- JSON ---- */

static void write_value(struct hs_buf *b, json_t *v);

static void write_members(struct hs_buf *b, json_t *v)
{
	const char *key;
	json_t *member;
	bool first = true;

	hs_buf_char(b, '{');
	json_object_foreach(v, key, member) {
		hs_buf_str(b, first ? "" : ", ");
		hs_json_quote(b, key, strlen(key));
		hs_buf_str(b, ": ");
		write_value(b, member);
		first = false;
	}
	hs_buf_char(b, '}');
}

static void write_elements(struct hs_buf *b, json_t *v)
{
	size_t i;
	json_t *element;

	hs_buf_char(b, '[');
	json_array_foreach(v, i, element) {
		hs_buf_str(b, i ? ", " : "");
		write_value(b, element);
	}
	hs_buf_char(b, ']');
}

/* The form turns are stored in: ", " and ": " between parts, characters beyond ASCII as they are. */
static void write_value(struct hs_buf *b, json_t *v)
{
	char num[32];

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		write_members(b, v);
		break;
	case JSON_ARRAY:
		write_elements(b, v);
		break;
	case JSON_STRING:
		hs_json_quote(b, json_string_value(v), json_string_length(v));
		break;
	case JSON_REAL:
		hs_double_print(json_real_value(v), true, num);
		hs_buf_str(b, num);
		break;
	case JSON_INTEGER:
		hs_buf_int(b, json_integer_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		hs_buf_str(b, json_is_true(v) ? "true" : "false");
		break;
	case JSON_NULL:
		hs_buf_str(b, "null");
		break;
	}
}

static const char *value_text(struct hs_pool *pool, json_t *v)
{
	struct hs_buf *b = hs_buf_new(pool, HS_REPLY_MAX);

	write_value(b, v);
	return b->data;
}

/* NULL when the text is no JSON. */
static json_t *parse(struct hs_pool *pool, const char *text, size_t n)
{
	struct hs_err err = {0};
	json_t *v = NULL;

	return hs_json_parse(pool, text, n, &v, NULL, &err) == HS_OK ? v : NULL;
}

static void flush_turns(struct chunker *c, struct hs_strs *turns)
{
	if (turns->n)
		hs_strs_add(c->pool, &c->out,
			hs_pool_printf(c->pool, "[%s]", hs_strs_join(c->pool, turns, ", ")));
	turns->n = 0;
}

static void pack_turns(struct chunker *c, json_t *turns)
{
	struct hs_strs held = {0};
	size_t cost = 2, i;
	json_t *turn;

	json_array_foreach(turns, i, turn) {
		const char *text = value_text(c->pool, turn);
		size_t chars = hs_utf8_chars(text, strlen(text));

		if (held.n && (cost + chars + 1 > c->max || chars > c->structured)) {
			flush_turns(c, &held);
			cost = 2;
		}
		if (chars > c->structured) {
			split_text(c, text, smaller(c->structured, c->max));
			continue;
		}
		hs_strs_add(c->pool, &held, text);
		cost += chars + 1;
	}
	flush_turns(c, &held);
}

static bool all_objects(json_t *array)
{
	size_t i;
	json_t *v;

	json_array_foreach(array, i, v) {
		if (!json_is_object(v))
			return false;
	}
	return json_array_size(array) > 0;
}

/* The lines of the text when every one that is not blank is an object; none otherwise. */
static struct hs_strs object_lines(struct hs_pool *pool, const char *text)
{
	struct hs_strs lines = {0};

	for (const char *p = text; *p;) {
		const char *lf = strchr(p, '\n');
		size_t n = lf ? (size_t)(lf - p) : strlen(p);
		const char *next = p + n + (lf ? 1 : 0), *line;

		if (n && p[n - 1] == '\r')
			n--;
		line = hs_pool_strndup(pool, p, n);
		p = next;
		if (hs_str_blank(line))
			continue;
		if (!json_is_object(parse(pool, line, n)))
			return (struct hs_strs){0};
		hs_strs_add(pool, &lines, line);
	}
	return lines;
}

static void flush_lines(struct chunker *c, struct hs_strs *lines)
{
	if (lines->n)
		hs_strs_add(c->pool, &c->out, hs_strs_join(c->pool, lines, "\n"));
	lines->n = 0;
}

static void pack_lines(struct chunker *c, const struct hs_strs *lines)
{
	struct hs_strs held = {0};
	size_t cost = 0;

	for (size_t i = 0; i < lines->n; i++) {
		size_t chars = hs_utf8_chars(lines->v[i], strlen(lines->v[i]));

		if (held.n && (cost + chars + 1 > c->max || chars > c->structured)) {
			flush_lines(c, &held);
			cost = 0;
		}
		if (chars > c->structured) {
			split_text(c, lines->v[i], smaller(c->structured, c->max));
			continue;
		}
		hs_strs_add(c->pool, &held, lines->v[i]);
		cost += chars + 1;
	}
	flush_lines(c, &held);
}

/* Conversations, objects, JSON lines; false when the text is none of them. */
static bool structured(struct chunker *c, const char *text, size_t n, size_t chars)
{
	const char *p = text + strspn(text, " \t\r\n");
	struct hs_strs lines;
	json_t *v;

	if (*p != '[' && *p != '{')
		return false;
	v = parse(c->pool, text, n);
	if (json_is_array(v) && all_objects(v)) {
		pack_turns(c, v);
		return true;
	}
	if (json_is_object(v)) {
		if (chars <= c->structured)
			hs_strs_add(c->pool, &c->out, text);
		else
			split_text(c, text, c->max);
		return true;
	}
	lines = *p == '{' ? object_lines(c->pool, text) : (struct hs_strs){0};
	if (lines.n < 2)
		return false;
	pack_lines(c, &lines);
	return true;
}

struct hs_strs hs_chunk(
	struct hs_pool *pool, const char *text, size_t max_chars, size_t structured_chars)
{
	struct chunker c = {.pool = pool, .max = max_chars, .structured = structured_chars};
	size_t n = strlen(text), chars = hs_utf8_chars(text, n);

	if (chars <= max_chars)
		hs_strs_add(pool, &c.out, text);
	else if (!structured(&c, text, n, chars))
		split_text(&c, text, max_chars);
	return c.out;
}
