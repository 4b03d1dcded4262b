#include "test.h"

#include <string.h>

#include "engine/reflect_view.h"
#include "json/json.h"

static struct hs_pool *pool;
static struct hs_view view;

static int setup(void **state)
{
	(void)state;
	pool = hs_pool_new();
	hs_view_init(&view, pool);
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

static const char *shown(const char *result)
{
	return hs_json_text(pool, hs_view_show(&view, read_json(result)));
}

static const char *args(const char *text)
{
	return hs_json_text(pool, hs_view_args(&view, read_json(text)));
}

#define A "11111111-1111-4111-8111-111111111111"
#define B "22222222-2222-4222-8222-222222222222"

static void memories_are_shown_short(void **state)
{
	(void)state;
	assert_string_equal(
		shown("{\"query\":\"q\",\"count\":1,\"memories\":[{\"id\":\"" A
		      "\",\"text\":\"t\",\"fact_type\":\"world\","
		      "\"occurred_start\":\"2026-06-12T19:17:30+08:00\",\"occurred_end\":\"2026-06-"
		      "12T19:17:30+08:00\","
		      "\"mentioned_at\":\"2026-06-13T00:00:00+00:00\",\"metadata\":{\"x\":null}}],"
		      "\"chunks\":{\"b_d_0\":{\"chunk_text\":\"c\",\"chunk_index\":0,\"truncated\":"
		      "false},"
		      "\"b_d_1\":{\"chunk_text\":\"e\",\"chunk_index\":1,\"truncated\":true}}}"),
		"{\"query\":\"q\",\"memories\":[{\"id\":\"FACT~1\",\"text\":\"t\",\"fact_type\":"
		"\"world\","
		"\"occurred_start\":\"2026-06-12 11:17\",\"mentioned_at\":\"2026-06-13 "
		"00:00\",\"metadata\":{\"x\":null}}],"
		"\"chunks\":{\"CHUNK~1\":{\"chunk_text\":\"c\"},\"CHUNK~2\":{\"chunk_text\":\"e\","
		"\"truncated\":true}}}");
}

static void observations_lose_their_type_and_name_their_sources(void **state)
{
	(void)state;
	assert_string_equal(shown("{\"observations\":[{\"id\":\"" A
				  "\",\"text\":\"t\",\"fact_type\":\"observation\","
				  "\"source_fact_ids\":[\"" B "\"]}],\"source_facts\":{\"" B
				  "\":{\"id\":\"" B "\",\"text\":\"s\"}},"
				  "\"is_stale\":false,\"freshness\":\"up_to_date\"}"),
		"{\"observations\":[{\"id\":\"OBS~1\",\"text\":\"t\",\"source_fact_ids\":[\"FACT~"
		"1\"]}],"
		"\"source_facts\":{\"FACT~1\":{\"id\":\"FACT~1\",\"text\":\"s\"}},"
		"\"is_stale\":false,\"freshness\":\"up_to_date\"}");
}

static void reflect_case_43_a_second_look_only_names_what_was_shown(void **state)
{
	static const char result[] =
		"{\"query\":\"q\",\"memories\":[{\"id\":\"" A "\",\"text\":\"t\"}],"
		"\"chunks\":{\"b_d_0\":{\"chunk_text\":\"c\",\"chunk_index\":0,\"truncated\":false}"
		"}}";

	(void)state;
	(void)shown(result);
	assert_string_equal(shown(result),
		"{\"query\":\"q\",\"memories\":[],\"chunks\":{\"CHUNK~1\":{\"chunk_text\":\"c\"}},"
		"\"already_shown\":{\"memories\":[\"FACT~1\"]}}");
	/* another list shows it */
	assert_string_equal(shown("{\"observations\":[{\"id\":\"" A "\",\"text\":\"t\"}]}"),
		"{\"observations\":[{\"id\":\"OBS~1\",\"text\":\"t\"}]}");
}

static void a_model_is_shown_once_in_each_form(void **state)
{
	(void)state;
	assert_string_equal(shown("{\"mental_models\":[{\"id\":\"m\",\"snippet\":\"s\",\"content_"
				  "chars\":900}]}"),
		"{\"mental_models\":[{\"id\":\"MODEL~1\",\"snippet\":\"s\",\"content_chars\":900}]"
		"}");
	assert_string_equal(shown("{\"mental_models\":[{\"id\":\"m\",\"content\":\"c\"}],\"not_"
				  "read\":[\"x\"]}"),
		"{\"mental_models\":[{\"id\":\"MODEL~1\",\"content\":\"c\"}],\"not_read\":[\"x\"]"
		"}");
	assert_string_equal(shown("{\"mental_models\":[{\"id\":\"m\",\"content\":\"c\"}]}"),
		"{\"mental_models\":[],\"already_shown\":{\"mental_models\":[\"MODEL~1\"]}}");
}

static void errors_and_expanded_memories_stay_as_they_are(void **state)
{
	static const char error[] = "{\"error\":\"no\",\"count\":0}";
	static const char expanded[] =
		"{\"results\":[{\"memory_id\":\"" A "\",\"memory\":{\"id\":\"" A "\"}}]}";

	(void)state;
	assert_string_equal(shown(error), error);
	assert_string_equal(shown(expanded), expanded);
}

static void aliases_in_arguments_become_ids(void **state)
{
	(void)state;
	(void)hs_view_alias(&view, HS_ALIAS_FACT, A);
	(void)hs_view_alias(&view, HS_ALIAS_MODEL, "m-1");
	assert_string_equal(args("{\"query\":\"FACT~1\",\"reason\":\"FACT~1\",\"memory_ids\":["
				 "\"FACT~1\",\"FACT~2\",\"see FACT~1\",7],"
				 "\"one\":\"MODEL~1\",\"n\":3}"),
		"{\"query\":\"FACT~1\",\"reason\":\"FACT~1\",\"memory_ids\":[\"" A
		"\",\"FACT~2\",\"see FACT~1\",7],"
		"\"one\":\"m-1\",\"n\":3}");
}

static void reflect_case_43_aliases_in_text_become_ids(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"see FACT~1.", "see " A "."},
		{"FACT~1, FACT~2 (`OBS~1`)", A ", " B " (`o`)"},
		{"FACT~12 FACT~0 FACT~01 FACT~", "FACT~12 FACT~0 FACT~01 FACT~"},
		{"xFACT~1 FACT~1x FACT~1_ ~FACT~1", "xFACT~1 FACT~1x FACT~1_ ~FACT~1"},
		{"the f1 score, o1, ~~struck~~", "the f1 score, o1, ~~struck~~"},
		{"FACT~99999999999999999999999", "FACT~99999999999999999999999"},
		{"", ""},
	};

	(void)state;
	(void)hs_view_alias(&view, HS_ALIAS_FACT, A);
	(void)hs_view_alias(&view, HS_ALIAS_FACT, B);
	(void)hs_view_alias(&view, HS_ALIAS_OBSERVATION, "o");
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_string_equal(hs_view_resolve(&view, rows[i].text), rows[i].want);
}

