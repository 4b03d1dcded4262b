#include "engine/extractive_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/tokens.h"
#include "engine/extractive_pick.h"
#include "engine/names.h"
#include "text/words.h"

#define LINES_MAX ((size_t)60)
#define SECTIONS_MAX 8
#define KEYS_PER_LINE ((size_t)12)
#define RELEVANT 0.25   /* of the best statement's relevance */
#define THEME_BYTES 4   /* shorter words are no theme */
#define UNIVERSAL 0.8   /* a name in more of the lines than this divides nothing */
#define HEADING_ROOM 12 /* tokens kept for a heading when one line alone is cut */
#define OTHER "Other"

/* A name or theme and how many lines without a section carry it. */
struct key {
	const char *label, *fold;
	size_t lines, open;
};
struct line {
	const struct hs_pick *pick;
	const char *text;
	size_t keys[KEYS_PER_LINE];
	size_t n_keys;
	int section; /* -1 = none yet */
};
struct plan {
	struct hs_pool *pool;
	struct line *lines;
	size_t n_lines;
	struct key *keys;
	size_t n_keys, cap_keys;
	const char *headings[SECTIONS_MAX + 1];
	int n_sections;
};

static size_t find_key(struct plan *p, const char *label)
{
	const char *fold = hs_lower(p->pool, label);

	for (size_t i = 0; i < p->n_keys; i++)
		if (strcmp(p->keys[i].fold, fold) == 0)
			return i;
	if (p->n_keys == p->cap_keys) {
		size_t cap = p->cap_keys ? 2 * p->cap_keys : 64;

		p->keys = hs_pool_regrow(
			p->pool, p->keys, p->n_keys * sizeof(*p->keys), cap * sizeof(*p->keys));
		p->cap_keys = cap;
	}
	p->keys[p->n_keys] = (struct key){.label = label, .fold = fold};
	return p->n_keys++;
}

static void add_key(struct plan *p, struct line *l, const char *label)
{
	size_t k = find_key(p, label);

	for (size_t i = 0; i < l->n_keys; i++)
		if (l->keys[i] == k)
			return;
	if (l->n_keys == KEYS_PER_LINE)
		return;
	l->keys[l->n_keys++] = k;
	p->keys[k].lines++;
	p->keys[k].open++;
}

/* Themes of a line that names nobody: its telling words, as written. */
struct theme_reader {
	struct plan *plan;
	struct line *line;
};

static void take_theme(void *arg, const struct hs_word *w)
{
	struct theme_reader *r = arg;
	const char *text = r->line->pick->text;
	char *label, word[32] = "";

	if (w->extra || w->number || (!w->pair && w->n < THEME_BYTES) || w->n >= sizeof(word))
		return;
	memcpy(word, w->text, w->n);
	if (hs_word_is_stop(w->text, w->n) || hs_word_is_starter(word))
		return;
	label = hs_pool_strndup(r->plan->pool, text + w->start, w->end - w->start);
	if (label[0] >= 'a' && label[0] <= 'z')
		label[0] = (char)(label[0] - 32);
	add_key(r->plan, r->line, label);
}

static void add_keys(struct plan *p, struct line *l, const struct hs_evidence *e)
{
	struct theme_reader r = {p, l};
	struct hs_strs names = e->entities;

	if (names.n == 0)
		hs_names_add(p->pool, l->pick->text, &names);
	for (size_t i = 0; i < names.n; i++)
		if (!hs_str_blank(names.v[i]))
			add_key(p, l, names.v[i]);
	if (names.n == 0)
		hs_words_each(l->pick->text, strlen(l->pick->text), take_theme, &r);
}

/* ---- sections ---- */

static bool has_key(const struct line *l, size_t key)
{
	for (size_t i = 0; i < l->n_keys; i++)
		if (l->keys[i] == key)
			return true;
	return false;
}

/* The key most open lines carry, at least two; universal ones only when allowed. */
static size_t widest_key(const struct plan *p, bool universal)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < p->n_keys; i++) {
		if (p->keys[i].open < 2)
			continue;
		if (!universal && p->n_lines > 4 &&
			(double)p->keys[i].lines > UNIVERSAL * (double)p->n_lines)
			continue;
		if (best == SIZE_MAX || p->keys[i].open > p->keys[best].open)
			best = i;
	}
	return best;
}

static void close_line(struct plan *p, struct line *l, int section)
{
	l->section = section;
	for (size_t i = 0; i < l->n_keys; i++)
		p->keys[l->keys[i]].open--;
}

