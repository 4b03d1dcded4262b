#include "models_fixture.h"

/* One model, one write after it: is it stale? */
static bool after_write(struct fixture *f, const char *tags, const char *trigger, const char *type,
	const char *memory_tags)
{
	const char *id = fixture_model(f, hs_uuid_v4_new(f->pool), tags, trigger);

	assert_false(fixture_stale(f, id));
	fixture_memory(f, type, memory_tags);
	return fixture_stale(f, id);
}

static void test_models_case_09_any_write_makes_an_untagged_model_stale(void **state)
{
	struct fixture *f = *state;

	fixture_memory(f, "world", "[]");
	assert_true(after_write(f, NULL, NULL, "world", "[]"));
	assert_true(after_write(f, NULL, NULL, "observation", "[\"z\"]"));
}

static void test_models_case_10_a_tagged_model_wants_all_its_tags(void **state)
{
	struct fixture *f = *state;

	assert_false(after_write(f, "[\"a\",\"b\"]", NULL, "world", "[\"a\"]"));
	assert_true(after_write(f, "[\"a\",\"b\"]", NULL, "world", "[\"a\",\"b\",\"c\"]"));
	assert_true(
		after_write(f, "[\"a\",\"b\"]", "{\"tags_match\":\"any\"}", "world", "[\"a\"]"));
	assert_false(after_write(f, "[\"a\"]", NULL, "world", "[\"A\"]"));
}

static void test_models_case_11_untagged_writes_are_read_but_raise_no_flag(void **state)
{
	struct fixture *f = *state;
	const char *id = fixture_model(f, "m", "[\"a\"]", "{\"tags_match\":\"any\"}");
	struct hs_mm m;
	struct hs_scope scope;
	int64_t newest = HS_TIME_NONE;

	fixture_memory(f, "world", "[]");
	assert_false(fixture_stale(f, id));
	OK(f, hs_mm_get(f->db, f->pool, f->bank.bank_id, id, HS_FULL, &m, &f->err));
	scope = hs_model_scope(f->pool, hs_trigger_read(f->pool, m.trigger), m.tags);
	OK(f, hs_mm_newest_memory(f->db, f->pool, m.bank_no, &scope, &newest, &f->err));
	assert_true(newest == fixture_clock(f));
}

static void test_models_case_12_groups_replace_the_tags(void **state)
{
	static const char groups[] = "{\"tag_groups\":[{\"tags\":[\"b\"],\"match\":\"any\"}]}";
	struct fixture *f = *state;

	assert_false(after_write(f, "[\"a\"]", groups, "world", "[]"));
	assert_true(after_write(f, "[\"a\"]", groups, "world", "[\"b\"]"));
	assert_false(after_write(f, "[\"a\"]", groups, "world", "[\"a\"]"));
}

static void test_models_case_13_groups_that_mean_untagged_writes(void **state)
{
	static const char exact[] = "{\"tag_groups\":[{\"tags\":[],\"match\":\"exact\"}]}";
	static const char not_x[] = "{\"tag_groups\":[{\"not\":{\"tags\":[\"x\"]}}]}";
	struct fixture *f = *state;

	assert_true(after_write(f, "[\"a\"]", exact, "world", "[]"));
	assert_false(after_write(f, "[\"a\"]", exact, "world", "[\"a\"]"));
	assert_true(after_write(f, NULL, not_x, "world", "[]"));
	assert_false(after_write(f, NULL, not_x, "world", "[\"x\"]"));
	/* a leaf under a not stays as it is: untagged writes are inside `any`, so outside its negation */
	assert_false(after_write(f, NULL,
		"{\"tag_groups\":[{\"not\":{\"tags\":[\"x\"],\"match\":\"any\"}}]}", "world",
		"[]"));
	assert_true(after_write(f, "[\"a\"]", "{\"tag_groups\":[]}", "world", "[]"));
	assert_true(after_write(f, NULL, "{\"tags_match\":\"exact\"}", "world", "[]"));
	assert_false(after_write(f, NULL, "{\"tags_match\":\"exact\"}", "world", "[\"a\"]"));
}

static void test_models_case_14_other_fact_types_do_not_count(void **state)
{
	struct fixture *f = *state;

	assert_false(
		after_write(f, "[\"a\"]", "{\"fact_types\":[\"world\"]}", "experience", "[\"a\"]"));
	assert_true(after_write(f, "[\"a\"]", "{\"fact_types\":[\"world\"]}", "world", "[\"a\"]"));
}

static void test_models_case_15_the_list_answers_like_the_single_read(void **state)
{
	static const char *const rows[][2] = {
		{NULL, NULL},
		{"[\"a\"]", NULL},
		{"[\"a\",\"b\"]", NULL},
		{"[\"a\"]", "{\"tags_match\":\"any\"}"},
		{"[\"b\"]", "{\"tags_match\":\"all\"}"},
		{"[\"a\"]", "{\"tags_match\":\"all_strict\"}"},
		{"[\"a\"]", "{\"tags_match\":\"exact\"}"},
		{NULL, "{\"fact_types\":[\"observation\"]}"},
		{NULL, "{\"tag_groups\":[{\"or\":[{\"tags\":[\"a\"]},{\"tags\":[\"c\"]}]}]}"},
		{NULL, "{\"tag_groups\":[{\"and\":[{\"tags\":[\"a\"]},{\"not\":{\"tags\":[\"b\"]}}]}]}"},
		{"[\"a\"]", "{\"tag_groups\":[]}"},
	};
	static const char *const writes[] = {
		"[]", "[\"a\"]", "[\"b\",\"a\"]", "[\"c\"]", "[\"d\"]"};
	struct fixture *f = *state;
	const char *last = NULL;
	size_t stale = 0;

	for (size_t w = 0; w < HS_COUNT(writes); w++) {
		for (size_t i = 0; i < HS_COUNT(rows); i++)
			fixture_model(f, hs_pool_printf(f->pool, "m-%zu-%zu", w, i), rows[i][0],
				rows[i][1]);
		last = fixture_memory(f, w % 2 ? "world" : "experience", writes[w]);
	}
	fixture_remove(f, last);
	/* fixture_stale compares the two answers */
	for (size_t w = 0; w < HS_COUNT(writes); w++)
		for (size_t i = 0; i < HS_COUNT(rows); i++)
			stale += fixture_stale(f, hs_pool_printf(f->pool, "m-%zu-%zu", w, i));
	assert_true(stale > 0 && stale < HS_COUNT(writes) * HS_COUNT(rows));
	/* the last write is gone: those made just before it are fresh */
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_false(fixture_stale(f, hs_pool_printf(f->pool, "m-4-%zu", i)));
}

