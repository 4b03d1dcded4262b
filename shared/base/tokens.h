/*
 * tokens - how many tokens a text has.
 *
 * Floor:   base. An approximation of o200k_base, deterministic, monotonic in appended text.
 * Errors:  none; invalid bytes count as characters. Special-token literals are ordinary text.
 * Limits:  mean absolute error at most 10 % on texts over 200 tokens, never under 0.85 of the true
 *          count there, every script within 25 % in sum (tests/unit/base/test_tokens.c).
 */
#ifndef HS_BASE_TOKENS_H
#define HS_BASE_TOKENS_H

#include <stddef.h>

#include "base/pool.h"

size_t hs_tokens(const char *s);                      /* NULL = 0 */
size_t hs_tokens_n(const char *s, size_t n_bytes);
/* Bytes of the longest prefix (ending at a character boundary) of at most max_tokens tokens. */
size_t hs_tokens_fit(const char *s, size_t n_bytes, size_t max_tokens);
char *hs_tokens_cut(struct hs_pool *pool, const char *s, size_t max_tokens);

#endif
