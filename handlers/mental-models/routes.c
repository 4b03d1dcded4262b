#include "models.h"

#define BASE "/v1/default/banks/{bank_id}/mental-models"

static const char *const refresh_modes[] = {"full", NULL};

static const struct hs_field list_fields[] = {
	HS_STRS(struct mm_list_query, tags, .flags = HS_REPEATED,
		.doc = "only models with these tags"),
	HS_ENUM(struct mm_list_query, tags_match, hs_list_match_names, .def = "any",
		.doc = "any: one tag in common, all: every tag, exact: the same set"),
	HS_ENUM(struct mm_list_query, detail, hs_detail_names, .def = "metadata",
		.doc = "how much of each model is sent"),
	HS_INT(struct mm_list_query, limit, HS_RANGE(1, 1000), .def = "100", .doc = "page size"),
	HS_INT(struct mm_list_query, offset, HS_MIN(0), .def = "0",
		.doc = "models left out before the page"),
	HS_BOOL(struct mm_list_query, exclude_knowledge_pages, .def = "false",
		.doc = "leave out the models behind knowledge pages"),
};
static const struct hs_shape list_shape = HS_SHAPE(mm_list_query, list_fields);

static const struct hs_field get_fields[] = {
	HS_ENUM(struct mm_get_query, detail, hs_detail_names, .def = "full",
		.doc = "how much is sent"),
};
static const struct hs_shape get_shape = HS_SHAPE(mm_get_query, get_fields);

static const struct hs_field refresh_fields[] = {
	HS_ENUM(struct mm_refresh, mode, refresh_modes, .flags = HS_NULLABLE,
		.doc = "full rebuilds a delta model this once"),
};
static const struct hs_shape refresh_shape = HS_SHAPE(mm_refresh, refresh_fields);

const struct hs_route mm_routes[] = {
	{HS_GET, BASE, mm_list, .query = &list_shape},
	{HS_POST, BASE, mm_create, .body = &hs_model_create_shape},
	{HS_GET, BASE "/{mental_model_id}", mm_get, .query = &get_shape},
	{HS_PATCH, BASE "/{mental_model_id}", mm_patch, .body = &hs_model_change_shape},
	{HS_DELETE, BASE "/{mental_model_id}", mm_delete, .query = NULL},
	{HS_POST, BASE "/{mental_model_id}/refresh", mm_refresh, .body = &refresh_shape,
		.flags = HS_R_BODY_OPTIONAL},
	{HS_POST, BASE "/{mental_model_id}/dry-run-refresh", mm_dry_run,
		.flags = HS_R_LONG | HS_R_READ, .long_name = "dry_run_refresh"},
	{HS_POST, BASE "/{mental_model_id}/clear", mm_clear, .query = NULL},
	{HS_GET, BASE "/{mental_model_id}/history", mm_history, .query = NULL},
	{.pattern = NULL},
};
