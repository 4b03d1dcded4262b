/* The write side of units: search terms, frequencies, entity counters and vectors are exact both ways. */
#include "models_fixture.h"

#include <math.h>

#include "store/document.h"
#include "store/entity.h"
#include "store/memory.h"
#include "store/observation.h"
#include "store/posting.h"
#include "store/vector.h"

typedef enum hs_rc step_fn(struct fixture *f, int64_t stamp_us, void *arg, struct hs_err *err);
struct step {
	struct fixture *f;
	step_fn *fn;
	void *arg;
};

static enum hs_rc step_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct step *s = arg;
	int64_t stamp_us;

	HS_TRY(hs_clock_advance(db, s->f->bank.bank_no, &stamp_us, err));
	return s->fn(s->f, stamp_us, s->arg, err);
}

static void run(struct fixture *f, step_fn *fn, void *arg)
{
	struct step s = {f, fn, arg};

	OK(f, hs_tx_run(f->db, step_tx, &s, &f->err));
}

static int64_t number(struct fixture *f, const char *sql)
{
	struct hs_rows rows;

	OK(f, hs_db_select(
		      f->db, f->pool, sql, HS_BINDS(hs_b_int(f->bank.bank_no)), &rows, &f->err));
	return rows.n ? hs_row(&rows, 0)[0].i : -1;
}

/* ---- units ---- */

struct made {
	struct hs_unit *units;
	size_t n;
	const char *names; /* entities of every unit, separated by '|' */
};

static enum hs_rc insert(struct fixture *f, int64_t stamp_us, void *arg, struct hs_err *err)
{
	struct made *m = arg;
	struct hs_entity_use *uses = HS_NEW_ARRAY(f->pool, struct hs_entity_use, m->n);

	for (size_t i = 0; i < m->n; i++) {
		hs_unit_terms(f->pool, &m->units[i]);
		uses[i] = (struct hs_entity_use){
			hs_str_split(f->pool, m->names, '|'), HS_TIME_NONE, NULL};
	}
	HS_TRY(hs_entities_use(f->db, f->pool, f->bank.bank_no, stamp_us, uses, m->n, err));
	for (size_t i = 0; i < m->n; i++) {
		m->units[i].entities = uses[i].entity_nos;
		m->units[i].n_entities = uses[i].names.n;
	}
	return hs_units_insert(f->db, f->pool, f->bank.bank_no, stamp_us, m->units, m->n, err);
}

static void add(
	struct fixture *f, struct made *m, const char *const *texts, size_t n, const char *names)
{
	*m = (struct made){HS_NEW_ARRAY(f->pool, struct hs_unit, n), n, names};
	for (size_t i = 0; i < n; i++)
		m->units[i] = hs_unit_new(HS_WORLD, texts[i]);
	run(f, insert, m);
}

static enum hs_rc erase(struct fixture *f, int64_t stamp_us, void *arg, struct hs_err *err)
{
	const struct made *m = arg;
	int64_t *nos = HS_NEW_ARRAY(f->pool, int64_t, m->n);
	struct hs_deleted gone = {0};

	(void)stamp_us;
	for (size_t i = 0; i < m->n; i++)
		nos[i] = m->units[i].unit_no;
	HS_TRY(hs_memory_delete_units(f->db, f->pool, f->bank.bank_no, nos, m->n, &gone, err));
	assert_int_equal(gone.units, m->n);
	return HS_OK;
}

/* Frequency of a word in the bank. */
static int64_t df(struct fixture *f, const char *word)
{
	struct hs_query_terms q;
	struct hs_posting_stats stats;
	struct hs_term_df t;

	hs_words_query(f->pool, word, NULL, &q);
	assert_int_equal(q.n, 1);
	t.term = hs_posting_term(q.v[0].hash);
	OK(f, hs_posting_stats(f->db, f->pool, f->bank.bank_no, &t, 1, &stats, &f->err));
	return t.df;
}

static const char *const texts[] = {
	"Green tea from Uji", "Green apples, green pears", "Tea houses of Kyoto"};

