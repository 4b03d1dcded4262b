/*
 * clean - model text -> what was meant: reasoning tags, code fences, almost-JSON.
 *
 * Floor:   llm; pure. Rules: contract reflect C4, C5. Input is hostile: every loop is linear or
 *          bounded, nesting is capped by HS_JSON_DEPTH.
 * Owns:    everything in the pool.
 */
#ifndef HS_LLM_CLEAN_H
#define HS_LLM_CLEAN_H

#include <jansson.h>

#include "base/pool.h"

/* Without reasoning (<think>…</think> and its kin), control characters and outer white space. */
const char *hs_clean_reasoning(struct hs_pool *pool, const char *text);
/* A JSON reply as it is or in fences or prose; NULL when it does not parse. No repair. */
json_t *hs_clean_json_reply(struct hs_pool *pool, const char *text);
/* Structural repair: trailing commas, single quotes, bare words, what is unterminated, bad escapes.
 * NULL when nothing but an empty value comes out. */
json_t *hs_json_repair(struct hs_pool *pool, const char *text);

#endif
