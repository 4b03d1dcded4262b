/*
 * recall_view - the answer of a recall as JSON.
 *
 * Floor:   engine; pure. Rules: contract retain-recall 4.2, mcp A9.
 */
#ifndef HS_ENGINE_RECALL_VIEW_H
#define HS_ENGINE_RECALL_VIEW_H

#include "engine/recall.h"
#include "json/out.h"

enum hs_recall_form {
	HS_RECALL_HTTP,
	HS_RECALL_MCP, /* fact_type beside type, chunk_text, no attachments */
};
void hs_recall_put(struct hs_out *o, enum hs_recall_form form, const struct hs_recall_in *in,
	const struct hs_recall_out *r);

#endif
