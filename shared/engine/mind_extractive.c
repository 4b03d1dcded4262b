#include "engine/mind.h"

#include <string.h>

#include "base/clock.h"
#include "engine/names.h"
#include "engine/near.h"
#include "engine/sentences.h"
#include "engine/text_dates.h"
#include "json/json.h"
#include "text/words.h"

#define JOIN_CHARS ((size_t)400) /* a fact grows by sentences that lean on it up to this */
#define NAMES_MAX ((size_t)20)   /* of one fact */
#define TELLING 2                /* points a sentence needs: a word 2, a name 1, a number 2 */
#define TELLING_OF_OTHERS 3      /* the same in a conversation, of who does not say I or we */
#define REACTION_WORDS 5         /* an exclamation of so few words is a reaction */

/* ---- extract ---- */

struct extract {
	struct hs_pool *pool;
	const struct hs_retain_prompt_in *in;
	bool everything; /* verbose: questions and small talk too */
	struct hs_facts out;
	size_t cap;
};

static struct hs_fact *add_fact(struct extract *x)
{
	struct hs_facts *o = &x->out;
	struct hs_fact *f;

	if (o->n == x->cap) {
		size_t cap = x->cap ? 2 * x->cap : 16;

		o->v = hs_pool_regrow(x->pool, o->v, o->n * sizeof(*o->v), cap * sizeof(*o->v));
		x->cap = cap;
	}
	f = &o->v[o->n++];
	memset(f, 0, sizeof(*f));
	f->occurred_start_us = f->occurred_end_us = HS_TIME_NONE;
	return f;
}

/* What a sentence has to say: points for its words, and who it speaks of. */
struct telling {
	const char *sentence;
	const struct hs_turns *turns;
	size_t points, words;
	bool first_person, names_other;
};

static bool is_first_person(const struct hs_word *w)
{
	static const char *const words[] = {"i", "i'm", "i've", "i'd", "i'll", "me", "my", "mine",
		"we", "we're", "we've", "our", "us"};

	for (size_t i = 0; i < HS_COUNT(words); i++)
		if (strlen(words[i]) == w->n && memcmp(words[i], w->text, w->n) == 0)
			return true;
	return false;
}

/* Is the word the (first) name of somebody who speaks here, or a short form of it? */
static bool is_speaker(const struct hs_turns *turns, const char *word, size_t n)
{
	for (size_t i = 0; i < turns->n; i++) {
		const char *name = turns->v[i].speaker;

		if (name && n >= 3 && strlen(name) >= n && strncmp(name, word, n) == 0)
			return true;
	}
	return false;
}

static void count_telling(void *arg, const struct hs_word *w)
{
	struct telling *t = arg;
	const char *raw = t->sentence + w->start;
	size_t n = w->end - w->start;
	char word[32] = "";

	if (w->extra)
		return;
	t->words++;
	t->first_person = t->first_person || is_first_person(w);
	if (hs_word_is_stop(w->text, w->n))
		return;
	if (w->n < sizeof(word))
		memcpy(word, w->text, w->n);
	if (hs_word_is_starter(word) || is_speaker(t->turns, raw, n))
		return;
	t->points += hs_starts_upper(raw, n) ? 1 : 2;
	t->names_other = t->names_other || hs_starts_upper(raw, n) || w->number;
}

/* "Sounds fun!", "You're killing it!": said to the other speaker, not about anything. */
static bool is_reaction(const struct telling *t)
{
	static const char *const starts[] = {"that", "this", "these", "those", "what", "how", "you",
		"your", "you're", "you've", "you'll", "wow", "sounds", "looks", "so", "such",
		"great", "good"};
	size_t n = strcspn(t->sentence, " ,.;:!?");

	if (!hs_str_ends(t->sentence, "!") || t->first_person || t->names_other)
		return false;
	for (size_t i = 0; i < HS_COUNT(starts); i++)
		if (strlen(starts[i]) == n && (t->sentence[0] | 32) == starts[i][0] &&
			strncmp(t->sentence + 1, starts[i] + 1, n - 1) == 0)
			return true;
	return t->words <= REACTION_WORDS;
}

