#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/pool.h"
#include "base/str.h"
#include "base/tokens.h"

struct bound_case {
	const char *text;
	size_t least, most;
};

static void counts_lie_within_bounds(void **state)
{
	static const struct bound_case cases[] = {
		{NULL, 0, 0},
		{"", 0, 0},
		{"a", 1, 1},
		{" ", 1, 1},
		{"Hello world", 2, 2},
		{"The quick brown fox jumps over the lazy dog.", 9, 11},
		{"It's what we don't know that they'll ask about.", 9, 12},
		{"Ana moved to Lisbon on 7 May 2023 and works as a nurse there.", 15, 19},
		{"1234567890", 4, 4},
		{"{\"id\": 17, \"tags\": [\"a\", \"b\"]}", 12, 22},
		{"Wir haben die Besprechung auf Donnerstag verschoben.", 7, 15},
		{"私は昨日東京に行きました。", 7, 15},
		{"我昨天去了北京。", 5, 10},
		{"Мы перенесли встречу на четверг.", 6, 12},
		{"🎉🎉", 2, 6},
		{"\xff\xfe", 1, 3},
		{"<|endoftext|>", 4, 9},
		{"a\n\n\n\nb", 3, 3},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		size_t got = hs_tokens(cases[i].text);

		if (got < cases[i].least || got > cases[i].most)
			print_message("case %zu: %zu\n", i, got);
		assert_in_range(got, cases[i].least, cases[i].most);
	}
}

static size_t random_text(char *out, size_t max)
{
	static const char *const parts[] = {
		"word", "a", "Z", " ", "  ", "\n", "'", ".", "/", "12", "東", "é", "я", "🎉", "\xe2\x80\x8d",
		"\xff", "supercalifragilistic", "\t", "€", "한",
	};
	size_t n = 0;

	for (int k = rand() % 60; k > 0; k--) {
		const char *p = parts[(size_t)rand() % HS_COUNT(parts)];

		if (n + strlen(p) > max)
			break;
		memcpy(out + n, p, strlen(p));
		n += strlen(p);
	}
	return n;
}

static void more_text_never_has_fewer_tokens(void **state)
{
	char text[1200];

	(void)state;
	srand(7);
	for (int run = 0; run < 500; run++) {
		size_t n = random_text(text, sizeof(text)), before = 0;

		for (size_t k = 0; k <= n; k++) {
			size_t now;

			if (k < n && ((unsigned char)text[k] & 0xc0) == 0x80)
				continue;
			now = hs_tokens_n(text, k);
			assert_true(now >= before);
			before = now;
		}
	}
}

static void a_cut_fits_and_is_the_longest(void **state)
{
	char text[1200];

	(void)state;
	srand(9);
	for (int run = 0; run < 500; run++) {
		size_t n = random_text(text, sizeof(text)), max = (size_t)rand() % 40;
		size_t cut = hs_tokens_fit(text, n, max), next = cut + 1;

		assert_true(cut <= n);
		assert_true(hs_tokens_n(text, cut) <= max);
		if (cut == n)
			continue;
		assert_true(cut == 0 || ((unsigned char)text[cut] & 0xc0) != 0x80 ||
			!hs_utf8_valid(text, n));
		while (next < n && ((unsigned char)text[next] & 0xc0) == 0x80)
			next++;
		if (max > 0)
			assert_true(hs_tokens_n(text, next) > max);
	}
}

static void a_cut_ends_at_a_character(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t max = 0; max < 30; max++) {
		const char *cut = hs_tokens_cut(pool, "東京都に住んでいる猫が好きです", max);

		assert_true(hs_utf8_valid(cut, strlen(cut)));
	}
	assert_string_equal(hs_tokens_cut(pool, "one two", 0), "");
	assert_string_equal(hs_tokens_cut(pool, "one two", 9), "one two");
	assert_string_equal(hs_tokens_cut(pool, NULL, 9), "");
}

struct kind_sum {
	char kind[32];
	double exact, ours;
};

static struct kind_sum *sum_of(struct kind_sum *sums, size_t *n, const char *kind)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp(sums[i].kind, kind) == 0)
			return &sums[i];
	assert_true(*n < 64);
	snprintf(sums[*n].kind, sizeof(sums[0].kind), "%s", kind);
	return &sums[(*n)++];
}

/* Exact counts of real texts; the file is no part of the source. */
static void test_exact_counts_are_met(void **state)
{
	static const char *const scripts[] = {
		"spanish", "german", "french", "russian", "arabic", "hindi", "chinese", "japanese",
		"korean", "chat", "long", "json",
	};
	const char *path = getenv("HS_TOKEN_COUNTS");
	struct kind_sum sums[64] = {0};
	size_t n_kinds = 0, n_long = 0, i;
	double error = 0;
	json_t *rows, *row;

	(void)state;
	if (!path || !*path)
		skip();
	rows = json_load_file(path, 0, NULL);
	assert_non_null(rows);
	json_array_foreach(rows, i, row) {
		const char *text = json_string_value(json_object_get(row, "text"));
		double exact = (double)json_integer_value(json_object_get(row, "o200k_base"));
		double ours = (double)hs_tokens(text);
		struct kind_sum *sum =
			sum_of(sums, &n_kinds, json_string_value(json_object_get(row, "kind")));

		sum->exact += exact;
		sum->ours += ours;
		if (exact > 200) {
			n_long++;
			error += fabs(ours / exact - 1);
			assert_true(ours >= 0.85 * exact);
		}
	}
	json_decref(rows);
	assert_true(n_long > 0);
	assert_true(error / (double)n_long <= 0.10);
	for (i = 0; i < HS_COUNT(scripts); i++) {
		const struct kind_sum *sum = sum_of(sums, &n_kinds, scripts[i]);

		assert_true(sum->exact > 0);
		assert_true(fabs(sum->ours / sum->exact - 1) <= 0.25);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_lie_within_bounds),
		cmocka_unit_test(more_text_never_has_fewer_tokens),
		cmocka_unit_test(a_cut_fits_and_is_the_longest),
		cmocka_unit_test(a_cut_ends_at_a_character),
		cmocka_unit_test(test_exact_counts_are_met),
	};

	return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
