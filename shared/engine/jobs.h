/*
 * jobs - operation kind -> function, with its wall limit and retry class.
 *
 * Floor:   engine. The worker claims, calls hs_job_run, and finishes by what it answers.
 */
#ifndef HS_ENGINE_JOBS_H
#define HS_ENGINE_JOBS_H

#include "engine/run.h"
#include "store/operation.h"

/* Runs the operation. *ret_metadata: merged into result_metadata (new reference or NULL), on failure
 * too. */
HS_MUST enum hs_rc hs_job_run(struct hs_run *run, const struct hs_operation *op,
	json_t **ret_metadata, struct hs_err *err);
/* Wall limit of a kind in seconds (0 = none) and the setting's name. */
int64_t hs_job_wall_seconds(
	const struct hs_config *cfg, const char *operation_type, const char **ret_setting);

#endif
