#include "engine/extractive_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/tokens.h"
#include "engine/extractive_pick.h"
#include "engine/names.h"
#include "engine/near.h"
#include "engine/sentences.h"
#include "text/words.h"

#define BULLETS_MAX 12  /* an answer is read by people */
#define MODEL_SHARE 4   /* of those at most a quarter from one model */
#define RELEVANT 0.45   /* of the best statement's relevance */
#define COMMON 0.2      /* weight of words like "go" and "like" in a question */
#define WEAK 0.3        /* a best match below this is hardly an answer: */
#define WEAK_MAX 4      /* so few statements are quoted then */
#define UNMATCHED_MAX 3 /* statements quoted when none shares a word with the question */
#define LONG_TOKENS 120 /* longer statements are quoted by their best sentences */
#define LONG_SENTENCES 3

const char *const hs_extractive_nothing = "Nothing stored in this bank answers the question.";

/* ---- statements ---- */

struct question {
	struct hs_query_terms terms;
	double *weights; /* rarer among the statements = heavier */
	double total;
};

static bool holds(const struct hs_terms *t, uint64_t hash)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (t->v[mid].hash < hash)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n && t->v[lo].hash == hash;
}

/* Names in the question count half as much as its words do on average, however often they occur. */
static void weigh_names(struct hs_pool *pool, const char *text, struct question *q)
{
	struct hs_strs names = {0};
	double least = q->terms.n ? 0.5 * q->total / (double)q->terms.n : 0.0;

	hs_names_add(pool, text, &names);
	for (size_t i = 0; i < names.n; i++) {
		struct hs_terms words;

		hs_words_terms(pool, names.v[i], NULL, &words);
		for (size_t k = 0; k < q->terms.n; k++)
			if (holds(&words, q->terms.v[k].hash) && q->weights[k] < least) {
				q->total += least - q->weights[k];
				q->weights[k] = least;
			}
	}
}

static void weigh(
	struct hs_pool *pool, const struct hs_picks *p, const char *text, struct question *q)
{
	hs_words_query(pool, text, NULL, &q->terms);
	q->weights = HS_NEW_ARRAY(pool, double, q->terms.n + 1);
	q->total = 0;
	for (size_t k = 0; k < q->terms.n; k++) {
		size_t df = 0;

		for (size_t i = 0; i < p->n; i++)
			df += holds(&p->v[i].terms, q->terms.v[k].hash);
		q->weights[k] = log(1.0 + ((double)(p->n - df) + 0.5) / ((double)df + 0.5));
		if (hs_word_is_starter(q->terms.v[k].text))
			q->weights[k] *= COMMON;
		q->total += q->weights[k];
	}
	weigh_names(pool, text, q);
}

/* Weight of the question's words in the terms, 0 to 1. */
static double matched(const struct question *q, const struct hs_terms *terms)
{
	double sum = 0;

	for (size_t k = 0; k < q->terms.n; k++)
		if (holds(terms, q->terms.v[k].hash))
			sum += q->weights[k];
	return q->total > 0 ? sum / q->total : 0.0;
}

static struct hs_pick *add_pick(
	struct hs_pool *pool, struct hs_picks *p, size_t ev, const char *text)
{
	struct hs_pick *s;

	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 64;

		p->v = hs_pool_regrow(pool, p->v, p->n * sizeof(*p->v), cap * sizeof(*p->v));
		p->cap = cap;
	}
	s = &p->v[p->n++];
	memset(s, 0, sizeof(*s));
	s->ev = ev;
	s->text = text;
	s->date_us = HS_TIME_NONE;
	hs_words_terms(pool, text, NULL, &s->terms);
	return s;
}

/* Lines of a model's blocks; headings and fences say nothing by themselves. */
static void add_model(
	struct hs_pool *pool, struct hs_picks *p, size_t ev, const struct hs_evidence *e)
{
	struct hs_document doc;

	hs_document_split(pool, e->text, &doc);
	for (size_t i = 0; i < doc.n; i++)
		for (size_t k = 0; k < doc.sections[i].n_blocks; k++) {
			struct hs_strs lines = hs_sentences(pool, doc.sections[i].blocks[k].text);

			for (size_t j = 0; j < lines.n; j++)
				if (lines.v[j][0] != '|' && strncmp(lines.v[j], "```", 3) != 0) {
					struct hs_pick *s = add_pick(pool, p, ev, lines.v[j]);

					s->kind = HS_EV_MODEL;
					s->score = 1.0;
				}
		}
}

