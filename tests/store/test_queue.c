/* The queue: folding, claims, leases, ends, parents, and what clients change. */
#include "models_fixture.h"

#include <pthread.h>

#include "store/operation.h"

#define LEASE_S 30

/* ---- helpers ---- */

static void run(struct fixture *f, const char *sql, const struct hs_bind *binds, size_t n)
{
	OK(f, hs_db_exec(f->db, sql, binds, n, NULL, &f->err));
}

static int setup(void **state)
{
	int rc = fixture_setup(state);
	struct fixture *f = *state;

	run(f, "DELETE FROM async_operations", HS_NO_BINDS);
	run(f, "DELETE FROM server_state", HS_NO_BINDS);
	return rc;
}

static const char *insert(
	struct fixture *f, const char *type, const char *subject, const char *parent, bool payload)
{
	struct hs_submit s = {.operation_type = type,
		.subject_id = subject,
		.parent_id = parent,
		.is_parent = !payload};
	const char *id;

	s.payload = payload ? hs_json_keep(f->pool, json_object()) : NULL;
	OK(f, hs_operation_insert(f->db, f->pool, f->bank.bank_no, &s, &id, &f->err));
	return id;
}

static struct hs_operation get(struct fixture *f, const char *id)
{
	struct hs_operation op;

	OK(f, hs_operation_get(f->db, f->pool, f->bank.bank_no, id, true, &op, &f->err));
	return op;
}

static const char *status(struct fixture *f, const char *id)
{
	return get(f, id).status;
}

static size_t candidates(struct fixture *f, const char *type, struct hs_candidate **ret)
{
	struct hs_candidate_query q = {.types = {1, &type}, .limit = 100};
	size_t n;

	OK(f, hs_queue_candidates(f->db, f->pool, &q, ret, &n, &f->err));
	return n;
}

static struct hs_operation claim(struct fixture *f, const char *type, const char *worker)
{
	struct hs_candidate *c;
	struct hs_operation op;
	bool taken;

	assert_true(candidates(f, type, &c) > 0);
	OK(f, hs_queue_claim(f->db, f->pool, &c[0], worker, LEASE_S, &op, &taken, &f->err));
	assert_true(taken);
	return op;
}

static struct hs_finish ending(
	const struct hs_operation *op, enum hs_finish_kind kind, const char *error)
{
	return (struct hs_finish){.claim = {op->operation_id, op->worker_id, op->attempt},
		.kind = kind,
		.parent_id = op->parent_id,
		.error = error,
		.max_retries = 3};
}

static enum hs_rc finish(struct fixture *f, const struct hs_operation *op, enum hs_finish_kind kind,
	const char *error)
{
	struct hs_finish end = ending(op, kind, error);

	return hs_queue_finish(f->db, f->pool, &end, &f->err);
}

static void lapse(struct fixture *f, const char *id)
{
	run(f, "UPDATE async_operations SET lease_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE operation_id = ?",
		HS_BINDS(hs_b_str(id)));
}

static json_t *metadata(struct fixture *f, const char *id)
{
	json_t *v;

	OK(f, hs_json_load(f->pool, get(f, id).result_metadata, &v, &f->err));
	return v;
}

/* ---- claims ---- */

static void one_at_a_time_runs_of_each_subject_oldest_first(void **state)
{
	struct fixture *f = *state;
	const char *first = insert(f, "retain", "doc", NULL, true),
		   *second = insert(f, "retain", "doc", NULL, true);
	const char *other = insert(f, "retain", "doc2", NULL, true),
		   *free_one = insert(f, "retain", NULL, NULL, true);
	struct hs_candidate *c;
	struct hs_operation op;

	assert_int_equal(candidates(f, "retain", &c), 3);
	assert_string_equal(c[0].operation_id, first);
	assert_string_equal(c[1].operation_id, other);
	assert_string_equal(c[2].operation_id, free_one);
	op = claim(f, "retain", "w1");
	assert_string_equal(op.operation_id, first);
	assert_int_equal(op.attempt, 1);
	assert_int_equal(candidates(f, "retain", &c), 2);
	assert_int_equal(finish(f, &op, HS_FINISH_COMPLETED, NULL), HS_OK);
	assert_int_equal(candidates(f, "retain", &c), 3);
	assert_string_equal(c[0].operation_id, second);
}

