#include "engine/reflect_run.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/tokens.h"
#include "json/json.h"

#define TOKENS_ARG_MIN 1000
#define TOKENS_ARG_MAX 16000
#define CONTEXT_CHARS 200
#define SOURCE_TOKENS 4096
#define STALE_FROM 10 /* pending facts from which the bank counts as stale */

const char *const hs_reflect_tool_names[HS_RT__MAX] = {
	[HS_RT_SEARCH_MODELS] = "search_mental_models",
	[HS_RT_READ_MODELS] = "read_mental_models",
	[HS_RT_SEARCH_OBSERVATIONS] = "search_observations",
	[HS_RT_RECALL] = "recall",
	[HS_RT_EXPAND] = "expand",
	[HS_RT_ANSWER_READY] = "answer_ready",
	[HS_RT_DONE] = "done",
};

bool hs_reflect_tool_offered(const struct hs_reflection *r, enum hs_reflect_tool tool)
{
	switch (tool) {
	case HS_RT_SEARCH_MODELS:
	case HS_RT_READ_MODELS:
		return r->prompt.with_models;
	case HS_RT_SEARCH_OBSERVATIONS:
		return r->prompt.with_observations;
	case HS_RT_RECALL:
		return r->prompt.with_recall;
	case HS_RT_EXPAND:
		return r->prompt.with_expand;
	default:
		return true;
	}
}

int hs_reflect_tool_find(const struct hs_reflection *r, const char *name)
{
	for (int i = 0; i < HS_RT__MAX; i++)
		if (strcmp(hs_reflect_tool_names[i], name) == 0)
			return hs_reflect_tool_offered(r, (enum hs_reflect_tool)i) ? i : -1;
	return -1;
}

const char *hs_reflect_tool_name(struct hs_pool *pool, const char *name)
{
	const char *mark;

	if (hs_str_starts(name, "call="))
		name += strlen("call=");
	if (hs_str_starts(name, "functions."))
		name += strlen("functions.");
	mark = strstr(name, "<|");
	return mark ? hs_pool_strndup(pool, name, (size_t)(mark - name)) : name;
}

int64_t hs_reflect_tokens(const json_t *messages)
{
	int64_t sum = 0;
	json_t *m, *call;
	size_t i, k;

	json_array_foreach(messages, i, m) {
		sum += (int64_t)hs_tokens(hs_json_str(m, "content"));
		json_array_foreach(hs_json_arr(m, "tool_calls"), k, call)
			sum += (int64_t)hs_tokens(
				hs_json_str(hs_json_obj(call, "function"), "arguments"));
	}
	return sum;
}

/* Arguments. */

json_t *hs_reflect_fault(struct hs_pool *pool, const char *text)
{
	json_t *result = hs_json_keep(pool, json_object());

	json_object_set_new(result, "error", json_string(text));
	return result;
}

const char *hs_reflect_query_arg(
	struct hs_reflection *r, const json_t *args, const char *tool, json_t **ret_fault)
{
	const char *query = hs_json_str(args, "query");

	if (!hs_str_blank(query))
		return query;
	*ret_fault = hs_reflect_fault(
		r->pool, hs_pool_printf(r->pool, "%s needs a query that is not empty", tool));
	return NULL;
}

/* Text that stands for "not given". */
static bool nothing(const char *s)
{
	return *s == '\0' || hs_str_ieq_ascii(s, "none") || hs_str_ieq_ascii(s, "null");
}

const char *hs_reflect_int_arg(
	struct hs_pool *pool, const json_t *args, const char *name, int64_t *v, bool *ret_given)
{
	const json_t *given = json_object_get(args, name);
	const char *text = json_string_value(given);
	int64_t n = 0;
	bool good = true;

	*ret_given = false;
	if (json_is_integer(given)) {
		n = json_integer_value(given);
	} else if (json_is_real(given)) {
		double d = json_real_value(given);

		good = isfinite(d);
		n = !good ? 0 : d >= 9e18 ? INT64_MAX : d <= -9e18 ? INT64_MIN : (int64_t)d;
		if (good && n == 0 && d != 0.0) {
			*ret_given = true;
			*v = 0;
			return NULL;
		}
	} else if (text) {
		text = hs_str_trim(pool, text);
		good = nothing(text) || hs_str_to_i64(text, &n);
	} else {
		n = json_is_true(given);
		good = !json_is_array(given) && !json_is_object(given);
	}
	if (!good)
		return hs_pool_printf(pool, "%s must be an integer, or null for the default", name);
	if (n != 0) {
		*ret_given = true;
		*v = n;
	}
	return NULL;
}

