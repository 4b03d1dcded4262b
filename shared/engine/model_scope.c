#include "engine/model_scope.h"

#include "base/clock.h"
#include "json/json.h"

static struct hs_strs stored_tags(struct hs_pool *pool, const char *tags_json)
{
	json_t *v = NULL;

	if (hs_json_load(pool, tags_json, &v, NULL) != HS_OK)
		v = NULL;
	return hs_json_strs(pool, v);
}

struct hs_scope hs_model_scope(
	struct hs_pool *pool, const struct hs_trigger *t, const char *tags_json)
{
	struct hs_scope s = hs_scope_all();

	for (size_t i = 0; i < t->fact_types.n; i++)
		s.facts |= HS_FACT_BIT(hs_fact_type_find(t->fact_types.v[i]));
	if (t->tag_groups) {
		s.has_groups = true;
		s.groups = t->tag_groups->v;
		s.n_groups = t->tag_groups->n;
		return s;
	}
	s.tags = stored_tags(pool, tags_json);
	if (t->tags_match >= 0)
		s.match = (enum hs_tags_match)t->tags_match;
	else
		s.match = s.tags.n > 0 ? HS_ALL_STRICT : HS_ANY;
	return s;
}

enum hs_rc hs_models_stale(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	int64_t clock_us, const struct hs_mm *v, size_t n, bool *ret, struct hs_err *err)
{
	struct hs_stale_query *q = HS_NEW_ARRAY(pool, struct hs_stale_query, n ? n : 1);
	size_t asked = 0;

	/* what the clock proves fresh needs no scope */
	for (size_t i = 0; i < n; i++) {
		ret[i] = false;
		if (hs_mm_since(&v[i]) >= clock_us)
			continue;
		q[asked].since_us = hs_mm_since(&v[i]);
		q[asked].scope =
			hs_model_scope(pool, hs_trigger_read(pool, v[i].trigger), v[i].tags);
		asked++;
	}
	if (asked == 0)
		return HS_OK;
	HS_TRY(hs_stale_ask(db, pool, bank_no, clock_us, q, asked, err));
	asked = 0;
	for (size_t i = 0; i < n; i++)
		if (hs_mm_since(&v[i]) < clock_us)
			ret[i] = q[asked++].stale;
	return HS_OK;
}

enum hs_rc hs_model_stale(struct hs_db *db, struct hs_pool *pool, const struct hs_mm *m, bool *ret,
	struct hs_err *err)
{
	struct hs_scope all = hs_scope_all();
	int64_t newest_us = HS_TIME_NONE;

	*ret = false;
	if (hs_mm_since(m) >= m->clock_us)
		return HS_OK;
	HS_TRY(hs_mm_newest_memory(db, pool, m->bank_no, &all, &newest_us, err));
	return hs_models_stale(db, pool, m->bank_no, newest_us, m, 1, ret, err);
}
