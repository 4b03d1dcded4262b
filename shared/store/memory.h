/*
 * memory - units (facts and observations): insert, load, retag, stamp, delete.
 *
 * Floor:   store. Tables memory_units, unit_tags, unit_entities, memory_links and, through their own
 *          files, postings, unit_embeddings, observation_sources, entities.
 * Rules:   contract retain-recall 1, 5.9. All writers run in the caller's transaction and hold the
 *          bank's clock row: hs_clock_advance for content, hs_clock_lock for deletes and bookkeeping.
 *          So everything of one bank that is written here is written by one transaction at a time.
 * Owns:    rows live in the pool given.
 */
#ifndef HS_STORE_MEMORY_H
#define HS_STORE_MEMORY_H

#include "db/db.h"
#include "store/scope.h"
#include "text/words.h"

/* A unit to be stored. Times HS_TIME_NONE, strings NULL, chunk_index -1 where there is none. */
struct hs_unit {
	const char *id; /* NULL = made on insert */
	enum hs_fact_type type;
	const char *text, *context, *text_signals;
	int64_t event_us, occurred_start_us, occurred_end_us, mentioned_us;
	const char *document_id;
	int64_t chunk_index;
	const char *metadata; /* JSON object text */
	struct hs_strs tags;
	const char *observation_scopes; /* JSON text */
	int64_t proof_count;            /* 0 = NULL (facts) */
	struct hs_terms terms;          /* hs_unit_terms */
	const float *vec;               /* NULL = no embedding */
	size_t dim;
	int64_t embedder_no; /* store/vector.h */
	int64_t *entities;   /* entity_no in order of mention, each once */
	size_t n_entities;
	int64_t unit_no; /* set on insert */
};
struct hs_unit hs_unit_new(enum hs_fact_type type, const char *text);
/* Search terms of text, context and text_signals (observations: text alone). */
void hs_unit_terms(struct hs_pool *pool, struct hs_unit *u);

/* Insert the units with tags, entity postings, search terms and vectors. id and unit_no of each are
 * set. stamp_us: the clock's value. */
HS_MUST enum hs_rc hs_units_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, struct hs_unit *units, size_t n, struct hs_err *err);

struct hs_link {
	int64_t from_no, to_no;
	const char *type; /* semantic, caused_by */
	double weight;
};
/* One row a pair and type, never to itself; links that exist or lack an end are skipped. */
HS_MUST enum hs_rc hs_links_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_link *links, size_t n, struct hs_err *err);

/* A stored unit as recall and consolidation read it. */
struct hs_unit_row {
	int64_t unit_no;
	const char *id, *fact_type, *text, *context, *document_id, *metadata, *observation_scopes;
	int64_t event_us, occurred_start_us, occurred_end_us, mentioned_us;
	int64_t chunk_index; /* -1 = none */
	int64_t proof_count; /* 0 for facts */
	struct hs_strs tags;
	int64_t consolidated_us, edited_us, created_us, updated_us;
};
/* The live ones of these units, in the order given (missing ones are left out). */
HS_MUST enum hs_rc hs_units_load(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_unit_row **ret, size_t *ret_n,
	struct hs_err *err);
/* ids -> unit_no; 0 where there is none. */
HS_MUST enum hs_rc hs_units_find(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_strs *ids, int64_t *ret_nos, struct hs_err *err);
/* Which of these still exist (ascending). */
HS_MUST enum hs_rc hs_units_live(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, int64_t **ret, size_t *ret_n, struct hs_err *err);

/* What a retain of the same text may change on a stored fact. */
struct hs_unit_meta {
	int64_t unit_no;
	int64_t chunk_index;             /* -1 = none */
	struct hs_strs tags;
	const char *metadata;            /* JSON text or NULL */
	const char *observation_scopes;  /* JSON text or NULL */
};
/* The facts of a document, oldest first; in the pool. */
HS_MUST enum hs_rc hs_units_of_document(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, struct hs_unit_meta **ret, size_t *ret_n, struct hs_err *err);
/* Write metadata and scopes; neither moves updated_at. */
HS_MUST enum hs_rc hs_unit_set_meta(
	struct hs_db *db, int64_t bank_no, const struct hs_unit_meta *u, struct hs_err *err);

/* Bookkeeping: consolidated_at (failed: consolidation_failed_at) = at_us; HS_TIME_NONE clears both.
 * updated_at stays. */
HS_MUST enum hs_rc hs_units_mark(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, bool failed, int64_t at_us, struct hs_err *err);
/* Overwrite the tags of a unit; nothing is written and *ret_changed is false when the set is the
 * same. updated_at moves to stamp_us. */
HS_MUST enum hs_rc hs_unit_retag(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, int64_t unit_no, const struct hs_strs *old_tags,
	const struct hs_strs *tags, bool *ret_changed, struct hs_err *err);

struct hs_deleted {
	int64_t units;        /* of those asked for */
	int64_t observations; /* derived ones that went with them */
	int64_t requeued;     /* surviving sources that are pending again */
};
/* Delete units with everything that hangs on them: tags, entity postings (counters fall exactly,
 * entities without a unit go), links, search terms, vectors, history. Observations citing one of them
 * are deleted too and their surviving sources are pending again (5.9). *ret is added to. */
HS_MUST enum hs_rc hs_memory_delete_units(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_deleted *ret, struct hs_err *err);
/* DELETE …/memories: NULL type = everything of the bank but its row (documents, chunks, entities
 * too); else the units of that type, with the sweep for facts. An unknown type deletes nothing. */
HS_MUST enum hs_rc hs_memory_clear(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *type, struct hs_deleted *ret, struct hs_err *err);

extern const struct hs_sql_list hs_memory_sql;
extern const struct hs_sql_list hs_memory_delete_sql, hs_memory_clear_sql;

#endif
