#include "engine/diff.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "text/hash.h"

#define CONTEXT 3

struct line {
	const char *p;
	size_t n;
	uint64_t hash;
};
struct lines {
	struct line *v;
	size_t n;
};
struct diff {
	struct hs_pool *pool;
	struct lines a, b;
	bool *gone, *new; /* by line of a and of b */
	size_t head;      /* equal lines at the beginning */
	size_t na, nb;    /* lines between the equal ends */
};

static struct lines split(struct hs_pool *pool, const char *text)
{
	struct lines l = {0};
	size_t n = 1;

	for (const char *p = text; *p; p++)
		n += *p == '\n';
	l.v = HS_NEW_ARRAY(pool, struct line, n);
	while (*text) {
		size_t len = strcspn(text, "\n");

		l.v[l.n++] = (struct line){text, len, hs_hash64(text, len)};
		text += len + (text[len] == '\n');
	}
	return l;
}

static bool same(const struct line *x, const struct line *y)
{
	return x->hash == y->hash && x->n == y->n && memcmp(x->p, y->p, x->n) == 0;
}

/* Between the ends that both have in common. */
static void trim_ends(struct diff *d)
{
	size_t tail = 0, least = d->a.n < d->b.n ? d->a.n : d->b.n;

	while (d->head < least && same(&d->a.v[d->head], &d->b.v[d->head]))
		d->head++;
	while (tail < least - d->head &&
		same(&d->a.v[d->a.n - 1 - tail], &d->b.v[d->b.n - 1 - tail]))
		tail++;
	d->na = d->a.n - d->head - tail;
	d->nb = d->b.n - d->head - tail;
}

/* ---- the shortest script ---- */

/* Furthest x on diagonal k with `changes` changes, from the rows of one change less. */
static int64_t start_x(const int64_t *prev, int64_t changes, int64_t k)
{
	const int64_t *row;

	if (changes == 0)
		return 0;
	row = prev + changes - 1; /* row[k'] for |k'| < changes */
	if (k == -changes || (k != changes && row[k - 1] < row[k + 1]))
		return row[k + 1];
	return row[k - 1] + 1;
}

/* Rows of furthest x for 0, 1, … changes; row c holds c+1 diagonals at 0, 2, … (index k + c).
 * Returns the changes needed, -1 when there are too many. */
static int64_t search(const struct diff *d, int64_t **rows)
{
	const struct line *a = d->a.v + d->head, *b = d->b.v + d->head;
	const int64_t na = (int64_t)d->na, nb = (int64_t)d->nb;

	for (int64_t c = 0; c <= HS_DIFF_CHANGES && c <= na + nb; c++) {
		rows[c] = HS_NEW_ARRAY(d->pool, int64_t, (size_t)(2 * c + 1));
		for (int64_t k = -c; k <= c; k += 2) {
			int64_t x = start_x(c ? rows[c - 1] : NULL, c, k), y = x - k;

			while (x < na && y >= 0 && y < nb && same(&a[x], &b[y]))
				x++, y++;
			rows[c][k + c] = x;
			if (x >= na && y >= nb)
				return c;
		}
	}
	return -1;
}

/* Walk back from the end and mark what changed. */
static void mark(struct diff *d, int64_t **rows, int64_t changes)
{
	int64_t k = (int64_t)d->na - (int64_t)d->nb;

	for (int64_t c = changes; c > 0; c--) {
		const int64_t *row = rows[c - 1] + c - 1;
		bool added = k == -c || (k != c && row[k - 1] < row[k + 1]);
		int64_t from = added ? k + 1 : k - 1, x = row[from], y = x - from;

		if (added)
			d->new[d->head + (size_t)y] = true;
		else
			d->gone[d->head + (size_t)x] = true;
		k = from;
	}
}

