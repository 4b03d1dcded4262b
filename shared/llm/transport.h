/*
 * transport - one HTTP POST with a wall clock, a capped answer and a cancel test.
 *
 * Floor:   llm; the only file that includes <curl/curl.h> is transport.c.
 * Thread:  each thread keeps one handle, so that connections are used again.
 * Time:    timeout_ms bounds the whole attempt, a trickling answer included; the cancel test is asked
 *          at least every second.
 * Rules:   http and https only; redirects are not followed; proxies of the environment are not used;
 *          TLS is verified.
 * Errors:  HS_E_LLM_TIMEOUT, HS_E_LLM_DOWN (connection, TLS, cut off), HS_E_CANCELLED; messages name
 *          no address. An HTTP status is no error here.
 */
#ifndef HS_LLM_TRANSPORT_H
#define HS_LLM_TRANSPORT_H

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"

struct hs_http_request {
	const char *url;
	struct hs_strs headers; /* whole lines: "Name: value" */
	const char *body;
	size_t body_bytes;
	int64_t timeout_ms;           /* > 0 */
	int64_t connect_ms;           /* 0 = no limit of its own */
	size_t reply_max;             /* longer answers are cut off with HS_E_LLM_DOWN */
	bool (*cancelled)(void *arg); /* NULL = never */
	void *cancel_arg;
};

struct hs_http_reply {
	int status;
	const char *body; /* NUL-terminated */
	size_t body_bytes;
	struct hs_strs header_names;  /* lower case */
	struct hs_strs header_values; /* trimmed */
};

HS_MUST enum hs_rc hs_http_post(struct hs_pool *pool, const struct hs_http_request *req,
	struct hs_http_reply *ret, struct hs_err *err);
/* NULL when there is none; name in lower case. */
const char *hs_http_header(const struct hs_http_reply *reply, const char *name);

#endif
