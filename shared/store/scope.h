/*
 * scope - which rows a tag scope, groups, fact types and a time window select.
 *
 * Floor:   store. One struct, one function to SQL, one matcher in C; a table test proves that the
 *          two agree. Recall, lists, refresh, staleness and directives all use these.
 * Shapes:  modes and groups: contract reflect A4, A5, mental-models 8. Tags compare byte by byte.
 * Limits:  HS_GROUP_DEPTH, HS_GROUP_NODES, HS_GROUP_TAGS.
 */
#ifndef HS_STORE_SCOPE_H
#define HS_STORE_SCOPE_H

#include "db/db.h"
#include "json/check.h"

enum hs_tags_match { HS_ANY, HS_ALL, HS_ANY_STRICT, HS_ALL_STRICT, HS_EXACT, HS_TAGS_MATCH__MAX };
extern const char *const hs_tags_match_names[]; /* NULL-ended, for HS_ENUM */
extern const char *const hs_list_match_names[]; /* any, all, exact */

enum hs_fact_type { HS_WORLD, HS_EXPERIENCE, HS_OBSERVATION, HS_FACT_TYPE__MAX };
extern const char *const hs_fact_type_names[]; /* NULL-ended */
#define HS_FACT_BIT(type) (1u << (type))
#define HS_FACTS_ALL 7u
/* -1 for an unknown name. */
int hs_fact_type_find(const char *name);

enum hs_group_kind { HS_GROUP_LEAF, HS_GROUP_AND, HS_GROUP_OR, HS_GROUP_NOT };
struct hs_group {
	enum hs_group_kind kind;
	struct hs_strs tags;      /* leaf */
	enum hs_tags_match match; /* leaf */
	bool fuzzy;               /* leaf: resolve = fuzzy */
	struct hs_group **kids;   /* and, or, not (one) */
	size_t n_kids;
};

struct hs_scope {
	struct hs_strs tags; /* flat tags; none and not exact = no filter */
	enum hs_tags_match match;
	bool has_groups;          /* groups given (even none: no filter) */
	struct hs_group **groups; /* AND-ed */
	size_t n_groups;
	unsigned facts;             /* HS_FACT_BITs; 0 = all */
	int64_t after_us, until_us; /* updated_at > after, <= until; HS_TIME_NONE = open */
	bool plus_untagged; /* directives: untagged rows always pass a tag filter (no filter =
	                                 * every row: "untagged only" is HS_EXACT without tags) */
};

/* Empty scope: everything. */
struct hs_scope hs_scope_all(void);
/* Custom reader for field tables: tag_groups into a `struct hs_groups *` member. */
struct hs_groups {
	struct hs_group **v;
	size_t n;
	json_t *json; /* as given, borrowed from the body */
};
void hs_groups_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place);
/* From stored JSON (triggers); NULL json gives NULL. HS_E_PARSE when it does not validate. */
HS_MUST enum hs_rc hs_groups_parse(
	struct hs_pool *pool, json_t *v, struct hs_groups **ret, struct hs_err *err);
/* Is there a leaf with resolve = fuzzy (and tags)? Callers answer 501 until such leaves are resolved. */
bool hs_groups_fuzzy(const struct hs_groups *g);
/* Keys and/or/not/tags/match/resolve; new reference. */
json_t *hs_groups_json(const struct hs_groups *g);

/* What a row's table is called in the statement being built. */
struct hs_scope_table {
	const char *row;      /* alias of the row: "u" */
	const char *key;      /* key column in the row: "unit_no" */
	const char *tags;     /* tag table: "unit_tags" */
	const char *tags_key; /* key column there: "unit_no" */
	bool has_facts;       /* the row has fact_type and updated_at */
};
extern const struct hs_scope_table hs_scope_units, hs_scope_models, hs_scope_documents,
	hs_scope_directives;
/* Append " AND (…)" for every part of the scope; nothing when it selects everything. */
void hs_scope_sql(struct hs_sql *q, const struct hs_scope *s, const struct hs_scope_table *t);
/* Does a row with these tags pass (tags and groups only)? */
bool hs_scope_match_tags(const struct hs_scope *s, const struct hs_strs *row_tags);
/* Tags, groups, fact type and window. */
bool hs_scope_match(const struct hs_scope *s, const struct hs_strs *row_tags,
	enum hs_fact_type type, int64_t updated_us);
/* Does it filter by tags at all (then source text follows its document)? */
bool hs_scope_filters_tags(const struct hs_scope *s);
/* The staleness scope of a refresh scope (mental-models 9): any -> any_strict, all -> all_strict in
 * positive positions. */
struct hs_scope hs_scope_for_staleness(struct hs_pool *pool, const struct hs_scope *s);

#endif
