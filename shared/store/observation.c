#include "store/observation.h"

#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "json/out.h"
#include "base/limits.h"
#include "store/bulk.h"
#include "store/posting.h"
#include "store/vector.h"

enum { SQL_LOCK, SQL_SOURCES, SQL_UPDATE, SQL_PROOF, SQL_HISTORY, SQL_TRIM };
static const char *const sql[] = {
	[SQL_LOCK] =
		"SELECT text, tags, event_date, occurred_start, occurred_end, mentioned_at FROM memory_units "
		"WHERE bank_no = ? AND unit_no = ? AND fact_type = 'observation' FOR UPDATE",
	[SQL_SOURCES] =
		"SELECT source_no, pos FROM observation_sources WHERE bank_no = ? AND observation_no = ? ORDER BY pos",
	[SQL_UPDATE] =
		"UPDATE memory_units SET text = ?, terms = COALESCE(?, terms), event_date = ?, occurred_start = ?, "
		"occurred_end = ?, mentioned_at = ?, updated_at = ? WHERE bank_no = ? AND unit_no = ?",
	[SQL_PROOF] = "UPDATE memory_units SET proof_count = ? WHERE bank_no = ? AND unit_no = ?",
	[SQL_HISTORY] =
		"INSERT INTO observation_history (bank_no, observation_no, content, changed_at) VALUES (?, ?, ?, ?)",
	[SQL_TRIM] =
		"DELETE FROM observation_history WHERE bank_no = ? AND observation_no = ? AND history_no < "
		"(SELECT h FROM (SELECT history_no AS h FROM observation_history WHERE bank_no = ? AND observation_no = ? "
		"ORDER BY history_no DESC LIMIT 1 OFFSET ?) AS newest)",
};
HS_SQL_LIST(hs_observation_sql, sql);

/* The facts among these numbers that are live, in the order given, each once. */
static enum hs_rc live_facts(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *nos, size_t n, int64_t **ret, size_t *ret_n, struct hs_err *err)
{
	int64_t *v = HS_NEW_ARRAY(pool, int64_t, n + 1), *live;
	size_t m = 0, n_live = 0;
	struct hs_sql q = hs_sql_new(pool);
	struct hs_rows rows;

	*ret = v;
	*ret_n = 0;
	if (!n)
		return HS_OK;
	hs_sql_add(&q, "SELECT unit_no FROM " HS_UNITS_BY_NO
		       " WHERE bank_no = ? AND fact_type <> 'observation' AND unit_no IN (");
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_int(&q, nos, n);
	hs_sql_add(&q, ") ORDER BY unit_no");
	HS_TRY(hs_sql_select(db, &q, &rows, err));
	live = hs_nos_of_rows(pool, &rows);
	n_live = rows.n;
	for (size_t i = 0; i < n; i++) {
		bool again = false;

		for (size_t k = 0; k < m && !again; k++)
			again = v[k] == nos[i];
		if (!again && hs_nos_has(live, n_live, nos[i]))
			v[m++] = nos[i];
	}
	*ret_n = m;
	return HS_OK;
}

static enum hs_rc add_sources(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t observation_no, const int64_t *nos, size_t n, int64_t first_pos, struct hs_err *err)
{
	struct hs_bulk b = hs_bulk_new(db, pool,
		"INSERT INTO observation_sources (bank_no, observation_no, source_no, pos) VALUES ",
		"(?, ?, ?, ?)", NULL);

	for (size_t i = 0; i < n; i++)
		HS_TRY(hs_bulk_add(&b,
			HS_BINDS(hs_b_int(bank_no), hs_b_int(observation_no), hs_b_int(nos[i]),
				hs_b_int(first_pos + (int64_t)i)),
			err));
	return hs_bulk_end(&b, err);
}

enum hs_rc hs_observation_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, struct hs_unit *u, const int64_t *sources, size_t n, bool *ret_made,
	struct hs_err *err)
{
	int64_t *live;
	size_t m;

	*ret_made = false;
	HS_TRY(live_facts(db, pool, bank_no, sources, n, &live, &m, err));
	if (!m)
		return HS_OK;
	u->proof_count = (int64_t)m;
	HS_TRY(hs_units_insert(db, pool, bank_no, stamp_us, u, 1, err));
	HS_TRY(add_sources(db, pool, bank_no, u->unit_no, live, m, 0, err));
	*ret_made = true;
	return HS_OK;
}

/* ---- change ---- */

/* The row as it is and as it will be. */
struct state {
	const char *text;
	struct hs_strs tags;
	int64_t event_us, occurred_start_us, occurred_end_us, mentioned_us;
};

static int64_t earlier(int64_t a, int64_t b)
{
	return a == HS_TIME_NONE ? b : b == HS_TIME_NONE ? a : a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
	return a == HS_TIME_NONE ? b : b == HS_TIME_NONE ? a : a > b ? a : b;
}

static struct state merged(
	struct hs_pool *pool, const struct state *now, const struct hs_observation_change *c)
{
	struct state s = *now;

