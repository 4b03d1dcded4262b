#include "store/scope.h"

#include <string.h>

#include "base/clock.h"

const char *const hs_tags_match_names[] = {"any", "all", "any_strict", "all_strict", "exact", NULL};
const char *const hs_list_match_names[] = {"any", "all", "exact", NULL};
const char *const hs_fact_type_names[] = {"world", "experience", "observation", NULL};

const struct hs_scope_table hs_scope_units = {"u", "unit_no", "unit_tags", "unit_no", true};
const struct hs_scope_table hs_scope_models = {
	"m", "id", "mental_model_tags", "mental_model_id", false};
const struct hs_scope_table hs_scope_documents = {
	"d", "document_no", "document_tags", "document_no", false};
const struct hs_scope_table hs_scope_directives = {
	"d", "id", "directive_tags", "directive_id", false};

int hs_fact_type_find(const char *name)
{
	for (int i = 0; hs_fact_type_names[i]; i++)
		if (hs_str_eq(name, hs_fact_type_names[i]))
			return i;
	return -1;
}

struct hs_scope hs_scope_all(void)
{
	return (struct hs_scope){.after_us = HS_TIME_NONE, .until_us = HS_TIME_NONE};
}

static bool has_flat(const struct hs_scope *s)
{
	return s->tags.n > 0 || s->match == HS_EXACT;
}

bool hs_scope_filters_tags(const struct hs_scope *s)
{
	return has_flat(s) || (s->has_groups && s->n_groups > 0);
}

/* ---- scope to SQL ---- */

/* FROM <tags> g WHERE <g belongs to the row> */
static void add_from(struct hs_sql *q, const struct hs_scope_table *t)
{
	const char *const parts[] = {" FROM ", t->tags, " g WHERE g.bank_no = ", t->row,
		".bank_no AND g.", t->tags_key, " = ", t->row, ".", t->key};

	for (size_t i = 0; i < HS_COUNT(parts); i++)
		hs_sql_add(q, parts[i]);
}

static void add_untagged(struct hs_sql *q, const struct hs_scope_table *t)
{
	hs_sql_add(q, "NOT EXISTS (SELECT 1");
	add_from(q, t);
	hs_sql_add(q, ")");
}

static void add_overlap(
	struct hs_sql *q, const struct hs_strs *tags, const struct hs_scope_table *t)
{
	hs_sql_add(q, "EXISTS (SELECT 1");
	add_from(q, t);
	hs_sql_add(q, " AND g.tag IN (");
	hs_sql_list_str(q, tags);
	hs_sql_add(q, "))");
}

static void add_contains(
	struct hs_sql *q, const struct hs_strs *tags, const struct hs_scope_table *t)
{
	hs_sql_add(q, "(SELECT COUNT(*)");
	add_from(q, t);
	hs_sql_add(q, " AND g.tag IN (");
	hs_sql_list_str(q, tags);
	hs_sql_add(q, ")) = ?");
	hs_sql_bind(q, hs_b_int((int64_t)tags->n));
}

static void add_count(struct hs_sql *q, size_t n, const struct hs_scope_table *t)
{
	hs_sql_add(q, "(SELECT COUNT(*)");
	add_from(q, t);
	hs_sql_add(q, ") = ?");
	hs_sql_bind(q, hs_b_int((int64_t)n));
}

/* Tags that are not empty; duplicates are gone. */
static void add_tags(struct hs_sql *q, const struct hs_strs *tags, enum hs_tags_match match,
	const struct hs_scope_table *t)
{
	bool all = match == HS_ALL || match == HS_ALL_STRICT;

	hs_sql_add(q, "(");
	if (match == HS_EXACT) {
		add_count(q, tags->n, t);
		hs_sql_add(q, " AND ");
		add_contains(q, tags, t);
	} else if (all) {
		add_contains(q, tags, t);
	} else {
		add_overlap(q, tags, t);
	}
	if (match == HS_ANY || match == HS_ALL) {
		hs_sql_add(q, " OR ");
		add_untagged(q, t);
	}
	hs_sql_add(q, ")");
}

