#include "engine/refresh_run.h"

#include "base/clock.h"
#include "engine/diff.h"
#include "json/json.h"

static json_t *text_or_null(const char *s)
{
	return s ? json_string(s) : json_null();
}

static json_t *time_or_null(int64_t us)
{
	char text[HS_TIME_TEXT];

	if (us == HS_TIME_NONE)
		return json_null();
	hs_time_format(us, text);
	return json_string(text);
}

static json_t *list_or_null(const struct hs_strs *list)
{
	return list->n ? hs_json_from_strs(list) : json_null();
}

static json_t *scope_json(const struct hs_refreshing *r)
{
	const struct hs_trigger *t = r->t;

	return json_pack("{s:o, s:s, s:o, s:o, s:b, s:o}", "tags",
		r->scope.has_groups ? json_null() : hs_json_from_strs(&r->scope.tags), "tags_match",
		hs_tags_match_names[r->scope.match], "tag_groups",
		t->tag_groups ? hs_groups_json(t->tag_groups) : json_null(), "fact_types",
		list_or_null(&t->fact_types), "exclude_mental_models", t->exclude_mental_models,
		"exclude_mental_model_ids", hs_json_from_strs(&r->exclude));
}

static json_t *window_json(const struct hs_refreshing *r)
{
	return json_pack("{s:o, s:o, s:o}", "created_after", time_or_null(r->scope.after_us),
		"created_before", time_or_null(r->scope.until_us), "watermark",
		time_or_null(r->watermark_us));
}

static void count(json_t *counts, const char *type, size_t n)
{
	if (n)
		json_object_set_new(
			counts, type, json_integer(hs_json_int(counts, type, 0) + (json_int_t)n));
}

static json_t *retrieved(const struct hs_reflect_out *out)
{
	json_t *counts = json_object();

	for (int i = 0; i < HS_FACT_TYPE__MAX; i++)
		count(counts, hs_fact_type_names[i], out->n_retrieved[i]);
	count(counts, "mental-models", out->n_models_retrieved);
	return counts;
}

static json_t *used(const struct hs_reflect_out *out)
{
	json_t *counts = json_object();

	for (size_t i = 0; i < out->n_facts; i++)
		count(counts, out->facts[i].type ? out->facts[i].type : "world", 1);
	count(counts, "mental-models", out->n_models);
	return counts;
}

static json_t *operations_json(const struct hs_refreshing *r)
{
	if (!r->ops_applied)
		return json_null();
	return json_pack("{s:O, s:O}", "applied", r->ops_applied, "skipped", r->ops_skipped);
}

/* based_on as it would be stored; a refused result leaves what stands. */
static json_t *based_on(struct hs_refreshing *r)
{
	json_t *from = hs_outcome_failed(r->outcome) ? r->stored : hs_refresh_response(r);
	json_t *v = json_object_get(from, "based_on");

	return v ? json_incref(v) : json_object();
}

static void set(json_t *o, const char *key, json_t *v)
{
	json_object_set_new(o, key, v);
}

static void put_outcome(struct hs_refreshing *r, json_t *o)
{
	set(o, "mental_model_id", json_string(r->m.id));
	set(o, "name", json_string(r->m.name));
	set(o, "requested_mode", json_string(hs_refresh_mode_names[r->t->mode]));
	set(o, "effective_mode", json_string(hs_refresh_mode_names[hs_refresh_effective(r)]));
	set(o, "mode_fallback_reason", text_or_null(r->fallback));
	set(o, "outcome", json_string(hs_outcome_names[r->outcome]));
	set(o, "would_persist", json_boolean(hs_outcome_writes(r->outcome)));
	set(o, "scope", scope_json(r));
	set(o, "window", window_json(r));
	set(o, "facts",
		json_pack("{s:o, s:o}", "retrieved", retrieved(&r->out), "used", used(&r->out)));
	set(o, "based_on", based_on(r));
}

static void put_texts(struct hs_refreshing *r, json_t *o)
{
	const char *current = hs_str_trim(r->pool, r->m.content);
	const char *preview = hs_outcome_writes(r->outcome) ? r->content : current;

	set(o, "current_content", json_string(current));
	set(o, "candidate_content", json_string(r->out.text ? r->out.text : ""));
	set(o, "preview_content", json_string(preview));
	set(o, "diff", json_string(hs_diff_unified(r->pool, current, preview)));
}

static json_t *result(struct hs_refreshing *r)
{
	int64_t duration_ms = (hs_mono_us() - r->started_us) / 1000;
	json_t *o = hs_json_keep(r->pool, json_object());

	put_outcome(r, o);
	put_texts(r, o);
	set(o, "delta_operations", operations_json(r));
	set(o, "retraction", json_null());
	set(o, "trace", hs_refresh_trace(r, true));
	set(o, "usage", hs_refresh_usage(&r->out.usage));
	set(o, "duration_ms", json_integer(duration_ms));
	set(o, "warnings", hs_json_from_strs(&r->warnings));
	return o;
}

enum hs_rc hs_refresh_dry_run(
	struct hs_run *run, const struct hs_refresh_in *in, json_t **ret_result, struct hs_err *err)
{
	struct hs_refreshing r = {
		.run = run, .pool = run->pool, .in = in, .started_us = hs_mono_us()};
	enum hs_rc rc;

	HS_TRY(hs_refresh_load(&r, err));
	rc = hs_refresh_produce(&r, err);
	/* a run that died has no result; one that was refused has */
	if (rc != HS_OK && (r.outcome == HS_FAILED_ERROR || hs_refresh_unrecorded(err)))
		return rc;
	if (rc != HS_OK) {
		hs_refresh_warn(&r, hs_err_public(err));
		hs_err_clear(err);
	}
	*ret_result = result(&r);
	return HS_OK;
}