/* Two workers saw the same free subject: the unique run_key decides. */
static void run_key_decides_between_two_of_one_subject(void **state)
{
	struct fixture *f = *state;
	const char *first = insert(f, "refresh_mental_model", "m", NULL, true);
	const char *second = insert(f, "refresh_mental_model", "m", NULL, true);
	struct hs_candidate late = {second, "refresh_mental_model", "m", f->bank.bank_no, 0};
	struct hs_operation op = claim(f, "refresh_mental_model", "w1"), none;
	bool taken = true;

	assert_string_equal(op.operation_id, first);
	OK(f, hs_queue_claim(f->db, f->pool, &late, "w2", LEASE_S, &none, &taken, &f->err));
	assert_false(taken);
	assert_string_equal(status(f, second), "pending");
}

static void parked_rows_neither_run_nor_block(void **state)
{
	struct fixture *f = *state;
	const char *parked = insert(f, "refresh_mental_model", "m", NULL, true);
	const char *next = insert(f, "refresh_mental_model", "m", NULL, true);
	struct hs_candidate *c;

	run(f, "UPDATE async_operations SET next_retry_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE operation_id = ?",
		HS_BINDS(hs_b_str(parked)));
	assert_int_equal(candidates(f, "refresh_mental_model", &c), 1);
	assert_string_equal(c[0].operation_id, next);
}

static void parents_are_never_claimed(void **state)
{
	struct fixture *f = *state;
	struct hs_candidate *c;

	insert(f, "batch_retain", NULL, NULL, false);
	assert_int_equal(candidates(f, "batch_retain", &c), 0);
}

static void the_next_bank_wraps_around(void **state)
{
	struct fixture *f = *state;
	struct hs_bank other;
	int64_t no;

	OK(f, hs_bank_ensure(f->db, f->pool, hs_uuid_v4_new(f->pool), &other, NULL, &f->err));
	insert(f, "retain", NULL, NULL, true);
	insert(f, "consolidation", NULL, NULL, true);
	OK(f, hs_queue_next_bank(f->db, f->pool, 0, &no, &f->err));
	assert_int_equal(no, f->bank.bank_no);
	OK(f, hs_queue_next_bank(f->db, f->pool, f->bank.bank_no, &no, &f->err));
	assert_int_equal(no, f->bank.bank_no);
	f->bank.bank_no = other.bank_no;
	insert(f, "retain", NULL, NULL, true);
	OK(f, hs_queue_next_bank(f->db, f->pool, other.bank_no - 1, &no, &f->err));
	assert_int_equal(no, other.bank_no);
}

/* ---- many claimers ---- */

#define THREADS 8
#define OPERATIONS 240
#define SUBJECTS 12

struct claimer {
	struct fixture *f;
	int number, claimed;
	_Atomic int *open; /* running now, by subject */
	_Atomic int *overlaps;
	enum hs_rc rc;
	struct hs_err err;
};

static enum hs_rc claim_one(
	struct claimer *c, struct hs_db *db, struct hs_pool *pool, bool *ret_any)
{
	const char *type = "retain", *worker = hs_pool_printf(pool, "w%d", c->number);
	struct hs_candidate_query q = {.types = {1, &type}, .limit = 20};
	struct hs_candidate *v;
	struct hs_finish end;
	struct hs_operation op;
	int64_t subject;
	bool taken = false;
	size_t n;

	HS_TRY(hs_queue_candidates(db, pool, &q, &v, &n, &c->err));
	*ret_any = n > 0;
	for (size_t i = 0; i < n && !taken; i++)
		HS_TRY(hs_queue_claim(db, pool, &v[i], worker, LEASE_S, &op, &taken, &c->err));
	if (!taken)
		return HS_OK;
	c->claimed++;
	if (!hs_str_to_i64(op.subject_id, &subject))
		return HS_E_INTERNAL;
	if (c->open[subject]++ > 0)
		++*c->overlaps;
	hs_sleep_us(1000);
	c->open[subject]--;
	end = ending(&op, HS_FINISH_COMPLETED, NULL);
	return hs_queue_finish(db, pool, &end, &c->err);
}

