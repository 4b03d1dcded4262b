#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static struct hs_pool *pool;

static int set_up(void **state)
{
	(void)state;
	pool = hs_pool_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hs_pool_free(&pool);
	return 0;
}

static void numbers_are_read_whole_or_not_at_all(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t v;
	} rows[] = {
		{"0", true, 0}, {" 12 ", true, 12}, {"-7", true, -7}, {"9223372036854775807", true, INT64_MAX},
		{"9223372036854775808", false, 0}, {"12x", false, 0}, {"", false, 0}, {"  ", false, 0},
		{"1.0", false, 0}, {"0x10", false, 0}, {NULL, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		int64_t v = -1;

		assert_int_equal(hs_str_to_i64(rows[i].text, &v), rows[i].ok);
		if (rows[i].ok)
			assert_int_equal(v, rows[i].v);
	}
}

static void doubles_print_as_the_shortest_text_that_reads_back(void **state)
{
	static const struct {
		double v;
		bool point;
		const char *text;
	} rows[] = {{0.1, false, "0.1"}, {3, false, "3"}, {3, true, "3.0"}, {1e300, false, "1e+300"},
		{100000000, false, "100000000"}, {0.1 + 0.2, false, "0.30000000000000004"}, {-2.5, true, "-2.5"}};
	char buf[32];
	double v;

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		hs_double_print(rows[i].v, rows[i].point, buf);
		assert_string_equal(buf, rows[i].text);
		assert_true(hs_str_to_double(buf, &v));
		assert_true(v == rows[i].v);
	}
	assert_false(hs_str_to_double("inf", &v));
	assert_false(hs_str_to_double("nan", &v));
	assert_false(hs_str_to_double("1e999", &v));
	assert_false(hs_str_to_double("0x1p3", &v));
}

static void white_space_is_unicode_white_space(void **state)
{
	(void)state;
	assert_true(hs_str_blank(NULL));
	assert_true(hs_str_blank(" \t\n\xC2\xA0\xE3\x80\x80"));
	assert_false(hs_str_blank(" x "));
	assert_string_equal(hs_str_trim(pool, "\xE3\x80\x80 a b \xC2\xA0"), "a b");
	assert_string_equal(hs_str_trim(pool, "\xC3\xA9"), "\xC3\xA9");
	assert_string_equal(hs_str_trim(pool, NULL), "");
}

static void broken_utf8_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool ok;
	} rows[] = {{"a\xC3\xA9\xF0\x9F\x8E\x89", 7, true}, {"\xC0\x80", 2, false}, {"\xED\xA0\x80", 3, false},
		{"\xF4\x90\x80\x80", 4, false}, {"\xE2\x82", 2, false}, {"\xFF", 1, false}, {"a\0b", 3, true}};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_int_equal(hs_utf8_valid(rows[i].bytes, rows[i].n), rows[i].ok);
	assert_int_equal(hs_utf8_chars("a\xC3\xA9\xF0\x9F\x8E\x89", 7), 3);
	assert_string_equal(hs_utf8_cut(pool, "a\xC3\xA9\xF0\x9F\x8E\x89", 2), "a\xC3\xA9");
}

static void lists_grow_split_and_sort(void **state)
{
	struct hs_strs list = {0, NULL}, set;
	char name[32];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%02d", (i * 37) % 50);
		hs_strs_add(pool, &list, hs_pool_strdup(pool, name));
	}
	set = hs_strs_sorted_set(pool, &list);
	assert_int_equal(list.n, 100);
	assert_int_equal(set.n, 50);
	for (size_t i = 0; i < set.n; i++) {
		snprintf(name, sizeof(name), "%02zu", i);
		assert_string_equal(set.v[i], name);
	}
	list = hs_str_split(pool, "b,a,b,c,a,B", ',');
	set = hs_strs_unique(pool, &list);
	assert_string_equal(hs_strs_join(pool, &set, ""), "bacB");
	list = (struct hs_strs){0};
	assert_int_equal(hs_strs_unique(pool, &list).n, 0);
	list = hs_str_split(pool, " a, ,b ,, c", ',');
	assert_string_equal(hs_strs_join(pool, &list, "|"), "a|b|c");
	assert_string_equal(hs_str_replace(pool, "aXbXc", "X", "--"), "a--b--c");
}

static void words_for_true_and_false(void **state)
{
	bool v = false;

	(void)state;
	assert_true(hs_str_to_bool("Yes", &v) && v);
	assert_true(hs_str_to_bool("OFF", &v) && !v);
	assert_false(hs_str_to_bool("maybe", &v));
	assert_false(hs_str_to_bool("", &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_whole_or_not_at_all),
		cmocka_unit_test(doubles_print_as_the_shortest_text_that_reads_back),
		cmocka_unit_test(white_space_is_unicode_white_space),
		cmocka_unit_test(broken_utf8_is_refused),
		cmocka_unit_test(lists_grow_split_and_sort),
		cmocka_unit_test(words_for_true_and_false),
	};

	return cmocka_run_group_tests_name("str", tests, set_up, tear_down);
}
