#include "store/mental_model.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "db/tx.h"
#include "json/json.h"
#include "store/bank.h"
#include "store/clock.h"
#include "store/vector.h"

const char *const hs_detail_names[] = {"metadata", "content", "full", NULL};

/* ---- columns, each level a prefix of the next ---- */

#define C_METADATA                                                                                     \
	"m.bank_no, m.id, m.name, m.tags, m.trigger_json, m.last_refreshed_at, m.last_memory_seen_at," \
	" m.read_until, m.last_refresh_failed_at, m.last_full_refreshed_at, m.created_at"
#define C_CONTENT C_METADATA ", m.source_query, m.content, m.max_tokens"
#define C_FULL C_CONTENT ", m.reflect_response"
#define C_CLOCK C_FULL ", c.last_write_at"
#define C_WHOLE C_CLOCK ", m.structured_content, m.last_refreshed_source_query"

#define T struct hs_mm
#define COLS_FULL                                                                                  \
	HS_COL_INT(T, bank_no), HS_COL_STR(T, id), HS_COL_STR(T, name), HS_COL_STR(T, tags),       \
		HS_COL_STR(T, trigger), HS_COL_TIME(T, last_refreshed_us),                         \
		HS_COL_TIME(T, last_memory_seen_us), HS_COL_TIME(T, read_until_us),                \
		HS_COL_TIME(T, last_refresh_failed_us), HS_COL_TIME(T, last_full_refreshed_us),    \
		HS_COL_TIME(T, created_us), HS_COL_STR(T, source_query), HS_COL_STR(T, content),   \
		HS_COL_INT(T, max_tokens), HS_COL_STR(T, reflect_response)

static const struct hs_col columns[] = {COLS_FULL, HS_COL_TIME(T, clock_us),
	HS_COL_STR(T, structured_content), HS_COL_STR(T, last_refreshed_source_query)};
static const struct hs_col find_cols[] = {
	HS_COL_INT(T, bank_no), HS_COL_STR(T, id), HS_COL_STR(T, name), HS_COL_STR(T, content)};
#undef T

#define CLOCK " LEFT JOIN bank_clock c ON c.bank_no = m.bank_no"
#define OF_BANK_AND(more)                                                                          \
	" FROM banks b JOIN mental_models m ON m.bank_no = b.bank_no AND m.id = ?" more            \
	" WHERE b.bank_id = ?"
#define OF_BANK OF_BANK_AND("")

enum {
	SQL_GET_METADATA,
	SQL_GET_CONTENT,
	SQL_GET_FULL,
	SQL_LOAD,
	SQL_LOCK,
	SQL_FIND,
	SQL_COUNT,
	SQL_BANK_CLOCK,
	SQL_HISTORY,
	SQL_INSERT,
	SQL_STAMP,
	SQL_DELETE,
	SQL_DELETE_TAGS,
	SQL_DELETE_HISTORY,
	SQL_HISTORY_ADD,
	SQL_HISTORY_NTH,
	SQL_HISTORY_CUT,
	SQL_WRITES,
};

