/* Banks as rows: list, change, delete; stats with derived links; directives of a bank that goes. */
#include "models_fixture.h"

#include "store/bank_write.h"
#include "store/directive.h"
#include "store/stats.h"

static void run(struct fixture *f, const char *sql)
{
	OK(f, hs_db_exec(f->db, sql, HS_BINDS(hs_b_int(f->bank.bank_no)), NULL, &f->err));
}

static int64_t number(struct fixture *f, const char *sql)
{
	struct hs_rows rows;

	OK(f, hs_db_select(f->db, f->pool, sql, HS_BINDS(hs_b_int(f->bank.bank_no)), &rows,
		&f->err));
	return rows.v[0].i;
}

/* n units of a type, dated or not. */
static void units(struct fixture *f, const char *type, int n, bool dated)
{
	for (int i = 0; i < n; i++)
		OK(f, hs_db_exec(f->db,
			"INSERT INTO memory_units (bank_no, id, fact_type, text, tags, event_date, created_at, updated_at)"
			" VALUES (?, ?, ?, 't', '[]', ?, '2026-01-01', '2026-01-02')",
			HS_BINDS(hs_b_int(f->bank.bank_no), hs_b_str(hs_uuid_v7_new(f->pool)),
			hs_b_str(type), dated ? hs_b_time(0) : hs_b_null()), NULL, &f->err));
}

static json_t *stats(struct fixture *f, int64_t ttl_s, bool refresh)
{
	json_t *ret;

	OK(f, hs_stats_get(f->db, f->pool, f->bank.bank_no, ttl_s, refresh, &ret, &f->err));
	return ret;
}

static void stats_of_an_empty_bank(void **state)
{
	struct fixture *f = *state;
	json_t *s = stats(f, 0, false);
	int64_t last_us;

	assert_int_equal(json_object_size(hs_json_obj(s, "nodes_by_fact_type")), 0);
	assert_int_equal(json_object_size(hs_json_obj(s, "links_by_link_type")), 0);
	assert_int_equal(hs_json_int(s, "total_links", -1), 0);
	assert_true(json_is_null(json_object_get(s, "last_consolidated_at")));
	OK(f, hs_stats_last_write(f->db, f->pool, f->bank.bank_no, &last_us, &f->err));
	assert_true(last_us == HS_TIME_NONE);
}

static void stats_derive_links_of_time_and_entities(void **state)
{
	struct fixture *f = *state;
	json_t *links, *nodes, *s;

	units(f, "world", 3, true);
	units(f, "world", 2, false);
	units(f, "experience", 25, true);
	units(f, "observation", 4, true);
	run(f, "INSERT INTO unit_entities (bank_no, unit_no, entity_no) SELECT bank_no, unit_no, 1000001 FROM "
		"memory_units WHERE bank_no = ? AND fact_type = 'experience'");
	run(f, "INSERT INTO unit_entities (bank_no, unit_no, entity_no) SELECT bank_no, unit_no, 1000002 FROM "
		"memory_units WHERE bank_no = ? AND fact_type = 'world' AND event_date IS NOT NULL");
	run(f, "INSERT INTO unit_entities (bank_no, unit_no, entity_no) VALUES (?, 1, 1000003)");
	run(f, "INSERT INTO memory_links (bank_no, from_no, to_no, link_type, weight) VALUES (?, 1, 2, 'semantic', 1)");
	run(f, "INSERT INTO memory_links (bank_no, from_no, to_no, link_type, weight) VALUES (?, 1, 3, 'semantic', 1)");
	run(f, "INSERT INTO memory_links (bank_no, from_no, to_no, link_type, weight) VALUES (?, 1, 2, 'caused_by', 1)");
	s = stats(f, 0, false);
	links = hs_json_obj(s, "links_by_link_type");
	nodes = hs_json_obj(s, "nodes_by_fact_type");

	assert_int_equal(hs_json_int(nodes, "world", 0), 5);
	assert_int_equal(hs_json_int(nodes, "experience", 0), 25);
	assert_int_equal(hs_json_int(nodes, "observation", 0), 4);
	assert_int_equal(hs_json_int(s, "total_nodes", 0), 34);
	assert_int_equal(hs_json_int(s, "total_observations", 0), 4);
	/* 3 facts with 2 neighbours each, 25 with at most 20; observations have none */
	assert_int_equal(hs_json_int(links, "temporal", 0), 3 * 2 + 25 * 20);
	/* 25 units: at most 10; 3 units: 2; a single one: none */
	assert_int_equal(hs_json_int(links, "entity", 0), 10 + 2);
	assert_int_equal(hs_json_int(links, "semantic", 0), 2);
	assert_int_equal(hs_json_int(links, "caused_by", 0), 1);
	assert_int_equal(hs_json_int(s, "total_links", 0), 506 + 12 + 3);
}

