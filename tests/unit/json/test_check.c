#include "test.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/pool.h"
#include "json/check.h"
#include "json/emit.h"
#include "json/json.h"

static const char *const modes[] = {"any", "all", "exact", NULL};
static const char *const types[] = {"world", "experience", NULL};

struct inner {
	struct hs_seen seen;
	const char *key;
	int64_t weight;
};
static const struct hs_field inner_fields[] = {
	HS_STR(struct inner, key, .flags = HS_REQUIRED),
	HS_INT(struct inner, weight, .def = "1"),
};
static const struct hs_shape inner_shape = HS_SHAPE(inner, inner_fields, .strict_keys = true);

struct outer {
	struct hs_seen seen;
	const char *name, *note;
	int64_t limit, count;
	double ratio;
	bool on;
	int mode;
	struct hs_strs tags, fact_types, words;
	struct inner *part;
	struct hs_list parts;
	json_t *extra, *any;
	int64_t since_us;
	const char *secret;
};
static const struct hs_field outer_fields[] = {
	HS_STR(struct outer, name, .flags = HS_REQUIRED | HS_NOT_BLANK, .has_max = true, .max = 5),
	HS_STR(struct outer, note, .flags = HS_NULLABLE, .doc = "free text"),
	HS_INT(struct outer, limit, HS_RANGE(0, 1000), .flags = HS_CLAMP_MAX, .def = "100"),
	HS_INT(struct outer, count, HS_RANGE(1, 10), .flags = HS_NULLABLE | HS_NO_BOOL),
	HS_NUM(struct outer, ratio, HS_RANGE(0, 1), .def = "0.5"),
	HS_BOOL(struct outer, on, .def = "true"),
	HS_ENUM(struct outer, mode, modes, .flags = HS_ENUM_ERROR | HS_NULLABLE, .def = "any"),
	HS_STRS(struct outer, tags, .flags = HS_TAG_LIST | HS_REPEATED),
	HS_ENUMS(struct outer, fact_types, types, .flags = HS_NULLABLE | HS_NOT_EMPTY),
	HS_STRS(struct outer, words, .flags = HS_STR_LIST_LAX | HS_NULLABLE, .def = "[\"w\"]"),
	HS_OBJ(struct outer, part, &inner_shape, .flags = HS_NULLABLE),
	HS_OBJS(struct outer, parts, &inner_shape, .has_max = true, .max = 3),
	HS_DICT(struct outer, extra, .flags = HS_NULLABLE),
	HS_JSON(struct outer, any),
	{.name = "since", .type = HS_F_TIME, .offset = HS_AT(struct outer, since_us, int64_t), .flags = HS_NULLABLE},
	HS_STR(struct outer, secret, .flags = HS_SECRET | HS_NULLABLE, .has_max = true, .max = 3),
};
static const struct hs_shape outer_shape = HS_SHAPE(outer, outer_fields);

static int set_up(void **state)
{
	*state = hs_pool_new();
	return 0;
}

static int tear_down(void **state)
{
	struct hs_pool *pool = *state;

	hs_pool_free(&pool);
	return 0;
}

static struct outer *read_ok(struct hs_pool *pool, const char *text)
{
	struct hs_err err = {0};
	json_t *v = NULL;
	void *obj = NULL;

	assert_int_equal(hs_json_parse(pool, text, strlen(text), &v, NULL, NULL), HS_OK);
	if (hs_check_object(pool, &outer_shape, "body", v, &obj, NULL, &err) != HS_OK)
		fail_msg("%s: %s", text, err.msg);
	return obj;
}

/* "type loc input ctx|…" of every fault. */
static const char *faults_of(struct hs_pool *pool, const struct hs_err *err)
{
	struct hs_buf *b = hs_buf_new(pool, 1 << 20);

	for (const struct hs_field_error *f = err->fields; f; f = f->next)
		hs_buf_printf(b, "%s %s %s%s%s|", f->type, f->loc, f->input, f->ctx ? " " : "", f->ctx ? f->ctx : "");
	return b->data;
}

