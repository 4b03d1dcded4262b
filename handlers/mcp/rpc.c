#include "mcp.h"

#include <string.h>

#include "base/log.h"
#include "json/json.h"
#include "web/system.h"

#define LAST_VERSION "2025-11-25"
#define BATCH_MAX 100

enum code {
	PARSE_ERROR = -32700,
	INVALID_REQUEST = -32600,
	METHOD_NOT_FOUND = -32601,
	INVALID_PARAMS = -32602,
	INTERNAL_ERROR = -32603,
};
/* What goes wrong with a request; data is what the method says about it. */
struct fault {
	enum code code;
	const char *message, *data;
};

/* Versions with a handshake; only the first two know batches. */
static const struct {
	const char *name;
	bool batches;
} versions[] = {
	{"2024-11-05", true}, {"2025-03-26", true}, {"2025-06-18", false}, {LAST_VERSION, false}};

static bool served(const char *version, bool *ret_batches)
{
	for (size_t i = 0; i < HS_COUNT(versions); i++) {
		if (!hs_str_eq(version, versions[i].name))
			continue;
		if (ret_batches)
			*ret_batches = versions[i].batches;
		return true;
	}
	return false;
}

/* ---- methods: write "result", or tell the fault and write nothing ---- */

typedef bool method_fn(struct mcp *m, json_t *params, struct hs_out *o, struct fault *f);

static bool wrong_params(struct fault *f)
{
	*f = (struct fault){INVALID_PARAMS, "Invalid request parameters", NULL};
	return false;
}

/* A failure of the server inside a method: what is told never holds the cause. */
static bool failed(struct mcp *m, enum hs_rc rc, struct fault *f)
{
	struct hs_ctx *c = m->c;

	*f = (struct fault){INTERNAL_ERROR, "Internal error", NULL};
	if (mcp_unavailable(rc)) {
		c->res->status = 503;
		hs_response_header(c->res, "Retry-After", "1");
	} else {
		hs_log(HS_LOG_ERROR, "mcp", "id=%s code=%s error=%s", c->req->request_id,
			hs_rc_name(rc), hs_log_quote(c->err.msg));
	}
	return false;
}

static bool initialize(struct mcp *m, json_t *params, struct hs_out *o, struct fault *f)
{
	const char *asked = hs_json_str(params, "protocolVersion");

	(void)m;
	if (!asked)
		return wrong_params(f);
	hs_out_open(o, "result", '{');
	hs_out_str(o, "protocolVersion", served(asked, NULL) ? asked : LAST_VERSION);
	hs_out_raw(o, "capabilities", "{\"tools\":{\"listChanged\":false}}", NULL);
	hs_out_open(o, "serverInfo", '{');
	hs_out_str(o, "name", "hindsight-mcp-server");
	hs_out_str(o, "version", HS_API_VERSION);
	hs_out_close(o, '}');
	hs_out_close(o, '}');
	return true;
}

static bool ping(struct mcp *m, json_t *params, struct hs_out *o, struct fault *f)
{
	(void)m;
	(void)params;
	(void)f;
	hs_out_raw(o, "result", "{}", NULL);
	return true;
}

/* Everything fits one page: no cursor was ever given out. */
static bool cursor_given(const json_t *params)
{
	const json_t *cursor = json_object_get(params, "cursor");

	return cursor && !json_is_null(cursor);
}

static bool tools_list(struct mcp *m, json_t *params, struct hs_out *o, struct fault *f)
{
	struct hs_out before = *o;
	size_t at = o->buf->len;
	enum hs_rc rc;

	if (cursor_given(params))
		return wrong_params(f);
	hs_out_open(o, "result", '{');
	rc = mcp_tools_list(m, o);
	if (rc != HS_OK) {
		hs_buf_cut(o->buf, at);
		*o = before;
		return failed(m, rc, f);
	}
	hs_out_close(o, '}');
	return true;
}

static bool tools_call(struct mcp *m, json_t *params, struct hs_out *o, struct fault *f)
{
	const char *name = hs_json_str(params, "name");
	json_t *arguments = json_object_get(params, "arguments");
	enum hs_rc rc;

	if (!name || (arguments && !json_is_object(arguments) && !json_is_null(arguments)))
		return wrong_params(f);
	rc = mcp_tool_call(m, name, arguments, o);
	return rc == HS_OK || failed(m, rc, f);
}

/* Lists of what this server does not have. */
static bool empty_list(json_t *params, const char *text, struct hs_out *o, struct fault *f)
{
	if (cursor_given(params))
		return wrong_params(f);
	hs_out_raw(o, "result", text, NULL);
	return true;
}

static bool resources_list(struct mcp *m, json_t *params, struct hs_out *o, struct fault *f)
{
	(void)m;
	return empty_list(params, "{\"resources\":[]}", o, f);
}

static bool templates_list(struct mcp *m, json_t *params, struct hs_out *o, struct fault *f)
{
	(void)m;
	return empty_list(params, "{\"resourceTemplates\":[]}", o, f);
}

static bool prompts_list(struct mcp *m, json_t *params, struct hs_out *o, struct fault *f)
{
	(void)m;
	return empty_list(params, "{\"prompts\":[]}", o, f);
}

