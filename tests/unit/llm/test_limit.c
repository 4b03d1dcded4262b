#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "llm/limit.h"

#define NOW INT64_C(1750000000000000) /* 2025-06-15T15:06:40Z */
#define S HS_SECOND_US

struct row {
	const char *name, *value; /* a header; NULL = none */
	const char *body;
	int64_t wait_us; /* -1: no reset time */
};

static void test_reflect_case_56_reset_times(void **state)
{
	static const struct row rows[] = {
		{"retry-after", "5", "", 5 * S},
		{"retry-after", "0", "", -1},
		{"retry-after", "-3", "", -1},
		{"retry-after", "soon", "", -1},
		{"retry-after", "Sun, 15 Jun 2025 16:06:40 GMT", "", 3600 * S},
		{"retry-after", "Sun, 15 Jun 2025 14:06:40 GMT", "", -1},
		{"x-ratelimit-reset-requests", "6m0s", "", 360 * S},
		{"x-ratelimit-reset-tokens", "2h0m0s", "", 7200 * S},
		{"x-ratelimit-reset-tokens", "233ms", "", 233000},
		{"x-ratelimit-reset-tokens", "1h2m3.5s", "", 3723 * S + 500000},
		{"x-ratelimit-reset-tokens", "later", "", -1},
		{NULL, NULL, "{\"detail\":{\"retry_after\":7200}}", 7200 * S},
		{NULL, NULL, "{\"error\":{\"details\":[{\"retryAfter\":\"30\"}]}}", 30 * S},
		{NULL, NULL, "{\"a\":{\"b\":{\"c\":{\"d\":{\"retry_after\":9}}}}}", -1},
		{NULL, NULL, "{\"error\":\"limit reached, try again in 5 hours\"}", 18000 * S},
		{NULL, NULL, "please wait 90 seconds", 90 * S},
		{NULL, NULL, "blocked for 2 days", 2 * 86400 * S},
		{NULL, NULL, "try again in 20s", 20 * S},
		{NULL, NULL, "your quota will reset at 2025-06-15T16:06:40Z, sorry", 3600 * S},
		{NULL, NULL, "reset at 2025-06-15 18:06:40+02:00", 3600 * S},
		{NULL, NULL, "reset at 2025-06-15T14:00:00Z", -1},
		{NULL, NULL, "in 400 days", -1},
		{NULL, NULL, "too many requests", -1},
		{NULL, NULL, "", -1},
		/* a Retry-After in the future silences the body */
		{"retry-after", "1", "{\"detail\":{\"retry_after\":7200}}", 1 * S},
		/* a past one does not */
		{"retry-after", "0", "{\"detail\":{\"retry_after\":7200}}", 7200 * S},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_http_reply http = {
			.status = 429, .body = rows[i].body, .body_bytes = strlen(rows[i].body)};
		int64_t got, want = rows[i].wait_us < 0 ? HS_TIME_NONE : NOW + rows[i].wait_us;

		if (rows[i].name) {
			hs_strs_add(pool, &http.header_names, rows[i].name);
			hs_strs_add(pool, &http.header_values, rows[i].value);
		}
		got = hs_limit_reset_us(pool, &http, NOW);
		if (got != want)
			fail_msg("row %zu: waits %lld us instead of %lld", i,
				got == HS_TIME_NONE ? -1LL : (long long)(got - NOW),
				(long long)rows[i].wait_us);
	}
}

static void the_longest_of_the_headers_counts(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_http_reply http = {.status = 429, .body = ""};

	(void)state;
	hs_strs_add(pool, &http.header_names, "x-ratelimit-reset-requests");
	hs_strs_add(pool, &http.header_values, "10s");
	hs_strs_add(pool, &http.header_names, "x-ratelimit-reset-tokens");
	hs_strs_add(pool, &http.header_values, "3m");
	hs_strs_add(pool, &http.header_names, "retry-after");
	hs_strs_add(pool, &http.header_values, "60");
	assert_true(hs_limit_reset_us(pool, &http, NOW) == NOW + 180 * S);
	assert_true(hs_limit_retry_after_us(pool, &http, NOW) == NOW + 60 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reflect_case_56_reset_times),
		cmocka_unit_test(the_longest_of_the_headers_counts),
	};

	return cmocka_run_group_tests_name("llm limit", tests, NULL, NULL);
}