static void frequencies_are_exact_both_ways(void **state)
{
	struct fixture *f = *state;
	struct made all, one;

	add(f, &all, texts, 3, "Alice|Kyoto");
	assert_int_equal(df(f, "green"), 2);
	assert_int_equal(df(f, "tea"), 2);
	assert_int_equal(df(f, "kyoto"), 1);
	assert_int_equal(number(f, "SELECT units FROM posting_stats WHERE bank_no = ?"), 3);
	assert_int_equal(
		number(f,
			"SELECT SUM(tf) - MAX(len) FROM postings WHERE bank_no = ? GROUP BY unit_no "
			"ORDER BY 1 DESC LIMIT 1"),
		0);
	one = (struct made){all.units + 1, 1, NULL};
	run(f, erase, &one);
	assert_int_equal(df(f, "green"), 1);
	assert_int_equal(df(f, "pears"), 0);
	assert_int_equal(number(f, "SELECT units FROM posting_stats WHERE bank_no = ?"), 2);
	one = (struct made){all.units, 1, NULL};
	run(f, erase, &one);
	one = (struct made){all.units + 2, 1, NULL};
	run(f, erase, &one);
	assert_int_equal(number(f, "SELECT COUNT(*) FROM postings WHERE bank_no = ?"), 0);
	assert_int_equal(number(f, "SELECT COUNT(*) FROM posting_terms WHERE bank_no = ?"), 0);
	assert_int_equal(
		number(f, "SELECT units + total_len FROM posting_stats WHERE bank_no = ?"), 0);
}

static void entity_counters_follow_their_units(void **state)
{
	struct fixture *f = *state;
	struct made first, second;

	add(f, &first, texts, 2, "Alice|Kyoto");
	add(f, &second, texts + 2, 1, "ALICE|Bob");
	assert_int_equal(number(f, "SELECT COUNT(*) FROM entities WHERE bank_no = ?"), 3);
	assert_int_equal(
		number(f,
			"SELECT mention_count FROM entities WHERE bank_no = ? AND name_key = 'alice'"),
		3);
	assert_int_equal(
		number(f,
			"SELECT MAX(cooccurrence_count) FROM entity_cooccurrences WHERE bank_no = ?"),
		2);
	run(f, erase, &first);
	assert_int_equal(
		number(f,
			"SELECT mention_count FROM entities WHERE bank_no = ? AND name_key = 'alice'"),
		1);
	assert_int_equal(number(f, "SELECT COUNT(*) FROM entities WHERE bank_no = ?"), 2);
	assert_int_equal(
		number(f, "SELECT COUNT(*) FROM entity_cooccurrences WHERE bank_no = ?"), 1);
	run(f, erase, &second);
	assert_int_equal(number(f, "SELECT COUNT(*) FROM entities WHERE bank_no = ?"), 0);
	assert_int_equal(
		number(f, "SELECT COUNT(*) FROM entity_cooccurrences WHERE bank_no = ?"), 0);
}

/* ---- searching ---- */

struct seen {
	size_t n;
	int64_t last;
};

static void saw_posting(void *arg, const struct hs_posting *p)
{
	struct seen *s = arg;

	s->n++;
	s->last = p->unit_no;
}

static void saw_vector(void *arg, int64_t unit_no, enum hs_fact_type type, const float *vec)
{
	struct seen *s = arg;

	(void)type;
	(void)vec;
	s->n++;
	s->last = unit_no;
}

