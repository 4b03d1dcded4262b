#include "store/bulk.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"

#define RUN_MAX 256

struct hs_bulk hs_bulk_new(
	struct hs_db *db, struct hs_pool *pool, const char *head, const char *row, const char *tail)
{
	return (struct hs_bulk){.db = db, .pool = pool, .head = head, .row = row, .tail = tail};
}

/* The first n rows of what waits, as one statement. */
static enum hs_rc send(struct hs_bulk *b, const struct hs_bind *binds, size_t n, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(b->pool);
	struct hs_rows rows;

	hs_sql_add(&q, b->head);
	for (size_t i = 0; i < n; i++) {
		hs_sql_add(&q, i ? ", " : "");
		hs_sql_add(&q, b->row);
	}
	hs_sql_add(&q, b->tail ? b->tail : "");
	for (size_t i = 0; i < n * b->cols; i++)
		hs_sql_bind(&q, binds[i]);
	if (!b->on_rows)
		return hs_sql_exec(b->db, &q, NULL, err);

	HS_TRY(hs_sql_select(b->db, &q, &rows, err));
	b->on_rows(b->arg, &rows);
	return HS_OK;
}

static enum hs_rc flush(struct hs_bulk *b, struct hs_err *err)
{
	const struct hs_bind *at = b->binds;
	size_t left = b->n_rows;

	b->n_rows = 0;
	b->bytes = 0;
	for (size_t run = RUN_MAX; left > 0; run /= 2) {
		while (left >= run) {
			HS_TRY(send(b, at, run, err));
			at += run * b->cols;
			left -= run;
		}
	}
	return HS_OK;
}

enum hs_rc hs_bulk_add(struct hs_bulk *b, const struct hs_bind *binds, size_t n, struct hs_err *err)
{
	if (!b->binds) {
		b->cols = n;
		b->binds = hs_pool_alloc(b->pool, n * RUN_MAX * sizeof(*b->binds));
	}
	memcpy(b->binds + b->n_rows * n, binds, n * sizeof(*binds));
	b->n_rows++;
	for (size_t i = 0; i < n; i++)
		b->bytes += binds[i].n + 8;
	if (b->n_rows == RUN_MAX || b->bytes >= HS_INSERT_FLUSH)
		return flush(b, err);
	return HS_OK;
}

enum hs_rc hs_bulk_end(struct hs_bulk *b, struct hs_err *err)
{
	return flush(b, err);
}

static int by_no(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

int64_t *hs_nos_sorted(struct hs_pool *pool, const int64_t *nos, size_t n, size_t *ret_n)
{
	int64_t *v = hs_pool_alloc(pool, (n + 1) * sizeof(*v));
	size_t m = 0;

	if (n)
		memcpy(v, nos, n * sizeof(*v));
	qsort(v, n, sizeof(*v), by_no);
	for (size_t i = 0; i < n; i++)
		if (m == 0 || v[m - 1] != v[i])
			v[m++] = v[i];
	*ret_n = m;
	return v;
}

bool hs_nos_has(const int64_t *sorted, size_t n, int64_t no)
{
	return n && bsearch(&no, sorted, n, sizeof(*sorted), by_no);
}

int64_t *hs_nos_of_rows(struct hs_pool *pool, const struct hs_rows *rows)
{
	int64_t *v = hs_pool_alloc(pool, (rows->n + 1) * sizeof(*v));

	for (size_t i = 0; i < rows->n; i++)
		v[i] = hs_row(rows, i)[0].i;
	return v;
}

/* The scope without its fact types, which stand in the side table itself. */
static struct hs_scope beyond_types(const struct hs_scope *scope)
{
	struct hs_scope s = *scope;

	s.facts = 0;
	return s;
}

void hs_side_join(struct hs_sql *q, const struct hs_scope *scope)
{
	struct hs_scope s = beyond_types(scope);
	struct hs_sql probe = hs_sql_new(q->pool);

	hs_scope_sql(&probe, &s, &hs_scope_units);
	if (probe.text->len)
		hs_sql_add(q,
			" JOIN memory_units u ON u.bank_no = s.bank_no AND u.unit_no = s.unit_no");
}

void hs_side_filter(struct hs_sql *q, const struct hs_scope *scope)
{
	struct hs_scope s = beyond_types(scope);
	int64_t types[HS_FACT_TYPE__MAX];
	size_t n = 0;

	for (int t = 0; t < HS_FACT_TYPE__MAX; t++)
		if (scope->facts & HS_FACT_BIT(t))
			types[n++] = t;
	if (n > 0 && n < HS_FACT_TYPE__MAX) {
		hs_sql_add(q, " AND s.fact_type IN (");
		hs_sql_list_int(q, types, n);
		hs_sql_add(q, ")");
	}
	hs_scope_sql(q, &s, &hs_scope_units);
}
