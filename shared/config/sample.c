#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "config/config.h"
#include "config/internal.h"
#include "json/json.h"
#include "json/out.h"

#define SAMPLE_MAX ((size_t)1024 * 1024)

/* Plain in YAML without quotes? */
static bool plain(const char *s)
{
	if (s[0] == '\0')
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") ==
	       strlen(s);
}

static void value_text(struct hs_buf *b, const struct hs_setting *s)
{
	if (!s->def)
		return;
	hs_buf_char(b, ' ');
	if (s->type == HS_ST_LIST)
		hs_buf_printf(b, "[%s]", s->def);
	else if (s->type != HS_ST_STR || plain(s->def))
		hs_buf_str(b, s->def);
	else
		hs_json_quote(b, s->def, strlen(s->def));
}

static void limits_text(struct hs_buf *b, const struct hs_setting *s)
{
	const char *low = s->flags & HS_SF_ABOVE_MIN ? "above" : "from";

	if (s->min > s->max || (s->type != HS_ST_INT && s->type != HS_ST_NUM))
		return;
	if (s->min > -1e15)
		hs_buf_printf(b, " %s %g", low, s->min);
	if (s->max < 1e15)
		hs_buf_printf(b, " to %g", s->max);
}

static const char *type_word(const struct hs_setting *s)
{
	static const char *const words[] = {
		[HS_ST_STR] = "text",
		[HS_ST_INT] = "whole number",
		[HS_ST_NUM] = "number",
		[HS_ST_BOOL] = "true or false",
		[HS_ST_LIST] = "list",
	};

	if (s->type != HS_ST_JSON)
		return words[s->type];
	if (s->flags & HS_SF_TEXT)
		return "text or list";
	if (s->flags & HS_SF_ARRAY)
		return s->flags & HS_SF_OBJECT ? "mapping or list" : "list";
	return "mapping";
}

static void facts_text(struct hs_pool *pool, struct hs_buf *b, const struct hs_setting *s)
{
	hs_buf_str(b, "# (");
	if (s->choices)
		hs_buf_str(b, hs_str_replace(pool, s->choices, "|", ", "));
	else
		hs_buf_str(b, type_word(s));
	limits_text(b, s);
	if (s->scope == HS_SC_BANK)
		hs_buf_str(b, "; a bank may override it");
	if (s->flags & HS_SF_SECRET)
		hs_buf_printf(b, "; or %s_file", s->name);
	if (s->flags & HS_SF_NO_ENV)
		hs_buf_str(b, "; not read from the environment");
	if (s->flags & HS_SF_LATER)
		hs_buf_str(b, "; no effect yet");
	hs_buf_str(b, ")\n");
}

/* The first word of a name: settings that share it stand together. */
static size_t group_bytes(const char *name)
{
	return strcspn(name, "_");
}

char *hs_config_sample(struct hs_pool *pool)
{
	struct hs_buf *b = hs_buf_new(pool, SAMPLE_MAX);

	hs_buf_str(b,
		"# Settings of hindsight-fcgi. Every setting stands here with its default; take the # away to\n"
		"# change one. Names may be grouped: `llm: {model: x}` is `llm_model: x`. The environment\n"
		"# variable HINDSIGHT_API_<NAME> wins over this file. An unknown name stops the start.\n"
		"# A line `name:` without a value means: not set.\n");
	for (int i = 0; i < HS_S__MAX; i++) {
		const struct hs_setting *s = &hs_settings[i],
					*last = i ? &hs_settings[i - 1] : NULL;
		size_t n = group_bytes(s->name);

		if (!last || group_bytes(last->name) != n || memcmp(last->name, s->name, n) != 0)
			hs_buf_char(b, '\n');
		hs_buf_printf(b, "# %s\n", s->help);
		facts_text(pool, b, s);
		hs_buf_printf(b, "#%s:", s->name);
		value_text(b, s);
		hs_buf_char(b, '\n');
	}
	return b->data;
}
