#include "mcp.h"

#include <string.h>

#include "engine/model_body.h"
#include "engine/model_scope.h"
#include "json/json.h"

#define MIN_TOKENS 256
#define MAX_TOKENS 8192
#define SHOWN_CHARS 100 /* of a refused text */

static enum hs_rc missing(struct mcp_call *k, const char *id)
{
	return hs_fail(
		k->err, HS_E_NOT_FOUND, "Mental model '%s' not found in bank '%s'", id, k->bank_id);
}

/* ---- what is shown ---- */

/* The members of every level, in an object left open. */
static void put_head(struct mcp_call *k, const struct hs_mm *m)
{
	struct hs_out *o = k->o;

	hs_out_open(o, NULL, '{');
	hs_out_str(o, "id", m->id);
	hs_out_str(o, "bank_id", k->bank_id);
	hs_out_str(o, "name", m->name);
	hs_out_raw(o, "tags", m->tags, "[]");
	hs_out_time(o, "last_refreshed_at", m->last_refreshed_us);
	hs_out_time(o, "last_memory_seen_at", m->last_memory_seen_us);
	hs_out_time(o, "last_refresh_failed_at", m->last_refresh_failed_us);
	hs_out_time(o, "last_full_refreshed_at", m->last_full_refreshed_us);
	hs_out_time(o, "created_at", m->created_us);
	hs_out_bool(o, "is_knowledge_page", false);
}

static void put_content(struct mcp_call *k, const struct hs_mm *m)
{
	hs_out_str(k->o, "source_query", m->source_query);
	hs_out_int(k->o, "max_tokens", m->max_tokens);
	hs_trigger_out(k->c->pool, k->o, "trigger", hs_trigger_read(k->c->pool, m->trigger));
	hs_out_str(k->o, "content", m->content);
}

/* The structure is read by number: it is no part of the wire's reads. */
static enum hs_rc put_full(struct mcp_call *k, const struct hs_mm *m)
{
	struct hs_mm whole;

	HS_TRY(hs_mm_load(k->c->db, k->c->pool, m->bank_no, m->id, &whole, k->err));
	hs_out_raw(k->o, "reflect_response", m->reflect_response, "null");
	hs_out_raw(k->o, "structured_content", whole.structured_content, "null");
	return HS_OK;
}

/* ---- list, get ---- */

struct list_args {
	struct hs_seen seen;
	struct hs_strs tags;
	int64_t limit, offset;
};
#define T struct list_args
static const struct hs_field list_fields[] = {
	HS_STRS(T, tags, .flags = HS_NULLABLE, .doc = "only models that share one of these tags"),
	HS_INT(T, limit, HS_RANGE(1, 1000), .flags = HS_NO_BOOL, .def = "100",
		.doc = "rows of the page"),
	HS_INT(T, offset, HS_MIN(0), .flags = HS_NO_BOOL, .def = "0", .doc = "rows to skip"),
};
#undef T
const struct hs_shape mcp_list_models_args = HS_SHAPE(list_args, list_fields);

enum hs_rc mcp_list_models(struct mcp_call *k, const void *args)
{
	const struct list_args *a = args;
	struct hs_mm_list in = {.bank_id = k->bank_id,
		.tags = a->tags,
		.detail = HS_METADATA,
		.limit = a->limit,
		.offset = a->offset};
	struct hs_mm_page page;
	bool *stale;

	HS_TRY(hs_mm_list(k->c->db, k->c->pool, &in, &page, k->err));
	stale = HS_NEW_ARRAY(k->c->pool, bool, page.n + 1);
	HS_TRY(hs_models_stale(
		k->c->db, k->c->pool, page.bank_no, page.clock_us, page.v, page.n, stale, k->err));
	hs_out_open(k->o, NULL, '{');
	hs_out_open(k->o, "items", '[');
	for (size_t i = 0; i < page.n; i++) {
		put_head(k, &page.v[i]);
		hs_out_bool(k->o, "is_stale", stale[i]);
		hs_out_close(k->o, '}');
	}
	hs_out_close(k->o, ']');
	hs_out_int(k->o, "total", page.total);
	hs_out_close(k->o, '}');
	return HS_OK;
}

