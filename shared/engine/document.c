#include "engine/document.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "engine/document_ids.h"
#include "json/json.h"
#include "llm/llm.h"

#define LEVEL_DEFAULT 2
#define FAULTS_MAX 20
#define PLACEHOLDER "Generating content..."

/* ---- building ---- */

struct builder {
	struct hs_pool *pool;
	struct hs_document *doc;
	struct hs_ids sections, blocks;
};

static struct builder build(struct hs_pool *pool, struct hs_document *doc)
{
	memset(doc, 0, sizeof(*doc));
	return (struct builder){
		.pool = pool,
		.doc = doc,
		.sections = {.pool = pool},
		.blocks = {.pool = pool},
	};
}

/* A section without a heading is the preamble. */
static struct hs_doc_section *add_section(struct builder *b, const char *heading, int level)
{
	struct hs_document *d = b->doc;
	struct hs_doc_section *s;

	if (d->n == d->cap) {
		size_t cap = d->cap ? 2 * d->cap : 8;

		d->sections =
			hs_pool_regrow(b->pool, d->sections, d->n * sizeof(*s), cap * sizeof(*s));
		d->cap = cap;
	}
	s = &d->sections[d->n++];
	memset(s, 0, sizeof(*s));
	s->heading = heading;
	s->level = level;
	s->id = hs_ids_take(&b->sections, *heading ? hs_section_slug(b->pool, heading) : "preamble");
	return s;
}

static void add_block(struct builder *b, struct hs_doc_section *s, const char *text)
{
	if (s->n_blocks == s->cap_blocks) {
		size_t cap = s->cap_blocks ? 2 * s->cap_blocks : 8;

		s->blocks = hs_pool_regrow(b->pool, s->blocks, s->n_blocks * sizeof(*s->blocks),
			cap * sizeof(*s->blocks));
		s->cap_blocks = cap;
	}
	s->blocks[s->n_blocks].text = text;
	s->blocks[s->n_blocks++].id = hs_ids_take(&b->blocks, hs_block_id(b->pool, text));
}

/* ---- lines ---- */

struct line {
	const char *p;
	size_t n;
};

/* The next line of *at without its end; false at the end of the text. */
static bool next_line(const char **at, struct line *ret)
{
	size_t n = strcspn(*at, "\r\n");

	if (!**at)
		return false;
	*ret = (struct line){*at, n};
	*at += n;
	if (**at == '\r' && (*at)[1] == '\n')
		*at += 2;
	else if (**at)
		*at += 1;
	return true;
}

/* Bytes of white space at the line's start. */
static size_t indent(const struct line *l)
{
	size_t at = 0;

	while (at < l->n) {
		uint32_t cp;
		size_t len = hs_utf8_next(l->p + at, l->n - at, &cp);

		if (len == 0 || !hs_is_space_cp(cp))
			break;
		at += len;
	}
	return at;
}

static bool is_blank(const struct line *l)
{
	return indent(l) == l->n;
}

/* '`' or '~' when the line opens or closes a fence, else 0. */
static char fence_of(const struct line *l)
{
	size_t at = indent(l);
	char c;

	if (l->n - at < 3)
		return 0;
	c = l->p[at];
	return (c == '`' || c == '~') && l->p[at + 1] == c && l->p[at + 2] == c ? c : 0;
}

/* Level of an ATX heading at column 0 with its trimmed text; 0 when the line is none. */
static int heading_of(struct hs_pool *pool, const struct line *l, const char **ret_text)
{
	struct line rest;
	int level = 0;

	while ((size_t)level < l->n && l->p[level] == '#')
		level++;
	if (level == 0 || level > 6)
		return 0;

	rest = (struct line){l->p + level, l->n - (size_t)level};
	if (indent(&rest) == 0 || is_blank(&rest))
		return 0;
	*ret_text = hs_str_trim(pool, hs_pool_strndup(pool, rest.p, rest.n));
	return level;
}

