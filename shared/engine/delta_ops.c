#include "engine/delta_ops.h"

#include <string.h>

#include "engine/document_ids.h"
#include "json/json.h"

/* A section that this batch added: found by what the model called it, too. */
struct added {
	const char *heading, *new_id, *id;
};
struct apply {
	struct hs_pool *pool;
	struct hs_document *doc;
	struct hs_ids blocks; /* given out once, kept for good */
	const struct hs_strs *hidden;
	struct added *added;
	size_t n_added;
	/* of the operation at hand */
	const char *reason; /* skipped; NULL = applied */
	const char *assigned, *merged;
};

/* ---- lookups ---- */

static struct hs_doc_section *find_section(const struct hs_document *d, const char *id)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->sections[i].id, id) == 0)
			return &d->sections[i];
	return NULL;
}

static int64_t find_block(const struct hs_doc_section *s, const char *id)
{
	for (size_t i = 0; i < s->n_blocks; i++)
		if (strcmp(s->blocks[i].id, id) == 0)
			return (int64_t)i;
	return -1;
}

/* Place of a block in its section; -1 with a reason. */
static int64_t resolve_block(struct apply *a, const struct hs_doc_section *s, const char *id)
{
	int64_t at = find_block(s, id);

	if (at >= 0)
		return at;
	a->reason = hs_pool_printf(a->pool, "unknown block_id: %s", id);
	for (size_t i = 0; i < a->doc->n; i++)
		if (find_block(&a->doc->sections[i], id) >= 0)
			a->reason =
				hs_pool_printf(a->pool, "block_id %s belongs to section %s, not %s",
					id, a->doc->sections[i].id, s->id);
	return -1;
}

static bool refuse_hidden(struct apply *a, const char *block_id)
{
	if (!hs_strs_has(a->hidden, block_id))
		return false;
	a->reason = hs_pool_printf(a->pool, "block text not shown: %s", block_id);
	return true;
}

/* ---- texts ---- */

/* End of the line at p, without its line break. */
static const char *line_end(const char *p)
{
	return p + strcspn(p, "\n");
}

static bool line_blank(struct hs_pool *pool, const char *p, const char *end)
{
	return hs_str_blank(hs_pool_strndup(pool, p, (size_t)(end - p)));
}

/* Without blank lines at both ends; blanks inside the first and the last line stay. */
static const char *edge_trim(struct hs_pool *pool, const char *text)
{
	const char *from = text, *end, *kept;

	for (end = line_end(from); *from && line_blank(pool, from, end); end = line_end(from))
		from = *end ? end + 1 : end;
	kept = from;
	for (const char *p = from; *p; p = *end ? end + 1 : end) {
		end = line_end(p);
		if (!line_blank(pool, p, end))
			kept = end;
	}
	return hs_pool_strndup(pool, from, (size_t)(kept - from));
}

struct rows {
	size_t n, separators;
	bool all_rows;
};

/* Reads a text as lines of a table. */
static struct rows read_rows(const char *text)
{
	struct rows r = {.all_rows = true};

	for (const char *p = text, *end; *p; p = *end ? end + 1 : end) {
		size_t blanks = strspn(p, " \t"), n, dashes = 0;

		end = line_end(p);
		n = strspn(p, " \t\r|:-");
		for (size_t i = 0; i < n; i++)
			dashes += p[i] == '-';
		r.n++;
		r.all_rows = r.all_rows && p[blanks] == '|';
		r.separators += p + n >= end && dashes >= 2;
	}
	return r;
}

static bool is_table(const char *text)
{
	struct rows r = read_rows(text);

	return r.all_rows && r.n >= 2 && r.separators > 0;
}

static bool is_orphan_rows(const char *text)
{
	struct rows r = read_rows(text);

	return r.all_rows && r.n >= 1 && r.separators == 0;
}

/* ---- changing the copy ---- */

static struct hs_doc_block new_block(struct apply *a, const char *text)
{
	return (struct hs_doc_block){
		.id = hs_ids_take(&a->blocks, hs_block_id(a->pool, text)),
		.text = text,
	};
}

static void put_block(
	struct apply *a, struct hs_doc_section *s, size_t at, struct hs_doc_block block)
{
	if (s->n_blocks == s->cap_blocks) {
		size_t cap = s->cap_blocks ? 2 * s->cap_blocks : 8;

		s->blocks = hs_pool_regrow(
			a->pool, s->blocks, s->n_blocks * sizeof(block), cap * sizeof(block));
		s->cap_blocks = cap;
	}
	memmove(&s->blocks[at + 1], &s->blocks[at], (s->n_blocks - at) * sizeof(block));
	s->blocks[at] = block;
	s->n_blocks++;
}

