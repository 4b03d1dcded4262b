#include "engine/reflect_run.h"

#include <string.h>

#include "base/tokens.h"
#include "json/json.h"

#define CLOSING_ASKS 2 /* the first and one more when the arguments cannot be read */
#define REWRITE_ASKS 2 /* document mode */

/* Messages. */

static const char *call_args_text(struct hs_reflection *r, const struct hs_llm_tool_call *call)
{
	if (json_object_get(call->args, "_raw"))
		return hs_json_text(r->pool, call->args);
	return hs_str_blank(call->raw_args) ? "{}" : call->raw_args;
}

void hs_reflect_add_assistant(
	struct hs_reflection *r, const char *text, const struct hs_llm_tool_call *calls, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", calls[i].id, "type",
				      "function", "function", "name", calls[i].name, "arguments",
				      call_args_text(r, &calls[i])));
	json_array_append_new(
		r->messages, json_pack("{s:s, s:s, s:o}", "role", "assistant", "content",
				     text ? text : "", "tool_calls", list));
}

void hs_reflect_add_tool(struct hs_reflection *r, const char *call_id, const char *content)
{
	json_array_append_new(r->messages, json_pack("{s:s, s:s, s:s}", "role", "tool",
						   "tool_call_id", call_id, "content", content));
}

const char *hs_reflect_error_text(struct hs_reflection *r, const char *text)
{
	return hs_json_text(r->pool, hs_reflect_fault(r->pool, text));
}

/* The closing call. */

static bool finished(const char *reason)
{
	static const char *const complete[] = {"stop", "tool_calls", "function_call", "end_turn"};

	for (size_t i = 0; i < HS_COUNT(complete); i++)
		if (hs_str_eq(reason, complete[i]))
			return true;
	return false;
}

static const struct hs_llm_tool_call *done_call(
	struct hs_reflection *r, const struct hs_llm_reply *reply)
{
	for (size_t i = 0; i < reply->n_calls; i++) {
		const char *name = hs_reflect_tool_name(r->pool, reply->calls[i].name);

		if (strcmp(name, hs_reflect_tool_names[HS_RT_DONE]) == 0)
			return &reply->calls[i];
	}
	return NULL;
}

/* The arguments as an object, repaired where the reply says that it is whole; NULL: unreadable. */
static json_t *done_args(
	struct hs_reflection *r, const struct hs_llm_tool_call *call, bool complete)
{
	json_t *v = call->args;
	const char *raw = hs_json_str(v, "_raw");

	if (raw)
		v = hs_json_lenient(r->pool, raw, complete);
	return json_is_object(v) ? hs_view_args(&r->view, v) : NULL;
}

static void resolve_document(struct hs_reflection *r, struct hs_document *doc, bool verify)
{
	for (size_t i = 0; i < doc->n; i++) {
		struct hs_doc_section *s = &doc->sections[i];

		s->heading = verify ? hs_reflect_verified(r, s->heading)
				    : hs_view_resolve(&r->view, s->heading);
		for (size_t k = 0; k < s->n_blocks; k++)
			s->blocks[k].text = verify ? hs_reflect_verified(r, s->blocks[k].text)
						   : hs_view_resolve(&r->view, s->blocks[k].text);
	}
}

static const char *document_text(struct hs_reflection *r, const struct hs_document *doc)
{
	return hs_str_trim(r->pool, hs_document_render(r->pool, doc));
}

static enum hs_rc no_answer(struct hs_err *err, const char *what)
{
	return hs_fail(err, HS_E_NO_ANSWER, "the model gave no answer: %s", what);
}

static enum hs_rc take_text(struct hs_reflection *r, json_t *args, struct hs_err *err)
{
	const char *answer = hs_json_str(args, "answer");

	if (hs_str_blank(answer))
		return no_answer(err, "the closing call carries no answer text");
	r->out->text = hs_view_resolve(&r->view, hs_str_trim(r->pool, answer));
	return HS_OK;
}

