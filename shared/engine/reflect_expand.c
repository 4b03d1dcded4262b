#include "engine/reflect_run.h"

#include <string.h>

#include "base/id.h"
#include "base/limits.h"
#include "json/json.h"
#include "store/document.h"
#include "store/expand.h"

static const char unknown_memory[] = "no memory with this id";
static const char malformed_id[] = "this is not a memory id";

static const struct hs_expand_row *row_of(
	const struct hs_expand_row *rows, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(rows[i].id, id) == 0)
			return &rows[i];
	return NULL;
}

/* Stored JSON, also when it was stored as JSON text; what cannot be read is NULL. */
static json_t *stored_object(struct hs_pool *pool, const char *text)
{
	struct hs_err ignored = {0};
	json_t *v = NULL;

	if (hs_json_load(pool, text, &v, &ignored) != HS_OK)
		return NULL;
	if (json_is_string(v) && hs_json_load(pool, json_string_value(v), &v, &ignored) != HS_OK)
		return NULL;
	return json_is_object(v) ? v : NULL;
}

static json_t *or_null(json_t *v)
{
	return v ? json_incref(v) : json_null();
}

static json_t *text_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

static void add_source(
	struct hs_reflection *r, const struct hs_expand_row *row, bool document, json_t *entry)
{
	if (row->chunk_text) {
		const char *id = hs_chunk_id(
			r->pool, r->in->bank->bank_id, row->document_id, row->chunk_index);

		json_object_set_new(entry, "chunk",
			json_pack("{s:s, s:s, s:I, s:s}", "id", id, "text", row->chunk_text,
				"index", (json_int_t)row->chunk_index, "document_id",
				row->document_id));
	}
	if (document && row->document_found) {
		json_t *params = stored_object(r->pool, row->retain_params);

		json_object_set_new(entry, "document",
			json_pack("{s:s, s:o, s:o, s:o}", "id", row->document_id, "full_text",
				text_or_null(row->original_text), "metadata",
				or_null(hs_json_obj(params, "metadata")), "retain_params",
				or_null(params)));
	}
}

/* Source text follows its document: under a tag filter a document out of scope hides it. */
static bool withheld(const struct hs_reflection *r, const struct hs_expand_row *row)
{
	if (!row->document_id || !hs_scope_filters_tags(&r->tag_scope))
		return false;
	return !row->document_found || !hs_scope_match_tags(&r->tag_scope, &row->document_tags);
}

static void saw(struct hs_reflection *r, const struct hs_expand_row *row)
{
	struct hs_retrieved seen = {
		.fact =
			{
				.id = row->id,
				.text = row->text,
				.type = row->fact_type,
				.context = row->context,
				.document_id = row->document_id,
				.occurred_start_us = row->occurred_start_us,
				.occurred_end_us = row->occurred_end_us,
				.mentioned_us = row->mentioned_us,
				.tags = row->tags,
				.metadata = row->metadata,
			},
	};

	hs_reflect_saw_fact(r, &seen, false);
}

static json_t *expanded(
	struct hs_reflection *r, const char *given, const struct hs_expand_row *row, bool document)
{
	json_t *entry = json_object();

	json_object_set_new(entry, "memory_id", json_string(given));
	json_object_set_new(entry, "memory",
		json_pack("{s:s, s:s, s:s, s:o}", "id", row->id, "text", row->text, "type",
			row->fact_type, "context", text_or_null(row->context)));
	if (withheld(r, row))
		json_object_set_new(
			entry, "source_withheld", json_string(hs_loop_text(HS_LT_WITHHELD)));
	else
		add_source(r, row, document, entry);
	saw(r, row);
	return entry;
}

static json_t *refused(const char *given, const char *text)
{
	return json_pack("{s:s, s:s}", "memory_id", given, "error", text);
}

/* The ids that are UUIDs; *ret_uuids has "" where one is none. */
static struct hs_strs readable(
	struct hs_pool *pool, const struct hs_strs *given, struct hs_strs *ret_uuids)
{
	struct hs_strs good = {0};
	char uuid[HS_UUID_TEXT];

	for (size_t i = 0; i < given->n; i++) {
		const char *id = hs_uuid_parse(given->v[i], uuid) ? hs_pool_strdup(pool, uuid) : "";

		hs_strs_add(pool, ret_uuids, id);
		if (*id)
			hs_strs_add(pool, &good, id);
	}
	return good;
}

static json_t *all_malformed(struct hs_pool *pool, const struct hs_strs *given)
{
	json_t *result = hs_reflect_fault(pool, "none of memory_ids is a memory id"),
	       *details = json_object();

	for (size_t i = 0; i < given->n; i++)
		json_object_set_new(details, given->v[i], json_string(malformed_id));
	json_object_set_new(result, "details", details);
	return result;
}

enum hs_rc hs_reflect_expand(
	struct hs_reflection *r, json_t *args, int64_t ceiling, json_t **ret, struct hs_err *err)
{
	struct hs_strs given = hs_reflect_ids_arg(r->pool, args, "memory_ids"), uuids = {0}, good;
	bool document = hs_str_eq(hs_json_str(args, "depth"), "document");
	struct hs_expand_row *rows;
	json_t *list;
	size_t n;

	(void)ceiling;
	if (given.n == 0 || given.n > HS_EXPAND_IDS) {
		*ret = hs_reflect_fault(r->pool, given.n == 0 ? "expand needs memory_ids"
							      : "too many memory_ids in one call");
		return HS_OK;
	}
	good = readable(r->pool, &given, &uuids);
	if (good.n == 0) {
		*ret = all_malformed(r->pool, &given);
		return HS_OK;
	}
	HS_TRY(hs_store_expand(
		r->run->db, r->pool, r->in->bank->bank_no, &good, document, &rows, &n, err));

	*ret = hs_json_keep(r->pool, json_object());
	json_object_set_new(*ret, "results", list = json_array());
	for (size_t i = 0; i < given.n; i++) {
		const struct hs_expand_row *row = row_of(rows, n, uuids.v[i]);

		if (row && !hs_scope_match_tags(&r->tag_scope, &row->tags))
			row = NULL;
		json_array_append_new(list,
			row ? expanded(r, given.v[i], row, document)
			    : refused(given.v[i], uuids.v[i][0] ? unknown_memory : malformed_id));
	}
	json_object_set_new(*ret, "count", json_integer((json_int_t)given.n));
	return HS_OK;
}
