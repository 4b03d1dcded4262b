#include "prompt/prompt.h"

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "json/json.h"
#include "prompt/build.h"

char *hs_prompt_cat(struct hs_pool *pool, ...)
{
	size_t bytes = 0, at = 0;
	const char *part;
	va_list ap;
	char *text;

	va_start(ap, pool);
	while ((part = va_arg(ap, const char *)) != NULL)
		bytes += strlen(part);
	va_end(ap);
	text = hs_pool_alloc(pool, bytes + 1);
	va_start(ap, pool);
	while ((part = va_arg(ap, const char *)) != NULL) {
		size_t n = strlen(part);

		memcpy(text + at, part, n);
		at += n;
	}
	va_end(ap);
	text[at] = '\0';
	return text;
}

static struct hs_block *block_add(struct hs_pool *pool, struct hs_message *m, const char *text)
{
	struct hs_block *b;

	if (m->n == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 16;

		m->v = hs_pool_regrow(pool, m->v, m->n * sizeof(*m->v), cap * sizeof(*m->v));
		m->cap = cap;
	}
	b = &m->v[m->n++];
	*b = (struct hs_block){
		.text = text ? text : "",
		.field = "",
		.section = "",
		.active = text && *text,
		.kind = "text",
	};
	return b;
}

void hs_block_builtin(struct hs_pool *pool, struct hs_message *m, const char *text)
{
	if (*text)
		block_add(pool, m, text);
}

void hs_block_section(
	struct hs_pool *pool, struct hs_message *m, const char *section, const char *text)
{
	block_add(pool, m, text)->section = section;
}

static const char *setting_kind(enum hs_setting_id id)
{
	if (id == HS_S_retain_extraction_mode)
		return "choice";
	if (id == HS_S_entity_labels)
		return "complex";
	return hs_settings[id].type == HS_ST_BOOL ? "boolean" : "text";
}

static struct hs_block *field_add(struct hs_pool *pool, struct hs_message *m,
	const struct hs_config *cfg, enum hs_setting_id id, const char *text)
{
	struct hs_block *b = block_add(pool, m, text);

	b->field = hs_settings[id].name;
	b->kind = setting_kind(id);
	b->value = hs_setting_text(pool, cfg, id);
	b->has_choices = id == HS_S_retain_extraction_mode;
	b->editable = hs_settings[id].scope == HS_SC_BANK;
	return b;
}

void hs_block_setting(struct hs_pool *pool, struct hs_message *m, const struct hs_config *cfg,
	enum hs_setting_id id, const char *text)
{
	field_add(pool, m, cfg, id, text)->config = true;
}

void hs_block_chosen(struct hs_pool *pool, struct hs_message *m, const struct hs_config *cfg,
	enum hs_setting_id id, const char *text)
{
	field_add(pool, m, cfg, id, text);
}

const char *hs_setting_text(
	struct hs_pool *pool, const struct hs_config *cfg, enum hs_setting_id id)
{
	json_auto_t *v = NULL;

	if (hs_cfg_null(cfg, id))
		return NULL;
	if (hs_settings[id].type == HS_ST_STR)
		return hs_str_blank(hs_cfg_str(cfg, id)) ? NULL : hs_cfg_str(cfg, id);
	if (hs_settings[id].type == HS_ST_BOOL)
		return hs_cfg_bool(cfg, id) ? "true" : "false";
	v = hs_cfg_value(cfg, id);
	return hs_json_text(pool, v);
}

const char *hs_output_language(const struct hs_config *cfg)
{
	const char *language = hs_cfg_str(cfg, HS_S_llm_output_language);

	return hs_str_blank(language) ? NULL : language;
}

const char *hs_output_language_text(struct hs_pool *pool, const char *language)
{
	return hs_prompt_cat(pool, "OUTPUT LANGUAGE: write all your output only in ", language,
		". Translate what the source says in another language. Names, code and ids stay as they are.",
		NULL);
}

static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *s = text; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (!strncmp(s, line, n) && (s[n] == '\0' || s[n] == '\n' || s[n] == '\r'))
			return true;
	}
	return false;
}

