#include "llm/embed_service.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "json/json.h"
#include "llm/endpoint.h"
#include "llm/refusal.h"
#include "llm/transport.h"

#define NATIVE_URL "https://api.openai.com/v1"

/* One request with its attempts. */
struct batch {
	const struct hs_embed_service *s;
	struct hs_pool *pool;
	const char *const *texts;
	size_t n;
	int64_t deadline_us;
	struct hs_vec *ret;
	bool retry;
};

static const char *setting(const struct hs_config *cfg, enum hs_setting_id id)
{
	const char *text = hs_cfg_null(cfg, id) ? NULL : hs_cfg_str(cfg, id);

	return hs_str_blank(text) ? NULL : text;
}

enum hs_rc hs_embed_service_read(struct hs_pool *pool, const struct hs_config *cfg,
	struct hs_embed_service *ret, struct hs_err *err)
{
	const char *base = setting(cfg, HS_S_embeddings_openai_base_url);
	const char *key = setting(cfg, HS_S_embeddings_openai_api_key);

	*ret = (struct hs_embed_service){
		.model = hs_cfg_str(cfg, HS_S_embeddings_openai_model),
		.dimensions = hs_cfg_int(cfg, HS_S_embeddings_openai_dimensions),
		.batch_size = hs_cfg_int(cfg, HS_S_embeddings_openai_batch_size),
		.max_retries = hs_cfg_int(cfg, HS_S_embeddings_max_retries),
		.timeout_ms = (int64_t)(hs_cfg_num(cfg, HS_S_llm_timeout) * 1000) + 1,
		.connect_ms = (int64_t)(hs_cfg_num(cfg, HS_S_llm_connect_timeout) * 1000),
		.initial_backoff_s = hs_cfg_num(cfg, HS_S_embeddings_initial_backoff),
		.max_backoff_s = hs_cfg_num(cfg, HS_S_embeddings_max_backoff),
		.retry_budget_s = hs_cfg_num(cfg, HS_S_embeddings_retry_budget),
		.slots = hs_slots_new(pool, hs_cfg_str(cfg, HS_S_run_dir), "embeddings",
			hs_cfg_int(cfg, HS_S_embeddings_max_concurrent_requests)),
	};
	if (!base) {
		/* the chat service's address and key go together: its key is shown to nobody else */
		base = setting(cfg, HS_S_llm_base_url);
		base = base ? base : NATIVE_URL;
		key = key ? key : setting(cfg, HS_S_llm_api_key);
	}
	if (!key && !strcmp(base, NATIVE_URL))
		return hs_fail(err, HS_E_CONFIG,
			"embeddings_openai_api_key is not set; the service needs it at its own address");
	if (!*hs_url_host(pool, base))
		return hs_fail(
			err, HS_E_CONFIG, "embeddings_openai_base_url is no http or https address");
	if (key && strpbrk(key, "\r\n"))
		return hs_fail(err, HS_E_CONFIG, "embeddings_openai_api_key holds a line break");
	ret->url = hs_url_join(pool, base, "/embeddings");
	ret->key = key;
	hs_strs_add(pool, &ret->headers, "Content-Type: application/json");
	if (key)
		hs_strs_add(
			pool, &ret->headers, hs_pool_printf(pool, "Authorization: Bearer %s", key));
	return HS_OK;
}

static const char *request_body(const struct batch *b)
{
	json_auto_t *body = json_object();
	json_t *input = json_array();

	for (size_t i = 0; i < b->n; i++)
		json_array_append_new(input, json_string(b->texts[i]));
	json_object_set_new(body, "model", json_string(b->s->model));
	json_object_set_new(body, "input", input);
	json_object_set_new(body, "encoding_format", json_string("float"));
	if (b->s->dimensions > 0)
		json_object_set_new(body, "dimensions", json_integer(b->s->dimensions));
	return hs_json_text(b->pool, body);
}

static enum hs_rc read_vector(
	struct batch *b, json_t *values, struct hs_vec *ret, struct hs_err *err)
{
	size_t dim = json_array_size(values), i;
	float *v = HS_NEW_ARRAY(b->pool, float, dim + 1);
	double sum = 0;
	json_t *x;

	if (!dim)
		return hs_fail(err, HS_E_EMBED, "the embedding service gave an empty vector");
	if (dim > HS_EMBED_DIM_MAX || (b->s->dimensions > 0 && dim != (size_t)b->s->dimensions)) {
		b->retry = false;
		return hs_fail(err, HS_E_EMBED_DIM,
			"the embedding service gave %zu numbers instead of %lld", dim,
			(long long)(b->s->dimensions > 0 ? b->s->dimensions : HS_EMBED_DIM_MAX));
	}
	json_array_foreach(values, i, x) {
		double d = json_number_value(x);

		if (!json_is_number(x) || !isfinite(d) || fabs(d) > 1e30)
			return hs_fail(err, HS_E_EMBED,
				"the embedding service gave something that is no number");
		v[i] = (float)d;
		sum += d * d;
	}
	if (!(sum > 0))
		return hs_fail(
			err, HS_E_EMBED, "the embedding service gave a vector without length");
	for (i = 0; i < dim; i++)
		v[i] = (float)(v[i] / sqrt(sum));
	*ret = (struct hs_vec){v, dim};
	return HS_OK;
}

