/*
 * retain - store content: chunk, extract, embed, resolve entities, write.
 *
 * Floor:   engine. Rules: contract retain-recall 2. Network calls come before the write transaction.
 * Writes:  one transaction a chunk batch (first statement: the commit clock); the last one also
 *          submits the consolidation.
 */
#ifndef HS_ENGINE_RETAIN_H
#define HS_ENGINE_RETAIN_H

#include <jansson.h>

#include "engine/run.h"
#include "store/scope.h"

struct hs_retain_item {
	const char *content;
	bool has_time, unset_time;        /* timestamp given / "unset" */
	int64_t time_us;                  /* HS_TIME_NONE = now when !has_time */
	const char *time_text;            /* as the client wrote it */
	const char *context, *document_id, *strategy;
	json_t *metadata;                 /* object of strings or NULL */
	json_t *entities;                 /* array of {text, type} or NULL */
	bool resolve_entities;
	struct hs_strs tags;              /* with document_tags unioned */
	json_t *observation_scopes;       /* as sent or NULL */
	bool append;
};
struct hs_retain_out {
	int64_t items_count;
	int64_t unit_ids_count, extraction_errors_count;
	struct hs_strs extraction_errors, document_ids;
	struct hs_llm_usage usage;
};
/* Now, in this thread: sync requests and the worker's retain jobs. The bank exists. */
HS_MUST enum hs_rc hs_retain_run(struct hs_run *run, const struct hs_bank *bank, const struct hs_retain_item *items, size_t n, struct hs_retain_out *ret, struct hs_err *err);
/* Queue a parent and its children; makes the bank when missing, all in one transaction. *ret_id is
 * the parent's id. A repeated operation_id gives the first submission's id and items_count. */
HS_MUST enum hs_rc hs_retain_submit(struct hs_run *run, const char *bank_id, const char *operation_id, const struct hs_retain_item *items, size_t n, const char **ret_id, int64_t *ret_items, struct hs_err *err);
/* Items <-> task_payload {"contents": […]}. */
json_t *hs_retain_items_json(const struct hs_retain_item *items, size_t n);
HS_MUST enum hs_rc hs_retain_items_read(struct hs_pool *pool, json_t *payload, struct hs_retain_item **ret, size_t *ret_n, struct hs_err *err);

#endif
