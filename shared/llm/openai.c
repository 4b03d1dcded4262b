#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "llm/openai.h"

#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "json/json.h"
#include "llm/clean.h"
#include "llm/refusal.h"

#define REASONING_CAP 16000
#define GROQ_SEED 4242

static bool has_any(const char *model, const char *const *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasestr(model, parts[i]))
			return true;
	return false;
}

static bool is_deepseek(const struct hs_endpoint *e)
{
	return hs_str_eq(e->provider_name, "deepseek") || strcasestr(e->model, "deepseek");
}

static bool is_reasoning(const struct hs_endpoint *e)
{
	static const char *const names[] = {"gpt-5", "gpt-6", "o1", "o3"};
	static const char *const deepseek[] = {"v4-pro", "reasoner", "r1", "thinking"};

	if (is_deepseek(e))
		return has_any(e->model, deepseek, HS_COUNT(deepseek));
	return has_any(e->model, names, HS_COUNT(names));
}

static bool new_cap_key(const struct hs_endpoint *e)
{
	if (hs_str_eq(e->provider_name, "openai") && e->native)
		return true;
	return hs_str_ends(e->host, ".openai.azure.com") || hs_str_eq(e->provider_name, "groq") ||
	       is_reasoning(e);
}

bool hs_openai_sends_tool_choice(const struct hs_endpoint *e, const struct hs_llm_call *call)
{
	static const char *const deciding[] = {"deepseek", "z-ai/", "zai/"};

	return json_array_size(call->tools) && !e->provider->no_tool_choice &&
	       !has_any(e->model, deciding, HS_COUNT(deciding));
}

/* ---- request ---- */

static json_t *wire_call(struct hs_pool *pool, json_t *c)
{
	json_t *arguments = json_object_get(c, "arguments");

	if (json_object_get(c, "function"))
		return json_incref(c);
	return json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", hs_json_str_or(c, "id", ""), "type",
		"function", "function", "name", hs_json_str_or(c, "name", ""), "arguments",
		json_is_string(arguments) ? json_string_value(arguments)
		: arguments               ? hs_json_text(pool, arguments)
					  : "{}");
}

static json_t *wire_message(struct hs_pool *pool, const struct hs_endpoint *e, json_t *m)
{
	json_t *calls = hs_json_arr(m, "tool_calls"), *copy, *list, *c;
	size_t i;

	if (!json_array_size(calls))
		return json_incref(m);
	copy = json_copy(m);
	list = json_array();
	json_array_foreach(calls, i, c)
		json_array_append_new(list, wire_call(pool, c));
	json_object_set_new(copy, "tool_calls", list);
	if (!json_object_get(copy, "content"))
		json_object_set_new(copy, "content", json_null());
	if (is_deepseek(e))
		json_object_set_new(copy, "reasoning_content", json_string(""));
	return copy;
}

static json_t *wire_messages(struct hs_pool *pool, const struct hs_endpoint *e, json_t *messages)
{
	json_t *list = json_array(), *m;
	size_t i;

	json_array_foreach(messages, i, m)
		json_array_append_new(list, wire_message(pool, e, m));
	return list;
}

static enum hs_rc add_tools(json_t *body, const struct hs_endpoint *e,
	const struct hs_llm_call *call, const struct hs_openai_learnt *learnt, struct hs_err *err)
{
	json_t *tools, *t;
	size_t i;

	if (!json_array_size(call->tools))
		return HS_OK;
	tools = json_array();
	json_array_foreach(call->tools, i, t)
		if (!call->tool || hs_str_eq(hs_json_str(t, "name"), call->tool))
			json_array_append_new(
				tools, json_pack("{s:s, s:O}", "type", "function", "function", t));
	json_object_set_new(body, "tools", tools);
	if (!json_array_size(tools))
		return hs_fail(err, HS_E_INTERNAL, "the forced tool %s is not offered", call->tool);
	if (hs_openai_sends_tool_choice(e, call) && !learnt->no_tool_choice)
		json_object_set_new(body, "tool_choice", json_string("required"));
	return HS_OK;
}

static void add_cap(json_t *body, const struct hs_endpoint *e, const struct hs_llm_call *call)
{
	static const struct {
		const char *model;
		int64_t cap;
	} lower[] = {{"gpt-4o", 16384}, {"gpt-4.1", 32000}, {"gpt-4-", 32000}};
	int64_t cap = call->max_tokens;

	if (cap <= 0)
		return;
	if (is_reasoning(e) && !json_array_size(call->tools) && cap < REASONING_CAP)
		cap = REASONING_CAP;
	for (size_t i = 0; i < HS_COUNT(lower); i++)
		if (strcasestr(e->model, lower[i].model) && cap > lower[i].cap)
			cap = lower[i].cap;
	json_object_set_new(
		body, new_cap_key(e) ? "max_completion_tokens" : "max_tokens", json_integer(cap));
}

