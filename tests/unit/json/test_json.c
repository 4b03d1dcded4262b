#include "test.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/pool.h"
#include "json/json.h"
#include "json/out.h"


static int set_up(void **state)
{
	*state = hs_pool_new();
	return 0;
}

static int tear_down(void **state)
{
	struct hs_pool *pool = *state;

	hs_pool_free(&pool);
	return 0;
}

static const char *printed(struct hs_pool *pool, const char *text)
{
	json_t *v = NULL;
	struct hs_err err = {0};

	if (hs_json_parse(pool, text, strlen(text), &v, NULL, &err) != HS_OK)
		return err.msg[0] ? hs_pool_strdup(pool, err.msg) : "?";
	return hs_json_text(pool, v);
}

static void any_value_is_read_and_printed_the_shortest_way(void **state)
{
	static const char *const rows[][2] = {
		{"{}", "{}"},
		{" [ 1 , 2.50, 1e3, -0.1 ] ", "[1,2.5,1000.0,-0.1]"},
		{"0.1", "0.1"},
		{"3.0", "3.0"},
		{"1e-7", "1e-07"},
		{"9223372036854775807", "9223372036854775807"},
		{"18446744073709551616", "1.8446744073709552e+19"},
		{"[\"18446744073709551616\",-99999999999999999999]",
			"[\"18446744073709551616\",-1e+20]"},
		{"null", "null"},
		{"\"\\u00e4\\/\\n\\ud83d\\ude00\"", "\"\xC3\xA4/\\n\xF0\x9F\x98\x80\""},
		{"\"a\\u0000b\"", "\"ab\""},
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_string_equal(printed(*state, rows[i][0]), rows[i][1]);
}

static void the_last_of_duplicate_keys_wins_at_every_depth(void **state)
{
	assert_string_equal(printed(*state, "{\"name\":\"a\",\"x\":{\"k\":1,\"k\":2},\"name\":\"b\"}"),
		"{\"name\":\"b\",\"x\":{\"k\":2}}");
}

static void a_fault_says_where_in_characters(void **state)
{
	static const struct {
		const char *text;
		size_t offset;
	} rows[] = {
		{"", 0},
		{"{\"a\": }", 6},
		{"{\"\xC3\xA4\": x}", 6},
		{"{\"a\":1}}", 7},
		{"[1,", 3},
		{"{'a':1}", 1},
		/* counted in what was sent, not in what is left after cleaning */
		{"{\"a\\u0000\\u0001\": x}", 18},
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_json_fault fault = {0};
		json_t *v;

		assert_int_equal(hs_json_parse(*state, rows[i].text, strlen(rows[i].text), &v, &fault, NULL),
			HS_E_PARSE);
		if (fault.offset_chars != rows[i].offset)
			fail_msg("%s: %zu, expected %zu", rows[i].text, fault.offset_chars, rows[i].offset);
		assert_false(fault.too_deep);
		assert_true(fault.text[0] != '\0');
	}
}

static void broken_text_is_refused_and_named_without_it(void **state)
{
	static const char *const rows[] = {
		"\"\xFF\"", "\"\xED\xA0\x80\"", "{\"a\":\"\xC3\"}", "\"tab\there\"", "\"\\u00zz\"", "[1e999]",
		"[NaN]", "{\"a\":1,}", "[1] [2]", "'x'", "\xEF\xBB\xBF{}",
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_json_fault fault = {0};
		json_t *v;

		if (hs_json_parse(*state, rows[i], strlen(rows[i]), &v, &fault, NULL) != HS_E_PARSE)
			fail_msg("row %zu was read", i);
		assert_true(hs_utf8_valid(fault.text, strlen(fault.text)));
	}
}

static char *nested(struct hs_pool *pool, size_t depth, char open, char close)
{
	char *s = hs_pool_alloc(pool, 2 * depth + 1);

	memset(s, open, depth);
	memset(s + depth, close, depth);
	s[2 * depth] = '\0';
	return s;
}

static void banks_case_55_depth_128_is_read_and_129_is_not(void **state)
{
	struct hs_json_fault fault = {0};
	char *s = nested(*state, HS_JSON_DEPTH, '[', ']');
	json_t *v;

	assert_int_equal(hs_json_parse(*state, s, strlen(s), &v, &fault, NULL), HS_OK);
	s = nested(*state, HS_JSON_DEPTH + 1, '[', ']');
	assert_int_equal(hs_json_parse(*state, s, strlen(s), &v, &fault, NULL), HS_E_PARSE);
	assert_true(fault.too_deep);
	assert_int_equal(fault.offset_chars, HS_JSON_DEPTH);
	/* brackets inside strings do not count */
	s = hs_pool_printf(*state, "[\"%s\\\"%s\"]", nested(*state, 300, '[', '{'), nested(*state, 300, '{', '['));
	assert_int_equal(hs_json_parse(*state, s, strlen(s), &v, &fault, NULL), HS_OK);
	/* a megabyte of brackets ends without using the stack */
	s = nested(*state, 1000000, '[', ']');
	assert_int_equal(hs_json_parse(*state, s, strlen(s), &v, &fault, NULL), HS_E_PARSE);
}

/* n empty objects, or strings, in a list */
static char *many(struct hs_pool *pool, size_t n, const char *each)
{
	size_t len = strlen(each);
	char *s = hs_pool_alloc(pool, n * (len + 1) + 2);

	s[0] = '[';
	for (size_t i = 0; i < n; i++) {
		memcpy(s + 1 + i * (len + 1), each, len);
		s[(i + 1) * (len + 1)] = ',';
	}
	memcpy(s + n * (len + 1), "]", 2);
	return s;
}

static void a_text_of_too_many_values_is_refused_before_it_takes_memory(void **state)
{
	struct hs_json_fault fault = {0};
	struct hs_err err = {0};
	char *s = many(*state, HS_JSON_VALUES - 10, "1");
	json_t *v;

	assert_int_equal(hs_json_parse(*state, s, strlen(s), &v, &fault, &err), HS_OK);
	s = many(*state, HS_JSON_VALUES + 10, "1");
	assert_int_equal(hs_json_parse(*state, s, strlen(s), &v, &fault, &err), HS_E_PARSE);
	assert_false(fault.too_deep);
	assert_string_equal(fault.text, "too many values");
	/* an object takes more than a number */
	s = many(*state, HS_JSON_VALUES / 4, "{}");
	assert_int_equal(hs_json_parse(*state, s, strlen(s), &v, &fault, &err), HS_E_PARSE);
	/* what stands in a string is no value */
	s = hs_pool_printf(*state, "[\"%s\"]", many(*state, HS_JSON_VALUES + 10, "1"));
	assert_int_equal(hs_json_parse(*state, s, strlen(s), &v, &fault, &err), HS_OK);
}

static void look_ups_are_lenient_about_what_is_missing(void **state)
{
	json_t *v = NULL;

	assert_int_equal(hs_json_load(*state, "{\"s\":\"x\",\"i\":3.0,\"f\":1.5,\"b\":true,\"a\":[\"x\",1,\"y\"]}",
		&v, NULL), HS_OK);
	assert_string_equal(hs_json_str(v, "s"), "x");
	assert_null(hs_json_str(v, "i"));
	assert_string_equal(hs_json_str_or(NULL, "s", "d"), "d");
	assert_int_equal(hs_json_int(v, "i", 7), 3);
	assert_int_equal(hs_json_int(v, "f", 7), 7);
	assert_int_equal(hs_json_int(NULL, "f", 7), 7);
	assert_true(hs_json_num(v, "f", 0) == 1.5);
	assert_true(hs_json_bool(v, "b", false));
	assert_null(hs_json_obj(v, "a"));
	struct hs_strs list = hs_json_strs(*state, hs_json_arr(v, "a"));

	assert_int_equal(list.n, 2);
	assert_string_equal(list.v[1], "y");
	assert_int_equal(hs_json_load(*state, "", &v, NULL), HS_OK);
	assert_null(v);
	assert_int_equal(hs_json_load(*state, "{", &v, NULL), HS_E_PARSE);
	assert_string_equal(hs_json_text(*state, NULL), "null");
}

static void the_writer_places_commas_and_escapes(void **state)
{
	struct hs_buf *b = hs_buf_new(*state, 1000);
	struct hs_out o = hs_out_to(b);
	const char *tags[] = {"a", "b\"c"};
	struct hs_strs list = {2, tags};

	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "a", "x\ty\\\x01\x7F");
	hs_out_str(&o, "n", NULL);
	hs_out_open(&o, "l", '[');
	hs_out_int(&o, NULL, -1);
	hs_out_num(&o, NULL, 0.5);
	hs_out_num(&o, NULL, 0.0 / 0.0);
	hs_out_open(&o, NULL, '{');
	hs_out_close(&o, '}');
	hs_out_bool(&o, NULL, true);
	hs_out_close(&o, ']');
	hs_out_strs(&o, "t", &list);
	hs_out_strs(&o, "e", NULL);
	hs_out_time(&o, "d", INT64_C(1705314600000000));
	hs_out_time(&o, "u", HS_TIME_NONE);
	hs_out_raw(&o, "r", "{\"k\":1}", "null");
	hs_out_raw(&o, "s", "", "[]");
	hs_out_close(&o, '}');
	assert_string_equal(b->data,
		"{\"a\":\"x\\ty\\\\\\u0001\x7F\",\"n\":null,\"l\":[-1,0.5,0.0,{},true],\"t\":[\"a\",\"b\\\"c\"],"
		"\"e\":[],\"d\":\"2024-01-15T10:30:00+00:00\",\"u\":null,\"r\":{\"k\":1},\"s\":[]}");
}

static void printing_stops_at_the_buffers_cap(void **state)
{
	struct hs_buf *b = hs_buf_new(*state, 20);
	struct hs_out o = hs_out_to(b);
	json_t *v;

	assert_int_equal(hs_json_load(*state, "[1,2,3,4,5,6,7,8,9,10,11,12]", &v, NULL), HS_OK);
	hs_out_json(&o, NULL, v);
	assert_int_equal(hs_buf_ok(b, "answer", NULL), HS_E_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(any_value_is_read_and_printed_the_shortest_way, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_last_of_duplicate_keys_wins_at_every_depth, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_fault_says_where_in_characters, set_up, tear_down),
		cmocka_unit_test_setup_teardown(broken_text_is_refused_and_named_without_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(banks_case_55_depth_128_is_read_and_129_is_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_text_of_too_many_values_is_refused_before_it_takes_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(look_ups_are_lenient_about_what_is_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_writer_places_commas_and_escapes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(printing_stops_at_the_buffers_cap, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
