/*
 * words - text -> words, index terms and query terms.
 *
 * Floor:   text; words.c alone includes libunistring.
 * Rules:   a word is a run of letters, marks and digits; an apostrophe between letters and a point
 *          between digits belong to it ("don't", "3.14"), a comma between digits is dropped
 *          ("1,000" = "1000"). Scripts written without blanks (Han, kana, Hangul, Thai, Lao, Khmer,
 *          Burmese) give pairs of neighbouring characters, Han also single ones.
 *          Words are case-folded and NFKC-normalised, then stemmed (stem.h), then freed of accents.
 *          Stop words (English) are neither indexed nor asked for.
 * Shapes:  a term is hs_hash64 of the finished word: what a posting stores. Stable over releases.
 * Errors:  none. Invalid UTF-8 bytes separate words. NULL text has no words.
 */
#ifndef HS_TEXT_WORDS_H
#define HS_TEXT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

/* One word of a text, before stemming. Bytes are lent until the callback returns. */
struct hs_word {
	const char *text;      /* folded: lower case, NFKC */
	size_t n;
	size_t start, end;     /* byte range in the text it came from */
	bool pair;             /* made of characters of a script without blanks */
	bool extra;            /* single Han character beside its pairs: an index term, not a word more */
	bool number;           /* digits only */
};
typedef void hs_word_fn(void *arg, const struct hs_word *w);
/* Calls fn for every word in order. No memory is kept. */
void hs_words_each(const char *text, size_t n, hs_word_fn *fn, void *arg);

/* Folded words as strings, for comparing texts (stems, when stem is set; without stop words, when
 * stop is set). */
struct hs_word_list {
	size_t n;
	const char **v;
};
struct hs_word_list hs_words_list(struct hs_pool *pool, const char *text, const char *lang,
	bool stem, bool stop);

struct hs_term {
	uint64_t hash;
	uint32_t tf;           /* 1 … 65535 */
};
struct hs_terms {
	struct hs_term *v;     /* sorted by hash, each once */
	size_t n;
	uint32_t len;          /* words counted, stop words left out; for BM25 */
};
/* Terms of a text for the keyword index. Add further parts (context, signals) by calling it on the
 * joined text. lang: stem.h. */
void hs_words_terms(struct hs_pool *pool, const char *text, const char *lang, struct hs_terms *ret);

struct hs_query_term {
	uint64_t hash;
	const char *text;      /* the finished word, for traces */
};
struct hs_query_terms {
	struct hs_query_term *v;   /* in order of first appearance, each once */
	size_t n;
};
/* Terms to ask the index for. A query of stop words alone gives none. */
void hs_words_query(struct hs_pool *pool, const char *text, const char *lang, struct hs_query_terms *ret);

/* Is the folded word an English stop word? */
bool hs_word_is_stop(const char *word, size_t n);
/* Lower case of whole strings by the same tables (names, keys); invalid bytes are copied. */
char *hs_lower(struct hs_pool *pool, const char *s);
/* First character upper case? (letters only) */
bool hs_starts_upper(const char *s, size_t n);

#endif
