/*
 * refusal - what a provider's error body says, and how much of it may be repeated.
 *
 * Floor:   llm, inside only; pure.
 */
#ifndef HS_LLM_REFUSAL_H
#define HS_LLM_REFUSAL_H

#include "base/err.h"
#include "base/pool.h"

/* HS_E_LLM_OVERFLOW or HS_E_LLM_POLICY when the text says so, else otherwise. */
enum hs_rc hs_refusal_kind(const char *text, enum hs_rc otherwise);
/* The provider's own sentence for logs and operations: at most 300 characters, without addresses and
 * without anything that looks like a key (secret may be NULL). "" when there is none. */
const char *hs_refusal_text(struct hs_pool *pool, const char *body, size_t n, const char *secret);

#endif
