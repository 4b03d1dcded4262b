/* Apart from run.c: programs that call no model link that one only. */
#include "engine/run.h"

#include "base/clock.h"
#include "base/metrics.h"

static void add_usage(struct hs_llm_usage *sum, const struct hs_llm_usage *u)
{
	sum->input += u->input;
	sum->output += u->output;
	sum->cached += u->cached;
	sum->thoughts += u->thoughts;
}

enum hs_rc hs_run_chat(
	struct hs_run *run, struct hs_llm_call *call, struct hs_llm_reply *ret, struct hs_err *err)
{
	int64_t started = hs_mono_us();
	enum hs_rc rc;

	HS_TRY(hs_run_check(run, err));
	if (run->llm_operation)
		call->operation = run->llm_operation;
	call->cancelled = run->cancelled;
	call->cancel_arg = run->cancel_arg;
	if (run->deadline_us && (!call->deadline_us || run->deadline_us < call->deadline_us))
		call->deadline_us = run->deadline_us;
	if (!call->run_id)
		call->run_id = run->operation_id;
	rc = hs_llm_chat(run->llm, run->pool, call, ret, err);
	if (rc == HS_OK)
		add_usage(&run->usage, &ret->usage);
	if (*ret->provider)
		hs_metrics_llm(ret->provider, ret->model, call->scope, rc == HS_OK,
			hs_mono_us() - started, ret->usage.input, ret->usage.output,
			ret->usage.cached, ret->usage.thoughts);
	return rc;
}
