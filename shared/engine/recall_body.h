/*
 * recall_body - a recall as clients ask for it: field table, the engine's form, the call.
 *
 * Floor:   engine. Rules: contract retain-recall 4.1. HTTP and MCP read queries by the same table.
 * Errors:  HS_E_BAD_REQUEST (query_timestamp), HS_E_CLIENT_GONE, HS_E_TIMEOUT, those of hs_recall.
 */
#ifndef HS_ENGINE_RECALL_BODY_H
#define HS_ENGINE_RECALL_BODY_H

#include "engine/recall.h"

struct hs_include_entities {
	struct hs_seen seen;
	int64_t max_tokens;
};
struct hs_include_chunks {
	struct hs_seen seen;
	int64_t max_tokens;
};
struct hs_include_sources {
	struct hs_seen seen;
	int64_t max_tokens, max_tokens_per_observation;
};
struct hs_recall_include {
	struct hs_seen seen;
	struct hs_include_entities *entities;
	struct hs_include_chunks *chunks;
	struct hs_include_sources *source_facts;
};
struct hs_min_scores {
	struct hs_seen seen;
	double semantic, keyword, reranker, final;
};
struct hs_temporal_window {
	struct hs_seen seen;
	int64_t start, end;
};
struct hs_recall_types {
	unsigned facts; /* HS_FACT_BITs; 0 = all */
	bool nothing;   /* only types that hold nothing any more */
};
struct hs_recall_body {
	struct hs_seen seen;
	const char *query, *query_timestamp;
	struct hs_recall_types types;
	bool prefer_observations, trace;
	int budget, tags_match; /* hs_budget_names, enum hs_tags_match */
	int64_t max_tokens;
	struct hs_recall_include *include;
	struct hs_strs tags;
	struct hs_groups *tag_groups;
	struct hs_min_scores *min_scores;
	struct hs_temporal_window *temporal_window;
};
extern const struct hs_shape hs_recall_body_shape;

/* *ret_in is what was asked of the engine, nothing when the types select nothing. Counts metrics. */
HS_MUST enum hs_rc hs_recall_call(struct hs_run *run, const char *bank_id,
	const struct hs_recall_body *b, struct hs_recall_in *ret_in, struct hs_recall_out *ret,
	struct hs_err *err);

#endif
