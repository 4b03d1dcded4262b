#include "mcp.h"

#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "json/json.h"

/* clang-format off */
const struct mcp_tool mcp_tools[] = {
	{"retain",
	 "Store something worth keeping in long-term memory. Call this on your own initiative whenever "
	 "the user tells personal facts or preferences, when an event, a decision, a goal, a relationship "
	 "or work context comes up that later conversations may need. One call a topic, in full "
	 "sentences; it is stored in the background.",
	 &mcp_retain_args, mcp_retain, MCP_STATUS, MCP_WRITE,
	 MCP_BANK | MCP_PLAIN | MCP_ONE_LINE | MCP_ADVISED, NULL, NULL},
	{"recall",
	 "Search long-term memory and get the memories that fit best. Call this on your own initiative: "
	 "at the start of a conversation, before you recommend or decide something, and whenever earlier "
	 "facts, preferences or events could matter for continuity.",
	 &mcp_recall_args, mcp_recall, MCP_OBJECT, MCP_READ,
	 MCP_BANK | MCP_ONE_LINE | MCP_ADVISED, "results", "[]"},
	{"reflect",
	 "Ask a question that needs thought: memories, observations and mental models are searched and "
	 "one reasoned answer is written from them. Slower than recall; use it for summaries, judgements "
	 "and questions over many memories.",
	 &mcp_reflect_args, mcp_reflect, MCP_OBJECT, MCP_READ, MCP_BANK | MCP_LONG, "text", "\"\""},
	{"list_banks", "List the memory banks, the most recently written first.",
	 &mcp_list_banks_args, mcp_list_banks, MCP_OBJECT, MCP_READ, MCP_MULTI, "banks", "[]"},
	{"create_bank",
	 "Create a memory bank, or set the name and mission of one that exists.",
	 &mcp_create_bank_args, mcp_create_bank, MCP_OBJECT, MCP_WRITE, MCP_MULTI, NULL, NULL},
	{"list_mental_models",
	 "List the mental models of the bank: standing documents that are kept current from memories. "
	 "Shows names, tags, times and whether each is stale, without the texts.",
	 &mcp_list_models_args, mcp_list_models, MCP_OBJECT, MCP_READ, MCP_BANK, "items", "[]"},
	{"get_mental_model", "Read one mental model.",
	 &mcp_get_model_args, mcp_get_model, MCP_OBJECT, MCP_READ, MCP_BANK, NULL, NULL},
	{"create_mental_model",
	 "Create a mental model: a document that answers source_query from the bank's memories and can "
	 "be kept current. Its first text is written in the background.",
	 &mcp_create_model_args, mcp_create_model, MCP_OBJECT, MCP_WRITE,
	 MCP_BANK | MCP_ONE_LINE, NULL, NULL},
	{"update_mental_model",
	 "Change a mental model's name, question, tags, length or trigger; what is left out stays. Its "
	 "text is not written anew.",
	 &mcp_update_model_args, mcp_update_model, MCP_OBJECT, MCP_WRITE, MCP_BANK, NULL, NULL},
	{"delete_mental_model", "Delete a mental model with its history.",
	 &mcp_model_args, mcp_delete_model, MCP_OBJECT, MCP_WRITE,
	 MCP_BANK | MCP_ONE_LINE | MCP_DESTROYS, NULL, NULL},
	{"refresh_mental_model",
	 "Write a mental model anew from the present memories, in the background.",
	 &mcp_model_args, mcp_refresh_model, MCP_OBJECT, MCP_WRITE, MCP_BANK | MCP_ONE_LINE, NULL, NULL},
	{"get_memory", "Read one memory by its id, an observation with the facts it rests on.",
	 &mcp_memory_args, mcp_get_memory, MCP_OBJECT, MCP_READ, MCP_BANK, NULL, NULL},
	{"list_operations", "List background operations of the bank, the newest first.",
	 &mcp_list_operations_args, mcp_list_operations, MCP_OBJECT, MCP_READ, MCP_BANK, NULL, NULL},
	{"get_operation", "Read the state of one background operation.",
	 &mcp_operation_args, mcp_get_operation, MCP_OBJECT, MCP_READ, MCP_BANK, NULL, NULL},
	{"cancel_operation", "Cancel a background operation that waits or runs.",
	 &mcp_operation_args, mcp_cancel_operation, MCP_OBJECT, MCP_WRITE,
	 MCP_BANK | MCP_ONE_LINE, NULL, NULL},
	{"get_bank", "Read the name, mission and disposition of the bank.",
	 &mcp_no_args, mcp_get_bank, MCP_OBJECT, MCP_READ, MCP_BANK, NULL, NULL},
	{"hindsight_put",
	 "Store a new memory for a user: personal facts, preferences, events, decisions and goals. Each "
	 "user has a bank_id of their own.",
	 &mcp_put_args, mcp_put, MCP_TEXT, MCP_WRITE, MCP_LONG, NULL, NULL},
	{"hindsight_search",
	 "Search the memories of a user, at the start of a conversation, before recommendations and when "
	 "the user asks about something said before.",
	 &mcp_search_args, mcp_search, MCP_TEXT, MCP_READ, 0, NULL, NULL},
};
/* clang-format on */
const size_t n_mcp_tools = HS_COUNT(mcp_tools);