static void add_memory(struct hs_pool *pool, struct hs_picks *p, size_t ev,
	const struct hs_evidence *e, double best)
{
	const char *text = e->text ? hs_squeeze(pool, e->text, strlen(e->text)) : "";
	struct hs_pick *s;

	if (!*text)
		return;
	s = add_pick(pool, p, ev, text);
	s->kind = e->kind;
	s->date_us = e->occurred_start_us != HS_TIME_NONE ? e->occurred_start_us : e->mentioned_us;
	s->score = best > 0 ? e->score / best : 0.0;
}

static bool seen_before(const struct hs_evidence *ev, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (ev[k].kind == ev[i].kind && hs_str_eq(ev[k].id, ev[i].id))
			return true;
	return false;
}

/* Best relevance first inside a kind; kinds in their order. */
static int compare_picks(const void *a, const void *b)
{
	const struct hs_pick *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->relevance != y->relevance)
		return x->relevance > y->relevance ? -1 : 1;
	if (x->date_us != y->date_us)
		return x->date_us > y->date_us ? -1 : 1;
	return (x->ev > y->ev) - (x->ev < y->ev);
}

static void rank(struct hs_picks *p, const struct question *q)
{
	for (size_t i = 0; i < p->n; i++) {
		p->v[i].match = matched(q, &p->v[i].terms);
		p->v[i].relevance = p->v[i].match + 0.3 * p->v[i].score;
	}
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), compare_picks);
}

/* A fact that a kept observation rests on, or a statement said before, is not said again. */
static bool said_before(struct hs_picks *p, const struct hs_evidence *ev, size_t i)
{
	const struct hs_pick *s = &p->v[i];

	for (size_t k = 0; k < i; k++) {
		const struct hs_pick *o = &p->v[k];

		if (!o->kept)
			continue;
		if (o->kind == HS_EV_OBSERVATION && s->kind == HS_EV_FACT &&
			hs_strs_has(&ev[o->ev].source_ids, ev[s->ev].id))
			return true;
		if (hs_gist_near(&o->gist, &s->gist))
			return true;
	}
	return false;
}

/* The sentences of a long statement that share most with the question, in their order. */
static const char *shorten(struct hs_pool *pool, const struct question *q, const char *text)
{
	struct hs_strs all, kept = {0};
	double *match;
	size_t want = LONG_SENTENCES;

	if (hs_tokens(text) <= LONG_TOKENS)
		return text;
	all = hs_sentences(pool, text);
	match = HS_NEW_ARRAY(pool, double, all.n + 1);
	for (size_t i = 0; i < all.n; i++) {
		struct hs_terms terms;

		hs_words_terms(pool, all.v[i], NULL, &terms);
		match[i] = matched(q, &terms);
	}
	for (size_t i = 0; i < all.n && want > 0; i++) {
		size_t better = 0;

		for (size_t k = 0; k < all.n; k++)
			better += match[k] > match[i] || (match[k] == match[i] && k < i);
		if (better < LONG_SENTENCES) {
			hs_strs_add(pool, &kept, all.v[i]);
			want--;
		}
	}
	return hs_strs_join(pool, &kept, " ");
}

void hs_picks_make(struct hs_pool *pool, const char *question, const struct hs_evidence *ev,
	size_t n, bool with_models, struct hs_picks *ret)
{
	double best[3] = {0, 0, 0};
	struct question q = {0};

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < n; i++)
		if (ev[i].score > best[ev[i].kind])
			best[ev[i].kind] = ev[i].score;
	for (size_t i = 0; i < n; i++) {
		if (seen_before(ev, i))
			continue;
		if (ev[i].kind != HS_EV_MODEL)
			add_memory(pool, ret, i, &ev[i], best[ev[i].kind]);
		else if (with_models && !hs_content_unwritten(ev[i].text))
			add_model(pool, ret, i, &ev[i]);
	}
	weigh(pool, ret, question, &q);
	rank(ret, &q);
	for (size_t i = 0; i < ret->n; i++) {
		struct hs_pick *s = &ret->v[i];

		s->gist = hs_gist_of(pool, s->text);
		s->kept = !said_before(ret, ev, i);
		if (s->kept)
			s->text = shorten(pool, &q, s->text);
	}
}

