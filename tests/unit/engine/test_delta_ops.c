/* Edit operations: what a reply may look like, what is skipped and why, what stays as it was. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "engine/delta_ops.h"
#include "json/json.h"

static struct hs_delta_list read_list(struct hs_pool *pool, const char *text)
{
	struct hs_delta_list list;

	hs_delta_read(pool, text, true, &list);
	return list;
}

static struct hs_document split(struct hs_pool *pool, const char *markdown)
{
	struct hs_document d;

	hs_document_split(pool, markdown, &d);
	return d;
}

static struct hs_delta_result apply(
	struct hs_pool *pool, const struct hs_document *doc, const char *ops)
{
	struct hs_delta_list list = read_list(pool, ops);
	struct hs_delta_result r;

	assert_null(list.unreadable);
	hs_delta_apply(pool, doc, &list, NULL, &r);
	return r;
}

static const char *text_of(struct hs_pool *pool, json_t *v)
{
	return hs_json_text(pool, v);
}

/* ---- reading ---- */

#define OP "{\"op\":\"append_block\",\"section_id\":\"s\",\"text\":\"t\"}"

struct reading_case {
	const char *text;
	long n;   /* operations; -1 = unreadable */
	size_t malformed;
};

static void test_models_case_46_forms_of_a_reply(void **state)
{
	static const struct reading_case cases[] = {
		{"{\"operations\":[" OP "]}", 1, 0},
		{"{\"operations\":[" OP "],\"note\":\"x\"}", 1, 0},
		{"{\"operations\":[" OP "]}]}", 1, 0},
		{"[" OP "," OP "]", 2, 0},
		{"{\"operations\":[]}", 0, 0},
		{"[]", 0, 0},
		{"```json\n{\"operations\":[" OP "]}\n```", 1, 0},
		{"```\n[" OP "]\n```", 1, 0},
		{"Here are [some] edits:\n{\"operations\":[" OP "]}\nDone {really}.", 1, 0},
		{"{\"operations\":[" OP ",]}", 1, 0},
		{"{\"operations\":[{\"op\":\"append_block\",\"section_id\":\"s\",\"text\":\"a\nb\"}]}", 1, 0},
		{"{\"operations\":\x01[" OP "]}", 1, 0},
		{"{\"operations\":[7]}", 1, 1},
		{"{\"operations\":[" OP ",{\"op\":\"append_block\",\"section_id\":\"s\",\"block\":\"t\"}]}", 2, 1},
		{"[\"x\"]", 1, 1},
		{"", -1, 0},
		{"  \n", -1, 0},
		{"{}", -1, 0},
		{"null", -1, 0},
		{"{\"operations\":{}}", -1, 0},
		{"{\"operations\":null}", -1, 0},
		{"nothing to change", -1, 0},
		{"{\"ops\":[" OP "]}", -1, 0},
		{"[", -1, 0},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_delta_list list = read_list(pool, cases[i].text);
		long n = list.unreadable ? -1 : (long)list.n;

		if (n != cases[i].n || list.malformed != cases[i].malformed)
			print_message("case %zu: %s\n", i, cases[i].text);
		assert_int_equal(n, cases[i].n);
		assert_int_equal(list.malformed, cases[i].malformed);
	}
}

static void test_models_case_46_a_raw_line_break_stays(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_delta_list list = read_list(pool,
		"{\"operations\":[{\"op\":\"append_block\",\"section_id\":\"s\",\"text\":\"a\n\tb\"}]}");

	(void)state;
	assert_string_equal(list.v[0].text, "a\n\tb");
}

static void almost_json_is_mended_only_when_it_is_complete(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_delta_list list;

	(void)state;
	hs_delta_read(pool, "{\"operations\":[" OP ",]}", false, &list);
	assert_string_equal(list.unreadable, "the reply is not valid JSON");
}

static void too_many_operations_are_refused(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_buf *b = hs_buf_new(pool, 1 << 22);

	(void)state;
	hs_buf_char(b, '[');
	for (int i = 0; i <= HS_DELTA_OPS; i++)
		hs_buf_printf(b, "%s" OP, i ? "," : "");
	hs_buf_char(b, ']');
	assert_non_null(read_list(pool, b->data).unreadable);
}

