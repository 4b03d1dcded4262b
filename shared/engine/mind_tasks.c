/* The tasks of a mind, by a model or built in. Apart from mind.c: programs without a model link that. */
#include "engine/mind.h"

#include "engine/mind_llm.h"

enum hs_rc hs_mind_extract(struct hs_run *run, const struct hs_retain_prompt_in *in,
	struct hs_facts *ret, struct hs_err *err)
{
	switch (hs_mind_for(in->cfg, "retain")) {
	case HS_MIND_LLM:
		return hs_llm_extract(run, in, ret, err);
	case HS_MIND_EXTRACTIVE:
		return hs_extractive_extract(run->pool, in, ret, err);
	case HS_MIND_NONE:
		break;
	}
	return hs_fail(err, HS_E_LLM_NONE, "no model is configured for retain");
}

enum hs_rc hs_mind_consolidate(struct hs_run *run, const struct hs_consolidation_prompt_in *in,
	json_t **ret_actions, struct hs_err *err)
{
	switch (hs_mind_for(in->cfg, "consolidation")) {
	case HS_MIND_LLM:
		return hs_llm_consolidate(run, in, ret_actions, err);
	case HS_MIND_EXTRACTIVE:
		return hs_extractive_consolidate(run->pool, in, ret_actions, err);
	case HS_MIND_NONE:
		break;
	}
	return hs_fail(err, HS_E_LLM_NONE, "no model is configured for consolidation");
}
