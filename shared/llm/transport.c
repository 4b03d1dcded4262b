#include "llm/transport.h"

#include <curl/curl.h>
#include <pthread.h>
#include <string.h>

#include "base/buf.h"

#define HEADER_BYTES_MAX ((size_t)256 * 1024) /* all header lines of one call */

struct transfer {
	struct hs_pool *pool;
	const struct hs_http_request *req;
	struct hs_buf *body;
	struct hs_http_reply *reply;
	size_t header_bytes;
	bool cancelled;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t handle_key;
static bool usable;

static void handle_free(void *handle)
{
	curl_easy_cleanup(handle);
}

static void start(void)
{
	usable = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK &&
		 !pthread_key_create(&handle_key, handle_free);
}

/* The thread's handle, with no option set but its connections alive. */
static CURL *handle_get(void)
{
	CURL *handle;

	pthread_once(&once, start);
	if (!usable)
		return NULL;
	handle = pthread_getspecific(handle_key);
	if (handle) {
		curl_easy_reset(handle);
		return handle;
	}
	handle = curl_easy_init();
	if (handle && pthread_setspecific(handle_key, handle)) {
		curl_easy_cleanup(handle);
		return NULL;
	}
	return handle;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;

	hs_buf_add(t->body, data, size * n);
	return t->body->failed ? 0 : size * n;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	const char *line, *colon;

	t->header_bytes += size * n;
	if (t->header_bytes > HEADER_BYTES_MAX)
		return 0;
	line = hs_pool_strndup(t->pool, data, size * n);
	colon = strchr(line, ':');
	if (hs_str_starts(line, "HTTP/")) { /* a new answer (100 Continue before it) */
		t->reply->header_names.n = 0;
		t->reply->header_values.n = 0;
	} else if (colon) {
		hs_strs_add(t->pool, &t->reply->header_names,
			hs_str_lower_ascii(
				t->pool, hs_pool_strndup(t->pool, line, (size_t)(colon - line))));
		hs_strs_add(t->pool, &t->reply->header_values, hs_str_trim(t->pool, colon + 1));
	}
	return size * n;
}

static int on_progress(
	void *arg, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
	struct transfer *t = arg;

	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	if (t->req->cancelled && t->req->cancelled(t->req->cancel_arg))
		t->cancelled = true;
	return t->cancelled;
}

static void limit_protocols(CURL *h)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(h, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static void set_options(CURL *h, struct transfer *t, struct curl_slist *headers)
{
	const struct hs_http_request *req = t->req;

	limit_protocols(h);
	curl_easy_setopt(h, CURLOPT_URL, req->url);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(h, CURLOPT_POST, 1L);
	curl_easy_setopt(h, CURLOPT_POSTFIELDS, req->body);
	curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_bytes);
	curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)req->timeout_ms);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS,
		(long)(req->connect_ms > 0 && req->connect_ms < req->timeout_ms ? req->connect_ms
										: req->timeout_ms));
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(h, CURLOPT_PROXY, "");
	curl_easy_setopt(h, CURLOPT_USERAGENT, "hindsight-fcgi");
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(h, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(h, CURLOPT_XFERINFODATA, t);
}

static enum hs_rc failed(const struct transfer *t, CURLcode code, struct hs_err *err)
{
	if (t->cancelled)
		return hs_fail(err, HS_E_CANCELLED, "cancelled during a call to the model service");
	if (code == CURLE_OPERATION_TIMEDOUT)
		return hs_fail_foreign(err, HS_E_LLM_TIMEOUT, 0,
			"the model service did not answer within %lld ms",
			(long long)t->req->timeout_ms);
	if (t->body->failed)
		return hs_fail(err, HS_E_LLM_DOWN,
			"the model service's answer is longer than %zu bytes", t->req->reply_max);
	return hs_fail(err, HS_E_LLM_DOWN, "call to the model service failed: %s",
		curl_easy_strerror(code));
}

static enum hs_rc perform(CURL *h, struct transfer *t, struct hs_err *err)
{
	CURLcode code = curl_easy_perform(h);
	long status = 0;

	if (code != CURLE_OK)
		return failed(t, code, err);
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
	t->reply->status = (int)status;
	t->reply->body = t->body->data;
	t->reply->body_bytes = t->body->len;
	return HS_OK;
}

static struct curl_slist *header_list(const struct hs_strs *lines)
{
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	for (size_t i = 0; list && i < lines->n; i++) {
		struct curl_slist *longer = curl_slist_append(list, lines->v[i]);

		if (!longer) {
			curl_slist_free_all(list);
			return NULL;
		}
		list = longer;
	}
	return list;
}

enum hs_rc hs_http_post(struct hs_pool *pool, const struct hs_http_request *req,
	struct hs_http_reply *ret, struct hs_err *err)
{
	struct hs_http_reply reply = {0};
	struct transfer t = {.pool = pool,
		.req = req,
		.body = hs_buf_new(pool, req->reply_max),
		.reply = &reply};
	struct curl_slist *headers;
	CURL *h = handle_get();
	enum hs_rc rc;

	if (!h)
		return hs_fail(err, HS_E_INTERNAL, "libcurl cannot be started");
	headers = header_list(&req->headers);
	if (!headers)
		hs_out_of_memory(req->headers.n * sizeof(char *));
	set_options(h, &t, headers);
	rc = perform(h, &t, err);
	curl_easy_reset(h); /* nothing of this call may be reached from the handle that stays */
	curl_slist_free_all(headers);
	if (rc == HS_OK)
		*ret = reply;
	return rc;
}

const char *hs_http_header(const struct hs_http_reply *reply, const char *name)
{
	for (size_t i = 0; i < reply->header_names.n; i++)
		if (hs_str_eq(reply->header_names.v[i], name))
			return reply->header_values.v[i];
	return NULL;
}