static const struct mcp_tool *tool_find(const char *name)
{
	for (size_t i = 0; i < n_mcp_tools; i++)
		if (strcmp(mcp_tools[i].name, name) == 0)
			return &mcp_tools[i];
	return NULL;
}

bool mcp_unavailable(enum hs_rc rc)
{
	return rc == HS_E_DB_DOWN || rc == HS_E_DB_BUSY || rc == HS_E_DB_DEADLOCK ||
	       rc == HS_E_DB_SCHEMA;
}

/* ---- which tools are offered ---- */

static bool passes(const struct mcp_filter *f, const char *name)
{
	return f->all || hs_strs_has(&f->names, name);
}

/* An empty list of the server is none at all, one of a bank lets nothing through. */
static struct mcp_filter server_filter(const struct hs_config *cfg)
{
	struct mcp_filter f = {.names = hs_cfg_list(cfg, HS_S_mcp_enabled_tools)};

	f.all = f.names.n == 0;
	return f;
}

/* The bank's own list; a bank that has none, or does not exist yet, lets everything through. */
static enum hs_rc read_filter(struct mcp *m, const char *bank_id, struct mcp_filter *ret)
{
	struct hs_ctx *c = m->c;
	json_t *overrides, *list;
	struct hs_bank bank;
	enum hs_rc rc = hs_bank_find(c->db, c->pool, bank_id, &bank, &c->err);

	*ret = (struct mcp_filter){.all = true};
	if (rc == HS_E_BANK_MISSING) {
		hs_err_clear(&c->err);
		return HS_OK;
	}
	HS_TRY(rc);
	HS_TRY(hs_json_load(c->pool, bank.config, &overrides, &c->err));
	list = hs_json_arr(overrides, hs_settings[HS_S_mcp_enabled_tools].name);
	ret->all = list == NULL;
	ret->names = hs_json_strs(c->pool, list);
	return HS_OK;
}

/* What the address, the server's own list and the session bank's list let through. */
static enum hs_rc offered(struct mcp *m, const struct mcp_tool *t, bool *ret)
{
	struct mcp_filter server = server_filter(m->c->cfg);

	if (!m->session) {
		struct mcp_filter *f = HS_NEW(m->c->pool, struct mcp_filter);

		HS_TRY(read_filter(m, m->bank_id, f));
		m->session = f;
	}
	*ret = !(m->single && (t->flags & MCP_MULTI)) && passes(&server, t->name) &&
	       passes(m->session, t->name);
	return HS_OK;
}

/* ---- tools/list ---- */

#define TITLE_MAX 64

/* The name in words: "List Mental Models". */
static void put_title(struct hs_out *o, const char *name)
{
	char title[TITLE_MAX];
	bool first = true;
	size_t n = 0;

	for (; *name && n + 1 < sizeof(title); name++) {
		char ch = *name == '_' ? ' ' : *name;

		title[n++] = first && ch >= 'a' && ch <= 'z' ? (char)(ch - 'a' + 'A') : ch;
		first = ch == ' ';
	}
	title[n] = '\0';
	hs_out_str(o, "title", title);
}

static void put_description(struct mcp *m, struct hs_out *o, const struct mcp_tool *t)
{
	const char *more = hs_cfg_str(m->c->cfg, HS_S_mcp_instructions);

	if (!(t->flags & MCP_ADVISED) || hs_str_blank(more))
		hs_out_str(o, "description", t->description);
	else
		hs_out_str(o, "description",
			hs_pool_printf(m->c->pool, "%s\n\nAdditional instructions: %s",
				t->description, hs_str_trim(m->c->pool, more)));
}

/* Is the structured content the object itself, not its text? */
static bool structured(const struct mcp *m, const struct mcp_tool *t)
{
	return m->single || (t->flags & MCP_PLAIN);
}

