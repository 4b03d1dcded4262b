/*
 * delta - the prompt of the call that edits a mental model's document.
 *
 * Floor:   prompt. Rules: contract mental-models 16.1.
 * Shapes:  the system message depends on no bank but for the output language; the user message
 *          holds topic, document, facts, notices and task, in this order.
 * Owns:    everything in the pool.
 */
#ifndef HS_PROMPT_DELTA_H
#define HS_PROMPT_DELTA_H

#include "prompt/prompt.h"

struct hs_delta_prompt_in {
	const struct hs_config *cfg;
	const char *name, *topic;
	const char *document;       /* JSON text as shown */
	const char *facts;          /* hs_delta_fact_line each */
	int64_t tokens, max_tokens; /* of the document's text; what it may have */
	bool hidden;                /* some block texts are not shown */
	bool strict;                /* the provider gets the schema: no schema block */
};
void hs_prompt_delta(
	struct hs_pool *pool, const struct hs_delta_prompt_in *in, struct hs_prompt *ret);
/* "- [type:id] text\n", line breaks of the text as blanks. */
const char *hs_delta_fact_line(
	struct hs_pool *pool, const char *type, const char *id, const char *text);
/* The user message that asks once more: a line a fault; map shows ids that exist, "" = none. */
const char *hs_prompt_delta_reask(
	struct hs_pool *pool, const struct hs_strs *faults, const char *map);
/* What a delta run tells the searching agent about its answer. */
const char *hs_prompt_delta_context(void);
/* The text in place of a block's own when the document is too long to be shown whole. */
#define HS_NOT_SHOWN "[not shown]"

#endif
