#include "web/request.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/limits.h"
#include "json/clean.h"

#define REQUEST_ID_BYTES 128
#define READ_CHUNK 16384

static const struct {
	const char *name;
	enum hs_method method;
} methods[] = {
	{"GET", HS_GET},
	{"POST", HS_POST},
	{"PUT", HS_PUT},
	{"PATCH", HS_PATCH},
	{"DELETE", HS_DELETE},
	{"HEAD", HS_HEAD},
	{"OPTIONS", HS_OPTIONS},
};

static enum hs_method method_find(const char *name)
{
	for (size_t i = 0; i < HS_COUNT(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return methods[i].method;
	return HS_METHOD_OTHER;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Two hex digits at s (n bytes left), or -1. */
static int hex_byte(const char *s, size_t n)
{
	int high, low;

	if (n < 2)
		return -1;
	high = hex_digit(s[0]);
	low = hex_digit(s[1]);
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Decode into fresh bytes; *ret_bad tells whether a '%' was not followed by two digits (it is then
 * kept as it stands). */
static char *decode(struct hs_pool *pool, const char *s, size_t n, bool plus_is_blank,
	size_t *ret_n, bool *ret_bad)
{
	char *out = hs_pool_alloc(pool, n + 1);
	size_t len = 0;

	*ret_bad = false;
	for (size_t i = 0; i < n; i++) {
		int byte = s[i] == '%' ? hex_byte(s + i + 1, n - i - 1) : -1;

		if (byte >= 0) {
			out[len++] = (char)byte;
			i += 2;
			continue;
		}
		if (s[i] == '%')
			*ret_bad = true;
		out[len++] = plus_is_blank && s[i] == '+' ? ' ' : s[i];
	}
	out[len] = '\0';
	*ret_n = len;
	return out;
}

char *hs_percent_decode(struct hs_pool *pool, const char *s, size_t n, bool plus_is_blank)
{
	size_t len;
	bool bad;
	char *out = decode(pool, s, n, plus_is_blank, &len, &bad);

	if (bad || memchr(out, '\0', len) || !hs_utf8_valid(out, len))
		return NULL;
	return out;
}

/* Drop bytes that are no UTF-8, in place; returns the new length. */
static size_t drop_invalid(char *s, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n;) {
		uint32_t cp;
		size_t step = hs_utf8_next(s + i, n - i, &cp);

		if (step == 0) {
			i++;
			continue;
		}
		memmove(s + len, s + i, step);
		len += step;
		i += step;
	}
	s[len] = '\0';
	return len;
}

static char *query_text(struct hs_pool *pool, const char *s, size_t n)
{
	size_t len;
	bool bad;
	char *out = decode(pool, s, n, true, &len, &bad);

	len = drop_invalid(out, len);
	return hs_clean_text(pool, out, len);
}

static enum hs_rc parse_query(struct hs_pool *pool, struct hs_request *r, struct hs_err *err)
{
	const char *s = r->raw_query;
	size_t count = 1;

	if (hs_str_empty(s))
		return HS_OK;
	for (const char *p = s; *p; p++)
		count += *p == '&';
	if (count > HS_QUERY_PARAMS_MAX)
		return hs_fail(err, HS_E_BAD_REQUEST, "too many query parameters (at most %d)",
			HS_QUERY_PARAMS_MAX);
	r->query = HS_NEW_ARRAY(pool, struct hs_pair, count);

	while (*s) {
		size_t n = strcspn(s, "&");
		const char *eq = memchr(s, '=', n);
		size_t name_n = eq ? (size_t)(eq - s) : n;

		if (n > 0) {
			struct hs_pair *pair = &r->query[r->n_query++];

			pair->name = query_text(pool, s, name_n);
			pair->value = eq ? query_text(pool, eq + 1, n - name_n - 1) : "";
		}
		s += n + (s[n] == '&');
	}
	return HS_OK;
}

static enum hs_rc parse_path(struct hs_pool *pool, struct hs_request *r, struct hs_err *err)
{
	const char *s = r->raw_path;

	if (*s != '/')
		return hs_fail(err, HS_E_BAD_REQUEST, "the path does not begin with '/'");
	s++;
	while (*s) {
		size_t n = strcspn(s, "/");
		const char *text = hs_percent_decode(pool, s, n, false);

		r->bad_path = text == NULL;
		if (!text)
			return hs_fail(err, HS_E_BAD_REQUEST,
				"the path holds a bad escape, a NUL or bytes that are no UTF-8");
		hs_strs_add(pool, &r->raw_segments, hs_pool_strndup(pool, s, n));
		hs_strs_add(pool, &r->segments, text);
		s += n;
		if (*s == '/') {
			s++;
			r->trailing_slash = *s == '\0';
		}
	}
	return HS_OK;
}

enum hs_rc hs_request_parse(struct hs_pool *pool, struct hs_request *r, struct hs_err *err)
{
	size_t path_n;

	r->method = method_find(r->method_name);
	if (strlen(r->uri) > HS_URI_MAX)
		return hs_fail(err, HS_E_BAD_REQUEST, "the request URI is too long");

	/* absolute form: http://host/path */
	if (*r->uri != '/' && strstr(r->uri, "://")) {
		const char *path = strchr(strstr(r->uri, "://") + 3, '/');

		r->uri = path ? path : "/";
	}
	path_n = strcspn(r->uri, "?#");
	r->raw_path = hs_pool_strndup(pool, r->uri, path_n);
	r->raw_query = r->uri[path_n] == '?' ? r->uri + path_n + 1 : NULL;
	HS_TRY(parse_path(pool, r, err));
	return parse_query(pool, r, err);
}

bool hs_request_below(struct hs_request *r, const struct hs_strs *base)
{
	if (r->segments.n < base->n)
		return false;
	for (size_t i = 0; i < base->n; i++)
		if (strcmp(r->segments.v[i], base->v[i]) != 0)
			return false;
	r->segments.v += base->n;
	r->segments.n -= base->n;
	r->raw_segments.v += base->n;
	r->raw_segments.n -= base->n;
	if (base->n > 0 && r->segments.n == 0)
		r->trailing_slash = false;
	return true;
}

bool hs_request_is_json(const struct hs_request *r)
{
	const char *type = r->content_type;
	size_t n;

	if (hs_str_empty(type))
		return true;
	n = strcspn(type, "; \t");
	if (n == 16 && strncasecmp(type, "application/json", 16) == 0)
		return true;
	return n > 17 && strncasecmp(type, "application/", 12) == 0 &&
		strncasecmp(type + n - 5, "+json", 5) == 0;
}

/* Visible ASCII without quotes, so that it can stand in a log line and a header as it is. */
static bool id_sane(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	if (n == 0 || n > REQUEST_ID_BYTES)
		return false;
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7F || strchr("\"\\<>", s[i]))
			return false;
	return true;
}

static const char *header_or(const struct hs_request *r, const char *name, const char *otherwise)
{
	const char *v = r->header(r, name);

	return hs_str_empty(v) ? otherwise : v;
}

/* The raw URI; servers without REQUEST_URI give SCRIPT_NAME, PATH_INFO and QUERY_STRING. */
static const char *uri_of(struct hs_pool *pool, const struct hs_request *r)
{
	const char *uri = r->header(r, "REQUEST_URI");
	const char *query = r->header(r, "QUERY_STRING");

	if (!hs_str_empty(uri))
		return hs_pool_strdup(pool, uri);
	return hs_pool_printf(pool, "%s%s%s%s", header_or(r, "SCRIPT_NAME", ""),
		header_or(r, "PATH_INFO", ""), hs_str_empty(query) ? "" : "?",
		hs_str_empty(query) ? "" : query);
}

void hs_request_from_cgi(struct hs_pool *pool, struct hs_request *r)
{
	const char *id = r->header(r, "HTTP_X_REQUEST_ID");

	r->method_name = header_or(r, "REQUEST_METHOD", "GET");
	r->uri = uri_of(pool, r);
	r->content_type = header_or(r, "CONTENT_TYPE", NULL);
	r->authorization = r->header(r, "HTTP_AUTHORIZATION");
	if (!r->authorization)
		r->authorization = r->header(r, "REDIRECT_HTTP_AUTHORIZATION");
	if (r->n_authorization == 0)
		r->n_authorization = r->authorization != NULL;
	r->if_none_match = r->header(r, "HTTP_IF_NONE_MATCH");
	r->request_id = id_sane(id) ? hs_pool_strdup(pool, id) : hs_uuid_v7_new(pool);
	r->host = header_or(r, "HTTP_HOST", header_or(r, "SERVER_NAME", "localhost"));
	r->scheme = header_or(r, "REQUEST_SCHEME",
		hs_str_ieq_ascii(r->header(r, "HTTPS"), "on") ? "https" : "http");
	r->remote_addr = header_or(r, "REMOTE_ADDR", "");
}

enum hs_body_state hs_request_read_body(struct hs_pool *pool, struct hs_request *r,
	const struct hs_body_source *source)
{
	struct hs_buf *body = hs_buf_new(pool, HS_BODY_MAX);
	int64_t want = -1, seen = 0;
	char chunk[READ_CHUNK];

	if (!hs_str_to_i64(header_or(r, "CONTENT_LENGTH", "-1"), &want) || want < 0)
		want = -1;
	r->body = "";
	while (want < 0 || seen < want) {
		size_t n, ask = READ_CHUNK;

		if (want >= 0 && (int64_t)ask > want - seen)
			ask = (size_t)(want - seen);
		n = source->read(source->arg, chunk, ask);
		if (n == 0)
			break;
		hs_buf_add(body, chunk, n);
		seen += (int64_t)n;
	}
	if (seen < want)
		return HS_BODY_SHORT;
	r->has_body = seen > 0;
	r->body_too_large = body->failed;
	if (!body->failed) {
		r->body = body->data;
		r->body_bytes = body->len;
	}
	return HS_BODY_OK;
}
