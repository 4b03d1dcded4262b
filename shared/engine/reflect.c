#include "engine/reflect_run.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "engine/mind.h"
#include "engine/reflect_prompt.h"
#include "json/json.h"
#include "store/clock.h"
#include "store/directive.h"
#include "store/evidence.h"
#include "store/mental_model.h"

#define OBSERVATIONS_TOKENS 5000
#define MODELS_TOKENS 16000
#define PENDING_COUNTED 10 /* "stale" begins there */
#define ERRORS_IN_A_ROW 2
#define REPLY_SHOWN_CHARS 500

struct hs_reflect_in hs_reflect_defaults(
	const struct hs_bank *bank, const struct hs_config *cfg, const char *query)
{
	return (struct hs_reflect_in){
		.bank = bank,
		.cfg = cfg,
		.query = query,
		.budget = "low",
		.max_tokens = 4096,
		.scope = hs_scope_all(),
		.observations_tokens = OBSERVATIONS_TOKENS,
		.models_tokens = MODELS_TOKENS,
		.observations_entities = true,
		.include_chunks = hs_cfg_bool(cfg, HS_S_recall_include_chunks),
		.recall_tokens = hs_cfg_int(cfg, HS_S_recall_max_tokens),
		.recall_chunk_tokens = hs_cfg_int(cfg, HS_S_recall_chunks_max_tokens),
	};
}

/* ---- model calls ---- */

void hs_reflect_trace_call(struct hs_reflection *r, const char *scope, int64_t duration_ms)
{
	struct hs_reflect_out *out = r->out;

	if (out->n_calls == r->cap_calls) {
		size_t cap = r->cap_calls ? r->cap_calls * 2 : 16;

		out->calls = hs_pool_regrow(r->pool, out->calls, out->n_calls * sizeof(*out->calls),
			cap * sizeof(*out->calls));
		r->cap_calls = cap;
	}
	out->calls[out->n_calls++] =
		(struct hs_llm_trace){.scope = scope, .duration_ms = duration_ms};
}

static void add_usage(struct hs_llm_usage *sum, const struct hs_llm_usage *u)
{
	sum->input += u->input;
	sum->output += u->output;
	sum->cached += u->cached;
	sum->thoughts += u->thoughts;
}

enum hs_rc hs_reflect_ask(struct hs_reflection *r, const struct hs_reflect_ask *ask,
	struct hs_llm_reply *ret, struct hs_err *err)
{
	double temperature = hs_llm_temperature(r->in->cfg, "reflect");
	struct hs_llm_call call = {
		.operation = "reflect",
		.scope = ask->scope,
		.messages = ask->messages,
		.tools = ask->tools,
		.tool = ask->tool,
		.temperature = ask->claims && temperature >= 0 ? 0 : temperature,
		.max_tokens = hs_cfg_int(r->in->cfg, HS_S_reflect_max_completion_tokens),
		.max_retries = -1,
		.run_id = r->run_id,
	};
	int64_t started = hs_mono_us();

	hs_err_clear(err);
	HS_TRY(hs_run_check(r->run, err));
	HS_TRY(hs_run_chat(r->run, &call, ret, err));
	add_usage(&r->out->usage, &ret->usage);
	if (ask->trace)
		hs_reflect_trace_call(r, ask->trace, (hs_mono_us() - started) / 1000);
	return HS_OK;
}

bool hs_reflect_fatal(enum hs_rc rc, const struct hs_err *err)
{
	switch (rc) {
	case HS_E_CANCELLED:
	case HS_E_TIMEOUT:
	case HS_E_LLM_NONE:
	case HS_E_LLM_AUTH:
	case HS_E_LLM_POLICY:
	case HS_E_CONFIG:
		return true;
	case HS_E_LLM_REFUSED:
		return err->foreign == 400 || err->foreign == 404;
	default:
		return false;
	}
}

/* ---- setup ---- */

static bool any_fuzzy(struct hs_group *const *groups, size_t n, int depth)
{
	for (size_t i = 0; i < n && depth > 0; i++) {
		const struct hs_group *g = groups[i];

		if (g->kind == HS_GROUP_LEAF ? g->fuzzy && g->tags.n > 0
					     : any_fuzzy(g->kids, g->n_kids, depth - 1))
			return true;
	}
	return false;
}

