#include "store/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "db/row.h"
#include "json/json.h"
#include "store/bulk.h"
#include "store/posting.h"
#include "store/vector.h"

enum { SQL_RETAG, SQL_TAGS_CLEAR, SQL_OF_DOCUMENT, SQL_META };
static const char *const sql[] = {
	[SQL_RETAG] =
		"UPDATE memory_units SET tags = ?, updated_at = ? WHERE bank_no = ? AND unit_no = ?",
	[SQL_TAGS_CLEAR] = "DELETE FROM unit_tags WHERE bank_no = ? AND unit_no = ?",
	[SQL_OF_DOCUMENT] =
		("SELECT unit_no, COALESCE(chunk_index, -1), tags, metadata, observation_scopes "
		 "FROM memory_units WHERE bank_no = ? AND document_id = ? ORDER BY unit_no"),
	[SQL_META] =
		("UPDATE memory_units SET metadata = ?, observation_scopes = ? "
		 "WHERE bank_no = ? AND unit_no = ?"),
};
HS_SQL_LIST(hs_memory_sql, sql);

static const char insert_tag[] = "INSERT INTO unit_tags (bank_no, tag, unit_no) VALUES ";

struct hs_unit hs_unit_new(enum hs_fact_type type, const char *text)
{
	return (struct hs_unit){
		.type = type,
		.text = text,
		.event_us = HS_TIME_NONE,
		.occurred_start_us = HS_TIME_NONE,
		.occurred_end_us = HS_TIME_NONE,
		.mentioned_us = HS_TIME_NONE,
		.chunk_index = -1,
	};
}

void hs_unit_terms(struct hs_pool *pool, struct hs_unit *u)
{
	const char *text = u->text;

	if (u->type != HS_OBSERVATION && (u->context || u->text_signals))
		text = hs_pool_printf(pool, "%s\n%s\n%s", u->text, u->context ? u->context : "",
			u->text_signals ? u->text_signals : "");
	hs_words_terms(pool, text, NULL, &u->terms);
}

/* ---- insert ---- */

static int by_id(const void *a, const void *b)
{
	return strcmp((*(struct hs_unit *const *)a)->id, (*(struct hs_unit *const *)b)->id);
}

struct numbering {
	struct hs_unit **v; /* sorted by id */
	size_t n;
};

static void take_numbers(void *arg, const struct hs_rows *rows)
{
	const struct numbering *num = arg;

	for (size_t r = 0; r < rows->n; r++) {
		struct hs_unit probe = {.id = hs_row(rows, r)[1].s}, *p = &probe;
		struct hs_unit **u = bsearch(&p, num->v, num->n, sizeof(*num->v), by_id);

		if (u)
			(*u)->unit_no = hs_row(rows, r)[0].i;
	}
}

static const char *tags_json(struct hs_pool *pool, const struct hs_strs *tags)
{
	return tags->n ? hs_json_text(pool, hs_json_keep(pool, hs_json_from_strs(tags))) : "[]";
}

static enum hs_rc insert_rows(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, struct hs_unit *units, size_t n, struct hs_err *err)
{
	struct numbering num = {HS_NEW_ARRAY(pool, struct hs_unit *, n + 1), n};
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO memory_units (bank_no, id, fact_type, text, context, text_signals, event_date, "
		"occurred_start, occurred_end, mentioned_at, document_id, chunk_index, metadata, tags, "
		"observation_scopes, proof_count, terms, created_at, updated_at) VALUES ",
		"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		" RETURNING unit_no, id");

	b.on_rows = take_numbers;
	b.arg = &num;
	for (size_t i = 0; i < n; i++) {
		if (!units[i].id)
			units[i].id = hs_uuid_v7_new(pool);
		units[i].unit_no = 0;
		num.v[i] = &units[i];
	}
	qsort(num.v, n, sizeof(*num.v), by_id);
	for (size_t i = 0; i < n; i++) {
		const struct hs_unit *u = &units[i];

		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_str(u->id),
				hs_b_str(hs_fact_type_names[u->type]), hs_b_str(u->text),
				hs_b_str(u->context), hs_b_str(u->text_signals),
				hs_b_time(u->event_us), hs_b_time(u->occurred_start_us),
				hs_b_time(u->occurred_end_us), hs_b_time(u->mentioned_us),
				hs_b_str(u->document_id),
				u->chunk_index < 0 ? hs_b_null() : hs_b_int(u->chunk_index),
				hs_b_str(u->metadata), hs_b_str(tags_json(pool, &u->tags)),
				hs_b_str(u->observation_scopes),
				u->proof_count ? hs_b_int(u->proof_count) : hs_b_null(),
				hs_posting_pack(pool, &u->terms), hs_b_time(stamp_us),
				hs_b_time(stamp_us)),
			err));
	}
	HS_TRY(hs_bulk_end(&b, err));
	for (size_t i = 0; i < n; i++)
		if (!units[i].unit_no)
			return hs_fail(err, HS_E_DB, "a new unit got no number");
	return HS_OK;
}

