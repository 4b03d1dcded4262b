/*
 * program - what every request program has in common: command line, config, threads, stop.
 *
 * Floor:   web. main.c of a program fills a struct hs_program and calls hs_program_main.
 * Options: --config FILE, --socket PATH, --routes (print the table), --version, --help.
 * Mode:    CGI if GATEWAY_INTERFACE is set and neither --socket nor LISTEN_FDS is given; else the
 *          socket; else fd 0 when FCGX_IsCGI() says no.
 * Base:    base_path stands in front of every route; a path outside of it is a 404.
 * Stop:    SIGTERM stops accepting, lets running requests finish (shutdown_grace_seconds), exits 0;
 *          a second one exits at once. A new program binds a temporary socket and renames it over
 *          the old path.
 * Log:     one line a request: id, method, route, status, ms, code; the message of a 5xx beside it.
 */
#ifndef HS_WEB_PROGRAM_H
#define HS_WEB_PROGRAM_H

#include <stdatomic.h>

#include "web/route.h"

struct hs_app {
	const struct hs_program *program;
	const struct hs_config *cfg;
	struct hs_pool *pool;          /* process-wide */
	int64_t started_us;            /* hs_mono_us at the start */
	struct hs_long_gate *long_gate; /* NULL = no limit */
	void *data;                    /* of the program (start hook) */
	struct hs_strs base;           /* segments of base_path */
	int threads;
	_Atomic int busy;              /* threads that serve a request */
};

struct hs_program {
	const char *name;                       /* "hindsight-banks" */
	const struct hs_route *const *tables;   /* NULL-ended list of tables,
		each ended by .pattern NULL */
	int threads;                            /* 0 = the setting; reflect 64 when the setting is not explicit */
	/* once, before the first request; may be NULL */
	enum hs_rc (*start)(struct hs_app *app, struct hs_err *err);
	/* after each database connect: schema check; may be NULL */
	enum hs_rc (*on_connect)(struct hs_db *db, void *arg, struct hs_err *err);
	/* takes a request whole, before the tables are asked, an error of its parsing in c->err
	 * included; false = not its own. May be NULL */
	bool (*serve)(struct hs_ctx *c);
	/* per thread data; may be NULL */
	void *(*thread_start)(struct hs_app *app, struct hs_db *db);
	void (*thread_end)(void *data);
	/* further lines of /metrics; may be NULL */
	enum hs_rc (*metrics)(struct hs_ctx *c, struct hs_buf *out);
};

int hs_program_main(int argc, char **argv, const struct hs_program *program);

/* What one thread keeps between requests. */
struct hs_thread {
	struct hs_app *app;
	struct hs_db *db;
	struct hs_pool *pool;          /* cleared after each request */
	void *data;                    /* of the program (thread_start) */
};
void hs_thread_init(struct hs_thread *t, struct hs_app *app);
void hs_thread_done(struct hs_thread *t);
/* Parse and serve one request, whose body was read, count and log it. *ret_head is the head to send,
 * res->body what follows. */
void hs_thread_serve(struct hs_thread *t, struct hs_request *req, struct hs_response *res,
	int64_t began_us, struct hs_buf **ret_head);

#endif
