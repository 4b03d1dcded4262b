#include "engine/reflect_run.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/tokens.h"
#include "engine/model_scope.h"
#include "json/json.h"
#include "store/evidence.h"
#include "store/mental_model.h"
#include "text/words.h"

#define MODELS_PER_SEARCH 5
#define MODELS_PER_SEARCH_MAX 100
#define MODELS_WITHOUT_VECTORS 200 /* models looked at when the words have to do */
#define SNIPPET_CHARS 280
#define READ_TOKENS 6000

static const char empty_model[] = "No content yet.";

enum { SEEN_SNIPPET, SEEN_FULL, SEEN_READ };

/* ---- ranking ---- */

static enum hs_rc by_vectors(struct hs_reflection *r, const struct hs_vec *vec, size_t max,
	struct hs_mm_hit **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_mm_search in = {
		.bank_no = r->in->bank->bank_no,
		.scope = &r->tag_scope,
		.exclude = r->in->exclude_mental_model_ids,
		.embedder = hs_embedder_tag(r->run->embedder),
		.vec = vec->v,
		.dim = vec->dim,
		.max = max,
	};

	return hs_mm_search(r->run->db, r->pool, &in, ret, ret_n, err);
}

/* Share of the question's words that stand in the model. */
static double shared_words(
	struct hs_pool *pool, const struct hs_query_terms *query, const struct hs_mm *m)
{
	struct hs_terms terms;
	size_t found = 0;

	hs_words_terms(pool, hs_pool_printf(pool, "%s %s", m->name, m->content), "english", &terms);
	for (size_t i = 0; i < query->n; i++)
		for (size_t k = 0; k < terms.n; k++)
			found += terms.v[k].hash == query->v[i].hash;
	return query->n ? (double)found / (double)query->n : 0;
}

static void insert_hit(
	struct hs_mm_hit *best, size_t *n, size_t max, const struct hs_mm *m, double relevance)
{
	size_t at = *n;

	for (; at > 0 && best[at - 1].relevance < relevance; at--)
		if (at < max)
			best[at] = best[at - 1];
	if (at == max)
		return;
	best[at] = (struct hs_mm_hit){*m, relevance};
	if (*n < max)
		(*n)++;
}

/* Without vectors (no embedder, or its service is lost) the words have to do. */
static enum hs_rc by_words(struct hs_reflection *r, const char *query, size_t max,
	struct hs_mm_hit **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_query_terms terms;
	struct hs_strs ids, wanted = {0};
	struct hs_mm *models;
	size_t n;

	HS_TRY(hs_store_model_ids(r->run->db, r->pool, r->in->bank->bank_no, &r->tag_scope,
		MODELS_WITHOUT_VECTORS, &ids, err));
	for (size_t i = 0; i < ids.n; i++)
		if (!hs_strs_has(&r->in->exclude_mental_model_ids, ids.v[i]))
			hs_strs_add(r->pool, &wanted, ids.v[i]);
	HS_TRY(hs_mm_read(r->run->db, r->pool, r->in->bank->bank_no, &r->tag_scope, &wanted,
		&models, &n, err));

	*ret = HS_NEW_ARRAY(r->pool, struct hs_mm_hit, max);
	*ret_n = 0;
	hs_words_query(r->pool, query, "english", &terms);
	for (size_t i = 0; i < n; i++) {
		double relevance = shared_words(r->pool, &terms, &models[i]);

		if (relevance > 0)
			insert_hit(*ret, ret_n, max, &models[i], relevance);
	}
	return HS_OK;
}

static enum hs_rc rank(struct hs_reflection *r, const char *query, size_t max,
	struct hs_mm_hit **ret, size_t *ret_n, struct hs_err *err)
{
	struct hs_strs texts = {0};
	struct hs_vec vec;
	enum hs_rc rc;

	if (hs_embedder_none(r->run->embedder))
		return by_words(r, query, max, ret, ret_n, err);
	hs_strs_add(r->pool, &texts, query);
	rc = hs_embed(r->run->embedder, r->pool, &texts, true, r->run->deadline_us, &vec, err);
	if (rc == HS_OK)
		return by_vectors(r, &vec, max, ret, ret_n, err);
	if (rc == HS_E_CANCELLED || rc == HS_E_TIMEOUT || r->in->strict)
		return rc;
	hs_err_clear(err);
	return by_words(r, query, max, ret, ret_n, err);
}

