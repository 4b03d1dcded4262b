/*
 * recall_run - what the parts of recall share; not for callers outside engine/recall*.c.
 *
 * Floor:   engine. arms -> fusion -> load and score -> select -> extras.
 */
#ifndef HS_ENGINE_RECALL_RUN_H
#define HS_ENGINE_RECALL_RUN_H

#include "engine/fusion.h"
#include "engine/recall.h"
#include "store/memory.h"

/* A candidate with its stored row. */
struct recall_candidate {
	struct hs_unit_row row;
	enum hs_fact_type type;
	double base, final;
	double arm[HS_ARM__MAX];
};
struct recall {
	struct hs_run *run;
	const struct hs_recall_in *in;
	struct hs_recall_out *out;
	int64_t bank_no;
	unsigned facts; /* types asked for */
	size_t per_arm; /* T: most hits of one arm and type */
	struct hs_arm_list arms[HS_ARM__MAX];
	struct hs_arm_list below;   /* cosines of keyword hits below the vector arm's floor */
	struct recall_candidate *v; /* best first */
	size_t n;
	size_t kept; /* the first 2T */
};

/* recall_arms.c: fill arms. */
HS_MUST enum hs_rc hs_recall_arms(struct recall *r, struct hs_err *err);
/* recall_rank.c: fuse, load, score, sort. */
HS_MUST enum hs_rc hs_recall_rank(struct recall *r, struct hs_err *err);
/* recall_extra.c: entities and sources of the hits, chunks of the kept ones. */
HS_MUST enum hs_rc hs_recall_extras(struct recall *r, struct hs_err *err);
/* recall.c: a stored row as a hit. */
struct hs_hit hs_recall_hit(const struct recall *r, const struct hs_unit_row *row);

#endif