static void add_sampling(json_t *body, const struct hs_endpoint *e, const struct hs_llm_call *call,
	const struct hs_openai_learnt *learnt)
{
	static const char *const without_effort[] = {"gpt-4o", "gpt-4.1", "gpt-4-", "gpt-3.5"};

	if (call->temperature >= 0 && !is_reasoning(e))
		json_object_set_new(body, "temperature", json_real(call->temperature));
	if (learnt->effort_none)
		json_object_set_new(body, "reasoning_effort", json_string("none"));
	else if (e->reasoning_effort &&
		 !has_any(e->model, without_effort, HS_COUNT(without_effort)))
		json_object_set_new(body, "reasoning_effort", json_string(e->reasoning_effort));
	if (hs_str_eq(e->provider_name, "groq"))
		json_object_set_new(body, "seed", json_integer(GROQ_SEED));
}

static void add_format(json_t *body, const struct hs_endpoint *e, const struct hs_llm_call *call)
{
	if (!call->json || !e->json_mode)
		return;
	if (call->schema && e->strict)
		json_object_set_new(body, "response_format",
			json_pack("{s:s, s:{s:s, s:b, s:o}}", "type", "json_schema", "json_schema",
				"name", "response", "strict", 1, "schema",
				hs_strict_schema(call->schema)));
	else
		json_object_set_new(
			body, "response_format", json_pack("{s:s}", "type", "json_object"));
	if (hs_str_eq(e->provider_name, "openrouter"))
		json_object_set_new(body, "provider", json_pack("{s:b}", "require_parameters", 1));
}

/* The run's id as 32 hex digits; NULL when it has not that many. */
static const char *affinity_id(struct hs_pool *pool, const char *run_id)
{
	char digits[33];
	size_t n = 0;

	for (const char *s = run_id ? run_id : ""; *s && n < 32; s++)
		if (strchr("0123456789abcdef", *s | 0x20) && *s != '-')
			digits[n++] = (char)(*s | 0x20);
	digits[n] = '\0';
	return n == 32 ? hs_pool_strdup(pool, digits) : NULL;
}

static bool host_is(const char *host, const char *domain)
{
	size_t n = strlen(host), d = strlen(domain);

	return n >= d && !strcmp(host + n - d, domain) && (n == d || host[n - d - 1] == '.');
}

/* "openai_prompt_cache_key", "xai_conv_id" or "none". */
static const char *affinity(const struct hs_endpoint *e)
{
	if (e->cache_affinity && !hs_str_eq(e->cache_affinity, "auto"))
		return e->cache_affinity;
	if (host_is(e->host, "openai.com"))
		return "openai_prompt_cache_key";
	if (host_is(e->host, "x.ai") || host_is(e->host, "grok.com"))
		return "xai_conv_id";
	return "none";
}

enum hs_rc hs_openai_body(struct hs_pool *pool, const struct hs_endpoint *e,
	const struct hs_llm_call *call, const struct hs_openai_learnt *learnt,
	const char **ret_body, struct hs_err *err)
{
	json_auto_t *body = json_object();
	const char *id = affinity_id(pool, call->run_id), *text;

	json_object_set_new(body, "model", json_string(e->model));
	json_object_set_new(body, "messages", wire_messages(pool, e, call->messages));
	add_sampling(body, e, call, learnt);
	add_cap(body, e, call);
	add_format(body, e, call);
	HS_TRY(add_tools(body, e, call, learnt, err));
	if (id && hs_str_eq(affinity(e), "openai_prompt_cache_key"))
		json_object_set_new(body, "prompt_cache_key", json_string(id));
	if (e->extra_body)
		json_object_update(body, e->extra_body);
	text = hs_json_text(pool, body);
	if (strlen(text) > HS_PROMPT_MAX)
		return hs_fail(err, HS_E_LIMIT, "the request to the model is longer than %zu bytes",
			HS_PROMPT_MAX);
	*ret_body = text;
	return HS_OK;
}

static bool names_header(const struct hs_strs *lines, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < lines->n; i++)
		if (!strncasecmp(lines->v[i], name, n) && lines->v[i][n] == ':')
			return true;
	return false;
}

