/*
 * cgi - serve one request from environment and stdin, then end.
 *
 * Floor:   web.
 * Body:    read to its end before any answer (CONTENT_LENGTH, or the stream's end without one): an
 *          early answer becomes the web server's 500 or 502.
 * Long:    calls that may hold a process for long take one of 3/4 of `threads` slots, lock files in
 *          run_dir shared by all processes of the program; without run_dir there is no limit.
 * Gone:    the web server closes the pipe of an answer nobody waits for.
 * Source:  RFC 3875.
 */
#ifndef HS_WEB_CGI_H
#define HS_WEB_CGI_H

#include "web/program.h"

int hs_cgi_run(struct hs_app *app, int threads);
/* Answer this code's status and text when the program could not start; its log says why. */
void hs_cgi_refuse(struct hs_pool *pool, enum hs_rc rc);

#endif
