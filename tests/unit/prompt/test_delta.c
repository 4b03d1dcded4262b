/* The prompt of the edit call: order, notices, user text as it is. */
#include "test.h"

#include <string.h>

#include "json/json.h"
#include "llm/openai.h"
#include "prompt/delta.h"

#define NASTY "100 %s of {tokens} {{limit}} \"quotes\" %n \\ \xf0\x9f\x98\x80"

static struct hs_delta_prompt_in input(struct hs_pool *pool)
{
	return (struct hs_delta_prompt_in){
		.cfg = hs_config_defaults(pool),
		.name = "Name " NASTY,
		.topic = "Topic " NASTY,
		.document = "{\"sections\":[]}",
		.facts = "- [world:1] fact " NASTY "\n",
		.tokens = 100,
		.max_tokens = 2048,
	};
}

static const char *user_text(struct hs_pool *pool, const struct hs_delta_prompt_in *in)
{
	struct hs_prompt p;

	hs_prompt_delta(pool, in, &p);
	return hs_message_text(pool, &p.user);
}

static void parts_stand_in_their_order(void **state)
{
	static const char *const parts[] = {"Name " NASTY, "Topic " NASTY, "{\"sections\":[]}",
		"- [world:1] fact " NASTY, "about 9000 tokens", "below about 6144 tokens", HS_NOT_SHOWN,
		"## TASK"};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_delta_prompt_in in = input(pool);
	const char *text;

	(void)state;
	in.tokens = 9000;
	in.max_tokens = 4096;
	in.hidden = true;
	text = user_text(pool, &in);
	for (size_t i = 0; i < HS_COUNT(parts); i++) {
		const char *at = strstr(text, parts[i]);

		if (!at)
			fail_msg("'%s' is missing or out of order", parts[i]);
		text = at;
	}
}

static void notices_follow_the_length(void **state)
{
	static const struct {
		int64_t tokens;
		const char *has, *has_not;
	} cases[] = {
		{1600, "below about 3072 tokens", "at most"},
		{1639, "1639 of at most 2048 tokens", "Make room"},
		{2047, "2047 of at most 2048 tokens", "Make room"},
		{2048, "its limit is 2048", "of at most"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_delta_prompt_in in = input(pool);
		const char *text;

		in.tokens = cases[i].tokens;
		text = user_text(pool, &in);
		assert_non_null(strstr(text, cases[i].has));
		assert_null(strstr(text, cases[i].has_not));
		assert_null(strstr(text, HS_NOT_SHOWN));
	}
}

static void the_system_message_is_the_same_for_all_banks(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_delta_prompt_in in = input(pool);
	struct hs_prompt a, b;
	const char *text, *schema;

	(void)state;
	hs_prompt_delta(pool, &in, &a);
	text = hs_message_text(pool, &a.system);
	schema = hs_json_text(pool, a.schema);
	in.name = in.topic = in.document = in.facts = "other";
	in.tokens = 1;
	hs_prompt_delta(pool, &in, &b);
	assert_string_equal(hs_message_text(pool, &b.system), text);
	assert_non_null(strstr(text, schema));
	assert_non_null(strstr(text, "json"));
	in.strict = true;
	hs_prompt_delta(pool, &in, &b);
	assert_null(strstr(hs_message_text(pool, &b.system), schema));
}

/* Providers that enforce schemas want every key required and no bounds. */
static void the_schema_is_strict_as_it_is(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_delta_prompt_in in = input(pool);
	struct hs_prompt p;

	(void)state;
	hs_prompt_delta(pool, &in, &p);
	assert_true(json_equal(hs_json_keep(pool, hs_strict_schema(p.schema)), p.schema));
	assert_null(strstr(hs_json_text(pool, p.schema), "minimum"));
}

static void facts_are_single_lines(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	assert_string_equal(hs_delta_fact_line(pool, "world", "7", "a\r\nb\n- [world:8] c"),
		"- [world:7] a  b - [world:8] c\n");
}

static void the_second_question_names_every_fault(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_strs faults = {0};
	const char *text;

	(void)state;
	hs_strs_add(pool, &faults, "operation 1: " NASTY);
	hs_strs_add(pool, &faults, "operation 2: b");
	text = hs_prompt_delta_reask(pool, &faults, "- section a: A\n");
	assert_non_null(strstr(text, "- operation 1: " NASTY "\n- operation 2: b\n"));
	assert_non_null(strstr(text, "\n- section a: A\n"));
	assert_null(strstr(hs_prompt_delta_reask(pool, &faults, ""), "section a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_stand_in_their_order),
		cmocka_unit_test(notices_follow_the_length),
		cmocka_unit_test(the_system_message_is_the_same_for_all_banks),
		cmocka_unit_test(the_schema_is_strict_as_it_is),
		cmocka_unit_test(facts_are_single_lines),
		cmocka_unit_test(the_second_question_names_every_fault),
	};

	return cmocka_run_group_tests_name("delta", tests, NULL, NULL);
}
