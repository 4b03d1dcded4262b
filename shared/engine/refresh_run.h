/*
 * refresh_run - the state of one refresh, shared by refresh*.c and nobody else.
 *
 * Floor:   engine.
 * Files:   refresh.c loads, parks, decides what is read and runs reflect; refresh_delta.c works
 *          what a delta run found into the document; refresh_record.c makes the JSON that is kept
 *          (reflect_response, trace, result metadata); refresh_write.c writes the result or the
 *          failure; refresh_dry.c tells what would have been written.
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
	bool delta;           /* the stored document is edited, from what is new in its scope */
	int64_t started_us;   /* hs_mono_us */

	bool ran; /* reflect was run: out holds its result or its trace */
	struct hs_reflect_out out;
	struct hs_strs warnings;
	bool over_budget;

	bool edited;                       /* delta: the operations were applied, even none */
	json_t *ops_applied, *ops_skipped; /* audit entries; NULL = no operations were asked for */

	enum hs_outcome outcome;
	const char *reason;              /* failure_reason; NULL when it did not fail */
	const char *skipped;             /* reflect_skipped; NULL when reflect ran */
	const char *content, *structure; /* of a written outcome */
	json_t *response;                /* to be stored */
};

bool hs_outcome_writes(enum hs_outcome outcome);
bool hs_outcome_failed(enum hs_outcome outcome);
void hs_refresh_warn(struct hs_refreshing *r, const char *text);

/* refresh.c */
/* Everything of an attempt but its writes. */
HS_MUST enum hs_rc hs_refresh_load(struct hs_refreshing *r, struct hs_err *err);
HS_MUST enum hs_rc hs_refresh_produce(struct hs_refreshing *r, struct hs_err *err);
/* Mark the run as failed; hands rc back. */
enum hs_rc hs_refresh_failed(
	struct hs_refreshing *r, enum hs_outcome outcome, const char *reason, enum hs_rc rc);
void hs_refresh_preserve(struct hs_refreshing *r, const char *warning);
/* The wall clock ends the operation at once; other time-outs are retried. */
enum hs_rc hs_refresh_name_wall_clock(
	const struct hs_refreshing *r, enum hs_rc rc, struct hs_err *err);
/* Ends that are no failure of the refresh: nothing is recorded for them. */
bool hs_refresh_unrecorded(const struct hs_err *err);

/* refresh_delta.c: content and structure after the edits, or preserved, or failed */
HS_MUST enum hs_rc hs_refresh_delta(struct hs_refreshing *r, struct hs_err *err);

/* refresh_record.c; results are kept by the pool */
/* delta when edits were applied or a delta run found nothing new, else full */
enum hs_refresh_mode hs_refresh_effective(const struct hs_refreshing *r);
/* New references. */
json_t *hs_refresh_trace(const struct hs_refreshing *r, bool with_outputs);
json_t *hs_refresh_usage(const struct hs_llm_usage *u);
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
