#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Atomic int64_t pinned = HS_TIME_NONE;
static atomic_bool env_read;

void hs_clock_pin(int64_t now_us)
{
	atomic_store(&env_read, true);
	atomic_store(&pinned, now_us);
}

int64_t hs_now_us(void)
{
	struct timespec ts;
	int64_t p;

	if (!atomic_load(&env_read)) {
		const char *text = getenv("HINDSIGHT_TEST_NOW");

		if (text && hs_time_parse(text, &p))
			atomic_store(&pinned, p);
		atomic_store(&env_read, true);
	}
	p = atomic_load(&pinned);
	if (p != HS_TIME_NONE)
		return p;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * HS_SECOND_US + ts.tv_nsec / 1000;
}

int64_t hs_mono_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * HS_SECOND_US + ts.tv_nsec / 1000;
}

void hs_sleep_us(int64_t us)
{
	struct timespec ts = {us / HS_SECOND_US, us % HS_SECOND_US * 1000};

	if (us > 0)
		nanosleep(&ts, NULL);
}

/* Days since 1970-01-01 of a date of the proleptic Gregorian calendar (Howard Hinnant's algorithm). */
static int64_t days_from_civil(int64_t y, int m, int d)
{
	int64_t era, yoe, doy, doe;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = y - era * 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
	return era * 146097 + doe - 719468;
}

struct hs_civil hs_civil_from_us(int64_t us)
{
	struct hs_civil c;
	int64_t days = us / HS_DAY_US, rest = us % HS_DAY_US;
	int64_t z, era, doe, yoe, doy, mp;

	if (rest < 0) {
		rest += HS_DAY_US;
		days--;
	}
	z = days + 719468;
	era = (z >= 0 ? z : z - 146096) / 146097;
	doe = z - era * 146097;
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	c.day = (int)(doy - (153 * mp + 2) / 5 + 1);
	c.month = (int)(mp < 10 ? mp + 3 : mp - 9);
	c.year = (int)(yoe + era * 400 + (c.month <= 2));
	c.weekday = (int)(((days % 7) + 11) % 7);
	c.us = (int)(rest % HS_SECOND_US);
	rest /= HS_SECOND_US;
	c.hour = (int)(rest / 3600);
	c.minute = (int)(rest / 60 % 60);
	c.second = (int)(rest % 60);
	return c;
}

int64_t hs_civil_to_us(const struct hs_civil *c)
{
	int64_t s = days_from_civil(c->year, c->month, c->day) * 86400 + c->hour * 3600 + c->minute * 60 +
		c->second;

	return s * HS_SECOND_US + c->us;
}

int hs_days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

void hs_time_format(int64_t us, char out[HS_TIME_TEXT])
{
	struct hs_civil c;

	out[0] = '\0';
	if (us == HS_TIME_NONE)
		return;
	c = hs_civil_from_us(us);
	if (c.us)
		snprintf(out, HS_TIME_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d.%06d+00:00", c.year, c.month,
			c.day, c.hour, c.minute, c.second, c.us);
	else
		snprintf(out, HS_TIME_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d+00:00", c.year, c.month, c.day,
			c.hour, c.minute, c.second);
}

const char *hs_time_text(struct hs_pool *pool, int64_t us)
{
	char text[HS_TIME_TEXT];

	if (us == HS_TIME_NONE)
		return NULL;
	hs_time_format(us, text);
	return hs_pool_strdup(pool, text);
}

/* Exactly n digits at *p. */
static bool digits(const char **p, int n, int *ret)
{
	int v = 0;

	for (int i = 0; i < n; i++) {
		char c = (*p)[i];

		if (c < '0' || c > '9')
			return false;
		v = v * 10 + (c - '0');
	}
	*p += n;
	*ret = v;
	return true;
}

static bool parse_clock(const char **p, struct hs_civil *c)
{
	if (!digits(p, 2, &c->hour))
		return false;
	if (**p == ':')
		(*p)++;
	if (!digits(p, 2, &c->minute))
		return false;
	if (**p == ':' || (**p >= '0' && **p <= '9')) {
		if (**p == ':')
			(*p)++;
		if (!digits(p, 2, &c->second))
			return false;
		if (**p == '.' || **p == ',') {
			int scale = 100000;

			(*p)++;
			if (**p < '0' || **p > '9')
				return false;
			for (; **p >= '0' && **p <= '9'; (*p)++, scale /= 10)
				c->us += (**p - '0') * scale;
		}
	}
	return c->hour <= 23 && c->minute <= 59 && c->second <= 59;
}

static bool parse_offset(const char **p, int64_t *ret_us)
{
	int sign, hours, minutes = 0;

	*ret_us = 0;
	if (**p == 'Z' || **p == 'z') {
		(*p)++;
		return true;
	}
	if (**p != '+' && **p != '-')
		return true;
	sign = **p == '-' ? -1 : 1;
	(*p)++;
	if (!digits(p, 2, &hours))
		return false;
	if (**p == ':')
		(*p)++;
	if (**p && !digits(p, 2, &minutes))
		return false;
	if (hours > 23 || minutes > 59)
		return false;
	*ret_us = sign * (int64_t)(hours * 60 + minutes) * 60 * HS_SECOND_US;
	return true;
}

bool hs_time_parse(const char *s, int64_t *ret_us)
{
	struct hs_civil c = {0};
	int64_t offset = 0;
	const char *p = s;
	bool dashes;

	if (!s)
		return false;
	while (*p == ' ')
		p++;
	if (!digits(&p, 4, &c.year))
		return false;
	dashes = *p == '-';
	if (dashes)
		p++;
	if (!digits(&p, 2, &c.month) || (dashes && *p++ != '-') || !digits(&p, 2, &c.day))
		return false;
	if (c.year < 1 || c.month < 1 || c.month > 12 || c.day < 1 ||
		c.day > hs_days_in_month(c.year, c.month))
		return false;
	if (*p == 'T' || *p == 't' || (*p == ' ' && p[1] >= '0' && p[1] <= '9')) {
		p++;
		if (!parse_clock(&p, &c))
			return false;
		if (!parse_offset(&p, &offset))
			return false;
	}
	while (*p == ' ')
		p++;
	if (*p)
		return false;
	*ret_us = hs_civil_to_us(&c) - offset;
	return true;
}

const char *hs_month_name(int month)
{
	static const char *const names[] = {"January", "February", "March", "April", "May", "June", "July",
		"August", "September", "October", "November", "December"};

	return month >= 1 && month <= 12 ? names[month - 1] : "";
}

const char *hs_weekday_name(int weekday)
{
	static const char *const names[] = {
		"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

	return weekday >= 0 && weekday <= 6 ? names[weekday] : "";
}
