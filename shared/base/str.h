/*
 * str - checked numbers, UTF-8 and small string helpers.
 *
 * Floor:   base; C library only, never looks at the locale.
 * Units:   n and *_bytes are bytes, *_chars are Unicode code points.
 * Owns:    results live in the pool given; NULL input is an empty string unless said otherwise.
 */
#ifndef HS_BASE_STR_H
#define HS_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "base/pool.h"

/* An ordered list of strings; v may be NULL when n is 0. */
struct hs_strs {
	size_t n;
	const char **v;
};

bool hs_str_eq(const char *a, const char *b);            /* NULL equals NULL only */
bool hs_str_empty(const char *s);                        /* NULL or "" */
bool hs_str_blank(const char *s);                        /* NULL, "" or only white space (Unicode White_Space) */
bool hs_str_starts(const char *s, const char *prefix);
bool hs_str_ends(const char *s, const char *suffix);
bool hs_str_ieq_ascii(const char *a, const char *b);     /* ASCII letters without case */
char *hs_str_trim(struct hs_pool *pool, const char *s);  /* without white space (Unicode) at both ends */
char *hs_str_lower_ascii(struct hs_pool *pool, const char *s);
char *hs_str_replace(struct hs_pool *pool, const char *s, const char *from, const char *to);
/* Parts between separator bytes, each trimmed of blanks; empty parts are dropped. */
struct hs_strs hs_str_split(struct hs_pool *pool, const char *s, char sep);
char *hs_strs_join(struct hs_pool *pool, const struct hs_strs *list, const char *sep);
bool hs_strs_has(const struct hs_strs *list, const char *s);
/* Append in amortised constant time; *list grows inside the pool. */
void hs_strs_add(struct hs_pool *pool, struct hs_strs *list, const char *s);
/* Sorted by bytes, duplicates gone; the input stays as it is. */
struct hs_strs hs_strs_sorted_set(struct hs_pool *pool, const struct hs_strs *list);
/* Each string once, where it stood first. */
struct hs_strs hs_strs_unique(struct hs_pool *pool, const struct hs_strs *list);

/* Whole string must be a number; leading and trailing ASCII blanks are allowed. false = not one or
 * out of range. */
HS_MUST bool hs_str_to_i64(const char *s, int64_t *ret_v);
HS_MUST bool hs_str_to_double(const char *s, double *ret_v);  /* finite, '.' as decimal point */
HS_MUST bool hs_str_to_bool(const char *s, bool *ret_v);      /* true/false/1/0/yes/no/on/off/t/f/y/n, any case */
/* Shortest text that reads back as the same double; integers print without a point ("3.0" as 3.0
 * when keep_point). buf must hold 32 bytes. */
void hs_double_print(double v, bool keep_point, char buf[32]);

/* Decode one code point at s (n bytes left); returns its length, 0 when invalid or n == 0. Surrogates
 * and overlong forms are invalid. */
size_t hs_utf8_next(const char *s, size_t n, uint32_t *ret_cp);
size_t hs_utf8_put(uint32_t cp, char out[4]);            /* bytes written, 0 for an invalid code point */
bool hs_utf8_valid(const char *s, size_t n);
size_t hs_utf8_chars(const char *s, size_t n);           /* code points; an invalid byte counts as one */
/* Bytes taken by the first `chars` code points. */
size_t hs_utf8_bytes_of(const char *s, size_t n, size_t chars);
/* The first `chars` code points as a new string. */
char *hs_utf8_cut(struct hs_pool *pool, const char *s, size_t chars);
bool hs_is_space_cp(uint32_t cp);                        /* Unicode White_Space */

#endif