/* What this release does not do yet is refused before anything is read. */
static enum hs_rc check_supported(
	const struct hs_reflect_in *in, enum hs_mind_kind mind, struct hs_err *err)
{
	if (any_fuzzy(in->scope.groups, in->scope.n_groups, HS_GROUP_DEPTH + 1))
		return hs_fail(err, HS_E_NOT_IMPLEMENTED,
			"fuzzy tag matching is not implemented; use resolve 'exact'");
	if (in->response_schema && mind == HS_MIND_LLM)
		return hs_fail(err, HS_E_NOT_IMPLEMENTED, "structured output is not implemented");
	return HS_OK;
}

enum hs_rc hs_reflect_ready(const struct hs_config *cfg, const char *operation, struct hs_err *err)
{
	if (hs_mind_for(cfg, operation) != HS_MIND_NONE)
		return HS_OK;
	return hs_fail(err, HS_E_LLM_NONE,
		"reflect needs a model, and the provider is 'none'; set HINDSIGHT_API_LLM_PROVIDER"
		" or HINDSIGHT_API_REFLECT_LLM_PROVIDER");
}

/* Which directives apply: tagged ones as the request's tags say, untagged ones always. */
static struct hs_scope directive_scope(const struct hs_reflect_in *in)
{
	struct hs_scope s = hs_scope_all();

	if (in->apply_all_directives)
		return s;
	s.tags = in->scope.tags;
	s.match = in->scope.n_groups > 0 ? HS_ANY : in->scope.match;
	s.has_groups = in->scope.has_groups;
	s.groups = in->scope.groups;
	s.n_groups = in->scope.n_groups;
	s.plus_untagged = true;
	if (s.tags.n == 0 && s.n_groups == 0)
		s.match = HS_EXACT;
	return s;
}

static enum hs_rc load_directives(struct hs_reflection *r, struct hs_err *err)
{
	struct hs_scope scope = directive_scope(r->in);
	struct hs_directive *rows;
	size_t n;

	HS_TRY(hs_directives_load(
		r->run->db, r->pool, r->in->bank->bank_no, &scope, &rows, &n, err));

	r->out->directives = HS_NEW_ARRAY(r->pool, struct hs_reflect_directive, n);
	for (size_t i = 0; i < n; i++)
		r->out->directives[i] =
			(struct hs_reflect_directive){rows[i].id, rows[i].name, rows[i].content};
	r->out->n_directives = n;
	hs_reflect_prompt_directives(r->pool, rows, n, &r->prompt);
	return HS_OK;
}

static enum hs_rc fill_prompt(struct hs_reflection *r, struct hs_err *err)
{
	const struct hs_reflect_in *in = r->in;
	const unsigned raw = HS_FACT_BIT(HS_WORLD) | HS_FACT_BIT(HS_EXPERIENCE);
	int64_t models = 0;

	if (!in->exclude_mental_models)
		HS_TRY(hs_mm_count(r->run->db, in->bank->bank_no, &models, err));
	r->prompt = hs_reflect_prompt_of(in->bank, in->cfg);
	r->prompt.with_models = models > 0;
	r->prompt.with_observations =
		!in->scope.facts || (in->scope.facts & HS_FACT_BIT(HS_OBSERVATION));
	r->prompt.with_recall = !in->scope.facts || (in->scope.facts & raw);
	r->prompt.with_expand = hs_cfg_bool(in->cfg, HS_S_store_document_text);
	r->prompt.document = in->document;
	r->prompt.budget = in->budget;
	r->prompt.question = in->query;
	r->prompt.extra_context = in->extra_context;
	r->prompt.now_us = hs_now_us();
	r->prompt.max_tokens = in->max_tokens;
	return HS_OK;
}

static enum hs_rc setup(struct hs_reflection *r, struct hs_err *err)
{
	char run_id[33];

	hs_random_hex(run_id, 16);
	r->run_id = hs_pool_strdup(r->pool, run_id);
	r->limit_tokens = hs_cfg_int(r->in->cfg, HS_S_reflect_max_context_tokens);
	r->tag_scope = r->in->scope;
	r->tag_scope.facts = 0;
	r->tag_scope.after_us = r->tag_scope.until_us = HS_TIME_NONE;
	hs_view_init(&r->view, r->pool);
	HS_TRY(hs_store_pending(
		r->run->db, r->pool, r->in->bank->bank_no, PENDING_COUNTED, &r->pending, err));
	HS_TRY(hs_clock_read(r->run->db, r->in->bank->bank_no, &r->clock_us, err));
	HS_TRY(fill_prompt(r, err));
	return load_directives(r, err);
}

