#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "prompt/prompt.h"

#define NASTY "100 %s of {users} {{and}} \"quotes\" %n \\ 😀"

static struct hs_config *config(struct hs_pool *pool, const char *name, const char *value)
{
	struct hs_config *cfg = hs_config_defaults(pool);
	struct hs_err err = {0};

	if (name && hs_config_set(cfg, name, value, &err) != HS_OK)
		fail_msg("%s", err.msg);
	return cfg;
}

static void set(struct hs_config *cfg, const char *name, const char *value)
{
	struct hs_err err = {0};

	if (hs_config_set(cfg, name, value, &err) != HS_OK)
		fail_msg("%s", err.msg);
}

/* The invariants that hold for every message of every prompt. */
static void check_message(const struct hs_message *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct hs_block *b = &m->v[i];

		if (b->active != (*b->text != '\0'))
			fail_msg("%s block %zu: active %d with text '%.40s'", m->role, i, b->active,
				b->text);
		assert_non_null(b->field);
		assert_non_null(b->section);
		assert_non_null(b->kind);
	}
}

static size_t count_of(const char *text, const char *part)
{
	size_t n = 0;

	for (const char *s = text; (s = strstr(s, part)) != NULL; s += strlen(part))
		n++;
	return n;
}

static const struct hs_block *block_of(const struct hs_message *m, const char *field)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->v[i].field, field))
			return &m->v[i];
	return NULL;
}

static size_t blocks_of(const struct hs_message *m, const char *field)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += !strcmp(m->v[i].field, field);
	return n;
}

static struct hs_prompt retain(struct hs_pool *pool, const struct hs_config *cfg)
{
	struct hs_retain_prompt_in in = {.cfg = cfg,
		.chunk = "The chunk.",
		.context = "a letter",
		.chunk_no = 2,
		.n_chunks = 3,
		.event_text = "2026-01-05T23:30:00-08:00"};
	struct hs_prompt p;

	assert_true(hs_time_parse(in.event_text, &in.event_us));
	hs_prompt_retain(pool, &in, &p);
	check_message(&p.system);
	check_message(&p.user);
	return p;
}

static struct hs_reflect_prompt_in reflect_in(const struct hs_config *cfg)
{
	return (struct hs_reflect_prompt_in){.cfg = cfg,
		.bank_name = "My bank",
		.skepticism = 3,
		.literalism = 3,
		.empathy = 3,
		.with_models = true,
		.with_observations = true,
		.with_recall = true,
		.with_expand = true,
		.budget = "low",
		.question = "Who is Ana?",
		.now_us = INT64_C(1750000000000000),
		.max_tokens = 4096};
}

static void test_reflect_case_47_retain_mission_comes_first(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_prompt p = retain(pool, config(pool, NULL, NULL));
	const char *text;

	(void)state;
	assert_string_equal(p.user.v[0].field, "retain_mission");
	assert_false(p.user.v[0].active);
	assert_null(p.user.v[0].value);
	assert_true(p.user.v[0].editable);
	p = retain(pool, config(pool, "retain_mission", NASTY "\n=====\n=======\nlast"));
	assert_true(p.user.v[0].active);
	assert_true(p.user.v[0].config);
	text = hs_message_text(pool, &p.user);
	assert_int_equal(strncmp(text, "FOCUS", 5), 0);
	assert_non_null(strstr(text, "\n=========\n" NASTY "\n=====\n=======\nlast\n=========\n"));
	assert_null(strstr(hs_message_text(pool, &p.system), "{users}"));
}

static void retain_user_message_holds_chunk_date_and_context(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = config(pool, NULL, NULL);
	struct hs_retain_prompt_in in = {.cfg = cfg,
		.chunk = "line\x01 one %d",
		.chunk_no = 1,
		.n_chunks = 1,
		.event_us = HS_TIME_NONE};
	struct hs_prompt p = retain(pool, cfg);
	const char *text = hs_message_text(pool, &p.user);

	(void)state;
	assert_non_null(strstr(text, "Chunk: 2/3\n"));
	assert_non_null(
		strstr(text, "Event date: Monday, January 5, 2026 (2026-01-05T23:30:00-08:00)\n"));
	assert_non_null(strstr(text, "Context: a letter\n"));
	assert_non_null(strstr(text, "\n## TEXT\nThe chunk."));
	assert_non_null(strstr(text, "json"));
	in.metadata = hs_json_keep(pool, json_pack("{s:s}", "room", "%s {x}"));
	hs_prompt_retain(pool, &in, &p);
	text = hs_message_text(pool, &p.user);
	assert_non_null(
		strstr(text, "Event date: Unknown\nContext: none\nMetadata:\n- room: %s {x}\n"));
	assert_non_null(strstr(text, "\n## TEXT\nline one %d"));
}