/* A leaf without tags (reflect A5). */
static void add_empty_leaf(
	struct hs_sql *q, enum hs_tags_match match, const struct hs_scope_table *t)
{
	switch (match) {
	case HS_ALL:
		hs_sql_add(q, "TRUE");
		return;
	case HS_ANY_STRICT:
		hs_sql_add(q, "FALSE");
		return;
	case HS_ALL_STRICT:
		hs_sql_add(q, "NOT ");
		add_untagged(q, t);
		return;
	default:
		add_untagged(q, t);
	}
}

static void add_group(struct hs_sql *q, const struct hs_group *g, const struct hs_scope_table *t);

static void add_list(struct hs_sql *q, struct hs_group *const *v, size_t n, const char *between,
	const struct hs_scope_table *t)
{
	hs_sql_add(q, "(");
	for (size_t i = 0; i < n; i++) {
		if (i)
			hs_sql_add(q, between);
		add_group(q, v[i], t);
	}
	hs_sql_add(q, ")");
}

static void add_group(struct hs_sql *q, const struct hs_group *g, const struct hs_scope_table *t)
{
	struct hs_strs tags;

	switch (g->kind) {
	case HS_GROUP_AND:
		add_list(q, g->kids, g->n_kids, " AND ", t);
		return;
	case HS_GROUP_OR:
		add_list(q, g->kids, g->n_kids, " OR ", t);
		return;
	case HS_GROUP_NOT:
		hs_sql_add(q, "NOT ");
		add_list(q, g->kids, g->n_kids, " AND ", t);
		return;
	case HS_GROUP_LEAF:
		tags = hs_strs_sorted_set(q->pool, &g->tags);
		if (tags.n)
			add_tags(q, &tags, g->match, t);
		else
			add_empty_leaf(q, g->match, t);
		return;
	}
}

static void add_tag_parts(
	struct hs_sql *q, const struct hs_scope *s, const struct hs_scope_table *t)
{
	const char *between = "";

	if (has_flat(s)) {
		struct hs_strs tags = hs_strs_sorted_set(q->pool, &s->tags);

		if (tags.n)
			add_tags(q, &tags, s->match, t);
		else
			add_untagged(q, t);
		between = " AND ";
	}
	if (s->has_groups && s->n_groups > 0) {
		hs_sql_add(q, between);
		add_list(q, s->groups, s->n_groups, " AND ", t);
	}
}

static void add_facts(struct hs_sql *q, unsigned facts, const struct hs_scope_table *t)
{
	static const char *const names[] = {"'world'", "'experience'", "'observation'"};
	const char *between = "";

	hs_sql_add(q, " AND ");
	hs_sql_add(q, t->row);
	hs_sql_add(q, ".fact_type IN (");
	for (unsigned i = 0; i < HS_FACT_TYPE__MAX; i++) {
		if (!(facts & HS_FACT_BIT(i)))
			continue;
		hs_sql_add(q, between);
		hs_sql_add(q, names[i]);
		between = ", ";
	}
	hs_sql_add(q, ")");
}

static void add_time(
	struct hs_sql *q, const char *compare, int64_t us, const struct hs_scope_table *t)
{
	if (us == HS_TIME_NONE)
		return;
	hs_sql_add(q, " AND ");
	hs_sql_add(q, t->row);
	hs_sql_add(q, compare);
	hs_sql_bind(q, hs_b_time(us));
}

void hs_scope_sql(struct hs_sql *q, const struct hs_scope *s, const struct hs_scope_table *t)
{
	unsigned facts = s->facts & HS_FACTS_ALL;

	if (hs_scope_filters_tags(s)) {
		hs_sql_add(q, " AND (");
		add_tag_parts(q, s, t);
		if (s->plus_untagged) {
			hs_sql_add(q, " OR ");
			add_untagged(q, t);
		}
		hs_sql_add(q, ")");
	}
	if (!t->has_facts)
		return;
	if (facts && facts != HS_FACTS_ALL)
		add_facts(q, facts, t);
	add_time(q, ".updated_at > ?", s->after_us, t);
	add_time(q, ".updated_at <= ?", s->until_us, t);
}