/* Gathers the lines of one block. */
struct gather {
	struct hs_buf *text;
	size_t kept; /* length up to the last line that is not blank */
	char fence;  /* open fence, 0 = none */
};

static void gather_line(struct gather *g, const struct line *l)
{
	char fence = fence_of(l);

	if (g->text->len)
		hs_buf_char(g->text, '\n');
	hs_buf_add(g->text, l->p, l->n);
	if (!is_blank(l))
		g->kept = g->text->len;
	if (!g->fence)
		g->fence = fence;
	else if (fence == g->fence)
		g->fence = 0;
}

static void gather_end(struct gather *g, struct builder *b, struct hs_doc_section *s)
{
	if (g->kept)
		add_block(b, s, hs_pool_strndup(b->pool, g->text->data, g->kept));
	hs_buf_reset(g->text);
	g->kept = 0;
	g->fence = 0;
}

/* Blocks of a text into a section; headings make new sections unless `s` is given. */
static void split_into(struct builder *b, const char *text, struct hs_doc_section *s)
{
	const bool headings = s == NULL;
	struct gather g = {.text = hs_buf_new(b->pool, strlen(text) + 1)};
	const char *heading;
	struct line l;
	int level;

	while (next_line(&text, &l)) {
		if (g.fence) {
			gather_line(&g, &l);
			continue;
		}
		level = headings ? heading_of(b->pool, &l, &heading) : 0;
		if (level || is_blank(&l)) {
			if (s)
				gather_end(&g, b, s);
			if (level)
				s = add_section(b, heading, level);
			continue;
		}
		if (!s)
			s = add_section(b, "", LEVEL_DEFAULT);
		gather_line(&g, &l);
	}
	if (s)
		gather_end(&g, b, s);
}

void hs_document_split(struct hs_pool *pool, const char *markdown, struct hs_document *ret)
{
	struct builder b = build(pool, ret);

	split_into(&b, markdown ? markdown : "", NULL);
}

/* ---- printing ---- */

static void render_part(struct hs_buf *out, const char *prefix, const char *text)
{
	if (hs_str_blank(text))
		return;
	if (out->len)
		hs_buf_str(out, "\n\n");
	hs_buf_str(out, prefix);
	hs_buf_str(out, text);
}

char *hs_document_render(struct hs_pool *pool, const struct hs_document *doc)
{
	static const char *const marks[] = {"# ", "## ", "### ", "#### ", "##### ", "###### "};
	struct hs_buf *out = hs_buf_new(pool, HS_REPLY_MAX);

	for (size_t i = 0; i < doc->n; i++) {
		const struct hs_doc_section *s = &doc->sections[i];
		int level = s->level < 1 ? 1 : s->level > 6 ? 6 : s->level;

		render_part(out, marks[level - 1], hs_str_trim(pool, s->heading));
		for (size_t k = 0; k < s->n_blocks; k++)
			render_part(out, "", s->blocks[k].text);
	}
	if (out->len)
		hs_buf_char(out, '\n');
	return out->data;
}

/* A new reference; running out of memory ends the process as everywhere. */
static json_t *must(json_t *v)
{
	if (!v)
		hs_out_of_memory(sizeof(void *));
	return v;
}

static json_t *section_json(const struct hs_doc_section *s)
{
	json_t *blocks = must(json_array());

	for (size_t k = 0; k < s->n_blocks; k++)
		json_array_append_new(blocks, must(json_pack("{s:s, s:s}", "id", s->blocks[k].id,
						      "text", s->blocks[k].text)));
	return must(json_pack("{s:s, s:s, s:i, s:o}", "id", s->id, "heading", s->heading, "level",
		s->level, "blocks", blocks));
}

json_t *hs_document_json(const struct hs_document *doc)
{
	json_t *sections = must(json_array());

	for (size_t i = 0; i < doc->n; i++)
		json_array_append_new(sections, section_json(&doc->sections[i]));
	return must(json_pack("{s:i, s:o}", "version", 2, "sections", sections));
}

