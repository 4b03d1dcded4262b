#include "engine/cron.h"

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/str.h"

static const char *const month_names[] = {
	"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, N_FIELDS };

static const struct range {
	const char *what;
	int low, high; /* values of * */
	int top;       /* largest value that may be written */
	const char *const *names;
} ranges[N_FIELDS] = {
	[MINUTE] = {"minute", 0, 59, 59, NULL},
	[HOUR] = {"hour", 0, 23, 23, NULL},
	[DAY] = {"day of month", 1, 31, 31, NULL},
	[MONTH] = {"month", 1, 12, 12, month_names},
	[WEEKDAY] = {"weekday", 0, 6, 7, weekday_names},
};

/* A number of at most four digits at *s; -1 when there is none. */
static int read_number(const char **s, const char *end)
{
	const char *p = *s;
	int v = 0;

	while (p < end && *p >= '0' && *p <= '9' && p - *s < 4)
		v = v * 10 + (*p++ - '0');
	if (p == *s || (p < end && *p >= '0' && *p <= '9'))
		return -1;
	*s = p;
	return v;
}

/* A number or a name inside the field's range; -1 when there is none. */
static int read_value(const struct range *r, const char **s, const char *end)
{
	int v;

	for (int i = 0; r->names && r->names[i]; i++) {
		char word[4] = {0};

		if (end - *s < 3)
			break;
		memcpy(word, *s, 3);
		if (hs_str_ieq_ascii(word, r->names[i])) {
			*s += 3;
			return i + r->low;
		}
	}
	v = read_number(s, end);
	return v < r->low || v > r->top ? -1 : v;
}

/* One member of a field's list: *, a, a-b, each with an optional /n. */
static bool read_member(const struct range *r, const char *s, const char *end, uint64_t *bits)
{
	int period = r->high - r->low + 1;
	int from = r->low, to = r->high, step = 1;
	bool open = false;

	if (s < end && *s == '*') {
		s++;
	} else {
		from = to = read_value(r, &s, end);
		open = true;
		if (s < end && *s == '-') {
			s++;
			to = read_value(r, &s, end);
			open = false;
		}
		if (from < 0 || to < 0)
			return false;
	}
	if (s < end && *s == '/') {
		s++;
		step = read_number(&s, end);
		if (step < 1)
			return false;
		if (open)
			to = from > r->high ? from : r->high;
	}
	if (s != end)
		return false;
	if (to < from)
		to += period;
	for (int v = from; v <= to; v += step)
		*bits |= UINT64_C(1) << ((v - r->low) % period + r->low);
	return true;
}

static bool read_field(const struct range *r, const char *s, const char *end, uint64_t *bits)
{
	for (;;) {
		const char *comma = memchr(s, ',', (size_t)(end - s));

		if (!read_member(r, s, comma ? comma : end, bits))
			return false;
		if (!comma)
			return true;
		s = comma + 1;
	}
}

/* Longest length of a month: the 29th of February exists. */
static int longest(int month)
{
	return hs_days_in_month(2000, month);
}

/* Is there a date at all? A weekday alone always comes; a day of month needs a month that has it. */
static bool has_date(const struct hs_cron *c)
{
	if (!c->any_weekday || c->any_day)
		return true;
	for (int month = 1; month <= 12; month++) {
		uint32_t days = c->days & (uint32_t)((UINT64_C(1) << (longest(month) + 1)) - 1);

		if ((c->months >> month & 1) && days)
			return true;
	}
	return false;
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

enum hs_rc hs_cron_parse(const char *text, struct hs_cron *ret, struct hs_err *err)
{
	uint64_t bits[N_FIELDS] = {0};
	bool star[N_FIELDS] = {false};
	const char *s = skip_blanks(text ? text : "");

	for (int i = 0; i < N_FIELDS; i++) {
		const char *end = s + strcspn(s, " \t");

		if (end == s)
			return hs_fail(err, HS_E_INVALID,
				"a cron expression has five fields, this one has %d", i);
		if (!read_field(&ranges[i], s, end, &bits[i]))
			return hs_fail(
				err, HS_E_INVALID, "cron field %s cannot be read", ranges[i].what);
		star[i] = end - s == 1 && *s == '*';
		s = skip_blanks(end);
	}
	if (*s)
		return hs_fail(
			err, HS_E_INVALID, "a cron expression has five fields, this one has more");
	*ret = (struct hs_cron){
		.minutes = bits[MINUTE],
		.hours = (uint32_t)bits[HOUR],
		.days = (uint32_t)bits[DAY],
		.months = (uint32_t)bits[MONTH],
		.weekdays = (uint32_t)bits[WEEKDAY],
		.any_day = star[DAY],
		.any_weekday = star[WEEKDAY],
	};
	if (!has_date(ret))
		return hs_fail(
			err, HS_E_INVALID, "the cron expression names a date that never comes");
	return HS_OK;
}

static bool day_matches(const struct hs_cron *c, const struct hs_civil *t)
{
	bool day = c->days >> t->day & 1, weekday = c->weekdays >> t->weekday & 1;

	if (!(c->months >> t->month & 1))
		return false;
	if (!c->any_day && !c->any_weekday)
		return day || weekday;
	return day && weekday;
}

/* Largest set bit at or below `from`; -1 when there is none. */
static int bit_at_or_below(uint64_t bits, int from)
{
	while (from >= 0 && !(bits >> from & 1))
		from--;
	return from;
}

/* Latest minute of the day at or before hour:minute; -1 when there is none. */
static int minute_of_day(const struct hs_cron *c, int hour, int minute)
{
	int h = bit_at_or_below(c->hours, hour);
	int m = h == hour ? bit_at_or_below(c->minutes, minute) : -1;

	if (h == hour && m < 0)
		h = bit_at_or_below(c->hours, hour - 1);
	if (h < 0)
		return -1;
	if (m < 0)
		m = bit_at_or_below(c->minutes, 59);
	return h * 60 + m;
}

int64_t hs_cron_prev(const struct hs_cron *c, int64_t now_us)
{
	int64_t minute_us = 60 * HS_SECOND_US;
	int64_t last = now_us - 1;
	int64_t day = last / HS_DAY_US - (last % HS_DAY_US < 0);
	int left = (int)((last - day * HS_DAY_US) / minute_us);

	for (int i = 0; i <= HS_CRON_YEARS * 366; i++, day--, left = 24 * 60 - 1) {
		struct hs_civil t = hs_civil_from_us(day * HS_DAY_US);
		int m;

		if (!day_matches(c, &t))
			continue;
		m = minute_of_day(c, left / 60, left % 60);
		if (m >= 0)
			return day * HS_DAY_US + m * minute_us;
	}
	return HS_TIME_NONE;
}

bool hs_cron_fired(const struct hs_cron *c, int64_t since_us, int64_t now_us)
{
	int64_t prev = hs_cron_prev(c, now_us);

	return prev != HS_TIME_NONE && prev > since_us;
}
