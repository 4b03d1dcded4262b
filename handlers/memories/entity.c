#include "read.h"

#include "store/entity_read.h"

/* Without the brackets: the single read adds members. */
static void put_members(struct hs_out *o, const struct hs_entity_item *e)
{
	hs_out_str(o, "id", e->id);
	hs_out_str(o, "canonical_name", e->canonical_name);
	hs_out_int(o, "mention_count", e->mention_count);
	hs_out_time(o, "first_seen", e->first_seen_us);
	hs_out_time(o, "last_seen", e->last_seen_us);
	hs_out_raw(o, "metadata", e->metadata, "{}");
}

enum hs_rc entity_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct page_query *q = query;
	struct hs_entity_item *entities;
	struct hs_bank bank;
	int64_t total;
	struct hs_out o;
	size_t n;

	(void)body;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(hs_entity_list(
		c->db, c->pool, bank.bank_no, q->limit, q->offset, &entities, &n, &total, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < n; i++) {
		hs_out_open(&o, NULL, '{');
		put_members(&o, &entities[i]);
		hs_out_close(&o, '}');
	}
	hs_out_close(&o, ']');
	read_page_end(&o, total, q->limit, q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}

enum hs_rc entity_get(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_entity_item e;
	const char *id;
	struct hs_out o;

	(void)query;
	(void)body;
	HS_TRY(read_uuid(c, "entity_id", hs_param(c, "entity_id"), &id));
	HS_TRY(hs_entity_get(c->db, c->pool, c->bank_id, id, &e, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	put_members(&o, &e);
	hs_out_open(&o, "observations", '[');
	hs_out_close(&o, ']');
	hs_out_close(&o, '}');
	return HS_OK;
}