struct hs_strs hs_openai_headers(
	struct hs_pool *pool, const struct hs_endpoint *e, const struct hs_llm_call *call)
{
	const char *id = affinity_id(pool, call->run_id);
	struct hs_strs lines = {0};

	hs_strs_add(pool, &lines, "Content-Type: application/json");
	if (e->key && !names_header(&e->headers, "authorization"))
		hs_strs_add(pool, &lines, hs_pool_printf(pool, "Authorization: Bearer %s", e->key));
	hs_strs_add(pool, &lines, hs_pool_printf(pool, "X-Hindsight-Operation: %s", call->scope));
	if (id && hs_str_eq(affinity(e), "xai_conv_id") &&
		!names_header(&e->headers, "x-grok-conv-id"))
		hs_strs_add(pool, &lines, hs_pool_printf(pool, "x-grok-conv-id: %s", id));
	for (size_t i = 0; i < e->headers.n; i++)
		hs_strs_add(pool, &lines, e->headers.v[i]);
	return lines;
}

/* ---- strict schema ---- */

static void make_nullable(json_t *schema)
{
	json_t *type = json_object_get(schema, "type"), *list, *v;
	json_t *values = json_object_get(schema, "enum");
	bool has_null = false;
	size_t i;

	if (!type)
		return;
	list = json_is_array(type) ? json_copy(type) : json_pack("[O]", type);
	json_array_foreach(list, i, v)
		has_null |= hs_str_eq(json_string_value(v), "null");
	if (!has_null)
		json_array_append_new(list, json_string("null"));
	json_object_set_new(schema, "type", list);
	if (json_is_array(values) && !has_null)
		json_array_append_new(values, json_null());
}

static bool is_required(json_t *required, const char *name)
{
	json_t *v;
	size_t i;

	json_array_foreach(required, i, v)
		if (hs_str_eq(json_string_value(v), name))
			return true;
	return false;
}

static void close_object(json_t *schema)
{
	json_t *properties = hs_json_obj(schema, "properties"), *required = json_array(), *v;
	const char *name;

	json_object_foreach(properties, name, v) {
		if (!is_required(hs_json_arr(schema, "required"), name))
			make_nullable(v);
		json_array_append_new(required, json_string(name));
	}
	json_object_set_new(schema, "required", required);
	json_object_set_new(schema, "additionalProperties", json_false());
}