static enum hs_rc insert_tags(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_unit *units, size_t n, struct hs_err *err)
{
	struct hs_bulk b = hs_bulk_new(db, pool, insert_tag, "(?, ?, ?)", NULL);

	for (size_t i = 0; i < n; i++) {
		struct hs_strs set = hs_strs_sorted_set(pool, &units[i].tags);

		for (size_t k = 0; k < set.n; k++)
			HS_TRY(hs_bulk_add(&b,
				HS_BINDS(hs_b_int(bank_no), hs_b_str(set.v[k]),
					hs_b_int(units[i].unit_no)),
				err));
	}
	return hs_bulk_end(&b, err);
}

static enum hs_rc insert_entities(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_unit *units, size_t n, struct hs_err *err)
{
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO unit_entities (bank_no, unit_no, entity_no, pos) VALUES ",
		"(?, ?, ?, ?)", NULL);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < units[i].n_entities; k++)
			HS_TRY(hs_bulk_add(&b,
				HS_BINDS(hs_b_int(bank_no), hs_b_int(units[i].unit_no),
					hs_b_int(units[i].entities[k]), hs_b_int((int64_t)k)),
				err));
	return hs_bulk_end(&b, err);
}

enum hs_rc hs_units_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, struct hs_unit *units, size_t n, struct hs_err *err)
{
	if (!n)
		return HS_OK;
	HS_TRY(insert_rows(db, pool, bank_no, stamp_us, units, n, err));
	HS_TRY(insert_tags(db, pool, bank_no, units, n, err));
	HS_TRY(insert_entities(db, pool, bank_no, units, n, err));
	HS_TRY(hs_vectors_put(db, pool, bank_no, units, n, err));
	return hs_postings_add(db, pool, bank_no, units, n, err);
}

/* ---- links ---- */

static int by_link(const void *a, const void *b)
{
	const struct hs_link *x = a, *y = b;
	int64_t x_min = x->from_no < x->to_no ? x->from_no : x->to_no,
		y_min = y->from_no < y->to_no ? y->from_no : y->to_no;
	int64_t x_max = x->from_no < x->to_no ? x->to_no : x->from_no,
		y_max = y->from_no < y->to_no ? y->to_no : y->from_no;

	if (x_min != y_min)
		return x_min < y_min ? -1 : 1;
	if (x_max != y_max)
		return x_max < y_max ? -1 : 1;
	return strcmp(x->type, y->type);
}

/* Pairs and types that are stored already, whichever way round, as a sorted list of links. */
static enum hs_rc stored_links(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *ends, size_t n, struct hs_link **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_link *v = NULL;
	size_t m = 0;

	for (size_t i = 0; i < n; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);
		struct hs_rows rows;

		hs_sql_add(&q,
			"SELECT from_no, to_no, link_type FROM memory_links WHERE bank_no = ? AND from_no IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_list_int(&q, ends + i, n - i < HS_IN_MAX ? n - i : HS_IN_MAX);
		hs_sql_add(&q, ")");
		HS_TRY(hs_sql_select(db, &q, &rows, err));
		v = hs_pool_regrow(pool, v, m * sizeof(*v), (m + rows.n + 1) * sizeof(*v));
		for (size_t r = 0; r < rows.n; r++)
			v[m++] = (struct hs_link){hs_row(&rows, r)[0].i, hs_row(&rows, r)[1].i,
				hs_row(&rows, r)[2].s, 0};
	}
	qsort(v, m, sizeof(*v), by_link);
	*ret = v;
	*ret_n = m;
	return HS_OK;
}

enum hs_rc hs_links_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_link *links, size_t n, struct hs_err *err)
{
	struct hs_link *v = hs_pool_memdup(pool, links, n * sizeof(*links)), *old;
	int64_t *ends = HS_NEW_ARRAY(pool, int64_t, 2 * n + 1), *live;
	size_t n_ends, n_live, n_old;
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO memory_links (bank_no, from_no, to_no, link_type, weight) VALUES ",
		"(?, ?, ?, ?, ?)", NULL);

	if (!n)
		return HS_OK;
	for (size_t i = 0; i < n; i++) {
		ends[2 * i] = v[i].from_no;
		ends[2 * i + 1] = v[i].to_no;
	}
	ends = hs_nos_sorted(pool, ends, 2 * n, &n_ends);
	HS_TRY(hs_units_live(db, pool, bank_no, ends, n_ends, &live, &n_live, err));
	HS_TRY(stored_links(db, pool, bank_no, ends, n_ends, &old, &n_old, err));
	qsort(v, n, sizeof(*v), by_link);
	for (size_t i = 0; i < n; i++) {
		if (v[i].from_no == v[i].to_no || (i && by_link(&v[i - 1], &v[i]) == 0))
			continue;
		if (!hs_nos_has(live, n_live, v[i].from_no) ||
			!hs_nos_has(live, n_live, v[i].to_no))
			continue;
		if (n_old && bsearch(&v[i], old, n_old, sizeof(*old), by_link))
			continue;
		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_int(v[i].from_no), hs_b_int(v[i].to_no),
				hs_b_str(v[i].type), hs_b_num(v[i].weight)),
			err));
	}
	return hs_bulk_end(&b, err);
}

