/*
 * memories - the program hindsight-memories: retain, recall, consolidate; reading and deleting of
 * memories, documents, chunks, entities, tags.
 *
 * Rules:   contract retain-recall 2, 3, 4, 5.1. routes.c holds the tables of retain, recall and
 *          consolidate, routes_read.c those of the rest.
 */
#ifndef HS_HANDLERS_MEMORIES_H
#define HS_HANDLERS_MEMORIES_H

#include "engine/recall_body.h"
#include "engine/retain_item.h"
#include "web/route.h"

/* What the threads share: read-only after the start. */
struct memories_data {
	struct hs_llm *llm;
	struct hs_embedder *embedder;
};
/* What the engine gets for this request: connection, models, the client's going away. */
struct hs_run memories_run(struct hs_ctx *c);

/* ---- POST memories ---- */

struct retain_body {
	struct hs_seen seen;
	struct hs_list items;
	bool async;
	struct hs_strs document_tags;
	const char *operation_id; /* canonical form */
};
enum hs_rc retain_post(struct hs_ctx *c, const void *query, const void *body);

/* ---- POST memories/recall ---- */

enum hs_rc recall_post(struct hs_ctx *c, const void *query, const void *body);

/* ---- POST consolidate ---- */

struct consolidate_body {
	struct hs_seen seen;
	json_t *observation_scopes; /* list of lists of tags; NULL = null */
};
enum hs_rc consolidate_post(struct hs_ctx *c, const void *query, const void *body);

extern const struct hs_route memories_routes[];

#endif
