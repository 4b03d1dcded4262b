/* Scope-to-SQL and its twin in C agree on every mode, leaf, not, fact type and window. */
#include "models_fixture.h"

#include "store/scope.h"

struct unit {
	const char *id;
	struct hs_strs tags;
	enum hs_fact_type type;
	int64_t updated_us;
};
struct world {
	struct fixture *f;
	struct unit *units;
	size_t n, checked;
};

static struct hs_strs tags_of(struct hs_pool *pool, const char *text)
{
	return hs_str_split(pool, text, ',');
}

static const char *const row_tags[] = {"", "a", "b", "a,b", "A", "a,b,c", "c", "a ", "é", "日本"};

static void add_unit(struct world *w, const char *tags, enum hs_fact_type type, int64_t us)
{
	struct fixture *f = w->f;
	struct unit *u = &w->units[w->n++];

	/* "a " is a tag of its own: splitting would trim it */
	u->tags = strcmp(tags, "a ") == 0 ? (struct hs_strs){0} : tags_of(f->pool, tags);
	if (strcmp(tags, "a ") == 0)
		hs_strs_add(f->pool, &u->tags, tags);
	u->id = hs_uuid_v7_new(f->pool);
	u->type = type;
	u->updated_us = us;
	OK(f, hs_db_exec(f->db,
		      "INSERT INTO memory_units (bank_no, id, fact_type, text, tags, created_at, updated_at)"
		      " VALUES (?, ?, ?, 'x', '[]', ?, ?)",
		      HS_BINDS(hs_b_int(f->bank.bank_no), hs_b_str(u->id),
			      hs_b_str(hs_fact_type_names[type]), hs_b_time(us), hs_b_time(us)),
		      NULL, &f->err));
	for (size_t i = 0; i < u->tags.n; i++)
		OK(f, hs_db_exec(f->db,
			      "INSERT INTO unit_tags (bank_no, tag, unit_no) SELECT bank_no, ?, unit_no"
			      " FROM memory_units WHERE id = ?",
			      HS_BINDS(hs_b_str(u->tags.v[i]), hs_b_str(u->id)), NULL, &f->err));
}

static struct world new_world(struct fixture *f)
{
	struct world w = {.f = f, .units = HS_NEW_ARRAY(f->pool, struct unit, 128)};
	int64_t t = 0;

	OK(f, hs_clock_read(f->db, f->bank.bank_no, &t, &f->err));
	for (int type = 0; type < HS_FACT_TYPE__MAX; type++)
		for (size_t i = 0; i < HS_COUNT(row_tags); i++)
			add_unit(&w, row_tags[i], (enum hs_fact_type)type, t + (int64_t)w.n);
	return w;
}

static bool in_rows(const struct hs_rows *rows, const char *id)
{
	for (size_t i = 0; i < rows->n; i++)
		if (strcmp(hs_row(rows, i)[0].s, id) == 0)
			return true;
	return false;
}

/* Ask the database, ask C, compare row by row. */
static void agree(struct world *w, const struct hs_scope *s, const char *what)
{
	struct fixture *f = w->f;
	struct hs_sql q = hs_sql_new(f->pool);
	struct hs_rows rows;
	size_t expected = 0;

	hs_sql_add(&q, "SELECT u.id FROM memory_units u WHERE u.bank_no = ?");
	hs_sql_bind(&q, hs_b_int(f->bank.bank_no));
	hs_scope_sql(&q, s, &hs_scope_units);
	OK(f, hs_sql_select(f->db, &q, &rows, &f->err));
	for (size_t i = 0; i < w->n; i++) {
		const struct unit *u = &w->units[i];
		bool c = hs_scope_match(s, &u->tags, u->type, u->updated_us);

		expected += c;
		if (c != in_rows(&rows, u->id))
			fail_msg("%s: unit %zu [%s] %s: C says %d, SQL %d\n%s", what, i,
				hs_strs_join(f->pool, &u->tags, ","), hs_fact_type_names[u->type],
				c, !c, q.text->data);
	}
	assert_int_equal(rows.n, expected);
	w->checked++;
}

static const char *const wanted[] = {
	"", "a", "b", "a,b", "b,a,a", "A", "zzz", "a,zzz", "é,日本", "a,b,c"};

