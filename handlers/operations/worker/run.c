#include "worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "engine/jobs.h"
#include "json/json.h"

#define CONSOLIDATION_DELAY_S 5 /* doubled with each retry … */
#define CONSOLIDATION_DELAY_MAX_S 1800
#define WRITE_FOR_US (300 * HS_SECOND_US) /* a result that cannot be written ends the worker */
#define PAUSE_MAX_S 30

/* ---- what a run asks and tells ---- */

static bool is_cancelled(void *arg)
{
	struct job *j = arg;

	return j->lost || j->stop;
}

static void restart_wall(struct job *j)
{
	if (j->wall_us)
		j->run->deadline_us = hs_mono_us() + j->wall_us;
}

static json_t *progress_json(
	struct job *j, const char *stage, int64_t processed, int64_t total, json_t *detail)
{
	json_t *p = hs_json_keep(j->run->pool, json_object());

	json_object_set_new(p, "stage", json_string(stage));
	json_object_set_new(p, "at", json_string(hs_time_text(j->run->pool, hs_now_us())));
	json_object_set_new(p, "processed", json_integer(processed));
	json_object_set_new(p, "total", json_integer(total));
	if (detail)
		json_object_set(p, "detail", detail);
	else
		json_object_set_new(p, "detail", json_object());
	return p;
}

static void on_progress(
	void *arg, const char *stage, int64_t processed, int64_t total, json_t *detail)
{
	struct job *j = arg;
	struct hs_err err;

	snprintf(j->stage, sizeof(j->stage), "%s", stage);
	/* a consolidation is limited without progress, not in all */
	if (hs_str_eq(j->op.operation_type, "consolidation"))
		restart_wall(j);
	hs_err_clear(&err);
	/* only shown to people: a failure changes nothing */
	if (hs_queue_progress(j->db, j->run->pool, &j->claim,
		    progress_json(j, stage, processed, total, detail), &err) != HS_OK)
		hs_log(HS_LOG_DEBUG, "progress", "operation_id=%s error=%s", j->claim.operation_id,
			hs_log_quote(err.msg));
}

/* ---- what follows from how it ended ---- */

static bool fails_at_once(enum hs_rc rc)
{
	switch (rc) {
	case HS_E_LLM_AUTH:
	case HS_E_LLM_POLICY:
	case HS_E_EMBED_DIM:
	case HS_E_DB_DUPLICATE:
	case HS_E_WALL_CLOCK:
		return true;
	case HS_E_DB_UNKNOWN:
		/* the write may have happened: running again repeats it, it does not double it */
		return false;
	default:
		return hs_rc_retry(rc) == HS_RETRY_NEVER;
	}
}

static enum hs_rc consolidation_outcome(struct job *j, struct hs_finish *f, struct hs_err *err)
{
	int64_t n = j->op.retry_count < 20 ? j->op.retry_count : 20;
	int64_t delay = (int64_t)CONSOLIDATION_DELAY_S << n;
	bool waits;

	HS_TRY(hs_queue_consolidation_waits(j->db, j->pool, j->op.bank_no, &waits, err));
	f->kind = waits ? HS_FINISH_FAILED : HS_FINISH_RETRY;
	f->delay_s = delay < CONSOLIDATION_DELAY_MAX_S ? delay : CONSOLIDATION_DELAY_MAX_S;
	return HS_OK;
}

static enum hs_rc outcome(struct job *j, enum hs_rc rc, const struct hs_err *cause,
	struct hs_finish *f, struct hs_err *err)
{
	const struct hs_config *cfg = j->w->cfg;

	f->claim = j->claim;
	f->parent_id = j->op.parent_id;
	f->max_retries = hs_cfg_int(cfg, HS_S_worker_max_retries);
	if (rc == HS_OK) {
		f->kind = HS_FINISH_COMPLETED;
		return HS_OK;
	}
	f->error = hs_run_error_text(j->pool, cause);
	if (rc == HS_E_CANCELLED) {
		f->kind = HS_FINISH_HAND_BACK;
	} else if (cause->retry_at_us > 0 && (rc == HS_E_DEFERRED || rc == HS_E_LLM_QUOTA)) {
		f->kind = HS_FINISH_DEFER;
		f->retry_at_us = cause->retry_at_us;
	} else if (fails_at_once(rc)) {
		f->kind = HS_FINISH_FAILED;
	} else if (hs_str_eq(j->op.operation_type, "consolidation")) {
		return consolidation_outcome(j, f, err);
	} else if (j->op.retry_count < f->max_retries) {
		f->kind = HS_FINISH_RETRY;
		f->delay_s = hs_cfg_int(cfg, HS_S_worker_task_retry_backoff_seconds);
	} else {
		f->kind = HS_FINISH_FAILED;
	}
	return HS_OK;
}

/* One try: what became of it is written, or nobody waits for it any more. */
static enum hs_rc write_once(struct job *j, enum hs_rc rc, const struct hs_err *cause,
	json_t *metadata, const char **ret_kind, struct hs_err *err)
{
	static const char *const names[] = {
		"completed", "failed", "retry", "deferred", "handed_back"};
	struct hs_finish f = {.metadata = metadata};
	enum hs_rc wrote;
	bool held;

	HS_TRY(outcome(j, rc, cause, &f, err));
	wrote = hs_queue_finish(j->db, j->pool, &f, err);
	*ret_kind = names[f.kind];
	if (wrote == HS_E_DB_UNKNOWN) {
		/* read back: a claim that is gone was finished by this very write */
		HS_TRY(hs_claim_check(j->db, &j->claim, &held, err));
		return held ? hs_fail(err, HS_E_DB_DOWN, "the end of %s was not written",
				      j->claim.operation_id)
			    : HS_OK;
	}
	if (wrote == HS_E_CLAIM_LOST) {
		*ret_kind = "lost";
		return HS_OK;
	}
	return wrote;
}

