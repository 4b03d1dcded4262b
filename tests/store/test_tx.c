/* The transaction runner and the commit clock, with two connections. */
#include "models_fixture.h"

#include <pthread.h>

#include "base/limits.h"

/* ---- a small table of our own ---- */

struct pair {
	struct fixture *f;
	struct hs_db *a, *b;
	int runs;
};

static int pair_setup(void **state)
{
	struct fixture *f;
	struct pair *p;

	fixture_setup(state);
	f = *state;
	p = HS_NEW(f->pool, struct pair);
	p->f = f;
	p->a = f->db;
	p->b = hs_db_new(f->cfg);
	OK(f, hs_db_script(p->a,
		      "CREATE TABLE IF NOT EXISTS tx_test (id INT PRIMARY KEY, v INT NOT NULL, t LONGTEXT)",
		      &f->err));
	OK(f, hs_db_script(p->a, "TRUNCATE tx_test", &f->err));
	OK(f, hs_db_script(p->a, "INSERT INTO tx_test VALUES (1, 0, ''), (2, 0, '')", &f->err));
	*state = p;
	return 0;
}

static int pair_teardown(void **state)
{
	struct pair *p = *state;
	void *f = p->f;

	OK(p->f, hs_db_script(p->a, "DROP TABLE IF EXISTS tx_test", &p->f->err));
	hs_db_free(&p->b);
	return fixture_teardown(&f);
}

static int64_t value(struct pair *p, int id)
{
	struct hs_rows rows;

	OK(p->f, hs_db_select(p->b, p->f->pool, "SELECT v FROM tx_test WHERE id = ?",
			 HS_BINDS(hs_b_int(id)), &rows, &p->f->err));
	return rows.v[0].i;
}

static int64_t connection_id(struct pair *p, struct hs_db *db)
{
	struct hs_rows rows;

	OK(p->f, hs_db_select(
			 db, p->f->pool, "SELECT CONNECTION_ID()", HS_NO_BINDS, &rows, &p->f->err));
	return rows.v[0].i;
}

static void kill_it(struct pair *p, const char *what, int64_t id)
{
	OK(p->f, hs_db_script(p->b, hs_pool_printf(p->f->pool, "KILL %s %lld", what, (long long)id),
			 &p->f->err));
}

static enum hs_rc add(struct hs_db *db, int id, struct hs_err *err)
{
	return hs_db_exec(
		db, "UPDATE tx_test SET v = v + 1 WHERE id = ?", HS_BINDS(hs_b_int(id)), NULL, err);
}

/* ---- the runner ---- */

static enum hs_rc add_then_fail(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct pair *p = arg;

	p->runs++;
	HS_TRY(add(db, 1, err));
	return hs_fail(err, HS_E_CONFLICT, "no");
}

static void an_error_rolls_back_and_is_handed_on(void **state)
{
	struct pair *p = *state;
	struct hs_err err;

	hs_err_clear(&err);
	assert_int_equal(hs_tx_run(p->a, add_then_fail, p, &err), HS_E_CONFLICT);
	assert_string_equal(err.msg, "no");
	assert_int_equal(p->runs, 1);
	assert_int_equal(value(p, 1), 0);
	assert_false(hs_tx_open(p->a));
}

static enum hs_rc deadlock_twice(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct pair *p = arg;

	HS_TRY(add(db, 1, err));
	return ++p->runs < 3 ? hs_fail(err, HS_E_DB_DEADLOCK, "again") : HS_OK;
}

static void a_deadlock_runs_the_whole_again(void **state)
{
	struct pair *p = *state;

	OK(p->f, hs_tx_run(p->a, deadlock_twice, p, &p->f->err));
	assert_int_equal(p->runs, 3);
	assert_int_equal(value(p, 1), 1);
}

static enum hs_rc deadlock_always(struct hs_db *db, void *arg, struct hs_err *err)
{
	(void)db;
	((struct pair *)arg)->runs++;
	return hs_fail(err, HS_E_DB_DEADLOCK, "again");
}

static void a_deadlock_that_stays_is_given_up(void **state)
{
	struct pair *p = *state;
	struct hs_err err;

	assert_int_equal(hs_tx_run(p->a, deadlock_always, p, &err), HS_E_DB_DEADLOCK);
	assert_int_equal(p->runs, HS_TX_TRIES);
}