static void put_output(struct mcp *m, struct hs_out *o, const struct mcp_tool *t)
{
	if (t->style == MCP_TEXT)
		return;
	hs_out_raw(o, "outputSchema",
		structured(m, t)
			? "{\"type\":\"object\",\"additionalProperties\":true}"
			: "{\"type\":\"object\",\"properties\":{\"result\":{\"type\":\"string\"}},"
			  "\"required\":[\"result\"],\"x-fastmcp-wrap-result\":true}",
		NULL);
}

static void put_tool(struct mcp *m, struct hs_out *o, const struct mcp_tool *t)
{
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "name", t->name);
	put_title(o, t->name);
	put_description(m, o, t);
	mcp_schema_put(o, "inputSchema", t->args, !m->single && (t->flags & MCP_BANK));
	put_output(m, o, t);
	hs_out_open(o, "annotations", '{');
	hs_out_bool(o, "readOnlyHint", t->level == MCP_READ);
	if (t->level != MCP_READ)
		hs_out_bool(o, "destructiveHint", t->flags & MCP_DESTROYS);
	hs_out_bool(o, "openWorldHint", false);
	hs_out_close(o, '}');
	hs_out_close(o, '}');
}

enum hs_rc mcp_tools_list(struct mcp *m, struct hs_out *o)
{
	hs_out_open(o, "tools", '[');
	for (size_t i = 0; i < n_mcp_tools; i++) {
		const struct mcp_tool *t = &mcp_tools[i];
		bool shown;

		HS_TRY(offered(m, t, &shown));
		if (shown && !(m->single && t->style == MCP_TEXT))
			put_tool(m, o, t);
	}
	hs_out_close(o, ']');
	return HS_OK;
}

/* ---- results ---- */

struct result {
	const char *text;
	bool is_error;
	const char *object; /* JSON text of the structured content; NULL = none */
	bool wrapped;       /* the structured content holds the text */
};

static void put_result(struct hs_out *o, const struct result *r)
{
	hs_out_open(o, "result", '{');
	hs_out_open(o, "content", '[');
	hs_out_open(o, NULL, '{');
	hs_out_str(o, "type", "text");
	hs_out_str(o, "text", r->text);
	hs_out_close(o, '}');
	hs_out_close(o, ']');
	hs_out_bool(o, "isError", r->is_error);
	if (r->wrapped) {
		hs_out_open(o, "structuredContent", '{');
		hs_out_str(o, "result", r->text);
		hs_out_close(o, '}');
	} else if (r->object) {
		hs_out_raw(o, "structuredContent", r->object, NULL);
	}
	hs_out_close(o, '}');
}

static void put_refusal(struct hs_out *o, const char *text)
{
	put_result(o, &(struct result){.text = text, .is_error = true});
}

static void put_unknown(struct mcp *m, struct hs_out *o, const char *name)
{
	put_refusal(o, hs_pool_printf(m->c->pool, "Unknown tool: '%s'", name));
}

static void new_line(struct hs_buf *b, int depth)
{
	hs_buf_char(b, '\n');
	for (int i = 0; i < depth; i++)
		hs_buf_str(b, "  ");
}

/* Compact JSON text, indented by two. */
static const char *indented(struct hs_pool *pool, const char *s)
{
	struct hs_buf *b = hs_buf_new(pool, HS_REPLY_MAX);
	bool quoted = false;
	int depth = 0;

	for (; *s; s++) {
		bool empty = (*s == '{' && s[1] == '}') || (*s == '[' && s[1] == ']');

		if (!quoted && (*s == '}' || *s == ']'))
			new_line(b, --depth);
		hs_buf_char(b, *s);
		if (*s == '"')
			quoted = !quoted;
		else if (quoted && *s == '\\' && s[1])
			hs_buf_char(b, *++s);
		else if (!quoted && empty)
			hs_buf_char(b, *++s);
		else if (!quoted && (*s == '{' || *s == '['))
			new_line(b, ++depth);
		else if (!quoted && *s == ',')
			new_line(b, depth);
		else if (!quoted && *s == ':')
			hs_buf_char(b, ' ');
	}
	return b->data;
}

static void put_object(
	struct mcp *m, struct hs_out *o, const struct mcp_tool *t, const char *object)
{
	struct result r = {.text = object, .object = object};

	r.wrapped = !structured(m, t);
	if (r.wrapped && !(t->flags & MCP_ONE_LINE))
		r.text = indented(m->c->pool, object);
	put_result(o, &r);
}

/* ---- failures ---- */

