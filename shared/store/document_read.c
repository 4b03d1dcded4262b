#include "store/document_read.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "db/row.h"

const char *const hs_document_time_names[] = {"created_at", "updated_at", NULL};
static const char *const time_columns[] = {"d.created_at", "d.updated_at"};
static const char *const time_orders[] = {
	" ORDER BY d.created_at DESC, d.document_id",
	" ORDER BY d.updated_at DESC, d.document_id",
};

#define ITEM_COLUMNS                                                                               \
	"d.document_id, d.content_hash, d.retain_params, d.tags, d.text_chars, d.created_at, "     \
	"d.updated_at"
/* Many units have no document, which hides from the optimiser how good this index is. */
#define UNITS_OF_DOCUMENT "memory_units u FORCE INDEX (memory_units_document) "

static const struct hs_col item_cols[] = {
	HS_COL_STR(struct hs_document_item, document_id),
	HS_COL_STR(struct hs_document_item, content_hash),
	HS_COL_STR(struct hs_document_item, retain_params),
	HS_COL_STR(struct hs_document_item, tags),
	HS_COL_INT(struct hs_document_item, text_chars),
	HS_COL_TIME(struct hs_document_item, created_us),
	HS_COL_TIME(struct hs_document_item, updated_us),
};

static const struct hs_col chunk_cols[] = {
	HS_COL_INT(struct hs_chunk_item, chunk_index),
	HS_COL_STR(struct hs_chunk_item, text),
	HS_COL_TIME(struct hs_chunk_item, created_us),
};

enum { SQL_GET, SQL_TYPES, SQL_OBSERVATIONS, SQL_CHUNK_COUNT, SQL_CHUNKS, SQL_CHUNK };
static const char *const sql[] = {
	[SQL_GET] =
		"SELECT " ITEM_COLUMNS ", d.original_text, d.bank_no FROM documents d "
		"JOIN banks b ON b.bank_no = d.bank_no WHERE b.bank_id = ? AND d.document_id = ?",
	[SQL_TYPES] = "SELECT u.fact_type, COUNT(*) FROM " UNITS_OF_DOCUMENT
		      "WHERE u.bank_no = ? AND u.document_id = ? GROUP BY u.fact_type",
	[SQL_OBSERVATIONS] =
		"SELECT COUNT(DISTINCT s.observation_no) FROM " UNITS_OF_DOCUMENT
		"JOIN observation_sources s ON s.bank_no = u.bank_no AND s.source_no = u.unit_no "
		"WHERE u.bank_no = ? AND u.document_id = ?",
	[SQL_CHUNK_COUNT] =
		"SELECT d.bank_no, (SELECT COUNT(*) FROM chunks c WHERE c.bank_no = d.bank_no "
		"AND c.document_id = d.document_id) FROM documents d JOIN banks b ON b.bank_no = d.bank_no "
		"WHERE b.bank_id = ? AND d.document_id = ?",
	[SQL_CHUNKS] = "SELECT chunk_index, chunk_text, created_at FROM chunks WHERE bank_no = ? "
		       "AND document_id = ? ORDER BY chunk_index LIMIT ? OFFSET ?",
	[SQL_CHUNK] =
		"SELECT c.chunk_index, c.chunk_text, c.created_at FROM chunks c "
		"JOIN banks b ON b.bank_no = c.bank_no WHERE b.bank_id = ? AND c.document_id = ? "
		"AND c.chunk_index = ?",
};
HS_SQL_LIST(hs_document_read_sql, sql);

#define ID_MATCHES "LOCATE(LOWER(?), LOWER(d.document_id)) > 0"
#define TEXT_MATCHES "COALESCE(LOCATE(LOWER(?), LOWER(d.original_text)), 0) > 0"

static void add_filter(struct hs_sql *s, int64_t bank_no, const struct hs_document_filter *f)
{
	bool search = !hs_str_empty(f->q);

	/* the index holds what is sorted and counted; texts are read by a search only */
	hs_sql_add(s,
		search ? " FROM documents d WHERE d.bank_no = ?"
		       : " FROM documents d FORCE INDEX (documents_updated) WHERE d.bank_no = ?");
	hs_sql_bind(s, hs_b_int(bank_no));
	if (search) {
		hs_sql_add(s, " AND (" ID_MATCHES " OR " TEXT_MATCHES ")");
		hs_sql_bind(s, hs_b_str(f->q));
		hs_sql_bind(s, hs_b_str(f->q));
	}
	hs_scope_sql(s, &f->scope, &hs_scope_documents);
	hs_window_sql(s, &f->window, time_columns[f->window.on ? f->window.axis : 0]);
}

