#include "config/overrides.h"

#include <stdlib.h>
#include <string.h>

#include "config/internal.h"
#include "config/labels.h"
#include "json/json.h"

#define ENV_PREFIX "HINDSIGHT_API_"

struct patch {
	struct hs_pool *pool;
	const struct hs_config *server;
	const struct hs_shape *trigger;
	json_t *updates; /* names normalised */
	json_t *merged;  /* stored with the updates laid over */
	struct hs_err *err;
};

/* Errors of the value readers, as a client's mistake. */
static enum hs_rc as_bad_request(enum hs_rc rc, struct hs_err *err)
{
	if (rc == HS_OK || !err)
		return rc == HS_OK ? HS_OK : HS_E_BAD_REQUEST;
	err->rc = HS_E_BAD_REQUEST;
	return HS_E_BAD_REQUEST;
}

const char *hs_overrides_name(struct hs_pool *pool, const char *key)
{
	if (hs_str_starts(key, ENV_PREFIX))
		key += strlen(ENV_PREFIX);
	return hs_str_lower_ascii(pool, key);
}

static json_t *normalised(struct hs_pool *pool, json_t *object)
{
	json_t *out = hs_json_keep(pool, json_object()), *v;
	const char *key;

	json_object_foreach(object, key, v)
		json_object_set(out, hs_overrides_name(pool, key), v);
	return out;
}

/* ---- names ---- */

static bool is_credential(const char *name)
{
	int id = hs_setting_find(name);

	if (id >= 0)
		return hs_settings[id].flags & HS_SF_SECRET;
	return hs_str_ends(name, "_api_key") || hs_str_ends(name, "_base_url") ||
	       hs_str_ends(name, "_secret") || hs_str_ends(name, "_password") ||
	       hs_str_ends(name, "_auth_token") || hs_str_ends(name, "_account_key");
}

static bool is_static(const char *name)
{
	int id = hs_setting_find(name);

	return id >= 0 && hs_settings[id].scope == HS_SC_SERVER;
}

static bool is_unknown(const char *name)
{
	return hs_setting_find(name) < 0;
}

struct name_rule {
	bool (*holds)(const char *name);
	const char *text;
};

static const struct name_rule name_rules[] = {
	{is_credential, "credentials and addresses of services cannot be set through the API"},
	{is_static, "these are server-level settings, not settings of a bank"},
	{is_unknown, "unknown configuration fields"},
};

static enum hs_rc check_names(struct patch *p)
{
	for (size_t i = 0; i < HS_COUNT(name_rules); i++) {
		struct hs_strs bad = {0, NULL};
		const char *key;
		json_t *v;

		json_object_foreach(p->updates, key, v)
			if (name_rules[i].holds(key))
				hs_strs_add(p->pool, &bad, key);
		bad = hs_strs_sorted_set(p->pool, &bad);
		if (bad.n > 0)
			return hs_fail(p->err, HS_E_BAD_REQUEST, "%s: %.700s", name_rules[i].text,
				hs_strs_join(p->pool, &bad, ", "));
	}
	return HS_OK;
}

/* ---- single values ---- */

/* Fields that cannot be cleared by null: contract banks 5.4, step 9. */
static bool refuses_null(const char *name)
{
	return hs_str_starts(name, "recall_budget_");
}

static enum hs_rc check_type(const char *name, json_t *v, struct hs_err *err)
{
	const struct hs_setting *s = &hs_settings[hs_setting_find(name)];

	return json_is_null(v) ? HS_OK : as_bad_request(hs_value_type_check(s, v, err), err);
}

static enum hs_rc check_types(struct patch *p)
{
	const char *key;
	json_t *v;

	json_object_foreach(p->updates, key, v)
		HS_TRY(check_type(key, v, p->err));
	return HS_OK;
}

static enum hs_rc check_ranges(struct patch *p)
{
	const char *key;
	json_t *v;

	json_object_foreach(p->updates, key, v) {
		if (json_is_null(v) && refuses_null(key))
			return hs_fail(p->err, HS_E_BAD_REQUEST, "%s must not be null", key);
		HS_TRY(as_bad_request(
			hs_value_range_check(&hs_settings[hs_setting_find(key)], v, p->err),
			p->err));
	}
	return HS_OK;
}

