/*
 * response - status, headers and body of one answer, sent once.
 *
 * Floor:   web.
 * Source:  RFC 9110 for ETag, If-None-Match (weak comparison), Allow, Retry-After.
 */
#ifndef HS_WEB_RESPONSE_H
#define HS_WEB_RESPONSE_H

#include "base/buf.h"
#include "json/out.h"
#include "web/request.h"

struct hs_header {
	struct hs_header *next;
	const char *name, *value;
};
struct hs_response {
	struct hs_pool *pool;
	int status;                /* 0 until set */
	const char *content_type;  /* application/json */
	struct hs_buf *body;
	struct hs_header *headers;
	bool etag;                 /* send an ETag of the body and answer If-None-Match with 304 */
};
void hs_response_init(struct hs_response *res, struct hs_pool *pool);
void hs_response_header(struct hs_response *res, const char *name, const char *value);
/* The whole answer as CGI text: Status, headers, blank line, body. Applies etag. */
struct hs_buf *hs_response_render(struct hs_response *res, const struct hs_request *req);

#endif