	if (c->text)
		s.text = c->text;
	s.tags = (struct hs_strs){0};
	for (size_t i = 0; i < now->tags.n; i++)
		hs_strs_add(pool, &s.tags, now->tags.v[i]);
	for (size_t i = 0; i < c->add_tags.n; i++)
		if (!hs_strs_has(&s.tags, c->add_tags.v[i]))
			hs_strs_add(pool, &s.tags, c->add_tags.v[i]);
	s.event_us = earlier(now->event_us, c->event_us);
	s.occurred_start_us = earlier(now->occurred_start_us, c->occurred_start_us);
	s.occurred_end_us = later(now->occurred_end_us, c->occurred_end_us);
	s.mentioned_us = later(now->mentioned_us, c->mentioned_us);
	return s;
}

static enum hs_rc read_state(struct hs_db *db, struct hs_pool *pool, int64_t bank_no, int64_t no,
	struct state *ret, bool *ret_found, struct hs_err *err)
{
	struct hs_rows rows;
	const struct hs_val *v;
	json_t *tags;

	HS_TRY(hs_db_select(
		db, pool, sql[SQL_LOCK], HS_BINDS(hs_b_int(bank_no), hs_b_int(no)), &rows, err));
	*ret_found = rows.n > 0;
	if (!rows.n)
		return HS_OK;
	v = hs_row(&rows, 0);
	HS_TRY(hs_json_load(pool, v[1].s, &tags, err));
	*ret = (struct state){v[0].s, hs_json_strs(pool, tags), v[2].i, v[3].i, v[4].i, v[5].i};
	return HS_OK;
}

/* Sources not yet there, and where they go. */
struct fresh {
	int64_t *nos;
	size_t n, n_old;
	int64_t first_pos;
};

static enum hs_rc fresh_sources(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_observation_change *c, struct fresh *ret, struct hs_err *err)
{
	struct hs_rows rows;
	int64_t *live, *old;
	size_t m, n_old;

	HS_TRY(live_facts(db, pool, bank_no, c->sources, c->n_sources, &live, &m, err));
	HS_TRY(hs_db_select(db, pool, sql[SQL_SOURCES],
		HS_BINDS(hs_b_int(bank_no), hs_b_int(c->observation_no)), &rows, err));
	old = hs_nos_sorted(pool, hs_nos_of_rows(pool, &rows), rows.n, &n_old);
	*ret = (struct fresh){live, 0, rows.n, rows.n ? hs_row(&rows, rows.n - 1)[1].i + 1 : 0};
	for (size_t i = 0; i < m; i++)
		if (!hs_nos_has(old, n_old, live[i]))
			live[ret->n++] = live[i];
	return HS_OK;
}

static enum hs_rc write_history(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, const struct hs_observation_change *c, const struct state *now,
	const struct fresh *fresh, struct hs_err *err)
{
	struct hs_buf *buf = hs_buf_new(pool, HS_REPLY_MAX);
	struct hs_out o = hs_out_to(buf);
	struct hs_unit_row *rows;
	size_t n;

	HS_TRY(hs_units_load(db, pool, bank_no, fresh->nos, fresh->n, &rows, &n, err));
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "previous_text", now->text);
	hs_out_strs(&o, "previous_tags", &now->tags);
	hs_out_time(&o, "previous_occurred_start", now->occurred_start_us);
	hs_out_time(&o, "previous_occurred_end", now->occurred_end_us);
	hs_out_time(&o, "previous_mentioned_at", now->mentioned_us);
	hs_out_open(&o, "new_source_memory_ids", '[');
	for (size_t i = 0; i < n; i++)
		hs_out_str(&o, NULL, rows[i].id);
	hs_out_close(&o, ']');
	hs_out_close(&o, '}');
	HS_TRY(hs_buf_ok(buf, "observation history", err));
	HS_TRY(hs_db_exec(db, sql[SQL_HISTORY],
		HS_BINDS(hs_b_int(bank_no), hs_b_int(c->observation_no),
			hs_b_strn(buf->data, buf->len), hs_b_time(stamp_us)),
		NULL, err));
	if (c->history_max <= 0)
		return HS_OK;
	return hs_db_exec(db, sql[SQL_TRIM],
		HS_BINDS(hs_b_int(bank_no), hs_b_int(c->observation_no), hs_b_int(bank_no),
			hs_b_int(c->observation_no), hs_b_int(c->history_max - 1)),
		NULL, err);
}

