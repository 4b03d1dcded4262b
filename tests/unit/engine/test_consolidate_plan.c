#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/consolidate_run.h"
#include "json/json.h"

#define F1 "0193a000-0000-7000-8000-0000000000a1"
#define F2 "0193a000-0000-7000-8000-0000000b00a2"
#define F3 "0193a000-0000-7000-8000-000c000000a3"
#define O1 "0193b000-0000-7000-8000-0000000000b1"
#define O2 "0193b000-0000-7000-8000-0000000d00b2"

static const struct hs_unit_row facts[] = {{.id = F1, .text = "f1"}, {.id = F2, .text = "f2"}, {.id = F3, .text = "f3"}};
static const struct shown shown[] = {{11, O1, "Known one"}, {12, O2, "Known  two"}};
static const struct batch batch = {facts, 3, {0}};

/* The plan in short: u<obs>"text"[facts] c"text"[facts] d<obs>(>obs | requeue), counts. */
static const char *plan_text(struct hs_pool *pool, const struct plan *p)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 20);

	for (size_t i = 0; i < p->n_updates; i++) {
		hs_buf_printf(b, "u%zu%s[", p->updates[i].shown, p->updates[i].text ? p->updates[i].text : "-");
		for (size_t k = 0; k < p->updates[i].facts.n; k++)
			hs_buf_printf(b, "%zu", p->updates[i].facts.v[k]);
		hs_buf_str(b, "] ");
	}
	for (size_t i = 0; i < p->n_creates; i++) {
		hs_buf_printf(b, "c%s[", p->creates[i].text);
		for (size_t k = 0; k < p->creates[i].facts.n; k++)
			hs_buf_printf(b, "%zu", p->creates[i].facts.v[k]);
		hs_buf_str(b, "] ");
	}
	for (size_t i = 0; i < p->n_deletes; i++) {
		const struct plan_delete *d = &p->deletes[i];

		hs_buf_printf(b, "d%zu", d->shown);
		if (d->into >= 0)
			hs_buf_printf(b, ">%d", (int)d->into);
		hs_buf_str(b, d->requeue ? "! " : " ");
	}
	hs_buf_printf(b, "folds=%d unresolved=%d over=%d", (int)p->folds, (int)p->unresolved, (int)p->over);
	return b->data;
}

static const char *read_plan(struct hs_pool *pool, const char *actions, int64_t slots)
{
	json_t *v = json_loads(actions, JSON_DECODE_ANY, NULL);
	struct plan p;

	if (!v)
		print_message("not JSON: %s\n", actions);
	assert_non_null(v);
	hs_plan_read(pool, hs_json_keep(pool, v), &batch, shown, 2, slots, &p);
	return plan_text(pool, &p);
}

struct plan_case {
	const char *actions, *want;
	int64_t slots;
};

#define NONE "folds=0 unresolved=0 over=0"

