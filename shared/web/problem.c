#include "web/problem.h"

#include "base/limits.h"

static void fault(struct hs_out *o, const struct hs_field_error *f)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "type", f->type);
	hs_out_raw(o, "loc", f->loc, "[]");
	hs_out_str(o, "msg", f->msg);
	hs_out_raw(o, "input", f->input, "null");
	if (f->ctx)
		hs_out_raw(o, "ctx", f->ctx, "{}");
	hs_out_close(o, '}');
}

void hs_problem(struct hs_response *res, const struct hs_err *err)
{
	struct hs_out o = hs_out_to(res->body);
	size_t n = 0;

	hs_buf_reset(res->body);
	res->etag = false;
	res->content_type = "application/json";
	res->status = hs_rc_status(err->rc);
	if (res->status == 503) {
		long long wait = err->retry_after_s > 0 ? (long long)err->retry_after_s : 1;

		hs_response_header(res, "Retry-After", hs_pool_printf(res->pool, "%lld", wait));
	}
	hs_out_open(&o, NULL, '{');
	if (err->fields) {
		hs_out_open(&o, "detail", '[');
		for (const struct hs_field_error *f = err->fields; f && n < HS_FIELD_ERRORS;
			f = f->next, n++)
			fault(&o, f);
		hs_out_close(&o, ']');
	} else {
		hs_out_str(&o, "detail", hs_err_public(err));
	}
	hs_out_close(&o, '}');
}
