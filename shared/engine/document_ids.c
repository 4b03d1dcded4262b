#include "engine/document_ids.h"

#include <stdbool.h>
#include <string.h>

#include "text/hash.h"

static struct hs_id_slot *ids_slot(const struct hs_ids *ids, const char *id)
{
	size_t at = (size_t)hs_hash64(id, strlen(id)) & (ids->cap - 1);

	while (ids->slots[at].id && strcmp(ids->slots[at].id, id) != 0)
		at = (at + 1) & (ids->cap - 1);
	return &ids->slots[at];
}

static void ids_grow(struct hs_ids *ids)
{
	struct hs_ids more = {.pool = ids->pool, .n = ids->n, .cap = ids->cap ? 2 * ids->cap : 64};

	more.slots = HS_NEW_ARRAY(ids->pool, struct hs_id_slot, more.cap);
	for (size_t i = 0; i < ids->cap; i++)
		if (ids->slots[i].id)
			*ids_slot(&more, ids->slots[i].id) = ids->slots[i];
	*ids = more;
}

/* `base`, or base-2, base-3, …: the first that nobody has. */
const char *hs_ids_take(struct hs_ids *ids, const char *base)
{
	struct hs_id_slot *slot;
	const char *id = base;
	size_t k;

	if (2 * ids->n + 2 > ids->cap)
		ids_grow(ids);
	slot = ids_slot(ids, base);
	if (slot->id) {
		for (k = slot->next;; k++) {
			id = hs_pool_printf(ids->pool, "%s-%zu", base, k);
			if (!ids_slot(ids, id)->id)
				break;
		}
		slot->next = k + 1;
		slot = ids_slot(ids, id);
	}
	*slot = (struct hs_id_slot){id, 2};
	ids->n++;
	return id;
}

const char *hs_section_slug(struct hs_pool *pool, const char *heading)
{
	char *out = hs_pool_alloc(pool, strlen(heading) + 1);
	size_t n = 0;
	bool gap = false;

	for (const char *p = heading; *p; p++) {
		char c = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) {
			gap = true;
			continue;
		}
		if (gap && n)
			out[n++] = '-';
		gap = false;
		out[n++] = c;
	}
	out[n] = '\0';
	return n ? out : "section";
}

const char *hs_block_id(struct hs_pool *pool, const char *text)
{
	char hex[HS_SHA1_HEX];

	hs_sha1_hex(text, strlen(text), hex);
	return hs_pool_printf(pool, "b%.8s", hex);
}