static const struct {
	const char *name;
	method_fn *fn;
} methods[] = {
	{"initialize", initialize},
	{"ping", ping},
	{"tools/list", tools_list},
	{"tools/call", tools_call},
	{"resources/list", resources_list},
	{"resources/templates/list", templates_list},
	{"prompts/list", prompts_list},
};

static method_fn *method_find(const char *name)
{
	for (size_t i = 0; i < HS_COUNT(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return methods[i].fn;
	return NULL;
}

/* ---- frames ---- */

/* id NULL prints null. */
static void frame_open(struct hs_out *o, const json_t *id)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "jsonrpc", "2.0");
	hs_out_json(o, "id", id);
}

static void put_fault(struct hs_out *o, const struct fault *f)
{
	hs_out_open(o, "error", '{');
	hs_out_int(o, "code", f->code);
	hs_out_str(o, "message", f->message);
	if (f->data)
		hs_out_str(o, "data", f->data);
	hs_out_close(o, '}');
}

static void put_error(
	struct hs_out *o, const json_t *id, enum code code, const char *message, const char *data)
{
	const struct fault f = {code, message, data};

	frame_open(o, id);
	put_fault(o, &f);
	hs_out_close(o, '}');
}

static void put_reply(struct mcp *m, json_t *msg, struct hs_out *o)
{
	const char *name = hs_json_str(msg, "method");
	method_fn *fn = method_find(name);
	struct fault f = {METHOD_NOT_FOUND, "Method not found", name};
	json_t *params = json_object_get(msg, "params");
	bool done = false;

	frame_open(o, json_object_get(msg, "id"));
	if (fn && json_is_array(params))
		wrong_params(&f);
	else if (fn)
		done = fn(m, params, o, &f);
	if (!done)
		put_fault(o, &f);
	hs_out_close(o, '}');
}

enum kind { INVALID, REQUEST, NOTIFICATION, RESPONSE };

static enum kind kind_of(const json_t *msg)
{
	const json_t *id = json_object_get(msg, "id"), *params = json_object_get(msg, "params");
	const json_t *method = json_object_get(msg, "method");

	if (!hs_str_eq(hs_json_str(msg, "jsonrpc"), "2.0"))
		return INVALID;
	if (!method)
		return json_object_get(msg, "result") || json_object_get(msg, "error") ? RESPONSE
										       : INVALID;
	if (!json_is_string(method))
		return INVALID;
	if (params && !json_is_object(params) && !json_is_array(params) && !json_is_null(params))
		return INVALID;
	if (!id)
		return NOTIFICATION;
	return json_is_string(id) || json_is_integer(id) ? REQUEST : INVALID;
}

/* ---- answers ---- */

static void answer_error(struct hs_ctx *c, int status, const char *text)
{
	struct hs_out o = hs_reply_status(c, status);

	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "error", text);
	hs_out_close(&o, '}');
}

static void answer_fault(struct hs_ctx *c, int status, const json_t *id, enum code code,
	const char *message, const char *data)
{
	struct hs_out o = hs_reply_status(c, status);

	put_error(&o, id, code, message, data);
}

static void accepted(struct hs_ctx *c)
{
	(void)hs_reply_status(c, 202);
}

static void invalid(struct hs_ctx *c)
{
	answer_fault(c, 400, NULL, INVALID_REQUEST, "Invalid Request", NULL);
}

static void answer_one(struct mcp *m, json_t *msg, bool known_version)
{
	enum kind kind = kind_of(msg);
	const char *name = hs_json_str(msg, "method");
	struct hs_out o;

	if (kind == INVALID) {
		invalid(m->c);
	} else if (kind != REQUEST) {
		accepted(m->c);
	} else if (!known_version && strcmp(name, "initialize") != 0) {
		answer_fault(m->c, 400, json_object_get(msg, "id"), METHOD_NOT_FOUND,
			"Method not found", name);
	} else {
		o = hs_reply(m->c);
		put_reply(m, msg, &o);
	}
}

static bool batch_fits(json_t *batch)
{
	json_t *msg;
	size_t i;

	json_array_foreach(batch, i, msg)
		if (hs_str_eq(hs_json_str(msg, "method"), "initialize"))
			return false;
	return json_array_size(batch) > 0 && json_array_size(batch) <= BATCH_MAX;
}

static void answer_batch(struct mcp *m, json_t *batch)
{
	struct hs_out o = hs_reply(m->c);
	bool any = false;
	json_t *msg;
	size_t i;

	hs_out_open(&o, NULL, '[');
	json_array_foreach(batch, i, msg) {
		enum kind kind = kind_of(msg);

		any = any || kind == REQUEST || kind == INVALID;
		if (kind == REQUEST)
			put_reply(m, msg, &o);
		else if (kind == INVALID)
			put_error(&o, NULL, INVALID_REQUEST, "Invalid Request", NULL);
	}
	hs_out_close(&o, ']');
	if (!any)
		accepted(m->c);
}

