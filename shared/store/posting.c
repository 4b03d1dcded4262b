#include "store/posting.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "store/bulk.h"

#define TF_MAX 65535u
#define LEN_MAX 0xFFFFFFu

enum { SQL_STATS, SQL_ADD_STATS };
static const char *const sql[] = {
	[SQL_STATS] = "SELECT units, total_len FROM posting_stats WHERE bank_no = ?",
	[SQL_ADD_STATS] = "INSERT INTO posting_stats (bank_no, units, total_len) VALUES (?, ?, ?) "
			  "ON DUPLICATE KEY UPDATE units = units + VALUES(units), "
			  "total_len = total_len + VALUES(total_len)",
};
HS_SQL_LIST(hs_posting_sql, sql);

struct hs_bind hs_posting_pack(struct hs_pool *pool, const struct hs_terms *terms)
{
	size_t bytes = 4 + terms->n * 8;
	char *p = hs_pool_alloc(pool, bytes);

	memcpy(p, &terms->len, 4);
	for (size_t i = 0; i < terms->n; i++) {
		int64_t term = hs_posting_term(terms->v[i].hash);

		memcpy(p + 4 + i * 8, &term, 8);
	}
	return hs_b_blob(p, bytes);
}

/* One term of one unit. */
struct entry {
	int64_t term, unit_no;
	enum hs_fact_type type;
	uint32_t tf, len;
};
struct entries {
	struct entry *v;
	size_t n;
};

static int by_term(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->term != y->term)
		return x->term < y->term ? -1 : 1;
	return x->unit_no < y->unit_no ? -1 : x->unit_no > y->unit_no;
}

/* Sort into key order; entries of one key become one. */
static void settle(struct entries *e)
{
	size_t m = 0;

	qsort(e->v, e->n, sizeof(*e->v), by_term);
	for (size_t i = 0; i < e->n; i++) {
		if (m && by_term(&e->v[m - 1], &e->v[i]) == 0)
			e->v[m - 1].tf += e->v[i].tf;
		else
			e->v[m++] = e->v[i];
	}
	e->n = m;
}

/* Document frequencies of settled entries change by sign each, in ascending order of terms. */
static enum hs_rc count_terms(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct entries *e, int sign, struct hs_err *err)
{
	struct hs_bulk b =
		hs_bulk_new(db, pool, "INSERT INTO posting_terms (bank_no, term, df) VALUES ",
			"(?, ?, ?)", " ON DUPLICATE KEY UPDATE df = df + VALUES(df)");

	for (size_t i = 0, j; i < e->n; i = j) {
		struct hs_bind row[3];

		for (j = i; j < e->n && e->v[j].term == e->v[i].term; j++)
			;
		row[0] = hs_b_int(bank_no);
		row[1] = hs_b_int(e->v[i].term);
		row[2] = hs_b_int(sign * (int64_t)(j - i));
		HS_TRY(hs_bulk_add(&b, row, HS_COUNT(row), err));
	}
	return hs_bulk_end(&b, err);
}

static enum hs_rc count_units(
	struct hs_db *db, int64_t bank_no, int64_t units, int64_t total_len, struct hs_err *err)
{
	return hs_db_exec(db, sql[SQL_ADD_STATS],
		HS_BINDS(hs_b_int(bank_no), hs_b_int(units), hs_b_int(total_len)), NULL, err);
}

