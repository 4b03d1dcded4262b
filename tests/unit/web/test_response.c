#include "test.h"

#include <stdio.h>
#include <string.h>

#include "web/problem.h"
#include "web/response.h"

static struct hs_response answer(struct hs_pool *pool, const char *body)
{
	struct hs_response res;

	hs_response_init(&res, pool);
	res.status = 200;
	hs_buf_str(res.body, body);
	return res;
}

static void head_has_status_length_and_id(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	const struct hs_request req = {.request_id = "r1"};
	struct hs_response res = answer(pool, "{}");
	const char *head;

	(void)state;
	hs_response_header(&res, "X-A", "one");
	hs_response_header(&res, "x-a", "two\r\nX-Evil: 1");
	head = hs_response_head(&res, &req)->data;
	assert_non_null(strstr(head, "Status: 200 OK\r\n"));
	assert_non_null(strstr(head, "Content-Type: application/json\r\nContent-Length: 2\r\n"));
	assert_non_null(strstr(head, "X-Request-Id: r1\r\n"));
	assert_non_null(strstr(head, "X-A: two\r\n"));
	assert_null(strstr(head, "one"));
	assert_null(strstr(head, "Evil"));
	assert_string_equal(head + strlen(head) - 4, "\r\n\r\n");
}

static void etag_changes_with_any_byte(void **state)
{
	char text[100], first[HS_ETAG_TEXT], other[HS_ETAG_TEXT];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t n = 0; n < sizeof(text); n++) {
		hs_etag(text, n, first);
		hs_etag(text, n + 1, other);
		assert_string_not_equal(first, other);
		for (size_t i = 0; i < n; i++) {
			text[i] ^= 1;
			hs_etag(text, n, other);
			text[i] ^= 1;
			assert_string_not_equal(first, other);
		}
	}
	hs_etag("\0", 1, first);
	hs_etag("\0\0", 2, other);
	assert_string_not_equal(first, other);
}

static void if_none_match_is_a_list(void **state)
{
	static const struct {
		const char *header;
		bool matches;
	} rows[] = {
		{NULL, false}, {"", false}, {"\"x\"", true}, {"W/\"x\"", true}, {"\"a\", W/\"x\"",
			true},
		{"\"a\",\"x\"", true}, {"*", true}, {"\"xx\"", false}, {"x", false}, {"\"a\"",
			false},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_int_equal(hs_etag_matches(rows[i].header, "\"x\""), rows[i].matches);
}

static void known_body_is_304_without_body(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_request req = {.request_id = "r1"};
	struct hs_response res = answer(pool, "{\"a\":1}");
	const char *head;

	(void)state;
	res.etag = true;
	head = hs_response_head(&res, &req)->data;
	assert_non_null(strstr(head, "Status: 200"));
	req.if_none_match = hs_response_header_get(&res, "ETag");
	assert_non_null(req.if_none_match);

	res = answer(pool, "{\"a\":1}");
	res.etag = true;
	head = hs_response_head(&res, &req)->data;
	assert_non_null(strstr(head, "Status: 304 Not Modified\r\n"));
	assert_null(strstr(head, "Content-Length"));
	assert_int_equal(res.body->len, 0);

	res = answer(pool, "{\"a\":2}");
	res.etag = true;
	assert_non_null(strstr(hs_response_head(&res, &req)->data, "Status: 200"));

	res = answer(pool, "{\"a\":1}");
	res.etag = true;
	res.status = 404;
	assert_non_null(strstr(hs_response_head(&res, &req)->data, "Status: 404"));
}

static void problems_show_what_errors_def_allows(void **state)
{
	static const struct {
		enum hs_rc rc;
		const char *msg;
		int status;
		const char *body;
	} rows[] = {
		{HS_E_NOT_FOUND, "Not Found", 404, "{\"detail\":\"Not Found\"}"},
		{HS_E_BANK_MISSING, "Bank 'a\"b' not found", 404,
			"{\"detail\":\"Bank 'a\\\"b' not found\"}"},
		{HS_E_DB, "SELECT secret FROM t", 500, "{\"detail\":\"database error\"}"},
		{HS_E_DB_DOWN, "connect to /run/x failed", 503,
			"{\"detail\":\"database is unreachable\"}"},
		{HS_E_CAPACITY, "full", 503, "{\"detail\":\"full\"}"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_response res = answer(pool, "half an answ");
		struct hs_err err = {0};

		(void)hs_fail(&err, rows[i].rc, "%s", rows[i].msg);
		hs_problem(&res, &err);
		assert_int_equal(res.status, rows[i].status);
		assert_string_equal(res.body->data, rows[i].body);
		assert_int_equal(hs_response_header_get(&res, "Retry-After") != NULL,
			rows[i].status == 503);
	}
}

static void problems_list_field_errors(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_response res = answer(pool, "");
	struct hs_err err = {0};

	(void)state;
	hs_fault_add(pool, &err, "missing", "[\"body\",\"name\"]", "Field required", "{}", NULL);
	hs_fault_add(pool, &err, "greater_than_equal", "[\"query\",\"limit\"]",
		"Input should be greater than or equal to 0", "\"-1\"", "{\"ge\":0}");
	(void)hs_fail(&err, HS_E_INVALID, "request did not validate");
	hs_problem(&res, &err);
	assert_int_equal(res.status, 422);
	assert_string_equal(res.body->data,
		"{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"name\"],\"msg\":\"Field required\","
		"\"input\":{}},{\"type\":\"greater_than_equal\",\"loc\":[\"query\",\"limit\"],"
		"\"msg\":\"Input should be greater than or equal to 0\",\"input\":\"-1\",\"ctx\":{\"ge\":0}}]}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_has_status_length_and_id),
		cmocka_unit_test(etag_changes_with_any_byte),
		cmocka_unit_test(if_none_match_is_a_list),
		cmocka_unit_test(known_body_is_304_without_body),
		cmocka_unit_test(problems_show_what_errors_def_allows),
		cmocka_unit_test(problems_list_field_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
