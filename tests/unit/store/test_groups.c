/* tag_groups of a request: what is taken, and how what is wrong is named (reflect A5). */
#include "test.h"

#include <string.h>

#include "base/limits.h"
#include "json/json.h"
#include "store/scope.h"

struct body {
	struct hs_seen seen;
	struct hs_groups *tag_groups;
};
static const struct hs_field fields[] = {
	HS_CUSTOM(struct body, tag_groups, hs_groups_read, .flags = HS_NULLABLE),
};
static const struct hs_shape shape = HS_SHAPE(body, fields);

static enum hs_rc read_body(
	struct hs_pool *pool, const char *groups, struct body **ret, struct hs_err *err)
{
	json_t *v;
	void *obj = NULL;
	enum hs_rc rc;

	hs_err_clear(err);
	assert_int_equal(
		hs_json_load(pool, hs_pool_printf(pool, "{\"tag_groups\":%s}", groups), &v, err),
		HS_OK);
	rc = hs_check_object(pool, &shape, "body", v, &obj, NULL, err);
	*ret = obj;
	return rc;
}

/* n times `open` around a leaf. */
static const char *nested(struct hs_pool *pool, const char *open, const char *close, int n)
{
	char *s = hs_pool_strdup(pool, "{\"tags\":[\"a\"]}");

	for (int i = 0; i < n; i++)
		s = hs_pool_printf(pool, "%s%s%s", open, s, close);
	return hs_pool_printf(pool, "[%s]", s);
}

static const char *many(struct hs_pool *pool, const char *one, int n)
{
	struct hs_strs list = {0};

	for (int i = 0; i < n; i++)
		hs_strs_add(pool, &list, one);
	return hs_strs_join(pool, &list, ",");
}

static void good_groups_are_taken(void **state)
{
	static const struct {
		const char *json;
		size_t n;
	} cases[] = {
		{"[]", 0},
		{"[{\"tags\":[]}]", 1},
		{"[{\"tags\":[\"a\"],\"more\":1}]", 1},
		{"[{\"tags\":[\"a\"],\"match\":\"exact\",\"resolve\":\"exact\"},{\"not\":{\"tags\":[\"b\"]}}]",
			2},
		/* forms are tried in order: the first that validates wins */
		{"[{\"tags\":[\"a\"],\"and\":[]}]", 1},
		{"[{\"tags\":7,\"or\":[{\"tags\":[\"a\"]}]}]", 1},
	};
	struct hs_pool *pool = hs_pool_new();
	struct body *b;
	struct hs_err err;

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		assert_int_equal(read_body(pool, cases[i].json, &b, &err), HS_OK);
		assert_non_null(b->tag_groups);
		assert_int_equal(b->tag_groups->n, cases[i].n);
	}
	assert_int_equal(read_body(pool, "null", &b, &err), HS_OK);
	assert_null(b->tag_groups);
	assert_int_equal(
		read_body(pool, "[{\"tags\":7,\"or\":[{\"tags\":[\"a\"]}]}]", &b, &err), HS_OK);
	assert_int_equal(b->tag_groups->v[0]->kind, HS_GROUP_OR);
	assert_int_equal(b->tag_groups->v[0]->kids[0]->match, HS_ANY_STRICT);
	hs_pool_free(&pool);
}

static void bad_groups_are_named(void **state)
{
	static const struct {
		const char *json, *type, *loc;
	} cases[] = {
		{"7", "list_type", "[\"body\",\"tag_groups\"]"},
		{"{}", "list_type", "[\"body\",\"tag_groups\"]"},
		{"[7]", "model_attributes_type", "[\"body\",\"tag_groups\",0,\"TagGroupLeaf\"]"},
		{"[{}]", "missing", "[\"body\",\"tag_groups\",0,\"TagGroupLeaf\",\"tags\"]"},
		{"[{\"tags\":\"a\"}]", "list_type",
			"[\"body\",\"tag_groups\",0,\"TagGroupLeaf\",\"tags\"]"},
		{"[{\"tags\":[1]}]", "string_type",
			"[\"body\",\"tag_groups\",0,\"TagGroupLeaf\",\"tags\",0]"},
		{"[{\"tags\":[],\"match\":\"some\"}]", "literal_error",
			"[\"body\",\"tag_groups\",0,\"TagGroupLeaf\",\"match\"]"},
		{"[{\"tags\":[],\"resolve\":null}]", "literal_error",
			"[\"body\",\"tag_groups\",0,\"TagGroupLeaf\",\"resolve\"]"},
		{"[{\"and\":[]}]", "value_error",
			"[\"body\",\"tag_groups\",0,\"TagGroupAnd\",\"and\"]"},
		{"[{\"or\":[]}]", "value_error",
			"[\"body\",\"tag_groups\",0,\"TagGroupOr\",\"or\"]"},
		{"[{\"and\":3}]", "list_type",
			"[\"body\",\"tag_groups\",0,\"TagGroupAnd\",\"and\"]"},
		{"[{\"not\":[]}]", "model_attributes_type",
			"[\"body\",\"tag_groups\",0,\"TagGroupNot\",\"not\",\"TagGroupLeaf\"]"},
		{"[{\"tags\":[]},{\"or\":[{\"tags\":[]},{\"tags\":[null]}]}]", "string_type",
			"[\"body\",\"tag_groups\",1,\"TagGroupOr\",\"or\",1,\"TagGroupLeaf\",\"tags\",0]"},
	};
	struct hs_pool *pool = hs_pool_new();
	struct body *b;
	struct hs_err err;

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		assert_int_equal(read_body(pool, cases[i].json, &b, &err), HS_E_INVALID);
		if (err.n_fields != 1 || strcmp(err.fields->type, cases[i].type) != 0 ||
			strcmp(err.fields->loc, cases[i].loc) != 0)
			fail_msg("%s: %zu faults, %s at %s", cases[i].json, err.n_fields,
				err.fields->type, err.fields->loc);
	}
	/* each bad group of the list has its entry */
	assert_int_equal(read_body(pool, "[{},{\"tags\":[\"a\"]},8]", &b, &err), HS_E_INVALID);
	assert_int_equal(err.n_fields, 2);
	hs_pool_free(&pool);
}