static void compare(struct diff *d)
{
	int64_t **rows = HS_NEW_ARRAY(d->pool, int64_t *, HS_DIFF_CHANGES + 1), changes = -1;

	d->gone = HS_NEW_ARRAY(d->pool, bool, d->a.n + 1);
	d->new = HS_NEW_ARRAY(d->pool, bool, d->b.n + 1);
	trim_ends(d);
	if (d->na + d->nb <= HS_DIFF_LINES)
		changes = search(d, rows);
	if (changes >= 0) {
		mark(d, rows, changes);
		return;
	}
	memset(d->gone + d->head, true, d->na);
	memset(d->new + d->head, true, d->nb);
}

/* ---- printing ---- */

static void range(struct hs_buf *out, size_t from, size_t n)
{
	hs_buf_int(out, (int64_t)(n ? from + 1 : from));
	if (n != 1)
		hs_buf_printf(out, ",%zu", n);
}

static void print_line(struct hs_buf *out, char sign, const struct line *l)
{
	hs_buf_char(out, '\n');
	hs_buf_char(out, sign);
	hs_buf_add(out, l->p, l->n);
}

/* One hunk: lines i to i_end of a, j to j_end of b. */
static void print_hunk(
	struct hs_buf *out, const struct diff *d, size_t i, size_t i_end, size_t j, size_t j_end)
{
	hs_buf_str(out, "\n@@ -");
	range(out, i, i_end - i);
	hs_buf_str(out, " +");
	range(out, j, j_end - j);
	hs_buf_str(out, " @@");
	while (i < i_end || j < j_end) {
		while (i < i_end && d->gone[i])
			print_line(out, '-', &d->a.v[i++]);
		while (j < j_end && d->new[j])
			print_line(out, '+', &d->b.v[j++]);
		for (; i < i_end && !d->gone[i] && j < j_end && !d->new[j]; i++, j++)
			print_line(out, ' ', &d->a.v[i]);
	}
}

/* Go over equal lines, at most `most`; returns how many. */
static size_t skip_equal(const struct diff *d, size_t *i, size_t *j, size_t most)
{
	size_t n = 0;

	while (n < most && *i < d->a.n && *j < d->b.n && !d->gone[*i] && !d->new[*j]) {
		(*i)++;
		(*j)++;
		n++;
	}
	return n;
}

static bool skip_changes(const struct diff *d, size_t *i, size_t *j)
{
	size_t from_i = *i, from_j = *j;

	while (*i < d->a.n && d->gone[*i])
		(*i)++;
	while (*j < d->b.n && d->new[*j])
		(*j)++;
	return *i > from_i || *j > from_j;
}

/* From the first change at i, j on: changes no more than two contexts apart. */
static void hunk_end(const struct diff *d, size_t *i, size_t *j)
{
	while (skip_changes(d, i, j)) {
		size_t at_i = *i, at_j = *j;

		(void)skip_equal(d, i, j, 2 * CONTEXT);
		if (!skip_changes(d, &(size_t){*i}, &(size_t){*j})) {
			*i = at_i;
			*j = at_j;
			(void)skip_equal(d, i, j, CONTEXT);
			return;
		}
	}
}

char *hs_diff_unified(struct hs_pool *pool, const char *current, const char *preview)
{
	struct diff d = {.pool = pool, .a = split(pool, current), .b = split(pool, preview)};
	struct hs_buf *out = hs_buf_new(pool, HS_REPLY_MAX);
	size_t i = 0, j = 0;

	compare(&d);
	while (i < d.a.n || j < d.b.n) {
		size_t equal = skip_equal(&d, &i, &j, SIZE_MAX), before, from_i, from_j;

		if (i >= d.a.n && j >= d.b.n)
			break;
		before = equal < CONTEXT ? equal : CONTEXT;
		from_i = i - before;
		from_j = j - before;
		hunk_end(&d, &i, &j);
		if (!out->len)
			hs_buf_str(out, "--- current\n+++ preview");
		print_hunk(out, &d, from_i, i, from_j, j);
	}
	return out->data;
}
