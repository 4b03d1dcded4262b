#include "test.h"

#include <string.h>

#include "base/limits.h"
#include "web/request.h"

struct headers {
	const char *name, *value;
};

static const char *header_of(const struct hs_request *r, const char *name)
{
	for (const struct headers *h = r->source; h->name; h++)
		if (strcmp(h->name, name) == 0)
			return h->value;
	return NULL;
}

static enum hs_rc parse(struct hs_pool *pool, const char *uri, struct hs_request *r)
{
	struct hs_err err = {0};

	memset(r, 0, sizeof(*r));
	r->method_name = "GET";
	r->uri = uri;
	return hs_request_parse(pool, r, &err);
}

static void paths_are_split_before_decoding(void **state)
{
	static const struct {
		const char *uri;
		size_t n;
		const char *segments[4];
		bool slash;
	} rows[] = {
		{"/", 0, {0}, false},
		{"/a", 1, {"a"}, false},
		{"/a/", 1, {"a"}, true},
		{"/a%2Fb/c", 2, {"a/b", "c"}, false},
		{"/a%252Fb", 1, {"a%2Fb"}, false},
		{"//a", 2, {"", "a"}, false},
		{"/a//b", 3, {"a", "", "b"}, false},
		{"/%2E%2E/x+y", 2, {"..", "x+y"}, false},
		{"/a%07b", 1, {"a\ab"}, false},
		{"/caf%C3%A9?x=/y/", 1, {"café"}, false},
		{"http://host/a/b?c", 2, {"a", "b"}, false},
		{"http://host", 0, {0}, false},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_request r;

		assert_int_equal(parse(pool, rows[i].uri, &r), HS_OK);
		assert_int_equal(r.segments.n, rows[i].n);
		for (size_t s = 0; s < rows[i].n; s++)
			assert_string_equal(r.segments.v[s], rows[i].segments[s]);
		assert_int_equal(r.trailing_slash, rows[i].slash);
	}
}

static void a_base_path_is_taken_off(void **state)
{
	static const struct {
		const char *base, *uri;
		bool below;
		size_t n;
		const char *first;
		bool slash;
	} rows[] = {
		{"", "/a", true, 1, "a", false},
		{"/m", "/m/a", true, 1, "a", false},
		{"m/", "/m/a/", true, 1, "a", true},
		{"/m/n/", "/m/n/a%2Fb", true, 1, "a/b", false},
		{"/m", "/m", true, 0, NULL, false},
		{"/m", "/m/", true, 0, NULL, false},
		{"/m", "/%6d/a?b=/c", true, 1, "a", false},
		{"/m", "/mm/a", false, 2, "mm", false},
		{"/m", "/a", false, 1, "a", false},
		{"/m", "//m/a", false, 3, "", false},
		{"/m/n", "/m%2Fn/a", false, 2, "m/n", false},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_strs base = hs_str_split(pool, rows[i].base, '/');
		struct hs_request r;

		assert_int_equal(parse(pool, rows[i].uri, &r), HS_OK);
		assert_int_equal(hs_request_below(&r, &base), rows[i].below);
		assert_int_equal(r.segments.n, rows[i].n);
		assert_int_equal(r.raw_segments.n, rows[i].n);
		if (rows[i].first)
			assert_string_equal(r.segments.v[0], rows[i].first);
		assert_int_equal(r.trailing_slash, rows[i].slash);
	}
}

