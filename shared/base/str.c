#include "base/str.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hs_str_eq(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return strcmp(a, b) == 0;
}

bool hs_str_empty(const char *s)
{
	return !s || !*s;
}

bool hs_is_space_cp(uint32_t cp)
{
	return (cp >= 0x09 && cp <= 0x0D) || cp == 0x20 || cp == 0x85 || cp == 0xA0 || cp == 0x1680 ||
		(cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F ||
		cp == 0x205F || cp == 0x3000;
}

/* Bytes of white space at the start of s. */
static size_t leading_space(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n) {
		uint32_t cp;
		size_t len = hs_utf8_next(s + i, n - i, &cp);

		if (len == 0 || !hs_is_space_cp(cp))
			break;
		i += len;
	}
	return i;
}

bool hs_str_blank(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	return n == 0 || leading_space(s, n) == n;
}

bool hs_str_starts(const char *s, const char *prefix)
{
	return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

bool hs_str_ends(const char *s, const char *suffix)
{
	size_t n = s ? strlen(s) : 0, m = strlen(suffix);

	return s && n >= m && memcmp(s + n - m, suffix, m) == 0;
}

static char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool hs_str_ieq_ascii(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	for (; *a && *b; a++, b++)
		if (ascii_lower(*a) != ascii_lower(*b))
			return false;
	return *a == *b;
}

char *hs_str_trim(struct hs_pool *pool, const char *s)
{
	size_t n = s ? strlen(s) : 0, from, end;

	if (n == 0)
		return hs_pool_strndup(pool, "", 0);
	from = leading_space(s, n);
	end = n;
	while (end > from) {
		size_t start = end - 1;
		uint32_t cp;

		while (start > from && ((unsigned char)s[start] & 0xC0) == 0x80)
			start--;
		if (hs_utf8_next(s + start, end - start, &cp) != end - start || !hs_is_space_cp(cp))
			break;
		end = start;
	}
	return hs_pool_strndup(pool, s + from, end - from);
}

char *hs_str_lower_ascii(struct hs_pool *pool, const char *s)
{
	char *d = hs_pool_strdup(pool, s ? s : "");

	for (char *p = d; *p; p++)
		*p = ascii_lower(*p);
	return d;
}

char *hs_str_replace(struct hs_pool *pool, const char *s, const char *from, const char *to)
{
	size_t n_from = strlen(from), n_to = strlen(to), count = 0;
	const char *p, *hit;
	char *d, *out;

	if (n_from == 0)
		return hs_pool_strdup(pool, s);
	for (p = s; (p = strstr(p, from)) != NULL; p += n_from)
		count++;
	d = hs_pool_alloc(pool, strlen(s) + count * n_to + 1);
	out = d;
	for (p = s; (hit = strstr(p, from)) != NULL; p = hit + n_from) {
		memcpy(out, p, (size_t)(hit - p));
		out += hit - p;
		memcpy(out, to, n_to);
		out += n_to;
	}
	strcpy(out, p);
	return d;
}

struct hs_strs hs_str_split(struct hs_pool *pool, const char *s, char sep)
{
	struct hs_strs list = {0, NULL};

	while (s && *s) {
		const char *end = strchr(s, sep);
		size_t n = end ? (size_t)(end - s) : strlen(s);
		char *part = hs_str_trim(pool, hs_pool_strndup(pool, s, n));

		if (*part)
			hs_strs_add(pool, &list, part);
		s += n + (end ? 1 : 0);
	}
	return list;
}

char *hs_strs_join(struct hs_pool *pool, const struct hs_strs *list, const char *sep)
{
	size_t n = 0, n_sep = strlen(sep);
	char *d, *out;

	for (size_t i = 0; i < list->n; i++)
		n += strlen(list->v[i]) + n_sep;
	d = hs_pool_alloc(pool, n + 1);
	out = d;
	for (size_t i = 0; i < list->n; i++) {
		size_t len = strlen(list->v[i]);

		if (i) {
			memcpy(out, sep, n_sep);
			out += n_sep;
		}
		memcpy(out, list->v[i], len);
		out += len;
	}
	*out = '\0';
	return d;
}

bool hs_strs_has(const struct hs_strs *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], s) == 0)
			return true;
	return false;
}

