#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

#define LINE_BYTES 8192
#define QUOTE_SLOTS 8
#define QUOTE_BYTES 1024

static const char *program = "hindsight";
static enum hs_log_level threshold = HS_LOG_INFO;
static bool as_json;
static const char *const level_names[] = {"debug", "info", "warning", "error"};

void hs_log_init(const char *name, const char *level, bool json)
{
	program = name;
	as_json = json;
	threshold = HS_LOG_INFO;
	for (size_t i = 0; level && i < HS_COUNT(level_names); i++)
		if (hs_str_ieq_ascii(level, level_names[i]))
			threshold = (enum hs_log_level)i;
	if (level && hs_str_ieq_ascii(level, "critical"))
		threshold = HS_LOG_ERROR;
}

bool hs_log_on(enum hs_log_level level)
{
	return level >= threshold;
}

/* s inside double quotes with control characters, quotes and backslashes escaped; never cut inside an
 * escape or a character. */
static size_t quote_into(char *out, size_t cap, const char *s)
{
	size_t n = 0;

	out[n++] = '"';
	for (const unsigned char *p = (const unsigned char *)s; *p && n + 8 < cap; p++) {
		if (*p == '"' || *p == '\\') {
			out[n++] = '\\';
			out[n++] = (char)*p;
		} else if (*p == '\n') {
			out[n++] = '\\';
			out[n++] = 'n';
		} else if (*p < 0x20 || *p == 0x7F) {
			n += (size_t)snprintf(out + n, cap - n, "\\u%04x", *p);
		} else {
			out[n++] = (char)*p;
		}
	}
	while (n > 1 && !hs_utf8_valid(out, n))
		n--;
	out[n++] = '"';
	out[n] = '\0';
	return n;
}

const char *hs_log_quote(const char *s)
{
	static _Thread_local char slots[QUOTE_SLOTS][QUOTE_BYTES + 2];
	static _Thread_local unsigned next;
	char *slot = slots[next++ % QUOTE_SLOTS];

	quote_into(slot, QUOTE_BYTES, s ? s : "");
	return slot;
}

void hs_log(enum hs_log_level level, const char *event, const char *fmt, ...)
{
	char line[LINE_BYTES], fields[LINE_BYTES / 2], when[HS_TIME_TEXT], quoted[LINE_BYTES / 2 + 64];
	va_list ap;
	int n;

	if (!hs_log_on(level))
		return;
	va_start(ap, fmt);
	vsnprintf(fields, sizeof(fields), fmt, ap);
	va_end(ap);
	hs_time_format(hs_now_us(), when);
	if (as_json) {
		quote_into(quoted, sizeof(quoted), fields);
		n = snprintf(line, sizeof(line),
			"{\"time\":\"%s\",\"level\":\"%s\",\"program\":\"%s\",\"event\":\"%s\",\"fields\":%s}\n", when,
			level_names[level], program, event, quoted);
	} else {
		n = snprintf(line, sizeof(line), "time=%s level=%s program=%s event=%s%s%s\n", when,
			level_names[level], program, event, fields[0] ? " " : "", fields);
	}
	if (n >= (int)sizeof(line)) {
		n = (int)sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	/* one write a line, so that lines of several threads do not mix; a lost log line is no error */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}
