#include "engine/trigger.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "engine/cron.h"
#include "engine/response_schema.h"
#include "json/json.h"

#define TRIGGER_TEXT_MAX ((size_t)32 * 1024 * 1024) /* a request body's trigger, escaped again */

const char *const hs_refresh_mode_names[] = {"full", "delta", NULL};
const char *const hs_budget_names[] = {"low", "mid", "high", NULL};

/* ---- field table ---- */

/* Trimmed; blank is none. */
static void read_cron(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct hs_cron cron;
	struct hs_err err = {0};
	char *text;

	if (json_is_null(v))
		return;
	if (!json_is_string(v)) {
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
		return;
	}
	text = hs_str_trim(hs_check_pool(ck), json_string_value(v));
	if (*text == '\0')
		return;
	if (hs_cron_parse(text, &cron, &err) != HS_OK)
		hs_check_value_error(ck, v, "%s is no valid schedule: %s", f->name, err.msg);
	else
		*(const char **)place = text;
}

static bool has_fuzzy(const struct hs_group *g)
{
	if (g->kind == HS_GROUP_LEAF)
		return g->fuzzy;
	for (size_t i = 0; i < g->n_kids; i++)
		if (has_fuzzy(g->kids[i]))
			return true;
	return false;
}

/* Stored scopes stay exact: a fuzzy leaf would mean something else at every refresh. */
static void read_groups(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct hs_groups *groups = NULL;

	if (json_is_null(v))
		return;
	hs_groups_read(ck, f, v, &groups);
	for (size_t i = 0; groups && i < groups->n; i++)
		if (has_fuzzy(groups->v[i])) {
			hs_check_value_error(
				ck, v, "tag_groups of a trigger take no leaf with resolve 'fuzzy'");
			return;
		}
	*(struct hs_groups **)place = groups;
}

static void one_automatic_kind(struct hs_check *ck, void *obj)
{
	const struct hs_trigger *t = obj;

	if (t->refresh_after_consolidation && t->refresh_cron)
		hs_check_value_error(ck, NULL,
			"refresh_after_consolidation and refresh_cron exclude each other");
}

#define T struct hs_trigger
#define FIELDS(null)                                                                               \
	HS_ENUM(T, mode, hs_refresh_mode_names, .flags = (null), .def = "full",                    \
		.doc = "full rebuilds the document, delta edits it"),                              \
		HS_ENUM(T, budget, hs_budget_names, .flags = HS_NULLABLE | HS_ENUM_ERROR,          \
			.doc = "search effort of a refresh; null is mid"),                         \
		HS_BOOL(T, refresh_after_consolidation, .flags = (null), .def = "false",           \
			.doc = "refresh when a consolidation left the model stale"),               \
		HS_CUSTOM(T, refresh_cron, read_cron, .flags = HS_NULLABLE,                        \
			.doc = "five-field UTC schedule of refreshes when stale"),                 \
		HS_CUSTOM(T, full_refresh_cron, read_cron, .flags = HS_NULLABLE,                   \
			.doc = "five-field UTC schedule of full rebuilds"),                        \
		HS_INT(T, min_refresh_interval_seconds, .flags = HS_NULLABLE, HS_MIN(0),           \
			.doc = "least distance of automatic refreshes; null is the bank's"),       \
		HS_ENUMS(T, fact_types, hs_fact_type_names, .flags = HS_NULLABLE | HS_NOT_EMPTY,   \
			.doc = "kinds of memories read; null is all"),                             \
		HS_BOOL(T, exclude_mental_models, .flags = (null), .def = "false",                 \
			.doc = "hide every other model from the refresh"),                         \
		HS_STRS(T, exclude_mental_model_ids, .flags = HS_NULLABLE,                         \
			.doc = "models hidden from the refresh; the model itself always is"),      \
		HS_ENUM(T, tags_match, hs_tags_match_names, .flags = HS_NULLABLE,                  \
			.doc = "how the model's tags select memories; null is all_strict"),        \
		HS_CUSTOM(T, tag_groups, read_groups, .flags = HS_NULLABLE,                        \
			.doc = "boolean tag scope in place of the model's tags"),                  \
		HS_BOOL(T, include_chunks, .flags = HS_NULLABLE,                                   \
			.doc = "show source chunks; null is the bank's setting"),                  \
		HS_INT(T, recall_max_tokens, .flags = HS_NULLABLE,                                 \
			.doc = "token budget of a recall; null is the bank's setting"),            \
		HS_INT(T, recall_chunks_max_tokens, .flags = HS_NULLABLE,                          \
			.doc = "token budget of chunks; null is the bank's setting"),              \
		HS_INT(T, reflect_search_observations_max_tokens, .flags = HS_NULLABLE, HS_MIN(1), \
			.doc = "token budget of an observation search; null is 5000"),             \
		HS_BOOL(T, reflect_search_observations_include_entities, .flags = HS_NULLABLE,     \
			.doc = "entity names beside observations; null is true"),                  \
		HS_INT(T, reflect_search_mental_models_max_tokens, .flags = HS_NULLABLE,           \
			HS_MIN(1), .doc = "token budget of models shown in full; null is 16000"),  \
		HS_CUSTOM(T, response_schema, hs_response_schema_read, .flags = HS_NULLABLE,       \
			.doc = "JSON Schema of structured_output"),                                \
		HS_BOOL(T, keep_trace, .flags = (null), .def = "false",                            \
			.doc = "store how the last refresh reached its result")

