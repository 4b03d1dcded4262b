/*
 * build - what the builders of the prompt floor share: blocks, joining, small texts.
 *
 * Floor:   prompt, inside only.
 * Rule:    white space between two blocks belongs to the block before it: every active text but a
 *          message's last ends with a blank line (HS_GAP).
 */
#ifndef HS_PROMPT_BUILD_H
#define HS_PROMPT_BUILD_H

#include "base/buf.h"
#include "prompt/prompt.h"
#include "prompt/templates.h"

#define HS_GAP "\n\n"

/* All texts up to the NULL, one behind the other. User text goes through here and nowhere else. */
char *hs_prompt_cat(struct hs_pool *pool, ...) __attribute__((sentinel));

/* Plain builtin text. */
void hs_block_builtin(struct hs_pool *pool, struct hs_message *m, const char *text);
/* Builtin text that is a named part: bank_identity, disposition, directives. text NULL = inactive. */
void hs_block_section(
	struct hs_pool *pool, struct hs_message *m, const char *section, const char *text);
/* Text made by a setting; text NULL = inactive (its empty slot). */
void hs_block_setting(struct hs_pool *pool, struct hs_message *m, const struct hs_config *cfg,
	enum hs_setting_id id, const char *text);
/* Builtin text that a setting chooses (extraction mode). */
void hs_block_chosen(struct hs_pool *pool, struct hs_message *m, const struct hs_config *cfg,
	enum hs_setting_id id, const char *text);

/* The setting as text, NULL when it is unset or blank: booleans true/false, objects and lists as JSON. */
const char *hs_setting_text(
	struct hs_pool *pool, const struct hs_config *cfg, enum hs_setting_id id);
/* The set output language, NULL when there is none. */
const char *hs_output_language(const struct hs_config *cfg);
/* "OUTPUT LANGUAGE: …" for a set language. */
const char *hs_output_language_text(struct hs_pool *pool, const char *language);
/* A line of one character repeated that is no line of text. */
const char *hs_fence_for(struct hs_pool *pool, const char *text);
/* Directives with content, numbered "1. name: content"; "" when there is none. */
const char *hs_directive_list(struct hs_pool *pool, const struct hs_reflect_prompt_in *in);
/* Add the three blocks that reflect's system messages share. */
void hs_block_time(struct hs_pool *pool, struct hs_message *m, int64_t now_us);

#endif
