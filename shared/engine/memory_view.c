#include "engine/memory_view.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "store/document.h"

static const char *chunk_id_of(
	struct hs_pool *pool, const char *bank_id, const struct hs_memory_item *m)
{
	if (!m->document_id || m->chunk_index < 0)
		return NULL;
	return hs_chunk_id(pool, bank_id, m->document_id, m->chunk_index);
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

void hs_memory_put_listed(
	struct hs_pool *pool, struct hs_out *o, const char *bank_id, const struct hs_memory_item *m)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", m->id);
	hs_out_str(o, "text", m->text);
	put_context_and_date(o, m);
	hs_out_str(o, "fact_type", m->fact_type);
	hs_out_str(o, "document_id", m->document_id);
	put_dates(o, m);
	hs_out_str(o, "entities", hs_strs_join(pool, &m->entities, ", "));
	hs_out_str(o, "chunk_id", chunk_id_of(pool, bank_id, m));
	hs_out_int(o, "proof_count", m->proof_count > 0 ? m->proof_count : 1);
	hs_out_raw(o, "tags", m->tags, "[]");
	hs_out_raw(o, "metadata", m->metadata, "{}");
	put_marks(o, m);
	hs_out_time(o, "updated_at", m->updated_us);
	hs_out_strs(o, "source_memory_ids", &m->source_ids);
	hs_out_null(o, "attachments");
	hs_out_close(o, '}');
}

/* ---- one memory ---- */

static enum hs_rc put_sources(struct hs_db *db, struct hs_pool *pool, struct hs_out *o,
	int64_t bank_no, const struct hs_memory_item *m, struct hs_err *err)
{
	struct hs_memory_source *sources;
	size_t n;

	HS_TRY(hs_memory_sources(db, pool, bank_no, m->unit_no, &sources, &n, err));
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

static enum hs_rc put_one(struct hs_db *db, struct hs_pool *pool, struct hs_out *o,
	const char *bank_id, int64_t bank_no, const struct hs_memory_item *m, struct hs_err *err)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", m->id);
	hs_out_str(o, "text", m->text);
	put_context_and_date(o, m);
	hs_out_str(o, "type", m->fact_type);
	put_dates(o, m);
	hs_out_strs(o, "entities", &m->entities);
	hs_out_str(o, "document_id", m->document_id);
	hs_out_str(o, "chunk_id", chunk_id_of(pool, bank_id, m));
	hs_out_raw(o, "tags", m->tags, "[]");
	hs_out_raw(o, "metadata", m->metadata, "{}");
	hs_out_raw(o, "observation_scopes", m->observation_scopes, "null");
	put_marks(o, m);
	if (strcmp(m->fact_type, "observation") == 0) {
		hs_out_open(o, "history", '[');
		hs_out_close(o, ']');
		if (m->source_ids.n > 0)
			HS_TRY(put_sources(db, pool, o, bank_no, m, err));
	}
	hs_out_close(o, '}');
	return HS_OK;
}

enum hs_rc hs_memory_put(struct hs_db *db, struct hs_pool *pool, struct hs_out *o,
	const char *bank_id, const char *memory_id, struct hs_err *err)
{
	struct hs_memory_item m;
	char id[HS_UUID_TEXT];
	int64_t bank_no;

	if (!hs_uuid_parse(memory_id, id))
		return hs_fail(err, HS_E_BAD_REQUEST, "Invalid memory_id: '%s' is not a valid UUID",
			memory_id);
	HS_TRY(hs_memory_get(db, pool, bank_id, id, &m, &bank_no, err));
	return put_one(db, pool, o, bank_id, bank_no, &m, err);
}
