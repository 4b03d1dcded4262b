#include "engine/sentences.h"

#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "json/json.h"
#include "text/words.h"

#define SPEAKER_BYTES ((size_t)60)
#define SPEAKER_WORDS 4

/* A point after these ends no sentence. Lower case, without the point. */
static const char *const abbreviations[] = {
	"approx", "apt", "ave", "bzw", "capt", "cf", "co", "col", "dept", "dr", "e.g", "eg",
	"est", "etc", "fig", "gen", "gov", "hr", "i.e", "ie", "inc", "jr", "lt", "ltd", "max",
	"min", "mr", "mrs", "ms", "mt", "no", "nr", "p.s", "ph.d", "pp", "prof", "rev", "sen",
	"sgt", "sr", "st", "u.k", "u.s", "usw", "vs", "z.b",
};

char *hs_squeeze(struct hs_pool *pool, const char *s, size_t n)
{
	char *out = hs_pool_alloc(pool, n + 1);
	size_t at = 0, used = 0;
	bool gap = false;

	while (at < n) {
		uint32_t cp;
		size_t len = hs_utf8_next(s + at, n - at, &cp);

		if (len && hs_is_space_cp(cp)) {
			gap = used > 0;
			at += len;
			continue;
		}
		if (gap)
			out[used++] = ' ';
		gap = false;
		len = len ? len : 1;
		memcpy(out + used, s + at, len);
		used += len;
		at += len;
	}
	out[used] = '\0';
	return out;
}

/* ---- sentences of one running text ---- */

/* Length of the sentence end that stands at p, 0 when there is none: sign and quotes. */
static size_t end_mark(const char *p, size_t n)
{
	static const char *const marks[] = {".", "!", "?", "…", "。", "！", "？"};
	static const char *const closers[] = {"\"", "'", ")", "]", "”", "’", "»", "」", "*", "_"};
	size_t at = 0, i;
	bool more = n > 0 && strchr(".!?\xe2\xe3\xef", *p) != NULL;

	while (more) {
		more = false;
		for (i = 0; i < HS_COUNT(marks); i++) {
			size_t len = strlen(marks[i]);

			if (n - at >= len && memcmp(p + at, marks[i], len) == 0) {
				at += len;
				more = true;
			}
		}
	}
	if (at == 0)
		return 0;
	for (more = true; more;) {
		more = false;
		for (i = 0; i < HS_COUNT(closers); i++) {
			size_t len = strlen(closers[i]);

			if (n - at >= len && memcmp(p + at, closers[i], len) == 0) {
				at += len;
				more = true;
			}
		}
	}
	return at;
}

/* Does the single point at s[at] belong to an abbreviation, an initial or a list number? */
static bool inner_point(const char *s, size_t at)
{
	char word[12];
	size_t from = at, n;

	if (s[at] != '.')
		return false;
	while (from > 0 && !strchr(" \t\n(\"'", s[from - 1]))
		from--;
	n = at - from;
	if (n == 0 || n >= sizeof(word))
		return false;
	for (size_t i = 0; i < n; i++)
		word[i] = s[from + i] >= 'A' && s[from + i] <= 'Z' ? (char)(s[from + i] + 32)
								   : s[from + i];
	word[n] = '\0';

	if (n == 1 && s[from] >= 'A' && s[from] <= 'Z' && s[from] != 'I')
		return true;
	if (from == 0 && strspn(word, "0123456789") == n)
		return true;
	for (size_t i = 0; i < HS_COUNT(abbreviations); i++)
		if (strcmp(word, abbreviations[i]) == 0)
			return true;
	return false;
}

static bool is_wide_end(const char *p)
{
	return strncmp(p, "。", 3) == 0 || strncmp(p, "！", 3) == 0 || strncmp(p, "？", 3) == 0;
}

static void add_sentence(struct hs_pool *pool, struct hs_strs *out, const char *s, size_t n)
{
	char *text = hs_squeeze(pool, s, n);

	if (*text)
		hs_strs_add(pool, out, text);
}

/* Splits running text: line ends are blanks. */
static void split_running(struct hs_pool *pool, const char *s, size_t n, struct hs_strs *out)
{
	size_t from = 0, at = 0;

	while (at < n) {
		size_t len = end_mark(s + at, n - at);
		bool wide = is_wide_end(s + at);

		if (len == 0) {
			at++;
			continue;
		}
		if ((at + len == n || wide || strchr(" \t\r\n", s[at + len])) &&
			!(len == 1 && inner_point(s, at))) {
			add_sentence(pool, out, s + from, at + len - from);
			from = at + len;
		}
		at += len;
	}
	add_sentence(pool, out, s + from, n - from);
}

