/*
 * posting - the keyword index: postings, document frequencies, bank statistics.
 *
 * Floor:   store. Tables postings, posting_terms, posting_stats. Frequencies and statistics are exact,
 *          both ways: memory_units.terms holds a unit's packed terms, so that a delete reads no text.
 * Lock:    under the bank's clock row; terms are written in ascending order.
 */
#ifndef HS_STORE_POSTING_H
#define HS_STORE_POSTING_H

#include "store/memory.h"

/* The stored form of a term: its hash without the lowest bit, so that it fits a signed 64-bit value. */
static inline int64_t hs_posting_term(uint64_t hash)
{
	return (int64_t)(hash >> 1);
}
/* memory_units.terms: uint32 length, then one int64 a term (ascending), in the machine's order. */
struct hs_bind hs_posting_pack(struct hs_pool *pool, const struct hs_terms *terms);

/* Index the units (unit_no, type, terms). */
HS_MUST enum hs_rc hs_postings_add(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_unit *units, size_t n, struct hs_err *err);
/* Take the units out again (memory_units rows still stand). */
HS_MUST enum hs_rc hs_postings_remove(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err);

struct hs_posting_stats {
	int64_t units, total_len;
};
struct hs_term_df {
	int64_t term;
	int64_t df;
};
/* Statistics of the bank and the frequency of each term; terms nobody has get df 0. */
HS_MUST enum hs_rc hs_posting_stats(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_term_df *terms, size_t n, struct hs_posting_stats *ret, struct hs_err *err);

struct hs_posting {
	int64_t term;
	int64_t unit_no;
	enum hs_fact_type type;
	uint32_t tf, len;
};
typedef void hs_posting_fn(void *arg, const struct hs_posting *p);
/* Stream the postings of the terms whose units pass the scope. */
HS_MUST enum hs_rc hs_postings_each(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_term_df *terms, size_t n, const struct hs_scope *scope, hs_posting_fn *fn,
	void *arg, struct hs_err *err);

extern const struct hs_sql_list hs_posting_sql;

#endif
