/*
 * memory_view - memories as clients see them: one with its sources, and rows of the list.
 *
 * Floor:   engine. Rules: contract retain-recall 3.1. HTTP and MCP show them alike.
 */
#ifndef HS_ENGINE_MEMORY_VIEW_H
#define HS_ENGINE_MEMORY_VIEW_H

#include "json/out.h"
#include "store/memory_read.h"

void hs_memory_put_listed(struct hs_pool *pool, struct hs_out *o, const char *bank_id,
	const struct hs_memory_item *m);
/* HS_E_BAD_REQUEST for an id that is no UUID, HS_E_NOT_FOUND for one that is not there. */
HS_MUST enum hs_rc hs_memory_put(struct hs_db *db, struct hs_pool *pool, struct hs_out *o,
	const char *bank_id, const char *memory_id, struct hs_err *err);

#endif
