#include "memories.h"

#include <math.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/recall.h"
#include "json/json.h"

/* ---- from the body to the engine ---- */

static struct hs_scope scope_of(const struct recall_body *b)
{
	struct hs_scope s = hs_scope_all();

	s.tags = b->tags;
	s.match = (enum hs_tags_match)b->tags_match;
	s.facts = b->types.facts;
	if (b->tag_groups) {
		s.has_groups = true;
		s.groups = b->tag_groups->v;
		s.n_groups = b->tag_groups->n;
	}
	return s;
}

static double floor_of(const struct min_scores *m, const char *name, double v)
{
	return m && hs_given(&min_scores_shape, m, name) ? v : NAN;
}

static void set_floors(struct hs_recall_in *in, const struct min_scores *m)
{
	in->min_semantic = floor_of(m, "semantic", m ? m->semantic : 0);
	in->min_keyword = floor_of(m, "keyword", m ? m->keyword : 0);
	in->min_reranker = floor_of(m, "reranker", m ? m->reranker : 0);
	in->min_final = floor_of(m, "final", m ? m->final : 0);
}

static void set_include(struct hs_recall_in *in, const struct recall_include *inc)
{
	in->with_entities = !inc || !hs_was_null(&recall_include_shape, inc, "entities");
	if (inc && inc->chunks) {
		in->with_chunks = true;
		in->chunk_tokens = inc->chunks->max_tokens;
	}
	if (inc && inc->source_facts) {
		in->with_source_facts = true;
		in->source_tokens = inc->source_facts->max_tokens;
		in->source_tokens_each = inc->source_facts->max_tokens_per_observation;
	}
}

static struct hs_recall_in input(const struct recall_body *b, const struct hs_bank *bank,
	const struct hs_config *cfg, int64_t query_us)
{
	struct hs_recall_in in = hs_recall_defaults(bank, cfg, b->query);

	in.scope = scope_of(b);
	in.budget = recall_budgets[b->budget];
	in.max_tokens = b->max_tokens;
	in.query_us = query_us;
	if (hs_given(&recall_body_shape, b, "prefer_observations"))
		in.prefer_observations = b->prefer_observations;
	set_floors(&in, b->min_scores);
	set_include(&in, b->include);
	return in;
}

/* ---- the answer ---- */

static void out_score(struct hs_out *o, const char *key, double v)
{
	if (isnan(v))
		hs_out_null(o, key);
	else
		hs_out_num(o, key, v);
}

static void out_scores(struct hs_out *o, const struct hs_score *s)
{
	hs_out_open(o, "scores", '{');
	hs_out_num(o, "final", s->final);
	hs_out_null(o, "reranker");
	out_score(o, "semantic", s->semantic);
	out_score(o, "keyword", s->keyword);
	hs_out_close(o, '}');
}

static void out_list(struct hs_out *o, const char *key, const struct hs_strs *list)
{
	if (list->n)
		hs_out_strs(o, key, list);
	else
		hs_out_null(o, key);
}

/* A result, or with scored false a source fact. */
static void out_hit(struct hs_out *o, const char *key, const struct hs_hit *h, bool scored)
{
	hs_out_open(o, key, '{');
	hs_out_str(o, "id", h->id);
	hs_out_str(o, "text", h->text);
	hs_out_str(o, "type", hs_fact_type_names[h->type]);
	out_list(o, "entities", &h->entities);
	hs_out_str(o, "context", h->context);
	hs_out_time(o, "occurred_start", h->occurred_start_us);
	hs_out_time(o, "occurred_end", h->occurred_end_us);
	hs_out_time(o, "mentioned_at", h->mentioned_us);
	hs_out_str(o, "document_id", h->document_id);
	hs_out_raw(o, "metadata", h->metadata, "null");
	hs_out_str(o, "chunk_id", h->chunk_id);
	if (scored)
		hs_out_strs(o, "tags", &h->tags);
	else
		out_list(o, "tags", &h->tags);
	out_list(o, "source_fact_ids", &h->source_fact_ids);
	if (scored)
		out_scores(o, &h->score);
	else
		hs_out_null(o, "scores");
	hs_out_null(o, "attachments");
	hs_out_close(o, '}');
}

static void out_entities(struct hs_out *o, const struct hs_recall_out *r)
{
	if (!r->n_entities) {
		hs_out_null(o, "entities");
		return;
	}
	hs_out_open(o, "entities", '{');
	for (size_t i = 0; i < r->n_entities; i++) {
		hs_out_open(o, r->entities[i].canonical_name, '{');
		hs_out_str(o, "entity_id", r->entities[i].entity_id);
		hs_out_str(o, "canonical_name", r->entities[i].canonical_name);
		hs_out_open(o, "observations", '[');
		hs_out_close(o, ']');
		hs_out_close(o, '}');
	}
	hs_out_close(o, '}');
}

