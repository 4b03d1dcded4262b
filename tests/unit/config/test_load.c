#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "config/config.h"
#include "config/internal.h"
#include "json/json.h"

struct fixture {
	struct hs_pool *pool;
	char dir[64];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->pool = hs_pool_new();
	snprintf(f->dir, sizeof(f->dir), "/tmp/hsconfXXXXXX");
	*state = f;
	return mkdtemp(f->dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", f->dir);
	hs_pool_free(&f->pool);
	free(f);
	return system(cmd) == 0 ? 0 : -1;
}

static const char *file(struct fixture *f, const char *name, const char *text)
{
	const char *path = hs_pool_printf(f->pool, "%s/%s", f->dir, name);
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	return path;
}

static struct hs_config *load(struct fixture *f, const char *text)
{
	struct hs_config *cfg = NULL;
	struct hs_err err = {0};

	if (hs_config_load(f->pool, file(f, "hindsight.yaml", text), NULL, NULL, &cfg, &err) != HS_OK)
		fail_msg("%s", err.msg);
	return cfg;
}

static const char *refusal(struct fixture *f, const char *text)
{
	struct hs_config *cfg;
	struct hs_err err = {0};

	if (hs_config_load(f->pool, text ? file(f, "bad.yaml", text) : NULL, NULL, NULL, &cfg, &err) != HS_E_CONFIG)
		fail_msg("was accepted: %s", text ? text : "environment");
	return hs_pool_strdup(f->pool, err.msg);
}

static void assert_in(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not hold \"%s\"", text, part);
}

static void every_default_fits_its_row(void **state)
{
	struct fixture *f = *state;
	struct hs_config *cfg = hs_config_defaults(f->pool);
	int bank = 0, own = 0;

	for (int i = 0; i < HS_S__MAX; i++) {
		const struct hs_setting *s = &hs_settings[i];

		assert_int_equal(hs_setting_find(s->name), i);
		assert_true(s->help && s->help[0]);
		if (!s->def)
			assert_true(s->flags & HS_SF_NULL);
		if (s->scope == HS_SC_BANK && s->flags & HS_SF_OWN)
			own++;
		else if (s->scope == HS_SC_BANK)
			bank++;
		assert_false(hs_cfg_explicit(cfg, i));
	}
	/* contract 6.1: 57 of the reference, three of ours */
	assert_int_equal(bank, 57);
	assert_int_equal(own, 3);
	assert_int_equal(hs_cfg_int(cfg, HS_S_retain_chunk_size), 3000);
	assert_null(hs_cfg_str(cfg, HS_S_llm_api_key));
}

static void keys_are_flat_or_grouped(void **state)
{
	struct hs_config *cfg = load(*state,
		"# comment\n"
		"llm:\n  provider: openai\n  model: 'm: x'\n  extra_body: {a: 1, b: [true, x, \"2\"], c: ~}\n"
		"database: {socket: /tmp/s, port: 3307}\n"
		"retain_mission: |\n  first\n  second\n"
		"webhook_allowed_hosts:\n  - a.example\n  - 10.0.0.0/8\n"
		"mcp:\n  enabled:\n    tools: [recall, reflect]\n"
		"reflect_default_options: '{\"reflect_search_observations_max_tokens\": 9}'\n"
		"default_observation_scopes: per_tag\n"
		"retain_strategies:\n  fast: {retain_chunk_size: 10}\n"
		"worker_id:\n");

	assert_string_equal(hs_cfg_llm_provider(cfg, NULL), "openai");
	assert_string_equal(hs_cfg_str(cfg, HS_S_llm_model), "m: x");
	assert_string_equal(hs_json_text(((struct fixture *)*state)->pool, hs_cfg_json(cfg, HS_S_llm_extra_body)),
		"{\"a\":1,\"b\":[true,\"x\",\"2\"],\"c\":null}");
	assert_int_equal(hs_cfg_int(cfg, HS_S_database_port), 3307);
	assert_string_equal(hs_cfg_str(cfg, HS_S_retain_mission), "first\nsecond\n");
	assert_int_equal(hs_cfg_list(cfg, HS_S_webhook_allowed_hosts).n, 2);
	assert_int_equal(hs_cfg_list(cfg, HS_S_mcp_enabled_tools).n, 2);
	assert_int_equal(hs_json_int(hs_cfg_json(cfg, HS_S_reflect_default_options),
		"reflect_search_observations_max_tokens", 0), 9);
	assert_string_equal(json_string_value(hs_cfg_json(cfg, HS_S_default_observation_scopes)), "per_tag");
	assert_int_equal(hs_json_int(hs_json_obj(hs_cfg_json(cfg, HS_S_retain_strategies), "fast"),
		"retain_chunk_size", 0), 10);
	assert_null(hs_cfg_str(cfg, HS_S_worker_id));
	assert_true(hs_cfg_explicit(cfg, HS_S_llm_model));
	assert_false(hs_cfg_explicit(cfg, HS_S_worker_id));
}