static void test_reflect_case_48_custom_mode(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = config(pool, "retain_extraction_mode", "custom");
	struct hs_prompt plain = retain(pool, config(pool, NULL, NULL)), empty = retain(pool, cfg),
			 own;

	(void)state;
	assert_null(block_of(&plain.system, "retain_custom_instructions"));
	assert_false(block_of(&empty.system, "retain_custom_instructions")->active);
	assert_string_equal(
		hs_message_text(pool, &empty.system), hs_message_text(pool, &plain.system));
	set(cfg, "retain_custom_instructions", NASTY);
	own = retain(pool, cfg);
	assert_int_equal(count_of(hs_message_text(pool, &own.system), NASTY), 1);
	assert_string_equal(block_of(&own.system, "retain_custom_instructions")->value, NASTY);
	assert_null(strstr(hs_message_text(pool, &own.system), "## EXAMPLES"));
}

static void retain_modes_differ_and_builtin_blocks_name_the_mode(void **state)
{
	static const char *const names[] = {"concise", "verbose", "verbatim", "unheard-of"};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	const char *text[4];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct hs_config *cfg = config(pool, NULL, NULL);
		json_t *overrides =
			hs_json_keep(pool, json_pack("{s:s}", "retain_extraction_mode", names[i]));
		struct hs_config *bank = hs_config_for_bank(pool, cfg, overrides);
		struct hs_prompt p = retain(pool, bank);

		text[i] = hs_message_text(pool, &p.system);
		for (size_t k = 0; k < p.system.n; k++)
			if (!p.system.v[k].config) {
				assert_string_equal(p.system.v[k].field, "retain_extraction_mode");
				assert_string_equal(p.system.v[k].value, names[i]);
				assert_string_equal(p.system.v[k].kind, "choice");
				assert_true(p.system.v[k].has_choices && p.system.v[k].editable);
			}
	}
	assert_string_not_equal(text[0], text[1]);
	assert_string_not_equal(text[0], text[2]);
	assert_string_equal(text[0], text[3]);
	assert_null(strstr(text[2], "causal_relations"));
	assert_non_null(strstr(text[0], "causal_relations"));
}

static void chunks_mode_has_no_prompt(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_prompt p = retain(pool, config(pool, "retain_extraction_mode", "chunks"));

	(void)state;
	assert_int_equal(p.system.n, 1);
	assert_int_equal(p.user.n, 0);
	assert_false(p.system.v[0].active);
	assert_true(p.system.v[0].config && p.system.v[0].editable);
	assert_string_equal(p.system.v[0].field, "retain_extraction_mode");
	assert_null(p.schema);
}

static void retain_flags_and_labels(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = config(pool, NULL, NULL);
	json_t *labels = hs_json_keep(
		pool, json_pack("{s:[{s:s, s:[{s:s}]}], s:b}", "entity_labels", "key", "area",
			      "values", "value", "north", "entities_allow_free_form", 0));
	struct hs_prompt off, on;

	(void)state;
	off = retain(pool, cfg);
	assert_false(block_of(&off.system, "entity_labels")->active);
	assert_int_equal(
		off.system.n - 1, (size_t)(block_of(&off.system, "entity_labels") - off.system.v));
	assert_null(block_of(&off.system, "entities_allow_free_form"));
	assert_false(block_of(&off.system, "retain_optional_fact_dimensions")->active);
	assert_false(block_of(&off.system, "retain_optional_fact_dimensions")->editable);
	assert_non_null(strstr(hs_message_text(pool, &off.system), "N/A"));
	set(cfg, "retain_optional_fact_dimensions", "true");
	set(cfg, "retain_extract_causal_links", "false");
	on = retain(pool, hs_config_for_bank(pool, cfg, labels));
	assert_int_equal(blocks_of(&on.system, "entity_labels"), 2);
	assert_string_equal(block_of(&on.system, "entities_allow_free_form")->kind, "boolean");
	assert_string_equal(block_of(&on.system, "entities_allow_free_form")->value, "false");
	assert_string_equal(block_of(&on.system, "entity_labels")->kind, "complex");
	assert_non_null(strstr(hs_message_text(pool, &on.system), "north"));
	assert_null(strstr(hs_message_text(pool, &on.system), "N/A"));
	assert_null(strstr(hs_message_text(pool, &on.system), "causal_relations"));
	assert_false(block_of(&on.system, "retain_extract_causal_links")->active);
}

