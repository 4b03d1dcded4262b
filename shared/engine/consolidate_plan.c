#include <string.h>

#include "engine/consolidate_run.h"
#include "engine/sentences.h"
#include "json/json.h"

#define EDITS 2
#define ID_BYTES ((size_t)64)       /* longer ids are compared as they are */
#define ACTIONS_MAX ((size_t)1000)  /* of each kind in one reply; what follows is ignored */
#define SOURCES_MAX ((size_t)10000) /* ids read in one reply; what follows is ignored */

/* ---- ids ---- */

/* Edit distance up to EDITS; more is reported as EDITS + 1. */
static size_t distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), row[ID_BYTES + 1];

	if (na > ID_BYTES || nb > ID_BYTES || (na > nb ? na - nb : nb - na) > EDITS)
		return strcmp(a, b) ? EDITS + 1 : 0;
	for (size_t k = 0; k <= nb; k++)
		row[k] = k;
	for (size_t i = 1; i <= na; i++) {
		size_t before = row[0], least = row[0] = i;

		for (size_t k = 1; k <= nb; k++) {
			size_t old = row[k], best = before + (a[i - 1] != b[k - 1]);

			best = old + 1 < best ? old + 1 : best;
			best = row[k - 1] + 1 < best ? row[k - 1] + 1 : best;
			row[k] = best;
			before = old;
			least = best < least ? best : least;
		}
		if (least > EDITS)
			return EDITS + 1;
	}
	return row[nb];
}

int64_t hs_id_near(const char *id, const char *const *ids, size_t n)
{
	int64_t found = -1;

	if (hs_str_blank(id))
		return -1;
	for (size_t i = 0; i < n; i++)
		if (strcmp(id, ids[i]) == 0)
			return (int64_t)i;
	for (size_t i = 0; i < n; i++) {
		if (distance(id, ids[i]) > EDITS)
			continue;
		if (found >= 0)
			return -1;
		found = (int64_t)i;
	}
	return found;
}

/* ---- reading ---- */

struct reader {
	struct hs_pool *pool;
	const struct batch *b;
	const char **fact_ids, **shown_ids;
	const char **shown_texts; /* white space squeezed */
	size_t n_shown;
	struct plan *p;
	int64_t free_slots;
	size_t n_sources; /* ids read so far */
};

static bool set_add(struct fact_set *s, size_t fact)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] == fact)
			return false;
	s->v[s->n++] = fact;
	return true;
}

static struct fact_set set_new(struct reader *r)
{
	return (struct fact_set){HS_NEW_ARRAY(r->pool, size_t, r->b->n + 1), 0};
}

static void set_union(struct fact_set *to, const struct fact_set *more)
{
	for (size_t i = 0; i < more->n; i++)
		set_add(to, more->v[i]);
}

static void source(struct reader *r, struct fact_set *s, json_t *v)
{
	int64_t fact = -1;

	if (json_is_string(v) && r->n_sources++ < SOURCES_MAX)
		fact = hs_id_near(json_string_value(v), r->fact_ids, r->b->n);
	if (fact >= 0)
		set_add(s, (size_t)fact);
}

/* source_fact_ids: a list, or one string. */
static struct fact_set sources(struct reader *r, json_t *action)
{
	struct fact_set s = set_new(r);
	json_t *ids = json_object_get(action, "source_fact_ids"), *v;
	size_t i;

	if (json_is_string(ids))
		source(r, &s, ids);
	json_array_foreach(ids, i, v)
		source(r, &s, v);
	return s;
}

static const char *text_of(struct reader *r, json_t *action)
{
	const char *text = hs_json_str(action, "text");

	return hs_str_blank(text) ? NULL : hs_str_trim(r->pool, text);
}

static const char *squeezed(struct reader *r, const char *text)
{
	return hs_squeeze(r->pool, text, strlen(text));
}

/* ---- updates ---- */

static struct plan_update *update_of(struct reader *r, size_t shown)
{
	struct plan *p = r->p;

	for (size_t i = 0; i < p->n_updates; i++)
		if (p->updates[i].shown == shown)
			return &p->updates[i];
	p->updates[p->n_updates] = (struct plan_update){.shown = shown, .facts = set_new(r)};
	return &p->updates[p->n_updates++];
}

static void add_update(
	struct reader *r, size_t shown, const char *text, const struct fact_set *facts)
{
	struct plan_update *u = update_of(r, shown);

	if (text) {
		u->text = text;
		u->flat = squeezed(r, text);
	}
	set_union(&u->facts, facts);
}

/* ---- creates ---- */

static bool is_deleted(const struct plan *p, size_t shown)
{
	for (size_t i = 0; i < p->n_deletes; i++)
		if (p->deletes[i].shown == shown)
			return true;
	return false;
}

/* The same words are in a shown observation, an update or an earlier create: fold. */
static bool fold(struct reader *r, const char *text, const struct fact_set *facts)
{
	struct plan *p = r->p;
	const char *flat = squeezed(r, text);

	for (size_t i = 0; i < p->n_updates; i++)
		if (p->updates[i].text && strcmp(p->updates[i].flat, flat) == 0) {
			set_union(&p->updates[i].facts, facts);
			return true;
		}
	for (size_t i = 0; i < r->n_shown; i++)
		if (strcmp(r->shown_texts[i], flat) == 0 && !is_deleted(p, i)) {
			add_update(r, i, NULL, facts);
			return true;
		}
	for (size_t i = 0; i < p->n_creates; i++)
		if (strcmp(p->creates[i].flat, flat) == 0) {
			set_union(&p->creates[i].facts, facts);
			return true;
		}
	return false;
}

