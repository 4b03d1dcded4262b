/*
 * system - rows of /health*, /version, /metrics (contract banks 13).
 *
 * Floor:   web. The readiness probe is the connection's ping; /health/live never touches the
 *          database. None of them needs a key.
 */
#ifndef HS_WEB_SYSTEM_H
#define HS_WEB_SYSTEM_H

#include "web/route.h"

#define HS_API_VERSION "1.1.0"
extern const struct hs_route hs_system_routes[];

#endif
