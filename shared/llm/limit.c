#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "llm/limit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "json/json.h"

#define BODY_SCAN 4096 /* bytes of an error body that are looked at */
#define KEY_LEVELS 4
#define LONGEST_S 31536000.0 /* a year; anything longer is no wait */

static int64_t later(int64_t now_us, double seconds)
{
	if (!(seconds > 0) || seconds > LONGEST_S)
		return HS_TIME_NONE;
	return now_us + (int64_t)(seconds * (double)HS_SECOND_US);
}

static int64_t latest(int64_t a, int64_t b)
{
	return a > b ? a : b; /* HS_TIME_NONE is the smallest value */
}

/* A number at s: digits with one point. Returns its length. */
static size_t number_at(struct hs_pool *pool, const char *s, double *ret)
{
	size_t n = strspn(s, "0123456789.");

	if (!n || n > 18 || !hs_str_to_double(hs_pool_strndup(pool, s, n), ret))
		return 0;
	return n;
}

/* IMF-fixdate of RFC 9110: "Sun, 06 Nov 1994 08:49:37 GMT". */
static int64_t http_date(const char *s)
{
	static const char *const months[] = {
		"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	struct hs_civil c = {0};
	char month[4] = "", zone[4] = "";

	if (sscanf(s, "%*3s, %2d %3s %4d %2d:%2d:%2d %3s", &c.day, month, &c.year, &c.hour,
		    &c.minute, &c.second, zone) != 7)
		return HS_TIME_NONE;
	for (int i = 0; i < 12; i++)
		if (!strcmp(months[i], month))
			c.month = i + 1;
	if (!c.month || c.year < 1970 || c.year > 9998 || c.day < 1 ||
		c.day > hs_days_in_month(c.year, c.month) || c.hour < 0 || c.hour > 23 ||
		c.minute < 0 || c.minute > 59 || c.second < 0 || c.second > 59)
		return HS_TIME_NONE;
	return hs_civil_to_us(&c);
}

int64_t hs_limit_retry_after_us(
	struct hs_pool *pool, const struct hs_http_reply *reply, int64_t now_us)
{
	const char *text = hs_http_header(reply, "retry-after");
	double seconds;
	int64_t at;

	(void)pool;
	if (!text)
		return HS_TIME_NONE;
	if (hs_str_to_double(text, &seconds))
		return later(now_us, seconds);
	at = http_date(text);
	return at > now_us ? at : HS_TIME_NONE;
}

int64_t hs_limit_duration_us(const char *text)
{
	static const struct {
		const char *unit;
		double us;
	} units[] = {
		{"ms", 1e3}, {"us", 1}, {"d", 86400e6}, {"h", 3600e6}, {"m", 60e6}, {"s", 1e6}};
	double sum = 0;

	if (!*text)
		return -1;
	while (*text) {
		size_t n = strspn(text, "0123456789."), u = 0;
		char digits[20];
		double v;

		if (!n || n >= sizeof(digits))
			return -1;
		memcpy(digits, text, n);
		digits[n] = '\0';
		if (!hs_str_to_double(digits, &v))
			return -1;
		text += n;
		while (u < HS_COUNT(units) && !hs_str_starts(text, units[u].unit))
			u++;
		if (u == HS_COUNT(units))
			return -1;
		text += strlen(units[u].unit);
		sum += v * units[u].us;
	}
	return sum < LONGEST_S * 1e6 ? (int64_t)sum : -1;
}

static int64_t header_duration(const struct hs_http_reply *reply, const char *name, int64_t now_us)
{
	const char *text = hs_http_header(reply, name);
	int64_t us = text ? hs_limit_duration_us(text) : -1;

	return us > 0 ? now_us + us : HS_TIME_NONE;
}

static int64_t local_zone_us(int64_t utc_us)
{
	time_t t = (time_t)(utc_us / HS_SECOND_US);
	struct tm tm;

	return localtime_r(&t, &tm) ? (int64_t)tm.tm_gmtoff * HS_SECOND_US : 0;
}

/* Does the date text carry a zone of its own? */
static bool has_zone(const char *text)
{
	size_t n = strlen(text);

	if (text[n - 1] == 'Z' || text[n - 1] == 'z')
		return true;
	return n > 11 && strpbrk(text + 11, "+-") != NULL;
}

/* "… reset at 2025-01-02 03:04:05+00:00" */
static int64_t reset_at(struct hs_pool *pool, const char *body)
{
	const char *at = strcasestr(body, "reset at");
	int64_t us;
	char *text;

	if (!at)
		return HS_TIME_NONE;
	at += strlen("reset at");
	at += strspn(at, " :\t\"'");
	text = hs_pool_strndup(pool, at, strnlen(at, 40));
	/* the longest beginning that is a date with a time */
	for (size_t n = strlen(text); n >= 16; n--) {
		text[n] = '\0';
		if (hs_time_parse(text, &us) && text[n - 1] != ' ')
			return has_zone(text) ? us : us - local_zone_us(us);
	}
	return HS_TIME_NONE;
}

static double key_seconds(json_t *v, int level)
{
	const char *key;
	json_t *member;
	size_t i;
	double found = -1;

	if (level > KEY_LEVELS)
		return -1;
	if (json_is_array(v))
		json_array_foreach(v, i, member)
			if (found < 0)
				found = key_seconds(member, level + 1);
	json_object_foreach(v, key, member) {
		double text_value;

		if (strcasecmp(key, "retry_after") && strcasecmp(key, "retryafter"))
			continue;
		if (json_is_number(member))
			return json_number_value(member);
		if (json_is_string(member) &&
			hs_str_to_double(json_string_value(member), &text_value))
			return text_value;
	}
	json_object_foreach(v, key, member)
		if (found < 0)
			found = key_seconds(member, level + 1);
	return found;
}

static double unit_seconds(const char *s)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {
		{"second", 1},
		{"sec", 1},
		{"minute", 60},
		{"min", 60},
		{"hour", 3600},
		{"hr", 3600},
		{"day", 86400},
		{"s", 1},
		{"m", 60},
		{"h", 3600},
		{"d", 86400},
	};

	for (size_t i = 0; i < HS_COUNT(units); i++) {
		size_t n = strlen(units[i].name);

		if (!strncasecmp(s, units[i].name, n) &&
			(strlen(units[i].name) > 1 ||
				!strchr("abcdefghijklmnopqrstuvwxyz", s[n] | 0x20) || !s[n]))
			return units[i].seconds;
	}
	return 0;
}