const char *hs_reflect_tokens_arg(
	struct hs_pool *pool, const json_t *args, const char *name, int64_t ceiling, int64_t *v)
{
	bool given;
	const char *fault = hs_reflect_int_arg(pool, args, name, v, &given);

	if (fault || !given)
		return fault;
	if (*v > ceiling)
		*v = ceiling;
	if (*v < TOKENS_ARG_MIN)
		*v = TOKENS_ARG_MIN;
	return NULL;
}

struct hs_strs hs_reflect_ids_arg(struct hs_pool *pool, const json_t *args, const char *name)
{
	const json_t *given = json_object_get(args, name);
	struct hs_strs ids = {0};

	if (json_is_string(given))
		hs_strs_add(pool, &ids, json_string_value(given));
	else if (json_is_array(given))
		ids = hs_json_strs(pool, given);
	return ids;
}

/* Results of recall, trimmed: no empty key, no scores, chunk or document. */

static void set_time(json_t *entry, const char *key, int64_t us)
{
	char text[HS_TIME_TEXT];

	if (us == HS_TIME_NONE)
		return;
	hs_time_format(us, text);
	json_object_set_new(entry, key, json_string(text));
}

static void set_strs(json_t *entry, const char *key, const struct hs_strs *list)
{
	if (list->n > 0)
		json_object_set_new(entry, key, hs_json_from_strs(list));
}

static const char *short_context(struct hs_pool *pool, const char *context)
{
	if (hs_utf8_chars(context, strlen(context)) <= CONTEXT_CHARS)
		return context;
	return hs_pool_printf(pool, "%s...", hs_utf8_cut(pool, context, CONTEXT_CHARS));
}

static enum hs_rc hit_json(struct hs_pool *pool, const struct hs_hit *h, bool entities,
	json_t **ret, struct hs_err *err)
{
	json_t *entry = json_object(), *metadata;

	*ret = entry;
	json_object_set_new(entry, "id", json_string(h->id));
	json_object_set_new(entry, "text", json_string(h->text));
	json_object_set_new(entry, "fact_type", json_string(hs_fact_type_names[h->type]));
	if (entities)
		set_strs(entry, "entities", &h->entities);
	if (!hs_str_empty(h->context))
		json_object_set_new(entry, "context", json_string(short_context(pool, h->context)));
	set_time(entry, "occurred_start", h->occurred_start_us);
	set_time(entry, "occurred_end", h->occurred_end_us);
	set_time(entry, "mentioned_at", h->mentioned_us);
	set_strs(entry, "tags", &h->tags);
	HS_TRY(hs_json_load(pool, h->metadata, &metadata, err));
	if (json_object_size(metadata) > 0)
		json_object_set(entry, "metadata", metadata);
	set_strs(entry, "source_fact_ids", &h->source_fact_ids);
	return HS_OK;
}

static enum hs_rc hits_json(struct hs_pool *pool, const struct hs_hit *hits, size_t n,
	bool entities, json_t *list, struct hs_err *err)
{
	for (size_t i = 0; i < n; i++) {
		json_t *entry;
		enum hs_rc rc = hit_json(pool, &hits[i], entities, &entry, err);

		json_array_append_new(list, entry);
		HS_TRY(rc);
	}
	return HS_OK;
}

static void saw_hits(struct hs_reflection *r, const struct hs_recall_out *out, bool observations)
{
	for (size_t i = 0; i < out->n_hits; i++) {
		const struct hs_hit *h = &out->hits[i];
		struct hs_retrieved seen = {
			.fact =
				{
					.id = h->id,
					.text = h->text,
					.type = hs_fact_type_names[h->type],
					.context = h->context,
					.document_id = h->document_id,
					.chunk_id = h->chunk_id,
					.occurred_start_us = h->occurred_start_us,
					.occurred_end_us = h->occurred_end_us,
					.mentioned_us = h->mentioned_us,
					.tags = h->tags,
					.metadata = h->metadata,
				},
			.entities = h->entities,
			.source_ids = h->source_fact_ids,
			.score = h->score.final,
		};

		hs_reflect_saw_fact(r, &seen, observations);
	}
}