static void banks_case_58_a_bad_file_names_file_line_and_key(void **state)
{
	static const struct {
		const char *text, *where, *what;
	} rows[] = {
		{"llm_model: x\n\nfoo_bar: 1\n", "bad.yaml:3", "foo_bar"},
		{"llm:\n  modle: x\n", "bad.yaml:2", "llm_modle"},
		{"llm:\n  model:\n    a: 1\n", "bad.yaml:3", "llm_model_a"},
		{"foo:\n", "bad.yaml:1", "foo"},
		{"retain_chunk_size: big\n", "bad.yaml:1", "retain_chunk_size must be an integer, got 'big'"},
		{"retain_chunk_size: 3.5\n", "bad.yaml:1", "retain_chunk_size"},
		{"retain_chunk_size: 0\n", "bad.yaml:1", "retain_chunk_size must be at least 1"},
		{"\nenable_observations: perhaps\n", "bad.yaml:2", "enable_observations"},
		{"llm_provider: gpt\n", "bad.yaml:1", "llm_provider must be one of openai"},
		{"llm_timeout: fast\n", "bad.yaml:1", "llm_timeout"},
		{"llm_temperature: 3\n", "bad.yaml:1", "llm_temperature must be at most 2"},
		{"semantic_min_similarity: -0.1\n", "bad.yaml:1", "semantic_min_similarity"},
		{"entity_merge_min_similarity: 0\n", "bad.yaml:1", "entity_merge_min_similarity must be above 0"},
		{"llm_extra_body: '{'\n", "bad.yaml:1", "llm_extra_body"},
		{"llm_extra_body: [1]\n", "bad.yaml:1", "llm_extra_body must be an object, got list"},
		{"default_bank_template: 3\n", "bad.yaml:1", "default_bank_template"},
		{"operation_retention_days: -1\n", "bad.yaml:1", "operation_retention_days"},
		{"operation_cleanup_batch_size: 0\n", "bad.yaml:1", "operation_cleanup_batch_size"},
		{"retention_sweep_interval_seconds: -5\n", "bad.yaml:1", "retention_sweep_interval_seconds"},
		{"worker_retain_reserved_slots: -1\n", "bad.yaml:1", "worker_retain_reserved_slots"},
		{"llm_model: a\nllm: {model: b}\n", "bad.yaml:2", "llm_model: given twice"},
		{"audit_log_actions: ['a,b']\n", "bad.yaml:1", "audit_log_actions"},
		{"- a\n", "bad.yaml:1", "name: value"},
		{"a: [\n", "bad.yaml:2", ""},
		{"llm_cache_affinity: sometimes\n", "bad.yaml:1", "llm_cache_affinity"},
		{"llm_api_key_file: /nonexistent/key\n", "bad.yaml:1", "/nonexistent/key"},
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		const char *msg = refusal(*state, rows[i].text);

		assert_in(msg, rows[i].where);
		assert_in(msg, rows[i].what);
	}
}

