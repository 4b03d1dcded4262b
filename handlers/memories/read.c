#include "read.h"

#include "base/clock.h"
#include "base/id.h"
#include "db/tx.h"
#include "store/clock.h"
#include "store/operation.h"
#include "store/stats.h"

static enum hs_rc read_date(struct hs_ctx *c, const char *name, const char *text, int64_t *ret)
{
	if (hs_time_parse(text, ret))
		return HS_OK;
	return hs_fail(&c->err, HS_E_BAD_REQUEST, "Invalid %s: '%s' is not an ISO-8601 datetime.",
		name, text);
}

enum hs_rc read_window(struct hs_ctx *c, int field, int default_axis, const char *start,
	const char *end, struct hs_window *ret)
{
	struct hs_window w = {.axis = field < 0 ? default_axis : field,
		.start_us = HS_TIME_NONE,
		.end_us = HS_TIME_NONE};

	if (!hs_str_empty(start))
		HS_TRY(read_date(c, "start_date", start, &w.start_us));
	if (!hs_str_empty(end))
		HS_TRY(read_date(c, "end_date", end, &w.end_us));
	w.on = field >= 0 || w.start_us != HS_TIME_NONE || w.end_us != HS_TIME_NONE;
	*ret = w;
	return HS_OK;
}

enum hs_rc read_window_order(struct hs_ctx *c, const struct hs_window *w)
{
	if (w->start_us == HS_TIME_NONE || w->end_us == HS_TIME_NONE || w->end_us > w->start_us)
		return HS_OK;
	return hs_fail(&c->err, HS_E_BAD_REQUEST,
		"Invalid time window: end_date must be after start_date.");
}

void read_page_end(struct hs_out *o, int64_t total, int64_t limit, int64_t offset)
{
	hs_out_int(o, "total", total);
	hs_out_int(o, "limit", limit);
	hs_out_int(o, "offset", offset);
}

enum hs_rc read_uuid(struct hs_ctx *c, const char *what, const char *text, const char **ret)
{
	char id[HS_UUID_TEXT];

	if (!hs_uuid_parse(text, id))
		return hs_fail(&c->err, HS_E_BAD_REQUEST, "Invalid %s: '%s' is not a valid UUID",
			what, text);
	*ret = hs_pool_strdup(c->pool, id);
	return HS_OK;
}

struct deletion {
	struct hs_ctx *c;
	const struct hs_bank *bank;
	read_delete_fn *fn;
	void *arg;
	bool consolidates; /* the bank forms observations by itself */
	bool submitted;
	struct hs_deleted deleted;
};

static enum hs_rc run_deletion(struct hs_db *db, void *arg, struct hs_err *err)
{
	static const struct hs_consolidation_submit submit = {.round = 1};
	struct deletion *d = arg;
	const char *operation_id;
	bool folded;

	d->deleted = (struct hs_deleted){0};
	d->submitted = false;
	HS_TRY(hs_clock_lock(db, d->bank->bank_no, err));
	HS_TRY(d->fn(d->c, d->bank, d->arg, &d->deleted));
	HS_TRY(hs_stats_forget(db, d->bank->bank_no, err));
	if (d->deleted.observations == 0 || !d->consolidates)
		return HS_OK;
	HS_TRY(hs_submit_consolidation(
		db, d->c->pool, d->bank->bank_no, &submit, &operation_id, &folded, err));
	d->submitted = true;
	return HS_OK;
}

enum hs_rc read_delete(struct hs_ctx *c, const struct hs_bank *bank, read_delete_fn *fn, void *arg,
	struct hs_deleted *ret)
{
	struct deletion d = {.c = c, .bank = bank, .fn = fn, .arg = arg};
	struct hs_config *cfg;

	HS_TRY(hs_bank_config(c->pool, c->cfg, bank, &cfg, &c->err));
	d.consolidates = hs_cfg_bool(cfg, HS_S_enable_observations) &&
			 hs_cfg_bool(cfg, HS_S_enable_auto_consolidation);
	HS_TRY(hs_tx_run(c->db, run_deletion, &d, &c->err));
	if (d.submitted)
		hs_queue_poke(c->cfg);
	*ret = d.deleted;
	return HS_OK;
}
