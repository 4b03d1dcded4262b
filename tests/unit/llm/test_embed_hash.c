#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llm/embed_hash.h"

static double cosine(const char *a, const char *b)
{
	float x[HS_EMBED_HASH_DIM], y[HS_EMBED_HASH_DIM];
	double sum = 0;

	hs_embed_hash(a, x);
	hs_embed_hash(b, y);
	for (size_t i = 0; i < HS_EMBED_HASH_DIM; i++)
		sum += (double)x[i] * (double)y[i];
	return sum;
}

static void vectors_have_length_one(void **state)
{
	static const char *const texts[] = {
		"Ana lives in Lisbon.", "東京都に住んでいます", "x", "3.14", "Привет мир", ("a\xff" "b"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_true(fabs(cosine(texts[i], texts[i]) - 1.0) < 1e-5);
	}
}

static void texts_without_words_are_zero(void **state)
{
	(void)state;
	assert_true(cosine("…!?", "…!?") == 0.0);
	assert_true(cosine("", "Ana") == 0.0);
	assert_true(cosine(NULL, NULL) == 0.0);
	assert_true(cosine("the of and", "the of and") == 0.0);
}

static void forms_and_spellings_come_near(void **state)
{
	(void)state;
	assert_true(cosine("The Runner runs", "runners running") > 0.5);
	assert_true(cosine("CAROLINE", "caroline!") > 0.999);
	assert_true(cosine("pottery workshop", "potery workshop") > 0.5);
	assert_true(cosine("Donaudampfschifffahrt", "Dampfschiff") > 0.15);
	assert_true(fabs(cosine("pottery workshop on Friday", "quantum tunnelling diode")) < 0.25);
}

/* The first values of one vector: stored vectors must stay comparable over releases. */
static void the_vector_never_changes(void **state)
{
	float v[HS_EMBED_HASH_DIM];
	size_t set = 0;
	double weighted = 0;

	(void)state;
	hs_embed_hash("Melanie painted a lake sunrise last year", v);
	for (size_t i = 0; i < HS_EMBED_HASH_DIM; i++) {
		set += v[i] != 0.0f;
		weighted += (double)i * (double)v[i];
	}
	assert_int_equal(set, 119);
	assert_true(fabs(weighted - (183.528038)) < 1e-3);
}

static void huge_texts_are_bounded(void **state)
{
	size_t n = 4u << 20;
	char *text = malloc(n + 1);
	float v[HS_EMBED_HASH_DIM];

	(void)state;
	for (size_t i = 0; i < n; i++)
		text[i] = i % 9 == 8 ? ' ' : (char)('a' + (i * 7 + i / 9) % 26);
	text[n] = '\0';
	hs_embed_hash(text, v);
	memset(text, 'x', n);
	hs_embed_hash(text, v);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_have_length_one),
		cmocka_unit_test(texts_without_words_are_zero),
		cmocka_unit_test(forms_and_spellings_come_near),
		cmocka_unit_test(the_vector_never_changes),
		cmocka_unit_test(huge_texts_are_bounded),
	};

	return cmocka_run_group_tests_name("embed_hash", tests, NULL, NULL);
}
