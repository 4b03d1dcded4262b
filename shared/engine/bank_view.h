/*
 * bank_view - banks as clients see them: the profile and rows of the list.
 *
 * Floor:   engine. Rules: contract banks 3. HTTP and MCP show them alike; the older name of the
 *          mission, background, is HTTP's only.
 */
#ifndef HS_ENGINE_BANK_VIEW_H
#define HS_ENGINE_BANK_VIEW_H

#include "json/out.h"
#include "store/bank_write.h"

HS_MUST enum hs_rc hs_bank_put_profile(struct hs_pool *pool, const struct hs_config *server,
	struct hs_out *o, const struct hs_bank *b, bool background, struct hs_err *err);
HS_MUST enum hs_rc hs_bank_put_listed(struct hs_pool *pool, const struct hs_config *server,
	struct hs_out *o, const struct hs_bank_listed *row, struct hs_err *err);

#endif
