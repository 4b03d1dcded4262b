#include "web/fcgi.h"

#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define BACKLOG 1024
#define SOCKET_MODE 0660
#define ACCEPT_PAUSE_US 10000
#define JOIN_STEP_US INT64_C(20000)
#define WRITE_STEP ((size_t)1 << 30)

struct server {
	struct hs_app *app;
	int listen_fd, stop_fd;
	_Atomic bool stopping;
	_Atomic int live;
};

/* ---- the listening socket ---- */

int hs_fcgi_fd0(struct hs_err *err)
{
	if (FCGX_IsCGI()) {
		(void)hs_fail(err, HS_E_CONFIG,
			"no socket: give --socket PATH, or start with a listening socket as descriptor 0");
		return -1;
	}
	return 0;
}

static int bind_new(const struct sockaddr_un *at, struct hs_err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		(void)hs_fail_foreign(err, HS_E_IO, errno, "cannot make a socket: %s",
			strerror(errno));
		return -1;
	}
	(void)unlink(at->sun_path);
	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 &&
		chmod(at->sun_path, SOCKET_MODE) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	(void)hs_fail_foreign(err, HS_E_IO, errno, "cannot listen on %s: %s", at->sun_path,
		strerror(errno));
	close(fd);
	return -1;
}

int hs_fcgi_listen(const char *path, struct hs_err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s.new", path);
	int fd;

	if (n < 0 || (size_t)n >= sizeof(at.sun_path)) {
		(void)hs_fail(err, HS_E_CONFIG, "socket path %s is too long (at most %zu bytes)",
			path, sizeof(at.sun_path) - sizeof(".new"));
		return -1;
	}
	fd = bind_new(&at, err);
	if (fd < 0)
		return -1;
	if (rename(at.sun_path, path) != 0) {
		(void)hs_fail_foreign(err, HS_E_IO, errno, "cannot move %s to %s: %s", at.sun_path,
			path, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- one request ---- */

static const char *fcgi_header(const struct hs_request *r, const char *cgi_name)
{
	const FCGX_Request *f = r->source;

	return FCGX_GetParam(cgi_name, f->envp);
}

/* The web server closes its side when its client went away; libfcgi has no call for that. */
static bool fcgi_gone(const struct hs_request *r)
{
	const FCGX_Request *f = r->source;
	char byte;

	return f->ipcFd >= 0 && recv(f->ipcFd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static size_t count_params(char **envp, const char *name)
{
	size_t count = 0, n = strlen(name);

	for (; *envp; envp++)
		count += strncmp(*envp, name, n) == 0 && (*envp)[n] == '=';
	return count;
}

static size_t fcgi_read(void *arg, char *out, size_t n)
{
	FCGX_Request *f = arg;
	int got = FCGX_GetStr(out, (int)n, f->in);

	return got > 0 ? (size_t)got : 0;
}

/* Up to the end of the stream, so that a closed connection can be seen afterwards. */
static void drain(FCGX_Request *f)
{
	char rest[4096];

	while (FCGX_GetStr(rest, sizeof(rest), f->in) > 0)
		;
}

static void put(FCGX_Request *f, const struct hs_buf *b)
{
	for (size_t at = 0; at < b->len;) {
		size_t n = b->len - at < WRITE_STEP ? b->len - at : WRITE_STEP;

		if (FCGX_PutStr(b->data + at, (int)n, f->out) < 0)
			return;
		at += n;
	}
}

static void serve_one(struct hs_thread *t, FCGX_Request *f)
{
	struct hs_body_source source = {.read = fcgi_read, .arg = f};
	struct hs_request req = {.header = fcgi_header, .gone = fcgi_gone, .source = f};
	int64_t began_us = hs_mono_us();
	struct hs_response res;
	struct hs_buf *head;

	req.n_authorization = count_params(f->envp, "HTTP_AUTHORIZATION");
	hs_request_from_cgi(t->pool, &req);
	hs_response_init(&res, t->pool);
	if (hs_request_read_body(t->pool, &req, &source) == HS_BODY_SHORT) {
		hs_log(HS_LOG_WARN, "short_body", "id=%s", req.request_id);
		(void)shutdown(f->ipcFd, SHUT_RDWR);
		FCGX_Finish_r(f);
		return;
	}
	drain(f);
	hs_thread_serve(t, &req, &res, began_us, &head);
	put(f, head);
	put(f, res.body);
	FCGX_Finish_r(f);
}

/* ---- threads ---- */

static int epoll_for(const struct server *s)
{
	struct epoll_event listen_ev = {.events = EPOLLIN | EPOLLEXCLUSIVE,
		.data.fd = s->listen_fd};
	struct epoll_event stop_ev = {.events = EPOLLIN, .data.fd = s->stop_fd};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, s->listen_fd, &listen_ev) != 0 ||
		epoll_ctl(ep, EPOLL_CTL_ADD, s->stop_fd, &stop_ev) != 0) {
		hs_log(HS_LOG_ERROR, "epoll", "error=%s", hs_log_quote(strerror(errno)));
		exit(EXIT_FAILURE);
	}
	return ep;
}

/* Serve what waits; back when nothing more waits. */
static void serve_waiting(const struct server *s, struct hs_thread *t, FCGX_Request *f)
{
	int rc = FCGX_Accept_r(f);

	if (rc == 0) {
		serve_one(t, f);
		hs_pool_clear(t->pool);
	} else if (rc != -EAGAIN && rc != -EWOULDBLOCK && !atomic_load(&s->stopping)) {
		hs_log(HS_LOG_WARN, "accept", "code=%d", rc);
		hs_sleep_us(ACCEPT_PAUSE_US);
	}
}

/* At the stop every thread empties the backlog: what was accepted by the kernel is answered. */
static void drain_backlog(struct hs_thread *t, FCGX_Request *f)
{
	while (FCGX_Accept_r(f) == 0) {
		serve_one(t, f);
		hs_pool_clear(t->pool);
	}
}

static void *thread_main(void *arg)
{
	struct server *s = arg;
	struct hs_thread t;
	FCGX_Request f;
	int ep = epoll_for(s);

	hs_thread_init(&t, s->app);
	FCGX_InitRequest(&f, s->listen_fd, 0);
	while (!atomic_load(&s->stopping)) {
		struct epoll_event ev;

		if (epoll_wait(ep, &ev, 1, -1) == 1 && ev.data.fd == s->listen_fd)
			serve_waiting(s, &t, &f);
	}
	drain_backlog(&t, &f);
	FCGX_Free(&f, 1);
	close(ep);
	hs_thread_done(&t);
	atomic_fetch_sub(&s->live, 1);
	return NULL;
}

static bool gate_enter(struct hs_long_gate *g)
{
	if (atomic_fetch_add(&g->running, 1) < g->max)
		return true;
	atomic_fetch_sub(&g->running, 1);
	return false;
}

static void gate_leave(struct hs_long_gate *g)
{
	atomic_fetch_sub(&g->running, 1);
}

/* ---- stop ---- */

static void block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	sigdelset(set, SIGUSR1);
}

/* Wait until all threads ended, at most the grace time; a second signal ends at once. */
static bool wait_threads(struct server *s, const sigset_t *set)
{
	int64_t grace_us = hs_cfg_int(s->app->cfg, HS_S_shutdown_grace_seconds) * HS_SECOND_US;
	int64_t until_us = hs_mono_us() + grace_us;

	while (atomic_load(&s->live) > 0) {
		const struct timespec step = {.tv_nsec = JOIN_STEP_US * 1000};

		if (sigtimedwait(set, NULL, &step) > 0)
			return false;
		if (hs_mono_us() > until_us)
			return false;
	}
	return true;
}

static void stop(struct server *s, const sigset_t *set)
{
	const uint64_t one = 1;

	atomic_store(&s->stopping, true);
	if (write(s->stop_fd, &one, sizeof(one)) != sizeof(one))
		hs_log(HS_LOG_ERROR, "stop", "error=%s", hs_log_quote(strerror(errno)));
	if (wait_threads(s, set))
		return;
	hs_log(HS_LOG_WARN, "stop", "unfinished=%d", atomic_load(&s->live));
	_exit(EXIT_SUCCESS);
}

static void start_threads(struct server *s, pthread_t *ids, int n)
{
	atomic_store(&s->live, n);
	for (int i = 0; i < n; i++) {
		int rc = pthread_create(&ids[i], NULL, thread_main, s);

		if (rc != 0) {
			hs_log(HS_LOG_ERROR, "thread", "error=%s", hs_log_quote(strerror(rc)));
			_exit(EXIT_FAILURE);
		}
	}
}

int hs_fcgi_run(struct hs_app *app, int listen_fd, int threads)
{
	struct hs_long_gate gate = {
		.enter = gate_enter, .leave = gate_leave,
			.max = threads * 3 / 4 > 0 ? threads * 3 / 4 : 1,
	};
	struct server s = {.app = app, .listen_fd = listen_fd};
	pthread_t *ids = HS_NEW_ARRAY(app->pool, pthread_t, (size_t)threads);
	sigset_t set;
	int sig;

	block_signals(&set);
	FCGX_Init();
	signal(SIGPIPE, SIG_IGN);
	fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) | O_NONBLOCK);
	s.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	app->long_gate = &gate;
	start_threads(&s, ids, threads);
	hs_log(HS_LOG_INFO, "ready", "threads=%d pid=%d", threads, (int)getpid());

	while (sigwait(&set, &sig) != 0)
		;
	hs_log(HS_LOG_INFO, "stopping", "signal=%d", sig);
	stop(&s, &set);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	close(s.stop_fd);
	hs_log(HS_LOG_INFO, "stopped", "pid=%d", (int)getpid());
	return EXIT_SUCCESS;
}
