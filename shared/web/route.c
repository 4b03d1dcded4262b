#include "web/route.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/metrics.h"
#include "json/json.h"
#include "web/problem.h"
#include "web/program.h"

#define GONE_INTERVAL_US INT64_C(50000)
#define BODY_ASKS_PACKET ((size_t)1024 * 1024)

static const char *const method_names[] = {
	[HS_GET] = "GET", [HS_POST] = "POST", [HS_PUT] = "PUT", [HS_PATCH] = "PATCH",
	[HS_DELETE] = "DELETE", [HS_HEAD] = "HEAD", [HS_OPTIONS] = "OPTIONS",
};

/* ---- patterns ---- */

static size_t part_len(const char *p)
{
	return strcspn(p, "/");
}

static const char *part_next(const char *p, size_t n)
{
	return p + n + (p[n] == '/');
}

/* Values of {…} are appended to params, when it is not NULL. */
static bool pattern_match(struct hs_pool *pool, const char *pattern, const struct hs_strs *segments,
	struct hs_strs *params)
{
	const char *p = pattern + 1;

	for (size_t i = 0; i < segments->n; i++) {
		const char *segment = segments->v[i];
		size_t n = part_len(p);

		if (n == 0 || *segment == '\0')
			return false;
		if (*p == '{') {
			if (params)
				hs_strs_add(pool, params, segment);
		} else if (strlen(segment) != n || memcmp(segment, p, n) != 0) {
			return false;
		}
		p = part_next(p, n);
	}
	return *p == '\0';
}

/* Below 0 when a is the more fixed of two patterns that match one path, 0 when they are equal. */
static int pattern_order(const char *a, const char *b)
{
	const char *p = a + 1, *q = b + 1;

	while (*p && *q) {
		if (*p == '{' && *q != '{')
			return 1;
		if (*p != '{' && *q == '{')
			return -1;
		p = part_next(p, part_len(p));
		q = part_next(q, part_len(q));
	}
	return 0;
}

/* Do the two patterns match exactly the same paths? */
static bool pattern_equal(const char *a, const char *b)
{
	const char *p = a + 1, *q = b + 1;

	while (*p && *q) {
		size_t n = part_len(p), m = part_len(q);

		if ((*p == '{') != (*q == '{'))
			return false;
		if (*p != '{' && (n != m || memcmp(p, q, n) != 0))
			return false;
		p = part_next(p, n);
		q = part_next(q, m);
	}
	return *p == *q;
}

static const struct hs_route *row_find(struct hs_ctx *c, bool *ret_path_known,
	unsigned *ret_methods)
{
	const struct hs_route *best = NULL;

	*ret_path_known = false;
	*ret_methods = 0;
	for (const struct hs_route *const *t = c->app->program->tables; *t; t++) {
		for (const struct hs_route *r = *t; r->pattern; r++) {
			if (!pattern_match(c->pool, r->pattern, &c->req->segments, NULL))
				continue;
			*ret_path_known = true;
			*ret_methods |= 1u << r->method;
			if (r->method != c->req->method)
				continue;
			if (!best || pattern_order(r->pattern, best->pattern) < 0)
				best = r;
		}
	}
	return best;
}

const char *hs_param(const struct hs_ctx *c, const char *name)
{
	const char *p = c->route->pattern + 1;
	size_t index = 0, want = strlen(name);

	while (*p) {
		size_t n = part_len(p);

		if (*p == '{') {
			if (n == want + 2 && memcmp(p + 1, name, want) == 0)
				return c->params.v[index];
			index++;
		}
		p = part_next(p, n);
	}
	assert(!"the pattern has no such parameter");
	return NULL;
}

static bool pattern_has(const char *pattern, const char *braced)
{
	return strstr(pattern, braced) != NULL;
}

/* ---- tables ---- */

static enum hs_rc row_check(const struct hs_route *r, struct hs_err *err)
{
	size_t n = strlen(r->pattern);