static const char *faults(struct hs_pool *pool, const char *text)
{
	struct hs_err err = {0};
	json_t *v = NULL;
	void *obj;

	assert_int_equal(hs_json_parse(pool, text, strlen(text), &v, NULL, NULL), HS_OK);
	assert_int_equal(hs_check_object(pool, &outer_shape, "body", v, &obj, NULL, &err), HS_E_INVALID);
	assert_int_equal(err.rc, HS_E_INVALID);
	return faults_of(pool, &err);
}

static void absent_fields_get_their_defaults(void **state)
{
	struct outer *o = read_ok(*state, "{\"name\":\"n\",\"note\":null,\"mode\":null,\"any\":null}");

	assert_null(o->note);
	assert_int_equal(o->limit, 100);
	assert_true(o->ratio == 0.5 && o->on);
	assert_int_equal(o->mode, 0);
	assert_int_equal(o->words.n, 1);
	assert_string_equal(o->words.v[0], "w");
	assert_null(o->part);
	assert_null(o->extra);
	assert_null(o->any);
	assert_true(o->since_us == HS_TIME_NONE);
	assert_true(hs_given(&outer_shape, o, "name"));
	assert_false(hs_given(&outer_shape, o, "note"));
	assert_true(hs_was_null(&outer_shape, o, "note"));
	assert_false(hs_was_null(&outer_shape, o, "count"));
	assert_false(hs_given(&outer_shape, o, "count"));
}

static void coercion_is_lax(void **state)
{
	static const struct {
		const char *text;
		int64_t limit;
	} ints[] = {
		{"3", 3}, {"3.0", 3}, {"\"3\"", 3}, {"\" 3 \"", 3}, {"\"3.0\"", 3}, {"true", 1}, {"false", 0}, {"5000", 1000},
		{"18446744073709551616", 1000}, {"\"99999999999999999999\"", 1000},
	};
	static const struct {
		const char *text;
		bool on;
	} bools[] = {
		{"true", true}, {"1", true}, {"1.0", true}, {"\"Yes\"", true}, {"\"on\"", true}, {"\"T\"", true},
		{"\"y\"", true}, {"false", false}, {"0", false}, {"\"off\"", false}, {"\"NO\"", false},
	};

	for (size_t i = 0; i < HS_COUNT(ints); i++) {
		struct outer *o = read_ok(*state,
			hs_pool_printf(*state, "{\"name\":\"n\",\"limit\":%s}", ints[i].text));

		if (o->limit != ints[i].limit)
			fail_msg("%s gave %lld", ints[i].text, (long long)o->limit);
	}
	for (size_t i = 0; i < HS_COUNT(bools); i++)
		assert_true(read_ok(*state, hs_pool_printf(*state, "{\"name\":\"n\",\"on\":%s}", bools[i].text))->on ==
			bools[i].on);
	assert_true(read_ok(*state, "{\"name\":\"n\",\"ratio\":\"0.25\"}")->ratio == 0.25);
	assert_true(read_ok(*state, "{\"name\":\"n\",\"ratio\":true}")->ratio == 1.0);
	assert_int_equal(read_ok(*state, "{\"name\":\"n\",\"words\":\"[\\\"a\\\",\\\"b\\\"]\"}")->words.n, 2);
	assert_int_equal(read_ok(*state, "{\"name\":\"n\",\"words\":\"a,b\"}")->words.n, 1);
}