/* *ret_fault: what to ask once more for; NULL when the document was taken. */
static enum hs_rc take_document(struct hs_reflection *r, json_t *args, bool complete,
	const char **ret_fault, struct hs_err *err)
{
	json_t *v = json_object_get(args, "document");
	struct hs_strs faults = {0};
	enum hs_rc rc;

	*ret_fault = NULL;
	if (!v || json_is_null(v))
		return no_answer(err, "the closing call carries no document");
	rc = hs_document_from_tool(r->pool, v, complete, &r->out->document, &faults, err);
	if (rc == HS_E_LLM_REPLY) {
		*ret_fault = faults.n > 0 ? hs_strs_join(r->pool, &faults, "\n")
					  : "document has another shape";
		return HS_OK;
	}
	HS_TRY(rc);
	resolve_document(r, &r->out->document, false);
	r->out->has_document = true;
	r->out->text = document_text(r, &r->out->document);
	if (*r->out->text == '\0')
		return no_answer(err, "the document of the closing call is empty");
	return HS_OK;
}

static bool said_no(const json_t *args)
{
	const json_t *v = json_object_get(args, "answer_found");

	return json_is_false(v) ||
	       (json_is_string(v) && hs_str_ieq_ascii(json_string_value(v), "false"));
}

/* Take answer, citations and the model's own word; *ret_fault as above. */
static enum hs_rc take_done(struct hs_reflection *r, const struct hs_llm_reply *reply,
	const struct hs_llm_tool_call *call, const char **ret_fault, struct hs_err *err)
{
	bool complete = finished(reply->finish_reason);
	json_t *args = done_args(r, call, complete);

	*ret_fault = NULL;
	if (!args) {
		*ret_fault = "the arguments of done are not JSON; call done again with a JSON object";
		return HS_OK;
	}
	if (r->in->document)
		HS_TRY(take_document(r, args, complete, ret_fault, err));
	else
		HS_TRY(take_text(r, args, err));
	if (!*ret_fault) {
		r->out->answer_found = !said_no(args);
		hs_reflect_cite(r, args);
	}
	return HS_OK;
}

static bool ends_in_tool(const json_t *messages)
{
	const json_t *last = json_array_get(messages, json_array_size(messages) - 1);

	return hs_str_eq(hs_json_str(last, "role"), "tool");
}

enum hs_rc hs_reflect_close(struct hs_reflection *r, bool *ret_done, struct hs_err *err)
{
	json_t *tools;
	const char *fault = NULL;

	*ret_done = false;
	if (!r->searched || r->compacted || !ends_in_tool(r->messages))
		return HS_OK;
	tools = hs_json_keep(r->pool, hs_prompt_done_tool(r->pool, &r->prompt));
	json_array_append_new(r->messages, json_pack("{s:s, s:s}", "role", "user", "content",
						   hs_prompt_closing(r->pool, &r->prompt)));
	for (int ask = 0; ask < CLOSING_ASKS; ask++) {
		struct hs_reflect_ask a = {.scope = "reflect",
			.messages = r->messages,
			.tools = tools,
			.tool = hs_reflect_tool_names[HS_RT_DONE],
			.trace = "closing_done"};
		struct hs_llm_reply reply;
		const struct hs_llm_tool_call *call;
		enum hs_rc rc = hs_reflect_ask(r, &a, &reply, err);

		if (rc != HS_OK)
			return hs_reflect_fatal(rc, err) ? rc : HS_OK;
		call = done_call(r, &reply);
		if (!call)
			return HS_OK;
		HS_TRY(take_done(r, &reply, call, &fault, err));
		if (!fault) {
			*ret_done = true;
			return HS_OK;
		}
		hs_reflect_add_assistant(r, reply.text, call, 1);
		hs_reflect_add_tool(r, call->id, hs_reflect_error_text(r, fault));
	}
	return hs_fail(
		err, HS_E_LLM_REPLY, "the closing call could not be read, asked twice: %s", fault);
}