enum hs_rc hs_postings_add(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_unit *units, size_t n, struct hs_err *err)
{
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO postings (bank_no, term, unit_no, fact_type, tf, len) VALUES ",
		"(?, ?, ?, ?, ?, ?)", NULL);
	struct entries e = {0};
	size_t total = 0;
	int64_t total_len = 0;

	for (size_t i = 0; i < n; i++)
		total += units[i].terms.n;
	e.v = HS_NEW_ARRAY(pool, struct entry, total + 1);
	for (size_t i = 0; i < n; i++) {
		const struct hs_terms *t = &units[i].terms;

		total_len += t->len;
		for (size_t k = 0; k < t->n; k++)
			e.v[e.n++] = (struct entry){hs_posting_term(t->v[k].hash), units[i].unit_no,
				units[i].type, t->v[k].tf, t->len};
	}
	settle(&e);
	for (size_t i = 0; i < e.n; i++) {
		const struct entry *p = &e.v[i];
		struct hs_bind row[] = {hs_b_int(bank_no), hs_b_int(p->term), hs_b_int(p->unit_no),
			hs_b_int(p->type), hs_b_int(p->tf > TF_MAX ? TF_MAX : p->tf),
			hs_b_int(p->len > LEN_MAX ? LEN_MAX : p->len)};

		HS_TRY(hs_bulk_add(&b, row, HS_COUNT(row), err));
	}
	HS_TRY(hs_bulk_end(&b, err));
	HS_TRY(count_terms(db, pool, bank_no, &e, 1, err));
	return count_units(db, bank_no, (int64_t)n, total_len, err);
}

/* Terms of a stored unit from its packed form. */
static enum hs_rc unpack(struct hs_pool *pool, const struct hs_val *blob, int64_t unit_no,
	struct entries *e, int64_t *total_len, struct hs_err *err)
{
	uint32_t len;
	size_t n;

	if (blob->n < 4 || (blob->n - 4) % 8)
		return hs_fail(err, HS_E_PARSE, "packed terms of unit %lld have %zu bytes",
			(long long)unit_no, blob->n);
	memcpy(&len, blob->s, 4);
	*total_len += len;
	n = (blob->n - 4) / 8;
	e->v = hs_pool_regrow(pool, e->v, e->n * sizeof(*e->v), (e->n + n + 1) * sizeof(*e->v));
	for (size_t i = 0; i < n; i++) {
		struct entry *x = &e->v[e->n++];

		*x = (struct entry){.unit_no = unit_no};
		memcpy(&x->term, blob->s + 4 + i * 8, 8);
	}
	return HS_OK;
}

static enum hs_rc delete_unit(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t unit_no, const int64_t *terms, size_t n, struct hs_err *err)
{
	for (size_t i = 0; i < n; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);

		hs_sql_add(
			&q, "DELETE FROM postings WHERE bank_no = ? AND unit_no = ? AND term IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_bind(&q, hs_b_int(unit_no));
		hs_sql_list_int(&q, terms + i, n - i < HS_IN_MAX ? n - i : HS_IN_MAX);
		hs_sql_add(&q, ")");
		HS_TRY(hs_sql_exec(db, &q, NULL, err));
	}
	return HS_OK;
}

/* Terms whose frequency fell to nothing leave the table. */
static enum hs_rc drop_empty(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct entries *e, struct hs_err *err)
{
	int64_t *terms = HS_NEW_ARRAY(pool, int64_t, e->n + 1);
	size_t n = 0;

	for (size_t i = 0; i < e->n; i++)
		if (n == 0 || terms[n - 1] != e->v[i].term)
			terms[n++] = e->v[i].term;
	for (size_t i = 0; i < n; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);

		hs_sql_add(&q,
			"DELETE FROM posting_terms WHERE bank_no = ? AND df <= 0 AND term IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_list_int(&q, terms + i, n - i < HS_IN_MAX ? n - i : HS_IN_MAX);
		hs_sql_add(&q, ")");
		HS_TRY(hs_sql_exec(db, &q, NULL, err));
	}
	return HS_OK;
}

