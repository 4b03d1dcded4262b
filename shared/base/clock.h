/*
 * clock - now, dates, RFC 3339 in and out.
 *
 * Floor:   base. All times are UTC microseconds since 1970-01-01 (int64_t, names end in _us);
 *          HS_TIME_NONE means "no time".
 * Source:  RFC 3339 / ISO 8601. Wire form as contract banks 1.4: offset +00:00, six fractional
 *          digits when the microseconds are not zero, none when they are.
 * Tests:   HINDSIGHT_TEST_NOW (RFC 3339) in the environment pins hs_now_us, so does hs_clock_pin.
 */
#ifndef HS_BASE_CLOCK_H
#define HS_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "base/pool.h"

#define HS_TIME_NONE INT64_MIN
#define HS_TIME_TEXT 40
#define HS_SECOND_US INT64_C(1000000)
#define HS_DAY_US (INT64_C(86400) * HS_SECOND_US)

struct hs_civil {
	int year, month, day, hour, minute, second, us;
	int weekday;  /* 0 = Sunday */
};

int64_t hs_now_us(void);
int64_t hs_mono_us(void);           /* never goes back; for deadlines and durations */
void hs_clock_pin(int64_t now_us);  /* HS_TIME_NONE lets it run again; tests only */
void hs_sleep_us(int64_t us);

struct hs_civil hs_civil_from_us(int64_t us);
int64_t hs_civil_to_us(const struct hs_civil *c);  /* fields in range, year 1…9999 */
int hs_days_in_month(int year, int month);

/* "" for HS_TIME_NONE. */
void hs_time_format(int64_t us, char out[HS_TIME_TEXT]);
const char *hs_time_text(struct hs_pool *pool, int64_t us);  /* NULL for HS_TIME_NONE */
/* ISO 8601 date or date-time ('T' or blank, seconds and fraction optional, Z, ±hh, ±hhmm, ±hh:mm or
 * no offset = UTC). false when it is none or the date does not exist. */
HS_MUST bool hs_time_parse(const char *s, int64_t *ret_us);
/* English names for prompts and search text: "January", "Monday". month 1-12, weekday 0-6. */
const char *hs_month_name(int month);
const char *hs_weekday_name(int weekday);

#endif
