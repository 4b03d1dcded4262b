#include "test.h"

#include <string.h>

#include "base/pool.h"
#include "config/overrides.h"
#include "json/json.h"

struct fixture {
	struct hs_pool *pool;
	struct hs_config *server;
};

static int set_up(void **state)
{
	struct hs_pool *pool = hs_pool_new();
	struct fixture *f = HS_NEW(pool, struct fixture);

	f->pool = pool;
	f->server = hs_config_defaults(pool);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct hs_pool *pool = ((struct fixture *)*state)->pool;

	hs_pool_free(&pool);
	return 0;
}

static json_t *json(struct fixture *f, const char *text)
{
	json_t *v = NULL;

	assert_int_equal(hs_json_load(f->pool, text, &v, NULL), HS_OK);
	return v;
}

struct trigger {
	struct hs_seen seen;
	const char *refresh_cron;
	bool keep_trace;
};

static void cron_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	(void)f;
	if (!json_is_string(v) || strcmp(json_string_value(v), "0 3 * * *") != 0)
		hs_check_value_error(ck, v, "not a schedule");
	*(const char **)place = json_string_value(v);
}

static const struct hs_field trigger_fields[] = {
	HS_CUSTOM(struct trigger, refresh_cron, cron_read, .flags = HS_NULLABLE),
	HS_BOOL(struct trigger, keep_trace),
};
static const struct hs_shape trigger_shape = HS_SHAPE(trigger, trigger_fields);

static const char *merged(struct fixture *f, const char *stored, const char *updates)
{
	struct hs_err err = {0};
	json_t *out = NULL;

	if (hs_overrides_patch_shaped(f->pool, f->server, &trigger_shape, json(f, stored), json(f, updates), &out,
		&err) != HS_OK)
		fail_msg("%s: %s", updates, err.msg);
	return hs_json_text(f->pool, out);
}

static enum hs_rc refused(struct fixture *f, const char *stored, const char *updates, const char *names)
{
	struct hs_err err = {0};
	json_t *out = NULL;

	if (hs_overrides_patch_shaped(f->pool, f->server, &trigger_shape, json(f, stored), json(f, updates), &out,
		&err) == HS_OK)
		fail_msg("%s was accepted", updates);
	if (!strstr(err.msg, names))
		fail_msg("%s: \"%s\" does not name %s", updates, err.msg, names);
	return err.rc;
}

static void banks_case_08_names_are_normalised(void **state)
{
	assert_string_equal(merged(*state, "{}", "{\"HINDSIGHT_API_RETAIN_MISSION\":\"m\",\"Recall_Max_Tokens\":9}"),
		"{\"retain_mission\":\"m\",\"recall_max_tokens\":9}");
	/* the prefix counts in capitals only */
	assert_int_equal(refused(*state, "{}", "{\"hindsight_api_retain_mission\":\"m\"}", "hindsight_api_retain_mission"),
		HS_E_BAD_REQUEST);
}

static void banks_case_09_null_clears(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(merged(f, "{\"retain_mission\":\"m\",\"recall_max_tokens\":9,\"observations_mission\":null}",
		"{\"RETAIN_MISSION\":null}"), "{\"recall_max_tokens\":9}");
	assert_string_equal(merged(f, "{\"retain_mission\":\"m\"}", "{}"), "{\"retain_mission\":\"m\"}");
	assert_string_equal(hs_json_text(f->pool, hs_json_keep(f->pool,
		hs_overrides_active(json(f, "{\"retain_mission\":null,\"recall_max_tokens\":9,\"gone\":1}")))),
		"{\"recall_max_tokens\":9}");
}

static void nested_objects_are_replaced_whole(void **state)
{
	assert_string_equal(merged(*state, "{\"retain_strategies\":{\"a\":{},\"b\":{}}}",
		"{\"retain_strategies\":{\"c\":{\"RETAIN_CHUNK_SIZE\":5,\"foo\":1}}}"),
		"{\"retain_strategies\":{\"c\":{\"retain_chunk_size\":5,\"foo\":1}}}");
}

