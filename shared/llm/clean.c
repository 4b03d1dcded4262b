#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "llm/clean.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "json/clean.h"
#include "json/json.h"
#include "llm/llm.h"

static const struct {
	const char *open, *close;
} tags[] = {
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
	{"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"},
	{"|startthink|", "|endthink|"},
};

static bool begins_like_data(const char *s)
{
	s += strspn(s, " \t\r\n");
	return *s == '{' || *s == '[' || hs_str_starts(s, "```");
}

/* Closed blocks, shortest match, in one pass. */
static void drop_closed(char *s, const char *open, const char *close)
{
	char *write = s, *read = s;

	for (;;) {
		char *from = strstr(read, open),
		     *end = from ? strstr(from + strlen(open), close) : NULL;
		size_t keep;

		if (!end)
			break;
		keep = (size_t)(from - read);
		memmove(write, read, keep);
		write += keep;
		read = end + strlen(close);
	}
	memmove(write, read, strlen(read) + 1);
}

static bool starts_line(const char *s, const char *at)
{
	while (at > s && (at[-1] == ' ' || at[-1] == '\t'))
		at--;
	return at == s || at[-1] == '\n';
}

static void drop_unclosed(char *s, const char *open)
{
	for (char *at = strstr(s, open); at; at = strstr(at + 1, open))
		if (starts_line(s, at)) {
			*at = '\0';
			return;
		}
}

static void drop_tag(char *s, const char *open, const char *close)
{
	char *first_open = strstr(s, open), *first_close = strstr(s, close);

	if (first_close && (!first_open || first_close < first_open) && !begins_like_data(s))
		memmove(s, first_close + strlen(close), strlen(first_close + strlen(close)) + 1);
	drop_closed(s, open, close);
	drop_unclosed(s, open);
}

static json_t *parse(struct hs_pool *pool, const char *s, size_t n)
{
	struct hs_err ignored = {0};
	json_t *v = NULL;

	if (hs_json_parse(pool, s, n, &v, NULL, &ignored) != HS_OK)
		return NULL;
	return v;
}

static const char *line_end(const char *s)
{
	const char *end = strchr(s, '\n');

	return end ? end : s + strlen(s);
}

/* Is the line at s nothing but three backticks? */
static bool bare_fence(const char *s)
{
	const char *end = line_end(s);

	s += strspn(s, " \t");
	if (!hs_str_starts(s, "```"))
		return false;
	for (s += 3; s < end; s++)
		if (*s != ' ' && *s != '\t' && *s != '\r')
			return false;
	return true;
}

/* What stands between the first fence line and the next bare one; NULL without both. */
static const char *fenced(struct hs_pool *pool, const char *text)
{
	const char *line = text, *body = NULL;

	while (*line) {
		const char *end = line_end(line);

		if (body && bare_fence(line))
			return hs_pool_strndup(pool, body, (size_t)(line - body));
		if (!body && hs_str_starts(line + strspn(line, " \t"), "```"))
			body = *end ? end + 1 : end;
		if (!*end)
			break;
		line = end + 1;
	}
	return NULL;
}

/* From the first bracket to the last one. */
static json_t *bracketed(struct hs_pool *pool, const char *text)
{
	const char *first = strpbrk(text, "{["), *end = text + strlen(text);

	if (!first)
		return NULL;
	while (end > first && end[-1] != '}' && end[-1] != ']')
		end--;
	return end > first ? parse(pool, first, (size_t)(end - first)) : NULL;
}

json_t *hs_clean_json_reply(struct hs_pool *pool, const char *text)
{
	const char *inner = fenced(pool, text);
	json_t *v = NULL;

	if (inner)
		v = parse(pool, inner, strlen(inner));
	if (!v)
		v = parse(pool, text, strlen(text));
	if (!v)
		v = bracketed(pool, text);
	return v;
}

const char *hs_clean_reasoning(struct hs_pool *pool, const char *text)
{
	char *s = hs_str_trim(pool, hs_clean_text(pool, text, strlen(text)));

	if (begins_like_data(s) && hs_clean_json_reply(pool, s))
		return s; /* JSON quotes tags at most: they are data */
	for (size_t i = 0; i < HS_COUNT(tags); i++)
		drop_tag(s, tags[i].open, tags[i].close);
	return hs_str_trim(pool, s);
}

/* Raw control characters: inside strings line breaks and tabs become escapes, others blanks. */
static const char *escape_controls(struct hs_pool *pool, const char *text)
{
	struct hs_buf *b = hs_buf_new(pool, 2 * HS_LLM_REPLY_MAX + 16);
	bool inside = false, escaped = false;

	for (const char *s = text; *s; s++) {
		unsigned char c = (unsigned char)*s;
		static const char *const escapes[32] = {['\b'] = "\\b",
			['\t'] = "\\t",
			['\n'] = "\\n",
			['\f'] = "\\f",
			['\r'] = "\\r"};

		if (c < 0x20 && inside && !escaped && escapes[c])
			hs_buf_str(b, escapes[c]);
		else if (c < 0x20)
			hs_buf_char(b, ' ');
		else
			hs_buf_char(b, (char)c);
		if (c == '"' && !escaped)
			inside = !inside;
		escaped = inside && c == '\\' && !escaped;
	}
	return b->data;
}

json_t *hs_json_lenient(struct hs_pool *pool, const char *text, bool repair)
{
	char *s = hs_str_trim(pool, text);
	const char *inner, *escaped;
	json_t *v;

	if (hs_str_starts(s, "```")) {
		inner = fenced(pool, s);
		s = hs_str_trim(pool, inner ? inner : line_end(s));
	}
	v = parse(pool, s, strlen(s));
	if (!v) {
		escaped = escape_controls(pool, s);
		v = parse(pool, escaped, strlen(escaped));
	}
	if (!v && repair)
		v = hs_json_repair(pool, s);
	return v;
}
