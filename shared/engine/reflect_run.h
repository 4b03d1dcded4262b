/*
 * reflect_run - the state of one reflect, shared by the files of the loop (reflect*.c) and nobody
 * else.
 *
 * Floor:   engine.
 * Files:   reflect.c setup and loop; reflect_tools.c the tools; reflect_view.c what the model
 * reads; reflect_evidence.c what was retrieved and what of it the answer shows; reflect_close.c
 *          closing call, length; reflect_synthesis.c the answer without tools; reflect_extractive.c
 *          the built-in answer.
 */
#ifndef HS_ENGINE_REFLECT_RUN_H
#define HS_ENGINE_REFLECT_RUN_H

#include "engine/reflect.h"
#include "engine/reflect_view.h"
#include "prompt/prompt.h"

/* A memory that was retrieved, and by which kind of tool. */
struct hs_retrieved {
	struct hs_reflect_fact fact;
	struct hs_strs entities, source_ids;
	double score;
	bool memory;      /* recall, expand */
	bool observation; /* search_observations */
};
/* A mental model that was retrieved. text: the best form seen, a read before a search's full text
 * before a snippet. */
struct hs_model_evidence {
	const char *id, *name, *text;
	bool searched; /* search_mental_models gave it; a read alone is not listed */
	int rank;      /* form of text: 0 snippet, 1 full, 2 read */
};
struct hs_citations {
	struct hs_strs memories, observations, models;
	bool exact; /* an empty list means none, not all */
};

struct hs_reflection {
	struct hs_run *run;
	struct hs_pool *pool;
	const struct hs_reflect_in *in;
	struct hs_reflect_out *out;
	struct hs_reflect_prompt_in prompt;
	struct hs_view view;
	const char *run_id; /* same for all calls of this run */
	json_t *tools;      /* offered, as sent */
	json_t *messages;
	int64_t iteration;         /* from 1 */
	int64_t limit_tokens;      /* context limit */
	int64_t pending;           /* facts waiting for consolidation, counted to 10 */
	int64_t clock_us;          /* newest write, read once */
	struct hs_scope tag_scope; /* tags and groups only */

	struct hs_retrieved *facts;
	size_t n_facts, cap_facts;
	struct hs_model_evidence *models;
	size_t n_models, cap_models;
	struct hs_citations cited;
	struct hs_strs history; /* results as shown, JSON text, one a call */
	size_t cap_tools, cap_calls;

	bool searched;  /* a retrieval tool answered without error */
	bool recalled;  /* recall did */
	bool released;  /* the model chooses its tools freely */
	bool compacted; /* tool messages were emptied */
};

/* One model call of the run; its usage is summed. tool: the only one to be called, NULL = any of
 * tools. trace: scope of the trace entry, NULL = none. */
struct hs_reflect_ask {
	const char *scope; /* reflect_tool_call, reflect */
	json_t *messages, *tools;
	const char *tool;
	bool claims; /* temperature 0 */
	const char *trace;
};
HS_MUST enum hs_rc hs_reflect_ask(struct hs_reflection *r, const struct hs_reflect_ask *ask,
	struct hs_llm_reply *ret, struct hs_err *err);
void hs_reflect_trace_call(struct hs_reflection *r, const char *scope, int64_t duration_ms);
/* Errors that end a reflect wherever they come: cancelled, out of time, refused for good. */
bool hs_reflect_fatal(enum hs_rc rc, const struct hs_err *err);

/* reflect_tools.c */
enum hs_reflect_tool {
	HS_RT_SEARCH_MODELS,
	HS_RT_READ_MODELS,
	HS_RT_SEARCH_OBSERVATIONS,
	HS_RT_RECALL,
	HS_RT_EXPAND,
	HS_RT_ANSWER_READY,
	HS_RT_DONE,
	HS_RT__MAX
};
extern const char *const hs_reflect_tool_names[HS_RT__MAX];
/* -1 for an unknown or not offered one. */
int hs_reflect_tool_find(const struct hs_reflection *r, const char *name);
bool hs_reflect_tool_offered(const struct hs_reflection *r, enum hs_reflect_tool tool);
/* The name as it was meant: without "call=", "functions." and what follows "<|". */
const char *hs_reflect_tool_name(struct hs_pool *pool, const char *name);
/* Ceiling of the token arguments in a turn of so many calls. */
int64_t hs_reflect_ceiling(const struct hs_reflection *r, size_t calls);
/* Run a retrieval tool, record trace, history and evidence. *ret_shown is what the model reads. An
 * {"error"} result is HS_OK; a failure ends the reflect. */