static void assert_limit(struct hs_pool *pool, const char *json)
{
	struct body *b;
	struct hs_err err;

	assert_int_equal(read_body(pool, json, &b, &err), HS_E_INVALID);
	assert_int_equal(err.n_fields, 1);
	assert_string_equal(err.fields->type, "value_error");
	assert_string_equal(err.fields->loc, "[\"body\",\"tag_groups\"]");
}

static void test_reflect_case_limits_of_groups(void **state)
{
	struct hs_pool *pool = hs_pool_new();
	struct body *b;
	struct hs_err err;

	(void)state;
	assert_int_equal(
		read_body(pool, nested(pool, "{\"not\":", "}", HS_GROUP_DEPTH), &b, &err), HS_OK);
	assert_limit(pool, nested(pool, "{\"not\":", "}", HS_GROUP_DEPTH + 1));
	assert_int_equal(
		read_body(pool, nested(pool, "{\"and\":[", "]}", HS_GROUP_DEPTH), &b, &err), HS_OK);
	assert_limit(pool, nested(pool, "{\"and\":[", "]}", HS_GROUP_DEPTH + 1));
	assert_int_equal(read_body(pool,
				 hs_pool_printf(pool, "[%s]",
					 many(pool, "{\"tags\":[\"a\"]}", HS_GROUP_NODES)),
				 &b, &err),
		HS_OK);
	assert_limit(pool,
		hs_pool_printf(pool, "[%s]", many(pool, "{\"tags\":[\"a\"]}", HS_GROUP_NODES + 1)));
	assert_int_equal(read_body(pool,
				 hs_pool_printf(pool, "[{\"tags\":[%s]}]",
					 many(pool, "\"a\"", HS_GROUP_TAGS)),
				 &b, &err),
		HS_OK);
	assert_limit(pool,
		hs_pool_printf(pool, "[{\"tags\":[%s]}]", many(pool, "\"a\"", HS_GROUP_TAGS + 1)));
	assert_limit(pool, hs_pool_printf(pool, "[{\"tags\":[%s]},{\"tags\":[%s]}]",
				   many(pool, "\"a\"", 600), many(pool, "\"a\"", 600)));
	hs_pool_free(&pool);
}

static void fuzzy_leaves_are_found(void **state)
{
	static const struct {
		const char *json;
		bool fuzzy;
	} cases[] = {
		{"null", false},
		{"[{\"tags\":[\"a\"]}]", false},
		{"[{\"tags\":[\"a\"],\"resolve\":\"fuzzy\"}]", true},
		{"[{\"tags\":[\"b\"]},{\"not\":{\"or\":[{\"tags\":[\"a\"],\"resolve\":\"fuzzy\"}]}}]",
			true},
		/* without tags there is nothing to resolve */
		{"[{\"tags\":[],\"resolve\":\"fuzzy\"}]", false},
	};
	struct hs_pool *pool = hs_pool_new();
	struct body *b;
	struct hs_err err;

	(void)state;
	for (size_t i = 0; i < HS_COUNT(cases); i++) {
		assert_int_equal(read_body(pool, cases[i].json, &b, &err), HS_OK);
		assert_int_equal(hs_groups_fuzzy(b->tag_groups), cases[i].fuzzy);
	}
	hs_pool_free(&pool);
}

static void groups_print_as_they_read(void **state)
{
	static const char json[] =
		"[{\"tags\":[\"a\",\"b\"],\"match\":\"any_strict\",\"resolve\":\"exact\"},"
		"{\"not\":{\"or\":[{\"tags\":[],\"match\":\"exact\",\"resolve\":\"exact\"},"
		"{\"and\":[{\"tags\":[\"c\"],\"match\":\"all\",\"resolve\":\"fuzzy\"}]}]}}]";
	struct hs_pool *pool = hs_pool_new();
	struct hs_groups *g;
	struct hs_err err;
	json_t *v;

	(void)state;
	hs_err_clear(&err);
	assert_int_equal(hs_json_load(pool, json, &v, &err), HS_OK);
	assert_int_equal(hs_groups_parse(pool, v, &g, &err), HS_OK);
	assert_string_equal(hs_json_text(pool, hs_json_keep(pool, hs_groups_json(g))), json);
	assert_int_equal(hs_json_load(pool, "[{\"or\":[]}]", &v, &err), HS_OK);
	assert_int_equal(hs_groups_parse(pool, v, &g, &err), HS_E_PARSE);
	hs_pool_free(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_groups_are_taken),
		cmocka_unit_test(bad_groups_are_named),
		cmocka_unit_test(test_reflect_case_limits_of_groups),
		cmocka_unit_test(fuzzy_leaves_are_found),
		cmocka_unit_test(groups_print_as_they_read),
	};

	return cmocka_run_group_tests_name("store/groups", tests, NULL, NULL);
}