static void bad_paths_are_refused(void **state)
{
	static const char *const uris[] = {
		"/%00", "/a%zz", "/a%", "/a%2", "/%ff", "/%ed%a0%80", "/%c0%af", "/ok/%E0%80%AF",
			"nothing", "",
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	char *longer = hs_pool_alloc(pool, HS_URI_MAX + 2);
	struct hs_request r;

	(void)state;
	for (size_t i = 0; i < HS_COUNT(uris); i++)
		assert_int_equal(parse(pool, uris[i], &r), HS_E_BAD_REQUEST);
	memset(longer, 'a', HS_URI_MAX + 1);
	longer[0] = '/';
	longer[HS_URI_MAX + 1] = '\0';
	assert_int_equal(parse(pool, longer, &r), HS_E_BAD_REQUEST);
}

static void query_is_decoded_and_cleaned(void **state)
{
	static const struct {
		const char *query, *name, *value;
	} rows[] = {
		{"a=1", "a", "1"},
		{"a", "a", ""},
		{"a=b=c", "a", "b=c"},
		{"a=x+y%20z", "a", "x y z"},
		{"q=100%", "q", "100%"},
		{"q=%zz", "q", "%zz"},
		{"q=a%00b%07c", "q", "abc"},
		{"q=%ffok", "q", "ok"},
		{"q=%F0%9F%8E%89", "q", "🎉"},
		{"q=a%26b", "q", "a&b"},
		{"%71=1", "q", "1"},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_request r;

		assert_int_equal(parse(pool, hs_pool_printf(pool, "/x?%s", rows[i].query), &r),
			HS_OK);
		assert_int_equal(r.n_query, 1);
		assert_string_equal(r.query[0].name, rows[i].name);
		assert_string_equal(r.query[0].value, rows[i].value);
	}
}

static void query_keeps_order_and_has_a_cap(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	char *many = hs_pool_alloc(pool, 3 * HS_QUERY_PARAMS_MAX + 16);
	struct hs_request r;
	size_t at = 0;

	(void)state;
	assert_int_equal(parse(pool, "/x?t=1&&t=2&", &r), HS_OK);
	assert_int_equal(r.n_query, 2);
	assert_string_equal(r.query[1].value, "2");
	assert_int_equal(parse(pool, "/x?", &r), HS_OK);
	assert_int_equal(r.n_query, 0);

	at += (size_t)sprintf(many, "/?a");
	for (size_t i = 0; i < HS_QUERY_PARAMS_MAX; i++)
		at += (size_t)sprintf(many + at, "&a");
	assert_int_equal(parse(pool, many, &r), HS_E_BAD_REQUEST);
}

static void content_types(void **state)
{
	static const struct {
		const char *type;
		bool json;
	} rows[] = {
		{NULL, true}, {"", true}, {"application/json", true},
			{"APPLICATION/JSON; charset=utf-8", true},
		{"application/json;charset=x", true}, {"application/merge-patch+json", true},
		{"text/plain", false}, {"application/jsonx", false},
			{"application/x-www-form-urlencoded", false},
		{"text/x+json", false},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_request r = {.content_type = rows[i].type};

		assert_int_equal(hs_request_is_json(&r), rows[i].json);
	}
}

static void cgi_variables_are_taken(void **state)
{
	struct headers given[] = {
		{"REQUEST_METHOD", "POST"}, {"REQUEST_URI", "/a?b"}, {"HTTP_X_REQUEST_ID",
			"my-id.1"},
		{"HTTP_AUTHORIZATION", "Bearer k"}, {"HTTP_HOST", "h:1"}, {"HTTPS", "on"}, {NULL,
			NULL},
	};
	struct headers bare[] = {
		{"SCRIPT_NAME", "/cgi"}, {"PATH_INFO", "/x"}, {"QUERY_STRING", "q=1"},
		{"HTTP_X_REQUEST_ID", "two words"}, {NULL, NULL},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_request r = {.header = header_of, .source = given};

	(void)state;
	hs_request_from_cgi(pool, &r);
	assert_string_equal(r.method_name, "POST");
	assert_string_equal(r.uri, "/a?b");
	assert_string_equal(r.request_id, "my-id.1");
	assert_string_equal(r.authorization, "Bearer k");
	assert_int_equal(r.n_authorization, 1);
	assert_string_equal(r.scheme, "https");

	r = (struct hs_request){.header = header_of, .source = bare};
	hs_request_from_cgi(pool, &r);
	assert_string_equal(r.method_name, "GET");
	assert_string_equal(r.uri, "/cgi/x?q=1");
	assert_string_not_equal(r.request_id, "two words");
	assert_int_equal(strlen(r.request_id), 36);
}

struct bytes {
	const char *p;
	size_t left;
};

static size_t read_bytes(void *arg, char *out, size_t n)
{
	struct bytes *b = arg;

	n = n < 5 ? n : 5;
	n = n < b->left ? n : b->left;
	memcpy(out, b->p, n);
	b->p += n;
	b->left -= n;
	return n;
}

static size_t read_zeros(void *arg, char *out, size_t n)
{
	size_t *left = arg;

	n = n < *left ? n : *left;
	memset(out, 0, n);
	*left -= n;
	return n;
}

static void bodies_are_measured_against_their_length(void **state)
{
	static const struct {
		const char *length, *sent, *body;
		enum hs_body_state outcome;
	} rows[] = {
		{"12", "hello, world", "hello, world", HS_BODY_OK},
		{"5", "hello, world", "hello", HS_BODY_OK},
		{"13", "hello, world", NULL, HS_BODY_SHORT},
		{"1", "", NULL, HS_BODY_SHORT},
		{"0", "", "", HS_BODY_OK},
		{"", "chunked body", "chunked body", HS_BODY_OK},
		{NULL, "chunked body", "chunked body", HS_BODY_OK},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct headers h[] = {{"CONTENT_LENGTH", rows[i].length}, {NULL, NULL}};
		struct bytes b = {rows[i].sent, strlen(rows[i].sent)};
		struct hs_body_source source = {read_bytes, &b};
		struct hs_request r = {.header = header_of, .source = h};

		assert_int_equal(hs_request_read_body(pool, &r, &source), rows[i].outcome);
		if (rows[i].body)
			assert_string_equal(r.body, rows[i].body);
		assert_int_equal(r.has_body, rows[i].body && *rows[i].body);
	}
}

static void a_body_over_the_cap_is_read_but_not_kept(void **state)
{
	struct headers h[] = {{NULL, NULL}};
	size_t left = HS_BODY_MAX + 1;
	struct hs_body_source source = {read_zeros, &left};
	struct hs_request r = {.header = header_of, .source = h};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	assert_int_equal(hs_request_read_body(pool, &r, &source), HS_BODY_OK);
	assert_true(r.body_too_large);
	assert_int_equal(left, 0);
	assert_string_equal(r.body, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_split_before_decoding),
		cmocka_unit_test(a_base_path_is_taken_off),
		cmocka_unit_test(bad_paths_are_refused),
		cmocka_unit_test(query_is_decoded_and_cleaned),
		cmocka_unit_test(query_keeps_order_and_has_a_cap),
		cmocka_unit_test(content_types),
		cmocka_unit_test(cgi_variables_are_taken),
		cmocka_unit_test(bodies_are_measured_against_their_length),
		cmocka_unit_test(a_body_over_the_cap_is_read_but_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
