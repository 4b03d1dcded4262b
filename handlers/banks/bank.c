#include "banks.h"

#include "engine/bank_view.h"
#include "json/json.h"

/* ---- answers ---- */

static enum hs_rc reply_bank(struct hs_ctx *c, const struct hs_bank *b)
{
	struct hs_out o = hs_reply(c);

	return hs_bank_put_profile(c->pool, c->cfg, &o, b, true, &c->err);
}

enum hs_rc bank_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct list_query *q = query;
	struct hs_bank_listed *rows;
	int64_t total;
	struct hs_out o;
	size_t n;

	(void)body;
	HS_TRY(hs_banks_list(
		c->db, c->pool, q->q, q->limit, q->offset, &rows, &n, &total, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "banks", '[');
	for (size_t i = 0; i < n; i++)
		HS_TRY(hs_bank_put_listed(c->pool, c->cfg, &o, &rows[i], &c->err));
	hs_out_close(&o, ']');
	hs_out_int(&o, "total", total);
	hs_out_int(&o, "limit", q->limit);
	hs_out_int(&o, "offset", q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- change ---- */

/* The first of the three that says something; an empty background alone clears the mission. */
static const char *new_mission(const struct bank_body *b)
{
	if (!hs_str_empty(b->reflect_mission))
		return b->reflect_mission;
	if (!hs_str_empty(b->mission))
		return b->mission;
	return b->background;
}

static json_t *field_value(const struct hs_field *f, const void *obj)
{
	const void *place = (const char *)obj + f->offset;

	switch (f->type) {
	case HS_F_STR:
		return json_string(*(const char *const *)place);
	case HS_F_INT:
		return json_integer(*(const int64_t *)place);
	case HS_F_BOOL:
		return json_boolean(*(const bool *)place);
	default:
		return NULL;
	}
}

static void add_disposition(json_t *updates, const struct disposition *d)
{
	if (!d)
		return;
	json_object_set_new(updates, "disposition_skepticism", json_integer(d->skepticism));
	json_object_set_new(updates, "disposition_literalism", json_integer(d->literalism));
	json_object_set_new(updates, "disposition_empathy", json_integer(d->empathy));
}

/* What PATCH config would be sent for this body. Single traits beat the object. */
static json_t *updates_of(struct hs_ctx *c, const struct bank_body *b)
{
	json_t *updates = hs_json_keep(c->pool, json_object());
	const char *m = new_mission(b);

	add_disposition(updates, b->disposition);
	for (size_t i = 0; i < bank_body_shape.n_fields; i++) {
		const struct hs_field *f = &bank_body_shape.fields[i];

		if (hs_setting_find(f->name) >= 0 && hs_given(&bank_body_shape, b, f->name))
			json_object_set_new(updates, f->name, field_value(f, b));
	}
	json_object_del(updates, "reflect_mission");
	if (m)
		json_object_set_new(updates, "reflect_mission", json_string(m));
	return updates;
}

static enum hs_rc change(struct hs_ctx *c, const struct bank_body *b, bool make)
{
	struct hs_bank_change want = {.name = b->name, .updates = updates_of(c, b), .make = make};
	struct hs_bank bank;

	HS_TRY(hs_bank_change(c->db, c->pool, c->cfg, c->bank_id, &want, &bank, NULL, &c->err));
	return reply_bank(c, &bank);
}

enum hs_rc bank_put(struct hs_ctx *c, const void *query, const void *body)
{
	(void)query;
	return change(c, body, true);
}

enum hs_rc bank_patch(struct hs_ctx *c, const void *query, const void *body)
{
	(void)query;
	return change(c, body, false);
}

/* ---- profile, delete ---- */

enum hs_rc bank_profile(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_bank bank;

	(void)query;
	(void)body;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	hs_reply_etag(c);
	return reply_bank(c, &bank);
}

enum hs_rc profile_gone(struct hs_ctx *c, const void *query, const void *body)
{
	(void)query;
	(void)body;
	return hs_fail(&c->err, HS_E_GONE,
		"This route is retired: use GET or PATCH /v1/default/banks/{bank_id}/config");
}

enum hs_rc bank_delete(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_out o;
	int64_t count;

	(void)query;
	(void)body;
	HS_TRY(hs_bank_delete(c->db, c->bank_id, &count, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_bool(&o, "success", true);
	hs_out_str(&o, "message",
		hs_pool_printf(c->pool, "Bank '%s' and all associated data deleted successfully",
			c->bank_id));
	hs_out_int(&o, "deleted_count", count);
	hs_out_close(&o, '}');
	return HS_OK;
}
