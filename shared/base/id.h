/*
 * id - UUIDs: make, parse, print.
 *
 * Floor:   base; random bytes from getrandom(2).
 * Shapes:  always 36 lower-case characters plus NUL.
 * Source:  RFC 9562. Version 7 ids made by one process rise strictly, so inserts stay local.
 */
#ifndef HS_BASE_ID_H
#define HS_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/pool.h"

#define HS_UUID_TEXT 37

void hs_uuid_v4(char out[HS_UUID_TEXT]);
void hs_uuid_v7(char out[HS_UUID_TEXT]);
const char *hs_uuid_v7_new(struct hs_pool *pool);
const char *hs_uuid_v4_new(struct hs_pool *pool);
/* Lenient like the usual parsers: braces, urn:uuid:, upper case, missing dashes. false = no UUID. */
HS_MUST bool hs_uuid_parse(const char *s, char out[HS_UUID_TEXT]);
/* n random bytes as 2n lower-case hex digits plus NUL. */
void hs_random_hex(char *out, size_t n_bytes);
/* Uniform in [0, 1). */
double hs_random_unit(void);

#endif
