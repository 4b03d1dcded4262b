/*
 * text_dates - the first date that a sentence states.
 *
 * Floor:   engine; pure.
 * Rules:   ISO dates and date-times, "7 May 2023", "7th of May", "May 7, 2023", "May 2023", "in 2023",
 *          and plain words relative to an anchor (yesterday, last week …; the list of contract
 *          retain-recall 2.6). English. A day without a year is the latest one at most a
 *          quarter of a year after the anchor.
 * Shapes:  start at 00:00 of the first day (or the stated time); end: a day ends where it starts, a
 *          month or a year one second before the next. Years 1 to 9999 but not these two.
 */
#ifndef HS_ENGINE_TEXT_DATES_H
#define HS_ENGINE_TEXT_DATES_H

#include <stdbool.h>
#include <stdint.h>

/* anchor_us: HS_TIME_NONE = unknown; then only full dates count. */
bool hs_text_date(const char *text, int64_t anchor_us, int64_t *ret_start_us, int64_t *ret_end_us);

#endif