/* A new block, or rows that join the table in front of them. */
static void insert_text(struct apply *a, struct hs_doc_section *s, size_t at, const char *given)
{
	const char *text = edge_trim(a->pool, given);
	struct hs_doc_block *before = at ? &s->blocks[at - 1] : NULL;

	if (before && is_orphan_rows(text) && is_table(before->text)) {
		before->text = hs_pool_printf(a->pool, "%s\n%s", before->text, text);
		a->merged = before->id;
		return;
	}
	put_block(a, s, at, new_block(a, text));
}

static void add_texts(struct apply *a, struct hs_doc_section *s, const struct hs_strs *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		if (!hs_str_blank(texts->v[i]))
			put_block(a, s, s->n_blocks, new_block(a, edge_trim(a->pool, texts->v[i])));
}

/* ---- the operations; each gets the section that it names ---- */

typedef void apply_fn(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *s);

static void append_block(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *s)
{
	insert_text(a, s, s->n_blocks, op->text);
}

static void insert_block(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *s)
{
	int64_t after = op->after_block_id ? resolve_block(a, s, op->after_block_id) : -1;

	if (!a->reason)
		insert_text(a, s, (size_t)(after + 1), op->text);
}

static void replace_block(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *s)
{
	int64_t at = resolve_block(a, s, op->block_id);

	if (at >= 0 && !refuse_hidden(a, op->block_id))
		s->blocks[at].text = edge_trim(a->pool, op->text);
}

static void remove_block(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *s)
{
	int64_t at = resolve_block(a, s, op->block_id);

	if (at < 0)
		return;
	s->n_blocks--;
	memmove(&s->blocks[at], &s->blocks[at + 1],
		(s->n_blocks - (size_t)at) * sizeof(*s->blocks));
}

static void remove_section(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *s)
{
	struct hs_document *d = a->doc;
	size_t at = (size_t)(s - d->sections);

	(void)op;
	d->n--;
	memmove(s, s + 1, (d->n - at) * sizeof(*s));
}

static void replace_blocks(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *s)
{
	for (size_t i = 0; i < s->n_blocks; i++)
		if (refuse_hidden(a, s->blocks[i].id))
			return;
	s->n_blocks = 0;
	add_texts(a, s, &op->blocks);
}

static void rename_section(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *s)
{
	(void)a;
	s->heading = op->heading;
}

/* Where a new section goes, in the order of trust: id, name in this batch, slug, heading. */
static struct hs_doc_section *resolve_after(const struct apply *a, const char *name)
{
	struct hs_doc_section *s = find_section(a->doc, name);

	for (size_t i = a->n_added; i-- > 0 && !s;)
		if (strcmp(a->added[i].heading, name) == 0 ||
			(a->added[i].new_id && strcmp(a->added[i].new_id, name) == 0))
			s = find_section(a->doc, a->added[i].id);
	if (!s)
		s = find_section(a->doc, hs_section_slug(a->pool, name));
	for (size_t i = 0; i < a->doc->n && !s; i++)
		if (strcmp(a->doc->sections[i].heading, name) == 0)
			s = &a->doc->sections[i];
	return s;
}

static const char *section_id(const struct apply *a, const struct hs_delta_op *op)
{
	struct hs_ids taken = {.pool = a->pool};

	for (size_t i = 0; i < a->doc->n; i++)
		(void)hs_ids_take(&taken, a->doc->sections[i].id);
	return hs_ids_take(&taken, hs_str_blank(op->new_id) ? hs_section_slug(a->pool, op->heading)
							    : hs_str_trim(a->pool, op->new_id));
}

static void put_section(struct apply *a, size_t at, const struct hs_doc_section *s)
{
	struct hs_document *d = a->doc;

	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 8;

		d->sections =
			hs_pool_regrow(a->pool, d->sections, d->n * sizeof(*s), cap * sizeof(*s));
		d->cap = cap;
	}
	memmove(&d->sections[at + 1], &d->sections[at], (d->n - at) * sizeof(*s));
	d->sections[at] = *s;
	d->n++;
}

