#include "store/vector.h"

#include <string.h>

#include "base/buf.h"
#include "store/bulk.h"

enum { SQL_FIND, SQL_MAKE, SQL_FOREIGN };
static const char *const sql[] = {
	[SQL_FIND] = "SELECT embedder_no FROM embedders WHERE tag = ?",
	[SQL_MAKE] = "INSERT INTO embedders (tag) VALUES (?)",
	[SQL_FOREIGN] =
		"SELECT COUNT(*) FROM unit_embeddings WHERE bank_no = ? AND embedder_no <> ?",
};
HS_SQL_LIST(hs_vector_sql, sql);

enum hs_rc hs_embedder_find(struct hs_db *db, struct hs_pool *pool, const char *tag,
	int64_t *ret_no, struct hs_err *err)
{
	struct hs_rows rows;

	*ret_no = 0;
	if (hs_str_empty(tag))
		return HS_OK;
	HS_TRY(hs_db_select(db, pool, sql[SQL_FIND], HS_BINDS(hs_b_str(tag)), &rows, err));
	if (rows.n)
		*ret_no = hs_row(&rows, 0)[0].i;
	return HS_OK;
}

enum hs_rc hs_embedder_no(struct hs_db *db, struct hs_pool *pool, const char *tag, int64_t *ret_no,
	struct hs_err *err)
{
	enum hs_rc rc;

	HS_TRY(hs_embedder_find(db, pool, tag, ret_no, err));
	if (*ret_no || hs_str_empty(tag))
		return HS_OK;
	rc = hs_db_exec(db, sql[SQL_MAKE], HS_BINDS(hs_b_str(tag)), NULL, err);
	if (rc != HS_OK && rc != HS_E_DB_DUPLICATE)
		return rc;
	HS_TRY(hs_embedder_find(db, pool, tag, ret_no, err));
	return *ret_no ? HS_OK
		       : hs_fail(err, HS_E_DB, "embedder %s is neither there nor could be made",
				 tag);
}

enum hs_rc hs_vectors_put(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_unit *units, size_t n, struct hs_err *err)
{
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO unit_embeddings (bank_no, unit_no, embedder_no, fact_type, vec) VALUES ",
		"(?, ?, ?, ?, ?)", NULL);

	for (size_t i = 0; i < n; i++) {
		const struct hs_unit *u = &units[i];
		struct hs_bind row[] = {hs_b_int(bank_no), hs_b_int(u->unit_no),
			hs_b_int(u->embedder_no), hs_b_int(u->type),
			hs_b_blob(u->vec, u->dim * sizeof(float))};

		if (u->vec && u->embedder_no)
			HS_TRY(hs_bulk_add(&b, row, HS_COUNT(row), err));
	}
	return hs_bulk_end(&b, err);
}

enum hs_rc hs_vectors_remove(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err)
{
	for (size_t i = 0; i < n; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);

		hs_sql_add(&q, "DELETE FROM unit_embeddings WHERE bank_no = ? AND unit_no IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_list_int(&q, unit_nos + i, n - i < HS_IN_MAX ? n - i : HS_IN_MAX);
		hs_sql_add(&q, ")");
		HS_TRY(hs_sql_exec(db, &q, NULL, err));
	}
	return HS_OK;
}

struct each {
	hs_vector_fn *fn;
	void *arg;
	size_t dim;
	float *vec; /* aligned copy: a row's bytes need not be */
};

static enum hs_rc each_row(void *arg, const struct hs_val *row, size_t cols, struct hs_err *err)
{
	struct each *e = arg;

	(void)cols;
	(void)err;
	if (row[2].n != e->dim * sizeof(float))
		return HS_OK;
	memcpy(e->vec, row[2].s, row[2].n);
	e->fn(e->arg, row[0].i, (enum hs_fact_type)row[1].i, e->vec);
	return HS_OK;
}

enum hs_rc hs_vectors_each(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t embedder_no, size_t dim, const struct hs_scope *scope, int64_t newest_max,
	hs_vector_fn *fn, void *arg, struct hs_err *err)
{
	struct each e = {fn, arg, dim, hs_pool_alloc(pool, (dim + 1) * sizeof(float))};
	struct hs_sql q = hs_sql_new(pool);

	hs_sql_add(&q, "SELECT s.unit_no, s.fact_type, s.vec FROM unit_embeddings s");
	hs_side_join(&q, scope);
	hs_sql_add(&q, " WHERE s.bank_no = ? AND s.embedder_no = ?");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_bind(&q, hs_b_int(embedder_no));
	hs_side_filter(&q, scope);
	if (newest_max > 0) {
		hs_sql_add(&q, " ORDER BY s.unit_no DESC LIMIT ?");
		hs_sql_bind(&q, hs_b_int(newest_max));
	}
	return hs_db_each(db, q.text->data, q.binds, q.n, each_row, &e, err);
}

enum hs_rc hs_vectors_foreign(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t embedder_no, int64_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_FOREIGN],
		HS_BINDS(hs_b_int(bank_no), hs_b_int(embedder_no)), &rows, err));
	*ret_n = rows.n ? hs_row(&rows, 0)[0].i : 0;
	return HS_OK;
}

/* Eight lanes in four sums: the order of additions is fixed, so every machine gives the same score. */
typedef float lanes __attribute__((vector_size(32)));
#define STEP 32

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
	!defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

CLONES float hs_dot(const float *a, const float *b, size_t dim)
{
	lanes sum[4] = {{0}}, x, y;
	float total = 0;
	size_t i = 0;

	for (; i + STEP <= dim; i += STEP) {
		for (int k = 0; k < 4; k++) {
			memcpy(&x, a + i + 8 * k, sizeof(x));
			memcpy(&y, b + i + 8 * k, sizeof(y));
			sum[k] += x * y;
		}
	}
	sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
	for (int k = 0; k < 8; k++)
		total += sum[0][k];
	for (; i < dim; i++)
		total += a[i] * b[i];
	return total;
}
