/*
 * entity - entities by name key, exact counters, co-occurrences.
 *
 * Floor:   store. Tables entities, entity_cooccurrences. Rules: contract retain-recall 2.7; resolved
 *          by equality of name keys. In the caller's transaction under the bank's clock row, so that
 *          find-or-make needs no lock of its own.
 * Counters: mention_count = units naming the entity; cooccurrence_count = units naming both. Both are
 *          written in id order and fall again with the units.
 */
#ifndef HS_STORE_ENTITY_H
#define HS_STORE_ENTITY_H

#include "db/db.h"

/* White-space runs to one blank, trimmed; NULL when empty or longer than HS_ENTITY_NAME_CHARS. */
const char *hs_entity_name(struct hs_pool *pool, const char *name);
/* The key names are equal by: lower case. NULL when it does not fit its column. */
const char *hs_entity_key(struct hs_pool *pool, const char *name);

/* One fact's names, normalised and without repeats, with its date. */
struct hs_entity_use {
	struct hs_strs names;
	int64_t date_us;     /* occurred_start, else mentioned_at; HS_TIME_NONE = none */
	int64_t *entity_nos; /* set: one a name */
};
/* Find or make the entities of all uses and count every mention and pair. stamp_us dates pairs of
 * undated facts. */
HS_MUST enum hs_rc hs_entities_use(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t stamp_us, struct hs_entity_use *uses, size_t n, struct hs_err *err);
/* Take the mentions of these units back (their unit_entities rows still stand); entities that no
 * other unit names are deleted. */
HS_MUST enum hs_rc hs_entities_release(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_err *err);

/* Names of the entities of units, by (unit as given, order of mention). Observations without own
 * entities inherit their sources' (in order of sources). */
struct hs_unit_entity {
	int64_t unit_no, entity_no;
	const char *entity_id, *canonical_name;
};
HS_MUST enum hs_rc hs_entities_of_units(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const int64_t *unit_nos, size_t n, struct hs_unit_entity **ret, size_t *ret_n,
	struct hs_err *err);

#endif
