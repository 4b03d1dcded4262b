/*
 * refresh - rebuild a mental model: scope, window, reflect, guards, write.
 *
 * Floor:   engine. Rules: contract mental-models 10, 14, 18.
 */
#ifndef HS_ENGINE_REFRESH_H
#define HS_ENGINE_REFRESH_H

#include <jansson.h>

#include "engine/run.h"

struct hs_refresh_in {
	const struct hs_bank *bank;
	const char *mental_model_id;
	bool automatic, full;             /* flags of the payload */
};
/* One attempt of the worker. *ret_result: keys to merge into result_metadata, on failure too (new
 * reference). HS_E_DEFERRED with err->retry_at_us when parked. A failed attempt has stamped
 * last_refresh_failed_at and written its history row before this returns. */
HS_MUST enum hs_rc hs_refresh_run(struct hs_run *run, const struct hs_refresh_in *in,
	json_t **ret_result, struct hs_err *err);
/* The same without parking and without a write: what a refresh would read and store (contract 20).
 * *ret_result lives in the pool. A result that a refresh would refuse is told in it; a run that
 * dies is an error. */
HS_MUST enum hs_rc hs_refresh_dry_run(struct hs_run *run, const struct hs_refresh_in *in,
	json_t **ret_result, struct hs_err *err);

#endif
