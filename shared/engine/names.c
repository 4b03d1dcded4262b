#include "engine/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "text/words.h"

#define NAMES_PER_SENTENCE 12
#define NAME_BYTES ((size_t)120)
#define WORDS_MAX 300               /* of a sentence; names further on are not looked for */

/* Words that often begin a sentence and are no names. Sorted by bytes. */
static const char *const starters[] = {
	"actually", "add", "added", "after", "afterwards", "again", "ago", "also", "although",
	"always", "amazing", "another", "anyway", "apparently", "applied", "apply", "as", "ask",
	"asked", "assistant", "at", "awesome", "basically", "because", "before", "besides", "best",
	"better", "between", "big", "both", "bring", "bye", "call", "check", "cheers", "come",
	"congrats", "congratulations", "consider", "cool", "could", "create", "currently", "dear",
	"decided", "definitely", "despite", "did", "do", "does", "done", "due", "during", "each",
	"earlier", "early", "either", "else", "enjoy", "ensure", "especially", "even",
	"eventually", "ever", "every", "everybody", "everyone", "everything", "exactly", "few",
	"finally", "find", "first", "firstly", "five", "fix", "fixed", "for", "four", "from",
	"further", "furthermore", "generally", "get", "getting", "give", "given", "glad", "go",
	"going", "gonna", "good", "got", "great", "guess", "had", "haha", "happy", "has", "have",
	"having", "he", "hello", "help", "hence", "her", "here", "hey", "hi", "his", "hmm",
	"honestly", "hope", "hopefully", "how", "however", "human", "if", "imagine", "implemented",
	"important", "in", "include", "including", "indeed", "initially", "instead", "interesting",
	"interestingly", "into", "is", "it", "its", "just", "keep", "kind", "know", "last",
	"lastly", "lately", "later", "learned", "let", "like", "likely", "listen", "long", "look",
	"looking", "lots", "love", "lovely", "made", "make", "making", "many", "maybe", "me",
	"meanwhile", "mine", "more", "moreover", "most", "mostly", "much", "must", "my", "need",
	"never", "new", "next", "nice", "nine", "no", "nobody", "none", "nope", "normally", "not",
	"note", "nothing", "now", "nowadays", "obviously", "of", "off", "often", "oh", "ok",
	"okay", "old", "on", "once", "one", "only", "ooh", "open", "or", "originally", "other",
	"others", "otherwise", "our", "out", "over", "overall", "own", "people", "perhaps",
	"please", "plus", "prefer", "probably", "put", "quick", "quickly", "quite", "rather",
	"ready", "really", "recently", "remember", "right", "run", "sadly", "said", "same", "save",
	"saw", "say", "see", "seeing", "seems", "send", "set", "seven", "several", "shall", "she",
	"should", "show", "similarly", "since", "six", "so", "some", "somebody", "someone",
	"something", "sometimes", "somewhere", "soon", "sorry", "sounds", "start", "started",
	"starting", "still", "stop", "such", "suddenly", "super", "sure", "system", "take",
	"taking", "talk", "tell", "ten", "text", "thank", "thanks", "that", "the", "their", "them",
	"then", "there", "therefore", "these", "they", "thing", "things", "think", "this", "those",
	"though", "three", "through", "thus", "time", "to", "today", "together", "tomorrow",
	"tonight", "too", "totally", "true", "try", "trying", "turns", "two", "under",
	"unfortunately", "unless", "until", "up", "update", "updated", "us", "use", "used", "user",
	"uses", "using", "usually", "very", "visit", "wait", "want", "was", "watch", "way", "we",
	"well", "were", "what", "whatever", "when", "whenever", "where", "whereas", "wherever",
	"whether", "which", "while", "who", "whoever", "whole", "why", "will", "wish", "with",
	"without", "wonder", "wonderful", "work", "working", "would", "wow", "write", "yeah",
	"year", "years", "yep", "yes", "yesterday", "yet", "yo", "you", "your", "yours",
};

/* Small words inside names. */
static const char *const joiners[] = {
	"of", "de", "da", "del", "della", "der", "den", "di", "du", "la", "le", "van", "von", "al", "bin", "y",
};

struct token {
	size_t start, end;
	char folded[24]; /* "" for longer words */
	bool capital, pair;
};
struct tokens {
	const char *text;
	struct token *v;
	size_t n;
};

static void take(void *arg, const struct hs_word *w)
{
	struct tokens *t = arg;
	struct token *k;

	if (w->extra || t->n == WORDS_MAX)
		return;
	k = &t->v[t->n++];
	*k = (struct token){.start = w->start, .end = w->end, .pair = w->pair};
	k->capital = hs_starts_upper(t->text + w->start, w->end - w->start);
	if (w->n < sizeof(k->folded))
		memcpy(k->folded, w->text, w->n);
}

static int compare(const void *key, const void *item)
{
	return strcmp(key, *(const char *const *)item);
}

bool hs_word_is_starter(const char *word)
{
	return bsearch(word, starters, HS_COUNT(starters), sizeof(starters[0]), compare) != NULL;
}

static bool is_starter(const struct token *t)
{
	char head[sizeof(t->folded)];

	/* "Here's", "Let's" */
	memcpy(head, t->folded, sizeof(head));
	head[strcspn(head, "'")] = '\0';
	return hs_word_is_stop(t->folded, strlen(t->folded)) || hs_word_is_starter(head);
}

