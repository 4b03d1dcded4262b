/*
 * recall - find memories: keyword and vector arms, fusion, boosts, packing into a token budget.
 *
 * Floor:   engine. Rules: contract retain-recall 4.
 * Shapes:  results best first; `scores` as 4.2. Text and ids live in the run's pool.
 * Errors:  HS_E_BANK_MISSING, HS_E_RETRIEVAL (a whole retrieval failed), database codes. A lost
 *          embedding service loses the vector arm: arm_lost is set and the call goes on when the
 *          keyword arm works (strict: HS_E_RETRIEVAL instead).
 */
#ifndef HS_ENGINE_RECALL_H
#define HS_ENGINE_RECALL_H

#include "engine/run.h"
#include "store/scope.h"

struct hs_recall_in {
	const struct hs_bank *bank;
	const struct hs_config *cfg;      /* the bank's */
	const char *query;
	struct hs_vec query_vec;          /* the query embedded by the caller; v NULL = here */
	struct hs_scope scope;            /* tags, groups, fact types, window */
	const char *budget;               /* low, mid, high; NULL = mid */
	int64_t max_tokens;
	int64_t query_us;                 /* anchor for recency; HS_TIME_NONE = now */
	bool with_entities;
	bool with_chunks;
	int64_t chunk_tokens;
	bool with_source_facts;
	int64_t source_tokens;            /* -1 unlimited */
	int64_t source_tokens_each;       /* -1 none */
	int prefer_observations;          /* -1 = the bank's setting */
	double min_semantic, min_keyword, min_reranker, min_final;  /* NaN = none */
	bool rank_by_arm;                 /* consolidation: round-robin of the arms, no boosts */
	bool strict;                      /* refresh: a lost arm is a failure */
};

struct hs_score {
	double final, semantic, keyword;  /* NaN prints null, but final is always a number */
};
struct hs_hit {
	int64_t unit_no;
	const char *id, *text, *context, *document_id, *chunk_id, *metadata;  /* metadata: JSON text */
	enum hs_fact_type type;
	int64_t occurred_start_us, occurred_end_us, mentioned_us, updated_us;
	int64_t chunk_index;              /* -1 = none */
	int64_t proof_count;
	struct hs_strs tags, entities;    /* entities: canonical names */
	struct hs_strs source_fact_ids;
	struct hs_score score;
};
struct hs_recall_entity {
	const char *entity_id, *canonical_name;
};
struct hs_recall_chunk {
	const char *chunk_id, *text;
	int64_t chunk_index;
	bool truncated;
};
struct hs_recall_out {
	struct hs_hit *hits;
	size_t n_hits;
	struct hs_recall_entity *entities;  /* in order of first appearance */
	size_t n_entities;
	struct hs_recall_chunk *chunks;
	size_t n_chunks;
	struct hs_hit *sources;             /* source facts */
	size_t n_sources;
	bool sources_truncated;
	bool arm_lost;
};
HS_MUST enum hs_rc hs_recall(struct hs_run *run, const struct hs_recall_in *in, struct hs_recall_out *ret, struct hs_err *err);
/* Defaults: mid budget, 4096 tokens, all facts, NaN floors. */
struct hs_recall_in hs_recall_defaults(const struct hs_bank *bank, const struct hs_config *cfg, const char *query);

#endif