static void combinations_that_cannot_work_stop_the_start(void **state)
{
	static const char *const rows[][2] = {
		{"worker_max_slots: 3\nworker_retain_reserved_slots: 2\n", "reserved slots"},
		{"worker_retain_reserved_slots: 1\nworker_retain_max_slots: 1\n", "both set"},
		{"retain_chunk_size: 64000\n", "retain_max_completion_tokens (64000) must exceed"},
		{"recall_budget_min: 3000\n", "recall_budget_min"},
		{"tenant_extension: x.tenant:ApiKeyTenantExtension\n", "tenant_api_key is not set"},
		{"tenant_extension: x:Other\n", "tenant_extension"},
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_in(refusal(*state, rows[i][0]), rows[i][1]);
	load(*state, "retain_chunk_size: 64000\nllm_provider: none\n");
	load(*state, "worker_max_slots: 3\nworker_retain_max_slots: 1\n");
	load(*state, "tenant_extension: x.tenant:ApiKeyTenantExtension\ntenant_api_key: k\n");
	assert_int_equal(hs_cfg_int(load(*state, "worker_retain_max_slots: 4\n"), HS_S_worker_retain_reserved_slots), 4);
}

static void the_environment_wins_over_the_file(void **state)
{
	struct hs_config *cfg;

	setenv("HINDSIGHT_API_LLM_MODEL", "from-env", 1);
	setenv("HINDSIGHT_API_RETAIN_CHUNK_SIZE", "", 1);
	setenv("HINDSIGHT_API_LLM_BASE_URL", "", 1);
	setenv("HINDSIGHT_API_ENABLE_OBSERVATIONS", "TRUE", 1);
	setenv("HINDSIGHT_API_UNHEARD_OF", "1", 1);
	setenv("HINDSIGHT_API_RETAIN_STRATEGIES", "{}", 1);
	cfg = load(*state, "llm_model: from-file\nllm_base_url: http://x/v1\nenable_observations: no\n");
	assert_string_equal(hs_cfg_str(cfg, HS_S_llm_model), "from-env");
	assert_int_equal(hs_cfg_int(cfg, HS_S_retain_chunk_size), 3000);
	assert_null(hs_cfg_str(cfg, HS_S_llm_base_url));
	assert_true(hs_cfg_bool(cfg, HS_S_enable_observations));
	/* not read from the environment */
	assert_true(hs_cfg_null(cfg, HS_S_retain_strategies));
	setenv("HINDSIGHT_API_RETAIN_CHUNK_SIZE", "x", 1);
	assert_in(refusal(*state, NULL), "HINDSIGHT_API_RETAIN_CHUNK_SIZE");
	unsetenv("HINDSIGHT_API_LLM_MODEL");
	unsetenv("HINDSIGHT_API_RETAIN_CHUNK_SIZE");
	unsetenv("HINDSIGHT_API_LLM_BASE_URL");
	unsetenv("HINDSIGHT_API_ENABLE_OBSERVATIONS");
	unsetenv("HINDSIGHT_API_UNHEARD_OF");
	unsetenv("HINDSIGHT_API_RETAIN_STRATEGIES");
}

static void secrets_may_stand_in_files_and_in_no_message(void **state)
{
	struct fixture *f = *state;
	const char *key = file(f, "key", "s3cret\n");

	assert_string_equal(hs_cfg_str(load(f, hs_pool_printf(f->pool, "llm: {api_key_file: %s}\n", key)),
		HS_S_llm_api_key), "s3cret");
	setenv("HINDSIGHT_API_DATABASE_PASSWORD_FILE", key, 1);
	assert_string_equal(hs_cfg_str(load(f, ""), HS_S_database_password), "s3cret");
	unsetenv("HINDSIGHT_API_DATABASE_PASSWORD_FILE");
	assert_in(refusal(f, hs_pool_printf(f->pool, "llm_api_key_file: %s\n", file(f, "empty", "\n"))),
		"holds no usable text");
	assert_null(strstr(refusal(f, "llm_members: hunter2\n"), "hunter2"));
	/* only secrets have such a name */
	assert_in(refusal(f, hs_pool_printf(f->pool, "llm_model_file: %s\n", key)), "llm_model_file");
}

static void temperatures_can_be_left_out(void **state)
{
	struct hs_config *cfg = load(*state, "llm_temperature_retain: none\nllm_temperature: OFF\n"
					     "llm_temperature_reflect: 0.5\n");

	assert_true(hs_cfg_null(cfg, HS_S_llm_temperature_retain));
	assert_true(hs_cfg_explicit(cfg, HS_S_llm_temperature_retain));
	assert_true(hs_cfg_null(cfg, HS_S_llm_temperature));
	assert_true(hs_cfg_explicit(cfg, HS_S_llm_temperature));
	assert_true(hs_cfg_num(cfg, HS_S_llm_temperature_reflect) == 0.5);
	assert_false(hs_cfg_explicit(cfg, HS_S_llm_temperature_consolidation));
}

static void the_file_is_searched_beside_the_program_and_in_sysconfdir(void **state)
{
	struct fixture *f = *state;
	const char *bin = hs_pool_printf(f->pool, "%s/cgi-bin", f->dir);
	const char *etc = hs_pool_printf(f->pool, "%s/etc", f->dir);
	struct hs_config *cfg = NULL;
	struct hs_err err = {0};

	assert_int_equal(mkdir(bin, 0700), 0);
	assert_int_equal(mkdir(etc, 0700), 0);
	assert_int_equal(mkdir(hs_pool_printf(f->pool, "%s/hindsight", etc), 0700), 0);
	assert_int_equal(hs_config_load(f->pool, NULL, hs_pool_printf(f->pool, "%s/p", bin), etc, &cfg, &err), HS_OK);
	assert_false(hs_cfg_explicit(cfg, HS_S_llm_model));
	file(f, "etc/hindsight/hindsight.yaml", "llm_model: etc\n");
	assert_int_equal(hs_config_load(f->pool, NULL, hs_pool_printf(f->pool, "%s/p", bin), etc, &cfg, &err), HS_OK);
	assert_string_equal(hs_cfg_str(cfg, HS_S_llm_model), "etc");
	file(f, "hindsight.yaml", "llm_model: above\n");
	assert_int_equal(hs_config_load(f->pool, NULL, hs_pool_printf(f->pool, "%s/p", bin), etc, &cfg, &err), HS_OK);
	assert_string_equal(hs_cfg_str(cfg, HS_S_llm_model), "above");
	/* two folders up, when the one above the program has none */
	assert_int_equal(hs_config_load(f->pool, NULL, hs_pool_printf(f->pool, "%s/deep/p", bin), NULL, &cfg, &err), HS_OK);
	assert_false(hs_cfg_explicit(cfg, HS_S_llm_model));
	assert_int_equal(mkdir(hs_pool_printf(f->pool, "%s/deep", bin), 0700), 0);
	assert_int_equal(hs_config_load(f->pool, NULL, hs_pool_printf(f->pool, "%s/deep/p", bin), etc, &cfg, &err), HS_OK);
	assert_string_equal(hs_cfg_str(cfg, HS_S_llm_model), "above");
	setenv("HINDSIGHT_CONFIG", file(f, "env.yaml", "llm_model: env\n"), 1);
	assert_int_equal(hs_config_load(f->pool, NULL, hs_pool_printf(f->pool, "%s/p", bin), etc, &cfg, &err), HS_OK);
	assert_string_equal(hs_cfg_str(cfg, HS_S_llm_model), "env");
	unsetenv("HINDSIGHT_CONFIG");
	assert_int_equal(hs_config_load(f->pool, "/nonexistent.yaml", NULL, etc, &cfg, &err), HS_E_CONFIG);
}

static void a_base_path_is_plain(void **state)
{
	static const char *const fine[] = {"", "/", "/hindsight", "a/b/", "/~user/mem.ory"};
	static const char *const bad[] = {"/a?b", "/a#b", "/a%20b", "/a b", "/../a", "a\\b"};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_err err = {0};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(fine); i++) {
		struct hs_config *cfg = hs_config_defaults(pool);

		assert_int_equal(hs_config_set(cfg, "base_path", fine[i], &err), HS_OK);
		assert_int_equal(hs_config_rules(cfg, &err), HS_OK);
	}
	for (size_t i = 0; i < HS_COUNT(bad); i++) {
		struct hs_config *cfg = hs_config_defaults(pool);

		assert_int_equal(hs_config_set(cfg, "base_path", bad[i], &err), HS_OK);
		assert_int_equal(hs_config_rules(cfg, &err), HS_E_CONFIG);
	}
}

