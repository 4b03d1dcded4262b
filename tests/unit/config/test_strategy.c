#include "test.h"

#include <string.h>

#include "config/strategy.h"
#include "json/json.h"

static struct hs_config *bank(struct hs_pool *pool, const char *provider, const char *overrides)
{
	struct hs_config *server = hs_config_defaults(pool);
	struct hs_err err = {0};
	json_t *v = NULL;

	if (hs_config_set(server, "llm_provider", provider, &err) != HS_OK ||
		hs_json_load(pool, overrides, &v, &err) != HS_OK)
		fail_msg("%s", err.msg);
	return hs_config_for_bank(pool, server, v);
}

#define TWO                                                                                           \
	"{\"retain_mission\": \"bank\", \"retain_default_strategy\": \"a\", \"retain_strategies\":"   \
	" {\"a\": {\"retain_mission\": \"of a\", \"llm_model\": \"m\", \"retain_chunk_size\": null}," \
	" \"b\": {\"retain_mission\": null}, \"c\": [1]}}"

static void the_name_given_then_the_default(void **state)
{
	static const struct {
		const char *asked, *name, *mission;
		bool is_default, in_force;
	} rows[] = {
		{NULL, "a", "of a", true, true},
		{" ", "a", "of a", true, true},
		{"a", "a", "of a", false, true},
		{"b", "b", NULL, false, true},
		{"c", "c", "bank", false, false},
		{"A", "A", "bank", false, false},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = bank(pool, "openai", TWO);

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_strategy s;
		struct hs_err err = {0};

		assert_int_equal(hs_strategy_find(pool, cfg, rows[i].asked, &s, &err), HS_OK);
		assert_string_equal(s.name, rows[i].name);
		assert_int_equal(s.is_default, rows[i].is_default);
		assert_int_equal(s.fields != NULL, rows[i].in_force);
		assert_true(hs_str_eq(hs_cfg_str(s.cfg, HS_S_retain_mission), rows[i].mission));
		assert_null(hs_cfg_str(s.cfg, HS_S_llm_model));
		assert_int_equal(hs_cfg_int(s.cfg, HS_S_retain_chunk_size), 3000);
	}
}

static void what_a_strategy_sets(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = bank(pool, "openai", TWO);
	struct hs_err err = {0};
	struct hs_strategy s;

	(void)state;
	assert_int_equal(hs_strategy_find(pool, cfg, "a", &s, &err), HS_OK);
	assert_true(hs_strategy_sets(&s, HS_S_retain_mission));
	assert_false(hs_strategy_sets(&s, HS_S_retain_chunk_size));
	assert_false(hs_strategy_sets(&s, HS_S_llm_model));
	assert_false(hs_strategy_sets(&s, HS_S_entity_labels));
	assert_int_equal(hs_strategy_find(pool, cfg, "b", &s, &err), HS_OK);
	assert_true(hs_strategy_sets(&s, HS_S_retain_mission));
	assert_int_equal(hs_strategy_find(pool, bank(pool, "openai", "{}"), NULL, &s, &err), HS_OK);
	assert_null(s.name);
	assert_false(hs_strategy_sets(&s, HS_S_retain_mission));
}

static void chunk_sizes_that_cannot_work(void **state)
{
	static const struct {
		const char *provider, *fields;
		bool good;
	} rows[] = {
		{"openai", "\"retain_chunk_size\": 1", true},
		{"openai", "\"retain_chunk_size\": 0", false},
		{"openai", "\"retain_chunk_size\": -3000", false},
		{"openai", "\"retain_chunk_size\": 63999", true},
		{"openai", "\"retain_chunk_size\": 64000", false},
		{"none", "\"retain_chunk_size\": 64000", true},
		{"none", "\"retain_chunk_size\": 0", false},
		{"openai", "\"retain_structured_chunk_size\": 900000", true},
		{"openai", "\"retain_structured_chunk_size\": null", true},
		{"openai", "\"retain_structured_chunk_size\": 0", false},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		const char *text = hs_pool_printf(
			pool, "{\"retain_strategies\": {\"s\": {%s}}}", rows[i].fields);
		struct hs_config *cfg = bank(pool, rows[i].provider, text);
		struct hs_strategy s;
		struct hs_err err = {0};

		if (hs_strategy_find(pool, cfg, "s", &s, &err) !=
			(rows[i].good ? HS_OK : HS_E_BAD_REQUEST))
			fail_msg("%s with %s", rows[i].fields, rows[i].provider);
		assert_true(rows[i].good || strstr(err.msg, "'s'"));
	}
}

static void a_part_of_a_configuration(void **state)
{
	static const enum hs_setting_id ids[] = {HS_S_retain_mission, HS_S_retain_chunk_size};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = bank(pool, "openai",
		"{\"retain_mission\": \"m\", \"reflect_mission\": \"r\", \"retain_chunk_size\": 7}");
	struct hs_config *part;
	struct hs_err err = {0};

	(void)state;
	assert_int_equal(hs_config_set(cfg, "llm_api_key", "secret", &err), HS_OK);
	part = hs_config_only(pool, cfg, ids, HS_COUNT(ids));
	assert_string_equal(hs_cfg_str(part, HS_S_retain_mission), "m");
	assert_int_equal(hs_cfg_int(part, HS_S_retain_chunk_size), 7);
	assert_null(hs_cfg_str(part, HS_S_reflect_mission));
	assert_null(hs_cfg_str(part, HS_S_llm_api_key));
	assert_null(hs_cfg_str(part, HS_S_llm_provider));
	assert_string_equal(hs_cfg_str(part, HS_S_retain_extraction_mode), "concise");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_given_then_the_default),
		cmocka_unit_test(what_a_strategy_sets),
		cmocka_unit_test(chunk_sizes_that_cannot_work),
		cmocka_unit_test(a_part_of_a_configuration),
	};

	return cmocka_run_group_tests_name("strategy", tests, NULL, NULL);
}
