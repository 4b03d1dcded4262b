#include "base/tokens.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

/*
 * The counter walks once over the text and adds a cost for every character, in thousandths of a token,
 * that depends on the character's class and on what came before. No cost is negative, so a longer text
 * never has fewer tokens. Costs are fitted to exact counts of o200k_base.
 */
enum class {
	C_SPACE,
	C_NEWLINE,
	C_LOWER,
	C_UPPER,
	C_DIGIT,
	C_APOS,
	C_PUNCT,
	C_WIDE_PUNCT,  /* punctuation outside ASCII */
	C_ACCENT,      /* Latin letters outside ASCII */
	C_CYRILLIC,    /* Cyrillic, Greek, Armenian, Georgian */
	C_SEMITIC,     /* Arabic, Hebrew and their like */
	C_INDIC,       /* scripts of South and South-East Asia */
	C_HAN,
	C_KANA,
	C_HANGUL,
	C_SYMBOL,      /* emoji, arrows, signs */
	C_JOINER,      /* modifiers inside an emoji */
	C_INVALID,
	C__MAX
};

/* Letters of these classes form words; the first letter costs `first`, later ones up to the free
 * length nothing, then `later` each. */
static const struct {
	bool letter;
	uint16_t first, later, free;
} costs[C__MAX] = {
	[C_SPACE] = {false, 0, 0, 0},
	[C_NEWLINE] = {false, 900, 0, 0},
	[C_LOWER] = {true, 1000, 120, 8},
	[C_UPPER] = {true, 1000, 120, 8},
	[C_DIGIT] = {false, 1000, 0, 0},
	[C_APOS] = {false, 1000, 300, 0},
	[C_PUNCT] = {false, 650, 300, 0},
	[C_WIDE_PUNCT] = {false, 1000, 700, 0},
	[C_ACCENT] = {true, 1000, 120, 8},
	[C_CYRILLIC] = {true, 1000, 170, 5},
	[C_SEMITIC] = {true, 1000, 250, 3},
	[C_INDIC] = {true, 1000, 300, 3},
	[C_HAN] = {true, 700, 640, 0},
	[C_KANA] = {true, 700, 640, 0},
	[C_HANGUL] = {true, 1000, 550, 1},
	[C_SYMBOL] = {false, 1500, 1500, 0},
	[C_JOINER] = {false, 1000, 1000, 0},
	[C_INVALID] = {false, 1000, 1000, 0},
};
#define COST_SHOUT 150       /* capital after a capital */
#define COST_LONG 330        /* letters beyond LONG_FROM: no ordinary word */
#define LONG_FROM 16
#define COST_ALONE 350       /* what a sign costs more when no letter follows: "/path" is one token */
#define COST_BLANK 1000      /* blanks that no word takes in */
#define COST_AFTER_PUNCT 200 /* the newline behind a sign joins it */
#define COST_ACCENT 300      /* each accented letter splits words more */

static const struct {
	uint32_t first, last;
	enum class class;
} ranges[] = {
	{0x0080, 0x00a0, C_SPACE}, {0x00a1, 0x00bf, C_WIDE_PUNCT}, {0x00c0, 0x036f, C_ACCENT},
	{0x0370, 0x058f, C_CYRILLIC}, {0x0590, 0x08ff, C_SEMITIC}, {0x0900, 0x109f, C_INDIC},
	{0x10a0, 0x10ff, C_CYRILLIC}, {0x1100, 0x11ff, C_HANGUL}, {0x1200, 0x1dff, C_INDIC},
	{0x1e00, 0x1fff, C_ACCENT}, {0x2000, 0x200a, C_SPACE}, {0x200b, 0x200f, C_JOINER},
	{0x2010, 0x2018, C_WIDE_PUNCT}, {0x2019, 0x2019, C_APOS}, {0x201a, 0x206f, C_WIDE_PUNCT},
	{0x2070, 0x2e7f, C_SYMBOL}, {0x2e80, 0x2fff, C_HAN}, {0x3000, 0x303f, C_WIDE_PUNCT},
	{0x3040, 0x312f, C_KANA}, {0x3130, 0x318f, C_HANGUL}, {0x3190, 0x9fff, C_HAN},
	{0xa000, 0xabff, C_INDIC}, {0xac00, 0xd7ff, C_HANGUL}, {0xe000, 0xf8ff, C_SYMBOL},
	{0xf900, 0xfaff, C_HAN}, {0xfb00, 0xfb4f, C_ACCENT}, {0xfb50, 0xfdff, C_SEMITIC},
	{0xfe00, 0xfe0f, C_JOINER}, {0xfe10, 0xfe6f, C_WIDE_PUNCT}, {0xfe70, 0xfeff, C_SEMITIC},
	{0xff00, 0xff65, C_WIDE_PUNCT}, {0xff66, 0xffff, C_KANA}, {0x1f3fb, 0x1f3ff, C_JOINER},
	{0x20000, 0x3ffff, C_HAN},
};

