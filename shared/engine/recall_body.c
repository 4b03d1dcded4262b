#include "engine/recall_body.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/trigger.h"
#include "text/words.h"

/* ---- the body ---- */

static void saw_word(void *arg, const struct hs_word *w)
{
	(void)w;
	*(bool *)arg = true;
}

static bool has_word(const char *s)
{
	bool found = strchr(s, '_') != NULL;

	hs_words_each(s, strlen(s), saw_word, &found);
	return found;
}

static void read_query(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	(void)f;
	if (!json_is_string(v))
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
	else if (!has_word(json_string_value(v)))
		hs_check_value_error(ck, v,
			"query must contain at least one word character after normalization");
	else
		*(const char **)place = hs_pool_strdup(hs_check_pool(ck), json_string_value(v));
}

/* Null and [] are all types; 'opinion' is an old name that selects nothing. */
static void read_types(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	struct hs_recall_types *t = place;
	struct hs_strs unknown = {0};
	json_t *member;
	size_t i;

	(void)f;
	if (!json_is_array(v)) {
		hs_check_fault(ck, "list_type", "Input should be a valid list", v, NULL);
		return;
	}
	json_array_foreach(v, i, member) {
		const char *s = json_string_value(member);
		int type = s ? hs_fact_type_find(s) : -1;

		if (!s) {
			hs_check_push_index(ck, i);
			hs_check_fault(
				ck, "string_type", "Input should be a valid string", member, NULL);
			hs_check_pop(ck);
		} else if (type >= 0) {
			t->facts |= HS_FACT_BIT(type);
		} else if (strcmp(s, "opinion") != 0) {
			hs_strs_add(hs_check_pool(ck), &unknown, s);
		}
	}
	t->nothing = json_array_size(v) > 0 && !t->facts;
	if (unknown.n)
		hs_check_value_error(ck, v,
			"Invalid fact type(s): %s. Must be one of: experience, observation, world",
			hs_strs_join(hs_check_pool(ck), &unknown, ", "));
}

static const struct hs_field include_entities_fields[] = {
	HS_INT(struct hs_include_entities, max_tokens, .def = "500",
		.doc = "budget of entity texts"),
};
static const struct hs_shape entities_shape =
	HS_SHAPE(hs_include_entities, include_entities_fields);
static const struct hs_field include_chunks_fields[] = {
	HS_INT(struct hs_include_chunks, max_tokens, .def = "8192", .doc = "budget of chunk texts"),
};
static const struct hs_shape chunks_shape = HS_SHAPE(hs_include_chunks, include_chunks_fields);
static const struct hs_field include_sources_fields[] = {
	HS_INT(struct hs_include_sources, max_tokens, .def = "4096",
		.doc = "budget of all source facts; -1 unlimited"),
	HS_INT(struct hs_include_sources, max_tokens_per_observation, .def = "-1",
		.doc = "budget an observation; -1 none"),
};
static const struct hs_shape sources_shape = HS_SHAPE(hs_include_sources, include_sources_fields);

static const struct hs_field recall_include_fields[] = {
	HS_OBJ(struct hs_recall_include, entities, &entities_shape, .flags = HS_NULLABLE,
		.doc = "null turns entities off"),
	HS_OBJ(struct hs_recall_include, chunks, &chunks_shape, .flags = HS_NULLABLE,
		.doc = "{} adds chunks"),
	HS_OBJ(struct hs_recall_include, source_facts, &sources_shape, .flags = HS_NULLABLE,
		.doc = "{} adds source facts"),
};
static const struct hs_shape include_shape = HS_SHAPE(hs_recall_include, recall_include_fields);

static const struct hs_field min_scores_fields[] = {
	HS_NUM(struct hs_min_scores, semantic, .flags = HS_NULLABLE, .doc = "least cosine"),
	HS_NUM(struct hs_min_scores, keyword, .flags = HS_NULLABLE, .doc = "least keyword score"),
	HS_NUM(struct hs_min_scores, reranker, .flags = HS_NULLABLE, .doc = "least reranker score"),
	HS_NUM(struct hs_min_scores, final, .flags = HS_NULLABLE, .doc = "least final score"),
};
static const struct hs_shape min_scores_shape = HS_SHAPE(hs_min_scores, min_scores_fields);

