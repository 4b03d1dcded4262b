#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "web/program.h"
#include "web/route.h"

/* ---- a small program ---- */

static const char *called;
static char seen_param[200];

#define FN(name)                                                                                   \
	static enum hs_rc name(struct hs_ctx *c, const void *query, const void *body)              \
	{                                                                                          \
		struct hs_out o = hs_reply(c);                                                     \
		(void)query;                                                                       \
		(void)body;                                                                        \
		called = #name;                                                                    \
		snprintf(seen_param, sizeof(seen_param), "%s",                                     \
			c->params.n > 0 ? c->params.v[c->params.n - 1] : "");                      \
		hs_out_open(&o, NULL, '{');                                                        \
		hs_out_close(&o, '}');                                                             \
		return HS_OK;                                                                      \
	}
FN(root)
FN(list)
FN(one)
FN(fixed)
FN(drop)
FN(make)
FN(open_row)
FN(clear)
FN(slow)

static enum hs_rc broken(struct hs_ctx *c, const void *query, const void *body)
{
	(void)query;
	(void)body;
	(void)hs_reply(c);
	hs_buf_str(c->res->body, "{\"half\":");
	return hs_fail(&c->err, HS_E_DB, "SELECT failed");
}

static enum hs_rc bad_id(struct hs_ctx *c)
{
	return strcmp(hs_param(c, "id"), "bad") == 0 ?
		hs_fail(&c->err, HS_E_BAD_REQUEST, "Invalid id") : HS_OK;
}

struct body {
	struct hs_seen seen;
	const char *name;
	int64_t n;
};
static const struct hs_field body_fields[] = {
	HS_STR(struct body, name, .flags = HS_REQUIRED),
	HS_INT(struct body, n, .def = "1"),
};
static const struct hs_shape body_shape = HS_SHAPE(body, body_fields);
struct query {
	struct hs_seen seen;
	int64_t limit;
};
static const struct hs_field query_fields[] = {HS_INT(struct query, limit, HS_RANGE(0, 10),
	.def = "5")};
static const struct hs_shape query_shape = HS_SHAPE(query, query_fields);

static bool slow_when_named_slow(const struct hs_config *cfg, const void *query, const void *body)
{
	(void)cfg;
	(void)query;
	return strcmp(((const struct body *)body)->name, "slow") == 0;
}

static const struct hs_route rows[] = {
	HS_ROUTE(GET, "/", root),
	HS_ROUTE(GET, "/things", list, .query = &query_shape),
	HS_ROUTE(POST, "/things", make, .query = &query_shape, .body = &body_shape),
	HS_ROUTE(GET, "/things/{id}", one, .format = bad_id),
	HS_ROUTE(GET, "/things/fixed", fixed),
	HS_ROUTE(DELETE, "/things/{id}", drop),
	HS_ROUTE(DELETE, "/things", clear, .query = &query_shape, .flags = HS_R_NO_BODY),
	HS_ROUTE(PUT, "/things", make, .body = &body_shape, .flags = HS_R_BODY_OPTIONAL),
	HS_ROUTE(GET, "/open", open_row, .flags = HS_R_OPEN),
	HS_ROUTE(GET, "/off", one, .feature = HS_S_enable_bank_llm_health + 1,
		.feature_text = "switched off"),
	HS_ROUTE(GET, "/broken", broken),
	HS_ROUTE(POST, "/slow", slow, .body = &body_shape, .flags = HS_R_LONG,
		.long_call = slow_when_named_slow),
	{.pattern = NULL},
};
static const struct hs_route *const tables[] = {rows, NULL};
static const struct hs_program program = {.name = "test", .tables = tables};

struct answer {
	int status;
	const char *body, *allow, *location, *ignored, *retry;
};

struct given {
	const char *method, *uri, *body, *type, *key;
	size_t keys;
	struct hs_config *cfg;
	struct hs_long_gate *gate;
	const struct hs_program *program;
};

static struct answer ask(struct hs_pool *pool, struct given g)
{
	struct hs_config *cfg = g.cfg ? g.cfg : hs_config_defaults(pool);
	struct hs_app app = {.program = g.program ? g.program : &program, .cfg = cfg, .pool = pool, .long_gate = g.gate};
	struct hs_request req = {
		.method_name = g.method, .uri = g.uri, .body = g.body ? g.body : "",
		.body_bytes = g.body ? strlen(g.body) : 0, .has_body = g.body != NULL,
			.content_type = g.type,
		.authorization = g.key, .n_authorization = g.keys ? g.keys : g.key != NULL,
			.host = "h:8",
		.scheme = "http", .request_id = "r",
	};
	struct hs_response res;
	struct hs_ctx c = {.app = &app, .cfg = cfg, .pool = pool, .req = &req, .res = &res};

