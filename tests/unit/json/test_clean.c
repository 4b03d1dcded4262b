#include "test.h"

#include <string.h>

#include "base/pool.h"
#include "json/clean.h"
#include "json/json.h"

struct row {
	const char *in, *out;
};

static const struct row json_rows[] = {
	{"{\"a\":1}", "{\"a\":1}"},
	{"\"a\\u0000b\"", "\"ab\""},
	{"\"a\\u0007\\u001f\\u007Fb\"", "\"ab\""},
	{"\"\\b\\f\\n\\r\\t\\/\\\\\\\"\"", "\"\\n\\r\\t\\/\\\\\\\"\""},
	{"\"\\u0009\\u000a\\u000D\"", "\"\\u0009\\u000a\\u000D\""},
	{"\"x\x7Fy\"", "\"xy\""},
	/* outside a string 0x7F stays for the parser to refuse */
	{"[1,\x7F 2,\"\\u0000\"]", "[1,\x7F 2,\"\"]"},
	{"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""},
	{"\"\\uD83Da\\uDE00\"", "\"a\""},
	{"\"\\ud83d\\u0000\\ude00\"", "\"\""},
	{"\"\\ud83d\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""},
	/* an escaped backslash is no escape of what follows */
	{"\"\\\\u0000\"", "\"\\\\u0000\""},
	{"\"\\\\\\u0000\"", "\"\\\\\""},
	/* malformed escapes stay, so that the parser refuses them */
	{"\"\\u00g0\\u0000\"", "\"\\u00g0\\u0000\""},
	{"\"\\u00\x7F" "00\"", "\"\\u00\x7F" "00\""},
	{"\"\\", "\"\\"},
	{"", ""},
};

static void json_text_loses_what_may_not_come_in(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(json_rows); i++) {
		size_t n, again;
		const char *out = hs_clean_json(pool, json_rows[i].in, strlen(json_rows[i].in), &n);
		const char *twice = hs_clean_json(pool, out, n, &again);

		if (n != strlen(json_rows[i].out) || memcmp(out, json_rows[i].out, n) != 0)
			fail_msg("row %zu: %s gave %.*s", i, json_rows[i].in, (int)n, out);
		if (again != n || memcmp(twice, out, n) != 0)
			fail_msg("row %zu is not the same when cleaned twice", i);
	}
}

static const struct row text_rows[] = {
	{"plain \t\n\r text", "plain \t\n\r text"},
	{"a\x01" "b\x0B\x0C\x7F" "c\x1F", "abc"},
	{"\xED\xA0\x80x\xED\xBF\xBF", "x"},
	/* what is removed must not join its neighbours to a surrogate */
	{"\xED\x01\xA0\x80x", "x"},
	{"\xED\xED\xA0\x80\xA0\x80x", "x"},
	{"\xED\x9F\xBF \xEE\x80\x80 \xF0\x9F\x98\x80", "\xED\x9F\xBF \xEE\x80\x80 \xF0\x9F\x98\x80"},
};

static void plain_text_loses_the_same(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(text_rows); i++) {
		char *out = hs_clean_text(pool, text_rows[i].in, strlen(text_rows[i].in));

		if (strcmp(out, text_rows[i].out) != 0)
			fail_msg("row %zu", i);
		assert_string_equal(hs_clean_text(pool, out, strlen(out)), out);
	}
	assert_string_equal(hs_clean_text(pool, "a\0b", 3), "ab");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_text_loses_what_may_not_come_in),
		cmocka_unit_test(plain_text_loses_the_same),
	};

	return cmocka_run_group_tests_name("clean", tests, NULL, NULL);
}