/* ["arguments","tags",0] -> tags.0 */
static const char *place_of(struct hs_pool *pool, const struct hs_field_error *f)
{
	struct hs_strs parts = {0};
	json_t *loc = NULL, *part;
	size_t i;

	if (hs_json_load(pool, f->loc, &loc, NULL) != HS_OK)
		return "";
	json_array_foreach(loc, i, part) {
		if (i == 0)
			continue;
		if (json_is_integer(part))
			hs_strs_add(pool, &parts,
				hs_pool_printf(pool, "%lld", (long long)json_integer_value(part)));
		else
			hs_strs_add(pool, &parts, json_string_value(part));
	}
	return hs_strs_join(pool, &parts, ".");
}

static const char *fault_text(const struct hs_field_error *f)
{
	static const char lead[] = "Value error, ";

	return hs_str_starts(f->msg, lead) ? f->msg + strlen(lead) : f->msg;
}

/* What a client may read about a failure of the engine; of a body made here, its first fault. */
static const char *failure_text(struct hs_pool *pool, const struct hs_err *err)
{
	const struct hs_field_error *f = err->fields;
	const char *place;

	if (!f)
		return hs_err_public(err);
	place = place_of(pool, f);
	if (!*place || strstr(fault_text(f), place))
		return fault_text(f);
	return hs_pool_printf(pool, "%s: %s", place, fault_text(f));
}

static const char *failure_object(const struct mcp_tool *t, struct hs_pool *pool, const char *text)
{
	struct hs_buf *b = hs_buf_new(pool, HS_REPLY_MAX);
	struct hs_out o = hs_out_to(b);

	hs_out_open(&o, NULL, '{');
	if (t->style == MCP_STATUS) {
		hs_out_str(&o, "status", "error");
		hs_out_str(&o, "message", text);
	} else {
		hs_out_str(&o, "error", text);
	}
	if (t->empty_key)
		hs_out_raw(&o, t->empty_key, t->empty, NULL);
	hs_out_close(&o, '}');
	return b->data;
}

static void put_failure(struct mcp *m, struct hs_out *o, const struct mcp_tool *t, const char *text)
{
	struct hs_pool *pool = m->c->pool;

	if (t->style == MCP_TEXT)
		put_refusal(o, hs_pool_printf(pool, "Error: %s", text));
	else
		put_object(m, o, t, failure_object(t, pool, text));
}

/* The legacy tools name the first problem only, in the words of their contract. */
static const char *legacy_text(struct hs_pool *pool, const struct hs_field_error *f)
{
	bool wanting = strcmp(f->type, "missing") == 0 || strcmp(f->type, "value_error") == 0;

	if (wanting)
		return hs_pool_printf(pool, "%s is required", place_of(pool, f));
	return hs_pool_printf(pool, "%s: %s", place_of(pool, f), f->msg);
}

static void put_wrong_arguments(
	struct mcp *m, struct hs_out *o, const struct mcp_tool *t, const struct hs_field_error *f)
{
	struct hs_pool *pool = m->c->pool;
	struct hs_strs all = {0};

	if (t->style == MCP_TEXT) {
		put_failure(m, o, t, legacy_text(pool, f));
		return;
	}
	for (; f; f = f->next)
		hs_strs_add(pool, &all,
			strcmp(f->type, "missing") == 0
				? hs_pool_printf(pool, "'%s' is required", place_of(pool, f))
				: hs_pool_printf(
					  pool, "'%s': %s", place_of(pool, f), fault_text(f)));
	put_refusal(o, hs_pool_printf(pool, "Invalid arguments for %s: %s", t->name,
			       hs_strs_join(pool, &all, "; ")));
}

/* ---- tools/call ---- */

static bool gone(void *arg)
{
	return hs_request_gone(arg);
}

static struct hs_run run_of(struct hs_ctx *c)
{
	const struct mcp_data *data = c->app->data;

	return (struct hs_run){
		.db = c->db,
		.pool = c->pool,
		.server = c->cfg,
		.llm = data->llm,
		.embedder = data->embedder,
		.cancelled = gone,
		.cancel_arg = c,
		.source = "api",
	};
}

/* The argument, where the address leaves it to the arguments; else the session's bank. */
static const char *effective_bank(const struct mcp *m, const json_t *arguments)
{
	const char *given = m->single ? NULL : hs_json_str(arguments, "bank_id");

	return hs_str_empty(given) ? m->bank_id : given;
}

static enum hs_rc may_call(struct mcp *m, const struct mcp_tool *t, const char *bank_id, bool *ret)
{
	struct mcp_filter own;