	if (r->pattern[0] != '/' || strstr(r->pattern, "//") || (n > 1 && r->pattern[n - 1] == '/'))
		return hs_fail(err, HS_E_CONFIG, "route '%s' is malformed", r->pattern);
	if (!r->fn || (size_t)r->method >= HS_COUNT(method_names))
		return hs_fail(err, HS_E_CONFIG, "route '%s' has no function or method",
			r->pattern);
	return HS_OK;
}

static enum hs_rc row_check_twins(const struct hs_route *const *tables, const struct hs_route *r,
	struct hs_err *err)
{
	for (const struct hs_route *const *t = tables; *t; t++)
		for (const struct hs_route *o = *t; o->pattern; o++)
			if (o != r && o->method == r->method &&
				pattern_equal(o->pattern, r->pattern))
				return hs_fail(err, HS_E_CONFIG, "routes '%s' and '%s' are equal",
					r->pattern, o->pattern);
	return HS_OK;
}

enum hs_rc hs_routes_check(const struct hs_route *const *tables, struct hs_err *err)
{
	for (const struct hs_route *const *t = tables; *t; t++) {
		for (const struct hs_route *r = *t; r->pattern; r++) {
			HS_TRY(row_check(r, err));
			HS_TRY(row_check_twins(tables, r, err));
		}
	}
	return HS_OK;
}

void hs_routes_print(const struct hs_route *const *tables, const struct hs_strs *base,
	struct hs_buf *out)
{
	for (const struct hs_route *const *t = tables; *t; t++) {
		for (const struct hs_route *r = *t; r->pattern; r++) {
			hs_buf_printf(out, "%s ", method_names[r->method]);
			for (size_t i = 0; i < base->n; i++)
				hs_buf_printf(out, "/%s", base->v[i]);
			hs_buf_printf(out, "%s\n", r->pattern);
		}
	}
}

/* ---- finding the row ---- */

static enum hs_rc method_not_allowed(struct hs_ctx *c, unsigned methods)
{
	struct hs_strs names = {0};

	for (size_t m = 0; m < HS_COUNT(method_names); m++)
		if (methods & (1u << m))
			hs_strs_add(c->pool, &names, method_names[m]);
	hs_response_header(c->res, "Allow", hs_strs_join(c->pool, &names, ", "));
	return hs_fail(&c->err, HS_E_METHOD, "%s is not allowed here", c->req->method_name);
}

static bool host_sane(const char *host)
{
	for (const char *s = host; *s; s++)
		if (*s <= ' ' || *s >= 0x7F || strchr("/\\?#@\"<>", *s))
			return false;
	return *host != '\0';
}

static void redirect_slash(struct hs_ctx *c)
{
	const struct hs_request *req = c->req;
	int path_n = (int)strlen(req->raw_path) - 1;

	c->res->status = 307;
	hs_response_header(c->res, "Location",
		hs_pool_printf(c->pool, "%s://%s%.*s%s%s", req->scheme,
			host_sane(req->host) ? req->host : "localhost", path_n, req->raw_path,
			req->raw_query ? "?" : "", req->raw_query ? req->raw_query : ""));
}

/* Sets c->route, params and bank_id; a 307 leaves c->route NULL and sets the status. */
static enum hs_rc find_route(struct hs_ctx *c)
{
	bool known;
	unsigned methods;
	const struct hs_route *r = row_find(c, &known, &methods);

	if (known && c->req->trailing_slash) {
		redirect_slash(c);
		return HS_OK;
	}
	if (!known)
		return hs_fail(&c->err, HS_E_NOT_FOUND, "Not Found");
	if (!r)
		return method_not_allowed(c, methods);
	c->route = r;
	(void)pattern_match(c->pool, r->pattern, &c->req->segments, &c->params);
	if (pattern_has(r->pattern, "{bank_id}"))
		c->bank_id = hs_param(c, "bank_id");
	return HS_OK;
}

/* ---- checking the input ---- */

