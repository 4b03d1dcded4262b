#include <string.h>

#include "base/clock.h"
#include "base/tokens.h"
#include "engine/retain_run.h"
#include "json/json.h"

/* ---- items as JSON ---- */

static void set_str(json_t *o, const char *key, const char *v)
{
	if (v)
		json_object_set_new(o, key, json_string(v));
}

static void set_shared(json_t *o, const char *key, json_t *v)
{
	if (v)
		json_object_set(o, key, v);
}

static json_t *item_json(const struct hs_retain_item *it)
{
	json_t *o = json_object();
	char now[HS_TIME_TEXT];

	set_str(o, "content", it->content);
	if (it->unset_time)
		set_str(o, "timestamp", "unset");
	else if (it->has_time)
		set_str(o, "timestamp", it->time_text);
	hs_time_format(it->time_us == HS_TIME_NONE ? hs_now_us() : it->time_us, now);
	set_str(o, "received_at", now);
	set_str(o, "context", it->context);
	set_str(o, "document_id", it->document_id);
	set_str(o, "strategy", it->strategy);
	set_shared(o, "metadata", it->metadata);
	set_shared(o, "entities", it->entities);
	if (!it->resolve_entities)
		json_object_set_new(o, "resolve_entities", json_false());
	if (it->tags.n)
		json_object_set_new(o, "tags", hs_json_from_strs(&it->tags));
	set_shared(o, "observation_scopes", it->observation_scopes);
	if (it->append)
		set_str(o, "update_mode", "append");
	return o;
}

json_t *hs_retain_items_json(const struct hs_retain_item *items, size_t n)
{
	json_t *payload = json_object(), *contents = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(contents, item_json(&items[i]));
	json_object_set_new(payload, "contents", contents);
	return payload;
}

static enum hs_rc read_item(
	struct hs_pool *pool, json_t *o, struct hs_retain_item *it, struct hs_err *err)
{
	const char *time = hs_json_str(o, "timestamp"), *mode = hs_json_str(o, "update_mode");
	const char *received = hs_json_str(o, "received_at");

	*it = (struct hs_retain_item){
		.content = hs_json_str(o, "content"),
		.time_us = HS_TIME_NONE,
		.context = hs_json_str(o, "context"),
		.document_id = hs_json_str(o, "document_id"),
		.strategy = hs_json_str(o, "strategy"),
		.metadata = hs_json_obj(o, "metadata"),
		.entities = hs_json_arr(o, "entities"),
		.resolve_entities = hs_json_bool(o, "resolve_entities", true),
		.tags = hs_json_strs(pool, hs_json_arr(o, "tags")),
		.observation_scopes = json_object_get(o, "observation_scopes"),
		.append = mode && strcmp(mode, "append") == 0,
	};
	if (!it->content)
		return hs_fail(err, HS_E_PAYLOAD, "an item of the payload has no content");
	it->unset_time = time && strcmp(time, "unset") == 0;
	it->has_time = time && !it->unset_time;
	it->time_text = it->has_time ? time : NULL;
	if (it->unset_time)
		return HS_OK;
	if ((time || received) && !hs_time_parse(time ? time : received, &it->time_us))
		return hs_fail(err, HS_E_PAYLOAD,
			"an item of the payload has the unreadable time '%s'",
			time ? time : received);
	return HS_OK;
}

enum hs_rc hs_retain_items_read(struct hs_pool *pool, json_t *payload, struct hs_retain_item **ret,
	size_t *ret_n, struct hs_err *err)
{
	json_t *contents = hs_json_arr(payload, "contents"), *o;
	struct hs_retain_item *items;
	size_t i;

	if (!contents)
		return hs_fail(err, HS_E_PAYLOAD, "the payload has no contents");
	items = HS_NEW_ARRAY(pool, struct hs_retain_item, json_array_size(contents) + 1);
	json_array_foreach(contents, i, o)
		HS_TRY(read_item(pool, o, &items[i], err));
	*ret = items;
	*ret_n = json_array_size(contents);
	return HS_OK;
}