static void postings_respect_the_scope(void **state)
{
	struct fixture *f = *state;
	struct hs_scope scope = hs_scope_all();
	struct seen seen = {0};
	struct hs_query_terms q;
	struct hs_term_df t;
	struct made m;

	m = (struct made){HS_NEW_ARRAY(f->pool, struct hs_unit, 3), 3, ""};
	for (size_t i = 0; i < 3; i++) {
		m.units[i] = hs_unit_new(i == 2 ? HS_OBSERVATION : HS_WORLD, "lighthouse keeper");
		if (i == 1)
			hs_strs_add(f->pool, &m.units[i].tags, "sea");
	}
	run(f, insert, &m);
	hs_words_query(f->pool, "lighthouse", NULL, &q);
	t = (struct hs_term_df){hs_posting_term(q.v[0].hash), 3};
	OK(f, hs_postings_each(
		      f->db, f->pool, f->bank.bank_no, &t, 1, &scope, saw_posting, &seen, &f->err));
	assert_int_equal(seen.n, 3);
	scope.facts = HS_FACT_BIT(HS_OBSERVATION);
	seen.n = 0;
	OK(f, hs_postings_each(
		      f->db, f->pool, f->bank.bank_no, &t, 1, &scope, saw_posting, &seen, &f->err));
	assert_int_equal(seen.n, 1);
	scope = hs_scope_all();
	hs_strs_add(f->pool, &scope.tags, "sea");
	scope.match = HS_ANY_STRICT;
	seen.n = 0;
	OK(f, hs_postings_each(
		      f->db, f->pool, f->bank.bank_no, &t, 1, &scope, saw_posting, &seen, &f->err));
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.last, m.units[1].unit_no);
}

static void vectors_of_another_embedder_are_left_out(void **state)
{
	struct fixture *f = *state;
	struct hs_scope scope = hs_scope_all();
	float vec[] = {0.6f, 0.8f, 0.0f};
	struct seen seen = {0};
	int64_t ours, theirs, foreign, none;
	struct made m;

	OK(f, hs_embedder_no(f->db, f->pool, hs_pool_printf(f->pool, "ours-%s", f->bank.bank_id),
		      &ours, &f->err));
	OK(f, hs_embedder_no(f->db, f->pool, hs_pool_printf(f->pool, "theirs-%s", f->bank.bank_id),
		      &theirs, &f->err));
	OK(f, hs_embedder_find(f->db, f->pool, "never seen", &none, &f->err));
	assert_int_equal(none, 0);
	assert_true(ours && theirs && ours != theirs);
	m = (struct made){HS_NEW_ARRAY(f->pool, struct hs_unit, 2), 2, ""};
	for (size_t i = 0; i < 2; i++) {
		m.units[i] = hs_unit_new(HS_WORLD, "text");
		m.units[i].vec = vec;
		m.units[i].dim = 3;
		m.units[i].embedder_no = i ? theirs : ours;
	}
	run(f, insert, &m);
	OK(f, hs_vectors_each(f->db, f->pool, f->bank.bank_no, ours, 3, &scope, 0, saw_vector,
		      &seen, &f->err));
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.last, m.units[0].unit_no);
	OK(f, hs_vectors_foreign(f->db, f->pool, f->bank.bank_no, ours, &foreign, &f->err));
	assert_int_equal(foreign, 1);
}

static void dot_products_of_all_lengths(void **state)
{
	float a[101], b[101];

	(void)state;
	for (size_t dim = 0; dim <= 100; dim++) {
		double want = 0;

		for (size_t i = 0; i < dim; i++) {
			a[i] = (float)(i % 7) - 3;
			b[i] = (float)(i % 5) - 2;
			want += (double)a[i] * b[i];
		}
		assert_float_equal(hs_dot(a, b, dim), want, 1e-3);
	}
}

/* Rows the connection has read by stepping along an index. */
static int64_t steps(struct fixture *f)
{
	struct hs_rows rows;

	OK(f, hs_db_select(f->db, f->pool, "SHOW SESSION STATUS LIKE 'Handler_read_next'", HS_NO_BINDS,
		      &rows, &f->err));
	return strtoll(hs_row(&rows, 0)[1].s, NULL, 10);
}

static void loading_a_few_units_does_not_read_the_bank(void **state)
{
	struct fixture *f = *state;
	struct hs_unit_row *rows;
	struct made m = {HS_NEW_ARRAY(f->pool, struct hs_unit, 1000), 1000, ""};
	int64_t nos[8], *live, before;
	size_t n;

	for (size_t i = 0; i < m.n; i++)
		m.units[i] = hs_unit_new(HS_WORLD, "a unit among many");
	run(f, insert, &m);
	for (size_t i = 0; i < HS_COUNT(nos); i++)
		nos[i] = m.units[i * 100].unit_no;
	before = steps(f);
	OK(f, hs_units_load(f->db, f->pool, f->bank.bank_no, nos, HS_COUNT(nos), &rows, &n, &f->err));
	assert_int_equal(n, HS_COUNT(nos));
	OK(f, hs_units_live(f->db, f->pool, f->bank.bank_no, nos, HS_COUNT(nos), &live, &n, &f->err));
	assert_int_equal(n, HS_COUNT(nos));
	assert_in_range(steps(f) - before, 0, 100);
}

