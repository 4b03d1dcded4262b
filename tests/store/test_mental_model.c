#include "models_fixture.h"

#include <math.h>

static struct hs_strs strs(struct fixture *f, const char *json_text)
{
	json_t *v = NULL;

	OK(f, hs_json_load(f->pool, json_text, &v, &f->err));
	return hs_json_strs(f->pool, v);
}

/* Ids of a listing in order, joined by blanks. */
static const char *listed(struct fixture *f, struct hs_mm_list in)
{
	struct hs_strs ids = {0, NULL};
	struct hs_mm_page page;
	bool *stale;

	page = fixture_list(f, in, &stale);
	for (size_t i = 0; i < page.n; i++)
		hs_strs_add(f->pool, &ids, page.v[i].id);
	return hs_strs_join(f->pool, &ids, " ");
}

static void tags_filter_the_list_without_untagged_models(void **state)
{
	struct fixture *f = *state;
	enum { ANY, ALL, EXACT };

	fixture_model(f, "m1", NULL, NULL);
	fixture_model(f, "m2", "[\"a\"]", NULL);
	fixture_model(f, "m3", "[\"b\",\"a\"]", NULL);
	fixture_model(f, "m4", "[\"c\",\"c\"]", NULL);
	assert_string_equal(listed(f, (struct hs_mm_list){0}), "m4 m3 m2 m1");
	assert_string_equal(listed(f, (struct hs_mm_list){.match = EXACT}), "m4 m3 m2 m1");
	assert_string_equal(
		listed(f, (struct hs_mm_list){.tags = strs(f, "[\"a\",\"c\"]"), .match = ANY}),
		"m4 m3 m2");
	assert_string_equal(
		listed(f, (struct hs_mm_list){.tags = strs(f, "[\"a\",\"b\"]"), .match = ALL}),
		"m3");
	assert_string_equal(
		listed(f, (struct hs_mm_list){.tags = strs(f, "[\"a\",\"b\"]"), .match = EXACT}),
		"m3");
	assert_string_equal(
		listed(f, (struct hs_mm_list){.tags = strs(f, "[\"a\"]"), .match = EXACT}), "m2");
	assert_string_equal(
		listed(f, (struct hs_mm_list){.tags = strs(f, "[\"c\"]"), .match = EXACT}), "m4");
	assert_string_equal(
		listed(f, (struct hs_mm_list){.tags = strs(f, "[\"A\"]"), .match = ANY}), "");
}

static void test_models_case_05_pages_show_every_model_once(void **state)
{
	struct fixture *f = *state;
	int64_t now_us = hs_now_us();
	struct hs_mm_page page;
	bool *stale;

	for (size_t i = 0; i < 5; i++)
		fixture_change(f, fixture_model(f, hs_pool_printf(f->pool, "m%zu", i), NULL, NULL),
			(struct hs_mm_change){.refreshed = true,
				.now_us = now_us,
				.read_until_us = now_us,
				.memory_seen_us = HS_TIME_NONE});
	assert_string_equal(listed(f, (struct hs_mm_list){.limit = 2}), "m4 m3");
	assert_string_equal(listed(f, (struct hs_mm_list){.limit = 2, .offset = 2}), "m2 m1");
	assert_string_equal(listed(f, (struct hs_mm_list){.limit = 2, .offset = 4}), "m0");
	page = fixture_list(f, (struct hs_mm_list){.limit = 2, .offset = 9}, &stale);
	assert_int_equal(page.n, 0);
	assert_int_equal(page.total, 5);
}

