/* Schedules: what the tick queues, what it notes, what it leaves alone, and how little it asks. */
#include "models_fixture.h"

#include "engine/tick.h"
#include "store/automatic.h"
#include "store/operation.h"

#define HOUR_US (3600 * HS_SECOND_US)

/* Tuesday, half past ten. */
static int64_t now_us(void)
{
	int64_t us = 0;

	assert_true(hs_time_parse("2026-03-03T10:30:00Z", &us));
	return us;
}

/* A tick looks at every bank: leave nothing to the next case. */
static int teardown(void **state)
{
	struct fixture *f = *state;

	OK(f, hs_db_exec(f->db, "DELETE FROM mental_models", HS_NO_BINDS, NULL, &f->err));
	return fixture_teardown(state);
}

static struct hs_tick look(struct fixture *f, int64_t at_us)
{
	struct hs_tick t;

	OK(f, hs_tick_look(f->db, at_us, &t, &f->err));
	return t;
}

static void set_time(struct fixture *f, const char *id, const char *column, int64_t us)
{
	const char *sql = hs_pool_printf(
		f->pool, "UPDATE mental_models SET %s = ? WHERE bank_no = ? AND id = ?", column);

	OK(f, hs_db_exec(f->db, sql,
		      HS_BINDS(hs_b_time(us), hs_b_int(f->bank.bank_no), hs_b_str(id)), NULL,
		      &f->err));
}

static int64_t get_time(struct fixture *f, const char *id, const char *column)
{
	const char *sql = hs_pool_printf(
		f->pool, "SELECT %s FROM mental_models WHERE bank_no = ? AND id = ?", column);
	struct hs_rows rows;

	OK(f, hs_db_select(f->db, f->pool, sql, HS_BINDS(hs_b_int(f->bank.bank_no), hs_b_str(id)),
		      &rows, &f->err));
	assert_int_equal(rows.n, 1);
	return rows.v[0].null ? HS_TIME_NONE : rows.v[0].i;
}

/* A model whose last refresh was a full one, hours_ago. trigger is stored as it is. */
static const char *scheduled(
	struct fixture *f, const char *id, const char *tags, const char *trigger, int64_t hours_ago)
{
	fixture_model(f, id, tags, NULL);
	OK(f, hs_db_exec(f->db,
		      "UPDATE mental_models SET has_cron = 1, trigger_json = ?"
		      " WHERE bank_no = ? AND id = ?",
		      HS_BINDS(hs_b_str(trigger), hs_b_int(f->bank.bank_no), hs_b_str(id)), NULL,
		      &f->err));
	set_time(f, id, "last_refreshed_at", now_us() - hours_ago * HOUR_US);
	set_time(f, id, "last_full_refreshed_at", now_us() - hours_ago * HOUR_US);
	return id;
}

/* "id[ full]" of the bank's refreshes that wait, by id. */
static const char *queued(struct fixture *f)
{
	struct hs_strs list = {0, NULL};
	struct hs_rows rows;

	OK(f, hs_db_select(f->db, f->pool,
		      "SELECT subject_id, task_payload FROM async_operations"
		      " WHERE bank_no = ? AND status = 'pending'"
		      " AND operation_type = 'refresh_mental_model' ORDER BY subject_id",
		      HS_BINDS(hs_b_int(f->bank.bank_no)), &rows, &f->err));
	for (size_t i = 0; i < rows.n; i++) {
		const struct hs_val *v = hs_row(&rows, i);

		assert_non_null(strstr(v[1].s, "\"_automatic\":true"));
		hs_strs_add(f->pool, &list,
			hs_pool_printf(f->pool, "%s%s", v[0].s,
				strstr(v[1].s, "\"full\"") ? " full" : ""));
	}
	return hs_strs_join(f->pool, &list, ", ");
}

static void end_operations(struct fixture *f)
{
	OK(f, hs_db_exec(f->db,
		      "UPDATE async_operations SET status = 'completed' WHERE bank_no = ?",
		      HS_BINDS(hs_b_int(f->bank.bank_no)), NULL, &f->err));
}

#define HOURLY "{\"refresh_cron\":\"0 * * * *\"}"