static void every_flat_mode(struct world *w)
{
	for (int match = 0; match < HS_TAGS_MATCH__MAX; match++)
		for (size_t i = 0; i < HS_COUNT(wanted); i++)
			for (int plus = 0; plus < 2; plus++) {
				struct hs_scope s = hs_scope_all();

				s.match = (enum hs_tags_match)match;
				s.tags = tags_of(w->f->pool, wanted[i]);
				s.plus_untagged = plus;
				agree(w, &s,
					hs_pool_printf(w->f->pool, "flat %s [%s] plus %d",
						hs_tags_match_names[match], wanted[i], plus));
			}
}

static void every_fact_and_window(struct world *w)
{
	int64_t middle = w->units[w->n / 2].updated_us;
	int64_t times[] = {HS_TIME_NONE, middle, middle - 1, 0};

	for (unsigned facts = 0; facts <= HS_FACTS_ALL; facts++)
		for (size_t a = 0; a < HS_COUNT(times); a++)
			for (size_t b = 0; b < HS_COUNT(times); b++) {
				struct hs_scope s = hs_scope_all();

				s.facts = facts;
				s.after_us = times[a];
				s.until_us = times[b];
				s.tags = tags_of(w->f->pool, a ? "a" : "");
				agree(w, &s,
					hs_pool_printf(w->f->pool, "facts %u after %zu until %zu",
						facts, a, b));
			}
}

static struct hs_scope groups_scope(struct fixture *f, const char *json)
{
	struct hs_scope s = hs_scope_all();
	struct hs_groups *g;
	json_t *v;

	OK(f, hs_json_load(f->pool, json, &v, &f->err));
	OK(f, hs_groups_parse(f->pool, v, &g, &f->err));
	s.has_groups = g != NULL;
	s.groups = g ? g->v : NULL;
	s.n_groups = g ? g->n : 0;
	return s;
}

static const char *tag_json(struct hs_pool *pool, const char *text)
{
	struct hs_strs tags = tags_of(pool, text);

	return hs_json_text(pool, hs_json_keep(pool, hs_json_from_strs(&tags)));
}

static void every_leaf(struct world *w)
{
	struct hs_pool *pool = w->f->pool;

	for (int match = 0; match < HS_TAGS_MATCH__MAX; match++)
		for (size_t i = 0; i < HS_COUNT(wanted); i++) {
			const char *leaf = hs_pool_printf(pool, "{\"tags\":%s,\"match\":\"%s\"}",
				tag_json(pool, wanted[i]), hs_tags_match_names[match]);
			const char *forms[] = {"[%s]", "[{\"not\":%s}]", "[{\"not\":{\"not\":%s}}]",
				"[{\"or\":[%s,{\"tags\":[\"c\"]}]}]",
				"[{\"and\":[%s,{\"tags\":[\"b\"],\"match\":\"any\"}]}]",
				"[%s,{\"not\":{\"tags\":[\"c\"]}}]"};

			for (size_t k = 0; k < HS_COUNT(forms); k++) {
				const char *json = hs_str_replace(pool, forms[k], "%s", leaf);
				struct hs_scope s = groups_scope(w->f, json);

				agree(w, &s, json);
				s.match = HS_EXACT;
				agree(w, &s,
					hs_pool_printf(pool, "exact without tags and %s", json));
				s = hs_scope_for_staleness(pool, &s);
				agree(w, &s, hs_pool_printf(pool, "stale %s", json));
			}
		}
}

/* A random tree; the same seed gives the same trees. */
static unsigned draw(unsigned *seed, unsigned n)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 16) % n;
}

static const char *random_group(struct hs_pool *pool, unsigned *seed, int depth)
{
	unsigned kind = depth > 4 ? 0 : draw(seed, 4);
	const char *a;

	if (kind == 0)
		return hs_pool_printf(pool, "{\"tags\":%s,\"match\":\"%s\"}",
			tag_json(pool, wanted[draw(seed, HS_COUNT(wanted))]),
			hs_tags_match_names[draw(seed, HS_TAGS_MATCH__MAX)]);
	a = random_group(pool, seed, depth + 1);
	if (kind == 1)
		return hs_pool_printf(pool, "{\"not\":%s}", a);
	return hs_pool_printf(pool, "{\"%s\":[%s,%s]}", kind == 2 ? "and" : "or", a,
		random_group(pool, seed, depth + 1));
}