static void each_problem_has_its_type(void **state)
{
	static const char *const rows[][2] = {
		{"{}", "missing [\"body\",\"name\"] {}|"},
		{"{\"name\":1}", "string_type [\"body\",\"name\"] 1|"},
		{"{\"name\":null}", "string_type [\"body\",\"name\"] null|"},
		{"{\"name\":\" \\u00a0\"}", "value_error [\"body\",\"name\"] \" \xC2\xA0\" {\"error\":{}}|"},
		{"{\"name\":\"\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4x\"}",
			"string_too_long [\"body\",\"name\"] \"\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4x\" {\"max_length\":5}|"},
		{"{\"name\":\"n\",\"limit\":-1}", "greater_than_equal [\"body\",\"limit\"] -1 {\"ge\":0}|"},
		{"{\"name\":\"n\",\"count\":11}", "less_than_equal [\"body\",\"count\"] 11 {\"le\":10}|"},
		{"{\"name\":\"n\",\"count\":1.5}", "int_from_float [\"body\",\"count\"] 1.5|"},
		{"{\"name\":\"n\",\"count\":\"x\"}", "int_parsing [\"body\",\"count\"] \"x\"|"},
		{"{\"name\":\"n\",\"count\":true}", "int_type [\"body\",\"count\"] true|"},
		{"{\"name\":\"n\",\"count\":[]}", "int_type [\"body\",\"count\"] []|"},
		{"{\"name\":\"n\",\"limit\":null}", "int_type [\"body\",\"limit\"] null|"},
		{"{\"name\":\"n\",\"ratio\":\"x\"}", "float_parsing [\"body\",\"ratio\"] \"x\"|"},
		{"{\"name\":\"n\",\"ratio\":{}}", "float_type [\"body\",\"ratio\"] {}|"},
		{"{\"name\":\"n\",\"ratio\":1.5}", "less_than_equal [\"body\",\"ratio\"] 1.5 {\"le\":1}|"},
		{"{\"name\":\"n\",\"on\":2}", "bool_parsing [\"body\",\"on\"] 2|"},
		{"{\"name\":\"n\",\"on\":\"maybe\"}", "bool_parsing [\"body\",\"on\"] \"maybe\"|"},
		{"{\"name\":\"n\",\"on\":null}", "bool_type [\"body\",\"on\"] null|"},
		{"{\"name\":\"n\",\"mode\":\"x\"}",
			"enum [\"body\",\"mode\"] \"x\" {\"expected\":\"'any', 'all' or 'exact'\"}|"},
		{"{\"name\":\"n\",\"tags\":\"x\"}", "list_type [\"body\",\"tags\"] \"x\"|"},
		{"{\"name\":\"n\",\"tags\":null}", "list_type [\"body\",\"tags\"] null|"},
		{"{\"name\":\"n\",\"tags\":[\"a\",1,\"\"]}",
			"string_type [\"body\",\"tags\",1] 1|string_too_short [\"body\",\"tags\",2] \"\" {\"min_length\":1}|"},
		{"{\"name\":\"n\",\"fact_types\":[]}", "too_short [\"body\",\"fact_types\"] [] "
			"{\"field_type\":\"List\",\"min_length\":1,\"actual_length\":0}|"},
		{"{\"name\":\"n\",\"fact_types\":[\"world\",\"opinion\"]}", "literal_error [\"body\",\"fact_types\",1] "
			"\"opinion\" {\"expected\":\"'world' or 'experience'\"}|"},
		{"{\"name\":\"n\",\"part\":[]}", "model_attributes_type [\"body\",\"part\"] []|"},
		{"{\"name\":\"n\",\"part\":{\"key\":\"k\",\"x\":1}}", "extra_forbidden [\"body\",\"part\",\"x\"] 1|"},
		{"{\"name\":\"n\",\"parts\":[{\"key\":\"k\"},{\"weight\":\"x\"}]}",
			"missing [\"body\",\"parts\",1,\"key\"] {\"weight\":\"x\"}|int_parsing [\"body\",\"parts\",1,\"weight\"] "
			"\"x\"|"},
		{"{\"name\":\"n\",\"extra\":[]}", "dict_type [\"body\",\"extra\"] []|"},
		{"{\"name\":\"n\",\"since\":\"yesterday\"}", "datetime_from_date_parsing [\"body\",\"since\"] "
			"\"yesterday\" {\"error\":\"not an ISO 8601 date or date-time\"}|"},
		{"{\"name\":\"n\",\"secret\":\"hunter2\"}", "string_too_long [\"body\",\"secret\"] \"***\" "
			"{\"max_length\":3}|"},
		{"[1]", "model_attributes_type [\"body\"] [1]|"},
		{"null", "model_attributes_type [\"body\"] null|"},
	};

	for (size_t i = 0; i < HS_COUNT(rows); i++)
		assert_string_equal(faults(*state, rows[i][0]), rows[i][1]);
}

static void no_body_is_a_missing_one(void **state)
{
	struct hs_err err = {0};
	void *obj;

	assert_int_equal(hs_check_object(*state, &outer_shape, "body", NULL, &obj, NULL, &err), HS_E_INVALID);
	assert_string_equal(faults_of(*state, &err), "missing [\"body\"] null|");
}

