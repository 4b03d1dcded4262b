/*
 * clean - the one text filter of everything that comes in.
 *
 * Floor:   json. Removes control characters other than tab, LF, CR (0x00-0x08, 0x0B, 0x0C,
 *          0x0E-0x1F, 0x7F) and lone surrogates; raw bytes and \uXXXX escapes alike. Surrogate pairs
 *          stay. Idempotent.
 * Errors:  none; invalid UTF-8 is reported by the parser, not repaired here.
 */
#ifndef HS_JSON_CLEAN_H
#define HS_JSON_CLEAN_H

#include <stddef.h>

#include "base/pool.h"

/* Over JSON text, before parsing: raw 0x7F and the escapes above inside strings go; raw control
 * characters are left for the parser to refuse. Returns the input when nothing had to go. */
const char *hs_clean_json(struct hs_pool *pool, const char *bytes, size_t n, size_t *ret_n);
/* Where in the uncleaned text the byte at offset of the cleaned one stood. */
size_t hs_clean_json_origin(const char *bytes, size_t n, size_t offset);
/* Over plain text (query values, model output): bytes, and UTF-8 encoded surrogates. */
char *hs_clean_text(struct hs_pool *pool, const char *s, size_t n);

#endif
