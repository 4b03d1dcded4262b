/*
 * problem - error bodies: {"detail": "…"} and the 422 list.
 *
 * Floor:   web. A 5xx shows what errors.def allows, never SQL, paths, URLs or keys.
 */
#ifndef HS_WEB_PROBLEM_H
#define HS_WEB_PROBLEM_H

#include "web/response.h"

/* Status, body, Retry-After (503: err->retry_after_s or 1) from the error. */
void hs_problem(struct hs_response *res, const struct hs_err *err);

#endif
