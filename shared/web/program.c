#include "web/program.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config.h"
#include "web/cgi.h"
#include "web/fcgi.h"

#define ROUTES_TEXT_MAX ((size_t)1024 * 1024)
#define FIRST_PASSED_FD 3

struct options {
	const char *config, *socket;
	bool routes, version, help;
};

static bool options_read(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{"config", required_argument, NULL, 'c'}, {"socket", required_argument, NULL, 's'},
		{"routes", no_argument, NULL, 'r'}, {"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0},
	};
	int opt;

	memset(o, 0, sizeof(*o));
	while ((opt = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (opt) {
		case 'c':
			o->config = optarg;
			break;
		case 's':
			o->socket = optarg;
			break;
		case 'r':
			o->routes = true;
			break;
		case 'v':
			o->version = true;
			break;
		case 'h':
			o->help = true;
			break;
		default:
			return false;
		}
	}
	return optind == argc;
}

static void usage(FILE *out, const char *name)
{
	fprintf(out,
		"usage: %s [--config FILE] [--socket PATH] [--routes] [--version] [--help]\n"
		"Serves FastCGI on PATH, on the socket passed by the service manager or on descriptor 0;\n"
		"serves one request as plain CGI when GATEWAY_INTERFACE is set.\n",
		name);
}

/* A CGI program that only ended would leave the client the web server's own error page. */
static int fail_start(const struct hs_app *app, bool cgi, const struct hs_err *err)
{
	hs_log(HS_LOG_ERROR, "start", "error=%s", hs_log_quote(err->msg));
	if (cgi)
		hs_cgi_refuse(app->pool, HS_E_CONFIG);
	return EXIT_FAILURE;
}

static int print_routes(const struct hs_app *app)
{
	struct hs_buf *text = hs_buf_new(app->pool, ROUTES_TEXT_MAX);

	hs_routes_print(app->program->tables, &app->base, text);
	return fputs(text->data, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The first socket passed by the service manager, -1 when there is none. */
static int passed_fd(void)
{
	const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	int64_t n, owner;

	if (!count || !hs_str_to_i64(count, &n) || n < 1)
		return -1;
	if (pid && (!hs_str_to_i64(pid, &owner) || owner != getpid()))
		return -1;
	return FIRST_PASSED_FD;
}

static int thread_count(const struct hs_app *app)
{
	int64_t n = hs_cfg_int(app->cfg, HS_S_fastcgi_threads);

	if (app->program->threads > 0 && !hs_cfg_explicit(app->cfg, HS_S_fastcgi_threads))
		n = app->program->threads;
	return n < 1 ? 1 : (int)n;
}

/* A database that is away does not stop the start, one with another schema does. */
static enum hs_rc check_database(struct hs_app *app, struct hs_err *err)
{
	struct hs_db *db = hs_db_new(app->cfg);
	enum hs_rc rc;

	hs_db_on_connect(db, app->program->on_connect, app);
	rc = hs_db_ping(db, err);
	hs_db_free(&db);
	if (rc == HS_OK || rc == HS_E_DB_SCHEMA)
		return rc;
	hs_log(HS_LOG_WARN, "database_away", "code=%s error=%s", hs_rc_name(rc),
		hs_log_quote(err->msg));
	hs_err_clear(err);
	return HS_OK;
}

static enum hs_rc app_start(struct hs_app *app, bool cgi, struct hs_err *err)
{
	hs_metrics_open_in(hs_cfg_str(app->cfg, HS_S_run_dir));
	if (!cgi)
		HS_TRY(check_database(app, err));
	return app->program->start ? app->program->start(app, err) : HS_OK;
}

/* Standard output belongs to the answer under CGI, so every message goes to the log. */
static int serve_socket(struct hs_app *app, const struct options *o)
{
	struct hs_err err = {0};
	int fd;

	if (o->socket)
		fd = hs_fcgi_listen(o->socket, &err);
	else if ((fd = passed_fd()) < 0)
		fd = hs_fcgi_fd0(&err);
	if (fd < 0)
		return fail_start(app, false, &err);
	return hs_fcgi_run(app, fd, app->threads);
}

static int run(struct hs_app *app, const struct options *o, const char *argv0)
{
	bool cgi = getenv("GATEWAY_INTERFACE") && !o->socket && !o->routes && passed_fd() < 0;
	struct hs_config *cfg = NULL;
	struct hs_err err = {0};

	if (hs_routes_check(app->program->tables, &err) != HS_OK)
		return fail_start(app, cgi, &err);
	if (hs_config_load(app->pool, o->config, argv0, HS_SYSCONFDIR, &cfg, &err) != HS_OK)
		return fail_start(app, cgi, &err);
	app->cfg = cfg;
	app->threads = thread_count(app);
	app->base = hs_str_split(app->pool, hs_cfg_str(cfg, HS_S_base_path), '/');
	if (o->routes)
		return print_routes(app);
	hs_log_init(app->program->name, hs_cfg_str(cfg, HS_S_log_level),
		hs_str_eq(hs_cfg_str(cfg, HS_S_log_format), "json"));
	if (app_start(app, cgi, &err) != HS_OK)
		return fail_start(app, cgi, &err);
	return cgi ? hs_cgi_run(app, app->threads) : serve_socket(app, o);
}

int hs_program_main(int argc, char **argv, const struct hs_program *program)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_app app = {.program = program, .pool = pool, .started_us = hs_mono_us()};
	struct options o;

	hs_log_init(program->name, "info", false);
	if (!options_read(argc, argv, &o)) {
		usage(stderr, program->name);
		return 2;
	}
	if (o.help) {
		usage(stdout, program->name);
		return EXIT_SUCCESS;
	}
	if (o.version) {
		printf("%s %s\n", program->name, PACKAGE_VERSION);
		return EXIT_SUCCESS;
	}
	return run(&app, &o, argv[0]);
}

void hs_thread_init(struct hs_thread *t, struct hs_app *app)
{
	t->app = app;
	t->pool = hs_pool_new();
	t->db = hs_db_new(app->cfg);
	hs_db_on_connect(t->db, app->program->on_connect, app);
	t->data = app->program->thread_start ? app->program->thread_start(app, t->db) : NULL;
}

void hs_thread_done(struct hs_thread *t)
{
	if (t->app->program->thread_end)
		t->app->program->thread_end(t->data);
	hs_db_free(&t->db);
	hs_pool_free(&t->pool);
}

static void log_request(const struct hs_ctx *c, int64_t took_us)
{
	const char *route = c->route ? c->route->pattern : "unmatched";
	int status = c->res->status;

	if (status >= 500)
		hs_log(HS_LOG_ERROR, "request",
			"id=%s method=%s route=%s status=%d ms=%.1f code=%s error=%s",
			c->req->request_id, hs_log_quote(c->req->method_name), route, status,
			(double)took_us / 1000.0, hs_rc_name(c->err.rc), hs_log_quote(c->err.msg));
	else
		hs_log(HS_LOG_INFO, "request", "id=%s method=%s route=%s status=%d ms=%.1f code=%s",
			c->req->request_id, hs_log_quote(c->req->method_name), route, status,
			(double)took_us / 1000.0, hs_rc_name(c->err.rc));
}

void hs_thread_serve(struct hs_thread *t, struct hs_request *req, struct hs_response *res,
	int64_t began_us, struct hs_buf **ret_head)
{
	struct hs_ctx c = {
		.app = t->app, .cfg = t->app->cfg, .pool = t->pool, .req = req, .res = res,
			.db = t->db,
		.thread = t->data,
	};
	int64_t took_us;

	if (hs_request_parse(t->pool, req, &c.err) != HS_OK)
		hs_log(HS_LOG_DEBUG, "request_refused", "id=%s", req->request_id);
	if (!hs_request_below(req, &t->app->base))
		(void)hs_fail(&c.err, HS_E_NOT_FOUND, "Not Found");
	atomic_fetch_add(&t->app->busy, 1);
	hs_route_serve(&c);
	atomic_fetch_sub(&t->app->busy, 1);
	*ret_head = hs_response_head(res, req);
	took_us = hs_mono_us() - began_us;
	hs_metrics_http(req->method == HS_METHOD_OTHER ? "OTHER" : req->method_name,
		c.route ? c.route->pattern : "unmatched", res->status, took_us);
	log_request(&c, took_us);
}
