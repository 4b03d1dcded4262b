/*
 * mind_llm - extraction and consolidation by a model: ask, read leniently, ask again, split.
 *
 * Floor:   engine, inside only. Rules: contract retain-recall 2.6, 5.5, 5.8.
 */
#ifndef HS_ENGINE_MIND_LLM_H
#define HS_ENGINE_MIND_LLM_H

#include "engine/mind.h"

HS_MUST enum hs_rc hs_llm_extract(struct hs_run *run, const struct hs_retain_prompt_in *in,
	struct hs_facts *ret, struct hs_err *err);
HS_MUST enum hs_rc hs_llm_consolidate(struct hs_run *run,
	const struct hs_consolidation_prompt_in *in, json_t **ret_actions, struct hs_err *err);

/* One fact of a reply, as far as it can be read. */
enum hs_fact_read {
	HS_FACT_KEPT,
	HS_FACT_EMPTY, /* well formed, says nothing: dropped silently */
	HS_FACT_MALFORMED,
};
/* index: place in the reply; causes point to earlier places. verbatim: text is not looked for. */
enum hs_fact_read hs_fact_from_json(struct hs_pool *pool, json_t *v, size_t index, int64_t event_us,
	bool verbatim, struct hs_fact *ret);
/* 00:00 of the day that the first relative word of the text means; HS_TIME_NONE when there is none. */
int64_t hs_relative_day_us(struct hs_pool *pool, const char *text, int64_t event_us);
/* Both halves of a text that was too long for one reply; false when it cannot be split. */
bool hs_text_halves(struct hs_pool *pool, const char *text, const char **ret_a, const char **ret_b);

#endif
