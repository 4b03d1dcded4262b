#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "llm/llm.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "json/json.h"
#include "llm/clean.h"
#include "llm/endpoint.h"
#include "llm/limit.h"
#include "llm/openai.h"
#include "llm/refusal.h"
#include "llm/transport.h"

#define PAUSE_SLICE_US 50000
#define JITTER 0.2

struct hs_llm {
	struct hs_endpoint ops[HS_OP__MAX];
};

/* One call with all its attempts. */
struct chat {
	const struct hs_llm *llm;
	const struct hs_endpoint *e;
	struct hs_pool *pool;
	const struct hs_llm_call *call;
	struct hs_llm_reply *reply;
	struct hs_openai_learnt learnt;
	int64_t attempt, attempts; /* from 1 */
	/* of the last attempt */
	bool retry, again; /* another attempt may heal it; send again at once, for free */
	bool http_error;
	int64_t wait_until_us; /* Retry-After; HS_TIME_NONE = none */
};

enum hs_rc hs_llm_new(
	struct hs_pool *pool, const struct hs_config *cfg, struct hs_llm **ret, struct hs_err *err)
{
	struct hs_llm *llm = HS_NEW(pool, struct hs_llm);

	for (int op = 0; op < HS_OP__MAX; op++)
		HS_TRY(hs_endpoint_read(pool, cfg, (enum hs_llm_op)op, &llm->ops[op], err));
	*ret = llm;
	return HS_OK;
}

static enum hs_rc check(const struct chat *c, struct hs_err *err)
{
	if (c->call->cancelled && c->call->cancelled(c->call->cancel_arg))
		return hs_fail(err, HS_E_CANCELLED, "cancelled before a model call");
	if (c->call->deadline_us && hs_mono_us() >= c->call->deadline_us)
		return hs_fail(err, HS_E_TIMEOUT, "the time limit was reached before a model call");
	return HS_OK;
}

/* The caps are those of the refresh for everything a refresh calls, else of the scope's prefix. */
static const struct hs_slots *slots_of(const struct chat *c)
{
	static const struct {
		const char *prefix;
		enum hs_llm_op op;
	} rows[] = {{"retain", HS_OP_RETAIN}, {"reflect", HS_OP_REFLECT},
		{"consolidation", HS_OP_CONSOLIDATION}, {"mental_model", HS_OP_REFRESH}};

	if (c->e->op == HS_OP_REFRESH)
		return c->e->slots;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		if (hs_str_starts(c->call->scope, rows[i].prefix))
			return c->llm->ops[rows[i].op].slots;
	return NULL;
}

/* Send once, holding the operation's slot and a general one. */
static enum hs_rc send_once(
	struct chat *c, const char *body, struct hs_http_reply *ret, struct hs_err *err)
{
	HS_AUTO(hs_slot_free) int own = -1;
	HS_AUTO(hs_slot_free) int general = -1;
	struct hs_slot_wait wait = {c->call->deadline_us, c->call->cancelled, c->call->cancel_arg};
	struct hs_http_request req = {
		.url = c->e->chat_url,
		.headers = hs_openai_headers(c->pool, c->e, c->call),
		.body = body,
		.body_bytes = strlen(body),
		.timeout_ms = c->e->timeout_ms,
		.connect_ms = c->e->connect_ms,
		.reply_max = HS_LLM_REPLY_MAX,
		.cancelled = c->call->cancelled,
		.cancel_arg = c->call->cancel_arg,
	};
	enum hs_rc rc;

	HS_TRY(hs_slot_take(slots_of(c), &wait, &own, err));
	HS_TRY(hs_slot_take(c->llm->ops[HS_OP_GENERAL].slots, &wait, &general, err));
	HS_TRY(check(c, err));
	if (c->call->deadline_us) {
		int64_t left_ms = (c->call->deadline_us - hs_mono_us()) / 1000 + 1;

		if (left_ms < req.timeout_ms)
			req.timeout_ms = left_ms;
	}
	rc = hs_http_post(c->pool, &req, ret, err);
	if (rc == HS_E_LLM_TIMEOUT && c->call->deadline_us && hs_mono_us() >= c->call->deadline_us)
		return hs_fail(err, HS_E_TIMEOUT, "the time limit was reached during a model call");
	c->retry = rc == HS_E_LLM_TIMEOUT || rc == HS_E_LLM_DOWN;
	return rc;
}