const char *hs_pick_line(struct hs_pool *pool, const struct hs_pick *s)
{
	char date[HS_TIME_TEXT];

	if (s->date_us == HS_TIME_NONE)
		return hs_pool_printf(pool, "- %s", s->text);
	hs_time_format(s->date_us, date);
	date[10] = '\0';
	if (hs_str_starts(s->text, date))
		return hs_pool_printf(pool, "- %s", s->text);
	return hs_pool_printf(pool, "- %s: %s", date, s->text);
}

const char *hs_line_fit(struct hs_pool *pool, const char *line, int64_t max_tokens)
{
	size_t max = max_tokens > 0 ? (size_t)max_tokens : 0, n;
	struct hs_strs parts;
	const char *fit = NULL;

	if (hs_tokens(line) <= max)
		return line;
	parts = hs_sentences(pool, line);
	for (n = parts.n; n > 0 && !fit; n--) {
		struct hs_strs head = {n, parts.v};
		const char *text = hs_pool_printf(pool, "- %s", hs_strs_join(pool, &head, " "));

		if (hs_tokens(text) <= max)
			fit = text;
	}
	return fit ? fit : hs_str_trim(pool, hs_tokens_cut(pool, line, max));
}

/* ---- the answer ---- */

static bool worth_it(const struct hs_picks *p, const struct hs_pick *s, bool any_match, double best,
	size_t quoted)
{
	if (!s->kept)
		return false;
	if (!any_match)
		return s->kind != HS_EV_MODEL && quoted < UNMATCHED_MAX;
	return p->n == 1 || (s->match > 0 && s->relevance >= RELEVANT * best);
}

static bool model_is_full(const struct hs_picks *p, const bool *quoted, size_t i)
{
	size_t n = 0;

	if (p->v[i].kind != HS_EV_MODEL)
		return false;
	for (size_t k = 0; k < i; k++)
		n += quoted[k] && p->v[k].ev == p->v[i].ev && p->v[k].kind == HS_EV_MODEL;
	return n >= BULLETS_MAX / MODEL_SHARE;
}

void hs_use(struct hs_pool *pool, struct hs_extractive_answer *a, size_t cap, size_t ev)
{
	if (!a->used)
		a->used = HS_NEW_ARRAY(pool, size_t, cap + 1);
	for (size_t i = 0; i < a->n_used; i++)
		if (a->used[i] == ev)
			return;
	a->used[a->n_used++] = ev;
}

void hs_extractive_answer(struct hs_pool *pool, const char *question, const struct hs_evidence *ev,
	size_t n, int64_t max_tokens, struct hs_extractive_answer *ret)
{
	struct hs_buf *out = hs_buf_new(pool, HS_REPLY_MAX);
	const size_t max = max_tokens > 0 ? (size_t)max_tokens : 0;
	bool any_match, *quoted;
	double best = 0, best_match = 0;
	size_t bullets = 0, most;
	struct hs_picks p;

	memset(ret, 0, sizeof(*ret));
	hs_picks_make(pool, question, ev, n, true, &p);
	quoted = HS_NEW_ARRAY(pool, bool, p.n + 1);
	for (size_t i = 0; i < p.n; i++) {
		best_match = p.v[i].match > best_match ? p.v[i].match : best_match;
		best = p.v[i].relevance > best ? p.v[i].relevance : best;
	}
	any_match = best_match > 0;
	most = any_match && best_match < WEAK ? WEAK_MAX : BULLETS_MAX;
	for (size_t i = 0; i < p.n && bullets < most; i++) {
		const char *line;

		if (!worth_it(&p, &p.v[i], any_match, best, bullets) ||
			model_is_full(&p, quoted, i))
			continue;
		line = hs_pick_line(pool, &p.v[i]);
		if (hs_tokens_n(out->data, out->len) + hs_tokens(line) + 1 > max) {
			if (bullets)
				continue;
			line = hs_line_fit(pool, line, max_tokens);
		}
		if (out->len)
			hs_buf_char(out, '\n');
		hs_buf_str(out, line);
		quoted[i] = true;
		bullets++;
		hs_use(pool, ret, n, p.v[i].ev);
	}
	ret->answer_found = bullets > 0;
	ret->text = bullets ? out->data : hs_extractive_nothing;
}

bool hs_near_equal(struct hs_pool *pool, const char *a, const char *b)
{
	struct hs_gist x = hs_gist_of(pool, a), y = hs_gist_of(pool, b);

	return hs_gist_near(&x, &y);
}