static void levels_show_what_they_should(void **state)
{
	struct fixture *f = *state;
	const char *id = fixture_model(f, "m", "[\"a\"]", NULL);
	struct hs_mm m;

	fixture_change(f, id,
		(struct hs_mm_change){.set_content = true,
			.content = "text\n",
			.reflect_response = "{\"text\":\"t\"}"});
	OK(f, hs_mm_get(f->db, f->pool, f->bank.bank_id, id, HS_METADATA, &m, &f->err));
	assert_string_equal(m.tags, "[\"a\"]");
	assert_null(m.content);
	assert_null(m.reflect_response);
	assert_true(m.last_memory_seen_us == HS_TIME_NONE);
	OK(f, hs_mm_get(f->db, f->pool, f->bank.bank_id, id, HS_CONTENT, &m, &f->err));
	assert_string_equal(m.content, "text\n");
	assert_null(m.reflect_response);
	OK(f, hs_mm_get(f->db, f->pool, f->bank.bank_id, id, HS_FULL, &m, &f->err));
	assert_string_equal(m.reflect_response, "{\"text\":\"t\"}");
	assert_true(m.clock_us == fixture_clock(f));
	assert_int_equal(hs_mm_get(f->db, f->pool, f->bank.bank_id, "M", HS_FULL, &m, &f->err),
		HS_E_NOT_FOUND);
	assert_string_equal(f->err.msg, "Mental model 'M' not found");
	assert_int_equal(
		hs_mm_get(f->db, f->pool, "no bank", id, HS_FULL, &m, &f->err), HS_E_NOT_FOUND);
}

static void test_models_case_57_the_list_of_an_unknown_bank(void **state)
{
	struct fixture *f = *state;
	struct hs_mm_list in = {.bank_id = "no bank", .limit = 10};
	struct hs_mm_page page;

	assert_int_equal(hs_mm_list(f->db, f->pool, &in, &page, &f->err), HS_E_BANK_MISSING);
	assert_string_equal(f->err.msg, "Bank 'no bank' not found");
}

static void test_fault_64_an_id_that_exists_stays_as_it_is(void **state)
{
	struct fixture *f = *state;
	struct hs_mm m;

	fixture_model(f, "team", "[\"a\"]", NULL);
	assert_int_equal(fixture_try_model(f, "team", "[\"b\"]", NULL, NULL), HS_E_CONFLICT);
	assert_string_equal(f->err.msg,
		hs_pool_printf(f->pool, "Mental model 'team' already exists in bank '%s'",
			f->bank.bank_id));
	OK(f, hs_mm_get(f->db, f->pool, f->bank.bank_id, "team", HS_FULL, &m, &f->err));
	assert_string_equal(m.tags, "[\"a\"]");
	assert_string_equal(listed(f, (struct hs_mm_list){.tags = strs(f, "[\"b\"]")}), "");
}

/* ---- history ---- */

struct event {
	struct fixture *f;
	const char *content;
	bool failed;
	int64_t keep;
};

static enum hs_rc event_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct event *e = arg;

	return hs_mm_history_add(db, e->f->pool, e->f->bank.bank_no, "m", e->failed, e->content,
		hs_now_us(), e->keep, err);
}

static void add_events(struct fixture *f, const char *prefix, size_t n, bool failed, int64_t keep)
{
	for (size_t i = 1; i <= n; i++) {
		struct event e = {f, hs_pool_printf(f->pool, "%s%zu", prefix, i), failed, keep};

		OK(f, hs_tx_run(f->db, event_in_tx, &e, &f->err));
	}
}

static const char *events(struct fixture *f)
{
	struct hs_strs all = {0, NULL};
	struct hs_mm_event *v;
	size_t n;

	OK(f, hs_mm_history(f->db, f->pool, f->bank.bank_id, "m", &v, &n, &f->err));
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(v[i].failed, v[i].content[0] == 'f');
		hs_strs_add(f->pool, &all, v[i].content);
	}
	return hs_strs_join(f->pool, &all, " ");
}

static void test_models_case_47_the_newest_of_each_kind_are_kept(void **state)
{
	struct fixture *f = *state;

	fixture_model(f, "m", NULL, NULL);
	assert_string_equal(events(f), "");
	add_events(f, "v", 5, false, 3);
	assert_string_equal(events(f), "v5 v4 v3");
	/* failures do not push out versions */
	add_events(f, "f", 50, true, 3);
	assert_string_equal(events(f), "f50 f49 f48 v5 v4 v3");
	add_events(f, "w", 2, false, 0);
	assert_string_equal(events(f), "w2 w1 f50 f49 f48 v5 v4 v3");
	/* entries of one moment go by their number */
	hs_clock_pin(hs_now_us());
	add_events(f, "x", 4, false, 2);
	hs_clock_pin(HS_TIME_NONE);
	assert_string_equal(events(f), "x4 x3 f50 f49 f48");
}