struct fault_case {
	const char *op, *fault; /* NULL = well formed */
};

static void shapes_are_strict(void **state)
{
	static const struct fault_case cases[] = {
		{OP, NULL},
		{"{\"op\":\"add_section\",\"heading\":\"H\"}", NULL},
		{"{\"op\":\"add_section\",\"heading\":\"H\",\"level\":6,\"blocks\":[{\"text\":\"x\"},{\"id\":\"b\",\"text\":\"y\"},\"z\"],"
		 "\"after_section_id\":null,\"new_id\":null}", NULL},
		{"{\"op\":\"insert_block\",\"section_id\":\"s\",\"text\":\"t\",\"after_block_id\":null}", NULL},
		{"{\"op\":\"replace_section_blocks\",\"section_id\":\"s\"}", NULL},
		{"{\"section_id\":\"s\"}", "\"op\" is missing or no string"},
		{"{\"op\":7}", "\"op\" is missing or no string"},
		{"{\"op\":\"move_block\"}", "unknown op \"move_block\""},
		{"[]", "an operation must be an object"},
		{"null", "an operation must be an object"},
		{"{\"op\":\"append_block\",\"text\":\"t\"}", "append_block: \"section_id\" is missing"},
		{"{\"op\":\"append_block\",\"section_id\":\"s\",\"text\":null}", "append_block: \"text\" must be a string"},
		{"{\"op\":\"append_block\",\"section_id\":1,\"text\":\"t\"}", "append_block: \"section_id\" must be a string"},
		{"{\"op\":\"remove_block\",\"section_id\":\"s\",\"block_id\":\"b\",\"text\":null}",
		 "remove_block: unknown field \"text\""},
		{"{\"op\":\"add_section\",\"heading\":\"H\",\"level\":0}",
		 "add_section: \"level\" must be a whole number from 1 to 6"},
		{"{\"op\":\"add_section\",\"heading\":\"H\",\"level\":\"2\"}",
		 "add_section: \"level\" must be a whole number from 1 to 6"},
		{"{\"op\":\"add_section\",\"heading\":\"H\",\"level\":null}",
		 "add_section: \"level\" must be a whole number from 1 to 6"},
		{"{\"op\":\"add_section\",\"heading\":\"H\",\"blocks\":[\"x\",{\"text\":1}]}", "blocks[1] must be a string"},
		{"{\"op\":\"add_section\",\"heading\":\"H\",\"blocks\":[{\"text\":\"x\",\"y\":1}]}", "blocks[0] must be a string"},
		{"{\"op\":\"add_section\",\"heading\":\"H\",\"blocks\":null}",
		 "add_section: \"blocks\" must be an array of strings"},
		{"{\"op\":\"rename_section\",\"section_id\":\"s\",\"heading\":\"H\"}",
		 "rename_section: \"new_heading\" is missing"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_delta_list list =
			read_list(pool, hs_pool_printf(pool, "{\"operations\":[%s]}", cases[i].op));

		assert_int_equal(list.n, 1);
		if (cases[i].fault)
			assert_string_equal(list.v[0].fault, cases[i].fault);
		else
			assert_null(list.v[0].fault);
	}
}

/* ---- applying ---- */

#define RULES "## Rules\n\nalpha\n\nbeta\n\n## Team\n\ngamma\n"
#define ALPHA "bbe76331b" /* "b" and eight digits of the SHA-1 of alpha */

static const char *block_id(const struct hs_document *d, size_t section, size_t block)
{
	return d->sections[section].blocks[block].id;
}

/* The document after one list; %1, %2, %3 stand for the ids of alpha, beta, gamma. */
static struct hs_delta_result edit(struct hs_pool *pool, const char *ops)
{
	static struct hs_document d;

	d = split(pool, RULES);
	ops = hs_str_replace(pool, ops, "%1", block_id(&d, 0, 0));
	ops = hs_str_replace(pool, ops, "%2", block_id(&d, 0, 1));
	ops = hs_str_replace(pool, ops, "%3", block_id(&d, 1, 0));
	ops = hs_str_replace(pool, ops, "'", "\"");
	return apply(pool, &d, ops);
}

struct effect_case {
	const char *ops, *want;
};

static void each_operation_has_its_effect(void **state)
{
	static const struct effect_case cases[] = {
		{"[]", RULES},
		{"[{'op':'append_block','section_id':'rules','text':'\\n \\n  new  \\n\\n'}]",
		 "## Rules\n\nalpha\n\nbeta\n\n  new  \n\n## Team\n\ngamma\n"},
		{"[{'op':'insert_block','section_id':'rules','text':'new'}]",
		 "## Rules\n\nnew\n\nalpha\n\nbeta\n\n## Team\n\ngamma\n"},
		{"[{'op':'insert_block','section_id':'rules','after_block_id':'%1','text':'new'}]",
		 "## Rules\n\nalpha\n\nnew\n\nbeta\n\n## Team\n\ngamma\n"},
		{"[{'op':'replace_block','section_id':'rules','block_id':'%2','text':'new'}]",
		 "## Rules\n\nalpha\n\nnew\n\n## Team\n\ngamma\n"},
		{"[{'op':'remove_block','section_id':'team','block_id':'%3'}]", "## Rules\n\nalpha\n\nbeta\n\n## Team\n"},
		{"[{'op':'add_section','heading':'# Last','level':3,'blocks':['x',' ','y']}]",
		 RULES "\n### Last\n\nx\n\ny\n"},
		{"[{'op':'add_section','heading':'Mid','after_section_id':'rules'}]",
		 "## Rules\n\nalpha\n\nbeta\n\n## Mid\n\n## Team\n\ngamma\n"},
		{"[{'op':'remove_section','section_id':'rules'}]", "## Team\n\ngamma\n"},
		{"[{'op':'replace_section_blocks','section_id':'rules','blocks':['x','']}]",
		 "## Rules\n\nx\n\n## Team\n\ngamma\n"},
		{"[{'op':'replace_section_blocks','section_id':'rules'}]", "## Rules\n\n## Team\n\ngamma\n"},
		{"[{'op':'rename_section','section_id':'rules','new_heading':'Laws'}]",
		 "## Laws\n\nalpha\n\nbeta\n\n## Team\n\ngamma\n"},
		{"[{'op':'remove_section','section_id':'rules'},{'op':'remove_section','section_id':'team'}]", ""},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_delta_result r = edit(pool, cases[i].ops);

		assert_int_equal(r.n_skipped, 0);
		assert_string_equal(hs_document_render(pool, &r.doc), cases[i].want);
	}
}

static void test_models_case_43_wrong_targets_are_skipped(void **state)
{
	static const struct effect_case cases[] = {
		{"[{'op':'append_block','section_id':'Rules','text':'x'}]", "unknown section_id: Rules"},
		{"[{'op':'append_block','section_id':'none','text':' '}]", "unknown section_id: none"},
		{"[{'op':'append_block','section_id':'rules','text':' \\n'}]", "block text is empty"},
		{"[{'op':'insert_block','section_id':'rules','after_block_id':'b0','text':''}]", "block text is empty"},
		{"[{'op':'insert_block','section_id':'rules','after_block_id':'b0','text':'x'}]", "unknown block_id: b0"},
		{"[{'op':'replace_block','section_id':'team','block_id':'%1','text':'x'}]",
		 "block_id " ALPHA " belongs to section rules, not team"},
		{"[{'op':'remove_block','section_id':'team','block_id':'%1'}]",
		 "block_id " ALPHA " belongs to section rules, not team"},
		{"[{'op':'remove_section','section_id':''}]", "unknown section_id: "},
		{"[{'op':'rename_section','section_id':'x','new_heading':'y'}]", "unknown section_id: x"},
		{"[{'op':'add_section','heading':'H','after_section_id':'nowhere'}]", "unknown after_section_id: nowhere"},
		{"[{'op':'shuffle','section_id':'rules'}]", "unknown op \"shuffle\""},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_delta_result r = edit(pool, cases[i].ops);

		assert_int_equal(r.n_applied, 0);
		assert_int_equal(r.n_skipped, 1);
		assert_string_equal(
			hs_json_str(json_array_get(r.skipped, 0), "reason"), cases[i].want);
		assert_string_equal(hs_document_render(pool, &r.doc), RULES);
	}
}

static void test_models_case_43_a_section_goes_after_a_heading(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_document d = split(pool, "## \xe6\xa6\x82\xe8\xa6\x81\n\na\n\n## My Rules\n\nb\n\n## End\n\nc\n");
	struct hs_delta_result r = apply(pool, &d,
		"[{\"op\":\"add_section\",\"heading\":\"X\",\"after_section_id\":\"\xe6\xa6\x82\xe8\xa6\x81\"},"
		"{\"op\":\"add_section\",\"heading\":\"Y\",\"after_section_id\":\"My Rules\"},"
		"{\"op\":\"add_section\",\"heading\":\"Z\",\"new_id\":\"zed\",\"after_section_id\":\"Y\"},"
		"{\"op\":\"add_section\",\"heading\":\"Z\",\"new_id\":\"zed\",\"after_section_id\":\"zed\"}]");

	(void)state;
	assert_int_equal(r.n_applied, 4);
	assert_string_equal(hs_document_render(pool, &r.doc),
		"## \xe6\xa6\x82\xe8\xa6\x81\n\na\n\n## X\n\n## My Rules\n\nb\n\n## Y\n\n## Z\n\n## Z\n\n## End\n\nc\n");
	assert_string_equal(hs_json_str(json_array_get(r.applied, 2), "assigned_id"), "zed");
	assert_string_equal(hs_json_str(json_array_get(r.applied, 3), "assigned_id"), "zed-2");
}

#define TABLE "| a | b |\n|---|:-:|\n| 1 | 2 |"

static void test_models_case_44_rows_join_their_table(void **state)
{
	static const struct effect_case cases[] = {
		/* after the table */
		{"[{'op':'append_block','section_id':'t','text':'| 3 | 4 |\\n | 5 | 6 |'}]",
		 "## T\n\nprose\n\n" TABLE "\n| 3 | 4 |\n | 5 | 6 |\n"},
		/* after prose */
		{"[{'op':'insert_block','section_id':'t','after_block_id':'%p','text':'| 3 | 4 |'}]",
		 "## T\n\nprose\n\n| 3 | 4 |\n\n" TABLE "\n"},
		/* at the start */
		{"[{'op':'insert_block','section_id':'t','text':'| 3 | 4 |'}]",
		 "## T\n\n| 3 | 4 |\n\nprose\n\n" TABLE "\n"},
		/* with its own separator */
		{"[{'op':'append_block','section_id':'t','text':'| c |\\n| --- |\\n| 3 |'}]",
		 "## T\n\nprose\n\n" TABLE "\n\n| c |\n| --- |\n| 3 |\n"},
		/* not rows only */
		{"[{'op':'append_block','section_id':'t','text':'| 3 |\\ntext'}]",
		 "## T\n\nprose\n\n" TABLE "\n\n| 3 |\ntext\n"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_document d = split(pool, "## T\n\nprose\n\n" TABLE "\n");
		const char *ops = hs_str_replace(pool, cases[i].ops, "%p", block_id(&d, 0, 0));
		struct hs_delta_result r = apply(pool, &d, hs_str_replace(pool, ops, "'", "\""));
		const char *merged =
			hs_json_str(json_array_get(r.applied, 0), "merged_into_block_id");

		assert_string_equal(hs_document_render(pool, &r.doc), cases[i].want);
		if (i == 0)
			assert_string_equal(merged, block_id(&d, 0, 1));
		else
			assert_null(merged);
	}
}

static void test_models_case_45_later_operations_see_earlier_ones(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_delta_result r = edit(pool,
		"[{'op':'replace_block','section_id':'rules','block_id':'%1','text':'x'},"
		"{'op':'remove_block','section_id':'rules','block_id':'%1'},"
		"{'op':'rename_section','section_id':'rules','new_heading':'Laws'},"
		"{'op':'append_block','section_id':'rules','text':'alpha'},"
		"{'op':'append_block','section_id':'laws','text':'y'}]");

	(void)state;
	assert_int_equal(r.n_applied, 4);
	assert_int_equal(r.n_skipped, 1);
	assert_string_equal(
		hs_document_render(pool, &r.doc), "## Laws\n\nbeta\n\nalpha\n\n## Team\n\ngamma\n");
	/* an id that was given out once is not given out again */
	assert_string_equal(block_id(&r.doc, 0, 1), ALPHA "-2");
}

static void ids_of_a_skipped_section_stay_reserved(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_delta_result r = edit(pool,
		"[{'op':'add_section','heading':'X','blocks':['alpha'],'after_section_id':'no'},"
		"{'op':'append_block','section_id':'team','text':'alpha'}]");

	(void)state;
	assert_string_equal(block_id(&r.doc, 1, 1), ALPHA "-3");
}

static void audit_entries_tell_everything_but_texts(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_delta_result r = edit(pool,
		"[{'op':'add_section','heading':'New one','blocks':['x']},"
		"{'op':'insert_block','section_id':'rules','text':'x'},"
		"{'op':'replace_section_blocks','section_id':'no','blocks':['x']},"
		"{'op':'shuffle','section_id':'rules','text':'x','level':9,'z':1},7]");

	(void)state;
	assert_string_equal(text_of(pool, r.applied),
		"[{\"op\":\"add_section\",\"heading\":\"New one\",\"level\":2,\"after_section_id\":null,"
		"\"new_id\":null,\"assigned_id\":\"new-one\"},"
		"{\"op\":\"insert_block\",\"section_id\":\"rules\",\"after_block_id\":null}]");
	assert_string_equal(text_of(pool, r.skipped),
		"[{\"op\":\"replace_section_blocks\",\"section_id\":\"no\",\"reason\":\"unknown section_id: no\"},"
		"{\"op\":\"shuffle\",\"section_id\":\"rules\",\"level\":9,\"reason\":\"unknown op \\\"shuffle\\\"\"},"
		"{\"reason\":\"an operation must be an object\"}]");
}

static void test_models_case_72_blocks_not_shown_are_not_replaced(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_document d = split(pool, RULES);
	struct hs_strs hidden = {0};
	struct hs_delta_list list = read_list(pool,
		"[{\"op\":\"replace_block\",\"section_id\":\"rules\",\"block_id\":\"" ALPHA "\",\"text\":\"x\"},"
		"{\"op\":\"replace_section_blocks\",\"section_id\":\"rules\",\"blocks\":[\"x\"]},"
		"{\"op\":\"append_block\",\"section_id\":\"rules\",\"text\":\"x\"},"
		"{\"op\":\"remove_block\",\"section_id\":\"rules\",\"block_id\":\"" ALPHA "\"}]");
	struct hs_delta_result r;

	(void)state;
	hs_strs_add(pool, &hidden, ALPHA);
	hs_delta_apply(pool, &d, &list, &hidden, &r);
	assert_int_equal(r.n_applied, 2);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(hs_json_str(json_array_get(r.skipped, i), "reason"),
			"block text not shown: " ALPHA);
	assert_string_equal(
		hs_document_render(pool, &r.doc), "## Rules\n\nbeta\n\nx\n\n## Team\n\ngamma\n");
	/* the document itself is not touched */
	assert_string_equal(hs_document_render(pool, &d), RULES);
}

/* ---- random lists ---- */

static unsigned long seed = 11;
static unsigned next(unsigned n)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (unsigned)(seed >> 33) % n;
}

static const char *const texts[] = {"alpha", "beta", "- a\n- b", "| 3 | 4 |", TABLE, "```\n# x\n\ny\n```", "", " \n ",
	"\n\n  indented  \n", "\xe6\xa6\x82\xe8\xa6\x81", "a\r\nb", "# heading", "|x\n|-|\n|--|"};
static const char *const headings[] = {"Rules", "rules", "Team", "", "\xe6\xa6\x82", "## Deep", "A\nB", "section"};

static struct hs_document random_document(struct hs_pool *pool)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 16);
	unsigned n = next(12);

	for (unsigned i = 0; i < n; i++) {
		if (next(3) == 0)
			hs_buf_printf(b, "%.*s %s\n\n", 1 + (int)next(6), "######",
				headings[next(HS_COUNT(headings))]);
		hs_buf_printf(b, "%s\n\n", texts[next(HS_COUNT(texts))]);
	}
	return split(pool, b->data);
}