static void test_models_case_28_due_and_stale(void **state)
{
	struct fixture *f = *state;
	struct hs_tick t;

	scheduled(f, "due-fresh", "[\"b\"]", HOURLY, 1);
	scheduled(f, "due-stale", "[\"a\"]", HOURLY, 1);
	scheduled(f, "not-due", "[\"a\"]", HOURLY, 0);
	scheduled(f, "broken", "[\"a\"]", "{\"refresh_cron\":\"61 * * * *\"}", 1);
	scheduled(f, "no-json", "[\"a\"]", "{", 1);
	scheduled(f, "blank", "[\"a\"]", "{\"refresh_cron\":\"  \",\"full_refresh_cron\":null}", 1);
	fixture_memory(f, "world", "[\"a\"]");
	t = look(f, now_us());
	assert_string_equal(queued(f), "due-stale");
	assert_int_equal(t.seen, 6);
	assert_int_equal(t.due, 2);
	assert_int_equal(t.fresh, 1);
	assert_int_equal(t.queued, 1);
	assert_int_equal(t.bad, 2);
	assert_int_equal(get_time(f, "due-fresh", "last_cron_checked_at"), now_us());
	assert_int_equal(get_time(f, "due-stale", "last_cron_checked_at"), HS_TIME_NONE);
	assert_int_equal(get_time(f, "not-due", "last_cron_checked_at"), HS_TIME_NONE);
	assert_int_equal(get_time(f, "due-fresh", "last_refreshed_at"), now_us() - HOUR_US);
}

static void test_models_case_28_a_late_write_waits_for_the_boundary(void **state)
{
	struct fixture *f = *state;

	scheduled(f, "m", NULL, HOURLY, 1);
	look(f, now_us());
	fixture_memory(f, "world", "[]");
	/* 10:35, 11:00 sharp (the boundary is not before it), just after it */
	look(f, now_us() + 300 * HS_SECOND_US);
	look(f, now_us() + 1800 * HS_SECOND_US);
	assert_string_equal(queued(f), "");
	look(f, now_us() + 1800 * HS_SECOND_US + 1);
	assert_string_equal(queued(f), "m");
}

static void test_fault_63_missed_hours_fold_into_one(void **state)
{
	struct fixture *f = *state;

	scheduled(f, "gap", NULL, HOURLY, 72);
	scheduled(f, "made-since", NULL, HOURLY, 0);
	fixture_memory(f, "world", "[]");
	assert_int_equal(look(f, now_us()).queued, 1);
	assert_string_equal(queued(f), "gap");
	/* it waits or runs: it is left alone */
	assert_int_equal(look(f, now_us()).due, 0);
	OK(f, hs_db_exec(f->db,
		      "UPDATE async_operations SET status = 'processing' WHERE bank_no = ?",
		      HS_BINDS(hs_b_int(f->bank.bank_no)), NULL, &f->err));
	assert_int_equal(look(f, now_us() + HOUR_US).due, 1);
	assert_int_equal(get_time(f, "gap", "last_cron_checked_at"), HS_TIME_NONE);
	end_operations(f);
	set_time(f, "gap", "last_refreshed_at", now_us());
	assert_int_equal(look(f, now_us()).queued, 0);
	assert_string_equal(queued(f), "");
}

static void a_paused_model_is_not_looked_at(void **state)
{
	struct fixture *f = *state;

	scheduled(f, "m", NULL,
		"{\"refresh_cron\":\"0 * * * *\",\"full_refresh_cron\":\"0 * * * *\"}", 5);
	set_time(f, "m", "last_full_refreshed_at", HS_TIME_NONE);
	fixture_memory(f, "world", "[]");
	set_time(f, "m", "last_refresh_failed_at", now_us());
	assert_int_equal(look(f, now_us()).seen, 0);
	set_time(f, "m", "last_refresh_failed_at", HS_TIME_NONE);
	assert_int_equal(look(f, now_us()).queued, 1);
}

static void test_models_case_56_full_schedules(void **state)
{
	static const struct {
		const char *trigger;
		int64_t refreshed_h, full_h; /* hours ago; full_h < 0 = never */
		bool write;
		const char *queued;
	} rows[] = {
		{"{\"full_refresh_cron\":\"0 * * * *\"}", 2, 5, false, "m full"},
		{"{\"full_refresh_cron\":\"0 * * * *\"}", 2, -1, false, "m full"},
		{"{\"full_refresh_cron\":\"0 * * * *\"}", 5, 5, true, ""},
		{"{\"full_refresh_cron\":\"0 6 * * *\"}", 1, 2, true, ""},
		{"{\"full_refresh_cron\":\"0 6 * * *\"}", 1, 9, false, "m full"},
		{"{\"full_refresh_cron\":\"0 6 * * *\",\"refresh_cron\":\"0 * * * *\"}", 1, 9, true,
			"m full"},
		{"{\"full_refresh_cron\":\"0 6 * * *\",\"refresh_cron\":\"0 * * * *\"}", 1, 2, true,
			"m"},
		{"{\"full_refresh_cron\":\"0 6 * * *\",\"refresh_cron\":\"0 * * * *\"}", 1, 2,
			false, ""},
		{"{\"full_refresh_cron\":\"hello\",\"refresh_cron\":\"0 * * * *\"}", 1, 2, true,
			"m"},
		{"{\"full_refresh_cron\":\"0 6 * * *\",\"refresh_after_consolidation\":true}", 1, 9,
			false, "m full"},
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct fixture *f = *state;

		scheduled(f, "m", NULL, rows[i].trigger, rows[i].refreshed_h);
		set_time(f, "m", "last_full_refreshed_at",
			rows[i].full_h < 0 ? HS_TIME_NONE : now_us() - rows[i].full_h * HOUR_US);
		if (rows[i].write)
			fixture_memory(f, "world", "[]");
		look(f, now_us());
		if (strcmp(queued(f), rows[i].queued) != 0)
			fail_msg("row %zu: queued '%s', expected '%s'", i, queued(f),
				rows[i].queued);
		teardown(state);
		fixture_setup(state);
	}
}