static bool tells(const struct hs_turns *turns, const struct hs_turn *turn, const char *sentence)
{
	struct telling t = {.sentence = sentence, .turns = turns};

	hs_words_each(sentence, strlen(sentence), count_telling, &t);
	if (!turn->speaker || t.first_person)
		return t.points >= TELLING;
	return t.points >= TELLING_OF_OTHERS && !is_reaction(&t);
}

static bool is_question(const char *s)
{
	return hs_str_ends(s, "?") || hs_str_ends(s, "？") || hs_str_ends(s, "?\"");
}

/* Does the sentence begin with a word that points back? */
static bool leans(const char *s)
{
	static const char *const words[] = {"he", "she", "it", "they", "this", "that", "these",
		"those", "his", "her", "its", "their", "it's", "that's", "he's", "she's", "they're",
		"both"};
	size_t n = strcspn(s, " ,.;:!?");

	for (size_t i = 0; i < HS_COUNT(words); i++)
		if (strlen(words[i]) == n && (s[0] | 32) == words[i][0] &&
			strncmp(s + 1, words[i] + 1, n - 1) == 0)
			return true;
	return false;
}

static bool is_role(const char *name)
{
	static const char *const names[] = {
		"assistant", "system", "ai", "bot", "agent", "model", "tool", "human"};

	for (size_t i = 0; i < HS_COUNT(names); i++)
		if (hs_str_ieq_ascii(name, names[i]))
			return true;
	return false;
}

/* Date and names of a finished fact; text stands without the speaker. */
static void finish(
	struct extract *x, struct hs_fact *f, const struct hs_turn *turn, const char *text)
{
	hs_text_date(text, x->in->event_us, &f->occurred_start_us, &f->occurred_end_us);
	f->experience = turn->assistant;
	if (turn->speaker && !is_role(turn->speaker))
		hs_strs_add(x->pool, &f->entities,
			hs_str_ieq_ascii(turn->speaker, "user") ? "user" : turn->speaker);
	hs_names_add(x->pool, text, &f->entities);
	if (f->entities.n > NAMES_MAX)
		f->entities.n = NAMES_MAX;
	f->text = turn->speaker ? hs_pool_printf(x->pool, "%s: %s", turn->speaker, text) : text;
}

static void extract_turn(
	struct extract *x, const struct hs_turns *turns, const struct hs_turn *turn)
{
	const char *open = NULL; /* the fact being built */

	for (size_t i = 0; i < turn->sentences.n; i++) {
		const char *s = turn->sentences.v[i];

		if (!x->everything && (is_question(s) || !tells(turns, turn, s)))
			continue;
		if (open && leans(s) && strlen(open) + strlen(s) < JOIN_CHARS) {
			open = hs_pool_printf(x->pool, "%s %s", open, s);
			continue;
		}
		if (open)
			finish(x, add_fact(x), turn, open);
		open = s;
	}
	if (open)
		finish(x, add_fact(x), turn, open);
}

/* Nothing told anything: the longest sentence is kept, so that a text never vanishes. */
static void extract_longest(struct extract *x, const struct hs_turns *turns)
{
	const struct hs_turn *turn = NULL;
	const char *best = "";

	for (size_t i = 0; i < turns->n; i++)
		for (size_t k = 0; k < turns->v[i].sentences.n; k++)
			if (strlen(turns->v[i].sentences.v[k]) > strlen(best)) {
				best = turns->v[i].sentences.v[k];
				turn = &turns->v[i];
			}
	if (turn)
		finish(x, add_fact(x), turn, best);
}

/* The chunk itself is the fact; names and the first date are those of its sentences. */
static void extract_verbatim(struct extract *x, const struct hs_turns *turns)
{
	struct hs_fact *f = add_fact(x);

	f->text = x->in->chunk;
	hs_text_date(f->text, x->in->event_us, &f->occurred_start_us, &f->occurred_end_us);
	for (size_t i = 0; i < turns->n; i++) {
		const struct hs_turn *t = &turns->v[i];

		if (t->speaker && !is_role(t->speaker) && !hs_strs_has(&f->entities, t->speaker))
			hs_strs_add(x->pool, &f->entities, t->speaker);
		for (size_t k = 0; k < t->sentences.n && f->entities.n < NAMES_MAX; k++)
			hs_names_add(x->pool, t->sentences.v[k], &f->entities);
	}
}

