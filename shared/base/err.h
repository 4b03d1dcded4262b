/*
 * err - error codes and the flat error record that every failing call fills.
 *
 * Floor:   base; C library only.
 * Shapes:  struct hs_err is plain data; filling it needs no memory. Field errors of a refused
 *          request hang off it and live in the request's pool.
 * Errors:  the list is errors.def; its HTTP status, retry class and default text come from there.
 * Use:     the innermost caller who knows what was attempted writes the message, once:
 *          return hs_fail(err, HS_E_IO, "cannot open %s", path);
 */
#ifndef HS_BASE_ERR_H
#define HS_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

enum hs_rc {
	HS_OK = 0,
#define X(code, status, retry, shown, text) code,
#include "base/errors.def"
#undef X
	HS_RC__MAX
};

enum hs_retry { HS_RETRY_NEVER, HS_RETRY_LATER, HS_RETRY_AGAIN };

struct hs_pool;

/* One problem of a request body, query or path; all strings live in the request's pool. */
struct hs_field_error {
	struct hs_field_error *next;
	const char *type;  /* "missing", "string_type", … */
	const char *loc;   /* JSON array text: ["body","items",0,"content"] */
	const char *msg;   /* plain text */
	const char *input; /* JSON text of the rejected value */
	const char *ctx;   /* JSON object text, NULL when there is none */
};

struct hs_err {
	enum hs_rc rc;
	int foreign;             /* MariaDB errno, CURLcode, HTTP status or errno; 0 when none */
	int64_t retry_after_s;   /* for 503; 0 = default */
	int64_t retry_at_us;     /* for HS_E_LLM_QUOTA and HS_E_DEFERRED: not before; 0 = unknown */
	char msg[1024];          /* what was attempted and why it failed; plain UTF-8 */
	struct hs_field_error *fields, *fields_last;
	size_t n_fields;
};

/* Clear all members. */
void hs_err_clear(struct hs_err *err);
/* Set code and message (cut at a character boundary), return rc. err may be NULL. */
enum hs_rc hs_fail(struct hs_err *err, enum hs_rc rc, const char *fmt, ...) HS_PRINTF(3, 4);
/* The same with the code of a foreign library. */
enum hs_rc hs_fail_foreign(struct hs_err *err, enum hs_rc rc, int foreign, const char *fmt, ...)
	HS_PRINTF(4, 5);
/* Put "<text>: " in front of the message, keep the code; returns err->rc. */
enum hs_rc hs_fail_context(struct hs_err *err, const char *fmt, ...) HS_PRINTF(2, 3);

const char *hs_rc_name(enum hs_rc rc);   /* "HS_E_DB_DOWN" */
int hs_rc_status(enum hs_rc rc);         /* HTTP status; 200 for HS_OK */
enum hs_retry hs_rc_retry(enum hs_rc rc);
const char *hs_rc_text(enum hs_rc rc);   /* default text */
/* What a client may read: msg or the default text, as errors.def says. Lent until err changes. */
const char *hs_err_public(const struct hs_err *err);

#endif
