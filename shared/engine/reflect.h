/*
 * reflect - answer a question from a bank: the loop with its tools, the closing call, citations.
 *
 * Floor:   engine. Rules: contract reflect part A. Holds no transaction during model calls.
 */
#ifndef HS_ENGINE_REFLECT_H
#define HS_ENGINE_REFLECT_H

#include "engine/document.h"
#include "engine/recall.h"
#include "engine/run.h"

struct hs_reflect_in {
	const struct hs_bank *bank;
	const struct hs_config *cfg;           /* the bank's */
	const char *query;                     /* context already appended */
	const char *extra_context;             /* internal callers: refresh instructions */
	const char *budget;                    /* low, mid, high */
	int64_t max_tokens;
	struct hs_scope scope;                 /* tags, groups, fact types, window (facts only) */
	bool apply_all_directives;
	bool exclude_mental_models;
	struct hs_strs exclude_mental_model_ids;
	json_t *response_schema;               /* NULL = none */
	int64_t observations_tokens, models_tokens;
	bool observations_entities;
	bool include_chunks;
	int64_t recall_tokens, recall_chunk_tokens;
	bool document;                         /* the answer is a structured document (refresh) */
	bool strict;                           /* a lost arm is a failure (refresh) */
};
struct hs_reflect_fact {                       /* one entry of based_on */
	const char *id, *text, *type, *context, *document_id, *chunk_id;
	int64_t occurred_start_us, occurred_end_us, mentioned_us;
	struct hs_strs tags;
	const char *metadata;                  /* JSON text or NULL */
};
struct hs_reflect_model {
	const char *id, *text;
};
struct hs_reflect_directive {
	const char *id, *name, *content;
};
struct hs_tool_trace {
	const char *tool;
	json_t *input, *output;
	int64_t duration_ms, iteration;
};
struct hs_llm_trace {
	const char *scope;
	int64_t duration_ms;
};
struct hs_reflect_out {
	const char *text;
	struct hs_document document;           /* document mode */
	bool has_document;
	bool answer_found;                     /* the closing done's word; true when it gave none */
	bool retrieved;                        /* at least one memory or model was retrieved */
	size_t n_retrieved[HS_FACT_TYPE__MAX]; /* distinct memories by type */
	size_t n_models_retrieved;             /* distinct models, searches only */
	struct hs_reflect_fact *facts;         /* world, experience, observation; order of first retrieval */
	size_t n_facts;
	struct hs_reflect_model *models;
	size_t n_models;
	struct hs_reflect_directive *directives;
	size_t n_directives;
	json_t *structured_output;
	const char *structured_error;
	struct hs_tool_trace *tools;
	size_t n_tools;
	struct hs_llm_trace *calls;
	size_t n_calls;
	struct hs_llm_usage usage;
	int64_t document_tokens;               /* set when the document stayed over max_tokens */
};
/* Fill the tunables from the bank's configuration. */
struct hs_reflect_in hs_reflect_defaults(const struct hs_bank *bank, const struct hs_config *cfg, const char *query);
/* HS_E_LLM_NONE when the provider of this operation is none; asked before a bank is made. */
HS_MUST enum hs_rc hs_reflect_ready(const struct hs_config *cfg, const char *operation, struct hs_err *err);
/* On failure *ret holds the trace so far (kept by a refresh with keep_trace). */
HS_MUST enum hs_rc hs_reflect(struct hs_run *run, const struct hs_reflect_in *in, struct hs_reflect_out *ret, struct hs_err *err);

#endif
