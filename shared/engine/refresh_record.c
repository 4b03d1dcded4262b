#include "engine/refresh_run.h"

#include <string.h>

#include "base/clock.h"
#include "json/json.h"

#define MODELS_KEY "mental-models"

const char *const hs_outcome_names[HS_OUTCOME__MAX] = {
	[HS_CONTENT_WRITTEN] = "content_written",
	[HS_CONTENT_UNCHANGED] = "content_unchanged",
	[HS_CONTENT_PRESERVED] = "content_preserved_no_new_facts",
	[HS_FAILED_EMPTY] = "refresh_failed_empty_candidate",
	[HS_FAILED_DELTA] = "refresh_failed_delta_not_applied",
	[HS_FAILED_STRUCTURED] = "refresh_failed_structured_output",
	[HS_FAILED_ERROR] = "refresh_failed_error",
};

bool hs_outcome_failed(enum hs_outcome outcome)
{
	return outcome >= HS_FAILED_EMPTY;
}

void hs_refresh_warn(struct hs_refreshing *r, const char *text)
{
	hs_strs_add(r->pool, &r->warnings, text);
}

static json_t *text_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

/* ---- based_on ---- */

static void add_entry(
	json_t *list, const char *id, const char *text, const char *type, const char *context)
{
	json_array_append_new(
		list, json_pack("{s:s, s:s, s:s, s:o}", "id", id, "text", text ? text : "", "type",
			      type, "context", text_or_null(context)));
}

static json_t *empty_based_on(void)
{
	return json_pack("{s:[], s:[], s:[], s:[], s:[], s:[]}", "world", "experience",
		"observation", "opinion", MODELS_KEY, "directives");
}

static json_t *based_on(const struct hs_reflect_out *out)
{
	json_t *all = empty_based_on();

	for (size_t i = 0; i < out->n_facts; i++) {
		const struct hs_reflect_fact *f = &out->facts[i];
		const char *type = f->type ? f->type : "world";
		json_t *list = json_object_get(all, type);

		if (list)
			add_entry(list, f->id, f->text, type, f->context);
	}
	for (size_t i = 0; i < out->n_models; i++)
		add_entry(json_object_get(all, MODELS_KEY), out->models[i].id, out->models[i].text,
			MODELS_KEY, NULL);
	for (size_t i = 0; i < out->n_directives; i++)
		add_entry(json_object_get(all, "directives"), out->directives[i].id,
			out->directives[i].content, "directives", out->directives[i].name);
	return all;
}

/* ---- trace ---- */

/* Entries of the first list that a result holds; null when it holds none. */
static json_t *result_count(const json_t *output)
{
	static const char *const lists[] = {
		"memories", "observations", "mental_models", "chunks", "results"};

	for (size_t i = 0; i < HS_COUNT(lists); i++) {
		json_t *list = json_object_get(output, lists[i]);

		if (json_is_array(list))
			return json_integer((json_int_t)json_array_size(list));
		if (json_is_object(list))
			return json_integer((json_int_t)json_object_size(list));
	}
	return json_null();
}

static json_t *tool_calls(const struct hs_reflect_out *out)
{
	json_t *all = json_array();

	for (size_t i = 0; i < out->n_tools; i++) {
		const struct hs_tool_trace *t = &out->tools[i];

		json_array_append_new(all,
			json_pack("{s:s, s:o, s:O?, s:n, s:n, s:o, s:I, s:I}", "tool", t->tool,
				"reason", text_or_null(hs_json_str(t->input, "reason")), "input",
				t->input, "output", "updated_at", "result_count",
				result_count(t->output), "duration_ms", (json_int_t)t->duration_ms,
				"iteration", (json_int_t)t->iteration));
	}
	return all;
}

static json_t *llm_calls(const struct hs_reflect_out *out)
{
	json_t *all = json_array();

	for (size_t i = 0; i < out->n_calls; i++)
		json_array_append_new(
			all, json_pack("{s:s, s:I}", "scope", out->calls[i].scope, "duration_ms",
				     (json_int_t)out->calls[i].duration_ms));
	return all;
}

static json_t *usage(const struct hs_llm_usage *u)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)u->input,
		"output_tokens", (json_int_t)u->output, "total_tokens",
		(json_int_t)(u->input + u->output), "cached_tokens", (json_int_t)u->cached,
		"thoughts_tokens", (json_int_t)u->thoughts);
}