/* What the database takes in one packet bounds the body, when it is known. */
static size_t body_cap(struct hs_ctx *c)
{
	struct hs_err ignored = {0};
	uint64_t packet;

	if (c->req->body_bytes <= BODY_ASKS_PACKET || !c->db)
		return HS_BODY_MAX;
	if (hs_db_max_packet(c->db) == 0 && hs_db_ping(c->db, &ignored) != HS_OK)
		return HS_BODY_MAX;
	packet = hs_db_max_packet(c->db);
	if (packet <= HS_PACKET_MARGIN || packet - HS_PACKET_MARGIN >= HS_BODY_MAX)
		return HS_BODY_MAX;
	return packet - HS_PACKET_MARGIN;
}

enum hs_rc hs_request_fits(struct hs_ctx *c)
{
	size_t cap = body_cap(c);

	if (!c->req->body_too_large && c->req->body_bytes <= cap)
		return HS_OK;
	return hs_fail(&c->err, HS_E_TOO_LARGE, "Request body too large (at most %zu bytes)", cap);
}

static void ignore_name(struct hs_ctx *c, const char *name)
{
	if (!hs_strs_has(&c->ignored, name))
		hs_strs_add(c->pool, &c->ignored, name);
}

static char *quoted(struct hs_pool *pool, const char *s)
{
	struct hs_buf *b = hs_buf_new(pool, HS_URI_MAX * 8);

	hs_json_quote(b, s, strlen(s));
	return b->data;
}

/* Rows that take nothing beside their query table: a body or another key was meant for more. */
static enum hs_rc refuse_extras(struct hs_ctx *c, const struct hs_strs *unknown, struct hs_err *err)
{
	const char *msg = "Extra inputs are not permitted";

	if (!(c->route->flags & HS_R_NO_BODY))
		return HS_OK;
	for (size_t i = 0; i < unknown->n; i++)
		hs_fault_add(c->pool, err, "extra_forbidden",
			hs_pool_printf(c->pool, "[\"query\",%s]", quoted(c->pool, unknown->v[i])),
			msg, "null", NULL);
	if (c->req->has_body || c->req->body_too_large)
		hs_fault_add(c->pool, err, "extra_forbidden", "[\"body\"]", msg, "null", NULL);
	return err->fields ? hs_fail(err, HS_E_INVALID, "request did not validate") : HS_OK;
}

static enum hs_rc check_query(struct hs_ctx *c, void **ret, struct hs_err *err)
{
	struct hs_strs unknown = {0};
	enum hs_rc rc = HS_OK;

	*ret = NULL;
	if (c->route->query) {
		rc = hs_check_query(c->pool, c->route->query, c->req->query, c->req->n_query, ret,
			&unknown, err);
	} else {
		for (size_t i = 0; i < c->req->n_query; i++)
			hs_strs_add(c->pool, &unknown, c->req->query[i].name);
	}
	for (size_t i = 0; i < unknown.n; i++)
		ignore_name(c, unknown.v[i]);
	HS_TRY(rc);
	return refuse_extras(c, &unknown, err);
}

static enum hs_rc body_missing(struct hs_ctx *c, struct hs_err *err)
{
	hs_fault_add(c->pool, err, "missing", "[\"body\"]", "Field required", "null", NULL);
	return hs_fail(err, HS_E_INVALID, "request did not validate");
}

static enum hs_rc body_no_json(struct hs_ctx *c, const struct hs_json_fault *fault,
	struct hs_err *err)
{
	hs_fault_add(c->pool, err, "json_invalid",
		hs_pool_printf(c->pool, "[\"body\",%zu]", fault->offset_chars),
		"JSON decode error", "{}",
		hs_pool_printf(c->pool, "{\"error\":%s}", quoted(c->pool, fault->text)));
	return hs_fail(err, HS_E_INVALID, "request did not validate");
}

/* The body as a JSON value; a body of another type counts as one string. */
static enum hs_rc body_value(struct hs_ctx *c, json_t **ret, struct hs_err *err)
{
	const struct hs_request *req = c->req;
	struct hs_json_fault fault = {0};
	struct hs_err parse = {0};
	json_t *text;

