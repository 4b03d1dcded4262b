/* What a configuration page does not show: settings that do nothing, or something else. */
#include "prompts.h"

#include <string.h>

#include "json/json.h"

#define NAME_CHARS 100 /* of a name shown in a warning */

struct warn {
	struct hs_pool *pool;
	struct hs_out *o;
	const struct preview *p;
	const struct hs_config *cfg; /* in force */
};

static void warn(struct warn *w, const char *code, const char *field, const char *message)
{
	hs_out_open(w->o, NULL, '{');
	hs_out_str(w->o, "code", code);
	hs_out_str(w->o, "field", field);
	hs_out_str(w->o, "message", message);
	hs_out_close(w->o, '}');
}

static const char *named(
	const struct warn *w, const char *before, const char *name, const char *after)
{
	return hs_pool_printf(w->pool, "%s'%s'%s", before, hs_utf8_cut(w->pool, name, NAME_CHARS), after);
}

static bool has_text(const struct hs_config *cfg, enum hs_setting_id id)
{
	return !hs_str_blank(hs_cfg_str(cfg, id));
}

/* ---- the strategy ---- */

static void strategy_unknown(struct warn *w)
{
	const struct hs_strategy *s = &w->p->strategy;

	if (s->name && !s->fields)
		warn(w, "strategy_unknown",
			s->is_default ? "retain_default_strategy" : "retain_strategies",
			named(w, "There is no strategy ", s->name,
				"; the bank's own settings are used."));
}

static bool is_bank_setting(const char *name)
{
	int id = hs_setting_find(name);

	return id >= 0 && hs_settings[id].scope == HS_SC_BANK;
}

/* Keys of the strategy in force, in order. */
static struct hs_strs strategy_keys(const struct warn *w)
{
	struct hs_strs keys = {0};
	const char *key;
	json_t *v;

	json_object_foreach(w->p->strategy.fields, key, v)
		hs_strs_add(w->pool, &keys, key);
	return hs_strs_sorted_set(w->pool, &keys);
}

static void strategy_field_ignored(struct warn *w)
{
	struct hs_strs keys = strategy_keys(w);

	for (size_t i = 0; i < keys.n; i++)
		if (!is_bank_setting(keys.v[i]))
			warn(w, "strategy_field_ignored", keys.v[i],
				named(w, "The strategy sets ", keys.v[i],
					", which is no setting of a bank, so it has no effect."));
}

static void strategy_overrides(struct warn *w)
{
	const struct hs_strategy *s = &w->p->strategy;
	struct hs_strs keys = strategy_keys(w);

	for (size_t i = 0; i < keys.n; i++)
		if (is_bank_setting(keys.v[i]) &&
			hs_strategy_sets(s, (enum hs_setting_id)hs_setting_find(keys.v[i])))
			warn(w, "strategy_overrides", keys.v[i],
				named(w, "The strategy ", s->name,
					" sets this, so the bank's own value is not used."));
}

/* ---- extraction ---- */

static const char *mode(const struct warn *w)
{
	const char *name = hs_cfg_str(w->cfg, HS_S_retain_extraction_mode);

	return name ? name : "";
}

static void extraction_mode_unknown(struct warn *w)
{
	struct hs_strs known =
		hs_str_split(w->pool, hs_settings[HS_S_retain_extraction_mode].choices, '|');

	if (!hs_strs_has(&known, mode(w)))
		warn(w, "extraction_mode_unknown", "retain_extraction_mode",
			named(w, "There is no extraction mode ", mode(w), "; concise is used."));
}

static void custom_instructions_unused(struct warn *w)
{
	if (strcmp(mode(w), "custom") && has_text(w->cfg, HS_S_retain_custom_instructions))
		warn(w, "custom_instructions_unused", "retain_custom_instructions",
			"Custom instructions are read in extraction mode custom only, so these have no effect.");
}

static void custom_instructions_empty(struct warn *w)
{
	if (!strcmp(mode(w), "custom") && !has_text(w->cfg, HS_S_retain_custom_instructions))
		warn(w, "custom_instructions_empty", "retain_custom_instructions",
			"Extraction mode custom without instructions of its own works as concise.");
}

static void free_form_without_labels(struct warn *w)
{
	const char *name = hs_settings[HS_S_entities_allow_free_form].name;
	json_t *labels = hs_cfg_json(w->cfg, HS_S_entity_labels);
	bool set = json_is_boolean(json_object_get(w->p->overrides, name)) ||
		   json_is_boolean(json_object_get(w->p->strategy.fields, name));

	if (json_is_object(labels))
		labels = json_object_get(labels, "attributes");
	if (set && !json_array_size(labels))
		warn(w, "free_form_without_labels", name,
			"Whether free entities are allowed is said beside entity labels only, and there are none.");
}

/* ---- every operation ---- */

static void output_language_replaces_rule(struct warn *w)
{
	if (has_text(w->cfg, HS_S_llm_output_language))
		warn(w, "output_language_replaces_rule", "llm_output_language",
			"The output language takes the place of the rule to keep the language of the source.");
}

static void chunks_no_prompt(struct warn *w)
{
	if (w->p->chunks)
		warn(w, "chunks_no_prompt", "retain_extraction_mode",
			"In mode chunks the text is stored as it is and no prompt is sent, so mission, instructions and labels have no effect.");
}

static void provider_sends_no_prompt(struct warn *w)
{
	if (!strcmp(w->p->provider, "extractive") || !strcmp(w->p->provider, "none"))
		warn(w, "provider_sends_no_prompt", "llm_provider",
			named(w, "The provider of this operation is ", w->p->provider,
				", which calls no model, so no prompt is sent."));
}

void preview_warnings(struct hs_pool *pool, struct hs_out *o, const struct preview *p)
{
	static const struct {
		void (*fn)(struct warn *w);
		bool others, chunks; /* asked for other operations than retain; in mode chunks */
	} rows[] = {
		{strategy_unknown, false, true},
		{strategy_field_ignored, false, true},
		{strategy_overrides, false, true},
		{extraction_mode_unknown, false, false},
		{custom_instructions_unused, false, false},
		{custom_instructions_empty, false, false},
		{free_form_without_labels, false, false},
		{output_language_replaces_rule, true, false},
		{chunks_no_prompt, false, true},
		{provider_sends_no_prompt, true, false},
	};
	struct warn w = {.pool = pool, .o = o, .p = p, .cfg = p->strategy.cfg};

	hs_out_open(o, "warnings", '[');
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		if ((p->operation == PREVIEW_RETAIN || rows[i].others) &&
			(!p->chunks || rows[i].chunks))
			rows[i].fn(&w);
	hs_out_close(o, ']');
}
