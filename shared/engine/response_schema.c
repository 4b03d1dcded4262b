#include "engine/response_schema.h"

#include <string.h>

static const char *const property_types[] = {
	"string", "number", "integer", "boolean", "array", "object", NULL};

static bool known_type(const char *type)
{
	for (size_t i = 0; type && property_types[i]; i++)
		if (strcmp(type, property_types[i]) == 0)
			return true;
	return false;
}

/* false after the fault was recorded. */
static bool properties_fine(struct hs_check *ck, json_t *schema, json_t *properties)
{
	const char *name;
	json_t *property;

	if (!json_is_object(properties) || json_object_size(properties) == 0) {
		hs_check_value_error(ck, schema,
			"response_schema needs a 'properties' object with at least one member");
		return false;
	}
	json_object_foreach(properties, name, property) {
		json_t *type = json_object_get(property, "type");

		if (!json_is_object(property)) {
			hs_check_value_error(ck, schema,
				"property '%s' of response_schema must be an object", name);
			return false;
		}
		if (type && !known_type(json_string_value(type))) {
			hs_check_value_error(ck, schema,
				"the type of property '%s' must be string, number, integer, boolean, array or object",
				name);
			return false;
		}
	}
	return true;
}

static void check_required(struct hs_check *ck, json_t *schema, json_t *properties)
{
	json_t *required = json_object_get(schema, "required"), *name;
	size_t i;

	if (required && !json_is_array(required)) {
		hs_check_value_error(ck, schema,
			"'required' of response_schema must be a list of property names");
		return;
	}
	json_array_foreach(required, i, name) {
		if (!json_is_string(name)) {
			hs_check_value_error(ck, schema,
				"'required' of response_schema must be a list of property names");
			return;
		}
		if (!json_object_get(properties, json_string_value(name))) {
			hs_check_value_error(ck, schema,
				"required property '%s' is not among the properties",
				json_string_value(name));
			return;
		}
	}
}

void hs_response_schema_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	json_t *type = json_object_get(v, "type"), *properties = json_object_get(v, "properties");

	(void)f;
	if (json_is_null(v))
		return;
	if (!json_is_object(v)) {
		hs_check_fault(ck, "dict_type", "Input should be a valid dictionary", v, NULL);
		return;
	}
	if (type && !hs_str_eq(json_string_value(type), "object")) {
		hs_check_value_error(ck, v, "the type of response_schema must be 'object'");
		return;
	}
	if (!properties_fine(ck, v, properties))
		return;
	check_required(ck, v, properties);
	*(json_t **)place = v;
}