static void stats_count_consolidation_and_operations(void **state)
{
	struct fixture *f = *state;
	json_t *s;

	units(f, "world", 4, false);
	units(f, "observation", 2, false);
	run(f, "UPDATE memory_units SET consolidated_at = '2026-03-01 12:00:00' WHERE bank_no = ? ORDER BY unit_no LIMIT 1");
	run(f, "UPDATE memory_units SET consolidation_failed_at = '2026-03-02' WHERE bank_no = ? AND fact_type = 'world' "
		"AND consolidated_at IS NULL ORDER BY unit_no LIMIT 2");
	OK(f, hs_db_exec(f->db,
		"INSERT INTO async_operations (operation_id, bank_no, operation_type, status, "
		"result_metadata, created_at, updated_at) VALUES (?, ?, 'consolidation', 'failed', '{}', NOW(), NOW())",
		HS_BINDS(hs_b_str(hs_uuid_v7_new(f->pool)), hs_b_int(f->bank.bank_no)), NULL,
			&f->err));
	s = stats(f, 0, false);
	assert_string_equal(hs_json_str(s, "last_consolidated_at"), "2026-03-01T12:00:00+00:00");
	assert_int_equal(hs_json_int(s, "pending_consolidation", -1), 1);
	assert_int_equal(hs_json_int(s, "failed_consolidation", -1), 2);
	assert_int_equal(hs_json_int(s, "failed_operations", -1), 1);
	assert_int_equal(hs_json_int(s, "pending_operations", -1), 0);
	assert_int_equal(json_object_size(hs_json_obj(s, "operations_by_status")), 1);
}

static void stats_are_cached_for_a_while(void **state)
{
	struct fixture *f = *state;
	int64_t last_us;

	assert_int_equal(hs_json_int(stats(f, 60, false), "total_nodes", -1), 0);
	units(f, "world", 1, false);
	assert_int_equal(hs_json_int(stats(f, 60, false), "total_nodes", -1), 0);
	OK(f, hs_stats_last_write(f->db, f->pool, f->bank.bank_no, &last_us, &f->err));
	assert_string_equal(hs_time_text(f->pool, last_us), "2026-01-02T00:00:00+00:00");
	assert_int_equal(hs_json_int(stats(f, 0, false), "total_nodes", -1), 1);
	assert_int_equal(hs_json_int(stats(f, 60, false), "total_nodes", -1), 0);
	assert_int_equal(hs_json_int(stats(f, 60, true), "total_nodes", -1), 1);
	assert_int_equal(hs_json_int(stats(f, 60, false), "total_nodes", -1), 1);
	units(f, "world", 1, false);
	run(f, "UPDATE bank_stats_cache SET computed_at = computed_at - INTERVAL 61 SECOND WHERE bank_no = ?");
	assert_int_equal(hs_json_int(stats(f, 60, false), "total_nodes", -1), 2);
	OK(f, hs_stats_forget(f->db, f->bank.bank_no, &f->err));
	assert_int_equal(number(f, "SELECT COUNT(*) FROM bank_stats_cache WHERE bank_no = ?"), 0);
	run(f, "INSERT INTO bank_stats_cache (bank_no, computed_at, body) VALUES (?, UTC_TIMESTAMP(6), '{broken')");
	assert_int_equal(hs_json_int(stats(f, 60, false), "total_nodes", -1), 2);
}

