/* Edits without a model, and how a document is shown to one. */
#include "test.h"

#include <string.h>

#include "base/buf.h"
#include "base/tokens.h"
#include "engine/delta_call.h"
#include "engine/extractive_delta.h"
#include "json/json.h"

struct edit_case {
	const char *doc, *window;
	struct hs_changed_text changed;
	const char *want;
};

static void edits_add_what_is_new_and_remove_what_has_changed(void **state)
{
	static const struct edit_case cases[] = {
		/* nothing new, dates apart from the statement */
		{"## Carol\n\n- 2026-01-01: Carol leads design.\n",
			"## Carol\n\n- 2026-02-02: Carol leads design.\n", {NULL, NULL},
			"## Carol\n\n- 2026-01-01: Carol leads design.\n"},
		/* the same heading */
		{"## Carol\n\n- Carol leads design.\n\n## Other\n\n- It rains.\n",
			"## Carol\n\n- Carol owns a bicycle.\n", {NULL, NULL},
			"## Carol\n\n- Carol leads design.\n\n- Carol owns a bicycle.\n\n## Other\n\n- It rains.\n"},
		/* a heading that the bullet names */
		{"## Carol\n\n- Carol leads design.\n", "## Bicycles\n\n- carol owns a bicycle.\n- Dave walks.\n",
			{NULL, NULL},
			"## Carol\n\n- Carol leads design.\n\n- carol owns a bicycle.\n\n## Bicycles\n\n- Dave walks.\n"},
		{"## Ann\n\n- x\n", "## Y\n\n- The annual report is late.\n- Ann's desk is empty.\n", {NULL, NULL},
			"## Ann\n\n- x\n\n- Ann's desk is empty.\n\n## Y\n\n- The annual report is late.\n"},
		/* changed: alone in its block, among others */
		{"## Carol\n\n- Carol leads design.\n\n- Carol walks.\n", "## Carol\n\n- Carol leads research.\n",
			{"Carol leads design.", "Carol leads research."},
			"## Carol\n\n- Carol walks.\n\n- Carol leads research.\n"},
		{"## Carol\n\n- Carol leads design.\n- Carol walks.\n", "## Carol\n\n- Carol leads research.\n",
			{"Carol leads design.", "Carol leads research."},
			"## Carol\n\n- Carol walks.\n\n- Carol leads research.\n"},
		/* a sentence of a longer text that still holds */
		{"## Carol\n\n- Carol walks.\n- Carol leads design.\n", "",
			{"Carol walks. Carol leads design.", "Carol walks. Carol leads research."},
			"## Carol\n\n- Carol walks.\n"},
		/* prose of a person is left alone */
		{"Carol leads design.\n", "", {"Carol leads design.", "Carol leads research."},
			"Carol leads design.\n"},
		/* no heading in the window */
		{"## A\n\nx\n\n## B\n\ny\n", "- Dave walks.\n", {NULL, NULL},
			"## A\n\nx\n\n## B\n\ny\n\n- Dave walks.\n"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_document doc, window;
		struct hs_delta_list list;
		struct hs_delta_result r;

		hs_document_split(pool, cases[i].doc, &doc);
		hs_document_split(pool, cases[i].window, &window);
		hs_delta_read_value(pool,
			hs_extractive_delta(pool, &doc, &window, &cases[i].changed,
				cases[i].changed.before != NULL),
			&list);
		assert_null(list.unreadable);
		assert_int_equal(list.malformed, 0);
		hs_delta_apply(pool, &doc, &list, NULL, &r);
		assert_int_equal(r.n_skipped, 0);
		assert_string_equal(hs_document_render(pool, &r.doc), cases[i].want);
	}
}

static void test_models_case_72_every_id_is_shown(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_buf *text = hs_buf_new(pool, 1 << 20);
	struct hs_document doc;
	struct hs_strs hidden;
	const char *shown;

	(void)state;
	for (int i = 0; i < 40; i++)
		hs_buf_printf(text, "## S%d\n\nBlock %d, words and words and \"words\".\n\n", i, i);
	hs_document_split(pool, text->data, &doc);
	shown = hs_delta_shown(pool, &doc, 100000, &hidden);
	assert_int_equal(hidden.n, 0);
	for (size_t budget = hs_tokens(shown); budget > 1200; budget -= 7) {
		const char *part = hs_delta_shown(pool, &doc, budget, &hidden);

		assert_true(hs_tokens(part) <= budget || hidden.n == doc.n);
		for (size_t i = 0; i < doc.n; i++) {
			const char *id = doc.sections[i].blocks[0].id;

			assert_non_null(strstr(part, id));
			assert_int_equal(hs_strs_has(&hidden, id), i >= doc.n - hidden.n);
			assert_int_equal(strstr(part, hs_pool_printf(pool, "Block %zu,", i)) == NULL,
				i >= doc.n - hidden.n);
		}
	}
	/* a share that is too small for the ids alone hides all texts and no id */
	shown = hs_delta_shown(pool, &doc, 10, &hidden);
	assert_int_equal(hidden.n, doc.n);
	assert_non_null(strstr(shown, doc.sections[39].id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edits_add_what_is_new_and_remove_what_has_changed),
		cmocka_unit_test(test_models_case_72_every_id_is_shown),
	};

	return cmocka_run_group_tests_name("extractive_delta", tests, NULL, NULL);
}
