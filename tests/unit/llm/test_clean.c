#include "test.h"

#include <string.h>

#include "json/json.h"
#include "llm/clean.h"
#include "llm/llm.h"

struct row {
	const char *in, *want; /* want NULL: must not parse */
};

static void compare(struct hs_pool *pool, size_t i, const json_t *v, const char *want)
{
	if (!want && v)
		fail_msg("row %zu: parsed to %s, was to be refused", i, hs_json_text(pool, v));
	if (want && !v)
		fail_msg("row %zu: did not parse, wanted %s", i, want);
	if (want && strcmp(hs_json_text(pool, v), want) != 0)
		fail_msg("row %zu: got %s, wanted %s", i, hs_json_text(pool, v), want);
}

static void test_reflect_case_58_reasoning_tags(void **state)
{
	static const struct row rows[] = {
		{"<think>a</think>{\"a\":1}", "{\"a\":1}"},
		{"reason</think>{\"a\":1}", "{\"a\":1}"},
		{"{\"a\":\"use <think> here\"}", "{\"a\":\"use <think> here\"}"},
		{"{\"a\":\"</think> ends it\"}", "{\"a\":\"</think> ends it\"}"},
		{"```json\n{\"a\":\"<think>x</think>\"}\n```",
			"```json\n{\"a\":\"<think>x</think>\"}\n```"},
		{"answer\n<think>never closed\nmore", "answer"},
		{"answer\n  <thinking>never closed", "answer"},
		{"an inline <think> tag stays", "an inline <think> tag stays"},
		{"<reasoning>\na\nb\n</reasoning>\n\nyes", "yes"},
		{"|startthink|hm|endthink| yes", "yes"},
		{"<thought>a</thought>one<thought>b</thought>two", "onetwo"},
		{"<think>only</think>", ""},
		{"  \n ", ""},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_string_equal(hs_clean_reasoning(pool, rows[i].in), rows[i].want);
}

static void test_reflect_case_59_fences_and_prose(void **state)
{
	static const struct row rows[] = {
		{"```json\n{\"a\":1}\n```", "{\"a\":1}"},
		{"```\n[1,2]\n```\nThat was it.", "[1,2]"},
		{"Here it is:\n```json\n{\"a\":\"x\"}\n```", "{\"a\":\"x\"}"},
		{"```json\n{\"a\":\"see ``` here\"}\n```", "{\"a\":\"see ``` here\"}"},
		{"```json\n{\"a\":1}", "{\"a\":1}"},
		{"Sure! {\"a\":{\"b\":[1]}} Hope that helps.", "{\"a\":{\"b\":[1]}}"},
		{"{\"a\":\"\\ud83d x\"}", "{\"a\":\" x\"}"},
		{"```json\n```", NULL},
		{"no data at all", NULL},
		{"{\"a\":1,}", NULL},
		{"{\"a\":\"line\nbreak\"}", NULL},
		{"{\"a\":[{\"b\":1}]}]}", NULL},
		{"{'a':1}", NULL},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		compare(pool, i, hs_clean_json_reply(pool, rows[i].in), rows[i].want);
}

static void test_fault_18_almost_json_is_repaired(void **state)
{
	static const struct row rows[] = {
		{"{\"a\":[1,2,],}", "{\"a\":[1,2]}"},
		{"{\"a\":\"line\nbreak\"}", "{\"a\":\"line\\nbreak\"}"},
		{"{\"facts\":[{\"what\":\"x\"}]}]}", "{\"facts\":[{\"what\":\"x\"}]}"},
		{"{'a': 'it''s', 'b': True, 'c': None}", "{\"a\":\"it''s\",\"b\":true,\"c\":null}"},
		{"{'who': 'Ana\\'s friend'}", "{\"who\":\"Ana's friend\"}"},
		{"{\"a\":\"say \"yes\" now\"}", "{\"a\":\"say \\\"yes\\\" now\"}"},
		{"{\"a\":\"cut off he", "{\"a\":\"cut off he\"}"},
		{"{\"a\":[{\"b\":1},{\"b\":2", "{\"a\":[{\"b\":1},{\"b\":2}]}"},
		{"{\"a\":\"bad \\x escape\"}", "{\"a\":\"bad x escape\"}"},
		{"{\"a\":\"lone \\ud83d half\"", "{\"a\":\"lone  half\"}"},
		{"{\"a\":\"pair \\ud83d\\ude00\"", "{\"a\":\"pair \xf0\x9f\x98\x80\"}"},
		{"{a: 1, b: two words}", "{\"a\":1,\"b\":\"two words\"}"},
		{"{\"a\":}", "{\"a\":null}"},
		{"```json\n{\"a\":1,}\n```", "{\"a\":1}"},
		{"{,", NULL},
		{"[", NULL},
		{"nothing", NULL},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		compare(pool, i, hs_json_lenient(pool, rows[i].in, true), rows[i].want);
}

static void a_raw_line_break_survives_without_repair(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	compare(pool, 0,
		hs_json_lenient(pool,
			"{\"a\":\"one\ntwo\tthree\x01"
			"four\"}",
			false),
		"{\"a\":\"one\\ntwo\\tthree four\"}");
	compare(pool, 1, hs_json_lenient(pool, "{\"a\":1,}", false), NULL);
}

static void deep_and_odd_input_ends(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	size_t n = 200000;
	char *deep = hs_pool_alloc(pool, n + 1);
	static const char *const odd[] = {"{\"", "{\"a", "{\"a\"", "{\"a\":", "[\"\\", "[\"\\u",
		"[\"\\u12", "[,,,,]", "{:::}", "[}]", "{]}", "[\"a\" \"b\"]", "{\"a\" \"b\"}",
		"[1 2 3]", "[tru", "[-]", "{\"a\":{\"b\":]}"};

	(void)state;
	memset(deep, '[', n);
	deep[n] = '\0';
	hs_json_lenient(pool, deep, true);
	memset(deep, '{', n);
	hs_json_lenient(pool, deep, true);
	for (size_t i = 0; i < HS_COUNT(odd); i++)
		hs_json_lenient(pool, odd[i], true);
}

/* Texts with a few bytes changed, cut or doubled: never a crash, always printable. */
static void damaged_replies_are_survived(void **state)
{
	static const char seed[] =
		"<think>a</think>```json\n{\"facts\":[{\"what\":\"He said \\\"yes\\\" \\u00e9\",\"n\":[1,-2.5e3,"
		"true,null]},{\"x\":{}}]}\n```";
	static const char noise[] = "{}[]\",:'\\\n`<>/tu0d8\x01\xc3";
	uint32_t r = 12345;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		char text[sizeof(seed)];
		json_t *v;

		memcpy(text, seed, sizeof(seed));
		for (int k = 0; k < 4; k++) {
			r = r * 1664525 + 1013904223;
			text[(r >> 8) % (sizeof(seed) - 1)] =
				noise[(r >> 20) % (sizeof(noise) - 1)];
		}
		text[(r >> 4) % sizeof(seed)] = (r & 3) ? text[(r >> 4) % sizeof(seed)] : '\0';
		text[sizeof(seed) - 1] = '\0';
		v = hs_json_lenient(pool, hs_clean_reasoning(pool, text), true);
		if (v && !hs_json_text(pool, v))
			fail_msg("round %d: a value without text", i);
		hs_clean_json_reply(pool, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reflect_case_58_reasoning_tags),
		cmocka_unit_test(test_reflect_case_59_fences_and_prose),
		cmocka_unit_test(test_fault_18_almost_json_is_repaired),
		cmocka_unit_test(a_raw_line_break_survives_without_repair),
		cmocka_unit_test(deep_and_odd_input_ends),
		cmocka_unit_test(damaged_replies_are_survived),
	};

	return cmocka_run_group_tests_name("llm clean", tests, NULL, NULL);
}