enum hs_rc hs_extractive_extract(struct hs_pool *pool, const struct hs_retain_prompt_in *in,
	struct hs_facts *ret, struct hs_err *err)
{
	const char *mode = in->cfg ? hs_cfg_str(in->cfg, HS_S_retain_extraction_mode) : NULL;
	struct extract x = {.pool = pool, .in = in, .everything = hs_str_eq(mode, "verbose")};
	struct hs_turns turns;

	(void)err;
	hs_turns_split(pool, in->chunk, &turns);
	if (hs_str_eq(mode, "verbatim")) {
		extract_verbatim(&x, &turns);
	} else {
		for (size_t i = 0; i < turns.n; i++)
			extract_turn(&x, &turns, &turns.v[i]);
		if (x.out.n == 0)
			extract_longest(&x, &turns);
	}
	*ret = x.out;
	return HS_OK;
}

/* ---- consolidate ---- */

/* An observation to be: one shown, or one founded by an earlier fact of the batch. */
struct target {
	struct hs_gist gist;
	const char *observation_id; /* NULL = founded here */
	const char *text;
	json_t *sources; /* borrowed from its action; NULL = untouched so far */
};

static json_t *must(json_t *v)
{
	if (!v)
		hs_out_of_memory(sizeof(void *));
	return v;
}

static struct target *find_target(
	struct target *t, size_t n, const struct hs_gist *gist, const char *text)
{
	struct target *best = NULL;
	double best_overlap = 0;

	for (size_t i = 0; i < n; i++) {
		double overlap;

		if (strcmp(t[i].text, text) == 0)
			return &t[i];
		if (!hs_gist_near(&t[i].gist, gist))
			continue;
		overlap = hs_gist_overlap(&t[i].gist, gist);
		if (overlap > best_overlap) {
			best = &t[i];
			best_overlap = overlap;
		}
	}
	return best;
}

/* The action of a target is made with its first fact and keeps the fuller text. */
static void join(struct target *t, const char *text, const char *fact_id, json_t *creates,
	json_t *updates, json_t **action)
{
	if (!*action) {
		t->sources = must(json_array());
		*action = must(
			json_pack("{s:s, s:o}", "text", t->text, "source_fact_ids", t->sources));
		if (t->observation_id)
			json_object_set_new(
				*action, "observation_id", must(json_string(t->observation_id)));
		json_array_append_new(t->observation_id ? updates : creates, *action);
	}
	json_array_append_new(t->sources, must(json_string(fact_id)));
	if (strlen(text) > strlen(t->text)) {
		t->text = text;
		json_object_set_new(*action, "text", must(json_string(text)));
	}
}

enum hs_rc hs_extractive_consolidate(struct hs_pool *pool,
	const struct hs_consolidation_prompt_in *in, json_t **ret_actions, struct hs_err *err)
{
	size_t shown = json_array_size(in->observations), n = 0;
	struct target *t = HS_NEW_ARRAY(pool, struct target, shown + in->n_facts + 1);
	json_t **actions = HS_NEW_ARRAY(pool, json_t *, shown + in->n_facts + 1);
	json_t *creates = must(json_array()), *updates = must(json_array());
	int64_t slots = in->free_slots;

	(void)err;
	for (size_t i = 0; i < shown; i++) {
		json_t *o = json_array_get(in->observations, i);
		const char *id = hs_json_str(o, "id"), *text = hs_json_str(o, "text");

		if (id && text)
			t[n++] = (struct target){hs_gist_of(pool, text), id, text, NULL};
	}
	for (size_t i = 0; i < in->n_facts; i++) {
		const struct hs_consolidation_fact *f = &in->facts[i];
		struct hs_gist gist = hs_gist_of(pool, f->text);
		struct target *found = find_target(t, n, &gist, f->text);

		if (!found && slots == 0)
			continue;
		if (!found) {
			found = &t[n++];
			*found = (struct target){gist, NULL, f->text, NULL};
			slots -= slots > 0;
		}
		join(found, f->text, f->id, creates, updates, &actions[found - t]);
	}
	*ret_actions = hs_json_keep(pool, must(json_pack("{s:o, s:o, s:[]}", "creates", creates,
						  "updates", updates, "deletes")));
	return HS_OK;
}
