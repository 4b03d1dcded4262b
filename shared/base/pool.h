/*
 * pool - memory that lives as long as one request or one job.
 *
 * Floor:   base; C library only. Not thread-safe: one pool belongs to one thread at a time.
 * Owns:    everything taken from it, and whatever was tied to it with hs_pool_defer.
 * Errors:  none. A failed allocation logs and ends the process (the service manager restarts it);
 *          sizes that a client can choose are capped before they get here (limits.h).
 */
#ifndef HS_BASE_POOL_H
#define HS_BASE_POOL_H

#include <stdarg.h>
#include <stddef.h>

#include "base/auto.h"

struct hs_pool;

struct hs_pool *hs_pool_new(void);
/* Run the deferred calls in reverse order, free everything, set *poolp to NULL. NULL is fine. */
void hs_pool_free(struct hs_pool **poolp);
/* The same, but the pool stays usable and keeps one block. */
void hs_pool_clear(struct hs_pool *pool);

void *hs_pool_alloc(struct hs_pool *pool, size_t bytes);  /* 16-byte aligned, not cleared */
void *hs_pool_calloc(struct hs_pool *pool, size_t n, size_t bytes);  /* cleared; overflow ends the process */
/* Grow or shrink nothing in place: a fresh copy of old_bytes with room for new_bytes. */
void *hs_pool_regrow(struct hs_pool *pool, const void *old, size_t old_bytes, size_t new_bytes);
void *hs_pool_memdup(struct hs_pool *pool, const void *p, size_t bytes);
char *hs_pool_strdup(struct hs_pool *pool, const char *s);             /* NULL stays NULL */
char *hs_pool_strndup(struct hs_pool *pool, const char *s, size_t n);  /* exactly n bytes plus NUL */
char *hs_pool_printf(struct hs_pool *pool, const char *fmt, ...) HS_PRINTF(2, 3);
char *hs_pool_vprintf(struct hs_pool *pool, const char *fmt, va_list ap) HS_PRINTF(2, 0);

/* Call fn(arg) when the pool is cleared or freed. */
void hs_pool_defer(struct hs_pool *pool, void (*fn)(void *arg), void *arg);
/* Bytes handed out so far (for tests and caps). */
size_t hs_pool_used(const struct hs_pool *pool);

/* For memory outside pools: log what was wanted and end the process. */
void hs_out_of_memory(size_t bytes) HS_NORETURN;

#define HS_NEW(pool, type) ((type *)hs_pool_calloc((pool), 1, sizeof(type)))
#define HS_NEW_ARRAY(pool, type, n) ((type *)hs_pool_calloc((pool), (n), sizeof(type)))

#endif
