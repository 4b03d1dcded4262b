#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/pool.h"
#include "text/hash.h"
#include "text/stem.h"
#include "text/words.h"

struct split_case {
	const char *text, *want;   /* words joined by '|' ; "+" marks extra ones */
};

static void join(void *arg, const struct hs_word *w)
{
	struct hs_buf *b = arg;

	if (b->len)
		hs_buf_char(b, '|');
	if (w->extra)
		hs_buf_char(b, '+');
	hs_buf_add(b, w->text, w->n);
}

static void words_are_split_and_folded(void **state)
{
	static const struct split_case cases[] = {
		{"", ""},
		{" \t\n…!?", ""},
		{"Hello, World", "hello|world"},
		{"don't Don\xe2\x80\x99t 'quoted' rock'n'roll", "don't|don't|quoted|rock'n'roll"},
		{"1,000.50 and 3.14. 5.", "1000.50|and|3.14|5"},
		{"end.Next a:b snake_case foo@bar.com", "end|next|a|b|snake|case|foo|bar|com"},
		{"v2 B2B 2nd 10km", "v2|b2b|2nd|10km"},
		{"STRASSE straße ΣΊΣΥΦΟΣ", "strasse|strasse|σίσυφοσ"},
		{"ＦＵＬＬ ｗｉｄｔｈ１２", "full|width12"},
		{"co\xc2\xadop", "coop"},
		{"東京都", "東京|+東|京都|+京|+都"},
		{"猫", "猫"},
		{"ありがとう", "あり|りが|がと|とう"},
		{"서울은", "서울|울은"},
		{"3月10日 iPhoneを", "3|月|10|日|iphone|を"},
		{"bad\xff" "byte \xc3", "bad|byte"},
		{"👍 ok 👍🏽", "ok"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_buf *b = hs_buf_new(pool, 10000);

		hs_words_each(cases[i].text, strlen(cases[i].text), join, b);
		if (strcmp(b->data, cases[i].want) != 0)
			print_message("case %zu: %s\n", i, cases[i].text);
		assert_string_equal(b->data, cases[i].want);
	}
}

static void ranges(void *arg, const struct hs_word *w)
{
	size_t *last = arg;

	assert_true(w->end > w->start);
	assert_true(w->n > 0);
	if (!w->pair) {
		assert_true(w->start >= *last);
		*last = w->end;
	}
}

/* Any bytes: ranges rise, lie inside the text, and nothing is read beyond it. */
static void hostile_bytes_are_survived(void **state)
{
	static const char *const parts[] = {
		"a", "Z", "'", ".", ",", "7", " ", "\xff", "\xe2\x80", "é", "東", "ｶﾞ", "\xe2\x80\x8d", "ﷺ",
		"́", "ไ", "\xf0\x9f\x91\x8d", "İ",
	};

	(void)state;
	srand(5);
	for (int run = 0; run < 3000; run++) {
		char text[400];
		size_t n = 0, last = 0;

		for (int k = rand() % 40; k > 0; k--) {
			const char *p = parts[(size_t)rand() % HS_COUNT(parts)];

			memcpy(text + n, p, strlen(p));
			n += strlen(p);
		}
		{
			char *exact = malloc(n ? n : 1);

			memcpy(exact, text, n);
			hs_words_each(exact, n, ranges, &last);
			assert_true(last <= n);
			free(exact);
		}
	}
}

static bool has_term(const struct hs_terms *t, const char *word, uint32_t tf)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].hash == hs_hash64(word, strlen(word)))
			return t->v[i].tf == tf;
	return false;
}

static void terms_are_stemmed_counted_and_sorted(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_terms t;

	(void)state;
	hs_words_terms(pool, "Caroline's memories: the memory of José, and JOSE.", NULL, &t);
	assert_int_equal(t.len, 5);
	assert_int_equal(t.n, 3);
	assert_true(has_term(&t, "memori", 2));
	assert_true(has_term(&t, "jose", 2));
	assert_true(has_term(&t, "carolin", 1));
	for (size_t i = 1; i < t.n; i++)
		assert_true(t.v[i - 1].hash < t.v[i].hash);

	hs_words_terms(pool, "東京都", NULL, &t);
	assert_int_equal(t.len, 2);
	assert_int_equal(t.n, 5);
	hs_words_terms(pool, NULL, NULL, &t);
	assert_int_equal(t.n, 0);
	hs_words_terms(pool, "Die Häuser und das Haus", "german", &t);
	assert_true(has_term(&t, "haus", 2));
	hs_words_terms(pool, "running the Runs", "none", &t);
	assert_int_equal(t.n, 3);
	assert_true(has_term(&t, "running", 1));
}