static void the_same_id_keeps_its_alias(void **state)
{
	char id[32];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "id-%d", i % 50);
		assert_string_equal(hs_view_alias(&view, HS_ALIAS_FACT, id),
			hs_pool_printf(pool, "FACT~%d", i % 50 + 1));
	}
}

static void reflect_case_43_invented_ids_are_marked(void **state)
{
	const char *known[] = {
		"what about " A "?", "{\"id\":\"bank_33333333-3333-4333-8333-aaaaaaaaaaaa_0\"}"};
	struct hs_strs sources = {2, known};

	(void)state;
	assert_string_equal(
		hs_view_verify(pool, "a " A " b " B ".", &sources), "a " A " b [unverified id].");
	assert_string_equal(hs_view_verify(pool, "33333333-3333-4333-8333-AAAAAAAAAAAA", &sources),
		"33333333-3333-4333-8333-AAAAAAAAAAAA");
	assert_string_equal(hs_view_verify(pool, B, &sources), "[unverified id]");
	assert_string_equal(
		hs_view_verify(pool, "x" B " " B "-1 " B "a", &sources), "x" B " " B "-1 " B "a");
	assert_false(hs_view_has_uuid("22222222-2222-4222-8222-22222222222"));
	assert_true(hs_view_has_uuid("(" B ")"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(memories_are_shown_short),
		CASE(observations_lose_their_type_and_name_their_sources),
		CASE(reflect_case_43_a_second_look_only_names_what_was_shown),
		CASE(a_model_is_shown_once_in_each_form),
		CASE(errors_and_expanded_memories_stay_as_they_are),
		CASE(aliases_in_arguments_become_ids),
		CASE(reflect_case_43_aliases_in_text_become_ids),
		CASE(the_same_id_keeps_its_alias),
		CASE(reflect_case_43_invented_ids_are_marked),
	};

	return cmocka_run_group_tests_name("reflect_view", tests, NULL, NULL);
}
