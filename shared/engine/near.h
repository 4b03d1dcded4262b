/*
 * near - do two statements say the same? For folding repeated facts without a model.
 *
 * Floor:   engine; pure. Uses text/words.
 * Rules:   compared are the sets of stems without stop words. Near means: the same set, or one holds
 *          the other and at least four fifths of its own words are shared (something was added, nothing
 *          replaced). Names, numbers and negations must be the same, in the same order.
 * Owns:    gists live in the pool; comparing two costs one walk over both.
 */
#ifndef HS_ENGINE_NEAR_H
#define HS_ENGINE_NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

struct hs_gist {
	uint64_t *words;       /* sorted set */
	size_t n_words;
	uint64_t *firm;        /* names, numbers, negations, in order of first appearance */
	size_t n_firm;
};
struct hs_gist hs_gist_of(struct hs_pool *pool, const char *text);
bool hs_gist_near(const struct hs_gist *a, const struct hs_gist *b);
/* Shared share of the larger set, 0 to 1; the firm words are not looked at. */
double hs_gist_overlap(const struct hs_gist *a, const struct hs_gist *b);

#endif
