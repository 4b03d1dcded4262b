#include "read.h"

#include <string.h>

#include "base/clock.h"
#include "store/document.h"

/* ---- GET …/memories/list ---- */

static const char *const consolidation_names[] = {
	[HS_CONSOLIDATION_FAILED] = "failed",
	[HS_CONSOLIDATION_PENDING] = "pending",
	[HS_CONSOLIDATION_DONE] = "done",
};

static enum hs_rc read_states(
	struct hs_ctx *c, const struct memory_list_query *q, struct hs_memory_filter *f)
{
	f->consolidation = -1;
	for (size_t i = 0; i < HS_COUNT(consolidation_names); i++)
		if (q->consolidation_state &&
			hs_str_ieq_ascii(q->consolidation_state, consolidation_names[i]))
			f->consolidation = (int)i;
	f->invalidated = hs_str_eq(q->state, "invalidated");
	if (!hs_str_empty(q->state) && !f->invalidated && !hs_str_eq(q->state, "valid"))
		return hs_fail(&c->err, HS_E_BAD_REQUEST,
			"Invalid state '%s': expected 'valid' or 'invalidated'.", q->state);
	if (!hs_str_empty(q->consolidation_state) && f->consolidation < 0)
		return hs_fail(&c->err, HS_E_BAD_REQUEST,
			"Invalid consolidation_state '%s': expected 'failed', 'pending', or 'done'.",
			q->consolidation_state);
	if (!hs_str_empty(q->entity_id))
		HS_TRY(read_uuid(c, "entity_id", q->entity_id, &f->entity_id));
	return HS_OK;
}

static const char *chunk_id_of(
	struct hs_ctx *c, const char *bank_id, const struct hs_memory_item *m)
{
	if (!m->document_id || m->chunk_index < 0)
		return NULL;
	return hs_chunk_id(c->pool, bank_id, m->document_id, m->chunk_index);
}

/* "" instead of null: clients read these two as text. */
static void put_context_and_date(struct hs_out *o, const struct hs_memory_item *m)
{
	char date[HS_TIME_TEXT];

	hs_time_format(m->event_us, date);
	hs_out_str(o, "context", m->context ? m->context : "");
	hs_out_str(o, "date", date);
}

/* Marks of curation and consolidation; there is no archive yet. */
static void put_marks(struct hs_out *o, const struct hs_memory_item *m)
{
	hs_out_time(o, "consolidated_at", m->consolidated_us);
	hs_out_time(o, "consolidation_failed_at", m->consolidation_failed_us);
	hs_out_str(o, "state", "valid");
	hs_out_null(o, "invalidation_reason");
	hs_out_null(o, "invalidated_at");
	hs_out_time(o, "edited_at", m->edited_us);
}

static void put_dates(struct hs_out *o, const struct hs_memory_item *m)
{
	hs_out_time(o, "mentioned_at", m->mentioned_us);
	hs_out_time(o, "occurred_start", m->occurred_start_us);
	hs_out_time(o, "occurred_end", m->occurred_end_us);
}

static void put_item(
	struct hs_ctx *c, struct hs_out *o, const char *bank_id, const struct hs_memory_item *m)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", m->id);
	hs_out_str(o, "text", m->text);
	put_context_and_date(o, m);
	hs_out_str(o, "fact_type", m->fact_type);
	hs_out_str(o, "document_id", m->document_id);
	put_dates(o, m);
	hs_out_str(o, "entities", hs_strs_join(c->pool, &m->entities, ", "));
	hs_out_str(o, "chunk_id", chunk_id_of(c, bank_id, m));
	hs_out_int(o, "proof_count", m->proof_count > 0 ? m->proof_count : 1);
	hs_out_raw(o, "tags", m->tags, "[]");
	hs_out_raw(o, "metadata", m->metadata, "{}");
	put_marks(o, m);
	hs_out_time(o, "updated_at", m->updated_us);
	hs_out_strs(o, "source_memory_ids", &m->source_ids);
	hs_out_null(o, "attachments");
	hs_out_close(o, '}');
}