static void all_problems_are_listed(void **state)
{
	assert_string_equal(faults(*state, "{\"limit\":\"x\",\"on\":3,\"tags\":{}}"),
		"missing [\"body\",\"name\"] {\"limit\":\"x\",\"on\":3,\"tags\":{}}|int_parsing [\"body\",\"limit\"] \"x\"|"
		"bool_parsing [\"body\",\"on\"] 3|list_type [\"body\",\"tags\"] {}|");
}

static void banks_case_55_the_list_is_capped_and_long_inputs_are_cut(void **state)
{
	struct hs_pool *pool = *state;
	struct hs_buf *b = hs_buf_new(pool, 1 << 20);
	struct hs_err err = {0};
	json_t *v = NULL, *input = NULL;
	void *obj;

	hs_buf_str(b, "{\"name\":\"");
	for (int i = 0; i < 3000; i++)
		hs_buf_str(b, "\xC3\xA4");
	hs_buf_str(b, "\",\"tags\":[1");
	for (int i = 0; i < 199; i++)
		hs_buf_str(b, ",1");
	hs_buf_str(b, "]}");
	assert_int_equal(hs_json_parse(pool, b->data, b->len, &v, NULL, NULL), HS_OK);
	assert_int_equal(hs_check_object(pool, &outer_shape, "body", v, &obj, NULL, &err), HS_E_INVALID);
	assert_int_equal(err.n_fields, HS_FIELD_ERRORS);
	assert_int_equal(hs_json_load(pool, err.fields->input, &input, NULL), HS_OK);
	assert_int_equal(json_string_length(input), HS_FIELD_INPUT_BYTES);
}

static void tag_limits(void **state)
{
	struct hs_pool *pool = *state;
	struct hs_buf *b = hs_buf_new(pool, 1 << 20);

	hs_buf_str(b, "{\"name\":\"n\",\"tags\":[\"t\"");
	for (int i = 0; i < HS_TAGS_PER_ITEM; i++)
		hs_buf_str(b, ",\"t\"");
	hs_buf_str(b, "]}");
	assert_non_null(strstr(faults(pool, b->data), "too_long [\"body\",\"tags\"]"));
	hs_buf_reset(b);
	hs_buf_str(b, "{\"name\":\"n\",\"tags\":[\"");
	for (int i = 0; i < HS_TAG_CHARS; i++)
		hs_buf_str(b, "\xC3\xA4");
	read_ok(pool, hs_pool_printf(pool, "%s\"]}", b->data));
	assert_non_null(strstr(faults(pool, hs_pool_printf(pool, "%sx\"]}", b->data)),
		"string_too_long [\"body\",\"tags\",0]"));
}

static void unknown_keys_are_named_not_refused(void **state)
{
	struct hs_pool *pool = *state;
	struct hs_strs ignored = {0, NULL};
	json_t *v;
	void *obj;

	assert_int_equal(hs_json_load(pool, "{\"zz\":1,\"name\":\"n\",\"yy\":{\"a\":1},\"part\":{\"key\":\"k\"}}", &v, NULL),
		HS_OK);
	assert_int_equal(hs_check_object(pool, &outer_shape, "body", v, &obj, &ignored, NULL), HS_OK);
	assert_int_equal(ignored.n, 2);
	assert_string_equal(ignored.v[0], "zz");
	assert_string_equal(ignored.v[1], "yy");
}

static void query_parameters_follow_the_same_rules(void **state)
{
	struct hs_pool *pool = *state;
	struct hs_pair pairs[] = {
		{"name", "a"}, {"name", "b"}, {"tags", "x"}, {"tags", "y\x01z"}, {"limit", "18446744073709551616"},
		{"on", "no"}, {"foo", "1"}, {"bar\xFF", "1"},
	};
	struct hs_strs ignored = {0, NULL};
	struct hs_err err = {0};
	struct outer *o;
	void *obj;

	assert_int_equal(hs_check_query(pool, &outer_shape, pairs, HS_COUNT(pairs), &obj, &ignored, &err), HS_OK);
	o = obj;
	assert_string_equal(o->name, "b");
	assert_int_equal(o->tags.n, 2);
	assert_string_equal(o->tags.v[1], "yz");
	assert_int_equal(o->limit, 1000);
	assert_false(o->on);
	assert_int_equal(ignored.n, 2);
	assert_string_equal(ignored.v[1], "bar\xEF\xBF\xBD");

	struct hs_pair bad[] = {{"limit", "-1"}, {"count", ""}, {"tags", ""}};

	assert_int_equal(hs_check_query(pool, &outer_shape, bad, HS_COUNT(bad), &obj, NULL, &err), HS_E_INVALID);
	assert_string_equal(faults_of(pool, &err),
		"missing [\"query\",\"name\"] null|greater_than_equal [\"query\",\"limit\"] \"-1\" {\"ge\":0}|"
		"int_parsing [\"query\",\"count\"] \"\"|string_too_short [\"query\",\"tags\",0] \"\" {\"min_length\":1}|");
}

