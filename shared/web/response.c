#include "web/response.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"

#define HEAD_MAX ((size_t)64 * 1024)

static const struct {
	int status;
	const char *text;
} status_texts[] = {
	{200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"},
	{304, "Not Modified"}, {307, "Temporary Redirect"}, {400, "Bad Request"},
	{401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
	{405, "Method Not Allowed"}, {406, "Not Acceptable"}, {408, "Request Timeout"},
	{409, "Conflict"}, {410, "Gone"}, {413, "Content Too Large"}, {414, "URI Too Long"},
	{415, "Unsupported Media Type"}, {422, "Unprocessable Content"}, {429, "Too Many Requests"},
	{499, "Client Closed Request"}, {500, "Internal Server Error"}, {501, "Not Implemented"},
	{502, "Bad Gateway"}, {503, "Service Unavailable"}, {504, "Gateway Timeout"},
};

const char *hs_status_text(int status)
{
	for (size_t i = 0; i < HS_COUNT(status_texts); i++)
		if (status_texts[i].status == status)
			return status_texts[i].text;
	return "Unknown";
}

void hs_response_init(struct hs_response *res, struct hs_pool *pool)
{
	memset(res, 0, sizeof(*res));
	res->pool = pool;
	res->content_type = "application/json";
	res->body = hs_buf_new(pool, HS_REPLY_MAX);
}

static struct hs_header *header_find(const struct hs_response *res, const char *name)
{
	for (struct hs_header *h = res->headers; h; h = h->next)
		if (hs_str_ieq_ascii(h->name, name))
			return h;
	return NULL;
}

const char *hs_response_header_get(const struct hs_response *res, const char *name)
{
	const struct hs_header *h = header_find(res, name);

	return h ? h->value : NULL;
}

void hs_response_header(struct hs_response *res, const char *name, const char *value)
{
	struct hs_header *h = header_find(res, name);

	if (!h) {
		h = HS_NEW(res->pool, struct hs_header);
		h->name = hs_pool_strdup(res->pool, name);
		h->next = res->headers;
		res->headers = h;
	}
	h->value = hs_pool_strndup(res->pool, value, strcspn(value, "\r\n"));
}

/* Two lanes of multiply and fold over 16 bytes a step; no secret, only a fingerprint. */
static uint64_t fold(uint64_t h, uint64_t v, uint64_t k)
{
	h = (h ^ v) * k;
	return h ^ (h >> 29);
}

void hs_etag(const void *body, size_t n, char out[HS_ETAG_TEXT])
{
	const uint64_t k1 = UINT64_C(0x9E3779B97F4A7C15), k2 = UINT64_C(0xC2B2AE3D27D4EB4F);
	const char *p = body;
	uint64_t a = k2 ^ n, b = k1 + n;

	for (size_t left = n; left > 0;) {
		uint64_t v[2] = {0, 0};
		size_t take = left < sizeof(v) ? left : sizeof(v);

		memcpy(v, p, take);
		a = fold(a + (b >> 32), v[0], k1);
		b = fold(b ^ v[0], v[1] + a, k2);
		p += take;
		left -= take;
	}
	a = fold(a, b, k1);
	b = fold(b, a, k2);
	snprintf(out, HS_ETAG_TEXT, "\"%016llx%016llx\"", (unsigned long long)a,
		(unsigned long long)b);
}

bool hs_etag_matches(const char *if_none_match, const char *etag)
{
	const char *s = if_none_match;
	size_t n = strlen(etag);

	while (s && *s) {
		s += strspn(s, ", \t");
		if (*s == '*')
			return true;
		if (s[0] == 'W' && s[1] == '/')
			s += 2;
		if (strncmp(s, etag, n) == 0)
			return true;
		s = strchr(s, ',');
	}
	return false;
}

static void apply_etag(struct hs_response *res, const struct hs_request *req)
{
	char tag[HS_ETAG_TEXT];

	if (!res->etag || res->status != 200)
		return;
	hs_etag(res->body->data, res->body->len, tag);
	hs_response_header(res, "ETag", tag);
	if (!hs_etag_matches(req->if_none_match, tag))
		return;
	res->status = 304;
	hs_buf_reset(res->body);
}

struct hs_buf *hs_response_head(struct hs_response *res, const struct hs_request *req)
{
	struct hs_buf *head = hs_buf_new(res->pool, HEAD_MAX);

	apply_etag(res, req);
	hs_buf_printf(head, "Status: %d %s\r\n", res->status, hs_status_text(res->status));
	if (res->status != 304)
		hs_buf_printf(head, "Content-Type: %s\r\nContent-Length: %zu\r\n",
			res->content_type, res->body->len);
	if (req->request_id)
		hs_buf_printf(head, "X-Request-Id: %s\r\n", req->request_id);
	for (const struct hs_header *h = res->headers; h; h = h->next)
		hs_buf_printf(head, "%s: %s\r\n", h->name, h->value);
	hs_buf_str(head, "\r\n");
	return head;
}
