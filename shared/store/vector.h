/*
 * vector - embeddings of units, each under its embedder's tag.
 *
 * Floor:   store. Tables embedders, unit_embeddings. Vectors are float32, little-endian, length 1.
 *          Vectors of another embedder are never compared: they are left out and counted.
 */
#ifndef HS_STORE_VECTOR_H
#define HS_STORE_VECTOR_H

#include "store/memory.h"

/* The number of an embedder's tag, made when new; 0 for the empty tag. Outside transactions. */
HS_MUST enum hs_rc hs_embedder_no(struct hs_db *db, struct hs_pool *pool, const char *tag,
	int64_t *ret_no, struct hs_err *err);
/* The same without making it: 0 when nothing was stored under the tag. */
HS_MUST enum hs_rc hs_embedder_find(struct hs_db *db, struct hs_pool *pool, const char *tag,
	int64_t *ret_no, struct hs_err *err);
/* Store the vectors of units that have one. */
HS_MUST enum hs_rc hs_vectors_put(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_unit *units, size_t n, struct hs_err *err);
HS_MUST enum hs_rc hs_vectors_remove(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err);

/* vec has dim floats and is lent until fn returns. */
typedef void hs_vector_fn(void *arg, int64_t unit_no, enum hs_fact_type type, const float *vec);
/* Stream the embedder's vectors of dimension dim whose units pass the scope; newest_max > 0: only
 * that many, newest first. */
HS_MUST enum hs_rc hs_vectors_each(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t embedder_no, size_t dim, const struct hs_scope *scope, int64_t newest_max,
	hs_vector_fn *fn, void *arg, struct hs_err *err);
/* Units whose vector is another embedder's. */
HS_MUST enum hs_rc hs_vectors_foreign(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t embedder_no, int64_t *ret_n, struct hs_err *err);

/* Dot product of two vectors; the loop is compiled for several instruction sets. */
float hs_dot(const float *a, const float *b, size_t dim);

extern const struct hs_sql_list hs_vector_sql;

#endif
