#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "engine/cron.h"

static int64_t at(const char *text)
{
	int64_t us = 0;

	assert_true(hs_time_parse(text, &us));
	return us;
}

static struct hs_cron parsed(const char *text)
{
	struct hs_cron c;
	struct hs_err err = {0};

	if (hs_cron_parse(text, &c, &err) != HS_OK)
		fail_msg("%s: %s", text, err.msg);
	return c;
}

static void assert_prev(const char *cron, const char *now, const char *want)
{
	struct hs_cron c = parsed(cron);
	int64_t got = hs_cron_prev(&c, at(now));
	char shown[HS_TIME_TEXT];

	hs_time_format(got, shown);
	if (got != at(want))
		fail_msg("%s before %s: got %s, want %s", cron, now, shown, want);
}

static void expressions_are_accepted(void **state)
{
	static const char *const good[] = {"* * * * *", "0 3 * * *", "*/5 * * * *",
		"0-30/7 1,2 * * *", "0 0 1 JAN-mar Mon", "  0\t0 1 1 7 ", "5/10 22-3 * * fri-MON",
		"59 23 31 12 0", "0 0 29 2 *", "0 0 30 2 1", "*/90 * * * *", "0 0 * * 0-7",
		"0,*/20 * * * *"};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(good); i++)
		parsed(good[i]);
}

static void test_fault_06_bad_expressions_are_refused(void **state)
{
	static const char *const bad[] = {"", "   ", "hello", "61 * * * *", "* * *", "* * * * * *",
		"@daily", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *",
		"* * * 13 *", "* * * * 8", "*/0 * * * *", "1- * * * *", "-1 * * * *", "1,, * * * *",
		",1 * * * *", "1/ * * * *", "1-2-3 * * * *", "* * l * *", "* * 15W * *",
		"* * ? * *", "* * * * mon#2", "* * * * monday", "* * * jan-foo *", "00000 * * * *",
		"1 2 3 4 5;", "0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6 *",
		"99999999999999999999 * * * *", "*5 * * * *", "1.5 * * * *", "\xc3\xa9 * * * *"};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(bad); i++) {
		struct hs_cron c;
		struct hs_err err = {0};

		if (hs_cron_parse(bad[i], &c, &err) != HS_E_INVALID)
			fail_msg("accepted: '%s'", bad[i]);
		assert_true(err.msg[0] != '\0');
	}
}

static void latest_fire_time_before_a_moment(void **state)
{
	static const struct {
		const char *cron, *now, *want;
	} rows[] = {
		{"* * * * *", "2026-03-01T12:00:30Z", "2026-03-01T12:00:00Z"},
		/* strictly before */
		{"* * * * *", "2026-03-01T12:00:00Z", "2026-03-01T11:59:00Z"},
		{"* * * * *", "2026-03-01T12:00:00.000001Z", "2026-03-01T12:00:00Z"},
		{"0 3 * * *", "2026-03-01T03:00:00Z", "2026-02-28T03:00:00Z"},
		{"0 3 * * *", "2026-03-01T02:00:00Z", "2026-02-28T03:00:00Z"},
		{"30 3 * * *", "2026-03-01T03:15:00Z", "2026-02-28T03:30:00Z"},
		{"15,45 8-10 * * *", "2026-03-01T09:10:00Z", "2026-03-01T08:45:00Z"},
		{"0 0 29 2 *", "2027-01-01T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"0 0 1 1 *", "2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		/* weekdays: 2026-03-01 is a Sunday */
		{"0 12 * * 0", "2026-03-03T00:00:00Z", "2026-03-01T12:00:00Z"},
		{"0 12 * * 7", "2026-03-03T00:00:00Z", "2026-03-01T12:00:00Z"},
		{"0 12 * * fri-mon", "2026-03-06T00:00:00Z", "2026-03-02T12:00:00Z"},
		{"0 12 * * 5-7", "2026-03-06T00:00:00Z", "2026-03-01T12:00:00Z"},
		{"0 12 * * 5/1", "2026-03-06T00:00:00Z", "2026-02-28T12:00:00Z"},
		/* either day when both are restricted, a step counts as restricted */
		{"0 0 13 * 5", "2026-03-20T00:00:00Z", "2026-03-13T00:00:00Z"},
		{"0 0 10 * 5", "2026-03-12T00:00:00Z", "2026-03-10T00:00:00Z"},
		{"0 0 */2 * 2", "2026-03-11T00:00:00Z", "2026-03-10T00:00:00Z"},
		{"0 0 1-31 * 1", "2026-03-04T12:00:00Z", "2026-03-04T00:00:00Z"},
		{"0 0 30 2 1", "2026-03-01T00:00:00Z", "2026-02-23T00:00:00Z"},
		/* wrapped ranges and steps */
		{"0 22-3 * * *", "2026-03-01T12:00:00Z", "2026-03-01T03:00:00Z"},
		{"0 22-3/2 * * *", "2026-03-01T12:00:00Z", "2026-03-01T02:00:00Z"},
		{"5/20 * * * *", "2026-03-01T12:50:00Z", "2026-03-01T12:45:00Z"},
		{"*/90 * * * *", "2026-03-01T12:50:00Z", "2026-03-01T12:00:00Z"},
		{"0 0 * nov-feb *", "2026-10-05T00:00:00Z", "2026-02-28T00:00:00Z"},
		{"0 0 * * *", "1969-12-31T12:00:00Z", "1969-12-31T00:00:00Z"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_prev(rows[i].cron, rows[i].now, rows[i].want);
}

static void fired_compares_strictly(void **state)
{
	struct hs_cron c = parsed("0 3 * * *");
	int64_t now = at("2026-03-05T10:00:00Z");

	(void)state;
	assert_true(hs_cron_fired(&c, HS_TIME_NONE, now));
	assert_true(hs_cron_fired(&c, at("2026-03-05T02:59:59Z"), now));
	assert_false(hs_cron_fired(&c, at("2026-03-05T03:00:00Z"), now));
	assert_false(hs_cron_fired(&c, at("2026-03-05T09:00:00Z"), now));
	/* several missed fires are one */
	assert_true(hs_cron_fired(&c, at("2026-02-01T00:00:00Z"), now));
}

static void a_date_that_never_comes_ends_the_search(void **state)
{
	struct hs_cron c = parsed("0 0 1 2 *");

	(void)state;
	c.days = UINT32_C(1) << 31;
	assert_true(hs_cron_prev(&c, at("2026-03-05T10:00:00Z")) == HS_TIME_NONE);
	assert_false(hs_cron_fired(&c, HS_TIME_NONE, at("2026-03-05T10:00:00Z")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_are_accepted),
		cmocka_unit_test(test_fault_06_bad_expressions_are_refused),
		cmocka_unit_test(latest_fire_time_before_a_moment),
		cmocka_unit_test(fired_compares_strictly),
		cmocka_unit_test(a_date_that_never_comes_ends_the_search),
	};

	return cmocka_run_group_tests_name("cron", tests, NULL, NULL);
}
