#include "config/strategy.h"

#include <string.h>

#include "json/json.h"

bool hs_strategy_sets(const struct hs_strategy *s, enum hs_setting_id id)
{
	json_t *v = json_object_get(s->fields, hs_settings[id].name);

	if (!v || hs_settings[id].scope != HS_SC_BANK)
		return false;
	return !json_is_null(v) || (hs_settings[id].flags & HS_SF_NULL);
}

static enum hs_rc bad_size(const struct hs_strategy *s, enum hs_setting_id id, struct hs_err *err)
{
	return hs_fail(err, HS_E_BAD_REQUEST,
		"retain_strategies: '%.100s': %s must be at least 1, got %lld", s->name,
		hs_settings[id].name, (long long)hs_cfg_int(s->cfg, id));
}

/* Stored strategies were checked on their way in, but against the settings of that day. */
static enum hs_rc check_chunking(const struct hs_strategy *s, struct hs_err *err)
{
	static const enum hs_setting_id sizes[] = {
		HS_S_retain_chunk_size, HS_S_retain_structured_chunk_size};
	int64_t limit = hs_cfg_int(s->cfg, HS_S_retain_max_completion_tokens);

	for (size_t i = 0; i < HS_COUNT(sizes); i++)
		if (hs_strategy_sets(s, sizes[i]) && !hs_cfg_null(s->cfg, sizes[i]) &&
			hs_cfg_int(s->cfg, sizes[i]) < 1)
			return bad_size(s, sizes[i], err);
	if (!hs_strategy_sets(s, HS_S_retain_chunk_size) ||
		hs_cfg_int(s->cfg, HS_S_retain_chunk_size) < limit ||
		strcmp(hs_cfg_llm_provider(s->cfg, "retain"), "none") == 0)
		return HS_OK;
	return hs_fail(err, HS_E_BAD_REQUEST,
		"retain_strategies: '%.100s': retain_chunk_size must stay below "
		"retain_max_completion_tokens (%lld)",
		s->name, (long long)limit);
}

enum hs_rc hs_strategy_find(struct hs_pool *pool, const struct hs_config *bank, const char *asked,
	struct hs_strategy *ret, struct hs_err *err)
{
	const char *preset = hs_cfg_str(bank, HS_S_retain_default_strategy);

	*ret = (struct hs_strategy){.cfg = bank};
	if (!hs_str_blank(asked)) {
		ret->name = asked;
	} else if (!hs_str_blank(preset)) {
		ret->name = preset;
		ret->is_default = true;
	} else {
		return HS_OK;
	}
	ret->fields = hs_json_obj(hs_cfg_json(bank, HS_S_retain_strategies), ret->name);
	if (!ret->fields)
		return HS_OK;
	ret->cfg = hs_config_with_strategy(pool, bank, ret->fields);
	return check_chunking(ret, err);
}