static const char *const sql[] = {
	[SQL_GET_METADATA] = "SELECT " C_METADATA OF_BANK,
	[SQL_GET_CONTENT] = "SELECT " C_CONTENT OF_BANK,
	[SQL_GET_FULL] = "SELECT " C_CLOCK OF_BANK_AND(CLOCK),
	[SQL_LOAD] =
		"SELECT " C_WHOLE " FROM mental_models m" CLOCK " WHERE m.bank_no = ? AND m.id = ?",
	/* the clock row is not locked: it comes before models in the order of locks */
	[SQL_LOCK] = "SELECT " C_FULL ", NULL, m.structured_content, m.last_refreshed_source_query"
		     " FROM mental_models m WHERE m.bank_no = ? AND m.id = ? FOR UPDATE",
	[SQL_FIND] = "SELECT m.bank_no, m.id, m.name, m.content" OF_BANK,
	[SQL_COUNT] = "SELECT COUNT(*) FROM mental_models WHERE bank_no = ?",
	[SQL_BANK_CLOCK] = "SELECT b.bank_no, c.last_write_at FROM banks b"
			   " LEFT JOIN bank_clock c ON c.bank_no = b.bank_no WHERE b.bank_id = ?",
	[SQL_HISTORY] =
		"SELECT h.kind, h.content, h.changed_at FROM banks b"
		" JOIN mental_models m ON m.bank_no = b.bank_no AND m.id = ?"
		" LEFT JOIN mental_model_history h ON h.bank_no = m.bank_no AND h.mental_model_id = m.id"
		" WHERE b.bank_id = ? ORDER BY h.changed_at DESC, h.history_no DESC",
	[SQL_INSERT] =
		"INSERT INTO mental_models (bank_no, id, name, source_query, content,"
		" structured_content, tags, max_tokens, trigger_json, embedding, embedder_no,"
		" last_refreshed_at, read_until, has_cron, after_consolidation, created_at)"
		" VALUES (?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[SQL_STAMP] =
		"UPDATE mental_models SET last_refresh_failed_at = ? WHERE bank_no = ? AND id = ?",
	[SQL_DELETE] = "DELETE FROM mental_models WHERE bank_no = ? AND id = ?",
	[SQL_DELETE_TAGS] =
		"DELETE FROM mental_model_tags WHERE bank_no = ? AND mental_model_id = ?",
	[SQL_DELETE_HISTORY] =
		"DELETE FROM mental_model_history WHERE bank_no = ? AND mental_model_id = ?",
	[SQL_HISTORY_ADD] =
		"INSERT INTO mental_model_history (bank_no, mental_model_id, kind, content,"
		" changed_at) VALUES (?, ?, ?, ?, ?)",
	[SQL_HISTORY_NTH] =
		"SELECT changed_at, history_no FROM mental_model_history WHERE bank_no = ?"
		" AND mental_model_id = ? AND kind = ? ORDER BY changed_at DESC, history_no DESC"
		" LIMIT 1 OFFSET ?",
	[SQL_HISTORY_CUT] =
		"DELETE FROM mental_model_history WHERE bank_no = ? AND mental_model_id = ?"
		" AND kind = ? AND (changed_at < ? OR (changed_at = ? AND history_no <= ?))",
	[SQL_WRITES] = "SELECT fact_type, tags, MAX(updated_at) FROM memory_units"
		       " WHERE bank_no = ? AND updated_at > ? GROUP BY fact_type, tags",
};
HS_SQL_LIST(hs_mental_model_sql, sql);

static const struct {
	int sql;
	size_t n_cols;
	const char *columns; /* for lists: without the clock */
} levels[] = {
	[HS_METADATA] = {SQL_GET_METADATA, 11, C_METADATA},
	[HS_CONTENT] = {SQL_GET_CONTENT, 14, C_CONTENT},
	[HS_FULL] = {SQL_GET_FULL, 16, C_FULL},
};
#define LIST_COLS(detail) ((detail) == HS_FULL ? 15 : levels[detail].n_cols)

/* A row whose absent times are absent, not 1970. */
static struct hs_mm no_model(void)
{
	return (struct hs_mm){
		.last_refreshed_us = HS_TIME_NONE,
		.last_memory_seen_us = HS_TIME_NONE,
		.read_until_us = HS_TIME_NONE,
		.last_refresh_failed_us = HS_TIME_NONE,
		.last_full_refreshed_us = HS_TIME_NONE,
		.created_us = HS_TIME_NONE,
		.clock_us = HS_TIME_NONE,
	};
}

static enum hs_rc missing(const char *id, struct hs_err *err)
{
	return hs_fail(err, HS_E_NOT_FOUND, "Mental model '%s' not found", id);
}

int64_t hs_mm_since(const struct hs_mm *m)
{
	return m->last_memory_seen_us != HS_TIME_NONE ? m->last_memory_seen_us : m->read_until_us;
}

/* ---- reads ---- */