static void out_chunks(struct hs_out *o, const struct hs_recall_out *r)
{
	hs_out_open(o, "chunks", '{');
	for (size_t i = 0; i < r->n_chunks; i++) {
		const struct hs_recall_chunk *k = &r->chunks[i];

		hs_out_open(o, k->chunk_id, '{');
		hs_out_str(o, "id", k->chunk_id);
		hs_out_str(o, "text", k->text);
		hs_out_int(o, "chunk_index", k->chunk_index);
		hs_out_bool(o, "truncated", k->truncated);
		hs_out_null(o, "attachments");
		hs_out_close(o, '}');
	}
	hs_out_close(o, '}');
}

static void answer(struct hs_ctx *c, const struct hs_recall_in *in, const struct hs_recall_out *r)
{
	struct hs_out o = hs_reply(c);

	hs_out_open(&o, NULL, '{');
	hs_out_open(&o, "results", '[');
	for (size_t i = 0; i < r->n_hits; i++)
		out_hit(&o, NULL, &r->hits[i], true);
	hs_out_close(&o, ']');
	hs_out_null(&o, "trace");
	out_entities(&o, r);
	if (in && in->with_chunks)
		out_chunks(&o, r);
	else
		hs_out_null(&o, "chunks");
	if (in && in->with_source_facts) {
		hs_out_open(&o, "source_facts", '{');
		for (size_t i = 0; i < r->n_sources; i++)
			out_hit(&o, r->sources[i].id, &r->sources[i], false);
		hs_out_close(&o, '}');
		hs_out_bool(&o, "source_facts_truncated", r->sources_truncated);
	} else {
		hs_out_null(&o, "source_facts");
		hs_out_null(&o, "source_facts_truncated");
	}
	hs_out_close(&o, '}');
}

/* ---- the call ---- */

static enum hs_rc failed(enum hs_rc rc, struct hs_err *err)
{
	switch (rc) {
	case HS_E_CANCELLED:
		return hs_fail(
			err, HS_E_CLIENT_GONE, "the client closed the connection during recall");
	case HS_E_DB_TIMEOUT:
	case HS_E_TIMEOUT:
		return hs_fail(err, HS_E_TIMEOUT,
			"Request timed out while searching memories. Try a shorter or more specific query.");
	default:
		return rc;
	}
}

static enum hs_rc recall(struct hs_ctx *c, const struct recall_body *b, int64_t query_us)
{
	struct hs_run run = memories_run(c);
	struct hs_recall_out out;
	struct hs_recall_in in;
	struct hs_config *cfg;
	struct hs_bank bank;
	enum hs_rc rc;

	HS_TRY(hs_bank_find(c->db, c->pool, c->bank_id, &bank, &c->err));
	HS_TRY(hs_bank_config(c->pool, c->cfg, &bank, &cfg, &c->err));
	in = input(b, &bank, cfg, query_us);
	rc = hs_recall(&run, &in, &out, &c->err);
	if (rc != HS_OK)
		return failed(rc, &c->err);
	answer(c, &in, &out);
	return HS_OK;
}

enum hs_rc recall_post(struct hs_ctx *c, const void *query, const void *body)
{
	const struct recall_body *b = body;
	int64_t started_us = hs_mono_us(), query_us = HS_TIME_NONE;
	enum hs_rc rc;

	(void)query;
	if (hs_groups_fuzzy(b->tag_groups))
		return hs_fail(&c->err, HS_E_NOT_IMPLEMENTED,
			"fuzzy tag matching is not implemented; use resolve 'exact'");
	if (b->query_timestamp && !hs_time_parse(b->query_timestamp, &query_us))
		return hs_fail(&c->err, HS_E_BAD_REQUEST,
			"Invalid query_timestamp format. Expected an ISO 8601 date-time, for example 2024-01-15T10:30:00Z");
	if (b->types.nothing) {
		answer(c, NULL, &(struct hs_recall_out){0});
		return HS_OK;
	}
	rc = recall(c, b, query_us);
	if (rc != HS_E_CLIENT_GONE)
		hs_metrics_operation("recall", "api", recall_budgets[b->budget],
			hs_pool_printf(c->pool, "%lld", (long long)b->max_tokens), rc == HS_OK,
			hs_mono_us() - started_us);
	return rc;
}
