/*
 * llm_call - one or many model calls of the llm floor, for tests against the scripted server.
 *
 * Input:   JSON on stdin: {"settings": {name: text}, "call": {operation, scope, messages, tools, tool,
 *          json, schema, temperature, max_tokens, run_id}, "deadline_ms": n, "cancel_ms": n,
 *          "times": n} or {"settings": …, "embed": [texts], "query": bool}.
 * Output:  one JSON line a call: {rc, msg, foreign, retry_at_us, text, raw_text, value, calls, finish,
 *          usage, provider, model, ms}; for embed {rc, msg, tag, vectors}.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "config/config.h"
#include "json/json.h"
#include "llm/embed.h"
#include "llm/llm.h"

static int64_t cancel_at_us;

static bool cancelled(void *arg)
{
	(void)arg;
	return cancel_at_us && hs_mono_us() >= cancel_at_us;
}

static json_t *read_input(struct hs_pool *pool)
{
	json_t *v = json_loadf(stdin, 0, NULL);

	if (!v) {
		fputs("input is no JSON\n", stderr);
		exit(2);
	}
	return hs_json_keep(pool, v);
}

static void print(json_t *v)
{
	json_dumpf(v, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
	json_decref(v);
}

static int fail(enum hs_rc rc, const struct hs_err *err)
{
	print(json_pack("{s:s, s:s}", "rc", hs_rc_name(rc), "msg", err->msg));
	return 0;
}

static json_t *calls_json(const struct hs_llm_reply *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n_calls; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:O, s:s}", "id", r->calls[i].id, "name",
				      r->calls[i].name, "args", r->calls[i].args, "raw_args",
				      r->calls[i].raw_args));
	return list;
}

static void print_reply(
	enum hs_rc rc, const struct hs_err *err, const struct hs_llm_reply *r, int64_t ms)
{
	print(json_pack(
		"{s:s, s:s, s:i, s:I, s:s, s:s, s:O?, s:o, s:s, s:{s:I, s:I, s:I, s:I}, s:s, s:s, s:I}",
		"rc", hs_rc_name(rc), "msg", err->msg, "foreign", err->foreign, "retry_at_us",
		(json_int_t)err->retry_at_us, "text", r->text, "raw_text", r->raw_text, "value",
		r->value, "calls", calls_json(r), "finish", r->finish_reason, "usage", "input",
		(json_int_t)r->usage.input, "output", (json_int_t)r->usage.output, "cached",
		(json_int_t)r->usage.cached, "thoughts", (json_int_t)r->usage.thoughts, "provider",
		r->provider, "model", r->model, "ms", (json_int_t)ms));
}

static void chat(struct hs_llm *llm, json_t *input)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	json_t *c = hs_json_obj(input, "call");
	int64_t now = hs_mono_us(), deadline_ms = hs_json_int(input, "deadline_ms", 0);
	int64_t cancel_ms = hs_json_int(input, "cancel_ms", 0);
	struct hs_llm_reply reply;
	struct hs_err err = {0};
	struct hs_llm_call call = {
		.operation = hs_json_str_or(c, "operation", "retain"),
		.scope = hs_json_str_or(c, "scope", "retain_extract_facts"),
		.messages = hs_json_arr(c, "messages"),
		.tools = hs_json_arr(c, "tools"),
		.tool = hs_json_str(c, "tool"),
		.json = hs_json_bool(c, "json", false),
		.schema = hs_json_obj(c, "schema"),
		.temperature = hs_json_num(c, "temperature", 0),
		.max_tokens = hs_json_int(c, "max_tokens", 0),
		.max_retries = hs_json_int(c, "max_retries", -1),
		.deadline_us = deadline_ms ? now + deadline_ms * 1000 : 0,
		.cancelled = cancelled,
		.run_id = hs_json_str(c, "run_id"),
	};
	enum hs_rc rc;

	cancel_at_us = cancel_ms ? now + cancel_ms * 1000 : 0;
	rc = hs_llm_chat(llm, pool, &call, &reply, &err);
	print_reply(rc, &err, &reply, (hs_mono_us() - now) / 1000);
}

static int embed(struct hs_pool *pool, const struct hs_config *cfg, json_t *input)
{
	struct hs_strs texts = hs_json_strs(pool, hs_json_arr(input, "embed"));
	struct hs_vec *v = HS_NEW_ARRAY(pool, struct hs_vec, texts.n + 1);
	json_t *vectors = json_array();
	struct hs_embedder *e;
	struct hs_err err = {0};
	enum hs_rc rc = hs_embedder_new(pool, cfg, &e, &err);

	if (rc != HS_OK)
		return fail(rc, &err);
	rc = hs_embed(e, pool, &texts, hs_json_bool(input, "query", false), 0, v, &err);
	for (size_t i = 0; rc == HS_OK && i < texts.n; i++) {
		json_t *numbers = json_array();

		for (size_t k = 0; k < v[i].dim; k++)
			json_array_append_new(numbers, json_real(v[i].v[k]));
		json_array_append_new(vectors, numbers);
	}
	print(json_pack("{s:s, s:s, s:s, s:o}", "rc", hs_rc_name(rc), "msg", err.msg, "tag",
		hs_embedder_tag(e), "vectors", vectors));
	return 0;
}

int main(void)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	json_t *input = read_input(pool), *v;
	struct hs_config *cfg = hs_config_defaults(pool);
	struct hs_err err = {0};
	struct hs_llm *llm;
	const char *name;
	enum hs_rc rc;

	json_object_foreach(hs_json_obj(input, "settings"), name, v)
		if ((rc = hs_config_set(cfg, name, json_string_value(v), &err)) != HS_OK)
			return fail(rc, &err);
	if (hs_json_arr(input, "embed"))
		return embed(pool, cfg, input);
	rc = hs_llm_new(pool, cfg, &llm, &err);
	if (rc != HS_OK)
		return fail(rc, &err);
	for (int64_t i = hs_json_int(input, "times", 1); i > 0; i--)
		chat(llm, input);
	return 0;
}
