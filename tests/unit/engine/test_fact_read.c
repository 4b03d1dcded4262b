#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "engine/mind_llm.h"
#include "json/json.h"

#define EVENT "2025-06-15T15:06:40Z"

static int64_t time_of(const char *text)
{
	int64_t us;

	if (!*text)
		return HS_TIME_NONE;
	assert_true(hs_time_parse(text, &us));
	return us;
}

static enum hs_fact_read read_text(struct hs_pool *pool, const char *json, size_t index,
	const char *event, bool verbatim, struct hs_fact *ret)
{
	struct hs_err err = {0};
	json_t *v = NULL;

	if (hs_json_load(pool, json, &v, &err) != HS_OK)
		fail_msg("%s: %s", json, err.msg);
	return hs_fact_from_json(pool, v, index, time_of(event), verbatim, ret);
}

static void texts_are_built_from_the_members(void **state)
{
	static const struct {
		const char *json;
		enum hs_fact_read got;
		const char *text;
		bool experience;
	} rows[] = {
		{"{\"what\":\"Ana runs\"}", HS_FACT_KEPT, "Ana runs", false},
		{"{\"what\":\" Ana runs \",\"when\":\"daily\",\"who\":\"Ana\",\"why\":\"health\",\"where\":\"Oslo\"}",
			HS_FACT_KEPT, "Ana runs | When: daily | Involving: Ana | health", false},
		{"{\"what\":\"x\",\"when\":\"N/A\",\"who\":\"n/a\",\"why\":null}", HS_FACT_KEPT,
			"x", false},
		{"{\"what\":\"N/A\",\"factual_core\":\"core\"}", HS_FACT_KEPT, "core", false},
		{"{\"text\":\"plain\"}", HS_FACT_KEPT, "plain", false},
		{"{\"what\":\"\"}", HS_FACT_EMPTY, "", false},
		{"{\"what\":null}", HS_FACT_EMPTY, "", false},
		{"{\"what\":7}", HS_FACT_EMPTY, "", false},
		{"{\"fact\":\"x\"}", HS_FACT_MALFORMED, "", false},
		{"{}", HS_FACT_MALFORMED, "", false},
		{"[]", HS_FACT_MALFORMED, "", false},
		{"{\"what\":\"x\",\"entities\":\"Ana\"}", HS_FACT_MALFORMED, "", false},
		{"{\"what\":\"x\",\"fact_type\":\"assistant\"}", HS_FACT_KEPT, "x", true},
		{"{\"what\":\"x\",\"fact_type\":\"world\",\"fact_kind\":\"assistant\"}",
			HS_FACT_KEPT, "x", false},
		{"{\"what\":\"x\",\"fact_type\":\"opinion\",\"fact_kind\":\"assistant\"}",
			HS_FACT_KEPT, "x", true},
		{"{\"what\":\"x\",\"fact_type\":\"opinion\"}", HS_FACT_KEPT, "x", false},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_fact f;
		enum hs_fact_read got = read_text(pool, rows[i].json, 0, "", false, &f);

		if (got != rows[i].got || strcmp(f.text, rows[i].text) ||
			f.experience != rows[i].experience)
			fail_msg("row %zu: %d '%s' %d", i, got, f.text, f.experience);
	}
}

static void test_retain_case_12_entities(void **state)
{
	static const struct {
		const char *list, *want;
	} rows[] = {
		{"[\"Ana\",{\"text\":\" Bo \"},{\"name\":\"C\"},\"\",7,null]", "Ana|Bo"},
		{"null", ""},
		{"[]", ""},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_fact f;

		assert_int_equal(read_text(pool,
					 hs_pool_printf(pool, "{\"what\":\"x\",\"entities\":%s}",
						 rows[i].list),
					 0, "", false, &f),
			HS_FACT_KEPT);
		assert_string_equal(
			f.entities.n ? hs_strs_join(pool, &f.entities, "|") : "", rows[i].want);
	}
}

static void test_retain_case_13_causes_point_back_only(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_fact f;

	(void)state;
	assert_int_equal(
		read_text(pool,
			"{\"what\":\"x\",\"causal_relations\":[{\"target_index\":2,\"relation_type\":\"caused_by\"},"
			"{\"target_index\":-1,\"relation_type\":\"caused_by\"},{\"target_index\":0,\"relation_type\":\"causes\"},"
			"{\"target_index\":1,\"relation_type\":\"caused_by\"},{\"target_index\":1,\"relation_type\":\"caused_by\"},7,null]}",
			2, "", false, &f),
		HS_FACT_KEPT);
	assert_int_equal(f.n_causes, 1);
	assert_int_equal(f.causes[0], 1);
	assert_int_equal(
		read_text(pool,
			"{\"what\":\"x\",\"causal_relations\":[{\"target_index\":0,\"relation_type\":\"caused_by\"},"
			"{\"target_index\":1,\"relation_type\":\"caused_by\"},{\"target_index\":2,\"relation_type\":\"caused_by\"}]}",
			5, "", false, &f),
		HS_FACT_KEPT);
	assert_int_equal(f.n_causes, 2);
}

