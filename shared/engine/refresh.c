#include "engine/refresh_run.h"

#include <string.h>

#include "base/clock.h"
#include "engine/mind.h"
#include "engine/model_scope.h"
#include "json/json.h"
#include "prompt/delta.h"

/* Shipped values of the searches; the bank's reflect_default_options do not reach a refresh. */
#define OBSERVATIONS_TOKENS 5000
#define MODELS_TOKENS 16000
#define INTERVAL_MAX_S (INT64_C(1000) * 365 * 86400) /* a longer park is no date of the database */

static enum hs_rc gone(const struct hs_refreshing *r, struct hs_err *err)
{
	return hs_fail(err, HS_E_NOT_FOUND, "Mental model %s not found in bank %s",
		r->in->mental_model_id, r->in->bank->bank_id);
}

/* ---- what is read ---- */

static const char *fallback_reason(const struct hs_refreshing *r)
{
	const char *query = r->m.last_refreshed_source_query;

	if (r->in->full || r->t->mode != HS_MODE_DELTA)
		return NULL;
	if (hs_content_unwritten(r->m.content))
		return "no_baseline_content";
	return query && strcmp(query, r->m.source_query) != 0 ? "source_query_changed" : NULL;
}

enum hs_rc hs_refresh_load(struct hs_refreshing *r, struct hs_err *err)
{
	struct hs_config *cfg;
	enum hs_rc rc = hs_mm_load(
		r->run->db, r->pool, r->in->bank->bank_no, r->in->mental_model_id, &r->m, err);

	if (rc == HS_E_NOT_FOUND || (rc == HS_OK && r->m.clock_us == HS_TIME_NONE))
		return gone(r, err);
	HS_TRY(rc);
	HS_TRY(hs_bank_config(r->pool, r->run->server, r->in->bank, &cfg, err));
	r->cfg = cfg;
	r->t = hs_trigger_read(r->pool, r->m.trigger);
	if (hs_json_load(r->pool, r->m.reflect_response, &r->stored, NULL) != HS_OK ||
		!json_is_object(r->stored))
		r->stored = NULL;
	r->fallback = fallback_reason(r);
	r->delta = !r->in->full && r->t->mode == HS_MODE_DELTA && !r->fallback;
	return HS_OK;
}

/* Automatic refreshes keep their distance; nothing is read and nothing counted. */
static enum hs_rc park(const struct hs_refreshing *r, struct hs_err *err)
{
	int64_t interval_s = r->in->automatic ? hs_trigger_interval(r->t, r->cfg) : 0;
	int64_t until_us;

	if (interval_s == 0)
		return HS_OK;
	if (interval_s > INTERVAL_MAX_S)
		interval_s = INTERVAL_MAX_S;
	until_us = r->m.last_refreshed_us + interval_s * HS_SECOND_US;
	if (hs_now_us() >= until_us)
		return HS_OK;
	(void)hs_fail(err, HS_E_DEFERRED,
		"put off: the least interval between automatic refreshes is %lld s",
		(long long)interval_s);
	err->retry_at_us = until_us;
	return HS_E_DEFERRED;
}

static enum hs_rc resolve(struct hs_refreshing *r, struct hs_err *err)
{
	struct hs_strs ids = {0, NULL};

	r->scope = hs_model_scope(r->pool, r->t, r->m.tags);
	r->scope.until_us = r->m.clock_us;
	if (r->delta)
		r->scope.after_us = hs_mm_since(&r->m);
	for (size_t i = 0; i < r->t->exclude_mental_model_ids.n; i++)
		hs_strs_add(r->pool, &ids, r->t->exclude_mental_model_ids.v[i]);
	hs_strs_add(r->pool, &ids, r->m.id);
	r->exclude = hs_strs_sorted_set(r->pool, &ids);
	HS_TRY(hs_mm_newest_memory(
		r->run->db, r->pool, r->m.bank_no, &r->scope, &r->watermark_us, err));
	r->memories_in_reach = r->watermark_us != HS_TIME_NONE;
	return HS_OK;
}

/* Siblings alone count only while the own body is unwritten: "nothing new" must be free. */
static enum hs_rc in_reach(const struct hs_refreshing *r, bool *ret, struct hs_err *err)
{
	*ret = r->memories_in_reach;
	if (*ret || r->t->exclude_mental_models || !hs_content_unwritten(r->m.content))
		return HS_OK;
	return hs_mm_has_sibling(
		r->run->db, r->pool, r->m.bank_no, &r->scope, &r->exclude, ret, err);
}

