#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char empty[1] = "";

static void buf_done(void *arg)
{
	struct hs_buf *b = arg;

	if (b->data != empty)
		free(b->data);
}

struct hs_buf *hs_buf_new(struct hs_pool *pool, size_t max)
{
	struct hs_buf *b = HS_NEW(pool, struct hs_buf);

	b->data = empty;
	b->max = max;
	hs_pool_defer(pool, buf_done, b);
	return b;
}

/* Room for n more bytes and the NUL; false when the cap is hit. */
static bool reserve(struct hs_buf *b, size_t n)
{
	size_t cap;
	char *p;

	if (b->failed)
		return false;
	if (n > b->max - b->len) {
		b->failed = true;
		return false;
	}
	if (b->len + n + 1 <= b->cap)
		return true;
	cap = b->cap ? b->cap : 256;
	while (cap < b->len + n + 1)
		cap *= 2;
	p = realloc(b->data == empty ? NULL : b->data, cap);
	if (!p)
		hs_out_of_memory(cap);
	b->data = p;
	b->cap = cap;
	return true;
}

void hs_buf_add(struct hs_buf *b, const void *p, size_t n)
{
	if (n == 0 || !reserve(b, n))
		return;
	memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void hs_buf_str(struct hs_buf *b, const char *s)
{
	hs_buf_add(b, s, strlen(s));
}

void hs_buf_char(struct hs_buf *b, char c)
{
	hs_buf_add(b, &c, 1);
}

void hs_buf_int(struct hs_buf *b, int64_t v)
{
	char s[32];
	int n = snprintf(s, sizeof(s), "%lld", (long long)v);

	hs_buf_add(b, s, (size_t)n);
}

void hs_buf_printf(struct hs_buf *b, const char *fmt, ...)
{
	va_list ap, copy;
	int n;

	va_start(ap, fmt);
	va_copy(copy, ap);
	n = vsnprintf(NULL, 0, fmt, copy);
	va_end(copy);
	if (n < 0)
		b->failed = true;
	else if (n > 0 && reserve(b, (size_t)n)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
		b->len += (size_t)n;
	}
	va_end(ap);
}

void hs_buf_reset(struct hs_buf *b)
{
	hs_buf_cut(b, 0);
	b->failed = false;
}

void hs_buf_cut(struct hs_buf *b, size_t len)
{
	if (len < b->len)
		b->len = len;
	if (b->data != empty)
		b->data[b->len] = '\0';
}

enum hs_rc hs_buf_ok(const struct hs_buf *b, const char *what, struct hs_err *err)
{
	if (b->failed)
		return hs_fail(err, HS_E_LIMIT, "%s is larger than %zu bytes", what, b->max);
	return HS_OK;
}