static void strict_walk(json_t *v)
{
	static const char *const refused[] = {
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
	json_t *member, *ref = json_object_get(v, "$ref");
	const char *key;
	size_t i;

	if (json_is_string(ref)) {
		json_incref(ref);
		json_object_clear(v);
		json_object_set_new(v, "$ref", ref);
		return;
	}
	json_array_foreach(v, i, member)
		strict_walk(member);
	json_object_foreach(v, key, member)
		if (!hs_str_eq(key, "enum") && !hs_str_eq(key, "const") &&
			!hs_str_eq(key, "required"))
			strict_walk(member);
	if (!json_is_object(v))
		return;
	for (i = 0; i < HS_COUNT(refused); i++)
		if (json_is_number(json_object_get(v, refused[i])))
			json_object_del(v, refused[i]);
	if (hs_json_obj(v, "properties"))
		close_object(v);
}

json_t *hs_strict_schema(json_t *schema)
{
	json_t *copy = json_deep_copy(schema);

	strict_walk(copy);
	return copy;
}

/* ---- reply ---- */

static int64_t count(json_t *obj, const char *key)
{
	json_t *v = json_object_get(obj, key);
	double d = json_is_number(v) ? json_number_value(v) : 0;
	int64_t parsed;

	if (json_is_string(v) && hs_str_to_i64(json_string_value(v), &parsed))
		d = (double)parsed;
	return d > 0 && d < 1e15 ? (int64_t)d : 0;
}

static struct hs_llm_usage read_usage(json_t *body)
{
	json_t *usage = hs_json_obj(body, "usage");
	int64_t completion = count(usage, "completion_tokens"),
		total = count(usage, "total_tokens"), low, high;
	struct hs_llm_usage u = {
		.input = count(usage, "prompt_tokens"),
		.cached = count(hs_json_obj(usage, "prompt_tokens_details"), "cached_tokens"),
		.thoughts =
			count(hs_json_obj(usage, "completion_tokens_details"), "reasoning_tokens"),
		.output = completion,
	};

	if (!u.thoughts)
		return u;
	low = completion > u.thoughts ? completion - u.thoughts : 0;
	high = total - u.thoughts - u.input;
	if (high < low)
		high = low;
	u.output = !total ? low : completion < high ? completion : high;
	return u;
}

static json_t *arguments_of(struct hs_pool *pool, const char *raw)
{
	struct hs_err ignored = {0};
	json_t *v = NULL;

	if (hs_str_blank(raw))
		return hs_json_keep(pool, json_object());
	if (hs_json_parse(pool, raw, strlen(raw), &v, NULL, &ignored) == HS_OK && json_is_object(v))
		return v;
	return hs_json_keep(pool, json_pack("{s:s}", "_raw", raw));
}

static void read_calls(struct hs_pool *pool, json_t *message, struct hs_llm_reply *ret)
{
	json_t *calls = hs_json_arr(message, "tool_calls"), *c;
	size_t i;

	ret->calls = HS_NEW_ARRAY(pool, struct hs_llm_tool_call, json_array_size(calls) + 1);
	json_array_foreach(calls, i, c) {
		json_t *function = hs_json_obj(c, "function"),
		       *arguments = json_object_get(function, "arguments");
		struct hs_llm_tool_call *to = &ret->calls[ret->n_calls];
		const char *name = hs_json_str(function, "name");

		if (hs_str_blank(name))
			continue;
		to->id = hs_json_str_or(c, "id", "");
		to->name = name;
		to->raw_args = json_is_string(arguments)   ? json_string_value(arguments)
			       : json_is_object(arguments) ? hs_json_text(pool, arguments)
							   : "";
		to->args = arguments_of(pool, to->raw_args);
		ret->n_calls++;
	}
}

/* Text of the message; a list of parts is joined. */
static const char *read_content(struct hs_pool *pool, json_t *message)
{
	json_t *content = json_object_get(message, "content"), *part;
	const char *text = "";
	size_t i;

	if (json_is_string(content))
		return json_string_value(content);
	json_array_foreach(content, i, part)
		text = hs_pool_printf(pool, "%s%s", text, hs_json_str_or(part, "text", ""));
	return text;
}

static enum hs_rc read_choice(struct hs_pool *pool, const struct hs_llm_call *call, json_t *choice,
	struct hs_llm_reply *ret, bool *ret_retry, struct hs_err *err)
{
	json_t *message = hs_json_obj(choice, "message");
	bool tools = json_array_size(call->tools) > 0;

	ret->finish_reason = hs_json_str_or(choice, "finish_reason", "");
	ret->raw_text = read_content(pool, message);
	ret->text = hs_clean_reasoning(pool, ret->raw_text);
	read_calls(pool, message, ret);
	*ret_retry = true;
	if (hs_str_eq(ret->finish_reason, "error"))
		return hs_fail(err, HS_E_LLM_REPLY, "the model's reply is marked as an error");
	if (!tools && hs_str_eq(ret->finish_reason, "length")) {
		*ret_retry = false;
		return hs_fail(
			err, HS_E_LLM_LENGTH, "the model's reply was cut off at its length limit");
	}
	if (!message)
		return hs_fail(err, HS_E_LLM_REPLY, "the model's reply has no message");
	if ((tools && ret->n_calls) || *ret->text)
		return HS_OK;
	if (hs_str_eq(ret->finish_reason, "content_filter")) {
		*ret_retry = false;
		return hs_fail(err, HS_E_LLM_POLICY, "the model provider refused the content");
	}
	if (tools)
		return HS_OK;
	return hs_fail(err, HS_E_LLM_EMPTY,
		"the model returned an empty reply (provider returned nothing)");
}

enum hs_rc hs_openai_read(struct hs_pool *pool, const struct hs_llm_call *call, const char *body,
	size_t n, struct hs_llm_reply *ret, bool *ret_retry, struct hs_err *err)
{
	struct hs_err ignored = {0};
	json_t *value = NULL, *choice, *error;

	ret->text = ret->raw_text = ret->finish_reason = "";
	*ret_retry = true;
	if (hs_json_parse(pool, body, n, &value, NULL, &ignored) != HS_OK || !json_is_object(value))
		return hs_fail(err, HS_E_LLM_REPLY, "the model service's answer is not JSON");
	ret->usage = read_usage(value);
	choice = json_array_get(hs_json_arr(value, "choices"), 0);
	error = json_object_get(value, "error");
	if (json_is_object(error) || json_is_string(error)) {
		*ret_retry = false;
		return hs_fail(err, hs_refusal_kind(hs_json_text(pool, error), HS_E_LLM_REPLY),
			"the model service answered with an error");
	}
	if (!json_is_object(choice))
		return hs_fail(err, HS_E_LLM_REPLY, "the model's reply has no choices");
	return read_choice(pool, call, choice, ret, ret_retry, err);
}
