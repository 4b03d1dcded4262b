#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/tokens.h"
#include "engine/extractive_answer.h"
#include "engine/mind.h"
#include "engine/names.h"
#include "engine/near.h"
#include "engine/sentences.h"
#include "engine/text_dates.h"
#include "json/json.h"

static int64_t at(const char *text)
{
	int64_t us;

	assert_true(hs_time_parse(text, &us));
	return us;
}

static const char *join(struct hs_pool *pool, const struct hs_strs *l)
{
	return l->n ? hs_strs_join(pool, l, "|") : "";
}

/* ---- sentences ---- */

struct text_case {
	const char *text, *want;
};

static void sentences_end_where_they_should(void **state)
{
	static const struct text_case cases[] = {
		{"", ""},
		{" \n ", ""},
		{"One. Two! Three? Four", "One.|Two!|Three?|Four"},
		{"Dr. J. Smith met Mr. Lee at 3.30 pm, e.g. on Monday. Then left.",
		 "Dr. J. Smith met Mr. Lee at 3.30 pm, e.g. on Monday.|Then left."},
		{"He said \"Go.\" Then he went...", "He said \"Go.\"|Then he went..."},
		{"wrapped\nline one.\nline two\n\nnew paragraph", "wrapped line one.|line two|new paragraph"},
		{"# Title\ntext\n- a\n- b\n1. c\n2) d", "Title text|a|b|c|d"},
		{"猫が好き。犬も好き！", "猫が好き。|犬も好き！"},
		{"```\ncode. More\n\nx\n```\nafter", "``` code. More x ```|after"},
		{"v1.2.3 is out. See example.org/a.b?c=d now.", "v1.2.3 is out.|See example.org/a.b?c=d now."},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_strs s = hs_sentences(pool, cases[i].text);

		assert_string_equal(join(pool, &s), cases[i].want);
	}
}

static const char *turns(struct hs_pool *pool, const char *text)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 16);
	struct hs_turns t;

	hs_turns_split(pool, text, &t);
	for (size_t i = 0; i < t.n; i++)
		hs_buf_printf(b, "%s%s(%s)", t.v[i].speaker ? t.v[i].speaker : "-", t.v[i].assistant ? "*" : "",
			join(pool, &t.v[i].sentences));
	return b->data;
}

static void turns_keep_their_speakers(void **state)
{
	static const struct text_case cases[] = {
		{"Ana: Hi there. I moved.\nBob Lee: When?\nLast May.", "Ana(Hi there.|I moved.)Bob Lee(When?|Last May.)"},
		{"intro\nAna: x y", "-(intro)Ana(x y)"},
		{"see https://a.b: c", "-(see https://a.b: c)"},
		{"[{\"role\":\"user\",\"content\":\"Ax. Bx.\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
		 "\"text\":\"C\"}]}]", "user(Ax.|Bx.)assistant*(C)"},
		{"{\"speaker\":\"Ana\",\"text\":\"x\"}\n\n{\"speaker\":\"Bob\",\"text\":\"y\"}", "Ana(x)Bob(y)"},
		{"{\"messages\":[{\"name\":\"Ana\",\"text\":\"x\"}]}", "Ana(x)"},
		{"{\"a\":1}", "-({\"a\":1})"},
		{"[1,2]", "-([1,2])"},
		{"[broken. json", "-([broken.|json)"},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

		assert_string_equal(turns(pool, cases[i].text), cases[i].want);
	}
}

/* ---- names ---- */