/* ---- the same in C ---- */

static bool overlaps(const struct hs_strs *a, const struct hs_strs *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (hs_strs_has(b, a->v[i]))
			return true;
	return false;
}

static bool contains(const struct hs_strs *whole, const struct hs_strs *part)
{
	for (size_t i = 0; i < part->n; i++)
		if (!hs_strs_has(whole, part->v[i]))
			return false;
	return true;
}

static bool match_tags(
	const struct hs_strs *tags, enum hs_tags_match match, const struct hs_strs *row)
{
	switch (match) {
	case HS_ANY:
		return row->n == 0 || overlaps(tags, row);
	case HS_ALL:
		return row->n == 0 || contains(row, tags);
	case HS_ANY_STRICT:
		return overlaps(tags, row);
	case HS_EXACT:
		return contains(row, tags) && contains(tags, row);
	default:
		/* an unknown mode must never widen a scope */
		return row->n > 0 && contains(row, tags);
	}
}

static bool match_group(const struct hs_group *g, const struct hs_strs *row)
{
	bool is_or = g->kind == HS_GROUP_OR, result = !is_or;

	if (g->kind == HS_GROUP_LEAF)
		return match_tags(&g->tags, g->match, row);
	for (size_t i = 0; i < g->n_kids && result != is_or; i++)
		result = match_group(g->kids[i], row);
	return g->kind == HS_GROUP_NOT ? !result : result;
}

bool hs_scope_match_tags(const struct hs_scope *s, const struct hs_strs *row_tags)
{
	if (s->plus_untagged && row_tags->n == 0)
		return true;
	if (has_flat(s) && !match_tags(&s->tags, s->match, row_tags))
		return false;
	for (size_t i = 0; s->has_groups && i < s->n_groups; i++)
		if (!match_group(s->groups[i], row_tags))
			return false;
	return true;
}

bool hs_scope_match(const struct hs_scope *s, const struct hs_strs *row_tags,
	enum hs_fact_type type, int64_t updated_us)
{
	unsigned facts = s->facts & HS_FACTS_ALL;

	if (facts && !(facts & HS_FACT_BIT(type)))
		return false;
	if (s->after_us != HS_TIME_NONE && updated_us <= s->after_us)
		return false;
	if (s->until_us != HS_TIME_NONE && updated_us > s->until_us)
		return false;
	return hs_scope_match_tags(s, row_tags);
}

/* ---- staleness ---- */

static enum hs_tags_match strict(enum hs_tags_match match)
{
	return match == HS_ANY ? HS_ANY_STRICT : match == HS_ALL ? HS_ALL_STRICT : match;
}

static struct hs_group **strict_list(
	struct hs_pool *pool, struct hs_group *const *v, size_t n, bool positive)
{
	struct hs_group **copies = HS_NEW_ARRAY(pool, struct hs_group *, n);

	for (size_t i = 0; i < n; i++) {
		struct hs_group *g = HS_NEW(pool, struct hs_group);

		*g = *v[i];
		if (g->kind == HS_GROUP_LEAF)
			g->match = positive ? strict(g->match) : g->match;
		else
			g->kids = strict_list(
				pool, g->kids, g->n_kids, positive != (g->kind == HS_GROUP_NOT));
		copies[i] = g;
	}
	return copies;
}

struct hs_scope hs_scope_for_staleness(struct hs_pool *pool, const struct hs_scope *s)
{
	struct hs_scope out = *s;

	if (s->tags.n)
		out.match = strict(s->match);
	if (s->has_groups)
		out.groups = strict_list(pool, s->groups, s->n_groups, true);
	return out;
}
