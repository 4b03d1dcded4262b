#include "test.h"

#include <string.h>

#include "json/json.h"
#include "llm/openai.h"
#include "llm/refusal.h"

static enum hs_rc read_body(
	struct hs_pool *pool, const char *body, bool tools, struct hs_llm_reply *r, bool *retry)
{
	struct hs_llm_call call = {0};
	struct hs_err err = {0};

	memset(r, 0, sizeof(*r));
	if (tools)
		call.tools = hs_json_keep(pool, json_pack("[{s:s}]", "name", "recall"));
	return hs_openai_read(pool, &call, body, strlen(body), r, retry, &err);
}

static void test_reflect_case_60_usage_with_thoughts(void **state)
{
	static const struct {
		const char *usage;
		int64_t input, output, cached, thoughts;
	} rows[] = {
		{"{\"prompt_tokens\":1000,\"completion_tokens\":100,\"total_tokens\":1100,"
		 "\"completion_tokens_details\":{\"reasoning_tokens\":60}}",
			1000, 40, 0, 60},
		{"{\"prompt_tokens\":1000,\"completion_tokens\":100,\"total_tokens\":1160,"
		 "\"completion_tokens_details\":{\"reasoning_tokens\":60}}",
			1000, 100, 0, 60},
		{"{\"prompt_tokens\":1000,\"completion_tokens\":100,\"completion_tokens_details\":{\"reasoning_tokens\":60}}",
			1000, 40, 0, 60},
		{"{\"prompt_tokens\":10,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":8}}",
			10, 5, 8, 0},
		{"{\"prompt_tokens\":10,\"completion_tokens\":5,\"completion_tokens_details\":{\"reasoning_tokens\":9}}",
			10, 0, 0, 9},
		{"null", 0, 0, 0, 0},
		{"{\"prompt_tokens\":null,\"completion_tokens\":\"7\",\"total_tokens\":1e300}", 0,
			7, 0, 0},
		{"{\"prompt_tokens\":-5,\"completion_tokens\":[1]}", 0, 0, 0, 0},
		{"[]", 0, 0, 0, 0},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_llm_reply r;
		bool retry;
		enum hs_rc rc = read_body(pool,
			hs_pool_printf(pool,
				"{\"usage\":%s,\"choices\":[{\"message\":{\"content\":"
				"\"x\"}}]}",
				rows[i].usage),
			false, &r, &retry);

		assert_int_equal(rc, HS_OK);
		if (r.usage.input != rows[i].input || r.usage.output != rows[i].output ||
			r.usage.cached != rows[i].cached || r.usage.thoughts != rows[i].thoughts)
			fail_msg("row %zu: input %lld output %lld cached %lld thoughts %lld", i,
				(long long)r.usage.input, (long long)r.usage.output,
				(long long)r.usage.cached, (long long)r.usage.thoughts);
	}
}

static void answers_and_what_they_mean(void **state)
{
	static const struct {
		const char *body;
		bool tools;
		enum hs_rc rc;
		bool retry;
	} rows[] = {
		{"<html>no</html>", false, HS_E_LLM_REPLY, true},
		{"", false, HS_E_LLM_REPLY, true},
		{"{\"choices\":[{\"mess", false, HS_E_LLM_REPLY, true},
		{"[]", false, HS_E_LLM_REPLY, true},
		{"{\"error\":{\"message\":\"broken\"}}", false, HS_E_LLM_REPLY, false},
		{"{\"error\":{\"code\":\"context_length_exceeded\"}}", false, HS_E_LLM_OVERFLOW,
			false},
		{"{\"error\":null,\"choices\":[{\"message\":{\"content\":\"x\"}}]}", false, HS_OK,
			true},
		{"{\"choices\":[]}", false, HS_E_LLM_REPLY, true},
		{"{\"choices\":null}", false, HS_E_LLM_REPLY, true},
		{"{\"choices\":[{}]}", false, HS_E_LLM_REPLY, true},
		{"{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"stop\"}]}",
			false, HS_E_LLM_EMPTY, true},
		{"{\"choices\":[{\"message\":{\"content\":\"<think>a</think>\"}}]}", false,
			HS_E_LLM_EMPTY, true},
		{"{\"choices\":[{\"message\":{\"content\":\"\"},\"finish_reason\":\"content_filter\"}]}",
			false, HS_E_LLM_POLICY, false},
		{"{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"error\"}]}",
			false, HS_E_LLM_REPLY, true},
		{"{\"choices\":[{\"message\":{\"content\":\"{}\"},\"finish_reason\":\"length\"}]}",
			false, HS_E_LLM_LENGTH, false},
		{"{\"choices\":[{\"message\":{\"content\":null},\"finish_reason\":\"length\"}]}",
			false, HS_E_LLM_LENGTH, false},
		{"{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"length\"}]}",
			true, HS_OK, true},
		{"{\"choices\":[{\"message\":{\"content\":null}}]}", true, HS_OK, true},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_llm_reply r;
		bool retry;
		enum hs_rc rc = read_body(pool, rows[i].body, rows[i].tools, &r, &retry);

		if (rc != rows[i].rc || (rc != HS_OK && retry != rows[i].retry))
			fail_msg("row %zu: %s, retry %d", i, hs_rc_name(rc), retry);
	}
}

