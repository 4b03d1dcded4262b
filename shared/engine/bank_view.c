#include "engine/bank_view.h"

static int64_t trait(const struct hs_config *cfg, enum hs_setting_id id, int64_t column)
{
	return hs_cfg_null(cfg, id) ? column : hs_cfg_int(cfg, id);
}

/* An override wins over the older columns. */
static void put_disposition(struct hs_out *o, const struct hs_bank *b, const struct hs_config *cfg)
{
	hs_out_open(o, "disposition", '{');
	hs_out_int(o, "skepticism", trait(cfg, HS_S_disposition_skepticism, b->skepticism));
	hs_out_int(o, "literalism", trait(cfg, HS_S_disposition_literalism, b->literalism));
	hs_out_int(o, "empathy", trait(cfg, HS_S_disposition_empathy, b->empathy));
	hs_out_close(o, '}');
}

static const char *mission(const struct hs_bank *b, const struct hs_config *cfg)
{
	const char *m = hs_cfg_str(cfg, HS_S_reflect_mission);

	if (!hs_str_empty(m))
		return m;
	return b->mission ? b->mission : "";
}

enum hs_rc hs_bank_put_profile(struct hs_pool *pool, const struct hs_config *server,
	struct hs_out *o, const struct hs_bank *b, bool background, struct hs_err *err)
{
	struct hs_config *cfg;

	HS_TRY(hs_bank_config(pool, server, b, &cfg, err));
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "bank_id", b->bank_id);
	hs_out_str(o, "name", b->name);
	put_disposition(o, b, cfg);
	hs_out_str(o, "mission", mission(b, cfg));
	if (background)
		hs_out_str(o, "background", mission(b, cfg));
	hs_out_close(o, '}');
	return HS_OK;
}

enum hs_rc hs_bank_put_listed(struct hs_pool *pool, const struct hs_config *server,
	struct hs_out *o, const struct hs_bank_listed *row, struct hs_err *err)
{
	const struct hs_strs no_aliases = {0};
	const struct hs_bank *b = &row->bank;
	struct hs_config *cfg;

	HS_TRY(hs_bank_config(pool, server, b, &cfg, err));
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "bank_id", b->bank_id);
	hs_out_str(o, "name", b->name);
	put_disposition(o, b, cfg);
	hs_out_str(o, "mission", mission(b, cfg));
	hs_out_time(o, "created_at", b->created_us);
	hs_out_time(o, "updated_at", b->updated_us);
	hs_out_int(o, "fact_count", row->fact_count);
	hs_out_time(o, "last_document_at", row->last_document_us);
	hs_out_time(o, "last_write_at", row->last_write_us);
	hs_out_null(o, "display_alias");
	hs_out_strs(o, "matched_aliases", &no_aliases);
	hs_out_close(o, '}');
	return HS_OK;
}
