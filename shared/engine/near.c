#include "engine/near.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "text/hash.h"
#include "text/stem.h"
#include "text/words.h"

#define NEAR_SHARE 0.8
#define FIRM_MAX ((size_t)64) /* a text with more of them is compared by its first ones */
#define WORDS_MAX ((size_t)4096)

static const char *const negations[] = {"no", "not", "never", "nor", "none", "without", "cannot"};

struct reader {
	struct hs_pool *pool;
	struct hs_stemmer *stemmer;
	const char *text;
	struct hs_gist gist;
	size_t cap;
};

static bool is_negation(const struct hs_word *w)
{
	for (size_t i = 0; i < HS_COUNT(negations); i++)
		if (strlen(negations[i]) == w->n && memcmp(negations[i], w->text, w->n) == 0)
			return true;
	return w->n > 3 && memcmp(w->text + w->n - 3, "n't", 3) == 0;
}

static void add_firm(struct reader *r, uint64_t hash)
{
	struct hs_gist *g = &r->gist;

	for (size_t i = 0; i < g->n_firm; i++)
		if (g->firm[i] == hash)
			return;
	if (g->n_firm < FIRM_MAX)
		g->firm[g->n_firm++] = hash;
}

static void add_word(struct reader *r, uint64_t hash)
{
	struct hs_gist *g = &r->gist;

	if (g->n_words == WORDS_MAX)
		return;
	if (g->n_words == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 32;

		g->words = hs_pool_regrow(
			r->pool, g->words, g->n_words * sizeof(*g->words), cap * sizeof(*g->words));
		r->cap = cap;
	}
	g->words[g->n_words++] = hash;
}

static void read_word(void *arg, const struct hs_word *w)
{
	struct reader *r = arg;
	const char *stem;
	uint64_t hash;
	size_t n;

	if (w->extra)
		return;
	if (is_negation(w))
		add_firm(r, 0);
	if (hs_word_is_stop(w->text, w->n))
		return;

	stem = w->pair || w->number ? (n = w->n, w->text) : hs_stem(r->stemmer, w->text, w->n, &n);
	hash = hs_hash64(stem, n);
	add_word(r, hash);
	if (w->number || hs_starts_upper(r->text + w->start, w->end - w->start))
		add_firm(r, hash);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct hs_gist hs_gist_of(struct hs_pool *pool, const char *text)
{
	struct reader r = {.pool = pool, .stemmer = hs_stemmer_new(NULL), .text = text ? text : ""};
	size_t kept = 0;

	r.gist.firm = HS_NEW_ARRAY(pool, uint64_t, FIRM_MAX);
	hs_words_each(r.text, strlen(r.text), read_word, &r);
	hs_stemmer_free(&r.stemmer);

	if (r.gist.n_words)
		qsort(r.gist.words, r.gist.n_words, sizeof(uint64_t), compare);
	for (size_t i = 0; i < r.gist.n_words; i++)
		if (i == 0 || r.gist.words[i] != r.gist.words[kept - 1])
			r.gist.words[kept++] = r.gist.words[i];
	r.gist.n_words = kept;
	return r.gist;
}

static size_t shared(const struct hs_gist *a, const struct hs_gist *b)
{
	size_t i = 0, k = 0, n = 0;

	while (i < a->n_words && k < b->n_words) {
		if (a->words[i] == b->words[k]) {
			n++;
			i++;
			k++;
		} else if (a->words[i] < b->words[k]) {
			i++;
		} else {
			k++;
		}
	}
	return n;
}

double hs_gist_overlap(const struct hs_gist *a, const struct hs_gist *b)
{
	size_t larger = a->n_words > b->n_words ? a->n_words : b->n_words;

	return larger ? (double)shared(a, b) / (double)larger : 0.0;
}

bool hs_gist_near(const struct hs_gist *a, const struct hs_gist *b)
{
	size_t smaller = a->n_words < b->n_words ? a->n_words : b->n_words;

	if (smaller == 0 || a->n_firm != b->n_firm ||
		memcmp(a->firm, b->firm, a->n_firm * sizeof(*a->firm)) != 0)
		return false;
	return shared(a, b) == smaller && hs_gist_overlap(a, b) >= NEAR_SHARE;
}