struct get_args {
	struct hs_seen seen;
	const char *mental_model_id, *detail;
};
#define T struct get_args
static const struct hs_field get_fields[] = {
	HS_STR(T, mental_model_id, .flags = HS_REQUIRED, .doc = "id of the mental model"),
	HS_STR(T, detail, .def = "full", .doc = "how much is shown: metadata, content or full"),
};
#undef T
const struct hs_shape mcp_get_model_args = HS_SHAPE(get_args, get_fields);

/* An unknown word is the middle level. */
static enum hs_detail detail_of(const char *word)
{
	for (int i = 0; hs_detail_names[i]; i++)
		if (strcmp(word, hs_detail_names[i]) == 0)
			return (enum hs_detail)i;
	return HS_CONTENT;
}

/* with_stale: HS_FULL tells whether it is stale. */
static enum hs_rc put_model(
	struct mcp_call *k, const char *id, enum hs_detail detail, bool with_stale)
{
	bool stale = false;
	struct hs_mm m;
	enum hs_rc rc = hs_mm_get(k->c->db, k->c->pool, k->bank_id, id, detail, &m, k->err);

	if (rc == HS_E_NOT_FOUND)
		return missing(k, id);
	HS_TRY(rc);
	put_head(k, &m);
	if (detail >= HS_CONTENT)
		put_content(k, &m);
	if (detail == HS_FULL)
		HS_TRY(put_full(k, &m));
	if (detail == HS_FULL && with_stale) {
		HS_TRY(hs_model_stale(k->c->db, k->c->pool, &m, &stale, k->err));
		hs_out_bool(k->o, "is_stale", stale);
	}
	hs_out_close(k->o, '}');
	return HS_OK;
}

enum hs_rc mcp_get_model(struct mcp_call *k, const void *args)
{
	const struct get_args *a = args;

	return put_model(k, a->mental_model_id, detail_of(a->detail), true);
}

/* ---- create, update ---- */

struct change_args {
	struct hs_seen seen;
	const char *mental_model_id, *name, *source_query, *tags_match;
	struct hs_strs tags;
	json_t *trigger;
	int64_t max_tokens;
	bool trigger_refresh_after_consolidation;
};
#define T struct change_args
static const struct hs_field create_fields[] = {
	HS_STR(T, name, .flags = HS_REQUIRED, .doc = "shown to people"),
	HS_STR(T, source_query, .flags = HS_REQUIRED,
		.doc = "the question that the document answers"),
	HS_STR(T, mental_model_id, .flags = HS_NULLABLE,
		.doc = "id of one's own; left out, one is made"),
	HS_STRS(T, tags, .flags = HS_NULLABLE, .doc = "what it reads and where it is shown"),
	HS_CUSTOM(T, trigger, mcp_trigger_read, .flags = HS_NULLABLE,
		.doc = "when and how it refreshes"),
	HS_STR(T, tags_match, .flags = HS_NULLABLE,
		.doc = "short for trigger.tags_match: any, all, any_strict, all_strict or exact"),
	HS_INT(T, max_tokens, .flags = HS_NO_BOOL, .def = "2048",
		.doc = "wanted length of the document, 256 to 8192"),
	HS_BOOL(T, trigger_refresh_after_consolidation, .flags = HS_NULLABLE,
		.doc = "short for trigger.refresh_after_consolidation"),
};
static const struct hs_field update_fields[] = {
	HS_STR(T, mental_model_id, .flags = HS_REQUIRED, .doc = "id of the mental model"),
	HS_STR(T, name, .flags = HS_NULLABLE, .doc = "shown to people"),
	HS_STR(T, source_query, .flags = HS_NULLABLE,
		.doc = "the question that the document answers"),
	HS_INT(T, max_tokens, .flags = HS_NULLABLE | HS_NO_BOOL,
		.doc = "wanted length of the document, 256 to 8192"),
	HS_STRS(T, tags, .flags = HS_NULLABLE, .doc = "[] takes all tags away"),
	HS_CUSTOM(T, trigger, mcp_trigger_read, .flags = HS_NULLABLE,
		.doc = "members to change; null puts one back to its default"),
	HS_STR(T, tags_match, .flags = HS_NULLABLE,
		.doc = "short for trigger.tags_match: any, all, any_strict, all_strict or exact"),
	HS_BOOL(T, trigger_refresh_after_consolidation, .flags = HS_NULLABLE,
		.doc = "short for trigger.refresh_after_consolidation"),
};
#undef T
const struct hs_shape mcp_create_model_args = HS_SHAPE(change_args, create_fields);
const struct hs_shape mcp_update_model_args = HS_SHAPE(change_args, update_fields);