static void test_retain_case_52_dates(void **state)
{
	static const struct {
		const char *kind, *start, *end, *what, *event, *want_start, *want_end;
	} rows[] = {
		{"event", "\"2025-03-13\"", "null", "x", EVENT, "2025-03-13", "2025-03-13"},
		{"event", "\"2025-03-13T10:00:00Z\"", "\"2025-03-14\"", "x", EVENT,
			"2025-03-13T10:00:00Z", "2025-03-14"},
		{"event", "\"2025-03-13\"", "\"9999-12-31\"", "x", EVENT, "2025-03-13", ""},
		{"event", "\"9999-01-01\"", "null", "x", EVENT, "", ""},
		{"event", "\"0001-01-01T00:00:00Z\"", "null", "x yesterday", EVENT, "2025-06-14",
			"2025-06-14"},
		{"event", "\"soon\"", "7", "x", EVENT, "", ""},
		{"event", "null", "null", "They met last night, tomorrow too", EVENT, "2025-06-14",
			"2025-06-14"},
		{"event", "null", "null", "Tonight there is a party", EVENT, "2025-06-15",
			"2025-06-15"},
		{"event", "null", "null", "NEXT WEEK he leaves", EVENT, "2025-06-22", "2025-06-22"},
		{"event", "null", "null", "next month", EVENT, "2025-07-15", "2025-07-15"},
		{"event", "null", "null", "Paul Yesterdayson came", EVENT, "", ""},
		{"event", "null", "null", "yesterday", "", "", ""},
		{"conversation", "\"2025-03-13\"", "\"2025-03-14\"", "yesterday", EVENT, "", ""},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_fact f;

		assert_int_equal(
			read_text(pool,
				hs_pool_printf(pool,
					"{\"what\":\"%s\",\"fact_kind\":\"%s\",\"occurred_start\":%s,"
					"\"occurred_end\":%s}",
					rows[i].what, rows[i].kind, rows[i].start, rows[i].end),
				0, rows[i].event, false, &f),
			HS_FACT_KEPT);
		if (f.occurred_start_us != time_of(rows[i].want_start) ||
			f.occurred_end_us != time_of(rows[i].want_end))
			fail_msg("row %zu: %s to %s", i, hs_time_text(pool, f.occurred_start_us),
				hs_time_text(pool, f.occurred_end_us));
	}
}

static void verbatim_needs_no_text(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_fact f;

	(void)state;
	assert_int_equal(
		read_text(pool, "{\"entities\":[\"Ana\"]}", 0, "", true, &f), HS_FACT_KEPT);
	assert_int_equal(f.entities.n, 1);
	assert_string_equal(f.text, "");
}

static const char *long_text(struct hs_pool *pool, const char *sentence, size_t times)
{
	struct hs_strs parts = {0};

	for (size_t i = 0; i < times; i++)
		hs_strs_add(pool, &parts, sentence);
	return hs_strs_join(pool, &parts, " ");
}

static void long_texts_are_halved(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	const char *text = long_text(pool, "Ana went to Oslo.", 60), *a, *b;
	json_t *turns = hs_json_keep(pool, json_array()), *one = hs_json_keep(pool, json_array()),
	       *half;
	struct hs_err err = {0};

	(void)state;
	assert_true(hs_text_halves(pool, text, &a, &b));
	assert_string_equal(hs_pool_printf(pool, "%s %s", a, b), text);
	assert_true(strlen(a) > strlen(text) / 4 && strlen(b) > strlen(text) / 4);
	assert_false(hs_text_halves(pool, "Short. Text.", &a, &b));
	assert_false(hs_text_halves(pool, long_text(pool, "no end here,", 100), &a, &b));
	for (int i = 0; i < 5; i++)
		json_array_append_new(turns,
			json_pack("{s:i, s:s}", "n", i, "content", long_text(pool, "word", 40)));
	assert_true(hs_text_halves(pool, hs_json_text(pool, turns), &a, &b));
	assert_int_equal(hs_json_load(pool, a, &half, &err), HS_OK);
	assert_int_equal(json_array_size(half), 2);
	assert_int_equal(hs_json_load(pool, b, &half, &err), HS_OK);
	assert_int_equal(json_array_size(half), 3);
	json_array_append_new(one, json_pack("{s:s, s:s}", "role", "user", "content", text));
	assert_true(hs_text_halves(pool, hs_json_text(pool, one), &a, &b));
	assert_int_equal(hs_json_load(pool, b, &half, &err), HS_OK);
	assert_string_equal(hs_json_str(json_array_get(half, 0), "role"), "user");
	assert_true(strlen(hs_json_str(json_array_get(half, 0), "content")) < strlen(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_built_from_the_members),
		cmocka_unit_test(test_retain_case_12_entities),
		cmocka_unit_test(test_retain_case_13_causes_point_back_only),
		cmocka_unit_test(test_retain_case_52_dates),
		cmocka_unit_test(verbatim_needs_no_text),
		cmocka_unit_test(long_texts_are_halved),
	};

	return cmocka_run_group_tests_name("fact reading", tests, NULL, NULL);
}