/* A 400 that says which parameter to leave out. */
static bool learn(struct chat *c, const struct hs_http_reply *http)
{
	if (!json_array_size(c->call->tools))
		return false;
	if (strstr(http->body, "tool_choice") && hs_openai_sends_tool_choice(c->e, c->call) &&
		!c->learnt.no_tool_choice) {
		c->learnt.no_tool_choice = true;
		return true;
	}
	if (strstr(http->body, "reasoning_effort") &&
		(strstr(http->body, "'none'") || strstr(http->body, "\\\"none\\\"")) &&
		!c->learnt.effort_none) {
		c->learnt.effort_none = true;
		return true;
	}
	return false;
}

static enum hs_rc quota(struct chat *c, const struct hs_http_reply *http, struct hs_err *err)
{
	int64_t now = hs_now_us(), reset = hs_limit_reset_us(c->pool, http, now);
	char text[HS_TIME_TEXT];

	if (reset == HS_TIME_NONE || (double)(reset - now) <= c->e->max_backoff_s * 1e6)
		return HS_OK;
	hs_time_format(reset, text);
	hs_fail_foreign(err, HS_E_LLM_QUOTA, http->status, "%s %s: the quota is used up until %s",
		c->e->provider_name, c->e->model, text);
	if (err)
		err->retry_at_us = reset;
	return HS_E_LLM_QUOTA;
}

static enum hs_rc http_failed(struct chat *c, const struct hs_http_reply *http, struct hs_err *err)
{
	static const int final[] = {400, 404, 405, 413, 422};
	const char *text = hs_refusal_text(c->pool, http->body, http->body_bytes, c->e->key);
	enum hs_rc rc = HS_E_LLM_DOWN;

	c->http_error = true;
	c->retry = true;
	if (http->status == 400 && learn(c, http)) {
		c->again = true;
	} else if (http->status == 401 || http->status == 403) {
		rc = HS_E_LLM_AUTH;
		c->retry = false;
	} else if (http->status < 400) {
		rc = HS_E_LLM_REFUSED;
		c->retry = false;
	} else if (http->status == 429) {
		c->wait_until_us = hs_limit_retry_after_us(c->pool, http, hs_now_us());
		c->retry = false;
		HS_TRY(quota(c, http, err));
		c->retry = true;
	} else if (http->status == 503) {
		c->wait_until_us = hs_limit_retry_after_us(c->pool, http, hs_now_us());
	}
	for (size_t i = 0; i < HS_COUNT(final); i++)
		if (http->status == final[i]) {
			rc = HS_E_LLM_REFUSED;
			c->retry = false;
		}
	if (rc != HS_E_LLM_AUTH)
		rc = hs_refusal_kind(http->body, rc);
	if (rc == HS_E_LLM_POLICY)
		c->retry = false;
	return hs_fail_foreign(err, rc, http->status, "%s %s answered HTTP %d to %s%s%s",
		c->e->provider_name, c->e->model, http->status, c->call->scope, *text ? ": " : "",
		text);
}

static bool ended_well(const char *finish_reason)
{
	static const char *const good[] = {"stop", "tool_calls", "function_call", "end_turn"};

	for (size_t i = 0; i < HS_COUNT(good); i++)
		if (hs_str_eq(good[i], finish_reason))
			return true;
	return false;
}

/* The JSON of the reply; repaired only when no attempt is left. */
static enum hs_rc read_json(struct chat *c, struct hs_err *err)
{
	struct hs_llm_reply *r = c->reply;