static void add_create(struct reader *r, const char *text, const struct fact_set *facts)
{
	struct plan *p = r->p;

	if (fold(r, text, facts)) {
		p->folds++;
	} else if (r->free_slots >= 0 && (int64_t)p->n_creates >= r->free_slots) {
		p->over++;
	} else {
		p->creates[p->n_creates++] = (struct plan_create){text, squeezed(r, text), *facts};
	}
}

static void read_create(struct reader *r, json_t *action)
{
	struct fact_set facts = sources(r, action);
	const char *text = text_of(r, action);

	if (!text || facts.n == 0)
		r->p->unresolved++;
	else
		add_create(r, text, &facts);
}

/* What an update names: an index into the shown ones, or a fact (*ret_fact). A fact's exact id is not
 * repaired into an observation's. */
static int64_t target_of(struct reader *r, json_t *action, bool *ret_fact)
{
	const char *id = hs_json_str(action, "observation_id");
	int64_t shown = hs_id_near(id, r->shown_ids, r->n_shown);
	int64_t fact = hs_id_near(id, r->fact_ids, r->b->n);
	bool exact = fact >= 0 && strcmp(id, r->fact_ids[fact]) == 0;

	*ret_fact = fact >= 0 && (shown < 0 || exact);
	return *ret_fact ? -1 : shown;
}

/* An update of something shown. One that names a fact is a create, read by the second round. */
static void read_update(struct reader *r, json_t *action, bool as_create)
{
	bool names_fact;
	int64_t shown = target_of(r, action, &names_fact);
	const char *text = text_of(r, action);
	struct fact_set facts = sources(r, action);

	if (as_create) {
		if (names_fact && text && facts.n)
			add_create(r, text, &facts);
		return;
	}
	if (!text || facts.n == 0 || (shown < 0 && !names_fact))
		r->p->unresolved++;
	else if (shown >= 0)
		add_update(r, (size_t)shown, text, &facts);
}

/* ---- deletes ---- */

static bool is_updated(const struct plan *p, size_t shown)
{
	for (size_t i = 0; i < p->n_updates; i++)
		if (p->updates[i].shown == shown)
			return true;
	return false;
}

static void read_delete(struct reader *r, json_t *action)
{
	const char *id = hs_json_str(action, "observation_id"),
		   *into = hs_json_str(action, "merged_into");
	int64_t shown = hs_id_near(id ? id : hs_json_str(action, "id"), r->shown_ids, r->n_shown);
	struct plan *p = r->p;

	if (shown < 0) {
		p->unresolved++;
		return;
	}
	if (is_updated(p, (size_t)shown) || is_deleted(p, (size_t)shown))
		return;
	p->deletes[p->n_deletes++] = (struct plan_delete){
		.shown = (size_t)shown,
		.into = hs_id_near(into, r->shown_ids, r->n_shown),
		.requeue = !hs_str_blank(into),
	};
}

/* A target that goes too, or is the row itself, takes nothing over. */
static void settle_deletes(struct plan *p)
{
	for (size_t i = 0; i < p->n_deletes; i++) {
		struct plan_delete *d = &p->deletes[i];

		if (d->into >= 0 && is_deleted(p, (size_t)d->into))
			d->into = -1;
		d->requeue = d->requeue && d->into < 0;
	}
}

/* How many of the list are read. */
static size_t upto(const json_t *list)
{
	size_t n = json_array_size(list);

	return n < ACTIONS_MAX ? n : ACTIONS_MAX;
}

void hs_plan_read(struct hs_pool *pool, json_t *actions, const struct batch *b,
	const struct shown *shown, size_t n_shown, int64_t free_slots, struct plan *ret)
{
	json_t *creates = hs_json_arr(actions, "creates"),
	       *updates = hs_json_arr(actions, "updates");
	json_t *deletes = hs_json_arr(actions, "deletes");
	struct reader r = {
		.pool = pool, .b = b, .n_shown = n_shown, .p = ret, .free_slots = free_slots};
	size_t i, most = json_array_size(creates) + json_array_size(updates) + n_shown + 1;

	memset(ret, 0, sizeof(*ret));
	ret->updates = HS_NEW_ARRAY(pool, struct plan_update, most);
	ret->creates = HS_NEW_ARRAY(pool, struct plan_create, most);
	ret->deletes = HS_NEW_ARRAY(pool, struct plan_delete, n_shown + 1);
	r.fact_ids = HS_NEW_ARRAY(pool, const char *, b->n + 1);
	r.shown_ids = HS_NEW_ARRAY(pool, const char *, n_shown + 1);
	r.shown_texts = HS_NEW_ARRAY(pool, const char *, n_shown + 1);
	for (i = 0; i < b->n; i++)
		r.fact_ids[i] = b->facts[i].id;
	for (i = 0; i < n_shown; i++) {
		r.shown_ids[i] = shown[i].id;
		r.shown_texts[i] = squeezed(&r, shown[i].text);
	}
	for (i = 0; i < upto(updates); i++)
		read_update(&r, json_array_get(updates, i), false);
	for (i = 0; i < upto(deletes); i++)
		read_delete(&r, json_array_get(deletes, i));
	for (i = 0; i < upto(updates); i++)
		read_update(&r, json_array_get(updates, i), true);
	for (i = 0; i < upto(creates); i++)
		read_create(&r, json_array_get(creates, i));
	settle_deletes(ret);
}