static void integers_beyond_64_bits_are_a_fault(void **state)
{
	static const struct hs_field fields[] = {HS_INT(struct inner, weight)};
	static const struct hs_shape shape = HS_SHAPE(inner, fields);
	static const char *const rows[] = {"{\"weight\":18446744073709551616}", "{\"weight\":\"-99999999999999999999\"}",
		"{\"weight\":1e300}"};

	for (size_t i = 0; i < HS_COUNT(rows); i++) {
		struct hs_err err = {0};
		json_t *v = NULL;
		void *obj;

		assert_int_equal(hs_json_parse(*state, rows[i], strlen(rows[i]), &v, NULL, NULL), HS_OK);
		assert_int_equal(hs_check_object(*state, &shape, "body", v, &obj, NULL, &err), HS_E_INVALID);
		assert_string_equal(err.fields->type, "int_parsing_size");
	}
}

static void what_was_read_is_written_again(void **state)
{
	struct hs_pool *pool = *state;
	const char *text = "{\"name\":\"n\",\"note\":null,\"limit\":7,\"count\":null,\"ratio\":1.0,\"on\":false,"
		"\"mode\":\"all\",\"tags\":[\"a\"],\"fact_types\":null,\"words\":[],\"part\":{\"key\":\"k\",\"weight\":1},"
		"\"parts\":[{\"key\":\"l\",\"weight\":2}],\"extra\":{\"x\":[1]},\"any\":null,\"since\":"
		"\"2024-01-15T10:30:00+00:00\",\"secret\":null}";
	struct hs_buf *b = hs_buf_new(pool, 10000);
	struct hs_out o = hs_out_to(b);

	hs_emit(&o, NULL, &outer_shape, read_ok(pool, text));
	assert_string_equal(b->data, text);
}

static void the_schema_says_types_limits_and_defaults(void **state)
{
	json_t *s = hs_json_keep(*state, hs_emit_schema(&outer_shape)), *p = hs_json_obj(s, "properties");

	assert_string_equal(hs_json_text(*state, json_object_get(s, "required")), "[\"name\"]");
	assert_string_equal(hs_json_text(*state, json_object_get(p, "limit")),
		"{\"type\":\"integer\",\"minimum\":0,\"default\":100}");
	assert_string_equal(hs_json_text(*state, json_object_get(p, "note")),
		"{\"type\":[\"string\",\"null\"],\"default\":null,\"description\":\"free text\"}");
	assert_string_equal(hs_json_text(*state, json_object_get(p, "fact_types")),
		"{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"string\",\"enum\":[\"world\",\"experience\"]},"
		"\"minItems\":1,\"default\":null}");
	assert_true(json_is_false(json_object_get(hs_json_obj(hs_json_obj(p, "parts"), "items"),
		"additionalProperties")));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(absent_fields_get_their_defaults),
		CASE(coercion_is_lax),
		CASE(each_problem_has_its_type),
		CASE(no_body_is_a_missing_one),
		CASE(all_problems_are_listed),
		CASE(banks_case_55_the_list_is_capped_and_long_inputs_are_cut),
		CASE(tag_limits),
		CASE(unknown_keys_are_named_not_refused),
		CASE(query_parameters_follow_the_same_rules),
		CASE(integers_beyond_64_bits_are_a_fault),
		CASE(what_was_read_is_written_again),
		CASE(the_schema_says_types_limits_and_defaults),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
