#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "engine/mind.h"
#include "engine/retain_run.h"
#include "json/json.h"
#include "text/words.h"

#define ORDER_STEP_US (10 * 1000) /* between facts of one extraction call */
#define THREADS_MAX 16
#define POLL_MS 100 /* how often the caller's cancel test is asked while threads work */

/* ---- extraction of one piece ---- */

static const char *mode_of(const struct retain_doc *d)
{
	if (hs_mind_for(d->cfg, "retain") == HS_MIND_NONE)
		return "chunks";
	return hs_cfg_str(d->cfg, HS_S_retain_extraction_mode);
}

static struct hs_facts whole_piece(struct hs_pool *pool, const char *text)
{
	struct hs_fact *f = HS_NEW(pool, struct hs_fact);

	*f = (struct hs_fact){
		.text = text, .occurred_start_us = HS_TIME_NONE, .occurred_end_us = HS_TIME_NONE};
	return (struct hs_facts){.v = f, .n = 1};
}

/* Mode verbatim: one fact a piece, its text the piece, with the entities of all that were found. */
static struct hs_facts verbatim(
	struct hs_pool *pool, const char *text, const struct hs_facts *found)
{
	struct hs_facts one = whole_piece(pool, text);

	one.errors = found->errors;
	one.error_sample = found->error_sample;
	if (!found->n)
		return one;
	*one.v = found->v[0];
	one.v->text = text;
	one.v->n_causes = 0;
	one.v->entities = (struct hs_strs){0};
	for (size_t i = 0; i < found->n; i++)
		for (size_t k = 0; k < found->v[i].entities.n; k++)
			hs_strs_add(pool, &one.v->entities, found->v[i].entities.v[k]);
	return one;
}

/* Characters that say nothing: punctuation, dashes, bullets, blanks. */
static bool is_mark(uint32_t cp)
{
	static const struct {
		uint32_t from, to;
	} marks[] = {{0x21, 0x2F}, {0x3A, 0x40}, {0x5B, 0x60}, {0x7B, 0x7E}, {0xA1, 0xBF},
		{0x2010, 0x205E}, {0x2190, 0x21FF}, {0x2500, 0x25FF}, {0x3001, 0x3020},
		{0xFE10, 0xFE6F}, {0xFF01, 0xFF0F}};

	for (size_t i = 0; i < HS_COUNT(marks); i++)
		if (cp >= marks[i].from && cp <= marks[i].to)
			return true;
	return hs_is_space_cp(cp);
}

static void saw_word(void *arg, const struct hs_word *w)
{
	(void)w;
	*(bool *)arg = true;
}

/* No letter or digit, and nothing else worth keeping (contract 2.6). */
static bool degenerate(const char *text)
{
	size_t n = strlen(text), chars = 0;
	bool words = false, only_marks = true;

	hs_words_each(text, n, saw_word, &words);
	if (words)
		return false;
	for (size_t i = 0; i < n;) {
		uint32_t cp;
		size_t len = hs_utf8_next(text + i, n - i, &cp);

		if (!len || !hs_is_space_cp(cp))
			chars++;
		only_marks = only_marks && (!len || is_mark(cp));
		i += len ? len : 1;
	}
	return chars <= 2 || only_marks;
}

/* Drop degenerate facts; causes are numbered anew, those that point at a dropped fact vanish. */
static void drop_degenerate(struct hs_pool *pool, struct hs_facts *facts)
{
	int64_t *now = HS_NEW_ARRAY(pool, int64_t, facts->n + 1);
	size_t n = 0;

	for (size_t i = 0; i < facts->n; i++)
		now[i] = degenerate(facts->v[i].text) ? -1 : (int64_t)n++;
	for (size_t i = 0; i < facts->n; i++) {
		struct hs_fact f = facts->v[i];
		size_t m = 0;

		if (now[i] < 0)
			continue;
		for (size_t k = 0; k < f.n_causes; k++)
			if (f.causes[k] >= 0 && (size_t)f.causes[k] < i && now[f.causes[k]] >= 0)
				f.causes[m++] = now[f.causes[k]];
		f.n_causes = m;
		facts->v[now[i]] = f;
	}
	facts->n = n;
}

