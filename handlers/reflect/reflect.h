/*
 * reflect - the program hindsight-reflect: one route.
 *
 * Rules:   contract reflect A2, A3, A6, A18. Keys with a null value are left out of this answer.
 */
#ifndef HS_HANDLERS_REFLECT_H
#define HS_HANDLERS_REFLECT_H

#include "engine/run.h"
#include "store/scope.h"
#include "web/route.h"

/* What the threads share: read-only after the start. */
struct reflect_data {
	struct hs_llm *llm;
	struct hs_embedder *embedder;
};

/* Tunables of a request and of the setting reflect_default_options. */
struct reflect_options {
	struct hs_seen seen;
	int64_t reflect_search_observations_max_tokens;
	bool reflect_search_observations_include_entities;
	int64_t reflect_search_mental_models_max_tokens;
};
struct reflect_tool_calls {
	struct hs_seen seen;
	bool output;
};
struct reflect_facts {
	struct hs_seen seen;
};
struct reflect_include {
	struct hs_seen seen;
	struct reflect_facts *facts;           /* NULL = off */
	struct reflect_tool_calls *tool_calls; /* NULL = off */
};
struct reflect_body {
	struct hs_seen seen;
	const char *query, *context;
	int budget, tags_match;
	int64_t max_tokens;
	struct reflect_include *include;
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
extern const char *const reflect_budgets[];
extern const struct hs_shape reflect_body_shape, reflect_options_shape;
extern const struct hs_route reflect_routes[];

enum hs_rc reflect_post(struct hs_ctx *c, const void *query, const void *body);

#endif