static void deleting_a_model_takes_tags_and_history_along(void **state)
{
	struct fixture *f = *state;
	struct hs_mm_event *v;
	size_t n;

	fixture_model(f, "m", "[\"a\"]", NULL);
	add_events(f, "v", 2, false, 50);
	OK(f, hs_mm_delete(f->db, f->pool, f->bank.bank_id, "m", &f->err));
	assert_int_equal(
		hs_mm_delete(f->db, f->pool, f->bank.bank_id, "m", &f->err), HS_E_NOT_FOUND);
	assert_int_equal(hs_mm_history(f->db, f->pool, f->bank.bank_id, "m", &v, &n, &f->err),
		HS_E_NOT_FOUND);
	fixture_model(f, "m", NULL, NULL);
	assert_string_equal(events(f), "");
	assert_string_equal(listed(f, (struct hs_mm_list){.tags = strs(f, "[\"a\"]")}), "");
}

/* ---- search ---- */

static int64_t embedder(struct fixture *f, const char *tag)
{
	struct hs_rows rows;

	/* 1062 when an earlier test made it */
	if (hs_db_exec(f->db, "INSERT INTO embedders (tag) VALUES (?)", HS_BINDS(hs_b_str(tag)),
		    NULL, &f->err) != HS_OK)
		assert_int_equal(f->err.rc, HS_E_DB_DUPLICATE);
	OK(f, hs_db_select(f->db, f->pool, "SELECT embedder_no FROM embedders WHERE tag = ?",
		      HS_BINDS(hs_b_str(tag)), &rows, &f->err));
	return hs_row(&rows, 0)[0].i;
}

static void with_vector(
	struct fixture *f, const char *id, const char *tags, const char *tag, float x, float y)
{
	float size = sqrtf(x * x + y * y),
	      v[2] = {size > 0 ? x / size : 0, size > 0 ? y / size : 0};
	struct hs_mm_vector vector = {v, 2, embedder(f, tag)};

	OK(f, fixture_try_model(f, id, tags, NULL, &vector));
}

static const char *found(struct fixture *f, struct hs_mm_search in)
{
	static const float query[2] = {1, 0};
	struct hs_scope all = hs_scope_all();
	struct hs_strs ids = {0, NULL};
	struct hs_mm_hit *hits;
	size_t n;

	in.bank_no = f->bank.bank_no;
	in.embedder = "test-2";
	in.vec = query;
	in.dim = 2;
	if (!in.scope)
		in.scope = &all;
	OK(f, hs_mm_search(f->db, f->pool, &in, &hits, &n, &f->err));
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || hits[i].relevance <= hits[i - 1].relevance);
		assert_non_null(hits[i].model.content);
		hs_strs_add(f->pool, &ids, hits[i].model.id);
	}
	return hs_strs_join(f->pool, &ids, " ");
}

static void search_ranks_vectors_of_the_present_embedder(void **state)
{
	struct fixture *f = *state;
	struct hs_scope scope = hs_scope_all();

	with_vector(f, "far", "[\"a\"]", "test-2", -1, 0);
	with_vector(f, "near", "[\"a\"]", "test-2", 1, 0.1f);
	with_vector(f, "middle", NULL, "test-2", 1, 1);
	with_vector(f, "other", NULL, "other-2", 1, 0);
	with_vector(f, "zero", NULL, "test-2", 0, 0);
	fixture_model(f, "none", NULL, NULL);
	assert_string_equal(found(f, (struct hs_mm_search){.max = 10}), "near middle zero far");
	assert_string_equal(found(f, (struct hs_mm_search){.max = 2}), "near middle");
	assert_string_equal(found(f, (struct hs_mm_search){.max = 1}), "near");
	assert_string_equal(found(f, (struct hs_mm_search){.max = 0}), "");
	assert_string_equal(found(f, (struct hs_mm_search){.max = 5,
					     .exclude = strs(f, "[\"near\",\"zero\"]")}),
		"middle far");
	scope.tags = strs(f, "[\"a\"]");
	scope.match = HS_ANY_STRICT;
	assert_string_equal(found(f, (struct hs_mm_search){.max = 5, .scope = &scope}), "near far");
}