static void banks_cases_10_to_14_bad_values(void **state)
{
	static const char *const rows[][2] = {
		/* 10: strict types */
		{"{\"observations_mission\":{}}", "observations_mission must be a string, got dict"},
		{"{\"retain_chunk_size\":true}", "retain_chunk_size must be an integer, got bool"},
		{"{\"retain_chunk_size\":\"3000\"}", "retain_chunk_size must be an integer, got str"},
		{"{\"retain_chunk_size\":3000.0}", "retain_chunk_size must be an integer, got float"},
		{"{\"enable_observations\":1}", "enable_observations must be a boolean, got int"},
		{"{\"recall_budget_adaptive_low\":true}", "recall_budget_adaptive_low must be a number, got bool"},
		{"{\"mcp_enabled_tools\":\"recall\"}", "mcp_enabled_tools must be a list, got str"},
		{"{\"entity_labels\":3}", "entity_labels must be a list or an object, got int"},
		/* 11: names */
		{"{\"llm_api_key\":\"x\"}", "llm_api_key"},
		{"{\"LLM_BASE_URL\":\"x\"}", "llm_base_url"},
		{"{\"some_new_api_key\":\"x\"}", "some_new_api_key"},
		{"{\"database_password\":null}", "database_password"},
		{"{\"port\":1,\"foo\":2}", "port"},
		{"{\"zoo\":1,\"foo\":2}", "foo, zoo"},
		/* ranges */
		{"{\"retain_chunk_size\":0}", "retain_chunk_size must be at least 1"},
		{"{\"retain_structured_chunk_size\":0}", "retain_structured_chunk_size"},
		{"{\"retain_max_attachments_per_chunk\":0}", "retain_max_attachments_per_chunk"},
		{"{\"recall_budget_fixed_low\":0}", "recall_budget_fixed_low"},
		{"{\"recall_budget_adaptive_low\":0}", "recall_budget_adaptive_low must be above 0"},
		{"{\"recall_budget_min\":null}", "recall_budget_min must not be null"},
		{"{\"recall_budget_function\":null}", "recall_budget_function"},
		{"{\"recall_budget_function\":\"x\"}", "recall_budget_function"},
		{"{\"recall_fusion\":\"x\"}", "recall_fusion"},
		{"{\"recall_semantic_weight\":1.5}", "recall_semantic_weight"},
		{"{\"llm_daily_token_limit\":-1}", "llm_daily_token_limit"},
		{"{\"consolidation_llm_batch_size\":0}", "consolidation_llm_batch_size"},
		/* 12: against the server's values */
		{"{\"recall_budget_max\":10}", "recall_budget_min (20)"},
		/* 13 */
		{"{\"disposition_empathy\":0}", "disposition_empathy"},
		{"{\"disposition_empathy\":6}", "disposition_empathy"},
		{"{\"disposition_empathy\":2.5}", "disposition_empathy"},
		{"{\"disposition_empathy\":true}", "disposition_empathy"},
		{"{\"disposition_empathy\":\"3\"}", "disposition_empathy"},
		/* 14 */
		{"{\"retain_strategies\":{\"\":{}}}", "blank"},
		{"{\"retain_strategies\":{\"a\":1}}", "'a' must be an object"},
		{"{\"retain_strategies\":{\"a\":{\"retain_chunk_size\":null}}}", "retain_chunk_size must not be null"},
		{"{\"retain_strategies\":{\"a\":{\"RETAIN_CHUNK_SIZE\":\"x\"}}}", "retain_chunk_size must be an integer"},
		{"{\"retain_strategies\":{\"a\":{\"retain_chunk_size\":64000}}}", "retain_max_completion_tokens"},
		{"{\"retain_strategies\":{\"a\":{\"default_observation_scopes\":\"all\"}}}", "default_observation_scopes"},
		{"{\"reflect_default_options\":{\"foo\":1}}", "foo"},
		{"{\"reflect_default_options\":{\"reflect_search_mental_models_max_tokens\":0}}",
			"reflect_search_mental_models_max_tokens"},
		{"{\"knowledge_page_default_trigger\":{\"refresh_cron\":\"every day\"}}", "refresh_cron"},
		{"{\"knowledge_page_default_trigger\":{\"foo\":1}}", "foo"},
		{"{\"default_observation_scopes\":\"all\"}", "default_observation_scopes"},
		{"{\"default_observation_scopes\":[\"a\"]}", "default_observation_scopes"},
		{"{\"default_observation_scopes\":{}}", "default_observation_scopes"},
		/* labels */
		{"{\"entity_labels\":[\"a\"]}", "entity_labels"},
		{"{\"entity_labels\":[{\"description\":\"x\"}]}", "key"},
		{"{\"entity_labels\":[{\"key\":\"k\",\"type\":\"x\"}]}", "type"},
		{"{\"entity_labels\":[{\"key\":\"k\",\"values\":[\"x\"]}]}", "values"},
		{"{\"entity_labels\":[{\"key\":\"k\",\"type\":\"map\",\"fields\":{\"a\":{\"tag\":1}}}]}", "tag"},
		{"{\"entity_labels\":{\"x\":[]}}", "attributes"},
		{"{\"consolidation_strategies\":[{\"foo\":1}]}", "foo"},
		{"{\"consolidation_strategies\":[{\"scopes\":[{\"tags\":[\"a\"],\"tags_match\":\"any\"}]}]}", "tags_match"},
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_int_equal(refused(*state, "{}", rows[i][0], rows[i][1]), HS_E_BAD_REQUEST);
	assert_int_equal(refused(*state, "{}", "{\"memory_defense\":[]}", "memory_defense"), HS_E_UNPROCESSABLE);
	/* credentials are named before static fields, these before unknown ones */
	refused(*state, "{}", "{\"foo\":1,\"port\":1,\"llm_api_key\":1}", "through the API: llm_api_key");
	refused(*state, "{}", "{\"foo\":1,\"port\":1}", "server-level settings, not settings of a bank: port");
	refused(*state, "{\"recall_budget_min\":500}", "{\"recall_budget_max\":100}", "recall_budget_min (500)");
}

static void good_values_are_taken(void **state)
{
	static const char *const rows[] = {
		"{\"recall_budget_adaptive_low\":1}",
		"{\"recall_budget_min\":10,\"recall_budget_max\":10}",
		"{\"retain_extraction_mode\":\"my own\"}",
		"{\"disposition_empathy\":null}",
		"{\"recall_semantic_weight\":null,\"llm_daily_token_limit\":0}",
		"{\"mental_model_min_refresh_interval_seconds\":-5}",
		"{\"default_observation_scopes\":[[\"a\",\"b\"],[]]}",
		"{\"reflect_default_options\":{\"reflect_search_observations_max_tokens\":\"7\"}}",
		"{\"knowledge_page_default_trigger\":{\"refresh_cron\":\"0 3 * * *\",\"keep_trace\":true}}",
		"{\"entity_labels\":[{\"key\":\"k\",\"type\":\"map\",\"fields\":{\"a\":{\"type\":\"text\"}}}]}",
		"{\"entity_labels\":{\"attributes\":[{\"key\":\"k\",\"values\":[{\"value\":\"v\"}]}]}}",
		"{\"consolidation_strategies\":[{\"scopes\":[{\"tags\":[\"a\"],\"tags_match\":\"exact\"}]}]}",
		"{\"memory_defense\":{}}",
		"{\"llm_gemini_safety_settings\":[{}]}",
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++)
		merged(*state, "{}", rows[i]);
	assert_string_equal(merged(*state, "{}", "{\"recall_budget_function\":\"ADAPTIVE\"}"),
		"{\"recall_budget_function\":\"adaptive\"}");
}

static void overrides_win_over_the_server(void **state)
{
	struct fixture *f = *state;
	struct hs_config *bank = hs_config_for_bank(f->pool, f->server,
		json(f, "{\"recall_max_tokens\":7,\"retain_mission\":null,\"port\":1,\"enable_observations\":\"yes\","
			"\"observations_mission\":{\"a\":1},\"recall_semantic_weight\":1}"));
	json_t *shown;

	assert_int_equal(hs_cfg_int(bank, HS_S_recall_max_tokens), 7);
	assert_int_equal(hs_cfg_int(f->server, HS_S_recall_max_tokens), 2048);
	assert_null(hs_cfg_str(bank, HS_S_retain_mission));
	assert_int_equal(hs_cfg_int(bank, HS_S_port), 8888);
	/* stored rubbish: text fields take its JSON text, others keep the server's value */
	assert_true(hs_cfg_bool(bank, HS_S_enable_observations));
	assert_string_equal(hs_cfg_str(bank, HS_S_observations_mission), "{\"a\":1}");
	shown = hs_json_keep(f->pool, hs_overrides_effective(bank));
	assert_int_equal(json_object_size(shown), 60);
	assert_int_equal(hs_json_int(shown, "recall_max_tokens", 0), 7);
	assert_true(json_is_null(json_object_get(shown, "retain_mission")));
	assert_null(json_object_get(shown, "llm_api_key"));
}

static void a_strategy_lies_over_the_bank(void **state)
{
	struct fixture *f = *state;
	struct hs_config *bank = hs_config_for_bank(f->pool, f->server, json(f, "{\"retain_mission\":\"m\"}"));
	struct hs_config *cfg = hs_config_with_strategy(f->pool, bank,
		json(f, "{\"retain_mission\":null,\"retain_chunk_size\":9,\"port\":1,\"foo\":1}"));

	assert_null(hs_cfg_str(cfg, HS_S_retain_mission));
	assert_int_equal(hs_cfg_int(cfg, HS_S_retain_chunk_size), 9);
	assert_string_equal(hs_cfg_str(bank, HS_S_retain_mission), "m");
}

static void provider_none_forces_chunks_and_no_observations(void **state)
{
	struct fixture *f = *state;
	struct hs_config *bank;

	assert_int_equal(hs_config_set(f->server, "llm_provider", "none", NULL), HS_OK);
	bank = hs_config_for_bank(f->pool, f->server, json(f, "{\"retain_extraction_mode\":\"verbose\"}"));
	bank = hs_config_with_strategy(f->pool, bank, json(f, "{\"retain_extraction_mode\":\"verbose\"}"));
	assert_string_equal(hs_cfg_str(bank, HS_S_retain_extraction_mode), "chunks");
	assert_false(hs_cfg_bool(bank, HS_S_enable_observations));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(banks_case_08_names_are_normalised),
		CASE(banks_case_09_null_clears),
		CASE(nested_objects_are_replaced_whole),
		CASE(banks_cases_10_to_14_bad_values),
		CASE(good_values_are_taken),
		CASE(overrides_win_over_the_server),
		CASE(a_strategy_lies_over_the_bank),
		CASE(provider_none_forces_chunks_and_no_observations),
	};

	return cmocka_run_group_tests_name("overrides", tests, NULL, NULL);
}
