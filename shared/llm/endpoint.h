/*
 * endpoint - the settings of each operation's model calls, resolved and checked once.
 *
 * Floor:   llm, inside only. Rules: contract reflect C1, C2.
 * Errors:  HS_E_CONFIG: unknown provider, missing key at a native address, an address that is none, a
 *          header that cannot be sent.
 */
#ifndef HS_LLM_ENDPOINT_H
#define HS_LLM_ENDPOINT_H

#include <jansson.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"
#include "config/config.h"
#include "llm/slots.h"

enum hs_llm_op {
	HS_OP_RETAIN,
	HS_OP_REFLECT,
	HS_OP_CONSOLIDATION,
	HS_OP_REFRESH,
	HS_OP_GENERAL,
	HS_OP__MAX
};

/* What is special about a provider. */
struct hs_provider {
	const char *name, *base_url;
	bool needs_key;      /* at its own address */
	bool no_tool_choice; /* the model decides */
	bool no_json_mode;   /* response_format is not sent */
	bool bare_host_v1;   /* a bare host gets /v1 */
};

struct hs_endpoint {
	enum hs_llm_op op;
	bool usable; /* false: provider extractive or none */
	const struct hs_provider *provider;
	const char *provider_name, *model, *key;
	const char *chat_url; /* with the query of the base URL */
	bool native;          /* the provider's own address */
	const char *host;     /* lower case */
	int64_t timeout_ms, connect_ms, max_retries;
	double initial_backoff_s, max_backoff_s;
	const char *reasoning_effort; /* NULL = not sent */
	json_t *extra_body;           /* NULL = none */
	struct hs_strs headers;       /* ready lines of the default headers */
	bool json_mode;               /* response_format is sent */
	bool strict;
	const char *cache_affinity; /* auto, none, openai_prompt_cache_key, xai_conv_id */
	struct hs_slots *slots;     /* of this operation; never NULL */
};

HS_MUST enum hs_rc hs_endpoint_read(struct hs_pool *pool, const struct hs_config *cfg,
	enum hs_llm_op op, struct hs_endpoint *ret, struct hs_err *err);
/* "retain" … ; "mental_model_refresh"; NULL and unknown names are the general one. */
enum hs_llm_op hs_llm_op_find(const char *name);
/* Base address + path, the query string of the base kept. */
const char *hs_url_join(struct hs_pool *pool, const char *base, const char *path);
/* Host of an http(s) address in lower case, "" when it is none. */
const char *hs_url_host(struct hs_pool *pool, const char *url);

#endif