/* Capacities are powers of two from 8 on, so the list needs no field for its own. */
void hs_strs_add(struct hs_pool *pool, struct hs_strs *list, const char *s)
{
	size_t n = list->n;

	if (n == 0)
		list->v = hs_pool_alloc(pool, 8 * sizeof(*list->v));
	else if (n >= 8 && (n & (n - 1)) == 0)
		list->v = hs_pool_regrow(pool, list->v, n * sizeof(*list->v), 2 * n * sizeof(*list->v));
	list->v[list->n++] = s;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct hs_strs hs_strs_sorted_set(struct hs_pool *pool, const struct hs_strs *list)
{
	struct hs_strs set = {0, NULL};
	const char **v;

	if (list->n == 0)
		return set;
	v = hs_pool_memdup(pool, list->v, list->n * sizeof(*v));
	qsort(v, list->n, sizeof(*v), by_bytes);
	for (size_t i = 0; i < list->n; i++)
		if (i == 0 || strcmp(v[i], v[i - 1]) != 0)
			hs_strs_add(pool, &set, v[i]);
	return set;
}

/* Pointers into a list order by their strings, equal ones by their places. */
static int by_bytes_and_place(const void *a, const void *b)
{
	const char *const *x = *(const char *const *const *)a, *const *y = *(const char *const *const *)b;
	int c = strcmp(*x, *y);

	return c ? c : x < y ? -1 : x > y;
}

struct hs_strs hs_strs_unique(struct hs_pool *pool, const struct hs_strs *list)
{
	const char ***at = hs_pool_alloc(pool, (list->n + 1) * sizeof(*at));
	bool *again = hs_pool_calloc(pool, list->n + 1, sizeof(*again));
	struct hs_strs once = {0, NULL};

	for (size_t i = 0; i < list->n; i++)
		at[i] = &list->v[i];
	qsort(at, list->n, sizeof(*at), by_bytes_and_place);
	for (size_t i = 1; i < list->n; i++)
		again[at[i] - list->v] = strcmp(*at[i], *at[i - 1]) == 0;
	for (size_t i = 0; i < list->n; i++)
		if (!again[i])
			hs_strs_add(pool, &once, list->v[i]);
	return once;
}

static bool rest_is_blank(const char *s)
{
	while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r')
		s++;
	return *s == '\0';
}

bool hs_str_to_i64(const char *s, int64_t *ret_v)
{
	char *end;
	long long v;

	if (!s || rest_is_blank(s))
		return false;
	errno = 0;
	v = strtoll(s, &end, 10);
	if (errno || end == s || !rest_is_blank(end))
		return false;
	*ret_v = v;
	return true;
}

bool hs_str_to_double(const char *s, double *ret_v)
{
	char *end;
	double v;

	if (!s || rest_is_blank(s))
		return false;
	/* no hexadecimal, no "inf", no "nan": only what JSON would call a number */
	for (const char *p = s; *p; p++)
		if (!strchr("0123456789+-.eE \t\r\n", *p))
			return false;
	errno = 0;
	v = strtod(s, &end);
	if (end == s || !rest_is_blank(end) || !isfinite(v))
		return false;
	*ret_v = v;
	return true;
}

bool hs_str_to_bool(const char *s, bool *ret_v)
{
	static const char *const yes[] = {"true", "1", "yes", "on", "t", "y"};
	static const char *const no[] = {"false", "0", "no", "off", "f", "n"};

	for (size_t i = 0; s && i < HS_COUNT(yes); i++) {
		if (hs_str_ieq_ascii(s, yes[i])) {
			*ret_v = true;
			return true;
		}
		if (hs_str_ieq_ascii(s, no[i])) {
			*ret_v = false;
			return true;
		}
	}
	return false;
}

void hs_double_print(double v, bool keep_point, char buf[32])
{
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, 32, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	if (strchr(buf, 'e') && fabs(v) < 1e17 && fabs(v) >= 1)
		snprintf(buf, 32, "%.0f", v);
	if (keep_point && !strpbrk(buf, ".eE"))
		strcat(buf, ".0");
}

size_t hs_utf8_next(const char *s, size_t n, uint32_t *ret_cp)
{
	const unsigned char *u = (const unsigned char *)s;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len;
	uint32_t cp;

	if (n == 0)
		return 0;
	if (u[0] < 0x80) {
		*ret_cp = u[0];
		return 1;
	}
	if (u[0] >= 0xC2 && u[0] <= 0xDF)
		len = 2, cp = u[0] & 0x1F;
	else if (u[0] >= 0xE0 && u[0] <= 0xEF)
		len = 3, cp = u[0] & 0x0F;
	else if (u[0] >= 0xF0 && u[0] <= 0xF4)
		len = 4, cp = u[0] & 0x07;
	else
		return 0;
	if (n < len)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((u[i] & 0xC0) != 0x80)
			return 0;
		cp = cp << 6 | (u[i] & 0x3F);
	}
	if (cp < least[len] || cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
		return 0;
	*ret_cp = cp;
	return len;
}

size_t hs_utf8_put(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xC0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3F));
		return 2;
	}
	if (cp >= 0xD800 && cp <= 0xDFFF)
		return 0;
	if (cp < 0x10000) {
		out[0] = (char)(0xE0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
		out[2] = (char)(0x80 | (cp & 0x3F));
		return 3;
	}
	if (cp > 0x10FFFF)
		return 0;
	out[0] = (char)(0xF0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
	out[3] = (char)(0x80 | (cp & 0x3F));
	return 4;
}

bool hs_utf8_valid(const char *s, size_t n)
{
	size_t i = 0;
	uint32_t cp;

	while (i < n) {
		size_t len = hs_utf8_next(s + i, n - i, &cp);

		if (len == 0)
			return false;
		i += len;
	}
	return true;
}

size_t hs_utf8_bytes_of(const char *s, size_t n, size_t chars)
{
	size_t i = 0;
	uint32_t cp;

	while (i < n && chars > 0) {
		size_t len = hs_utf8_next(s + i, n - i, &cp);

		i += len ? len : 1;
		chars--;
	}
	return i;
}

size_t hs_utf8_chars(const char *s, size_t n)
{
	size_t i = 0, chars = 0;
	uint32_t cp;

	while (i < n) {
		size_t len = hs_utf8_next(s + i, n - i, &cp);

		i += len ? len : 1;
		chars++;
	}
	return chars;
}

char *hs_utf8_cut(struct hs_pool *pool, const char *s, size_t chars)
{
	if (!s)
		return hs_pool_strndup(pool, "", 0);
	return hs_pool_strndup(pool, s, hs_utf8_bytes_of(s, strlen(s), chars));
}
