/*
 * mental_model - mental models, their tags and their history.
 *
 * Floor:   store. Tables mental_models, mental_model_tags, mental_model_history. Rules: contract
 *          mental-models 2, 3, 10, 18, 19, 22.
 * Shapes:  trigger, tags, structured_content and reflect_response are JSON text as stored; what they
 *          mean is the engine's business (engine/trigger.h, engine/document.h).
 * Reads:   one statement each, bank and model together. Functions with a bank_id join the banks
 *          table; those with a bank_no serve jobs and transactions.
 * Locks:   a change locks the model row first; operations come after it.
 * Owns:    everything in the pool given.
 * Errors:  HS_E_NOT_FOUND "Mental model '<id>' not found" (also for a missing bank, but the list:
 *          HS_E_BANK_MISSING); HS_E_CONFLICT for an id that exists; database codes.
 */
#ifndef HS_STORE_MENTAL_MODEL_H
#define HS_STORE_MENTAL_MODEL_H

#include "db/db.h"
#include "db/row.h"
#include "store/scope.h"

/* How much of a model is asked for: each level adds members. */
enum hs_detail { HS_METADATA, HS_CONTENT, HS_FULL, HS_DETAIL__MAX };
extern const char *const hs_detail_names[]; /* NULL-ended, for HS_ENUM */

struct hs_mm {
	/* every level */
	int64_t bank_no;
	const char *id, *name;
	const char *tags;    /* JSON array text */
	const char *trigger; /* JSON object text */
	int64_t last_refreshed_us, last_memory_seen_us, read_until_us;
	int64_t last_refresh_failed_us, last_full_refreshed_us, created_us;
	/* HS_CONTENT; NULL or 0 below it */
	const char *source_query, *content;
	int64_t max_tokens;
	/* HS_FULL */
	const char *reflect_response; /* NULL when never refreshed */
	int64_t clock_us; /* the bank's commit clock, read in the same statement; not in lists */
	/* hs_mm_load and hs_mm_lock only */
	const char *structured_content, *last_refreshed_source_query;
};
/* coalesce(last_memory_seen_at, read_until): newer memories make the model stale. */
int64_t hs_mm_since(const struct hs_mm *m);

/* ---- reads of the wire ---- */
HS_MUST enum hs_rc hs_mm_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, enum hs_detail detail, struct hs_mm *ret, struct hs_err *err);

struct hs_mm_list {
	const char *bank_id;
	struct hs_strs tags; /* none = no filter */
	int match;           /* index into hs_list_match_names; never adds untagged models */
	enum hs_detail detail;
	int64_t limit, offset; /* limit < 0 = all */
};
struct hs_mm_page {
	int64_t bank_no, clock_us, total;
	struct hs_mm *v;
	size_t n;
};
/* Three statements: bank with its clock, page, total. */
HS_MUST enum hs_rc hs_mm_list(struct hs_db *db, struct hs_pool *pool, const struct hs_mm_list *in,
	struct hs_mm_page *ret, struct hs_err *err);

struct hs_mm_event {
	bool failed;         /* kind refresh_failed, else a version */
	const char *content; /* JSON object text, as written by hs_mm_history_add */
	int64_t changed_us;
};
/* Newest first. */
HS_MUST enum hs_rc hs_mm_history(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, struct hs_mm_event **ret, size_t *ret_n, struct hs_err *err);

/* ---- reads of jobs and of reflect ---- */
/* The whole row with structure and the bank's clock (the cutoff of a refresh), read plainly. */
HS_MUST enum hs_rc hs_mm_load(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, struct hs_mm *ret, struct hs_err *err);
/* Bank number, name and content of one model: what changes need before their transaction. */
HS_MUST enum hs_rc hs_mm_find(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, struct hs_mm *ret, struct hs_err *err);
HS_MUST enum hs_rc hs_mm_count(struct hs_db *db, int64_t bank_no, int64_t *ret, struct hs_err *err);

