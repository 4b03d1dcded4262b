/* Every numbered statement is prepared by the database, so that a typo fails here at once. */
#include "models_fixture.h"

#include <dirent.h>
#include <stdio.h>

#include "store/bank_write.h"
#include "store/directive.h"
#include "store/document_read.h"
#include "store/entity_read.h"
#include "store/evidence.h"
#include "store/health.h"
#include "store/memory_read.h"
#include "store/mental_model.h"
#include "store/observation.h"
#include "store/operation.h"
#include "store/posting.h"
#include "store/purge.h"
#include "store/schema.h"
#include "store/stats.h"
#include "store/document.h"
#include "store/vector.h"

static const struct hs_sql_list *const lists[] = {
	&hs_bank_sql,
	&hs_bank_write_sql,
	&hs_clock_sql,
	&hs_directive_sql,
	&hs_document_sql,
	&hs_document_read_sql,
	&hs_entity_read_sql,
	&hs_evidence_sql,
	&hs_health_sql,
	&hs_memory_sql,
	&hs_memory_clear_sql,
	&hs_memory_delete_sql,
	&hs_memory_read_sql,
	&hs_mental_model_sql,
	&hs_observation_sql,
	&hs_operation_sql,
	&hs_operation_claim_sql,
	&hs_operation_list_sql,
	&hs_posting_sql,
	&hs_purge_sql,
	&hs_schema_sql,
	&hs_stats_sql,
	&hs_vector_sql,
};

static void every_statement_prepares(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < HS_COUNT(lists); i++)
		for (size_t k = 0; k < lists[i]->n; k++) {
			if (!lists[i]->sql[k])
				continue;
			if (hs_db_prepare(f->db, lists[i]->sql[k], &f->err) != HS_OK)
				fail_msg("%s[%zu]: %s", lists[i]->name, k, f->err.msg);
		}
}

static char *source_of(struct fixture *f, const char *name)
{
	FILE *in = fopen(hs_pool_printf(f->pool, HS_SOURCE_DIR "/shared/store/%s", name), "r");
	char *text = hs_pool_alloc(f->pool, 1 << 20);
	size_t n;

	assert_non_null(in);
	n = fread(text, 1, (1 << 20) - 1, in);
	fclose(in);
	text[n] = '\0';
	return text;
}

/* A list that this test does not know would never be prepared. */
static void every_list_is_known_here(void **state)
{
	struct fixture *f = *state;
	DIR *dir = opendir(HS_SOURCE_DIR "/shared/store");
	struct dirent *entry;
	size_t seen = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		const char *text, *p;
		bool numbered;

		if (!hs_str_ends(entry->d_name, ".c"))
			continue;
		text = source_of(f, entry->d_name);
		numbered = strstr(text, "static const char *const sql[] = {");
		if (numbered && !strstr(text, "HS_SQL_LIST("))
			fail_msg("%s has statements but no list", entry->d_name);
		for (p = text; (p = strstr(p, "HS_SQL_LIST(")); seen++) {
			size_t known = 0;

			p += strlen("HS_SQL_LIST(");
			for (size_t i = 0; i < HS_COUNT(lists); i++)
				known += strncmp(p, lists[i]->name, strlen(lists[i]->name)) == 0 &&
					 p[strlen(lists[i]->name)] == ',';
			if (known != 1)
				fail_msg("%s: %.40s is not in this test", entry->d_name, p);
		}
	}
	closedir(dir);
	assert_int_equal(seen, HS_COUNT(lists));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_statement_prepares, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			every_list_is_known_here, fixture_setup, fixture_teardown),
	};

	if (!getenv("HS_TEST_DB_SOCKET"))
		return 77;
	return cmocka_run_group_tests_name("statements", tests, NULL, NULL);
}
