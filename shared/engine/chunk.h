/*
 * chunk - cut a text into pieces for extraction: conversations and JSON lines at their turns, other
 * text at the largest break that fits.
 *
 * Floor:   engine. Pure: no clock, no I/O. Rules: contract retain-recall 2.4.
 * Units:   lengths are Unicode code points.
 * Laws:    chunking a chunk yields that chunk; no piece of plain text is longer than max_chars; every
 *          word of the text is in a chunk, in order.
 * Owns:    strings live in the pool; a text that fits is handed back as it is.
 */
#ifndef HS_ENGINE_CHUNK_H
#define HS_ENGINE_CHUNK_H

#include "base/pool.h"
#include "base/str.h"

/* max_chars: limit of a chunk; structured_chars: limit of one turn, object or line kept whole
 * (both at least 1). */
struct hs_strs hs_chunk(
	struct hs_pool *pool, const char *text, size_t max_chars, size_t structured_chars);

#endif