static void the_schema_block_stands_in_soft_mode_only(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = config(pool, NULL, NULL);
	struct hs_retain_prompt_in in = {
		.cfg = cfg, .chunk = "x", .chunk_no = 1, .n_chunks = 1, .event_us = HS_TIME_NONE};
	struct hs_prompt soft, strict;

	(void)state;
	hs_prompt_retain(pool, &in, &soft);
	in.strict = true;
	hs_prompt_retain(pool, &in, &strict);
	assert_non_null(
		strstr(hs_message_text(pool, &soft.system), hs_json_text(pool, soft.schema)));
	assert_null(strstr(hs_message_text(pool, &strict.system), "\"properties\""));
	assert_string_equal(hs_json_text(pool, soft.schema), hs_json_text(pool, strict.schema));
}

static void test_reflect_case_53_output_language_replaces_the_rule(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *plain = config(pool, NULL, NULL),
			 *latin = config(pool, "llm_output_language", "Latin %s");
	struct hs_consolidation_prompt_in con = {.cfg = plain, .free_slots = -1};
	struct hs_reflect_prompt_in ref = reflect_in(plain);
	struct hs_prompt p = retain(pool, plain);
	const struct hs_block *b = block_of(&p.system, "llm_output_language");

	(void)state;
	assert_true(b->active && b->config && !b->editable && !b->value);
	p = retain(pool, latin);
	assert_null(strstr(hs_message_text(pool, &p.system), "language of the text it comes from"));
	b = &p.system.v[p.system.n - 1];
	assert_string_equal(b->field, "llm_output_language");
	assert_string_equal(b->value, "Latin %s");
	assert_non_null(strstr(b->text, "only in Latin %s."));
	con.cfg = latin;
	hs_prompt_consolidation(pool, &con, &p);
	check_message(&p.system);
	assert_string_equal(p.system.v[p.system.n - 1].field, "llm_output_language");
	assert_int_equal(blocks_of(&p.system, "llm_output_language"), 1);
	hs_prompt_reflect(pool, &ref, &p);
	assert_int_equal(blocks_of(&p.system, "llm_output_language"), 1);
	assert_int_equal(blocks_of(&p.user, "llm_output_language"), 0);
	ref.cfg = latin;
	hs_prompt_reflect(pool, &ref, &p);
	assert_int_equal(blocks_of(&p.system, "llm_output_language"), 0);
	assert_string_equal(p.user.v[p.user.n - 1].field, "llm_output_language");
	assert_non_null(strstr(hs_prompt_closing(pool, &ref), "only in Latin %s."));
	assert_null(strstr(hs_json_text(pool, hs_json_keep(pool, hs_prompt_done_tool(pool, &ref))),
		"language of the question"));
}

static void test_reflect_case_50_consolidation_mission(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *plain = config(pool, NULL, NULL),
			 *own = config(pool, "observations_mission", NASTY);
	struct hs_consolidation_fact facts[] = {
		{"id-1", "Ana lives\nin Oslo", INT64_C(1750000000000000), HS_TIME_NONE,
			INT64_C(1750000001000000)},
		{"id-2", "Bo sails", HS_TIME_NONE, HS_TIME_NONE, HS_TIME_NONE},
	};
	struct hs_consolidation_prompt_in in = {
		.cfg = plain, .facts = facts, .n_facts = 2, .free_slots = -1};
	struct hs_prompt p, q;

	(void)state;
	hs_prompt_consolidation(pool, &in, &p);
	check_message(&p.user);
	assert_string_equal(p.user.v[0].field, "observations_mission");
	assert_true(p.user.v[0].active && p.user.v[0].config && p.user.v[0].editable);
	assert_null(p.user.v[0].value);
	assert_int_equal(strncmp(p.user.v[0].text, "## MISSION\n", 11), 0);
	assert_non_null(strstr(hs_message_text(pool, &p.user),
		"## NEW FACTS\n[id-1] Ana lives in Oslo (occurred_start="
		"2025-06-15T15:06:40+00:00, mentioned_at=2025-06-15T15:06:41+00:00)\n[id-2] Bo sails\n"));
	assert_non_null(strstr(hs_message_text(pool, &p.user), "json"));
	in.cfg = own;
	in.free_slots = 1;
	in.observations = hs_json_keep(pool, json_pack("[{s:s}]", "id", "o1"));
	hs_prompt_consolidation(pool, &in, &q);
	assert_string_equal(q.user.v[0].text, "## MISSION\n" NASTY "\n\n");
	assert_string_equal(q.user.v[0].value, NASTY);
	assert_non_null(strstr(hs_message_text(pool, &q.user), "CAPACITY"));
	assert_null(strstr(hs_message_text(pool, &p.user), "CAPACITY"));
	assert_non_null(strstr(
		hs_message_text(pool, &q.user), "## EXISTING OBSERVATIONS\n[{\"id\":\"o1\"}]"));
	assert_string_equal(hs_message_text(pool, &p.system), hs_message_text(pool, &q.system));
	in.mission = "of the scope";
	hs_prompt_consolidation(pool, &in, &q);
	assert_string_equal(q.user.v[0].text, "## MISSION\nof the scope\n\n");
}