static struct hs_recall_in recall_in(
	const struct hs_reflection *r, const char *query, unsigned facts)
{
	struct hs_recall_in in = hs_recall_defaults(r->in->bank, r->in->cfg, query);

	in.scope = r->in->scope;
	in.scope.facts = facts;
	in.query_us = r->prompt.now_us;
	in.prefer_observations = 0;
	in.strict = r->in->strict;
	return in;
}

static enum hs_rc search_observations(
	struct hs_reflection *r, json_t *args, int64_t ceiling, json_t **ret, struct hs_err *err)
{
	static const char name[] = "search_observations";
	const char *query = hs_reflect_query_arg(r, args, name, ret), *fault;
	int64_t tokens = r->in->observations_tokens;
	int64_t sources = hs_cfg_int(r->in->cfg, HS_S_reflect_source_facts_max_tokens);
	struct hs_recall_in in;
	struct hs_recall_out out;
	json_t *list, *map;

	if (!query)
		return HS_OK;
	fault = hs_reflect_tokens_arg(r->pool, args, "max_tokens", ceiling, &tokens);
	if (fault) {
		*ret = hs_reflect_fault(r->pool, fault);
		return HS_OK;
	}
	in = recall_in(r, query, HS_FACT_BIT(HS_OBSERVATION));
	in.max_tokens = tokens;
	in.with_entities = r->in->observations_entities;
	in.with_source_facts = sources >= 0;
	in.source_tokens = sources > 0 ? sources : SOURCE_TOKENS;
	HS_TRY(hs_recall(r->run, &in, &out, err));

	*ret = hs_json_keep(r->pool, json_object());
	json_object_set_new(*ret, "query", json_string(query));
	json_object_set_new(*ret, "count", json_integer((json_int_t)out.n_hits));
	json_object_set_new(*ret, "observations", list = json_array());
	HS_TRY(hits_json(r->pool, out.hits, out.n_hits, in.with_entities, list, err));
	json_object_set_new(*ret, "source_facts", map = json_object());
	for (size_t i = 0; i < out.n_sources; i++) {
		json_t *entry;
		enum hs_rc rc = hit_json(r->pool, &out.sources[i], true, &entry, err);

		json_object_set_new(map, out.sources[i].id, entry);
		HS_TRY(rc);
	}
	json_object_set_new(*ret, "is_stale", json_boolean(r->pending > 0));
	json_object_set_new(*ret, "freshness",
		json_string(r->pending == 0           ? "up_to_date"
			    : r->pending < STALE_FROM ? "slightly_stale"
						      : "stale"));
	saw_hits(r, &out, true);
	return HS_OK;
}

static json_t *chunks_json(const struct hs_recall_out *out)
{
	json_t *map = json_object();

	for (size_t i = 0; i < out->n_chunks; i++) {
		const struct hs_recall_chunk *c = &out->chunks[i];

		json_object_set_new(map, c->chunk_id,
			json_pack("{s:s, s:I, s:b}", "chunk_text", c->text, "chunk_index",
				(json_int_t)c->chunk_index, "truncated", c->truncated));
	}
	return map;
}

static enum hs_rc recall(
	struct hs_reflection *r, json_t *args, int64_t ceiling, json_t **ret, struct hs_err *err)
{
	const unsigned raw = HS_FACT_BIT(HS_WORLD) | HS_FACT_BIT(HS_EXPERIENCE);
	const char *query = hs_reflect_query_arg(r, args, "recall", ret), *fault;
	int64_t tokens = r->in->recall_tokens, chunk_tokens = r->in->recall_chunk_tokens;
	struct hs_recall_in in;
	struct hs_recall_out out;
	json_t *list;

	if (!query)
		return HS_OK;
	fault = hs_reflect_tokens_arg(r->pool, args, "max_tokens", ceiling, &tokens);
	if (!fault)
		fault = hs_reflect_tokens_arg(
			r->pool, args, "max_chunk_tokens", ceiling, &chunk_tokens);
	if (fault) {
		*ret = hs_reflect_fault(r->pool, fault);
		return HS_OK;
	}
	in = recall_in(r, query, r->in->scope.facts ? r->in->scope.facts & raw : raw);
	in.max_tokens = tokens;
	in.with_entities = true;
	in.with_chunks = r->in->include_chunks && hs_cfg_bool(r->in->cfg, HS_S_store_document_text);
	in.chunk_tokens = chunk_tokens;
	HS_TRY(hs_recall(r->run, &in, &out, err));

