/*
 * retain_run - what the parts of retain share; not for callers outside engine/retain*.c.
 *
 * Floor:   engine. A document goes through plan (what is stored already), then batches of pieces:
 *          facts (extract, embed), write (one transaction), links (best effort).
 */
#ifndef HS_ENGINE_RETAIN_RUN_H
#define HS_ENGINE_RETAIN_RUN_H

#include "engine/retain.h"
#include "store/document.h"
#include "store/entity.h"

/* One chunk of the document. */
struct retain_piece {
	const struct hs_retain_item *item;
	const char *text, *hash;
	int64_t index;
	bool stored; /* a chunk row with this index and hash is there */
};

struct retain_links;

enum retain_plan {
	RETAIN_REPLACE, /* new, or other text: the old version goes */
	RETAIN_KEEP,    /* same text: tags and metadata, then what is missing */
};

struct retain_doc {
	struct hs_run *run;
	const struct hs_bank *bank;
	const struct hs_config *cfg; /* bank and strategy */
	const char *document_id;
	const struct hs_retain_item *const *items;
	size_t n_items;
	const char *body, *hash, *params;
	struct hs_strs tags;
	struct retain_piece *pieces;
	size_t n_pieces;
	enum retain_plan plan;
	int64_t since_us;    /* the bank's clock when the retain began */
	int64_t embedder_no; /* 0 = no vectors */
	bool last;           /* last document of the call: its last write consolidates */
	bool *pending;       /* the whole call: something written waits for consolidation */
};

/* A fact on its way into a unit. */
struct retain_fact {
	struct hs_unit unit;
	struct hs_entity_use use;
	const char *embed_text;
	size_t *causes, n_causes; /* indexes into the batch's facts */
};
struct retain_batch {
	struct hs_pool *pool;               /* everything of the batch */
	struct hs_run run;                  /* the caller's, with this pool */
	const struct retain_piece **pieces; /* those to be extracted */
	size_t n_pieces;
	struct retain_fact *facts;
	size_t n_facts;
	int64_t errors; /* pieces that could not be read */
	struct hs_strs error_sample;
	bool first, last; /* of the document */
};

/* retain_facts.c: fill facts from pieces: extraction, entities, dates, terms, vectors. No database. */
HS_MUST enum hs_rc hs_retain_facts(
	const struct retain_doc *d, struct retain_batch *b, struct hs_err *err);

enum retain_outcome {
	RETAIN_WRITTEN,
	RETAIN_OVERTAKEN, /* a newer retain of the document won: stop, report success */
	RETAIN_REPLAN,    /* the document changed since it was planned */
};
/* retain_write.c: one transaction. */
HS_MUST enum hs_rc hs_retain_write(const struct retain_doc *d, struct retain_batch *b,
	enum retain_outcome *ret, struct hs_err *err);
/* Only the consolidation of what the call wrote. */
HS_MUST enum hs_rc hs_retain_follow_up(struct hs_run *run, const struct hs_bank *bank,
	const struct hs_config *cfg, struct hs_err *err);

/* retain_links.c: new units wait until there are enough of them for one search; links are best effort,
 * failures are dropped. */
struct retain_links *hs_retain_links_new(struct hs_run *run, const struct hs_bank *bank,
	const struct hs_config *cfg, int64_t embedder_no);
void hs_retain_links_add(struct retain_links *l, const struct retain_batch *b);
void hs_retain_links_flush(struct retain_links *l);

/* retain_items.c: JSON text of the first item's parameters (contract 2.5). */
const char *hs_retain_params(struct hs_pool *pool, const struct hs_retain_item *item);
/* Items of one call in sub-batches of whole documents (contract 2.2, 2.3). */
struct retain_pack {
	const struct hs_retain_item **items;
	size_t n, cap;
};
struct retain_pack *hs_retain_packs(struct hs_pool *pool, const struct hs_retain_item *const *items,
	size_t n, int64_t budget_tokens, int64_t *ret_tokens, size_t *ret_n);

#endif
