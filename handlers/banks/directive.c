#include "store/directive.h"

#include "banks.h"

static void put(struct hs_out *o, const char *bank_id, const struct hs_directive *d)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", d->id);
	hs_out_str(o, "bank_id", bank_id);
	hs_out_str(o, "name", d->name);
	hs_out_str(o, "content", d->content);
	hs_out_int(o, "priority", d->priority);
	hs_out_bool(o, "is_active", d->is_active);
	hs_out_strs(o, "tags", &d->tags);
	hs_out_time(o, "created_at", d->created_us);
	hs_out_time(o, "updated_at", d->updated_us);
	hs_out_close(o, '}');
}

static enum hs_rc reply(struct hs_ctx *c, const struct hs_bank *bank, const struct hs_directive *d)
{
	struct hs_out o = hs_reply(c);

	put(&o, bank->bank_id, d);
	return HS_OK;
}

/* Below a missing bank a single directive is missing too. */
static enum hs_rc item_missing(struct hs_ctx *c, enum hs_rc rc)
{
	if (rc != HS_E_BANK_MISSING)
		return rc;
	return hs_fail(&c->err, HS_E_NOT_FOUND, "Directive '%s' not found", 
		hs_param(c, "directive_id"));
}

static enum hs_rc find_bank(struct hs_ctx *c, struct hs_bank *ret)
{
	return hs_bank_find(c->db, c->pool, c->bank_id, ret, &c->err);
}

enum hs_rc directive_list(struct hs_ctx *c, const void *query, const void *body)
{
	static const enum hs_tags_match matches[] = {HS_ANY, HS_ALL, HS_EXACT};
	const struct directives_query *q = query;
	struct hs_directive_filter filter = {
		.tags = q->tags, .match = matches[q->tags_match], .active_only = q->active_only,
		.limit = q->limit, .offset = q->offset,
	};
	struct hs_directive *rows;
	struct hs_bank bank;
	int64_t total;
	struct hs_out o;
	size_t n;

	(void)body;
	HS_TRY(find_bank(c, &bank));
	HS_TRY(hs_directives_list(c->db, c->pool, bank.bank_no, &filter, &rows, &n, &total,
		&c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < n; i++)
		put(&o, bank.bank_id, &rows[i]);
	hs_out_close(&o, ']');
	hs_out_int(&o, "total", total);
	hs_out_int(&o, "limit", q->limit);
	hs_out_int(&o, "offset", q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}

enum hs_rc directive_get(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_directive d;
	struct hs_bank bank;

	(void)query;
	(void)body;
	HS_TRY(item_missing(c, find_bank(c, &bank)));
	HS_TRY(hs_directive_get(c->db, c->pool, bank.bank_no, hs_param(c, "directive_id"), &d,
		&c->err));
	return reply(c, &bank, &d);
}

enum hs_rc directive_create(struct hs_ctx *c, const void *query, const void *body)
{
	const struct directive_body *b = body;
	struct hs_directive d = {
		.name = b->name, .content = b->content, .priority = b->priority,
		.is_active = b->is_active, .tags = b->tags,
	};
	struct hs_bank bank;

	(void)query;
	HS_TRY(find_bank(c, &bank));
	HS_TRY(hs_directive_create(c->db, c->pool, bank.bank_no, &d, &c->err));
	return reply(c, &bank, &d);
}

static bool given(const struct directive_body *b, const char *name)
{
	return hs_given(&directive_change_shape, b, name);
}

enum hs_rc directive_update(struct hs_ctx *c, const void *query, const void *body)
{
	const struct directive_body *b = body;
	struct hs_directive_change change = {
		.name = b->name, .content = b->content,
		.priority = given(b, "priority") ? &b->priority : NULL,
		.is_active = given(b, "is_active") ? &b->is_active : NULL,
		.tags = given(b, "tags") ? &b->tags : NULL,
	};
	struct hs_directive d;
	struct hs_bank bank;

	(void)query;
	HS_TRY(item_missing(c, find_bank(c, &bank)));
	HS_TRY(item_missing(c, hs_directive_update(c->db, c->pool, bank.bank_no, hs_param(c,
		"directive_id"), &change, &d, &c->err)));
	return reply(c, &bank, &d);
}

enum hs_rc directive_delete(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_bank bank;
	struct hs_out o;

	(void)query;
	(void)body;
	HS_TRY(item_missing(c, find_bank(c, &bank)));
	HS_TRY(item_missing(c,
		hs_directive_delete(c->db, bank.bank_no, hs_param(c, "directive_id"), &c->err)));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "status", "deleted");
	hs_out_close(&o, '}');
	return HS_OK;
}