/* The work is done: its end is written however long the database is away, within limits. */
static const char *write_end(
	struct job *j, enum hs_rc rc, const struct hs_err *cause, json_t *metadata)
{
	int64_t give_up = hs_mono_us() + WRITE_FOR_US;
	const char *kind = "lost";

	for (int64_t pause_s = 1;;
		pause_s = pause_s * 2 < PAUSE_MAX_S ? pause_s * 2 : PAUSE_MAX_S) {
		struct hs_err err;

		hs_err_clear(&err);
		if (write_once(j, rc, cause, metadata, &kind, &err) == HS_OK)
			return kind;
		hs_log(HS_LOG_WARN, "finish_failed", "operation_id=%s error=%s",
			j->claim.operation_id, hs_log_quote(err.msg));
		if (hs_mono_us() >= give_up || !worker_sleep(j->w, pause_s * HS_SECOND_US))
			break;
	}
	j->w->broken = true;
	return "unwritten";
}

void job_hand_back(struct worker *w, struct hs_db *db, struct job *j)
{
	struct hs_finish f = {
		.claim = j->claim,
		.kind = HS_FINISH_HAND_BACK,
		.parent_id = j->op.parent_id,
		.error = "the worker was stopped while it ran this",
		.max_retries = hs_cfg_int(w->cfg, HS_S_worker_max_retries),
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_err err;

	hs_err_clear(&err);
	/* what cannot be handed back now comes back when its lease has run out */
	if (hs_queue_finish(db, pool, &f, &err) != HS_OK)
		hs_log(HS_LOG_WARN, "hand_back_failed", "operation_id=%s error=%s",
			j->claim.operation_id, hs_log_quote(err.msg));
}

/* ---- running ---- */

/* A run that its limit ended: not repeated; the text names limit, kind and stage. */
static enum hs_rc wall_clock(struct job *j, enum hs_rc rc, struct hs_err *err)
{
	const char *setting;
	int64_t seconds = hs_job_wall_seconds(j->w->cfg, j->op.operation_type, &setting);

	if (rc != HS_E_TIMEOUT || !j->wall_us || hs_mono_us() < j->run->deadline_us)
		return rc;
	return hs_fail(err, HS_E_WALL_CLOCK,
		"%s did not end within %" PRId64 " seconds (%s); stage: %s", j->op.operation_type,
		seconds, setting, j->stage[0] ? j->stage : "start");
}

static enum hs_rc run_job(struct job *j, json_t **ret_metadata, struct hs_err *err)
{
	struct hs_run run = {
		.db = j->db,
		.pool = j->pool,
		.server = j->w->cfg,
		.llm = j->w->llm,
		.embedder = j->w->embedder,
		.cancelled = is_cancelled,
		.cancel_arg = j,
		.progress = on_progress,
		.progress_arg = j,
		.operation_id = j->claim.operation_id,
		.claim = &j->claim,
		.source = "worker",
	};
	const char *setting;
	enum hs_rc rc;

	j->run = &run;
	j->wall_us = hs_job_wall_seconds(j->w->cfg, j->op.operation_type, &setting) * HS_SECOND_US;
	restart_wall(j);
	rc = hs_job_run(&run, &j->op, ret_metadata, err);
	if (rc != HS_OK)
		rc = wall_clock(j, rc, err);
	j->run = NULL;
	return rc;
}

/* Retries, deferrals and what was handed back are not counted: they will end later. */
static void count(const struct job *j, const char *end, int64_t took_us)
{
	bool completed = hs_str_eq(end, "completed");

	if (completed || hs_str_eq(end, "failed"))
		hs_metrics_operation(
			j->op.operation_type, "worker", NULL, NULL, completed, took_us);
}

static void do_job(struct job *j)
{
	int64_t began = hs_mono_us();
	json_t *metadata = NULL;
	struct hs_err err;
	const char *end = "lost";
	enum hs_rc rc;

	hs_err_clear(&err);
	rc = run_job(j, &metadata, &err);
	err.rc = rc;
	if (rc != HS_E_CLAIM_LOST)
		end = write_end(j, rc, &err, metadata);
	count(j, end, hs_mono_us() - began);
	hs_log(rc == HS_OK || rc == HS_E_CANCELLED || rc == HS_E_DEFERRED ? HS_LOG_INFO
									  : HS_LOG_WARN,
		"job",
		"operation_id=%s type=%s bank_no=%" PRId64 " attempt=%" PRId64 " end=%s ms=%" PRId64
		"%s%s",
		j->claim.operation_id, hs_log_quote(j->op.operation_type), j->op.bank_no,
		j->op.attempt, end, (hs_mono_us() - began) / 1000, rc == HS_OK ? "" : " error=",
		rc == HS_OK ? "" : hs_log_quote(err.msg[0] ? err.msg : hs_rc_text(rc)));
	json_decref(metadata);
}

static bool next_job(struct job *j)
{
	struct worker *w = j->w;
	bool ready;

	pthread_mutex_lock(&w->lock);
	while (j->state != JOB_READY && !w->ending)
		pthread_cond_wait(&w->wake, &w->lock);
	ready = j->state == JOB_READY;
	if (ready)
		j->state = JOB_RUNNING;
	pthread_mutex_unlock(&w->lock);
	return ready;
}

void *job_thread(void *arg)
{
	struct job *j = arg;
	struct worker *w = j->w;

	while (next_job(j)) {
		do_job(j);
		pthread_mutex_lock(&w->lock);
		j->state = JOB_IDLE;
		pthread_mutex_unlock(&w->lock);
		(void)!eventfd_write(w->done_fd, 1);
	}
	return NULL;
}