/* Take up to HS_IN_MAX units out. */
static enum hs_rc remove_some(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;
	struct entries e = {0};
	int64_t total_len = 0, units = 0;

	hs_sql_add(&q,
		"SELECT unit_no, terms FROM " HS_UNITS_BY_NO " WHERE bank_no = ? AND unit_no IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_int(&q, unit_nos, n);
	hs_sql_add(&q, ") AND terms IS NOT NULL ORDER BY unit_no");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	for (size_t i = 0; i < rows.n; i++) {
		const struct hs_val *r = hs_row(&rows, i);
		size_t from = e.n;
		int64_t *terms;

		HS_TRY(unpack(pool, &r[1], r[0].i, &e, &total_len, err));
		terms = HS_NEW_ARRAY(pool, int64_t, e.n - from + 1);
		for (size_t k = from; k < e.n; k++)
			terms[k - from] = e.v[k].term;
		HS_TRY(delete_unit(db, pool, bank_no, r[0].i, terms, e.n - from, err));
		units++;
	}
	if (!units)
		return HS_OK;

	settle(&e);
	HS_TRY(count_terms(db, pool, bank_no, &e, -1, err));
	HS_TRY(drop_empty(db, pool, bank_no, &e, err));
	return count_units(db, bank_no, -units, -total_len, err);
}

enum hs_rc hs_postings_remove(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err)
{
	for (size_t i = 0; i < n; i += HS_IN_MAX)
		HS_TRY(remove_some(db, pool, bank_no, unit_nos + i,
			n - i < HS_IN_MAX ? n - i : HS_IN_MAX, err));
	return HS_OK;
}

enum hs_rc hs_posting_stats(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_term_df *terms, size_t n, struct hs_posting_stats *ret, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	int64_t *list = HS_NEW_ARRAY(pool, int64_t, n + 1);
	struct hs_rows rows;

	*ret = (struct hs_posting_stats){0};
	HS_TRY(hs_db_select(db, pool, sql[SQL_STATS], HS_BINDS(hs_b_int(bank_no)), &rows, err));
	if (rows.n) {
		ret->units = hs_row(&rows, 0)[0].i;
		ret->total_len = hs_row(&rows, 0)[1].i;
	}
	for (size_t i = 0; i < n; i++) {
		list[i] = terms[i].term;
		terms[i].df = 0;
	}
	if (!n || !ret->units)
		return HS_OK;

	hs_sql_add(&q, "SELECT term, df FROM posting_terms WHERE bank_no = ? AND term IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_int(&q, list, n);
	hs_sql_add(&q, ")");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	for (size_t r = 0; r < rows.n; r++)
		for (size_t i = 0; i < n; i++)
			if (terms[i].term == hs_row(&rows, r)[0].i)
				terms[i].df = hs_row(&rows, r)[1].i;
	return HS_OK;
}

struct each {
	hs_posting_fn *fn;
	void *arg;
};

static enum hs_rc each_row(void *arg, const struct hs_val *row, size_t cols, struct hs_err *err)
{
	const struct each *e = arg;
	struct hs_posting p = {row[0].i, row[1].i, (enum hs_fact_type)row[2].i, (uint32_t)row[3].i,
		(uint32_t)row[4].i};

	(void)cols;
	(void)err;
	e->fn(e->arg, &p);
	return HS_OK;
}

enum hs_rc hs_postings_each(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_term_df *terms, size_t n, const struct hs_scope *scope, hs_posting_fn *fn,
	void *arg, struct hs_err *err)
{
	struct each e = {fn, arg};
	int64_t *list = HS_NEW_ARRAY(pool, int64_t, n + 1);
	struct hs_sql q = hs_sql_new(pool);

	if (!n)
		return HS_OK;
	for (size_t i = 0; i < n; i++)
		list[i] = terms[i].term;
	hs_sql_add(&q, "SELECT s.term, s.unit_no, s.fact_type, s.tf, s.len FROM postings s");
	hs_side_join(&q, scope);
	hs_sql_add(&q, " WHERE s.bank_no = ? AND s.term IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_int(&q, list, n);
	hs_sql_add(&q, ")");
	hs_side_filter(&q, scope);
	return hs_db_each(db, q.text->data, q.binds, q.n, each_row, &e, err);
}