	*ret = false;
	if (!t)
		return HS_OK;
	HS_TRY(offered(m, t, ret));
	if (!*ret || strcmp(bank_id, m->bank_id) == 0)
		return HS_OK;
	HS_TRY(read_filter(m, bank_id, &own));
	*ret = passes(&own, t->name);
	return HS_OK;
}

/* On an address of one bank the legacy tools need not name it, and may name no other. */
static bool legacy_bank(struct mcp *m, struct hs_out *o, const struct mcp_tool *t, json_t *sent)
{
	const json_t *given = json_object_get(sent, "bank_id");

	if (!m->single || t->style != MCP_TEXT)
		return true;
	if (!given || json_is_null(given)) {
		json_object_set_new(sent, "bank_id", json_string(m->bank_id));
		return true;
	}
	if (!json_is_string(given) || hs_str_eq(json_string_value(given), m->bank_id))
		return true;
	put_failure(m, o, t,
		hs_pool_printf(m->c->pool, "Memory bank '%s' not found", json_string_value(given)));
	return false;
}

static enum hs_rc check(
	struct mcp *m, const struct mcp_tool *t, json_t *sent, void **ret, struct hs_err *err)
{
	const json_t *bank = json_object_get(sent, "bank_id");
	enum hs_rc rc = hs_check_object(m->c->pool, t->args, "arguments", sent, ret, NULL, err);

	if (m->single || !(t->flags & MCP_BANK) || !bank || json_is_string(bank) ||
		json_is_null(bank))
		return rc;
	hs_fault_add(m->c->pool, err, "string_type", "[\"arguments\",\"bank_id\"]",
		"Input should be a valid string", "null", NULL);
	return HS_E_INVALID;
}

static enum hs_rc run(struct mcp *m, const struct mcp_tool *t, struct mcp_call *k, const void *args)
{
	enum hs_rc rc;

	if (!(t->flags & MCP_LONG))
		return t->fn(k, args);
	HS_TRY(hs_long_enter(m->c, t->name));
	rc = t->fn(k, args);
	hs_long_leave(m->c);
	return rc;
}

/* Runs a tool that is offered; what it says, failures included, is the result. */
static enum hs_rc call(struct mcp *m, const struct mcp_tool *t, const char *bank_id,
	json_t *arguments, struct hs_out *o)
{
	struct hs_ctx *c = m->c;
	struct hs_buf *text = hs_buf_new(c->pool, HS_REPLY_MAX);
	struct hs_out inner = hs_out_to(text);
	struct hs_run engine = run_of(c);
	struct hs_err wrong = {0};
	struct mcp_call k = {
		.c = c, .bank_id = bank_id, .run = &engine, .o = &inner, .err = &c->err};
	void *args = NULL;
	enum hs_rc rc;

	k.sent = mcp_coerce(c->pool, t->args, arguments);
	if (!legacy_bank(m, o, t, k.sent))
		return HS_OK;
	if (check(m, t, k.sent, &args, &wrong) != HS_OK) {
		put_wrong_arguments(m, o, t, wrong.fields);
		return HS_OK;
	}
	rc = run(m, t, &k, args);
	if (rc == HS_OK)
		rc = hs_buf_ok(text, "result", &c->err);
	if (mcp_unavailable(rc))
		return rc;
	if (rc != HS_OK) {
		if (hs_rc_status(rc) >= 500)
			hs_log(HS_LOG_ERROR, "tool", "id=%s tool=%s code=%s error=%s",
				c->req->request_id, t->name, hs_rc_name(rc),
				hs_log_quote(c->err.msg));
		put_failure(m, o, t, failure_text(c->pool, &c->err));
	} else if (t->style == MCP_TEXT) {
		put_result(o, &(struct result){.text = text->data});
	} else {
		put_object(m, o, t, text->data);
	}
	hs_err_clear(&c->err);
	return HS_OK;
}

enum hs_rc mcp_tool_call(struct mcp *m, const char *name, json_t *arguments, struct hs_out *o)
{
	const struct mcp_tool *t = tool_find(name);
	const char *bank_id = effective_bank(m, arguments);
	bool may;

	HS_TRY(may_call(m, t, bank_id, &may));
	if (may)
		return call(m, t, bank_id, arguments, o);
	put_unknown(m, o, name);
	return HS_OK;
}

/* ---- for the calls ---- */

void mcp_keep(json_t *to, json_t *from, const char *key)
{
	json_t *v = json_object_get(from, key);

	if (v && !json_is_null(v))
		json_object_set(to, key, v);
}

enum hs_rc mcp_body(struct mcp_call *k, const struct hs_shape *shape, json_t *body, void **ret)
{
	return hs_check_object(k->c->pool, shape, "body", body, ret, NULL, k->err);
}