/* The one row of a statement, or HS_E_NOT_FOUND. */
static enum hs_rc one(struct hs_pool *pool, const struct hs_rows *rows, const struct hs_col *of,
	size_t n_of, const char *id, struct hs_mm *ret, struct hs_err *err)
{
	if (rows->n == 0)
		return missing(id, err);
	*ret = no_model();
	hs_row_read(pool, of, n_of, hs_row(rows, 0), ret);
	return HS_OK;
}

enum hs_rc hs_mm_get(struct hs_db *db, struct hs_pool *pool, const char *bank_id, const char *id,
	enum hs_detail detail, struct hs_mm *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[levels[detail].sql],
		HS_BINDS(hs_b_str(id), hs_b_str(bank_id)), &rows, err));
	return one(pool, &rows, columns, levels[detail].n_cols, id, ret, err);
}

enum hs_rc hs_mm_find(struct hs_db *db, struct hs_pool *pool, const char *bank_id, const char *id,
	struct hs_mm *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_FIND], HS_BINDS(hs_b_str(id), hs_b_str(bank_id)), &rows, err));
	return one(pool, &rows, find_cols, HS_COUNT(find_cols), id, ret, err);
}

static enum hs_rc whole(struct hs_db *db, struct hs_pool *pool, const char *text, int64_t bank_no,
	const char *id, struct hs_mm *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, text, HS_BINDS(hs_b_int(bank_no), hs_b_str(id)), &rows, err));
	return one(pool, &rows, columns, HS_COUNT(columns), id, ret, err);
}

enum hs_rc hs_mm_load(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const char *id,
	struct hs_mm *ret, struct hs_err *err)
{
	return whole(db, pool, sql[SQL_LOAD], bank_no, id, ret, err);
}

enum hs_rc hs_mm_lock(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const char *id,
	struct hs_mm *ret, struct hs_err *err)
{
	return whole(db, pool, sql[SQL_LOCK], bank_no, id, ret, err);
}

static enum hs_rc count_row(void *arg, const struct hs_val *row, size_t cols, struct hs_err *err)
{
	(void)cols;
	(void)err;
	*(int64_t *)arg = row[0].i;
	return HS_OK;
}

enum hs_rc hs_mm_count(struct hs_db *db, int64_t bank_no, int64_t *ret, struct hs_err *err)
{
	*ret = 0;
	return hs_db_each(db, sql[SQL_COUNT], HS_BINDS(hs_b_int(bank_no)), count_row, ret, err);
}

/* The list's filter: tags never add untagged models, no tags filter nothing. */
static struct hs_scope list_scope(const struct hs_mm_list *in)
{
	static const enum hs_tags_match modes[] = {HS_ANY_STRICT, HS_ALL_STRICT, HS_EXACT};
	struct hs_scope s = hs_scope_all();

	if (in->tags.n > 0) {
		s.tags = in->tags;
		s.match = modes[in->match];
	}
	return s;
}

static struct hs_sql of_list(
	struct hs_pool *pool, const char *what, int64_t bank_no, const struct hs_mm_list *in)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_scope scope = list_scope(in);

	hs_sql_add(&q, "SELECT ");
	hs_sql_add(&q, what);
	hs_sql_add(&q, " FROM mental_models m WHERE m.bank_no = ?");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_scope_sql(&q, &scope, &hs_scope_models);
	return q;
}

enum hs_rc hs_mm_list(struct hs_db *db, struct hs_pool *pool, const struct hs_mm_list *in,
	struct hs_mm_page *ret, struct hs_err *err)
{
	struct hs_sql q;
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_BANK_CLOCK], HS_BINDS(hs_b_str(in->bank_id)), &rows, err));
	if (rows.n == 0)
		return hs_bank_missing(in->bank_id, err);
	ret->bank_no = hs_row(&rows, 0)[0].i;
	ret->clock_us = hs_row(&rows, 0)[1].null ? HS_TIME_NONE : hs_row(&rows, 0)[1].i;

	q = of_list(pool, "COUNT(*)", ret->bank_no, in);
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	ret->total = hs_row(&rows, 0)[0].i;

	q = of_list(pool, levels[in->detail].columns, ret->bank_no, in);
	hs_sql_add(&q, " ORDER BY m.last_refreshed_at DESC, m.id DESC LIMIT ? OFFSET ?");
	hs_sql_bind(&q, hs_b_int(in->limit < 0 ? INT64_MAX : in->limit));
	hs_sql_bind(&q, hs_b_int(in->offset));
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	ret->n = rows.n;
	ret->v = HS_NEW_ARRAY(pool, struct hs_mm, rows.n ? rows.n : 1);
	for (size_t i = 0; i < rows.n; i++) {
		ret->v[i] = no_model();
		hs_row_read(pool, columns, LIST_COLS(in->detail), hs_row(&rows, i), &ret->v[i]);
	}
	return HS_OK;
}

