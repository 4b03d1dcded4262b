/*
 * consolidate_run - what the parts of consolidation share; inside only.
 *
 * Floor:   engine. consolidate.c picks facts and batches, consolidate_pass.c serves one batch (look-up,
 *          call, halving, second looks), consolidate_plan.c reads a reply (pure), consolidate_write.c
 *          writes a plan in one transaction.
 */
#ifndef HS_ENGINE_CONSOLIDATE_RUN_H
#define HS_ENGINE_CONSOLIDATE_RUN_H

#include "engine/consolidate.h"
#include "store/memory.h"

struct consolidation {
	struct hs_run *run;
	const struct hs_bank *bank;
	struct hs_config *cfg;
	int64_t embedder_no;           /* 0 = no vectors */
	/* counts of the result */
	int64_t processed, created, updated, merged, deleted, actions, skipped, failed, batch_failures, unresolved;
};

/* Facts of one call, oldest first; all of one scope. */
struct batch {
	const struct hs_unit_row *facts;
	size_t n;
	struct hs_strs scope;          /* tags of the observations */
};

/* An observation shown to the call. */
struct shown {
	int64_t unit_no;
	const char *id, *text;
};

/* ---- the plan ---- */

/* Indexes into batch.facts, each once. */
struct fact_set {
	size_t *v;
	size_t n;
};
struct plan_update {
	size_t shown;                  /* index */
	const char *text;              /* NULL: evidence only (a folded create) */
	const char *flat;              /* the text with white space squeezed */
	struct fact_set facts;
};
struct plan_create {
	const char *text, *flat;
	struct fact_set facts;
};
struct plan_delete {
	size_t shown;
	int64_t into;                  /* index of the shown observation that takes its sources, -1 = none */
	bool requeue;                  /* a target was named but is not usable */
};
struct plan {
	struct plan_update *updates;
	size_t n_updates;
	struct plan_create *creates;
	size_t n_creates;
	struct plan_delete *deletes;
	size_t n_deletes;
	int64_t folds;                 /* creates that became evidence of something else */
	int64_t unresolved;            /* actions dropped: no source, no text, unknown target */
	int64_t over;                  /* creates cut for want of free slots */
};
/* Reads {creates, updates, deletes} leniently. free_slots -1 = no limit. */
void hs_plan_read(struct hs_pool *pool, json_t *actions, const struct batch *b, const struct shown *shown,
	size_t n_shown, int64_t free_slots, struct plan *ret);
/* The only id in the list within two edits of `id`; -1 when none or several are. Exact ones win. */
int64_t hs_id_near(const char *id, const char *const *ids, size_t n);

/* ---- the writes ---- */

struct outcome {
	bool discarded;                /* a fact was edited meanwhile: nothing was written */
	bool *acted;                   /* for each fact of the batch: cited by an applied action */
	bool *gone;                    /* deleted meanwhile */
};
/* One transaction. Facts acted on are marked consolidated, a fact alone in its batch always. */
HS_MUST enum hs_rc hs_plan_write(struct consolidation *c, const struct batch *b, const struct shown *shown,
	const struct plan *p, struct outcome *ret, struct hs_err *err);
/* Mark the facts as failed. */
HS_MUST enum hs_rc hs_consolidation_fail(struct consolidation *c, const struct batch *b, struct hs_err *err);

/* A batch with all its looks and halves. */
HS_MUST enum hs_rc hs_consolidation_pass(struct consolidation *c, const struct batch *b, struct hs_err *err);

#endif
