#include "prompts.h"

#include <string.h>

#include "json/json.h"

static const char *const provider_ops[] = {
	[PREVIEW_RETAIN] = "retain",
	[PREVIEW_CONSOLIDATION] = "consolidation",
	[PREVIEW_REFLECT] = "reflect",
};

/* ---- the answer ---- */

static void out_choices(struct hs_pool *pool, struct hs_out *o, const struct hs_block *b)
{
	struct hs_strs list =
		hs_str_split(pool, hs_settings[HS_S_retain_extraction_mode].choices, '|');

	if (b->has_choices)
		hs_out_strs(o, "choices", &list);
	else
		hs_out_null(o, "choices");
}

static void out_block(struct hs_pool *pool, struct hs_out *o, const struct hs_block *b)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "text", b->text);
	hs_out_str(o, "source", b->config ? "config" : "builtin");
	hs_out_str(o, "field", b->field);
	hs_out_str(o, "section", b->section);
	hs_out_str(o, "heading", hs_block_heading(pool, b));
	hs_out_bool(o, "active", b->active);
	hs_out_str(o, "value", b->value);
	hs_out_str(o, "kind", b->kind);
	out_choices(pool, o, b);
	hs_out_bool(o, "editable", b->editable);
	hs_out_close(o, '}');
}

static void out_message(struct hs_pool *pool, struct hs_out *o, const struct hs_message *m)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "role", m->role);
	hs_out_open(o, "blocks", '[');
	for (size_t i = 0; i < m->n; i++)
		out_block(pool, o, &m->v[i]);
	hs_out_close(o, ']');
	hs_out_close(o, '}');
}

static void out_strategies(struct hs_pool *pool, struct hs_out *o, const struct preview *p)
{
	struct hs_strs names = {0};
	const char *name;
	json_t *v;

	if (p->operation == PREVIEW_RETAIN)
		json_object_foreach(hs_cfg_json(p->bank_cfg, HS_S_retain_strategies), name, v)
			hs_strs_add(pool, &names, name);
	names = hs_strs_sorted_set(pool, &names);
	hs_out_str(o, "strategy", p->strategy.name);
	hs_out_strs(o, "strategies", &names);
}

/* Settings that shape the run and stand in no prompt. */
static void out_run_settings(struct hs_pool *pool, struct hs_out *o, const struct preview *p)
{
	static const enum hs_setting_id ids[] = {
		HS_S_retain_chunk_size, HS_S_retain_structured_chunk_size};

	hs_out_open(o, "run_settings", '[');
	for (size_t i = 0; i < HS_COUNT(ids) && p->operation == PREVIEW_RETAIN; i++) {
		const struct hs_config *cfg = p->strategy.cfg;

		hs_out_open(o, NULL, '{');
		hs_out_str(o, "field", hs_settings[ids[i]].name);
		hs_out_str(o, "value",
			hs_cfg_null(cfg, ids[i])
				? NULL
				: hs_pool_printf(pool, "%lld", (long long)hs_cfg_int(cfg, ids[i])));
		hs_out_str(o, "kind", "text");
		hs_out_bool(o, "editable", hs_settings[ids[i]].scope == HS_SC_BANK);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
}

static void answer(struct hs_ctx *c, const struct preview *p)
{
	struct hs_out o = hs_reply(c);

	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "messages", '[');
	out_message(c->pool, &o, &p->prompt.system);
	out_message(c->pool, &o, &p->prompt.user);
	hs_out_close(&o, ']');
	out_strategies(c->pool, &o, p);
	out_run_settings(c->pool, &o, p);
	hs_out_json(
		&o, "response_schema", p->operation == PREVIEW_RETAIN ? p->prompt.schema : NULL);
	hs_out_str(&o, "skipped_reason",
		p->chunks
			? "Extraction mode is chunks: the text is stored as it is and no prompt is sent."
			: NULL);
	preview_warnings(c->pool, &o, p);
	hs_out_close(&o, '}');
}

/* ---- the call ---- */

enum hs_rc preview_post(struct hs_ctx *c, const void *query, const void *body)
{
	const struct preview_body *b = body;
	struct preview p = {.operation = (enum preview_operation)b->operation};
	struct hs_config *cfg;
	struct hs_bank bank;

	(void)query;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(hs_bank_config(c->pool, c->cfg, &bank, &cfg, &c->err));
	HS_TRY(hs_json_load(c->pool, bank.config, &p.overrides, &c->err));
	p.bank = &bank;
	p.bank_cfg = cfg;
	p.strategy.cfg = cfg;
	if (p.operation == PREVIEW_RETAIN)
		HS_TRY(hs_strategy_find(c->pool, cfg, b->strategy, &p.strategy, &c->err));
	p.provider = hs_cfg_llm_provider(cfg, provider_ops[p.operation]);
	p.chunks = p.operation == PREVIEW_RETAIN &&
		   hs_str_eq(hs_cfg_str(p.strategy.cfg, HS_S_retain_extraction_mode), "chunks");
	HS_TRY(preview_build(c, &p, &c->err));
	answer(c, &p);
	return HS_OK;
}
