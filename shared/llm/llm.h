/*
 * llm - provider-neutral chat calls: messages, tools, JSON output; retries, clean-up, usage.
 *
 * Floor:   llm. Wire formats live in one file each (openai.c); transport.c alone includes
 *          <curl/curl.h>. Rules: contract reflect part C.
 * Thread:  a struct hs_llm is read-only after hs_llm_new and shared by threads.
 * Time:    one attempt is bounded by the operation's timeout and by deadline_us, whichever is
 *          sooner; the cancel test is asked before every request and during every wait.
 * Messages: {role, content, tool_calls?, tool_call_id?}. A tool call is {id, name, arguments} with the
 *          arguments as JSON text or object (or ready in the wire's form, with `function`); the
 *          answer to it is {role: tool, tool_call_id, content}. No message text is changed.
 * Errors:  HS_E_LLM_NONE, _AUTH (401, 403), _POLICY, _OVERFLOW, _REFUSED (400, 404, 405, 413, 422),
 *          _QUOTA (err->retry_at_us), _DOWN, _TIMEOUT, _REPLY, _EMPTY (neither text nor tool call),
 *          _LENGTH; HS_E_TIMEOUT when deadline_us passed; HS_E_CANCELLED. Messages name no URL and
 *          no key.
 */
#ifndef HS_LLM_LLM_H
#define HS_LLM_LLM_H

#include <jansson.h>

#include "base/err.h"
#include "base/pool.h"
#include "config/config.h"

struct hs_llm;

struct hs_llm_call {
	const char *operation;     /* whose settings: retain, reflect, consolidation, mental_model_refresh */
	const char *scope;         /* X-Hindsight-Operation: retain_extract_facts, reflect_tool_call, … */
	json_t *messages;          /* array of {role, content, tool_calls?, tool_call_id?}; borrowed */
	json_t *tools;             /* array of {name, description, parameters}; NULL = none */
	const char *tool;          /* force this tool; NULL with tools = required, any of them */
	bool json;                 /* JSON object wanted */
	json_t *schema;            /* reply schema; used in strict mode */
	bool text_only;            /* with json: the caller reads the text, whatever it is; no retry for it */
	double temperature;        /* < 0: not sent */
	int64_t max_tokens;        /* output cap; 0 = none sent */
	int64_t max_retries;       /* -1 = setting */
	int64_t deadline_us;       /* on hs_mono_us; 0 = none */
	bool (*cancelled)(void *arg);
	void *cancel_arg;
	const char *run_id;        /* same for all calls of one run: cache affinity; may be NULL */
};

struct hs_llm_tool_call {
	const char *id, *name;
	json_t *args;              /* object; {"_raw": text} when it was none */
	const char *raw_args;      /* as sent */
};
struct hs_llm_usage {
	int64_t input, output, cached, thoughts;
};
struct hs_llm_reply {
	const char *text;          /* cleaned; "" when there was none */
	const char *raw_text;      /* as sent */
	json_t *value;             /* JSON calls: the parsed reply */
	struct hs_llm_tool_call *calls;
	size_t n_calls;
	const char *finish_reason; /* "" when missing */
	struct hs_llm_usage usage;
	const char *provider, *model;
	int64_t duration_ms;
};

/* HS_E_CONFIG when a provider is unknown or a key is missing at a native address. */
HS_MUST enum hs_rc hs_llm_new(struct hs_pool *pool, const struct hs_config *cfg, struct hs_llm **ret, struct hs_err *err);
/* One call with its retries. Everything of *ret lives in the pool. */
HS_MUST enum hs_rc hs_llm_chat(const struct hs_llm *llm, struct hs_pool *pool, const struct hs_llm_call *call, struct hs_llm_reply *ret, struct hs_err *err);
/* Temperature setting of an operation: own value, general one, default; < 0 = do not send. op also
 * "mental_model_refresh". */
double hs_llm_temperature(const struct hs_config *cfg, const char *op);
/* Does strict schema mode apply to this operation? Never where JSON mode is off. */
bool hs_llm_strict(const struct hs_config *cfg, const char *op);
/* Lenient JSON (contract reflect C5): fences, raw control characters, then structural repair. NULL
 * when nothing could be read. */
json_t *hs_json_lenient(struct hs_pool *pool, const char *text, bool repair);

#endif