static void banks_case_59_the_provider_follows_key_and_address(void **state)
{
	static const char *const rows[][4] = {
		/* file, general, retain, mental_model_refresh */
		{"", "extractive", "extractive", "extractive"},
		{"llm_base_url: http://x/v1\n", "openai", "openai", "openai"},
		{"llm_api_key: k\n", "openai", "openai", "openai"},
		{"llm_provider: none\n", "none", "none", "none"},
		{"llm_provider: NONE\nretain_llm_provider: openai\n", "none", "openai", "none"},
		{"reflect_llm_provider: anthropic\n", "extractive", "extractive", "anthropic"},
		{"retain_llm_base_url: http://x/v1\n", "extractive", "openai", "extractive"},
		{"llm_provider: extractive\nllm_api_key: k\n", "extractive", "extractive", "extractive"},
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_config *cfg = load(*state, rows[i][0]);

		assert_string_equal(hs_cfg_llm_provider(cfg, NULL), rows[i][1]);
		assert_string_equal(hs_cfg_llm_provider(cfg, "retain"), rows[i][2]);
		assert_string_equal(hs_cfg_llm_provider(cfg, "mental_model_refresh"), rows[i][3]);
	}
}

static void hostile_yaml_ends_with_an_error(void **state)
{
	struct fixture *f = *state;
	char *deep = hs_pool_alloc(f->pool, 4001);

	refusal(f, "llm_extra_body: &a {b: *a}\n");
	refusal(f, "a: &a [x,x,x,x,x,x,x,x,x]\nllm_extra_body:\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
		   "  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
		   "  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n  f: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n");
	memset(deep, '[', 4000);
	deep[4000] = '\0';
	refusal(f, hs_pool_printf(f->pool, "llm_extra_body: %s\n", deep));
	refusal(f, "{a: b}: c\n");
	refusal(f, "llm_model: \"\xFF\"\n");
	refusal(f, "llm_model: {{{\n");
}