	if (hs_request_is_json(req)) {
		if (hs_json_parse(c->pool, req->body, req->body_bytes, ret, &fault, &parse) !=
			HS_OK)
			return body_no_json(c, &fault, err);
		return HS_OK;
	}
	text = json_stringn(req->body, req->body_bytes);
	*ret = hs_json_keep(c->pool, text ? text : json_string(""));
	return HS_OK;
}

static enum hs_rc check_body(struct hs_ctx *c, void **ret, struct hs_err *err)
{
	const struct hs_shape *shape = c->route->body;
	bool optional = c->route->flags & HS_R_BODY_OPTIONAL;
	struct hs_strs unknown = {0};
	json_t *value = NULL;
	enum hs_rc rc;

	*ret = NULL;
	if (!shape)
		return HS_OK;
	if (c->req->has_body)
		HS_TRY(body_value(c, &value, err));
	else if (!optional)
		return body_missing(c, err);
	if (optional && (!value || json_is_null(value)))
		value = hs_json_keep(c->pool, json_object());
	rc = hs_check_object(c->pool, shape, "body", value, ret, &unknown, err);
	for (size_t i = 0; i < unknown.n; i++)
		ignore_name(c, unknown.v[i]);
	return rc;
}

/* The faults of b follow those of a. */
static void join_faults(struct hs_err *a, const struct hs_err *b)
{
	if (!b->fields)
		return;
	if (a->fields_last)
		a->fields_last->next = b->fields;
	else
		a->fields = b->fields;
	a->fields_last = b->fields_last;
	a->n_fields += b->n_fields;
}

static enum hs_rc check_input(struct hs_ctx *c, void **ret_query, void **ret_body)
{
	struct hs_err in_query = {0}, in_body = {0};
	enum hs_rc query = check_query(c, ret_query, &in_query);
	enum hs_rc body = check_body(c, ret_body, &in_body);

	if (query == HS_OK && body == HS_OK)
		return HS_OK;
	c->err = query != HS_OK ? in_query : in_body;
	if (query != HS_OK && body != HS_OK)
		join_faults(&c->err, &in_body);
	return c->err.rc;
}

/* ---- key, feature, long calls ---- */

static enum hs_rc check_feature(struct hs_ctx *c)
{
	const struct hs_route *r = c->route;

	if (r->feature == 0 || hs_cfg_bool(c->cfg, (enum hs_setting_id)(r->feature - 1)))
		return HS_OK;
	return hs_fail(&c->err, HS_E_NOT_FOUND, "%s",
		r->feature_text ? r->feature_text : "Not Found");
}

bool hs_key_equal(const char *given, const char *key)
{
	size_t n = strlen(given), m = strlen(key);
	volatile unsigned diff = n != m;

	for (size_t i = 0; i < m; i++)
		diff |= (unsigned char)key[i] ^ (unsigned char)given[i < n ? i : n];
	return diff == 0;
}

const char *hs_request_token(const struct hs_ctx *c)
{
	const char *given = c->req->authorization;

	if (!given)
		return NULL;
	if (strncasecmp(given, "bearer ", 7) == 0)
		given += 7;
	return hs_str_trim(c->pool, given);
}

static enum hs_rc check_key(struct hs_ctx *c)
{
	const char *key = hs_cfg_str(c->cfg, HS_S_tenant_api_key);
	const char *given = hs_request_token(c);

	if (hs_str_empty(key) || (c->route->flags & HS_R_OPEN))
		return HS_OK;
	if (c->req->n_authorization > 1)
		return hs_fail(&c->err, HS_E_AUTH,
			"Authentication failed: more than one Authorization header");
	if (!given || !hs_key_equal(given, key))
		return hs_fail(&c->err, HS_E_AUTH, "Authentication failed: Invalid API key");
	return HS_OK;
}

static bool is_long(const struct hs_ctx *c, const void *query, const void *body)
{
	const struct hs_route *r = c->route;

	return (r->flags & HS_R_LONG) && (!r->long_call || r->long_call(c->cfg, query, body));
}

enum hs_rc hs_long_enter(struct hs_ctx *c, const char *what)
{
	struct hs_long_gate *gate = c->app->long_gate;