static void window_rule(struct hs_check *ck, void *obj)
{
	const struct hs_temporal_window *w = obj;

	if (w->end < w->start)
		hs_check_value_error(ck, NULL, "temporal_window end must not be before start");
}

static const struct hs_field window_fields[] = {
	HS_TIME(struct hs_temporal_window, start, .flags = HS_REQUIRED,
		.doc = "begin of the window"),
	HS_TIME(struct hs_temporal_window, end, .flags = HS_REQUIRED, .doc = "end of the window"),
};
static const struct hs_shape window_shape =
	HS_SHAPE(hs_temporal_window, window_fields, .rule = window_rule);

static void recall_rule(struct hs_check *ck, void *obj)
{
	if (hs_given(&hs_recall_body_shape, obj, "tags") &&
		hs_given(&hs_recall_body_shape, obj, "tag_groups"))
		hs_check_value_error(ck, NULL,
			"'tags' and 'tag_groups' are mutually exclusive. Use 'tag_groups' for compound filtering.");
}

#define T struct hs_recall_body
static const struct hs_field recall_fields[] = {
	HS_CUSTOM(T, query, read_query, .flags = HS_REQUIRED, .doc = "what to look for"),
	HS_CUSTOM(T, types, read_types, .flags = HS_NULLABLE,
		.doc = "kinds of memories; null is all"),
	HS_BOOL(T, prefer_observations, .flags = HS_NULLABLE,
		.doc = "leave out facts a returned observation covers"),
	HS_ENUM(T, budget, hs_budget_names, .flags = HS_ENUM_ERROR, .def = "mid",
		.doc = "depth of the search"),
	HS_INT(T, max_tokens, .def = "4096", .doc = "tokens of returned texts"),
	HS_BOOL(T, trace, .def = "false", .doc = "accepted for compatibility"),
	HS_STR(T, query_timestamp, .flags = HS_NULLABLE, .doc = "when the question is asked"),
	HS_OBJ(T, include, &include_shape, .doc = "what to add to the answer"),
	HS_STRS(T, tags, .flags = HS_NULLABLE, .doc = "tag filter"),
	HS_ENUM(T, tags_match, hs_tags_match_names, .def = "any", .doc = "how tags select"),
	HS_CUSTOM(T, tag_groups, hs_groups_read, .flags = HS_NULLABLE, .doc = "boolean tag filter"),
	HS_OBJ(T, min_scores, &min_scores_shape, .flags = HS_NULLABLE,
		.doc = "least scores, each inclusive"),
	HS_OBJ(T, temporal_window, &window_shape, .flags = HS_NULLABLE,
		.doc = "time the question is about"),
};
#undef T
const struct hs_shape hs_recall_body_shape =
	HS_SHAPE(hs_recall_body, recall_fields, .rule = recall_rule);
/* ---- from the body to the engine ---- */

static struct hs_scope scope_of(const struct hs_recall_body *b)
{
	struct hs_scope s = hs_scope_all();

	s.tags = b->tags;
	s.match = (enum hs_tags_match)b->tags_match;
	s.facts = b->types.facts;
	if (b->tag_groups) {
		s.has_groups = true;
		s.groups = b->tag_groups->v;
		s.n_groups = b->tag_groups->n;
	}
	return s;
}

static double floor_of(const struct hs_min_scores *m, const char *name, double v)
{
	return m && hs_given(&min_scores_shape, m, name) ? v : NAN;
}

static void set_floors(struct hs_recall_in *in, const struct hs_min_scores *m)
{
	in->min_semantic = floor_of(m, "semantic", m ? m->semantic : 0);
	in->min_keyword = floor_of(m, "keyword", m ? m->keyword : 0);
	in->min_reranker = floor_of(m, "reranker", m ? m->reranker : 0);
	in->min_final = floor_of(m, "final", m ? m->final : 0);
}