	*ret = hs_json_keep(r->pool, json_object());
	json_object_set_new(*ret, "query", json_string(query));
	json_object_set_new(*ret, "memories", list = json_array());
	HS_TRY(hits_json(r->pool, out.hits, out.n_hits, true, list, err));
	json_object_set_new(*ret, "chunks", chunks_json(&out));
	saw_hits(r, &out, false);
	r->recalled = true;
	return HS_OK;
}

/* Running and recording. */

static hs_reflect_tool_fn *const tool_fns[HS_RT_ANSWER_READY] = {
	[HS_RT_SEARCH_MODELS] = hs_reflect_search_models,
	[HS_RT_READ_MODELS] = hs_reflect_read_models,
	[HS_RT_SEARCH_OBSERVATIONS] = search_observations,
	[HS_RT_RECALL] = recall,
	[HS_RT_EXPAND] = hs_reflect_expand,
};

/* A failed retrieval ends the reflect: what is known to be incomplete must not become an answer. */
static enum hs_rc tool_failed(const char *name, enum hs_rc rc, struct hs_err *err)
{
	switch (rc) {
	case HS_E_CANCELLED:
	case HS_E_TIMEOUT:
	case HS_E_BANK_MISSING:
		return rc;
	case HS_E_RETRIEVAL:
		return hs_fail_context(err, "%s", name);
	default:
		if (hs_rc_status(rc) == 503)
			return rc;
		return hs_fail(err, HS_E_RETRIEVAL, "%s failed: %s", name, hs_rc_text(rc));
	}
}

static void trace_tool(struct hs_reflection *r, const char *name, json_t *args, json_t *result,
	int64_t duration_ms)
{
	struct hs_reflect_out *out = r->out;
	json_t *input = hs_json_keep(r->pool, json_copy(args));

	json_object_set_new(input, "tool", json_string(name));
	if (out->n_tools == r->cap_tools) {
		size_t cap = r->cap_tools ? r->cap_tools * 2 : 16;

		out->tools = hs_pool_regrow(r->pool, out->tools, out->n_tools * sizeof(*out->tools),
			cap * sizeof(*out->tools));
		r->cap_tools = cap;
	}
	out->tools[out->n_tools++] = (struct hs_tool_trace){
		.tool = name,
		.input = input,
		.output = result,
		.duration_ms = duration_ms,
		.iteration = r->iteration,
	};
}

int64_t hs_reflect_ceiling(const struct hs_reflection *r, size_t calls)
{
	int64_t share = (r->limit_tokens - hs_reflect_tokens(r->messages)) /
			(int64_t)(calls > 0 ? calls : 1);

	return share > TOKENS_ARG_MAX   ? TOKENS_ARG_MAX
	       : share < TOKENS_ARG_MIN ? TOKENS_ARG_MIN
					: share;
}

enum hs_rc hs_reflect_tool_run(struct hs_reflection *r, enum hs_reflect_tool tool, json_t *args,
	int64_t ceiling, json_t **ret_shown, struct hs_err *err)
{
	const char *name = hs_reflect_tool_names[tool];
	int64_t started = hs_mono_us();
	json_t *result = NULL, *shown;
	enum hs_rc rc = tool_fns[tool](r, hs_view_args(&r->view, args), ceiling, &result, err);

	if (rc != HS_OK)
		return tool_failed(name, rc, err);
	trace_tool(r, name, args, result, (hs_mono_us() - started) / 1000);
	shown = hs_view_show(&r->view, result);
	if (!json_object_get(result, "error"))
		r->searched = true;
	if (tool == HS_RT_SEARCH_MODELS && !hs_str_eq(r->in->budget, "high") &&
		hs_reflect_models_fresh(result)) {
		r->released = true;
		json_object_set_new(shown, "guidance", json_string(hs_loop_text(HS_LT_GUIDANCE)));
	}
	hs_strs_add(r->pool, &r->history, hs_json_text(r->pool, shown));
	*ret_shown = shown;
	return HS_OK;
}
