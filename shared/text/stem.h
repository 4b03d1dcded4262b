/*
 * stem - Snowball stems of lower-cased words.
 *
 * Floor:   text; stem.c alone includes <libstemmer.h>.
 * Thread:  a handle belongs to one thread at a time; making one is cheap (well under 1 µs), so a
 *          call that needs stems makes its own and frees it.
 * Shapes:  languages by Snowball name or ISO 639 code ("english", "en", "german"); NULL or "" is
 *          English. "none", "simple" and unknown names stem nothing.
 */
#ifndef HS_TEXT_STEM_H
#define HS_TEXT_STEM_H

#include <stdbool.h>
#include <stddef.h>

struct hs_stemmer;

/* NULL when the language has no stemmer; every call takes NULL as "leave the word as it is". */
struct hs_stemmer *hs_stemmer_new(const char *lang);
void hs_stemmer_free(struct hs_stemmer **sp);
/* The stem of n bytes of lower-case UTF-8; *ret_n its length. Lent until the next call. Words over
 * HS_STEM_BYTES come back unchanged. */
#define HS_STEM_BYTES 128
const char *hs_stem(struct hs_stemmer *s, const char *word, size_t n, size_t *ret_n);
/* Is there a stemmer of this name? */
bool hs_stem_known(const char *lang);

#endif
