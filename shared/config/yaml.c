#include "config/yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/str.h"
#include "json/json.h"

/* Aliases can name a node many times; a file of settings never needs this many. */
#define NODES_MAX 100000
#define FILE_MAX ((size_t)4 * 1024 * 1024)
#define DEPTH_MAX 64

struct reader {
	struct hs_pool *pool;
	const char *path;
	yaml_document_t doc;
	bool (*is_json)(const char *key);
	size_t cap, nodes;
	struct hs_yaml_file file;
	struct hs_err *err;
};

static int line_of(const yaml_node_t *node)
{
	return (int)node->start_mark.line + 1;
}

static enum hs_rc refuse(
	struct reader *r, const yaml_node_t *node, const char *key, const char *what)
{
	return hs_fail(r->err, HS_E_CONFIG, "%s:%d: %s%s%s", r->path, line_of(node), key ? key : "",
		key ? ": " : "", what);
}

static const char *scalar_text(struct reader *r, const yaml_node_t *node)
{
	return hs_pool_strndup(
		r->pool, (const char *)node->data.scalar.value, node->data.scalar.length);
}

static bool plain_null(const yaml_node_t *node)
{
	const char *s = (const char *)node->data.scalar.value;

	return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (s[0] == '\0' || strcmp(s, "~") == 0 || hs_str_ieq_ascii(s, "null"));
}

static enum hs_rc add(struct reader *r, const char *key, const char *value, const yaml_node_t *node)
{
	struct hs_yaml_file *f = &r->file;

	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].key, key) == 0)
			return refuse(r, node, key, "given twice");
	if (f->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;

		f->v = hs_pool_regrow(r->pool, f->v, r->cap * sizeof(*f->v), cap * sizeof(*f->v));
		r->cap = cap;
	}
	f->v[f->n++] = (struct hs_yaml_entry){key, value, line_of(node)};
	return HS_OK;
}

/* A plain scalar as YAML's core types read it. */
static json_t *scalar_json(struct reader *r, const yaml_node_t *node)
{
	const char *s = scalar_text(r, node);
	int64_t i;
	double d;

	if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return json_string(s);
	if (plain_null(node))
		return json_null();
	if (hs_str_ieq_ascii(s, "true") || hs_str_ieq_ascii(s, "false"))
		return json_boolean(hs_str_ieq_ascii(s, "true"));
	if (hs_str_to_i64(s, &i))
		return json_integer(i);
	if (hs_str_to_double(s, &d))
		return json_real(d);
	return json_string(s);
}

static enum hs_rc node_json(struct reader *r, const yaml_node_t *node, int depth, json_t **ret);

static enum hs_rc sequence_json(struct reader *r, const yaml_node_t *node, int depth, json_t *list)
{
	for (yaml_node_item_t *i = node->data.sequence.items.start;
		i < node->data.sequence.items.top; i++) {
		json_t *v;

		HS_TRY(node_json(r, yaml_document_get_node(&r->doc, *i), depth + 1, &v));
		json_array_append(list, v);
	}
	return HS_OK;
}

static enum hs_rc mapping_json(struct reader *r, const yaml_node_t *node, int depth, json_t *object)
{
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
		json_t *v;

		if (key->type != YAML_SCALAR_NODE)
			return refuse(r, key, NULL, "a key must be plain text");
		HS_TRY(node_json(r, yaml_document_get_node(&r->doc, p->value), depth + 1, &v));
		json_object_set(object, scalar_text(r, key), v);
	}
	return HS_OK;
}

/* *ret is kept by the pool. */
static enum hs_rc node_json(struct reader *r, const yaml_node_t *node, int depth, json_t **ret)
{
	if (++r->nodes > NODES_MAX || depth > DEPTH_MAX)
		return refuse(r, node, NULL, "too many or too deeply nested values");
	switch (node->type) {
	case YAML_SEQUENCE_NODE:
		*ret = hs_json_keep(r->pool, json_array());
		return sequence_json(r, node, depth, *ret);
	case YAML_MAPPING_NODE:
		*ret = hs_json_keep(r->pool, json_object());
		return mapping_json(r, node, depth, *ret);
	default:
		*ret = scalar_json(r, node);
		if (!*ret)
			return refuse(r, node, NULL, "not valid UTF-8");
		(void)hs_json_keep(r->pool, *ret);
		return HS_OK;
	}
}

static enum hs_rc add_list(struct reader *r, const char *key, const yaml_node_t *node)
{
	struct hs_strs items = {0, NULL};