static int64_t iterations(const struct hs_reflect_in *in)
{
	static const struct {
		const char *budget;
		double factor;
	} factors[] = {{"low", 0.5}, {"mid", 1}, {"high", 2}};
	double n = (double)hs_cfg_int(in->cfg, HS_S_reflect_max_iterations);

	for (size_t i = 0; i < HS_COUNT(factors); i++)
		if (hs_str_eq(in->budget, factors[i].budget))
			n *= factors[i].factor;
	return n < 1 ? 1 : (int64_t)n;
}

/* ---- the loop ---- */

enum next { GO_ON, CLOSE, SYNTHESIZE };

struct loop {
	enum hs_reflect_tool forced[3];
	size_t n_forced, step;
	bool recall_next, recall_forced_once;
	bool text_excused; /* a forced step answered by text was asked for once more */
	bool called;       /* the model has produced a tool call in this run */
	int errors;
	struct hs_strs ids; /* call ids in the conversation */
};

static void loop_init(struct loop *l, const struct hs_reflection *r)
{
	static const enum hs_reflect_tool order[] = {
		HS_RT_SEARCH_MODELS, HS_RT_SEARCH_OBSERVATIONS, HS_RT_RECALL};

	*l = (struct loop){0};
	for (size_t i = 0; i < HS_COUNT(order); i++)
		if (hs_reflect_tool_offered(r, order[i]))
			l->forced[l->n_forced++] = order[i];
}

static bool pending(const struct hs_reflection *r, const struct loop *l)
{
	return !r->released && l->step < l->n_forced;
}

static bool evidence(const struct hs_reflection *r)
{
	return r->n_facts > 0 || r->n_models > 0;
}

/* Make room for a forced step: earlier tool messages are emptied, oldest first. */
static void compact(struct hs_reflection *r)
{
	const char *blank = hs_loop_text(HS_LT_BLANKED);
	json_t *m;
	size_t i;

	json_array_foreach(r->messages, i, m) {
		if (hs_reflect_tokens(r->messages) < r->limit_tokens)
			return;
		if (!hs_str_eq(hs_json_str(m, "role"), "tool") ||
			hs_str_eq(hs_json_str(m, "content"), blank))
			continue;
		json_object_set_new(m, "content", json_string(blank));
		r->compacted = true;
	}
}

static enum next make_room(struct hs_reflection *r, const struct loop *l)
{
	if (r->compacted && !pending(r, l))
		return SYNTHESIZE;
	if (hs_reflect_tokens(r->messages) < r->limit_tokens)
		return GO_ON;
	if (pending(r, l))
		compact(r);
	if (hs_reflect_tokens(r->messages) < r->limit_tokens || !evidence(r))
		return GO_ON;
	return SYNTHESIZE;
}

static const char *forced_tool(const struct hs_reflection *r, const struct loop *l)
{
	if (pending(r, l))
		return hs_reflect_tool_names[l->forced[l->step]];
	return l->recall_next && !r->recalled ? hs_reflect_tool_names[HS_RT_RECALL] : NULL;
}

/* An error of a loop call: synthesis on overflow, another try the first time, the end else. */
static enum hs_rc call_failed(struct hs_reflection *r, struct loop *l, enum hs_rc rc,
	int64_t started, enum next *ret_next, struct hs_err *err)
{
	hs_reflect_trace_call(r, hs_pool_printf(r->pool, "agent_%lld_err", (long long)r->iteration),
		(hs_mono_us() - started) / 1000);
	*ret_next = GO_ON;
	if (rc == HS_E_LLM_OVERFLOW) {
		*ret_next = SYNTHESIZE;
		return HS_OK;
	}
	return hs_reflect_fatal(rc, err) || ++l->errors >= ERRORS_IN_A_ROW ? rc : HS_OK;
}

static enum hs_rc no_tool_call(const struct hs_llm_reply *reply, const char *forced,
	struct hs_pool *pool, struct hs_err *err)
{
	bool cut = hs_utf8_chars(reply->raw_text, strlen(reply->raw_text)) > REPLY_SHOWN_CHARS;

	return hs_fail(err, HS_E_LLM_TOOLS,
		"tool calling does not work: %s/%s was asked for a tool call (tool choice: %s)"
		" and answered without one (finish reason: %s): %s%s",
		reply->provider, reply->model, forced ? forced : "required",
		*reply->finish_reason ? reply->finish_reason : "none",
		hs_utf8_cut(pool, reply->raw_text, REPLY_SHOWN_CHARS), cut ? "..." : "");
}