static const char *some_section(const struct hs_document *d)
{
	unsigned pick = next(8);

	if (pick == 0 || d->n == 0)
		return "missing";
	return pick == 1 ? "rules-2" : d->sections[next((unsigned)d->n)].id;
}

static const char *some_block(const struct hs_document *d, const char *section)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->sections[i].id, section) == 0 && d->sections[i].n_blocks && next(8))
			return block_id(d, i, next((unsigned)d->sections[i].n_blocks));
	return d->n && d->sections[0].n_blocks ? block_id(d, 0, 0) : "b0";
}

static json_t *random_op(const struct hs_document *d)
{
	const char *section = some_section(d), *text = texts[next(HS_COUNT(texts))];
	const char *heading = headings[next(HS_COUNT(headings))];

	switch (next(9)) {
	case 0:
		return json_pack("{s:s,s:s,s:s}", "op", "append_block", "section_id", section, "text", text);
	case 1:
		return json_pack("{s:s,s:s,s:s,s:s?}", "op", "insert_block", "section_id", section, "text", text,
			"after_block_id", next(3) ? some_block(d, section) : NULL);
	case 2:
		return json_pack("{s:s,s:s,s:s,s:s}", "op", "replace_block", "section_id", section, "block_id",
			some_block(d, section), "text", text);
	case 3:
		return json_pack("{s:s,s:s,s:s}", "op", "remove_block", "section_id", section, "block_id",
			some_block(d, section));
	case 4:
		return json_pack("{s:s,s:s,s:i,s:[s,s],s:s?,s:s?}", "op", "add_section", "heading", heading, "level",
			(int)next(7), "blocks", text, texts[next(HS_COUNT(texts))], "after_section_id",
			next(2) ? section : NULL, "new_id", next(3) ? NULL : "rules");
	case 5:
		return json_pack("{s:s,s:s}", "op", "remove_section", "section_id", section);
	case 6:
		return json_pack("{s:s,s:s,s:[s]}", "op", "replace_section_blocks", "section_id", section, "blocks", text);
	case 7:
		return json_pack("{s:s,s:s,s:s}", "op", "rename_section", "section_id", section, "new_heading", heading);
	default:
		return json_pack("{s:s,s:s}", "op", next(2) ? "append_block" : "unknown", "section_id", section);
	}
}