/* "try again in 5 minutes", "wait 30 seconds", "for 2 hours" */
static double worded_seconds(struct hs_pool *pool, const char *body)
{
	static const char *const words[] = {"for ", "in ", "wait "};
	const char *first = NULL;
	double seconds = -1;

	for (size_t w = 0; w < HS_COUNT(words); w++)
		for (const char *s = body; (s = strcasestr(s, words[w])) != NULL;) {
			double n = 0, unit;
			size_t digits;

			s += strlen(words[w]);
			digits = number_at(pool, s, &n);
			unit = digits ? unit_seconds(s + digits + strspn(s + digits, " -")) : 0;
			if (unit > 0 && (!first || s < first)) {
				first = s;
				seconds = n * unit;
			}
		}
	return seconds;
}

static int64_t body_reset(struct hs_pool *pool, const struct hs_http_reply *reply, int64_t now_us)
{
	const char *body = hs_pool_strndup(pool, reply->body, strnlen(reply->body, BODY_SCAN));
	struct hs_err ignored = {0};
	json_t *value = NULL;
	int64_t at = reset_at(pool, body);
	double seconds = -1;

	if (at != HS_TIME_NONE)
		return at > now_us ? at : HS_TIME_NONE;
	if (hs_json_parse(pool, reply->body, reply->body_bytes, &value, NULL, &ignored) == HS_OK)
		seconds = key_seconds(value, 1);
	if (seconds < 0)
		seconds = worded_seconds(pool, body);
	return later(now_us, seconds);
}

int64_t hs_limit_reset_us(struct hs_pool *pool, const struct hs_http_reply *reply, int64_t now_us)
{
	int64_t after = hs_limit_retry_after_us(pool, reply, now_us);
	int64_t reset = latest(header_duration(reply, "x-ratelimit-reset-requests", now_us),
		header_duration(reply, "x-ratelimit-reset-tokens", now_us));

	reset = latest(reset, after);
	if (after == HS_TIME_NONE)
		reset = latest(reset, body_reset(pool, reply, now_us));
	return reset;
}
