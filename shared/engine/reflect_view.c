#include "engine/reflect_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "json/json.h"

#define SHOWN_FULL 1u
#define SHOWN_SNIPPET 2u
#define UUID_CHARS 36

static const char *const alias_words[HS_ALIAS__MAX] = {
	[HS_ALIAS_FACT] = "FACT",
	[HS_ALIAS_OBSERVATION] = "OBS",
	[HS_ALIAS_MODEL] = "MODEL",
	[HS_ALIAS_CHUNK] = "CHUNK",
};
static const struct {
	const char *key;
	enum hs_alias_kind kind;
} lists[] = {
	{"memories", HS_ALIAS_FACT},
	{"observations", HS_ALIAS_OBSERVATION},
	{"mental_models", HS_ALIAS_MODEL},
};
static const char *const time_keys[] = {
	"mentioned_at", "occurred_start", "occurred_end", "updated_at", "created_at"};

void hs_view_init(struct hs_view *view, struct hs_pool *pool)
{
	*view = (struct hs_view){.pool = pool};
}

static struct hs_alias *alias_of(struct hs_view *view, enum hs_alias_kind kind, const char *id)
{
	struct hs_alias_list *l = &view->kinds[kind];

	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].id, id) == 0)
			return &l->v[i];
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;

		l->v = hs_pool_regrow(view->pool, l->v, l->n * sizeof(*l->v), cap * sizeof(*l->v));
		l->cap = cap;
	}
	l->v[l->n] = (struct hs_alias){
		.id = hs_pool_strdup(view->pool, id),
		.alias = hs_pool_printf(view->pool, "%s~%zu", alias_words[kind], l->n + 1),
	};
	return &l->v[l->n++];
}

const char *hs_view_alias(struct hs_view *view, enum hs_alias_kind kind, const char *id)
{
	return alias_of(view, kind, id)->alias;
}

/* An alias at the start of s: its id, and its length in *ret_len. NULL when there is none. */
static const char *alias_at(const struct hs_view *view, const char *s, size_t *ret_len)
{
	for (int kind = 0; kind < HS_ALIAS__MAX; kind++) {
		size_t word = strlen(alias_words[kind]), n = 0, len = word + 1;

		if (strncmp(s, alias_words[kind], word) != 0 || s[word] != '~' || s[len] < '1' ||
			s[len] > '9')
			continue;
		for (; s[len] >= '0' && s[len] <= '9'; len++)
			n = n > view->kinds[kind].n ? n : n * 10 + (size_t)(s[len] - '0');
		if (n > view->kinds[kind].n)
			return NULL;
		*ret_len = len;
		return view->kinds[kind].v[n - 1].id;
	}
	return NULL;
}

/* "2026-06-12 11:17"; what cannot be read stays. */
static json_t *short_time(const char *text)
{
	char out[HS_TIME_TEXT];
	int64_t us;

	if (!hs_time_parse(text, &us))
		return json_string(text);
	hs_time_format(us, out);
	out[10] = ' ';
	out[16] = '\0';
	return json_string(out);
}

static void shrink_times(json_t *entry)
{
	for (size_t i = 0; i < HS_COUNT(time_keys); i++) {
		const char *s = hs_json_str(entry, time_keys[i]);

		if (s)
			json_object_set_new(entry, time_keys[i], short_time(s));
	}
	if (hs_str_eq(hs_json_str(entry, "occurred_start"), hs_json_str(entry, "occurred_end")))
		json_object_del(entry, "occurred_end");
}

static void alias_members(struct hs_view *view, json_t *array)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *id = json_string_value(json_array_get(array, i));

		if (id)
			json_array_set_new(
				array, i, json_string(hs_view_alias(view, HS_ALIAS_FACT, id)));
	}
}

/* One entry of a list: shown in short, or only named because the same list showed it before. */
static void show_entry(
	struct hs_view *view, enum hs_alias_kind kind, json_t *entry, json_t *list, json_t *again)
{
	const char *id = hs_json_str(entry, "id");
	unsigned form = json_object_get(entry, "snippet") ? SHOWN_SNIPPET : SHOWN_FULL;
	struct hs_alias *a = id ? alias_of(view, kind, id) : NULL;
	json_t *copy;

	if (a && (a->shown & form)) {
		json_array_append_new(again, json_string(a->alias));
		return;
	}
	copy = json_deep_copy(entry);
	if (a) {
		a->shown |= form;
		json_object_set_new(copy, "id", json_string(a->alias));
	}
	if (kind == HS_ALIAS_OBSERVATION)
		json_object_del(copy, "fact_type");
	shrink_times(copy);
	alias_members(view, hs_json_arr(copy, "source_fact_ids"));
	json_array_append_new(list, copy);
}

static json_t *show_list(
	struct hs_view *view, enum hs_alias_kind kind, json_t *entries, json_t *again)
{
	json_t *list = json_array(), *entry;
	size_t i;

	json_array_foreach(entries, i, entry)
		show_entry(view, kind, entry, list, again);
	return list;
}

static json_t *show_chunks(struct hs_view *view, json_t *chunks)
{
	json_t *shown = json_object(), *chunk;
	const char *id;

	json_object_foreach(chunks, id, chunk) {
		json_t *copy = json_copy(chunk);

		json_object_del(copy, "chunk_index");
		if (!hs_json_bool(copy, "truncated", false))
			json_object_del(copy, "truncated");
		json_object_set_new(shown, hs_view_alias(view, HS_ALIAS_CHUNK, id), copy);
	}
	return shown;
}

