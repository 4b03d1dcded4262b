/*
 * metrics - counters and histograms shared by all programs of a host.
 *
 * Floor:   base. One memory-mapped file (run_dir/metrics), written with atomic adds; without a path
 *          the counters are the process's own. Rows are added under a lock, never removed.
 * Shapes:  Prometheus text; names and buckets as contract banks 13. The process figures are those of
 *          the process that prints.
 * Errors:  none reach a request: a full table drops new label sets and counts them.
 */
#ifndef HS_BASE_METRICS_H
#define HS_BASE_METRICS_H

#include "base/buf.h"

void hs_metrics_open(const char *path);  /* NULL or not usable: own memory */
void hs_metrics_close(void);             /* back to nothing; tests */
void hs_metrics_http(const char *method, const char *endpoint, int status, int64_t duration_us);
void hs_metrics_operation(const char *operation, const char *source, const char *budget,
	const char *max_tokens, bool success, int64_t duration_us);
void hs_metrics_llm(const char *provider, const char *model, const char *scope, bool success,
	int64_t duration_us, int64_t input_tokens, int64_t output_tokens, int64_t cached_tokens,
		int64_t thoughts_tokens);
void hs_metrics_print(struct hs_buf *buf);

#endif