static void random_trees(struct world *w)
{
	unsigned seed = 7;

	for (int i = 0; i < 200; i++) {
		const char *json =
			hs_pool_printf(w->f->pool, "[%s]", random_group(w->f->pool, &seed, 0));
		struct hs_scope s = groups_scope(w->f, json);

		s.plus_untagged = i % 5 == 0;
		s.facts = (unsigned)i % 8;
		agree(w, &s, json);
	}
}

static void test_models_case_68_scope_to_sql_and_its_twin_agree(void **state)
{
	struct world w = new_world(*state);

	every_flat_mode(&w);
	every_fact_and_window(&w);
	every_leaf(&w);
	random_trees(&w);
	assert_true(w.checked > 1000);
}

/* ---- fault 32: the table, by hand ---- */

static void test_fault_32_tag_matching_table(void **state)
{
	static const char *const rows[] = {"", "a", "b", "a,b"};
	static const struct {
		const char *tags;
		enum hs_tags_match match;
		const char *kept;
	} cases[] = {
		{"a,b", HS_ANY, "1111"},
		{"a,b", HS_ALL, "1001"},
		{"a,b", HS_ANY_STRICT, "0111"},
		{"a,b", HS_ALL_STRICT, "0001"},
		{"a,b", HS_EXACT, "0001"},
		{"", HS_EXACT, "1000"},
		{"", HS_ANY, "1111"},
		{"b,a,b", HS_EXACT, "0001"},
		{"A", HS_ANY_STRICT, "0000"},
		{"", HS_ALL, "1111"},
		{"", HS_ANY_STRICT, "1111"},
		{"", HS_ALL_STRICT, "1111"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		struct hs_scope s = hs_scope_all();

		s.tags = tags_of(f->pool, cases[i].tags);
		s.match = cases[i].match;
		for (size_t r = 0; r < HS_COUNT(rows); r++) {
			struct hs_strs t = tags_of(f->pool, rows[r]);

			if (hs_scope_match_tags(&s, &t) != (cases[i].kept[r] == '1'))
				fail_msg("case %zu, row [%s]", i, rows[r]);
		}
	}
}

/* retain-recall 4.3, reflect A5: leaves without tags. */
static void test_reflect_case_empty_leaves(void **state)
{
	static const struct {
		const char *json, *kept;
	} cases[] = {
		{"[{\"tags\":[],\"match\":\"any\"}]", "10"},
		{"[{\"tags\":[],\"match\":\"all\"}]", "11"},
		{"[{\"tags\":[]}]", "00"},
		{"[{\"tags\":[],\"match\":\"all_strict\"}]", "01"},
		{"[{\"tags\":[],\"match\":\"exact\"}]", "10"},
		{"[{\"not\":{\"tags\":[\"a\"]}}]", "10"},
		{"[]", "11"},
	};
	struct fixture *f = *state;
	struct hs_strs none = {0}, a = tags_of(f->pool, "a");

	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		struct hs_scope s = groups_scope(f, cases[i].json);

		assert_int_equal(hs_scope_match_tags(&s, &none), cases[i].kept[0] == '1');
		assert_int_equal(hs_scope_match_tags(&s, &a), cases[i].kept[1] == '1');
	}
}

static void staleness_never_widens(void **state)
{
	struct fixture *f = *state;
	struct hs_scope s = groups_scope(f, "[{\"and\":[{\"tags\":[\"a\"],\"match\":\"any\"},"
					    "{\"not\":{\"tags\":[\"b\"],\"match\":\"all\"}}]}]");
	struct hs_scope stale = hs_scope_for_staleness(f->pool, &s);
	struct hs_strs none = {0};

	assert_int_equal(stale.groups[0]->kids[0]->match, HS_ANY_STRICT);
	assert_int_equal(stale.groups[0]->kids[1]->kids[0]->match, HS_ALL);
	assert_int_equal(s.groups[0]->kids[0]->match, HS_ANY);
	assert_false(hs_scope_match_tags(&stale, &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_models_case_68_scope_to_sql_and_its_twin_agree,
			fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_fault_32_tag_matching_table, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_reflect_case_empty_leaves, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			staleness_never_widens, fixture_setup, fixture_teardown),
	};

	if (!getenv("HS_TEST_DB_SOCKET") || !getenv("HS_TEST_DB_NAME"))
		return 77;
	return cmocka_run_group_tests_name("store/scope", tests, NULL, NULL);
}