static json_t *show_sources(struct hs_view *view, json_t *sources)
{
	json_t *shown = json_object(), *fact;
	const char *id;

	json_object_foreach(sources, id, fact) {
		json_t *copy = json_deep_copy(fact);
		const char *alias = hs_view_alias(view, HS_ALIAS_FACT, id);

		if (json_object_get(copy, "id"))
			json_object_set_new(copy, "id", json_string(alias));
		shrink_times(copy);
		json_object_set_new(shown, alias, copy);
	}
	return shown;
}

static json_t *show_value(struct hs_view *view, const char *key, json_t *value, json_t *already)
{
	for (size_t i = 0; i < HS_COUNT(lists); i++) {
		json_t *again, *list;

		if (strcmp(key, lists[i].key) != 0 || !json_is_array(value))
			continue;
		again = json_array();
		list = show_list(view, lists[i].kind, value, again);
		if (json_array_size(again) > 0)
			json_object_set(already, key, again);
		json_decref(again);
		return list;
	}
	if (strcmp(key, "chunks") == 0 && json_is_object(value))
		return show_chunks(view, value);
	if (strcmp(key, "source_facts") == 0 && json_is_object(value))
		return show_sources(view, value);
	return json_incref(value);
}

json_t *hs_view_show(struct hs_view *view, json_t *result)
{
	json_t *shown, *already, *value;
	const char *key;

	if (!json_is_object(result) || json_object_get(result, "error"))
		return result;
	shown = hs_json_keep(view->pool, json_object());
	already = json_object();
	json_object_foreach(result, key, value) {
		if (strcmp(key, "count") != 0)
			json_object_set_new(shown, key, show_value(view, key, value, already));
	}
	if (json_object_size(already) > 0)
		json_object_set(shown, "already_shown", already);
	json_decref(already);
	return shown;
}

static json_t *args_value(const struct hs_view *view, json_t *v)
{
	const char *s = json_string_value(v), *id;
	json_t *list, *member;
	size_t len, i;

	if (s) {
		id = alias_at(view, s, &len);
		return id && s[len] == '\0' ? json_string(id) : json_incref(v);
	}
	if (!json_is_array(v))
		return json_incref(v);
	list = json_array();
	json_array_foreach(v, i, member)
		json_array_append_new(list, args_value(view, member));
	return list;
}

json_t *hs_view_args(const struct hs_view *view, json_t *args)
{
	json_t *copy = hs_json_keep(view->pool, json_object()), *v;
	const char *key;

	json_object_foreach(args, key, v) {
		bool prose = strcmp(key, "query") == 0 || strcmp(key, "reason") == 0;

		json_object_set_new(copy, key, prose ? json_incref(v) : args_value(view, v));
	}
	return copy;
}

static bool word_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == '~';
}

const char *hs_view_resolve(const struct hs_view *view, const char *text)
{
	const char *mark = strchr(text, '~'), *from = text, *s = text;
	struct hs_buf *out;

	if (!mark)
		return text;
	out = hs_buf_new(view->pool, HS_PROMPT_MAX);
	while (*s) {
		size_t len = 0;
		const char *id = s == text || !word_byte(s[-1]) ? alias_at(view, s, &len) : NULL;

		if (!id || word_byte(s[len])) {
			s++;
			continue;
		}
		hs_buf_add(out, from, (size_t)(s - from));
		hs_buf_str(out, id);
		s += len;
		from = s;
	}
	hs_buf_str(out, from);
	return out->failed ? text : out->data;
}

static bool hex_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool uuid_at(const char *s)
{
	for (int i = 0; i < UUID_CHARS; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' : !hex_byte(s[i]))
			return false;
	}
	return true;
}

/* A UUID that stands by itself. */
static const char *next_uuid(const char *text, const char *s)
{
	for (; *s; s++) {
		if (s > text && (word_byte(s[-1]) || s[-1] == '-'))
			continue;
		if (uuid_at(s) && !word_byte(s[UUID_CHARS]) && s[UUID_CHARS] != '-')
			return s;
	}
	return NULL;
}

bool hs_view_has_uuid(const char *text)
{
	return next_uuid(text, text) != NULL;
}

static const char *lower_uuid(struct hs_pool *pool, const char *s)
{
	return hs_str_lower_ascii(pool, hs_pool_strndup(pool, s, UUID_CHARS));
}

/* All UUIDs of the sources, inside other words too (chunk ids), sorted. */
static struct hs_strs known_uuids(struct hs_pool *pool, const struct hs_strs *sources)
{
	struct hs_strs all = {0};

	for (size_t i = 0; i < sources->n; i++)
		for (const char *s = sources->v[i]; *s; s++)
			if (uuid_at(s)) {
				hs_strs_add(pool, &all, lower_uuid(pool, s));
				s += UUID_CHARS - 1;
			}
	return hs_strs_sorted_set(pool, &all);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *hs_view_verify(struct hs_pool *pool, const char *text, const struct hs_strs *sources)
{
	const char *found = next_uuid(text, text), *from = text;
	struct hs_strs known;
	struct hs_buf *out;

	if (!found)
		return text;
	known = known_uuids(pool, sources);
	out = hs_buf_new(pool, HS_PROMPT_MAX);
	for (; found; found = next_uuid(text, found + UUID_CHARS)) {
		const char *id = lower_uuid(pool, found);

		hs_buf_add(out, from, (size_t)(found - from));
		if (known.n > 0 && bsearch(&id, known.v, known.n, sizeof(id), compare))
			hs_buf_add(out, found, UUID_CHARS);
		else
			hs_buf_str(out, "[unverified id]");
		from = found + UUID_CHARS;
	}
	hs_buf_str(out, from);
	return out->failed ? text : out->data;
}