/* ---- reading what is stored ---- */

static bool only_keys(json_t *obj, const char *const *keys)
{
	const char *key;
	json_t *value;

	json_object_foreach(obj, key, value) {
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], key) != 0)
			i++;
		if (!keys[i])
			return false;
	}
	return true;
}

static enum hs_rc read_block(
	struct builder *b, struct hs_doc_section *s, json_t *v, struct hs_err *err)
{
	static const char *const keys[] = {"id", "text", NULL};
	const char *id = hs_json_str(v, "id"), *text = hs_json_str(v, "text");

	if (!json_is_object(v) || !id || !text || !only_keys(v, keys))
		return hs_fail(err, HS_E_PARSE,
			"stored document: a block of section '%s' is not valid", s->id);

	add_block(b, s, hs_pool_strdup(b->pool, text));
	s->blocks[s->n_blocks - 1].id = hs_pool_strdup(b->pool, id);
	return HS_OK;
}

static enum hs_rc read_section(struct builder *b, json_t *v, struct hs_err *err)
{
	static const char *const keys[] = {"id", "heading", "level", "blocks", NULL};
	json_t *heading = json_object_get(v, "heading"), *level = json_object_get(v, "level");
	json_t *blocks = json_object_get(v, "blocks"), *block;
	const char *id = hs_json_str(v, "id");
	struct hs_doc_section *s;
	size_t i;

	if (!json_is_object(v) || !id || !only_keys(v, keys) ||
		(heading && !json_is_string(heading)) || (level && !json_is_integer(level)) ||
		(blocks && !json_is_array(blocks)) ||
		(level && (json_integer_value(level) < 1 || json_integer_value(level) > 6)))
		return hs_fail(err, HS_E_PARSE, "stored document: a section is not valid");

	s = add_section(b, heading ? hs_pool_strdup(b->pool, json_string_value(heading)) : "",
		level ? (int)json_integer_value(level) : LEVEL_DEFAULT);
	s->id = hs_pool_strdup(b->pool, id);
	json_array_foreach(blocks, i, block)
		HS_TRY(read_block(b, s, block, err));
	return HS_OK;
}

enum hs_rc hs_document_read(
	struct hs_pool *pool, json_t *v, struct hs_document *ret, struct hs_err *err)
{
	static const char *const keys[] = {"version", "sections", NULL};
	json_t *version = json_object_get(v, "version"), *sections = json_object_get(v, "sections"),
	       *s;
	struct hs_document doc;
	struct builder b = build(pool, &doc);
	size_t i;

	if (!json_is_object(v) || json_object_size(v) == 0 || !only_keys(v, keys) ||
		(version && json_integer_value(version) != 2) ||
		(sections && !json_is_array(sections)))
		return hs_fail(err, HS_E_PARSE, "stored document is not a version 2 structure");

	json_array_foreach(sections, i, s)
		HS_TRY(read_section(&b, s, err));
	*ret = doc;
	return HS_OK;
}

/* ---- reading what a model gave ---- */

static void fault(struct hs_pool *pool, struct hs_strs *faults, const char *fmt, ...)
	HS_PRINTF(3, 4);
static void fault(struct hs_pool *pool, struct hs_strs *faults, const char *fmt, ...)
{
	va_list ap;

	if (faults->n == FAULTS_MAX)
		return;
	va_start(ap, fmt);
	hs_strs_add(pool, faults, hs_pool_vprintf(pool, fmt, ap));
	va_end(ap);
}

static const char *type_name(const json_t *v)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object",
		[JSON_ARRAY] = "an array",
		[JSON_STRING] = "a string",
		[JSON_INTEGER] = "a number",
		[JSON_REAL] = "a number",
		[JSON_TRUE] = "a boolean",
		[JSON_FALSE] = "a boolean",
		[JSON_NULL] = "null",
	};

	return v ? names[json_typeof(v)] : "nothing";
}

