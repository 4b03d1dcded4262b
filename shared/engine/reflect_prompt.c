#include "engine/reflect_prompt.h"

static int64_t trait(const struct hs_config *cfg, enum hs_setting_id id, int64_t legacy)
{
	return hs_cfg_null(cfg, id) ? legacy : hs_cfg_int(cfg, id);
}

struct hs_reflect_prompt_in hs_reflect_prompt_of(
	const struct hs_bank *bank, const struct hs_config *cfg)
{
	const char *mission = hs_cfg_str(cfg, HS_S_reflect_mission);

	return (struct hs_reflect_prompt_in){
		.cfg = cfg,
		.bank_name = hs_str_empty(bank->name) ? bank->bank_id : bank->name,
		.mission = hs_str_blank(mission) ? bank->mission : mission,
		.skepticism = trait(cfg, HS_S_disposition_skepticism, bank->skepticism),
		.literalism = trait(cfg, HS_S_disposition_literalism, bank->literalism),
		.empathy = trait(cfg, HS_S_disposition_empathy, bank->empathy),
		.with_models = true,
		.with_observations = true,
		.with_recall = true,
		.with_expand = true,
	};
}

void hs_reflect_prompt_directives(struct hs_pool *pool, const struct hs_directive *rows, size_t n,
	struct hs_reflect_prompt_in *ret)
{
	struct hs_directive_text *texts = HS_NEW_ARRAY(pool, struct hs_directive_text, n);

	ret->directives = texts;
	ret->n_directives = 0;
	for (size_t i = 0; i < n; i++)
		if (!hs_str_blank(rows[i].content))
			texts[ret->n_directives++] =
				(struct hs_directive_text){rows[i].name, rows[i].content};
}
