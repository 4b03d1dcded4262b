#include "db/db.h"

#include "base/buf.h"

#define SQL_TEXT_MAX ((size_t)16 * 1024 * 1024)

struct hs_sql hs_sql_new(struct hs_pool *pool)
{
	return (struct hs_sql){.pool = pool, .text = hs_buf_new(pool, SQL_TEXT_MAX)};
}

void hs_sql_add(struct hs_sql *q, const char *fragment)
{
	hs_buf_str(q->text, fragment);
}

void hs_sql_bind(struct hs_sql *q, struct hs_bind b)
{
	if (q->n == q->cap) {
		size_t cap = q->cap ? q->cap * 2 : 16;

		q->binds = hs_pool_regrow(q->pool, q->binds, q->n * sizeof(b), cap * sizeof(b));
		q->cap = cap;
	}
	q->binds[q->n++] = b;
}

static struct hs_bind list_bind(const struct hs_strs *list, const int64_t *v, size_t i)
{
	return list ? hs_b_str(list->v[i]) : hs_b_int(v[i]);
}

/* Few lengths make few statements: the cache of prepared ones stays useful. */
static void add_list(struct hs_sql *q, const struct hs_strs *list, const int64_t *v, size_t n)
{
	size_t padded = 1;

	if (n == 0) {
		hs_sql_add(q, "NULL");
		return;
	}
	while (padded < n)
		padded *= 2;
	for (size_t i = 0; i < padded; i++) {
		hs_sql_add(q, i ? ", ?" : "?");
		hs_sql_bind(q, list_bind(list, v, i < n ? i : n - 1));
	}
}

void hs_sql_list_str(struct hs_sql *q, const struct hs_strs *list)
{
	add_list(q, list, NULL, list->n);
}

void hs_sql_list_int(struct hs_sql *q, const int64_t *v, size_t n)
{
	add_list(q, NULL, v, n);
}

enum hs_rc hs_sql_select(
	struct hs_db *db, struct hs_sql *q, struct hs_rows *ret, struct hs_err *err)
{
	HS_TRY(hs_buf_ok(q->text, "SQL statement", err));
	return hs_db_select(db, q->pool, q->text->data, q->binds, q->n, ret, err);
}

enum hs_rc hs_sql_exec(
	struct hs_db *db, struct hs_sql *q, uint64_t *ret_affected, struct hs_err *err)
{
	HS_TRY(hs_buf_ok(q->text, "SQL statement", err));
	return hs_db_exec(db, q->text->data, q->binds, q->n, ret_affected, err);
}
