/*
 * embed_service - vectors from an OpenAI-compatible /embeddings service.
 *
 * Floor:   llm, inside only; needs curl.
 * Retries: connection errors, time-outs, 408, 409, 425, 429, 5xx and unreadable answers, within
 *          embeddings_max_retries and embeddings_retry_budget.
 * Errors:  HS_E_EMBED, HS_E_EMBED_DIM, HS_E_TIMEOUT. Messages name no address and no key.
 */
#ifndef HS_LLM_EMBED_SERVICE_H
#define HS_LLM_EMBED_SERVICE_H

#include "llm/embed.h"
#include "llm/slots.h"

struct hs_embed_service {
	const char *url, *key, *model;
	struct hs_strs headers;
	int64_t dimensions; /* 0 = the service's own */
	int64_t batch_size, max_retries, timeout_ms, connect_ms;
	double initial_backoff_s, max_backoff_s, retry_budget_s;
	struct hs_slots *slots;
};

HS_MUST enum hs_rc hs_embed_service_read(struct hs_pool *pool, const struct hs_config *cfg,
	struct hs_embed_service *ret, struct hs_err *err);
/* texts are cut and prefixed already. */
HS_MUST enum hs_rc hs_embed_service_call(const struct hs_embed_service *s, struct hs_pool *pool,
	const struct hs_strs *texts, int64_t deadline_us, struct hs_vec *ret, struct hs_err *err);

#endif
