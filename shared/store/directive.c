#include "store/directive.h"

#include "base/clock.h"
#include "base/id.h"
#include "db/row.h"
#include "db/tx.h"
#include "json/json.h"
#include "store/clock.h"

#define COLUMNS \
	"SELECT d.id, d.name, d.content, d.priority, d.is_active, d.tags, d.created_at, d.updated_at " \
	"FROM directives d "

enum { SQL_GET, SQL_LOCK, SQL_INSERT, SQL_UPDATE, SQL_DELETE, SQL_TAGS_DELETE, SQL_TAG_INSERT };
static const char *const sql[] = {
	[SQL_GET] = COLUMNS "WHERE d.bank_no = ? AND d.id = ?",
	[SQL_LOCK] = COLUMNS "WHERE d.bank_no = ? AND d.id = ? FOR UPDATE",
	[SQL_INSERT] = ("INSERT INTO directives (bank_no, id, name, content, priority, is_active, tags, "
		"created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
	[SQL_UPDATE] = ("UPDATE directives SET name = ?, content = ?, priority = ?, is_active = ?, tags = ?, "
		"updated_at = ? WHERE bank_no = ? AND id = ?"),
	[SQL_DELETE] = "DELETE FROM directives WHERE bank_no = ? AND id = ?",
	[SQL_TAGS_DELETE] = "DELETE FROM directive_tags WHERE bank_no = ? AND directive_id = ?",
	[SQL_TAG_INSERT] = "INSERT INTO directive_tags (bank_no, tag, directive_id) VALUES (?, ?, ?)",
};
HS_SQL_LIST(hs_directive_sql, sql);

static const struct hs_col cols[] = {
	HS_COL_STR(struct hs_directive, id),
	HS_COL_STR(struct hs_directive, name),
	HS_COL_STR(struct hs_directive, content),
	HS_COL_INT(struct hs_directive, priority),
	HS_COL_BOOL(struct hs_directive, is_active),
	HS_COL_STRS(struct hs_directive, tags),
	HS_COL_TIME(struct hs_directive, created_us),
	HS_COL_TIME(struct hs_directive, updated_us),
};

static enum hs_rc missing(const char *id, struct hs_err *err)
{
	return hs_fail(err, HS_E_NOT_FOUND, "Directive '%s' not found", id);
}

/* ---- reading ---- */

static void add_where(struct hs_sql *q, int64_t bank_no, bool active_only,
	const struct hs_scope *scope)
{
	hs_sql_add(q, "WHERE d.bank_no = ?");
	hs_sql_bind(q, hs_b_int(bank_no));
	if (active_only)
		hs_sql_add(q, " AND d.is_active = 1");
	if (scope)
		hs_scope_sql(q, scope, &hs_scope_directives);
}

static enum hs_rc page(struct hs_db *db, struct hs_sql *q, int64_t limit, int64_t offset,
	struct hs_directive **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_rows rows;

	hs_sql_add(q, " ORDER BY d.priority DESC, d.created_at DESC, d.id DESC LIMIT ? OFFSET ?");
	hs_sql_bind(q, hs_b_int(limit));
	hs_sql_bind(q, hs_b_int(offset));
	HS_TRY(hs_sql_select(db, q, &rows, err));
	*ret = hs_rows_read(q->pool, cols, HS_COUNT(cols), sizeof(**ret), &rows);
	*ret_n = rows.n;
	return HS_OK;
}

static enum hs_rc count(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, bool active_only,
	const struct hs_scope *scope, int64_t *ret, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	hs_sql_add(&q, "SELECT COUNT(*) FROM directives d ");
	add_where(&q, bank_no, active_only, scope);
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	*ret = rows.v[0].i;
	return HS_OK;
}

enum hs_rc hs_directives_list(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_directive_filter *filter, struct hs_directive **ret, size_t *ret_n,
	int64_t *ret_total, struct hs_err *err)
{
	struct hs_scope scope = hs_scope_all();
	struct hs_sql q = hs_sql_new(pool);

	scope.tags = filter->tags;
	scope.match = filter->tags.n > 0 ? filter->match : HS_ANY;
	scope.plus_untagged = true;
	HS_TRY(count(db, pool, bank_no, filter->active_only, &scope, ret_total, err));
	hs_sql_add(&q, COLUMNS);
	add_where(&q, bank_no, filter->active_only, &scope);
	return page(db, &q, filter->limit, filter->offset, ret, ret_n, err);
}

enum hs_rc hs_directives_load(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_scope *scope, struct hs_directive **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);

	hs_sql_add(&q, COLUMNS);
	add_where(&q, bank_no, true, scope);
	return page(db, &q, HS_DIRECTIVES_LOADED, 0, ret, ret_n, err);
}

