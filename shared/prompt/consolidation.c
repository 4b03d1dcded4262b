#include "base/clock.h"
#include "base/limits.h"
#include "json/json.h"
#include "prompt/build.h"

/* One line: line breaks inside a fact would look like another fact. */
static void add_line(struct hs_buf *b, const char *text)
{
	for (const char *s = text; *s; s++)
		hs_buf_char(b, *s == '\n' || *s == '\r' ? ' ' : *s);
}

static void add_time(struct hs_buf *b, bool *first, const char *name, int64_t us)
{
	char text[HS_TIME_TEXT];

	if (us == HS_TIME_NONE)
		return;
	hs_time_format(us, text);
	hs_buf_str(b, *first ? " (" : ", ");
	*first = false;
	hs_buf_printf(b, "%s=%s", name, text);
}

static const char *fact_lines(struct hs_pool *pool, const struct hs_consolidation_prompt_in *in)
{
	struct hs_buf *b = hs_buf_new(pool, HS_PROMPT_MAX);

	for (size_t i = 0; i < in->n_facts; i++) {
		const struct hs_consolidation_fact *f = &in->facts[i];
		bool first = true;

		hs_buf_printf(b, "[%s] ", f->id);
		add_line(b, f->text);
		add_time(b, &first, "occurred_start", f->occurred_start_us);
		add_time(b, &first, "occurred_end", f->occurred_end_us);
		add_time(b, &first, "mentioned_at", f->mentioned_us);
		hs_buf_str(b, first ? "\n" : ")\n");
	}
	return b->data;
}

static const char *capacity_note(struct hs_pool *pool, const struct hs_consolidation_prompt_in *in)
{
	if (in->free_slots < 0 || in->free_slots > (int64_t)in->n_facts)
		return "";
	if (in->free_slots == 0)
		return "CAPACITY: there is no room for another observation. Create none; update or merge instead." HS_GAP;
	return hs_pool_printf(pool,
		"CAPACITY: there is room for %lld more observations. Create no more than that; update or merge instead." HS_GAP,
		(long long)in->free_slots);
}

static void add(struct hs_pool *pool, struct hs_message *m, const char *text)
{
	hs_block_builtin(pool, m, hs_prompt_cat(pool, text, HS_GAP, NULL));
}

static void system_message(
	struct hs_pool *pool, const struct hs_consolidation_prompt_in *in, struct hs_prompt *ret)
{
	const char *language = hs_output_language(in->cfg);
	struct hs_message *m = &ret->system;

	add(pool, m, hs_tpl_consolidation_role);
	if (!language)
		hs_block_setting(pool, m, in->cfg, HS_S_llm_output_language,
			hs_prompt_cat(pool, hs_tpl_consolidation_language, HS_GAP, NULL));
	add(pool, m, hs_tpl_consolidation_rules);
	add(pool, m, hs_tpl_consolidation_input);
	add(pool, m, hs_tpl_consolidation_decision);
	hs_block_builtin(pool, m,
		hs_prompt_cat(pool, hs_tpl_consolidation_output, in->strict ? "" : "\n",
			in->strict ? "" : hs_tpl_consolidation_reply_schema, in->strict ? "" : "\n",
			in->strict ? "" : hs_json_text(pool, ret->schema), language ? HS_GAP : "",
			NULL));
	if (language)
		hs_block_setting(pool, m, in->cfg, HS_S_llm_output_language,
			hs_output_language_text(pool, language));
}

void hs_prompt_consolidation(
	struct hs_pool *pool, const struct hs_consolidation_prompt_in *in, struct hs_prompt *ret)
{
	const char *mission = in->mission;
	struct hs_message *m;

	*ret = (struct hs_prompt){.system = {.role = "system"}, .user = {.role = "user"}};
	ret->schema = hs_json_keep(pool, json_loads(hs_tpl_consolidation_schema_json, 0, NULL));
	system_message(pool, in, ret);
	m = &ret->user;
	if (hs_str_blank(mission))
		mission = hs_cfg_str(in->cfg, HS_S_observations_mission);
	if (hs_str_blank(mission))
		mission = hs_tpl_consolidation_mission_default;
	hs_block_setting(pool, m, in->cfg, HS_S_observations_mission,
		hs_prompt_cat(pool, "## MISSION\n", mission, HS_GAP, NULL));
	hs_block_builtin(pool, m,
		hs_prompt_cat(pool, capacity_note(pool, in), "## NEW FACTS\n", fact_lines(pool, in),
			"\n## EXISTING OBSERVATIONS\n",
			in->observations ? hs_json_text(pool, in->observations) : "[]", HS_GAP,
			hs_tpl_consolidation_user_end, NULL));
}