static enum hs_rc extract(const struct retain_doc *d, struct hs_run *run,
	const struct retain_piece *p, const char *mode, struct hs_facts *ret, struct hs_err *err)
{
	const struct hs_retain_item *it = p->item;
	struct hs_retain_prompt_in in = {
		.cfg = d->cfg,
		.chunk = p->text,
		.context = it->context,
		.chunk_no = (size_t)p->index + 1,
		.n_chunks = d->n_pieces,
		.event_us = it->unset_time ? HS_TIME_NONE : it->time_us,
		.event_text = it->time_text,
		.metadata = it->metadata,
	};
	struct hs_facts facts = {0};

	if (strcmp(mode, "chunks") == 0) {
		*ret = whole_piece(run->pool, p->text);
		return HS_OK;
	}
	HS_TRY(hs_mind_extract(run, &in, &facts, err));
	if (strcmp(mode, "verbatim") == 0)
		facts = verbatim(run->pool, p->text, &facts);
	else
		drop_degenerate(run->pool, &facts);
	*ret = facts;
	return HS_OK;
}

/* ---- extraction of a batch ---- */

struct result {
	struct hs_facts facts;
	enum hs_rc rc;
	struct hs_err err;
	bool done;
};

struct crew {
	const struct retain_doc *d;
	struct retain_batch *b;
	const char *mode;
	struct result *results;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	size_t next;
	int working;
	bool failed;
	atomic_bool cancelled;
};
struct member {
	struct crew *crew;
	struct hs_run run;
	pthread_t thread;
	bool started;
};

static bool crew_cancelled(void *arg)
{
	return atomic_load(&((struct crew *)arg)->cancelled);
}

/* The next piece; false when none is left or one has failed. */
static bool take(struct crew *c, size_t *ret)
{
	bool got;

	pthread_mutex_lock(&c->lock);
	got = !c->failed && c->next < c->b->n_pieces && !atomic_load(&c->cancelled);
	if (got)
		*ret = c->next++;
	pthread_mutex_unlock(&c->lock);
	return got;
}

static void put(struct crew *c, struct result *r)
{
	pthread_mutex_lock(&c->lock);
	r->done = true;
	c->failed = c->failed || r->rc != HS_OK;
	pthread_mutex_unlock(&c->lock);
}

static void *work(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	size_t i;

	while (take(c, &i)) {
		struct result *r = &c->results[i];

		r->rc = extract(c->d, &m->run, c->b->pieces[i], c->mode, &r->facts, &r->err);
		put(c, r);
	}
	pthread_mutex_lock(&c->lock);
	c->working--;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void free_pool(void *arg)
{
	struct hs_pool *pool = arg;

	hs_pool_free(&pool);
}

/* Ask the caller's cancel test while the threads work: it may use the caller's connection. */
static void wait_for(struct crew *c)
{
	const struct hs_run *run = &c->b->run;

	pthread_mutex_lock(&c->lock);
	while (c->working > 0) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += POLL_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&c->ended, &c->lock, &until);
		pthread_mutex_unlock(&c->lock);
		if (run->cancelled && run->cancelled(run->cancel_arg))
			atomic_store(&c->cancelled, true);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
}

