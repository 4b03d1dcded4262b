#include "models_fixture.h"

#include "store/document.h"
#include "store/evidence.h"
#include "store/expand.h"

static void run(struct fixture *f, const char *sql, const struct hs_bind *binds, size_t n)
{
	OK(f, hs_db_exec(f->db, sql, binds, n, NULL, &f->err));
}

static void document(struct fixture *f, const char *id, const char *text)
{
	run(f, "INSERT INTO documents (bank_no, document_id, original_text, content_hash, retain_params,"
	       " tags, created_at, updated_at)"
	       " VALUES (?, ?, ?, '', '{\"metadata\":{\"k\":1}}', '[\"d\"]', NOW(6), NOW(6))",
		HS_BINDS(hs_b_int(f->bank.bank_no), hs_b_str(id), hs_b_str(text)));
	run(f, "INSERT INTO chunks VALUES (?, ?, 0, ?, '', NOW(6))",
		HS_BINDS(hs_b_int(f->bank.bank_no), hs_b_str(id), hs_b_str(text)));
}

static void place(struct fixture *f, const char *id, const char *document_id, int64_t chunk)
{
	run(f, "UPDATE memory_units SET document_id = ?, chunk_index = ?, context = 'c', metadata = '{\"m\":1}',"
	       " mentioned_at = '2026-01-02 03:04:05' WHERE bank_no = ? AND id = ?",
		HS_BINDS(hs_b_str(document_id), hs_b_int(chunk), hs_b_int(f->bank.bank_no), hs_b_str(id)));
}

static struct hs_strs ids_of(struct fixture *f, const char *a, const char *b, const char *c)
{
	struct hs_strs ids = {0};

	hs_strs_add(f->pool, &ids, a);
	hs_strs_add(f->pool, &ids, b);
	hs_strs_add(f->pool, &ids, c);
	return ids;
}

static const struct hs_expand_row *expanded(struct fixture *f, const struct hs_strs *ids, bool with_text,
	const char *id)
{
	struct hs_expand_row *rows;
	size_t n;

	OK(f, hs_store_expand(f->db, f->pool, f->bank.bank_no, ids, with_text, &rows, &n, &f->err));
	for (size_t i = 0; i < n; i++)
		if (strcmp(rows[i].id, id) == 0)
			return &rows[i];
	return NULL;
}

static void evidence_is_read_again_for_what_is_left(void **state)
{
	struct fixture *f = *state;
	const char *a = fixture_memory(f, "world", "[\"x\",\"y\"]"), *gone = fixture_memory(f, "world", "[]");
	struct hs_strs ids = ids_of(f, a, gone, "not-an-id"), none = {0};
	struct hs_evidence_row *rows;
	size_t n;

	place(f, a, "doc", 3);
	fixture_remove(f, gone);
	OK(f, hs_store_evidence(f->db, f->pool, f->bank.bank_no, &ids, &rows, &n, &f->err));
	assert_int_equal(n, 1);
	assert_string_equal(rows[0].id, a);
	assert_string_equal(rows[0].context, "c");
	assert_string_equal(rows[0].document_id, "doc");
	assert_string_equal(rows[0].metadata, "{\"m\":1}");
	assert_int_equal(rows[0].chunk_index, 3);
	assert_string_equal(hs_strs_join(f->pool, &rows[0].tags, " "), "x y");
	assert_string_equal(hs_time_text(f->pool, rows[0].mentioned_us), "2026-01-02T03:04:05+00:00");
	OK(f, hs_store_evidence(f->db, f->pool, f->bank.bank_no + 1, &ids, &rows, &n, &f->err));
	assert_int_equal(n, 0);
	OK(f, hs_store_evidence(f->db, f->pool, f->bank.bank_no, &none, &rows, &n, &f->err));
	assert_int_equal(n, 0);
}

static void a_memory_comes_with_its_source(void **state)
{
	struct fixture *f = *state;
	const char *a = fixture_memory(f, "world", "[\"x\"]"), *b = fixture_memory(f, "observation", "[]");
	const char *c = fixture_memory(f, "experience", "[]");
	struct hs_strs ids = ids_of(f, a, b, c);
	const struct hs_expand_row *row;

	document(f, "doc", "the text");
	place(f, a, "doc", 0);
	place(f, c, "vanished", 0);
	row = expanded(f, &ids, true, a);
	assert_string_equal(row->chunk_text, "the text");
	assert_string_equal(row->original_text, "the text");
	assert_string_equal(row->retain_params, "{\"metadata\":{\"k\":1}}");
	assert_string_equal(row->document_tags.v[0], "d");
	assert_true(row->document_found);
	row = expanded(f, &ids, false, a);
	assert_string_equal(row->chunk_text, "the text");
	assert_null(row->original_text);
	assert_null(row->retain_params);
	assert_true(row->document_found);
	row = expanded(f, &ids, true, b);
	assert_string_equal(row->fact_type, "observation");
	assert_null(row->document_id);
	assert_null(row->chunk_text);
	assert_int_equal(row->chunk_index, -1);
	assert_false(row->document_found);
	row = expanded(f, &ids, true, c);
	assert_string_equal(row->document_id, "vanished");
	assert_null(row->chunk_text);
	assert_false(row->document_found);
}

static int64_t pending(struct fixture *f)
{
	int64_t n = -1;

	OK(f, hs_store_pending(f->db, f->pool, f->bank.bank_no, 3, &n, &f->err));
	return n;
}

static void pending_facts_are_counted_up_to_a_number(void **state)
{
	struct fixture *f = *state;
	const char *a;

	assert_int_equal(pending(f), 0);
	a = fixture_memory(f, "world", "[]");
	fixture_memory(f, "observation", "[]");
	assert_int_equal(pending(f), 1);
	run(f, "UPDATE memory_units SET consolidated_at = NOW(6) WHERE bank_no = ? AND id = ?",
		HS_BINDS(hs_b_int(f->bank.bank_no), hs_b_str(a)));
	assert_int_equal(pending(f), 0);
	for (int i = 0; i < 5; i++)
		fixture_memory(f, "experience", "[]");
	assert_int_equal(pending(f), 3);
}

static void models_are_named_in_a_scope(void **state)
{
	struct fixture *f = *state;
	struct hs_scope scope = hs_scope_all();
	const char *tag = "a";
	struct hs_strs ids;

	fixture_model(f, "m1", NULL, NULL);
	fixture_model(f, "m2", "[\"a\"]", NULL);
	OK(f, hs_store_model_ids(f->db, f->pool, f->bank.bank_no, &scope, 10, &ids, &f->err));
	assert_int_equal(ids.n, 2);
	OK(f, hs_store_model_ids(f->db, f->pool, f->bank.bank_no, &scope, 1, &ids, &f->err));
	assert_int_equal(ids.n, 1);
	scope.tags = (struct hs_strs){1, &tag};
	scope.match = HS_ANY_STRICT;
	OK(f, hs_store_model_ids(f->db, f->pool, f->bank.bank_no, &scope, 10, &ids, &f->err));
	assert_int_equal(ids.n, 1);
	assert_string_equal(ids.v[0], "m2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_CASE(evidence_is_read_again_for_what_is_left),
		FIXTURE_CASE(a_memory_comes_with_its_source),
		FIXTURE_CASE(pending_facts_are_counted_up_to_a_number),
		FIXTURE_CASE(models_are_named_in_a_scope),
	};

	FIXTURE_MAIN_CHECK;
	return cmocka_run_group_tests_name("evidence", tests, NULL, NULL);
}
