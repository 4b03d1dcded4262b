/*
 * fcgi - FastCGI threads: epoll accept, graceful stop. fcgi.c alone includes <fcgiapp.h>.
 *
 * Floor:   web.
 */
#ifndef HS_WEB_FCGI_H
#define HS_WEB_FCGI_H

#include "web/program.h"

/* Serve until SIGTERM; listen_fd is set non-blocking. Returns the exit status. */
int hs_fcgi_run(struct hs_app *app, int listen_fd, int threads);
/* Bind path.new, rename it over path; -1 with err on failure. */
int hs_fcgi_listen(const char *path, struct hs_err *err);

#endif
