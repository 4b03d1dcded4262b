/*
 * retain_item - one item of a retain as clients send it: field table, rules, the engine's form.
 *
 * Floor:   engine. Rules: contract retain-recall 2.1, 2.2. HTTP and MCP read items by one table.
 * Owns:    results live in the pool; JSON members are borrowed from what was read.
 */
#ifndef HS_ENGINE_RETAIN_ITEM_H
#define HS_ENGINE_RETAIN_ITEM_H

#include "engine/retain.h"
#include "json/check.h"

struct hs_item_time {
	bool given, unset;
	int64_t us;       /* HS_TIME_NONE unless given */
	const char *text; /* as the client wrote it */
};
struct hs_item_in {
	struct hs_seen seen;
	const char *content, *context, *document_id, *strategy;
	struct hs_item_time timestamp;
	json_t *metadata, *entities, *observation_scopes; /* as sent; NULL = null */
	bool resolve_entities;
	struct hs_strs tags;
	int update_mode; /* 1 = append; -1 = null */
};
extern const struct hs_shape hs_item_shape;

/* The year is one that stands for "no date": 1 or 9999. */
bool hs_time_is_placeholder(int64_t us);
/* Custom reader for field tables: a list of lists of tags (json_t *). */
void hs_tag_lists_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place);

/* more_tags: of the whole call, joined to the item's own. */
struct hs_retain_item hs_item_make(
	struct hs_pool *pool, const struct hs_item_in *it, const struct hs_strs *more_tags);
/* What holds beyond single fields, asked before anything is stored: HS_E_BAD_REQUEST. */
HS_MUST enum hs_rc hs_items_check(struct hs_run *run, const char *bank_id,
	const struct hs_retain_item *items, size_t n, struct hs_err *err);

#endif