/* Choices that are refused on write; an unknown retain_extraction_mode is stored. */
static enum hs_rc check_choices(struct patch *p)
{
	static const enum hs_setting_id ids[] = {HS_S_recall_budget_function, HS_S_recall_fusion};

	for (size_t i = 0; i < HS_COUNT(ids); i++) {
		const struct hs_setting *s = &hs_settings[ids[i]];
		const char *text = hs_json_str(p->updates, s->name), *low;

		if (!text)
			continue;
		low = hs_str_lower_ascii(p->pool, text);
		if (!hs_choice_has(s->choices, low))
			return hs_fail(p->err, HS_E_BAD_REQUEST,
				"%s must be one of %s, got '%.200s'", s->name,
				hs_str_replace(p->pool, s->choices, "|", ", "), text);
		json_object_set_new(p->updates, s->name, json_string(low));
	}
	return HS_OK;
}

static enum hs_rc check_memory_defense(struct patch *p)
{
	json_t *v = json_object_get(p->updates, "memory_defense");

	if (!v || json_is_null(v) || json_is_object(v))
		return HS_OK;
	return hs_fail(p->err, HS_E_UNPROCESSABLE, "memory_defense must be an object, got %s",
		hs_json_type_word(v));
}

/* ---- objects with fields of their own ---- */

static const struct hs_field *field_named(const struct hs_shape *shape, const char *name)
{
	for (size_t i = 0; i < shape->n_fields; i++)
		if (strcmp(shape->fields[i].name, name) == 0)
			return &shape->fields[i];
	return NULL;
}

static enum hs_rc check_shaped(struct patch *p, const char *name, const struct hs_shape *shape)
{
	json_t *v = json_object_get(p->updates, name), *member;
	struct hs_err faults = {0};
	const char *key;
	void *obj;

	if (!json_is_object(v) || !shape)
		return HS_OK;
	json_object_foreach(v, key, member)
		if (!field_named(shape, key))
			return hs_fail(
				p->err, HS_E_BAD_REQUEST, "%s has no field '%.200s'", name, key);
	if (hs_check_object(p->pool, shape, name, v, &obj, NULL, &faults) == HS_OK)
		return HS_OK;
	return hs_fail(p->err, HS_E_BAD_REQUEST, "%s: %s: %s", name, faults.fields->loc,
		faults.fields->msg);
}

struct reflect_options {
	struct hs_seen seen;
	int64_t reflect_search_observations_max_tokens, reflect_search_mental_models_max_tokens;
	bool reflect_search_observations_include_entities;
};

static const struct hs_field reflect_option_fields[] = {
	HS_INT(struct reflect_options, reflect_search_observations_max_tokens, .flags = HS_NULLABLE,
		HS_MIN(1), .doc = "token budget of one search of observations"),
	HS_BOOL(struct reflect_options, reflect_search_observations_include_entities,
		.flags = HS_NULLABLE, .doc = "entity names beside observations"),
	HS_INT(struct reflect_options, reflect_search_mental_models_max_tokens,
		.flags = HS_NULLABLE, HS_MIN(1), .doc = "token budget of models returned in full"),
};
static const struct hs_shape reflect_option_shape =
	HS_SHAPE(reflect_options, reflect_option_fields);

static bool scope_lists(const json_t *v)
{
	json_t *scope, *tag;
	size_t i, j;

	json_array_foreach((json_t *)v, i, scope) {
		if (!json_is_array(scope))
			return false;
		json_array_foreach(scope, j, tag)
			if (!json_is_string(tag))
				return false;
	}
	return true;
}

static enum hs_rc check_scopes(const char *where, const json_t *v, struct hs_err *err)
{
	if (!v || json_is_null(v) || (json_is_array(v) && scope_lists(v)))
		return HS_OK;
	if (json_is_string(v) &&
		hs_choice_has("combined|per_tag|all_combinations|shared", json_string_value(v)))
		return HS_OK;
	return hs_fail(err, HS_E_BAD_REQUEST,
		"%s must be combined, per_tag, all_combinations, shared or a list "
		"of lists of strings",
		where);
}

