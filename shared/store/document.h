/*
 * document - documents and their chunks: find, put, retag, delete.
 *
 * Floor:   store. Tables documents, document_tags, chunks. Rules: contract retain-recall 1, 2.5.
 * Lock:    writers hold the bank's clock row (store/clock.h), then lock the document row.
 * Owns:    rows live in the pool given.
 * Errors:  HS_E_NOT_FOUND "Document not found", database codes.
 */
#ifndef HS_STORE_DOCUMENT_H
#define HS_STORE_DOCUMENT_H

#include "db/db.h"
#include "store/memory.h"

struct hs_doc_row {
	const char *document_id;
	const char *original_text; /* NULL: not stored, or not asked for */
	int64_t text_chars;
	const char *content_hash;  /* SHA-256 hex of the whole body */
	const char *retain_params; /* JSON object text */
	struct hs_strs tags;
	int64_t created_us, updated_us;
};

/* HS_E_NOT_FOUND when there is none. with_text: original_text is read too. lock: FOR UPDATE. */
HS_MUST enum hs_rc hs_document_find(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, bool with_text, bool lock, struct hs_doc_row *ret,
	struct hs_err *err);
/* Insert or overwrite the row and its tags; created_us stands for new rows and is kept for old ones. */
HS_MUST enum hs_rc hs_document_put(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_doc_row *row, struct hs_err *err);
/* Delete the document with its chunks and units, observations derived from them included (5.9). In
 * the caller's transaction, clock row locked. HS_E_NOT_FOUND when there is none. */
HS_MUST enum hs_rc hs_document_delete(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, struct hs_deleted *ret, struct hs_err *err);

struct hs_chunk_row {
	int64_t chunk_index;
	const char *text; /* "" when texts are not stored */
	const char *content_hash;
	int64_t created_us;
};
HS_MUST enum hs_rc hs_chunks_put(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, const struct hs_chunk_row *rows, size_t n, struct hs_err *err);
/* Stored chunks in order of their index, without texts. */
HS_MUST enum hs_rc hs_chunk_hashes(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, struct hs_chunk_row **ret, size_t *ret_n, struct hs_err *err);
/* Text of one chunk and its document's tags; *ret_text NULL when either is gone. */
HS_MUST enum hs_rc hs_chunk_text(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, int64_t index, const char **ret_text, struct hs_strs *ret_tags,
	struct hs_err *err);

/* "<bank>_<document>_<index>", '~' and '_' inside the names as ~7E and ~5F. */
char *hs_chunk_id(
	struct hs_pool *pool, const char *bank_id, const char *document_id, int64_t index);
/* The other way; false when it is no chunk id. */
HS_MUST bool hs_chunk_id_parse(struct hs_pool *pool, const char *chunk_id, const char **ret_bank_id,
	const char **ret_document_id, int64_t *ret_index);

extern const struct hs_sql_list hs_document_sql;

#endif
