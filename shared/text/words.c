#include "text/words.h"

#include <stdlib.h>
#include <string.h>

#include <unicase.h>
#include <unictype.h>
#include <uninorm.h>
#include <unistr.h>

#include "base/str.h"
#include "text/hash.h"
#include "text/stem.h"

#define WORD_BYTES ((size_t)256)   /* longer runs count by their beginning */
#define QUERY_TERMS ((size_t)1024) /* the index is asked for far fewer */
#define TF_MAX 65535u
#define LEN_MAX 16777215u

enum kind {
	K_BREAK,    /* separates words */
	K_LETTER,   /* letters and marks */
	K_DIGIT,
	K_PAIR,     /* a script without blanks */
	K_APOS,     /* belongs to a word between letters */
	K_POINT,    /* belongs to a word between digits */
	K_COMMA,    /* dropped between digits */
	K_IGNORE,   /* invisible inside a word: joiners, soft hyphen */
};

/* Scripts written without blanks between words. */
static const struct {
	uint32_t first, last;
} pair_ranges[] = {
	{0x0e00, 0x0eff}, {0x1000, 0x109f}, {0x1100, 0x11ff}, {0x1780, 0x17ff}, {0x3005, 0x3007},
	{0x3041, 0x30ff}, {0x31f0, 0x31ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xac00, 0xd7af},
	{0xf900, 0xfaff}, {0xff66, 0xff9f}, {0x20000, 0x323af},
};

/* Sorted by bytes. Function words only: names, numbers and question subjects stay. */
static const char *const stop_words[] = {
	"a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "aren't", "as",
	"at", "be", "because", "been", "before", "being", "between", "both", "but", "by", "can",
	"can't", "cannot", "could", "couldn't", "did", "didn't", "do", "does", "doesn't", "doing",
	"don't", "down", "during", "each", "few", "for", "from", "further", "had", "hadn't", "has",
	"hasn't", "have", "haven't", "having", "he", "he's", "her", "here", "hers", "herself", "him",
	"himself", "his", "how", "i", "i'd", "i'll", "i'm", "i've", "if", "in", "into", "is", "isn't",
	"it", "it's", "its", "itself", "just", "let's", "me", "more", "most", "my", "myself", "no",
	"nor", "not", "of", "off", "on", "once", "only", "or", "other", "our", "ours", "ourselves",
	"out", "over", "own", "same", "she", "she's", "should", "shouldn't", "so", "some", "such",
	"than", "that", "that's", "the", "their", "theirs", "them", "themselves", "then", "there",
	"there's", "these", "they", "they'll", "they're", "they've", "this", "those", "through", "to",
	"too", "under", "until", "up", "very", "was", "wasn't", "we", "we'll", "we're", "we've",
	"were", "weren't", "what", "what's", "when", "where", "which", "while", "who", "who's", "whom",
	"why", "will", "with", "won't", "would", "wouldn't", "you", "you'd", "you'll", "you're",
	"you've", "your", "yours", "yourself", "yourselves",
};

static bool is_pair(uint32_t cp)
{
	if (cp < pair_ranges[0].first)
		return false;

	for (size_t i = 0; i < HS_COUNT(pair_ranges); i++)
		if (cp >= pair_ranges[i].first && cp <= pair_ranges[i].last)
			return true;
	return false;
}

static bool is_han(uint32_t cp)
{
	return (cp >= 0x3400 && cp <= 0x9fff) || (cp >= 0xf900 && cp <= 0xfaff) || cp >= 0x20000;
}

static enum kind ascii_kind(unsigned char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return K_LETTER;
	if (c >= '0' && c <= '9')
		return K_DIGIT;
	switch (c) {
	case '\'':
		return K_APOS;
	case '.':
		return K_POINT;
	case ',':
		return K_COMMA;
	default:
		return K_BREAK;
	}
}

static enum kind kind_of(uint32_t cp)
{
	if (cp < 0x80)
		return ascii_kind((unsigned char)cp);
	if (cp == 0x2019 || cp == 0x02bc)
		return K_APOS;
	if (cp == 0x00ad || (cp >= 0x200c && cp <= 0x200d) || cp == 0x2060 || cp == 0xfeff)
		return K_IGNORE;
	if (uc_is_general_category_withtable(cp, UC_CATEGORY_MASK_N))
		return K_DIGIT;
	if (uc_is_general_category_withtable(cp, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_M))
		return is_pair(cp) ? K_PAIR : K_LETTER;
	return K_BREAK;
}

