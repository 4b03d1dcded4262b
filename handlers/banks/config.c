#include "banks.h"

#include "config/overrides.h"
#include "engine/trigger.h"
#include "json/json.h"
#include "store/bank_write.h"

static enum hs_rc reply_config(struct hs_ctx *c, const char *bank_id, json_t *overrides)
{
	struct hs_config *cfg = hs_config_for_bank(c->pool, c->cfg, overrides);
	struct hs_out o = hs_reply(c);

	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "bank_id", bank_id);
	hs_out_json(&o, "config", hs_json_keep(c->pool, hs_overrides_effective(cfg)));
	hs_out_json(&o, "overrides", hs_json_keep(c->pool, hs_overrides_active(overrides)));
	hs_out_close(&o, '}');
	return HS_OK;
}

static enum hs_rc reply_bank(struct hs_ctx *c, const struct hs_bank *bank)
{
	json_t *overrides;

	HS_TRY(hs_json_load(c->pool, bank->config, &overrides, &c->err));
	return reply_config(c, bank->bank_id, overrides);
}

enum hs_rc config_get(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_bank bank;

	(void)query;
	(void)body;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	hs_reply_etag(c);
	return reply_bank(c, &bank);
}

enum hs_rc config_patch(struct hs_ctx *c, const void *query, const void *body)
{
	const struct config_body *b = body;
	struct hs_bank_change want = {
		.updates = b->updates, .page_trigger = &hs_trigger_shape, .make = true,
	};
	struct hs_bank bank;

	(void)query;
	HS_TRY(hs_bank_change(c->db, c->pool, c->cfg, c->bank_id, &want, &bank, NULL, &c->err));
	return reply_bank(c, &bank);
}

/* A missing bank has the defaults; nothing is stored for it. */
enum hs_rc config_delete(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_bank bank;
	enum hs_rc rc = hs_bank_config_clear(c->db, c->pool, c->bank_id, &bank, &c->err);

	(void)query;
	(void)body;
	if (rc == HS_E_BANK_MISSING) {
		hs_err_clear(&c->err);
		return reply_config(c, c->bank_id, hs_json_keep(c->pool, json_object()));
	}
	HS_TRY(rc);
	return reply_bank(c, &bank);
}