static void replies_become_plans(void **state)
{
	static const struct plan_case cases[] = {
		{"{}", NONE, -1},
		{"[]", NONE, -1},
		{"null", NONE, -1},
		{"{\"creates\":{},\"updates\":\"x\",\"deletes\":3}", NONE, -1},
		{"{\"creates\":[{\"text\":\" New \",\"source_fact_ids\":[\"" F1 "\",\"" F1 "\",\"" F3 "\",7,\"nope\"]}]}",
		 "cNew[02] " NONE, -1},
		/* one id as a string; a create without source, without text, and no object at all */
		{"{\"creates\":[{\"text\":\"A\",\"source_fact_ids\":\"" F2 "\"},{\"text\":\"B\",\"source_fact_ids\":[\"x\"]},"
		 "{\"text\":\" \",\"source_fact_ids\":[\"" F1 "\"]},5]}",
		 "cA[1] folds=0 unresolved=3 over=0", -1},
		/* folds: into a shown text, an update's text, an earlier create; case matters */
		{"{\"updates\":[{\"observation_id\":\"" O1 "\",\"text\":\"Now this\",\"source_fact_ids\":[\"" F1 "\"]}],"
		 "\"creates\":[{\"text\":\"Known\\ntwo\",\"source_fact_ids\":[\"" F2 "\"]},"
		 "{\"text\":\"Now  this\",\"source_fact_ids\":[\"" F3 "\"]},{\"text\":\"C\",\"source_fact_ids\":[\"" F1 "\"]},"
		 "{\"text\":\"C\",\"source_fact_ids\":[\"" F2 "\"]},{\"text\":\"c\",\"source_fact_ids\":[\"" F2 "\"]}]}",
		 "u0Now this[02] u1-[1] cC[01] cc[1] folds=3 unresolved=0 over=0", -1},
		/* several updates of one observation: last text, all sources */
		{"{\"updates\":[{\"observation_id\":\"" O2 "\",\"text\":\"a\",\"source_fact_ids\":[\"" F1 "\"]},"
		 "{\"observation_id\":\"" O2 "\",\"text\":\"b\",\"current_text\":\"z\",\"source_fact_ids\":[\"" F3 "\"]}]}",
		 "u1b[02] " NONE, -1},
		/* an update that names a fact is a create; of nothing known: dropped */
		{"{\"updates\":[{\"observation_id\":\"" F1 "\",\"text\":\"N\",\"source_fact_ids\":[\"" F2 "\"]},"
		 "{\"observation_id\":\"zzz\",\"text\":\"N\",\"source_fact_ids\":[\"" F2 "\"]},"
		 "{\"text\":\"N\",\"source_fact_ids\":[\"" F2 "\"]}]}",
		 "cN[1] folds=0 unresolved=2 over=0", -1},
		/* an update beats a delete; a delete of the unknown is dropped; twice is once */
		{"{\"updates\":[{\"observation_id\":\"" O1 "\",\"text\":\"U\",\"source_fact_ids\":[\"" F1 "\"]}],"
		 "\"deletes\":[{\"observation_id\":\"" O1 "\"},{\"id\":\"" O2 "\"},{\"id\":\"" O2 "\"},{\"id\":\"q\"}]}",
		 "u0U[0] d1 folds=0 unresolved=1 over=0", -1},
		{"{\"deletes\":[{\"id\":\"" O1 "\",\"merged_into\":\"" O2 "\"}]}", "d0>1 " NONE, -1},
		{"{\"deletes\":[{\"id\":\"" O1 "\",\"merged_into\":\"" O1 "\"}]}", "d0! " NONE, -1},
		{"{\"deletes\":[{\"id\":\"" O1 "\",\"merged_into\":\"gone\"}]}", "d0! " NONE, -1},
		{"{\"deletes\":[{\"id\":\"" O1 "\",\"merged_into\":\"" O2 "\"},{\"id\":\"" O2 "\"}]}", "d0! d1 " NONE, -1},
		/* a create that repeats what is deleted is a create */
		{"{\"deletes\":[{\"id\":\"" O1 "\"}],\"creates\":[{\"text\":\"Known one\",\"source_fact_ids\":[\"" F1 "\"]}]}",
		 "cKnown one[0] d0 " NONE, -1},
		/* free slots */
		{"{\"creates\":[{\"text\":\"A\",\"source_fact_ids\":[\"" F1 "\"]},{\"text\":\"B\",\"source_fact_ids\":[\"" F2 "\"]},"
		 "{\"text\":\"A\",\"source_fact_ids\":[\"" F3 "\"]}]}",
		 "cA[02] folds=1 unresolved=0 over=1", 1},
		{"{\"creates\":[{\"text\":\"A\",\"source_fact_ids\":[\"" F1 "\"]}]}", "folds=0 unresolved=0 over=1", 0},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		const char *got = read_plan(pool, cases[i].actions, cases[i].slots);

		if (strcmp(got, cases[i].want) != 0)
			print_message("case %zu: %s\n", i, cases[i].actions);
		assert_string_equal(got, cases[i].want);
	}
}

struct near_case {
	const char *id;
	int64_t want;
};

