#include "test.h"

#include "engine/reflect_run.h"
#include "json/json.h"

static struct hs_pool *pool;

static int setup(void **state)
{
	(void)state;
	pool = hs_pool_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hs_pool_free(&pool);
	return 0;
}

static json_t *read_json(const char *text)
{
	struct hs_err err = {0};
	json_t *v;

	assert_int_equal(hs_json_load(pool, text, &v, &err), HS_OK);
	return v;
}

static void reflect_case_12_names_are_normalised(void **state)
{
	static const struct {
		const char *given, *want;
	} rows[] = {
		{"done", "done"},
		{"functions.done", "done"},
		{"call=functions.done", "done"},
		{"call=done", "done"},
		{"done<|channel|>commentary", "done"},
		{"functions.call=done", "call=done"},
		{"<|x", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_string_equal(hs_reflect_tool_name(pool, rows[i].given), rows[i].want);
}

static void reflect_case_29_token_arguments(void **state)
{
	static const struct {
		const char *args;
		int64_t def, want; /* want -1: a fault */
	} rows[] = {
		{"{}", 2048, 2048},
		{"{\"n\":null}", 2048, 2048},
		{"{\"n\":0}", 2048, 2048},
		{"{\"n\":false}", 2048, 2048},
		{"{\"n\":\"\"}", 2048, 2048},
		{"{\"n\":\"None\"}", 2048, 2048},
		{"{\"n\":\" NULL \"}", 2048, 2048},
		{"{\"n\":\"0\"}", 2048, 2048},
		{"{\"n\":10}", 2048, 1000},
		{"{\"n\":-5}", 2048, 1000},
		{"{\"n\":0.5}", 2048, 1000},
		{"{\"n\":3000}", 2048, 3000},
		{"{\"n\":\"3000\"}", 2048, 3000},
		{"{\"n\":3000.9}", 2048, 3000},
		{"{\"n\":90000}", 2048, 16000},
		{"{\"n\":1e300}", 2048, 16000},
		{"{\"n\":-1e300}", 2048, 1000},
		{"{\"n\":\"bogus\"}", 2048, -1},
		{"{\"n\":\"Infinity\"}", 2048, -1},
		{"{\"n\":\"NaN\"}", 2048, -1},
		{"{\"n\":[]}", 2048, -1},
		{"{\"n\":{}}", 2048, -1},
		/* configured values stay as they are */
		{"{}", 40, 40},
		{"{}", 30000, 30000},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		int64_t v = rows[i].def;
		const char *fault =
			hs_reflect_tokens_arg(pool, read_json(rows[i].args), "n", 16000, &v);

		if ((fault != NULL) != (rows[i].want < 0) || (!fault && v != rows[i].want))
			fail_msg("row %zu %s: %s %lld", i, rows[i].args, fault ? fault : "-",
				(long long)v);
	}
}

static void ids_may_be_one_string(void **state)
{
	struct hs_strs ids;

	(void)state;
	ids = hs_reflect_ids_arg(pool, read_json("{\"ids\":\"a\"}"), "ids");
	assert_int_equal(ids.n, 1);
	ids = hs_reflect_ids_arg(pool, read_json("{\"ids\":[\"a\",1,\"b\"]}"), "ids");
	assert_int_equal(ids.n, 2);
	ids = hs_reflect_ids_arg(pool, read_json("{\"ids\":7}"), "ids");
	assert_int_equal(ids.n, 0);
}

static void saw(struct hs_reflection *r, const char *id, bool observation)
{
	struct hs_retrieved seen = {
		.fact = {.id = id, .text = id, .type = observation ? "observation" : "world"}};

	hs_reflect_saw_fact(r, &seen, observation);
}

static void reflect_case_28_only_retrieved_ids_are_citations(void **state)
{
	struct hs_reflection r = {.pool = pool};

	(void)state;
	saw(&r, "a", false);
	saw(&r, "b", false);
	saw(&r, "a", false);
	saw(&r, "o", true);
	hs_reflect_saw_model(&r, "m", "M", "text", true, 1);
	assert_int_equal(r.n_facts, 3);
	hs_reflect_cite(&r, read_json("{\"memory_ids\":[\"b\",\"x\",\"o\",\"a\",\"b\",3],"
				      "\"observation_ids\":[\"o\",\"a\"],"
				      "\"mental_model_ids\":[\"m\",\"n\"]}"));
	assert_string_equal(hs_strs_join(pool, &r.cited.memories, " "), "b a");
	assert_string_equal(hs_strs_join(pool, &r.cited.observations, " "), "o");
	assert_string_equal(hs_strs_join(pool, &r.cited.models, " "), "m");
	hs_reflect_cite(&r,
		read_json(
			"{\"memory_ids\":null,\"observation_ids\":\"o\",\"mental_model_ids\":{}}"));
	assert_int_equal(r.cited.memories.n + r.cited.observations.n + r.cited.models.n, 0);
}

static void the_best_form_of_a_model_stands(void **state)
{
	struct hs_reflection r = {.pool = pool};

	(void)state;
	hs_reflect_saw_model(&r, "m", "M", "full", true, 1);
	hs_reflect_saw_model(&r, "m", "M", "snippet", true, 0);
	assert_string_equal(r.models[0].text, "full");
	hs_reflect_saw_model(&r, "m", "M", "read", false, 2);
	assert_string_equal(r.models[0].text, "read");
	hs_reflect_saw_model(&r, "n", "N", "read", false, 2);
	assert_true(r.models[0].searched);
	assert_false(r.models[1].searched);
}

static void reflect_case_11_fresh_means_every_model_says_so(void **state)
{
	static const struct {
		const char *models;
		bool fresh;
	} rows[] = {
		{"[]", false},
		{"[{\"content\":\"x\",\"is_stale\":false}]", true},
		{"[{\"content\":\"x\",\"is_stale\":true}]", false},
		{"[{\"content\":\"x\"}]", false},
		{"[{\"content\":\"x\",\"is_stale\":null}]", false},
		{"[{\"content\":\" \\n\",\"is_stale\":false}]", false},
		{"[{\"content\":\"x\",\"is_stale\":false},{\"snippet\":\"y\",\"is_stale\":false}]",
			true},
		{"[{\"content\":\"x\",\"is_stale\":false},{\"snippet\":\"No content "
		 "yet.\",\"is_stale\":false}]",
			false},
		{"[{\"is_stale\":false}]", false},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		json_t *result =
			read_json(hs_pool_printf(pool, "{\"mental_models\":%s}", rows[i].models));

		assert_int_equal(hs_reflect_models_fresh(result), rows[i].fresh);
	}
	assert_false(hs_reflect_models_fresh(read_json("{\"error\":\"x\"}")));
}

static void tokens_count_texts_and_arguments(void **state)
{
	json_t *none = read_json("[{\"role\":\"assistant\",\"content\":\"\"}]");
	json_t *text = read_json("[{\"role\":\"user\",\"content\":\"one two three four\"}]");
	json_t *both = read_json("[{\"role\":\"user\",\"content\":\"one two three "
				 "four\"},{\"role\":\"assistant\",\"content\":\"\","
				 "\"tool_calls\":[{\"function\":{\"name\":\"recall\",\"arguments\":"
				 "\"five six seven\"}}]}]");

	(void)state;
	assert_int_equal(hs_reflect_tokens(none), 0);
	assert_true(hs_reflect_tokens(text) >= 3);
	assert_true(hs_reflect_tokens(both) > hs_reflect_tokens(text));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(reflect_case_12_names_are_normalised),
		CASE(reflect_case_29_token_arguments),
		CASE(ids_may_be_one_string),
		CASE(reflect_case_28_only_retrieved_ids_are_citations),
		CASE(the_best_form_of_a_model_stands),
		CASE(reflect_case_11_fresh_means_every_model_says_so),
		CASE(tokens_count_texts_and_arguments),
	};

	return cmocka_run_group_tests_name("reflect_tools", tests, NULL, NULL);
}