static void run_crew(struct crew *c, size_t n)
{
	struct member *members = HS_NEW_ARRAY(c->b->pool, struct member, n);

	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->ended, NULL);
	for (size_t i = 0; i < n; i++) {
		struct member *m = &members[i];

		m->crew = c;
		m->run = c->b->run;
		m->run.db = NULL;
		m->run.pool = hs_pool_new();
		m->run.usage = (struct hs_llm_usage){0};
		m->run.cancelled = crew_cancelled;
		m->run.cancel_arg = c;
		hs_pool_defer(c->b->pool, free_pool, m->run.pool);
		pthread_mutex_lock(&c->lock);
		c->working++;
		pthread_mutex_unlock(&c->lock);
		m->started = pthread_create(&m->thread, NULL, work, m) == 0;
		if (!m->started)
			work(m);
	}
	wait_for(c);
	for (size_t i = 0; i < n; i++) {
		struct hs_llm_usage *u = &c->b->run.usage, *of = &members[i].run.usage;

		if (members[i].started)
			pthread_join(members[i].thread, NULL);
		u->input += of->input;
		u->output += of->output;
		u->cached += of->cached;
		u->thoughts += of->thoughts;
	}
	pthread_cond_destroy(&c->ended);
	pthread_mutex_destroy(&c->lock);
}

static void run_alone(struct crew *c)
{
	for (size_t i = 0; i < c->b->n_pieces && !c->failed; i++) {
		struct result *r = &c->results[i];

		r->rc = extract(c->d, &c->b->run, c->b->pieces[i], c->mode, &r->facts, &r->err);
		r->done = true;
		c->failed = r->rc != HS_OK;
	}
}

/* One error for the batch; its code is the first failure's, so that the worker knows what to do. */
static enum hs_rc failure(const struct crew *c, struct hs_err *err)
{
	struct hs_buf *text = hs_buf_new(c->b->pool, 4096);
	const struct result *first = NULL;
	size_t failed = 0;

	for (size_t i = 0; i < c->b->n_pieces; i++) {
		const struct result *r = &c->results[i];

		if (!r->done || r->rc == HS_OK)
			continue;
		if (!first)
			first = r;
		if (r->rc == HS_E_CANCELLED) {
			*err = r->err;
			return r->rc;
		}
		if (failed++ < 3)
			hs_buf_printf(text, "%schunk %lld: %s: %s", failed > 1 ? "; " : "",
				(long long)c->b->pieces[i]->index,
				hs_rc_name(r->rc) + strlen("HS_E_"), r->err.msg);
	}
	*err = first->err;
	return hs_fail(err, first->rc,
		"Fact extraction failed: %zu/%zu chunks failed. First failures: %s", failed,
		c->b->n_pieces, text->data);
}

static enum hs_rc extract_all(
	const struct retain_doc *d, struct retain_batch *b, struct crew *c, struct hs_err *err)
{
	int64_t most = hs_cfg_int(d->cfg, HS_S_retain_max_concurrent);
	size_t n = b->n_pieces;

	*c = (struct crew){.d = d,
		.b = b,
		.mode = mode_of(d),
		.results = HS_NEW_ARRAY(b->pool, struct result, b->n_pieces + 1)};
	if (n > (size_t)(most < 1 ? 1 : most))
		n = (size_t)(most < 1 ? 1 : most);
	if (n > THREADS_MAX)
		n = THREADS_MAX;
	if (n > 1 && hs_mind_for(d->cfg, "retain") == HS_MIND_LLM && strcmp(c->mode, "chunks") != 0)
		run_crew(c, n);
	else
		run_alone(c);
	if (c->failed)
		return failure(c, err);
	if (atomic_load(&c->cancelled))
		return hs_fail(err, HS_E_CANCELLED, "the retain was cancelled");
	return HS_OK;
}

/* ---- facts into units ---- */

struct named {
	const char *key, *name;
	size_t place;
};

static int by_key(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : x->place < y->place ? -1 : x->place > y->place;
}

