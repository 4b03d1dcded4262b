/*
 * prompts - the program hindsight-prompts: one route, the prompt preview (contract reflect B6).
 *
 * Flow:    bank and configuration as the real operation resolves them -> a copy with the settings of
 *          prompts alone -> the one prompt builder over fixed samples -> its blocks as JSON.
 * Never:   a model call, a lock, an operation, an audit entry, a bank that was not there.
 */
#ifndef HS_HANDLERS_PROMPTS_H
#define HS_HANDLERS_PROMPTS_H

#include "config/strategy.h"
#include "prompt/prompt.h"
#include "store/bank.h"
#include "web/route.h"

enum preview_operation { PREVIEW_RETAIN, PREVIEW_CONSOLIDATION, PREVIEW_REFLECT };

struct preview_body {
	struct hs_seen seen;
	int operation; /* enum preview_operation */
	const char *strategy;
};
extern const struct hs_route prompt_routes[];

/* Everything the answer is made from. */
struct preview {
	enum preview_operation operation;
	const struct hs_bank *bank;
	const struct hs_config *bank_cfg; /* the bank's, without a strategy */
	json_t *overrides;                /* the bank's stored ones */
	struct hs_strategy strategy;      /* retain; else only its cfg, the bank's */
	const char *provider;             /* of the operation */
	bool chunks;                      /* retain in mode chunks: nothing is sent */
	struct hs_prompt prompt;
};

/* preview.c */
enum hs_rc preview_post(struct hs_ctx *c, const void *query, const void *body);
/* samples.c: run the builder of the operation over the samples. */
HS_MUST enum hs_rc preview_build(struct hs_ctx *c, struct preview *p, struct hs_err *err);
/* warnings.c: the list "warnings" of the answer. */
void preview_warnings(struct hs_pool *pool, struct hs_out *o, const struct preview *p);

#endif
