#include "engine/run.h"

#include "base/clock.h"

enum hs_rc hs_run_check(const struct hs_run *run, struct hs_err *err)
{
	if (run->cancelled && run->cancelled(run->cancel_arg))
		return hs_fail(err, HS_E_CANCELLED, "the work was cancelled");
	if (run->deadline_us && hs_mono_us() >= run->deadline_us)
		return hs_fail(err, HS_E_TIMEOUT, "the time limit was reached");
	return HS_OK;
}
