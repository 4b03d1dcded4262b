#include "mcp.h"

#include "base/clock.h"
#include "engine/recall_body.h"
#include "engine/retain_item.h"
#include "json/json.h"

/* The founding tools: their answers and error strings are fixed. */

struct put_args {
	struct hs_seen seen;
	const char *bank_id, *content, *context, *explanation;
};
#define T struct put_args
static const struct hs_field put_fields[] = {
	HS_STR(T, bank_id, .flags = HS_REQUIRED | HS_NOT_BLANK, .doc = "unique id of the user"),
	HS_STR(T, content, .flags = HS_REQUIRED | HS_NOT_BLANK, .doc = "memory content to store"),
	HS_STR(T, context, .flags = HS_REQUIRED,
		.doc = "category, for example personal_preferences"),
	HS_STR(T, explanation, .flags = HS_NULLABLE, .doc = "why it is stored; not kept"),
};
#undef T
const struct hs_shape mcp_put_args = HS_SHAPE(put_args, put_fields);

/* Stored and searchable before the answer. */
enum hs_rc mcp_put(struct mcp_call *k, const void *args)
{
	const struct put_args *a = args;
	json_t *body = hs_json_keep(k->c->pool, json_object());
	const struct hs_strs no_tags = {0};
	struct hs_retain_item item;
	struct hs_retain_out out;
	struct hs_bank bank;
	void *in;

	json_object_set_new(body, "content", json_string(a->content));
	json_object_set_new(body, "context", json_string(a->context));
	HS_TRY(mcp_body(k, &hs_item_shape, body, &in));
	item = hs_item_make(k->c->pool, in, &no_tags);
	HS_TRY(hs_bank_ensure(k->c->db, k->c->pool, a->bank_id, &bank, NULL, k->err));
	HS_TRY(hs_retain_run(k->run, &bank, &item, 1, &out, k->err));
	hs_buf_str(k->o->buf, "Fact stored successfully");
	return HS_OK;
}

struct search_args {
	struct hs_seen seen;
	const char *bank_id, *query, *explanation;
	int64_t max_tokens;
};
#define T struct search_args
static const struct hs_field search_fields[] = {
	HS_STR(T, bank_id, .flags = HS_REQUIRED | HS_NOT_BLANK, .doc = "unique id of the user"),
	HS_STR(T, query, .flags = HS_REQUIRED | HS_NOT_BLANK,
		.doc = "what to look for, in natural language"),
	HS_INT(T, max_tokens, .flags = HS_NO_BOOL, .def = "4096",
		.doc = "tokens of returned texts"),
	HS_STR(T, explanation, .flags = HS_NULLABLE, .doc = "why it is searched; not kept"),
};
#undef T
const struct hs_shape mcp_search_args = HS_SHAPE(search_args, search_fields);

static void put_hit(struct hs_out *o, const struct hs_hit *h)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", h->id);
	hs_out_str(o, "text", h->text);
	hs_out_str(o, "type", hs_fact_type_names[h->type]);
	hs_out_str(o, "context", hs_str_empty(h->context) ? NULL : h->context);
	hs_out_time(o, "event_date", h->occurred_start_us);
	hs_out_str(o, "document_id", h->document_id);
	hs_out_close(o, '}');
}

enum hs_rc mcp_search(struct mcp_call *k, const void *args)
{
	const struct search_args *a = args;
	json_t *body = json_pack("{s:s, s:I, s:s, s:{s:n}}", "query", a->query, "max_tokens",
		(json_int_t)a->max_tokens, "budget", "high", "include", "entities");
	struct hs_recall_out out;
	struct hs_recall_in in;
	enum hs_rc rc;
	void *recall;

	HS_TRY(mcp_body(k, &hs_recall_body_shape, hs_json_keep(k->c->pool, body), &recall));
	rc = hs_recall_call(k->run, a->bank_id, recall, &in, &out, k->err);
	if (rc == HS_E_BANK_MISSING)
		return hs_fail(k->err, rc, "Memory bank '%s' not found", a->bank_id);
	HS_TRY(rc);
	hs_out_open(k->o, NULL, '{');
	hs_out_open(k->o, "results", '[');
	for (size_t i = 0; i < out.n_hits; i++)
		put_hit(k->o, &out.hits[i]);
	hs_out_close(k->o, ']');
	hs_out_close(k->o, '}');
	return HS_OK;
}
