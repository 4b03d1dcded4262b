/*
 * prompt - message lists as ordered blocks. The one builder: what is sent is the concatenation of the
 * active blocks, the preview shows the blocks themselves.
 *
 * Floor:   prompt; uses base, json, config, text. Knows no store.
 * Rules:   contract reflect part B. User text (missions, instructions, directives) stands verbatim;
 *          no printf passes over it. System messages of retain and consolidation hold nothing that
 *          depends on the bank except the settings listed there.
 * Owns:    everything in the pool.
 */
#ifndef HS_PROMPT_PROMPT_H
#define HS_PROMPT_PROMPT_H

#include <jansson.h>

#include "base/pool.h"
#include "base/str.h"
#include "config/config.h"

struct hs_block {
	const char *text;    /* "" when inactive */
	const char *field;   /* setting that owns it; "" = none */
	const char *section; /* bank_identity, disposition, directives; "" = none */
	bool config;         /* source: config, else builtin */
	bool active;
	const char *kind;  /* text, boolean, choice, complex */
	const char *value; /* effective value of the setting, NULL = unset */
	bool has_choices;  /* extraction modes */
	bool editable;
};
struct hs_message {
	const char *role; /* system, user */
	struct hs_block *v;
	size_t n, cap;
};
struct hs_prompt {
	struct hs_message system, user;
	json_t *schema; /* reply schema of JSON calls; NULL = none */
};

/* What a builtin block is about: its first heading line as "Like this", cut in front of a dash or a
 * parenthesis; "" when it has none. */
const char *hs_block_heading(struct hs_pool *pool, const struct hs_block *b);
/* The text that is sent: active blocks joined. */
char *hs_message_text(struct hs_pool *pool, const struct hs_message *m);
/* [{"role":"system","content":…},{"role":"user","content":…}]; new reference. */
json_t *hs_prompt_messages(struct hs_pool *pool, const struct hs_prompt *p);

/* Retain extraction: one chunk (contract B4). */
struct hs_retain_prompt_in {
	const struct hs_config *cfg; /* bank and strategy resolved */
	const char *chunk, *context; /* context NULL or "" = none */
	size_t chunk_no, n_chunks;   /* from 1 */
	int64_t event_us;            /* HS_TIME_NONE = unknown */
	const char *event_text;      /* as the client wrote it (its offset), NULL = from event_us */
	json_t *metadata;            /* NULL or empty = none */
	bool strict;                 /* no schema block */
};
void hs_prompt_retain(
	struct hs_pool *pool, const struct hs_retain_prompt_in *in, struct hs_prompt *ret);

/* Consolidation (contract B5). */
struct hs_consolidation_fact {
	const char *id, *text;
	int64_t occurred_start_us, occurred_end_us, mentioned_us;
};
struct hs_consolidation_prompt_in {
	const struct hs_config *cfg;
	const char *mission; /* of the scope; NULL = setting, else built-in default */
	const struct hs_consolidation_fact *facts;
	size_t n_facts;
	json_t *observations; /* array shown as JSON */
	int64_t free_slots;   /* -1 = no limit */
	bool strict;
};
void hs_prompt_consolidation(
	struct hs_pool *pool, const struct hs_consolidation_prompt_in *in, struct hs_prompt *ret);

/* Reflect (contract B2, B3). */
struct hs_directive_text {
	const char *name, *content;
};
struct hs_reflect_prompt_in {
	const struct hs_config *cfg;
	const char *bank_name,
		*mission; /* mission: resolved reflect_mission, NULL or blank = default role */
	int64_t skepticism, literalism, empathy;
	const struct hs_directive_text *directives;
	size_t n_directives;
	bool with_models, with_observations, with_recall, with_expand;
	bool document;                        /* document mode: a refresh */
	const char *budget;                   /* low, mid, high; NULL = no depth block */
	const char *question, *extra_context; /* extra_context: internal callers only */
	int64_t now_us;
	int64_t max_tokens; /* length hint of the closing call and synthesis */
};
void hs_prompt_reflect(
	struct hs_pool *pool, const struct hs_reflect_prompt_in *in, struct hs_prompt *ret);
/* The one user message of the closing call. */
const char *hs_prompt_closing(struct hs_pool *pool, const struct hs_reflect_prompt_in *in);
/* Final synthesis over retrieved data (already JSON text, one block a tool result). */
void hs_prompt_synthesis(struct hs_pool *pool, const struct hs_reflect_prompt_in *in,
	const struct hs_strs *data, struct hs_prompt *ret);
/* Claims of one part of an over-long history; and the reduce over the claim lists. */
void hs_prompt_claims(struct hs_pool *pool, const struct hs_reflect_prompt_in *in, const char *part,
	struct hs_prompt *ret);
void hs_prompt_reduce(struct hs_pool *pool, const struct hs_reflect_prompt_in *in,
	const struct hs_strs *claims, struct hs_prompt *ret);
/* Shortening rewrite: text, or sections JSON in document mode. */
void hs_prompt_rewrite(struct hs_pool *pool, const struct hs_reflect_prompt_in *in,
	const char *answer, struct hs_prompt *ret);
/* Tools of the loop, in order, as [{name, description, parameters}]; new reference. */
json_t *hs_prompt_reflect_tools(struct hs_pool *pool, const struct hs_reflect_prompt_in *in);
/* Only `done`; new reference. */
json_t *hs_prompt_done_tool(struct hs_pool *pool, const struct hs_reflect_prompt_in *in);
/* Fixed texts of the loop. */
enum hs_loop_text {
	HS_LT_SEARCH_FIRST,     /* error: done or answer_ready before any search */
	HS_LT_RECALL_FIRST,     /* error: answer_found false before a recall */
	HS_LT_TOOL_NOT_OFFERED, /* error: unknown tool */
	HS_LT_GUIDANCE,         /* beside fresh models */
	HS_LT_BLANKED,          /* a tool message emptied to save room */
	HS_LT_STALE,            /* staleness_reason of a model */
	HS_LT_WITHHELD,         /* source_withheld */
	HS_LT_REFRESH_CONTEXT,  /* refresh: write only what answers the topic … (full) */
};
const char *hs_loop_text(enum hs_loop_text which);

#endif
