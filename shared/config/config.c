#include "config/config.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "config/internal.h"
#include "json/json.h"

struct hs_config *hs_config_defaults(struct hs_pool *pool)
{
	struct hs_config *cfg = HS_NEW(pool, struct hs_config);

	cfg->pool = pool;
	for (int i = 0; i < HS_S__MAX; i++) {
		struct hs_err err = {0};

		if (hs_value_from_text(
			    pool, &hs_settings[i], hs_settings[i].def, &cfg->v[i], &err) != HS_OK)
			assert(!"the default of a setting does not fit its own row");
	}
	return cfg;
}

enum hs_rc hs_config_set(
	struct hs_config *cfg, const char *name, const char *text, struct hs_err *err)
{
	int id = hs_setting_find(name);

	if (id < 0)
		return hs_fail(err, HS_E_CONFIG, "unknown setting '%.200s'", name);
	HS_TRY(hs_value_from_text(cfg->pool, &hs_settings[id], text, &cfg->v[id], err));
	cfg->v[id].given = true;
	return HS_OK;
}

static const struct hs_value *value_of(
	const struct hs_config *cfg, enum hs_setting_id id, enum hs_stype type)
{
	assert((unsigned)id < HS_S__MAX && hs_settings[id].type == type);
	(void)type;
	return &cfg->v[id];
}

const char *hs_cfg_str(const struct hs_config *cfg, enum hs_setting_id id)
{
	const struct hs_value *v = value_of(cfg, id, HS_ST_STR);

	return v->null ? NULL : v->u.str;
}

int64_t hs_cfg_int(const struct hs_config *cfg, enum hs_setting_id id)
{
	const struct hs_value *v = value_of(cfg, id, HS_ST_INT);

	return v->null ? 0 : v->u.num_int;
}

double hs_cfg_num(const struct hs_config *cfg, enum hs_setting_id id)
{
	const struct hs_value *v = value_of(cfg, id, HS_ST_NUM);

	return v->null ? 0 : v->u.num;
}

bool hs_cfg_bool(const struct hs_config *cfg, enum hs_setting_id id)
{
	const struct hs_value *v = value_of(cfg, id, HS_ST_BOOL);

	return v->null ? false : v->u.yes;
}

json_t *hs_cfg_json(const struct hs_config *cfg, enum hs_setting_id id)
{
	const struct hs_value *v = value_of(cfg, id, HS_ST_JSON);

	return v->null ? NULL : v->u.json;
}

struct hs_strs hs_cfg_list(const struct hs_config *cfg, enum hs_setting_id id)
{
	const struct hs_value *v = value_of(cfg, id, HS_ST_LIST);

	return v->null ? (struct hs_strs){0, NULL} : v->u.list;
}

bool hs_cfg_null(const struct hs_config *cfg, enum hs_setting_id id)
{
	return cfg->v[id].null;
}

bool hs_cfg_explicit(const struct hs_config *cfg, enum hs_setting_id id)
{
	return cfg->v[id].given;
}

json_t *hs_cfg_value(const struct hs_config *cfg, enum hs_setting_id id)
{
	return hs_value_to_json(&hs_settings[id], &cfg->v[id]);
}

/* ---- banks ---- */

static void force_none(struct hs_config *cfg)
{
	if (strcmp(hs_cfg_llm_provider(cfg, "retain"), "none") == 0)
		cfg->v[HS_S_retain_extraction_mode] =
			(struct hs_value){.given = true, .u.str = "chunks"};
	if (strcmp(hs_cfg_llm_provider(cfg, "consolidation"), "none") == 0)
		cfg->v[HS_S_enable_observations] = (struct hs_value){.given = true, .u.yes = false};
}

