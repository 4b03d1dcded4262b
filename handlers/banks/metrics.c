#include "banks.h"

#include "store/health.h"

#define OPERATIONS "hindsight_async_operations"

static void gauge(struct hs_buf *out, const char *name, const char *help, int64_t value)
{
	hs_buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n%s{tenant=\"default\"} %lld\n", name, help,
		name, name, (long long)value);
}

enum hs_rc bank_metrics(struct hs_ctx *c, struct hs_buf *out)
{
	struct hs_backlog b;

	if (!hs_cfg_bool(c->cfg, HS_S_metrics_backlog_enabled))
		return HS_OK;
	HS_TRY(hs_backlog(c->db, c->pool, &b, &c->err));
	hs_buf_printf(out, "# HELP %s Operations by state\n# TYPE %s gauge\n", OPERATIONS, OPERATIONS);
	for (size_t i = 0; i < b.operations.n; i++) {
		const struct hs_val *row = hs_row(&b.operations, i);

		hs_buf_printf(out, "%s{operation_type=\"%s\",status=\"%s\",tenant=\"default\"} %lld\n",
			OPERATIONS, row[0].s, row[1].s, (long long)row[2].i);
	}
	gauge(out, "hindsight_consolidation_backlog", "Memories that wait for consolidation",
		b.unconsolidated);
	gauge(out, "hindsight_consolidation_failed", "Memories whose consolidation failed",
		b.consolidation_failed);
	return HS_OK;
}
