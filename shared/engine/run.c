#include "engine/run.h"

#include <string.h>

#include "base/clock.h"

enum hs_rc hs_run_check(const struct hs_run *run, struct hs_err *err)
{
	if (run->cancelled && run->cancelled(run->cancel_arg))
		return hs_fail(err, HS_E_CANCELLED, "the work was cancelled");
	if (run->deadline_us && hs_mono_us() >= run->deadline_us)
		return hs_fail(err, HS_E_TIMEOUT, "the time limit was reached");
	return HS_OK;
}

const char *hs_run_error_text(struct hs_pool *pool, const struct hs_err *err)
{
	bool database = err->rc >= HS_E_DB && err->rc <= HS_E_DB_TIMEOUT;
	bool shown = !database && err->msg[0] && hs_utf8_valid(err->msg, strlen(err->msg));
	const char *name = hs_rc_name(err->rc);

	if (hs_str_starts(name, "HS_E_"))
		name += strlen("HS_E_");
	return hs_pool_printf(pool, "%s: %s", name, shown ? err->msg : hs_rc_text(err->rc));
}
