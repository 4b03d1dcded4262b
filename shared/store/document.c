#include "store/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "db/row.h"
#include "json/json.h"
#include "store/bulk.h"

enum {
	SQL_FIND,
	SQL_FIND_TEXT,
	SQL_LOCK,
	SQL_PUT,
	SQL_NO,
	SQL_TAGS_CLEAR,
	SQL_CHUNKS,
	SQL_CHUNK,
	SQL_CHUNKS_CLEAR,
	SQL_UNITS,
	SQL_DELETE
};
#define FIND_SQL(text)                                                                             \
	"SELECT document_id, " text                                                                \
	", text_chars, content_hash, retain_params, tags, created_at, updated_at "                 \
	"FROM documents WHERE bank_no = ? AND document_id = ?"
static const char *const sql[] = {
	[SQL_FIND] = FIND_SQL("NULL"),
	[SQL_FIND_TEXT] = FIND_SQL("original_text"),
	[SQL_LOCK] = FIND_SQL("NULL") " FOR UPDATE",
	[SQL_PUT] =
		"INSERT INTO documents (bank_no, document_id, original_text, text_chars, content_hash, "
		"retain_params, tags, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
		"ON DUPLICATE KEY UPDATE original_text = VALUES(original_text), text_chars = VALUES(text_chars), "
		"content_hash = VALUES(content_hash), retain_params = VALUES(retain_params), "
		"tags = VALUES(tags), updated_at = VALUES(updated_at)",
	[SQL_NO] = "SELECT document_no FROM documents WHERE bank_no = ? AND document_id = ?",
	[SQL_TAGS_CLEAR] = "DELETE FROM document_tags WHERE bank_no = ? AND document_no = ?",
	[SQL_CHUNKS] = ("SELECT chunk_index, content_hash, created_at FROM chunks "
			"WHERE bank_no = ? AND document_id = ? ORDER BY chunk_index"),
	[SQL_CHUNK] =
		("SELECT c.chunk_text, d.tags FROM chunks c JOIN documents d ON d.bank_no = c.bank_no "
		 "AND d.document_id = c.document_id WHERE c.bank_no = ? AND c.document_id = ? AND c.chunk_index = ?"),
	[SQL_CHUNKS_CLEAR] = "DELETE FROM chunks WHERE bank_no = ? AND document_id = ?",
	[SQL_UNITS] =
		"SELECT unit_no FROM memory_units WHERE bank_no = ? AND document_id = ? ORDER BY unit_no",
	[SQL_DELETE] = "DELETE FROM documents WHERE bank_no = ? AND document_id = ?",
};
HS_SQL_LIST(hs_document_sql, sql);

static const struct hs_col doc_cols[] = {
	HS_COL_STR(struct hs_doc_row, document_id),
	HS_COL_STR(struct hs_doc_row, original_text),
	HS_COL_INT(struct hs_doc_row, text_chars),
	HS_COL_STR(struct hs_doc_row, content_hash),
	HS_COL_STR(struct hs_doc_row, retain_params),
	HS_COL_STRS(struct hs_doc_row, tags),
	HS_COL_TIME(struct hs_doc_row, created_us),
	HS_COL_TIME(struct hs_doc_row, updated_us),
};

enum hs_rc hs_document_find(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, bool with_text, bool lock, struct hs_doc_row *ret,
	struct hs_err *err)
{
	const char *s = sql[lock ? SQL_LOCK : with_text ? SQL_FIND_TEXT : SQL_FIND];
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, s, HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id)), &rows, err));
	if (!rows.n)
		return hs_fail(err, HS_E_NOT_FOUND, "Document not found");
	hs_row_read(pool, doc_cols, HS_COUNT(doc_cols), hs_row(&rows, 0), ret);
	return HS_OK;
}

static enum hs_rc document_no(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, int64_t *ret_no, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_NO],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id)), &rows, err));
	if (!rows.n)
		return hs_fail(err, HS_E_NOT_FOUND, "Document not found");
	*ret_no = hs_row(&rows, 0)[0].i;
	return HS_OK;
}

enum hs_rc hs_document_put(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_doc_row *row, struct hs_err *err)
{
	struct hs_strs tags = hs_strs_sorted_set(pool, &row->tags);
	const char *tags_json =
		hs_json_text(pool, hs_json_keep(pool, hs_json_from_strs(&row->tags)));
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO document_tags (bank_no, tag, document_no) VALUES ", "(?, ?, ?)", NULL);
	int64_t no;