enum hs_rc hs_mm_history(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	const char *id, struct hs_mm_event **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_HISTORY], HS_BINDS(hs_b_str(id), hs_b_str(bank_id)), &rows, err));
	if (rows.n == 0)
		return missing(id, err);
	*ret = HS_NEW_ARRAY(pool, struct hs_mm_event, rows.n);
	*ret_n = hs_row(&rows, 0)[0].null ? 0 : rows.n;
	for (size_t i = 0; i < *ret_n; i++) {
		const struct hs_val *v = hs_row(&rows, i);

		(*ret)[i] =
			(struct hs_mm_event){hs_str_eq(v[0].s, "refresh_failed"), v[1].s, v[2].i};
	}
	return HS_OK;
}

/* ---- search ---- */

struct candidate {
	const char *id;
	double relevance;
};

struct ranking {
	struct hs_pool *pool;
	const struct hs_mm_search *in;
	struct candidate *best; /* in->max of them, best first */
	size_t n;
};

static enum hs_rc rank_row(void *arg, const struct hs_val *row, size_t cols, struct hs_err *err)
{
	struct ranking *r = arg;
	float vec[HS_EMBED_DIM_MAX];
	double relevance;
	size_t at;

	(void)cols;
	(void)err;
	if (row[1].n != r->in->dim * sizeof(float))
		return HS_OK;
	memcpy(vec, row[1].s, row[1].n);
	relevance = hs_dot(vec, r->in->vec, r->in->dim);
	for (at = r->n; at > 0 && r->best[at - 1].relevance < relevance; at--)
		if (at < r->in->max)
			r->best[at] = r->best[at - 1];
	if (at == r->in->max)
		return HS_OK;
	r->best[at] = (struct candidate){hs_pool_strdup(r->pool, row[0].s), relevance};
	if (r->n < r->in->max)
		r->n++;
	return HS_OK;
}

enum hs_rc hs_mm_search(struct hs_db *db, struct hs_pool *pool, const struct hs_mm_search *in,
	struct hs_mm_hit **ret, size_t *ret_n, struct hs_err *err)
{
	struct ranking r = {.pool = pool, .in = in};
	struct hs_sql q = hs_sql_new(pool);
	struct hs_strs ids = {0, NULL};
	struct hs_mm *models;
	size_t n;

	*ret_n = 0;
	if (in->max == 0 || in->dim == 0 || in->dim > HS_EMBED_DIM_MAX)
		return HS_OK;
	r.best = HS_NEW_ARRAY(pool, struct candidate, in->max);
	hs_sql_add(&q,
		"SELECT m.id, m.embedding FROM mental_models m"
		" JOIN embedders e ON e.embedder_no = m.embedder_no AND e.tag = ? WHERE m.bank_no = ?");
	hs_sql_bind(&q, hs_b_str(in->embedder));
	hs_sql_bind(&q, hs_b_int(in->bank_no));
	hs_scope_sql(&q, in->scope, &hs_scope_models);
	if (in->exclude.n > 0) {
		hs_sql_add(&q, " AND m.id NOT IN (");
		hs_sql_list_str(&q, &in->exclude);
		hs_sql_add(&q, ")");
	}
	hs_sql_add(&q, " ORDER BY m.id");
	HS_TRY(hs_db_each(db, q.text->data, q.binds, q.n, rank_row, &r, err));
	for (size_t i = 0; i < r.n; i++)
		hs_strs_add(pool, &ids, r.best[i].id);
	HS_TRY(hs_mm_read(db, pool, in->bank_no, in->scope, &ids, &models, &n, err));
	*ret = HS_NEW_ARRAY(pool, struct hs_mm_hit, n ? n : 1);
	/* a model deleted in between is left out; both lists are in the same order */
	for (size_t i = 0; i < r.n && *ret_n < n; i++)
		if (hs_str_eq(r.best[i].id, models[*ret_n].id)) {
			(*ret)[*ret_n] = (struct hs_mm_hit){models[*ret_n], r.best[i].relevance};
			(*ret_n)++;
		}
	return HS_OK;
}