static void test_reflect_case_35_reflect_mission_replaces_the_role(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = config(pool, NULL, NULL);
	struct hs_reflect_prompt_in in = reflect_in(cfg);
	struct hs_strs data = {0};
	struct hs_prompt p, q;

	(void)state;
	hs_prompt_reflect(pool, &in, &p);
	check_message(&p.system);
	assert_false(block_of(&p.system, "reflect_mission")->active);
	assert_non_null(strstr(hs_message_text(pool, &p.system), "You are the voice of"));
	in.mission = "  " NASTY "\n";
	hs_prompt_reflect(pool, &in, &q);
	assert_null(strstr(hs_message_text(pool, &q.system), "You are the voice of"));
	assert_int_equal(count_of(hs_message_text(pool, &q.system), NASTY), 1);
	assert_string_equal(block_of(&q.system, "reflect_mission")->value, in.mission);
	assert_int_equal(blocks_of(&q.system, "reflect_mission"), 1);
	assert_ptr_equal(block_of(&p.system, "reflect_mission") - p.system.v,
		block_of(&q.system, "reflect_mission") - q.system.v);
	assert_null(strstr(hs_message_text(pool, &q.user), "{users}"));
	assert_null(strstr(hs_prompt_closing(pool, &in), "{users}"));
	hs_strs_add(pool, &data, "{\"memories\":[]}");
	hs_prompt_synthesis(pool, &in, &data, &q);
	check_message(&q.system);
	check_message(&q.user);
	assert_int_equal(count_of(hs_message_text(pool, &q.system), NASTY), 1);
	assert_null(strstr(hs_message_text(pool, &q.user), "{users}"));
	assert_non_null(
		strstr(hs_message_text(pool, &q.user), "```json\n{\"memories\":[]}\n```\n"));
	in.mission = " \n";
	hs_prompt_reflect(pool, &in, &q);
	assert_false(block_of(&q.system, "reflect_mission")->active);
	assert_string_equal(hs_message_text(pool, &q.user), "Who is Ana?");
}

static void test_reflect_case_55_directives_stand_twice(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = config(pool, NULL, NULL);
	struct hs_directive_text d[] = {{"tone", NASTY}, {"empty", "  "}, {"short", "be brief"}};
	struct hs_reflect_prompt_in in = reflect_in(cfg);
	const char *tools;
	struct hs_prompt p;
	size_t n = 0;

	(void)state;
	hs_prompt_reflect(pool, &in, &p);
	for (size_t i = 0; i < p.system.n; i++)
		if (!strcmp(p.system.v[i].section, "directives"))
			n += p.system.v[i].active ? 100 : 1;
	assert_int_equal(n, 1);
	assert_null(strstr(hs_json_text(pool, hs_json_keep(pool, hs_prompt_done_tool(pool, &in))),
		"directive_compliance"));
	in.directives = d;
	in.n_directives = 3;
	hs_prompt_reflect(pool, &in, &p);
	n = 0;
	for (size_t i = 0; i < p.system.n; i++)
		if (!strcmp(p.system.v[i].section, "directives"))
			n += p.system.v[i].active ? 100 : 1;
	assert_int_equal(n, 200);
	assert_int_equal(count_of(hs_message_text(pool, &p.system),
				 "1. tone: " NASTY "\n2. short: be brief"),
		2);
	assert_null(strstr(hs_message_text(pool, &p.system), "empty:"));
	tools = hs_json_text(pool, hs_json_keep(pool, hs_prompt_done_tool(pool, &in)));
	assert_int_equal(count_of(tools, "2. short: be brief"), 2);
	assert_non_null(strstr(tools, "directive_compliance"));
}

