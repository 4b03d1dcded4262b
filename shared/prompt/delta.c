#include "prompt/delta.h"

#include "json/json.h"
#include "prompt/build.h"

#define OUTPUT_LEAST 2048
#define NEAR_PERCENT 80

static void add(struct hs_pool *pool, struct hs_message *m, const char *text)
{
	hs_block_builtin(pool, m, hs_prompt_cat(pool, text, HS_GAP, NULL));
}

static void system_message(
	struct hs_pool *pool, const struct hs_delta_prompt_in *in, struct hs_prompt *ret)
{
	const char *language = hs_output_language(in->cfg);
	struct hs_message *m = &ret->system;

	add(pool, m, hs_tpl_delta_role);
	if (!language)
		hs_block_setting(pool, m, in->cfg, HS_S_llm_output_language,
			hs_prompt_cat(pool, hs_tpl_delta_language, HS_GAP, NULL));
	add(pool, m, hs_tpl_delta_inputs);
	add(pool, m, hs_tpl_delta_rules);
	add(pool, m, hs_tpl_delta_operations);
	hs_block_builtin(pool, m,
		hs_prompt_cat(pool, hs_tpl_delta_output, in->strict ? "" : "\n",
			in->strict ? "" : hs_tpl_delta_reply_schema, in->strict ? "" : "\n",
			in->strict ? "" : hs_json_text(pool, ret->schema), language ? HS_GAP : "",
			NULL));
	if (language)
		hs_block_setting(pool, m, in->cfg, HS_S_llm_output_language,
			hs_output_language_text(pool, language));
}

static const char *number(struct hs_pool *pool, int64_t n)
{
	return hs_pool_printf(pool, "%lld", (long long)n);
}

/* A text of ours with {tokens} and {limit} filled in. */
static const char *filled(struct hs_pool *pool, const char *text, int64_t tokens, int64_t limit)
{
	text = hs_str_replace(pool, text, "{tokens}", number(pool, tokens));
	return hs_str_replace(pool, text, "{limit}", number(pool, limit));
}

static void notices(struct hs_pool *pool, const struct hs_delta_prompt_in *in, struct hs_message *m)
{
	int64_t output = in->max_tokens + in->max_tokens / 2;

	if (in->tokens >= in->max_tokens)
		add(pool, m, filled(pool, hs_tpl_delta_budget_over, in->tokens, in->max_tokens));
	else if (in->tokens * 100 >= in->max_tokens * NEAR_PERCENT)
		add(pool, m, filled(pool, hs_tpl_delta_budget_near, in->tokens, in->max_tokens));
	add(pool, m,
		filled(pool, hs_tpl_delta_output_budget, 0,
			output < OUTPUT_LEAST ? OUTPUT_LEAST : output));
	if (in->hidden)
		add(pool, m, hs_tpl_delta_hidden);
}

void hs_prompt_delta(
	struct hs_pool *pool, const struct hs_delta_prompt_in *in, struct hs_prompt *ret)
{
	struct hs_message *m = &ret->user;

	*ret = (struct hs_prompt){.system = {.role = "system"}, .user = {.role = "user"}};
	ret->schema = hs_json_keep(pool, json_loads(hs_tpl_delta_schema_json, 0, NULL));
	system_message(pool, in, ret);
	hs_block_builtin(pool, m,
		hs_prompt_cat(pool, "## TOPIC\n", in->name, "\n", in->topic, HS_GAP, NULL));
	hs_block_builtin(pool, m,
		hs_prompt_cat(pool, "## DOCUMENT\n```json\n", in->document, "\n```", HS_GAP, NULL));
	hs_block_builtin(pool, m, hs_prompt_cat(pool, "## NEW FACTS\n", in->facts, "\n", NULL));
	notices(pool, in, m);
	hs_block_builtin(pool, m, hs_tpl_delta_task);
}

const char *hs_delta_fact_line(
	struct hs_pool *pool, const char *type, const char *id, const char *text)
{
	char *line = hs_prompt_cat(pool, "- [", type, ":", id, "] ", text, NULL);

	for (char *p = line; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	return hs_prompt_cat(pool, line, "\n", NULL);
}

const char *hs_prompt_delta_reask(
	struct hs_pool *pool, const struct hs_strs *faults, const char *map)
{
	return hs_prompt_cat(pool, hs_tpl_delta_reask, "\n- ", hs_strs_join(pool, faults, "\n- "),
		HS_GAP, *map ? hs_tpl_delta_reask_map : "", *map ? "\n" : "", map, *map ? "\n" : "",
		hs_tpl_delta_reask_end, NULL);
}

const char *hs_prompt_delta_context(void)
{
	return hs_tpl_delta_context;
}