static void ids_are_repaired_within_two_edits(void **state)
{
	static const char *const ids[] = {"abcdef-1234", "abcdef-9999", "kitten"};
	static const struct near_case cases[] = {
		{"abcdef-1234", 0}, {"abcdef-124", 0}, {"abcdef-12334", 0}, {"abcdfe-1234", 0}, {"abcdef-1299", -1},
		{"mitten", 2}, {"sitting", -1}, {"kitte", 2}, {"kit", -1}, {"", -1}, {NULL, -1}, {"  ", -1},
	};

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++)
		assert_int_equal(hs_id_near(cases[i].id, ids, 3), cases[i].want);
	/* equally near to two */
	assert_int_equal(hs_id_near("cat", (const char *const[]){"bat", "hat"}, 2), -1);
	assert_int_equal(hs_id_near("bat", (const char *const[]){"bat", "hat"}, 2), 0);
}

/* Any reply: facts and observations named exist, every action has a source, nothing is named twice. */
static void any_reply_gives_a_sound_plan(void **state)
{
	static const char *const ids[] = {F1, F2, F3, O1, O2, "x", "", "0193a000-0000-7000-8000-0000000000aX"};
	static const char *const words[] = {"Known one", "Known two", "A", "A ", "", " ", "B"};

	(void)state;
	srand(21);
	for (int run = 0; run < 3000; run++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		json_t *actions = hs_json_keep(pool, json_object());
		static const char *const kinds[] = {"creates", "updates", "deletes"};
		int64_t slots = rand() % 4 - 1;
		struct plan p;
		bool touched[2] = {false, false};

		for (size_t k = 0; k < 3; k++) {
			json_t *list = json_array();

			for (int n = rand() % 5; n > 0; n--)
				json_array_append_new(list, json_pack("{s:s, s:[s,s], s:s, s:s}", "text",
					words[(size_t)rand() % HS_COUNT(words)], "source_fact_ids",
					ids[(size_t)rand() % HS_COUNT(ids)], ids[(size_t)rand() % HS_COUNT(ids)],
					"observation_id", ids[(size_t)rand() % HS_COUNT(ids)], "merged_into",
					ids[(size_t)rand() % HS_COUNT(ids)]));
			json_object_set_new(actions, kinds[k], list);
		}
		hs_plan_read(pool, actions, &batch, shown, 2, slots, &p);
		assert_true(slots < 0 || (int64_t)p.n_creates <= slots);
		for (size_t i = 0; i < p.n_updates; i++) {
			assert_true(p.updates[i].shown < 2 && !touched[p.updates[i].shown]);
			touched[p.updates[i].shown] = true;
			assert_in_range(p.updates[i].facts.n, 1, 3);
		}
		for (size_t i = 0; i < p.n_deletes; i++) {
			assert_true(p.deletes[i].shown < 2 && !touched[p.deletes[i].shown]);
			touched[p.deletes[i].shown] = true;
			assert_true(p.deletes[i].into < 2 && p.deletes[i].into != (int64_t)p.deletes[i].shown);
		}
		for (size_t i = 0; i < p.n_creates; i++) {
			assert_in_range(p.creates[i].facts.n, 1, 3);
			assert_true(*p.creates[i].flat);
			for (size_t k = 0; k < i; k++)
				assert_string_not_equal(p.creates[k].flat, p.creates[i].flat);
		}
	}
}

static void a_huge_reply_is_cheap(void **state)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	json_t *actions = hs_json_keep(pool, json_object()), *list = json_array();
	struct plan p;

	(void)state;
	for (int i = 0; i < 50000; i++)
		json_array_append_new(list, json_pack("{s:s, s:[s]}", "text", hs_pool_printf(pool, "text %d", i),
			"source_fact_ids", i % 2 ? F1 : "0193a000-0000-7000-8000-0000000000ff"));
	json_object_set_new(actions, "creates", list);
	hs_plan_read(pool, actions, &batch, shown, 2, -1, &p);
	assert_int_equal(p.n_creates + (size_t)p.unresolved, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_become_plans),
		cmocka_unit_test(ids_are_repaired_within_two_edits),
		cmocka_unit_test(any_reply_gives_a_sound_plan),
		cmocka_unit_test(a_huge_reply_is_cheap),
	};

	return cmocka_run_group_tests_name("consolidate_plan", tests, NULL, NULL);
}
