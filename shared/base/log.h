/*
 * log - one line per event, key=value, to stderr.
 *
 * Floor:   base. Library floors log nothing above debug; programs log once per request or job.
 * Shapes:  time=… level=… program=… event=… key="value"…; or one JSON object a line.
 * Secrets: values are never redacted by guess: callers pass no secrets. Text from outside goes
 *          through hs_log_quote (quotes, control characters).
 */
#ifndef HS_BASE_LOG_H
#define HS_BASE_LOG_H

#include <stdbool.h>

#include "base/auto.h"

enum hs_log_level { HS_LOG_DEBUG, HS_LOG_INFO, HS_LOG_WARN, HS_LOG_ERROR };

/* level: debug, info, warning, error (any case; unknown = info). json: one object a line. */
void hs_log_init(const char *program, const char *level, bool json);
bool hs_log_on(enum hs_log_level level);

/* fmt gives the fields: hs_log(HS_LOG_INFO, "request", "id=%s status=%d", id, 200). Values that may
 * hold blanks or quotes are written with hs_log_quote(). */
void hs_log(enum hs_log_level level, const char *event, const char *fmt, ...) HS_PRINTF(3, 4);
/* Quoted and escaped copy in a static per-thread buffer ring (8 values of at most 1,024 bytes). */
const char *hs_log_quote(const char *s);

#endif
