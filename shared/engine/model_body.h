/*
 * model_body - a new mental model and a change of one as clients send them.
 *
 * Floor:   engine; pure. Rules: contract mental-models 3. HTTP and MCP check by the same tables.
 */
#ifndef HS_ENGINE_MODEL_BODY_H
#define HS_ENGINE_MODEL_BODY_H

#include "engine/model.h"

struct hs_model_body {
	struct hs_seen seen;
	const char *id, *name, *source_query;
	struct hs_strs tags;
	int64_t max_tokens;
	struct hs_trigger *trigger;
};
/* Create: all but id, tags, max_tokens and trigger must be there. Change: null leaves a member. */
extern const struct hs_shape hs_model_create_shape, hs_model_change_shape;

struct hs_model_new hs_model_new_of(const char *bank_id, const struct hs_model_body *b);
/* b was checked with hs_model_change_shape and must outlive the result. */
struct hs_model_patch hs_model_patch_of(
	const char *bank_id, const char *id, const struct hs_model_body *b);

#endif
