#include "read.h"

#include "base/limits.h"
#include "store/document_read.h"

#define BANK "/v1/default/banks/{bank_id}"

static const char *const tag_sources[] = {"memories", "mental_models", NULL};

#define PAGE(T)                                                                                    \
	HS_INT(T, limit, HS_RANGE(0, HS_PAGE_MAX), .flags = HS_CLAMP_MAX, .def = "100",            \
		.doc = "rows of the page"),                                                        \
		HS_INT(T, offset, HS_MIN(0), .def = "0", .doc = "rows to skip")

static const struct hs_field memory_list_fields[] = {
	HS_STR(struct memory_list_query, type, .flags = HS_NULLABLE,
		.doc = "world, experience or observation"),
	HS_STR(struct memory_list_query, q, .flags = HS_NULLABLE,
		.doc = "part of text or context, any case"),
	HS_STR(struct memory_list_query, consolidation_state, .flags = HS_NULLABLE,
		.doc = "failed, pending or done"),
	HS_STR(struct memory_list_query, state, .flags = HS_NULLABLE,
		.doc = "valid or invalidated"),
	HS_STR(struct memory_list_query, document_id, .flags = HS_NULLABLE,
		.doc = "of this document"),
	HS_STR(struct memory_list_query, entity_id, .flags = HS_NULLABLE,
		.doc = "naming this entity"),
	HS_STRS(struct memory_list_query, tags, .flags = HS_REPEATED | HS_NULLABLE,
		.doc = "tags to look for"),
	HS_ENUM(struct memory_list_query, tags_match, hs_tags_match_names, .def = "any",
		.doc = "how tags are compared"),
	HS_ENUM(struct memory_list_query, time_field, hs_memory_time_names, .flags = HS_NULLABLE,
		.doc = "date of the window"),
	HS_STR(struct memory_list_query, start_date, .flags = HS_NULLABLE,
		.doc = "from this moment"),
	HS_STR(struct memory_list_query, end_date, .flags = HS_NULLABLE,
		.doc = "before this moment"),
	PAGE(struct memory_list_query),
};
static const struct hs_shape memory_list_shape = HS_SHAPE(memory_list_query, memory_list_fields);

static const struct hs_field memory_clear_fields[] = {
	HS_STR(struct memory_clear_query, type, .flags = HS_NULLABLE,
		.doc = "only memories of this type"),
};
static const struct hs_shape memory_clear_shape = HS_SHAPE(memory_clear_query, memory_clear_fields);

static const struct hs_field document_list_fields[] = {
	HS_STR(struct document_list_query, q, .flags = HS_NULLABLE,
		.doc = "part of id or text, any case"),
	HS_STRS(struct document_list_query, tags, .flags = HS_REPEATED | HS_NULLABLE,
		.doc = "tags to look for"),
	HS_ENUM(struct document_list_query, tags_match, hs_tags_match_names, .def = "any_strict",
		.doc = "how tags are compared"),
	HS_ENUM(struct document_list_query, time_field, hs_document_time_names,
		.flags = HS_NULLABLE, .doc = "date of the window"),
	HS_STR(struct document_list_query, start_date, .flags = HS_NULLABLE,
		.doc = "from this moment"),
	HS_STR(struct document_list_query, end_date, .flags = HS_NULLABLE,
		.doc = "before this moment"),
	PAGE(struct document_list_query),
};
static const struct hs_shape document_list_shape =
	HS_SHAPE(document_list_query, document_list_fields);

static const struct hs_field chunk_list_fields[] = {
	HS_INT(struct page_query, limit, HS_RANGE(1, 1000), .def = "100",
		.doc = "rows of the page"),
	HS_INT(struct page_query, offset, HS_MIN(0), .def = "0", .doc = "rows to skip"),
};
static const struct hs_shape chunk_list_shape = HS_SHAPE(page_query, chunk_list_fields);

static const struct hs_field page_fields[] = {PAGE(struct page_query)};
static const struct hs_shape page_shape = HS_SHAPE(page_query, page_fields);

static const struct hs_field tag_list_fields[] = {
	HS_STR(struct tag_list_query, q, .flags = HS_NULLABLE,
		.doc = "whole tag, any case, * = any run"),
	HS_ENUM(struct tag_list_query, source, tag_sources, .def = "memories", .doc = "whose tags"),
	PAGE(struct tag_list_query),
};
static const struct hs_shape tag_list_shape = HS_SHAPE(tag_list_query, tag_list_fields);

const struct hs_route hs_memory_read_routes[] = {
	HS_ROUTE(GET, BANK "/memories/list", memory_list, .query = &memory_list_shape),
	HS_ROUTE(GET, BANK "/memories/{memory_id}", memory_get),
	HS_ROUTE(DELETE, BANK "/memories", memory_clear, .query = &memory_clear_shape,
		.flags = HS_R_NO_BODY),
	HS_ROUTE(GET, BANK "/documents", document_list, .query = &document_list_shape),
	HS_ROUTE(GET, BANK "/documents/{document_id}", document_get),
	HS_ROUTE(DELETE, BANK "/documents/{document_id}", document_delete),
	HS_ROUTE(GET, BANK "/documents/{document_id}/chunks", document_chunks,
		.query = &chunk_list_shape),
	HS_ROUTE(GET, "/v1/default/chunks/{chunk_id}", chunk_get),
	HS_ROUTE(GET, BANK "/entities", entity_list, .query = &page_shape),
	HS_ROUTE(GET, BANK "/entities/{entity_id}", entity_get),
	HS_ROUTE(GET, BANK "/tags", tag_list, .query = &tag_list_shape),
	{0},
};
