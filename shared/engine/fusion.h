/*
 * fusion - merge the ranked lists of the arms into one ranking.
 *
 * Floor:   engine; uses base only. Pure: same input gives same output.
 * Shapes:  an arm is a list of hits, best first, no unit twice. The result holds every unit once,
 *          best first; ties keep the order first seen (arms in the order of enum hs_arm).
 * Units:   scores: weighted sum of K = score / best keyword score and S = cosine stretched over all
 *          candidates (one: 1); a missing arm counts 0; without any keyword hit S weighs 1.
 *          rrf: sum of 1 / (60 + rank). Comparable only within one call.
 * Source:  contract retain-recall 4.7.
 */
#ifndef HS_ENGINE_FUSION_H
#define HS_ENGINE_FUSION_H

#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

enum hs_arm { HS_ARM_SEMANTIC, HS_ARM_KEYWORD, HS_ARM__MAX };
enum hs_fusion { HS_FUSE_SCORES, HS_FUSE_RRF, HS_FUSE_ROUND_ROBIN };

struct hs_arm_hit {
	int64_t unit_no;
	double score;
};
struct hs_arm_list {
	struct hs_arm_hit *v;
	size_t n;
};
struct hs_fused {
	int64_t unit_no;
	double score;
	double arm[HS_ARM__MAX]; /* the arm's own score, NaN when it did not return the unit */
};
/* semantic_weight: share of S, 0 … 1 (HS_FUSE_SCORES). below: cosines of keyword hits that the
 * semantic arm did not return, any order; they rank, but are not shown as the arm's score.
 * HS_FUSE_ROUND_ROBIN: each arm's first, each arm's second …; score falls from 1 by rank. */
struct hs_fused *hs_fuse(struct hs_pool *pool, enum hs_fusion how,
	const struct hs_arm_list arms[HS_ARM__MAX], const struct hs_arm_list *below,
	double semantic_weight, size_t *ret_n);

/* The best k of a stream of hits; equal scores: the lower unit number. */
struct hs_best {
	struct hs_arm_hit *v; /* a heap, worst first, until hs_best_sort */
	size_t n, k;
};
struct hs_best hs_best_new(struct hs_pool *pool, size_t k);
void hs_best_offer(struct hs_best *b, int64_t unit_no, double score);
void hs_best_sort(struct hs_best *b); /* best first */
/* Merge sorted lists into one arm, best first. */
struct hs_arm_list hs_best_join(struct hs_pool *pool, const struct hs_best *lists, size_t n);

#endif
