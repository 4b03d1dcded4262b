#include "test.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

static void every_code_has_a_status_and_a_text(void **state)
{
	(void)state;
	for (int rc = 1; rc < HS_RC__MAX; rc++) {
		assert_in_range(hs_rc_status((enum hs_rc)rc), 400, 599);
		assert_true(hs_rc_text((enum hs_rc)rc)[0] != '\0');
		assert_int_equal(strncmp(hs_rc_name((enum hs_rc)rc), "HS_E_", 5), 0);
	}
	assert_string_equal(hs_rc_name((enum hs_rc)9999), "HS_E_INTERNAL");
}

static void clients_read_only_what_the_list_allows(void **state)
{
	struct hs_err err = {0};

	(void)state;
	assert_int_equal(hs_fail_foreign(&err, HS_E_DB, 1064, "SELECT secret failed"), HS_E_DB);
	assert_string_equal(hs_err_public(&err), "database error");
	assert_int_equal(err.foreign, 1064);
	assert_int_equal(hs_fail(&err, HS_E_NOT_FOUND, "Document '%s' not found", "x"), HS_E_NOT_FOUND);
	assert_string_equal(hs_err_public(&err), "Document 'x' not found");
	assert_int_equal(hs_fail_context(&err, "bank %d", 7), HS_E_NOT_FOUND);
	assert_string_equal(err.msg, "bank 7: Document 'x' not found");
}

static void long_messages_are_cut_between_characters(void **state)
{
	struct hs_err err = {0};
	char text[4000];

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xC3\xA9", 3);
	assert_int_equal(hs_fail(&err, HS_E_BAD_REQUEST, "x%s", text), HS_E_BAD_REQUEST);
	assert_true(hs_utf8_valid(err.msg, strlen(err.msg)));
	assert_true(strlen(err.msg) > sizeof(err.msg) - 4);
}

static void cut_values_leave_no_broken_character(void **state)
{
	struct hs_err err = {0};

	(void)state;
	(void)hs_fail(&err, HS_E_BAD_REQUEST, "no field '%.4s' here", "a\xE0\xB8\xAD\xE0\xB8\xB1");
	assert_string_equal(err.msg, "no field 'a\xE0\xB8\xAD' here");
	(void)hs_fail(&err, HS_E_BAD_REQUEST, "no field '%.6s' here", "a\xE0\xB8\xAD\xE0\xB8\xB1");
	assert_string_equal(err.msg, "no field 'a\xE0\xB8\xAD' here");
	(void)hs_fail_context(&err, "'%.3s'", "\xF0\x9F\x8E\x89");
	assert_string_equal(err.msg, "'': no field 'a\xE0\xB8\xAD' here");
}

static void log_values_are_quoted(void **state)
{
	(void)state;
	assert_string_equal(hs_log_quote("a \"b\"\n\x01"), "\"a \\\"b\\\"\\n\\u0001\"");
	assert_string_equal(hs_log_quote(NULL), "\"\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_status_and_a_text),
		cmocka_unit_test(clients_read_only_what_the_list_allows),
		cmocka_unit_test(long_messages_are_cut_between_characters),
		cmocka_unit_test(cut_values_leave_no_broken_character),
		cmocka_unit_test(log_values_are_quoted),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