const char *hs_retain_params(struct hs_pool *pool, const struct hs_retain_item *item)
{
	json_t *o = hs_json_keep(pool, json_object());

	set_str(o, "context", item->context);
	if (item->unset_time)
		json_object_set_new(o, "event_date", json_null());
	else if (item->has_time)
		set_str(o, "event_date", hs_time_text(pool, item->time_us));
	set_shared(o, "metadata", item->metadata);
	set_shared(o, "entities", item->entities);
	if (!item->resolve_entities)
		json_object_set_new(o, "resolve_entities", json_false());
	set_shared(o, "observation_scopes", item->observation_scopes);
	set_str(o, "strategy", item->strategy);
	return hs_json_text(pool, o);
}

/* ---- packing ---- */

/* Items that must stay together: all of one document id, or one item without. */
struct group {
	const char *document_id;
	const struct hs_retain_item **items;
	size_t n, cap;
	int64_t tokens;
};

static void group_add(struct hs_pool *pool, struct group *g, const struct hs_retain_item *it)
{
	if (g->n == g->cap) {
		size_t cap = g->cap ? g->cap * 2 : 2;

		g->items = hs_pool_regrow(
			pool, g->items, g->n * sizeof(*g->items), cap * sizeof(*g->items));
		g->cap = cap;
	}
	g->items[g->n++] = it;
	g->tokens += (int64_t)hs_tokens(it->content);
}

/* Index of document ids: open addressing over the groups made so far. */
static struct group *group_of(
	struct group *groups, size_t *n, size_t *slots, size_t mask, const char *document_id)
{
	size_t at = 0;

	if (!document_id)
		return &groups[(*n)++];
	for (const char *p = document_id; *p; p++)
		at = at * 31 + (unsigned char)*p;
	for (at &= mask; slots[at]; at = (at + 1) & mask)
		if (strcmp(groups[slots[at] - 1].document_id, document_id) == 0)
			return &groups[slots[at] - 1];
	groups[*n].document_id = document_id;
	slots[at] = ++*n;
	return &groups[*n - 1];
}

static void pack_add(struct hs_pool *pool, struct retain_pack *p, const struct group *g)
{
	if (p->n + g->n > p->cap) {
		size_t cap = 2 * (p->n + g->n);

		p->items = hs_pool_regrow(
			pool, p->items, p->n * sizeof(*p->items), cap * sizeof(*p->items));
		p->cap = cap;
	}
	memcpy(p->items + p->n, g->items, g->n * sizeof(*g->items));
	p->n += g->n;
}

struct retain_pack *hs_retain_packs(struct hs_pool *pool, const struct hs_retain_item *const *items,
	size_t n, int64_t budget_tokens, int64_t *ret_tokens, size_t *ret_n)
{
	struct group *groups = HS_NEW_ARRAY(pool, struct group, n + 1);
	struct retain_pack *packs = HS_NEW_ARRAY(pool, struct retain_pack, n + 1), *open = NULL;
	size_t n_groups = 0, n_packs = 0, mask = 16, *slots;
	int64_t total = 0, held = 0;

	while (mask < 2 * n)
		mask *= 2;
	slots = HS_NEW_ARRAY(pool, size_t, mask);
	for (size_t i = 0; i < n; i++)
		group_add(pool, group_of(groups, &n_groups, slots, mask - 1, items[i]->document_id),
			items[i]);
	for (size_t i = 0; i < n_groups; i++)
		total += groups[i].tokens;
	for (size_t i = 0; i < n_groups; i++) {
		const struct group *g = &groups[i];

		if (total > budget_tokens && g->tokens > budget_tokens) {
			pack_add(pool, &packs[n_packs++], g);
			continue;
		}
		if (!open || (total > budget_tokens && held + g->tokens > budget_tokens)) {
			open = &packs[n_packs++];
			held = 0;
		}
		pack_add(pool, open, g);
		held += g->tokens;
	}
	*ret_tokens = total;
	*ret_n = n_packs;
	return packs;
}