/* ---- retain strategies ---- */

static enum hs_rc check_strategy_field(
	struct patch *p, const char *strategy, const char *name, json_t *v)
{
	int id = hs_setting_find(name);
	enum hs_rc rc;

	if (id < 0 || hs_settings[id].scope != HS_SC_BANK)
		return HS_OK;
	if (json_is_null(v) &&
		(id == HS_S_retain_chunk_size || id == HS_S_retain_max_attachments_per_chunk))
		return hs_fail(p->err, HS_E_BAD_REQUEST,
			"retain_strategies: '%.100s': %s must not be null", strategy, name);
	rc = check_type(name, v, p->err);
	if (rc == HS_OK)
		rc = as_bad_request(hs_value_range_check(&hs_settings[id], v, p->err), p->err);
	if (rc == HS_OK && id == HS_S_default_observation_scopes)
		rc = check_scopes(name, v, p->err);
	return rc == HS_OK ? HS_OK
			   : hs_fail_context(p->err, "retain_strategies: '%.100s'", strategy);
}

static enum hs_rc check_strategy(struct patch *p, const char *name, json_t *fields)
{
	int64_t limit = hs_cfg_int(p->server, HS_S_retain_max_completion_tokens);
	bool none = strcmp(hs_cfg_llm_provider(p->server, "retain"), "none") == 0;
	const char *key;
	json_t *v;

	json_object_foreach(fields, key, v)
		HS_TRY(check_strategy_field(p, name, key, v));
	if (!none && hs_json_int(fields, "retain_chunk_size", 1) >= limit)
		return hs_fail(p->err, HS_E_BAD_REQUEST,
			"retain_strategies: '%.100s': retain_chunk_size must stay "
			"below retain_max_completion_tokens (%lld)",
			name, (long long)limit);
	return HS_OK;
}

static enum hs_rc check_strategies(struct patch *p)
{
	json_t *given = hs_json_obj(p->updates, "retain_strategies"), *fields, *clean;
	const char *name;

	if (!given)
		return HS_OK;
	clean = hs_json_keep(p->pool, json_object());
	json_object_foreach(given, name, fields) {
		if (hs_str_blank(name))
			return hs_fail(p->err, HS_E_BAD_REQUEST,
				"retain_strategies: a name must not be blank");
		if (!json_is_object(fields))
			return hs_fail(p->err, HS_E_BAD_REQUEST,
				"retain_strategies: '%.100s' must be an object, got %s", name,
				hs_json_type_word(fields));
		fields = normalised(p->pool, fields);
		HS_TRY(check_strategy(p, name, fields));
		json_object_set(clean, name, fields);
	}
	json_object_set(p->updates, "retain_strategies", clean);
	return HS_OK;
}

/* ---- consolidation strategies ---- */

static bool scope_entry(const json_t *v)
{
	const json_t *match = json_object_get(v, "tags_match");
	json_t *tags = hs_json_arr(v, "tags"), *tag;
	size_t i;

	if (!json_is_object(v))
		return false;
	json_array_foreach(tags, i, tag)
		if (!json_is_string(tag))
			return false;
	return !match || json_is_null(match) ||
	       (json_is_string(match) && hs_choice_has("all|exact", json_string_value(match)));
}

static enum hs_rc check_consolidation_strategy(struct patch *p, json_t *entry)
{
	static const char keys[] =
		"scopes|observations_mission|max_observations_per_scope|"
		"consolidation_source_facts_max_tokens|consolidation_source_facts_max_tokens_per_observation";
	const char *key;
	json_t *v, *scope;
	size_t i;

	if (!json_is_object(entry))
		return hs_fail(p->err, HS_E_BAD_REQUEST,
			"consolidation_strategies must be a list of objects, got %s "
			"in it",
			hs_json_type_word(entry));
	json_object_foreach(entry, key, v) {
		if (!hs_choice_has(keys, key))
			return hs_fail(p->err, HS_E_BAD_REQUEST,
				"consolidation_strategies has no field '%.200s'", key);
		if (strcmp(key, "scopes") != 0)
			HS_TRY(check_type(key, v, p->err));
	}
	json_array_foreach(hs_json_arr(entry, "scopes"), i, scope)
		if (!scope_entry(scope))
			return hs_fail(p->err, HS_E_BAD_REQUEST,
				"consolidation_strategies: scopes must be a list of "
				"{tags, tags_match all or exact}");
	return HS_OK;
}

