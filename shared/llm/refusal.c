#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "llm/refusal.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "json/clean.h"
#include "json/json.h"

#define SHOWN_CHARS 300
#define SCAN_BYTES 4096
#define KEY_CHARS 20 /* a run of letters and digits this long, with both in it, may be a key */

static bool mentions(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasestr(text, words[i]))
			return true;
	return false;
}

enum hs_rc hs_refusal_kind(const char *text, enum hs_rc otherwise)
{
	static const char *const overflow[] = {
		"context_length_exceeded",
		"context length exceeded",
		"maximum context length",
		"prompt_too_long",
		"prompt is too long",
		"resource_exhausted",
		"input is too long",
		"too many tokens",
	};
	static const char *const policy[] = {
		"content_policy",
		"content_filter",
		"content policy",
		"content management policy",
		"responsibleaipolicyviolation",
		"safety system",
	};

	if (mentions(text, overflow, HS_COUNT(overflow)))
		return HS_E_LLM_OVERFLOW;
	if (mentions(text, policy, HS_COUNT(policy)))
		return HS_E_LLM_POLICY;
	return otherwise;
}

static const char *sentence_of(json_t *v)
{
	static const char *const places[] = {"error", "detail", "message"};
	const char *text = json_string_value(v);

	if (text)
		return text;
	for (size_t i = 0; json_is_object(v) && i < HS_COUNT(places); i++) {
		text = sentence_of(json_object_get(v, places[i]));
		if (text)
			return text;
	}
	return NULL;
}

static bool key_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '*' || c == '.';
}

/* Length of an address or of a key at s, else 0. */
static size_t hidden_at(const char *s, bool word_start)
{
	size_t n = 0, digits = 0, letters = 0;

	if (!strncasecmp(s, "http://", 7) || !strncasecmp(s, "https://", 8))
		return strcspn(s, " \t\r\n\"'<>)");
	if (!word_start)
		return 0;
	for (; key_char(s[n]); n++) {
		digits += isdigit((unsigned char)s[n]) || s[n] == '*';
		letters += isalpha((unsigned char)s[n]) != 0;
	}
	if (!strncasecmp(s, "sk-", 3) || !strncasecmp(s, "Bearer ", 7))
		return n;
	return n >= KEY_CHARS && digits >= 4 && letters ? n : 0;
}

const char *hs_refusal_text(struct hs_pool *pool, const char *body, size_t n, const char *secret)
{
	struct hs_err ignored = {0};
	json_t *v = NULL;
	const char *text = NULL;
	char *out, *to;

	if (hs_json_parse(pool, body, n, &v, NULL, &ignored) == HS_OK)
		text = sentence_of(v);
	if (!text)
		return "";
	text = hs_utf8_cut(pool, hs_clean_text(pool, text, strnlen(text, SCAN_BYTES)), SHOWN_CHARS);
	if (!hs_str_blank(secret))
		text = hs_str_replace(pool, text, secret, "[key]");
	out = to = hs_pool_alloc(pool, strlen(text) * 2 + 8);
	for (const char *s = text; *s;) {
		size_t hidden = hidden_at(s, s == text || !key_char(s[-1]));

		if (hidden) {
			memcpy(to, "[…]", strlen("[…]"));
			to += strlen("[…]");
			s += hidden;
		} else {
			*to++ = *s == '\n' || *s == '\r' || *s == '\t' ? ' ' : *s;
			s++;
		}
	}
	*to = '\0';
	return out;
}
