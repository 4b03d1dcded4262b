/*
 * request - one HTTP request as the programs see it, the same for FastCGI and CGI.
 *
 * Floor:   web.
 * Shapes:  the raw REQUEST_URI is split at '/' before decoding, so %2F never becomes a separator.
 * Limits:  HS_URI_MAX, HS_QUERY_PARAMS_MAX, body cap (limits.h).
 * Owns:    everything lives in the request's pool; nothing of libfcgi is kept.
 * Errors:  HS_E_BAD_REQUEST for a bad escape, invalid UTF-8 or NUL in a path segment.
 */
#ifndef HS_WEB_REQUEST_H
#define HS_WEB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"
#include "json/check.h"

enum hs_method { HS_GET, HS_POST, HS_PUT, HS_PATCH, HS_DELETE, HS_HEAD, HS_OPTIONS, HS_METHOD_OTHER };

struct hs_request {
	enum hs_method method;
	const char *method_name;
	const char *uri;               /* raw, query included */
	const char *raw_path;          /* raw, without query */
	struct hs_strs raw_segments;   /* between slashes, not decoded */
	struct hs_strs segments;       /* decoded; controls are kept here and refused where an id is made */
	bool trailing_slash;
	const char *raw_query;         /* NULL when there is no '?' */
	struct hs_pair *query;         /* decoded and cleaned */
	size_t n_query;
	const char *content_type;      /* NULL when missing */
	const char *body;              /* NUL-terminated; "" without body */
	size_t body_bytes;
	bool has_body;
	const char *authorization;     /* NULL when missing */
	const char *if_none_match;
	const char *request_id;        /* taken over when sane, else made here */
	const char *host, *scheme;     /* for absolute redirects */
	const char *remote_addr;
	/* any other header by its CGI name ("HTTP_X_BANK_ID"); NULL when missing */
	const char *(*header)(const struct hs_request *r, const char *cgi_name);
	void *source;                  /* of the transport */
};

/* Fill method, segments, query … from uri and method_name. */
HS_MUST enum hs_rc hs_request_parse(struct hs_pool *pool, struct hs_request *r, struct hs_err *err);
/* Percent-decode one piece; plus_is_blank for query text. NULL when an escape is bad, the result is
 * no UTF-8 or holds a NUL. */
char *hs_percent_decode(struct hs_pool *pool, const char *s, size_t n, bool plus_is_blank);
/* application/json (any parameters, any case) or no Content-Type at all. */
bool hs_request_is_json(const struct hs_request *r);

#endif
