/* How many jobs of which kind a worker may run (contract banks 9.1). */
#include "test.h"

#include "slots.h"

static struct slots make(const char *max, const char *consolidation, const char *retain)
{
	struct hs_pool *pool = hs_pool_new();
	struct hs_config *cfg = hs_config_defaults(pool);
	struct hs_err err;
	struct slots s;

	assert_int_equal(hs_config_set(cfg, "worker_max_slots", max, &err), HS_OK);
	assert_int_equal(
		hs_config_set(cfg, "worker_consolidation_reserved_slots", consolidation, &err),
		HS_OK);
	assert_int_equal(hs_config_set(cfg, "worker_retain_reserved_slots", retain, &err), HS_OK);
	slots_init(&s, cfg);
	hs_pool_free(&pool);
	return s;
}

static void reservations_leave_the_rest_shared(void **state)
{
	struct slots s = make("10", "2", "3");

	(void)state;
	assert_int_equal(s.shared, 5);
	assert_int_equal(slots_free_shared(&s), 5);
	assert_int_equal(slots_free_reserved(&s, SLOT_CONSOLIDATION), 2);
	assert_int_equal(slots_free_reserved(&s, SLOT_REFRESH), 0);
	s.running[SLOT_RETAIN] = 3;
	assert_int_equal(slots_free_shared(&s), 5);
	s.running[SLOT_RETAIN] = 6;
	s.running[SLOT_OTHER] = 1;
	assert_int_equal(slots_free_shared(&s), 1);
	s.running[SLOT_CONSOLIDATION] = 3;
	assert_int_equal(slots_free_shared(&s), 0);
	assert_int_equal(slots_free_reserved(&s, SLOT_CONSOLIDATION), 0);
}

static void kinds_are_known_by_name(void **state)
{
	(void)state;
	assert_int_equal(slot_of("retain"), SLOT_RETAIN);
	assert_int_equal(slot_of("refresh_mental_model"), SLOT_REFRESH);
	assert_int_equal(slot_of("made_up"), SLOT_OTHER);
	assert_int_equal(slot_of(""), SLOT_OTHER);
}

static void test_banks_case_60_the_last_shared_slot(void **state)
{
	struct slots s = make("5", "1", "0"), one = make("1", "0", "0");

	(void)state;
	s.running[SLOT_RETAIN] = 2;
	assert_true(slots_retain_may_share(&s));
	s.running[SLOT_RETAIN] = 3;
	assert_false(slots_retain_may_share(&s));
	/* another kind holds one of the others: the last is anyone's */
	s.running[SLOT_RETAIN] = 2;
	s.running[SLOT_REFRESH] = 1;
	assert_true(slots_retain_may_share(&s));
	s.running[SLOT_RETAIN] = 3;
	assert_false(slots_retain_may_share(&s));
	/* a worker of one slot would never retain */
	assert_true(slots_retain_may_share(&one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reservations_leave_the_rest_shared),
		cmocka_unit_test(kinds_are_known_by_name),
		cmocka_unit_test(test_banks_case_60_the_last_shared_slot),
	};

	return cmocka_run_group_tests_name("worker/slots", tests, NULL, NULL);
}
