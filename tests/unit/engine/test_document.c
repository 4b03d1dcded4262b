#include "test.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/document.h"
#include "json/json.h"

/* id:heading/level{block id=text|…} with line ends shown as '$'. */
static const char *shape(struct hs_pool *pool, const struct hs_document *d, bool ids)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 20);

	for (size_t i = 0; i < d->n; i++) {
		const struct hs_doc_section *s = &d->sections[i];

		hs_buf_printf(b, "%s:%s/%d{", s->id, s->heading, s->level);
		for (size_t k = 0; k < s->n_blocks; k++) {
			if (k)
				hs_buf_char(b, '|');
			if (ids)
				hs_buf_printf(b, "%s=", s->blocks[k].id);
			for (const char *p = s->blocks[k].text; *p; p++)
				hs_buf_char(b, *p == '\n' ? '$' : *p);
		}
		hs_buf_char(b, '}');
	}
	return b->data;
}

struct split_case {
	const char *text, *want;
};

static void test_models_case_40_round_trip(void **state)
{
	static const struct split_case cases[] = {
		{"", ""},
		{" \n\t\r\n", ""},
		{"a", "preamble:/2{a}"},
		{"- a\n  - b\n\n    c\n- d\n", "preamble:/2{- a$  - b|    c$- d}"},
		{"5. five\n6. six", "preamble:/2{5. five$6. six}"},
		{"hard break  \nnext", "preamble:/2{hard break  $next}"},
		{"| a | b |\n|:--|--:|\n| 1 | 2 |\n\n| x\n| y |", "preamble:/2{| a | b |$|:--|--:|$| 1 | 2 ||| x$| y |}"},
		{"Title\n=====\n\ntext", "preamble:/2{Title$=====|text}"},
		{"<div>\n\n<b>x</b></div>", "preamble:/2{<div>|<b>x</b></div>}"},
		{"    indented # code\n\n    more", "preamble:/2{    indented # code|    more}"},
		{"```sh\na\n\n# x\n\n```\nafter\n\nb", "preamble:/2{```sh$a$$# x$$```$after|b}"},
		{"text\n~~~\n```\n\n~~~\nb", "preamble:/2{text$~~~$```$$~~~$b}"},
		{"~~~ never closed\n\n# x\n\n\n", "preamble:/2{~~~ never closed$$# x}"},
		{"> quote\n>\n> more\n\n---\n\n***", "preamble:/2{> quote$>$> more|---|***}"},
		{"#x\n##\n## \n####### seven\n # indented", "preamble:/2{#x$##$## $####### seven$ # indented}"},
		{"# A\n###### B ##\n#\tC", "a:A/1{}b:B ##/6{}c:C/1{}"},
		{"a\r\nb\r\r\nc\rd", "preamble:/2{a$b|c$d}"},
		{"x\n\n## S\ntext", "preamble:/2{x}s:S/2{text}"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_document doc, again;
		const char *once;

		hs_document_split(pool, cases[i].text, &doc);
		assert_string_equal(shape(pool, &doc, false), cases[i].want);
		once = hs_document_render(pool, &doc);
		hs_document_split(pool, once, &again);
		assert_string_equal(shape(pool, &again, true), shape(pool, &doc, true));
		assert_string_equal(hs_document_render(pool, &again), once);
	}
}

static void test_models_case_41_ids(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_document d;

	(void)state;
	hs_document_split(pool, "## 概要\n## Rules\n## Rules\n## rules 2\n## Rules\n## 詳細\n##  Héllo, Wörld! ", &d);
	assert_int_equal(d.n, 7);
	assert_string_equal(d.sections[0].id, "section");
	assert_string_equal(d.sections[1].id, "rules");
	assert_string_equal(d.sections[2].id, "rules-2");
	assert_string_equal(d.sections[3].id, "rules-2-2");
	assert_string_equal(d.sections[4].id, "rules-3");
	assert_string_equal(d.sections[5].id, "section-2");
	assert_string_equal(d.sections[6].id, "h-llo-w-rld");

	/* SHA-1 of "same" is ff3390557335ba88d37755e41514beb03bc499ec */
	hs_document_split(pool, "same\n\n## B\n\nsame\n\nother\n\nsame", &d);
	assert_string_equal(d.sections[0].blocks[0].id, "bff339055");
	assert_string_equal(d.sections[1].blocks[0].id, "bff339055-2");
	assert_string_equal(d.sections[1].blocks[2].id, "bff339055-3");
}

static void test_models_case_42_blank_lines(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_document d;

	(void)state;
	hs_document_split(pool, "## S\n\n\n\na\n\n\nb", &d);
	assert_string_equal(hs_document_render(pool, &d), "## S\n\na\n\nb\n");
	hs_document_split(pool, "\n \n", &d);
	assert_int_equal(d.n, 0);
	assert_string_equal(hs_document_render(pool, &d), "");
	hs_document_split(pool, NULL, &d);
	assert_int_equal(d.n, 0);
}

static char *random_markdown(struct hs_pool *pool)
{
	static const char *const lines[] = {
		"", "", "", " ", "\t", "text", "two words  ", "# H", "## Rules", "### Rules", "#x", "##",
		"```", "~~~", "````js", "  ```", "- item", "  - sub", "| a | b |", "===", "> q", "    code",
		"\xc2\xa0", "概要", "# 概要", "#\xc2\xa0nbsp", "\x0b", "\xe2\x80\xa8", "# #", "## ##", "1. x",
	};
	static const char *const ends[] = {"\n", "\n", "\n", "\r\n", "\r"};
	struct hs_buf *b = hs_buf_new(pool, 1 << 16);

	for (int k = rand() % 30; k > 0; k--) {
		hs_buf_str(b, lines[(size_t)rand() % HS_COUNT(lines)]);
		hs_buf_str(b, ends[(size_t)rand() % HS_COUNT(ends)]);
	}
	return b->data;
}

/* The non-blank lines of a text, heading lines normalised by what split makes of them. */
static const char *survivors(struct hs_pool *pool, const char *text)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 20);

	while (*text) {
		size_t n = strcspn(text, "\r\n");
		const char *line = hs_pool_strndup(pool, text, n);

		if (!hs_str_blank(line)) {
			const char *rest = line + strspn(line, "#");
			size_t marks = (size_t)(rest - line);

			hs_buf_add(b, line, marks);
			hs_buf_str(b, marks ? hs_str_trim(pool, rest) : rest);
			hs_buf_char(b, '\n');
		}
		text += n;
		if (*text)
			text++;
	}
	return b->data;
}

