/*
 * extractive_answer - answers and documents made of stored text alone, without a model.
 *
 * Floor:   engine; pure: no database, no clock, same input gives same output.
 * Use:     reflect and refresh with the extractive provider run their searches in the fixed order
 *          (models, observations, facts), hand everything found to one of these calls and take `used`
 *          as the citations. Evidence may repeat ids: the first one counts.
 * Rules:   DESIGN 6. Only stored text is quoted. Statements that say the same are quoted once; a fact
 *          that an already quoted observation rests on is not quoted again. Observations win over
 *          facts, later statements over earlier ones of the same words.
 * Shapes:  an answer is a list of bullets, "- 2023-05-07: text" (no date: "- text"), best first:
 *          models, then observations, then facts. A document has a section for each main entity or
 *          theme, bullets in order of time, one block a bullet list.
 * Limits:  at most max_tokens tokens (hs_tokens); the best statement is always there whole or, when it
 *          alone is longer, cut at a sentence's end.
 * Owns:    everything in the pool.
 */
#ifndef HS_ENGINE_EXTRACTIVE_ANSWER_H
#define HS_ENGINE_EXTRACTIVE_ANSWER_H

#include "engine/document.h"

enum hs_evidence_kind { HS_EV_MODEL, HS_EV_OBSERVATION, HS_EV_FACT };

struct hs_evidence {
	enum hs_evidence_kind kind;
	const char *id;
	const char *text;              /* models: the content as markdown */
	const char *name;              /* models: their name */
	const char *context;           /* NULL or "" = none */
	int64_t occurred_start_us, occurred_end_us, mentioned_us;  /* HS_TIME_NONE = none */
	struct hs_strs entities;       /* canonical names */
	struct hs_strs source_ids;     /* observations: the facts they rest on */
	double score;                  /* of its search; compared only within one kind; 0 = unknown */
};

struct hs_extractive_answer {
	const char *text;              /* markdown; a fixed sentence when nothing answers */
	bool answer_found;             /* at least one statement is quoted */
	size_t *used;                  /* indexes of the evidence quoted, in order of the text */
	size_t n_used;
};
/* The text that stands where nothing is stored on the question. */
extern const char *const hs_extractive_nothing;

/* Answer a question. Statements sharing no word with it are left out, unless none shares one. */
void hs_extractive_answer(struct hs_pool *pool, const char *question, const struct hs_evidence *ev,
	size_t n, int64_t max_tokens, struct hs_extractive_answer *ret);

/* The document of a refresh; text of *ret is its render without outer blanks. No statement at all:
 * an empty document and answer_found false. */
void hs_extractive_document(struct hs_pool *pool, const char *question, const struct hs_evidence *ev,
	size_t n, int64_t max_tokens, struct hs_document *ret_doc, struct hs_extractive_answer *ret);

/* Do two statements say the same? Equal words after stemming but for a few; numbers, negations and
 * names must agree. Used for folding near-equal facts, too. */
bool hs_near_equal(struct hs_pool *pool, const char *a, const char *b);

#endif
