/*
 * buf - growing bytes with a cap that is fixed at birth.
 *
 * Floor:   base. Memory is malloc'ed, grows in place and is freed with the pool.
 * Limits:  max bytes, from limits.h. Going past it sets `failed` and drops the write; writers need
 *          no check of their own, the one who uses the result asks hs_buf_ok once.
 * Owns:    its bytes; data is always NUL-terminated and lent until the next write or the pool's end.
 */
#ifndef HS_BASE_BUF_H
#define HS_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "base/pool.h"

struct hs_buf {
	char *data;       /* never NULL after init */
	size_t len, cap, max;
	bool failed;      /* the cap was hit */
};

/* A buffer tied to the pool. The struct itself must live as long as the pool: use hs_buf_new
 * unless it is a member of something in that pool. */
struct hs_buf *hs_buf_new(struct hs_pool *pool, size_t max);

void hs_buf_add(struct hs_buf *b, const void *p, size_t n);
void hs_buf_str(struct hs_buf *b, const char *s);
void hs_buf_char(struct hs_buf *b, char c);
void hs_buf_int(struct hs_buf *b, int64_t v);
void hs_buf_printf(struct hs_buf *b, const char *fmt, ...) HS_PRINTF(2, 3);
void hs_buf_reset(struct hs_buf *b);                 /* length 0, not failed, memory kept */
void hs_buf_cut(struct hs_buf *b, size_t len);       /* shorten to len */
/* HS_OK, or HS_E_LIMIT naming `what` when the cap was hit. */
HS_MUST enum hs_rc hs_buf_ok(const struct hs_buf *b, const char *what, struct hs_err *err);

#endif
