#include "web/cgi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "web/problem.h"

static const char *cgi_header(const struct hs_request *r, const char *cgi_name)
{
	(void)r;
	return getenv(cgi_name);
}

static size_t cgi_read(void *arg, char *out, size_t n)
{
	ssize_t got;

	(void)arg;
	do
		got = read(STDIN_FILENO, out, n);
	while (got < 0 && errno == EINTR);
	return got > 0 ? (size_t)got : 0;
}

static bool cgi_gone(const struct hs_request *r)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	(void)r;
	return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

static bool write_all(const struct hs_buf *b)
{
	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(STDOUT_FILENO, b->data + at, b->len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* Take the first slot that nobody holds; the lock ends with the process. */
static bool slot_enter(struct hs_long_gate *g)
{
	char path[512];

	for (int i = 0; i < g->max; i++) {
		int n = snprintf(path, sizeof(path), "%s%d", g->lock_prefix, i);

		if (n < 0 || (size_t)n >= sizeof(path))
			return true;
		g->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0660);
		if (g->fd < 0) {
			hs_log(HS_LOG_WARN, "slots", "path=%s errno=%d", hs_log_quote(path), errno);
			return true;
		}
		if (flock(g->fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		close(g->fd);
		g->fd = -1;
	}
	return false;
}

static void slot_leave(struct hs_long_gate *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
}

void hs_cgi_refuse(struct hs_pool *pool, enum hs_rc rc)
{
	struct hs_body_source source = {.read = cgi_read};
	struct hs_request req = {.header = cgi_header};
	struct hs_err err = {.rc = rc};
	struct hs_response res;

	signal(SIGPIPE, SIG_IGN);
	hs_request_from_cgi(pool, &req);
	hs_response_init(&res, pool);
	(void)hs_request_read_body(pool, &req, &source);
	hs_problem(&res, &err);
	if (write_all(hs_response_head(&res, &req)))
		(void)write_all(res.body);
}

int hs_cgi_run(struct hs_app *app, int threads)
{
	const char *run_dir = hs_cfg_str(app->cfg, HS_S_run_dir);
	struct hs_long_gate gate = {
		.enter = slot_enter, .leave = slot_leave, .fd = -1,
		.max = threads * 3 / 4 > 0 ? threads * 3 / 4 : 1,
	};
	struct hs_body_source source = {.read = cgi_read};
	struct hs_request req = {.header = cgi_header, .gone = cgi_gone};
	int64_t began_us = hs_mono_us();
	struct hs_response res;
	struct hs_buf *head;
	struct hs_thread t;
	bool ok = true;

	signal(SIGPIPE, SIG_IGN);
	if (!hs_str_empty(run_dir)) {
		gate.lock_prefix = hs_pool_printf(app->pool, "%s/%s.slot.", run_dir,
			app->program->name);
		app->long_gate = &gate;
	}
	hs_thread_init(&t, app);
	hs_request_from_cgi(t.pool, &req);
	hs_response_init(&res, t.pool);
	if (hs_request_read_body(t.pool, &req, &source) == HS_BODY_SHORT) {
		hs_log(HS_LOG_WARN, "short_body", "id=%s", req.request_id);
	} else {
		hs_thread_serve(&t, &req, &res, began_us, &head);
		ok = write_all(head) && write_all(res.body);
	}
	hs_thread_done(&t);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
