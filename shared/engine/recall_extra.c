#include <string.h>

#include "base/tokens.h"
#include "engine/recall_run.h"
#include "store/document.h"
#include "store/entity.h"
#include "store/observation.h"

/* ---- entities ---- */

static enum hs_rc add_entities(struct recall *r, struct hs_err *err)
{
	struct hs_recall_out *out = r->out;
	struct hs_pool *pool = r->run->pool;
	int64_t *nos = HS_NEW_ARRAY(pool, int64_t, out->n_hits + 1);
	struct hs_unit_entity *v;
	struct hs_strs seen = {0};
	size_t n, h = 0;

	for (size_t i = 0; i < out->n_hits; i++)
		nos[i] = out->hits[i].unit_no;
	HS_TRY(hs_entities_of_units(r->run->db, pool, r->bank_no, nos, out->n_hits, &v, &n, err));
	out->entities = HS_NEW_ARRAY(pool, struct hs_recall_entity, n + 1);
	for (size_t i = 0; i < n; i++) {
		while (h < out->n_hits && out->hits[h].unit_no != v[i].unit_no)
			h++;
		if (h < out->n_hits)
			hs_strs_add(pool, &out->hits[h].entities, v[i].canonical_name);
		if (hs_strs_has(&seen, v[i].entity_id))
			continue;
		hs_strs_add(pool, &seen, v[i].entity_id);
		out->entities[out->n_entities++] =
			(struct hs_recall_entity){v[i].entity_id, v[i].canonical_name};
	}
	return HS_OK;
}

/* ---- source facts ---- */

/* Sources of the returned observations with their rows. */
struct sources {
	struct hs_source *v;
	size_t n;
	struct hs_unit_row *rows; /* of v, in order; each live */
};

static enum hs_rc load_sources(struct recall *r, const int64_t *observations, size_t n,
	struct sources *ret, struct hs_err *err)
{
	int64_t *nos;
	size_t n_rows;

	HS_TRY(hs_observation_sources(
		r->run->db, r->run->pool, r->bank_no, observations, n, &ret->v, &ret->n, err));
	nos = HS_NEW_ARRAY(r->run->pool, int64_t, ret->n + 1);
	for (size_t i = 0; i < ret->n; i++)
		nos[i] = ret->v[i].source_no;
	HS_TRY(hs_units_load(
		r->run->db, r->run->pool, r->bank_no, nos, ret->n, &ret->rows, &n_rows, err));
	/* one deleted between the two reads: what is left no longer lines up, so drop it from the list */
	if (n_rows == ret->n)
		return HS_OK;
	for (size_t i = 0; i < n_rows; i++)
		while (ret->v[i].source_no != ret->rows[i].unit_no) {
			memmove(&ret->v[i], &ret->v[i + 1], (ret->n - i - 1) * sizeof(*ret->v));
			ret->n--;
		}
	ret->n = n_rows;
	return HS_OK;
}

static bool shown(const struct hs_recall_out *out, int64_t unit_no)
{
	for (size_t i = 0; i < out->n_sources; i++)
		if (out->sources[i].unit_no == unit_no)
			return true;
	return false;
}

/* The sources of one observation, within the total or within its own budget. */
static void show_sources(struct recall *r, struct hs_hit *h, const struct sources *s, int64_t *left,
	struct hs_strs *missing)
{
	int64_t own = r->in->source_tokens_each;

	for (size_t i = 0; i < s->n; i++) {
		int64_t tokens, *budget = r->in->source_tokens_each >= 0 ? &own : left;

		if (s->v[i].observation_no != h->unit_no)
			continue;
		hs_strs_add(r->run->pool, &h->source_fact_ids, s->v[i].id);
		if (shown(r->out, s->v[i].source_no))
			continue;
		tokens = (int64_t)hs_tokens(s->rows[i].text);
		if (*budget >= 0 && tokens > *budget) {
			hs_strs_add(r->run->pool, missing, s->v[i].id);
			continue;
		}
		if (*budget >= 0)
			*budget -= tokens;
		r->out->sources[r->out->n_sources++] = hs_recall_hit(r, &s->rows[i]);
	}
}

static enum hs_rc add_sources(struct recall *r, struct hs_err *err)
{
	struct hs_recall_out *out = r->out;
	int64_t *observations = HS_NEW_ARRAY(r->run->pool, int64_t, out->n_hits + 1),
		left = r->in->source_tokens;
	struct hs_strs missing = {0};
	struct sources s;
	size_t n = 0;

