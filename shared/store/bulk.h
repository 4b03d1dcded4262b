/*
 * bulk - multi-row inserts in statements of few different lengths.
 *
 * Floor:   store. Rows are collected and sent in runs of 256, 128 … 1 rows, so that the statement
 *          cache holds them; a run is sent when HS_INSERT_FLUSH bytes or 256 rows are waiting.
 * Owns:    bound values are lent until the row was sent (hs_bulk_end at the latest).
 */
#ifndef HS_STORE_BULK_H
#define HS_STORE_BULK_H

#include "db/db.h"
#include "store/scope.h"

typedef void hs_bulk_rows_fn(void *arg, const struct hs_rows *rows);

struct hs_bulk {
	struct hs_db *db;
	struct hs_pool *pool;
	const char *head, *row,
		*tail;            /* "INSERT INTO t (a, b) VALUES ", "(?, ?)", " RETURNING a" */
	hs_bulk_rows_fn *on_rows; /* for RETURNING; NULL = none */
	void *arg;
	struct hs_bind *binds;
	size_t cols, n_rows, bytes;
};
struct hs_bulk hs_bulk_new(struct hs_db *db, struct hs_pool *pool, const char *head,
	const char *row, const char *tail);
HS_MUST enum hs_rc hs_bulk_add(
	struct hs_bulk *b, const struct hs_bind *binds, size_t n, struct hs_err *err);
HS_MUST enum hs_rc hs_bulk_end(struct hs_bulk *b, struct hs_err *err);

/* Lists of row numbers: sorted, each once (a copy); is one among them? */
int64_t *hs_nos_sorted(struct hs_pool *pool, const int64_t *nos, size_t n, size_t *ret_n);
bool hs_nos_has(const int64_t *sorted, size_t n, int64_t no);
/* First column of all rows. */
int64_t *hs_nos_of_rows(struct hs_pool *pool, const struct hs_rows *rows);

/* Statements take at most this many values in one IN list. */
#define HS_IN_MAX 1024

/* Statements over a side table s(bank_no, unit_no, fact_type, …): the join with memory_units u, added
 * only when the scope asks for more than fact types, and the filter itself. */
void hs_side_join(struct hs_sql *q, const struct hs_scope *scope);
void hs_side_filter(struct hs_sql *q, const struct hs_scope *scope);

/* memory_units by a list of unit_no: left alone, the optimiser reads the whole bank by the first column
 * of the key (100,000 units: 110 ms against 2 ms). */
#define HS_UNITS_BY_NO "memory_units FORCE INDEX (PRIMARY)"

#endif
