/*
 * reflect_view - what the model reads of a tool result, and the way back from what it writes.
 *
 * Floor:   engine; pure. Rules: contract reflect A10.1.
 * Shapes:  ids become aliases (FACT~1, OBS~1, MODEL~1, CHUNK~1) in one table a run; the shape is a
 *          word and a number joined by '~', which no prose contains. Results of expand, `not_read`
 * and errors keep what they say. Owns:    everything in the pool of hs_view_init; json_t results
 * are released with it.
 */
#ifndef HS_ENGINE_REFLECT_VIEW_H
#define HS_ENGINE_REFLECT_VIEW_H

#include <jansson.h>

#include "base/pool.h"
#include "base/str.h"

enum hs_alias_kind {
	HS_ALIAS_FACT,
	HS_ALIAS_OBSERVATION,
	HS_ALIAS_MODEL,
	HS_ALIAS_CHUNK,
	HS_ALIAS__MAX
};

struct hs_alias {
	const char *id, *alias;
	unsigned shown; /* forms in which the list of its kind has shown it */
};
struct hs_alias_list {
	struct hs_alias *v;
	size_t n, cap;
};
struct hs_view {
	struct hs_pool *pool;
	struct hs_alias_list kinds[HS_ALIAS__MAX];
};

void hs_view_init(struct hs_view *view, struct hs_pool *pool);
/* The alias of an id, handed out on first sight. */
const char *hs_view_alias(struct hs_view *view, enum hs_alias_kind kind, const char *id);
/* The short form of one result; the result itself is not changed. */
json_t *hs_view_show(struct hs_view *view, json_t *result);
/* A copy of a call's arguments with every whole-string alias made its id, but in query and reason.
 */
json_t *hs_view_args(const struct hs_view *view, json_t *args);
/* The text with every alias that was handed out made its id. */
const char *hs_view_resolve(const struct hs_view *view, const char *text);
/* The text with every UUID that stands in none of the sources made "[unverified id]". */
const char *hs_view_verify(struct hs_pool *pool, const char *text, const struct hs_strs *sources);
/* Does the text hold a UUID at all? */
bool hs_view_has_uuid(const char *text);

#endif