/* Blocks and sections that the applied operations name. */
struct touched {
	struct hs_strs blocks, sections, gone;
};

static struct touched touched_by(struct hs_pool *pool, json_t *applied)
{
	struct touched t = {0};
	json_t *v;
	size_t i;

	json_array_foreach(applied, i, v) {
		const char *op = hs_json_str(v, "op"), *section = hs_json_str(v, "section_id");
		const char *merged = hs_json_str(v, "merged_into_block_id"), *block = hs_json_str(v, "block_id");

		if (merged)
			hs_strs_add(pool, &t.blocks, merged);
		if (block)
			hs_strs_add(pool, &t.blocks, block);
		if (strcmp(op, "replace_section_blocks") == 0 || strcmp(op, "remove_section") == 0)
			hs_strs_add(pool, &t.gone, section);
		if (strcmp(op, "rename_section") == 0)
			hs_strs_add(pool, &t.sections, section);
	}
	return t;
}

static const struct hs_doc_section *section_of(const struct hs_document *d, const char *id)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->sections[i].id, id) == 0)
			return &d->sections[i];
	return NULL;
}

/* Each untouched block is there, with its bytes, in its section, behind those it stood behind. */
static void check_untouched(const struct hs_document *old, const struct hs_document *new, const struct touched *t)
{
	for (size_t i = 0; i < old->n; i++) {
		const struct hs_doc_section *a = &old->sections[i], *b = section_of(new, a->id);
		size_t at = 0;

		if (hs_strs_has(&t->gone, a->id))
			continue;
		assert_non_null(b);
		if (!hs_strs_has(&t->sections, a->id))
			assert_string_equal(b->heading, a->heading);
		assert_int_equal(b->level, a->level);
		for (size_t k = 0; k < a->n_blocks; k++) {
			if (hs_strs_has(&t->blocks, a->blocks[k].id))
				continue;
			while (at < b->n_blocks && strcmp(b->blocks[at].id, a->blocks[k].id) != 0)
				at++;
			assert_true(at < b->n_blocks);
			assert_string_equal(b->blocks[at].text, a->blocks[k].text);
		}
	}
}