/* ---- reflect ---- */

static struct hs_reflect_in reflect_in(const struct hs_refreshing *r)
{
	const struct hs_trigger *t = r->t;
	struct hs_reflect_in in = hs_reflect_defaults(r->in->bank, r->cfg, r->m.source_query);

	in.extra_context = hs_pool_printf(r->pool, "Name of the document: %s\n\n%s", r->m.name,
		r->delta ? hs_prompt_delta_context() : hs_loop_text(HS_LT_REFRESH_CONTEXT));
	in.budget = t->budget < 0 ? "mid" : hs_budget_names[t->budget];
	in.max_tokens = r->m.max_tokens;
	in.scope = r->scope;
	in.exclude_mental_models = t->exclude_mental_models;
	in.exclude_mental_model_ids = r->exclude;
	in.document = true;
	in.strict = true;
	in.observations_tokens = hs_trigger_has(t, "reflect_search_observations_max_tokens")
					 ? t->reflect_search_observations_max_tokens
					 : OBSERVATIONS_TOKENS;
	in.observations_entities =
		!hs_trigger_has(t, "reflect_search_observations_include_entities") ||
		t->reflect_search_observations_include_entities;
	in.models_tokens = hs_trigger_has(t, "reflect_search_mental_models_max_tokens")
				   ? t->reflect_search_mental_models_max_tokens
				   : MODELS_TOKENS;
	if (hs_trigger_has(t, "include_chunks"))
		in.include_chunks =
			t->include_chunks && hs_cfg_bool(r->cfg, HS_S_store_document_text);
	if (hs_trigger_has(t, "recall_max_tokens"))
		in.recall_tokens = t->recall_max_tokens;
	if (hs_trigger_has(t, "recall_chunks_max_tokens"))
		in.recall_chunk_tokens = t->recall_chunks_max_tokens;
	return in;
}

static const char *reason_of(enum hs_rc rc)
{
	if (rc == HS_E_NO_ANSWER)
		return "no_answer";
	if (rc == HS_E_RETRIEVAL || rc == HS_E_EMBED || rc == HS_E_EMBED_DIM ||
		(rc >= HS_E_DB && rc <= HS_E_DB_TIMEOUT))
		return "retrieval_failed";
	return "unexpected_error";
}

enum hs_rc hs_refresh_name_wall_clock(
	const struct hs_refreshing *r, enum hs_rc rc, struct hs_err *err)
{
	if (rc != HS_E_TIMEOUT || r->run->deadline_us == 0 || hs_mono_us() < r->run->deadline_us)
		return rc;
	return hs_fail(err, HS_E_WALL_CLOCK,
		"the refresh reached its limit of %lld seconds (reflect_wall_timeout); lower the trigger's budget"
		" or raise the setting",
		(long long)hs_cfg_int(r->run->server, HS_S_reflect_wall_timeout));
}

enum hs_rc hs_refresh_failed(
	struct hs_refreshing *r, enum hs_outcome outcome, const char *reason, enum hs_rc rc)
{
	r->outcome = outcome;
	r->reason = reason;
	return rc;
}

static enum hs_rc run_reflect(struct hs_refreshing *r, struct hs_err *err)
{
	struct hs_reflect_in in = reflect_in(r);
	const char *outer = r->run->llm_operation;
	enum hs_rc rc;

	r->run->llm_operation = "mental_model_refresh";
	r->ran = true;
	rc = hs_reflect(r->run, &in, &r->out, err);
	r->run->llm_operation = outer;
	rc = hs_refresh_name_wall_clock(r, rc, err);
	return rc == HS_OK ? HS_OK : hs_refresh_failed(r, HS_FAILED_ERROR, reason_of(rc), rc);
}

/* Final text of a full run. */
static void take_document(struct hs_refreshing *r)
{
	struct hs_document split, *doc = &r->out.document;

	if (!r->out.has_document) {
		hs_document_split(r->pool, r->out.text ? r->out.text : "", &split);
		doc = &split;
	}
	r->content = hs_document_render(r->pool, doc);
	r->structure = hs_json_text(r->pool, hs_json_keep(r->pool, hs_document_json(doc)));
	r->over_budget = r->out.document_tokens > 0;
}

void hs_refresh_preserve(struct hs_refreshing *r, const char *warning)
{
	r->outcome = HS_CONTENT_PRESERVED;
	r->content = NULL;
	r->over_budget = false;
	hs_refresh_warn(r, warning);
}

