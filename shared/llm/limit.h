/*
 * limit - when a provider that answered 429 will serve again.
 *
 * Floor:   llm; pure but for the clock given.
 * Source:  RFC 9110 (Retry-After), x-ratelimit-reset-* headers, texts and members of error bodies
 *          (contract reflect C7).
 */
#ifndef HS_LLM_LIMIT_H
#define HS_LLM_LIMIT_H

#include "base/pool.h"
#include "llm/transport.h"

/* The latest candidate in the future, in wall clock microseconds; HS_TIME_NONE when there is none. */
int64_t hs_limit_reset_us(struct hs_pool *pool, const struct hs_http_reply *reply, int64_t now_us);
/* Retry-After alone, as a time; HS_TIME_NONE when it is missing, unreadable or past. */
int64_t hs_limit_retry_after_us(
	struct hs_pool *pool, const struct hs_http_reply *reply, int64_t now_us);
/* Run-together durations: "6m0s", "233ms", "1h2m3.5s"; -1 when it is none. */
int64_t hs_limit_duration_us(const char *text);

#endif
