#include "test.h"

#include <string.h>

#include "base/buf.h"
#include "engine/model_scope.h"
#include "engine/trigger.h"
#include "json/json.h"

static const char every_default[] =
	"{\"mode\":\"full\",\"budget\":null,\"refresh_after_consolidation\":false,\"refresh_cron\":null,"
	"\"full_refresh_cron\":null,\"min_refresh_interval_seconds\":null,\"fact_types\":null,"
	"\"exclude_mental_models\":false,\"exclude_mental_model_ids\":null,\"tags_match\":null,"
	"\"tag_groups\":null,\"include_chunks\":null,\"recall_max_tokens\":null,"
	"\"recall_chunks_max_tokens\":null,\"reflect_search_observations_max_tokens\":null,"
	"\"reflect_search_observations_include_entities\":null,"
	"\"reflect_search_mental_models_max_tokens\":null,\"response_schema\":null,\"keep_trace\":false}";

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

static json_t *json(struct hs_pool *pool, const char *text)
{
	json_t *v = NULL;
	struct hs_err err = {0};

	if (hs_json_load(pool, text, &v, &err) != HS_OK)
		fail_msg("%s: %s", text, err.msg);
	return v;
}

static enum hs_rc check(struct hs_pool *pool, const struct hs_shape *shape, const char *text,
	struct hs_trigger **ret, struct hs_err *err)
{
	void *t = NULL;
	enum hs_rc rc = hs_check_object(pool, shape, "body", json(pool, text), &t, NULL, err);

	*ret = t;
	return rc;
}

static struct hs_trigger *patch_of(struct hs_pool *pool, const char *text)
{
	struct hs_trigger *t;
	struct hs_err err = {0};

	if (check(pool, &hs_trigger_patch_shape, text, &t, &err) != HS_OK)
		fail_msg("%s: %s", text, err.msg);
	return t;
}

/* text of the trigger holds this member with this value */
static void assert_member(
	struct hs_pool *pool, const struct hs_trigger *t, const char *name, const char *want)
{
	json_t *v = json(pool, hs_trigger_text(pool, t));
	const char *got = hs_json_text(pool, json_object_get(v, name));

	if (strcmp(got, want) != 0)
		fail_msg("%s: got %s, want %s", name, got, want);
}

static void every_member_is_shown_with_its_default(void **state)
{
	struct hs_pool *pool = *state;

	assert_string_equal(hs_trigger_text(pool, hs_trigger_read(pool, NULL)), every_default);
	assert_string_equal(hs_trigger_text(pool, hs_trigger_read(pool, "{}")), every_default);
	assert_string_equal(hs_trigger_text(pool, hs_trigger_read(pool, "no json")), every_default);
	assert_string_equal(hs_trigger_text(pool, hs_trigger_read(pool, "[1]")), every_default);
	assert_string_equal(
		hs_trigger_text(pool, hs_trigger_read(pool, every_default)), every_default);
}

static void a_stored_trigger_reads_back_as_it_is(void **state)
{
	static const char full[] =
		"{\"mode\":\"delta\",\"budget\":\"high\",\"refresh_after_consolidation\":false,"
		"\"refresh_cron\":\"0 3 * * *\",\"full_refresh_cron\":\"0 4 * * 0\","
		"\"min_refresh_interval_seconds\":0,\"fact_types\":[\"world\",\"observation\"],"
		"\"exclude_mental_models\":true,\"exclude_mental_model_ids\":[\"a\",\"b\"],"
		"\"tags_match\":\"any\",\"tag_groups\":[{\"tags\":[\"x\"],\"match\":\"any\",\"resolve\":\"exact\"}],"
		"\"include_chunks\":false,\"recall_max_tokens\":-5,\"recall_chunks_max_tokens\":0,"
		"\"reflect_search_observations_max_tokens\":1,"
		"\"reflect_search_observations_include_entities\":false,"
		"\"reflect_search_mental_models_max_tokens\":9,"
		"\"response_schema\":{\"properties\":{\"a\":{}}},\"keep_trace\":true}";
	struct hs_pool *pool = *state;

	assert_string_equal(hs_trigger_text(pool, hs_trigger_read(pool, full)), full);
}