static void *claimer_thread(void *arg)
{
	struct claimer *c = arg;
	struct hs_pool *pool = hs_pool_new();
	struct hs_db *db = hs_db_new(c->f->cfg);
	bool any = true;
	int idle = 0;

	while (c->rc == HS_OK && idle < 50) {
		c->rc = claim_one(c, db, pool, &any);
		hs_pool_clear(pool);
		idle = any ? 0 : idle + 1;
		if (!any)
			hs_sleep_us(2000);
	}
	hs_db_free(&db);
	hs_pool_free(&pool);
	return NULL;
}

static void test_fault_44_eight_claimers_never_overlap(void **state)
{
	struct fixture *f = *state;
	_Atomic int open[SUBJECTS] = {0}, overlaps = 0;
	struct claimer c[THREADS] = {0};
	pthread_t t[THREADS];
	struct hs_rows rows;
	int claimed = 0;

	for (int i = 0; i < OPERATIONS; i++)
		insert(f, "retain", hs_pool_printf(f->pool, "%d", i % SUBJECTS), NULL, true);
	for (int i = 0; i < THREADS; i++) {
		c[i] = (struct claimer){.f = f, .number = i, .open = open, .overlaps = &overlaps};
		assert_int_equal(pthread_create(&t[i], NULL, claimer_thread, &c[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		if (c[i].rc != HS_OK)
			fail_msg("claimer %d: %s", i, c[i].err.msg);
		claimed += c[i].claimed;
	}
	assert_int_equal(claimed, OPERATIONS);
	assert_int_equal(overlaps, 0);
	OK(f, hs_db_select(f->db, f->pool,
		      "SELECT COUNT(*), MAX(attempt) FROM async_operations WHERE status = 'completed'",
		      HS_NO_BINDS, &rows, &f->err));
	assert_int_equal(rows.v[0].i, OPERATIONS);
	assert_int_equal(rows.v[1].i, 1);
}

/* ---- ends ---- */

static void test_banks_case_29_a_deferred_row_keeps_count_and_error(void **state)
{
	struct fixture *f = *state;
	const char *id = insert(f, "retain", NULL, NULL, true);
	struct hs_operation op = claim(f, "retain", "w");
	struct hs_finish end = ending(&op, HS_FINISH_DEFER, "not shown");
	struct hs_candidate *c;

	end.retry_at_us = hs_now_us() + 3600 * HS_SECOND_US;
	OK(f, hs_queue_finish(f->db, f->pool, &end, &f->err));
	op = get(f, id);
	assert_string_equal(op.status, "pending");
	assert_int_equal(op.retry_count, 0);
	assert_null(op.error_message);
	assert_null(op.worker_id);
	assert_int_equal(op.next_retry_us, end.retry_at_us);
	assert_int_equal(candidates(f, "retain", &c), 0);
}

static void a_retry_counts_and_keeps_its_error(void **state)
{
	struct fixture *f = *state;
	const char *id = insert(f, "retain", NULL, NULL, true);
	struct hs_operation op = claim(f, "retain", "w");
	struct hs_finish end = ending(&op, HS_FINISH_RETRY, "LLM_DOWN: no answer");

	end.delay_s = 0;
	end.metadata = hs_json_keep(f->pool, json_pack("{s:i}", "unit_ids_count", 3));
	OK(f, hs_queue_finish(f->db, f->pool, &end, &f->err));
	op = get(f, id);
	assert_string_equal(op.status, "pending");
	assert_int_equal(op.retry_count, 1);
	assert_string_equal(op.error_message, "LLM_DOWN: no answer");
	op = claim(f, "retain", "w");
	assert_int_equal(op.attempt, 2);
	OK(f, finish(f, &op, HS_FINISH_COMPLETED, NULL));
	op = get(f, id);
	assert_null(op.error_message);
	assert_string_equal(
		hs_json_str(metadata(f, id), "last_retry_error"), "LLM_DOWN: no answer");
	assert_int_equal(hs_json_int(metadata(f, id), "unit_ids_count", 0), 3);
}

static void test_banks_case_30_a_late_end_changes_nothing(void **state)
{
	struct fixture *f = *state;
	const char *id = insert(f, "retain", NULL, NULL, true);
	struct hs_operation op = claim(f, "retain", "w");

	OK(f, hs_operation_cancel(f->db, f->pool, f->bank.bank_no, "b", id, &f->err));
	assert_int_equal(finish(f, &op, HS_FINISH_COMPLETED, NULL), HS_E_CLAIM_LOST);
	assert_int_equal(finish(f, &op, HS_FINISH_FAILED, "x"), HS_E_CLAIM_LOST);
	assert_int_equal(finish(f, &op, HS_FINISH_RETRY, "x"), HS_E_CLAIM_LOST);
	assert_string_equal(status(f, id), "cancelled");
}

static void test_banks_case_26_leases(void **state)
{
	struct fixture *f = *state;
	const char *parent = insert(f, "batch_retain", NULL, NULL, false);
	const char *id = insert(f, "retain", NULL, parent, true);
	struct hs_operation op = claim(f, "retain", "w"), later;
	size_t n;

	OK(f, hs_queue_recover(f->db, f->pool, 1, &n, &f->err));
	assert_int_equal(n, 0);
	lapse(f, id);
	OK(f, hs_queue_recover(f->db, f->pool, 1, &n, &f->err));
	assert_int_equal(n, 1);
	later = get(f, id);
	assert_string_equal(later.status, "pending");
	assert_int_equal(later.retry_count, 1);
	/* the worker that was stopped for a minute writes nothing */
	assert_int_equal(finish(f, &op, HS_FINISH_COMPLETED, NULL), HS_E_CLAIM_LOST);
	later = claim(f, "retain", "w");
	assert_int_equal(finish(f, &op, HS_FINISH_COMPLETED, NULL), HS_E_CLAIM_LOST);
	lapse(f, id);
	OK(f, hs_queue_recover(f->db, f->pool, 1, &n, &f->err));
	later = get(f, id);
	assert_string_equal(later.status, "failed");
	assert_non_null(strstr(later.error_message, "recovery attempts exhausted"));
	assert_string_equal(status(f, parent), "failed");
}

static void renewing_keeps_a_lease(void **state)
{
	struct fixture *f = *state;
	const char *id = insert(f, "retain", NULL, NULL, true),
		   *other = insert(f, "retain", NULL, NULL, true);
	struct hs_strs ids = {0}, held;
	size_t n;

	claim(f, "retain", "w1");
	claim(f, "retain", "w2");
	lapse(f, id);
	lapse(f, other);
	hs_strs_add(f->pool, &ids, id);
	hs_strs_add(f->pool, &ids, other);
	OK(f, hs_queue_renew(f->db, f->pool, "w1", &ids, LEASE_S, &f->err));
	OK(f, hs_queue_held(f->db, f->pool, "w1", &ids, &held, &f->err));
	assert_int_equal(held.n, 1);
	OK(f, hs_queue_recover(f->db, f->pool, 3, &n, &f->err));
	assert_int_equal(n, 1);
	assert_string_equal(status(f, id), "processing");
	assert_string_equal(status(f, other), "pending");
}

static void progress_keeps_its_siblings(void **state)
{
	struct fixture *f = *state;
	const char *id = insert(f, "retain", NULL, NULL, true);
	struct hs_operation op;
	struct hs_claim c;

	run(f, "UPDATE async_operations SET result_metadata = '{\"items_count\":7}'", HS_NO_BINDS);
	op = claim(f, "retain", "w");
	c = (struct hs_claim){op.operation_id, op.worker_id, op.attempt};
	OK(f, hs_queue_progress(f->db, f->pool, &c,
		      hs_json_keep(f->pool, json_pack("{s:s}", "stage", "storing")), &f->err));
	assert_int_equal(hs_json_int(metadata(f, id), "items_count", 0), 7);
	assert_string_equal(
		hs_json_str(hs_json_obj(metadata(f, id), "progress"), "stage"), "storing");
}

/* ---- parents ---- */

struct batch {
	const char *parent, *child[3];
};

static struct batch new_batch(struct fixture *f)
{
	struct batch b = {.parent = insert(f, "batch_retain", NULL, NULL, false)};

	for (int i = 0; i < 3; i++)
		b.child[i] = insert(f, "retain", NULL, b.parent, true);
	return b;
}

static void end_child(struct fixture *f, enum hs_finish_kind kind, const char *error)
{
	struct hs_operation op = claim(f, "retain", "w");
	struct hs_finish end = ending(&op, kind, error);

	end.metadata = hs_json_keep(f->pool,
		json_pack("{s:i, s:i, s:[s]}", "unit_ids_count", 2, "extraction_errors_count", 1,
			"extraction_errors_sample", "cut off"));
	OK(f, hs_queue_finish(f->db, f->pool, &end, &f->err));
}

static void a_completed_parent_has_the_sums(void **state)
{
	struct fixture *f = *state;
	struct batch b = new_batch(f);

	end_child(f, HS_FINISH_COMPLETED, NULL);
	end_child(f, HS_FINISH_COMPLETED, NULL);
	assert_string_equal(status(f, b.parent), "pending");
	end_child(f, HS_FINISH_COMPLETED, NULL);
	assert_string_equal(status(f, b.parent), "completed");
	assert_true(get(f, b.parent).completed_us != HS_TIME_NONE);
	assert_int_equal(hs_json_int(metadata(f, b.parent), "unit_ids_count", 0), 6);
	assert_int_equal(hs_json_int(metadata(f, b.parent), "extraction_errors_count", 0), 3);
	assert_int_equal(
		json_array_size(hs_json_arr(metadata(f, b.parent), "extraction_errors_sample")), 3);
}

static void test_banks_case_31_a_parent_shows_the_most_frequent_error(void **state)
{
	static const struct {
		const char *errors[3], *expected;
	} cases[] = {
		{{"B", "A", "A"}, "A"},
		{{"A", "B", "C"}, "A"},
		{{" ", " ", "B"}, "B"},
		{{" ", "  ", "\t"}, "One or more sub-batches failed"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		struct batch b = new_batch(f);

		for (int k = 0; k < 3; k++)
			end_child(f, HS_FINISH_FAILED, cases[i].errors[k]);
		assert_string_equal(status(f, b.parent), "failed");
		assert_string_equal(get(f, b.parent).error_message, cases[i].expected);
	}
}

static void test_banks_case_21_cancel_and_retry_of_parts(void **state)
{
	struct fixture *f = *state;
	struct batch b = new_batch(f), c = new_batch(f);
	int64_t no = f->bank.bank_no;

	/* the first batch: two done, the last one cancelled */
	end_child(f, HS_FINISH_COMPLETED, NULL);
	end_child(f, HS_FINISH_COMPLETED, NULL);
	OK(f, hs_operation_cancel(f->db, f->pool, no, "b", b.child[2], &f->err));
	assert_string_equal(status(f, b.parent), "cancelled");
	assert_true(get(f, b.parent).completed_us == HS_TIME_NONE);
	/* the second: beside a failed one */
	end_child(f, HS_FINISH_FAILED, "A");
	end_child(f, HS_FINISH_COMPLETED, NULL);
	OK(f, hs_operation_cancel(f->db, f->pool, no, "b", c.child[2], &f->err));
	assert_string_equal(status(f, c.parent), "failed");
	/* retry of the parent revives it and what did not end well */
	OK(f, hs_operation_retry(f->db, f->pool, no, "b", c.parent, &f->err));
	assert_string_equal(status(f, c.parent), "pending");
	assert_string_equal(status(f, c.child[0]), "pending");
	assert_string_equal(status(f, c.child[1]), "completed");
	assert_string_equal(status(f, c.child[2]), "pending");
	end_child(f, HS_FINISH_COMPLETED, NULL);
	end_child(f, HS_FINISH_COMPLETED, NULL);
	assert_string_equal(status(f, c.parent), "completed");
	assert_int_equal(
		hs_operation_retry(f->db, f->pool, no, "b", c.parent, &f->err), HS_E_CONFLICT);
	assert_string_equal(status(f, c.parent), "completed");
	OK(f, hs_operation_delete(f->db, f->pool, no, "b", c.parent, &f->err));
}

static void a_child_alone_reopens_no_parent(void **state)
{
	struct fixture *f = *state;
	struct batch b = new_batch(f);

	for (int i = 0; i < 3; i++)
		end_child(f, i ? HS_FINISH_COMPLETED : HS_FINISH_FAILED, "A");
	OK(f, hs_operation_retry(f->db, f->pool, f->bank.bank_no, "b", b.child[0], &f->err));
	assert_string_equal(status(f, b.parent), "failed");
	end_child(f, HS_FINISH_COMPLETED, NULL);
	assert_string_equal(status(f, b.parent), "completed");
	assert_null(get(f, b.parent).error_message);
}

static void reading_heals_a_stranded_parent(void **state)
{
	struct fixture *f = *state;
	const char *alone = insert(f, "batch_retain", NULL, NULL, false);
	struct batch b = new_batch(f);
	struct hs_operation op = get(f, alone);

	OK(f, hs_operation_heal(f->db, f->pool, &op, &f->err));
	assert_string_equal(status(f, alone), "failed");
	op = get(f, b.parent);
	OK(f, hs_operation_heal(f->db, f->pool, &op, &f->err));
	assert_string_equal(status(f, b.parent), "pending");
	run(f, "UPDATE async_operations SET status = 'completed' WHERE parent_id = ?",
		HS_BINDS(hs_b_str(b.parent)));
	OK(f, hs_operation_heal(f->db, f->pool, &op, &f->err));
	assert_string_equal(status(f, b.parent), "completed");
}

/* ---- submits ---- */

struct submitting {
	struct fixture *f;
	struct hs_consolidation_submit c;
	struct hs_refresh_submit r;
	const char *id;
	bool folded;
};

static enum hs_rc submit_consolidation(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct submitting *s = arg;

	return hs_submit_consolidation(
		db, s->f->pool, s->f->bank.bank_no, &s->c, &s->id, &s->folded, err);
}

static enum hs_rc submit_refresh(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct submitting *s = arg;

	return hs_submit_refresh(
		db, s->f->pool, s->f->bank.bank_no, &s->r, &s->id, &s->folded, err);
}

static void test_banks_case_23_consolidations_fold(void **state)
{
	struct fixture *f = *state;
	struct submitting scoped = {.f = f}, plain = {.f = f},
			  again = {.f = f, .c = {.manual = true}}, next = {.f = f};
	json_t *payload;

	scoped.c.scopes = hs_json_keep(f->pool, json_pack("[[s]]", "a"));
	OK(f, hs_tx_run(f->db, submit_consolidation, &scoped, &f->err));
	OK(f, hs_tx_run(f->db, submit_consolidation, &plain, &f->err));
	assert_false(plain.folded);
	OK(f, hs_tx_run(f->db, submit_consolidation, &again, &f->err));
	assert_true(again.folded);
	assert_string_equal(again.id, plain.id);
	OK(f, hs_json_load(f->pool, get(f, plain.id).task_payload, &payload, &f->err));
	assert_true(hs_json_bool(payload, "manual", false));
	/* a chain that joins goes on counting its rounds, and a new wish does not set them back */
	again.c.round = 7;
	OK(f, hs_tx_run(f->db, submit_consolidation, &again, &f->err));
	OK(f, hs_tx_run(f->db, submit_consolidation, &plain, &f->err));
	assert_string_equal(plain.id, again.id);
	OK(f, hs_json_load(f->pool, get(f, plain.id).task_payload, &payload, &f->err));
	assert_int_equal(hs_json_int(payload, "round", 0), 7);
	OK(f, hs_tx_run(f->db, submit_consolidation, &scoped, &f->err));
	assert_false(scoped.folded);
	/* a running one takes nothing in */
	run(f, "UPDATE async_operations SET status = 'processing' WHERE operation_id = ?",
		HS_BINDS(hs_b_str(plain.id)));
	OK(f, hs_tx_run(f->db, submit_consolidation, &next, &f->err));
	assert_false(next.folded);
}

static void make_model(struct fixture *f, const char *id)
{
	run(f,
		"INSERT INTO mental_models (bank_no, id, name, source_query, content, tags, trigger_json,"
		" last_refreshed_at, read_until, created_at) VALUES (?, ?, 'n', 'q', '', '[]', '{}', NOW(6), NOW(6), NOW(6))",
		HS_BINDS(hs_b_int(f->bank.bank_no), hs_b_str(id)));
}

static const char *payload_of(struct fixture *f, const char *id)
{
	return get(f, id).task_payload;
}

static void test_banks_case_44_refreshes_fold(void **state)
{
	struct fixture *f = *state;
	struct submitting plain = {.f = f, .r = {.mental_model_id = "m", .name = "n"}},
			  full = plain, automatic = plain;
	struct submitting missing = plain;

	make_model(f, "m");
	full.r.full = true;
	automatic.r.automatic = true;
	missing.r.mental_model_id = "none";
	assert_int_equal(hs_tx_run(f->db, submit_refresh, &missing, &f->err), HS_E_NOT_FOUND);
	OK(f, hs_tx_run(f->db, submit_refresh, &plain, &f->err));
	assert_false(plain.folded);
	assert_null(strstr(payload_of(f, plain.id), "\"_mode\""));
	OK(f, hs_tx_run(f->db, submit_refresh, &full, &f->err));
	assert_string_equal(full.id, plain.id);
	assert_non_null(strstr(payload_of(f, plain.id), "\"_mode\":\"full\""));
	run(f, "UPDATE async_operations SET status = 'processing'", HS_NO_BINDS);
	OK(f, hs_tx_run(f->db, submit_refresh, &automatic, &f->err));
	assert_true(automatic.folded);
	assert_string_equal(automatic.id, plain.id);
	OK(f, hs_tx_run(f->db, submit_refresh, &full, &f->err));
	assert_false(full.folded);
	assert_string_not_equal(full.id, plain.id);
}

static void test_banks_case_45_an_explicit_refresh_clears_the_park(void **state)
{
	struct fixture *f = *state;
	struct submitting automatic = {.f = f,
				  .r = {.mental_model_id = "m", .name = "n", .automatic = true}},
			  own = automatic;

	make_model(f, "m");
	own.r.automatic = false;
	OK(f, hs_tx_run(f->db, submit_refresh, &automatic, &f->err));
	assert_non_null(strstr(payload_of(f, automatic.id), "_automatic"));
	run(f, "UPDATE async_operations SET next_retry_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR",
		HS_NO_BINDS);
	OK(f, hs_tx_run(f->db, submit_refresh, &automatic, &f->err));
	assert_true(get(f, automatic.id).next_retry_us != HS_TIME_NONE);
	OK(f, hs_tx_run(f->db, submit_refresh, &own, &f->err));
	assert_string_equal(own.id, automatic.id);
	assert_true(get(f, own.id).next_retry_us == HS_TIME_NONE);
	assert_null(strstr(payload_of(f, own.id), "_automatic"));
}

static void a_failed_model_takes_no_automatic_refresh(void **state)
{
	struct fixture *f = *state;
	struct submitting automatic = {
		.f = f, .r = {.mental_model_id = "m", .name = "n", .automatic = true}};

	make_model(f, "m");
	run(f, "UPDATE mental_models SET last_refresh_failed_at = NOW(6)", HS_NO_BINDS);
	OK(f, hs_tx_run(f->db, submit_refresh, &automatic, &f->err));
	assert_null(automatic.id);
	automatic.r.automatic = false;
	OK(f, hs_tx_run(f->db, submit_refresh, &automatic, &f->err));
	assert_non_null(automatic.id);
}

/* ---- clients ---- */

static void test_banks_case_22_retry_by_state(void **state)
{
	struct fixture *f = *state;
	const char *id = insert(f, "refresh_mental_model", "m", NULL, true);
	int64_t no = f->bank.bank_no;

	assert_int_equal(hs_operation_retry(f->db, f->pool, no, "b", id, &f->err), HS_E_CONFLICT);
	run(f,
		"UPDATE async_operations SET next_retry_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, retry_count = 2,"
		" task_payload = '{\"mental_model_id\":\"m\",\"_automatic\":true}'",
		HS_NO_BINDS);
	OK(f, hs_operation_retry(f->db, f->pool, no, "b", id, &f->err));
	assert_true(get(f, id).next_retry_us == HS_TIME_NONE);
	assert_int_equal(get(f, id).retry_count, 0);
	assert_null(strstr(payload_of(f, id), "_automatic"));
	OK(f, hs_operation_cancel(f->db, f->pool, no, "b", id, &f->err));
	assert_int_equal(hs_operation_cancel(f->db, f->pool, no, "b", id, &f->err), HS_E_CONFLICT);
	OK(f, hs_operation_retry(f->db, f->pool, no, "b", id, &f->err));
	assert_int_equal(hs_operation_delete(f->db, f->pool, no, "b", id, &f->err), HS_E_CONFLICT);
	assert_int_equal(
		hs_operation_delete(f->db, f->pool, no + 1, "other", id, &f->err), HS_E_NOT_FOUND);
	assert_string_equal(
		f->err.msg, hs_pool_printf(f->pool, "Operation %s not found for bank other", id));
}

static void one_host_does_upkeep_at_a_time(void **state)
{
	struct fixture *f = *state;
	bool mine;

	OK(f, hs_state_claim(f->db, "tick", 60, &mine, &f->err));
	assert_true(mine);
	OK(f, hs_state_claim(f->db, "tick", 60, &mine, &f->err));
	assert_false(mine);
	OK(f, hs_state_claim(f->db, "other", 60, &mine, &f->err));
	assert_true(mine);
	run(f, "UPDATE server_state SET updated_at = UTC_TIMESTAMP(6) - INTERVAL 61 SECOND WHERE name = 'tick'",
		HS_NO_BINDS);
	OK(f, hs_state_claim(f->db, "tick", 60, &mine, &f->err));
	assert_true(mine);
	/* the clock was set back */
	run(f, "UPDATE server_state SET updated_at = UTC_TIMESTAMP(6) + INTERVAL 2 DAY WHERE name = 'tick'",
		HS_NO_BINDS);
	OK(f, hs_state_claim(f->db, "tick", 60, &mine, &f->err));
	assert_true(mine);
	OK(f, hs_state_claim(f->db, "tick", 60, &mine, &f->err));
	assert_false(mine);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_at_a_time_runs_of_each_subject_oldest_first),
		T(run_key_decides_between_two_of_one_subject),
		T(parked_rows_neither_run_nor_block),
		T(parents_are_never_claimed),
		T(the_next_bank_wraps_around),
		T(test_fault_44_eight_claimers_never_overlap),
		T(test_banks_case_29_a_deferred_row_keeps_count_and_error),
		T(a_retry_counts_and_keeps_its_error),
		T(test_banks_case_30_a_late_end_changes_nothing),
		T(test_banks_case_26_leases),
		T(renewing_keeps_a_lease),
		T(progress_keeps_its_siblings),
		T(a_completed_parent_has_the_sums),
		T(test_banks_case_31_a_parent_shows_the_most_frequent_error),
		T(test_banks_case_21_cancel_and_retry_of_parts),
		T(a_child_alone_reopens_no_parent),
		T(reading_heals_a_stranded_parent),
		T(test_banks_case_23_consolidations_fold),
		T(test_banks_case_44_refreshes_fold),
		T(test_banks_case_45_an_explicit_refresh_clears_the_park),
		T(a_failed_model_takes_no_automatic_refresh),
		T(test_banks_case_22_retry_by_state),
		T(one_host_does_upkeep_at_a_time),
	};

	if (!getenv("HS_TEST_DB_SOCKET") || !getenv("HS_TEST_DB_NAME"))
		return 77;
	return cmocka_run_group_tests_name("store/queue", tests, NULL, NULL);
}