static const struct hs_field create_fields[] = {FIELDS(0)};
static const struct hs_field patch_fields[] = {FIELDS(HS_NULLABLE)};
#undef T

const struct hs_shape hs_trigger_shape =
	HS_SHAPE(hs_trigger, create_fields, .rule = one_automatic_kind);
const struct hs_shape hs_trigger_patch_shape =
	HS_SHAPE(hs_trigger, patch_fields, .rule = one_automatic_kind);

bool hs_trigger_has(const struct hs_trigger *t, const char *name)
{
	return hs_given(&hs_trigger_shape, t, name);
}

/* ---- stored form ---- */

/* A leaf whose match is unknown must not widen its scope. */
static void narrow_leaves(json_t *v, int depth)
{
	const char *key, *match = hs_json_str(v, "match");
	bool known = false;
	json_t *kid;
	size_t i;

	if (depth > 2 * HS_GROUP_DEPTH + 2) /* an object and a list for each and/or/not */
		return;
	for (i = 0; match && hs_tags_match_names[i]; i++)
		known = known || strcmp(match, hs_tags_match_names[i]) == 0;
	if (json_object_get(v, "match") && !known)
		json_object_set_new(v, "match", json_string("all_strict"));
	json_array_foreach(v, i, kid)
		narrow_leaves(kid, depth + 1);
	json_object_foreach(v, key, kid)
		narrow_leaves(kid, depth + 1);
}

static void repair(json_t *stored)
{
	if (hs_json_int(stored, "min_refresh_interval_seconds", 0) < 0)
		json_object_set_new(stored, "min_refresh_interval_seconds", json_integer(0));
	narrow_leaves(json_object_get(stored, "tag_groups"), 0);
}

/* Only the members that are valid alone; of two that exclude each other the schedule stays. */
static json_t *valid_members(struct hs_pool *pool, json_t *stored)
{
	json_t *good = hs_json_keep(pool, json_object());
	void *any;

	for (size_t i = 0; i < hs_trigger_shape.n_fields; i++) {
		const char *name = hs_trigger_shape.fields[i].name;
		json_t *v = json_object_get(stored, name);
		json_t *alone = hs_json_keep(pool, json_object());

		if (!v)
			continue;
		json_object_set(alone, name, v);
		if (hs_check_object(pool, &hs_trigger_shape, "body", alone, &any, NULL, NULL) ==
			HS_OK)
			json_object_set(good, name, v);
	}
	if (hs_check_object(pool, &hs_trigger_shape, "body", good, &any, NULL, NULL) != HS_OK)
		json_object_del(good, "refresh_after_consolidation");
	return good;
}

struct hs_trigger *hs_trigger_read(struct hs_pool *pool, const char *text)
{
	json_t *stored = NULL;
	void *t = NULL;

	if (hs_json_load(pool, text, &stored, NULL) != HS_OK || !json_is_object(stored))
		stored = hs_json_keep(pool, json_object());
	if (hs_check_object(pool, &hs_trigger_shape, "body", stored, &t, NULL, NULL) == HS_OK)
		return t;
	repair(stored);
	if (hs_check_object(pool, &hs_trigger_shape, "body", valid_members(pool, stored), &t, NULL,
		    NULL) != HS_OK)
		return hs_trigger_read(pool, NULL);
	return t;
}

