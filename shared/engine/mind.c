#include "engine/mind.h"

enum hs_mind_kind hs_mind_for(const struct hs_config *cfg, const char *op)
{
	const char *provider = hs_cfg_llm_provider(cfg, op);

	if (hs_str_eq(provider, "none"))
		return HS_MIND_NONE;
	return hs_str_eq(provider, "extractive") ? HS_MIND_EXTRACTIVE : HS_MIND_LLM;
}