/* Two threads lock two rows in opposite orders: MariaDB ends one with 1213. */
struct cross {
	struct hs_db *db;
	int first, second;
	_Atomic int runs;
	enum hs_rc rc;
	struct hs_err err;
};

static enum hs_rc lock_both(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct cross *c = arg;

	c->runs++;
	HS_TRY(add(db, c->first, err));
	hs_sleep_us(50000);
	return add(db, c->second, err);
}

static void *cross_thread(void *arg)
{
	struct cross *c = arg;

	c->rc = hs_tx_run(c->db, lock_both, c, &c->err);
	return NULL;
}

static void test_fault_60_deadlocks_are_retried(void **state)
{
	struct pair *p = *state;
	struct cross c[2] = {
		{.db = p->a, .first = 1, .second = 2}, {.db = p->b, .first = 2, .second = 1}};
	pthread_t t[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, cross_thread, &c[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(c[0].rc, HS_OK);
	assert_int_equal(c[1].rc, HS_OK);
	assert_true(c[0].runs + c[1].runs >= 3);
	assert_int_equal(value(p, 1), 2);
	assert_int_equal(value(p, 2), 2);
}

static enum hs_rc lose_connection_once(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct pair *p = arg;

	HS_TRY(add(db, 1, err));
	if (p->runs++ == 0)
		kill_it(p, "CONNECTION", connection_id(p, db));
	return add(db, 2, err);
}

static void a_connection_lost_before_commit_runs_again(void **state)
{
	struct pair *p = *state;

	OK(p->f, hs_tx_run(p->a, lose_connection_once, p, &p->f->err));
	assert_int_equal(p->runs, 2);
	assert_int_equal(value(p, 1), 1);
	assert_int_equal(value(p, 2), 1);
}

/* ---- statements ---- */

static void an_idle_connection_that_was_closed_is_replaced(void **state)
{
	struct pair *p = *state;
	int64_t old = connection_id(p, p->a);

	kill_it(p, "CONNECTION", old);
	OK(p->f, add(p->a, 1, &p->f->err));
	assert_true(connection_id(p, p->a) != old);
	assert_int_equal(value(p, 1), 1);
}

static void *kill_query(void *arg)
{
	struct pair *p = arg;

	hs_sleep_us(150000);
	kill_it(p, "QUERY", p->runs);
	return NULL;
}

static void a_killed_query_is_a_plain_database_error(void **state)
{
	struct pair *p = *state;
	struct hs_rows rows;
	struct hs_err err;
	pthread_t t;

	p->runs = (int)connection_id(p, p->a);
	assert_int_equal(pthread_create(&t, NULL, kill_query, p), 0);
	hs_err_clear(&err);
	assert_int_equal(hs_db_select(p->a, p->f->pool,
				 "SELECT COUNT(*) FROM tx_test a, tx_test b WHERE SLEEP(5) = 9",
				 HS_NO_BINDS, &rows, &err),
		HS_E_DB);
	pthread_join(t, NULL);
	assert_int_equal(err.foreign, 1317);
	assert_string_equal(hs_err_public(&err), "database error");
	OK(p->f, add(p->a, 1, &p->f->err));
}

static void a_dropped_table_is_a_plain_database_error(void **state)
{
	struct pair *p = *state;
	struct hs_err err;

	OK(p->f, add(p->a, 1, &p->f->err));
	OK(p->f, hs_db_script(p->b, "DROP TABLE tx_test", &p->f->err));
	hs_err_clear(&err);
	assert_int_equal(add(p->a, 1, &err), HS_E_DB);
	assert_int_equal(err.foreign, 1146);
	assert_string_equal(hs_err_public(&err), "database error");
}

static void a_changed_table_is_prepared_again(void **state)
{
	struct pair *p = *state;
	struct hs_rows rows;

	OK(p->f, hs_db_select(p->a, p->f->pool, "SELECT * FROM tx_test", HS_NO_BINDS, &rows,
			 &p->f->err));
	assert_int_equal(rows.cols, 3);
	OK(p->f, hs_db_script(p->b, "ALTER TABLE tx_test ADD COLUMN more INT NULL", &p->f->err));
	OK(p->f, hs_db_select(p->a, p->f->pool, "SELECT * FROM tx_test", HS_NO_BINDS, &rows,
			 &p->f->err));
	assert_int_equal(rows.cols, 4);
	assert_int_equal(rows.n, 2);
}

static void more_statements_than_the_cache_holds(void **state)
{
	struct pair *p = *state;

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < HS_STMT_CACHE + 20; i++) {
			const char *q = hs_pool_printf(p->f->pool, "SELECT %d + ?", i);
			struct hs_rows rows;

			OK(p->f, hs_db_select(p->a, p->f->pool, q, HS_BINDS(hs_b_int(1)), &rows,
					 &p->f->err));
			assert_int_equal(rows.v[0].i, i + 1);
		}
}

static void long_and_four_byte_texts_come_back_equal(void **state)
{
	struct pair *p = *state;
	size_t n = 3 * 1024 * 1024;
	char *text = hs_pool_alloc(p->f->pool, n + 1);
	struct hs_rows rows;

	for (size_t i = 0; i < n; i += 4)
		memcpy(text + i, "\xf0\x9f\x8e\x89", 4);
	text[n] = '\0';
	OK(p->f, hs_db_exec(p->a, "UPDATE tx_test SET t = ? WHERE id = 1", HS_BINDS(hs_b_str(text)),
			 NULL, &p->f->err));
	OK(p->f, hs_db_select(p->a, p->f->pool, "SELECT t, id FROM tx_test ORDER BY id",
			 HS_NO_BINDS, &rows, &p->f->err));
	assert_int_equal(rows.v[0].n, n);
	assert_memory_equal(rows.v[0].s, text, n);
	assert_int_equal(hs_row(&rows, 1)[0].n, 0);
}

static void times_keep_their_microseconds(void **state)
{
	static const char *const texts[] = {"2026-01-02T03:04:05.000001+00:00",
		"1969-12-31T23:59:59.999999+00:00", "0001-01-01T00:00:00+00:00",
		"9999-12-31T23:59:59.999999+00:00"};
	struct pair *p = *state;

	for (size_t i = 0; i < HS_COUNT(texts); i++) {
		struct hs_rows rows;
		int64_t us;

		assert_true(hs_time_parse(texts[i], &us));
		OK(p->f, hs_db_select(p->a, p->f->pool, "SELECT CAST(? AS DATETIME(6))",
				 HS_BINDS(hs_b_time(us)), &rows, &p->f->err));
		assert_int_equal(rows.v[0].i, us);
	}
}

static void a_value_larger_than_a_packet_is_refused_before_it_is_sent(void **state)
{
	struct pair *p = *state;
	size_t n = (size_t)hs_db_max_packet(p->a) + 1;
	char *text = malloc(n);
	struct hs_err err;

	assert_non_null(text);
	memset(text, 'x', n);
	hs_err_clear(&err);
	assert_int_equal(hs_db_exec(p->a, "UPDATE tx_test SET t = ? WHERE id = 1",
				 HS_BINDS(hs_b_strn(text, n)), NULL, &err),
		HS_E_TOO_LARGE);
	free(text);
	OK(p->f, add(p->a, 1, &p->f->err));
}

static void an_absent_database_is_named(void **state)
{
	struct pair *p = *state;
	struct hs_config *cfg = hs_config_defaults(p->f->pool);
	struct hs_db *db;
	struct hs_err err;

	OK(p->f, hs_config_set(cfg, "database_socket", "/nonexistent/db.sock", &p->f->err));
	db = hs_db_new(cfg);
	hs_err_clear(&err);
	assert_int_equal(hs_db_ping(db, &err), HS_E_DB_DOWN);
	hs_db_free(&db);
	fixture_cfg(p->f, "database_name", "no_such_database");
	db = hs_db_new(p->f->cfg);
	assert_int_equal(hs_db_ping(db, &err), HS_E_DB_SCHEMA);
	hs_db_free(&db);
}

/* ---- the commit clock ---- */

struct writer {
	struct pair *p;
	struct hs_db *db;
	int64_t hold_us, stamp, committed_us;
	struct hs_err err;
};

static enum hs_rc write_memory(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct writer *w = arg;

	HS_TRY(hs_clock_advance(db, w->p->f->bank.bank_no, &w->stamp, err));
	hs_sleep_us(w->hold_us);
	return HS_OK;
}

static void *writer_thread(void *arg)
{
	struct writer *w = arg;

	if (hs_tx_run(w->db, write_memory, w, &w->err) == HS_OK)
		w->committed_us = hs_mono_us();
	return NULL;
}

/* The one that began first holds the clock: what commits last carries the later stamp. */
static void test_models_case_67_the_last_commit_carries_the_latest_stamp(void **state)
{
	struct pair *p = *state;
	struct writer slow = {.p = p, .db = p->a, .hold_us = 200000}, fast = {.p = p, .db = p->b};
	int64_t before = fixture_clock(p->f), during, after;
	struct hs_db *reader = hs_db_new(p->f->cfg);
	pthread_t t[2];

	assert_int_equal(pthread_create(&t[0], NULL, writer_thread, &slow), 0);
	hs_sleep_us(60000);
	assert_int_equal(pthread_create(&t[1], NULL, writer_thread, &fast), 0);
	hs_sleep_us(60000);
	/* the cutoff is what is committed: a running write is not in it, and is newer than it */
	OK(p->f, hs_clock_read(reader, p->f->bank.bank_no, &during, &p->f->err));
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	OK(p->f, hs_clock_read(reader, p->f->bank.bank_no, &after, &p->f->err));
	hs_db_free(&reader);
	assert_int_equal(during, before);
	assert_true(slow.stamp > before);
	assert_true(fast.committed_us > slow.committed_us);
	assert_true(fast.stamp > slow.stamp);
	assert_int_equal(after, fast.stamp);
}

static void stamps_rise_though_the_clock_stands_still(void **state)
{
	struct pair *p = *state;
	int64_t last = fixture_clock(p->f) + 3600 * HS_SECOND_US;

	/* another host whose clock is an hour ahead has written */
	OK(p->f,
		hs_db_exec(p->a, "UPDATE bank_clock SET last_write_at = ? WHERE bank_no = ?",
			HS_BINDS(hs_b_time(last), hs_b_int(p->f->bank.bank_no)), NULL, &p->f->err));
	for (int i = 0; i < 5; i++) {
		struct writer w = {.p = p, .db = p->a};

		OK(p->f, hs_tx_run(p->a, write_memory, &w, &p->f->err));
		assert_int_equal(w.stamp, last + 1);
		last = w.stamp;
	}
}

static enum hs_rc only_lock(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct pair *p = arg;

	return hs_clock_lock(db, p->f->bank.bank_no, err);
}

static void bookkeeping_leaves_the_clock_alone(void **state)
{
	struct pair *p = *state;
	int64_t before = fixture_clock(p->f);

	OK(p->f, hs_tx_run(p->a, only_lock, p, &p->f->err));
	assert_int_equal(fixture_clock(p->f), before);
}

static void a_deleted_bank_takes_no_writes(void **state)
{
	struct pair *p = *state;
	struct writer w = {.p = p, .db = p->a};
	struct hs_err err;

	OK(p->f, hs_db_exec(p->b, "DELETE FROM bank_clock WHERE bank_no = ?",
			 HS_BINDS(hs_b_int(p->f->bank.bank_no)), NULL, &p->f->err));
	assert_int_equal(hs_tx_run(p->a, write_memory, &w, &err), HS_E_BANK_MISSING);
	assert_int_equal(hs_tx_run(p->a, only_lock, p, &err), HS_E_BANK_MISSING);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_error_rolls_back_and_is_handed_on),
		T(a_deadlock_runs_the_whole_again),
		T(a_deadlock_that_stays_is_given_up),
		T(test_fault_60_deadlocks_are_retried),
		T(a_connection_lost_before_commit_runs_again),
		T(an_idle_connection_that_was_closed_is_replaced),
		T(a_killed_query_is_a_plain_database_error),
		T(a_dropped_table_is_a_plain_database_error),
		T(a_changed_table_is_prepared_again),
		T(more_statements_than_the_cache_holds),
		T(long_and_four_byte_texts_come_back_equal),
		T(times_keep_their_microseconds),
		T(a_value_larger_than_a_packet_is_refused_before_it_is_sent),
		T(an_absent_database_is_named),
		T(test_models_case_67_the_last_commit_carries_the_latest_stamp),
		T(stamps_rise_though_the_clock_stands_still),
		T(bookkeeping_leaves_the_clock_alone),
		T(a_deleted_bank_takes_no_writes),
	};

	if (!getenv("HS_TEST_DB_SOCKET") || !getenv("HS_TEST_DB_NAME"))
		return 77;
	return cmocka_run_group_tests_name("store/tx", tests, NULL, NULL);
}
