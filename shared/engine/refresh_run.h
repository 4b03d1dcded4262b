/*
 * refresh_run - the state of one refresh, shared by refresh*.c and nobody else.
 *
 * Floor:   engine.
 * Files:   refresh.c loads, parks, decides what is read and runs reflect; refresh_record.c makes the
 *          JSON that is kept (reflect_response, trace, result metadata); refresh_write.c writes the
 *          result or the failure.
 */
#ifndef HS_ENGINE_REFRESH_RUN_H
#define HS_ENGINE_REFRESH_RUN_H

#include "engine/model.h"
#include "engine/reflect.h"
#include "engine/refresh.h"

enum hs_outcome {
	HS_CONTENT_WRITTEN,
	HS_CONTENT_UNCHANGED,
	HS_CONTENT_PRESERVED,
	HS_FAILED_EMPTY,
	HS_FAILED_DELTA,
	HS_FAILED_STRUCTURED,
	HS_FAILED_ERROR,
	HS_OUTCOME__MAX
};
extern const char *const hs_outcome_names[HS_OUTCOME__MAX];

struct hs_refreshing {
	struct hs_run *run;
	struct hs_pool *pool;
	const struct hs_refresh_in *in;
	const struct hs_config *cfg; /* the bank's */
	struct hs_mm m;              /* as loaded; clock_us is the cutoff */
	const struct hs_trigger *t;
	json_t *stored;         /* its reflect_response; NULL = none */
	struct hs_scope scope;  /* with the window */
	struct hs_strs exclude; /* ids, the model's own among them */
	int64_t watermark_us;   /* HS_TIME_NONE = leave the column as it is */
	bool memories_in_reach;
	const char *fallback; /* mode_fallback_reason; NULL = none */
	int64_t started_us;   /* hs_mono_us */

	bool ran; /* reflect was run: out holds its result or its trace */
	struct hs_reflect_out out;
	struct hs_strs warnings;
	bool over_budget;

	enum hs_outcome outcome;
	const char *reason;              /* failure_reason; NULL when it did not fail */
	const char *skipped;             /* reflect_skipped; NULL when reflect ran */
	const char *content, *structure; /* of a written outcome */
	json_t *response;                /* to be stored */
};

/* Nothing of the document changes; the run counts as completed. */
bool hs_outcome_failed(enum hs_outcome outcome);
void hs_refresh_warn(struct hs_refreshing *r, const char *text);

/* refresh_record.c; results are kept by the pool */
json_t *hs_refresh_response(struct hs_refreshing *r);
/* What a failure leaves in reflect_response; NULL = as it is. */
json_t *hs_refresh_failed_response(struct hs_refreshing *r);
/* Keys for result_metadata; new reference. */
json_t *hs_refresh_metadata(const struct hs_refreshing *r);

/* refresh_write.c */
HS_MUST enum hs_rc hs_refresh_write(struct hs_refreshing *r, struct hs_err *err);
/* Stamp, history row and reflect_response of a failed attempt; what could not be written is told in
 * *cause, which keeps its code. */
void hs_refresh_write_failure(struct hs_refreshing *r, struct hs_err *cause);

#endif
