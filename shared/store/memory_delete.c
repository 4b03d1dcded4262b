#include "store/memory.h"

#include <string.h>

#include "store/bulk.h"
#include "store/entity.h"
#include "store/observation.h"
#include "store/posting.h"
#include "store/vector.h"

enum { SQL_COUNT, SQL_BY_TYPE };
static const char *const sql[] = {
	[SQL_COUNT] = "SELECT COUNT(*) FROM memory_units WHERE bank_no = ?",
	[SQL_BY_TYPE] =
		"SELECT unit_no FROM memory_units WHERE bank_no = ? AND fact_type = ? ORDER BY unit_no",
};
HS_SQL_LIST(hs_memory_delete_sql, sql);

/* Rows of side tables that go with a unit, by the column that holds its number. */
static const char *const side_rows[] = {
	"DELETE FROM unit_tags WHERE bank_no = ? AND unit_no IN (",
	"DELETE FROM unit_entities WHERE bank_no = ? AND unit_no IN (",
	"DELETE FROM memory_links WHERE bank_no = ? AND from_no IN (",
	"DELETE FROM memory_links WHERE bank_no = ? AND to_no IN (",
	"DELETE FROM observation_sources WHERE bank_no = ? AND observation_no IN (",
	"DELETE FROM observation_sources WHERE bank_no = ? AND source_no IN (",
	"DELETE FROM observation_history WHERE bank_no = ? AND observation_no IN (",
};

/* Everything of a bank but its own row. */
static const char *const whole_bank[] = {
	"DELETE FROM documents WHERE bank_no = ?",
	"DELETE FROM document_tags WHERE bank_no = ?",
	"DELETE FROM chunks WHERE bank_no = ?",
	"DELETE FROM memory_units WHERE bank_no = ?",
	"DELETE FROM unit_tags WHERE bank_no = ?",
	"DELETE FROM unit_entities WHERE bank_no = ?",
	"DELETE FROM memory_links WHERE bank_no = ?",
	"DELETE FROM observation_sources WHERE bank_no = ?",
	"DELETE FROM observation_history WHERE bank_no = ?",
	"DELETE FROM unit_embeddings WHERE bank_no = ?",
	"DELETE FROM postings WHERE bank_no = ?",
	"DELETE FROM posting_terms WHERE bank_no = ?",
	"DELETE FROM posting_stats WHERE bank_no = ?",
	"DELETE FROM entities WHERE bank_no = ?",
	"DELETE FROM entity_cooccurrences WHERE bank_no = ?",
};
HS_SQL_LIST(hs_memory_clear_sql, whole_bank);

static enum hs_rc delete_in(struct hs_db *db, struct hs_pool *pool, const char *head,
	int64_t bank_no, const int64_t *nos, size_t n, uint64_t *ret_affected, struct hs_err *err)
{
	struct hs_sql q = hs_sql_new(pool);

	hs_sql_add(&q, head);
	hs_sql_bind(&q, hs_b_int(bank_no));
	hs_sql_list_int(&q, nos, n);
	hs_sql_add(&q, ")");
	return hs_sql_exec(db, &q, ret_affected, err);
}

/* Up to HS_IN_MAX units with all their rows. */
static enum hs_rc delete_rows(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *nos, size_t n, int64_t *units, struct hs_err *err)
{
	uint64_t gone = 0;

	HS_TRY(hs_postings_remove(db, pool, bank_no, nos, n, err));
	HS_TRY(hs_vectors_remove(db, pool, bank_no, nos, n, err));
	HS_TRY(hs_entities_release(db, pool, bank_no, nos, n, err));
	for (size_t i = 0; i < HS_COUNT(side_rows); i++)
		HS_TRY(delete_in(db, pool, side_rows[i], bank_no, nos, n, NULL, err));
	HS_TRY(delete_in(db, pool, "DELETE FROM memory_units WHERE bank_no = ? AND unit_no IN (",
		bank_no, nos, n, &gone, err));
	*units += (int64_t)gone;
	return HS_OK;
}

static enum hs_rc delete_all(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *nos, size_t n, int64_t *units, struct hs_err *err)
{
	for (size_t i = 0; i < n; i += HS_IN_MAX)
		HS_TRY(delete_rows(db, pool, bank_no, nos + i,
			n - i < HS_IN_MAX ? n - i : HS_IN_MAX, units, err));
	return HS_OK;
}