static void test_models_case_06_bad_triggers_are_refused(void **state)
{
	static const struct {
		const char *text, *loc;
	} bad[] = {
		{"{\"fact_types\":[]}", "[\"body\",\"fact_types\"]"},
		{"{\"fact_types\":[\"opinion\"]}", "[\"body\",\"fact_types\",0]"},
		{"{\"refresh_after_consolidation\":true,\"refresh_cron\":\"* * * * *\"}",
			"[\"body\"]"},
		{"{\"refresh_cron\":\"61 * * * *\"}", "[\"body\",\"refresh_cron\"]"},
		{"{\"full_refresh_cron\":\"61 * * * *\"}", "[\"body\",\"full_refresh_cron\"]"},
		{"{\"refresh_cron\":5}", "[\"body\",\"refresh_cron\"]"},
		{"{\"response_schema\":{\"type\":\"object\"}}", "[\"body\",\"response_schema\"]"},
		{"{\"response_schema\":{\"properties\":{}}}", "[\"body\",\"response_schema\"]"},
		{"{\"response_schema\":{\"type\":\"array\",\"properties\":{\"a\":{}}}}",
			"[\"body\",\"response_schema\"]"},
		{"{\"response_schema\":{\"properties\":{\"a\":1}}}",
			"[\"body\",\"response_schema\"]"},
		{"{\"response_schema\":{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}}}}",
			"[\"body\",\"response_schema\"]"},
		{"{\"response_schema\":{\"properties\":{\"a\":{\"type\":\"nonsense\"}}}}",
			"[\"body\",\"response_schema\"]"},
		{"{\"response_schema\":{\"properties\":{\"a\":{}},\"required\":[\"b\"]}}",
			"[\"body\",\"response_schema\"]"},
		{"{\"response_schema\":{\"properties\":{\"a\":{}},\"required\":\"a\"}}",
			"[\"body\",\"response_schema\"]"},
		{"{\"response_schema\":[]}", "[\"body\",\"response_schema\"]"},
		{"{\"tag_groups\":[{\"tags\":[\"a\"],\"resolve\":\"fuzzy\"}]}",
			"[\"body\",\"tag_groups\"]"},
		{"{\"tag_groups\":[{\"not\":{\"or\":[{\"tags\":[\"a\"],\"resolve\":\"fuzzy\"}]}}]}",
			"[\"body\",\"tag_groups\"]"},
		{"{\"budget\":\"max\"}", "[\"body\",\"budget\"]"},
		{"{\"mode\":\"fast\"}", "[\"body\",\"mode\"]"},
		{"{\"mode\":null}", "[\"body\",\"mode\"]"},
		{"{\"keep_trace\":null}", "[\"body\",\"keep_trace\"]"},
		{"{\"min_refresh_interval_seconds\":-1}",
			"[\"body\",\"min_refresh_interval_seconds\"]"},
		{"{\"reflect_search_observations_max_tokens\":0}",
			"[\"body\",\"reflect_search_observations_max_tokens\"]"},
		{"{\"reflect_search_mental_models_max_tokens\":0}",
			"[\"body\",\"reflect_search_mental_models_max_tokens\"]"},
		{"{\"tags_match\":\"some\"}", "[\"body\",\"tags_match\"]"},
	};
	struct hs_pool *pool = *state;

	for (size_t i = 0; i < HS_COUNT(bad); i++) {
		struct hs_trigger *t;
		struct hs_err err = {0};

		if (check(pool, &hs_trigger_shape, bad[i].text, &t, &err) != HS_E_INVALID)
			fail_msg("accepted: %s", bad[i].text);
		assert_non_null(err.fields);
		if (strcmp(err.fields->loc, bad[i].loc) != 0)
			fail_msg("%s: loc %s, want %s", bad[i].text, err.fields->loc, bad[i].loc);
	}
}

static void what_is_allowed_is_kept(void **state)
{
	struct hs_pool *pool = *state;
	struct hs_trigger *t;
	struct hs_err err = {0};

	assert_int_equal(
		check(pool, &hs_trigger_shape,
			"{\"refresh_after_consolidation\":true,\"refresh_cron\":\" \\t \",\"unknown\":1}",
			&t, &err),
		HS_OK);
	assert_member(pool, t, "refresh_cron", "null");
	assert_member(pool, t, "refresh_after_consolidation", "true");
	assert_int_equal(
		check(pool, &hs_trigger_shape,
			"{\"refresh_after_consolidation\":false,\"refresh_cron\":\"  0 3 * * *  \","
			"\"full_refresh_cron\":\"0 0 * * 1\",\"tag_groups\":[],\"recall_max_tokens\":\"7\"}",
			&t, &err),
		HS_OK);
	assert_member(pool, t, "refresh_cron", "\"0 3 * * *\"");
	assert_member(pool, t, "tag_groups", "[]");
	assert_member(pool, t, "recall_max_tokens", "7");
	assert_member(pool, t, "response_schema", "null");
}