/* conf/hindsight.yaml is made by `hindsight-admin sample-config`. */
static void the_sample_file_is_up_to_date(void **state)
{
	struct fixture *f = *state;
	const char *sample = hs_config_sample(f->pool);
	size_t n = strlen(sample);
	char *stored = hs_pool_alloc(f->pool, n + 2);
	FILE *in = fopen(HS_SOURCE_DIR "/conf/hindsight.yaml", "r");

	assert_non_null(in);
	n = fread(stored, 1, n + 1, in);
	fclose(in);
	stored[n] = '\0';
	assert_string_equal(stored, sample);
}

static void the_sample_is_readable_with_every_line_switched_on(void **state)
{
	struct fixture *f = *state;
	char *text = hs_config_sample(f->pool);
	struct hs_config *defaults = hs_config_defaults(f->pool), *cfg;

	for (char *p = text; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (p[0] == '#' && p[1] >= 'a' && p[1] <= 'z')
			p[0] = ' ';
	cfg = load(f, text);
	for (int i = 0; i < HS_S__MAX; i++) {
		json_t *a = hs_json_keep(f->pool, hs_cfg_value(cfg, i));
		json_t *b = hs_json_keep(f->pool, hs_cfg_value(defaults, i));

		if (!json_equal(a, b))
			fail_msg("%s", hs_settings[i].name);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_default_fits_its_row),
		CASE(keys_are_flat_or_grouped),
		CASE(banks_case_58_a_bad_file_names_file_line_and_key),
		CASE(combinations_that_cannot_work_stop_the_start),
		CASE(the_environment_wins_over_the_file),
		CASE(secrets_may_stand_in_files_and_in_no_message),
		CASE(temperatures_can_be_left_out),
		CASE(the_file_is_searched_beside_the_program_and_in_sysconfdir),
		CASE(a_base_path_is_plain),
		CASE(banks_case_59_the_provider_follows_key_and_address),
		CASE(hostile_yaml_ends_with_an_error),
		CASE(the_sample_file_is_up_to_date),
		CASE(the_sample_is_readable_with_every_line_switched_on),
	};

	return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
