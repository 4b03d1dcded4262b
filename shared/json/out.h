/*
 * out - write JSON text straight into a buffer, without a tree.
 *
 * Floor:   json. Commas are placed by the writer; strings are escaped, raw UTF-8 stays.
 * Use:     hs_out_open(o, NULL, '{'); hs_out_str(o, "id", id); hs_out_close(o, '}');
 *          key is NULL inside arrays and at the top.
 */
#ifndef HS_JSON_OUT_H
#define HS_JSON_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct hs_out {
	struct hs_buf *buf;
	bool comma; /* the next value needs one in front */
};

struct hs_out hs_out_to(struct hs_buf *buf);
void hs_out_open(struct hs_out *o, const char *key, char bracket); /* '{' or '[' */
void hs_out_close(struct hs_out *o, char bracket);                 /* '}' or ']' */
void hs_out_str(struct hs_out *o, const char *key, const char *v); /* NULL prints null */
void hs_out_strn(struct hs_out *o, const char *key, const char *v, size_t n);
void hs_out_int(struct hs_out *o, const char *key, int64_t v);
void hs_out_num(
	struct hs_out *o, const char *key, double v); /* shortest that reads back; NaN as 0 */
void hs_out_bool(struct hs_out *o, const char *key, bool v);
void hs_out_null(struct hs_out *o, const char *key);
void hs_out_time(
	struct hs_out *o, const char *key, int64_t us); /* wire form, null for HS_TIME_NONE */
void hs_out_strs(struct hs_out *o, const char *key, const struct hs_strs *list);
void hs_out_json(struct hs_out *o, const char *key, const json_t *v); /* NULL prints null */
/* Text that is JSON already (stored JSON); NULL or "" prints `absent` (itself JSON text). */
void hs_out_raw(struct hs_out *o, const char *key, const char *json_text, const char *absent);
/* The string as JSON, quotes included, at the end of buf. */
void hs_json_quote(struct hs_buf *buf, const char *s, size_t n);

#endif