/* An answer that says "nothing found" is written only where nothing stands yet. */
static void take_answer(struct hs_refreshing *r)
{
	bool found = r->out.retrieved && r->out.answer_found;

	take_document(r);
	if (!found && (!hs_content_unwritten(r->m.content) || hs_str_blank(r->content)))
		hs_refresh_preserve(r, "the search found no answer; the document stays as it is");
}

static enum hs_rc judge(struct hs_refreshing *r, struct hs_err *err)
{
	if (!r->out.retrieved)
		hs_refresh_warn(r, "nothing was retrieved");
	else if (r->out.n_facts == 0 && r->out.n_models == 0)
		hs_refresh_warn(r, "memories were retrieved, but none was used");
	if (r->delta)
		HS_TRY(hs_refresh_delta(r, err));
	else
		take_answer(r);
	if (r->outcome == HS_CONTENT_PRESERVED)
		return HS_OK;
	if (r->over_budget)
		hs_refresh_warn(r, "the document is longer than max_tokens; nothing was cut");
	if (hs_str_blank(r->content))
		return hs_refresh_failed(r, HS_FAILED_EMPTY, "empty_candidate",
			hs_fail(err, HS_E_REFRESH, "the refresh ended with an empty document"));
	r->outcome =
		strcmp(hs_str_trim(r->pool, r->content), hs_str_trim(r->pool, r->m.content)) == 0
			? HS_CONTENT_UNCHANGED
			: HS_CONTENT_WRITTEN;
	return HS_OK;
}

enum hs_rc hs_refresh_produce(struct hs_refreshing *r, struct hs_err *err)
{
	bool reach;
	enum hs_rc rc = resolve(r, err);

	if (rc == HS_OK)
		rc = in_reach(r, &reach, err);
	if (rc != HS_OK)
		return hs_refresh_failed(r, HS_FAILED_ERROR, reason_of(rc), rc);
	if (!reach) {
		r->skipped = "no_sources_in_scope";
		hs_refresh_preserve(
			r, "nothing in the scope of this model can be read; no model was called");
		return HS_OK;
	}
	if (hs_mind_for(r->cfg, "mental_model_refresh") == HS_MIND_NONE)
		return hs_refresh_failed(r, HS_FAILED_ERROR, "unexpected_error",
			hs_fail(err, HS_E_LLM_NONE,
				"Mental model refresh requires an LLM provider. Current provider is set to 'none'."));
	if (r->t->response_schema)
		return hs_refresh_failed(r, HS_FAILED_STRUCTURED, "structured_output_failed",
			hs_fail(err, HS_E_REFRESH,
				"structured output of a refresh is not supported by this release"));
	HS_TRY(run_reflect(r, err));
	return judge(r, err);
}

/* ---- one attempt ---- */

bool hs_refresh_unrecorded(const struct hs_err *err)
{
	switch (err->rc) {
	case HS_E_CANCELLED:
	case HS_E_CLAIM_LOST:
	case HS_E_DEFERRED:
	case HS_E_DB_UNKNOWN:
	case HS_E_NOT_FOUND:
	case HS_E_BANK_MISSING:
		return true;
	case HS_E_LLM_QUOTA:
		return err->retry_at_us > 0;
	default:
		return false;
	}
}

static enum hs_rc attempt(struct hs_refreshing *r, struct hs_err *err)
{
	enum hs_rc rc = hs_refresh_produce(r, err);

	if (rc != HS_OK)
		return rc;
	rc = hs_refresh_name_wall_clock(r, hs_refresh_write(r, err), err);
	if (rc == HS_E_NOT_FOUND)
		return gone(r, err);
	return rc == HS_OK ? HS_OK : hs_refresh_failed(r, HS_FAILED_ERROR, "unexpected_error", rc);
}

enum hs_rc hs_refresh_run(
	struct hs_run *run, const struct hs_refresh_in *in, json_t **ret_result, struct hs_err *err)
{
	struct hs_refreshing r = {
		.run = run, .pool = run->pool, .in = in, .started_us = hs_mono_us()};
	enum hs_rc rc;

	*ret_result = NULL;
	HS_TRY(hs_refresh_load(&r, err));
	HS_TRY(park(&r, err));
	rc = attempt(&r, err);
	if (rc != HS_OK && hs_refresh_unrecorded(err))
		return rc;
	if (rc != HS_OK)
		hs_refresh_write_failure(&r, err);
	*ret_result = hs_refresh_metadata(&r);
	return rc;
}
