#include "engine/refresh_run.h"

#include <string.h>

#include "base/clock.h"
#include "db/tx.h"
#include "json/json.h"

/* How often the embedded text is made again because the model was renamed meanwhile. */
#define VECTOR_TRIES 8

struct writing {
	struct hs_refreshing *r;
	const char *name; /* that the vector was made for */
	struct hs_mm_vector vector;
	bool moved;
};

static bool keeps_history(const struct hs_refreshing *r)
{
	return hs_cfg_bool(r->run->server, HS_S_enable_mental_model_history);
}

static bool writes(const struct hs_refreshing *r)
{
	return hs_outcome_writes(r->outcome);
}

/* A version is kept when bytes change, so that repeats do not push real versions out. */
static enum hs_rc add_version(struct hs_db *db, struct hs_refreshing *r,
	const struct hs_mm *now_stored, int64_t now_us, struct hs_err *err)
{
	if (!writes(r) || strcmp(now_stored->content, r->content) == 0 || !keeps_history(r))
		return HS_OK;
	return hs_mm_history_add(db, r->pool, r->m.bank_no, r->m.id, false,
		hs_model_version(r->pool, now_stored->content, now_stored->reflect_response),
		now_us, hs_model_history_keep(r->run->server), err);
}

/* A stored watermark never goes back. */
static int64_t watermark(const struct hs_refreshing *r, const struct hs_mm *now_stored)
{
	if (r->watermark_us == HS_TIME_NONE || r->watermark_us <= now_stored->last_memory_seen_us)
		return HS_TIME_NONE;
	return r->watermark_us;
}

static enum hs_rc write_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct writing *w = arg;
	struct hs_refreshing *r = w->r;
	int64_t now_us = hs_now_us();
	struct hs_mm stored;
	struct hs_mm_change c;

	HS_TRY(hs_mm_lock(db, r->pool, r->m.bank_no, r->m.id, &stored, err));
	w->moved = writes(r) && strcmp(stored.name, w->name) != 0;
	if (w->moved) {
		w->name = stored.name;
		return HS_OK;
	}
	HS_TRY(add_version(db, r, &stored, now_us, err));
	c = (struct hs_mm_change){
		.set_content = writes(r),
		.content = r->content,
		.structured_content = r->structure,
		.set_vector = writes(r),
		.vector = w->vector,
		/* a delta run without new facts has stood by its document, too */
		.set_refreshed_query = writes(r) || r->delta,
		.refreshed_query = r->m.source_query,
		.reflect_response = hs_json_text(r->pool, r->response),
		.refreshed = true,
		.now_us = now_us,
		.read_until_us = r->m.clock_us,
		.memory_seen_us = watermark(r, &stored),
		.refreshed_full = hs_refresh_effective(r) == HS_MODE_FULL,
	};
	HS_TRY(hs_mm_update(db, r->pool, r->m.bank_no, r->m.id, &c, err));
	return r->run->claim ? hs_claim_hold(db, r->run->claim, err) : HS_OK;
}

enum hs_rc hs_refresh_write(struct hs_refreshing *r, struct hs_err *err)
{
	struct writing w = {.r = r, .name = r->m.name, .moved = true};

	r->response = hs_refresh_response(r);
	for (int i = 0; w.moved && i < VECTOR_TRIES; i++) {
		HS_TRY(hs_run_check(r->run, err));
		if (writes(r))
			HS_TRY(hs_model_vector(r->run, w.name, r->content, &w.vector, err));
		HS_TRY(hs_tx_run(r->run->db, write_in_tx, &w, err));
	}
	if (w.moved)
		return hs_fail(err, HS_E_DB_BUSY,
			"mental model '%s' was renamed at every try to write it", r->m.id);
	return HS_OK;
}

/* ---- failure ---- */

struct failure {
	struct hs_refreshing *r;
	const char *message, *response;
};

static enum hs_rc record_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct failure *f = arg;
	struct hs_refreshing *r = f->r;
	struct hs_mm_change c = {.reflect_response = f->response};
	struct hs_mm stored;

	HS_TRY(hs_mm_lock(db, r->pool, r->m.bank_no, r->m.id, &stored, err));
	if (keeps_history(r))
		HS_TRY(hs_mm_history_add(db, r->pool, r->m.bank_no, r->m.id, true,
			hs_model_failure(
				r->pool, hs_outcome_names[r->outcome], r->reason, f->message),
			hs_now_us(), hs_model_history_keep(r->run->server), err));
	return hs_mm_update(db, r->pool, r->m.bank_no, r->m.id, &c, err);
}

void hs_refresh_write_failure(struct hs_refreshing *r, struct hs_err *cause)
{
	json_t *response = hs_refresh_failed_response(r);
	struct failure f = {
		.r = r,
		.message = cause->rc == HS_E_REFRESH ? hs_pool_strdup(r->pool, cause->msg)
						     : hs_run_error_text(r->pool, cause),
		.response = response ? hs_json_text(r->pool, response) : NULL,
	};
	struct hs_err err = {0};
	enum hs_rc rc;

	/* the stamp first and alone: it must land even when the record cannot be written */
	rc = hs_mm_stamp_failure(r->run->db, r->m.bank_no, r->m.id, hs_now_us(), &err);
	if (rc == HS_OK)
		rc = hs_tx_run(r->run->db, record_in_tx, &f, &err);
	/* a model deleted meanwhile has nothing to record */
	if (rc != HS_OK && rc != HS_E_NOT_FOUND)
		(void)hs_fail_context(
			cause, "the failure could not be recorded (%s)", hs_rc_text(rc));
}