	if (!gate || gate->enter(gate))
		return HS_OK;
	return hs_fail(&c->err, HS_E_CAPACITY,
		"Server is at capacity for '%s' (%d concurrent); try again shortly.", what, gate->max);
}

void hs_long_leave(struct hs_ctx *c)
{
	struct hs_long_gate *gate = c->app->long_gate;

	if (gate)
		gate->leave(gate);
}

static enum hs_rc call(struct hs_ctx *c, const void *query, const void *body)
{
	enum hs_rc rc;

	if (!is_long(c, query, body))
		return c->route->fn(c, query, body);
	HS_TRY(hs_long_enter(c, c->route->long_name ? c->route->long_name : "long calls"));
	rc = c->route->fn(c, query, body);
	hs_long_leave(c);
	return rc;
}

static enum hs_rc serve_row(struct hs_ctx *c)
{
	void *query, *body;

	HS_TRY(hs_request_fits(c));
	HS_TRY(check_input(c, &query, &body));
	HS_TRY(check_feature(c));
	if (c->route->format)
		HS_TRY(c->route->format(c));
	HS_TRY(check_key(c));
	HS_TRY(call(c, query, body));
	if (c->res->status == 0)
		return hs_fail(&c->err, HS_E_INTERNAL, "the function of the route gave no answer");
	return hs_buf_ok(c->res->body, "answer", &c->err);
}

static enum hs_rc serve(struct hs_ctx *c)
{
	enum hs_rc rc;
	int slot;

	HS_TRY(find_route(c));
	if (!c->route)
		return HS_OK;
	slot = hs_metrics_begin(method_names[c->route->method], c->route->pattern);
	rc = serve_row(c);
	hs_metrics_end(slot);
	return rc;
}

char *hs_ignored_header(struct hs_pool *pool, const struct hs_strs *names)
{
	struct hs_buf *b = hs_buf_new(pool, HS_IGNORED_HEADER_BYTES);

	for (size_t i = 0; i < names->n; i++) {
		const char *s = names->v[i];
		size_t before = b->len, n = strlen(s);

		if (before > 0)
			hs_buf_str(b, ", ");
		for (size_t at = 0; at < n;) {
			uint32_t cp;
			size_t step = hs_utf8_next(s + at, n - at, &cp);

			hs_buf_char(b, step == 1 && cp >= ' ' && cp < 0x7F ? s[at] : '?');
			at += step ? step : 1;
		}
		if (b->failed) {
			hs_buf_cut(b, before);
			break;
		}
	}
	return hs_pool_strndup(pool, b->data, b->len);
}

void hs_route_serve(struct hs_ctx *c)
{
	enum hs_rc rc = c->err.rc;

	if (c->app->program->serve && c->app->program->serve(c))
		return;
	if (rc == HS_OK)
		rc = serve(c);
	if (rc != HS_OK) {
		if (c->err.rc != rc)
			(void)hs_fail(&c->err, rc, "%s", hs_rc_text(rc));
		hs_problem(c->res, &c->err);
	}
	if (c->route && c->ignored.n > 0)
		hs_response_header(c->res, "X-Ignored-Params",
			hs_ignored_header(c->pool, &c->ignored));
}

/* ---- for functions ---- */

bool hs_request_gone(struct hs_ctx *c)
{
	int64_t now = hs_mono_us();

	if (c->gone || !c->req->gone ||
		(c->gone_asked_us && now - c->gone_asked_us < GONE_INTERVAL_US))
		return c->gone;
	c->gone_asked_us = now;
	c->gone = c->req->gone(c->req);
	return c->gone;
}

struct hs_out hs_reply_status(struct hs_ctx *c, int status)
{
	c->res->status = status;
	hs_buf_reset(c->res->body);
	return hs_out_to(c->res->body);
}

struct hs_out hs_reply(struct hs_ctx *c)
{
	return hs_reply_status(c, 200);
}

void hs_reply_etag(struct hs_ctx *c)
{
	c->res->etag = true;
}
