/*
 * models - the routes of hindsight-mental-models: bodies, queries and functions.
 *
 * Rules: contract mental-models 3, 4, 19, 20.
 */
#ifndef HS_HANDLERS_MODELS_H
#define HS_HANDLERS_MODELS_H

#include "engine/model_body.h"
#include "web/program.h"

/* What the threads share: read-only after the start. */
struct mm_data {
	struct hs_llm *llm; /* dry runs */
	struct hs_embedder *embedder;
};

struct mm_list_query {
	struct hs_seen seen;
	struct hs_strs tags;
	int tags_match, detail;
	int64_t limit, offset;
	bool exclude_knowledge_pages;
};
struct mm_get_query {
	struct hs_seen seen;
	int detail;
};
struct mm_refresh {
	struct hs_seen seen;
	int mode; /* 0 = full, -1 = the model's own */
};
extern const struct hs_route mm_routes[];

hs_route_fn mm_list, mm_create, mm_get, mm_patch, mm_delete, mm_refresh, mm_dry_run, mm_clear,
	mm_history;

/* Per thread: shown forms of the triggers seen last, as parsing one costs more than the rest of a read. */
void *mm_thread_start(struct hs_app *app, struct hs_db *db);
void mm_thread_end(void *data);
/* The stored trigger with every member at its effective value. Lent until the next call. */
const char *mm_trigger_shown(struct hs_ctx *c, const char *stored);

/* What the engine gets for one request of this program. */
struct hs_run mm_run(struct hs_ctx *c);
/* The whole model as an answer, without staleness and page mark: PATCH and clear. */
HS_MUST enum hs_rc mm_reply(struct hs_ctx *c, const char *id);

#endif