static void test_reflect_case_08_only_offered_tools_are_named(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = config(pool, NULL, NULL);
	struct hs_reflect_prompt_in in = reflect_in(cfg);
	json_t *tools = hs_json_keep(pool, hs_prompt_reflect_tools(pool, &in)), *t;
	struct hs_strs names = {0};
	struct hs_prompt p;
	size_t i;

	(void)state;
	json_array_foreach(tools, i, t)
		hs_strs_add(pool, &names, hs_json_str(t, "name"));
	assert_string_equal(hs_strs_join(pool, &names, " "),
		"search_mental_models read_mental_models search_observations recall expand answer_ready done");
	in.with_recall = in.with_models = in.with_expand = false;
	hs_prompt_reflect(pool, &in, &p);
	in.with_models = true;
	assert_null(
		strstr(hs_json_text(pool, hs_json_keep(pool, hs_prompt_reflect_tools(pool, &in))),
			"recall"));
	assert_null(strstr(hs_message_text(pool, &p.system), "recall"));
	assert_null(strstr(hs_message_text(pool, &p.system), "mental_models"));
	assert_null(strstr(hs_message_text(pool, &p.system), "xpand"));
}

static void document_mode_asks_for_sections(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_reflect_prompt_in in = reflect_in(config(pool, NULL, NULL));
	json_t *done, *parameters;
	struct hs_prompt p;

	(void)state;
	in.document = true;
	in.extra_context = "Document: " NASTY;
	hs_prompt_reflect(pool, &in, &p);
	assert_non_null(strstr(hs_message_text(pool, &p.system), "Document: " NASTY));
	done = json_array_get(hs_json_keep(pool, hs_prompt_done_tool(pool, &in)), 0);
	parameters = hs_json_obj(done, "parameters");
	assert_null(hs_json_obj(hs_json_obj(parameters, "properties"), "answer"));
	assert_non_null(hs_json_obj(hs_json_obj(parameters, "properties"), "document"));
	assert_string_equal(hs_json_text(pool, hs_json_arr(parameters, "required")),
		"[\"document\",\"answer_found\"]");
	hs_prompt_rewrite(pool, &in, "{\"sections\":[]}", &p);
	assert_non_null(strstr(hs_message_text(pool, &p.user), "json"));
	assert_non_null(strstr(hs_message_text(pool, &p.user), "4096"));
}

static void test_reflect_case_45_disposition(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_reflect_prompt_in in = reflect_in(config(pool, NULL, NULL));
	struct hs_prompt p;
	const char *text;

	(void)state;
	hs_prompt_reflect(pool, &in, &p);
	text = hs_message_text(pool, &p.system);
	assert_non_null(strstr(text, "skepticism 3, literalism 3, empathy 3.\n"));
	assert_non_null(strstr(text, "Current time: Sunday, June 15, 2025, 15:06 UTC."));
	assert_non_null(strstr(text, "Name of this memory: My bank\n"));
	in.skepticism = 5;
	hs_prompt_reflect(pool, &in, &p);
	assert_non_null(strstr(hs_message_text(pool, &p.system),
		"skepticism 5, literalism 3, empathy 3. Doubts every claim"));
}

static void every_loop_text_exists(void **state)
{
	(void)state;
	for (int i = 0; i <= HS_LT_REFRESH_CONTEXT; i++)
		assert_true(
			hs_loop_text((enum hs_loop_text)i) && *hs_loop_text((enum hs_loop_text)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reflect_case_47_retain_mission_comes_first),
		cmocka_unit_test(retain_user_message_holds_chunk_date_and_context),
		cmocka_unit_test(test_reflect_case_48_custom_mode),
		cmocka_unit_test(retain_modes_differ_and_builtin_blocks_name_the_mode),
		cmocka_unit_test(chunks_mode_has_no_prompt),
		cmocka_unit_test(retain_flags_and_labels),
		cmocka_unit_test(the_schema_block_stands_in_soft_mode_only),
		cmocka_unit_test(test_reflect_case_53_output_language_replaces_the_rule),
		cmocka_unit_test(test_reflect_case_50_consolidation_mission),
		cmocka_unit_test(test_reflect_case_35_reflect_mission_replaces_the_role),
		cmocka_unit_test(test_reflect_case_55_directives_stand_twice),
		cmocka_unit_test(test_reflect_case_08_only_offered_tools_are_named),
		cmocka_unit_test(document_mode_asks_for_sections),
		cmocka_unit_test(test_reflect_case_45_disposition),
		cmocka_unit_test(every_loop_text_exists),
	};

	return cmocka_run_group_tests_name("prompt", tests, NULL, NULL);
}
