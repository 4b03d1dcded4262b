#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum shown { SHOWN_TEXT, SHOWN_MSG };

struct rc_row {
	const char *name;
	int status;
	enum hs_retry retry;
	enum shown shown;
	const char *text;
};

static const struct rc_row rows[HS_RC__MAX] = {
	[HS_OK] = {"HS_OK", 200, HS_RETRY_NEVER, SHOWN_TEXT, "ok"},
#define X(code, status, retry, shown, text)                                                        \
	[code] = {#code, status, HS_RETRY_##retry, SHOWN_##shown, text},
#include "base/errors.def"
#undef X
};

static const struct rc_row *row(enum hs_rc rc)
{
	if ((unsigned)rc >= HS_RC__MAX)
		rc = HS_E_INTERNAL;
	return &rows[rc];
}

void hs_err_clear(struct hs_err *err)
{
	if (err)
		memset(err, 0, sizeof(*err));
}

/* A value or a message that was cut in the middle of a UTF-8 sequence loses the broken bytes. */
static void drop_broken(char *s)
{
	size_t n = strlen(s), at = 0, out = 0;

	while (at < n) {
		uint32_t cp;
		size_t len = hs_utf8_next(s + at, n - at, &cp);

		memmove(s + out, s + at, len);
		out += len;
		at += len ? len : 1;
	}
	s[out] = '\0';
}

HS_PRINTF(2, 0)
static void set_msg(struct hs_err *err, const char *fmt, va_list ap)
{
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	drop_broken(err->msg);
}

enum hs_rc hs_fail(struct hs_err *err, enum hs_rc rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	err->rc = rc;
	err->foreign = 0;
	va_start(ap, fmt);
	set_msg(err, fmt, ap);
	va_end(ap);
	return rc;
}

enum hs_rc hs_fail_foreign(struct hs_err *err, enum hs_rc rc, int foreign, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	err->rc = rc;
	err->foreign = foreign;
	va_start(ap, fmt);
	set_msg(err, fmt, ap);
	va_end(ap);
	return rc;
}

enum hs_rc hs_fail_context(struct hs_err *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	size_t n;
	va_list ap;

	if (!err)
		return HS_E_INTERNAL;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	set_msg(err, fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", old);
	drop_broken(err->msg);
	return err->rc;
}

const char *hs_rc_name(enum hs_rc rc)
{
	return row(rc)->name;
}

int hs_rc_status(enum hs_rc rc)
{
	return row(rc)->status;
}

enum hs_retry hs_rc_retry(enum hs_rc rc)
{
	return row(rc)->retry;
}

const char *hs_rc_text(enum hs_rc rc)
{
	return row(rc)->text;
}

const char *hs_err_public(const struct hs_err *err)
{
	const struct rc_row *r = row(err->rc);

	return r->shown == SHOWN_MSG && err->msg[0] ? err->msg : r->text;
}