static enum hs_rc count_matches(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_document_filter *f, struct hs_document_page *page, struct hs_err *err)
{
	struct hs_sql s = hs_sql_new(pool);
	bool search = !hs_str_empty(f->q);

	hs_sql_add(&s, search ? "SELECT COUNT(*) FROM (SELECT 1" : "SELECT COUNT(*)");
	add_filter(&s, bank_no, f);
	if (search) {
		hs_sql_add(&s, " LIMIT ?) x");
		hs_sql_bind(&s, hs_b_int(HS_DOCUMENT_SEARCH_MAX + 1));
	}
	HS_TRY(hs_count_sql(db, &s, &page->total, err));
	page->estimate = search && page->total > HS_DOCUMENT_SEARCH_MAX;
	if (page->estimate)
		page->total = HS_DOCUMENT_SEARCH_MAX;
	return HS_OK;
}

/* No page lies beyond the total, which is the cap of a search. */
static int64_t rows_wanted(const struct hs_document_filter *f, int64_t total)
{
	if (f->offset >= total)
		return 0;
	return f->limit < total - f->offset ? f->limit : total - f->offset;
}

/* Ids of the page in order, with what the search found. */
static enum hs_rc page_keys(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_document_filter *f, int64_t wanted, struct hs_document_page *page,
	struct hs_err *err)
{
	static const struct hs_col cols[] = {
		HS_COL_STR(struct hs_document_item, document_id),
		HS_COL_BOOL(struct hs_document_item, id_matched),
		HS_COL_BOOL(struct hs_document_item, text_matched),
	};
	struct hs_sql s = hs_sql_new(pool);
	struct hs_rows rows;

	if (hs_str_empty(f->q)) {
		hs_sql_add(&s, "SELECT d.document_id, FALSE, FALSE");
	} else {
		hs_sql_add(&s, "SELECT d.document_id, " ID_MATCHES ", " TEXT_MATCHES);
		hs_sql_bind(&s, hs_b_str(f->q));
		hs_sql_bind(&s, hs_b_str(f->q));
	}
	add_filter(&s, bank_no, f);
	hs_sql_add(&s, f->window.on
			       ? time_orders[f->window.axis]
			       : " ORDER BY d.updated_at DESC, d.created_at DESC, d.document_id");
	hs_page_sql(&s, wanted, f->offset);
	HS_TRY(hs_sql_select(db, &s, &rows, err));
	page->v = hs_rows_read(pool, cols, HS_COUNT(cols), sizeof(*page->v), &rows);
	page->n = rows.n;
	return HS_OK;
}

static struct hs_document_item *item_named(struct hs_document_page *page, const char *id)
{
	for (size_t i = 0; i < page->n; i++)
		if (strcmp(page->v[i].document_id, id) == 0)
			return &page->v[i];
	return NULL;
}

/* "<head> bank_no = ? AND document_id IN (…)<tail>" over the page. */
static enum hs_rc select_page(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_document_page *page, const char *head, const char *tail,
	struct hs_rows *ret, struct hs_err *err)
{
	struct hs_sql s = hs_sql_new(pool);
	struct hs_strs ids = {page->n, HS_NEW_ARRAY(pool, const char *, page->n)};

	for (size_t i = 0; i < page->n; i++)
		ids.v[i] = page->v[i].document_id;
	hs_sql_add(&s, head);
	hs_sql_bind(&s, hs_b_int(bank_no));
	hs_sql_list_str(&s, &ids);
	hs_sql_add(&s, tail);
	return hs_sql_select(db, &s, ret, err);
}

static enum hs_rc fill_page(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_document_page *page, struct hs_err *err)
{
	struct hs_document_item *item;
	struct hs_rows rows;

