#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"

static void times_in_and_out(void **state)
{
	static const struct {
		const char *in, *out; /* out NULL: refused */
	} rows[] = {
		{"2024-01-15T10:30:00+00:00", "2024-01-15T10:30:00+00:00"},
		{"2026-06-12T19:17:00+08:00", "2026-06-12T11:17:00+00:00"},
		{"2024-01-15 10:30:00.5Z", "2024-01-15T10:30:00.500000+00:00"},
		{"2024-01-15", "2024-01-15T00:00:00+00:00"},
		{"20240115T103000-0530", "2024-01-15T16:00:00+00:00"},
		{"1969-12-31T23:59:59.999999", "1969-12-31T23:59:59.999999+00:00"},
		{"2024-02-29", "2024-02-29T00:00:00+00:00"},
		{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00"},
		{"2026-02-30", NULL}, {"2026-13-01", NULL}, {"soon", NULL}, {"", NULL}, {"2026-1-1", NULL},
		{"2026-01-01T25:00:00", NULL}, {"2026-01-01T10:00:00X", NULL}, {"2026-01-01T10", NULL},
	};
	char text[HS_TIME_TEXT];

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		int64_t us;
		bool ok = hs_time_parse(rows[i].in, &us);

		if (ok != (rows[i].out != NULL))
			fail_msg("row %zu: %s", i, rows[i].in);
		if (ok) {
			hs_time_format(us, text);
			assert_string_equal(text, rows[i].out);
		}
	}
}

static void civil_dates_round_trip(void **state)
{
	(void)state;
	for (int64_t day = -800000; day < 800000; day += 97) {
		int64_t us = day * HS_DAY_US + 12345678;
		struct hs_civil c = hs_civil_from_us(us);

		assert_int_equal(hs_civil_to_us(&c), us);
		assert_in_range(c.month, 1, 12);
		assert_in_range(c.day, 1, hs_days_in_month(c.year, c.month));
		assert_int_equal(c.weekday, ((day % 7) + 11) % 7);
	}
	/* 30 November 2026 is a Monday */
	assert_int_equal(hs_civil_from_us(INT64_C(1796000400) * HS_SECOND_US).weekday, 1);
}

static void the_clock_can_be_pinned(void **state)
{
	(void)state;
	hs_clock_pin(42);
	assert_int_equal(hs_now_us(), 42);
	hs_clock_pin(HS_TIME_NONE);
	assert_true(hs_now_us() > INT64_C(1700000000) * HS_SECOND_US);
}

static void uuids_are_read_leniently_and_rise(void **state)
{
	static const char *const good[] = {"0192f7a0-1111-7222-8333-444455556666",
		"{0192F7A0-1111-7222-8333-444455556666}", "urn:uuid:0192f7a0-1111-7222-8333-444455556666",
		"0192f7a0111172228333444455556666"};
	static const char *const bad[] = {"", "abc", "0192f7a0-1111-7222-8333-44445555666",
		"0192f7a0-1111-7222-8333-4444555566667", "0192f7a0-1111-7222-8333-44445555666g", "' OR 1=1"};
	char out[HS_UUID_TEXT], last[HS_UUID_TEXT] = "";

	(void)state;
	for (size_t i = 0; i < HS_COUNT(good); i++) {
		assert_true(hs_uuid_parse(good[i], out));
		assert_string_equal(out, good[0]);
	}
	for (size_t i = 0; i < HS_COUNT(bad); i++)
		assert_false(hs_uuid_parse(bad[i], out));
	for (int i = 0; i < 10000; i++) {
		hs_uuid_v7(out);
		assert_true(strcmp(last, out) < 0);
		assert_int_equal(out[14], '7');
		memcpy(last, out, sizeof(last));
	}
	hs_uuid_v4(out);
	assert_int_equal(out[14], '4');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_in_and_out),
		cmocka_unit_test(civil_dates_round_trip),
		cmocka_unit_test(the_clock_can_be_pinned),
		cmocka_unit_test(uuids_are_read_leniently_and_rise),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
