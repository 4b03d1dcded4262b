#include "read.h"

#include "json/json.h"
#include "store/document.h"
#include "store/document_read.h"

/* Stored parameters of the last retain; a broken text counts as none. */
static json_t *params_of(struct hs_ctx *c, const struct hs_document_item *d)
{
	json_t *v = NULL;

	if (hs_json_load(c->pool, d->retain_params, &v, NULL) != HS_OK)
		return NULL;
	return v;
}

static void put_head(struct hs_out *o, const char *bank_id, const struct hs_document_item *d)
{
	hs_out_str(o, "id", d->document_id);
	hs_out_str(o, "bank_id", bank_id);
	hs_out_str(o, "content_hash", d->content_hash);
	hs_out_time(o, "created_at", d->created_us);
	hs_out_time(o, "updated_at", d->updated_us);
	hs_out_int(o, "memory_unit_count", d->memory_units);
}

static void put_params(struct hs_out *o, const struct hs_document_item *d, const json_t *params)
{
	hs_out_raw(o, "tags", d->tags, "[]");
	hs_out_json(o, "document_metadata", json_object_get(params, "metadata"));
	hs_out_json(o, "retain_params", params);
}

/* ---- list ---- */

static void put_item(
	struct hs_ctx *c, struct hs_out *o, const char *bank_id, const struct hs_document_item *d)
{
	hs_out_open(o, NULL, '{');
	put_head(o, bank_id, d);
	hs_out_int(o, "text_length", d->text_chars);
	put_params(o, d, params_of(c, d));
	hs_out_open(o, "matched_fields", '[');
	if (d->id_matched)
		hs_out_str(o, NULL, "id");
	if (d->text_matched)
		hs_out_str(o, NULL, "original_text");
	hs_out_close(o, ']');
	hs_out_close(o, '}');
}

enum hs_rc document_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct document_list_query *q = query;
	struct hs_document_filter f = {
		.q = q->q,
		.scope = hs_scope_all(),
		.limit = q->limit,
		.offset = q->offset,
	};
	struct hs_document_page page;
	struct hs_bank bank;
	struct hs_out o;

	(void)body;
	HS_TRY(read_window(c, q->time_field, 1, q->start_date, q->end_date, &f.window));
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(read_window_order(c, &f.window));
	f.scope.tags = q->tags;
	f.scope.match = (enum hs_tags_match)q->tags_match;
	HS_TRY(hs_document_list(c->db, c->pool, bank.bank_no, &f, &page, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < page.n; i++)
		put_item(c, &o, bank.bank_id, &page.v[i]);
	hs_out_close(&o, ']');
	read_page_end(&o, page.total, q->limit, q->offset);
	hs_out_bool(&o, "total_is_estimate", page.estimate);
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- one document ---- */

enum hs_rc document_get(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_document_item d;
	json_t *params;
	struct hs_out o;

	(void)query;
	(void)body;
	HS_TRY(hs_document_get(
		c->db, c->pool, c->bank_id, hs_param(c, "document_id"), &d, &c->err));
	params = params_of(c, &d);
	o = hs_reply(c);
	hs_reply_etag(c);
	hs_out_open(&o, NULL, '{');
	put_head(&o, c->bank_id, &d);
	hs_out_str(&o, "original_text", d.original_text);
	hs_out_open(&o, "nodes_by_fact_type", '{');
	for (int i = 0; i < HS_FACT_TYPE__MAX; i++)
		hs_out_int(&o, hs_fact_type_names[i], d.by_type[i]);
	hs_out_close(&o, '}');
	put_params(&o, &d, params);
	hs_out_json(&o, "observation_scopes", json_object_get(params, "observation_scopes"));
	hs_out_null(&o, "attachments");
	hs_out_close(&o, '}');
	return HS_OK;
}

static enum hs_rc delete_it(
	struct hs_ctx *c, const struct hs_bank *bank, void *arg, struct hs_deleted *ret)
{
	return hs_document_delete(c->db, c->pool, bank->bank_no, arg, ret, &c->err);
}

enum hs_rc document_delete(struct hs_ctx *c, const void *query, const void *body)
{
	const char *id = hs_param(c, "document_id");
	struct hs_deleted deleted = {0};
	struct hs_bank bank;
	struct hs_out o;
	enum hs_rc rc = hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err);

	(void)query;
	(void)body;
	if (rc == HS_OK)
		rc = read_delete(c, &bank, delete_it, (void *)id, &deleted);
	if (rc == HS_E_BANK_MISSING || rc == HS_E_NOT_FOUND)
		return hs_fail(&c->err, HS_E_NOT_FOUND, "Document not found");
	HS_TRY(rc);
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_bool(&o, "success", true);
	hs_out_str(&o, "message",
		hs_pool_printf(c->pool,
			"Document '%s' and %lld associated memory units deleted successfully", id,
			(long long)deleted.units));
	hs_out_str(&o, "document_id", id);
	hs_out_int(&o, "memory_units_deleted", deleted.units);
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- chunks ---- */

static void put_chunk(struct hs_ctx *c, struct hs_out *o, const char *bank_id,
	const char *document_id, const struct hs_chunk_item *chunk)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "chunk_id", hs_chunk_id(c->pool, bank_id, document_id, chunk->chunk_index));
	hs_out_str(o, "document_id", document_id);
	hs_out_str(o, "bank_id", bank_id);
	hs_out_int(o, "chunk_index", chunk->chunk_index);
	hs_out_str(o, "chunk_text", chunk->text);
	hs_out_time(o, "created_at", chunk->created_us);
	hs_out_null(o, "attachments");
	hs_out_close(o, '}');
}

enum hs_rc document_chunks(struct hs_ctx *c, const void *query, const void *body)
{
	const struct page_query *q = query;
	const char *id = hs_param(c, "document_id");
	struct hs_chunk_item *chunks;
	int64_t total;
	struct hs_out o;
	size_t n;

	(void)body;
	HS_TRY(hs_chunk_list(
		c->db, c->pool, c->bank_id, id, q->limit, q->offset, &chunks, &n, &total, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < n; i++)
		put_chunk(c, &o, c->bank_id, id, &chunks[i]);
	hs_out_close(&o, ']');
	read_page_end(&o, total, q->limit, q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}

enum hs_rc chunk_get(struct hs_ctx *c, const void *query, const void *body)
{
	const char *id = hs_param(c, "chunk_id"), *bank_id, *document_id;
	struct hs_chunk_item chunk;
	struct hs_out o;
	int64_t index;

	(void)query;
	(void)body;
	if (!hs_chunk_id_parse(c->pool, id, &bank_id, &document_id, &index))
		return hs_fail(&c->err, HS_E_NOT_FOUND, "Chunk not found");
	HS_TRY(hs_chunk_get(c->db, c->pool, bank_id, document_id, index, &chunk, &c->err));
	o = hs_reply(c);
	put_chunk(c, &o, bank_id, document_id, &chunk);
	return HS_OK;
}
