/*
 * memories - the program hindsight-memories: retain, recall, consolidate; reading and deleting of
 * memories, documents, chunks, entities, tags.
 *
 * Rules:   contract retain-recall 2, 3, 4, 5.1. routes.c holds the tables of retain, recall and
 *          consolidate, routes_read.c those of the rest.
 */
#ifndef HS_HANDLERS_MEMORIES_H
#define HS_HANDLERS_MEMORIES_H

#include "engine/run.h"
#include "store/scope.h"
#include "web/route.h"

/* What the threads share: read-only after the start. */
struct memories_data {
	struct hs_llm *llm;
	struct hs_embedder *embedder;
};
/* What the engine gets for this request: connection, models, the client's going away. */
struct hs_run memories_run(struct hs_ctx *c);

/* ---- POST memories ---- */

struct item_time {
	bool given, unset;
	int64_t us;       /* HS_TIME_NONE unless given */
	const char *text; /* as the client wrote it */
};
struct entity_body {
	struct hs_seen seen;
	const char *text, *type;
};
struct item_body {
	struct hs_seen seen;
	const char *content, *context, *document_id, *strategy;
	struct item_time timestamp;
	json_t *metadata, *entities, *observation_scopes; /* as sent; NULL = null */
	bool resolve_entities;
	struct hs_strs tags;
	int update_mode; /* update_modes; -1 = null */
};
enum { UPDATE_REPLACE, UPDATE_APPEND };
struct retain_body {
	struct hs_seen seen;
	struct hs_list items;
	bool async;
	struct hs_strs document_tags;
	const char *operation_id; /* canonical form */
};
enum hs_rc retain_post(struct hs_ctx *c, const void *query, const void *body);

/* ---- POST memories/recall ---- */

struct include_entities {
	struct hs_seen seen;
	int64_t max_tokens;
};
struct include_chunks {
	struct hs_seen seen;
	int64_t max_tokens;
};
struct include_sources {
	struct hs_seen seen;
	int64_t max_tokens, max_tokens_per_observation;
};
struct recall_include {
	struct hs_seen seen;
	struct include_entities *entities;
	struct include_chunks *chunks;
	struct include_sources *source_facts;
};
struct min_scores {
	struct hs_seen seen;
	double semantic, keyword, reranker, final;
};
struct temporal_window {
	struct hs_seen seen;
	int64_t start, end;
};
struct recall_types {
	unsigned facts; /* HS_FACT_BITs; 0 = all */
	bool nothing;   /* only types that hold nothing any more */
};
struct recall_body {
	struct hs_seen seen;
	const char *query, *query_timestamp;
	struct recall_types types;
	bool prefer_observations, trace;
	int budget, tags_match;
	int64_t max_tokens;
	struct recall_include *include;
	struct hs_strs tags;
	struct hs_groups *tag_groups;
	struct min_scores *min_scores;
	struct temporal_window *temporal_window;
};
extern const char *const recall_budgets[];
extern const struct hs_shape recall_body_shape, recall_include_shape, min_scores_shape;
enum hs_rc recall_post(struct hs_ctx *c, const void *query, const void *body);

/* ---- POST consolidate ---- */

struct consolidate_body {
	struct hs_seen seen;
	json_t *observation_scopes; /* list of lists of tags; NULL = null */
};
enum hs_rc consolidate_post(struct hs_ctx *c, const void *query, const void *body);

extern const struct hs_route memories_routes[];

#endif
