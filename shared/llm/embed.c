#include "llm/embed.h"

#include <string.h>

#include "base/tokens.h"
#include "llm/embed_hash.h"
#include "llm/embed_service.h"

enum kind { EMBED_NONE, EMBED_HASH, EMBED_SERVICE };

struct hs_embedder {
	enum kind kind;
	const char *tag, *query_prefix, *passage_prefix;
	int64_t max_tokens;
	struct hs_embed_service service;
};

static enum hs_rc open_service(struct hs_pool *pool, const struct hs_config *cfg,
	struct hs_embedder *e, struct hs_err *err)
{
	HS_TRY(hs_embed_service_read(pool, cfg, &e->service, err));
	e->kind = EMBED_SERVICE;
	e->tag = hs_utf8_cut(pool,
		e->service.dimensions > 0 ? hs_pool_printf(pool, "openai:%s:%lld", e->service.model,
						    (long long)e->service.dimensions)
					  : hs_pool_printf(pool, "openai:%s", e->service.model),
		255);
	return HS_OK;
}

enum hs_rc hs_embedder_new(struct hs_pool *pool, const struct hs_config *cfg,
	struct hs_embedder **ret, struct hs_err *err)
{
	const char *provider = hs_cfg_str(cfg, HS_S_embeddings_provider);
	struct hs_embedder *e = HS_NEW(pool, struct hs_embedder);

	e->tag = "";
	e->query_prefix = hs_cfg_str(cfg, HS_S_embeddings_query_prefix);
	e->passage_prefix = hs_cfg_str(cfg, HS_S_embeddings_passage_prefix);
	e->max_tokens = hs_cfg_int(cfg, HS_S_embeddings_max_input_tokens);
	if (hs_str_eq(provider, "openai")) {
		HS_TRY(open_service(pool, cfg, e, err));
	} else if (hs_str_eq(provider, "hash")) {
		e->kind = EMBED_HASH;
		e->tag = HS_EMBED_HASH_TAG;
	} else if (!hs_str_eq(provider, "none")) {
		return hs_fail(
			err, HS_E_CONFIG, "embeddings_provider %s is not available yet", provider);
	}
	*ret = e;
	return HS_OK;
}

const char *hs_embedder_tag(const struct hs_embedder *e)
{
	return e->tag;
}

bool hs_embedder_none(const struct hs_embedder *e)
{
	return e->kind == EMBED_NONE;
}

bool hs_embedder_is_hash(const struct hs_embedder *e)
{
	return e->kind == EMBED_HASH;
}

static void embed_hashed(struct hs_pool *pool, const struct hs_strs *texts, struct hs_vec *ret)
{
	for (size_t i = 0; i < texts->n; i++) {
		float *v = HS_NEW_ARRAY(pool, float, HS_EMBED_HASH_DIM);

		hs_embed_hash(texts->v[i], v);
		ret[i] = (struct hs_vec){v, HS_EMBED_HASH_DIM};
	}
}

/* Prefix and cut; an empty text becomes a blank, as services refuse empty ones. */
static struct hs_strs prepare(
	const struct hs_embedder *e, struct hs_pool *pool, const struct hs_strs *texts, bool query)
{
	const char *prefix = query ? e->query_prefix : e->passage_prefix;
	struct hs_strs out = {0};

	for (size_t i = 0; i < texts->n; i++) {
		const char *text = hs_str_empty(prefix)
					   ? texts->v[i]
					   : hs_pool_printf(pool, "%s%s", prefix, texts->v[i]);

		/* a token has at least one byte: short texts need no counting */
		if (e->max_tokens > 0 && strlen(text) > (size_t)e->max_tokens)
			text = hs_tokens_cut(pool, text, (size_t)e->max_tokens);
		hs_strs_add(pool, &out, *text ? text : " ");
	}
	return out;
}

enum hs_rc hs_embed(const struct hs_embedder *e, struct hs_pool *pool, const struct hs_strs *texts,
	bool query, int64_t deadline_us, struct hs_vec *ret, struct hs_err *err)
{
	struct hs_strs ready;

	if (!texts->n)
		return HS_OK;
	if (e->kind == EMBED_NONE)
		return hs_fail(err, HS_E_EMBED, "no embedder is configured");
	ready = prepare(e, pool, texts, query);
	if (e->kind == EMBED_SERVICE)
		return hs_embed_service_call(&e->service, pool, &ready, deadline_us, ret, err);
	embed_hashed(pool, &ready, ret);
	return HS_OK;
}