static void set_include(struct hs_recall_in *in, const struct hs_recall_include *inc)
{
	in->with_entities = !inc || !hs_was_null(&include_shape, inc, "entities");
	if (inc && inc->chunks) {
		in->with_chunks = true;
		in->chunk_tokens = inc->chunks->max_tokens;
	}
	if (inc && inc->source_facts) {
		in->with_source_facts = true;
		in->source_tokens = inc->source_facts->max_tokens;
		in->source_tokens_each = inc->source_facts->max_tokens_per_observation;
	}
}

static struct hs_recall_in input(const struct hs_recall_body *b, const struct hs_bank *bank,
	const struct hs_config *cfg, int64_t query_us)
{
	struct hs_recall_in in = hs_recall_defaults(bank, cfg, b->query);

	in.scope = scope_of(b);
	in.budget = hs_budget_names[b->budget];
	in.max_tokens = b->max_tokens;
	in.query_us = query_us;
	if (hs_given(&hs_recall_body_shape, b, "prefer_observations"))
		in.prefer_observations = b->prefer_observations;
	set_floors(&in, b->min_scores);
	set_include(&in, b->include);
	return in;
}

/* ---- the call ---- */

static enum hs_rc failed(enum hs_rc rc, struct hs_err *err)
{
	switch (rc) {
	case HS_E_CANCELLED:
		return hs_fail(
			err, HS_E_CLIENT_GONE, "the client closed the connection during recall");
	case HS_E_DB_TIMEOUT:
	case HS_E_TIMEOUT:
		return hs_fail(err, HS_E_TIMEOUT,
			"Request timed out while searching memories. Try a shorter or more specific query.");
	default:
		return rc;
	}
}

static enum hs_rc search(struct hs_run *run, const char *bank_id, const struct hs_recall_body *b,
	int64_t query_us, struct hs_recall_in *ret_in, struct hs_recall_out *ret,
	struct hs_err *err)
{
	struct hs_bank *bank = HS_NEW(run->pool, struct hs_bank);
	struct hs_config *cfg;
	enum hs_rc rc;

	HS_TRY(hs_bank_find(run->db, run->pool, bank_id, bank, err));
	HS_TRY(hs_bank_config(run->pool, run->server, bank, &cfg, err));
	*ret_in = input(b, bank, cfg, query_us);
	rc = hs_recall(run, ret_in, ret, err);
	return rc == HS_OK ? HS_OK : failed(rc, err);
}

enum hs_rc hs_recall_call(struct hs_run *run, const char *bank_id, const struct hs_recall_body *b,
	struct hs_recall_in *ret_in, struct hs_recall_out *ret, struct hs_err *err)
{
	int64_t started_us = hs_mono_us(), query_us = HS_TIME_NONE;
	enum hs_rc rc;

	if (hs_groups_fuzzy(b->tag_groups))
		return hs_fail(err, HS_E_NOT_IMPLEMENTED,
			"fuzzy tag matching is not implemented; use resolve 'exact'");
	if (b->query_timestamp && !hs_time_parse(b->query_timestamp, &query_us))
		return hs_fail(err, HS_E_BAD_REQUEST,
			"Invalid query_timestamp format. Expected an ISO 8601 date-time, for example "
			"2024-01-15T10:30:00Z");
	*ret_in = (struct hs_recall_in){0};
	*ret = (struct hs_recall_out){0};
	if (b->types.nothing)
		return HS_OK;
	rc = search(run, bank_id, b, query_us, ret_in, ret, err);
	if (rc != HS_E_CLIENT_GONE)
		hs_metrics_operation("recall", run->source, hs_budget_names[b->budget],
			hs_pool_printf(run->pool, "%lld", (long long)b->max_tokens), rc == HS_OK,
			hs_mono_us() - started_us);
	return rc;
}