static void make_sections(struct plan *p)
{
	bool rest = false;

	while (p->n_sections < SECTIONS_MAX) {
		size_t key = widest_key(p, false);

		if (key == SIZE_MAX)
			key = widest_key(p, true);
		if (key == SIZE_MAX)
			break;
		p->headings[p->n_sections] = p->keys[key].label;
		for (size_t i = 0; i < p->n_lines; i++)
			if (p->lines[i].section < 0 && has_key(&p->lines[i], key))
				close_line(p, &p->lines[i], p->n_sections);
		p->n_sections++;
	}
	for (size_t i = 0; i < p->n_lines; i++)
		if (p->lines[i].section < 0) {
			close_line(p, &p->lines[i], p->n_sections);
			rest = true;
		}
	if (!rest)
		return;
	/* nothing to set them apart from: the best statement's first name heads them all */
	p->headings[p->n_sections] = p->n_sections == 0 && p->n_keys > 0 ? p->keys[0].label : OTHER;
	p->n_sections++;
}

/* Sections in order, lines by date, undated ones last. */
static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int64_t dx = x->pick->date_us, dy = y->pick->date_us;

	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	if (dx != dy) {
		if (dx == HS_TIME_NONE || dy == HS_TIME_NONE)
			return dx == HS_TIME_NONE ? 1 : -1;
		return dx < dy ? -1 : 1;
	}
	return (x->pick > y->pick) - (x->pick < y->pick);
}

static const char *print(const struct plan *p)
{
	struct hs_buf *out = hs_buf_new(p->pool, HS_REPLY_MAX);
	int section = -1;

	for (size_t i = 0; i < p->n_lines; i++) {
		if (p->lines[i].section != section) {
			section = p->lines[i].section;
			hs_buf_printf(
				out, "%s## %s\n\n", out->len ? "\n" : "", p->headings[section]);
		}
		hs_buf_str(out, p->lines[i].text);
		hs_buf_char(out, '\n');
	}
	return out->data;
}

/* The document of the n best picks. */
static const char *compose(struct hs_pool *pool, const struct hs_evidence *ev,
	struct hs_pick *const *picks, size_t n, int64_t max_tokens, struct plan *p)
{
	memset(p, 0, sizeof(*p));
	p->pool = pool;
	p->lines = HS_NEW_ARRAY(pool, struct line, n + 1);
	p->n_lines = n;
	for (size_t i = 0; i < n; i++) {
		struct line *l = &p->lines[i];

		l->pick = picks[i];
		l->section = -1;
		l->text = hs_pick_line(pool, picks[i]);
		if (n == 1)
			l->text = hs_line_fit(pool, l->text, max_tokens - HEADING_ROOM);
		add_keys(p, l, &ev[picks[i]->ev]);
	}
	make_sections(p);
	qsort(p->lines, p->n_lines, sizeof(*p->lines), compare_lines);
	return print(p);
}

static int compare_relevance(const void *a, const void *b)
{
	const struct hs_pick *x = *(struct hs_pick *const *)a, *y = *(struct hs_pick *const *)b;

	if (x->relevance != y->relevance)
		return x->relevance > y->relevance ? -1 : 1;
	return (x > y) - (x < y);
}

/* The statements worth a line, best first. */
static size_t choose(struct hs_picks *p, struct hs_pick **out)
{
	double best = 0;
	bool any_match = false;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		any_match = any_match || p->v[i].match > 0;
		best = p->v[i].relevance > best ? p->v[i].relevance : best;
	}
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].kept && (!any_match || p->v[i].relevance >= RELEVANT * best))
			out[n++] = &p->v[i];
	if (n)
		qsort(out, n, sizeof(*out), compare_relevance);
	return n < LINES_MAX ? n : LINES_MAX;
}

static bool any_memory(const struct hs_evidence *ev, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ev[i].kind != HS_EV_MODEL && !hs_str_blank(ev[i].text))
			return true;
	return false;
}

void hs_extractive_document(struct hs_pool *pool, const char *question,
	const struct hs_evidence *ev, size_t n, int64_t max_tokens, struct hs_document *ret_doc,
	struct hs_extractive_answer *ret)
{
	const size_t max = max_tokens > 0 ? (size_t)max_tokens : 0;
	struct hs_pick **chosen;
	struct hs_picks picks;
	const char *text = "";
	struct plan plan = {0};
	size_t lines;

	memset(ret, 0, sizeof(*ret));
	hs_picks_make(pool, question, ev, n, !any_memory(ev, n), &picks);
	chosen = HS_NEW_ARRAY(pool, struct hs_pick *, picks.n + 1);
	lines = choose(&picks, chosen);
	while (lines > 0) {
		text = compose(pool, ev, chosen, lines, max_tokens, &plan);
		if (lines == 1 || hs_tokens(text) <= max)
			break;
		lines -= lines > 10 ? lines / 10 : 1;
	}
	for (size_t i = 0; i < plan.n_lines; i++)
		hs_use(pool, ret, n, plan.lines[i].pick->ev);

	hs_document_split(pool, text, ret_doc);
	ret->answer_found = plan.n_lines > 0;
	ret->text = hs_str_trim(pool, hs_document_render(pool, ret_doc));
}