static void post(struct mcp *m)
{
	struct hs_ctx *c = m->c;
	const char *version = c->req->header(c->req, "HTTP_MCP_PROTOCOL_VERSION");
	bool batches = true, known = hs_str_empty(version) || served(version, &batches);
	struct hs_json_fault fault = {0};
	struct hs_err ignored = {0};
	json_t *body;

	if (hs_request_fits(c) != HS_OK)
		answer_fault(c, 413, NULL, INVALID_REQUEST, "Request body too large", NULL);
	else if (!hs_request_is_json(c->req))
		answer_fault(c, 415, NULL, INVALID_REQUEST, "Content-Type must be application/json",
			NULL);
	else if (hs_json_parse(c->pool, c->req->body, c->req->body_bytes, &body, &fault,
			 &ignored) != HS_OK)
		answer_fault(c, 400, NULL, PARSE_ERROR,
			hs_pool_printf(c->pool, "Parse error: %s", fault.text), NULL);
	else if (!json_is_array(body))
		answer_one(m, body, known);
	else if (known && batches && batch_fits(body))
		answer_batch(m, body);
	else
		invalid(c);
}

static void not_allowed(struct hs_ctx *c)
{
	hs_response_header(c->res, "Allow", "POST");
	answer_fault(c, 405, NULL, INVALID_REQUEST,
		c->req->method == HS_DELETE
			? "Method Not Allowed: Session termination not supported"
			: "Method Not Allowed",
		NULL);
}

/* ---- who asks, and where ---- */

/* A client looks whether the address answers before it says anything: no key is asked. */
static bool is_probe(const struct hs_request *r)
{
	return r->method == HS_GET && !r->header(r, "HTTP_MCP_SESSION_ID") &&
	       !r->header(r, "HTTP_MCP_PROTOCOL_VERSION");
}

/* NULL = welcome, else the text of the 401. */
static const char *refusal(struct hs_ctx *c)
{
	const char *own = hs_cfg_str(c->cfg, HS_S_mcp_auth_token);
	const char *key = hs_cfg_str(c->cfg, HS_S_tenant_api_key);
	const char *token = hs_request_token(c);

	if (!hs_str_empty(own)) {
		if (hs_str_empty(token))
			return "Authorization header required";
		if (c->req->n_authorization > 1 || !hs_key_equal(token, own))
			return "Invalid authentication token";
		return NULL;
	}
	if (hs_str_empty(key) || hs_cfg_bool(c->cfg, HS_S_tenant_mcp_auth_disabled))
		return NULL;
	if (c->req->n_authorization > 1 || !token || !hs_key_equal(token, key))
		return "Authentication failed: Invalid API key";
	return NULL;
}

enum place { ELSEWHERE, OURS, DEEPER, BAD_BANK };

static const char *header_bank(struct hs_ctx *c)
{
	const struct mcp_data *data = c->app->data;
	const char *bank = c->req->header(c->req, "HTTP_X_BANK_ID");

	return hs_str_empty(bank) ? data->default_bank : hs_pool_strdup(c->pool, bank);
}

/* The first segment below the base path is ours, the second names the bank. */
static enum place find_place(struct mcp *m)
{
	struct hs_ctx *c = m->c;
	const struct hs_strs *path = &c->req->segments;

	if (c->err.rc == HS_E_NOT_FOUND || path->n == 0 || strcmp(path->v[0], "mcp") != 0)
		return ELSEWHERE;
	if (c->req->bad_path)
		return path->n == 1 ? BAD_BANK : DEEPER;
	if (path->n > 2 || (path->n == 2 && !*path->v[1]))
		return DEEPER;
	m->single = path->n == 2;
	m->bank_id = m->single ? path->v[1] : header_bank(c);
	return hs_utf8_valid(m->bank_id, strlen(m->bank_id)) ? OURS : BAD_BANK;
}

static void serve(struct mcp *m, enum place place)
{
	struct hs_ctx *c = m->c;
	const char *refused;

	if (place == OURS && is_probe(c->req)) {
		struct hs_out o = hs_reply(c);

		hs_out_raw(&o, NULL, "{}", NULL);
	} else if ((refused = refusal(c)) != NULL) {
		hs_response_header(c->res, "WWW-Authenticate", "Bearer");
		answer_error(c, 401, refused);
	} else if (place == DEEPER) {
		answer_error(c, 404, "Not Found");
	} else if (place == BAD_BANK) {
		answer_error(c, 400, "Invalid bank id");
	} else if (c->req->method == HS_POST) {
		post(m);
	} else {
		not_allowed(c);
	}
}

bool mcp_serve(struct hs_ctx *c)
{
	static const struct hs_route shown[] = {{.pattern = "/mcp"}, {.pattern = "/mcp/{bank_id}"}};
	struct mcp m = {.c = c};
	enum place place = find_place(&m);

	if (place == ELSEWHERE || !hs_cfg_bool(c->cfg, HS_S_mcp_enabled))
		return false;
	hs_err_clear(&c->err);
	c->route = &shown[m.single];
	serve(&m, place);
	if (hs_buf_ok(c->res->body, "answer", &c->err) != HS_OK)
		answer_fault(c, 200, NULL, INTERNAL_ERROR, "Internal error", NULL);
	return true;
}