static void random_documents_keep_every_line_and_settle(void **state)
{
	(void)state;
	srand(11);
	for (int run = 0; run < 4000; run++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_document d, again, stored;
		struct hs_err err = {0};
		const char *text = random_markdown(pool), *once, *twice;
		json_t *json;

		hs_document_split(pool, text, &d);
		once = hs_document_render(pool, &d);
		hs_document_split(pool, once, &again);
		twice = hs_document_render(pool, &again);
		assert_string_equal(once, twice);
		assert_string_equal(shape(pool, &d, true), shape(pool, &again, true));
		assert_string_equal(survivors(pool, text), survivors(pool, once));

		json = hs_json_keep(pool, hs_document_json(&d));
		assert_int_equal(hs_document_read(pool, json, &stored, &err), HS_OK);
		assert_string_equal(shape(pool, &stored, true), shape(pool, &d, true));
	}
}

static const char *file_text(struct hs_pool *pool, const char *path)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 20);
	char part[4096];
	FILE *in = fopen(path, "r");
	size_t n;

	if (!in)
		fail_msg("cannot open %s", path);
	while ((n = fread(part, 1, sizeof(part), in)) > 0)
		hs_buf_add(b, part, n);
	fclose(in);
	assert_false(b->failed);
	return b->data;
}