static void the_list_is_in_order_of_writes(void **state)
{
	struct fixture *f = *state;
	const char *mark = f->bank.bank_id;
	struct hs_bank_listed *rows;
	struct hs_bank other;
	int64_t total;
	size_t n;

	OK(f, hs_bank_ensure(f->db, f->pool, hs_pool_printf(f->pool, "%s-2", mark), &other, NULL,
		&f->err));
	OK(f, hs_banks_list(f->db, f->pool, mark, 10, 0, &rows, &n, &total, &f->err));
	assert_int_equal(n, 2);
	assert_string_equal(rows[0].bank.bank_id, other.bank_id);
	run(f, "INSERT INTO documents (bank_no, document_id, content_hash, retain_params, tags, created_at, updated_at) "
		"VALUES (?, 'd', '', '{}', '[]', '2020-01-01', '2100-01-01')");
	units(f, "world", 3, false);
	OK(f, hs_banks_list(f->db, f->pool, mark, 10, 0, &rows, &n, &total, &f->err));
	assert_string_equal(rows[0].bank.bank_id, mark);
	assert_int_equal(rows[0].fact_count, 3);
	assert_string_equal(hs_time_text(f->pool, rows[0].last_document_us),
		"2020-01-01T00:00:00+00:00");
	assert_string_equal(hs_time_text(f->pool, rows[0].last_write_us),
		"2100-01-01T00:00:00+00:00");
	assert_int_equal(rows[1].fact_count, 0);
	assert_true(rows[1].last_document_us == HS_TIME_NONE &&
		rows[1].last_write_us == HS_TIME_NONE);
	OK(f, hs_banks_list(f->db, f->pool, mark, 1, 1, &rows, &n, &total, &f->err));
	assert_int_equal(n, 1);
	assert_int_equal(total, 2);
	assert_string_equal(rows[0].bank.bank_id, other.bank_id);
}

static enum hs_rc change(struct fixture *f, const char *bank_id, const char *updates, bool make)
{
	struct hs_bank_change want = {.make = make};
	struct hs_bank bank;

	hs_err_clear(&f->err);
	if (hs_json_load(f->pool, updates, &want.updates, &f->err) != HS_OK)
		fail_msg("%s", f->err.msg);
	return hs_bank_change(f->db, f->pool, f->cfg, bank_id, &want, &bank, NULL, &f->err);
}

static void a_refused_change_makes_no_bank(void **state)
{
	struct fixture *f = *state;
	const char *id = hs_uuid_v4_new(f->pool);
	struct hs_bank bank;

	assert_int_equal(change(f, id, "{\"retain_chunk_size\":0}", true), HS_E_BAD_REQUEST);
	assert_int_equal(change(f, id, "{\"retain_mission\":\"m\"}", false), HS_E_BANK_MISSING);
	assert_int_equal(change(f, "_no", "{}", true), HS_E_BAD_REQUEST);
	assert_int_equal(hs_bank_find(f->db, f->pool, id, &bank, &f->err), HS_E_BANK_MISSING);
	assert_int_equal(change(f, id, "{\"retain_mission\":\"m\"}", true), HS_OK);
	OK(f, hs_bank_find(f->db, f->pool, id, &bank, &f->err));
	assert_string_equal(bank.config, "{\"retain_mission\":\"m\"}");
	OK(f, hs_bank_config_clear(f->db, f->pool, id, &bank, &f->err));
	assert_string_equal(bank.config, "{}");
	assert_int_equal(hs_bank_config_clear(f->db, f->pool, "nowhere", &bank, &f->err),
		HS_E_BANK_MISSING);
}

static enum hs_rc late_write(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct fixture *f = arg;
	int64_t stamp;

	return hs_clock_advance(db, f->bank.bank_no, &stamp, err);
}

