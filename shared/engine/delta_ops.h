/*
 * delta_ops - the edit operations of a delta refresh: read them from a reply, apply them.
 *
 * Floor:   engine; pure. Rules: contract mental-models 16. Input is hostile.
 * Files:   delta_read.c reads, delta_ops.c applies.
 * Laws:    a block that no applied operation names (a block merged into counts as named) keeps its
 *          bytes and its place among its neighbours; ids stay unique.
 * Limits:  HS_DELTA_OPS operations in one reply.
 * Owns:    everything in the pool; JSON values are kept by it.
 */
#ifndef HS_ENGINE_DELTA_OPS_H
#define HS_ENGINE_DELTA_OPS_H

#include <jansson.h>

#include "base/str.h"
#include "engine/document.h"

enum hs_delta_kind {
	HS_DELTA_APPEND_BLOCK,
	HS_DELTA_INSERT_BLOCK,
	HS_DELTA_REPLACE_BLOCK,
	HS_DELTA_REMOVE_BLOCK,
	HS_DELTA_ADD_SECTION,
	HS_DELTA_REMOVE_SECTION,
	HS_DELTA_REPLACE_BLOCKS,
	HS_DELTA_RENAME_SECTION,
	HS_DELTA_KIND__MAX
};
extern const char *const hs_delta_names[HS_DELTA_KIND__MAX];

/* One operation; members that its kind does not have are NULL or empty. */
struct hs_delta_op {
	enum hs_delta_kind kind;
	const char *section_id, *block_id, *text;
	const char *after_block_id;   /* NULL = first */
	const char *heading;          /* add_section, rename_section: one line, without marks */
	const char *after_section_id; /* NULL = at the end */
	const char *new_id;           /* NULL = slug of the heading */
	int level;
	struct hs_strs blocks;
	const char *fault; /* why it is malformed; NULL = well formed */
	json_t *audit;     /* its fields without text and blocks */
};
struct hs_delta_list {
	const char *unreadable; /* why there is no list at all; NULL = there is one */
	struct hs_delta_op *v;
	size_t n, malformed;
};
/* The list in a model's reply. repair: the reply is complete, so that almost-JSON may be mended. */
void hs_delta_read(struct hs_pool *pool, const char *text, bool repair, struct hs_delta_list *ret);
/* The list in a value: {"operations": […]} or a bare array. */
void hs_delta_read_value(struct hs_pool *pool, json_t *v, struct hs_delta_list *ret);

struct hs_delta_result {
	struct hs_document doc;
	json_t *applied, *skipped; /* audit entries, in order */
	size_t n_applied, n_skipped;
};
/* Apply the well-formed ones in order to a copy. hidden: ids of blocks whose text the call did not
 * show. */
void hs_delta_apply(struct hs_pool *pool, const struct hs_document *doc,
	const struct hs_delta_list *ops, const struct hs_strs *hidden, struct hs_delta_result *ret);

#endif