/* In the order of the contract; what was not given is fine. */
static enum hs_rc check_values(struct mcp_call *k, const struct change_args *a, bool with_tokens)
{
	bool known = !a->tags_match;

	if (a->name && hs_str_blank(a->name))
		return hs_fail(k->err, HS_E_BAD_REQUEST, "name cannot be empty");
	if (a->source_query && hs_str_blank(a->source_query))
		return hs_fail(k->err, HS_E_BAD_REQUEST, "source_query cannot be empty");
	if (with_tokens && (a->max_tokens < MIN_TOKENS || a->max_tokens > MAX_TOKENS))
		return hs_fail(k->err, HS_E_BAD_REQUEST,
			"max_tokens must be between %d and %d, got %lld", MIN_TOKENS, MAX_TOKENS,
			(long long)a->max_tokens);
	for (size_t i = 0; !known && hs_tags_match_names[i]; i++)
		known = strcmp(a->tags_match, hs_tags_match_names[i]) == 0;
	if (!known)
		return hs_fail(k->err, HS_E_BAD_REQUEST,
			"tags_match must be one of any, all, any_strict, all_strict, exact, got '%s'",
			hs_utf8_cut(k->c->pool, a->tags_match, SHOWN_CHARS));
	return HS_OK;
}

/* As the messages print values: 'text', True, False, None. */
static const char *shown(struct hs_pool *pool, const json_t *v)
{
	if (json_is_string(v))
		return hs_pool_printf(pool, "'%s'", json_string_value(v));
	if (json_is_boolean(v))
		return json_is_true(v) ? "True" : "False";
	return json_is_null(v) ? "None" : hs_json_text(pool, v);
}

/* Lay a short form over the trigger; a member given in both places must be the same. v is taken. */
static enum hs_rc add_short(
	struct mcp_call *k, json_t *trigger, const char *member, const char *short_name, json_t *v)
{
	struct hs_pool *pool = k->c->pool;
	json_t *given = json_object_get(trigger, member);

	hs_json_keep(pool, v);
	if (given && !json_equal(given, v))
		return hs_fail(k->err, HS_E_BAD_REQUEST,
			"trigger.%s=%s conflicts with %s=%s; set it in one place", member,
			shown(pool, given), short_name, shown(pool, v));
	json_object_set(trigger, member, v);
	return HS_OK;
}

/* The members given in trigger and by the short forms; *ret is empty when there are none. */
static enum hs_rc read_trigger(
	struct mcp_call *k, const struct hs_shape *shape, const struct change_args *a, json_t **ret)
{
	json_t *trigger =
		hs_json_keep(k->c->pool, a->trigger ? json_copy(a->trigger) : json_object());
	bool after = a->trigger_refresh_after_consolidation;

	if (a->tags_match)
		HS_TRY(add_short(
			k, trigger, "tags_match", "tags_match", json_string(a->tags_match)));
	if (hs_given(shape, a, "trigger_refresh_after_consolidation"))
		HS_TRY(add_short(k, trigger, "refresh_after_consolidation",
			"trigger_refresh_after_consolidation", json_boolean(after)));
	if (after && !hs_str_blank(hs_json_str(trigger, "refresh_cron")))
		return hs_fail(k->err, HS_E_BAD_REQUEST,
			"refresh_after_consolidation and refresh_cron are mutually exclusive: a mental model "
			"refreshes either after consolidation or on a cron schedule, not both.");
	*ret = trigger;
	return HS_OK;
}

static void drop_nulls(json_t *object)
{
	const char *key;
	json_t *v;
	void *next;

	json_object_foreach_safe(object, next, key, v) if (json_is_null(v))
		json_object_del(object, key);
}