/* The next character and what it is; an invalid byte breaks. */
static size_t next_kind(const char *s, size_t n, uint32_t *ret_cp, enum kind *ret_kind)
{
	size_t len;

	if (n && !((unsigned char)*s & 0x80)) {
		*ret_cp = (unsigned char)*s;
		*ret_kind = ascii_kind((unsigned char)*s);
		return 1;
	}
	len = hs_utf8_next(s, n, ret_cp);
	if (len == 0) {
		*ret_cp = 0;
		*ret_kind = K_BREAK;
		return n ? 1 : 0;
	}
	*ret_kind = kind_of(*ret_cp);
	return len;
}

/* Where the word that begins at `from` ends; *ret_plain: no byte needs more than ASCII folding. */
static size_t word_end(
	const char *s, size_t n, size_t from, enum kind first, bool *ret_plain, bool *ret_number)
{
	size_t at = from, end = from;
	enum kind last = first, k = first;
	uint32_t cp;

	*ret_plain = true;
	*ret_number = true;
	while (at < n) {
		size_t len = next_kind(s + at, n - at, &cp, &k);
		bool joins = k == K_LETTER || k == K_DIGIT;

		if (k == K_IGNORE) {
			*ret_plain = false;
			at += len;
			continue;
		}
		if (!joins) {
			/* a single sign between two of its kind; what follows is looked at next
			 * round */
			enum kind side = k == K_APOS ? K_LETTER : K_DIGIT, after;
			uint32_t cp_after;

			if ((k != K_APOS && k != K_POINT && k != K_COMMA) || last != side)
				break;
			if (!next_kind(s + at + len, n - at - len, &cp_after, &after) ||
				after != side)
				break;
		}
		if (cp >= 0x80 || k == K_COMMA)
			*ret_plain = false;
		if (k == K_LETTER || k == K_APOS)
			*ret_number = false;
		last = k;
		at += len;
		if (joins)
			end = at;
	}
	return end;
}

/* The raw word without what folding drops, apostrophes made equal. */
static size_t strip(const char *s, size_t n, char out[WORD_BYTES])
{
	size_t at = 0, len, used = 0;
	uint32_t cp;
	enum kind k;

	while (at < n) {
		len = next_kind(s + at, n - at, &cp, &k);
		if (k == K_APOS) {
			if (used + 1 > WORD_BYTES)
				break;
			out[used++] = '\'';
		} else if (k != K_COMMA && k != K_IGNORE) {
			if (used + len > WORD_BYTES)
				break;
			memcpy(out + used, s + at, len);
			used += len;
		}
		at += len;
	}
	return used;
}

/* Folds into a caller's buffer; *ret_heap is set when the result needed more room. */
static const char *fold(
	const char *s, size_t n, uint8_t *buf, size_t cap, size_t *ret_n, uint8_t **ret_heap)
{
	char raw[WORD_BYTES];
	size_t used = strip(s, n, raw), len = cap;
	uint8_t *out = u8_casefold((const uint8_t *)raw, used, NULL, UNINORM_NFKC, buf, &len);

	*ret_heap = out == buf ? NULL : out;
	if (!out)
		hs_out_of_memory(used);
	*ret_n = len;
	return (const char *)out;
}

static void emit(const char *text, struct hs_word *w, bool plain, hs_word_fn *fn, void *arg)
{
	uint8_t buf[4 * WORD_BYTES], *heap = NULL;
	const char *s = text + w->start;
	size_t n = w->end - w->start;

	if (plain) {
		n = n < WORD_BYTES ? n : WORD_BYTES;
		for (size_t i = 0; i < n; i++)
			buf[i] = (uint8_t)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]);
		w->text = (const char *)buf;
		w->n = n;
	} else {
		w->text = fold(s, n, buf, sizeof(buf), &w->n, &heap);
	}
	fn(arg, w);
	free(heap);
}