static void real_markdown_keeps_every_line_and_settles(void **state)
{
	glob_t files = {0};

	(void)state;
	assert_int_equal(glob(HS_SOURCE_DIR "/docs/*.md", 0, NULL, &files), 0);
	assert_int_equal(glob(HS_SOURCE_DIR "/README.md", GLOB_APPEND, NULL, &files), 0);
	assert_true(files.gl_pathc >= 3);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		const char *text = file_text(pool, files.gl_pathv[i]), *once;
		struct hs_document d, again;

		hs_document_split(pool, text, &d);
		once = hs_document_render(pool, &d);
		hs_document_split(pool, once, &again);
		assert_string_equal(hs_document_render(pool, &again), once);
		assert_string_equal(survivors(pool, text), survivors(pool, once));
		assert_true(d.n > 0);
	}
	globfree(&files);
}

static void many_equal_blocks_are_fast(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_buf *b = hs_buf_new(pool, 8u << 20);
	struct hs_document d;

	(void)state;
	for (int i = 0; i < 100000; i++)
		hs_buf_str(b, i % 2 ? "# a\n\n" : "a\n\n");
	hs_document_split(pool, b->data, &d);
	assert_int_equal(d.n, 50001);
	assert_string_equal(d.sections[50000].id, "a-50000");
}

struct read_case {
	const char *json;
	bool ok;
	const char *want;
};