enum hs_rc hs_mm_read(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, const struct hs_strs *ids, struct hs_mm **ret, size_t *ret_n,
	struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	*ret = HS_NEW_ARRAY(pool, struct hs_mm, ids->n ? ids->n : 1);
	*ret_n = 0;
	if (ids->n == 0)
		return HS_OK;
	hs_sql_add(
		&q, "SELECT " C_CONTENT " FROM mental_models m WHERE m.bank_no = ? AND m.id IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_str(&q, ids);
	hs_sql_add(&q, ")");
	hs_scope_sql(&q, scope, &hs_scope_models);
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	for (size_t i = 0; i < ids->n; i++)
		for (size_t k = 0; k < rows.n; k++) {
			if (!hs_str_eq(ids->v[i], hs_row(&rows, k)[1].s))
				continue;
			(*ret)[*ret_n] = no_model();
			hs_row_read(pool, columns, levels[HS_CONTENT].n_cols, hs_row(&rows, k),
				&(*ret)[(*ret_n)++]);
		}
	return HS_OK;
}

enum hs_rc hs_mm_has_sibling(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, const struct hs_strs *exclude, bool *ret, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&q,
		"SELECT 1 FROM mental_models m WHERE m.bank_no = ? AND m.content <> ''"
		" AND m.content <> 'Generating content...' AND m.content REGEXP '[^[:space:]]'");
	hs_sql_bind(&q, hs_b_int(bank_no));
	if (exclude->n > 0) {
		hs_sql_add(&q, " AND m.id NOT IN (");
		hs_sql_list_str(&q, exclude);
		hs_sql_add(&q, ")");
	}
	hs_scope_sql(&q, scope, &hs_scope_models);
	hs_sql_add(&q, " LIMIT 1");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	*ret = rows.n > 0;
	return HS_OK;
}

enum hs_rc hs_mm_newest_memory(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, int64_t *ret_us, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&q, "SELECT u.updated_at FROM memory_units u WHERE u.bank_no = ?");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_scope_sql(&q, scope, &hs_scope_units);
	hs_sql_add(&q, " ORDER BY u.updated_at DESC LIMIT 1");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	*ret_us = rows.n > 0 ? hs_row(&rows, 0)[0].i : HS_TIME_NONE;
	return HS_OK;
}

enum hs_rc hs_mm_writes_since(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t since_us, struct hs_mm_writes **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_WRITES],
		HS_BINDS(hs_b_int(bank_no), hs_b_time(since_us)), &rows, err));
	*ret = HS_NEW_ARRAY(pool, struct hs_mm_writes, rows.n ? rows.n : 1);
	*ret_n = rows.n;
	for (size_t i = 0; i < rows.n; i++) {
		const struct hs_val *v = hs_row(&rows, i);
		json_t *tags = NULL;

		HS_TRY(hs_json_load(pool, v[1].s, &tags, err));
		(*ret)[i] = (struct hs_mm_writes){
			hs_fact_type_find(v[0].s), hs_json_strs(pool, tags), v[2].i};
	}
	return HS_OK;
}

/* ---- changes ---- */

static const char *tags_text(struct hs_pool *pool, const struct hs_strs *tags)
{
	return hs_json_text(pool, hs_json_keep(pool, hs_json_from_strs(tags)));
}

