#include "test.h"

#include <string.h>

#include "base/buf.h"
#include "base/pool.h"

static int order[3];
static int calls;

static void note(void *arg)
{
	order[calls++] = *(int *)arg;
}

static void deferred_calls_run_in_reverse(void **state)
{
	static int one = 1, two = 2, three = 3;
	struct hs_pool *pool = hs_pool_new();

	(void)state;
	hs_pool_defer(pool, note, &one);
	hs_pool_defer(pool, note, &two);
	hs_pool_defer(pool, note, &three);
	hs_pool_free(&pool);
	assert_null(pool);
	assert_int_equal(calls, 3);
	assert_int_equal(order[0], 3);
	assert_int_equal(order[2], 1);
}

static void memory_is_aligned_and_separate(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	char *last = NULL;

	(void)state;
	for (size_t n = 0; n < 3000; n += 7) {
		char *p = hs_pool_alloc(pool, n);

		assert_int_equal((uintptr_t)p % 16, 0);
		memset(p, 'x', n);
		if (last)
			assert_ptr_not_equal(last, p);
		last = p;
	}
	assert_string_equal(hs_pool_strndup(pool, "abc", 2), "ab");
	assert_null(hs_pool_strdup(pool, NULL));
}

static void a_buffer_stops_at_its_cap(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_buf *b = hs_buf_new(pool, 10);
	struct hs_err err = {0};

	(void)state;
	hs_buf_str(b, "12345");
	hs_buf_printf(b, "%s", "67890");
	assert_int_equal(hs_buf_ok(b, "text", &err), HS_OK);
	assert_string_equal(b->data, "1234567890");
	hs_buf_char(b, 'x');
	assert_int_equal(hs_buf_ok(b, "text", &err), HS_E_LIMIT);
	assert_string_equal(b->data, "1234567890");
	hs_buf_reset(b);
	assert_int_equal(hs_buf_ok(b, "text", &err), HS_OK);
	assert_string_equal(b->data, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deferred_calls_run_in_reverse),
		cmocka_unit_test(memory_is_aligned_and_separate),
		cmocka_unit_test(a_buffer_stops_at_its_cap),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
