/*
 * read - functions and queries of the read side of hindsight-memories: memories, documents, chunks,
 * entities, tags, and the deletes of whole things (contract retain-recall 3).
 */
#ifndef HS_HANDLERS_MEMORIES_READ_H
#define HS_HANDLERS_MEMORIES_READ_H

#include "store/bank.h"
#include "store/memory.h"
#include "store/memory_read.h"
#include "web/route.h"

extern const struct hs_route hs_memory_read_routes[];

struct page_query {
	struct hs_seen seen;
	int64_t limit, offset;
};
struct memory_list_query {
	struct hs_seen seen;
	const char *type, *q, *consolidation_state, *state, *document_id, *entity_id;
	struct hs_strs tags;
	int tags_match; /* enum hs_tags_match */
	int time_field; /* index into hs_memory_time_names, -1 = none */
	const char *start_date, *end_date;
	int64_t limit, offset;
};
struct document_list_query {
	struct hs_seen seen;
	const char *q;
	struct hs_strs tags;
	int tags_match;
	int time_field; /* index into hs_document_time_names, -1 = none */
	const char *start_date, *end_date;
	int64_t limit, offset;
};
struct memory_clear_query {
	struct hs_seen seen;
	const char *type;
};
struct tag_list_query {
	struct hs_seen seen;
	const char *q;
	int source; /* 0 memories, 1 mental models */
	int64_t limit, offset;
};

/* list.c */
hs_route_fn memory_list, memory_get, memory_clear, tag_list;
/* document.c */
hs_route_fn document_list, document_get, document_delete, document_chunks, chunk_get;
/* entity.c */
hs_route_fn entity_list, entity_get;

/* ---- shared by the files of this side (read.c) ---- */

/* A window from the three parameters; 400 for text that is no date. default_axis: without a field. */
HS_MUST enum hs_rc read_window(struct hs_ctx *c, int field, int default_axis, const char *start,
	const char *end, struct hs_window *ret);
/* 400 when the window ends before it begins; asked after the bank. */
HS_MUST enum hs_rc read_window_order(struct hs_ctx *c, const struct hs_window *w);
/* `"total", "limit", "offset"` at the end of a page. */
void read_page_end(struct hs_out *o, int64_t total, int64_t limit, int64_t offset);
/* 400 "Invalid <what>: '…' is not a valid UUID". */
HS_MUST enum hs_rc read_uuid(
	struct hs_ctx *c, const char *what, const char *text, const char **ret);
/* A delete in one transaction under the bank's clock row, with what follows from it: stats forgotten,
 * a consolidation when observations were swept. fn is run by it, perhaps more than once. */
typedef enum hs_rc read_delete_fn(
	struct hs_ctx *c, const struct hs_bank *bank, void *arg, struct hs_deleted *ret);
HS_MUST enum hs_rc read_delete(struct hs_ctx *c, const struct hs_bank *bank, read_delete_fn *fn,
	void *arg, struct hs_deleted *ret);

#endif
