/*
 * program - what every request program has in common: command line, config, threads, stop.
 *
 * Floor:   web. main.c of a program fills a struct hs_program and calls hs_program_main.
 * Options: --config FILE, --socket PATH, --routes (print the table), --version, --help.
 * Mode:    CGI if GATEWAY_INTERFACE is set and neither --socket nor LISTEN_FDS is given; else the
 *          socket; else fd 0 when FCGX_IsCGI() says no.
 * Stop:    SIGTERM stops accepting, lets running requests finish (shutdown_grace_seconds), exits 0;
 *          a second one exits at once. A new program binds a temporary socket and renames it over
 *          the old path.
 */
#ifndef HS_WEB_PROGRAM_H
#define HS_WEB_PROGRAM_H

#include "web/route.h"

struct hs_app {
	const struct hs_program *program;
	const struct hs_config *cfg;
	struct hs_pool *pool;          /* process-wide */
	int64_t started_us;
	void *data;                    /* of the program (start hook) */
};

struct hs_program {
	const char *name;                       /* "hindsight-banks" */
	const struct hs_route *const *tables;   /* NULL-ended list of tables, each ended by .pattern NULL */
	int threads;                            /* 0 = the setting; reflect 64 when the setting is not explicit */
	/* once, before the first request; may be NULL */
	enum hs_rc (*start)(struct hs_app *app, struct hs_err *err);
	/* after each database connect: schema check; may be NULL */
	enum hs_rc (*on_connect)(struct hs_db *db, void *arg, struct hs_err *err);
	/* per thread data; may be NULL */
	void *(*thread_start)(struct hs_app *app, struct hs_db *db);
	void (*thread_end)(void *data);
};

int hs_program_main(int argc, char **argv, const struct hs_program *program);

#endif