	for (size_t i = 0; i < out->n_hits; i++)
		if (out->hits[i].type == HS_OBSERVATION)
			observations[n++] = out->hits[i].unit_no;
	HS_TRY(load_sources(r, observations, n, &s, err));
	out->sources = HS_NEW_ARRAY(r->run->pool, struct hs_hit, s.n + 1);
	for (size_t i = 0; i < out->n_hits; i++)
		if (out->hits[i].type == HS_OBSERVATION)
			show_sources(r, &out->hits[i], &s, &left, &missing);
	for (size_t i = 0; i < missing.n && !out->sources_truncated; i++) {
		bool there = false;

		for (size_t k = 0; k < out->n_sources && !there; k++)
			there = strcmp(out->sources[k].id, missing.v[i]) == 0;
		out->sources_truncated = !there;
	}
	return HS_OK;
}

/* ---- chunks ---- */

struct chunk_list {
	int64_t left; /* tokens */
	bool full;
	size_t cap;
};

static bool has_chunk(const struct hs_recall_out *out, const char *id)
{
	for (size_t i = 0; i < out->n_chunks; i++)
		if (strcmp(out->chunks[i].chunk_id, id) == 0)
			return true;
	return false;
}

static enum hs_rc add_chunk(
	struct recall *r, struct chunk_list *l, const struct hs_unit_row *row, struct hs_err *err)
{
	struct hs_recall_out *out = r->out;
	struct hs_recall_chunk c = {.chunk_index = row->chunk_index};
	struct hs_strs tags;
	int64_t tokens;

	if (l->full || !row->document_id || row->chunk_index < 0)
		return HS_OK;
	c.chunk_id =
		hs_chunk_id(r->run->pool, r->in->bank->bank_id, row->document_id, row->chunk_index);
	if (has_chunk(out, c.chunk_id))
		return HS_OK;
	HS_TRY(hs_chunk_text(r->run->db, r->run->pool, r->bank_no, row->document_id,
		row->chunk_index, &c.text, &tags, err));
	if (hs_str_empty(c.text) || (hs_scope_filters_tags(&r->in->scope) &&
					    !hs_scope_match_tags(&r->in->scope, &tags)))
		return HS_OK;
	tokens = (int64_t)hs_tokens(c.text);
	if (tokens > l->left) {
		c.text = hs_tokens_cut(r->run->pool, c.text, (size_t)l->left);
		c.truncated = true;
		l->full = true;
	}
	l->left -= tokens;
	if (out->n_chunks == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 16;

		out->chunks = hs_pool_regrow(r->run->pool, out->chunks,
			l->cap * sizeof(*out->chunks), cap * sizeof(*out->chunks));
		l->cap = cap;
	}
	out->chunks[out->n_chunks++] = c;
	return HS_OK;
}

/* In rank order over the kept candidates; an observation stands for its sources. */
static enum hs_rc add_chunks(struct recall *r, struct hs_err *err)
{
	int64_t *observations = HS_NEW_ARRAY(r->run->pool, int64_t, r->kept + 1);
	struct chunk_list l = {.left = r->in->chunk_tokens};
	struct sources s;
	size_t n = 0;

	if (l.left <= 0)
		return HS_OK;
	for (size_t i = 0; i < r->kept; i++)
		if (r->v[i].type == HS_OBSERVATION)
			observations[n++] = r->v[i].row.unit_no;
	HS_TRY(load_sources(r, observations, n, &s, err));
	for (size_t i = 0; i < r->kept && !l.full; i++) {
		if (r->v[i].type != HS_OBSERVATION) {
			HS_TRY(add_chunk(r, &l, &r->v[i].row, err));
			continue;
		}
		for (size_t k = 0; k < s.n && !l.full; k++)
			if (s.v[k].observation_no == r->v[i].row.unit_no)
				HS_TRY(add_chunk(r, &l, &s.rows[k], err));
	}
	return HS_OK;
}

enum hs_rc hs_recall_extras(struct recall *r, struct hs_err *err)
{
	if (r->in->with_entities && r->out->n_hits)
		HS_TRY(add_entities(r, err));
	if (r->in->with_source_facts)
		HS_TRY(add_sources(r, err));
	if (r->in->with_chunks)
		HS_TRY(add_chunks(r, err));
	return HS_OK;
}
