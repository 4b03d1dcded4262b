/*
 * reflect_prompt - what of reflect's prompt belongs to the bank: name, mission, disposition,
 * directives. Reflect adds the request's part; the preview shows it as it is.
 *
 * Floor:   engine. Calls no model. Rules: contract reflect B2.
 */
#ifndef HS_ENGINE_REFLECT_PROMPT_H
#define HS_ENGINE_REFLECT_PROMPT_H

#include "prompt/prompt.h"
#include "store/bank.h"
#include "store/directive.h"

/* Every tool offered, no question, no request options, no directives. */
struct hs_reflect_prompt_in hs_reflect_prompt_of(
	const struct hs_bank *bank, const struct hs_config *cfg);
/* The directives that have content, in their order. */
void hs_reflect_prompt_directives(struct hs_pool *pool, const struct hs_directive *rows, size_t n,
	struct hs_reflect_prompt_in *ret);

#endif