enum hs_rc mcp_create_model(struct mcp_call *k, const void *args)
{
	const struct change_args *a = args;
	json_t *body = hs_json_keep(k->c->pool, json_object()), *trigger;
	const char *id, *operation_id;
	struct hs_model_new in;
	void *checked;

	HS_TRY(check_values(k, a, true));
	HS_TRY(read_trigger(k, &mcp_create_model_args, a, &trigger));
	drop_nulls(trigger);
	for (size_t i = 0; i < HS_COUNT(create_fields); i++)
		mcp_keep(body, k->sent, create_fields[i].name);
	if (a->mental_model_id)
		json_object_set_new(body, "id", json_string(a->mental_model_id));
	json_object_set(body, "trigger", trigger);
	HS_TRY(mcp_body(k, &hs_model_create_shape, body, &checked));
	in = hs_model_new_of(k->bank_id, checked);
	HS_TRY(hs_model_create(k->run, &in, &id, &operation_id, k->err));
	hs_out_open(k->o, NULL, '{');
	hs_out_str(k->o, "mental_model_id", id);
	hs_out_str(k->o, "operation_id", operation_id);
	hs_out_str(k->o, "status", "created");
	hs_out_str(k->o, "message",
		hs_pool_printf(k->c->pool,
			"Mental model '%s' created. Content is being generated asynchronously.",
			a->name));
	hs_out_close(k->o, '}');
	return HS_OK;
}

enum hs_rc mcp_update_model(struct mcp_call *k, const void *args)
{
	const struct change_args *a = args;
	json_t *body = hs_json_keep(k->c->pool, json_object()), *trigger;
	struct hs_model_patch in;
	void *checked;
	enum hs_rc rc;

	HS_TRY(check_values(k, a, hs_given(&mcp_update_model_args, a, "max_tokens")));
	HS_TRY(read_trigger(k, &mcp_update_model_args, a, &trigger));
	for (size_t i = 0; i < HS_COUNT(update_fields); i++)
		mcp_keep(body, k->sent, update_fields[i].name);
	json_object_del(body, "trigger");
	if (json_object_size(trigger) > 0)
		json_object_set(body, "trigger", trigger);
	HS_TRY(mcp_body(k, &hs_model_change_shape, body, &checked));
	in = hs_model_patch_of(k->bank_id, a->mental_model_id, checked);
	rc = hs_model_patch(k->run, &in, k->err);
	if (rc == HS_E_NOT_FOUND)
		return missing(k, in.id);
	HS_TRY(rc);
	return put_model(k, in.id, HS_FULL, false);
}

/* ---- delete, refresh ---- */

struct one_args {
	struct hs_seen seen;
	const char *mental_model_id;
};
static const struct hs_field one_fields[] = {
	HS_STR(struct one_args, mental_model_id, .flags = HS_REQUIRED,
		.doc = "id of the mental model"),
};
const struct hs_shape mcp_model_args = HS_SHAPE(one_args, one_fields);

enum hs_rc mcp_delete_model(struct mcp_call *k, const void *args)
{
	const char *id = ((const struct one_args *)args)->mental_model_id;
	enum hs_rc rc = hs_mm_delete(k->c->db, k->c->pool, k->bank_id, id, k->err);

	if (rc == HS_E_NOT_FOUND)
		return missing(k, id);
	HS_TRY(rc);
	hs_out_open(k->o, NULL, '{');
	hs_out_str(k->o, "status", "deleted");
	hs_out_str(k->o, "mental_model_id", id);
	hs_out_close(k->o, '}');
	return HS_OK;
}

enum hs_rc mcp_refresh_model(struct mcp_call *k, const void *args)
{
	const char *id = ((const struct one_args *)args)->mental_model_id, *operation_id;

	HS_TRY(hs_model_refresh(k->run, k->bank_id, id, false, &operation_id, k->err));
	hs_out_open(k->o, NULL, '{');
	hs_out_str(k->o, "operation_id", operation_id);
	hs_out_str(k->o, "status", "queued");
	hs_out_str(k->o, "message",
		hs_pool_printf(k->c->pool, "Refresh queued for mental model '%s'.", id));
	hs_out_close(k->o, '}');
	return HS_OK;
}