static void a_deleted_bank_takes_nothing_more(void **state)
{
	struct fixture *f = *state;
	struct hs_directive d = {.name = "n", .content = "c"};
	struct hs_bank again;
	int64_t count;

	units(f, "world", 3, false);
	run(f, "INSERT INTO documents (bank_no, document_id, content_hash, retain_params, tags, created_at, updated_at) "
		"VALUES (?, 'd', '', '{}', '[]', NOW(), NOW())");
	(void)stats(f, 60, false);
	OK(f, hs_bank_delete(f->db, f->bank.bank_id, &count, &f->err));
	assert_int_equal(count, 4);
	assert_int_equal(number(f, "SELECT COUNT(*) FROM purge_queue WHERE bank_no = ?"), 1);
	assert_int_equal(number(f, "SELECT COUNT(*) FROM bank_stats_cache WHERE bank_no = ?"), 0);
	assert_int_equal(number(f, "SELECT COUNT(*) FROM bank_clock WHERE bank_no = ?"), 0);
	assert_int_equal(hs_tx_run(f->db, late_write, f, &f->err), HS_E_BANK_MISSING);
	assert_int_equal(hs_directive_create(f->db, f->pool, f->bank.bank_no, &d, &f->err),
		HS_E_BANK_MISSING);
	(void)stats(f, 60, false);
	assert_int_equal(number(f, "SELECT COUNT(*) FROM bank_stats_cache WHERE bank_no = ?"), 0);
	OK(f, hs_bank_ensure(f->db, f->pool, f->bank.bank_id, &again, NULL, &f->err));
	assert_int_not_equal(again.bank_no, f->bank.bank_no);
	OK(f, hs_bank_delete(f->db, "nowhere", &count, &f->err));
	assert_int_equal(count, 0);
}

static void directives_are_loaded_by_scope(void **state)
{
	static const char *const tags[][2] = {{NULL}, {"a"}, {"b"}, {"a", "b"}};
	struct fixture *f = *state;
	struct hs_scope untagged = hs_scope_all(), any_a = hs_scope_all();
	struct hs_directive *rows;
	const char *a = "a";
	size_t n;

	for (size_t i = 0; i < HS_COUNT(tags); i++) {
		struct hs_directive d = {.name = "n", .content = "c", .is_active = true};

		for (size_t t = 0; t < 2 && tags[i][t]; t++)
			hs_strs_add(f->pool, &d.tags, tags[i][t]);
		OK(f, hs_directive_create(f->db, f->pool, f->bank.bank_no, &d, &f->err));
		d.id = NULL;
		d.is_active = false;
		OK(f, hs_directive_create(f->db, f->pool, f->bank.bank_no, &d, &f->err));
	}
	untagged.match = HS_EXACT;
	any_a.match = HS_ANY_STRICT;
	any_a.tags = (struct hs_strs){1, &a};
	any_a.plus_untagged = true;
	OK(f, hs_directives_load(f->db, f->pool, f->bank.bank_no, NULL, &rows, &n, &f->err));
	assert_int_equal(n, 4);
	OK(f, hs_directives_load(f->db, f->pool, f->bank.bank_no, &untagged, &rows, &n, &f->err));
	assert_int_equal(n, 1);
	assert_int_equal(rows[0].tags.n, 0);
	OK(f, hs_directives_load(f->db, f->pool, f->bank.bank_no, &any_a, &rows, &n, &f->err));
	assert_int_equal(n, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_CASE(stats_of_an_empty_bank),
		FIXTURE_CASE(stats_derive_links_of_time_and_entities),
		FIXTURE_CASE(stats_count_consolidation_and_operations),
		FIXTURE_CASE(stats_are_cached_for_a_while),
		FIXTURE_CASE(the_list_is_in_order_of_writes),
		FIXTURE_CASE(a_refused_change_makes_no_bank),
		FIXTURE_CASE(a_deleted_bank_takes_nothing_more),
		FIXTURE_CASE(directives_are_loaded_by_scope),
	};

	FIXTURE_MAIN_CHECK;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