static enum class ascii_class(unsigned char c)
{
	if (c >= 'a' && c <= 'z')
		return C_LOWER;
	if (c >= 'A' && c <= 'Z')
		return C_UPPER;
	if (c >= '0' && c <= '9')
		return C_DIGIT;
	if (c == '\n' || c == '\r')
		return C_NEWLINE;
	if (c == ' ' || (c >= 0x09 && c <= 0x0c))
		return C_SPACE;
	return c == '\'' ? C_APOS : C_PUNCT;
}

static enum class wide_class(uint32_t cp)
{
	size_t lo = 0, hi = HS_COUNT(ranges);

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (cp > ranges[mid].last)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < HS_COUNT(ranges) && cp >= ranges[lo].first ? ranges[lo].class : C_SYMBOL;
}

struct state {
	uint64_t cost;         /* thousandths of a token */
	enum class last;
	size_t run;            /* characters of the word, digit group, sign or blank run so far */
	uint16_t owed;         /* what the last sign costs more unless a letter follows */
};

static bool is_letter(enum class c)
{
	return costs[c].letter;
}

static void step_letter(struct state *s, enum class c)
{
	bool joined = is_letter(s->last) || (s->last == C_APOS && s->owed);
	bool hump = c == C_UPPER && (s->last == C_LOWER || s->last == C_ACCENT);

	if (!joined || hump || (is_letter(s->last) && (s->last >= C_CYRILLIC) != (c >= C_CYRILLIC))) {
		s->cost += costs[c].first;
		s->run = 1;
	} else {
		s->run++;
		if (s->run > LONG_FROM && c <= C_ACCENT)
			s->cost += COST_LONG;
		else if (s->run > costs[c].free)
			s->cost += costs[c].later;
		if (c == C_UPPER && s->last == C_UPPER)
			s->cost += COST_SHOUT;
	}
	if (c == C_ACCENT)
		s->cost += COST_ACCENT;
	s->owed = 0;
}

static void step_digit(struct state *s)
{
	if (s->last == C_SPACE && s->run == 1)
		s->cost += COST_BLANK;
	s->run = s->last == C_DIGIT ? s->run + 1 : 1;
	if (s->run % 3 == 1)
		s->cost += costs[C_DIGIT].first;
}

static void step_space(struct state *s)
{
	s->run = s->last == C_SPACE ? s->run + 1 : 1;
	if (s->run == 2)
		s->cost += COST_BLANK;
}

static void step_newline(struct state *s)
{
	bool after_sign = s->last == C_PUNCT || s->last == C_WIDE_PUNCT;

	if (s->last != C_NEWLINE)
		s->cost += after_sign ? COST_AFTER_PUNCT : costs[C_NEWLINE].first;
	s->run = 1;
}

static void step_sign(struct state *s, enum class c)
{
	if (c == C_APOS && is_letter(s->last)) {
		s->owed = costs[C_APOS].first;
		return;
	}
	if (s->last == c) {
		s->cost += costs[c].later;
	} else {
		s->cost += costs[c].first;
		s->owed = c == C_PUNCT ? COST_ALONE : 0;
	}
	s->run = 1;
}

static void step(struct state *s, enum class c)
{
	if (s->owed && !is_letter(c)) {
		s->cost += s->owed;
		s->owed = 0;
	}
	if (is_letter(c))
		step_letter(s, c);
	else if (c == C_DIGIT)
		step_digit(s);
	else if (c == C_SPACE)
		step_space(s);
	else if (c == C_NEWLINE)
		step_newline(s);
	else
		step_sign(s, c);
	s->last = c;
}

/* Steps over one character; returns its bytes. */
static size_t advance(struct state *s, const char *p, size_t n)
{
	uint32_t cp;
	size_t len;

	if (!((unsigned char)*p & 0x80)) {
		step(s, ascii_class((unsigned char)*p));
		return 1;
	}
	len = hs_utf8_next(p, n, &cp);
	step(s, len ? wide_class(cp) : C_INVALID);
	return len ? len : 1;
}

static size_t tokens_of(const struct state *s)
{
	return (size_t)((s->cost + 500) / 1000);
}

static struct state start(void)
{
	return (struct state){.last = C_NEWLINE};
}

size_t hs_tokens_n(const char *s, size_t n_bytes)
{
	struct state st = start();

	for (size_t at = 0; at < n_bytes;)
		at += advance(&st, s + at, n_bytes - at);
	return n_bytes && tokens_of(&st) == 0 ? 1 : tokens_of(&st);
}

size_t hs_tokens(const char *s)
{
	return s ? hs_tokens_n(s, strlen(s)) : 0;
}

size_t hs_tokens_fit(const char *s, size_t n_bytes, size_t max_tokens)
{
	struct state st = start();

	if (max_tokens == 0)
		return 0;
	for (size_t at = 0; at < n_bytes;) {
		size_t len = advance(&st, s + at, n_bytes - at);

		if (tokens_of(&st) > max_tokens)
			return at;
		at += len;
	}
	return n_bytes;
}

char *hs_tokens_cut(struct hs_pool *pool, const char *s, size_t max_tokens)
{
	size_t n = s ? strlen(s) : 0;

	return hs_pool_strndup(pool, s ? s : "", hs_tokens_fit(s ? s : "", n, max_tokens));
}