	HS_TRY(select_page(db, pool, bank_no, page,
		"SELECT " ITEM_COLUMNS
		" FROM documents d WHERE d.bank_no = ? AND d.document_id IN (",
		")", &rows, err));
	for (size_t i = 0; i < rows.n; i++)
		if ((item = item_named(page, hs_row(&rows, i)[0].s)))
			hs_row_read(pool, item_cols, HS_COUNT(item_cols), hs_row(&rows, i), item);
	HS_TRY(select_page(db, pool, bank_no, page,
		"SELECT u.document_id, COUNT(*) FROM " UNITS_OF_DOCUMENT
		"WHERE u.bank_no = ? AND u.document_id IN (",
		") GROUP BY u.document_id", &rows, err));
	for (size_t i = 0; i < rows.n; i++)
		if ((item = item_named(page, hs_row(&rows, i)[0].s)))
			item->memory_units = hs_row(&rows, i)[1].i;
	return HS_OK;
}

enum hs_rc hs_document_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_document_filter *f, struct hs_document_page *ret, struct hs_err *err)
{
	struct hs_document_page page = {0};
	int64_t wanted;

	HS_TRY(count_matches(db, pool, bank_no, f, &page, err));
	wanted = rows_wanted(f, page.total);
	if (wanted > 0)
		HS_TRY(page_keys(db, pool, bank_no, f, wanted, &page, err));
	if (page.n > 0)
		HS_TRY(fill_page(db, pool, bank_no, &page, err));
	*ret = page;
	return HS_OK;
}

static enum hs_rc count_types(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_document_item *d, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_TYPES],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(d->document_id)), &rows, err));
	for (size_t i = 0; i < rows.n; i++) {
		int type = hs_fact_type_find(hs_row(&rows, i)[0].s);

		d->memory_units += hs_row(&rows, i)[1].i;
		if (type >= 0)
			d->by_type[type] = hs_row(&rows, i)[1].i;
	}
	HS_TRY(hs_db_select(db, pool, sql[SQL_OBSERVATIONS],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(d->document_id)), &rows, err));
	d->by_type[HS_OBSERVATION] = hs_row(&rows, 0)[0].i;
	return HS_OK;
}

enum hs_rc hs_document_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *document_id, struct hs_document_item *ret, struct hs_err *err)
{
	struct hs_document_item d = {0};
	const struct hs_val *row;
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_GET],
		HS_BINDS(hs_b_str(bank_id), hs_b_str(document_id)), &rows, err));
	if (rows.n == 0)
		return hs_fail(err, HS_E_NOT_FOUND, "Document not found");
	row = hs_row(&rows, 0);
	hs_row_read(pool, item_cols, HS_COUNT(item_cols), row, &d);
	d.original_text = row[HS_COUNT(item_cols)].s;
	HS_TRY(count_types(db, pool, row[HS_COUNT(item_cols) + 1].i, &d, err));
	*ret = d;
	return HS_OK;
}

enum hs_rc hs_chunk_list(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *document_id, int64_t limit, int64_t offset, struct hs_chunk_item **ret,
	size_t *ret_n, int64_t *ret_total, struct hs_err *err)
{
	struct hs_rows head, rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_CHUNK_COUNT],
		HS_BINDS(hs_b_str(bank_id), hs_b_str(document_id)), &head, err));
	if (head.n == 0)
		return hs_fail(err, HS_E_NOT_FOUND, "Document not found");
	HS_TRY(hs_db_select(db, pool, sql[SQL_CHUNKS],
		HS_BINDS(hs_b_int(hs_row(&head, 0)[0].i), hs_b_str(document_id), hs_b_int(limit),
			hs_b_int(offset)),
		&rows, err));
	*ret = hs_rows_read(pool, chunk_cols, HS_COUNT(chunk_cols), sizeof(**ret), &rows);
	*ret_n = rows.n;
	*ret_total = hs_row(&head, 0)[1].i;
	return HS_OK;
}

enum hs_rc hs_chunk_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *document_id, int64_t chunk_index, struct hs_chunk_item *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_CHUNK],
		HS_BINDS(hs_b_str(bank_id), hs_b_str(document_id), hs_b_int(chunk_index)), &rows,
		err));
	if (rows.n == 0)
		return hs_fail(err, HS_E_NOT_FOUND, "Chunk not found");
	hs_row_read(pool, chunk_cols, HS_COUNT(chunk_cols), hs_row(&rows, 0), ret);
	return HS_OK;
}