static void stored_structures_are_read_strictly(void **state)
{
	static const struct read_case cases[] = {
		{"null", false, NULL},
		{"{}", false, NULL},
		{"[]", false, NULL},
		{"\"text\"", false, NULL},
		{"{\"not_a_document\":true}", false, NULL},
		{"{\"version\":1,\"sections\":[]}", false, NULL},
		{"{\"version\":\"2\"}", false, NULL},
		{"{\"version\":2}", true, ""},
		{"{\"sections\":[]}", true, ""},
		{"{\"version\":2,\"sections\":{}}", false, NULL},
		{"{\"version\":2,\"sections\":[],\"x\":1}", false, NULL},
		{"{\"sections\":[{\"id\":\"a\"}]}", true, "a:/2{}"},
		{"{\"sections\":[{\"heading\":\"a\"}]}", false, NULL},
		{"{\"sections\":[{\"id\":\"a\",\"level\":7}]}", false, NULL},
		{"{\"sections\":[{\"id\":\"a\",\"level\":true}]}", false, NULL},
		{"{\"sections\":[{\"id\":\"a\",\"heading\":null}]}", false, NULL},
		{"{\"sections\":[{\"id\":\"a\",\"blocks\":[{\"id\":\"b1\"}]}]}", false, NULL},
		{"{\"sections\":[{\"id\":\"a\",\"blocks\":[\"x\"]}]}", false, NULL},
		{"{\"sections\":[{\"id\":\"a\",\"blocks\":[{\"id\":\"b1\",\"text\":\"t\",\"z\":0}]}]}", false, NULL},
		{"{\"sections\":[{\"id\":\"old\",\"heading\":\"New\",\"level\":3,\"blocks\":[{\"id\":\"kept\","
		 "\"text\":\"t\"}]}]}", true, "old:New/3{kept=t}"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		json_t *v = hs_json_keep(pool, json_loads(cases[i].json, JSON_DECODE_ANY, NULL));
		struct hs_document d;
		struct hs_err err = {0};
		enum hs_rc rc = hs_document_read(pool, v, &d, &err);

		if ((rc == HS_OK) != cases[i].ok)
			print_message("case %zu: %s\n", i, cases[i].json);
		assert_int_equal(rc, cases[i].ok ? HS_OK : HS_E_PARSE);
		if (cases[i].ok)
			assert_string_equal(shape(pool, &d, true), cases[i].want);
	}
}

struct tool_case {
	const char *json;
	const char *want;    /* shape, or the first fault */
	bool refused;
};

static void documents_of_a_finishing_call(void **state)
{
	static const struct tool_case cases[] = {
		{"{\"sections\":[]}", "", false},
		{"[]", "", false},
		{"{\"sections\":[{\"heading\":\" ## Rules \",\"level\":\"3\",\"blocks\":[\"a\\n\\nb\",\" \",\"c\"]}]}",
		 "rules:Rules/3{a|b|c}", false},
		{"[{\"heading\":\"A\",\"level\":0,\"blocks\":[\"x\"]},{\"heading\":\"B\",\"level\":99}]",
		 "a:A/2{x}b:B/6{}", false},
		{"{\"heading\":\"One\",\"level\":1.0,\"blocks\":[\"# in a block\\ntext\"]}",
		 "one:One/1{# in a block$text}", false},
		{"[{\"heading\":\"\",\"blocks\":[]},{\"heading\":\"#\",\"blocks\":[\"  \"]},{\"blocks\":[\"p\"]}]",
		 "preamble:/2{p}", false},
		{"[{\"heading\":\"A\\nB\",\"level\":-4,\"blocks\":[\"```\\na\\n\\nb\\n```\"]}]", "a-b:A B/1{```$a$$b$```}", false},
		{"\"[{\\\"heading\\\":\\\"T\\\",\\\"blocks\\\":[\\\"x\\\"]}]\"", "t:T/2{x}", false},
		{"{\"sections\":{}}", "sections: must be an array, is an object", true},
		{"{\"sections\":null}", "sections: must be an array, is null", true},
		{"[7]", "sections[0]: must be an object, is a number", true},
		{"[{\"blocks\":\"x\"}]", "sections[0].blocks: must be an array, is a string", true},
		{"[{\"blocks\":null}]", "sections[0].blocks: must be an array, is null", true},
		{"[{\"heading\":\"A\"},{\"blocks\":[\"x\",null]}]", "sections[1].blocks[1]: must be a string, is null", true},
		{"{\"text\":\"x\"}", "document: must be an object with \"sections\", is an object without them", true},
		{"17", "document: must be an object with \"sections\", is a number", true},
		{"null", "document: must be an object with \"sections\", is null", true},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		json_t *v = hs_json_keep(pool, json_loads(cases[i].json, JSON_DECODE_ANY, NULL));
		struct hs_document d;
		struct hs_strs faults = {0};
		struct hs_err err = {0};
		enum hs_rc rc = hs_document_from_tool(pool, v, true, &d, &faults, &err);

		if ((rc != HS_OK) != cases[i].refused)
			print_message("case %zu: %s\n", i, cases[i].json);
		assert_int_equal(rc, cases[i].refused ? HS_E_LLM_REPLY : HS_OK);
		if (cases[i].refused)
			assert_string_equal(faults.v[0], cases[i].want);
		else
			assert_string_equal(shape(pool, &d, false), cases[i].want);
	}
}

static void every_fault_has_its_line(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	json_t *v = hs_json_keep(pool, json_loads("[1,{\"blocks\":2},{\"blocks\":[3,\"x\",4]}]", 0, NULL));
	struct hs_document d;
	struct hs_strs faults = {0};
	struct hs_err err = {0};

	(void)state;
	assert_int_equal(hs_document_from_tool(pool, v, false, &d, &faults, &err), HS_E_LLM_REPLY);
	assert_int_equal(faults.n, 4);
	assert_string_equal(faults.v[3], "sections[2].blocks[2]: must be a string, is a number");
}

static void test_models_case_65_unwritten_bodies(void **state)
{
	(void)state;
	assert_true(hs_content_unwritten(NULL));
	assert_true(hs_content_unwritten(""));
	assert_true(hs_content_unwritten(" \n\t"));
	assert_true(hs_content_unwritten("Generating content..."));
	assert_false(hs_content_unwritten("Generating content... done"));
	assert_false(hs_content_unwritten("x"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models_case_40_round_trip),
		cmocka_unit_test(test_models_case_41_ids),
		cmocka_unit_test(test_models_case_42_blank_lines),
		cmocka_unit_test(random_documents_keep_every_line_and_settle),
		cmocka_unit_test(real_markdown_keeps_every_line_and_settles),
		cmocka_unit_test(many_equal_blocks_are_fast),
		cmocka_unit_test(stored_structures_are_read_strictly),
		cmocka_unit_test(documents_of_a_finishing_call),
		cmocka_unit_test(every_fault_has_its_line),
		cmocka_unit_test(test_models_case_65_unwritten_bodies),
	};

	return cmocka_run_group_tests_name("document", tests, NULL, NULL);
}
