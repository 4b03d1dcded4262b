/*
 * embed_hash - the built-in embedder: hashed stems and character n-grams.
 *
 * Floor:   llm; uses base and text, no curl: programs without libcurl link it.
 * Shapes:  HS_EMBED_HASH_DIM floats of length 1 (all zero for a text without words). Deterministic,
 *          the same on every machine; values change only together with HS_EMBED_HASH_TAG.
 * Rules:   every feature (stem, two neighbouring stems, n-grams of 3 and 4 characters) is hashed to
 *          a few signed places and weighted by its kind and the logarithm of its count.
 *          English whatever the bank's language: n-grams carry the others.
 * Use:     catches spellings and forms that the keyword index misses; it knows no meaning. Fusion
 *          gives it little weight (contract retain-recall 4.7).
 */
#ifndef HS_LLM_EMBED_HASH_H
#define HS_LLM_EMBED_HASH_H

#include <stddef.h>

#define HS_EMBED_HASH_DIM 384
#define HS_EMBED_HASH_TAG "hash-384"

void hs_embed_hash(const char *text, float out[HS_EMBED_HASH_DIM]);

#endif
