#include "engine/text_dates.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"

#define WORDS_MAX 400 /* of a sentence; dates further on are not looked for */
#define WORD_BYTES 12
#define AHEAD_US (92 * HS_DAY_US) /* a day without a year may lie this far ahead */

/* A piece of the sentence: a word or a number with what stands before it. */
struct piece {
	char word[WORD_BYTES]; /* lower case; "" for a number or a long word */
	int number;            /* -1 for words */
	int digits;
	bool ordinal; /* 7th */
	char before;  /* sign right before it, ' ' for blanks, 0 at the start */
	const char *at;
};

struct found {
	int year, month, day; /* 0 = not said */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return ((c | 32) >= 'a' && (c | 32) <= 'z') || ((unsigned char)c & 0x80);
}

static const char *read_number(const char *p, struct piece *w)
{
	w->number = 0;
	while (is_digit(*p)) {
		w->digits++;
		if (w->digits <= 6)
			w->number = w->number * 10 + (*p - '0');
		p++;
	}
	/* the T of a date-time belongs to neither side */
	if (!is_letter(*p) || (*p == 'T' && w->digits == 2 && is_digit(p[1])))
		return p;
	w->ordinal = (!strncmp(p, "st", 2) || !strncmp(p, "nd", 2) || !strncmp(p, "rd", 2) ||
			     !strncmp(p, "th", 2)) &&
		     !is_letter(p[2]) && !is_digit(p[2]);
	if (!w->ordinal)
		w->number = -1;
	while (is_letter(*p) || is_digit(*p))
		p++;
	return p;
}

static const char *read_word(const char *p, struct piece *w)
{
	size_t n = 0;

	w->number = -1;
	for (; is_letter(*p) || is_digit(*p); p++, n++)
		if (n < WORD_BYTES - 1)
			w->word[n] = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
	if (n >= WORD_BYTES - 1)
		w->word[0] = '\0';
	return p;
}

static size_t read_pieces(const char *p, struct piece *v)
{
	size_t n = 0;
	char before = 0;

	while (*p && n < WORDS_MAX) {
		if (!is_digit(*p) && !is_letter(*p)) {
			before = *p == '\t' || *p == '\n' ? ' ' : *p;
			p++;
			continue;
		}
		memset(&v[n], 0, sizeof(v[n]));
		v[n].before = before;
		v[n].at = p;
		p = is_digit(*p) ? read_number(p, &v[n]) : read_word(p, &v[n]);
		n++;
		before = 0;
	}
	return n;
}

/* 1 to 12; the full name or its first three letters ("sept" too). May and March are also verbs. */
static int month_of(const struct piece *w)
{
	bool verb = strcmp(w->word, "may") == 0 || strcmp(w->word, "march") == 0;

	if (!w->word[0] || (verb && w->at[0] != 'M'))
		return 0;
	for (int m = 1; m <= 12; m++) {
		const char *name = hs_month_name(m);
		size_t n = strlen(w->word);

		if (hs_str_ieq_ascii(name, w->word))
			return m;
		if ((n == 3 || (m == 9 && n == 4)) && (name[0] | 32) == w->word[0] &&
			strncmp(name + 1, w->word + 1, n - 1) == 0)
			return m;
	}
	return 0;
}

static bool is_year(const struct piece *w)
{
	return w->number >= 1000 && w->number <= 2999 && w->digits == 4 && !w->ordinal;
}

static bool is_day(const struct piece *w)
{
	return w->number >= 1 && w->number <= 31 && w->digits <= 2;
}

static const struct piece *at(const struct piece *v, size_t n, size_t i)
{
	static const struct piece none = {.number = -1};

	return i < n ? &v[i] : &none;
}

/* "2023-05-07" */
static bool iso(const struct piece *v, size_t n, size_t i, struct found *f)
{
	const struct piece *y = at(v, n, i), *m = at(v, n, i + 1), *d = at(v, n, i + 2);

	if (!is_year(y) || m->number < 1 || m->number > 12 || m->digits != 2 || d->digits != 2 ||
		!is_day(d))
		return false;
	if ((m->before != '-' && m->before != '/') || d->before != m->before)
		return false;
	*f = (struct found){y->number, m->number, d->number};
	return true;
}

/* "7 May 2023", "7th of May", "May 7, 2023", "May 7th", "May 2023" */
static bool by_month(const struct piece *v, size_t n, size_t i, struct found *f)
{
	size_t k = i;
	int day = 0, month;

	if (is_day(at(v, n, k))) {
		day = v[k++].number;
		if (strcmp(at(v, n, k)->word, "of") == 0)
			k++;
	}
	month = k < n ? month_of(&v[k]) : 0;
	if (!month)
		return false;
	k++;
	if (!day && is_day(at(v, n, k)) && at(v, n, k)->before == ' ')
		day = v[k++].number;
	*f = (struct found){is_year(at(v, n, k)) ? at(v, n, k)->number : 0, month, day};
	return day || f->year;
}

