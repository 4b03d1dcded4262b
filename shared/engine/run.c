#include "engine/run.h"

#include "base/clock.h"
#include "base/metrics.h"

enum hs_rc hs_run_check(const struct hs_run *run, struct hs_err *err)
{
	if (run->cancelled && run->cancelled(run->cancel_arg))
		return hs_fail(err, HS_E_CANCELLED, "cancelled");
	if (run->deadline_us && hs_mono_us() >= run->deadline_us)
		return hs_fail(err, HS_E_TIMEOUT, "the time limit was reached");
	return HS_OK;
}

static void add_usage(struct hs_llm_usage *sum, const struct hs_llm_usage *u)
{
	sum->input += u->input;
	sum->output += u->output;
	sum->cached += u->cached;
	sum->thoughts += u->thoughts;
}

enum hs_rc hs_run_chat(struct hs_run *run, struct hs_llm_call *call, struct hs_llm_reply *ret, struct hs_err *err)
{
	enum hs_rc rc;

	if (run->llm_operation)
		call->operation = run->llm_operation;
	call->deadline_us = run->deadline_us;
	call->cancelled = run->cancelled;
	call->cancel_arg = run->cancel_arg;
	rc = hs_llm_chat(run->llm, run->pool, call, ret, err);
	hs_metrics_llm(ret->provider, ret->model, call->scope, rc == HS_OK, ret->duration_ms * 1000, ret->usage.input,
		ret->usage.output, ret->usage.cached, ret->usage.thoughts);
	if (rc == HS_OK)
		add_usage(&run->usage, &ret->usage);
	return rc;
}
