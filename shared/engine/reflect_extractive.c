#include "engine/reflect_run.h"

#include "base/clock.h"
#include "engine/extractive_answer.h"
#include "json/json.h"

/* The fixed order: models, observations, facts; what is not offered is left out. */
static enum hs_rc search(struct hs_reflection *r, struct hs_err *err)
{
	static const enum hs_reflect_tool order[] = {
		HS_RT_SEARCH_MODELS, HS_RT_SEARCH_OBSERVATIONS, HS_RT_RECALL};
	json_t *args = hs_json_keep(r->pool, json_pack("{s:s}", "query", r->in->query)), *shown;

	for (size_t i = 0; i < HS_COUNT(order); i++) {
		if (!hs_reflect_tool_offered(r, order[i]))
			continue;
		r->iteration++;
		HS_TRY(hs_run_check(r->run, err));
		HS_TRY(hs_reflect_tool_run(
			r, order[i], args, hs_reflect_ceiling(r, 1), &shown, err));
	}
	return HS_OK;
}

static struct hs_evidence *gather(const struct hs_reflection *r, size_t *ret_n)
{
	struct hs_evidence *ev =
		HS_NEW_ARRAY(r->pool, struct hs_evidence, r->n_models + r->n_facts + 1);
	size_t n = 0;

	for (size_t i = 0; i < r->n_models; i++)
		if (!hs_content_unwritten(r->models[i].text))
			ev[n++] = (struct hs_evidence){
				.kind = HS_EV_MODEL,
				.id = r->models[i].id,
				.text = r->models[i].text,
				.name = r->models[i].name,
				.occurred_start_us = HS_TIME_NONE,
				.occurred_end_us = HS_TIME_NONE,
				.mentioned_us = HS_TIME_NONE,
			};
	for (size_t i = 0; i < r->n_facts; i++) {
		const struct hs_retrieved *f = &r->facts[i];

		ev[n++] = (struct hs_evidence){
			.kind = f->observation ? HS_EV_OBSERVATION : HS_EV_FACT,
			.id = f->fact.id,
			.text = f->fact.text,
			.context = f->fact.context,
			.occurred_start_us = f->fact.occurred_start_us,
			.occurred_end_us = f->fact.occurred_end_us,
			.mentioned_us = f->fact.mentioned_us,
			.entities = f->entities,
			.source_ids = f->source_ids,
			.score = f->score,
		};
	}
	*ret_n = n;
	return ev;
}

static void cite_used(
	struct hs_reflection *r, const struct hs_evidence *ev, const struct hs_extractive_answer *a)
{
	struct hs_strs *const lists[] = {
		[HS_EV_MODEL] = &r->cited.models,
		[HS_EV_OBSERVATION] = &r->cited.observations,
		[HS_EV_FACT] = &r->cited.memories,
	};

	for (size_t i = 0; i < a->n_used; i++)
		hs_strs_add(r->pool, lists[ev[a->used[i]].kind], ev[a->used[i]].id);
	r->cited.exact = true;
}

enum hs_rc hs_reflect_extractive(struct hs_reflection *r, struct hs_err *err)
{
	struct hs_extractive_answer a;
	struct hs_evidence *ev;
	size_t n;

	HS_TRY(search(r, err));
	ev = gather(r, &n);
	if (r->in->document) {
		hs_extractive_document(
			r->pool, r->in->query, ev, n, r->in->max_tokens, &r->out->document, &a);
		r->out->has_document = true;
	} else {
		hs_extractive_answer(r->pool, r->in->query, ev, n, r->in->max_tokens, &a);
	}
	r->out->text = a.text;
	r->out->answer_found = a.answer_found;
	if (r->in->response_schema)
		r->out->structured_error =
			"the built-in provider makes no structured output; configure a model";
	cite_used(r, ev, &a);
	return HS_OK;
}
