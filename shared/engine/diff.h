/*
 * diff - two texts as a unified diff of lines.
 *
 * Floor:   engine; pure.
 * Shapes:  three lines of context, header "--- current" and "+++ preview" without times, no line
 *          break at the end; "" when the lines are equal. Lines end at \n; a last line without one
 *          is a line.
 * Limits:  the shortest script is searched up to HS_DIFF_CHANGES changed lines and HS_DIFF_LINES
 *          lines; beyond, all between the common beginning and the common end counts as changed.
 * Source:  E. Myers, An O(ND) Difference Algorithm and Its Variations, 1986.
 */
#ifndef HS_ENGINE_DIFF_H
#define HS_ENGINE_DIFF_H

#include "base/pool.h"

#define HS_DIFF_CHANGES 1000
#define HS_DIFF_LINES 100000

char *hs_diff_unified(struct hs_pool *pool, const char *current, const char *preview);

#endif