struct hs_mm_search {
	int64_t bank_no;
	const struct hs_scope *scope; /* tags and groups; facts and window do not count */
	struct hs_strs exclude;       /* ids */
	const char *embedder;         /* hs_embedder_tag: vectors of others are left out */
	const float *vec;
	size_t dim;
	size_t max; /* results at most */
};
struct hs_mm_hit {
	struct hs_mm model; /* level HS_CONTENT */
	double relevance;   /* cosine, -1 … 1 */
};
/* Best first; ranked here over the vectors, then the winners' texts are read. */
HS_MUST enum hs_rc hs_mm_search(struct hs_db *db, struct hs_pool *pool,
	const struct hs_mm_search *in, struct hs_mm_hit **ret, size_t *ret_n, struct hs_err *err);
/* Models by id at level HS_CONTENT, inside the scope, in the order of ids; missing ones are left out. */
HS_MUST enum hs_rc hs_mm_read(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, const struct hs_strs *ids, struct hs_mm **ret, size_t *ret_n,
	struct hs_err *err);
/* Is there another model in the scope with a written body, not among exclude? */
HS_MUST enum hs_rc hs_mm_has_sibling(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, const struct hs_strs *exclude, bool *ret, struct hs_err *err);
/* Newest updated_at of the memories in the scope, window included; HS_TIME_NONE when there is none. */
HS_MUST enum hs_rc hs_mm_newest_memory(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, int64_t *ret_us, struct hs_err *err);

/* What was written to the bank after since_us: one entry a fact type and tag set. */
struct hs_mm_writes {
	int type; /* enum hs_fact_type; -1 = unknown */
	struct hs_strs tags;
	int64_t newest_us;
};
HS_MUST enum hs_rc hs_mm_writes_since(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t since_us, struct hs_mm_writes **ret, size_t *ret_n, struct hs_err *err);

/* ---- changes; those marked (tx) run in the caller's transaction ---- */
struct hs_mm_vector { /* embedded "<name> <content>"; v NULL = no embedder */
	const float *v;
	size_t dim;
	int64_t embedder_no; /* hs_embedder_no of its tag */
};
struct hs_mm_new {
	const char *id, *name, *source_query, *structured_content;
	struct hs_strs tags;
	int64_t max_tokens;
	const char *trigger; /* complete JSON text */
	bool has_cron, after_consolidation;
	struct hs_mm_vector vector;
};
/* (tx) New row with an empty body; read_until = the bank's clock. */
HS_MUST enum hs_rc hs_mm_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const struct hs_mm_new *m, struct hs_err *err);
/* (tx) Lock the row and read it whole. */
HS_MUST enum hs_rc hs_mm_lock(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, struct hs_mm *ret, struct hs_err *err);

/* What a change sets; NULL and false members stay as they are. */
struct hs_mm_change {
	const char *name, *source_query;
	bool set_max_tokens;
	int64_t max_tokens;
	const struct hs_strs *tags;
	const char *trigger; /* with the two flags */
	bool has_cron, after_consolidation;
	bool set_content; /* content with structured_content (NULL = NULL) */
	const char *content, *structured_content;
	bool set_vector;
	struct hs_mm_vector vector;
	const char *reflect_response;
	bool set_refreshed_query; /* last_refreshed_source_query (NULL = NULL) */
	const char *refreshed_query;
	bool refreshed; /* a refresh completed: the next four, failure stamp cleared */
	int64_t now_us, read_until_us, memory_seen_us; /* memory_seen_us HS_TIME_NONE = as it is */
	bool refreshed_full;                           /* last_full_refreshed_at too */
};
/* (tx) On a row locked before. */
HS_MUST enum hs_rc hs_mm_update(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, const struct hs_mm_change *c, struct hs_err *err);
/* (tx) One history row, then the kind is cut to the newest keep (<= 0: no cap). */
HS_MUST enum hs_rc hs_mm_history_add(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, bool failed, const char *content, int64_t now_us, int64_t keep,
	struct hs_err *err);
/* The failure stamp, in a statement of its own. A model that is gone is no error. */
HS_MUST enum hs_rc hs_mm_stamp_failure(
	struct hs_db *db, int64_t bank_no, const char *id, int64_t now_us, struct hs_err *err);
/* Row, tags and history, in one transaction. */
HS_MUST enum hs_rc hs_mm_delete(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, struct hs_err *err);

extern const struct hs_sql_list hs_mental_model_sql;

#endif
