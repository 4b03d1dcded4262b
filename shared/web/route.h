/*
 * route - route tables: match, 404, 405 with Allow, 307 for a final slash, checks in contract order.
 *
 * Floor:   web; uses json, db and config below it, knows no store.
 * Order:   route -> query and body tables (422) -> retired routes (410, the function itself) ->
 *          feature switch (404) -> format check -> API key (401) -> function (contract banks 1.2).
 * Rows:    a fixed segment wins over {param}; rows still equal after that rule stop the start.
 *          Ids are one segment, %2F inside it.
 */
#ifndef HS_WEB_ROUTE_H
#define HS_WEB_ROUTE_H

#include "config/config.h"
#include "db/db.h"
#include "web/request.h"
#include "web/response.h"

/* flags of a row */
#define HS_R_OPEN 0x01u        /* no API key asked */
#define HS_R_NO_BODY 0x02u     /* a body (or unknown query key) is a 422: DELETE …/memories */
#define HS_R_BODY_OPTIONAL 0x04u /* no body, or null, counts as an empty object */
#define HS_R_LONG 0x08u        /* may call a model: long-call share of threads (see long_call) */
#define HS_R_READ 0x10u        /* level read; default is write for other methods than GET */
#define HS_R_ADMIN 0x20u       /* level admin */

struct hs_app;
struct hs_route;

/* Everything a function gets. One per request, on the thread's stack. */
struct hs_ctx {
	struct hs_app *app;
	const struct hs_config *cfg;   /* server-wide */
	struct hs_pool *pool;
	const struct hs_request *req;
	struct hs_response *res;
	const struct hs_route *route;
	struct hs_strs params;         /* values of {…} in order of the pattern */
	const char *bank_id;           /* value of {bank_id}, NULL when the pattern has none */
	struct hs_db *db;              /* the thread's connection */
	struct hs_strs ignored;        /* for X-Ignored-Params */
	void *thread;                  /* per-thread data of the program (app->thread_start) */
	bool gone;                     /* hs_request_gone's last answer, and when it was asked */
	int64_t gone_asked_us;
	struct hs_err err;
};

typedef enum hs_rc hs_route_fn(struct hs_ctx *c, const void *query, const void *body);
/* Before the key is asked: e.g. an operation id that is no UUID (400). */
typedef enum hs_rc hs_format_fn(struct hs_ctx *c);
/* Does this checked request make the call a long one? NULL with HS_R_LONG = always. */
typedef bool hs_long_fn(const struct hs_config *cfg, const void *query, const void *body);

struct hs_route {
	enum hs_method method;
	const char *pattern;           /* "/v1/default/banks/{bank_id}/mental-models" */
	hs_route_fn *fn;
	const struct hs_shape *query, *body;  /* NULL: none */
	unsigned flags;
	int feature;                   /* enum hs_setting_id + 1 of a boolean that must be on; 0 = none */
	const char *feature_text;      /* detail of the 404 when it is off */
	hs_format_fn *format;
	hs_long_fn *long_call;
	const char *long_name;         /* what a 503 for want of threads calls it: "reflect" */
};

/* A row: HS_ROUTE(GET, "/v1/x", fn, .query = &shape). */
#define HS_ROUTE(verb, path, function, ...) \
	{.method = HS_##verb, .pattern = path, .fn = function, __VA_ARGS__}

/* The value of {name} in the row's pattern; an assert when there is none. */
const char *hs_param(const struct hs_ctx *c, const char *name);
/* True once the client has closed the connection (checked at most every 50 ms). */
bool hs_request_gone(struct hs_ctx *c);
/* Start a 200 JSON answer: a writer into the response body. */
struct hs_out hs_reply(struct hs_ctx *c);
struct hs_out hs_reply_status(struct hs_ctx *c, int status);
void hs_reply_etag(struct hs_ctx *c);  /* this GET carries an ETag */

/* HS_E_TOO_LARGE when the body is over the cap. For functions that take requests whole. */
HS_MUST enum hs_rc hs_request_fits(struct hs_ctx *c);
/* What Authorization carries, without "Bearer " (any case), trimmed; NULL when missing. */
const char *hs_request_token(const struct hs_ctx *c);
/* Takes the same time wherever the two differ. */
bool hs_key_equal(const char *given, const char *key);
/* One of the places for calls that may hold a thread for long; HS_E_CAPACITY names `what`. Every
 * HS_OK is followed by a leave. */
HS_MUST enum hs_rc hs_long_enter(struct hs_ctx *c, const char *what);
void hs_long_leave(struct hs_ctx *c);

/* Serve one parsed request: fills c->res completely, errors included. An error already in c->err
 * (of hs_request_parse) is answered as it is. */
void hs_route_serve(struct hs_ctx *c);
/* Check the tables; HS_E_CONFIG when two rows are equal or one is malformed. */
HS_MUST enum hs_rc hs_routes_check(const struct hs_route *const *tables, struct hs_err *err);
/* "GET /v1/default/banks" a line, behind the base path, in the order of the tables. */
void hs_routes_print(const struct hs_route *const *tables, const struct hs_strs *base,
	struct hs_buf *out);
/* The value of X-Ignored-Params: characters outside printable ASCII as '?', cut at a name boundary
 * at HS_IGNORED_HEADER_BYTES. */
char *hs_ignored_header(struct hs_pool *pool, const struct hs_strs *names);

/* Limits calls that may hold a thread for long (HS_R_LONG), so that short reads never starve. */
struct hs_long_gate {
	bool (*enter)(struct hs_long_gate *g);  /* false: at capacity */
	void (*leave)(struct hs_long_gate *g);
	int max;
	_Atomic int running;                    /* of this process */
	const char *lock_prefix;                /* CGI: path in front of the slot's number */
	int fd;                                 /* CGI: the slot held */
};

#endif
