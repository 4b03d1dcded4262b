/* Unified diffs of lines. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/diff.h"

#define HEAD "--- current\n+++ preview\n"

struct diff_case {
	const char *a, *b, *want;
};

static void small_texts(void **state)
{
	static const struct diff_case cases[] = {
		{"", "", ""},
		{"a", "a\n", ""},
		{"a\nb\n", "a\nb\n", ""},
		{"", "a\n", HEAD "@@ -0,0 +1 @@\n+a"},
		{"a", "", HEAD "@@ -1 +0,0 @@\n-a"},
		{"a", "b\n", HEAD "@@ -1 +1 @@\n-a\n+b"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\nX\n6\n7\n8\n9",
			HEAD "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8"},
		{"x\n1\n2\n3\n4\n5\n6\ny", "1\n2\n3\n4\n5\n6",
			HEAD "@@ -1,8 +1,6 @@\n-x\n 1\n 2\n 3\n 4\n 5\n 6\n-y"},
		{"x\n1\n2\n3\n4\n5\n6\n7\ny", "1\n2\n3\n4\n5\n6\n7",
			HEAD "@@ -1,4 +1,3 @@\n-x\n 1\n 2\n 3\n@@ -6,4 +5,3 @@\n 5\n 6\n 7\n-y"},
		{"a\n\nb", "a\nb", HEAD "@@ -1,3 +1,2 @@\n a\n-\n b"},
		{"a\nb\nc\na\nb\nb\na", "c\nb\na\nb\na\nc",
			HEAD "@@ -1,7 +1,6 @@\n-a\n-b\n c\n+b\n a\n b\n-b\n a\n+c"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

		assert_string_equal(
			hs_diff_unified(pool, cases[i].a, cases[i].b), cases[i].want);
	}
}

/* Apply a diff to the lines of a; the result must be b. */
static const char *patch(struct hs_pool *pool, const char *a, const char *diff)
{
	struct hs_buf *out = hs_buf_new(pool, 1 << 26);
	size_t line = 1;

	diff = strstr(diff, "\n@@");
	while (diff) {
		size_t from, n = 1;
		const char *p = diff + strlen("\n@@ -");

		from = strtoul(p, (char **)&p, 10);
		if (*p == ',')
			n = strtoul(p + 1, NULL, 10);
		from += n == 0; /* "after this line" */
		for (; line < from; line++) {
			size_t len = strcspn(a, "\n");

			hs_buf_add(out, a, len);
			hs_buf_char(out, '\n');
			a += len + (a[len] == '\n');
		}
		for (p = strchr(diff + 1, '\n'); p && p[1] != '@'; p = strchr(p + 1, '\n')) {
			size_t len = strcspn(p + 2, "\n");

			if (p[1] != '-') {
				hs_buf_add(out, p + 2, len);
				hs_buf_char(out, '\n');
			}
			if (p[1] != '+') {
				assert_memory_equal(a, p + 2, len);
				a += strcspn(a, "\n");
				a += *a == '\n';
				line++;
			}
		}
		diff = p;
	}
	hs_buf_str(out, a);
	return out->data;
}

static unsigned long seed = 7;
static unsigned next(unsigned n)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (unsigned)(seed >> 33) % n;
}

static void random_texts_can_be_patched(void **state)
{
	(void)state;
	for (int round = 0; round < 3000; round++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_buf *a = hs_buf_new(pool, 1 << 20), *b = hs_buf_new(pool, 1 << 20);
		unsigned n = next(40), letters = 1 + next(8);

		for (unsigned i = 0; i < n; i++) {
			char c = (char)('a' + next(letters));

			if (next(6))
				hs_buf_printf(a, "%c\n", c);
			if (next(6))
				hs_buf_printf(b, "%c\n", next(6) ? c : 'z');
		}
		const char *diff = hs_diff_unified(pool, a->data, b->data);

		assert_string_equal(*diff ? patch(pool, a->data, diff) : a->data, b->data);
		assert_true(*diff == '\0' || diff[strlen(diff) - 1] != '\n' || strstr(diff, "\n-") ||
			    strstr(diff, "\n+"));
	}
}

static void large_texts_have_an_end(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_buf *a = hs_buf_new(pool, 1 << 26), *b = hs_buf_new(pool, 1 << 26);

	(void)state;
	for (int i = 0; i < 30000; i++) {
		hs_buf_printf(a, "a%d\n", i);
		hs_buf_printf(b, "%c%d\n", i % 10 ? 'a' : 'b', i);
	}
	assert_string_equal(patch(pool, a->data, hs_diff_unified(pool, a->data, b->data)), b->data);
	for (int i = 0; i < 200000; i++)
		hs_buf_printf(b, "b%d\n", i);
	assert_string_equal(patch(pool, a->data, hs_diff_unified(pool, a->data, b->data)), b->data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_texts),
		cmocka_unit_test(random_texts_can_be_patched),
		cmocka_unit_test(large_texts_have_an_end),
	};

	return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