/* "in 2023", "since 2021", "year 1999" */
static bool by_year(const struct piece *v, size_t n, size_t i, struct found *f)
{
	static const char *const words[] = {
		"in", "since", "during", "year", "throughout", "by", "until"};

	if (!is_year(at(v, n, i + 1)) || at(v, n, i + 1)->before != ' ')
		return false;
	if (at(v, n, i + 2)->before == '-' || at(v, n, i + 2)->before == '/')
		return false;
	for (size_t k = 0; k < HS_COUNT(words); k++)
		if (strcmp(v[i].word, words[k]) == 0) {
			*f = (struct found){v[i + 1].number, 0, 0};
			return true;
		}
	return false;
}

static int64_t midnight(int year, int month, int day)
{
	struct hs_civil c = {.year = year, .month = month, .day = day};

	return hs_civil_to_us(&c);
}

/* Fills in a missing year and turns the find into a span; false when no such day exists. */
static bool span_of(struct found f, int64_t anchor_us, int64_t *ret_start, int64_t *ret_end)
{
	int last;

	if (!f.year) {
		int64_t latest_us = anchor_us + AHEAD_US;

		if (anchor_us == HS_TIME_NONE || !f.day)
			return false;
		f.year = hs_civil_from_us(latest_us).year;
		if (f.year < 2 || f.day > hs_days_in_month(f.year, f.month))
			return false;
		if (midnight(f.year, f.month, f.day) > latest_us)
			f.year--;
	}
	last = f.month ? hs_days_in_month(f.year, f.month) : 31;
	if (f.year < 2 || f.year > 9998 || f.day > last)
		return false;
	*ret_start = midnight(f.year, f.month ? f.month : 1, f.day ? f.day : 1);
	*ret_end =
		f.day ? *ret_start
		      : midnight(f.year, f.month ? f.month : 12, last) + HS_DAY_US - HS_SECOND_US;
	return true;
}

/* A stated time right behind an ISO date wins over midnight. */
static void with_time(const char *text, int64_t *start_us, int64_t *end_us)
{
	char copy[33];
	size_t n = strspn(text, "0123456789-+:.TZ");
	int64_t us;

	if (n < 16 || n >= sizeof(copy) || text[10] != 'T')
		return;
	while (n && strchr(".:", text[n - 1]))
		n--;
	memcpy(copy, text, n);
	copy[n] = '\0';
	if (hs_time_parse(copy, &us))
		*start_us = *end_us = us;
}

/* Words relative to the anchor, in days; the first of this order that stands in the text counts. */
static const struct {
	const char *first, *second;
	int days;
} relative[] = {
	{"last", "night", -1}, {"yesterday", NULL, -1}, {"today", NULL, 0}, {"this", "morning", 0},
	{"this", "afternoon", 0}, {"this", "evening", 0}, {"tonight", NULL, 0}, {"tomorrow", NULL, 1},
	{"last", "week", -7}, {"this", "week", 0}, {"next", "week", 7}, {"last", "month", -30},
	{"this", "month", 0}, {"next", "month", 30},
};

static bool by_words(const struct piece *v, size_t n, int64_t anchor_us, int64_t *ret_us)
{
	struct hs_civil day;

	if (anchor_us == HS_TIME_NONE)
		return false;
	for (size_t k = 0; k < HS_COUNT(relative); k++)
		for (size_t i = 0; i < n; i++) {
			if (strcmp(v[i].word, relative[k].first) != 0)
				continue;
			if (relative[k].second &&
				strcmp(at(v, n, i + 1)->word, relative[k].second) != 0)
				continue;
			day = hs_civil_from_us(anchor_us + relative[k].days * HS_DAY_US);
			*ret_us = midnight(day.year, day.month, day.day);
			return day.year > 1 && day.year < 9999;
		}
	return false;
}

bool hs_text_date(const char *text, int64_t anchor_us, int64_t *ret_start_us, int64_t *ret_end_us)
{
	struct piece v[WORDS_MAX];
	size_t n = read_pieces(text ? text : "", v);
	int64_t start, end;
	struct found f;

	for (size_t i = 0; i < n; i++) {
		bool whole = iso(v, n, i, &f);

		if (!whole && !by_month(v, n, i, &f) && !by_year(v, n, i, &f))
			continue;
		if (!span_of(f, anchor_us, &start, &end))
			continue;
		if (whole)
			with_time(v[i].at, &start, &end);
		*ret_start_us = start;
		*ret_end_us = end;
		return true;
	}
	if (!by_words(v, n, anchor_us, &start))
		return false;
	*ret_start_us = *ret_end_us = start;
	return true;
}
