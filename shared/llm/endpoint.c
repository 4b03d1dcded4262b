#include "llm/endpoint.h"

#include <string.h>

#include "json/json.h"
#include "llm/llm.h"

#define DEFAULT_MODEL "gpt-4o-mini"
#define REFLECT_TIMEOUT_S 30

static const struct hs_provider providers[] = {
	{"openai", "https://api.openai.com/v1", true, false, false, false},
	{"groq", "https://api.groq.com/openai/v1", true, false, false, false},
	{"deepseek", "https://api.deepseek.com", true, false, false, false},
	{"openrouter", "https://openrouter.ai/api/v1", true, false, false, false},
	{"ollama", "http://localhost:11434/v1", false, true, true, true},
	{"lmstudio", "http://localhost:1234/v1", false, true, true, true},
};

static const char *const op_names[] = {
	[HS_OP_RETAIN] = "retain",
	[HS_OP_REFLECT] = "reflect",
	[HS_OP_CONSOLIDATION] = "consolidation",
	[HS_OP_REFRESH] = "mental_model_refresh",
};

/* One value of the settings: its own setting for each operation, then the general one. */
struct value {
	enum hs_setting_id own[HS_OP_GENERAL], general;
};
#define VALUE(x)                                                                                   \
	{                                                                                          \
		{HS_S_retain_llm_##x, HS_S_reflect_llm_##x, HS_S_consolidation_llm_##x,            \
			HS_S_mental_model_refresh_llm_##x},                                        \
			HS_S_llm_##x                                                               \
	}

static const struct value v_model = VALUE(model);
static const struct value v_key = VALUE(api_key);
static const struct value v_base_url = VALUE(base_url);
static const struct value v_timeout = VALUE(timeout);
static const struct value v_max_retries = VALUE(max_retries);
static const struct value v_initial_backoff = VALUE(initial_backoff);
static const struct value v_max_backoff = VALUE(max_backoff);
static const struct value v_max_concurrent = VALUE(max_concurrent);
static const struct value v_reasoning_effort = VALUE(reasoning_effort);
static const struct value v_extra_body = VALUE(extra_body);

static bool is_set(const struct hs_config *cfg, enum hs_setting_id id)
{
	if (hs_cfg_null(cfg, id))
		return false;
	return hs_settings[id].type != HS_ST_STR || !hs_str_blank(hs_cfg_str(cfg, id));
}

/* A refresh asks reflect's setting before the general one. */
static enum hs_setting_id pick(
	const struct hs_config *cfg, enum hs_llm_op op, const struct value *v)
{
	if (op == HS_OP_GENERAL)
		return v->general;
	if (is_set(cfg, v->own[op]))
		return v->own[op];
	if (op == HS_OP_REFRESH && is_set(cfg, v->own[HS_OP_REFLECT]))
		return v->own[HS_OP_REFLECT];
	return v->general;
}

enum hs_llm_op hs_llm_op_find(const char *name)
{
	for (size_t i = 0; i < HS_COUNT(op_names); i++)
		if (hs_str_eq(op_names[i], name))
			return (enum hs_llm_op)i;
	return HS_OP_GENERAL;
}

static const struct hs_provider *provider_find(const char *name)
{
	for (size_t i = 0; i < HS_COUNT(providers); i++)
		if (hs_str_eq(providers[i].name, name))
			return &providers[i];
	return NULL;
}

const char *hs_url_join(struct hs_pool *pool, const char *base, const char *path)
{
	size_t n = strcspn(base, "?#");
	const char *query = base[n] == '?' ? base + n : "";

	while (n && base[n - 1] == '/')
		n--;
	return hs_pool_printf(pool, "%.*s%s%s", (int)n, base, path, query);
}

const char *hs_url_host(struct hs_pool *pool, const char *url)
{
	const char *host = strstr(url, "://"), *at;
	char *text;

	if (!host)
		return "";
	host += 3;
	text = hs_pool_strndup(pool, host, strcspn(host, "/?#"));
	at = strrchr(text, '@');
	text = hs_pool_strdup(pool, at ? at + 1 : text);
	if (*text != '[')
		text[strcspn(text, ":")] = '\0';
	return hs_str_lower_ascii(pool, text);
}

static bool http_address(const char *url)
{
	for (const char *s = url; *s; s++)
		if ((unsigned char)*s <= 0x20 || *s == 0x7f)
			return false;
	return (hs_str_starts(url, "http://") || hs_str_starts(url, "https://")) &&
	       *(strstr(url, "://") + 3);
}

/* "http://host:1234" of a local server means its /v1. */
static const char *with_version(struct hs_pool *pool, const char *base)
{
	const char *path = strchr(strstr(base, "://") + 3, '/');

	if (path && path[1] && path[1] != '?')
		return base;
	return hs_url_join(pool, base, "/v1");
}

static enum hs_rc read_address(struct hs_pool *pool, const struct hs_config *cfg,
	struct hs_endpoint *e, struct hs_err *err)
{
	enum hs_setting_id id = pick(cfg, e->op, &v_base_url);
	const char *base =
		is_set(cfg, id) ? hs_str_trim(pool, hs_cfg_str(cfg, id)) : e->provider->base_url;

	if (!http_address(base))
		return hs_fail(
			err, HS_E_CONFIG, "%s is no http or https address", hs_settings[id].name);
	if (e->provider->bare_host_v1)
		base = with_version(pool, base);
	e->host = hs_url_host(pool, base);
	e->native = hs_str_eq(e->host, hs_url_host(pool, e->provider->base_url));
	e->chat_url = hs_url_join(pool, base, "/chat/completions");
	id = pick(cfg, e->op, &v_key);
	e->key = is_set(cfg, id) ? hs_str_trim(pool, hs_cfg_str(cfg, id)) : NULL;
	if (!e->key && e->provider->needs_key && e->native)
		return hs_fail(err, HS_E_CONFIG,
			"%s is not set; provider %s needs a key at its own address",
			hs_settings[id].name, e->provider_name);
	return HS_OK;
}

static bool plain_line(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static enum hs_rc read_headers(struct hs_pool *pool, const struct hs_config *cfg,
	struct hs_endpoint *e, struct hs_err *err)
{
	json_t *headers = hs_cfg_json(cfg, HS_S_llm_default_headers), *v;
	const char *name;

	json_object_foreach(headers, name, v) {
		const char *text = json_is_string(v) ? json_string_value(v) : hs_json_text(pool, v);

		if (!*name || strpbrk(name, ": \t") || !plain_line(name) || !plain_line(text))
			return hs_fail(
				err, HS_E_CONFIG, "llm_default_headers: a header cannot be sent");
		hs_strs_add(pool, &e->headers, hs_pool_printf(pool, "%s: %s", name, text));
	}
	if (e->key && !plain_line(e->key))
		return hs_fail(err, HS_E_CONFIG, "the model key holds a control character");
	return HS_OK;
}

static int64_t timeout_ms(const struct hs_config *cfg, enum hs_llm_op op)
{
	enum hs_setting_id own = op == HS_OP_GENERAL ? v_timeout.general : v_timeout.own[op];
	double seconds;

	if (op != HS_OP_GENERAL && is_set(cfg, own))
		seconds = hs_cfg_num(cfg, own);
	else if (op == HS_OP_REFLECT && !hs_cfg_explicit(cfg, HS_S_llm_timeout))
		seconds = REFLECT_TIMEOUT_S;
	else
		seconds = hs_cfg_num(cfg, HS_S_llm_timeout);
	return seconds < 0.001 ? 1 : (int64_t)(seconds * 1000);
}

/* Is response_format sent? The setting, else as the provider does. */
static bool json_mode(const struct hs_config *cfg, const struct hs_provider *provider)
{
	if (!hs_cfg_null(cfg, HS_S_llm_openai_compatible_json_mode))
		return hs_cfg_bool(cfg, HS_S_llm_openai_compatible_json_mode);
	return !provider || !provider->no_json_mode;
}

static void read_limits(struct hs_pool *pool, const struct hs_config *cfg, struct hs_endpoint *e)
{
	enum hs_setting_id id = pick(cfg, e->op, &v_reasoning_effort);

	e->timeout_ms = timeout_ms(cfg, e->op);
	e->connect_ms = (int64_t)(hs_cfg_num(cfg, HS_S_llm_connect_timeout) * 1000);
	e->max_retries = hs_cfg_int(cfg, pick(cfg, e->op, &v_max_retries));
	e->initial_backoff_s = hs_cfg_num(cfg, pick(cfg, e->op, &v_initial_backoff));
	e->max_backoff_s = hs_cfg_num(cfg, pick(cfg, e->op, &v_max_backoff));
	e->reasoning_effort = is_set(cfg, id) ? hs_cfg_str(cfg, id) : NULL;
	id = pick(cfg, e->op, &v_extra_body);
	e->extra_body = hs_cfg_null(cfg, id) ? NULL : hs_cfg_json(cfg, id);
	e->json_mode = json_mode(cfg, e->provider);
	e->cache_affinity = hs_cfg_str(cfg, HS_S_llm_cache_affinity);
	e->slots = hs_slots_new(pool, NULL, "", 0);
}

static void read_slots(struct hs_pool *pool, const struct hs_config *cfg, struct hs_endpoint *e)
{
	enum hs_setting_id id =
		e->op == HS_OP_GENERAL ? v_max_concurrent.general : v_max_concurrent.own[e->op];
	const char *name = e->op == HS_OP_GENERAL ? "all" : op_names[e->op];

	if (!hs_cfg_null(cfg, id))
		e->slots = hs_slots_new(
			pool, hs_cfg_str(cfg, HS_S_run_dir), name, hs_cfg_int(cfg, id));
}

enum hs_rc hs_endpoint_read(struct hs_pool *pool, const struct hs_config *cfg, enum hs_llm_op op,
	struct hs_endpoint *ret, struct hs_err *err)
{
	const char *name = hs_cfg_llm_provider(cfg, op == HS_OP_GENERAL ? NULL : op_names[op]);
	enum hs_setting_id id = pick(cfg, op, &v_model);
	struct hs_endpoint e = {.op = op, .provider_name = name, .provider = provider_find(name)};

	e.model = is_set(cfg, id) ? hs_str_trim(pool, hs_cfg_str(cfg, id)) : DEFAULT_MODEL;
	read_limits(pool, cfg, &e);
	read_slots(pool, cfg, &e);
	e.strict = hs_llm_strict(cfg, op == HS_OP_GENERAL ? NULL : op_names[op]);
	e.usable = !hs_str_eq(name, "extractive") && !hs_str_eq(name, "none");
	if (!e.usable) {
		*ret = e;
		return HS_OK;
	}
	if (hs_str_eq(name, "anthropic"))
		return hs_fail(err, HS_E_CONFIG, "provider anthropic is not available yet");
	if (!e.provider)
		return hs_fail(err, HS_E_CONFIG, "unknown model provider '%s'", name);
	HS_TRY(read_address(pool, cfg, &e, err));
	HS_TRY(read_headers(pool, cfg, &e, err));
	*ret = e;
	return HS_OK;
}

/* An explicit null means: do not send one. */
static double temperature_of(const struct hs_config *cfg, enum hs_setting_id id)
{
	return hs_cfg_null(cfg, id) ? -1 : hs_cfg_num(cfg, id);
}

double hs_llm_temperature(const struct hs_config *cfg, const char *op)
{
	static const struct {
		const char *name;
		enum hs_setting_id id;
	} rows[] = {
		{"retain", HS_S_llm_temperature_retain},
		{"reflect", HS_S_llm_temperature_reflect},
		{"consolidation", HS_S_llm_temperature_consolidation},
		{"verification", HS_S_llm_temperature_verification},
		{"mental_model_refresh", HS_S_llm_temperature_mental_model_refresh},
	};
	enum hs_setting_id id = HS_S_llm_temperature_verification;

	for (size_t i = 0; i < HS_COUNT(rows); i++)
		if (hs_str_eq(rows[i].name, op))
			id = rows[i].id;
	if (id == HS_S_llm_temperature_mental_model_refresh && !hs_cfg_explicit(cfg, id))
		id = HS_S_llm_temperature_consolidation;
	if (!hs_cfg_explicit(cfg, id) && hs_cfg_explicit(cfg, HS_S_llm_temperature))
		id = HS_S_llm_temperature;
	return temperature_of(cfg, id);
}

bool hs_llm_strict(const struct hs_config *cfg, const char *op)
{
	static const enum hs_setting_id own[] = {
		[HS_OP_RETAIN] = HS_S_llm_strict_schema_retain,
		[HS_OP_REFLECT] = HS_S_llm_strict_schema_reflect,
		[HS_OP_CONSOLIDATION] = HS_S_llm_strict_schema_consolidation,
		[HS_OP_REFRESH] = HS_S_llm_strict_schema_reflect,
	};
	enum hs_llm_op i = hs_llm_op_find(op);

	if (!json_mode(
		    cfg, provider_find(hs_cfg_llm_provider(cfg, i == HS_OP_GENERAL ? NULL : op))))
		return false;
	if (i != HS_OP_GENERAL && !hs_cfg_null(cfg, own[i]))
		return hs_cfg_bool(cfg, own[i]);
	return hs_cfg_bool(cfg, HS_S_llm_strict_schema);
}
