/* What a refresh would do: the same run, nothing written. */
#include "models.h"

#include "base/clock.h"
#include "engine/refresh.h"

static bool gone(void *arg)
{
	return hs_request_gone(arg);
}

static struct hs_run long_run(struct hs_ctx *c)
{
	int64_t wall_s = hs_cfg_int(c->cfg, HS_S_reflect_wall_timeout);
	struct hs_run run = mm_run(c);

	run.cancelled = gone;
	run.cancel_arg = c;
	run.deadline_us = wall_s > 0 ? hs_mono_us() + wall_s * HS_SECOND_US : 0;
	return run;
}

static enum hs_rc failed(struct hs_ctx *c, enum hs_rc rc, const char *id)
{
	switch (rc) {
	case HS_E_NOT_FOUND:
	case HS_E_BANK_MISSING:
		return hs_fail(&c->err, HS_E_NOT_FOUND, "Mental model %s not found", id);
	case HS_E_CANCELLED:
		return hs_fail(&c->err, HS_E_CLIENT_GONE,
			"the client closed the connection during a dry run");
	case HS_E_TIMEOUT:
		return hs_fail(&c->err, HS_E_WALL_CLOCK,
			"the dry run did not finish within %lld seconds; lower the trigger's budget",
			(long long)hs_cfg_int(c->cfg, HS_S_reflect_wall_timeout));
	default:
		return rc;
	}
}

enum hs_rc mm_dry_run(struct hs_ctx *c, const void *query, const void *body)
{
	const char *id = hs_param(c, "mental_model_id");
	struct hs_refresh_in in = {.mental_model_id = id};
	struct hs_run run = long_run(c);
	struct hs_bank bank;
	json_t *result;
	struct hs_out o;
	enum hs_rc rc;

	(void)query;
	(void)body;
	rc = hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err);
	if (rc == HS_OK) {
		in.bank = &bank;
		rc = hs_refresh_dry_run(&run, &in, &result, &c->err);
	}
	if (rc != HS_OK)
		return failed(c, rc, id);
	o = hs_reply(c);
	hs_out_json(&o, NULL, result);
	return HS_OK;
}
