/* tag_groups: JSON in and out (reflect A5). */
#include "store/scope.h"

#include <string.h>

#include "base/limits.h"
#include "json/json.h"

/*
 * Every form is tried quietly first; when none validates, the first form that was meant is read
 * again with `ck` set, and reports its first fault.
 */
struct reader {
	struct hs_pool *pool;
	struct hs_check *ck; /* NULL = quiet */
	size_t nodes, tags;
	bool over; /* a limit was hit */
};

static const struct form {
	const char *name, *key;
	enum hs_group_kind kind;
} forms[] = {
	{"TagGroupLeaf", "tags", HS_GROUP_LEAF},
	{"TagGroupAnd", "and", HS_GROUP_AND},
	{"TagGroupOr", "or", HS_GROUP_OR},
	{"TagGroupNot", "not", HS_GROUP_NOT},
};

static struct hs_group *read_group(struct reader *r, json_t *v, size_t depth);

static void fault(
	struct reader *r, const char *type, const char *msg, json_t *input, const char *ctx)
{
	if (r->ck)
		hs_check_fault(r->ck, type, msg, input, ctx);
}

static void push(struct reader *r, const char *key)
{
	if (r->ck)
		hs_check_push(r->ck, key);
}

static void push_index(struct reader *r, size_t i)
{
	if (r->ck)
		hs_check_push_index(r->ck, i);
}

static void pop(struct reader *r)
{
	if (r->ck)
		hs_check_pop(r->ck);
}

static bool read_leaf_tags(struct reader *r, json_t *v, struct hs_strs *ret)
{
	json_t *item;
	size_t i;

	if (!json_is_array(v)) {
		fault(r, "list_type", "Input should be a valid list", v, NULL);
		return false;
	}
	if (r->tags + json_array_size(v) > HS_GROUP_TAGS) {
		r->over = true;
		return false;
	}
	json_array_foreach(v, i, item) {
		if (!json_is_string(item)) {
			push_index(r, i);
			fault(r, "string_type", "Input should be a valid string", item, NULL);
			pop(r);
			return false;
		}
		hs_strs_add(r->pool, ret, json_string_value(item));
	}
	return true;
}

/* The index of a choice; def when absent, -1 when it is none. */
static int read_choice(struct reader *r, json_t *obj, const char *key, const char *const *names,
	const char *expected, int def)
{
	json_t *v = json_object_get(obj, key);
	const char *ctx, *msg;

	if (!v)
		return def;
	for (int i = 0; names[i]; i++)
		if (hs_str_eq(json_string_value(v), names[i]))
			return i;
	ctx = hs_pool_printf(r->pool, "{\"expected\":\"%s\"}", expected);
	msg = hs_pool_printf(r->pool, "Input should be %s", expected);
	push(r, key);
	fault(r, "literal_error", msg, v, ctx);
	pop(r);
	return -1;
}

static bool read_leaf(struct reader *r, json_t *obj, struct hs_group *g)
{
	static const char *const resolves[] = {"exact", "fuzzy", NULL};
	bool ok;
	int match, resolve;

	push(r, "tags");
	ok = read_leaf_tags(r, json_object_get(obj, "tags"), &g->tags);
	pop(r);
	if (!ok)
		return false;
	match = read_choice(r, obj, "match", hs_tags_match_names,
		"'any', 'all', 'any_strict', 'all_strict' or 'exact'", HS_ANY_STRICT);
	if (match < 0)
		return false;
	resolve = read_choice(r, obj, "resolve", resolves, "'exact' or 'fuzzy'", 0);
	if (resolve < 0)
		return false;
	g->match = (enum hs_tags_match)match;
	/* without tags there is nothing to resolve */
	g->fuzzy = resolve == 1 && g->tags.n > 0;
	r->tags += g->tags.n;
	return true;
}

static bool read_kids(
	struct reader *r, json_t *list, const char *key, struct hs_group *g, size_t depth)
{
	json_t *item;
	size_t i;

	if (!json_is_array(list)) {
		fault(r, "list_type", "Input should be a valid list", list, NULL);
		return false;
	}
	if (json_array_size(list) == 0) {
		if (r->ck)
			hs_check_value_error(r->ck, list, "'%s' needs at least one group", key);
		return false;
	}
	if (json_array_size(list) > HS_GROUP_NODES) {
		r->over = true;
		return false;
	}
	g->kids = HS_NEW_ARRAY(r->pool, struct hs_group *, json_array_size(list));
	json_array_foreach(list, i, item) {
		push_index(r, i);
		g->kids[i] = read_group(r, item, depth + 1);
		pop(r);
		if (!g->kids[i])
			return false;
		g->n_kids++;
	}
	return true;
}

static bool read_not(struct reader *r, json_t *v, struct hs_group *g, size_t depth)
{
	g->kids = HS_NEW(r->pool, struct hs_group *);
	g->kids[0] = read_group(r, v, depth + 1);
	g->n_kids = 1;
	return g->kids[0] != NULL;
}

static struct hs_group *read_form(
	struct reader *r, const struct form *form, json_t *obj, size_t depth)
{
	struct hs_group *g = HS_NEW(r->pool, struct hs_group);
	bool ok = false;