static enum hs_rc check_consolidation_strategies(struct patch *p)
{
	json_t *entry;
	size_t i;

	json_array_foreach(hs_json_arr(p->updates, "consolidation_strategies"), i, entry)
		HS_TRY(check_consolidation_strategy(p, entry));
	return HS_OK;
}

/* ---- against what would be stored ---- */

static enum hs_rc check_projected(struct patch *p)
{
	const struct hs_config *bank = hs_config_for_bank(p->pool, p->server, p->merged);
	int64_t low = hs_cfg_int(bank, HS_S_recall_budget_min),
		high = hs_cfg_int(bank, HS_S_recall_budget_max);

	if (low > high)
		return hs_fail(p->err, HS_E_BAD_REQUEST,
			"recall_budget_min (%lld) must not be above "
			"recall_budget_max (%lld)",
			(long long)low, (long long)high);
	return HS_OK;
}

static void merge(struct patch *p, json_t *stored)
{
	const char *key;
	json_t *v;

	p->merged = hs_json_keep(p->pool, json_object());
	json_object_foreach(stored, key, v)
		if (!json_is_null(v))
			json_object_set(p->merged, key, v);
	json_object_foreach(p->updates, key, v) {
		if (json_is_null(v))
			json_object_del(p->merged, key);
		else
			json_object_set(p->merged, key, v);
	}
}

static enum hs_rc check_values(struct patch *p)
{
	HS_TRY(check_types(p));
	HS_TRY(hs_labels_check(json_object_get(p->updates, "entity_labels"), p->err));
	HS_TRY(check_shaped(p, "knowledge_page_default_trigger", p->trigger));
	HS_TRY(check_shaped(p, "reflect_default_options", &reflect_option_shape));
	HS_TRY(check_strategies(p));
	HS_TRY(check_consolidation_strategies(p));
	HS_TRY(check_scopes("default_observation_scopes",
		json_object_get(p->updates, "default_observation_scopes"), p->err));
	HS_TRY(check_choices(p));
	return check_ranges(p);
}

enum hs_rc hs_overrides_patch_shaped(struct hs_pool *pool, const struct hs_config *server,
	const struct hs_shape *trigger, json_t *stored, json_t *updates, json_t **ret_merged,
	struct hs_err *err)
{
	struct patch p = {.pool = pool, .server = server, .trigger = trigger, .err = err};

	p.updates = normalised(pool, updates);
	HS_TRY(check_memory_defense(&p));
	HS_TRY(check_names(&p));
	HS_TRY(check_values(&p));
	merge(&p, stored);
	HS_TRY(check_projected(&p));
	*ret_merged = p.merged;
	return HS_OK;
}

enum hs_rc hs_overrides_patch(struct hs_pool *pool, const struct hs_config *server, json_t *stored,
	json_t *updates, json_t **ret_merged, struct hs_err *err)
{
	return hs_overrides_patch_shaped(pool, server, NULL, stored, updates, ret_merged, err);
}

/* ---- what GET shows ---- */

json_t *hs_overrides_effective(const struct hs_config *bank_cfg)
{
	json_t *out = json_object();

	for (int i = 0; i < HS_S__MAX; i++)
		if (hs_settings[i].scope == HS_SC_BANK &&
			json_object_set_new(out, hs_settings[i].name, hs_cfg_value(bank_cfg, i)) !=
				0)
			hs_out_of_memory(0);
	return out;
}

json_t *hs_overrides_active(json_t *stored)
{
	json_t *out = json_object(), *v;
	const char *key;

	json_object_foreach(stored, key, v) {
		int id = hs_setting_find(key);

		if (!json_is_null(v) && id >= 0 && hs_settings[id].scope == HS_SC_BANK)
			json_object_set(out, key, v);
	}
	return out;
}