static int by_place(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

static void add_name(struct hs_pool *pool, struct named *v, size_t *n, const char *raw)
{
	const char *name = hs_entity_name(pool, raw),
		   *key = name ? hs_entity_key(pool, name) : NULL;

	if (key)
		v[*n] = (struct named){key, name, *n};
	*n += key != NULL;
}

/* Supplied entities come after the extracted ones; of equal names (ignoring case) the first stays. */
static struct hs_strs entity_names(
	struct hs_pool *pool, const struct hs_strs *extracted, json_t *supplied)
{
	struct named *v =
		HS_NEW_ARRAY(pool, struct named, extracted->n + json_array_size(supplied) + 1);
	struct hs_strs names = {0};
	size_t n = 0, m = 0, i;
	json_t *e;

	for (i = 0; i < extracted->n; i++)
		add_name(pool, v, &n, extracted->v[i]);
	json_array_foreach(supplied, i, e)
		add_name(pool, v, &n, hs_json_str(e, "text"));
	qsort(v, n, sizeof(*v), by_key);
	for (i = 0; i < n; i++)
		if (!m || strcmp(v[m - 1].key, v[i].key) != 0)
			v[m++] = v[i];
	qsort(v, m, sizeof(*v), by_place);
	for (i = 0; i < m; i++)
		hs_strs_add(pool, &names, v[i].name);
	return names;
}

static const char *day_text(struct hs_pool *pool, int64_t us)
{
	struct hs_civil c = hs_civil_from_us(us);

	return hs_pool_printf(pool, "%s %d %d", hs_month_name(c.month), c.day, c.year);
}

/* What the keyword index knows beside text and context: names and days. */
static const char *signals(
	struct hs_pool *pool, const struct hs_unit *u, const struct hs_strs *names)
{
	struct hs_strs parts = {0};

	for (size_t i = 0; i < names->n; i++)
		hs_strs_add(pool, &parts, names->v[i]);
	if (u->occurred_start_us != HS_TIME_NONE)
		hs_strs_add(pool, &parts, day_text(pool, u->occurred_start_us));
	if (u->occurred_end_us != HS_TIME_NONE &&
		(u->occurred_start_us == HS_TIME_NONE ||
			strcmp(day_text(pool, u->occurred_end_us),
				day_text(pool, u->occurred_start_us)) != 0))
		hs_strs_add(pool, &parts, day_text(pool, u->occurred_end_us));
	return parts.n ? hs_strs_join(pool, &parts, " ") : NULL;
}

/* The text a fact is embedded by (contract 4.10). */
static const char *embed_text(
	struct hs_pool *pool, const struct hs_unit *u, const struct hs_strs *extracted)
{
	int64_t at = u->occurred_start_us != HS_TIME_NONE ? u->occurred_start_us : u->mentioned_us;
	struct hs_civil c;
	const char *when = "", *who = "";

	if (u->occurred_start_us != HS_TIME_NONE && u->occurred_end_us != HS_TIME_NONE &&
		u->occurred_end_us != u->occurred_start_us) {
		when = hs_pool_printf(pool, " (happened from %s to %s)",
			day_text(pool, u->occurred_start_us), day_text(pool, u->occurred_end_us));
	} else if (at != HS_TIME_NONE) {
		c = hs_civil_from_us(at);
		when = hs_pool_printf(pool, " (happened in %s %d)", hs_month_name(c.month), c.year);
	}
	if (extracted->n)
		who = hs_pool_printf(pool, " [%s]", hs_strs_join(pool, extracted, ", "));
	return hs_pool_printf(pool, "%s%s%s", u->text, when, who);
}

static int64_t shifted(int64_t us, size_t i)
{
	return us == HS_TIME_NONE ? us : us + (int64_t)i * ORDER_STEP_US;
}

static const char *scopes_of(
	const struct retain_doc *d, const struct hs_retain_item *it, struct hs_pool *pool)
{
	json_t *v = it->observation_scopes ? it->observation_scopes
					   : hs_cfg_json(d->cfg, HS_S_default_observation_scopes);

	return v ? hs_json_text(pool, v) : NULL;
}

static void make_fact(const struct retain_doc *d, struct retain_batch *b,
	const struct retain_piece *p, const struct hs_fact *f, size_t i, struct retain_fact *out)
{
	struct hs_unit *u = &out->unit;
	const struct hs_retain_item *it = p->item;
	struct hs_strs extracted = entity_names(b->pool, &f->entities, NULL);

	*u = hs_unit_new(f->experience ? HS_EXPERIENCE : HS_WORLD, f->text);
	u->context = hs_str_empty(it->context) ? NULL : it->context;
	u->occurred_start_us = shifted(f->occurred_start_us, i);
	u->occurred_end_us = shifted(f->occurred_end_us, i);
	u->mentioned_us = it->unset_time ? HS_TIME_NONE : shifted(it->time_us, i);
	u->event_us = u->occurred_start_us != HS_TIME_NONE ? u->occurred_start_us : u->mentioned_us;
	u->document_id = d->document_id;
	u->chunk_index = p->index;
	u->metadata = it->metadata && json_object_size(it->metadata)
			      ? hs_json_text(b->pool, it->metadata)
			      : NULL;
	u->tags = it->tags;
	u->observation_scopes = scopes_of(d, it, b->pool);
	u->embedder_no = d->embedder_no;
	out->use.names = entity_names(b->pool, &f->entities, it->entities);
	out->use.date_us = u->event_us;
	u->text_signals = signals(b->pool, u, &out->use.names);
	out->embed_text = embed_text(b->pool, u, &extracted);
	hs_unit_terms(b->pool, u);
}

static void collect(const struct retain_doc *d, struct retain_batch *b, const struct crew *c)
{
	size_t total = 0;

	for (size_t p = 0; p < b->n_pieces; p++)
		total += c->results[p].facts.n;
	b->facts = HS_NEW_ARRAY(b->pool, struct retain_fact, total + 1);
	for (size_t p = 0; p < b->n_pieces; p++) {
		const struct hs_facts *found = &c->results[p].facts;
		size_t base = b->n_facts;

		b->errors += found->errors;
		for (size_t k = 0; k < found->error_sample.n; k++)
			hs_strs_add(b->pool, &b->error_sample, found->error_sample.v[k]);
		for (size_t i = 0; i < found->n; i++) {
			struct retain_fact *f = &b->facts[b->n_facts++];

			make_fact(d, b, b->pieces[p], &found->v[i], i, f);
			f->causes = HS_NEW_ARRAY(b->pool, size_t, found->v[i].n_causes + 1);
			for (size_t k = 0; k < found->v[i].n_causes; k++)
				if (found->v[i].causes[k] >= 0 && (size_t)found->v[i].causes[k] < i)
					f->causes[f->n_causes++] =
						base + (size_t)found->v[i].causes[k];
		}
	}
}

static enum hs_rc embed_all(const struct retain_doc *d, struct retain_batch *b, struct hs_err *err)
{
	struct hs_strs texts = {0};
	struct hs_vec *vecs;

	if (!d->embedder_no || !b->n_facts)
		return HS_OK;
	for (size_t i = 0; i < b->n_facts; i++)
		hs_strs_add(b->pool, &texts, b->facts[i].embed_text);
	vecs = HS_NEW_ARRAY(b->pool, struct hs_vec, texts.n);
	HS_TRY(hs_embed(b->run.embedder, b->pool, &texts, false, b->run.deadline_us, vecs, err));
	for (size_t i = 0; i < b->n_facts; i++) {
		b->facts[i].unit.vec = vecs[i].v;
		b->facts[i].unit.dim = vecs[i].dim;
	}
	return HS_OK;
}

enum hs_rc hs_retain_facts(const struct retain_doc *d, struct retain_batch *b, struct hs_err *err)
{
	struct crew crew;

	b->facts = NULL;
	b->n_facts = 0;
	if (!b->n_pieces)
		return HS_OK;
	HS_TRY(extract_all(d, b, &crew, err));
	collect(d, b, &crew);
	return embed_all(d, b, err);
}
