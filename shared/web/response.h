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

#define HS_ETAG_TEXT 40

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
/* Add a header, or replace the one of that name. Line ends in value end it. */
void hs_response_header(struct hs_response *res, const char *name, const char *value);
const char *hs_response_header_get(const struct hs_response *res, const char *name);  /* or NULL */
/* Apply the ETag (status 200 becomes 304 when the client has this body) and give the head of the
 * answer as CGI text: Status, headers, blank line. The body follows as res->body has it. */
struct hs_buf *hs_response_head(struct hs_response *res, const struct hs_request *req);
/* Entity tag of a body, quotes included. */
void hs_etag(const void *body, size_t n, char out[HS_ETAG_TEXT]);
/* Does the If-None-Match header hold this tag, or '*'? */
bool hs_etag_matches(const char *if_none_match, const char *etag);
const char *hs_status_text(int status);

#endif