	called = "nothing";
	hs_response_init(&res, pool);
	if (hs_request_parse(pool, &req, &c.err) != HS_OK)
		assert_int_not_equal(c.err.rc, HS_OK);
	hs_route_serve(&c);
	return (struct answer){
		.status = res.status, .body = res.body->data, .allow = hs_response_header_get(&res,
			"Allow"),
		.location = hs_response_header_get(&res, "Location"),
		.ignored = hs_response_header_get(&res, "X-Ignored-Params"),
		.retry = hs_response_header_get(&res, "Retry-After"),
	};
}

/* ---- tests ---- */

static void rows_are_found(void **state)
{
	static const struct {
		const char *method, *uri;
		int status;
		const char *called, *param;
	} cases[] = {
		{"GET", "/", 200, "root", ""},
		{"GET", "/things", 200, "list", ""},
		{"GET", "/things/7", 200, "one", "7"},
		{"GET", "/things/fixed", 200, "fixed", ""},
		{"DELETE", "/things/fixed", 200, "drop", "fixed"},
		{"GET", "/th%69ngs/a%2Fb", 200, "one", "a/b"},
		{"GET", "/things/%2e%2e", 200, "one", ".."},
		{"GET", "/things/bad", 400, "nothing", NULL},
		{"GET", "/things/a/b", 404, "nothing", NULL},
		{"GET", "/things//", 404, "nothing", NULL},
		{"GET", "//things", 404, "nothing", NULL},
		{"GET", "/Things", 404, "nothing", NULL},
		{"GET", "/things/%zz", 400, "nothing", NULL},
		{"GET", "/nowhere", 404, "nothing", NULL},
		{"POST", "/nowhere/", 404, "nothing", NULL},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct answer a = ask(pool, (struct given){.method = cases[i].method,
			.uri = cases[i].uri});

		assert_int_equal(a.status, cases[i].status);
		assert_string_equal(called, cases[i].called);
		if (cases[i].param)
			assert_string_equal(seen_param, cases[i].param);
		if (a.status == 404)
			assert_string_equal(a.body, "{\"detail\":\"Not Found\"}");
	}
}

