/*
 * consolidate - facts -> observations, one round of a bank.
 *
 * Floor:   engine. Rules: contract retain-recall 5. One reply's effects are one transaction.
 * Scopes:  every fact is consolidated under its own tags (scope "combined"), whatever observation
 *          scopes are stored with it: the other scopes come later. Groups run one after the other.
 */
#ifndef HS_ENGINE_CONSOLIDATE_H
#define HS_ENGINE_CONSOLIDATE_H

#include "engine/run.h"

struct hs_consolidate_in {
	const struct hs_bank *bank;
	json_t *scopes;                   /* NULL = all facts */
	int64_t round;                    /* from 1 */
	bool manual;
};
/* Runs one job. *ret_result: the counts for result_metadata; a follow-up round, when the limit was
 * reached, is submitted inside. New reference in *ret_result. */
HS_MUST enum hs_rc hs_consolidate_run(struct hs_run *run, const struct hs_consolidate_in *in, json_t **ret_result, struct hs_err *err);

#endif