/* ---- observations ---- */

struct observe {
	struct hs_unit unit;
	const int64_t *sources;
	size_t n;
	bool made;
};

static enum hs_rc observe(struct fixture *f, int64_t stamp_us, void *arg, struct hs_err *err)
{
	struct observe *o = arg;

	hs_unit_terms(f->pool, &o->unit);
	return hs_observation_insert(f->db, f->pool, f->bank.bank_no, stamp_us, &o->unit,
		o->sources, o->n, &o->made, err);
}

static enum hs_rc apply(struct fixture *f, int64_t stamp_us, void *arg, struct hs_err *err)
{
	bool found;

	HS_TRY(hs_observation_apply(f->db, f->pool, f->bank.bank_no, stamp_us, arg, &found, err));
	assert_true(found);
	return HS_OK;
}

static struct hs_unit_row load(struct fixture *f, int64_t no)
{
	struct hs_unit_row *rows;
	size_t n;

	OK(f, hs_units_load(f->db, f->pool, f->bank.bank_no, &no, 1, &rows, &n, &f->err));
	assert_int_equal(n, 1);
	return rows[0];
}

static void proof_count_is_the_number_of_distinct_live_sources(void **state)
{
	struct fixture *f = *state;
	struct made facts;
	struct observe o = {.unit = hs_unit_new(HS_OBSERVATION, "Alice drinks tea")}, none = o;
	struct hs_observation_change c = {.event_us = HS_TIME_NONE,
		.occurred_start_us = HS_TIME_NONE,
		.occurred_end_us = HS_TIME_NONE,
		.mentioned_us = HS_TIME_NONE};
	struct hs_unit_row before, after;
	int64_t sources[4];

	add(f, &facts, texts, 3, "");
	sources[0] = sources[1] = facts.units[0].unit_no;
	sources[2] = facts.units[1].unit_no;
	sources[3] = INT64_MAX;
	none.sources = sources + 3;
	none.n = 1;
	run(f, observe, &none);
	assert_false(none.made);
	o.sources = sources;
	o.n = 4;
	run(f, observe, &o);
	assert_true(o.made);
	before = load(f, o.unit.unit_no);
	assert_int_equal(before.proof_count, 2);

	/* evidence alone moves no updated_at; the same source again counts once */
	sources[3] = facts.units[2].unit_no;
	c.observation_no = o.unit.unit_no;
	c.sources = sources;
	c.n_sources = 4;
	run(f, apply, &c);
	after = load(f, o.unit.unit_no);
	assert_int_equal(after.proof_count, 3);
	assert_true(after.updated_us == before.updated_us);

	/* a new text is found by its words and leaves a version behind */
	c.text = "Alice drinks coffee";
	c.history = true;
	c.history_max = 50;
	run(f, apply, &c);
	assert_true(load(f, o.unit.unit_no).updated_us > before.updated_us);
	assert_int_equal(df(f, "coffee"), 1);
	assert_int_equal(
		number(f, "SELECT COUNT(*) FROM observation_history WHERE bank_no = ?"), 1);
}

static enum hs_rc mark_done(struct fixture *f, int64_t stamp_us, void *arg, struct hs_err *err)
{
	const struct made *m = arg;

	for (size_t i = 0; i < m->n; i++)
		HS_TRY(hs_units_mark(f->db, f->pool, f->bank.bank_no, &m->units[i].unit_no, 1,
			false, stamp_us, err));
	return HS_OK;
}

