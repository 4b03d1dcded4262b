/*
 * delta_call - new facts into a document, by a model: edit calls with at most one re-ask each.
 *
 * Floor:   engine. Rules: contract mental-models 16.1. Holds no transaction.
 * Budget:  HS_DELTA_INPUT tokens a call. A document over its share shows every section and id;
 *          whole block texts from the end on become "[not shown]". Facts that do not fit make
 *          further calls, each on the document as edited so far; no fact is cut.
 * Errors:  HS_E_REFRESH when nothing usable came; what a model call raised. The reason stands in
 *          the result.
 */
#ifndef HS_ENGINE_DELTA_CALL_H
#define HS_ENGINE_DELTA_CALL_H

#include "engine/delta_ops.h"
#include "engine/run.h"

#define HS_DELTA_INPUT 24000

struct hs_delta_in {
	const struct hs_config *cfg;
	const char *name, *topic;
	int64_t max_tokens; /* of the document */
	const struct hs_document *doc;
	const struct hs_strs *facts; /* lines (hs_delta_fact_line) */
};
struct hs_delta_out {
	struct hs_delta_result result; /* of all calls together */
	const char *reason; /* delta_ops_failed, delta_ops_all_skipped; NULL = it worked */
	size_t settled;     /* calls whose second reply was bad too, but something was usable */
	size_t hidden;      /* blocks not shown, of the call that hid most */
	struct hs_llm_usage usage;
	int64_t *asked_ms; /* how long each model call took, re-asks counted */
	size_t n_asked;
};
/* *ret is filled on failure too: what was skipped, usage, reason. */
HS_MUST enum hs_rc hs_delta_edit(struct hs_run *run, const struct hs_delta_in *in,
	struct hs_delta_out *ret, struct hs_err *err);

/* The document as a call shows it: JSON text of at most so many tokens, every section and id in it.
 * ret_hidden: ids of the blocks whose text is not shown. */
const char *hs_delta_shown(struct hs_pool *pool, const struct hs_document *doc, size_t max_tokens,
	struct hs_strs *ret_hidden);

#endif