	g->kind = form->kind;
	push(r, form->name);
	if (form->kind == HS_GROUP_LEAF) {
		ok = read_leaf(r, obj, g);
	} else if (depth >= HS_GROUP_DEPTH) {
		r->over = true;
	} else {
		json_t *v = json_object_get(obj, form->key);

		push(r, form->key);
		ok = form->kind == HS_GROUP_NOT ? read_not(r, v, g, depth)
						: read_kids(r, v, form->key, g, depth);
		pop(r);
	}
	pop(r);
	return ok ? g : NULL;
}

/* Report what is wrong with the form that was meant. */
static void report(struct reader *r, const struct form *meant, json_t *v, size_t depth)
{
	if (!r->ck || r->over)
		return;
	if (meant) {
		/* this fails as it did before, now aloud */
		(void)read_form(r, meant, v, depth);
		return;
	}
	hs_check_push(r->ck, forms[0].name);
	if (json_is_object(v)) {
		hs_check_push(r->ck, "tags");
		fault(r, "missing", "Field required", v, NULL);
		hs_check_pop(r->ck);
	} else {
		fault(r, "model_attributes_type",
			"Input should be a valid dictionary or object to extract fields from", v,
			NULL);
	}
	hs_check_pop(r->ck);
}

/* depth: and/or/not around this group. */
static struct hs_group *read_group(struct reader *r, json_t *v, size_t depth)
{
	struct hs_check *ck = r->ck;
	const struct form *meant = NULL;
	struct hs_group *g = NULL;
	size_t nodes, tags;

	if (++r->nodes > HS_GROUP_NODES)
		r->over = true;
	nodes = r->nodes;
	tags = r->tags;
	r->ck = NULL;
	for (size_t i = 0; i < HS_COUNT(forms) && !g && !r->over; i++) {
		if (!json_object_get(v, forms[i].key))
			continue;
		if (!meant)
			meant = &forms[i];
		g = read_form(r, &forms[i], v, depth);
		if (!g) {
			r->nodes = nodes;
			r->tags = tags;
		}
	}
	r->ck = ck;
	if (!g)
		report(r, meant, v, depth);
	return r->over ? NULL : g;
}

static struct hs_groups *read_list(struct reader *r, json_t *v)
{
	struct hs_groups *groups = HS_NEW(r->pool, struct hs_groups);
	struct hs_check *ck = r->ck;
	bool ok = true;
	json_t *item;
	size_t i;

	if (!json_is_array(v)) {
		fault(r, "list_type", "Input should be a valid list", v, NULL);
		return NULL;
	}
	groups->json = v;
	groups->v = HS_NEW_ARRAY(r->pool, struct hs_group *, json_array_size(v));
	json_array_foreach(v, i, item) {
		push_index(r, i);
		groups->v[i] = read_group(r, item, 0);
		pop(r);
		ok = ok && groups->v[i];
		if (r->over)
			break;
		groups->n++;
	}
	if (r->over && ck)
		hs_check_value_error(ck, v,
			"tag_groups may hold at most %d groups and %d tags, nested at most %d deep",
			HS_GROUP_NODES, HS_GROUP_TAGS, HS_GROUP_DEPTH);
	return ok && !r->over ? groups : NULL;
}

void hs_groups_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct reader r = {.pool = hs_check_pool(ck), .ck = ck};

	(void)f;
	*(struct hs_groups **)place = !v || json_is_null(v) ? NULL : read_list(&r, v);
}

enum hs_rc hs_groups_parse(
	struct hs_pool *pool, json_t *v, struct hs_groups **ret, struct hs_err *err)
{
	struct reader r = {.pool = pool};

	*ret = NULL;
	if (!v || json_is_null(v))
		return HS_OK;
	*ret = read_list(&r, v);
	return *ret ? HS_OK : hs_fail(err, HS_E_PARSE, "stored tag_groups do not validate");
}

static bool is_fuzzy(struct hs_group *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i]->fuzzy || is_fuzzy(v[i]->kids, v[i]->n_kids))
			return true;
	return false;
}

bool hs_groups_fuzzy(const struct hs_groups *g)
{
	return g && is_fuzzy(g->v, g->n);
}

static json_t *group_json(const struct hs_group *g);

static json_t *list_json(struct hs_group *const *v, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, group_json(v[i]));
	return list;
}

static json_t *group_json(const struct hs_group *g)
{
	json_t *obj = json_object();

	switch (g->kind) {
	case HS_GROUP_LEAF:
		json_object_set_new(obj, "tags", hs_json_from_strs(&g->tags));
		json_object_set_new(obj, "match", json_string(hs_tags_match_names[g->match]));
		json_object_set_new(obj, "resolve", json_string(g->fuzzy ? "fuzzy" : "exact"));
		break;
	case HS_GROUP_NOT:
		json_object_set_new(obj, "not", group_json(g->kids[0]));
		break;
	case HS_GROUP_AND:
	case HS_GROUP_OR:
		json_object_set_new(
			obj, g->kind == HS_GROUP_AND ? "and" : "or", list_json(g->kids, g->n_kids));
		break;
	}
	return obj;
}

json_t *hs_groups_json(const struct hs_groups *g)
{
	return g ? list_json(g->v, g->n) : json_null();
}