static enum hs_rc get(struct hs_db *db, struct hs_pool *pool, int which, int64_t bank_no,
	const char *id, struct hs_directive *ret, struct hs_err *err)
{
	char uuid[HS_UUID_TEXT];
	struct hs_rows rows;

	if (!hs_uuid_parse(id, uuid))
		return missing(id, err);
	HS_TRY(hs_db_select(db, pool, sql[which], HS_BINDS(hs_b_int(bank_no), hs_b_str(uuid)),
		&rows, err));
	if (rows.n == 0)
		return missing(id, err);
	hs_row_read(pool, cols, HS_COUNT(cols), rows.v, ret);
	return HS_OK;
}

enum hs_rc hs_directive_get(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, struct hs_directive *ret, struct hs_err *err)
{
	return get(db, pool, SQL_GET, bank_no, id, ret, err);
}

/* ---- writing ---- */

struct write {
	struct hs_pool *pool;
	int64_t bank_no;
	const char *id;
	struct hs_directive *d;
	const struct hs_directive_change *change;
};

static const char *tags_text(struct hs_pool *pool, const struct hs_strs *tags)
{
	return hs_json_text(pool, hs_json_keep(pool, hs_json_from_strs(tags)));
}

static enum hs_rc put_tags(struct hs_db *db, const struct write *w, struct hs_err *err)
{
	struct hs_strs set = hs_strs_sorted_set(w->pool, &w->d->tags);

	for (size_t i = 0; i < set.n; i++)
		HS_TRY(hs_db_exec(db, sql[SQL_TAG_INSERT], HS_BINDS(hs_b_int(w->bank_no),
			hs_b_str(set.v[i]), hs_b_str(w->d->id)), NULL, err));
	return HS_OK;
}

static enum hs_rc create(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct write *w = arg;
	const struct hs_directive *d = w->d;

	HS_TRY(hs_clock_lock(db, w->bank_no, err));
	HS_TRY(hs_db_exec(db, sql[SQL_INSERT], HS_BINDS(hs_b_int(w->bank_no), hs_b_str(d->id),
		hs_b_str(d->name), hs_b_str(d->content), hs_b_int(d->priority),
			hs_b_bool(d->is_active),
		hs_b_str(tags_text(w->pool, &d->tags)), hs_b_time(d->created_us),
		hs_b_time(d->updated_us)), NULL, err));
	return put_tags(db, w, err);
}

enum hs_rc hs_directive_create(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_directive *d, struct hs_err *err)
{
	struct write w = {.pool = pool, .bank_no = bank_no, .d = d};

	if (!d->id)
		d->id = hs_uuid_v7_new(pool);
	d->created_us = d->updated_us = hs_now_us();
	return hs_tx_run(db, create, &w, err);
}

static enum hs_rc update(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct write *w = arg;
	const struct hs_directive_change *c = w->change;
	struct hs_directive *d = w->d;

	HS_TRY(hs_clock_lock(db, w->bank_no, err));
	HS_TRY(get(db, w->pool, SQL_LOCK, w->bank_no, w->id, d, err));
	d->name = c->name ? c->name : d->name;
	d->content = c->content ? c->content : d->content;
	d->priority = c->priority ? *c->priority : d->priority;
	d->is_active = c->is_active ? *c->is_active : d->is_active;
	d->tags = c->tags ? *c->tags : d->tags;
	d->updated_us = hs_now_us();
	HS_TRY(hs_db_exec(db, sql[SQL_UPDATE], HS_BINDS(hs_b_str(d->name), hs_b_str(d->content),
		hs_b_int(d->priority), hs_b_bool(d->is_active), hs_b_str(tags_text(w->pool,
			&d->tags)),
		hs_b_time(d->updated_us), hs_b_int(w->bank_no), hs_b_str(d->id)), NULL, err));
	if (!c->tags)
		return HS_OK;
	HS_TRY(hs_db_exec(db, sql[SQL_TAGS_DELETE], HS_BINDS(hs_b_int(w->bank_no),
		hs_b_str(d->id)), NULL, err));
	return put_tags(db, w, err);
}

enum hs_rc hs_directive_update(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, const struct hs_directive_change *change, struct hs_directive *ret,
	struct hs_err *err)
{
	struct write w = {.pool = pool, .bank_no = bank_no, .id = id, .d = ret, .change = change};

	return hs_tx_run(db, update, &w, err);
}

static enum hs_rc drop(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct write *w = arg;
	char uuid[HS_UUID_TEXT];
	uint64_t found;

	if (!hs_uuid_parse(w->id, uuid))
		return missing(w->id, err);
	HS_TRY(hs_clock_lock(db, w->bank_no, err));
	HS_TRY(hs_db_exec(db, sql[SQL_DELETE], HS_BINDS(hs_b_int(w->bank_no), hs_b_str(uuid)),
		&found, err));
	if (found == 0)
		return missing(w->id, err);
	return hs_db_exec(db, sql[SQL_TAGS_DELETE], HS_BINDS(hs_b_int(w->bank_no), hs_b_str(uuid)),
		NULL, err);
}

enum hs_rc hs_directive_delete(struct hs_db *db, int64_t bank_no, const char *id,
	struct hs_err *err)
{
	struct write w = {.bank_no = bank_no, .id = id};

	return hs_tx_run(db, drop, &w, err);
}