static void a_broken_stored_member_is_at_its_default(void **state)
{
	struct hs_pool *pool = *state;
	const struct hs_trigger *t = hs_trigger_read(pool,
		"{\"mode\":\"turbo\",\"budget\":7,\"refresh_cron\":\"61 * * * *\",\"full_refresh_cron\":\"0 3 * * *\","
		"\"fact_types\":[],\"exclude_mental_models\":\"perhaps\",\"tags_match\":\"sometimes\","
		"\"min_refresh_interval_seconds\":\"soon\",\"recall_max_tokens\":12,\"keep_trace\":true}");

	assert_member(pool, t, "mode", "\"full\"");
	assert_member(pool, t, "budget", "null");
	assert_member(pool, t, "refresh_cron", "null");
	assert_member(pool, t, "full_refresh_cron", "\"0 3 * * *\"");
	assert_member(pool, t, "fact_types", "null");
	assert_member(pool, t, "exclude_mental_models", "false");
	assert_member(pool, t, "tags_match", "null");
	assert_member(pool, t, "min_refresh_interval_seconds", "null");
	assert_member(pool, t, "recall_max_tokens", "12");
	assert_member(pool, t, "keep_trace", "true");
	t = hs_trigger_read(
		pool, "{\"refresh_after_consolidation\":true,\"refresh_cron\":\"0 3 * * *\"}");
	assert_member(pool, t, "refresh_after_consolidation", "false");
	assert_member(pool, t, "refresh_cron", "\"0 3 * * *\"");
	t = hs_trigger_read(pool, "{\"min_refresh_interval_seconds\":-20}");
	assert_member(pool, t, "min_refresh_interval_seconds", "0");
}

static void an_unknown_match_never_widens_a_scope(void **state)
{
	struct hs_pool *pool = *state;
	const struct hs_trigger *t = hs_trigger_read(pool, "{\"tags_match\":\"sometimes\"}");
	struct hs_scope s = hs_model_scope(pool, t, "[\"a\",\"b\"]");

	assert_int_equal(s.match, HS_ALL_STRICT);
	t = hs_trigger_read(
		pool, "{\"tag_groups\":[{\"or\":[{\"tags\":[\"a\"],\"match\":\"fnord\"}]}]}");
	assert_member(pool, t, "tag_groups",
		"[{\"or\":[{\"tags\":[\"a\"],\"match\":\"all_strict\",\"resolve\":\"exact\"}]}]");
}

static void test_models_case_03_a_patch_is_merged(void **state)
{
	struct hs_pool *pool = *state;
	const struct hs_trigger *stored = hs_trigger_read(pool,
		"{\"mode\":\"delta\",\"refresh_cron\":\"0 3 * * *\",\"recall_max_tokens\":5}");
	const struct hs_trigger *t =
		hs_trigger_merge(pool, stored, patch_of(pool, "{\"keep_trace\":true}"));

	assert_member(pool, t, "mode", "\"delta\"");
	assert_member(pool, t, "refresh_cron", "\"0 3 * * *\"");
	assert_member(pool, t, "recall_max_tokens", "5");
	assert_member(pool, t, "keep_trace", "true");

	t = hs_trigger_merge(pool, t, patch_of(pool, "{\"refresh_after_consolidation\":true}"));
	assert_member(pool, t, "refresh_cron", "null");
	assert_member(pool, t, "refresh_after_consolidation", "true");
	assert_member(pool, t, "keep_trace", "true");

	t = hs_trigger_merge(pool, t, patch_of(pool, "{\"refresh_cron\":null}"));
	assert_member(pool, t, "refresh_after_consolidation", "true");
	t = hs_trigger_merge(pool, t, patch_of(pool, "{\"refresh_cron\":\"  \"}"));
	assert_member(pool, t, "refresh_after_consolidation", "true");
	t = hs_trigger_merge(pool, t, patch_of(pool, "{\"full_refresh_cron\":\"1 1 * * *\"}"));
	assert_member(pool, t, "refresh_after_consolidation", "true");
	t = hs_trigger_merge(pool, t, patch_of(pool, "{\"refresh_cron\":\"5 5 * * *\"}"));
	assert_member(pool, t, "refresh_after_consolidation", "false");
	assert_member(pool, t, "full_refresh_cron", "\"1 1 * * *\"");

	t = hs_trigger_merge(pool, t,
		patch_of(pool, "{\"mode\":null,\"keep_trace\":null,\"recall_max_tokens\":null}"));
	assert_member(pool, t, "mode", "\"full\"");
	assert_member(pool, t, "keep_trace", "false");
	assert_member(pool, t, "recall_max_tokens", "null");
	t = hs_trigger_merge(pool, t, patch_of(pool, "{\"refresh_after_consolidation\":false}"));
	assert_member(pool, t, "refresh_cron", "\"5 5 * * *\"");
	t = hs_trigger_merge(pool, t, patch_of(pool, "{}"));
	assert_member(pool, t, "refresh_cron", "\"5 5 * * *\"");
}