static int tool_level(json_t *v)
{
	int64_t level = json_integer_value(v);

	if (json_is_real(v))
		level = json_real_value(v) > 6
				? 6
				: (int64_t)(json_real_value(v) < 1 ? 1 : json_real_value(v));
	else if (json_is_string(v) && !hs_str_to_i64(json_string_value(v), &level))
		level = 0;
	if (level == 0)
		return LEVEL_DEFAULT;
	return level < 1 ? 1 : level > 6 ? 6 : (int)level;
}

/* Trimmed, without leading marks, on one line. */
static const char *tool_heading(struct hs_pool *pool, json_t *v)
{
	char *text = hs_str_trim(pool, json_is_string(v) ? json_string_value(v) : "");

	for (char *p = text; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	while (*text == '#')
		text++;
	return hs_str_trim(pool, text);
}

/* Is there anything to show: a heading, a block with text, or a fault to report? */
static bool tool_has_content(const char *heading, json_t *blocks)
{
	json_t *block;
	size_t i;

	if (*heading)
		return true;
	json_array_foreach(blocks, i, block)
		if (!json_is_string(block) || !hs_str_blank(json_string_value(block)))
			return true;
	return false;
}

static void tool_section(struct builder *b, json_t *v, size_t at, struct hs_strs *faults)
{
	json_t *blocks = json_object_get(v, "blocks"), *block;
	const char *heading = tool_heading(b->pool, json_object_get(v, "heading"));
	struct hs_doc_section *s;
	size_t i;

	if (!json_is_object(v)) {
		fault(b->pool, faults, "sections[%zu]: must be an object, is %s", at, type_name(v));
		return;
	}
	if (blocks && !json_is_array(blocks)) {
		fault(b->pool, faults, "sections[%zu].blocks: must be an array, is %s", at,
			type_name(blocks));
		return;
	}
	if (!tool_has_content(heading, blocks))
		return;

	s = add_section(b, heading, tool_level(json_object_get(v, "level")));
	json_array_foreach(blocks, i, block) {
		if (json_is_string(block))
			split_into(b, json_string_value(block), s);
		else
			fault(b->pool, faults, "sections[%zu].blocks[%zu]: must be a string, is %s",
				at, i, type_name(block));
	}
}

/* The sections in any accepted form; NULL with a fault when there are none. */
static json_t *tool_sections(struct hs_pool *pool, json_t *v, bool complete, struct hs_strs *faults)
{
	json_t *sections;

	for (int i = 0; i < 2 && json_is_string(v); i++)
		v = hs_json_lenient(pool, json_string_value(v), complete);
	if (json_is_array(v))
		return v;

	sections = json_object_get(v, "sections");
	if (json_is_array(sections))
		return sections;
	if (sections)
		fault(pool, faults, "sections: must be an array, is %s", type_name(sections));
	else if (json_object_get(v, "blocks"))
		return hs_json_keep(pool, json_pack("[O]", v));
	else
		fault(pool, faults, "document: must be an object with \"sections\", is %s",
			json_is_object(v) ? "an object without them" : type_name(v));
	return NULL;
}

enum hs_rc hs_document_from_tool(struct hs_pool *pool, json_t *v, bool complete,
	struct hs_document *ret, struct hs_strs *ret_faults, struct hs_err *err)
{
	struct hs_strs faults = {0};
	struct hs_document doc;
	struct builder b = build(pool, &doc);
	json_t *sections = tool_sections(pool, v, complete, &faults), *s;
	size_t i;

	json_array_foreach(sections, i, s)
		tool_section(&b, s, i, &faults);
	if (faults.n) {
		*ret_faults = faults;
		return hs_fail(err, HS_E_LLM_REPLY, "document refused: %s", faults.v[0]);
	}
	*ret = doc;
	return HS_OK;
}

bool hs_content_unwritten(const char *content)
{
	return hs_str_blank(content) || strcmp(content, PLACEHOLDER) == 0;
}