static void names_are_capitalised_runs(void **state)
{
	static const struct text_case cases[] = {
		{"Alice Berg moved to Lisbon with Bob's sister.", "Alice Berg|Lisbon|Bob"},
		{"The Bank of Portugal and the University of York agree.", "Bank of Portugal|University of York"},
		{"Yesterday I met Ana in May on Friday.", "Ana"},
		{"However, I think Painting is nice. Relaxing helps.", "Painting"},
		{"THIS WHOLE LINE IS SHOUTED BY SOMEONE", ""},
		{"Ana met ANA and ana.", "Ana"},
		{"We use a K-200A and NASA data.", "K-200A|NASA"},
		{"田中さんは東京に住んでいます。", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_strs names = {0};

		hs_names_add(pool, cases[i].text, &names);
		assert_string_equal(join(pool, &names), cases[i].want);
	}
}

/* ---- dates ---- */

struct date_case {
	const char *text, *start, *end;   /* NULL = none */
};

static void dates_are_recognised(void **state)
{
	static const struct date_case cases[] = {
		{"on 2023-05-07 we met", "2023-05-07", "2023-05-07"},
		{"at 2023-05-07T10:30:00+02:00.", "2023-05-07T08:30:00", "2023-05-07T08:30:00"},
		{"on 7 May 2023", "2023-05-07", "2023-05-07"},
		{"on the 7th of May, 2023", "2023-05-07", "2023-05-07"},
		{"on May 7, 2023", "2023-05-07", "2023-05-07"},
		{"on Sept 3rd 2022", "2022-09-03", "2022-09-03"},
		{"in February 2024", "2024-02-01", "2024-02-29T23:59:59"},
		{"since 2021 or so", "2021-01-01", "2021-12-31T23:59:59"},
		{"on June 5th", "2023-06-05", "2023-06-05"},
		{"on December 24", "2022-12-24", "2022-12-24"},
		{"it comes on the 16th of July", "2023-07-16", "2023-07-16"},
		{"from October 15th on", "2023-10-15", "2023-10-15"},
		{"on October 16th", "2022-10-16", "2022-10-16"},
		{"we went there yesterday", "2023-07-14", "2023-07-14"},
		{"last week was hard", "2023-07-08", "2023-07-08"},
		{"30 February 2023", "2023-02-01", "2023-02-28T23:59:59"},
		{"0001-01-01 and 9999-12-31", NULL, NULL},
		{"we may 7 times march on", NULL, NULL},
		{"port 2023, ticket 2021, 2023-13-40", NULL, NULL},
		{"", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		int64_t start = 0, end = 0;
		bool found = hs_text_date(cases[i].text, at("2023-07-15T12:00:00"), &start, &end);

		if (found != (cases[i].start != NULL))
			print_message("case %zu: %s\n", i, cases[i].text);
		assert_int_equal(found, cases[i].start != NULL);
		if (!found)
			continue;
		assert_int_equal(start, at(cases[i].start));
		assert_int_equal(end, at(cases[i].end));
	}
	int64_t start, end;

	assert_true(hs_text_date("on January 5th", at("2023-12-20T12:00:00"), &start, &end));
	assert_int_equal(start, at("2024-01-05"));
	assert_true(hs_text_date("on December 30th", at("2024-01-05T12:00:00"), &start, &end));
	assert_int_equal(start, at("2023-12-30"));
	assert_false(hs_text_date("yesterday, on June 5th", HS_TIME_NONE, &(int64_t){0}, &(int64_t){0}));
}

/* ---- near ---- */

struct near_case {
	const char *a, *b;
	bool near;
};

static void near_means_nothing_replaced(void **state)
{
	static const struct near_case cases[] = {
		{"Ana lives in Lisbon.", "Ana lives in Lisbon", true},
		{"Ana lives in Lisbon", "ana LIVES in lisbon", false},
		{"Ana is living in the Lisbon", "Ana lives in Lisbon", true},
		{"Ana likes very long walks along the beach each morning", "Ana likes long walks along the beach in the morning", true},
		{"Ana likes long walks along the beach", "Ana hates long walks along the beach", false},
		{"Ana does not like tea", "Ana does like tea", false},
		{"Ana pays 5 euros for tea", "Ana pays 6 euros for tea", false},
		{"Ana beat Bob at chess", "Bob beat Ana at chess", false},
		{"", "", false},
		{"the of", "the of", false},
		{"猫が好き", "猫が好き", true},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		if (hs_near_equal(pool, cases[i].a, cases[i].b) != cases[i].near)
			print_message("case %zu: %s\n", i, cases[i].a);
		assert_int_equal(hs_near_equal(pool, cases[i].a, cases[i].b), cases[i].near);
		assert_int_equal(hs_near_equal(pool, cases[i].b, cases[i].a), cases[i].near);
	}
}

/* ---- extraction ---- */

static struct hs_config *config(struct hs_pool *pool, const char *mode)
{
	struct hs_config *cfg = hs_config_defaults(pool);
	struct hs_err err = {0};

	assert_int_equal(hs_config_set(cfg, "retain_extraction_mode", mode, &err), HS_OK);
	return cfg;
}

static struct hs_facts extract(struct hs_pool *pool, const char *mode, const char *chunk)
{
	struct hs_retain_prompt_in in = {
		.cfg = config(pool, mode), .chunk = chunk, .event_us = at("2023-05-08T13:56:00"),
	};
	struct hs_facts f;
	struct hs_err err = {0};

	assert_int_equal(hs_extractive_extract(pool, &in, &f, &err), HS_OK);
	return f;
}

static void facts_are_sentences_with_speaker_names_and_dates(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_facts f = extract(pool, "concise",
		"Caroline: Hey Mel! How are you? I went to a support group with Ana Ruiz yesterday. It was great.\n"
		"Melanie: I'm vegan since 7 May 2021.");

	(void)state;
	assert_int_equal(f.n, 2);
	assert_string_equal(f.v[0].text,
		"Caroline: I went to a support group with Ana Ruiz yesterday.");
	assert_string_equal(join(pool, &f.v[0].entities), "Caroline|Ana Ruiz");
	assert_int_equal(f.v[0].occurred_start_us, at("2023-05-07"));
	assert_false(f.v[0].experience);
	assert_string_equal(f.v[1].text, "Melanie: I'm vegan since 7 May 2021.");
	assert_int_equal(f.v[1].occurred_start_us, at("2021-05-07"));
	assert_int_equal(f.v[1].occurred_end_us, at("2021-05-07"));
}

static void small_talk_is_no_fact(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_facts f = extract(pool, "concise",
		"Ana: Sounds fun! You're killing it! That photo is stunning!\nBob: Totally agree, Ana. We won the race!\n"
		"Ana: Maria got the job! Thanks, Bob!");

	(void)state;
	assert_int_equal(f.n, 2);
	assert_string_equal(f.v[0].text, "Bob: We won the race!");
	assert_string_equal(f.v[1].text, "Ana: Maria got the job!");
	assert_true(extract(pool, "verbose", "Ana: Sounds fun! How are you?\nBob: Fine.").n == 3);
}

static void what_the_assistant_says_is_experience(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_facts f = extract(pool, "concise",
		"[{\"role\":\"user\",\"content\":\"I live in Oslo.\"},{\"role\":\"assistant\",\"content\":\"Booked Hotel Bristol.\"}]");

	(void)state;
	assert_int_equal(f.n, 2);
	assert_string_equal(join(pool, &f.v[0].entities), "user|Oslo");
	assert_false(f.v[0].experience);
	assert_true(f.v[1].experience);
	assert_int_equal(f.v[1].occurred_start_us, HS_TIME_NONE);
}

static void no_text_vanishes(void **state)
{
	static const char *const texts[] = {"Hello!", "ok", "Why?", "Thanks. Bye!", "👍 yes"};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(texts); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();

		assert_int_equal(extract(pool, "concise", texts[i]).n, 1);
	}
}

static void verbatim_gives_the_chunk_itself(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_facts f = extract(pool, "verbatim", "Ana: Hi.\n\nBob: I like Rust.  ");

	(void)state;
	assert_int_equal(f.n, 1);
	assert_string_equal(f.v[0].text, "Ana: Hi.\n\nBob: I like Rust.  ");
	assert_string_equal(join(pool, &f.v[0].entities), "Ana|Bob|Rust");
	assert_true(extract(pool, "verbose", "Ana: Hi. How are you?").n >= 1);
}

/* Every fact is a piece of what was given: only blanks change. */
static void facts_only_quote(void **state)
{
	static const char *const parts[] = {
		"Ana", ": ", ". ", "! ", "\n", "\n\n", "lives in Oslo", "- ", "```", "{", "[", "\"", "It was ",
		"東京。", "? ", "1. ", "\xff", "# ", "2023-05-07 ", "Bob Lee: ", "[{\"text\":\"x\"}]", "Mr. ",
	};

	(void)state;
	srand(3);
	for (int run = 0; run < 2000; run++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_buf *b = hs_buf_new(pool, 1 << 16);
		struct hs_facts f;

		for (int k = rand() % 20; k > 0; k--)
			hs_buf_str(b, parts[(size_t)rand() % HS_COUNT(parts)]);
		f = extract(pool, "concise", b->data);
		for (size_t i = 0; i < f.n; i++) {
			const char *p = b->data;

			assert_true(*f.v[i].text);
			for (const char *c = f.v[i].text; *c; c++) {
				if (*c == ' ' || *c == ':')
					continue;
				p = strchr(p, *c);
				assert_non_null(p);
				p++;
			}
		}
	}
}

/* ---- consolidation ---- */

static json_t *consolidate(struct hs_pool *pool, const struct hs_consolidation_fact *facts, size_t n,
	const char *observations, int64_t slots)
{
	struct hs_consolidation_prompt_in in = {
		.facts = facts, .n_facts = n, .free_slots = slots,
		.observations = hs_json_keep(pool, json_loads(observations, 0, NULL)),
	};
	json_t *actions;
	struct hs_err err = {0};

	assert_int_equal(hs_extractive_consolidate(pool, &in, &actions, &err), HS_OK);
	return actions;
}

static void near_facts_join_and_others_found_observations(void **state)
{
	static const struct hs_consolidation_fact facts[] = {
		{.id = "f1", .text = "Ana lives in Lisbon."},
		{.id = "f2", .text = "Ana is living in Lisbon"},
		{.id = "f3", .text = "Bob likes very strong black coffee in the early morning"},
		{.id = "f4", .text = "Old text"},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	json_t *a = consolidate(pool, facts, 4,
		"[{\"id\":\"o1\",\"text\":\"Old text\"},{\"id\":\"o2\",\"text\":\"Bob likes strong black coffee in the early morning\"}]", -1);

	(void)state;
	assert_string_equal(hs_json_text(pool, a),
		"{\"creates\":[{\"text\":\"Ana is living in Lisbon\",\"source_fact_ids\":[\"f1\",\"f2\"]}],"
		"\"updates\":[{\"text\":\"Bob likes very strong black coffee in the early morning\",\"source_fact_ids\":[\"f3\"],"
		"\"observation_id\":\"o2\"},{\"text\":\"Old text\",\"source_fact_ids\":[\"f4\"],\"observation_id\":\"o1\"}],"
		"\"deletes\":[]}");
	a = consolidate(pool, facts, 3, "[]", 1);
	assert_int_equal(json_array_size(json_object_get(a, "creates")), 1);
	a = consolidate(pool, facts, 0, "[]", -1);
	assert_int_equal(json_array_size(json_object_get(a, "creates")), 0);
}

/* ---- answers ---- */

static struct hs_evidence evidence(enum hs_evidence_kind kind, const char *id, const char *text, const char *date)
{
	return (struct hs_evidence){
		.kind = kind, .id = id, .text = text, .score = 1,
		.occurred_start_us = date ? at(date) : HS_TIME_NONE,
		.occurred_end_us = HS_TIME_NONE, .mentioned_us = HS_TIME_NONE,
	};
}

static void an_answer_quotes_models_then_observations_then_facts(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_evidence ev[] = {
		evidence(HS_EV_FACT, "f1", "Ana moved to Lisbon by train", "2023-05-07"),
		evidence(HS_EV_OBSERVATION, "o1", "Ana lives in Lisbon near the river", "2023-06-01"),
		evidence(HS_EV_FACT, "f2", "Ana found a flat in Lisbon", "2023-05-09"),
		evidence(HS_EV_FACT, "f3", "Bob likes coffee", NULL),
		evidence(HS_EV_MODEL, "m1", "## Home\n\n- 2023-07-01: Ana is at home in Lisbon\n- Bob sails", NULL),
		evidence(HS_EV_FACT, "f1", "Ana moved to Lisbon by train", "2023-05-07"),
		evidence(HS_EV_FACT, "f4", "Ana lives in Lisbon, near the river.", "2023-06-02"),
	};
	struct hs_extractive_answer a;

	(void)state;
	ev[1].source_ids = (struct hs_strs){1, (const char *[]){"f2"}};
	hs_extractive_answer(pool, "Where in Lisbon does Ana live?", ev, HS_COUNT(ev), 500, &a);
	assert_true(a.answer_found);
	assert_string_equal(a.text,
		"- 2023-07-01: Ana is at home in Lisbon\n"
		"- 2023-06-01: Ana lives in Lisbon near the river\n"
		"- 2023-05-07: Ana moved to Lisbon by train");
	assert_int_equal(a.n_used, 3);
	assert_int_equal(a.used[0], 4);
	assert_int_equal(a.used[1], 1);
	assert_int_equal(a.used[2], 0);
}

static void an_answer_stays_within_its_tokens(void **state)
{
	(void)state;
	for (int64_t max = 1; max < 120; max += 7) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct hs_evidence ev[30];
		struct hs_extractive_answer a;
		struct hs_document doc;

		for (int i = 0; i < 30; i++)
			ev[i] = evidence(i % 2 ? HS_EV_FACT : HS_EV_OBSERVATION, hs_pool_printf(pool, "id%d", i),
				hs_pool_printf(pool, "Ana bought boat number %d in Porto. It has %d sails.", i, i * 7), "2023-05-07");
		hs_extractive_answer(pool, "boats of Ana", ev, 30, max, &a);
		assert_true(a.answer_found);
		assert_true(hs_tokens(a.text) <= (size_t)max);
		hs_extractive_document(pool, "boats of Ana", ev, 30, max + 20, &doc, &a);
		assert_true(hs_tokens(a.text) <= (size_t)max + 20);
		assert_true(a.n_used >= 1);
	}
}

static void nothing_stored_is_said(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_evidence model = evidence(HS_EV_MODEL, "m", " ", NULL), other =
		evidence(HS_EV_FACT, "f", "Bob likes coffee", NULL);
	struct hs_extractive_answer a;
	struct hs_document doc;

	(void)state;
	hs_extractive_answer(pool, "x", NULL, 0, 100, &a);
	assert_false(a.answer_found);
	assert_string_equal(a.text, hs_extractive_nothing);
	hs_extractive_answer(pool, "x", &model, 1, 100, &a);
	assert_false(a.answer_found);
	hs_extractive_document(pool, "x", NULL, 0, 100, &doc, &a);
	assert_false(a.answer_found);
	assert_int_equal(doc.n, 0);
	/* found by meaning alone: quoted all the same */
	hs_extractive_answer(pool, "zebra", &other, 1, 100, &a);
	assert_string_equal(a.text, "- Bob likes coffee");
}

static void a_long_memory_is_quoted_by_its_best_sentences(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_buf *b = hs_buf_new(pool, 1 << 16);
	struct hs_evidence ev;
	struct hs_extractive_answer a;

	(void)state;
	for (int i = 0; i < 40; i++)
		hs_buf_printf(b, "Sentence %d speaks of the weather.\n", i);
	hs_buf_str(b, "The audit of the harbour is on Friday. ");
	for (int i = 0; i < 40; i++)
		hs_buf_printf(b, "Sentence %d speaks of the sea.\n", i);
	ev = evidence(HS_EV_FACT, "f", b->data, NULL);
	hs_extractive_answer(pool, "When is the harbour audit?", &ev, 1, 500, &a);
	assert_non_null(strstr(a.text, "The audit of the harbour is on Friday."));
	assert_true(hs_tokens(a.text) < 60);
}

static void a_document_has_a_section_for_each_name(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_evidence ev[] = {
		evidence(HS_EV_FACT, "f1", "Ana leads the backend team", "2023-05-09"),
		evidence(HS_EV_FACT, "f2", "Ana joined the team in Lisbon", "2023-05-07"),
		evidence(HS_EV_OBSERVATION, "o1", "Bob tests the team releases", NULL),
		evidence(HS_EV_FACT, "f3", "Bob likes the team lunch", "2023-04-01"),
		evidence(HS_EV_FACT, "f4", "the team meets at noon", NULL),
	};
	const char *const ana[] = {"Ana"}, *const bob[] = {"Bob"};
	struct hs_extractive_answer a;
	struct hs_document doc;

	(void)state;
	ev[0].entities = ev[1].entities = (struct hs_strs){1, (const char **)ana};
	ev[2].entities = ev[3].entities = (struct hs_strs){1, (const char **)bob};
	hs_extractive_document(pool, "Who is in the team?", ev, HS_COUNT(ev), 500, &doc, &a);
	assert_string_equal(a.text,
		"## Bob\n\n- 2023-04-01: Bob likes the team lunch\n- Bob tests the team releases\n\n"
		"## Ana\n\n- 2023-05-07: Ana joined the team in Lisbon\n- 2023-05-09: Ana leads the backend team\n\n"
		"## Other\n\n- the team meets at noon");
	assert_int_equal(doc.n, 3);
	assert_string_equal(doc.sections[0].id, "bob");
	assert_int_equal(a.n_used, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentences_end_where_they_should),
		cmocka_unit_test(turns_keep_their_speakers),
		cmocka_unit_test(names_are_capitalised_runs),
		cmocka_unit_test(dates_are_recognised),
		cmocka_unit_test(near_means_nothing_replaced),
		cmocka_unit_test(facts_are_sentences_with_speaker_names_and_dates),
		cmocka_unit_test(small_talk_is_no_fact),
		cmocka_unit_test(what_the_assistant_says_is_experience),
		cmocka_unit_test(no_text_vanishes),
		cmocka_unit_test(verbatim_gives_the_chunk_itself),
		cmocka_unit_test(facts_only_quote),
		cmocka_unit_test(near_facts_join_and_others_found_observations),
		cmocka_unit_test(an_answer_quotes_models_then_observations_then_facts),
		cmocka_unit_test(an_answer_stays_within_its_tokens),
		cmocka_unit_test(nothing_stored_is_said),
		cmocka_unit_test(a_long_memory_is_quoted_by_its_best_sentences),
		cmocka_unit_test(a_document_has_a_section_for_each_name),
	};

	return cmocka_run_group_tests_name("extractive", tests, NULL, NULL);
}
