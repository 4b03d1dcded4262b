/*
 * reflect - the program hindsight-reflect: one route.
 *
 * Rules:   contract reflect A2, A3, A6, A18. Keys with a null value are left out of this answer.
 */
#ifndef HS_HANDLERS_REFLECT_H
#define HS_HANDLERS_REFLECT_H

#include "engine/reflect_body.h"
#include "web/route.h"

/* What the threads share: read-only after the start. */
struct reflect_data {
	struct hs_llm *llm;
	struct hs_embedder *embedder;
};

extern const struct hs_route reflect_routes[];

enum hs_rc reflect_post(struct hs_ctx *c, const void *query, const void *body);

#endif
