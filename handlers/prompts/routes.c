#include "prompts.h"

static const char *const operations[] = {
	[PREVIEW_RETAIN] = "retain",
	[PREVIEW_CONSOLIDATION] = "consolidation",
	[PREVIEW_REFLECT] = "reflect",
	NULL,
};

static const struct hs_field body_fields[] = {
	HS_ENUM(struct preview_body, operation, operations, .def = "retain",
		.doc = "whose prompt to show"),
	HS_STR(struct preview_body, strategy, .flags = HS_NULLABLE,
		.doc = "retain strategy; null = the bank's default one"),
};
static const struct hs_shape body_shape = HS_SHAPE(preview_body, body_fields);

const struct hs_route prompt_routes[] = {
	HS_ROUTE(POST, "/v1/default/banks/{bank_id}/prompts/preview", preview_post,
		.body = &body_shape, .flags = HS_R_ADMIN),
	{.pattern = NULL},
};
