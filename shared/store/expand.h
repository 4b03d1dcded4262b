/*
 * expand - memories by id with the source text behind them.
 *
 * Floor:   store. Tables memory_units, chunks, documents; one statement.
 */
#ifndef HS_STORE_EXPAND_H
#define HS_STORE_EXPAND_H

#include "db/db.h"

struct hs_expand_row {
	const char *id, *text, *fact_type, *context;
	int64_t occurred_start_us, occurred_end_us, mentioned_us;
	const char *metadata; /* JSON text or NULL */
	struct hs_strs tags;
	const char *document_id; /* NULL = none */
	int64_t chunk_index;     /* -1 = none */
	const char *chunk_text;  /* NULL when there is no such chunk */
	bool document_found;
	struct hs_strs document_tags;
	const char *retain_params; /* JSON text; with_text only */
	const char *original_text; /* with_text only; NULL when it is not kept */
};
/* The rows that exist in this bank, in any order. with_text: the documents' texts too. */
HS_MUST enum hs_rc hs_store_expand(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_strs *ids, bool with_text, struct hs_expand_row **ret, size_t *ret_n,
	struct hs_err *err);

#endif