/* Length: one rewrite of an answer longer than wanted; what cannot be used keeps the long one. */

static bool too_long(const struct hs_reflection *r, const char *text)
{
	return r->in->max_tokens > 0 && (int64_t)hs_tokens(text) > r->in->max_tokens;
}

static enum hs_rc ask_rewrite(
	struct hs_reflection *r, json_t *messages, const char **ret_text, struct hs_err *err)
{
	struct hs_reflect_ask a = {
		.scope = "reflect", .messages = messages, .trace = "final_rewrite"};
	struct hs_llm_reply reply;
	struct hs_err ignored = {0};
	enum hs_rc rc = hs_reflect_ask(r, &a, &reply, &ignored);

	*ret_text = NULL;
	if (rc == HS_E_CANCELLED || rc == HS_E_TIMEOUT) {
		*err = ignored;
		return rc;
	}
	if (rc == HS_OK)
		*ret_text = hs_str_trim(r->pool, reply.text);
	return HS_OK;
}

static enum hs_rc rewrite_text(struct hs_reflection *r, json_t *messages, struct hs_err *err)
{
	const char *text;

	HS_TRY(ask_rewrite(r, messages, &text, err));
	if (!hs_str_blank(text))
		r->out->text = hs_view_resolve(&r->view, text);
	return HS_OK;
}

/* The rewritten document; *ret_fault when the reply is none. */
static bool read_rewrite(
	struct hs_reflection *r, const char *text, struct hs_document *ret, const char **ret_fault)
{
	json_t *v = hs_json_lenient(r->pool, text, false);
	struct hs_strs faults = {0};
	struct hs_err ignored = {0};

	if (v && hs_document_from_tool(r->pool, v, true, ret, &faults, &ignored) == HS_OK &&
		*document_text(r, ret) != '\0')
		return true;
	*ret_fault = faults.n > 0 ? hs_strs_join(r->pool, &faults, "\n")
				  : "the reply is not a JSON object with sections; reply with that "
				    "object only";
	return false;
}

static enum hs_rc rewrite_document(struct hs_reflection *r, json_t *messages, struct hs_err *err)
{
	for (int ask = 0; ask < REWRITE_ASKS; ask++) {
		struct hs_document doc;
		const char *text, *fault;

		HS_TRY(ask_rewrite(r, messages, &text, err));
		if (hs_str_blank(text))
			break;
		if (read_rewrite(r, text, &doc, &fault)) {
			resolve_document(r, &doc, false);
			r->out->document = doc;
			r->out->text = document_text(r, &doc);
			break;
		}
		json_array_append_new(
			messages, json_pack("{s:s, s:s}", "role", "assistant", "content", text));
		json_array_append_new(
			messages, json_pack("{s:s, s:s}", "role", "user", "content", fault));
	}
	if (too_long(r, r->out->text))
		r->out->document_tokens = (int64_t)hs_tokens(r->out->text);
	return HS_OK;
}

enum hs_rc hs_reflect_finish(struct hs_reflection *r, struct hs_err *err)
{
	if (too_long(r, r->out->text)) {
		struct hs_prompt prompt;
		json_t *messages;

		hs_prompt_rewrite(r->pool, &r->prompt, r->out->text, &prompt);
		messages = hs_json_keep(r->pool, hs_prompt_messages(r->pool, &prompt));
		if (r->out->has_document)
			HS_TRY(rewrite_document(r, messages, err));
		else
			HS_TRY(rewrite_text(r, messages, err));
	}
	if (r->out->has_document) {
		resolve_document(r, &r->out->document, true);
		r->out->text = document_text(r, &r->out->document);
	} else {
		r->out->text = hs_reflect_verified(r, r->out->text);
	}
	return HS_OK;
}