enum hs_rc memory_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct memory_list_query *q = query;
	struct hs_memory_filter f = {
		.type = q->type,
		.q = q->q,
		.document_id = q->document_id,
		.scope = hs_scope_all(),
		.limit = q->limit,
		.offset = q->offset,
	};
	struct hs_memory_page page;
	struct hs_bank bank;
	struct hs_out o;

	(void)body;
	HS_TRY(read_window(c, q->time_field, 0, q->start_date, q->end_date, &f.window));
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(read_states(c, q, &f));
	HS_TRY(read_window_order(c, &f.window));
	f.scope.tags = q->tags;
	f.scope.match = (enum hs_tags_match)q->tags_match;
	HS_TRY(hs_memory_list(c->db, c->pool, bank.bank_no, &f, &page, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < page.n; i++)
		put_item(c, &o, bank.bank_id, &page.v[i]);
	hs_out_close(&o, ']');
	read_page_end(&o, page.total, q->limit, q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- GET …/memories/{memory_id} ---- */

static enum hs_rc put_sources(
	struct hs_ctx *c, struct hs_out *o, int64_t bank_no, const struct hs_memory_item *m)
{
	struct hs_memory_source *sources;
	size_t n;

	HS_TRY(hs_memory_sources(c->db, c->pool, bank_no, m->unit_no, &sources, &n, &c->err));
	hs_out_strs(o, "source_memory_ids", &m->source_ids);
	hs_out_open(o, "source_memories", '[');
	for (size_t i = 0; i < n; i++) {
		hs_out_open(o, NULL, '{');
		hs_out_str(o, "id", sources[i].id);
		hs_out_str(o, "text", sources[i].text);
		hs_out_str(o, "type", sources[i].fact_type);
		hs_out_str(o, "context", sources[i].context);
		hs_out_time(o, "occurred_start", sources[i].occurred_start_us);
		hs_out_time(o, "mentioned_at", sources[i].mentioned_us);
		hs_out_close(o, '}');
	}
	hs_out_close(o, ']');
	return HS_OK;
}

enum hs_rc memory_get(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_memory_item m;
	int64_t bank_no;
	const char *id;
	struct hs_out o;

	(void)query;
	(void)body;
	HS_TRY(read_uuid(c, "memory_id", hs_param(c, "memory_id"), &id));
	HS_TRY(hs_memory_get(c->db, c->pool, c->bank_id, id, &m, &bank_no, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "id", m.id);
	hs_out_str(&o, "text", m.text);
	put_context_and_date(&o, &m);
	hs_out_str(&o, "type", m.fact_type);
	put_dates(&o, &m);
	hs_out_strs(&o, "entities", &m.entities);
	hs_out_str(&o, "document_id", m.document_id);
	hs_out_str(&o, "chunk_id", chunk_id_of(c, c->bank_id, &m));
	hs_out_raw(&o, "tags", m.tags, "[]");
	hs_out_raw(&o, "metadata", m.metadata, "{}");
	hs_out_raw(&o, "observation_scopes", m.observation_scopes, "null");
	put_marks(&o, &m);
	if (strcmp(m.fact_type, "observation") == 0) {
		hs_out_open(&o, "history", '[');
		hs_out_close(&o, ']');
		if (m.source_ids.n > 0)
			HS_TRY(put_sources(c, &o, bank_no, &m));
	}
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- DELETE …/memories ---- */

static enum hs_rc clear(
	struct hs_ctx *c, const struct hs_bank *bank, void *arg, struct hs_deleted *ret)
{
	return hs_memory_clear(c->db, c->pool, bank->bank_no, arg, ret, &c->err);
}

enum hs_rc memory_clear(struct hs_ctx *c, const void *query, const void *body)
{
	const char *type = ((const struct memory_clear_query *)query)->type;
	const char *bank_id = c->bank_id;
	struct hs_deleted deleted = {0};
	struct hs_bank bank;
	struct hs_out o;
	enum hs_rc rc = hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err);

	(void)body;
	if (rc == HS_OK) {
		bank_id = bank.bank_id;
		rc = read_delete(c, &bank, clear, (void *)type, &deleted);
	}
	/* deleting everything of a bank that is not there leaves nothing to say */
	if (rc == HS_E_BANK_MISSING)
		hs_err_clear(&c->err);
	else
		HS_TRY(rc);
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_bool(&o, "success", true);
	hs_out_str(&o, "message",
		hs_pool_printf(c->pool, "Cleared %lld memory unit(s)%s%s%s from bank '%s'",
			(long long)deleted.units, type ? " of type '" : "", type ? type : "",
			type ? "'" : "", bank_id));
	hs_out_int(&o, "deleted_count", deleted.units);
	hs_out_close(&o, '}');
	return HS_OK;
}

/* ---- GET …/tags ---- */

enum hs_rc tag_list(struct hs_ctx *c, const void *query, const void *body)
{
	const struct tag_list_query *q = query;
	struct hs_tag_query want = {
		.models = q->source == 1, .q = q->q, .limit = q->limit, .offset = q->offset};
	struct hs_tag_count *tags;
	struct hs_bank bank;
	int64_t total;
	struct hs_out o;
	size_t n;

	(void)body;
	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(hs_tags_list(c->db, c->pool, bank.bank_no, &want, &tags, &n, &total, &c->err));
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "items", '[');
	for (size_t i = 0; i < n; i++) {
		hs_out_open(&o, NULL, '{');
		hs_out_str(&o, "tag", tags[i].tag);
		hs_out_int(&o, "count", tags[i].count);
		hs_out_close(&o, '}');
	}
	hs_out_close(&o, ']');
	read_page_end(&o, total, q->limit, q->offset);
	hs_out_close(&o, '}');
	return HS_OK;
}
