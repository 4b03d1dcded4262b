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
void hs_metrics_open_in(const char *run_dir);  /* its file; NULL or "": own memory */
void hs_metrics_close(void);             /* back to nothing; tests */
void hs_metrics_http(const char *method, const char *endpoint, int status, int64_t duration_us);
void hs_metrics_operation(const char *operation, const char *source, const char *budget,
	const char *max_tokens, bool success, int64_t duration_us);
void hs_metrics_llm(const char *provider, const char *model, const char *scope, bool success,
	int64_t duration_us, int64_t input_tokens, int64_t output_tokens, int64_t cached_tokens,
		int64_t thoughts_tokens);
/* A request that runs: what begin gave goes to end. A process that dies no longer counts. */
int hs_metrics_begin(const char *method, const char *endpoint);
void hs_metrics_end(int slot);
/* One document stored, with facts or without. */
void hs_metrics_retained(bool facts);
/* One consolidation call that failed; retry: the same may go better later. */
void hs_metrics_consolidation_failure(bool retry, const char *error_type);
void hs_metrics_print(struct hs_buf *buf);

#endif
