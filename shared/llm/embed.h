/*
 * embed - texts -> vectors: any OpenAI-compatible /embeddings service, hash (built in), none.
 *
 * Floor:   llm. The built-in hash embedder (hashed words, stems, character n-grams) needs no curl and
 *          lives in embed_hash.c, so that programs without libcurl can link it.
 * Shapes:  float32, normalised to length 1; one vector a text, all of the same dimension.
 * Errors:  HS_E_EMBED, HS_E_EMBED_DIM (not retried), HS_E_TIMEOUT, HS_E_CANCELLED.
 */
#ifndef HS_LLM_EMBED_H
#define HS_LLM_EMBED_H

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"
#include "config/config.h"

struct hs_vec {
	const float *v;
	size_t dim;
};
struct hs_embedder;

HS_MUST enum hs_rc hs_embedder_new(struct hs_pool *pool, const struct hs_config *cfg,
	struct hs_embedder **ret, struct hs_err *err);
/* "hash-384", "openai:text-embedding-3-small:1536" …; "" for none. Stored with every vector. */
const char *hs_embedder_tag(const struct hs_embedder *e);
bool hs_embedder_none(const struct hs_embedder *e);
bool hs_embedder_is_hash(const struct hs_embedder *e);
/* query: the query prefix is used instead of the passage one. ret[i] for texts->v[i], in the pool. */
HS_MUST enum hs_rc hs_embed(const struct hs_embedder *e, struct hs_pool *pool,
	const struct hs_strs *texts, bool query, int64_t deadline_us, struct hs_vec *ret,
	struct hs_err *err);

#endif
