/*
 * operation_view - operations as clients see them: one, healed on reading, and rows of a list.
 *
 * Floor:   engine. Rules: contract banks 8. HTTP and MCP show them alike.
 */
#ifndef HS_ENGINE_OPERATION_VIEW_H
#define HS_ENGINE_OPERATION_VIEW_H

#include "json/out.h"
#include "store/operation.h"

bool hs_operation_open(const struct hs_operation *op);
/* Reads it; a waiting parent whose children have all ended is ended first. id in normal form. */
HS_MUST enum hs_rc hs_operation_read_one(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *id, bool payload, struct hs_operation *ret, struct hs_err *err);
void hs_operation_put_listed(struct hs_pool *pool, struct hs_out *o, const struct hs_operation *op);
/* The declared members, in one order for found and missing operations; op NULL = missing. id as the
 * client wrote it. */
HS_MUST enum hs_rc hs_operation_put(struct hs_db *db, struct hs_pool *pool, struct hs_out *o,
	const char *id, const struct hs_operation *op, bool payload, struct hs_err *err);

#endif