static void a_patch_is_validated_like_a_create(void **state)
{
	struct hs_pool *pool = *state;
	struct hs_trigger *t;
	struct hs_err err = {0};

	assert_int_equal(
		check(pool, &hs_trigger_patch_shape,
			"{\"refresh_after_consolidation\":true,\"refresh_cron\":\"* * * * *\"}", &t,
			&err),
		HS_E_INVALID);
	assert_int_equal(check(pool, &hs_trigger_patch_shape, "{\"mode\":\"fast\"}", &t, &err),
		HS_E_INVALID);
}

static void the_scope_follows_section_8(void **state)
{
	struct hs_pool *pool = *state;
	struct hs_scope s = hs_model_scope(pool, hs_trigger_read(pool, NULL), "[]");

	assert_int_equal(s.tags.n, 0);
	assert_int_equal(s.match, HS_ANY);
	assert_false(s.has_groups);
	assert_int_equal(s.facts, 0);

	s = hs_model_scope(pool, hs_trigger_read(pool, NULL), "[\"a\",\"b\"]");
	assert_int_equal(s.tags.n, 2);
	assert_int_equal(s.match, HS_ALL_STRICT);

	s = hs_model_scope(pool, hs_trigger_read(pool, "{\"tags_match\":\"exact\"}"), "[]");
	assert_int_equal(s.match, HS_EXACT);
	s = hs_model_scope(pool,
		hs_trigger_read(pool, "{\"tags_match\":\"any\",\"fact_types\":[\"world\"]}"),
		"[\"a\"]");
	assert_int_equal(s.match, HS_ANY);
	assert_int_equal(s.facts, HS_FACT_BIT(HS_WORLD));

	s = hs_model_scope(pool, hs_trigger_read(pool, "{\"tag_groups\":[]}"), "[\"a\"]");
	assert_true(s.has_groups);
	assert_int_equal(s.n_groups, 0);
	assert_int_equal(s.tags.n, 0);
	assert_false(hs_scope_filters_tags(&s));
}

static void test_models_case_25_the_interval_comes_from_trigger_or_bank(void **state)
{
	static const struct {
		const char *trigger, *setting;
		int64_t want;
	} rows[] = {
		{NULL, "0", 0},
		{NULL, "1800", 1800},
		{NULL, "-5", 0},
		{"{\"min_refresh_interval_seconds\":0}", "1800", 0},
		{"{\"min_refresh_interval_seconds\":60}", "1800", 60},
		{"{\"min_refresh_interval_seconds\":\"soon\"}", "1800", 1800},
		{"{\"min_refresh_interval_seconds\":-3}", "1800", 0},
	};
	struct hs_pool *pool = *state;

	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_config *cfg = hs_config_defaults(pool);
		struct hs_err err = {0};

		assert_int_equal(hs_config_set(cfg, "mental_model_min_refresh_interval_seconds",
					 rows[i].setting, &err),
			HS_OK);
		assert_int_equal(hs_trigger_interval(hs_trigger_read(pool, rows[i].trigger), cfg),
			rows[i].want);
	}
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_member_is_shown_with_its_default),
		CASE(a_stored_trigger_reads_back_as_it_is),
		CASE(test_models_case_06_bad_triggers_are_refused),
		CASE(what_is_allowed_is_kept),
		CASE(a_broken_stored_member_is_at_its_default),
		CASE(an_unknown_match_never_widens_a_scope),
		CASE(test_models_case_03_a_patch_is_merged),
		CASE(a_patch_is_validated_like_a_create),
		CASE(the_scope_follows_section_8),
		CASE(test_models_case_25_the_interval_comes_from_trigger_or_bank),
	};

	return cmocka_run_group_tests_name("trigger", tests, NULL, NULL);
}
