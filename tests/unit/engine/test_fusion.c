#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "engine/fusion.h"

static int setup(void **state)
{
	*state = hs_pool_new();
	return 0;
}

static int teardown(void **state)
{
	struct hs_pool *pool = *state;

	hs_pool_free(&pool);
	return 0;
}

static struct hs_arm_hit near_hits[] = {{1, 0.9}, {2, 0.6}, {3, 0.3}};
static struct hs_arm_hit word_hits[] = {{3, 8.0}, {4, 4.0}};

static const struct hs_arm_list none;

static void assert_order(const struct hs_fused *f, size_t n, const int64_t *want, size_t n_want)
{
	assert_int_equal(n, n_want);
	for (size_t i = 0; i < n; i++)
		if (f[i].unit_no != want[i])
			fail_msg("place %zu: unit %lld, want %lld", i, (long long)f[i].unit_no,
				(long long)want[i]);
}

static void scores_are_stretched_and_weighted(void **state)
{
	const struct hs_arm_list arms[HS_ARM__MAX] = {{near_hits, 3}, {word_hits, 2}};
	size_t n;
	struct hs_fused *f = hs_fuse(*state, HS_FUSE_SCORES, arms, &none, 0.4, &n);

	/* 1: 0.4 x 1; 2: 0.4 x 0.5; 3: 0.4 x 0 + 0.6 x 1; 4: 0.6 x 0.5 */
	assert_order(f, n, (const int64_t[]){3, 1, 4, 2}, 4);
	assert_float_equal(f[0].score, 0.6, 1e-9);
	assert_float_equal(f[1].score, 0.4, 1e-9);
	assert_float_equal(f[2].score, 0.3, 1e-9);
	assert_float_equal(f[3].score, 0.2, 1e-9);
	assert_true(isnan(f[1].arm[HS_ARM_KEYWORD]));
	assert_float_equal(f[0].arm[HS_ARM_KEYWORD], 8.0, 0);
	assert_float_equal(f[0].arm[HS_ARM_SEMANTIC], 0.3, 0);
}

static void without_keyword_hits_the_cosine_stands_alone(void **state)
{
	const struct hs_arm_list arms[HS_ARM__MAX] = {{near_hits, 3}, {NULL, 0}};
	size_t n;
	struct hs_fused *f = hs_fuse(*state, HS_FUSE_SCORES, arms, &none, 0.1, &n);

	assert_order(f, n, (const int64_t[]){1, 2, 3}, 3);
	assert_float_equal(f[0].score, 1.0, 1e-9);
}

static void one_candidate_counts_full(void **state)
{
	const struct hs_arm_list arms[HS_ARM__MAX] = {{near_hits + 1, 1}, {word_hits, 2}};
	size_t n;
	struct hs_fused *f = hs_fuse(*state, HS_FUSE_SCORES, arms, &none, 0.5, &n);

	/* equal scores keep the order first seen: the semantic arm's hit stands first */
	assert_order(f, n, (const int64_t[]){2, 3, 4}, 3);
	assert_float_equal(f[0].score, 0.5, 1e-9);
}

static void cosines_below_the_floor_rank_but_are_not_shown(void **state)
{
	const struct hs_arm_list arms[HS_ARM__MAX] = {{near_hits, 2}, {word_hits, 2}};
	struct hs_arm_hit low[] = {{3, 0.1}, {4, 0.3}};
	const struct hs_arm_list below = {low, 2};
	size_t n;
	struct hs_fused *f = hs_fuse(*state, HS_FUSE_SCORES, arms, &below, 0.5, &n);

	/* 1: 0.5 x 1; 2: 0.5 x 0.625; 3: 0.5 x 1 + 0.5 x 0; 4: 0.5 x 0.5 + 0.5 x 0.25 */
	assert_order(f, n, (const int64_t[]){1, 3, 4, 2}, 4);
	assert_float_equal(f[2].score, 0.375, 1e-9);
	assert_float_equal(f[3].score, 0.3125, 1e-9);
	assert_true(isnan(f[2].arm[HS_ARM_SEMANTIC]));
}

static void rrf_adds_reciprocal_ranks(void **state)
{
	const struct hs_arm_list arms[HS_ARM__MAX] = {{near_hits, 3}, {word_hits, 2}};
	size_t n;
	struct hs_fused *f = hs_fuse(*state, HS_FUSE_RRF, arms, &none, 0.5, &n);

	assert_order(f, n, (const int64_t[]){3, 1, 2, 4}, 4);
	assert_float_equal(f[0].score, 1.0 / 63 + 1.0 / 61, 1e-12);
	assert_float_equal(f[1].score, 1.0 / 61, 1e-12);
}

static void round_robin_takes_turns(void **state)
{
	const struct hs_arm_list arms[HS_ARM__MAX] = {{near_hits, 3}, {word_hits, 2}};
	size_t n;
	struct hs_fused *f = hs_fuse(*state, HS_FUSE_ROUND_ROBIN, arms, &none, 0.5, &n);

	assert_order(f, n, (const int64_t[]){1, 3, 2, 4}, 4);
	assert_float_equal(f[0].score, 1.0, 0);
}

static void nothing_gives_nothing(void **state)
{
	const struct hs_arm_list arms[HS_ARM__MAX] = {{NULL, 0}, {NULL, 0}};
	size_t n = 1;

	for (int how = HS_FUSE_SCORES; how <= HS_FUSE_ROUND_ROBIN; how++) {
		(void)hs_fuse(*state, (enum hs_fusion)how, arms, &none, 0.5, &n);
		assert_int_equal(n, 0);
	}
}

static void the_best_of_a_stream_are_those_of_a_sort(void **state)
{
	unsigned seed = 3;

	for (size_t k = 0; k < 20; k++) {
		struct hs_best b = hs_best_new(*state, k);
		struct hs_arm_list all;
		struct hs_best whole = hs_best_new(*state, 500);

		for (int64_t i = 1; i <= 500; i++) {
			double score = rand_r(&seed) % 40;

			hs_best_offer(&b, i, score);
			hs_best_offer(&whole, i, score);
		}
		hs_best_sort(&b);
		all = hs_best_join(*state, &whole, 1);
		assert_int_equal(b.n, k);
		for (size_t i = 0; i < k; i++) {
			assert_int_equal(b.v[i].unit_no, all.v[i].unit_no);
			assert_float_equal(b.v[i].score, all.v[i].score, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(scores_are_stretched_and_weighted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			without_keyword_hits_the_cosine_stands_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(one_candidate_counts_full, setup, teardown),
		cmocka_unit_test_setup_teardown(
			cosines_below_the_floor_rank_but_are_not_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(rrf_adds_reciprocal_ranks, setup, teardown),
		cmocka_unit_test_setup_teardown(round_robin_takes_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_gives_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_best_of_a_stream_are_those_of_a_sort, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
