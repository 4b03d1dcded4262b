/*
 * reflect_body - a reflect as clients ask for it: field table, the call, parts of the answer.
 *
 * Floor:   engine. Rules: contract reflect A2, A3, A6. HTTP and MCP ask by the same table.
 * Errors:  HS_E_LLM_NONE before a bank is made, HS_E_CLIENT_GONE, HS_E_WALL_CLOCK, those of
 *          hs_reflect.
 */
#ifndef HS_ENGINE_REFLECT_BODY_H
#define HS_ENGINE_REFLECT_BODY_H

#include "engine/reflect.h"
#include "json/check.h"
#include "json/out.h"

/* Tunables of a request and of the setting reflect_default_options. */
struct hs_reflect_options {
	struct hs_seen seen;
	int64_t reflect_search_observations_max_tokens;
	bool reflect_search_observations_include_entities;
	int64_t reflect_search_mental_models_max_tokens;
};
struct hs_reflect_tool_calls {
	struct hs_seen seen;
	bool output;
};
struct hs_reflect_facts {
	struct hs_seen seen;
};
struct hs_reflect_include {
	struct hs_seen seen;
	struct hs_reflect_facts *facts;           /* NULL = off */
	struct hs_reflect_tool_calls *tool_calls; /* NULL = off */
};
struct hs_reflect_body {
	struct hs_seen seen;
	const char *query, *context;
	int budget, tags_match; /* hs_budget_names, enum hs_tags_match */
	int64_t max_tokens;
	struct hs_reflect_include *include;
	json_t *response_schema;
	struct hs_strs tags;
	struct hs_groups *tag_groups; /* NULL = null */
	bool apply_all_directives;
	struct hs_strs fact_types;
	bool exclude_mental_models;
	struct hs_strs exclude_mental_model_ids;
	int64_t reflect_search_observations_max_tokens;
	bool reflect_search_observations_include_entities;
	int64_t reflect_search_mental_models_max_tokens;
};
extern const struct hs_shape hs_reflect_body_shape;

/* Makes a missing bank; sets the run's deadline; counts metrics. */
HS_MUST enum hs_rc hs_reflect_call(struct hs_run *run, const char *bank_id,
	const struct hs_reflect_body *b, struct hs_reflect_out *ret, struct hs_err *err);

/* One entry of the evidence, members without a value left out; one usage object. */
void hs_reflect_put_fact(struct hs_out *o, const struct hs_reflect_fact *f);
void hs_reflect_put_usage(struct hs_out *o, const struct hs_llm_usage *u);

#endif