static void other_methods_are_405_with_allow(void **state)
{
	static const struct {
		const char *method, *uri, *allow;
	} cases[] = {
		{"PATCH", "/things", "GET, POST, PUT, DELETE"}, {"HEAD", "/things/1",
			"GET, DELETE"},
		{"OPTIONS", "/open", "GET"}, {"BREW", "/open", "GET"}, {"get", "/open", "GET"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct answer a = ask(pool, (struct given){.method = cases[i].method,
			.uri = cases[i].uri});

		assert_int_equal(a.status, 405);
		assert_string_equal(a.allow, cases[i].allow);
		assert_string_equal(a.body, "{\"detail\":\"Method Not Allowed\"}");
	}
}

static void a_final_slash_is_redirected(void **state)
{
	static const struct {
		const char *method, *uri, *location;
	} cases[] = {
		{"GET", "/things/", "http://h:8/things"},
		{"BREW", "/things/a%2Fb/?x=1&y", "http://h:8/things/a%2Fb?x=1&y"},
		{"POST", "/open/?", "http://h:8/open?"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct answer a = ask(pool, (struct given){.method = cases[i].method,
			.uri = cases[i].uri});

		assert_int_equal(a.status, 307);
		assert_string_equal(a.location, cases[i].location);
		assert_string_equal(called, "nothing");
	}
}

static void bodies_are_checked(void **state)
{
	static const struct {
		const char *method, *body, *type;
		int status;
		const char *shows;
	} cases[] = {
		{"POST", "{\"name\":\"a\"}", NULL, 200, "{}"},
		{"POST", "{\"name\":\"a\"}", "text/plain", 422, "model_attributes_type"},
		{"POST", NULL, NULL, 422,
			"\"loc\":[\"body\"],\"msg\":\"Field required\",\"input\":null"},
		{"POST", "null", NULL, 422, "model_attributes_type"},
		{"POST", "[]", NULL, 422, "model_attributes_type"},
		{"POST", "{\"name\":", NULL, 422, "json_invalid"},
		{"POST", "{\"name\":\"\xff\"}", NULL, 422, "json_invalid"},
		{"POST", "{}", NULL, 422, "[\"body\",\"name\"]"},
		{"POST", "{\"name\":1,\"n\":\"x\"}", NULL, 422, "int_parsing"},
		{"PUT", NULL, NULL, 422, "[\"body\",\"name\"]"},
		{"PUT", "null", NULL, 422, "[\"body\",\"name\"]"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct answer a = ask(pool, (struct given){.method = cases[i].method,
			.uri = "/things",
			.body = cases[i].body, .type = cases[i].type});

		assert_int_equal(a.status, cases[i].status);
		assert_non_null(strstr(a.body, cases[i].shows));
	}
}

static void query_and_body_faults_come_together(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct answer a = ask(pool, (struct given){.method = "POST",
		.uri = "/things?limit=99&foo=1", .body = "{\"bar\":1}"});
	const char *query = strstr(a.body, "[\"query\",\"limit\"]"), *body = strstr(a.body,
		"[\"body\",\"name\"]");

	(void)state;
	assert_int_equal(a.status, 422);
	assert_non_null(query);
	assert_non_null(body);
	assert_true(query < body);
	assert_string_equal(a.ignored, "foo, bar");
}

static void a_row_without_body_refuses_more(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	assert_int_equal(ask(pool, (struct given){.method = "DELETE",
		.uri = "/things?limit=1"}).status, 200);
	assert_int_equal(ask(pool, (struct given){.method = "DELETE",
		.uri = "/things?foo=1"}).status, 422);
	assert_string_equal(called, "nothing");
	assert_int_equal(ask(pool, (struct given){.method = "DELETE", .uri = "/things",
		.body = "{}"}).status, 422);
	assert_string_equal(called, "nothing");
}

static void checks_come_in_order(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = hs_config_defaults(pool);
	struct hs_err err = {0};

	(void)state;
	assert_int_equal(hs_config_set(cfg, "tenant_api_key", "secret", &err), HS_OK);
	assert_int_equal(ask(pool, (struct given){.method = "POST", .uri = "/things", .body = "{}",
		.cfg = cfg}).status, 422);
	assert_int_equal(ask(pool, (struct given){.method = "GET", .uri = "/off",
		.cfg = cfg}).status, 404);
	assert_int_equal(ask(pool, (struct given){.method = "GET", .uri = "/things/bad",
		.cfg = cfg}).status, 400);
	assert_int_equal(ask(pool, (struct given){.method = "GET", .uri = "/things/1",
		.cfg = cfg}).status, 401);
	assert_int_equal(ask(pool, (struct given){.method = "GET", .uri = "/open",
		.cfg = cfg}).status, 200);
}

static void keys_are_compared(void **state)
{
	static const struct {
		const char *header;
		size_t count;
		int status;
	} cases[] = {
		{"Bearer secret", 1, 200}, {"bearer   secret  ", 1, 200}, {"secret", 1, 200},
			{"Secret", 1, 401},
		{"Bearer secre", 1, 401}, {"Bearer secrett", 1, 401}, {"", 1, 401}, {"Bearer ", 1,
			401},
		{"Basic secret", 1, 401}, {NULL, 0, 401}, {"Bearer secret", 2, 401},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_config *cfg = hs_config_defaults(pool);
		struct hs_err err = {0};
		struct answer a;

		assert_int_equal(hs_config_set(cfg, "tenant_api_key", "secret", &err), HS_OK);
		a = ask(pool, (struct given){.method = "GET", .uri = "/things", .cfg = cfg,
			.key = cases[i].header, .keys = cases[i].count});
		assert_int_equal(a.status, cases[i].status);
		if (a.status == 401)
			assert_non_null(strstr(a.body, "Authentication failed: "));
	}
}

static void half_an_answer_is_never_sent(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct answer a = ask(pool, (struct given){.method = "GET", .uri = "/broken"});

	(void)state;
	assert_int_equal(a.status, 500);
	assert_string_equal(a.body, "{\"detail\":\"database error\"}");
}

static int entered, left;
static bool enter(struct hs_long_gate *g)
{
	entered++;
	return g->running < g->max;
}
static void leave(struct hs_long_gate *g)
{
	(void)g;
	left++;
}

static void long_calls_take_a_slot(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_long_gate gate = {.enter = enter, .leave = leave, .max = 1};
	struct given g = {.method = "POST", .uri = "/slow", .gate = &gate};
	struct answer a;

	(void)state;
	entered = left = 0;
	g.body = "{\"name\":\"fast\"}";
	assert_int_equal(ask(pool, g).status, 200);
	assert_int_equal(entered, 0);
	g.body = "{\"name\":\"slow\"}";
	assert_int_equal(ask(pool, g).status, 200);
	assert_int_equal(entered, 1);
	assert_int_equal(left, 1);
	gate.running = 1;
	a = ask(pool, g);
	assert_int_equal(a.status, 503);
	assert_string_equal(a.retry, "1");
	assert_string_equal(called, "nothing");
	assert_int_equal(left, 1);
}

static void ignored_names_are_cut_at_a_name(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_strs names = {0};
	char *text;

	(void)state;
	hs_strs_add(pool, &names, "a\nb");
	hs_strs_add(pool, &names, "été🎉");
	assert_string_equal(hs_ignored_header(pool, &names), "a?b, ?t??");
	for (int i = 0; i < 1000; i++)
		hs_strs_add(pool, &names, hs_pool_printf(pool, "name%04d", i));
	text = hs_ignored_header(pool, &names);
	assert_true(strlen(text) <= HS_IGNORED_HEADER_BYTES);
	assert_true(strlen(text) > HS_IGNORED_HEADER_BYTES - 12);
	assert_memory_equal(text + strlen(text) - 8, "name", 4);
}

static bool takes_odd_paths(struct hs_ctx *c)
{
	struct hs_out o;

	if (c->req->segments.n != 1 || strcmp(c->req->segments.v[0], "odd") != 0)
		return false;
	o = hs_reply(c);
	hs_out_raw(&o, NULL, "[1]", NULL);
	return true;
}

/* Any method, any body, the final slash: nothing is asked of the tables. */
static void a_program_may_take_requests_whole(void **state)
{
	static const struct hs_program odd = {.name = "test", .tables = tables, .serve = takes_odd_paths};
	static const char *const methods[] = {"GET", "POST", "BREW"};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct answer a;

	(void)state;
	for (size_t i = 0; i < HS_COUNT(methods); i++) {
		a = ask(pool, (struct given){methods[i], "/odd/", .body = "{", .program = &odd});
		assert_int_equal(a.status, 200);
		assert_string_equal(a.body, "[1]");
	}
	assert_int_equal(ask(pool, (struct given){"GET", "/things", .program = &odd}).status, 200);
	assert_int_equal(ask(pool, (struct given){"GET", "/odd", .body = NULL}).status, 404);
}

static void tables_are_checked(void **state)
{
	static const struct hs_route twins[] = {
		HS_ROUTE(GET, "/a/{x}/b", one), HS_ROUTE(GET, "/a/{y}/b", list), {.pattern = NULL},
	};
	static const struct hs_route slash[] = {HS_ROUTE(GET, "/a/", one), {.pattern = NULL}};
	static const struct hs_route fine[] = {
		HS_ROUTE(GET, "/a/{x}", one), HS_ROUTE(PUT, "/a/{x}", one), HS_ROUTE(GET, "/a/b",
			one),
		{.pattern = NULL},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_buf *text = hs_buf_new(pool, 10000);
	struct hs_strs base = {0};
	struct hs_err err = {0};

	(void)state;
	assert_int_equal(hs_routes_check((const struct hs_route *const[]){twins, NULL}, &err),
		HS_E_CONFIG);
	assert_int_equal(hs_routes_check((const struct hs_route *const[]){slash, NULL}, &err),
		HS_E_CONFIG);
	assert_int_equal(hs_routes_check((const struct hs_route *const[]){fine, NULL}, &err),
		HS_OK);
	assert_int_equal(hs_routes_check(tables, &err), HS_OK);
	hs_routes_print((const struct hs_route *const[]){fine, NULL}, &base, text);
	assert_string_equal(text->data, "GET /a/{x}\nPUT /a/{x}\nGET /a/b\n");
	hs_buf_reset(text);
	base = hs_str_split(pool, "/mem/ory/", '/');
	hs_routes_print((const struct hs_route *const[]){slash, NULL}, &base, text);
	assert_string_equal(text->data, "GET /mem/ory/a/\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found),
		cmocka_unit_test(other_methods_are_405_with_allow),
		cmocka_unit_test(a_final_slash_is_redirected),
		cmocka_unit_test(bodies_are_checked),
		cmocka_unit_test(query_and_body_faults_come_together),
		cmocka_unit_test(a_row_without_body_refuses_more),
		cmocka_unit_test(checks_come_in_order),
		cmocka_unit_test(keys_are_compared),
		cmocka_unit_test(half_an_answer_is_never_sent),
		cmocka_unit_test(long_calls_take_a_slot),
		cmocka_unit_test(ignored_names_are_cut_at_a_name),
		cmocka_unit_test(a_program_may_take_requests_whole),
		cmocka_unit_test(tables_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
