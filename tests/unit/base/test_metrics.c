#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/pool.h"

static const char *print(struct hs_pool *pool)
{
	struct hs_buf *b = hs_buf_new(pool, 10000000);

	hs_metrics_print(b);
	assert_false(b->failed);
	return b->data;
}

static void histograms_and_counters_are_printed(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	const char *text;

	(void)state;
	hs_metrics_open(NULL);
	hs_metrics_http("GET", "/a/{b}", 200, 3000);
	hs_metrics_http("GET", "/a/{b}", 200, 2000000);
	hs_metrics_operation("reflect", "api", "mid", "", true, 400000);
	hs_metrics_llm("openai", "m\"x", "reflect", false, 1000, 600, 20, 0, 0);
	hs_metrics_retained(true);
	hs_metrics_retained(true);
	hs_metrics_consolidation_failure(false, "HS_E_LLM_POLICY");
	text = print(pool);
#define HTTP "{method=\"GET\",endpoint=\"/a/{b}\",status_code=\"200\",status_class=\"2xx\""
	assert_non_null(strstr(text,
		"hindsight_http_duration_seconds_bucket" HTTP ",le=\"0.005\"} 1\n"));
	assert_non_null(strstr(text,
		"hindsight_http_duration_seconds_bucket" HTTP ",le=\"2.5\"} 2\n"));
	assert_non_null(strstr(text,
		"hindsight_http_duration_seconds_bucket" HTTP ",le=\"+Inf\"} 2\n"));
	assert_non_null(strstr(text, "hindsight_http_duration_seconds_sum" HTTP "} 2.003000\n"));
	assert_non_null(strstr(text, "hindsight_http_requests_total" HTTP "} 2\n"));
	assert_non_null(strstr(text,
		"hindsight_operation_operations_total{operation=\"reflect\",source=\"api\","
		"budget=\"mid\",max_tokens=\"\",success=\"true\"} 1\n"));
	assert_non_null(strstr(text, "hindsight_llm_tokens_input_tokens_total{provider=\"openai\","
		"model=\"m\\\"x\",scope=\"reflect\",success=\"false\",token_bucket=\"500-1k\"} 600\n"));
	assert_null(strstr(text, "cached_input_tokens_total{"));
	assert_non_null(strstr(text, "hindsight_retain_documents_total{outcome=\"facts\"} 2\n"));
	assert_non_null(strstr(text, "hindsight_consolidation_batch_failures_calls_total{"
		"failure_class=\"fail_fast\",error_type=\"HS_E_LLM_POLICY\"} 1\n"));
	assert_non_null(strstr(text, "hindsight_process_threads 1\n"));
	hs_metrics_close();
}

static void a_file_is_shared_by_processes(void **state)
{
	char path[] = "/tmp/hsmetricsXXXXXX";
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	int fd = mkstemp(path), status;
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	hs_metrics_open(path);
	hs_metrics_http("GET", "/x", 200, 1);
	pid = fork();
	if (pid == 0) {
		hs_metrics_open(path);
		hs_metrics_http("GET", "/x", 200, 1);
		hs_metrics_http("GET", "/y", 200, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_non_null(strstr(print(pool),
		"endpoint=\"/x\",status_code=\"200\",status_class=\"2xx\"} 2\n"));
	assert_non_null(strstr(print(pool),
		"endpoint=\"/y\",status_code=\"200\",status_class=\"2xx\"} 1\n"));
	hs_metrics_close();
	unlink(path);
}

#define RUNNING "hindsight_http_requests_in_progress_requests{method=\"GET\",endpoint=\"/x\"} "

static void running_requests_are_counted(void **state)
{
	char path[] = "/tmp/hsmetricsXXXXXX";
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	int fd = mkstemp(path), status, a, b;
	pid_t pid;

	(void)state;
	close(fd);
	hs_metrics_open(path);
	a = hs_metrics_begin("GET", "/x");
	b = hs_metrics_begin("GET", "/x");
	assert_true(a >= 0 && b >= 0 && a != b);
	assert_non_null(strstr(print(pool), RUNNING "2\n"));
	hs_metrics_end(a);
	assert_non_null(strstr(print(pool), RUNNING "1\n"));
	pid = fork();
	if (pid == 0) {
		/* takes every slot and dies */
		while (hs_metrics_begin("GET", "/x") >= 0)
			;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_non_null(strstr(print(pool), RUNNING "1\n"));
	a = hs_metrics_begin("GET", "/x");
	assert_true(a >= 0);
	assert_non_null(strstr(print(pool), RUNNING "2\n"));
	hs_metrics_end(a);
	hs_metrics_end(b);
	hs_metrics_end(-1);
	assert_non_null(strstr(print(pool), RUNNING "0\n"));
	hs_metrics_close();
	unlink(path);
}

static void another_layout_is_replaced(void **state)
{
	char path[] = "/tmp/hsmetricsXXXXXX";
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	hs_metrics_open(path);
	hs_metrics_http("GET", "/x", 200, 1);
	hs_metrics_close();
	hs_metrics_open(path);
	assert_non_null(strstr(print(pool), "endpoint=\"/x\""));
	hs_metrics_close();
	unlink(path);
}

static void a_full_table_drops(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	char path[32];

	(void)state;
	hs_metrics_open(NULL);
	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "/%d", i);
		hs_metrics_http("GET", path, 200, 1);
	}
	assert_non_null(strstr(print(pool), "endpoint=\"/2000\""));
	assert_null(strstr(print(pool), "endpoint=\"/2999\""));
	hs_metrics_close();
	hs_metrics_http("GET", "/after", 200, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(histograms_and_counters_are_printed),
		cmocka_unit_test(a_file_is_shared_by_processes),
		cmocka_unit_test(running_requests_are_counted),
		cmocka_unit_test(another_layout_is_replaced),
		cmocka_unit_test(a_full_table_drops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
