#include "engine/refresh_run.h"

#include <string.h>

#include "base/tokens.h"
#include "engine/delta_call.h"
#include "engine/extractive_delta.h"
#include "engine/mind.h"
#include "json/json.h"
#include "prompt/delta.h"

#define MODELS_TYPE "mental-models"

/* The stored structure; one that cannot be read, or says nothing, is made again from the text. */
static struct hs_document baseline(const struct hs_refreshing *r)
{
	struct hs_document doc;
	json_t *v = NULL;

	if (hs_json_load(r->pool, r->m.structured_content, &v, NULL) != HS_OK ||
		hs_document_read(r->pool, v, &doc, NULL) != HS_OK ||
		hs_str_blank(hs_document_render(r->pool, &doc)))
		hs_document_split(r->pool, r->m.content, &doc);
	return doc;
}

/* What this run's answer rests on, a line each. Directives are no facts. */
static struct hs_strs fact_lines(const struct hs_refreshing *r)
{
	const struct hs_reflect_out *out = &r->out;
	struct hs_strs lines = {0};

	for (size_t i = 0; i < out->n_facts; i++)
		hs_strs_add(r->pool, &lines,
			hs_delta_fact_line(r->pool,
				out->facts[i].type ? out->facts[i].type : "world", out->facts[i].id,
				out->facts[i].text ? out->facts[i].text : ""));
	for (size_t i = 0; i < out->n_models; i++)
		hs_strs_add(r->pool, &lines,
			hs_delta_fact_line(r->pool, MODELS_TYPE, out->models[i].id,
				out->models[i].text ? out->models[i].text : ""));
	return lines;
}

/* ---- without a model ---- */

/* The text that an earlier run kept of this memory; NULL when it kept none. */
static const char *text_before(const struct hs_refreshing *r, const struct hs_reflect_fact *f)
{
	json_t *list = json_object_get(
		json_object_get(r->stored, "based_on"), f->type ? f->type : "world");
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v)
		if (hs_str_eq(hs_json_str(v, "id"), f->id))
			return hs_json_str(v, "text");
	return NULL;
}

static void edit_extractive(
	struct hs_refreshing *r, const struct hs_document *doc, struct hs_delta_result *ret)
{
	struct hs_changed_text *changed =
		HS_NEW_ARRAY(r->pool, struct hs_changed_text, r->out.n_facts + 1);
	struct hs_delta_list list;
	size_t n = 0;

	for (size_t i = 0; i < r->out.n_facts; i++) {
		const struct hs_reflect_fact *f = &r->out.facts[i];
		const char *before = text_before(r, f);

		if (before && f->text && strcmp(before, f->text) != 0)
			changed[n++] = (struct hs_changed_text){before, f->text};
	}
	hs_delta_read_value(
		r->pool, hs_extractive_delta(r->pool, doc, &r->out.document, changed, n), &list);
	hs_delta_apply(r->pool, doc, &list, NULL, ret);
}

/* ---- by a model ---- */

static void note_calls(struct hs_refreshing *r, const struct hs_delta_out *d)
{
	struct hs_reflect_out *out = &r->out;

	out->calls = hs_pool_regrow(r->pool, out->calls, out->n_calls * sizeof(*out->calls),
		(out->n_calls + d->n_asked) * sizeof(*out->calls));
	for (size_t i = 0; i < d->n_asked; i++)
		out->calls[out->n_calls++] =
			(struct hs_llm_trace){"mental_model_delta_ops", d->asked_ms[i]};
	out->usage.input += d->usage.input;
	out->usage.output += d->usage.output;
	out->usage.cached += d->usage.cached;
	out->usage.thoughts += d->usage.thoughts;
}

static void warn_of(struct hs_refreshing *r, const struct hs_delta_out *d)
{
	if (d->hidden)
		hs_refresh_warn(r,
			hs_pool_printf(r->pool,
				"the document is too long for one edit call: %zu blocks were not shown",
				d->hidden));
	if (d->settled)
		hs_refresh_warn(r,
			hs_pool_printf(r->pool,
				"%zu edit calls gave no clean list of operations when asked again; what could be"
				" used was applied",
				d->settled));
}

static enum hs_rc edit_by_model(struct hs_refreshing *r, const struct hs_document *doc,
	const struct hs_strs *facts, struct hs_delta_result *ret, struct hs_err *err)
{
	struct hs_delta_in in = {
		.cfg = r->cfg,
		.name = r->m.name,
		.topic = r->m.source_query,
		.max_tokens = r->m.max_tokens,
		.doc = doc,
		.facts = facts,
	};
	const char *outer = r->run->llm_operation;
	struct hs_delta_out d;
	enum hs_rc rc;

	r->run->llm_operation = "mental_model_refresh";
	rc = hs_delta_edit(r->run, &in, &d, err);
	r->run->llm_operation = outer;
	note_calls(r, &d);
	r->ops_applied = d.result.applied;
	r->ops_skipped = d.result.skipped;
	if (rc == HS_OK) {
		warn_of(r, &d);
		*ret = d.result;
		return HS_OK;
	}
	rc = hs_refresh_name_wall_clock(r, rc, err);
	if (rc == HS_E_WALL_CLOCK)
		return hs_refresh_failed(r, HS_FAILED_ERROR, "unexpected_error", rc);
	/* nothing of what other calls did is kept */
	r->ops_applied = hs_json_keep(r->pool, json_array());
	r->fallback = d.reason;
	hs_refresh_warn(r, "the edits could not be made; the document stays as it is");
	return hs_refresh_failed(r, HS_FAILED_DELTA, d.reason, rc);
}

/* ---- both ---- */

static void take_result(struct hs_refreshing *r, const struct hs_delta_result *result)
{
	int64_t tokens;

	r->edited = true;
	r->ops_applied = result->applied;
	r->ops_skipped = result->skipped;
	if (result->n_skipped)
		hs_refresh_warn(
			r, hs_pool_printf(r->pool, "%zu of %zu edit operations were skipped",
				   result->n_skipped, result->n_applied + result->n_skipped));
	r->content = hs_document_render(r->pool, &result->doc);
	r->structure = hs_json_text(r->pool, hs_json_keep(r->pool, hs_document_json(&result->doc)));
	tokens = (int64_t)hs_tokens(r->content);
	r->over_budget = tokens > r->m.max_tokens;
	r->out.document_tokens = r->over_budget ? tokens : 0;
}

enum hs_rc hs_refresh_delta(struct hs_refreshing *r, struct hs_err *err)
{
	struct hs_document doc = baseline(r);
	struct hs_strs facts = fact_lines(r);
	struct hs_delta_result result;

	if (facts.n == 0) {
		hs_refresh_preserve(r, "nothing new was found; the document stays as it is");
		return HS_OK;
	}
	if (hs_mind_for(r->cfg, "mental_model_refresh") == HS_MIND_EXTRACTIVE)
		edit_extractive(r, &doc, &result);
	else
		HS_TRY(edit_by_model(r, &doc, &facts, &result, err));
	take_result(r, &result);
	return HS_OK;
}
