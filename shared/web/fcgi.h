/*
 * fcgi - FastCGI threads: epoll accept, graceful stop. fcgi.c alone includes <fcgiapp.h>.
 *
 * Floor:   web.
 * Threads: each waits with its own epoll on the non-blocking listening socket (EPOLLEXCLUSIVE) and on
 *          one eventfd, then calls FCGX_Accept_r. Kept connections are not supported: libfcgi would
 *          hold a thread in read(), so the web server's fastcgi_keep_conn stays off.
 * Signals: blocked in the threads (libfcgi takes EINTR for an error); the main thread waits for
 *          SIGTERM and SIGINT.
 */
#ifndef HS_WEB_FCGI_H
#define HS_WEB_FCGI_H

#include "web/program.h"

/* Serve until SIGTERM; listen_fd is set non-blocking. Returns the exit status. */
int hs_fcgi_run(struct hs_app *app, int listen_fd, int threads);
/* Bind path.new, rename it over path; -1 with err on failure. */
int hs_fcgi_listen(const char *path, struct hs_err *err);
/* 0 when descriptor 0 is a listening socket; -1 with err when it is none. */
int hs_fcgi_fd0(struct hs_err *err);

#endif
