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

bool hs_outcome_writes(enum hs_outcome outcome)
{
	return outcome == HS_CONTENT_WRITTEN || outcome == HS_CONTENT_UNCHANGED;
}

bool hs_outcome_failed(enum hs_outcome outcome)
{
	return outcome >= HS_FAILED_EMPTY;
}

void hs_refresh_warn(struct hs_refreshing *r, const char *text)
{
	hs_strs_add(r->pool, &r->warnings, text);
}

enum hs_refresh_mode hs_refresh_effective(const struct hs_refreshing *r)
{
	bool held = r->edited ? !hs_outcome_failed(r->outcome) : r->outcome == HS_CONTENT_PRESERVED;

	return r->delta && held ? HS_MODE_DELTA : HS_MODE_FULL;
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

static bool has_id(json_t *list, const char *id)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v)
		if (hs_str_eq(hs_json_str(v, "id"), id))
			return true;
	return false;
}

/* A delta document rests on what earlier runs read, too: their entries follow this run's. */
static void add_earlier(json_t *all, json_t *earlier)
{
	const char *type;
	json_t *list, *v;
	size_t i, own;

	json_object_foreach(all, type, list) {
		json_t *before = json_object_get(earlier, type);

		own = json_array_size(list);
		json_array_foreach(before, i, v)
			if (own == 0 || !has_id(list, hs_json_str(v, "id")))
				json_array_append(list, v);
	}
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

static bool has_window(const char *tool)
{
	return strcmp(tool, "recall") == 0 || strcmp(tool, "search_observations") == 0;
}

static json_t *time_or_null(int64_t us)
{
	char text[HS_TIME_TEXT];

	if (us == HS_TIME_NONE)
		return json_null();
	hs_time_format(us, text);
	return json_string(text);
}

/* A dry run alone tells outputs and window: a stored trace is read with every model. */
static json_t *tool_calls(const struct hs_refreshing *r, bool with_outputs)
{
	const struct hs_reflect_out *out = &r->out;
	json_t *all = json_array();

	for (size_t i = 0; i < out->n_tools; i++) {
		const struct hs_tool_trace *t = &out->tools[i];

		json_array_append_new(all,
			json_pack("{s:s, s:o, s:O?, s:O?, s:o, s:o, s:I, s:I}", "tool", t->tool,
				"reason", text_or_null(hs_json_str(t->input, "reason")), "input",
				t->input, "output", with_outputs ? t->output : NULL, "updated_at",
				time_or_null(with_outputs && has_window(t->tool) ? r->scope.after_us
										 : HS_TIME_NONE),
				"result_count", result_count(t->output), "duration_ms",
				(json_int_t)t->duration_ms, "iteration", (json_int_t)t->iteration));
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

json_t *hs_refresh_usage(const struct hs_llm_usage *u)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)u->input,
		"output_tokens", (json_int_t)u->output, "total_tokens",
		(json_int_t)(u->input + u->output), "cached_tokens", (json_int_t)u->cached,
		"thoughts_tokens", (json_int_t)u->thoughts);
}

static json_t *operations(const struct hs_refreshing *r)
{
	if (!r->ops_applied)
		return json_null();
	return json_pack("{s:O, s:O}", "applied", r->ops_applied, "skipped", r->ops_skipped);
}

json_t *hs_refresh_trace(const struct hs_refreshing *r, bool with_outputs)
{
	int64_t duration_ms = (hs_mono_us() - r->started_us) / 1000;
	char now[HS_TIME_TEXT];

	hs_time_format(hs_now_us(), now);
	return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:n, s:o, s:I, s:o}", "recorded_at",
		now, "effective_mode", hs_refresh_mode_names[hs_refresh_effective(r)],
		"mode_fallback_reason", text_or_null(r->fallback), "outcome",
		hs_outcome_names[r->outcome], "tool_calls", tool_calls(r, with_outputs),
		"llm_calls", llm_calls(&r->out), "delta_operations", operations(r), "retraction",
		"usage", hs_refresh_usage(&r->out.usage), "duration_ms", (json_int_t)duration_ms,
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
	if (r->delta && r->ran) {
		json_object_set_new(response, "delta_applied", json_boolean(r->edited));
		if (!r->edited)
			json_object_set_new(
				response, "delta_skipped_reason", json_string("no_new_facts"));
	}
	if (r->edited) {
		json_object_set(response, "delta_operations_applied", r->ops_applied);
		json_object_set(response, "delta_operations_skipped", r->ops_skipped);
	}
	if (r->over_budget) {
		json_object_set_new(
			response, "document_tokens", json_integer(r->out.document_tokens));
		json_object_set_new(response, "document_budget", json_integer(r->m.max_tokens));
	}
	if (r->t->keep_trace)
		json_object_set_new(response, "trace", hs_refresh_trace(r, false));
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
	json_t *response, *evidence;

	if (r->outcome == HS_CONTENT_PRESERVED)
		return preserved(r);
	response = hs_json_keep(r->pool, json_object());
	evidence = based_on(&r->out);
	if (r->delta)
		add_earlier(evidence, json_object_get(r->stored, "based_on"));
	json_object_set_new(response, "text", json_string(r->out.text ? r->out.text : ""));
	json_object_set_new(response, "based_on", evidence);
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
		json_object_set_new(response, "trace", hs_refresh_trace(r, false));
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
		counts(json_object_get(r->response, "based_on")), "delta_ops_applied",
		(int)json_array_size(r->ops_applied), "delta_ops_skipped",
		(int)json_array_size(r->ops_skipped), "outcome", hs_outcome_names[r->outcome],
		"failure_reason");
}
