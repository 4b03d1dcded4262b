/*
 * document_ids - ids of sections and blocks: slugs, hashes, and which are taken.
 *
 * Floor:   engine; pure. Rules: contract mental-models 15, 16.
 */
#ifndef HS_ENGINE_DOCUMENT_IDS_H
#define HS_ENGINE_DOCUMENT_IDS_H

#include "base/pool.h"

/* Ids taken so far, each with the suffix to try next; a repeat costs one probe, not a search. */
struct hs_id_slot {
	const char *id;
	size_t next;
};
struct hs_ids {
	struct hs_pool *pool; /* the only member to be set; the rest begins as zero */
	struct hs_id_slot *slots;
	size_t n, cap; /* cap is a power of two */
};
/* `base`, or base-2, base-3, …: the first that nobody has; it is taken then. `base` must live as long
 * as the pool. */
const char *hs_ids_take(struct hs_ids *ids, const char *base);

/* Lower-case letters and digits with single dashes; "section" when nothing is left. */
const char *hs_section_slug(struct hs_pool *pool, const char *heading);
/* "b" and the first eight hexadecimal digits of the text's SHA-1. */
const char *hs_block_id(struct hs_pool *pool, const char *text);

#endif