static void check_unique(struct hs_pool *pool, const struct hs_document *d)
{
	struct hs_strs blocks = {0}, sections = {0};

	for (size_t i = 0; i < d->n; i++) {
		assert_false(hs_strs_has(&sections, d->sections[i].id));
		hs_strs_add(pool, &sections, d->sections[i].id);
		for (size_t k = 0; k < d->sections[i].n_blocks; k++) {
			assert_false(hs_strs_has(&blocks, block_id(d, i, k)));
			hs_strs_add(pool, &blocks, block_id(d, i, k));
		}
	}
}

static void random_lists_leave_the_rest_alone(void **state)
{
	size_t applied = 0, skipped = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_document d = random_document(pool), again;
		json_t *ops = hs_json_keep(pool, json_array());
		struct hs_delta_list list;
		struct hs_delta_result r;
		struct touched t;
		struct hs_err err = {0};
		const char *before = hs_document_render(pool, &d);

		for (unsigned i = next(10); i > 0; i--)
			json_array_append_new(ops, random_op(&d));
		hs_delta_read(pool, hs_json_text(pool, ops), false, &list);
		assert_null(list.unreadable);
		hs_delta_apply(pool, &d, &list, NULL, &r);
		assert_int_equal(r.n_applied + r.n_skipped, list.n);
		assert_int_equal(json_array_size(r.applied), r.n_applied);
		t = touched_by(pool, r.applied);
		check_untouched(&d, &r.doc, &t);
		check_unique(pool, &r.doc);
		assert_string_equal(hs_document_render(pool, &d), before);
		assert_int_equal(hs_document_read(pool, hs_json_keep(pool, hs_document_json(&r.doc)), &again, &err), HS_OK);
		assert_string_equal(hs_document_render(pool, &again), hs_document_render(pool, &r.doc));
		applied += r.n_applied;
		skipped += r.n_skipped;
	}
	/* both ways were taken often */
	assert_true(applied > 10000 && skipped > 10000);
}