static void deleting_a_source_sweeps_its_observations(void **state)
{
	struct fixture *f = *state;
	struct made facts, one;
	struct observe o = {.unit = hs_unit_new(HS_OBSERVATION, "Tea is green")};
	int64_t sources[2];

	add(f, &facts, texts, 3, "");
	sources[0] = facts.units[0].unit_no;
	sources[1] = facts.units[1].unit_no;
	o.sources = sources;
	o.n = 2;
	run(f, observe, &o);
	run(f, mark_done, &facts);
	one = (struct made){facts.units, 1, NULL};
	run(f, erase, &one);
	assert_int_equal(
		number(f,
			"SELECT COUNT(*) FROM memory_units WHERE bank_no = ? AND fact_type = 'observation'"),
		0);
	assert_int_equal(
		number(f, "SELECT COUNT(*) FROM observation_sources WHERE bank_no = ?"), 0);
	/* the co-source is pending again, the third fact is not; neither has moved */
	assert_int_equal(load(f, facts.units[1].unit_no).consolidated_us == HS_TIME_NONE, 1);
	assert_int_equal(load(f, facts.units[2].unit_no).consolidated_us == HS_TIME_NONE, 0);
	assert_true(load(f, facts.units[1].unit_no).updated_us ==
		    load(f, facts.units[2].unit_no).updated_us);
}

static void links_are_one_a_pair(void **state)
{
	struct fixture *f = *state;
	struct made m;
	struct hs_link links[5];

	add(f, &m, texts, 2, "");
	links[0] = (struct hs_link){m.units[0].unit_no, m.units[1].unit_no, "semantic", 0.8};
	links[1] = (struct hs_link){m.units[1].unit_no, m.units[0].unit_no, "semantic", 0.8};
	links[2] = (struct hs_link){m.units[0].unit_no, m.units[0].unit_no, "semantic", 1.0};
	links[3] = (struct hs_link){m.units[0].unit_no, INT64_MAX, "semantic", 0.9};
	links[4] = (struct hs_link){m.units[1].unit_no, m.units[0].unit_no, "caused_by", 1.0};
	for (int again = 0; again < 2; again++)
		OK(f, hs_links_insert(f->db, f->pool, f->bank.bank_no, links, 5, &f->err));
	assert_int_equal(number(f, "SELECT COUNT(*) FROM memory_links WHERE bank_no = ?"), 2);
}

static void test_retain_case_47_chunk_ids_never_collide(void **state)
{
	struct fixture *f = *state;
	const char *one = hs_chunk_id(f->pool, "a_b", "c", 0),
		   *two = hs_chunk_id(f->pool, "a", "b_c", 0), *bank, *document;
	int64_t index;

	assert_string_not_equal(one, two);
	assert_string_equal(hs_chunk_id(f->pool, "bank", "doc", 12), "bank_doc_12");
	assert_true(hs_chunk_id_parse(f->pool, two, &bank, &document, &index));
	assert_string_equal(bank, "a");
	assert_string_equal(document, "b_c");
	assert_true(hs_chunk_id_parse(
		f->pool, hs_chunk_id(f->pool, "~5F", "_~_", 7), &bank, &document, &index));
	assert_string_equal(bank, "~5F");
	assert_string_equal(document, "_~_");
	assert_int_equal(index, 7);
	assert_false(hs_chunk_id_parse(f->pool, "no-chunk", &bank, &document, &index));
	assert_false(hs_chunk_id_parse(f->pool, "a_b_c_1", &bank, &document, &index));
	assert_false(hs_chunk_id_parse(f->pool, "a_b_-1", &bank, &document, &index));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			frequencies_are_exact_both_ways, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			entity_counters_follow_their_units, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			postings_respect_the_scope, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			vectors_of_another_embedder_are_left_out, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			loading_a_few_units_does_not_read_the_bank, fixture_setup, fixture_teardown),
		cmocka_unit_test(dot_products_of_all_lengths),
		cmocka_unit_test_setup_teardown(proof_count_is_the_number_of_distinct_live_sources,
			fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			deleting_a_source_sweeps_its_observations, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			links_are_one_a_pair, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_retain_case_47_chunk_ids_never_collide,
			fixture_setup, fixture_teardown),
	};

	if (!getenv("HS_TEST_DB_SOCKET") || !getenv("HS_TEST_DB_NAME"))
		return 77;
	return cmocka_run_group_tests_name("store/posting", tests, NULL, NULL);
}
