#include "store/stats.h"

#include "banks.h"

#include "json/json.h"

enum hs_rc stats_get(struct hs_ctx *c, const void *query, const void *body)
{
	const struct stats_query *q = query;
	int64_t ttl_s = hs_cfg_int(c->cfg, HS_S_bank_stats_cache_ttl_seconds), last_us;
	struct hs_bank bank;
	const char *key;
	json_t *counts, *value;
	struct hs_out o;

	(void)body;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(hs_stats_get(c->db, c->pool, bank.bank_no, ttl_s, q->refresh, &counts, &c->err));
	HS_TRY(hs_stats_last_write(c->db, c->pool, bank.bank_no, &last_us, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "bank_id", bank.bank_id);
	json_object_foreach(counts, key, value)
		hs_out_json(&o, key, value);
	hs_out_time(&o, "last_memory_write_at", last_us);
	hs_out_close(&o, '}');
	return HS_OK;
}
