/*
 * extractive_delta - edit operations made without a model, from stored text alone.
 *
 * Floor:   engine; pure. Rules: DESIGN 6; the operations go the way of a model's (delta_ops.h).
 * Adds:    bullets of the window's document that the standing one does not say yet: to the section
 *          of the same heading, else to one whose heading the bullet names, else in a new section.
 * Removes: bullets that quote a memory whose text has changed since.
 * Owns:    the result is kept by the pool.
 */
#ifndef HS_ENGINE_EXTRACTIVE_DELTA_H
#define HS_ENGINE_EXTRACTIVE_DELTA_H

#include <jansson.h>

#include "engine/document.h"

/* A memory that reads otherwise than when it was quoted. */
struct hs_changed_text {
	const char *before, *now;
};
/* {"operations": […]} */
json_t *hs_extractive_delta(struct hs_pool *pool, const struct hs_document *doc,
	const struct hs_document *window, const struct hs_changed_text *changed, size_t n_changed);

#endif
