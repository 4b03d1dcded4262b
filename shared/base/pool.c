#include "base/pool.h"

#include <assert.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES ((size_t)8192)
#define TRIM_BYTES ((size_t)4 * 1024 * 1024)
#define ALIGN ((size_t)16)
#define BLOCK_MAX ((size_t)256 * 1024)

struct block {
	struct block *next;
	size_t size, used;
	max_align_t data[];
};

struct deferred {
	struct deferred *next;
	void (*fn)(void *arg);
	void *arg;
};

struct hs_pool {
	struct block *blocks;
	struct deferred *deferred;
	size_t used, next_size;
};

void hs_out_of_memory(size_t bytes)
{
	fprintf(stderr, "level=error event=out_of_memory bytes=%zu\n", bytes);
	_exit(70);
}

static struct block *block_new(size_t size)
{
	struct block *b = malloc(sizeof(*b) + size);

	if (!b)
		hs_out_of_memory(sizeof(*b) + size);
	b->next = NULL;
	b->size = size;
	b->used = 0;
	return b;
}

struct hs_pool *hs_pool_new(void)
{
	struct hs_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		hs_out_of_memory(sizeof(*pool));
	pool->next_size = BLOCK_BYTES;
	return pool;
}

static void run_deferred(struct hs_pool *pool)
{
	while (pool->deferred) {
		struct deferred *d = pool->deferred;

		pool->deferred = d->next;
		d->fn(d->arg);
	}
}

void hs_pool_clear(struct hs_pool *pool)
{
	bool large = pool->used > TRIM_BYTES;
	struct block *keep = NULL;

	run_deferred(pool);
	while (pool->blocks) {
		struct block *b = pool->blocks;

		pool->blocks = b->next;
		if (!keep && b->size == BLOCK_BYTES) {
			keep = b;
			continue;
		}
		free(b);
	}
	if (keep) {
		keep->next = NULL;
		keep->used = 0;
	}
	pool->blocks = keep;
	pool->used = 0;
	pool->next_size = BLOCK_BYTES;
	/* what a large request took goes back to the system, or each thread would keep its own peak */
	if (large)
		(void)malloc_trim(0);
}

void hs_pool_free(struct hs_pool **poolp)
{
	struct hs_pool *pool = *poolp;

	if (!pool)
		return;
	hs_pool_clear(pool);
	free(pool->blocks);
	free(pool);
	*poolp = NULL;
}

void *hs_pool_alloc(struct hs_pool *pool, size_t bytes)
{
	struct block *b = pool->blocks;
	size_t need;
	void *p;

	if (bytes > SIZE_MAX / 2)
		hs_out_of_memory(bytes);
	need = (bytes + ALIGN - 1) / ALIGN * ALIGN;
	if (need == 0)
		need = ALIGN;
	if (!b || b->size - b->used < need) {
		if (need > pool->next_size / 2) {
			/* a block of its own, behind the current one, which may still have room */
			struct block *own = block_new(need);

			own->used = need;
			if (b) {
				own->next = b->next;
				b->next = own;
			} else {
				pool->blocks = own;
			}
			pool->used += need;
			return own->data;
		}
		b = block_new(pool->next_size);
		b->next = pool->blocks;
		pool->blocks = b;
		if (pool->next_size < BLOCK_MAX)
			pool->next_size *= 2;
	}
	p = (char *)b->data + b->used;
	b->used += need;
	pool->used += need;
	return p;
}

void *hs_pool_calloc(struct hs_pool *pool, size_t n, size_t bytes)
{
	void *p;

	if (bytes != 0 && n > SIZE_MAX / 2 / bytes)
		hs_out_of_memory(n);
	p = hs_pool_alloc(pool, n * bytes);
	memset(p, 0, n * bytes);
	return p;
}

void *hs_pool_regrow(struct hs_pool *pool, const void *old, size_t old_bytes, size_t new_bytes)
{
	void *p = hs_pool_alloc(pool, new_bytes);

	if (old && old_bytes)
		memcpy(p, old, old_bytes < new_bytes ? old_bytes : new_bytes);
	return p;
}

void *hs_pool_memdup(struct hs_pool *pool, const void *p, size_t bytes)
{
	return hs_pool_regrow(pool, p, bytes, bytes);
}

char *hs_pool_strndup(struct hs_pool *pool, const char *s, size_t n)
{
	char *d = hs_pool_alloc(pool, n + 1);

	if (n)
		memcpy(d, s, n);
	d[n] = '\0';
	return d;
}

char *hs_pool_strdup(struct hs_pool *pool, const char *s)
{
	return s ? hs_pool_strndup(pool, s, strlen(s)) : NULL;
}

char *hs_pool_vprintf(struct hs_pool *pool, const char *fmt, va_list ap)
{
	va_list copy;
	int n;
	char *s;

	assert(fmt);
	va_copy(copy, ap);
	n = vsnprintf(NULL, 0, fmt, copy);
	va_end(copy);
	if (n < 0)
		hs_out_of_memory(0);
	s = hs_pool_alloc(pool, (size_t)n + 1);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	return s;
}

char *hs_pool_printf(struct hs_pool *pool, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = hs_pool_vprintf(pool, fmt, ap);
	va_end(ap);
	return s;
}

void hs_pool_defer(struct hs_pool *pool, void (*fn)(void *arg), void *arg)
{
	struct deferred *d = hs_pool_alloc(pool, sizeof(*d));

	d->fn = fn;
	d->arg = arg;
	d->next = pool->deferred;
	pool->deferred = d;
}

size_t hs_pool_used(const struct hs_pool *pool)
{
	return pool->used;
}
