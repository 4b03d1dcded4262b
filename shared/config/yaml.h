/*
 * yaml - one YAML file -> flat list of (key, text, line).
 *
 * Floor:   config; the only file that includes <yaml.h> is yaml.c.
 * Shapes:  nested mappings join their keys with '_': llm: {provider: x} is llm_provider. Lists of
 *          scalars become comma-separated text; values of JSON settings (is_json says which keys)
 *          are given as JSON text.
 * Errors:  HS_E_CONFIG naming file and line.
 */
#ifndef HS_CONFIG_YAML_H
#define HS_CONFIG_YAML_H

#include "base/err.h"
#include "base/pool.h"

struct hs_yaml_entry {
	const char *key, *value; /* value NULL = YAML null */
	int line;
};
struct hs_yaml_file {
	struct hs_yaml_entry *v;
	size_t n;
};
HS_MUST enum hs_rc hs_yaml_read(struct hs_pool *pool, const char *path,
	bool (*is_json)(const char *key), struct hs_yaml_file *ret, struct hs_err *err);

#endif
