/*
 * run - what one use of the engine gets: database, configuration, models, clock, cancel test.
 *
 * Floor:   engine. Filled by a handler (request) or by the worker (job); the engine knows neither.
 */
#ifndef HS_ENGINE_RUN_H
#define HS_ENGINE_RUN_H

#include "base/err.h"
#include "base/pool.h"
#include "config/config.h"
#include "db/db.h"
#include "llm/embed.h"
#include "llm/llm.h"
#include "store/bank.h"
#include "store/operation.h"

struct hs_run {
	struct hs_db *db;
	struct hs_pool *pool;
	const struct hs_config *server;   /* server-wide settings */
	const struct hs_llm *llm;         /* NULL in programs that call no model */
	const struct hs_embedder *embedder;
	bool (*cancelled)(void *arg);     /* NULL = never */
	void *cancel_arg;
	void (*progress)(void *arg, const char *stage, int64_t processed, int64_t total, json_t *detail);
	void *progress_arg;
	int64_t deadline_us;              /* on hs_mono_us; 0 = none */
	const char *operation_id;         /* of a job; NULL for requests */
	const struct hs_claim *claim;     /* of a job: hs_claim_hold in the result's transaction; else NULL */
	const char *source;               /* metrics: "api", "worker", "internal" */
	const char *llm_operation;        /* overrides the settings group of calls ("mental_model_refresh") */
	struct hs_llm_usage usage;        /* summed over the calls made */
};

/* HS_E_CANCELLED or HS_E_TIMEOUT when the work should stop here. */
HS_MUST enum hs_rc hs_run_check(const struct hs_run *run, struct hs_err *err);
/* "LLM_DOWN: text" for operations and histories: texts of the database never reach a client. */
const char *hs_run_error_text(struct hs_pool *pool, const struct hs_err *err);
/* hs_llm_chat with the run's cancel test, deadline and usage sum; counts metrics. */
HS_MUST enum hs_rc hs_run_chat(struct hs_run *run, struct hs_llm_call *call, struct hs_llm_reply *ret, struct hs_err *err);

#endif