/* What a text holds is found by the same text as a query, in every script. */
static void every_query_term_is_an_index_term(void **state)
{
	static const char *const texts[] = {
		"When did Melanie's daughter go to the café in Zürich?", "東京都の猫", "猫", "서울에서 만나요",
		"Привет, Ёлка и ёлка", "สวัสดีครับ", "1,234 items at 3.5 each",
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(texts); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_query_terms q;
		struct hs_terms t;

		hs_words_query(pool, texts[i], NULL, &q);
		hs_words_terms(pool, texts[i], NULL, &t);
		assert_true(q.n > 0);
		for (size_t k = 0; k < q.n; k++) {
			bool found = false;

			for (size_t j = 0; j < t.n; j++)
				found |= t.v[j].hash == q.v[k].hash;
			assert_true(found);
		}
	}
}

static void a_single_han_character_finds_a_longer_run(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_query_terms q;
	struct hs_terms t;

	(void)state;
	hs_words_query(pool, "猫", NULL, &q);
	hs_words_terms(pool, "黒猫です", NULL, &t);
	assert_int_equal(q.n, 1);
	assert_true(has_term(&t, q.v[0].text, 1));
}

static void stop_words_ask_for_nothing(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_query_terms q;
	char *many = hs_pool_alloc(pool, 60001);
	size_t at = 0;

	(void)state;
	hs_words_query(pool, "What did they say, and WHY don’t you?", NULL, &q);
	assert_int_equal(q.n, 1);
	assert_string_equal(q.v[0].text, "say");
	assert_true(hs_word_is_stop("a", 1));
	assert_true(hs_word_is_stop("yourselves", 10));
	assert_true(hs_word_is_stop("their", 5));
	assert_false(hs_word_is_stop("", 0));
	assert_false(hs_word_is_stop("thei", 4));
	assert_false(hs_word_is_stop("zebra", 5));
	hs_words_query(pool, "die der das", "german", &q);
	assert_int_equal(q.n, 3);
	/* a hostile query stays cheap */
	for (int i = 0; i < 10000; i++)
		at += (size_t)sprintf(many + at, "%d ", 10000 + i);
	hs_words_query(pool, many, NULL, &q);
	assert_int_equal(q.n, 1024);
}

static void stems_know_languages(void **state)
{
	struct hs_stemmer *none = NULL;
	size_t n;

	(void)state;
	assert_true(hs_stem_known(NULL));
	assert_true(hs_stem_known("de"));
	assert_false(hs_stem_known("klingon"));
	assert_string_equal(hs_stem(none, "running", 7, &n), "running");
	assert_int_equal(n, 7);
}

static void lower_case_of_names(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	assert_string_equal(hs_lower(pool, "Blue HARBOR ÄÖ Ёж"), "blue harbor äö ёж");
	assert_string_equal(hs_lower(pool, "A\xff"), "a\xff");
	assert_string_equal(hs_lower(pool, NULL), "");
	assert_true(hs_starts_upper("Éva", 4));
	assert_false(hs_starts_upper("éva", 4));
	assert_false(hs_starts_upper("", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_split_and_folded),
		cmocka_unit_test(hostile_bytes_are_survived),
		cmocka_unit_test(terms_are_stemmed_counted_and_sorted),
		cmocka_unit_test(every_query_term_is_an_index_term),
		cmocka_unit_test(a_single_han_character_finds_a_longer_run),
		cmocka_unit_test(stop_words_ask_for_nothing),
		cmocka_unit_test(stems_know_languages),
		cmocka_unit_test(lower_case_of_names),
	};

	return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}
