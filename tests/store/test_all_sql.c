/* Every numbered statement of the store prepares on a migrated database. */
#include "models_fixture.h"

#include <glob.h>
#include <stdio.h>

#include "store/all_sql.h"

static void every_statement_prepares(void **state)
{
	struct fixture *f = *state;
	size_t n = 0;

	for (size_t i = 0; hs_all_sql[i]; i++)
		for (size_t k = 0; k < hs_all_sql[i]->n; k++) {
			if (!hs_all_sql[i]->sql[k])
				fail_msg("%s: statement %zu is missing", hs_all_sql[i]->name, k);
			if (hs_db_prepare(f->db, hs_all_sql[i]->sql[k], &f->err) != HS_OK)
				fail_msg("%s, statement %zu: %s\n%s", hs_all_sql[i]->name, k,
					f->err.msg, hs_all_sql[i]->sql[k]);
			n++;
		}
	assert_true(n > 100);
}

static void a_wrong_statement_does_not(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(
		hs_db_prepare(f->db, "SELECT no_such_column FROM banks", &f->err), HS_E_DB);
	assert_int_equal(hs_db_prepare(f->db, "SELEC 1", &f->err), HS_E_DB);
}

static bool is_known(const char *name)
{
	for (size_t i = 0; hs_all_sql[i]; i++)
		if (strcmp(hs_all_sql[i]->name, name) == 0)
			return true;
	return false;
}

/* The list a source file announces, and whether it has numbered statements at all. */
static void check_source(const char *path)
{
	bool statements = false, announced = false;
	FILE *file = fopen(path, "r");
	char line[1024], name[128];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		statements = statements || strstr(line, "*const sql[]");
		if (sscanf(line, "HS_SQL_LIST(%127[a-z_],", name) != 1)
			continue;
		announced = true;
		if (!is_known(name))
			fail_msg("%s: %s is not in store/all_sql.c", path, name);
	}
	fclose(file);
	if (statements && !announced)
		fail_msg("%s: its statements have no HS_SQL_LIST", path);
}

static void no_list_is_forgotten(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob(HS_SOURCE_DIR "/shared/store/*.c", 0, NULL, &files), 0);
	assert_true(files.gl_pathc > 10);
	for (size_t i = 0; i < files.gl_pathc; i++)
		check_source(files.gl_pathv[i]);
	globfree(&files);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_statement_prepares),
		T(a_wrong_statement_does_not),
		T(no_list_is_forgotten),
	};

	if (!getenv("HS_TEST_DB_SOCKET") || !getenv("HS_TEST_DB_NAME"))
		return 77;
	return cmocka_run_group_tests_name("store/all_sql", tests, NULL, NULL);
}