static void tool_arguments_are_read_or_kept(void **state)
{
	static const struct {
		const char *arguments, *want;
	} rows[] = {
		{"\"{\\\"query\\\":\\\"x\\\"}\"", "{\"query\":\"x\"}"},
		{"\"\"", "{}"},
		{"null", "{}"},
		{"\"[1]\"", "{\"_raw\":\"[1]\"}"},
		{"\"{\\\"query\\\":\"", "{\"_raw\":\"{\\\"query\\\":\"}"},
		{"{\"query\":\"y\"}", "{\"query\":\"y\"}"},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_llm_reply r;
		bool retry;

		assert_int_equal(
			read_body(pool,
				hs_pool_printf(pool,
					"{\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":"
					"[{\"id\":\"a\",\"function\":{\"name\":\"recall\",\"arguments\":%s}},{\"function\":{}},7]}}]}",
					rows[i].arguments),
				true, &r, &retry),
			HS_OK);
		assert_int_equal(r.n_calls, 1);
		assert_string_equal(r.calls[0].name, "recall");
		assert_string_equal(hs_json_text(pool, r.calls[0].args), rows[i].want);
	}
}

static void strict_schemas_are_closed(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	json_t *in = NULL, *out;
	struct hs_err err;

	(void)state;
	assert_int_equal(
		hs_json_load(pool,
			"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":1},"
			"\"b\":{\"type\":\"string\",\"enum\":[\"x\"]},\"c\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":"
			"{\"minimum\":{\"type\":\"string\"}}}},\"d\":{\"$ref\":\"#/x\",\"description\":\"gone\"}},\"required\":[\"a\",\"d\"]}",
			&in, &err),
		HS_OK);
	out = hs_json_keep(pool, hs_strict_schema(in));
	assert_string_equal(hs_json_text(pool, out),
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
		"\"b\":{\"type\":[\"string\",\"null\"],\"enum\":[\"x\",null]},\"c\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":"
		"\"object\",\"properties\":{\"minimum\":{\"type\":[\"string\",\"null\"]}},\"required\":[\"minimum\"],"
		"\"additionalProperties\":false}},\"d\":{\"$ref\":\"#/x\"}},\"required\":[\"a\",\"b\",\"c\",\"d\"],"
		"\"additionalProperties\":false}");
}

static void refusals_show_no_secret(void **state)
{
	static const struct {
		const char *body, *want;
	} rows[] = {
		{"{\"error\":{\"message\":\"Incorrect API key provided: sk-abcd1234. See https://x.example/keys?a=1 for more\"}}",
			"Incorrect API key provided: […] See […] for more"},
		{"{\"detail\":\"key top.secret is wrong\"}", "key [key] is wrong"},
		{"{\"message\":\"token abcdefgh1234567890ABCD refused\"}", "token […] refused"},
		{"{\"error\":\"This model's maximum context length is 128000 tokens\"}",
			"This model's maximum context length is 128000 tokens"},
		{"<html>", ""},
		{"{\"error\":{\"code\":5}}", ""},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_string_equal(
			hs_refusal_text(pool, rows[i].body, strlen(rows[i].body), "top.secret"),
			rows[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reflect_case_60_usage_with_thoughts),
		cmocka_unit_test(answers_and_what_they_mean),
		cmocka_unit_test(tool_arguments_are_read_or_kept),
		cmocka_unit_test(strict_schemas_are_closed),
		cmocka_unit_test(refusals_show_no_secret),
	};

	return cmocka_run_group_tests_name("llm openai", tests, NULL, NULL);
}