HS_MUST enum hs_rc hs_reflect_tool_run(struct hs_reflection *r, enum hs_reflect_tool tool,
	json_t *args, int64_t ceiling, json_t **ret_shown, struct hs_err *err);
/* Tokens of all messages: texts and tool arguments. */
int64_t hs_reflect_tokens(const json_t *messages);

/* One retrieval tool: aliases in args are resolved; *ret is a new result of the pool. ceiling: of
 * token arguments. */
typedef enum hs_rc hs_reflect_tool_fn(
	struct hs_reflection *r, json_t *args, int64_t ceiling, json_t **ret, struct hs_err *err);
hs_reflect_tool_fn hs_reflect_search_models, hs_reflect_read_models, hs_reflect_expand;
/* Integer argument: absent, null, 0, false, "", "none", "null" leave *v as it is. *ret_given tells
 * whether the model named one. Another text: NULL-free fault text, else NULL. */
const char *hs_reflect_int_arg(
	struct hs_pool *pool, const json_t *args, const char *name, int64_t *v, bool *ret_given);
/* The same for a token budget: a value the model names is lowered to the ceiling, then raised to
 * 1000. */
const char *hs_reflect_tokens_arg(
	struct hs_pool *pool, const json_t *args, const char *name, int64_t ceiling, int64_t *v);
/* A list of ids; a plain string is one id. */
struct hs_strs hs_reflect_ids_arg(struct hs_pool *pool, const json_t *args, const char *name);
/* {"error": …} as a result of the pool. */
json_t *hs_reflect_fault(struct hs_pool *pool, const char *text);
/* The non-empty query of a call; NULL with *ret_fault set. */
const char *hs_reflect_query_arg(
	struct hs_reflection *r, const json_t *args, const char *tool, json_t **ret_fault);
/* At least one model, all fresh and none blank: forcing is released. */
bool hs_reflect_models_fresh(const json_t *result);

/* reflect_evidence.c */
void hs_reflect_saw_fact(
	struct hs_reflection *r, const struct hs_retrieved *fact, bool observation);
void hs_reflect_saw_model(struct hs_reflection *r, const char *id, const char *name,
	const char *text, bool searched, int rank);
/* Fill the counts of *out. */
void hs_reflect_count(struct hs_reflection *r);
/* Keep of the given ids those that were retrieved. */
void hs_reflect_cite(struct hs_reflection *r, json_t *args);
/* Fill based_on of *out: cited evidence, else all; read again from the database. */
HS_MUST enum hs_rc hs_reflect_based_on(struct hs_reflection *r, struct hs_err *err);
/* The text without ids that nothing of this run knows. */
const char *hs_reflect_verified(struct hs_reflection *r, const char *text);

/* reflect_close.c: the closing call. *ret_done false: go to the synthesis. */
HS_MUST enum hs_rc hs_reflect_close(struct hs_reflection *r, bool *ret_done, struct hs_err *err);
/* Length and unknown ids, for both endings. */
HS_MUST enum hs_rc hs_reflect_finish(struct hs_reflection *r, struct hs_err *err);
/* Append {assistant calls} and {tool result}. */
void hs_reflect_add_assistant(
	struct hs_reflection *r, const char *text, const struct hs_llm_tool_call *calls, size_t n);
void hs_reflect_add_tool(struct hs_reflection *r, const char *call_id, const char *content);
/* {"error": text} as JSON text. */
const char *hs_reflect_error_text(struct hs_reflection *r, const char *text);

/* reflect_synthesis.c */
HS_MUST enum hs_rc hs_reflect_synthesis(struct hs_reflection *r, struct hs_err *err);

/* reflect_extractive.c */
HS_MUST enum hs_rc hs_reflect_extractive(struct hs_reflection *r, struct hs_err *err);

#endif
