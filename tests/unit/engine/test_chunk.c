#include "test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "engine/chunk.h"

static int setup(void **state)
{
	*state = hs_pool_new();
	return 0;
}

static int teardown(void **state)
{
	struct hs_pool *pool = *state;

	hs_pool_free(&pool);
	return 0;
}

static size_t chars(const char *s)
{
	return hs_utf8_chars(s, strlen(s));
}

static void assert_chunks(struct hs_pool *pool, const char *text, size_t max, size_t structured,
	const char *const *want, size_t n)
{
	struct hs_strs got = hs_chunk(pool, text, max, structured);

	if (got.n != n)
		fail_msg("'%s' at %zu: %zu chunks, want %zu", text, max, got.n, n);
	for (size_t i = 0; i < n; i++)
		if (strcmp(got.v[i], want[i]) != 0)
			fail_msg("'%s' chunk %zu: '%s', want '%s'", text, i, got.v[i], want[i]);
}
#define ASSERT_CHUNKS(pool, text, max, structured, ...)                                            \
	assert_chunks(pool, text, max, structured, (const char *const[]){__VA_ARGS__},             \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void a_text_that_fits_is_untouched(void **state)
{
	ASSERT_CHUNKS(*state, "  two  blanks \n", 100, 100, "  two  blanks \n");
	ASSERT_CHUNKS(*state, "\xC3\xA9\xC3\xA9\xC3\xA9", 3, 3, "\xC3\xA9\xC3\xA9\xC3\xA9");
}

static void text_is_cut_at_the_largest_break(void **state)
{
	struct hs_pool *pool = *state;

	ASSERT_CHUNKS(pool, "one two\n\nthree four", 12, 12, "one two", "three four");
	ASSERT_CHUNKS(pool, "one\ntwo\nthree", 8, 8, "one\ntwo", "three");
	ASSERT_CHUNKS(pool, "First one. Second one. Third", 11, 11, "First one", ". Second", "one",
		". Third");
	ASSERT_CHUNKS(pool, "aaaa bbbb cccc", 9, 9, "aaaa bbbb", "cccc");
	ASSERT_CHUNKS(pool, "abcdefghij", 4, 4, "abcd", "efgh", "ij");
	ASSERT_CHUNKS(pool, "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\xE6\x96\x87", 3, 3,
		"\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E", "\xE6\x96\x87");
}

static void conversations_are_cut_at_turns(void **state)
{
	struct hs_pool *pool = *state;

	ASSERT_CHUNKS(pool, "[{\"a\":1},{\"b\":\"\xC3\xA9\"},{\"c\":1.5}]", 24, 24,
		"[{\"a\": 1}, {\"b\": \"\xC3\xA9\"}]", "[{\"c\": 1.5}]");
	/* a turn that is too long is text between its neighbours */
	ASSERT_CHUNKS(pool, "[{\"a\":1},{\"t\":\"xxxx yyyy zzzz\"},{\"c\":3}]", 15, 15,
		"[{\"a\": 1}]", "{\"t\": \"xxxx", "yyyy zzzz\"}", "[{\"c\": 3}]");
}

static void two_arrays_are_plain_text(void **state)
{
	ASSERT_CHUNKS(*state, "[{\"a\":1}]\n[{\"b\":2}]", 12, 12, "[{\"a\":1}]", "[{\"b\":2}]");
}

static void an_object_is_kept_whole_up_to_its_limit(void **state)
{
	struct hs_pool *pool = *state;

	ASSERT_CHUNKS(pool, "{\"a\":\"xxxx yyyy\"}", 8, 40, "{\"a\":\"xxxx yyyy\"}");
	ASSERT_CHUNKS(pool, "{\"a\":\"xxxx yyyy\"}", 12, 12, "{\"a\":\"xxxx", "yyyy\"}");
}

static void json_lines_are_packed_whole(void **state)
{
	struct hs_pool *pool = *state;

	ASSERT_CHUNKS(pool, "{\"a\":1}\r\n\n{\"b\":2}\n{\"c\":3}", 16, 16, "{\"a\":1}\n{\"b\":2}",
		"{\"c\":3}");
	ASSERT_CHUNKS(
		pool, "{\"a\":1}\nno json\n{\"c\":3}", 16, 16, "{\"a\":1}\nno json", "{\"c\":3}");
}

/* ---- properties over made texts ---- */

static const char *const words[] = {"tea", "Alice went home.", "\n\n", "\n", "? ", "! ", "; ", ", ",
	"\xE6\x97\xA5\xE6\x9C\xAC", "\xF0\x9F\x8E\x89", "a-very-long-word-without-any-break-in-it",
	" ", "{\"k\": \"v\"}", "[{\"a\": 1}]", "\\u00e9", "\"quoted\""};

static const char *made_text(struct hs_pool *pool, unsigned *seed)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 20);
	int n = rand_r(seed) % 60 + 1;

	while (n-- > 0)
		hs_buf_str(b, words[(size_t)rand_r(seed) % HS_COUNT(words)]);
	return b->data;
}

