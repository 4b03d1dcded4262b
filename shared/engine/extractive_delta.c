#include "engine/extractive_delta.h"

#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "engine/near.h"
#include "json/json.h"
#include "text/words.h"

#define BULLET "- "
#define HEADING_BYTES 3 /* a shorter heading is no name to look for */

struct edits {
	struct hs_pool *pool;
	const struct hs_document *doc;
	const struct hs_changed_text *changed;
	size_t n_changed;
	json_t *ops;
	struct hs_gist *known; /* what the document says, changed statements left out */
	size_t n_known, cap_known;
};
/* New bullets of one place. */
struct additions {
	const struct hs_doc_section *to; /* NULL = a new section */
	struct hs_buf *text;
};

static json_t *must(json_t *v)
{
	if (!v)
		hs_out_of_memory(sizeof(void *));
	return v;
}

static void add_op(struct edits *e, json_t *op)
{
	json_array_append_new(e->ops, must(op));
}

/* The statement of a bullet: without the sign and a date in front. */
static const char *statement(const char *line)
{
	static const char date[] = "dddd-dd-dd: ";
	size_t i = 0;

	if (hs_str_starts(line, BULLET))
		line += strlen(BULLET);
	while (date[i] && (date[i] == 'd' ? line[i] >= '0' && line[i] <= '9' : line[i] == date[i]))
		i++;
	return date[i] ? line : line + i;
}

static void know(struct edits *e, const char *line)
{
	if (e->n_known == e->cap_known) {
		size_t cap = e->cap_known ? 2 * e->cap_known : 32;

		e->known = hs_pool_regrow(
			e->pool, e->known, e->n_known * sizeof(*e->known), cap * sizeof(*e->known));
		e->cap_known = cap;
	}
	e->known[e->n_known++] = hs_gist_of(e->pool, statement(line));
}

static bool is_known(struct edits *e, const char *line)
{
	struct hs_gist g = hs_gist_of(e->pool, statement(line));

	for (size_t i = 0; i < e->n_known; i++)
		if (hs_gist_near(&e->known[i], &g))
			return true;
	return false;
}

/* ---- what goes ---- */

/* Does the bullet quote a memory that reads otherwise now? */
static bool is_outdated(const struct edits *e, const char *line)
{
	const char *said = statement(line);

	if (!hs_str_starts(line, BULLET) || hs_str_blank(said))
		return false;
	for (size_t i = 0; i < e->n_changed; i++) {
		const struct hs_changed_text *c = &e->changed[i];

		if (strstr(c->now, said))
			continue;
		if (strstr(c->before, said) ||
			(!hs_str_blank(c->before) && strstr(said, c->before)))
			return true;
	}
	return false;
}

static void drop_outdated(
	struct edits *e, const struct hs_doc_section *s, const struct hs_doc_block *block)
{
	struct hs_buf *kept = hs_buf_new(e->pool, HS_REPLY_MAX);
	bool dropped = false;

	for (const char *p = block->text; *p;) {
		size_t n = strcspn(p, "\n");
		const char *line = hs_pool_strndup(e->pool, p, n);

		p += n + (p[n] == '\n');
		if (is_outdated(e, line)) {
			dropped = true;
			continue;
		}
		know(e, line);
		hs_buf_printf(kept, "%s%s", kept->len ? "\n" : "", line);
	}
	if (!dropped)
		return;
	if (hs_str_blank(kept->data))
		add_op(e, json_pack("{s:s, s:s, s:s}", "op", "remove_block", "section_id", s->id,
				  "block_id", block->id));
	else
		add_op(e, json_pack("{s:s, s:s, s:s, s:s}", "op", "replace_block", "section_id",
				  s->id, "block_id", block->id, "text", kept->data));
}

/* ---- what comes ---- */

static const struct hs_doc_section *same_section(
	const struct hs_document *doc, const struct hs_doc_section *s)
{
	for (size_t i = 0; i < doc->n; i++)
		if (strcmp(doc->sections[i].id, s->id) == 0 ||
			(*s->heading && strcmp(doc->sections[i].heading, s->heading) == 0))
			return &doc->sections[i];
	return NULL;
}

static bool is_letter(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (unsigned char)c >= 0x80;
}

/* Does the text hold this name, in words of its own? Scripts without blanks have no such words. */
static bool speaks_of(const char *text, const char *name)
{
	bool loose = (unsigned char)name[0] >= 0x80;
	size_t n = strlen(name);

	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
		if (loose || ((at == text || !is_letter(at[-1])) && !is_letter(at[n])))
			return true;
	return false;
}

/* A section that stands under a name the bullet speaks of. */
static const struct hs_doc_section *named_section(const struct edits *e, const char *line)
{
	const char *text = hs_lower(e->pool, line);

	for (size_t i = 0; i < e->doc->n; i++) {
		const struct hs_doc_section *s = &e->doc->sections[i];

		if (strlen(s->heading) >= HEADING_BYTES &&
			speaks_of(text, hs_lower(e->pool, s->heading)))
			return s;
	}
	return NULL;
}

static void add_line(struct edits *e, struct additions *all, size_t *n,
	const struct hs_doc_section *to, const char *line)
{
	size_t i = 0;

	while (i < *n && all[i].to != to)
		i++;
	if (i == *n)
		all[(*n)++] = (struct additions){to, hs_buf_new(e->pool, HS_REPLY_MAX)};
	hs_buf_printf(all[i].text, "%s%s", all[i].text->len ? "\n" : "", line);
}

static void write_additions(
	struct edits *e, const struct hs_doc_section *from, const struct additions *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = all[i].text->data;

		if (all[i].to)
			add_op(e, json_pack("{s:s, s:s, s:s}", "op", "append_block", "section_id",
					  all[i].to->id, "text", text));
		else
			add_op(e,
				json_pack("{s:s, s:s, s:i, s:[s]}", "op", "add_section", "heading",
					from->heading, "level", from->level, "blocks", text));
	}
}

/* The new bullets of one section of the window's document. */
static void add_section(struct edits *e, const struct hs_doc_section *from)
{
	const struct hs_doc_section *home = same_section(e->doc, from);
	struct additions *all = HS_NEW_ARRAY(e->pool, struct additions, e->doc->n + 1);
	size_t n = 0;

	if (!home && !*from->heading && e->doc->n)
		home = &e->doc->sections[e->doc->n - 1];
	for (size_t k = 0; k < from->n_blocks; k++)
		for (const char *p = from->blocks[k].text; *p;) {
			size_t len = strcspn(p, "\n");
			const char *line = hs_pool_strndup(e->pool, p, len);

			p += len + (p[len] == '\n');
			if (hs_str_blank(line) || is_known(e, line))
				continue;
			know(e, line);
			add_line(e, all, &n, home ? home : named_section(e, line), line);
		}
	write_additions(e, from, all, n);
}

json_t *hs_extractive_delta(struct hs_pool *pool, const struct hs_document *doc,
	const struct hs_document *window, const struct hs_changed_text *changed, size_t n_changed)
{
	struct edits e = {
		.pool = pool,
		.doc = doc,
		.changed = changed,
		.n_changed = n_changed,
		.ops = must(json_array()),
	};

	for (size_t i = 0; i < doc->n; i++)
		for (size_t k = 0; k < doc->sections[i].n_blocks; k++)
			drop_outdated(&e, &doc->sections[i], &doc->sections[i].blocks[k]);
	for (size_t i = 0; i < window->n; i++)
		add_section(&e, &window->sections[i]);
	return hs_json_keep(pool, must(json_pack("{s:o}", "operations", e.ops)));
}
