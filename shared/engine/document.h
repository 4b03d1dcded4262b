/*
 * document - the structured form of a mental model's text: split, render, read, normalise.
 *
 * Floor:   engine; pure. Rules: contract mental-models 14.1, 15.
 * Laws:    every non-blank line survives in order; render(split(x)) is a fixed point; untouched
 *          blocks are byte-identical.
 */
#ifndef HS_ENGINE_DOCUMENT_H
#define HS_ENGINE_DOCUMENT_H

#include <jansson.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"

struct hs_doc_block {
	const char *id, *text;
};
struct hs_doc_section {
	const char *id, *heading;
	int level;                        /* 1-6 */
	struct hs_doc_block *blocks;
	size_t n_blocks, cap_blocks;
};
struct hs_document {
	struct hs_doc_section *sections;
	size_t n, cap;
};
void hs_document_split(struct hs_pool *pool, const char *markdown, struct hs_document *ret);
char *hs_document_render(struct hs_pool *pool, const struct hs_document *doc);
json_t *hs_document_json(const struct hs_document *doc);   /* {"version":2,"sections":[…]}; new reference */
/* Stored structure; HS_E_PARSE when it is not a valid version 2 document. */
HS_MUST enum hs_rc hs_document_read(struct hs_pool *pool, json_t *v, struct hs_document *ret, struct hs_err *err);
/* The document a finishing tool call gave, in any accepted form; faults, one line each, in *ret_faults
 * when it is refused (HS_E_LLM_REPLY). */
HS_MUST enum hs_rc hs_document_from_tool(struct hs_pool *pool, json_t *v, bool complete, struct hs_document *ret, struct hs_strs *ret_faults, struct hs_err *err);
/* Empty, blank or "Generating content...". */
bool hs_content_unwritten(const char *content);

#endif