/* ---- results ---- */

static json_t *time_or_null(int64_t us)
{
	char text[HS_TIME_TEXT];

	if (us == HS_TIME_NONE)
		return json_null();
	hs_time_format(us, text);
	return json_string(text);
}

static json_t *tags_json(struct hs_pool *pool, const char *tags)
{
	struct hs_err ignored = {0};
	json_t *v = NULL;

	if (hs_json_load(pool, tags, &v, &ignored) != HS_OK || !json_is_array(v))
		return json_array();
	return json_incref(v);
}

static const char *snippet_of(struct hs_pool *pool, const char *content)
{
	if (hs_str_blank(content))
		return empty_model;
	return hs_str_trim(pool, hs_utf8_cut(pool, hs_str_trim(pool, content), SNIPPET_CHARS));
}

static json_t *hit_json(struct hs_reflection *r, const struct hs_mm_hit *hit, bool full, bool stale)
{
	const struct hs_mm *m = &hit->model;
	json_t *entry = json_object();
	const char *snippet = full ? NULL : snippet_of(r->pool, m->content);

	json_object_set_new(entry, "id", json_string(m->id));
	json_object_set_new(entry, "name", json_string(m->name));
	if (full) {
		json_object_set_new(entry, "content", json_string(m->content));
	} else {
		json_object_set_new(entry, "snippet", json_string(snippet));
		json_object_set_new(entry, "content_chars",
			json_integer((json_int_t)hs_utf8_chars(m->content, strlen(m->content))));
	}
	json_object_set_new(entry, "tags", tags_json(r->pool, m->tags));
	json_object_set_new(entry, "relevance", json_real(round(hit->relevance * 1e4) / 1e4));
	json_object_set_new(entry, "updated_at", time_or_null(m->last_refreshed_us));
	json_object_set_new(entry, "is_stale", json_boolean(stale));
	json_object_set_new(entry, "staleness_reason",
		stale ? json_string(hs_loop_text(HS_LT_STALE)) : json_null());
	hs_reflect_saw_model(r, m->id, m->name, full ? m->content : snippet, true,
		full ? SEEN_FULL : SEEN_SNIPPET);
	return entry;
}

/* The best whole; others whole while the budget lasts, else in short. */
static enum hs_rc hits_json(struct hs_reflection *r, const struct hs_mm_hit *hits, size_t n,
	json_t *list, struct hs_err *err)
{
	struct hs_mm *models = HS_NEW_ARRAY(r->pool, struct hs_mm, n ? n : 1);
	bool *stale = HS_NEW_ARRAY(r->pool, bool, n ? n : 1);
	int64_t left = r->in->models_tokens;

	for (size_t i = 0; i < n; i++)
		models[i] = hits[i].model;
	HS_TRY(hs_models_stale(
		r->run->db, r->pool, r->in->bank->bank_no, r->clock_us, models, n, stale, err));

	for (size_t i = 0; i < n; i++) {
		int64_t tokens = (int64_t)hs_tokens(hits[i].model.content);
		bool full = i == 0 || tokens <= left;

		if (full)
			left -= tokens;
		json_array_append_new(list, hit_json(r, &hits[i], full, stale[i]));
	}
	return HS_OK;
}

enum hs_rc hs_reflect_search_models(
	struct hs_reflection *r, json_t *args, int64_t ceiling, json_t **ret, struct hs_err *err)
{
	const char *query = hs_reflect_query_arg(r, args, "search_mental_models", ret), *fault;
	int64_t max = MODELS_PER_SEARCH, cut = hs_cfg_int(r->in->cfg, HS_S_recall_max_query_tokens);
	struct hs_mm_hit *hits;
	bool given;
	size_t n;
	json_t *list;

	(void)ceiling;
	if (!query)
		return HS_OK;
	fault = hs_reflect_int_arg(r->pool, args, "max_results", &max, &given);
	if (fault) {
		*ret = hs_reflect_fault(r->pool, fault);
		return HS_OK;
	}
	max = max < 1 ? 1 : max > MODELS_PER_SEARCH_MAX ? MODELS_PER_SEARCH_MAX : max;
	HS_TRY(rank(r, cut > 0 ? hs_tokens_cut(r->pool, query, (size_t)cut) : query, (size_t)max,
		&hits, &n, err));

