/*
 * cgi - serve one request from environment and stdin, then end.
 *
 * Floor:   web.
 */
#ifndef HS_WEB_CGI_H
#define HS_WEB_CGI_H

#include "web/program.h"

int hs_cgi_run(struct hs_app *app);

#endif
