/*
 * openai - the wire format of OpenAI-compatible chat services.
 *
 * Floor:   llm, inside only; pure: text in, text out. Rules: contract reflect C2, C3.
 */
#ifndef HS_LLM_OPENAI_H
#define HS_LLM_OPENAI_H

#include "llm/endpoint.h"
#include "llm/llm.h"
#include "llm/transport.h"

/* What a refusal taught about this call (contract C7). */
struct hs_openai_learnt {
	bool no_tool_choice;
	bool effort_none;
};

/* Body of the request. HS_E_INTERNAL when the forced tool is not among the tools; HS_E_LIMIT when the
 * request would be longer than HS_PROMPT_MAX. */
HS_MUST enum hs_rc hs_openai_body(struct hs_pool *pool, const struct hs_endpoint *e,
	const struct hs_llm_call *call, const struct hs_openai_learnt *learnt,
	const char **ret_body, struct hs_err *err);
/* Header lines of the request, X-Hindsight-Operation among them. */
struct hs_strs hs_openai_headers(
	struct hs_pool *pool, const struct hs_endpoint *e, const struct hs_llm_call *call);
/* Would tool_choice be sent? */
bool hs_openai_sends_tool_choice(const struct hs_endpoint *e, const struct hs_llm_call *call);

/* A 200 answer -> reply, usage set even when the rest cannot be used. *ret_retry: may another attempt
 * heal it? JSON of the text is not looked at here. */
HS_MUST enum hs_rc hs_openai_read(struct hs_pool *pool, const struct hs_llm_call *call,
	const char *body, size_t n, struct hs_llm_reply *ret, bool *ret_retry, struct hs_err *err);
/* The schema as strict mode wants it: objects closed, every property required, optional ones nullable,
 * without the keywords that are refused. New reference. */
json_t *hs_strict_schema(json_t *schema);

#endif