/* ---- load ---- */

static const struct hs_col unit_cols[] = {
	HS_COL_INT(struct hs_unit_row, unit_no),
	HS_COL_STR(struct hs_unit_row, id),
	HS_COL_STR(struct hs_unit_row, fact_type),
	HS_COL_STR(struct hs_unit_row, text),
	HS_COL_STR(struct hs_unit_row, context),
	HS_COL_STR(struct hs_unit_row, document_id),
	HS_COL_STR(struct hs_unit_row, metadata),
	HS_COL_STR(struct hs_unit_row, observation_scopes),
	HS_COL_TIME(struct hs_unit_row, event_us),
	HS_COL_TIME(struct hs_unit_row, occurred_start_us),
	HS_COL_TIME(struct hs_unit_row, occurred_end_us),
	HS_COL_TIME(struct hs_unit_row, mentioned_us),
	HS_COL_INT(struct hs_unit_row, chunk_index),
	HS_COL_INT(struct hs_unit_row, proof_count),
	HS_COL_STRS(struct hs_unit_row, tags),
	HS_COL_TIME(struct hs_unit_row, consolidated_us),
	HS_COL_TIME(struct hs_unit_row, edited_us),
	HS_COL_TIME(struct hs_unit_row, created_us),
	HS_COL_TIME(struct hs_unit_row, updated_us),
};

static int by_unit_no(const void *a, const void *b)
{
	const struct hs_unit_row *x = a, *y = b;

	return x->unit_no < y->unit_no ? -1 : x->unit_no > y->unit_no;
}

static enum hs_rc load_some(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *nos, size_t n, struct hs_unit_row *out, size_t *ret_n, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&q,
		"SELECT unit_no, id, fact_type, text, context, document_id, metadata, observation_scopes, event_date, "
		"occurred_start, occurred_end, mentioned_at, COALESCE(chunk_index, -1), COALESCE(proof_count, 0), tags, "
		"consolidated_at, edited_at, created_at, updated_at FROM " HS_UNITS_BY_NO
		" WHERE bank_no = ? AND unit_no IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_int(&q, nos, n);
	hs_sql_add(&q, ")");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	for (size_t r = 0; r < rows.n; r++)
		hs_row_read(pool, unit_cols, HS_COUNT(unit_cols), hs_row(&rows, r), &out[r]);
	*ret_n = rows.n;
	return HS_OK;
}

enum hs_rc hs_units_load(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_unit_row **ret, size_t *ret_n,
	struct hs_err *err)
{
	size_t n_sorted, m = 0, out = 0;
	int64_t *sorted = hs_nos_sorted(pool, unit_nos, n, &n_sorted);
	struct hs_unit_row *found = HS_NEW_ARRAY(pool, struct hs_unit_row, n_sorted + 1);
	struct hs_unit_row *v = HS_NEW_ARRAY(pool, struct hs_unit_row, n + 1);

	for (size_t i = 0; i < n_sorted; i += HS_IN_MAX) {
		size_t got;

		HS_TRY(load_some(db, pool, bank_no, sorted + i,
			n_sorted - i < HS_IN_MAX ? n_sorted - i : HS_IN_MAX, found + m, &got, err));
		m += got;
	}
	qsort(found, m, sizeof(*found), by_unit_no);
	for (size_t i = 0; i < n; i++) {
		struct hs_unit_row probe = {.unit_no = unit_nos[i]};
		struct hs_unit_row *u =
			m ? bsearch(&probe, found, m, sizeof(*found), by_unit_no) : NULL;

		if (u)
			v[out++] = *u;
	}
	*ret = v;
	*ret_n = out;
	return HS_OK;
}