/* One stored value over the server's; what cannot be read is left out with a warning. */
static void lay_over(struct hs_config *cfg, const char *name, json_t *v)
{
	struct hs_err err = {0};
	int id = hs_setting_find(name);

	if (id < 0 || hs_settings[id].scope != HS_SC_BANK)
		return;
	if (json_is_null(v) && !(hs_settings[id].flags & HS_SF_NULL))
		return;
	if (hs_settings[id].type == HS_ST_STR && !json_is_string(v) && !json_is_null(v))
		v = hs_json_keep(cfg->pool, json_string_nocheck(hs_json_text(cfg->pool, v)));
	if (hs_value_from_json(cfg->pool, &hs_settings[id], v, &cfg->v[id], &err) != HS_OK)
		hs_log(HS_LOG_WARN, "stored_setting_ignored", "reason=%s", hs_log_quote(err.msg));
}

static struct hs_config *copy_of(struct hs_pool *pool, const struct hs_config *cfg)
{
	struct hs_config *copy = hs_pool_memdup(pool, cfg, sizeof(*cfg));

	copy->pool = pool;
	return copy;
}

struct hs_config *hs_config_for_bank(
	struct hs_pool *pool, const struct hs_config *server, json_t *overrides)
{
	struct hs_config *cfg = copy_of(pool, server);
	const char *name;
	json_t *v;

	json_object_foreach(overrides, name, v)
		if (!json_is_null(v))
			lay_over(cfg, name, v);
	force_none(cfg);
	return cfg;
}

struct hs_config *hs_config_with_strategy(
	struct hs_pool *pool, const struct hs_config *bank, json_t *strategy)
{
	struct hs_config *cfg = copy_of(pool, bank);
	const char *name;
	json_t *v;

	json_object_foreach(strategy, name, v)
		lay_over(cfg, name, v);
	force_none(cfg);
	return cfg;
}

struct hs_config *hs_config_only(struct hs_pool *pool, const struct hs_config *cfg,
	const enum hs_setting_id *ids, size_t n)
{
	struct hs_config *copy = hs_config_defaults(pool);

	for (size_t i = 0; i < n; i++)
		copy->v[ids[i]] = cfg->v[ids[i]];
	return copy;
}

/* ---- provider in use ---- */

struct llm_rows {
	const char *op;
	enum hs_setting_id provider, key, base_url;
	const char *fallback; /* operation asked next; NULL = the general one */
};

static const struct llm_rows llm_rows[] = {
	{"retain", HS_S_retain_llm_provider, HS_S_retain_llm_api_key, HS_S_retain_llm_base_url,
		NULL},
	{"reflect", HS_S_reflect_llm_provider, HS_S_reflect_llm_api_key, HS_S_reflect_llm_base_url,
		NULL},
	{"consolidation", HS_S_consolidation_llm_provider, HS_S_consolidation_llm_api_key,
		HS_S_consolidation_llm_base_url, NULL},
	{"mental_model_refresh", HS_S_mental_model_refresh_llm_provider,
		HS_S_mental_model_refresh_llm_api_key, HS_S_mental_model_refresh_llm_base_url,
		"reflect"},
};

static bool has_text(const struct hs_config *cfg, enum hs_setting_id id)
{
	return !hs_str_empty(hs_cfg_str(cfg, id));
}

const char *hs_cfg_llm_provider(const struct hs_config *cfg, const char *op)
{
	bool reachable = false;

	while (op) {
		const struct llm_rows *row = NULL;

		for (size_t i = 0; i < HS_COUNT(llm_rows); i++)
			if (strcmp(llm_rows[i].op, op) == 0)
				row = &llm_rows[i];
		assert(row);
		if (has_text(cfg, row->provider))
			return hs_cfg_str(cfg, row->provider);
		reachable = reachable || has_text(cfg, row->key) || has_text(cfg, row->base_url);
		op = row->fallback;
	}
	if (has_text(cfg, HS_S_llm_provider))
		return hs_cfg_str(cfg, HS_S_llm_provider);
	reachable =
		reachable || has_text(cfg, HS_S_llm_api_key) || has_text(cfg, HS_S_llm_base_url);
	return reachable ? "openai" : "extractive";
}