	for (yaml_node_item_t *i = node->data.sequence.items.start;
		i < node->data.sequence.items.top; i++) {
		const yaml_node_t *item = yaml_document_get_node(&r->doc, *i);
		const char *s;

		if (item->type != YAML_SCALAR_NODE)
			return refuse(r, item, key, "a list here holds plain values only");
		s = scalar_text(r, item);
		if (strchr(s, ','))
			return refuse(r, item, key, "a member of a list must not hold a comma");
		hs_strs_add(r->pool, &items, s);
	}
	return add(r, key, hs_strs_join(r->pool, &items, ","), node);
}

static enum hs_rc add_json(struct reader *r, const char *key, const yaml_node_t *node)
{
	json_t *v;

	/* text may be JSON already, as in the environment */
	if (node->type == YAML_SCALAR_NODE)
		return add(r, key, plain_null(node) ? NULL : scalar_text(r, node), node);
	HS_TRY(node_json(r, node, 0, &v));
	return add(r, key, hs_json_text(r->pool, v), node);
}

static enum hs_rc read_mapping(
	struct reader *r, const yaml_node_t *node, const char *prefix, int depth);

static enum hs_rc read_pair(struct reader *r, const char *key, const yaml_node_t *value, int depth)
{
	if (++r->nodes > NODES_MAX || depth > DEPTH_MAX)
		return refuse(r, value, key, "too many or too deeply nested values");
	if (r->is_json(key))
		return add_json(r, key, value);
	switch (value->type) {
	case YAML_MAPPING_NODE:
		return read_mapping(r, value, key, depth + 1);
	case YAML_SEQUENCE_NODE:
		return add_list(r, key, value);
	default:
		return add(r, key, plain_null(value) ? NULL : scalar_text(r, value), value);
	}
}

static enum hs_rc read_mapping(
	struct reader *r, const yaml_node_t *node, const char *prefix, int depth)
{
	for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
		p++) {
		const yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
		const char *name;

		if (key->type != YAML_SCALAR_NODE)
			return refuse(r, key, NULL, "a key must be plain text");
		name = scalar_text(r, key);
		if (prefix)
			name = hs_pool_printf(r->pool, "%s_%s", prefix, name);
		HS_TRY(read_pair(r, name, yaml_document_get_node(&r->doc, p->value), depth));
	}
	return HS_OK;
}

static enum hs_rc read_document(struct reader *r)
{
	const yaml_node_t *root = yaml_document_get_root_node(&r->doc);

	if (!root || (root->type == YAML_SCALAR_NODE && plain_null(root)))
		return HS_OK;
	if (root->type != YAML_MAPPING_NODE)
		return refuse(r, root, NULL, "the file must hold `name: value` lines");
	return read_mapping(r, root, NULL, 0);
}

static enum hs_rc parse(struct reader *r, const unsigned char *bytes, size_t n)
{
	yaml_parser_t parser;
	enum hs_rc rc;

	if (!yaml_parser_initialize(&parser))
		hs_out_of_memory(sizeof(parser));
	yaml_parser_set_input_string(&parser, bytes, n);
	if (!yaml_parser_load(&parser, &r->doc)) {
		size_t line = parser.problem_mark.line ? parser.problem_mark.line
						       : parser.context_mark.line;

		rc = hs_fail(r->err, HS_E_CONFIG, "%s:%zu: %s", r->path, line + 1,
			parser.problem ? parser.problem : "not readable as YAML");
		yaml_parser_delete(&parser);
		return rc;
	}
	rc = read_document(r);
	yaml_document_delete(&r->doc);
	yaml_parser_delete(&parser);
	return rc;
}

static enum hs_rc read_bytes(struct hs_pool *pool, const char *path, unsigned char **ret,
	size_t *ret_n, struct hs_err *err)
{
	FILE *f = fopen(path, "re");
	unsigned char *bytes;
	size_t n;
	int broken;

	if (!f)
		return hs_fail_foreign(
			err, HS_E_CONFIG, errno, "cannot open %s: %s", path, strerror(errno));
	bytes = hs_pool_alloc(pool, FILE_MAX + 1);
	n = fread(bytes, 1, FILE_MAX + 1, f);
	broken = ferror(f);
	fclose(f);
	if (broken)
		return hs_fail(err, HS_E_CONFIG, "cannot read %s", path);
	if (n > FILE_MAX)
		return hs_fail(err, HS_E_CONFIG, "%s is larger than %zu bytes", path, FILE_MAX);
	*ret = bytes;
	*ret_n = n;
	return HS_OK;
}

enum hs_rc hs_yaml_read(struct hs_pool *pool, const char *path, bool (*is_json)(const char *key),
	struct hs_yaml_file *ret, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *scratch = hs_pool_new();
	struct reader r = {.pool = pool, .path = path, .is_json = is_json, .err = err};
	unsigned char *bytes = NULL;
	size_t n = 0;

	HS_TRY(read_bytes(scratch, path, &bytes, &n, err));
	HS_TRY(parse(&r, bytes, n));
	*ret = r.file;
	return HS_OK;
}
