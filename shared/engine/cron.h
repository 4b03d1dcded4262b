/*
 * cron - five-field schedules in UTC: parse, check, latest fire time before a moment.
 *
 * Floor:   engine; uses base only. Pure: the moment is an argument.
 * Shapes:  minute, hour, day of month, month, weekday; each field *, number, name (months, weekdays),
 *          a-b, lists, steps (star/n, a-b/n, a/n). Ranges that run backwards wrap. 0 and 7 are Sunday.
 *          Day of month and weekday both restricted (anything but a plain *): either is enough.
 * Limits:  an expression without a possible date is refused; the search ends after HS_CRON_YEARS.
 * Source:  contract mental-models 6; crontab(5) for the either-day rule.
 */
#ifndef HS_ENGINE_CRON_H
#define HS_ENGINE_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"

struct hs_cron {
	uint64_t minutes; /* bit per value */
	uint32_t hours, days, months, weekdays;
	bool any_day, any_weekday; /* the field was a plain * */
};

/* HS_E_INVALID with a sentence naming the field. */
HS_MUST enum hs_rc hs_cron_parse(const char *text, struct hs_cron *ret, struct hs_err *err);
/* Latest fire time strictly before now_us; HS_TIME_NONE when there is none in HS_CRON_YEARS. */
int64_t hs_cron_prev(const struct hs_cron *c, int64_t now_us);
/* Did it fire after since_us? HS_TIME_NONE (never) counts as fired whenever it ever fires. */
bool hs_cron_fired(const struct hs_cron *c, int64_t since_us, int64_t now_us);

#endif
