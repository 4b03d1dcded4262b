#include "store/memory_read.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "db/row.h"
#include "store/bulk.h"
#include "store/entity.h"
#include "store/observation.h"

const char *const hs_memory_time_names[] = {
	"created_at",
	"updated_at",
	"mentioned_at",
	"occurred_start",
	"occurred_end",
	NULL,
};
static const char *const time_columns[] = {
	"u.created_at",
	"u.updated_at",
	"u.mentioned_at",
	"u.occurred_start",
	"u.occurred_end",
};
static const char *const time_orders[] = {
	" ORDER BY u.created_at DESC, u.id",
	" ORDER BY u.updated_at DESC, u.id",
	" ORDER BY u.mentioned_at DESC, u.id",
	" ORDER BY u.occurred_start DESC, u.id",
	" ORDER BY u.occurred_end DESC, u.id",
};

#define ITEM_COLUMNS                                                                                    \
	"u.unit_no, u.id, u.fact_type, u.text, u.context, u.document_id, COALESCE(u.chunk_index, -1), " \
	"u.event_date, u.occurred_start, u.occurred_end, u.mentioned_at, u.consolidated_at, "           \
	"u.consolidation_failed_at, u.edited_at, u.updated_at, u.proof_count, u.metadata, u.tags, "     \
	"u.observation_scopes"

static const struct hs_col item_cols[] = {
	HS_COL_INT(struct hs_memory_item, unit_no),
	HS_COL_STR(struct hs_memory_item, id),
	HS_COL_STR(struct hs_memory_item, fact_type),
	HS_COL_STR(struct hs_memory_item, text),
	HS_COL_STR(struct hs_memory_item, context),
	HS_COL_STR(struct hs_memory_item, document_id),
	HS_COL_INT(struct hs_memory_item, chunk_index),
	HS_COL_TIME(struct hs_memory_item, event_us),
	HS_COL_TIME(struct hs_memory_item, occurred_start_us),
	HS_COL_TIME(struct hs_memory_item, occurred_end_us),
	HS_COL_TIME(struct hs_memory_item, mentioned_us),
	HS_COL_TIME(struct hs_memory_item, consolidated_us),
	HS_COL_TIME(struct hs_memory_item, consolidation_failed_us),
	HS_COL_TIME(struct hs_memory_item, edited_us),
	HS_COL_TIME(struct hs_memory_item, updated_us),
	HS_COL_INT(struct hs_memory_item, proof_count),
	HS_COL_STR(struct hs_memory_item, metadata),
	HS_COL_STR(struct hs_memory_item, tags),
	HS_COL_STR(struct hs_memory_item, observation_scopes),
};

static const struct hs_col source_cols[] = {
	HS_COL_STR(struct hs_memory_source, id),
	HS_COL_STR(struct hs_memory_source, text),
	HS_COL_STR(struct hs_memory_source, fact_type),
	HS_COL_STR(struct hs_memory_source, context),
	HS_COL_TIME(struct hs_memory_source, occurred_start_us),
	HS_COL_TIME(struct hs_memory_source, mentioned_us),
};

enum { SQL_GET, SQL_SOURCES };
static const char *const sql[] = {
	[SQL_GET] = "SELECT " ITEM_COLUMNS ", u.bank_no FROM memory_units u "
		    "JOIN banks b ON b.bank_no = u.bank_no WHERE b.bank_id = ? AND u.id = ?",
	[SQL_SOURCES] =
		"SELECT u.id, u.text, u.fact_type, u.context, u.occurred_start, u.mentioned_at "
		"FROM observation_sources s JOIN memory_units u ON u.bank_no = s.bank_no AND u.unit_no = s.source_no "
		"WHERE s.bank_no = ? AND s.observation_no = ? ORDER BY u.mentioned_at DESC, s.pos",
};
HS_SQL_LIST(hs_memory_read_sql, sql);

/* ---- shared pieces ---- */

void hs_window_sql(struct hs_sql *q, const struct hs_window *w, const char *column)
{
	if (!w->on)
		return;
	hs_sql_add(q, " AND ");
	hs_sql_add(q, column);
	hs_sql_add(q, " IS NOT NULL");
	if (w->start_us != HS_TIME_NONE) {
		hs_sql_add(q, " AND ");
		hs_sql_add(q, column);
		hs_sql_add(q, " >= ?");
		hs_sql_bind(q, hs_b_time(w->start_us));
	}
	if (w->end_us != HS_TIME_NONE) {
		hs_sql_add(q, " AND ");
		hs_sql_add(q, column);
		hs_sql_add(q, " < ?");
		hs_sql_bind(q, hs_b_time(w->end_us));
	}
}

