/*
 * model - what can be done with a mental model: create, change, clear, ask for a refresh.
 *
 * Floor:   engine. Rules: contract mental-models 3, 11, 19, 22. HTTP and MCP call the same functions.
 * Network: texts are embedded before a transaction opens; the half of the embedded text that the
 *          caller does not change is read first and compared again under the row lock.
 * Errors:  HS_E_NOT_FOUND, HS_E_CONFLICT (id exists), HS_E_LLM_NONE (400, before anything is stored
 *          or looked up), HS_E_EMBED…, database codes.
 */
#ifndef HS_ENGINE_MODEL_H
#define HS_ENGINE_MODEL_H

#include "engine/run.h"
#include "engine/trigger.h"
#include "store/mental_model.h"

/* Custom reader for field tables: a model id (const char *); "" and null give NULL = generate. */
void hs_model_id_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place);

struct hs_model_new {
	const char *bank_id;
	const char *id; /* NULL = generated */
	const char *name, *source_query;
	struct hs_strs tags;
	int64_t max_tokens;
	const struct hs_trigger *trigger; /* NULL = defaults */
};
/* Bank (made when missing), model and its first refresh in one transaction. */
HS_MUST enum hs_rc hs_model_create(struct hs_run *run, const struct hs_model_new *in,
	const char **ret_id, const char **ret_operation_id, struct hs_err *err);

struct hs_model_patch {
	const char *bank_id, *id;
	const char *name, *source_query; /* NULL = unchanged, as all below */
	const int64_t *max_tokens;
	const struct hs_strs *tags;
	const struct hs_trigger *trigger; /* checked with hs_trigger_patch_shape */
};
HS_MUST enum hs_rc hs_model_patch(
	struct hs_run *run, const struct hs_model_patch *in, struct hs_err *err);
/* Empty the body; the text goes into the history unless it was unwritten. */
HS_MUST enum hs_rc hs_model_clear(
	struct hs_run *run, const char *bank_id, const char *id, struct hs_err *err);
/* Queue an explicit refresh, or join the one that waits. */
HS_MUST enum hs_rc hs_model_refresh(struct hs_run *run, const char *bank_id, const char *id,
	bool full, const char **ret_operation_id, struct hs_err *err);

/* "<name> <content>" as a vector of the present embedder; none without one. Not in a transaction. */
HS_MUST enum hs_rc hs_model_vector(struct hs_run *run, const char *name, const char *content,
	struct hs_mm_vector *ret, struct hs_err *err);
/* Contents of history rows: a version (the old text with based_on and trace of the old answer) and a
 * failed refresh. */
const char *hs_model_version(
	struct hs_pool *pool, const char *content, const char *reflect_response);
const char *hs_model_failure(
	struct hs_pool *pool, const char *outcome, const char *reason, const char *message);
/* Newest entries kept of one kind; 0 = all. */
int64_t hs_model_history_keep(const struct hs_config *cfg);

#endif