/* A run of a script without blanks: pairs, and Han characters alone; returns its end. */
static size_t pair_run(const char *text, size_t n, size_t from, hs_word_fn *fn, void *arg)
{
	size_t at = from, before = from, count = 0, len;
	uint32_t cp, cp_before = 0;
	enum kind k;

	while (at < n) {
		struct hs_word w = {.start = before, .end = 0, .pair = true};

		len = next_kind(text + at, n - at, &cp, &k);
		if (k != K_PAIR)
			break;
		if (count > 0) {
			w.end = at + len;
			emit(text, &w, false, fn, arg);
		}
		if (count > 0 && is_han(cp_before)) {
			w.end = at;
			w.extra = true;
			emit(text, &w, false, fn, arg);
		}
		before = at;
		cp_before = cp;
		at += len;
		count++;
	}
	if (count == 1 || is_han(cp_before)) {
		struct hs_word w = {.start = before, .end = at, .pair = true, .extra = count > 1};

		emit(text, &w, false, fn, arg);
	}
	return at;
}

void hs_words_each(const char *text, size_t n, hs_word_fn *fn, void *arg)
{
	size_t at = 0;

	while (at < n) {
		uint32_t cp;
		enum kind k;
		size_t len = next_kind(text + at, n - at, &cp, &k);

		if (k == K_PAIR) {
			at = pair_run(text, n, at, fn, arg);
		} else if (k == K_LETTER || k == K_DIGIT) {
			struct hs_word w = {.start = at};
			bool plain;

			w.end = word_end(text, n, at, k, &plain, &w.number);
			emit(text, &w, plain, fn, arg);
			at = w.end;
		} else {
			at += len;
		}
	}
}

static int compare_stop(const void *key, const void *item)
{
	const struct hs_word *w = key;
	const char *s = *(const char *const *)item;
	size_t len = strlen(s);
	int c = memcmp(w->text, s, w->n < len ? w->n : len);

	return c ? c : (w->n > len) - (w->n < len);
}

bool hs_word_is_stop(const char *word, size_t n)
{
	struct hs_word w = {.text = word, .n = n};

	return bsearch(&w, stop_words, HS_COUNT(stop_words), sizeof(stop_words[0]), compare_stop) !=
	       NULL;
}

/* What turns words into terms. */
struct maker {
	struct hs_stemmer *stemmer;
	bool stop, stem;
	void (*take)(struct maker *m, const struct hs_word *w, const char *s, size_t n);
	struct hs_pool *pool;
	uint64_t *hashes; /* malloc'ed: one a word */
	size_t n, cap, words;
	struct hs_word_list list;
	struct hs_query_terms query;
	size_t list_cap;
};

static bool is_english(const char *lang)
{
	return hs_str_empty(lang) || hs_str_ieq_ascii(lang, "english") ||
	       hs_str_ieq_ascii(lang, "en");
}

/* Latin, Greek and Cyrillic letters without their accents, so that José is found by Jose. */
static const char *unaccent(
	const char *s, size_t n, uint8_t *buf, size_t cap, size_t *ret_n, uint8_t **ret_heap)
{
	size_t len = cap, used = 0;
	uint8_t *out = u8_normalize(UNINORM_NFD, (const uint8_t *)s, n, buf, &len);

	if (!out)
		hs_out_of_memory(n);
	*ret_heap = out == buf ? NULL : out;
	for (size_t i = 0; i < len; i++) {
		/* U+0300 … U+036F: CC 80 … CD AF */
		if (i + 1 < len && (out[i] == 0xcc || (out[i] == 0xcd && out[i + 1] <= 0xaf)))
			i++;
		else
			out[used++] = out[i];
	}
	*ret_n = used;
	return (const char *)out;
}

static bool has_accents(const char *s, size_t n)
{
	uint32_t cp = 0;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] >= 0x80)
			return hs_utf8_next(s + i, n - i, &cp) && cp < 0x0530;
	return false;
}

static void make(void *arg, const struct hs_word *w)
{
	struct maker *m = arg;
	const char *s = w->text;
	size_t n = w->n;
	uint8_t buf[4 * WORD_BYTES], *heap = NULL;

	if (m->stop && hs_word_is_stop(s, n))
		return;
	if (m->stem && !w->pair && !w->number) {
		s = hs_stem(m->stemmer, s, n, &n);
		if (has_accents(s, n))
			s = unaccent(s, n, buf, sizeof(buf), &n, &heap);
	}
	if (n)
		m->take(m, w, s, n);
	free(heap);
}

static void run_maker(struct maker *m, const char *text, const char *lang)
{
	if (!text)
		return;

	m->stemmer = m->stem ? hs_stemmer_new(lang) : NULL;
	m->stop = m->stop && is_english(lang);
	hs_words_each(text, strlen(text), make, m);
	hs_stemmer_free(&m->stemmer);
}