static void add_section(struct apply *a, const struct hs_delta_op *op, struct hs_doc_section *none)
{
	struct hs_doc_section new = {.heading = op->heading, .level = op->level}, *after = NULL;

	(void)none;
	add_texts(a, &new, &op->blocks);
	if (op->after_section_id) {
		after = resolve_after(a, op->after_section_id);
		if (!after) {
			a->reason = hs_pool_printf(
				a->pool, "unknown after_section_id: %s", op->after_section_id);
			return;
		}
	}
	new.id = a->assigned = section_id(a, op);
	a->added[a->n_added++] = (struct added){op->heading, op->new_id, new.id};
	put_section(a, after ? (size_t)(after - a->doc->sections) + 1 : a->doc->n, &new);
}

static const struct {
	apply_fn *fn;
	bool needs_text;
} kinds[HS_DELTA_KIND__MAX] = {
	[HS_DELTA_APPEND_BLOCK] = {append_block, true},
	[HS_DELTA_INSERT_BLOCK] = {insert_block, true},
	[HS_DELTA_REPLACE_BLOCK] = {replace_block, true},
	[HS_DELTA_REMOVE_BLOCK] = {remove_block, false},
	[HS_DELTA_ADD_SECTION] = {add_section, false},
	[HS_DELTA_REMOVE_SECTION] = {remove_section, false},
	[HS_DELTA_REPLACE_BLOCKS] = {replace_blocks, false},
	[HS_DELTA_RENAME_SECTION] = {rename_section, false},
};

/* The checks in their order: shape, section, text; then what the operation itself finds. */
static void apply_one(struct apply *a, const struct hs_delta_op *op)
{
	struct hs_doc_section *s = NULL;

	a->reason = op->fault;
	a->assigned = a->merged = NULL;
	if (a->reason)
		return;
	if (op->kind != HS_DELTA_ADD_SECTION) {
		s = find_section(a->doc, op->section_id);
		if (!s)
			a->reason =
				hs_pool_printf(a->pool, "unknown section_id: %s", op->section_id);
		else if (kinds[op->kind].needs_text && hs_str_blank(op->text))
			a->reason = "block text is empty";
	}
	if (!a->reason)
		kinds[op->kind].fn(a, op, s);
}

/* ---- the whole list ---- */

static struct hs_document copy(struct hs_pool *pool, const struct hs_document *doc)
{
	struct hs_document d = {.n = doc->n, .cap = doc->n};

	if (doc->n)
		d.sections = hs_pool_memdup(pool, doc->sections, doc->n * sizeof(*doc->sections));
	for (size_t i = 0; i < d.n; i++) {
		struct hs_doc_section *s = &d.sections[i];

		if (s->n_blocks)
			s->blocks =
				hs_pool_memdup(pool, s->blocks, s->n_blocks * sizeof(*s->blocks));
		s->cap_blocks = s->n_blocks;
	}
	return d;
}

static void set_text(json_t *audit, const char *key, const char *v)
{
	if (v)
		json_object_set_new(audit, key, json_string(v));
}

static void record(const struct apply *a, const struct hs_delta_op *op, struct hs_delta_result *r)
{
	json_t *audit = json_copy(op->audit);

	if (!audit)
		hs_out_of_memory(sizeof(void *));
	set_text(audit, "reason", a->reason);
	set_text(audit, "assigned_id", a->assigned);
	set_text(audit, "merged_into_block_id", a->merged);
	json_array_append_new(a->reason ? r->skipped : r->applied, audit);
	r->n_skipped += a->reason != NULL;
	r->n_applied += a->reason == NULL;
}

void hs_delta_apply(struct hs_pool *pool, const struct hs_document *doc,
	const struct hs_delta_list *ops, const struct hs_strs *hidden, struct hs_delta_result *ret)
{
	static const struct hs_strs none = {0};
	struct apply a = {
		.pool = pool,
		.doc = &ret->doc,
		.blocks = {.pool = pool},
		.hidden = hidden ? hidden : &none,
		.added = HS_NEW_ARRAY(pool, struct added, ops->n + 1),
	};

	*ret = (struct hs_delta_result){
		.doc = copy(pool, doc),
		.applied = hs_json_keep(pool, json_array()),
		.skipped = hs_json_keep(pool, json_array()),
	};
	for (size_t i = 0; i < doc->n; i++)
		for (size_t k = 0; k < doc->sections[i].n_blocks; k++)
			(void)hs_ids_take(&a.blocks, doc->sections[i].blocks[k].id);
	for (size_t i = 0; i < ops->n; i++) {
		apply_one(&a, &ops->v[i]);
		record(&a, &ops->v[i], ret);
	}
}