static void models_are_read_in_the_order_asked(void **state)
{
	struct fixture *f = *state;
	struct hs_scope all = hs_scope_all();
	struct hs_strs ids = strs(f, "[\"b\",\"missing\",\"a\",\"b\"]");
	struct hs_mm *v;
	size_t n;

	fixture_model(f, "a", NULL, NULL);
	fixture_model(f, "b", NULL, NULL);
	OK(f, hs_mm_read(f->db, f->pool, f->bank.bank_no, &all, &ids, &v, &n, &f->err));
	assert_int_equal(n, 3);
	assert_string_equal(v[0].id, "b");
	assert_string_equal(v[1].id, "a");
	assert_string_equal(v[2].id, "b");
}

static bool sibling(struct fixture *f, const char *exclude)
{
	struct hs_scope all = hs_scope_all();
	struct hs_strs ids = strs(f, exclude);
	bool found_one = false;

	OK(f, hs_mm_has_sibling(f->db, f->pool, f->bank.bank_no, &all, &ids, &found_one, &f->err));
	return found_one;
}

static void only_written_bodies_are_siblings(void **state)
{
	static const char *const unwritten[] = {"", " \n\t", "Generating content..."};
	struct fixture *f = *state;

	fixture_model(f, "m", NULL, NULL);
	for (size_t i = 0; i < HS_COUNT(unwritten); i++) {
		fixture_change(f, "m",
			(struct hs_mm_change){.set_content = true, .content = unwritten[i]});
		assert_false(sibling(f, "[]"));
	}
	fixture_change(f, "m", (struct hs_mm_change){.set_content = true, .content = " \n x"});
	assert_true(sibling(f, "[]"));
	assert_true(sibling(f, "[\"other\"]"));
	assert_false(sibling(f, "[\"m\"]"));
}

static void the_failure_stamp_stands_until_a_refresh_completes(void **state)
{
	struct fixture *f = *state;
	struct hs_mm m;

	fixture_model(f, "m", NULL, NULL);
	OK(f, hs_mm_stamp_failure(f->db, f->bank.bank_no, "m", hs_now_us(), &f->err));
	OK(f, hs_mm_stamp_failure(f->db, f->bank.bank_no, "gone", hs_now_us(), &f->err));
	fixture_change(
		f, "m", (struct hs_mm_change){.name = "other", .set_content = true, .content = ""});
	OK(f, hs_mm_load(f->db, f->pool, f->bank.bank_no, "m", &m, &f->err));
	assert_true(m.last_refresh_failed_us != HS_TIME_NONE);
	assert_true(m.clock_us == fixture_clock(f));
	fixture_change(f, "m",
		(struct hs_mm_change){.refreshed = true,
			.now_us = hs_now_us(),
			.read_until_us = m.clock_us,
			.memory_seen_us = HS_TIME_NONE,
			.refreshed_full = true});
	OK(f, hs_mm_load(f->db, f->pool, f->bank.bank_no, "m", &m, &f->err));
	assert_true(m.last_refresh_failed_us == HS_TIME_NONE);
	assert_true(m.last_memory_seen_us == HS_TIME_NONE);
	assert_true(m.last_full_refreshed_us == m.last_refreshed_us);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_CASE(tags_filter_the_list_without_untagged_models),
		FIXTURE_CASE(test_models_case_05_pages_show_every_model_once),
		FIXTURE_CASE(levels_show_what_they_should),
		FIXTURE_CASE(test_models_case_57_the_list_of_an_unknown_bank),
		FIXTURE_CASE(test_fault_64_an_id_that_exists_stays_as_it_is),
		FIXTURE_CASE(test_models_case_47_the_newest_of_each_kind_are_kept),
		FIXTURE_CASE(deleting_a_model_takes_tags_and_history_along),
		FIXTURE_CASE(search_ranks_vectors_of_the_present_embedder),
		FIXTURE_CASE(models_are_read_in_the_order_asked),
		FIXTURE_CASE(only_written_bodies_are_siblings),
		FIXTURE_CASE(the_failure_stamp_stands_until_a_refresh_completes),
	};

	FIXTURE_MAIN_CHECK;
	return cmocka_run_group_tests_name("mental_model", tests, NULL, NULL);
}