/* Tool outputs, evidence, scope and window stand elsewhere: a stored trace is read with every model. */
static json_t *trace(const struct hs_refreshing *r)
{
	int64_t duration_ms = (hs_mono_us() - r->started_us) / 1000;
	char now[HS_TIME_TEXT];

	hs_time_format(hs_now_us(), now);
	return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:n, s:n, s:o, s:I, s:o}", "recorded_at",
		now, "effective_mode", hs_refresh_mode_names[HS_MODE_FULL], "mode_fallback_reason",
		text_or_null(r->fallback), "outcome", hs_outcome_names[r->outcome], "tool_calls",
		tool_calls(&r->out), "llm_calls", llm_calls(&r->out), "delta_operations",
		"retraction", "usage", usage(&r->out.usage), "duration_ms", (json_int_t)duration_ms,
		"warnings", hs_json_from_strs(&r->warnings));
}

/* ---- reflect_response ---- */

static void carry(json_t *to, const json_t *from, const char *key)
{
	json_t *v = json_object_get(from, key);

	if (v)
		json_object_set(to, key, v);
}

static void finish(struct hs_refreshing *r, json_t *response)
{
	json_object_set_new(response, "outcome", json_string(hs_outcome_names[r->outcome]));
	if (r->skipped)
		json_object_set_new(response, "reflect_skipped", json_string(r->skipped));
	if (r->over_budget) {
		json_object_set_new(
			response, "document_tokens", json_integer(r->out.document_tokens));
		json_object_set_new(response, "document_budget", json_integer(r->m.max_tokens));
	}
	if (r->t->keep_trace)
		json_object_set_new(response, "trace", trace(r));
}

/* A preserved document keeps the answer and the evidence it was written from. */
static json_t *preserved(struct hs_refreshing *r)
{
	json_t *response = hs_json_keep(r->pool, json_object());
	json_t *old = json_object_get(r->stored, "based_on");

	json_object_set_new(response, "text", json_string(hs_json_str_or(r->stored, "text", "")));
	if (json_is_object(old))
		json_object_set(response, "based_on", old);
	else
		json_object_set_new(response, "based_on", empty_based_on());
	json_object_set_new(response, "mental_models", json_array());
	carry(response, r->stored, "structured_output");
	finish(r, response);
	return response;
}

json_t *hs_refresh_response(struct hs_refreshing *r)
{
	json_t *response;

	if (r->outcome == HS_CONTENT_PRESERVED)
		return preserved(r);
	response = hs_json_keep(r->pool, json_object());
	json_object_set_new(response, "text", json_string(r->out.text ? r->out.text : ""));
	json_object_set_new(response, "based_on", based_on(&r->out));
	json_object_set_new(response, "mental_models", json_array());
	finish(r, response);
	return response;
}

json_t *hs_refresh_failed_response(struct hs_refreshing *r)
{
	bool refused = r->outcome != HS_FAILED_ERROR;
	json_t *response;

	if (!refused && !r->t->keep_trace)
		return NULL;
	response = hs_json_keep(r->pool, r->stored ? json_copy(r->stored) : json_object());
	if (refused) {
		json_object_set_new(response, "refresh_skipped", json_string(r->reason));
		json_object_set_new(response, "outcome", json_string(hs_outcome_names[r->outcome]));
	}
	if (r->t->keep_trace)
		json_object_set_new(response, "trace", trace(r));
	else
		json_object_del(response, "trace");
	return response;
}

/* ---- result metadata ---- */

static json_t *counts(const json_t *based)
{
	json_t *all = json_object(), *list;
	const char *type;

	json_object_foreach((json_t *)based, type, list)
		json_object_set_new(all, type, json_integer((json_int_t)json_array_size(list)));
	return all;
}

json_t *hs_refresh_metadata(const struct hs_refreshing *r)
{
	const char *content = r->content ? r->content : r->m.content;

	if (hs_outcome_failed(r->outcome))
		return json_pack("{s:s, s:s}", "outcome", hs_outcome_names[r->outcome],
			"failure_reason", r->reason);
	return json_pack("{s:I, s:b, s:o, s:i, s:i, s:s, s:n}", "content_len",
		(json_int_t)hs_utf8_chars(content, strlen(content)), "populated_content",
		!hs_content_unwritten(content), "based_on_counts",
		counts(json_object_get(r->response, "based_on")), "delta_ops_applied", 0,
		"delta_ops_skipped", 0, "outcome", hs_outcome_names[r->outcome], "failure_reason");
}