static enum hs_rc read_reply(struct batch *b, const struct hs_http_reply *http, struct hs_err *err)
{
	struct hs_err ignored = {0};
	json_t *value = NULL, *data, *entry;
	size_t i, found = 0;

	b->retry = true;
	if (hs_json_parse(b->pool, http->body, http->body_bytes, &value, NULL, &ignored) != HS_OK)
		return hs_fail(err, HS_E_EMBED, "the embedding service's answer is not JSON");
	data = hs_json_arr(value, "data");
	memset(b->ret, 0, b->n * sizeof(*b->ret));
	json_array_foreach(data, i, entry) {
		int64_t at = hs_json_int(entry, "index", (int64_t)i);

		if (at < 0 || (size_t)at >= b->n || b->ret[at].v)
			return hs_fail(
				err, HS_E_EMBED, "the embedding service answered out of order");
		HS_TRY(read_vector(b, hs_json_arr(entry, "embedding"), &b->ret[at], err));
		found++;
	}
	if (found != b->n)
		return hs_fail(err, HS_E_EMBED,
			"the embedding service gave %zu vectors for %zu texts", found, b->n);
	return HS_OK;
}

static enum hs_rc http_failed(struct batch *b, const struct hs_http_reply *http, struct hs_err *err)
{
	static const int healing[] = {408, 409, 425, 429};
	const char *text = hs_refusal_text(b->pool, http->body, http->body_bytes, b->s->key);

	b->retry = http->status >= 500;
	for (size_t i = 0; i < HS_COUNT(healing); i++)
		b->retry |= http->status == healing[i];
	return hs_fail_foreign(err, HS_E_EMBED, http->status,
		"the embedding service answered HTTP %d%s%s", http->status, *text ? ": " : "",
		text);
}

static enum hs_rc attempt(struct batch *b, const char *body, struct hs_err *err)
{
	HS_AUTO(hs_slot_free) int slot = -1;
	struct hs_slot_wait wait = {.deadline_us = b->deadline_us};
	struct hs_http_request req = {
		.url = b->s->url,
		.headers = b->s->headers,
		.body = body,
		.body_bytes = strlen(body),
		.timeout_ms = b->s->timeout_ms,
		.connect_ms = b->s->connect_ms,
		.reply_max = HS_LLM_REPLY_MAX,
	};
	struct hs_http_reply http;
	int64_t left_ms;
	enum hs_rc rc;

	b->retry = false;
	HS_TRY(hs_slot_take(b->s->slots, &wait, &slot, err));
	left_ms = b->deadline_us ? (b->deadline_us - hs_mono_us()) / 1000 : req.timeout_ms;
	if (left_ms <= 0)
		return hs_fail(err, HS_E_TIMEOUT,
			"the time limit was reached before a call to the embedding service");
	if (left_ms < req.timeout_ms)
		req.timeout_ms = left_ms;
	rc = hs_http_post(b->pool, &req, &http, err);
	if (rc == HS_OK)
		return http.status == 200 ? read_reply(b, &http, err) : http_failed(b, &http, err);
	if (b->deadline_us && hs_mono_us() >= b->deadline_us)
		return hs_fail(err, HS_E_TIMEOUT,
			"the time limit was reached during a call to the embedding service");
	if (rc == HS_E_INTERNAL)
		return rc;
	b->retry = true;
	return hs_fail(err, HS_E_EMBED, "the embedding service cannot be reached or took too long");
}

static enum hs_rc run_batch(struct batch *b, struct hs_err *err)
{
	const char *body = request_body(b);
	double pause_s = b->s->initial_backoff_s;
	int64_t end_us = hs_mono_us() + (int64_t)(b->s->retry_budget_s * 1e6);

	for (int64_t i = 0;; i++) {
		enum hs_rc rc = attempt(b, body, err);
		int64_t next_us = hs_mono_us() + (int64_t)(pause_s * 1e6);

		if (rc == HS_OK || !b->retry || i >= b->s->max_retries || next_us > end_us)
			return rc;
		if (b->deadline_us && next_us >= b->deadline_us)
			return rc;
		hs_sleep_us((int64_t)(pause_s * 1e6));
		pause_s = pause_s * 2 > b->s->max_backoff_s ? b->s->max_backoff_s : pause_s * 2;
		hs_err_clear(err);
	}
}

enum hs_rc hs_embed_service_call(const struct hs_embed_service *s, struct hs_pool *pool,
	const struct hs_strs *texts, int64_t deadline_us, struct hs_vec *ret, struct hs_err *err)
{
	struct hs_err own = {0};

	for (size_t at = 0; at < texts->n; at += (size_t)s->batch_size) {
		size_t left = texts->n - at;
		struct batch b = {
			.s = s,
			.pool = pool,
			.texts = texts->v + at,
			.n = left < (size_t)s->batch_size ? left : (size_t)s->batch_size,
			.deadline_us = deadline_us,
			.ret = ret + at,
		};

		HS_TRY(run_batch(&b, err ? err : &own));
	}
	for (size_t i = 1; i < texts->n; i++)
		if (ret[i].dim != ret[0].dim)
			return hs_fail(err, HS_E_EMBED_DIM,
				"the embedding service gave vectors of %zu and of %zu numbers",
				ret[0].dim, ret[i].dim);
	return HS_OK;
}
