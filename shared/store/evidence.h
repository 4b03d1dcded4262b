/*
 * evidence - what the database says about memories that an answer rests on.
 *
 * Floor:   store. Tables memory_units, mental_models. One statement a question.
 */
#ifndef HS_STORE_EVIDENCE_H
#define HS_STORE_EVIDENCE_H

#include "store/scope.h"

struct hs_evidence_row {
	const char *id, *context, *document_id, *metadata; /* metadata: JSON text; NULL = none */
	int64_t chunk_index;                               /* -1 = none */
	int64_t mentioned_us;
	struct hs_strs tags;
};
/* The rows that are still there, in any order. */
HS_MUST enum hs_rc hs_store_evidence(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_strs *ids, struct hs_evidence_row **ret, size_t *ret_n, struct hs_err *err);
/* How many facts wait for consolidation, counted up to `most`. */
HS_MUST enum hs_rc hs_store_pending(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t most, int64_t *ret, struct hs_err *err);
/* Ids of the models in the scope, the latest refreshed first, at most `most`: for searching them
 * without vectors. */
HS_MUST enum hs_rc hs_store_model_ids(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, int64_t most, struct hs_strs *ret, struct hs_err *err);

extern const struct hs_sql_list hs_evidence_sql;

#endif
