#include "engine/fusion.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RRF_K 60.0

/* ---- the best k ---- */

static bool better(const struct hs_arm_hit *a, const struct hs_arm_hit *b)
{
	if (a->score > b->score || a->score < b->score)
		return a->score > b->score;
	return a->unit_no < b->unit_no;
}

struct hs_best hs_best_new(struct hs_pool *pool, size_t k)
{
	return (struct hs_best){hs_pool_alloc(pool, (k + 1) * sizeof(struct hs_arm_hit)), 0, k};
}

static void sift_up(struct hs_best *b, size_t i)
{
	while (i > 0) {
		size_t up = (i - 1) / 2;
		struct hs_arm_hit t = b->v[i];

		if (!better(&b->v[up], &b->v[i]))
			return;
		b->v[i] = b->v[up];
		b->v[up] = t;
		i = up;
	}
}

static void sift_down(struct hs_best *b, size_t i)
{
	for (;;) {
		size_t worst = i, left = 2 * i + 1;
		struct hs_arm_hit t = b->v[i];

		for (size_t k = left; k < left + 2 && k < b->n; k++)
			if (better(&b->v[worst], &b->v[k]))
				worst = k;
		if (worst == i)
			return;
		b->v[i] = b->v[worst];
		b->v[worst] = t;
		i = worst;
	}
}

void hs_best_offer(struct hs_best *b, int64_t unit_no, double score)
{
	struct hs_arm_hit hit = {unit_no, score};

	if (!b->k)
		return;
	if (b->n < b->k) {
		b->v[b->n++] = hit;
		sift_up(b, b->n - 1);
	} else if (better(&hit, &b->v[0])) {
		b->v[0] = hit;
		sift_down(b, 0);
	}
}

static int by_better(const void *a, const void *b)
{
	return better(a, b) ? -1 : better(b, a);
}

void hs_best_sort(struct hs_best *b)
{
	qsort(b->v, b->n, sizeof(*b->v), by_better);
}

struct hs_arm_list hs_best_join(struct hs_pool *pool, const struct hs_best *lists, size_t n)
{
	struct hs_arm_list arm = {0};
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += lists[i].n;
	arm.v = hs_pool_alloc(pool, (total + 1) * sizeof(*arm.v));
	for (size_t i = 0; i < n; i++) {
		if (lists[i].n)
			memcpy(arm.v + arm.n, lists[i].v, lists[i].n * sizeof(*arm.v));
		arm.n += lists[i].n;
	}
	qsort(arm.v, arm.n, sizeof(*arm.v), by_better);
	return arm;
}

/* ---- fusion ---- */

/* Units in the order first seen, found again by an open-addressing index (the table is twice as large
 * as the lists together). */
struct merge {
	struct hs_fused *v;
	size_t n;
	size_t *slots, mask;
};

static struct merge merge_new(struct hs_pool *pool, size_t total)
{
	struct merge m = {.mask = 16};

	while (m.mask < 2 * total)
		m.mask *= 2;
	m.v = hs_pool_alloc(pool, (total + 1) * sizeof(*m.v));
	m.slots = hs_pool_calloc(pool, m.mask, sizeof(*m.slots));
	m.mask--;
	return m;
}

static struct hs_fused *merge_get(struct merge *m, int64_t unit_no)
{
	size_t at = (size_t)((uint64_t)unit_no * UINT64_C(0x9E3779B97F4A7C15) >> 32) & m->mask;

	while (m->slots[at]) {
		struct hs_fused *f = &m->v[m->slots[at] - 1];

		if (f->unit_no == unit_no)
			return f;
		at = (at + 1) & m->mask;
	}
	m->v[m->n] = (struct hs_fused){.unit_no = unit_no};
	for (int a = 0; a < HS_ARM__MAX; a++)
		m->v[m->n].arm[a] = NAN;
	m->slots[at] = ++m->n;
	return &m->v[m->n - 1];
}

/* Least and largest cosine of all candidates. */
struct range {
	double low, top;
};

static void widen(struct range *r, const struct hs_arm_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		r->low = l->v[i].score < r->low ? l->v[i].score : r->low;
		r->top = l->v[i].score > r->top ? l->v[i].score : r->top;
	}
}