static void out_custom(
	struct hs_pool *pool, struct hs_out *o, const struct hs_field *f, const void *place)
{
	if (f->custom == read_cron) {
		hs_out_str(o, f->name, *(const char *const *)place);
	} else if (f->custom == read_groups) {
		const struct hs_groups *g = *(struct hs_groups *const *)place;

		hs_out_json(o, f->name, g ? hs_json_keep(pool, hs_groups_json(g)) : NULL);
	} else {
		hs_out_json(o, f->name, *(json_t *const *)place);
	}
}

static void out_member(struct hs_pool *pool, struct hs_out *o, const struct hs_field *f, bool set,
	const struct hs_trigger *t)
{
	const void *place = (const char *)t + f->offset;
	int choice;

	switch (f->type) {
	case HS_F_ENUM:
		choice = *(const int *)place;
		hs_out_str(o, f->name, choice < 0 ? NULL : f->names[choice]);
		break;
	case HS_F_BOOL:
		if (set)
			hs_out_bool(o, f->name, *(const bool *)place);
		else
			hs_out_null(o, f->name);
		break;
	case HS_F_INT:
		if (set)
			hs_out_int(o, f->name, *(const int64_t *)place);
		else
			hs_out_null(o, f->name);
		break;
	case HS_F_STRS:
	case HS_F_ENUMS:
		if (set)
			hs_out_strs(o, f->name, place);
		else
			hs_out_null(o, f->name);
		break;
	default:
		out_custom(pool, o, f, place);
	}
}

void hs_trigger_out(
	struct hs_pool *pool, struct hs_out *o, const char *key, const struct hs_trigger *t)
{
	hs_out_open(o, key, '{');
	for (size_t i = 0; i < HS_COUNT(create_fields); i++) {
		const struct hs_field *f = &create_fields[i];

		out_member(pool, o, f, f->def || (t->seen.given >> i & 1), t);
	}
	hs_out_close(o, '}');
}

const char *hs_trigger_text(struct hs_pool *pool, const struct hs_trigger *t)
{
	struct hs_buf *buf = hs_buf_new(pool, TRIGGER_TEXT_MAX);
	struct hs_out o = hs_out_to(buf);

	hs_trigger_out(pool, &o, NULL, t);
	return buf->data;
}

/* ---- merge ---- */

static const size_t place_bytes[] = {
	[HS_F_INT] = sizeof(int64_t),
	[HS_F_BOOL] = sizeof(bool),
	[HS_F_ENUM] = sizeof(int),
	[HS_F_STRS] = sizeof(struct hs_strs),
	[HS_F_ENUMS] = sizeof(struct hs_strs),
	[HS_F_CUSTOM] = sizeof(void *),
};

/* Take member i of *from; given says whether it counts as set. */
static void take(struct hs_trigger *to, const struct hs_trigger *from, size_t i, bool given)
{
	const struct hs_field *f = &create_fields[i];
	uint64_t bit = UINT64_C(1) << i;

	memcpy((char *)to + f->offset, (const char *)from + f->offset, place_bytes[f->type]);
	to->seen.given = given ? to->seen.given | bit : to->seen.given & ~bit;
	to->seen.null &= ~bit;
}

static bool was_sent(const struct hs_trigger *sent, const char *name)
{
	return hs_given(&hs_trigger_patch_shape, sent, name) ||
	       hs_was_null(&hs_trigger_patch_shape, sent, name);
}

struct hs_trigger *hs_trigger_merge(
	struct hs_pool *pool, const struct hs_trigger *stored, const struct hs_trigger *sent)
{
	struct hs_trigger *merged = hs_pool_memdup(pool, stored, sizeof(*stored));
	const struct hs_trigger *defaults = hs_trigger_read(pool, NULL);

	for (size_t i = 0; i < HS_COUNT(create_fields); i++) {
		if (sent->seen.given >> i & 1)
			take(merged, sent, i, true);
		else if (sent->seen.null >> i & 1)
			take(merged, defaults, i, false);
	}
	if (sent->refresh_cron && !was_sent(sent, "refresh_after_consolidation"))
		merged->refresh_after_consolidation = false;
	if (sent->refresh_after_consolidation && !was_sent(sent, "refresh_cron"))
		merged->refresh_cron = NULL;
	return merged;
}

int64_t hs_trigger_interval(const struct hs_trigger *t, const struct hs_config *cfg)
{
	int64_t s = hs_trigger_has(t, "min_refresh_interval_seconds")
			    ? t->min_refresh_interval_seconds
			    : hs_cfg_int(cfg, HS_S_mental_model_min_refresh_interval_seconds);

	return s < 0 ? 0 : s;
}