/* Text, dates and search data; tags have their own writer. */
static enum hs_rc write_content(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, const struct hs_observation_change *c, const struct state *next,
	bool new_text, struct hs_err *err)
{
	struct hs_unit u = hs_unit_new(HS_OBSERVATION, next->text);

	u.unit_no = c->observation_no;
	u.vec = c->vec;
	u.dim = c->dim;
	u.embedder_no = c->embedder_no;
	if (new_text) {
		hs_unit_terms(pool, &u);
		HS_TRY(hs_postings_remove(db, pool, bank_no, &u.unit_no, 1, err));
		HS_TRY(hs_vectors_remove(db, pool, bank_no, &u.unit_no, 1, err));
	}
	HS_TRY(hs_db_exec(db, sql[SQL_UPDATE],
		HS_BINDS(hs_b_str(next->text),
			new_text ? hs_posting_pack(pool, &u.terms) : hs_b_null(),
			hs_b_time(next->event_us), hs_b_time(next->occurred_start_us),
			hs_b_time(next->occurred_end_us), hs_b_time(next->mentioned_us),
			hs_b_time(stamp_us), hs_b_int(bank_no), hs_b_int(c->observation_no)),
		NULL, err));
	if (!new_text)
		return HS_OK;
	HS_TRY(hs_postings_add(db, pool, bank_no, &u, 1, err));
	return hs_vectors_put(db, pool, bank_no, &u, 1, err);
}

enum hs_rc hs_observation_apply(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, const struct hs_observation_change *c, bool *ret_found,
	struct hs_err *err)
{
	struct state now, next;
	struct fresh fresh;
	bool new_text, new_dates, new_tags;

	HS_TRY(read_state(db, pool, bank_no, c->observation_no, &now, ret_found, err));
	if (!*ret_found)
		return HS_OK;
	next = merged(pool, &now, c);
	HS_TRY(fresh_sources(db, pool, bank_no, c, &fresh, err));
	new_text = strcmp(now.text, next.text) != 0;
	new_tags = next.tags.n != now.tags.n;
	new_dates = next.event_us != now.event_us ||
		    next.occurred_start_us != now.occurred_start_us ||
		    next.occurred_end_us != now.occurred_end_us ||
		    next.mentioned_us != now.mentioned_us;
	if (c->history && (new_text || new_tags || new_dates || fresh.n))
		HS_TRY(write_history(db, pool, bank_no, stamp_us, c, &now, &fresh, err));
	if (new_text || new_dates)
		HS_TRY(write_content(db, pool, bank_no, stamp_us, c, &next, new_text, err));
	if (new_tags)
		HS_TRY(hs_unit_retag(db, pool, bank_no, stamp_us, c->observation_no, &now.tags,
			&next.tags, &new_tags, err));
	if (!fresh.n)
		return HS_OK;
	HS_TRY(add_sources(
		db, pool, bank_no, c->observation_no, fresh.nos, fresh.n, fresh.first_pos, err));
	return hs_db_exec(db, sql[SQL_PROOF],
		HS_BINDS(hs_b_int((int64_t)(fresh.n_old + fresh.n)), hs_b_int(bank_no),
			hs_b_int(c->observation_no)),
		NULL, err);
}

/* ---- reading ---- */

enum hs_rc hs_observation_sources(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *observation_nos, size_t n, struct hs_source **ret, size_t *ret_n,
	struct hs_err *err)
{
	struct hs_source *v = NULL;
	size_t m = 0;

	for (size_t i = 0; i < n; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);
		struct hs_rows rows;

		hs_sql_add(&q,
			"SELECT os.observation_no, os.source_no, u.id FROM observation_sources os JOIN memory_units u "
			"ON u.bank_no = os.bank_no AND u.unit_no = os.source_no WHERE os.bank_no = ? AND os.observation_no IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_list_int(&q, observation_nos + i, n - i < HS_IN_MAX ? n - i : HS_IN_MAX);
		hs_sql_add(&q, ") ORDER BY os.observation_no, os.pos");
		HS_TRY(hs_sql_select(db, &q, &rows, err));
		v = hs_pool_regrow(pool, v, m * sizeof(*v), (m + rows.n + 1) * sizeof(*v));
		for (size_t r = 0; r < rows.n; r++)
			v[m++] = (struct hs_source){hs_row(&rows, r)[0].i, hs_row(&rows, r)[1].i,
				hs_row(&rows, r)[2].s};
	}
	*ret = v;
	*ret_n = m;
	return HS_OK;
}

enum hs_rc hs_observations_citing(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *fact_nos, size_t n, int64_t **ret, size_t *ret_n, struct hs_err *err)
{
	int64_t *v = NULL;
	size_t m = 0;

	for (size_t i = 0; i < n; i += HS_IN_MAX) {
		struct hs_sql q = hs_sql_new(pool);
		struct hs_rows rows;

		hs_sql_add(&q,
			"SELECT DISTINCT observation_no FROM observation_sources WHERE bank_no = ? AND source_no IN (");
		hs_sql_bind(&q, hs_b_int(bank_no));
		hs_sql_list_int(&q, fact_nos + i, n - i < HS_IN_MAX ? n - i : HS_IN_MAX);
		hs_sql_add(&q, ")");
		HS_TRY(hs_sql_select(db, &q, &rows, err));
		v = hs_pool_regrow(pool, v, m * sizeof(*v), (m + rows.n + 1) * sizeof(*v));
		for (size_t r = 0; r < rows.n; r++)
			v[m++] = hs_row(&rows, r)[0].i;
	}
	*ret = hs_nos_sorted(pool, v, m, ret_n);
	return HS_OK;
}