/* ---- lines ---- */

struct line {
	const char *p;
	size_t n;
};

static bool next_line(const char **at, struct line *ret)
{
	size_t n = strcspn(*at, "\n");

	if (!**at)
		return false;
	*ret = (struct line){*at, n};
	*at += n;
	if (**at == '\n')
		*at += 1;
	if (ret->n && ret->p[ret->n - 1] == '\r')
		ret->n--;
	return true;
}

static bool fence(const struct line *l)
{
	size_t at = 0;

	while (at < l->n && (l->p[at] == ' ' || l->p[at] == '\t'))
		at++;
	return l->n - at >= 3 &&
	       (memcmp(l->p + at, "```", 3) == 0 || memcmp(l->p + at, "~~~", 3) == 0);
}

/* Bytes of a list marker or heading marks at the line's start, 0 when there are none. */
static size_t marker(const struct line *l)
{
	size_t at = 0, from;

	while (at < l->n && (l->p[at] == ' ' || l->p[at] == '\t'))
		at++;
	from = at;
	while (at < l->n && l->p[at] == '#')
		at++;
	if (at == from && at < l->n && strchr("-*+>", l->p[at]))
		at++;
	if (at == from) {
		while (at < l->n && at - from < 3 && l->p[at] >= '0' && l->p[at] <= '9')
			at++;
		if (at == from || at == l->n || (l->p[at] != '.' && l->p[at] != ')'))
			return 0;
		at++;
	}
	return at < l->n && (l->p[at] == ' ' || l->p[at] == '\t') ? at + 1 : 0;
}

/* "Ana Ruiz: …": bytes up to the colon, 0 when the line has no speaker. */
static size_t speaker(const struct line *l)
{
	size_t at = 0, words = 1;

	if (l->n < 3 || !hs_starts_upper(l->p, l->n))
		return 0;
	while (at < l->n && l->p[at] != ':') {
		unsigned char c = (unsigned char)l->p[at];
		bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';

		words += c == ' ';
		if (!(letter || c >= 0x80 || (c >= '0' && c <= '9') || strchr(" .'_-", c)) ||
			at >= SPEAKER_BYTES)
			return 0;
		at++;
	}
	if (at + 1 >= l->n || l->p[at + 1] != ' ' || words > SPEAKER_WORDS)
		return 0;
	return at;
}

/* ---- turns ---- */

static bool is_assistant(const char *name)
{
	static const char *const names[] = {"assistant", "ai", "bot", "agent", "model"};

	for (size_t i = 0; i < HS_COUNT(names); i++)
		if (hs_str_ieq_ascii(name, names[i]))
			return true;
	return false;
}

static struct hs_turn *add_turn(struct hs_pool *pool, struct hs_turns *t, const char *name)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 16;

		t->v = hs_pool_regrow(pool, t->v, t->n * sizeof(*t->v), cap * sizeof(*t->v));
		t->cap = cap;
	}
	t->v[t->n] = (struct hs_turn){.speaker = name, .assistant = name && is_assistant(name)};
	return &t->v[t->n++];
}

/* Gathers lines of running text until something ends them. */
struct run {
	struct hs_pool *pool;
	struct hs_buf *text;
	struct hs_turns *turns;
	struct hs_turn *turn; /* NULL before the first */
	bool in_fence;
};

static void flush(struct run *r)
{
	if (r->text->len) {
		if (!r->turn)
			r->turn = add_turn(r->pool, r->turns, NULL);
		if (r->in_fence)
			add_sentence(r->pool, &r->turn->sentences, r->text->data, r->text->len);
		else
			split_running(r->pool, r->text->data, r->text->len, &r->turn->sentences);
	}
	hs_buf_reset(r->text);
}

static void take_line(struct run *r, struct line l, bool speakers)
{
	size_t n;

	if (fence(&l)) {
		if (!r->in_fence)
			flush(r);
		hs_buf_add(r->text, l.p, l.n);
		hs_buf_char(r->text, '\n');
		if (r->in_fence)
			flush(r);
		r->in_fence = !r->in_fence;
		return;
	}
	if (!r->in_fence) {
		n = speakers ? speaker(&l) : 0;
		if (n) {
			flush(r);
			r->turn = add_turn(r->pool, r->turns, hs_squeeze(r->pool, l.p, n));
			l = (struct line){l.p + n + 1, l.n - n - 1};
		}
		n = marker(&l);
		if (n || strspn(l.p, " \t\r") >= l.n)
			flush(r);
		l = (struct line){l.p + n, l.n - n};
	}
	hs_buf_add(r->text, l.p, l.n);
	hs_buf_char(r->text, '\n');
}

