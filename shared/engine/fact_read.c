/* One fact of a model's reply -> struct hs_fact. Everything in it is hostile or missing. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "engine/mind_llm.h"
#include "json/json.h"

#define CAUSES_MAX 2
#define ENTITIES_MAX 200

/* A member's text; NULL when it is missing, blank or a word for "nothing". */
static const char *said(struct hs_pool *pool, json_t *fact, const char *key)
{
	const char *text = hs_json_str(fact, key);

	if (hs_str_blank(text))
		return NULL;
	text = hs_str_trim(pool, text);
	return hs_str_ieq_ascii(text, "n/a") ? NULL : text;
}

/* ---- time ---- */

/* Whole words, any case; the phrase is lower-case ASCII. */
static bool has_phrase(const char *text, const char *phrase)
{
	size_t n = strlen(phrase);

	for (const char *s = text; (s = strcasestr(s, phrase)) != NULL; s++) {
		unsigned char before = s == text ? ' ' : (unsigned char)s[-1],
			      after = (unsigned char)s[n];

		if (before < 0x80 && after < 0x80 &&
			!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", before | 0x20) &&
			(!after || !strchr("abcdefghijklmnopqrstuvwxyz0123456789_", after | 0x20)))
			return true;
	}
	return false;
}

int64_t hs_relative_day_us(struct hs_pool *pool, const char *text, int64_t event_us)
{
	static const struct {
		const char *phrase;
		int days;
	} rows[] = {
		{"last night", -1},
		{"yesterday", -1},
		{"today", 0},
		{"this morning", 0},
		{"this afternoon", 0},
		{"this evening", 0},
		{"tonight", 0},
		{"tomorrow", 1},
		{"last week", -7},
		{"this week", 0},
		{"next week", 7},
		{"last month", -30},
		{"this month", 0},
		{"next month", 30},
	};

	(void)pool;
	if (event_us == HS_TIME_NONE)
		return HS_TIME_NONE;
	for (size_t i = 0; i < HS_COUNT(rows); i++)
		if (has_phrase(text, rows[i].phrase)) {
			int64_t day = event_us - ((event_us % HS_DAY_US) + HS_DAY_US) % HS_DAY_US;

			return day + rows[i].days * HS_DAY_US;
		}
	return HS_TIME_NONE;
}

/* HS_TIME_NONE when there is no usable time; *ret_placeholder: the year says that it is none. */
static int64_t time_of(json_t *fact, const char *key, bool *ret_placeholder)
{
	const char *text = hs_json_str(fact, key);
	struct hs_civil c;
	int64_t us;

	*ret_placeholder = false;
	if (!text)
		return HS_TIME_NONE;
	*ret_placeholder = hs_str_starts(text, "0001") || hs_str_starts(text, "9999");
	if (*ret_placeholder || !hs_time_parse(text, &us))
		return HS_TIME_NONE;
	c = hs_civil_from_us(us);
	*ret_placeholder = c.year <= 1 || c.year >= 9999;
	return *ret_placeholder ? HS_TIME_NONE : us;
}

static void read_times(struct hs_pool *pool, json_t *v, int64_t event_us, struct hs_fact *f)
{
	bool no_start, no_end;

	f->occurred_start_us = f->occurred_end_us = HS_TIME_NONE;
	if (!hs_str_ieq_ascii(hs_json_str_or(v, "fact_kind", ""), "event"))
		return;
	f->occurred_start_us = time_of(v, "occurred_start", &no_start);
	f->occurred_end_us = time_of(v, "occurred_end", &no_end);
	if (f->occurred_start_us == HS_TIME_NONE)
		f->occurred_start_us = hs_relative_day_us(pool, f->text, event_us);
	if (f->occurred_end_us == HS_TIME_NONE && !no_end)
		f->occurred_end_us = f->occurred_start_us;
}

/* ---- text, kind, entities, causes ---- */

static const char *text_of(struct hs_pool *pool, json_t *v, const char *what)
{
	const char *when = said(pool, v, "when"), *who = said(pool, v, "who"),
		   *why = said(pool, v, "why");

	return hs_pool_printf(pool, "%s%s%s%s%s%s%s", what, when ? " | When: " : "",
		when ? when : "", who ? " | Involving: " : "", who ? who : "", why ? " | " : "",
		why ? why : "");
}

static bool is_experience(json_t *v)
{
	const char *type = hs_json_str_or(v, "fact_type", "");

	if (hs_str_ieq_ascii(type, "assistant"))
		return true;
	return !hs_str_ieq_ascii(type, "world") &&
	       hs_str_ieq_ascii(hs_json_str_or(v, "fact_kind", ""), "assistant");
}

static bool read_entities(struct hs_pool *pool, json_t *v, struct hs_strs *ret)
{
	json_t *list = json_object_get(v, "entities"), *e;
	size_t i;

	if (!list || json_is_null(list))
		return true;
	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, e) {
		const char *name =
			json_is_string(e) ? json_string_value(e) : hs_json_str(e, "text");

		if (!hs_str_blank(name) && ret->n < ENTITIES_MAX)
			hs_strs_add(pool, ret, hs_str_trim(pool, name));
	}
	return true;
}

static void read_causes(struct hs_pool *pool, json_t *v, size_t index, struct hs_fact *f)
{
	json_t *list = hs_json_arr(v, "causal_relations"), *c;
	size_t i;

	f->causes = HS_NEW_ARRAY(pool, int64_t, CAUSES_MAX);
	json_array_foreach(list, i, c) {
		int64_t target = hs_json_int(c, "target_index", -1);
		bool known = false;

		if (target < 0 || target >= (int64_t)index ||
			!hs_str_eq(hs_json_str(c, "relation_type"), "caused_by"))
			continue;
		for (size_t k = 0; k < f->n_causes; k++)
			known |= f->causes[k] == target;
		if (!known && f->n_causes < CAUSES_MAX)
			f->causes[f->n_causes++] = target;
	}
}

enum hs_fact_read hs_fact_from_json(struct hs_pool *pool, json_t *v, size_t index, int64_t event_us,
	bool verbatim, struct hs_fact *ret)
{
	static const char *const names[] = {"what", "factual_core", "text"};
	const char *what = NULL;
	bool named = false;

	*ret = (struct hs_fact){.text = ""};
	if (!json_is_object(v))
		return HS_FACT_MALFORMED;
	for (size_t i = 0; i < HS_COUNT(names); i++) {
		named |= json_object_get(v, names[i]) != NULL;
		if (!what)
			what = said(pool, v, names[i]);
	}
	if (!verbatim && !named)
		return HS_FACT_MALFORMED;
	if (!read_entities(pool, v, &ret->entities))
		return HS_FACT_MALFORMED;
	if (!verbatim && !what)
		return HS_FACT_EMPTY;
	ret->text = verbatim ? "" : text_of(pool, v, what);
	ret->experience = is_experience(v);
	read_times(pool, v, event_us, ret);
	if (!verbatim)
		read_causes(pool, v, index, ret);
	return HS_FACT_KEPT;
}
