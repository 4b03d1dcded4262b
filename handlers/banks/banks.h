/*
 * banks - functions and shapes of the program hindsight-banks (contract banks 3-5, 7).
 */
#ifndef HS_HANDLERS_BANKS_H
#define HS_HANDLERS_BANKS_H

#include "store/bank.h"
#include "web/route.h"

extern const struct hs_route bank_routes[];

/* Waiting work, when metrics_backlog_enabled. */
enum hs_rc bank_metrics(struct hs_ctx *c, struct hs_buf *out);

/* queries */
struct list_query {
	struct hs_seen seen;
	const char *q;
	int64_t limit, offset;
};
struct stats_query {
	struct hs_seen seen;
	bool refresh;
};
struct directives_query {
	struct hs_seen seen;
	struct hs_strs tags;
	int tags_match;  /* index into hs_list_match_names */
	bool active_only;
	int64_t limit, offset;
};

/* bodies */
struct disposition {
	struct hs_seen seen;
	int64_t skepticism, literalism, empathy;
};
struct bank_body {
	struct hs_seen seen;
	const char *name, *reflect_mission, *mission, *background;
	struct disposition *disposition;
	int64_t disposition_skepticism, disposition_literalism, disposition_empathy;
	const char *retain_mission, *retain_extraction_mode, *retain_custom_instructions;
	const char *observations_mission;
	int64_t retain_chunk_size, retain_structured_chunk_size, retain_max_attachments_per_chunk;
	bool enable_observations, enable_text_search, enable_temporal_retrieval,
		enable_graph_retrieval;
	bool enable_reranking;
};
struct profile_body {
	struct hs_seen seen;
	struct disposition *disposition;
};
struct background_body {
	struct hs_seen seen;
	const char *content;
};
struct config_body {
	struct hs_seen seen;
	json_t *updates;
};
struct directive_body {
	struct hs_seen seen;
	const char *name, *content;
	int64_t priority;
	bool is_active;
	struct hs_strs tags;
};
extern const struct hs_shape bank_body_shape, directive_change_shape;

/* bank.c */
hs_route_fn bank_list, bank_put, bank_patch, bank_profile, bank_delete, profile_gone;
/* config.c */
hs_route_fn config_get, config_patch, config_delete;
/* stats.c */
hs_route_fn stats_get;
/* directive.c */
hs_route_fn directive_list, directive_get, directive_create, directive_update, directive_delete;

#endif