/* An answer without a tool call: the text is never taken. */
static enum hs_rc answered_text(struct hs_reflection *r, struct loop *l,
	const struct hs_llm_reply *reply, const char *forced, enum next *ret_next,
	struct hs_err *err)
{
	if (!l->called)
		return no_tool_call(reply, forced, r->pool, err);
	*ret_next = CLOSE;
	if (pending(r, l) && !l->text_excused) {
		l->text_excused = true;
		*ret_next = GO_ON;
	}
	return HS_OK;
}

/* Ids unique over the run: blank, repeated and still taken ones get another. */
static const char *unique_id(
	struct hs_reflection *r, struct loop *l, const char *id, size_t position)
{
	const char *base, *made;

	base = made = hs_str_blank(id) ? hs_pool_printf(r->pool, "toolcall_%zu", position) : id;
	if (hs_strs_has(&l->ids, made))
		made = base = hs_pool_printf(r->pool, "%s_%zu", base, position);
	for (size_t n = 1; hs_strs_has(&l->ids, made); n++)
		made = hs_pool_printf(r->pool, "%s_%zu", base, n);
	hs_strs_add(r->pool, &l->ids, made);
	return made;
}

static void refuse(struct hs_reflection *r, struct loop *l, const struct hs_llm_reply *reply,
	struct hs_llm_tool_call *call, enum hs_loop_text text)
{
	call->id = unique_id(r, l, call->id, 0);
	hs_reflect_add_assistant(r, reply->text, call, 1);
	hs_reflect_add_tool(r, call->id, hs_reflect_error_text(r, hs_loop_text(text)));
}

static bool found_nothing(const struct hs_llm_tool_call *call)
{
	const json_t *v = json_object_get(call->args, "answer_found");

	return json_is_false(v) ||
	       (json_is_string(v) && hs_str_ieq_ascii(json_string_value(v), "false"));
}

/* "Nothing found" before any recall: recall is forced next, once a run. */
static bool force_recall(
	struct hs_reflection *r, struct loop *l, const struct hs_llm_tool_call *call)
{
	if (!found_nothing(call) || !hs_reflect_tool_offered(r, HS_RT_RECALL) || r->recalled ||
		l->recall_forced_once)
		return false;
	l->recall_next = l->recall_forced_once = true;
	return true;
}

static enum next finish_called(struct hs_reflection *r, struct loop *l,
	const struct hs_llm_reply *reply, struct hs_llm_tool_call *call, bool done)
{
	if (!r->searched) {
		refuse(r, l, reply, call, HS_LT_SEARCH_FIRST);
		return GO_ON;
	}
	if (force_recall(r, l, call)) {
		if (done)
			refuse(r, l, reply, call, HS_LT_RECALL_FIRST);
		return GO_ON;
	}
	return CLOSE;
}

static enum hs_rc run_calls(struct hs_reflection *r, struct loop *l,
	const struct hs_llm_reply *reply, struct hs_llm_tool_call *calls, size_t n,
	struct hs_err *err)
{
	int64_t ceiling = hs_reflect_ceiling(r, n);

	for (size_t i = 0; i < n; i++)
		calls[i].id = unique_id(r, l, calls[i].id, i);
	hs_reflect_add_assistant(r, reply->text, calls, n);
	for (size_t i = 0; i < n; i++) {
		int tool = hs_reflect_tool_find(r, calls[i].name);
		json_t *shown;

		if (tool < 0) {
			hs_reflect_add_tool(r, calls[i].id,
				hs_reflect_error_text(r, hs_loop_text(HS_LT_TOOL_NOT_OFFERED)));
			continue;
		}
		HS_TRY(hs_run_check(r->run, err));
		HS_TRY(hs_reflect_tool_run(
			r, (enum hs_reflect_tool)tool, calls[i].args, ceiling, &shown, err));
		hs_reflect_add_tool(r, calls[i].id, hs_json_text(r->pool, shown));
	}
	return HS_OK;
}

/* The first call of this name; NULL when there is none. */
static struct hs_llm_tool_call *call_named(
	struct hs_llm_tool_call *calls, size_t n, enum hs_reflect_tool tool)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(calls[i].name, hs_reflect_tool_names[tool]) == 0)
			return &calls[i];
	return NULL;
}