static json_t *made_turn(struct hs_pool *pool, unsigned *seed)
{
	return json_pack("{s:s, s:i, s:f, s:[b, n]}", "text", made_text(pool, seed), "n",
		rand_r(seed), "x", rand_r(seed) / 7.0, "l", 1);
}

/* A conversation or JSON lines. */
static const char *made_json(struct hs_pool *pool, unsigned *seed, bool lines)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 22);
	int n = rand_r(seed) % 6 + 2;

	hs_buf_str(b, lines ? "" : "[");
	for (int i = 0; i < n; i++) {
		json_t *turn = made_turn(pool, seed);
		char *text = json_dumps(turn, JSON_COMPACT);

		hs_buf_str(b, i ? (lines ? "\n" : ",") : "");
		hs_buf_str(b, text);
		free(text);
		json_decref(turn);
	}
	hs_buf_str(b, lines ? "" : "]");
	return b->data;
}

static void assert_laws(
	struct hs_pool *pool, const char *text, size_t max, size_t structured, bool plain)
{
	struct hs_strs got = hs_chunk(pool, text, max, structured);

	for (size_t i = 0; i < got.n; i++) {
		struct hs_strs again = hs_chunk(pool, got.v[i], max, structured);

		if (again.n != 1 || strcmp(again.v[0], got.v[i]) != 0)
			fail_msg("not idempotent at %zu/%zu: '%s'", max, structured, got.v[i]);
		if (plain && chars(got.v[i]) > max)
			fail_msg("chunk of %zu characters at %zu: '%s'", chars(got.v[i]), max,
				got.v[i]);
		if (got.n > 1 && hs_str_blank(got.v[i]))
			fail_msg("blank chunk of '%s'", text);
	}
}

static void chunking_a_chunk_yields_that_chunk(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct hs_pool *pool = hs_pool_new();
		size_t max = (size_t)rand_r(&seed) % 200 + 1,
		       structured = (size_t)rand_r(&seed) % 400 + 1;

		assert_laws(pool, made_text(pool, &seed), max, structured, false);
		assert_laws(pool, made_json(pool, &seed, false), max, structured, false);
		assert_laws(pool, made_json(pool, &seed, true), max, structured, false);
		hs_pool_free(&pool);
	}
}

static void plain_text_keeps_its_limit_and_its_words(void **state)
{
	struct hs_pool *pool = *state;
	struct hs_buf *b = hs_buf_new(pool, 1 << 22), *joined = hs_buf_new(pool, 1 << 22);
	struct hs_strs got;

	for (int i = 0; i < 90; i++)
		hs_buf_printf(b,
			"Marker %03d stands here. It is followed by more words, and some of them are long; really.%s",
			i, i % 7 ? " " : "\n\n");
	got = hs_chunk(pool, b->data, 300, 300);
	assert_true(got.n > 20);
	for (size_t i = 0; i < got.n; i++) {
		assert_true(chars(got.v[i]) <= 300);
		hs_buf_str(joined, got.v[i]);
	}
	for (int i = 0; i < 90; i++)
		assert_non_null(strstr(joined->data, hs_pool_printf(pool, "Marker %03d", i)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_text_that_fits_is_untouched, setup, teardown),
		cmocka_unit_test_setup_teardown(text_is_cut_at_the_largest_break, setup, teardown),
		cmocka_unit_test_setup_teardown(conversations_are_cut_at_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(two_arrays_are_plain_text, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_object_is_kept_whole_up_to_its_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(json_lines_are_packed_whole, setup, teardown),
		cmocka_unit_test(chunking_a_chunk_yields_that_chunk),
		cmocka_unit_test_setup_teardown(
			plain_text_keeps_its_limit_and_its_words, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