static bool is_calendar(const struct token *t)
{
	for (int m = 1; m <= 12; m++)
		if (hs_str_ieq_ascii(t->folded, hs_month_name(m)))
			return true;
	for (int d = 0; d < 7; d++) {
		const char *day = hs_weekday_name(d);

		if (strncmp(t->folded + 1, day + 1, strlen(day) - 1) == 0 &&
			t->folded[0] == (day[0] | 32))
			return true;
	}
	return false;
}

static bool is_joiner(const struct token *t)
{
	for (size_t i = 0; i < HS_COUNT(joiners); i++)
		if (strcmp(joiners[i], t->folded) == 0)
			return true;
	return false;
}

/* A blank, or a hyphen, or "." between initials: nothing else may stand inside a name. */
static bool touching(const struct tokens *t, size_t i)
{
	const char *gap = t->text + t->v[i].end;
	size_t n = t->v[i + 1].start - t->v[i].end;

	return (n == 1 && (*gap == ' ' || *gap == '-' || *gap == '.' || *gap == '&')) ||
	       (n == 2 && memcmp(gap, ". ", 2) == 0 && t->v[i].end - t->v[i].start <= 2) ||
	       (n == 3 && memcmp(gap, " & ", 3) == 0);
}

/* Does a sentence start at this word: the first one, or after a colon, a dash or an opening sign?
 */
static bool at_start(const struct tokens *t, size_t i)
{
	size_t gap_from, gap_to;

	if (i == 0)
		return true;
	gap_from = t->v[i - 1].end;
	gap_to = t->v[i].start;
	for (size_t k = gap_from; k < gap_to; k++)
		if (strchr(".!?:;\n(", t->text[k]))
			return true;
	return false;
}

static bool can_be_name(const struct tokens *t, size_t i)
{
	const struct token *k = &t->v[i];

	return k->capital && !k->pair && strcmp(k->folded, "i") != 0 &&
	       strncmp(k->folded, "i'", 2) != 0 && !is_calendar(k);
}

static bool mostly_capitals(const struct tokens *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->v[i].capital;
	return t->n > 5 && 10 * n > 7 * t->n;
}

static void add_name(
	struct hs_pool *pool, const struct tokens *t, size_t from, size_t to, struct hs_strs *list)
{
	size_t end = t->v[to].end, n;
	const char *s = t->text + t->v[from].start;
	char *name;

	n = end - t->v[from].start;
	if (n > 2 && s[n - 1] == 's' && s[n - 2] == '\'')
		n -= 2;
	else if (n > 4 && s[n - 1] == 's' && memcmp(s + n - 4, "\xe2\x80\x99", 3) == 0)
		n -= 4;
	if (n < 2 || n > NAME_BYTES)
		return;
	name = hs_pool_strndup(pool, s, n);
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(hs_lower(pool, list->v[i]), hs_lower(pool, name)) == 0)
			return;
	hs_strs_add(pool, list, name);
}

/* "Painting is fun", "Luckily …", "Appreciate your …": at a start such a word alone is hardly a name. */
static bool looks_common(const struct tokens *t, size_t i)
{
	static const char *const after_verbs[] = {"the", "a", "an", "your", "my", "our", "his",
		"her", "their", "this", "that", "these", "those", "it", "to", "for", "you", "me",
		"us", "them", "all", "some", "any", "free", "up", "out"};
	const char *word = t->v[i].folded;
	size_t n = strcspn(word, "'");

	if ((n > 4 && strncmp(word + n - 3, "ing", 3) == 0) ||
		(n > 4 && strncmp(word + n - 2, "ly", 2) == 0))
		return true;
	if (i + 1 == t->n || !touching(t, i))
		return false;
	for (size_t k = 0; k < HS_COUNT(after_verbs); k++)
		if (strcmp(t->v[i + 1].folded, after_verbs[k]) == 0)
			return true;
	return false;
}

/* The "200A" of "K-200A". */
static bool is_number_part(const struct tokens *t, size_t i)
{
	const char *s = t->text + t->v[i].start;

	return s[0] >= '0' && s[0] <= '9' && s[-1] == '-';
}

/* The last word of the name that begins at i. */
static size_t name_end(const struct tokens *t, size_t i)
{
	size_t last = i;

	while (last + 1 < t->n && touching(t, last)) {
		size_t next = last + 1;

		/* a possessive ends a name: "Ana's Toyota" are two */
		if (t->text[t->v[last].end - 1] == 's' && t->v[last].end - t->v[last].start > 2 &&
			strchr("'\x99", t->text[t->v[last].end - 2]))
			break;
		if (can_be_name(t, next) || is_number_part(t, next)) {
			last = next;
		} else if (is_joiner(&t->v[next]) && next + 1 < t->n && touching(t, next) &&
			   can_be_name(t, next + 1)) {
			last = next + 1;
		} else {
			break;
		}
	}
	return last;
}

void hs_names_add(struct hs_pool *pool, const char *sentence, struct hs_strs *list)
{
	struct token words[WORDS_MAX];
	struct tokens t = {.text = sentence, .v = words};
	const size_t before = list->n;

	hs_words_each(sentence, strlen(sentence), take, &t);
	if (mostly_capitals(&t))
		return;
	for (size_t i = 0; i < t.n && list->n - before < NAMES_PER_SENTENCE; i++) {
		size_t last;

		if (!can_be_name(&t, i))
			continue;
		if (at_start(&t, i) && is_starter(&t.v[i]))
			continue;
		if (hs_word_is_stop(t.v[i].folded, strlen(t.v[i].folded)))
			continue;
		last = name_end(&t, i);
		if (last == i && at_start(&t, i) && looks_common(&t, i))
			continue;
		add_name(pool, &t, i, last, list);
		i = last;
	}
}