/* The matching rows: each tag once, sorted, so that writers lock in one order. */
static enum hs_rc put_tags(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const char *id,
	const struct hs_strs *tags, struct hs_err *err)
{
	struct hs_strs set = hs_strs_sorted_set(pool, tags);
	struct hs_sql q = hs_sql_new(pool);

	if (set.n == 0)
		return HS_OK;
	hs_sql_add(&q, "INSERT INTO mental_model_tags (bank_no, mental_model_id, tag) VALUES ");
	for (size_t i = 0; i < set.n; i++) {
		hs_sql_add(&q, i ? ", (?, ?, ?)" : "(?, ?, ?)");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_bind(&q, hs_b_str(id));
		hs_sql_bind(&q, hs_b_str(set.v[i]));
	}
	return hs_sql_exec(db, &q, NULL, err);
}

static struct hs_bind vector_bind(const struct hs_mm_vector *v)
{
	return hs_b_blob(v->v, v->dim * sizeof(float));
}

static struct hs_bind embedder_bind(const struct hs_mm_vector *v)
{
	return v->v ? hs_b_int(v->embedder_no) : hs_b_null();
}

enum hs_rc hs_mm_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *bank_id, const struct hs_mm_new *m, struct hs_err *err)
{
	int64_t now_us = hs_now_us(), clock_us = HS_TIME_NONE;
	enum hs_rc rc;

	HS_TRY(hs_clock_lock(db, bank_no, err));
	HS_TRY(hs_clock_read(db, bank_no, &clock_us, err));
	rc = hs_db_exec(db, sql[SQL_INSERT],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(m->id), hs_b_str(m->name),
			hs_b_str(m->source_query), hs_b_str(m->structured_content),
			hs_b_str(tags_text(pool, &m->tags)), hs_b_int(m->max_tokens),
			hs_b_str(m->trigger), vector_bind(&m->vector), embedder_bind(&m->vector),
			hs_b_time(now_us), hs_b_time(clock_us), hs_b_bool(m->has_cron),
			hs_b_bool(m->after_consolidation), hs_b_time(now_us)),
		NULL, err);
	if (rc == HS_E_DB_DUPLICATE)
		return hs_fail(err, HS_E_CONFLICT, "Mental model '%s' already exists in bank '%s'",
			m->id, bank_id);
	HS_TRY(rc);
	return put_tags(db, pool, bank_no, m->id, &m->tags, err);
}

struct set {
	struct hs_sql q;
	bool any;
};

static void set(struct set *s, const char *assignment, struct hs_bind b)
{
	hs_sql_add(&s->q, s->any ? ", " : "UPDATE mental_models SET ");
	hs_sql_add(&s->q, assignment);
	hs_sql_bind(&s->q, b);
	s->any = true;
}

static void set_configuration(struct set *s, struct hs_pool *pool, const struct hs_mm_change *c)
{
	if (c->name)
		set(s, "name = ?", hs_b_str(c->name));
	if (c->source_query)
		set(s, "source_query = ?", hs_b_str(c->source_query));
	if (c->set_max_tokens)
		set(s, "max_tokens = ?", hs_b_int(c->max_tokens));
	if (c->tags)
		set(s, "tags = ?", hs_b_str(tags_text(pool, c->tags)));
	if (!c->trigger)
		return;
	set(s, "trigger_json = ?", hs_b_str(c->trigger));
	set(s, "has_cron = ?", hs_b_bool(c->has_cron));
	set(s, "after_consolidation = ?", hs_b_bool(c->after_consolidation));
}

static void set_document(struct set *s, const struct hs_mm_change *c)
{
	if (c->set_content) {
		set(s, "content = ?", hs_b_str(c->content));
		set(s, "structured_content = ?", hs_b_str(c->structured_content));
	}
	if (c->set_vector) {
		set(s, "embedding = ?", vector_bind(&c->vector));
		set(s, "embedder_no = ?", embedder_bind(&c->vector));
	}
	if (c->reflect_response)
		set(s, "reflect_response = ?", hs_b_str(c->reflect_response));
	if (c->set_refreshed_query)
		set(s, "last_refreshed_source_query = ?", hs_b_str(c->refreshed_query));
}

