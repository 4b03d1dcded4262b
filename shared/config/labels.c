#include "config/labels.h"

#include <string.h>

#include "base/str.h"
#include "config/value.h"
#include "json/json.h"

static enum hs_rc bad(struct hs_err *err, const char *what, const json_t *got)
{
	return hs_fail(
		err, HS_E_BAD_REQUEST, "entity_labels: %s, got %s", what, hs_json_type_word(got));
}

/* Absent and null are fine for the optional members. */
static bool missing(const json_t *v)
{
	return !v || json_is_null(v);
}

static enum hs_rc check_values(const json_t *values, struct hs_err *err)
{
	json_t *v;
	size_t i;

	if (missing(values))
		return HS_OK;
	if (!json_is_array(values))
		return bad(err, "values must be a list of {value, description}", values);
	json_array_foreach((json_t *)values, i, v) {
		if (!json_is_object(v) || !hs_json_str(v, "value"))
			return bad(err, "values must be a list of {value, description}", v);
		if (!missing(json_object_get(v, "description")) && !hs_json_str(v, "description"))
			return bad(err, "a value's description must be a string",
				json_object_get(v, "description"));
	}
	return HS_OK;
}

static enum hs_rc check_group(const json_t *group, bool keyed, struct hs_err *err);

static enum hs_rc check_fields(const json_t *fields, struct hs_err *err)
{
	const char *name;
	json_t *v;

	if (missing(fields))
		return HS_OK;
	if (!json_is_object(fields))
		return bad(err, "fields must be an object", fields);
	json_object_foreach((json_t *)fields, name, v) {
		if (hs_str_blank(name))
			return hs_fail(err, HS_E_BAD_REQUEST,
				"entity_labels: a field's name must not be blank");
		HS_TRY(check_group(v, false, err));
	}
	return HS_OK;
}

static enum hs_rc check_flags(const json_t *group, struct hs_err *err)
{
	static const char *const flags[] = {"optional", "tag", "free_values", "multi_value"};

	for (size_t i = 0; i < HS_COUNT(flags); i++) {
		const json_t *v = json_object_get(group, flags[i]);

		if (!missing(v) && !json_is_boolean(v))
			return hs_fail(err, HS_E_BAD_REQUEST,
				"entity_labels: %s must be a boolean, got %s", flags[i],
				hs_json_type_word(v));
	}
	return HS_OK;
}

static enum hs_rc check_group(const json_t *group, bool keyed, struct hs_err *err)
{
	const json_t *type = json_object_get(group, "type");
	const json_t *description = json_object_get(group, "description");

	if (!json_is_object(group))
		return bad(err, keyed ? "a group must be an object" : "a field must be an object",
			group);
	if (keyed && hs_str_blank(hs_json_str(group, "key")))
		return bad(err, "a group's key must be a string that is not blank",
			json_object_get(group, "key"));
	if (!missing(type) &&
		!(json_is_string(type) && hs_choice_has("value|multi-values|text|multi-text|map",
						  json_string_value(type))))
		return hs_fail(err, HS_E_BAD_REQUEST,
			"entity_labels: type must be value, multi-values, text, multi-text or map");
	if (!missing(description) && !json_is_string(description))
		return bad(err, "description must be a string", description);
	HS_TRY(check_flags(group, err));
	HS_TRY(check_values(json_object_get(group, "values"), err));
	return check_fields(json_object_get(group, "fields"), err);
}

enum hs_rc hs_labels_check(const json_t *labels, struct hs_err *err)
{
	json_t *group;
	size_t i;

	if (json_is_object(labels)) {
		labels = json_object_get(labels, "attributes");
		if (!json_is_array(labels))
			return bad(err, "attributes must be a list of groups", labels);
	}
	json_array_foreach((json_t *)labels, i, group)
		HS_TRY(check_group(group, true, err));
	return HS_OK;
}