/* Sources of these observations that stay become pending again. going: sorted numbers of what goes. */
static enum hs_rc requeue_sources(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *observations, size_t n, const int64_t *going, size_t n_going,
	int64_t *requeued, struct hs_err *err)
{
	struct hs_source *sources;
	size_t n_sources, m = 0;
	int64_t *stay;

	HS_TRY(hs_observation_sources(
		db, pool, bank_no, observations, n, &sources, &n_sources, err));
	stay = HS_NEW_ARRAY(pool, int64_t, n_sources + 1);
	for (size_t i = 0; i < n_sources; i++)
		if (!hs_nos_has(going, n_going, sources[i].source_no))
			stay[m++] = sources[i].source_no;
	stay = hs_nos_sorted(pool, stay, m, &m);
	for (size_t i = 0; i < m; i += HS_IN_MAX)
		HS_TRY(delete_in(db, pool,
			"UPDATE memory_units SET consolidated_at = NULL WHERE bank_no = ? AND unit_no IN (",
			bank_no, stay + i, m - i < HS_IN_MAX ? m - i : HS_IN_MAX, NULL, err));
	*requeued += (int64_t)m;
	return HS_OK;
}

enum hs_rc hs_observation_delete(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *observation_nos, size_t n, bool requeue, struct hs_deleted *ret,
	struct hs_err *err)
{
	size_t m;
	int64_t *nos = hs_nos_sorted(pool, observation_nos, n, &m);

	if (requeue)
		HS_TRY(requeue_sources(db, pool, bank_no, nos, m, NULL, 0, &ret->requeued, err));
	return delete_all(db, pool, bank_no, nos, m, &ret->observations, err);
}

enum hs_rc hs_observation_sweep(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *fact_nos, size_t n, struct hs_deleted *ret, struct hs_err *err)
{
	int64_t *observations;
	size_t m;

	HS_TRY(hs_observations_citing(db, pool, bank_no, fact_nos, n, &observations, &m, err));
	return hs_observation_delete(db, pool, bank_no, observations, m, true, ret, err);
}

enum hs_rc hs_memory_delete_units(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_deleted *ret, struct hs_err *err)
{
	size_t n_units, n_derived, m = 0;
	int64_t *units = hs_nos_sorted(pool, unit_nos, n, &n_units), *derived, *swept;

	if (!n_units)
		return HS_OK;
	HS_TRY(hs_observations_citing(
		db, pool, bank_no, units, n_units, &derived, &n_derived, err));
	swept = HS_NEW_ARRAY(pool, int64_t, n_derived + 1);
	for (size_t i = 0; i < n_derived; i++)
		if (!hs_nos_has(units, n_units, derived[i]))
			swept[m++] = derived[i];
	HS_TRY(requeue_sources(db, pool, bank_no, swept, m, units, n_units, &ret->requeued, err));
	HS_TRY(delete_all(db, pool, bank_no, swept, m, &ret->observations, err));
	return delete_all(db, pool, bank_no, units, n_units, &ret->units, err);
}

static enum hs_rc clear_bank(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_deleted *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_COUNT], HS_BINDS(hs_b_int(bank_no)), &rows, err));
	for (size_t i = 0; i < HS_COUNT(whole_bank); i++)
		HS_TRY(hs_db_exec(db, whole_bank[i], HS_BINDS(hs_b_int(bank_no)), NULL, err));
	ret->units += hs_row(&rows, 0)[0].i;
	return HS_OK;
}

enum hs_rc hs_memory_clear(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *type, struct hs_deleted *ret, struct hs_err *err)
{
	struct hs_rows rows;
	int known = type ? hs_fact_type_find(type) : -1;

	*ret = (struct hs_deleted){0};
	if (!type)
		return clear_bank(db, pool, bank_no, ret, err);
	if (known < 0)
		return HS_OK;
	HS_TRY(hs_db_select(db, pool, sql[SQL_BY_TYPE], HS_BINDS(hs_b_int(bank_no), hs_b_str(type)),
		&rows, err));
	return hs_memory_delete_units(
		db, pool, bank_no, hs_nos_of_rows(pool, &rows), rows.n, ret, err);
}
