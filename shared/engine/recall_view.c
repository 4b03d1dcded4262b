#include "engine/recall_view.h"

#include <math.h>

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
static void out_hit(struct hs_out *o, enum hs_recall_form form, const char *key,
	const struct hs_hit *h, bool scored)
{
	hs_out_open(o, key, '{');
	hs_out_str(o, "id", h->id);
	hs_out_str(o, "text", h->text);
	hs_out_str(o, "type", hs_fact_type_names[h->type]);
	if (form == HS_RECALL_MCP)
		hs_out_str(o, "fact_type", hs_fact_type_names[h->type]);
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
	if (form == HS_RECALL_HTTP)
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

static void out_chunk(struct hs_out *o, enum hs_recall_form form, const struct hs_recall_chunk *k)
{
	hs_out_open(o, k->chunk_id, '{');
	if (form == HS_RECALL_HTTP)
		hs_out_str(o, "id", k->chunk_id);
	hs_out_str(o, form == HS_RECALL_HTTP ? "text" : "chunk_text", k->text);
	hs_out_int(o, "chunk_index", k->chunk_index);
	hs_out_bool(o, "truncated", k->truncated);
	if (form == HS_RECALL_HTTP)
		hs_out_null(o, "attachments");
	hs_out_close(o, '}');
}

static void out_chunks(struct hs_out *o, enum hs_recall_form form, const struct hs_recall_out *r)
{
	hs_out_open(o, "chunks", '{');
	for (size_t i = 0; i < r->n_chunks; i++)
		out_chunk(o, form, &r->chunks[i]);
	hs_out_close(o, '}');
}

static void out_sources(struct hs_out *o, enum hs_recall_form form, const struct hs_recall_out *r)
{
	hs_out_open(o, "source_facts", '{');
	for (size_t i = 0; i < r->n_sources; i++)
		out_hit(o, form, r->sources[i].id, &r->sources[i], false);
	hs_out_close(o, '}');
	hs_out_bool(o, "source_facts_truncated", r->sources_truncated);
}

void hs_recall_put(struct hs_out *o, enum hs_recall_form form, const struct hs_recall_in *in,
	const struct hs_recall_out *r)
{
	hs_out_open(o, NULL, '{');
	hs_out_open(o, "results", '[');
	for (size_t i = 0; i < r->n_hits; i++)
		out_hit(o, form, NULL, &r->hits[i], true);
	hs_out_close(o, ']');
	hs_out_null(o, "trace");
	out_entities(o, r);
	if (in->with_chunks)
		out_chunks(o, form, r);
	else
		hs_out_null(o, "chunks");
	if (in->with_source_facts) {
		out_sources(o, form, r);
	} else {
		hs_out_null(o, "source_facts");
		hs_out_null(o, "source_facts_truncated");
	}
	hs_out_close(o, '}');
}