	*ret = hs_json_keep(r->pool, json_object());
	json_object_set_new(*ret, "query", json_string(query));
	json_object_set_new(*ret, "count", json_integer((json_int_t)n));
	json_object_set_new(*ret, "mental_models", list = json_array());
	return hits_json(r, hits, n, list, err);
}

/* ---- reading by id ---- */

/* Wanted ids, each once, without excluded ones. */
static struct hs_strs wanted_ids(struct hs_reflection *r, const struct hs_strs *given)
{
	struct hs_strs ids = {0};

	for (size_t i = 0; i < given->n; i++)
		if (!hs_strs_has(&ids, given->v[i]) &&
			!hs_strs_has(&r->in->exclude_mental_model_ids, given->v[i]))
			hs_strs_add(r->pool, &ids, given->v[i]);
	return ids;
}

static json_t *read_json(struct hs_reflection *r, const struct hs_mm *m)
{
	json_t *entry = json_object();

	json_object_set_new(entry, "id", json_string(m->id));
	json_object_set_new(entry, "name", json_string(m->name));
	json_object_set_new(entry, "content", json_string(m->content));
	json_object_set_new(entry, "tags", tags_json(r->pool, m->tags));
	json_object_set_new(entry, "updated_at", time_or_null(m->last_refreshed_us));
	hs_reflect_saw_model(r, m->id, m->name, m->content, false, SEEN_READ);
	return entry;
}

/* The first found one whole, others while the budget lasts; the rest is named in not_read. */
static void pack_reads(struct hs_reflection *r, const struct hs_strs *ids,
	const struct hs_mm *models, size_t n, int64_t left, json_t *list, json_t *not_read)
{
	size_t at = 0;

	for (size_t i = 0; i < ids->n; i++) {
		const struct hs_mm *m =
			at < n && strcmp(models[at].id, ids->v[i]) == 0 ? &models[at++] : NULL;
		int64_t tokens = m ? (int64_t)hs_tokens(m->content) : 0;

		if (m && (json_array_size(list) == 0 || tokens <= left)) {
			json_array_append_new(list, read_json(r, m));
			left -= tokens;
		} else {
			json_array_append_new(not_read, json_string(ids->v[i]));
		}
	}
}

enum hs_rc hs_reflect_read_models(
	struct hs_reflection *r, json_t *args, int64_t ceiling, json_t **ret, struct hs_err *err)
{
	struct hs_strs given = hs_reflect_ids_arg(r->pool, args, "mental_model_ids"), ids = {0};
	int64_t tokens = READ_TOKENS;
	const char *fault = hs_reflect_tokens_arg(r->pool, args, "max_tokens", ceiling, &tokens);
	struct hs_mm *models;
	json_t *list, *not_read;
	size_t n;

	if (!fault && given.n > HS_EXPAND_IDS)
		fault = "too many mental_model_ids in one call";
	if (!fault) {
		ids = wanted_ids(r, &given);
		if (ids.n == 0)
			fault = "read_mental_models needs mental_model_ids";
	}
	if (fault) {
		*ret = hs_reflect_fault(r->pool, fault);
		return HS_OK;
	}
	HS_TRY(hs_mm_read(
		r->run->db, r->pool, r->in->bank->bank_no, &r->tag_scope, &ids, &models, &n, err));

	*ret = hs_json_keep(r->pool, json_object());
	json_object_set_new(*ret, "mental_models", list = json_array());
	not_read = json_array();
	pack_reads(r, &ids, models, n, tokens, list, not_read);
	if (json_array_size(not_read) > 0)
		json_object_set(*ret, "not_read", not_read);
	json_decref(not_read);
	return HS_OK;
}

bool hs_reflect_models_fresh(const json_t *result)
{
	json_t *list = hs_json_arr(result, "mental_models"), *m;
	size_t i;

	json_array_foreach(list, i, m) {
		const char *text = hs_json_str(m, "content");

		if (!text)
			text = hs_json_str(m, "snippet");
		if (hs_str_blank(text) || hs_str_eq(text, empty_model) ||
			!json_is_false(json_object_get(m, "is_stale")))
			return false;
	}
	return json_array_size(list) > 0;
}
