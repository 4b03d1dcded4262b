#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "json/check_internal.h"
#include "json/json.h"
#include "json/out.h"

/* Longest shown input before it is quoted as text; leaves room for whole small objects. */
#define INPUT_DUMP_MAX ((size_t)4 * HS_FIELD_INPUT_BYTES)
#define LOC_MAX ((size_t)4096)

static void loc_parts(struct hs_out *o, const struct part *p)
{
	if (!p)
		return;
	loc_parts(o, p->up);
	if (p->key)
		hs_out_str(o, NULL, p->key);
	else
		hs_out_int(o, NULL, (int64_t)p->index);
}

static const char *loc_text(struct hs_check *ck)
{
	struct hs_buf *b = hs_buf_new(ck->pool, LOC_MAX);
	struct hs_out o = hs_out_to(b);

	hs_out_open(&o, NULL, '[');
	hs_out_str(&o, NULL, ck->root);
	loc_parts(&o, ck->at);
	hs_out_close(&o, ']');
	if (b->failed) {
		hs_buf_reset(b);
		hs_buf_str(b, "[");
		hs_json_quote(b, ck->root, strlen(ck->root));
		hs_buf_str(b, "]");
	}
	return b->data;
}

/* JSON string of the first bytes of a text, cut at a character boundary. */
static const char *cut_quoted(struct hs_pool *pool, const char *s, size_t n)
{
	struct hs_buf *b = hs_buf_new(pool, 8 * HS_FIELD_INPUT_BYTES);

	if (n > HS_FIELD_INPUT_BYTES) {
		n = HS_FIELD_INPUT_BYTES;
		while (n > 0 && ((unsigned char)s[n] & 0xC0) == 0x80)
			n--;
	}
	hs_json_quote(b, s, n);
	return b->data;
}

static const char *input_text(struct hs_check *ck, const json_t *v)
{
	struct hs_buf *b;
	struct hs_out o;

	if (ck->field && (ck->field->flags & HS_SECRET))
		return "\"***\"";
	if (json_is_string(v))
		return cut_quoted(ck->pool, json_string_value(v), json_string_length(v));
	b = hs_buf_new(ck->pool, INPUT_DUMP_MAX);
	o = hs_out_to(b);
	hs_out_json(&o, NULL, v);
	if (!b->failed && b->len <= HS_FIELD_INPUT_BYTES)
		return b->data;
	return cut_quoted(ck->pool, b->data, b->len);
}

void hs_fault_add(struct hs_pool *pool, struct hs_err *err, const char *type, const char *loc_json,
	const char *msg, const char *input_json, const char *ctx_json)
{
	struct hs_field_error *f;

	if (!err)
		return;
	if (err->n_fields == 0)
		(void)hs_fail(err, HS_E_INVALID, "request did not validate: %s: %s", loc_json, msg);
	if (err->n_fields >= HS_FIELD_ERRORS)
		return;
	f = HS_NEW(pool, struct hs_field_error);
	f->type = hs_pool_strdup(pool, type);
	f->loc = hs_pool_strdup(pool, loc_json);
	f->msg = hs_pool_strdup(pool, msg);
	f->input = hs_pool_strdup(pool, input_json ? input_json : "null");
	f->ctx = hs_pool_strdup(pool, ctx_json);
	if (err->fields_last)
		err->fields_last->next = f;
	else
		err->fields = f;
	err->fields_last = f;
	err->n_fields++;
}

void hs_check_fault(
	struct hs_check *ck, const char *type, const char *msg, json_t *input, const char *ctx_json)
{
	ck->faults++;
	if (ck->err && ck->err->n_fields < HS_FIELD_ERRORS)
		hs_fault_add(ck->pool, ck->err, type, loc_text(ck), msg, input_text(ck, input),
			ctx_json);
}

void hs_check_value_error(struct hs_check *ck, json_t *input, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = hs_pool_vprintf(ck->pool, fmt, ap);
	va_end(ap);
	hs_check_fault(ck, "value_error", hs_pool_printf(ck->pool, "Value error, %s", text), input,
		"{\"error\":{}}");
}

static void push(struct hs_check *ck, const char *key, size_t index)
{
	struct part *p = HS_NEW(ck->pool, struct part);

	p->up = ck->at;
	p->key = key;
	p->index = index;
	ck->at = p;
}

void hs_check_push(struct hs_check *ck, const char *key)
{
	assert(key);
	push(ck, key, 0);
}

void hs_check_push_index(struct hs_check *ck, size_t index)
{
	push(ck, NULL, index);
}

void hs_check_pop(struct hs_check *ck)
{
	assert(ck->at);
	ck->at = ck->at->up;
}

struct hs_pool *hs_check_pool(struct hs_check *ck)
{
	return ck->pool;
}

/* A fault of a limit: msg is a format with one number, ctx {"<name>": n}. */
void hs_fault_limit(struct hs_check *ck, const char *type, const char *what, int64_t n,
	const char *ctx_name, json_t *v)
{
	hs_check_fault(ck, type,
		hs_pool_printf(ck->pool, "Input should be %s %lld", what, (long long)n), v,
		hs_pool_printf(ck->pool, "{\"%s\":%lld}", ctx_name, (long long)n));
}

void hs_fault_length(struct hs_check *ck, bool too_long, int64_t n, json_t *v)
{
	hs_check_fault(ck, too_long ? "string_too_long" : "string_too_short",
		hs_pool_printf(ck->pool, "String should have at %s %lld character%s",
			too_long ? "most" : "least", (long long)n, n == 1 ? "" : "s"),
		v,
		hs_pool_printf(ck->pool, "{\"%s\":%lld}", too_long ? "max_length" : "min_length",
			(long long)n));
}

void hs_fault_count(struct hs_check *ck, bool too_many, int64_t n, size_t actual, json_t *v)
{
	hs_check_fault(ck, too_many ? "too_long" : "too_short",
		hs_pool_printf(ck->pool,
			"List should have at %s %lld item%s after validation, not %zu",
			too_many ? "most" : "least", (long long)n, n == 1 ? "" : "s", actual),
		v,
		hs_pool_printf(ck->pool,
			"{\"field_type\":\"List\",\"%s\":%lld,\"actual_length\":%zu}",
			too_many ? "max_length" : "min_length", (long long)n, actual));
}