static void set_refreshed(struct set *s, const struct hs_mm_change *c)
{
	if (!c->refreshed)
		return;
	set(s, "last_refresh_failed_at = ?", hs_b_null());
	set(s, "last_refreshed_at = ?", hs_b_time(c->now_us));
	set(s, "read_until = ?", hs_b_time(c->read_until_us));
	if (c->memory_seen_us != HS_TIME_NONE)
		set(s, "last_memory_seen_at = ?", hs_b_time(c->memory_seen_us));
	if (c->refreshed_full)
		set(s, "last_full_refreshed_at = ?", hs_b_time(c->now_us));
}

enum hs_rc hs_mm_update(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, const char *id,
	const struct hs_mm_change *c, struct hs_err *err)
{
	struct set s = {.q = hs_sql_new(pool)};
	uint64_t found = 0;

	set_configuration(&s, pool, c);
	set_document(&s, c);
	set_refreshed(&s, c);
	if (!s.any)
		return HS_OK;
	hs_sql_add(&s.q, " WHERE bank_no = ? AND id = ?");
	hs_sql_bind(&s.q, hs_b_int(bank_no));
	hs_sql_bind(&s.q, hs_b_str(id));
	HS_TRY(hs_sql_exec(db, &s.q, &found, err));
	if (found == 0)
		return missing(id, err);
	if (!c->tags)
		return HS_OK;
	HS_TRY(hs_db_exec(
		db, sql[SQL_DELETE_TAGS], HS_BINDS(hs_b_int(bank_no), hs_b_str(id)), NULL, err));
	return put_tags(db, pool, bank_no, id, c->tags, err);
}

enum hs_rc hs_mm_history_add(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, bool failed, const char *content, int64_t now_us, int64_t keep,
	struct hs_err *err)
{
	const char *kind = failed ? "refresh_failed" : "version";
	struct hs_rows rows;

	HS_TRY(hs_db_exec(db, sql[SQL_HISTORY_ADD],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(id), hs_b_str(kind), hs_b_str(content),
			hs_b_time(now_us)),
		NULL, err));
	if (keep <= 0)
		return HS_OK;
	/* the newest one too many and all that are older */
	HS_TRY(hs_db_select(db, pool, sql[SQL_HISTORY_NTH],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(id), hs_b_str(kind), hs_b_int(keep)), &rows,
		err));
	if (rows.n == 0)
		return HS_OK;
	return hs_db_exec(db, sql[SQL_HISTORY_CUT],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(id), hs_b_str(kind),
			hs_b_time(hs_row(&rows, 0)[0].i), hs_b_time(hs_row(&rows, 0)[0].i),
			hs_b_int(hs_row(&rows, 0)[1].i)),
		NULL, err);
}

enum hs_rc hs_mm_stamp_failure(
	struct hs_db *db, int64_t bank_no, const char *id, int64_t now_us, struct hs_err *err)
{
	return hs_db_exec(db, sql[SQL_STAMP],
		HS_BINDS(hs_b_time(now_us), hs_b_int(bank_no), hs_b_str(id)), NULL, err);
}

struct removal {
	struct hs_pool *pool;
	const char *bank_id, *id;
};

static enum hs_rc remove_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct removal *r = arg;
	struct hs_mm m = no_model();
	uint64_t found = 0;

	HS_TRY(hs_mm_find(db, r->pool, r->bank_id, r->id, &m, err));
	HS_TRY(hs_db_exec(
		db, sql[SQL_DELETE], HS_BINDS(hs_b_int(m.bank_no), hs_b_str(r->id)), &found, err));
	if (found == 0)
		return missing(r->id, err);
	HS_TRY(hs_db_exec(db, sql[SQL_DELETE_TAGS], HS_BINDS(hs_b_int(m.bank_no), hs_b_str(r->id)),
		NULL, err));
	return hs_db_exec(db, sql[SQL_DELETE_HISTORY],
		HS_BINDS(hs_b_int(m.bank_no), hs_b_str(r->id)), NULL, err);
}

enum hs_rc hs_mm_delete(struct hs_db *db, struct hs_pool *pool, const char *bank_id, const char *id,
	struct hs_err *err)
{
	struct removal r = {pool, bank_id, id};

	return hs_tx_run(db, remove_in_tx, &r, err);
}
