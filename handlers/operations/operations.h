/*
 * operations - routes of the queue: list, one (with ?wait=), cancel, retry, delete.
 *
 * Floor:   handlers. Rules: contract banks 8. Ids are taken in any spelling of a UUID and echoed as
 *          they came; rows are looked up by the normal form.
 */
#ifndef HS_OPERATIONS_H
#define HS_OPERATIONS_H

#include "json/check.h"
#include "web/route.h"

struct op_list_query {
	struct hs_seen seen;
	const char *status, *type;
	int64_t limit, offset;
	bool exclude_parents;
};
struct op_get_query {
	struct hs_seen seen;
	bool include_payload;
	int64_t wait;
};

hs_route_fn op_list, op_get, op_cancel, op_retry, op_delete;
hs_format_fn op_id_format;
hs_long_fn op_waits;

extern const struct hs_route op_routes[];

#endif
