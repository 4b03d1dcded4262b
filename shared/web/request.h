/*
 * request - one HTTP request as the programs see it, the same for FastCGI and CGI.
 *
 * Floor:   web.
 * Shapes:  the raw REQUEST_URI is split at '/' before decoding, so %2F never becomes a separator.
 * Limits:  HS_URI_MAX, HS_QUERY_PARAMS_MAX, body cap (limits.h).
 * Owns:    everything lives in the request's pool; header values are lent by the transport until
 *          the answer is sent.
 * Errors:  HS_E_BAD_REQUEST for a bad escape, invalid UTF-8 or NUL in a path segment. Query text is
 *          forgiving: a lone '%' stands for itself, bytes that are no UTF-8 are dropped.
 */
#ifndef HS_WEB_REQUEST_H
#define HS_WEB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"
#include "json/check.h"

enum hs_method { HS_GET, HS_POST, HS_PUT, HS_PATCH, HS_DELETE, HS_HEAD, HS_OPTIONS,
	HS_METHOD_OTHER };

struct hs_request {
	enum hs_method method;
	const char *method_name;
	const char *uri;               /* raw, query included */
	const char *raw_path;          /* raw, without query, base_path included */
	struct hs_strs raw_segments;   /* between slashes, not decoded */
	struct hs_strs segments;       /* decoded; controls are kept here and refused where an id is made */
	bool trailing_slash;
	bool bad_path;                 /* the segment after the last one here could not be decoded */
	const char *raw_query;         /* NULL when there is no '?' */
	struct hs_pair *query;         /* decoded and cleaned */
	size_t n_query;
	const char *content_type;      /* NULL when missing */
	const char *body;              /* NUL-terminated; "" without body */
	size_t body_bytes;
	bool has_body;
	bool body_too_large;           /* over HS_BODY_MAX: read to its end, not kept */
	const char *authorization;     /* NULL when missing */
	size_t n_authorization;        /* how many such headers came */
	const char *if_none_match;
	const char *request_id;        /* taken over when sane, else made here */
	const char *host, *scheme;     /* for absolute redirects */
	const char *remote_addr;
	/* any other header by its CGI name ("HTTP_X_BANK_ID"); NULL when missing */
	const char *(*header)(const struct hs_request *r, const char *cgi_name);
	/* has the client closed the connection? NULL when the transport cannot know */
	bool (*gone)(const struct hs_request *r);
	void *source;                  /* of the transport */
};

/* Take what a request needs from CGI variables through r->header (set it, and source, before). */
void hs_request_from_cgi(struct hs_pool *pool, struct hs_request *r);
/* Fill method, segments, query … from uri and method_name. */
HS_MUST enum hs_rc hs_request_parse(struct hs_pool *pool, struct hs_request *r, struct hs_err *err);
/* Take the base path off the segments; false when the path does not lie below it. */
bool hs_request_below(struct hs_request *r, const struct hs_strs *base);
/* Percent-decode one piece; plus_is_blank for query text. NULL when an escape is bad, the result is
 * no UTF-8 or holds a NUL. */
char *hs_percent_decode(struct hs_pool *pool, const char *s, size_t n, bool plus_is_blank);
/* application/json (any parameters, any case) or no Content-Type at all. */
bool hs_request_is_json(const struct hs_request *r);

/* Reads the body of a transport: read() gives bytes, 0 at the end. */
struct hs_body_source {
	size_t (*read)(void *arg, char *out, size_t n);
	void *arg;
};
enum hs_body_state { HS_BODY_OK, HS_BODY_SHORT };
/* Reads to the end (CONTENT_LENGTH, or the stream's end without one) and fills body, body_bytes,
 * has_body, body_too_large. HS_BODY_SHORT: fewer bytes came than CONTENT_LENGTH says; the
 * connection must be closed without an answer. */
enum hs_body_state hs_request_read_body(struct hs_pool *pool, struct hs_request *r,
	const struct hs_body_source *source);

#endif