static void take_hash(struct maker *m, const struct hs_word *w, const char *s, size_t n)
{
	if (m->n == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 256;
		uint64_t *more = realloc(m->hashes, cap * sizeof(*more));

		if (!more)
			hs_out_of_memory(cap * sizeof(*more));
		m->hashes = more;
		m->cap = cap;
	}
	m->hashes[m->n++] = hs_hash64(s, n);
	m->words += !w->extra;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void hs_words_terms(struct hs_pool *pool, const char *text, const char *lang, struct hs_terms *ret)
{
	struct maker m = {.stop = true, .stem = true, .take = take_hash};
	size_t distinct = 0;

	run_maker(&m, text, lang);
	if (m.n)
		qsort(m.hashes, m.n, sizeof(*m.hashes), compare_u64);
	for (size_t i = 0; i < m.n; i++)
		distinct += i == 0 || m.hashes[i] != m.hashes[i - 1];

	ret->v = HS_NEW_ARRAY(pool, struct hs_term, distinct ? distinct : 1);
	ret->n = 0;
	ret->len = m.words < LEN_MAX ? (uint32_t)m.words : LEN_MAX;
	for (size_t i = 0; i < m.n; i++) {
		if (i == 0 || m.hashes[i] != m.hashes[i - 1])
			ret->v[ret->n++] = (struct hs_term){.hash = m.hashes[i]};
		if (ret->v[ret->n - 1].tf < TF_MAX)
			ret->v[ret->n - 1].tf++;
	}
	free(m.hashes);
}

static void take_query(struct maker *m, const struct hs_word *w, const char *s, size_t n)
{
	uint64_t hash = hs_hash64(s, n);
	struct hs_query_terms *q = &m->query;

	if (w->extra || q->n == QUERY_TERMS)
		return;
	for (size_t i = 0; i < q->n; i++)
		if (q->v[i].hash == hash)
			return;
	if (q->n == m->list_cap) {
		size_t cap = m->list_cap ? 2 * m->list_cap : 16;

		q->v = hs_pool_regrow(m->pool, q->v, q->n * sizeof(*q->v), cap * sizeof(*q->v));
		m->list_cap = cap;
	}
	q->v[q->n].hash = hash;
	q->v[q->n++].text = hs_pool_strndup(m->pool, s, n);
}

void hs_words_query(
	struct hs_pool *pool, const char *text, const char *lang, struct hs_query_terms *ret)
{
	struct maker m = {.stop = true, .stem = true, .take = take_query, .pool = pool};

	run_maker(&m, text, lang);
	*ret = m.query;
}

static void take_string(struct maker *m, const struct hs_word *w, const char *s, size_t n)
{
	struct hs_word_list *l = &m->list;

	if (w->extra)
		return;
	if (l->n == m->list_cap) {
		size_t cap = m->list_cap ? 2 * m->list_cap : 32;

		l->v = hs_pool_regrow(m->pool, l->v, l->n * sizeof(*l->v), cap * sizeof(*l->v));
		m->list_cap = cap;
	}
	l->v[l->n++] = hs_pool_strndup(m->pool, s, n);
}

struct hs_word_list hs_words_list(
	struct hs_pool *pool, const char *text, const char *lang, bool stem, bool stop)
{
	struct maker m = {.stop = stop, .stem = stem, .take = take_string, .pool = pool};

	run_maker(&m, text, lang);
	return m.list;
}

char *hs_lower(struct hs_pool *pool, const char *s)
{
	size_t n = s ? strlen(s) : 0, len = 0;
	uint8_t *out;
	char *copy;

	if (!hs_utf8_valid(s ? s : "", n))
		return hs_str_lower_ascii(pool, s);
	if (n == 0)
		return hs_pool_strdup(pool, "");

	out = u8_tolower((const uint8_t *)s, n, NULL, UNINORM_NFC, NULL, &len);
	if (!out)
		hs_out_of_memory(n);
	copy = hs_pool_strndup(pool, (const char *)out, len);
	free(out);
	return copy;
}

bool hs_starts_upper(const char *s, size_t n)
{
	uint32_t cp;

	return hs_utf8_next(s, n, &cp) &&
	       uc_is_general_category_withtable(cp, UC_CATEGORY_MASK_Lu | UC_CATEGORY_MASK_Lt);
}
