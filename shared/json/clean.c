#include "json/clean.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Control characters that never get in; tab, LF and CR stay. */
static bool unwanted(unsigned c)
{
	return c < 0x09 || c == 0x0B || c == 0x0C || (c >= 0x0E && c < 0x20) || c == 0x7F;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The code unit of \uXXXX at p, -1 when there is no such escape. */
static int code_unit(const char *p, const char *end)
{
	int v = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		int d = hex_value(p[i]);

		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	return v;
}

struct escape {
	size_t bytes; /* length in the text, 0 = malformed */
	bool keep;
};

static struct escape escape_at(const char *p, const char *end)
{
	int unit, low;

	if (end - p < 2)
		return (struct escape){0, false};
	if (p[1] != 'u') {
		/* \b and \f are control characters by another name */
		if (strchr("\"\\/bfnrt", p[1]) && p[1] != '\0')
			return (struct escape){2, p[1] != 'b' && p[1] != 'f'};
		return (struct escape){0, false};
	}
	unit = code_unit(p, end);
	if (unit < 0)
		return (struct escape){0, false};
	if (unit >= 0xD800 && unit <= 0xDBFF) {
		low = code_unit(p + 6, end);
		if (low >= 0xDC00 && low <= 0xDFFF)
			return (struct escape){12, true};
		return (struct escape){6, false};
	}
	if (unit >= 0xDC00 && unit <= 0xDFFF)
		return (struct escape){6, false};
	return (struct escape){6, !unwanted((unsigned)unit)};
}

/* Most bodies hold nothing of the kind and are used as they are. */
static bool may_need_work(const char *bytes, size_t n)
{
	if (memchr(bytes, 0x7F, n))
		return true;
	for (const char *p = bytes, *end = bytes + n; (p = memchr(p, '\\', (size_t)(end - p)));
		p += 2) {
		if (end - p < 2)
			return false;
		if (p[1] == 'u' || p[1] == 'b' || p[1] == 'f')
			return true;
		if (end - p == 2)
			return false;
	}
	return false;
}

/* The walk over JSON text: one step takes some bytes of it and keeps all or none of them. */
struct walk {
	const char *p, *end;
	bool in_string;
};
struct step {
	const char *at;
	size_t bytes;
	bool keep;
};

static struct step next_step(struct walk *w)
{
	struct step s = {w->p, 1, true};

	if (w->in_string && *w->p == '\\') {
		struct escape e = escape_at(w->p, w->end);

		/* the parser stops at a malformed one; cutting further could only make it valid */
		s.bytes = e.bytes ? e.bytes : (size_t)(w->end - w->p);
		s.keep = e.keep || e.bytes == 0;
	} else if (*w->p == '"') {
		w->in_string = !w->in_string;
	} else {
		s.keep = !(w->in_string && *w->p == 0x7F);
	}
	w->p += s.bytes;
	return s;
}

const char *hs_clean_json(struct hs_pool *pool, const char *bytes, size_t n, size_t *ret_n)
{
	struct walk w = {bytes, bytes + n, false};
	char *out, *d;

	*ret_n = n;
	if (n == 0 || !may_need_work(bytes, n))
		return bytes;
	out = d = hs_pool_alloc(pool, n + 1);
	while (w.p < w.end) {
		struct step s = next_step(&w);

		if (!s.keep)
			continue;
		memcpy(d, s.at, s.bytes);
		d += s.bytes;
	}
	*d = '\0';
	*ret_n = (size_t)(d - out);
	return out;
}

size_t hs_clean_json_origin(const char *bytes, size_t n, size_t offset)
{
	struct walk w = {bytes, bytes + n, false};
	size_t kept = 0;

	while (w.p < w.end) {
		struct step s = next_step(&w);

		if (!s.keep)
			continue;
		if (kept + s.bytes > offset)
			return (size_t)(s.at - bytes) + (offset - kept);
		kept += s.bytes;
	}
	return n;
}

/* Do the last three bytes written encode a surrogate (ED A0..BF 80..BF)? */
static bool ends_in_surrogate(const char *start, const char *d)
{
	const unsigned char *u = (const unsigned char *)d - 3;

	return d - start >= 3 && u[0] == 0xED && u[1] >= 0xA0 && u[1] <= 0xBF && u[2] >= 0x80 &&
	       u[2] <= 0xBF;
}

char *hs_clean_text(struct hs_pool *pool, const char *s, size_t n)
{
	char *out = hs_pool_alloc(pool, n + 1), *d = out;

	for (size_t i = 0; i < n; i++) {
		if (unwanted((unsigned char)s[i]))
			continue;
		*d++ = s[i];
		if (ends_in_surrogate(out, d))
			d -= 3;
	}
	*d = '\0';
	return out;
}
