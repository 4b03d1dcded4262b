/* Halves of a text whose facts did not fit into one reply. */
#include <string.h>

#include "base/limits.h"
#include "engine/mind_llm.h"
#include "json/json.h"

#define SMALLEST_CHARS 500

static json_t *slice(json_t *list, size_t from, size_t to)
{
	json_t *part = json_array();

	for (size_t i = from; i < to; i++)
		json_array_append(part, json_array_get(list, i));
	return part;
}

/* The last sentence end within the middle 40 % of the text; 0 when there is none. */
static size_t sentence_end(const char *text, size_t n)
{
	size_t from = n * 3 / 10, to = n * 7 / 10;

	for (size_t i = to; i > from && i >= 2; i--) {
		const char *s = text + i - 2;

		if (s[1] == ' ' && strchr(".!?", s[0]))
			return i;
		if (s[0] == '\n' && s[1] == '\n')
			return i;
	}
	return 0;
}

static bool split_text(
	struct hs_pool *pool, const char *text, const char **ret_a, const char **ret_b)
{
	size_t n = strlen(text), at = sentence_end(text, n);

	if (!at || hs_utf8_chars(text, n) <= SMALLEST_CHARS)
		return false;
	*ret_a = hs_str_trim(pool, hs_pool_strndup(pool, text, at));
	*ret_b = hs_str_trim(pool, text + at);
	return **ret_a && **ret_b;
}

/* The turn's longest text is halved, the rest of the turn stands in both. */
static bool split_turn(struct hs_pool *pool, json_t *turn, const char **ret_a, const char **ret_b)
{
	const char *key, *longest = NULL, *a, *b;
	json_t *v, *first, *second;

	json_object_foreach(turn, key, v)
		if (json_is_string(v) &&
			(!longest || json_string_length(v) >
					     json_string_length(json_object_get(turn, longest))))
			longest = key;
	if (!longest ||
		!split_text(pool, json_string_value(json_object_get(turn, longest)), &a, &b))
		return false;
	first = hs_json_keep(pool, json_pack("[o]", json_copy(turn)));
	second = hs_json_keep(pool, json_pack("[o]", json_copy(turn)));
	json_object_set_new(json_array_get(first, 0), longest, json_string(a));
	json_object_set_new(json_array_get(second, 0), longest, json_string(b));
	*ret_a = hs_json_text(pool, first);
	*ret_b = hs_json_text(pool, second);
	return true;
}

bool hs_text_halves(struct hs_pool *pool, const char *text, const char **ret_a, const char **ret_b)
{
	struct hs_err ignored = {0};
	json_t *list = NULL;
	size_t n;

	if (hs_utf8_chars(text, strlen(text)) <= SMALLEST_CHARS)
		return false;
	if (*text != '[' ||
		hs_json_parse(pool, text, strlen(text), &list, NULL, &ignored) != HS_OK ||
		!json_is_array(list) || !json_array_size(list))
		return split_text(pool, text, ret_a, ret_b);
	n = json_array_size(list);
	if (n == 1)
		return split_turn(pool, json_array_get(list, 0), ret_a, ret_b);
	*ret_a = hs_json_text(pool, hs_json_keep(pool, slice(list, 0, n / 2)));
	*ret_b = hs_json_text(pool, hs_json_keep(pool, slice(list, n / 2, n)));
	return true;
}
