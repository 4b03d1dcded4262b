#include "operations.h"

#define BASE "/v1/default/banks/{bank_id}/operations"

static const struct hs_field list_fields[] = {
	HS_STR(struct op_list_query, status, .flags = HS_NULLABLE,
		.doc = "only operations in this state"),
	HS_STR(struct op_list_query, type, .flags = HS_NULLABLE,
		.doc = "only operations of this type"),
	HS_INT(struct op_list_query, limit, HS_RANGE(1, 100), .def = "20", .doc = "page size"),
	HS_INT(struct op_list_query, offset, HS_MIN(0), .def = "0",
		.doc = "operations left out before the page"),
	HS_BOOL(struct op_list_query, exclude_parents, .def = "false",
		.doc = "leave out the parents of batches"),
};
static const struct hs_shape list_shape = HS_SHAPE(op_list_query, list_fields);

static const struct hs_field get_fields[] = {
	HS_BOOL(struct op_get_query, include_payload, .def = "false",
		.doc = "send what was submitted, too"),
	HS_INT(struct op_get_query, wait, HS_RANGE(0, 60), .def = "0",
		.doc = "hold the answer until the operation has ended, for at most so many seconds"),
};
static const struct hs_shape get_shape = HS_SHAPE(op_get_query, get_fields);

bool op_waits(const struct hs_config *cfg, const void *query, const void *body)
{
	(void)cfg;
	(void)body;
	return ((const struct op_get_query *)query)->wait > 0;
}

const struct hs_route op_routes[] = {
	{HS_GET, BASE, op_list, .query = &list_shape},
	{HS_GET, BASE "/{operation_id}", op_get, .query = &get_shape, .flags = HS_R_LONG,
		.format = op_id_format, .long_call = op_waits},
	{HS_DELETE, BASE "/{operation_id}", op_cancel, .format = op_id_format},
	{HS_POST, BASE "/{operation_id}/retry", op_retry, .format = op_id_format},
	{HS_DELETE, BASE "/{operation_id}/delete", op_delete, .format = op_id_format},
	{.pattern = NULL},
};
