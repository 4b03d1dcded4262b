#include "engine/reflect_run.h"

#include <string.h>

#include "base/limits.h"
#include "json/json.h"
#include "store/document.h"
#include "store/evidence.h"

void hs_reflect_saw_fact(struct hs_reflection *r, const struct hs_retrieved *seen, bool observation)
{
	struct hs_retrieved *e = NULL;

	for (size_t i = 0; i < r->n_facts && !e; i++)
		if (strcmp(r->facts[i].fact.id, seen->fact.id) == 0)
			e = &r->facts[i];
	if (!e) {
		if (r->n_facts == r->cap_facts) {
			size_t cap = r->cap_facts ? r->cap_facts * 2 : 32;

			r->facts = hs_pool_regrow(
				r->pool, r->facts, r->n_facts * sizeof(*e), cap * sizeof(*e));
			r->cap_facts = cap;
		}
		e = &r->facts[r->n_facts++];
		*e = *seen;
	}
	e->memory |= !observation;
	e->observation |= observation;
}

void hs_reflect_saw_model(struct hs_reflection *r, const char *id, const char *name,
	const char *text, bool searched, int rank)
{
	struct hs_model_evidence *m = NULL;

	for (size_t i = 0; i < r->n_models && !m; i++)
		if (strcmp(r->models[i].id, id) == 0)
			m = &r->models[i];
	if (!m) {
		if (r->n_models == r->cap_models) {
			size_t cap = r->cap_models ? r->cap_models * 2 : 8;

			r->models = hs_pool_regrow(
				r->pool, r->models, r->n_models * sizeof(*m), cap * sizeof(*m));
			r->cap_models = cap;
		}
		m = &r->models[r->n_models++];
		*m = (struct hs_model_evidence){.id = id, .name = name, .text = text, .rank = rank};
	}
	m->searched |= searched;
	if (rank > m->rank) {
		m->text = text;
		m->rank = rank;
	}
}

void hs_reflect_count(struct hs_reflection *r)
{
	for (size_t i = 0; i < r->n_facts; i++) {
		int type = hs_fact_type_find(r->facts[i].fact.type);

		if (type >= 0)
			r->out->n_retrieved[type]++;
	}
	for (size_t i = 0; i < r->n_models; i++)
		r->out->n_models_retrieved += r->models[i].searched;
}

static bool saw_memory(const struct hs_reflection *r, const char *id)
{
	for (size_t i = 0; i < r->n_facts; i++)
		if (r->facts[i].memory && strcmp(r->facts[i].fact.id, id) == 0)
			return true;
	return false;
}

static bool saw_observation(const struct hs_reflection *r, const char *id)
{
	for (size_t i = 0; i < r->n_facts; i++)
		if (r->facts[i].observation && strcmp(r->facts[i].fact.id, id) == 0)
			return true;
	return false;
}

static bool saw_model(const struct hs_reflection *r, const char *id)
{
	for (size_t i = 0; i < r->n_models; i++)
		if (strcmp(r->models[i].id, id) == 0)
			return true;
	return false;
}

static struct hs_strs known(struct hs_reflection *r, const json_t *args, const char *key,
	bool (*saw)(const struct hs_reflection *, const char *))
{
	struct hs_strs given = hs_json_strs(r->pool, hs_json_arr(args, key)), kept = {0};

	for (size_t i = 0; i < given.n && i < HS_CITATIONS; i++)
		if (saw(r, given.v[i]) && !hs_strs_has(&kept, given.v[i]))
			hs_strs_add(r->pool, &kept, given.v[i]);
	return kept;
}

void hs_reflect_cite(struct hs_reflection *r, json_t *args)
{
	r->cited.memories = known(r, args, "memory_ids", saw_memory);
	r->cited.observations = known(r, args, "observation_ids", saw_observation);
	r->cited.models = known(r, args, "mental_model_ids", saw_model);
}

static bool cited(const struct hs_reflection *r, const struct hs_strs *list, const char *id)
{
	return (list->n == 0 && !r->cited.exact) || hs_strs_has(list, id);
}

static bool fact_kept(const struct hs_reflection *r, const struct hs_retrieved *e)
{
	return (e->memory && cited(r, &r->cited.memories, e->fact.id)) ||
	       (e->observation && cited(r, &r->cited.observations, e->fact.id));
}

/* World, experience, observation; inside a type the order of first retrieval. */
static void list_facts(struct hs_reflection *r)
{
	struct hs_reflect_out *out = r->out;

	out->facts = HS_NEW_ARRAY(r->pool, struct hs_reflect_fact, r->n_facts);
	out->n_facts = 0;
	for (int type = 0; type < HS_FACT_TYPE__MAX; type++)
		for (size_t i = 0; i < r->n_facts; i++)
			if (hs_fact_type_find(r->facts[i].fact.type) == type &&
				fact_kept(r, &r->facts[i]))
				out->facts[out->n_facts++] = r->facts[i].fact;
}

static void list_models(struct hs_reflection *r)
{
	struct hs_reflect_out *out = r->out;

	out->models = HS_NEW_ARRAY(r->pool, struct hs_reflect_model, r->n_models);
	out->n_models = 0;
	for (size_t i = 0; i < r->n_models; i++) {
		const struct hs_model_evidence *m = &r->models[i];

		if (m->searched && cited(r, &r->cited.models, m->id))
			out->models[out->n_models++] = (struct hs_reflect_model){
				.id = m->id,
				.text = hs_pool_printf(r->pool, "%s: %s", m->name, m->text),
			};
	}
}

static void take_row(
	struct hs_reflection *r, struct hs_reflect_fact *f, const struct hs_evidence_row *row)
{
	f->context = row->context;
	f->document_id = row->document_id;
	f->chunk_id = row->document_id && row->chunk_index >= 0
			      ? hs_chunk_id(r->pool, r->in->bank->bank_id, row->document_id,
					row->chunk_index)
			      : NULL;
	f->tags = row->tags;
	f->metadata = row->metadata;
	f->mentioned_us = row->mentioned_us;
}

enum hs_rc hs_reflect_based_on(struct hs_reflection *r, struct hs_err *err)
{
	struct hs_evidence_row *rows;
	struct hs_strs ids = {0};
	size_t n;

	list_facts(r);
	list_models(r);
	for (size_t i = 0; i < r->out->n_facts; i++)
		hs_strs_add(r->pool, &ids, r->out->facts[i].id);
	HS_TRY(hs_store_evidence(r->run->db, r->pool, r->in->bank->bank_no, &ids, &rows, &n, err));

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < r->out->n_facts; k++)
			if (strcmp(rows[i].id, r->out->facts[k].id) == 0)
				take_row(r, &r->out->facts[k], &rows[i]);
	return HS_OK;
}

const char *hs_reflect_verified(struct hs_reflection *r, const char *text)
{
	struct hs_strs sources = {0};

	if (!hs_view_has_uuid(text))
		return text;
	for (size_t i = 0; i < r->out->n_tools; i++)
		hs_strs_add(r->pool, &sources, hs_json_text(r->pool, r->out->tools[i].output));
	hs_strs_add(r->pool, &sources, r->in->query);
	hs_strs_add(r->pool, &sources, r->prompt.mission ? r->prompt.mission : "");
	hs_strs_add(r->pool, &sources, r->in->extra_context ? r->in->extra_context : "");
	for (size_t i = 0; i < r->out->n_directives; i++) {
		hs_strs_add(r->pool, &sources, r->out->directives[i].name);
		hs_strs_add(r->pool, &sources, r->out->directives[i].content);
	}
	return hs_view_verify(r->pool, text, &sources);
}
