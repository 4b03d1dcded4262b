/*
 * document_read - documents and chunks as clients read them.
 *
 * Floor:   store. Tables documents, document_tags, chunks, memory_units, observation_sources. Rules:
 *          contract retain-recall 3.2.
 * Limits:  a search (q) stops at HS_DOCUMENT_SEARCH_MAX matches: its total is an estimate then.
 * Owns:    rows live in the pool given.
 * Errors:  HS_E_NOT_FOUND "Document not found" (a missing bank too), "Chunk '<id>' not found".
 */
#ifndef HS_STORE_DOCUMENT_READ_H
#define HS_STORE_DOCUMENT_READ_H

#include "store/memory_read.h"

#define HS_DOCUMENT_SEARCH_MAX 1000

extern const char *const hs_document_time_names[]; /* created_at, updated_at */

struct hs_document_filter {
	const char *q;         /* NULL or "" = no search */
	struct hs_scope scope; /* tags */
	struct hs_window window;
	int64_t limit, offset;
};
struct hs_document_item {
	const char *document_id, *content_hash;
	const char *original_text;        /* hs_document_get only; NULL = not stored */
	const char *retain_params, *tags; /* JSON text */
	int64_t text_chars, created_us, updated_us;
	int64_t memory_units; /* facts of the document */
	int64_t by_type
		[HS_FACT_TYPE__MAX]; /* hs_document_get only; observations: those citing its facts */
	bool id_matched, text_matched; /* which part the search found */
};
struct hs_document_page {
	struct hs_document_item *v;
	size_t n;
	int64_t total;
	bool estimate;
};
HS_MUST enum hs_rc hs_document_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_document_filter *f, struct hs_document_page *ret, struct hs_err *err);
HS_MUST enum hs_rc hs_document_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *document_id, struct hs_document_item *ret, struct hs_err *err);

struct hs_chunk_item {
	int64_t chunk_index, created_us;
	const char *text;
};
/* Chunks of a document by index. */
HS_MUST enum hs_rc hs_chunk_list(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *document_id, int64_t limit, int64_t offset, struct hs_chunk_item **ret,
	size_t *ret_n, int64_t *ret_total, struct hs_err *err);
/* One chunk; HS_E_NOT_FOUND without a text. */
HS_MUST enum hs_rc hs_chunk_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *document_id, int64_t chunk_index, struct hs_chunk_item *ret,
	struct hs_err *err);

extern const struct hs_sql_list hs_document_read_sql;

#endif