static double stretched(const struct range *r, double cosine)
{
	return r->top > r->low ? (cosine - r->low) / (r->top - r->low) : 1.0;
}

static void by_ranks(struct merge *m, const struct hs_arm_list arms[HS_ARM__MAX])
{
	for (int a = 0; a < HS_ARM__MAX; a++)
		for (size_t rank = 0; rank < arms[a].n; rank++) {
			struct hs_fused *f = merge_get(m, arms[a].v[rank].unit_no);

			f->arm[a] = arms[a].v[rank].score;
			f->score += 1.0 / (RRF_K + (double)rank + 1.0);
		}
}

static void by_scores(struct merge *m, const struct hs_arm_list arms[HS_ARM__MAX],
	const struct hs_arm_list *below, double weight)
{
	const struct hs_arm_list *near = &arms[HS_ARM_SEMANTIC], *words = &arms[HS_ARM_KEYWORD];
	struct range r = {INFINITY, -INFINITY};
	double top = words->n ? words->v[0].score : 0;

	if (!words->n)
		weight = 1.0;
	widen(&r, near);
	widen(&r, below);
	for (size_t i = 0; i < near->n; i++) {
		struct hs_fused *f = merge_get(m, near->v[i].unit_no);

		f->arm[HS_ARM_SEMANTIC] = near->v[i].score;
		f->score = weight * stretched(&r, near->v[i].score);
	}
	for (size_t i = 0; i < words->n; i++) {
		struct hs_fused *f = merge_get(m, words->v[i].unit_no);

		f->arm[HS_ARM_KEYWORD] = words->v[i].score;
		f->score += (1.0 - weight) * (top > 0 ? words->v[i].score / top : 0);
	}
	for (size_t i = 0; i < below->n; i++)
		merge_get(m, below->v[i].unit_no)->score +=
			weight * stretched(&r, below->v[i].score);
}

static int by_score(const void *a, const void *b)
{
	const struct hs_fused *const *x = a, *const *y = b;

	if ((*x)->score > (*y)->score || (*x)->score < (*y)->score)
		return (*x)->score > (*y)->score ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

static void sort_stable(struct hs_pool *pool, struct merge *m)
{
	struct hs_fused **order = hs_pool_alloc(pool, (m->n + 1) * sizeof(*order));
	struct hs_fused *sorted = hs_pool_alloc(pool, (m->n + 1) * sizeof(*sorted));

	for (size_t i = 0; i < m->n; i++)
		order[i] = &m->v[i];
	qsort(order, m->n, sizeof(*order), by_score);
	for (size_t i = 0; i < m->n; i++)
		sorted[i] = *order[i];
	m->v = sorted;
}

static void by_turns(struct merge *m, const struct hs_arm_list arms[HS_ARM__MAX], size_t longest)
{
	for (size_t rank = 0; rank < longest; rank++)
		for (int a = 0; a < HS_ARM__MAX; a++)
			if (rank < arms[a].n)
				merge_get(m, arms[a].v[rank].unit_no)->arm[a] =
					arms[a].v[rank].score;
	for (size_t i = 0; i < m->n; i++)
		m->v[i].score = 1.0 - (double)i / (double)m->n;
}

struct hs_fused *hs_fuse(struct hs_pool *pool, enum hs_fusion how,
	const struct hs_arm_list arms[HS_ARM__MAX], const struct hs_arm_list *below,
	double semantic_weight, size_t *ret_n)
{
	size_t total = 0, longest = 0;
	struct merge m;

	for (int a = 0; a < HS_ARM__MAX; a++) {
		total += arms[a].n;
		longest = arms[a].n > longest ? arms[a].n : longest;
	}
	m = merge_new(pool, total + below->n);
	switch (how) {
	case HS_FUSE_SCORES:
		by_scores(&m, arms, below, semantic_weight);
		sort_stable(pool, &m);
		break;
	case HS_FUSE_RRF:
		by_ranks(&m, arms);
		sort_stable(pool, &m);
		break;
	case HS_FUSE_ROUND_ROBIN:
		by_turns(&m, arms, longest);
		break;
	}
	*ret_n = m.n;
	return m.v;
}
