/*
 * observation - observations: insert with sources, change, fold, delete, sweep.
 *
 * Floor:   store. Tables observation_sources, observation_history beside memory_units. Rules:
 *          contract retain-recall 5.6, 5.9. In the caller's transaction under the bank's clock row.
 * Laws:    proof_count is always the number of distinct live sources. updated_at moves only when
 *          text, dates or tags change; sources, counters and marks never move it.
 */
#ifndef HS_STORE_OBSERVATION_H
#define HS_STORE_OBSERVATION_H

#include "store/memory.h"

/* Insert one observation (hs_unit_new(HS_OBSERVATION, …) with tags, dates, terms, vector). Sources
 * are cut down to live facts, each once, in order; none left: *ret_made false, nothing written. */
HS_MUST enum hs_rc hs_observation_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, struct hs_unit *u, const int64_t *sources, size_t n, bool *ret_made,
	struct hs_err *err);

struct hs_observation_change {
	int64_t observation_no;
	const char *text; /* NULL = keep; else with vector and embedder */
	const float *vec; /* NULL: the old vector goes */
	size_t dim;
	int64_t embedder_no;
	struct hs_strs add_tags; /* tags become the row's now and these */
	/* event and occurred_start become the earliest, the other two the latest; HS_TIME_NONE = no say */
	int64_t event_us, occurred_start_us, occurred_end_us, mentioned_us;
	const int64_t *sources; /* appended: live facts not yet there */
	size_t n_sources;
	int64_t history_max; /* rows kept, <= 0 = all; history is written when content changes */
	bool history;
};
/* Apply to the row as it is now. *ret_found false (nothing written) when the row is gone. Folding
 * evidence = a change without text. */
HS_MUST enum hs_rc hs_observation_apply(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, const struct hs_observation_change *c, bool *ret_found,
	struct hs_err *err);

/* Live sources of observations, by (observation_no, pos). */
struct hs_source {
	int64_t observation_no, source_no;
	const char *id;
};
HS_MUST enum hs_rc hs_observation_sources(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *observation_nos, size_t n, struct hs_source **ret, size_t *ret_n,
	struct hs_err *err);

/* Observations that cite any of these facts (ascending, each once). */
HS_MUST enum hs_rc hs_observations_citing(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *fact_nos, size_t n, int64_t **ret, size_t *ret_n, struct hs_err *err);
/* Delete observations; requeue: their sources are pending again. *ret: observations and requeued. */
HS_MUST enum hs_rc hs_observation_delete(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *observation_nos, size_t n, bool requeue, struct hs_deleted *ret,
	struct hs_err *err);
/* 5.9 for facts that change but stay: delete the observations citing them; all sources of those,
 * the facts included, are pending again. */
HS_MUST enum hs_rc hs_observation_sweep(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *fact_nos, size_t n, struct hs_deleted *ret, struct hs_err *err);

extern const struct hs_sql_list hs_observation_sql;

#endif