static void models_of_a_deleted_bank_are_passed_over(void **state)
{
	struct fixture *f = *state;

	scheduled(f, "m", NULL, "{\"full_refresh_cron\":\"0 * * * *\"}", 5);
	set_time(f, "m", "last_full_refreshed_at", HS_TIME_NONE);
	OK(f, hs_db_exec(f->db, "DELETE FROM bank_clock WHERE bank_no = ?",
		      HS_BINDS(hs_b_int(f->bank.bank_no)), NULL, &f->err));
	assert_int_equal(look(f, now_us()).due, 0);
	assert_string_equal(queued(f), "");
}

/* Models in banks of their own and of the fixture: what is asked does not grow with them. */
static void pages_are_what_a_tick_costs(void **state)
{
	struct fixture *f = *state;
	uint64_t before, none_due, fresh;
	struct hs_tick t;

	for (int i = 0; i < 1100; i++)
		OK(f, hs_db_exec(f->db,
			      "INSERT INTO mental_models (bank_no, id, name, source_query, content,"
			      " tags, trigger_json, last_refreshed_at, read_until, has_cron, created_at)"
			      " VALUES (?, ?, 'm', '?', '', '[]', ?, ?, '2100-01-01', 1, ?)",
			      HS_BINDS(hs_b_int(f->bank.bank_no + (i % 3 ? 0 : i * 1000)),
				      hs_b_str(hs_pool_printf(f->pool, "m-%04d", i)),
				      hs_b_str(HOURLY), hs_b_time(now_us()), hs_b_time(now_us())),
			      NULL, &f->err));
	before = hs_db_statements(f->db);
	t = look(f, now_us() + HS_SECOND_US);
	none_due = hs_db_statements(f->db) - before;
	assert_int_equal(t.seen, 1100);
	assert_int_equal(t.due, 0);
	assert_int_equal(none_due, 3);

	/* due and fresh by the clock: open ones, clocks and one note a page */
	before = hs_db_statements(f->db);
	t = look(f, now_us() + HOUR_US);
	fresh = hs_db_statements(f->db) - before;
	assert_int_equal(t.fresh, t.due);
	assert_true(t.due >= 733);
	assert_in_range(fresh, 3, 3 + 3 * 5);
	assert_int_equal(look(f, now_us() + HOUR_US + 60 * HS_SECOND_US).due, 0);
	OK(f, hs_db_exec(f->db, "DELETE FROM mental_models", HS_NO_BINDS, NULL, &f->err));
}

static void test_models_case_70_one_claim_a_period(void **state)
{
	struct fixture *f = *state;
	struct hs_tick t;
	bool mine;

	OK(f, hs_db_exec(f->db, "DELETE FROM server_state WHERE name = 'last_refresh_tick'",
		      HS_NO_BINDS, NULL, &f->err));
	fixture_cfg(f, "llm_provider", "extractive");
	fixture_cfg(f, "mental_model_refresh_tick_seconds", "0");
	OK(f, hs_tick_run(f->db, f->cfg, &mine, &t, &f->err));
	assert_false(mine);
	fixture_cfg(f, "mental_model_refresh_tick_seconds", "60");
	for (int i = 0; i < 3; i++) {
		OK(f, hs_tick_run(f->db, f->cfg, &mine, &t, &f->err));
		assert_int_equal(mine, i == 0);
	}
	OK(f, hs_db_exec(f->db,
		      "UPDATE server_state SET updated_at = updated_at - INTERVAL 61 SECOND"
		      " WHERE name = 'last_refresh_tick'",
		      HS_NO_BINDS, NULL, &f->err));
	OK(f, hs_tick_run(f->db, f->cfg, &mine, &t, &f->err));
	assert_true(mine);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_models_case_28_due_and_stale),
		CASE(test_models_case_28_a_late_write_waits_for_the_boundary),
		CASE(test_fault_63_missed_hours_fold_into_one),
		CASE(a_paused_model_is_not_looked_at),
		CASE(test_models_case_56_full_schedules),
		CASE(models_of_a_deleted_bank_are_passed_over),
		CASE(pages_are_what_a_tick_costs),
		CASE(test_models_case_70_one_claim_a_period),
	};

	FIXTURE_MAIN_CHECK;
	return cmocka_run_group_tests_name("tick", tests, NULL, NULL);
}