const char *hs_fence_for(struct hs_pool *pool, const char *text)
{
	const char *fence = "=====";

	while (has_line(text, fence))
		fence = hs_prompt_cat(pool, fence, "==", NULL);
	return fence;
}

const char *hs_directive_list(struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	struct hs_buf *b = hs_buf_new(pool, HS_PROMPT_MAX);
	int64_t n = 0;

	for (size_t i = 0; i < in->n_directives; i++) {
		const struct hs_directive_text *d = &in->directives[i];

		if (hs_str_blank(d->content))
			continue;
		if (n)
			hs_buf_char(b, '\n');
		hs_buf_int(b, ++n);
		hs_buf_str(b, ". ");
		if (!hs_str_blank(d->name)) {
			hs_buf_str(b, d->name);
			hs_buf_str(b, ": ");
		}
		hs_buf_str(b, d->content);
	}
	return b->data;
}

void hs_block_time(struct hs_pool *pool, struct hs_message *m, int64_t now_us)
{
	struct hs_civil c = hs_civil_from_us(now_us);

	hs_block_builtin(pool, m,
		hs_pool_printf(pool, "Current time: %s, %s %d, %d, %02d:%02d UTC." HS_GAP,
			hs_weekday_name(c.weekday), hs_month_name(c.month), c.day, c.year, c.hour,
			c.minute));
}

/* The text of the first line that begins with '#' signs and a blank; NULL when there is none. */
static const char *heading_line(const char *text, size_t *ret_n)
{
	for (const char *s = text; s && *s; s = strchr(s, '\n'), s += s != NULL) {
		size_t level = strspn(s, "#");

		if (!level || s[level] != ' ')
			continue;
		s += level + strspn(s + level, " ");
		*ret_n = strcspn(s, "\r\n");
		return s;
	}
	return NULL;
}

static bool ends_heading(const char *s)
{
	return *s == '-' || *s == '(' || hs_str_starts(s, "\xE2\x80\x93");
}

const char *hs_block_heading(struct hs_pool *pool, const struct hs_block *b)
{
	size_t n = 0;
	const char *line = b->config ? NULL : heading_line(b->text, &n);
	char *heading;

	if (!line)
		return "";
	for (size_t i = 1; i < n; i++)
		if (line[i - 1] == ' ' && ends_heading(line + i))
			n = i;
	heading = hs_str_lower_ascii(pool, hs_str_trim(pool, hs_pool_strndup(pool, line, n)));
	if (*heading >= 'a' && *heading <= 'z')
		*heading -= 'a' - 'A';
	return heading;
}

char *hs_message_text(struct hs_pool *pool, const struct hs_message *m)
{
	struct hs_buf *b = hs_buf_new(pool, 2 * HS_PROMPT_MAX);

	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].active)
			hs_buf_str(b, m->v[i].text);
	return b->data;
}

json_t *hs_prompt_messages(struct hs_pool *pool, const struct hs_prompt *p)
{
	return json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "system", "content",
		hs_message_text(pool, &p->system), "role", "user", "content",
		hs_message_text(pool, &p->user));
}

const char *hs_loop_text(enum hs_loop_text which)
{
	static const char *const texts[] = {
		[HS_LT_SEARCH_FIRST] = "Nothing was searched yet. Search first, then finish.",
		[HS_LT_RECALL_FIRST] =
			"Before saying that nothing is known, call recall with the key terms of the question.",
		[HS_LT_TOOL_NOT_OFFERED] =
			"There is no such tool here. Use one of the tools offered.",
		[HS_LT_GUIDANCE] =
			"These documents are up to date. When they state the answer, call answer_ready; search "
			"further only for what they lack.",
		[HS_LT_BLANKED] = "(result left out here to save room; it was read before)",
		[HS_LT_STALE] =
			"Newer memories exist that this document has not taken in; check its statements against them.",
		[HS_LT_WITHHELD] =
			"The source of this memory is not visible under the filter of this request.",
		[HS_LT_REFRESH_CONTEXT] = hs_tpl_refresh_context,
	};

	return texts[which];
}
