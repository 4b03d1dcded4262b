#include "mcp.h"

#include "base/limits.h"
#include "engine/bank_view.h"
#include "json/json.h"

const struct hs_shape mcp_no_args = {.name = "no_args", .size = sizeof(struct hs_seen)};

/* ---- list_banks ---- */

struct list_args {
	struct hs_seen seen;
	const char *query;
	int64_t limit, offset;
};
#define T struct list_args
static const struct hs_field list_fields[] = {
	HS_STR(T, query, .flags = HS_NULLABLE, .doc = "part of the id or name, any case"),
	HS_INT(T, limit, HS_RANGE(0, HS_PAGE_MAX), .flags = HS_CLAMP_MAX | HS_NO_BOOL, .def = "100",
		.doc = "rows of the page"),
	HS_INT(T, offset, HS_MIN(0), .flags = HS_NO_BOOL, .def = "0", .doc = "rows to skip"),
};
#undef T
const struct hs_shape mcp_list_banks_args = HS_SHAPE(list_args, list_fields);

enum hs_rc mcp_list_banks(struct mcp_call *k, const void *args)
{
	const struct list_args *a = args;
	struct hs_bank_listed *rows;
	int64_t total;
	size_t n;

	HS_TRY(hs_banks_list(
		k->c->db, k->c->pool, a->query, a->limit, a->offset, &rows, &n, &total, k->err));
	hs_out_open(k->o, NULL, '{');
	hs_out_open(k->o, "banks", '[');
	for (size_t i = 0; i < n; i++)
		HS_TRY(hs_bank_put_listed(k->c->pool, k->c->cfg, k->o, &rows[i], k->err));
	hs_out_close(k->o, ']');
	hs_out_int(k->o, "total", total);
	hs_out_int(k->o, "limit", a->limit);
	hs_out_int(k->o, "offset", a->offset);
	hs_out_close(k->o, '}');
	return HS_OK;
}

/* ---- create_bank, get_bank ---- */

struct create_args {
	struct hs_seen seen;
	const char *bank_id, *name, *mission;
};
#define T struct create_args
static const struct hs_field create_fields[] = {
	HS_STR(T, bank_id, .flags = HS_REQUIRED, .doc = "id of the bank"),
	HS_STR(T, name, .flags = HS_NULLABLE, .doc = "shown to people"),
	HS_STR(T, mission, .flags = HS_NULLABLE,
		.doc = "who the bank's reflection is and what it answers for"),
};
#undef T
const struct hs_shape mcp_create_bank_args = HS_SHAPE(create_args, create_fields);

enum hs_rc mcp_create_bank(struct mcp_call *k, const void *args)
{
	const struct create_args *a = args;
	struct hs_bank_change want = {.name = a->name, .make = true};
	struct hs_bank bank;

	if (a->mission)
		want.updates =
			hs_json_keep(k->c->pool, json_pack("{s:s}", "reflect_mission", a->mission));
	HS_TRY(hs_bank_change(
		k->c->db, k->c->pool, k->c->cfg, a->bank_id, &want, &bank, NULL, k->err));
	return hs_bank_put_profile(k->c->pool, k->c->cfg, k->o, &bank, false, k->err);
}

enum hs_rc mcp_get_bank(struct mcp_call *k, const void *args)
{
	struct hs_bank bank;

	(void)args;
	HS_TRY(hs_bank_find(k->c->db, k->c->pool, k->bank_id, &bank, k->err));
	return hs_bank_put_profile(k->c->pool, k->c->cfg, k->o, &bank, false, k->err);
}
