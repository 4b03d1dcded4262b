/*
 * memory_read - units, tags and their filters as clients read them.
 *
 * Floor:   store. Tables memory_units, unit_tags, unit_entities, entities, observation_sources,
 *          mental_model_tags. Rules: contract retain-recall 3.1, 3.3; mental-models 23.
 * Reads:   a list is two statements for the page and one for the total; names of entities and
 *          sources of observations are one statement each for the whole page.
 * Owns:    rows live in the pool given.
 * Errors:  HS_E_NOT_FOUND "Memory unit '<id>' not found" (a missing bank too), database codes.
 */
#ifndef HS_STORE_MEMORY_READ_H
#define HS_STORE_MEMORY_READ_H

#include "store/memory.h"

enum hs_consolidation_state {
	HS_CONSOLIDATION_FAILED,
	HS_CONSOLIDATION_PENDING,
	HS_CONSOLIDATION_DONE
};

/* A window on one date of a row; rows without that date drop out. */
struct hs_window {
	bool on;
	int axis;                 /* index into the caller's names; orders by it, newest first */
	int64_t start_us, end_us; /* from, before; HS_TIME_NONE = open */
};
extern const char *const hs_memory_time_names[]; /* NULL-ended, for HS_ENUM */
extern const struct hs_sql_list hs_memory_read_sql;

struct hs_memory_filter {
	const char *type, *q, *document_id, *entity_id; /* NULL or "" = no filter */
	int consolidation;     /* enum hs_consolidation_state, -1 = any; else facts only */
	bool invalidated;      /* the archive: it has no rows yet */
	struct hs_scope scope; /* tags */
	struct hs_window window;
	int64_t limit, offset;
};

struct hs_memory_item {
	int64_t unit_no;
	const char *id, *fact_type, *text, *context, *document_id;
	int64_t chunk_index; /* -1 = none */
	int64_t event_us, occurred_start_us, occurred_end_us, mentioned_us;
	int64_t consolidated_us, consolidation_failed_us, edited_us, updated_us;
	int64_t proof_count; /* 0 for facts */
	const char *metadata, *tags,
		*observation_scopes; /* JSON text; metadata and scopes may be NULL */
	struct hs_strs entities;     /* canonical names */
	struct hs_strs source_ids;   /* observations */
};
struct hs_memory_page {
	struct hs_memory_item *v;
	size_t n;
	int64_t total;
};
HS_MUST enum hs_rc hs_memory_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_memory_filter *f, struct hs_memory_page *ret, struct hs_err *err);
/* *ret_bank_no is the number of the bank. */
HS_MUST enum hs_rc hs_memory_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, struct hs_memory_item *ret, int64_t *ret_bank_no, struct hs_err *err);

struct hs_memory_source {
	const char *id, *text, *fact_type, *context;
	int64_t occurred_start_us, mentioned_us;
};
/* Facts an observation rests on, the latest mentioned first. */
HS_MUST enum hs_rc hs_memory_sources(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t observation_no, struct hs_memory_source **ret, size_t *ret_n, struct hs_err *err);

struct hs_tag_count {
	const char *tag;
	int64_t count;
};
struct hs_tag_query {
	bool models;   /* tags of mental models instead of memories */
	const char *q; /* whole tag, any case, '*' = any run; NULL or "" = all */
	int64_t limit, offset;
};
/* Most used first, then by tag. */
HS_MUST enum hs_rc hs_tags_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_tag_query *q, struct hs_tag_count **ret, size_t *ret_n, int64_t *ret_total,
	struct hs_err *err);

/* ---- for the other readers of this floor ---- */

/* " AND <column> >= ? AND <column> < ?"; column is a fixed text. */
void hs_window_sql(struct hs_sql *q, const struct hs_window *w, const char *column);
/* " LIMIT ? OFFSET ?" */
void hs_page_sql(struct hs_sql *q, int64_t limit, int64_t offset);
/* One number of a statement that gives one row. */
HS_MUST enum hs_rc hs_count_sql(
	struct hs_db *db, struct hs_sql *q, int64_t *ret, struct hs_err *err);

#endif