	r->value = hs_clean_json_reply(c->pool, r->text);
	if (!r->value && c->attempt >= c->attempts && ended_well(r->finish_reason))
		r->value = hs_json_lenient(c->pool, r->text, true);
	if (r->value)
		return HS_OK;
	c->retry = true;
	return hs_fail(err, HS_E_LLM_REPLY, "the model's reply to %s is not JSON", c->call->scope);
}

static enum hs_rc attempt(struct chat *c, struct hs_err *err)
{
	struct hs_http_reply http;
	const char *body;

	c->retry = c->again = c->http_error = false;
	c->wait_until_us = HS_TIME_NONE;
	HS_TRY(check(c, err));
	HS_TRY(hs_openai_body(c->pool, c->e, c->call, &c->learnt, &body, err));
	HS_TRY(send_once(c, body, &http, err));
	if (http.status != 200)
		return http_failed(c, &http, err);
	memset(c->reply, 0, sizeof(*c->reply));
	HS_TRY(hs_openai_read(
		c->pool, c->call, http.body, http.body_bytes, c->reply, &c->retry, err));
	return c->call->json && !c->call->text_only ? read_json(c, err) : HS_OK;
}

/* Seconds before the next attempt. */
static double pause_s(const struct chat *c)
{
	double s = c->e->initial_backoff_s, until;

	for (int64_t i = 1; i < c->attempt && s < c->e->max_backoff_s; i++)
		s *= 2;
	if (s > c->e->max_backoff_s)
		s = c->e->max_backoff_s;
	if (c->http_error && !json_array_size(c->call->tools))
		s *= 1 - JITTER + 2 * JITTER * hs_random_unit();
	if (c->wait_until_us == HS_TIME_NONE)
		return s;
	until = (double)(c->wait_until_us - hs_now_us()) / 1e6;
	return until > s && until <= c->e->max_backoff_s ? until : s;
}

/* Wait, asking the cancel test; a wait that would pass the deadline ends at once. */
static enum hs_rc pause_before_next(const struct chat *c, struct hs_err *err)
{
	int64_t end = hs_mono_us() + (int64_t)(pause_s(c) * 1e6);

	if (c->call->deadline_us && end >= c->call->deadline_us)
		return hs_fail(
			err, HS_E_TIMEOUT, "the time limit leaves no room for another model call");
	for (int64_t left; (left = end - hs_mono_us()) > 0;) {
		HS_TRY(check(c, err));
		hs_sleep_us(left < PAUSE_SLICE_US ? left : PAUSE_SLICE_US);
	}
	return HS_OK;
}

static enum hs_rc all_attempts(struct chat *c, struct hs_err *err)
{
	for (;;) {
		enum hs_rc rc = attempt(c, err);

		if (rc == HS_OK)
			return rc;
		if (c->again) {
			hs_err_clear(err);
			continue;
		}
		if (!c->retry || c->attempt >= c->attempts)
			return rc;
		HS_TRY(pause_before_next(c, err));
		hs_err_clear(err);
		c->attempt++;
	}
}

enum hs_rc hs_llm_chat(const struct hs_llm *llm, struct hs_pool *pool,
	const struct hs_llm_call *call, struct hs_llm_reply *ret, struct hs_err *err)
{
	struct hs_err own = {0};
	struct chat c = {.llm = llm, .pool = pool, .call = call, .reply = ret, .attempt = 1};
	int64_t started = hs_mono_us();
	enum hs_rc rc;

	memset(ret, 0, sizeof(*ret));
	ret->text = ret->raw_text = ret->finish_reason = ret->provider = ret->model = "";
	c.e = llm ? &llm->ops[hs_llm_op_find(call->operation)] : NULL;
	if (!c.e || !c.e->usable)
		return hs_fail(err, HS_E_LLM_NONE,
			"no model is configured for %s: llm_provider is %s", call->scope,
			c.e ? c.e->provider_name : "none");
	c.attempts = (call->max_retries >= 0 ? call->max_retries : c.e->max_retries) + 1;
	rc = all_attempts(&c, err ? err : &own);
	ret->provider = c.e->provider_name;
	ret->model = c.e->model;
	ret->duration_ms = (hs_mono_us() - started) / 1000;
	return rc;
}
