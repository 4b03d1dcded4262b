/*
 * sentences - text -> speakers' turns -> sentences.
 *
 * Floor:   engine; pure. Only white space is changed: every sentence is a piece of the text with its
 *          blanks and line ends made single blanks.
 * Rules:   a turn is an element of a JSON conversation ({speaker|role|name…, content|text…}; an array,
 *          one object or one object a line), or lines beginning "Name: ". A blank line, a list marker,
 *          a heading or a new turn ends a sentence, and so do . ! ? … 。！？ before a blank, but not
 *          after abbreviations, initials and list numbers. A fenced block is one sentence.
 */
#ifndef HS_ENGINE_SENTENCES_H
#define HS_ENGINE_SENTENCES_H

#include <stdbool.h>

#include "base/pool.h"
#include "base/str.h"

struct hs_turn {
	const char *speaker;           /* NULL = nobody named */
	bool assistant;                /* the speaker is the assistant itself */
	struct hs_strs sentences;
};
struct hs_turns {
	struct hs_turn *v;
	size_t n, cap;
};
void hs_turns_split(struct hs_pool *pool, const char *text, struct hs_turns *ret);
/* Sentences of a text without looking for speakers. */
struct hs_strs hs_sentences(struct hs_pool *pool, const char *text);
/* White-space runs to one blank, trimmed. */
char *hs_squeeze(struct hs_pool *pool, const char *s, size_t n);

#endif
