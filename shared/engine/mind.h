/*
 * mind - the four tasks that need understanding: extract, consolidate, answer, document. By a model
 * (mind_llm.c) or built in (mind_extractive.c, which only ever quotes stored text).
 *
 * Floor:   engine. Chosen by hs_mind_for from the operation's provider; provider none has no mind.
 */
#ifndef HS_ENGINE_MIND_H
#define HS_ENGINE_MIND_H

#include <jansson.h>

#include "engine/run.h"
#include "prompt/prompt.h"

enum hs_mind_kind { HS_MIND_NONE, HS_MIND_LLM, HS_MIND_EXTRACTIVE };
/* op: retain, reflect, consolidation, mental_model_refresh. */
enum hs_mind_kind hs_mind_for(const struct hs_config *cfg, const char *op);

/* One fact as extraction gives it, before it is resolved and stored. */
struct hs_fact {
	const char *text;
	bool experience;                 /* fact_type experience, else world */
	int64_t occurred_start_us, occurred_end_us;   /* HS_TIME_NONE = none */
	struct hs_strs entities;
	int64_t *causes;                 /* indexes of earlier facts of the same call (caused_by) */
	size_t n_causes;
};
struct hs_facts {
	struct hs_fact *v;
	size_t n;
	int64_t errors;                  /* pieces that could not be read (cut off and unsplittable) */
	struct hs_strs error_sample;
};
/* Extract the facts of one chunk (contract retain-recall 2.6); causes point to earlier facts of *ret. In
 * mode verbatim the texts are empty. Mode chunks, degenerate texts, the ordering offset and mentioned_at
 * are the caller's. in->strict is set here. Errors: HS_E_EXTRACT (the reply never had the right shape) and those of hs_llm_chat. */
HS_MUST enum hs_rc hs_mind_extract(struct hs_run *run, const struct hs_retain_prompt_in *in, struct hs_facts *ret, struct hs_err *err);
HS_MUST enum hs_rc hs_extractive_extract(struct hs_pool *pool, const struct hs_retain_prompt_in *in, struct hs_facts *ret, struct hs_err *err);

/* What consolidation proposes for a batch: {creates, updates, deletes} as in contract 5.5, each a list of
 * objects, source_fact_ids a list when it was one id. Lives in the run's pool. HS_E_LLM_REPLY, _LENGTH,
 * _OVERFLOW, _REFUSED: a smaller batch may do. */
HS_MUST enum hs_rc hs_mind_consolidate(struct hs_run *run, const struct hs_consolidation_prompt_in *in, json_t **ret_actions, struct hs_err *err);
HS_MUST enum hs_rc hs_extractive_consolidate(struct hs_pool *pool, const struct hs_consolidation_prompt_in *in, json_t **ret_actions, struct hs_err *err);

#endif
