#include "memories.h"

#include "engine/recall_view.h"

enum hs_rc recall_post(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_run run = memories_run(c);
	struct hs_recall_out out;
	struct hs_recall_in in;
	struct hs_out o;

	(void)query;
	HS_TRY(hs_recall_call(&run, c->bank_id, body, &in, &out, &c->err));
	o = hs_reply(c);
	hs_recall_put(&o, HS_RECALL_HTTP, &in, &out);
	return HS_OK;
}