	HS_TRY(hs_db_exec(db, sql[SQL_PUT],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(row->document_id),
			hs_b_str(row->original_text), hs_b_int(row->text_chars),
			hs_b_str(row->content_hash), hs_b_str(row->retain_params),
			hs_b_str(tags_json), hs_b_time(row->created_us),
			hs_b_time(row->updated_us)),
		NULL, err));
	HS_TRY(document_no(db, pool, bank_no, row->document_id, &no, err));
	HS_TRY(hs_db_exec(
		db, sql[SQL_TAGS_CLEAR], HS_BINDS(hs_b_int(bank_no), hs_b_int(no)), NULL, err));
	for (size_t i = 0; i < tags.n; i++)
		HS_TRY(hs_bulk_add(
			&b, HS_BINDS(hs_b_int(bank_no), hs_b_str(tags.v[i]), hs_b_int(no)), err));
	return hs_bulk_end(&b, err);
}

enum hs_rc hs_document_delete(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, struct hs_deleted *ret, struct hs_err *err)
{
	struct hs_doc_row row;
	struct hs_rows units;
	int64_t no;

	HS_TRY(hs_document_find(db, pool, bank_no, document_id, false, true, &row, err));
	HS_TRY(document_no(db, pool, bank_no, document_id, &no, err));
	HS_TRY(hs_db_select(db, pool, sql[SQL_UNITS],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id)), &units, err));
	HS_TRY(hs_memory_delete_units(
		db, pool, bank_no, hs_nos_of_rows(pool, &units), units.n, ret, err));
	HS_TRY(hs_db_exec(db, sql[SQL_CHUNKS_CLEAR],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id)), NULL, err));
	HS_TRY(hs_db_exec(
		db, sql[SQL_TAGS_CLEAR], HS_BINDS(hs_b_int(bank_no), hs_b_int(no)), NULL, err));
	return hs_db_exec(
		db, sql[SQL_DELETE], HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id)), NULL, err);
}

enum hs_rc hs_chunks_put(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, const struct hs_chunk_row *rows, size_t n, struct hs_err *err)
{
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO chunks (bank_no, document_id, chunk_index, chunk_text, content_hash, created_at) VALUES ",
		"(?, ?, ?, ?, ?, ?)", NULL);

	for (size_t i = 0; i < n; i++)
		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id),
				hs_b_int(rows[i].chunk_index), hs_b_str(rows[i].text),
				hs_b_str(rows[i].content_hash), hs_b_time(rows[i].created_us)),
			err));
	return hs_bulk_end(&b, err);
}

enum hs_rc hs_chunk_hashes(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, struct hs_chunk_row **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;
	struct hs_chunk_row *v;

	HS_TRY(hs_db_select(db, pool, sql[SQL_CHUNKS],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id)), &rows, err));
	v = HS_NEW_ARRAY(pool, struct hs_chunk_row, rows.n + 1);
	for (size_t i = 0; i < rows.n; i++) {
		const struct hs_val *r = hs_row(&rows, i);

		v[i] = (struct hs_chunk_row){r[0].i, NULL, r[1].s, r[2].i};
	}
	*ret = v;
	*ret_n = rows.n;
	return HS_OK;
}

enum hs_rc hs_chunk_text(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *document_id, int64_t index, const char **ret_text, struct hs_strs *ret_tags,
	struct hs_err *err)
{
	struct hs_rows rows;
	json_t *tags;

	*ret_text = NULL;
	*ret_tags = (struct hs_strs){0};
	HS_TRY(hs_db_select(db, pool, sql[SQL_CHUNK],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(document_id), hs_b_int(index)), &rows, err));
	if (!rows.n)
		return HS_OK;
	HS_TRY(hs_json_load(pool, hs_row(&rows, 0)[1].s, &tags, err));
	*ret_text = hs_row(&rows, 0)[0].s;
	*ret_tags = hs_json_strs(pool, tags);
	return HS_OK;
}

/* ---- chunk ids ---- */

static const char *escape_part(struct hs_pool *pool, const char *s)
{
	return hs_str_replace(pool, hs_str_replace(pool, s, "~", "~7E"), "_", "~5F");
}

static const char *unescape_part(struct hs_pool *pool, const char *s, size_t n)
{
	const char *part = hs_pool_strndup(pool, s, n);

	return hs_str_replace(pool, hs_str_replace(pool, part, "~5F", "_"), "~7E", "~");
}

char *hs_chunk_id(struct hs_pool *pool, const char *bank_id, const char *document_id, int64_t index)
{
	return hs_pool_printf(pool, "%s_%s_%lld", escape_part(pool, bank_id),
		escape_part(pool, document_id), (long long)index);
}

bool hs_chunk_id_parse(struct hs_pool *pool, const char *chunk_id, const char **ret_bank_id,
	const char **ret_document_id, int64_t *ret_index)
{
	const char *first = strchr(chunk_id, '_'), *last = strrchr(chunk_id, '_');

	if (!first || first == last || first == chunk_id || strchr(first + 1, '_') != last)
		return false;
	if (last[1] < '0' || last[1] > '9' || !hs_str_to_i64(last + 1, ret_index))
		return false;
	*ret_bank_id = unescape_part(pool, chunk_id, (size_t)(first - chunk_id));
	*ret_document_id = unescape_part(pool, first + 1, (size_t)(last - first - 1));
	return true;
}