static enum hs_rc tool_calls(struct hs_reflection *r, struct loop *l,
	const struct hs_llm_reply *reply, enum next *ret_next, struct hs_err *err)
{
	struct hs_llm_tool_call *calls, *done, *ready;
	size_t given = reply->n_calls < HS_TOOL_CALLS ? reply->n_calls : HS_TOOL_CALLS, n = 0;

	calls = HS_NEW_ARRAY(r->pool, struct hs_llm_tool_call, given);
	for (size_t i = 0; i < given; i++) {
		calls[i] = reply->calls[i];
		calls[i].name = hs_reflect_tool_name(r->pool, calls[i].name);
	}
	l->called = true;
	if (pending(r, l))
		l->step++;
	*ret_next = GO_ON;
	done = call_named(calls, given, HS_RT_DONE);
	if (done) {
		*ret_next = finish_called(r, l, reply, done, true);
		return HS_OK;
	}
	ready = call_named(calls, given, HS_RT_ANSWER_READY);
	for (size_t i = 0; i < given; i++)
		if (strcmp(calls[i].name, hs_reflect_tool_names[HS_RT_ANSWER_READY]) != 0)
			calls[n++] = calls[i];
	if (n > 0)
		return run_calls(r, l, reply, calls, n, err);
	*ret_next = finish_called(r, l, reply, ready, false);
	return HS_OK;
}

static enum hs_rc iterate(
	struct hs_reflection *r, struct loop *l, bool last, enum next *ret_next, struct hs_err *err)
{
	struct hs_reflect_ask ask = {
		.scope = "reflect_tool_call", .messages = r->messages, .tools = r->tools};
	struct hs_llm_reply reply;
	int64_t started = hs_mono_us();
	enum hs_rc rc;

	HS_TRY(hs_run_check(r->run, err));
	*ret_next = last ? CLOSE : make_room(r, l);
	if (*ret_next != GO_ON)
		return HS_OK;
	ask.tool = forced_tool(r, l);
	ask.trace = hs_pool_printf(r->pool, "agent_%lld", (long long)r->iteration);
	rc = hs_reflect_ask(r, &ask, &reply, err);
	if (rc != HS_OK)
		return call_failed(r, l, rc, started, ret_next, err);
	l->errors = 0;
	if (reply.n_calls == 0)
		return answered_text(r, l, &reply, ask.tool, ret_next, err);
	return tool_calls(r, l, &reply, ret_next, err);
}

static enum hs_rc answer(struct hs_reflection *r, enum next how, struct hs_err *err)
{
	bool done = false;

	if (how == CLOSE)
		HS_TRY(hs_reflect_close(r, &done, err));
	if (!done)
		HS_TRY(hs_reflect_synthesis(r, err));
	return hs_reflect_finish(r, err);
}

static enum hs_rc by_model(struct hs_reflection *r, struct hs_err *err)
{
	struct hs_prompt prompt;
	struct loop l;
	enum next next = GO_ON;
	int64_t max = iterations(r->in);

	hs_prompt_reflect(r->pool, &r->prompt, &prompt);
	r->messages = hs_json_keep(r->pool, hs_prompt_messages(r->pool, &prompt));
	r->tools = hs_json_keep(r->pool, hs_prompt_reflect_tools(r->pool, &r->prompt));
	loop_init(&l, r);
	for (r->iteration = 1; next == GO_ON; r->iteration++)
		HS_TRY(iterate(r, &l, r->iteration >= max, &next, err));
	return answer(r, next, err);
}

enum hs_rc hs_reflect(struct hs_run *run, const struct hs_reflect_in *in,
	struct hs_reflect_out *ret, struct hs_err *err)
{
	const char *operation = run->llm_operation ? run->llm_operation : "reflect";
	enum hs_mind_kind mind = hs_mind_for(in->cfg, operation);
	struct hs_reflection r = {.run = run, .pool = run->pool, .in = in, .out = ret};
	enum hs_rc rc;

	*ret = (struct hs_reflect_out){.text = "", .answer_found = true};
	HS_TRY(hs_reflect_ready(in->cfg, operation, err));
	HS_TRY(check_supported(in, mind, err));
	HS_TRY(setup(&r, err));
	rc = mind == HS_MIND_EXTRACTIVE ? hs_reflect_extractive(&r, err) : by_model(&r, err);
	ret->retrieved = evidence(&r);
	hs_reflect_count(&r);
	HS_TRY(rc);
	return hs_reflect_based_on(&r, err);
}