static void test_models_case_16_a_deletion_raises_no_flag(void **state)
{
	struct fixture *f = *state;
	const char *memory = fixture_memory(f, "world", "[\"a\"]");
	const char *id = fixture_model(f, "m", "[\"a\"]", NULL);

	fixture_remove(f, memory);
	assert_false(fixture_stale(f, id));
}

static void test_models_case_17_an_edit_of_an_old_memory_counts(void **state)
{
	struct fixture *f = *state;
	const char *memory = fixture_memory(f, "world", "[\"a\"]");
	const char *id = fixture_model(f, "m", "[\"a\"]", NULL);

	assert_false(fixture_stale(f, id));
	fixture_edit(f, memory);
	assert_true(fixture_stale(f, id));
}

static void test_models_case_20_the_watermark_counts_not_the_wall_clock(void **state)
{
	struct fixture *f = *state;
	const char *id = fixture_model(f, "m", NULL, NULL);
	int64_t seen;

	fixture_memory(f, "world", "[]");
	seen = fixture_clock(f);
	fixture_memory(f, "world", "[]");
	fixture_change(f, id,
		(struct hs_mm_change){.refreshed = true,
			.now_us = hs_now_us() + HS_SECOND_US,
			.read_until_us = seen,
			.memory_seen_us = seen});
	assert_true(fixture_stale(f, id));
	fixture_change(f, id,
		(struct hs_mm_change){.refreshed = true,
			.now_us = hs_now_us(),
			.read_until_us = fixture_clock(f),
			.memory_seen_us = fixture_clock(f)});
	assert_false(fixture_stale(f, id));
}

static void a_fresh_bank_is_asked_nothing(void **state)
{
	struct fixture *f = *state;
	const char *id = fixture_model(f, "m", NULL, NULL);
	uint64_t before;
	struct hs_mm m;
	bool stale;

	fixture_stale(f, id);
	before = hs_db_statements(f->db);
	OK(f, hs_mm_get(f->db, f->pool, f->bank.bank_id, id, HS_FULL, &m, &f->err));
	OK(f, hs_model_stale(f->db, f->pool, &m, &stale, &f->err));
	assert_int_equal(hs_db_statements(f->db) - before, 1);
}

static void test_models_case_68_a_list_takes_four_statements(void **state)
{
	struct fixture *f = *state;
	struct hs_mm_page page;
	uint64_t before;
	size_t n = 0;
	bool *stale;

	for (size_t i = 0; i < 100; i++)
		fixture_model(f, hs_pool_printf(f->pool, "m-%zu", i),
			i % 20 ? hs_pool_printf(f->pool, "[\"t%zu\"]", i % 20) : NULL,
			i % 3 ? NULL : "{\"tags_match\":\"any\"}");
	for (size_t i = 0; i < 10; i++)
		fixture_memory(f, "world", hs_pool_printf(f->pool, "[\"t%zu\"]", i + 5));
	before = hs_db_statements(f->db);
	page = fixture_list(f, (struct hs_mm_list){.limit = 100}, &stale);
	assert_true(hs_db_statements(f->db) - before <= 4);
	assert_int_equal(page.n, 100);
	assert_int_equal(page.total, 100);
	for (size_t i = 0; i < page.n; i++)
		n += stale[i];
	/* five models of each tag t5 … t14, and the five untagged ones */
	assert_int_equal(n, 10 * 5 + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_CASE(test_models_case_09_any_write_makes_an_untagged_model_stale),
		FIXTURE_CASE(test_models_case_10_a_tagged_model_wants_all_its_tags),
		FIXTURE_CASE(test_models_case_11_untagged_writes_are_read_but_raise_no_flag),
		FIXTURE_CASE(test_models_case_12_groups_replace_the_tags),
		FIXTURE_CASE(test_models_case_13_groups_that_mean_untagged_writes),
		FIXTURE_CASE(test_models_case_14_other_fact_types_do_not_count),
		FIXTURE_CASE(test_models_case_15_the_list_answers_like_the_single_read),
		FIXTURE_CASE(test_models_case_16_a_deletion_raises_no_flag),
		FIXTURE_CASE(test_models_case_17_an_edit_of_an_old_memory_counts),
		FIXTURE_CASE(test_models_case_20_the_watermark_counts_not_the_wall_clock),
		FIXTURE_CASE(a_fresh_bank_is_asked_nothing),
		FIXTURE_CASE(test_models_case_68_a_list_takes_four_statements),
	};

	FIXTURE_MAIN_CHECK;
	return cmocka_run_group_tests_name("stale", tests, NULL, NULL);
}