void hs_page_sql(struct hs_sql *q, int64_t limit, int64_t offset)
{
	hs_sql_add(q, " LIMIT ? OFFSET ?");
	hs_sql_bind(q, hs_b_int(limit));
	hs_sql_bind(q, hs_b_int(offset));
}

enum hs_rc hs_count_sql(struct hs_db *db, struct hs_sql *q, int64_t *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_sql_select(db, q, &rows, err));
	*ret = rows.n ? hs_row(&rows, 0)[0].i : 0;
	return HS_OK;
}

/* ---- memories ---- */

static const char *const consolidation_sql[] = {
	[HS_CONSOLIDATION_FAILED] = " AND u.consolidation_failed_at IS NOT NULL",
	[HS_CONSOLIDATION_PENDING] =
		" AND u.consolidated_at IS NULL AND u.consolidation_failed_at IS NULL",
	[HS_CONSOLIDATION_DONE] =
		" AND u.consolidated_at IS NOT NULL AND u.consolidation_failed_at IS NULL",
};

static void add_filter(struct hs_sql *q, int64_t bank_no, const struct hs_memory_filter *f)
{
	hs_sql_add(q, " FROM memory_units u WHERE u.bank_no = ?");
	hs_sql_bind(q, hs_b_int(bank_no));
	if (!hs_str_empty(f->type)) {
		hs_sql_add(q, " AND u.fact_type = ?");
		hs_sql_bind(q, hs_b_str(f->type));
	}
	if (!hs_str_empty(f->q)) {
		hs_sql_add(q,
			" AND (LOCATE(LOWER(?), LOWER(u.text)) > 0 OR LOCATE(LOWER(?), LOWER(u.context)) > 0)");
		hs_sql_bind(q, hs_b_str(f->q));
		hs_sql_bind(q, hs_b_str(f->q));
	}
	if (!hs_str_empty(f->document_id)) {
		hs_sql_add(q, " AND u.document_id = ?");
		hs_sql_bind(q, hs_b_str(f->document_id));
	}
	if (f->consolidation >= 0) {
		hs_sql_add(q, " AND u.fact_type IN ('world', 'experience')");
		hs_sql_add(q, consolidation_sql[f->consolidation]);
	}
	if (!hs_str_empty(f->entity_id)) {
		hs_sql_add(q,
			" AND EXISTS (SELECT 1 FROM entities e JOIN unit_entities ue ON ue.bank_no = e.bank_no "
			"AND ue.entity_no = e.entity_no WHERE e.bank_no = u.bank_no AND e.id = ? "
			"AND ue.unit_no = u.unit_no)");
		hs_sql_bind(q, hs_b_str(f->entity_id));
	}
	hs_scope_sql(q, &f->scope, &hs_scope_units);
	hs_window_sql(q, &f->window, time_columns[f->window.on ? f->window.axis : 0]);
}

/* Names of entities and sources of observations, for the whole page. */
static enum hs_rc add_companions(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_memory_item *items, size_t n, struct hs_err *err)
{
	int64_t *nos = HS_NEW_ARRAY(pool, int64_t, n);
	struct hs_unit_entity *entities;
	struct hs_source *sources;
	size_t n_entities, n_sources;

	for (size_t i = 0; i < n; i++)
		nos[i] = items[i].unit_no;
	HS_TRY(hs_entities_of_units(db, pool, bank_no, nos, n, &entities, &n_entities, err));
	HS_TRY(hs_observation_sources(db, pool, bank_no, nos, n, &sources, &n_sources, err));
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n_entities; k++)
			if (entities[k].unit_no == nos[i])
				hs_strs_add(pool, &items[i].entities, entities[k].canonical_name);
		for (size_t k = 0; k < n_sources; k++)
			if (sources[k].observation_no == nos[i])
				hs_strs_add(pool, &items[i].source_ids, sources[k].id);
	}
	return HS_OK;
}

static enum hs_rc load_items(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *nos, size_t n, struct hs_memory_item **ret, size_t *ret_n,
	struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_memory_item *items, *sorted = HS_NEW_ARRAY(pool, struct hs_memory_item, n);
	struct hs_rows rows;
	size_t m = 0;

	hs_sql_add(&q, "SELECT " ITEM_COLUMNS
		       " FROM memory_units u FORCE INDEX (PRIMARY)"
		       " WHERE u.bank_no = ? AND u.unit_no IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_int(&q, nos, n);
	hs_sql_add(&q, ")");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	items = hs_rows_read(pool, item_cols, HS_COUNT(item_cols), sizeof(*items), &rows);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < rows.n; k++)
			if (items[k].unit_no == nos[i])
				sorted[m++] = items[k];
	*ret = sorted;
	*ret_n = m;
	return HS_OK;
}