enum hs_rc hs_units_find(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_strs *ids, int64_t *ret_nos, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	for (size_t i = 0; i < ids->n; i++)
		ret_nos[i] = 0;
	if (!ids->n)
		return HS_OK;
	hs_sql_add(&q, "SELECT unit_no, id FROM memory_units WHERE bank_no = ? AND id IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_str(&q, ids);
	hs_sql_add(&q, ")");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	for (size_t r = 0; r < rows.n; r++)
		for (size_t i = 0; i < ids->n; i++)
			if (strcmp(ids->v[i], hs_row(&rows, r)[1].s) == 0)
				ret_nos[i] = hs_row(&rows, r)[0].i;
	return HS_OK;
}

enum hs_rc hs_units_live(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, int64_t **ret, size_t *ret_n, struct hs_err *err)
{
	size_t n_sorted, m = 0;
	int64_t *sorted = hs_nos_sorted(pool, unit_nos, n, &n_sorted);
	int64_t *v = HS_NEW_ARRAY(pool, int64_t, n_sorted + 1);

	for (size_t i = 0; i < n_sorted; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);
		struct hs_rows rows;

		hs_sql_add(&q, "SELECT unit_no FROM " HS_UNITS_BY_NO
			       " WHERE bank_no = ? AND unit_no IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_list_int(
			&q, sorted + i, n_sorted - i < HS_IN_MAX ? n_sorted - i : HS_IN_MAX);
		hs_sql_add(&q, ") ORDER BY unit_no");
		HS_TRY(hs_sql_select(db, &q, &rows, err));
		for (size_t r = 0; r < rows.n; r++)
			v[m++] = hs_row(&rows, r)[0].i;
	}
	*ret = v;
	*ret_n = m;
	return HS_OK;
}

/* ---- stamps and tags ---- */

enum hs_rc hs_units_mark(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, bool failed, int64_t at_us, struct hs_err *err)
{
	for (size_t i = 0; i < n; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);

		if (at_us == HS_TIME_NONE) {
			hs_sql_add(&q,
				"UPDATE memory_units SET consolidated_at = NULL, consolidation_failed_at = NULL");
		} else {
			hs_sql_add(
				&q, failed ? "UPDATE memory_units SET consolidation_failed_at = ?"
					   : "UPDATE memory_units SET consolidated_at = ?");
			hs_sql_bind(&q, hs_b_time(at_us));
		}
		hs_sql_add(&q, " WHERE bank_no = ? AND unit_no IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_list_int(&q, unit_nos + i, n - i < HS_IN_MAX ? n - i : HS_IN_MAX);
		hs_sql_add(&q, ")");
		HS_TRY(hs_sql_exec(db, &q, NULL, err));
	}
	return HS_OK;
}

enum hs_rc hs_unit_retag(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t stamp_us,
	int64_t unit_no, const struct hs_strs *old_tags, const struct hs_strs *tags,
	bool *ret_changed, struct hs_err *err)
{
	struct hs_strs was = hs_strs_sorted_set(pool, old_tags),
		       now = hs_strs_sorted_set(pool, tags);
	struct hs_bulk b = hs_bulk_new(db, pool, insert_tag, "(?, ?, ?)", NULL);
	bool same = was.n == now.n;

	for (size_t i = 0; same && i < now.n; i++)
		same = strcmp(was.v[i], now.v[i]) == 0;
	*ret_changed = !same;
	if (same)
		return HS_OK;

	HS_TRY(hs_db_exec(db, sql[SQL_RETAG],
		HS_BINDS(hs_b_str(tags_json(pool, tags)), hs_b_time(stamp_us), hs_b_int(bank_no),
			hs_b_int(unit_no)),
		NULL, err));
	HS_TRY(hs_db_exec(db, sql[SQL_TAGS_CLEAR], HS_BINDS(hs_b_int(bank_no), hs_b_int(unit_no)),
		NULL, err));
	for (size_t i = 0; i < now.n; i++)
		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_str(now.v[i]), hs_b_int(unit_no)), err));
	return hs_bulk_end(&b, err);
}

/* ---- facts of a document that is kept ---- */

static const struct hs_col meta_cols[] = {
	HS_COL_INT(struct hs_unit_meta, unit_no),
	HS_COL_INT(struct hs_unit_meta, chunk_index),
	HS_COL_STRS(struct hs_unit_meta, tags),
	HS_COL_STR(struct hs_unit_meta, metadata),
	HS_COL_STR(struct hs_unit_meta, observation_scopes),
};

enum hs_rc hs_units_of_document(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, struct hs_unit_meta **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_OF_DOCUMENT],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id)), &rows, err));
	*ret = hs_rows_read(pool, meta_cols, HS_COUNT(meta_cols), sizeof(**ret), &rows);
	*ret_n = rows.n;
	return HS_OK;
}

enum hs_rc hs_unit_set_meta(
	struct hs_db *db, int64_t bank_no, const struct hs_unit_meta *u, struct hs_err *err)
{
	return hs_db_exec(db, sql[SQL_META],
		HS_BINDS(hs_b_str(u->metadata), hs_b_str(u->observation_scopes), hs_b_int(bank_no),
			hs_b_int(u->unit_no)),
		NULL, err);
}