static void split_text(struct hs_pool *pool, const char *text, bool speakers, struct hs_turns *t,
	struct hs_turn *turn)
{
	struct run r = {
		.pool = pool, .turns = t, .turn = turn, .text = hs_buf_new(pool, strlen(text) + 2)};
	struct line l;

	while (next_line(&text, &l))
		take_line(&r, l, speakers);
	flush(&r);
}

/* ---- JSON conversations ---- */

static const char *first_string(json_t *obj, const char *const *keys)
{
	for (; *keys; keys++) {
		const char *s = hs_json_str(obj, *keys);

		if (!hs_str_blank(s))
			return s;
	}
	return NULL;
}

/* Text of a turn: a string, or the text parts of a list of content blocks. */
static const char *turn_text(struct hs_pool *pool, json_t *obj)
{
	static const char *const keys[] = {"content", "text", "message", "body", "value", NULL};
	const char *s = first_string(obj, keys);
	struct hs_strs parts = {0};
	json_t *block;
	size_t i;

	if (s)
		return s;
	json_array_foreach(hs_json_arr(obj, "content"), i, block) {
		const char *part = json_is_string(block) ? json_string_value(block)
							 : hs_json_str(block, "text");

		if (!hs_str_blank(part))
			hs_strs_add(pool, &parts, part);
	}
	return parts.n ? hs_strs_join(pool, &parts, "\n\n") : NULL;
}

static bool json_turn(struct hs_pool *pool, json_t *obj, struct hs_turns *t)
{
	static const char *const keys[] = {
		"speaker", "name", "author", "from", "role", "sender", "user", NULL};
	const char *name = first_string(obj, keys), *text = turn_text(pool, obj);
	struct hs_turn *turn;

	if (!text)
		return false;
	turn = add_turn(pool, t, name ? hs_squeeze(pool, name, strlen(name)) : NULL);
	turn->assistant = turn->assistant || is_assistant(hs_json_str_or(obj, "role", ""));
	split_text(pool, text, false, t, turn);
	return true;
}

static bool json_turns(struct hs_pool *pool, json_t *v, struct hs_turns *t)
{
	static const char *const lists[] = {"messages", "turns", "conversation"};
	bool any = false;
	json_t *obj;
	size_t i;

	for (i = 0; json_is_object(v) && i < HS_COUNT(lists); i++)
		if (hs_json_arr(v, lists[i]))
			v = hs_json_arr(v, lists[i]);
	if (json_is_object(v))
		return json_turn(pool, v, t);
	json_array_foreach(v, i, obj)
		any = (json_is_object(obj) && json_turn(pool, obj, t)) || any;
	return any;
}

/* One object a line; every line that is not blank must be one. */
static bool json_lines(struct hs_pool *pool, const char *text, struct hs_turns *t)
{
	bool any = false;
	struct line l;

	while (next_line(&text, &l)) {
		json_t *v = NULL;

		if (strspn(l.p, " \t\r") >= l.n)
			continue;
		if (hs_json_parse(pool, l.p, l.n, &v, NULL, NULL) != HS_OK || !json_is_object(v))
			return false;
		any = json_turn(pool, v, t) || any;
	}
	return any;
}

void hs_turns_split(struct hs_pool *pool, const char *text, struct hs_turns *ret)
{
	size_t blanks = strspn(text, " \t\r\n");
	json_t *v = NULL;

	memset(ret, 0, sizeof(*ret));
	if (text[blanks] == '[' || text[blanks] == '{') {
		if (hs_json_parse(pool, text, strlen(text), &v, NULL, NULL) == HS_OK &&
			json_turns(pool, v, ret))
			return;
		memset(ret, 0, sizeof(*ret));
		if (text[blanks] == '{' && json_lines(pool, text, ret))
			return;
		memset(ret, 0, sizeof(*ret));
	}
	split_text(pool, text, true, ret, NULL);
}

struct hs_strs hs_sentences(struct hs_pool *pool, const char *text)
{
	struct hs_turns t = {0};
	struct hs_turn *turn = add_turn(pool, &t, NULL);

	split_text(pool, text ? text : "", false, &t, turn);
	return t.v[0].sentences;
}