enum hs_rc hs_memory_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_memory_filter *f, struct hs_memory_page *ret, struct hs_err *err)
{
	struct hs_sql count = hs_sql_new(pool), page = hs_sql_new(pool);
	struct hs_memory_page out = {0};
	struct hs_rows rows;

	*ret = out;
	if (f->invalidated)
		return HS_OK;
	hs_sql_add(&count, "SELECT COUNT(*)");
	add_filter(&count, bank_no, f);
	HS_TRY(hs_count_sql(db, &count, &out.total, err));
	if (f->limit > 0 && f->offset < out.total) {
		hs_sql_add(&page, "SELECT u.unit_no");
		add_filter(&page, bank_no, f);
		/* NULLs come last in a falling order; ids rise with unit_no inside one created_at,
		 * so that memory_units_mentioned holds all that is sorted */
		hs_sql_add(&page,
			f->window.on
				? time_orders[f->window.axis]
				: " ORDER BY u.mentioned_at DESC, u.created_at DESC, u.unit_no");
		hs_page_sql(&page, f->limit, f->offset);
		HS_TRY(hs_sql_select(db, &page, &rows, err));
		if (rows.n > 0) {
			HS_TRY(load_items(db, pool, bank_no, hs_nos_of_rows(pool, &rows), rows.n,
				&out.v, &out.n, err));
			HS_TRY(add_companions(db, pool, bank_no, out.v, out.n, err));
		}
	}
	*ret = out;
	return HS_OK;
}

enum hs_rc hs_memory_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, struct hs_memory_item *ret, int64_t *ret_bank_no, struct hs_err *err)
{
	struct hs_memory_item item = {0};
	struct hs_rows rows;
	int64_t bank_no;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_GET], HS_BINDS(hs_b_str(bank_id), hs_b_str(id)), &rows, err));
	if (rows.n == 0)
		return hs_fail(err, HS_E_NOT_FOUND, "Memory unit '%s' not found", id);
	hs_row_read(pool, item_cols, HS_COUNT(item_cols), hs_row(&rows, 0), &item);
	bank_no = hs_row(&rows, 0)[HS_COUNT(item_cols)].i;
	HS_TRY(add_companions(db, pool, bank_no, &item, 1, err));
	*ret = item;
	*ret_bank_no = bank_no;
	return HS_OK;
}

enum hs_rc hs_memory_sources(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t observation_no, struct hs_memory_source **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_SOURCES],
		HS_BINDS(hs_b_int(bank_no), hs_b_int(observation_no)), &rows, err));
	*ret = hs_rows_read(pool, source_cols, HS_COUNT(source_cols), sizeof(**ret), &rows);
	*ret_n = rows.n;
	return HS_OK;
}

/* ---- tags ---- */

/* '*' is the only wildcard; '!' escapes what LIKE would take for one. */
static const char *like_pattern(struct hs_pool *pool, const char *q)
{
	struct hs_buf *b = hs_buf_new(pool, 2 * strlen(q) + 1);

	for (; *q; q++) {
		if (*q == '%' || *q == '_' || *q == '!')
			hs_buf_char(b, '!');
		hs_buf_char(b, *q == '*' ? '%' : *q);
	}
	return b->data;
}

static void add_tag_filter(struct hs_sql *s, int64_t bank_no, const struct hs_tag_query *q)
{
	hs_sql_add(s, q->models ? " FROM mental_model_tags WHERE bank_no = ?"
				: " FROM unit_tags WHERE bank_no = ?");
	hs_sql_bind(s, hs_b_int(bank_no));
	if (hs_str_empty(q->q))
		return;
	hs_sql_add(s, " AND LOWER(tag) LIKE LOWER(?) ESCAPE '!'");
	hs_sql_bind(s, hs_b_str(like_pattern(s->pool, q->q)));
}

enum hs_rc hs_tags_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_tag_query *q, struct hs_tag_count **ret, size_t *ret_n, int64_t *ret_total,
	struct hs_err *err)
{
	static const struct hs_col cols[] = {
		HS_COL_STR(struct hs_tag_count, tag),
		HS_COL_INT(struct hs_tag_count, count),
	};
	struct hs_sql count = hs_sql_new(pool), page = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&count, "SELECT COUNT(DISTINCT tag)");
	add_tag_filter(&count, bank_no, q);
	HS_TRY(hs_count_sql(db, &count, ret_total, err));
	hs_sql_add(&page, "SELECT tag, COUNT(*) AS uses");
	add_tag_filter(&page, bank_no, q);
	hs_sql_add(&page, " GROUP BY tag ORDER BY uses DESC, tag");
	hs_page_sql(&page, q->limit, q->offset);
	HS_TRY(hs_sql_select(db, &page, &rows, err));
	*ret = hs_rows_read(pool, cols, HS_COUNT(cols), sizeof(**ret), &rows);
	*ret_n = rows.n;
	return HS_OK;
}
