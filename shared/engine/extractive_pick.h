/*
 * extractive_pick - evidence -> ranked statements without repeats. Shared by the answer and the document
 * of extractive_answer.h; nobody else needs it.
 *
 * Floor:   engine; pure.
 * Order:   models, observations, facts; inside a kind by relevance (the question's words, weighted by
 *          rarity among the statements, and the score of the search), then by date, newest first.
 */
#ifndef HS_ENGINE_EXTRACTIVE_PICK_H
#define HS_ENGINE_EXTRACTIVE_PICK_H

#include "engine/extractive_answer.h"
#include "engine/near.h"
#include "text/words.h"

struct hs_pick {
	size_t ev;                     /* index of its evidence */
	enum hs_evidence_kind kind;
	const char *text;              /* quoted */
	int64_t date_us;               /* HS_TIME_NONE = none */
	struct hs_terms terms;
	struct hs_gist gist;
	double score;                  /* of its search, best of its kind = 1 */
	double match, relevance;
	bool kept;                     /* false: said before */
};
struct hs_picks {
	struct hs_pick *v;
	size_t n, cap;
};
void hs_picks_make(struct hs_pool *pool, const char *question, const struct hs_evidence *ev, size_t n,
	bool with_models, struct hs_picks *ret);
/* "- 2023-05-07: text" */
const char *hs_pick_line(struct hs_pool *pool, const struct hs_pick *s);
/* The line, or as many of its sentences as fit, or its beginning. */
const char *hs_line_fit(struct hs_pool *pool, const char *line, int64_t max_tokens);
/* Note evidence as used, once; cap = number of evidence. */
void hs_use(struct hs_pool *pool, struct hs_extractive_answer *a, size_t cap, size_t ev);

#endif