static void damaged_replies_end_nothing(void **state)
{
	static const char bytes[] = "{}[]\",:\\n\xc3\xa9\x80 0nt";

	(void)state;
	for (int round = 0; round < 20000; round++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_document d = random_document(pool);
		json_t *ops = hs_json_keep(pool, json_array());
		struct hs_delta_list list;
		struct hs_delta_result r;
		char *text;

		for (unsigned i = next(4); i > 0; i--)
			json_array_append_new(ops, random_op(&d));
		text = hs_json_text(pool, ops);
		for (unsigned i = 1 + next(4); i > 0 && *text; i--)
			text[next((unsigned)strlen(text))] = next(8) ? bytes[next(sizeof(bytes) - 1)] : '\0';
		hs_delta_read(pool, text, next(2), &list);
		if (list.unreadable)
			continue;
		hs_delta_apply(pool, &d, &list, NULL, &r);
		assert_int_equal(r.n_applied + r.n_skipped, list.n);
		check_unique(pool, &r.doc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models_case_46_forms_of_a_reply),
		cmocka_unit_test(test_models_case_46_a_raw_line_break_stays),
		cmocka_unit_test(almost_json_is_mended_only_when_it_is_complete),
		cmocka_unit_test(too_many_operations_are_refused),
		cmocka_unit_test(shapes_are_strict),
		cmocka_unit_test(each_operation_has_its_effect),
		cmocka_unit_test(test_models_case_43_wrong_targets_are_skipped),
		cmocka_unit_test(test_models_case_43_a_section_goes_after_a_heading),
		cmocka_unit_test(test_models_case_44_rows_join_their_table),
		cmocka_unit_test(test_models_case_45_later_operations_see_earlier_ones),
		cmocka_unit_test(ids_of_a_skipped_section_stay_reserved),
		cmocka_unit_test(audit_entries_tell_everything_but_texts),
		cmocka_unit_test(test_models_case_72_blocks_not_shown_are_not_replaced),
		cmocka_unit_test(random_lists_leave_the_rest_alone),
		cmocka_unit_test(damaged_replies_end_nothing),
	};

	return cmocka_run_group_tests_name("delta_ops", tests, NULL, NULL);
}
