/* Random configurations: what a user wrote stands verbatim in blocks of its own field and nowhere else;
 * switching a setting moves nothing in front of its slot; a block is inactive exactly when its setting
 * sends nothing. */
#include "test.h"

#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "prompt/prompt.h"

#define CONFIGURATIONS 2500
#define SWITCHES 3 /* of one configuration and operation */

enum op { RETAIN, CONSOLIDATION, REFLECT, OPS };

/* What is drawn at random. Texts are NULL when unset. */
enum text_id {
	T_RETAIN_MISSION,
	T_CUSTOM,
	T_OBSERVATIONS_MISSION,
	T_REFLECT_MISSION,
	T_LANGUAGE,
	T_LABEL,
	T_DIRECTIVE,
	T_BANK_NAME,
	T_SAMPLE,
	TEXTS
};
struct draw {
	const char *mode;
	const char *text[TEXTS];
	bool causal, optional, free_form, strict, budget;
	size_t n_directives;
};

/* ---- random ---- */

static uint64_t rng = 20260304;

static unsigned roll(unsigned n)
{
	rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((rng >> 33) % n);
}

static const char *const pieces[] = {"{users}", "{{x}}", "%s", "%n%d", "\"quoted\"", "'", "\\n",
	"\n", "\n\n", "=====", "\n=====\n", "\n=======\n", "## HEADING", "\n## MISSION\n", "«»",
	"😀", "\t", "  ", "plain words", "FOCUS", "{\"facts\": []}", "\r\n", "```json\n", "# ", "-",
	"ünïcode", "json"};

/* Text with a mark that no other text of the run has, at its begin and its end. */
static const char *random_text(struct hs_pool *pool, enum text_id id)
{
	static unsigned serial;
	const char *mark = hs_pool_printf(pool, "<%d.%u>", (int)id, ++serial), *text = mark;

	for (unsigned n = roll(8); n > 0; n--)
		text = hs_pool_printf(pool, "%s%s", text, pieces[roll(HS_COUNT(pieces))]);
	text = hs_pool_printf(pool, "%s%s", text, mark);
	if (roll(4) == 0)
		text = hs_pool_printf(pool, " \n%s\n ", text);
	return text;
}

static const char *text_or_not(struct hs_pool *pool, enum text_id id)
{
	switch (roll(5)) {
	case 0:
	case 1:
		return NULL;
	case 2:
		return roll(3) ? random_text(pool, id) : " \n\t";
	default:
		return random_text(pool, id);
	}
}

static const char *random_mode(void)
{
	static const char *const modes[] = {
		"concise", "verbose", "custom", "custom", "verbatim", "chunks", "unheard-of"};

	return modes[roll(HS_COUNT(modes))];
}

static struct draw random_draw(struct hs_pool *pool)
{
	struct draw d = {.mode = random_mode(),
		.causal = roll(2),
		.optional = roll(2),
		.free_form = roll(2),
		.strict = roll(2),
		.budget = roll(2),
		.n_directives = roll(3)};

	for (int id = 0; id < T_DIRECTIVE; id++)
		d.text[id] = text_or_not(pool, (enum text_id)id);
	for (int id = T_DIRECTIVE; id < TEXTS; id++)
		d.text[id] = random_text(pool, (enum text_id)id);
	if (d.text[T_LABEL] && hs_str_blank(d.text[T_LABEL]))
		d.text[T_LABEL] = NULL;
	return d;
}

static bool set(const struct draw *d, enum text_id id)
{
	return !hs_str_blank(d->text[id]);
}

/* ---- building ---- */

static void put(json_t *o, const char *name, const char *text)
{
	if (text)
		json_object_set_new(o, name, json_string(text));
}

static struct hs_config *config_of(struct hs_pool *pool, const struct draw *d)
{
	struct hs_config *server = hs_config_defaults(pool);
	json_t *bank = hs_json_keep(pool, json_object());
	struct hs_err err = {0};

	if ((d->text[T_LANGUAGE] && hs_config_set(server, "llm_output_language",
					    d->text[T_LANGUAGE], &err) != HS_OK) ||
		hs_config_set(server, "retain_extract_causal_links", d->causal ? "true" : "false",
			&err) != HS_OK ||
		hs_config_set(server, "retain_optional_fact_dimensions",
			d->optional ? "true" : "false", &err) != HS_OK)
		fail_msg("%s", err.msg);
	put(bank, "retain_extraction_mode", d->mode);
	put(bank, "retain_mission", d->text[T_RETAIN_MISSION]);
	put(bank, "retain_custom_instructions", d->text[T_CUSTOM]);
	put(bank, "observations_mission", d->text[T_OBSERVATIONS_MISSION]);
	put(bank, "reflect_mission", d->text[T_REFLECT_MISSION]);
	json_object_set_new(bank, "entities_allow_free_form", json_boolean(d->free_form));
	if (d->text[T_LABEL])
		json_object_set_new(bank, "entity_labels",
			json_pack("[{s:s, s:s, s:[{s:s}]}]", "key", "k", "description",
				d->text[T_LABEL], "values", "value", "v"));
	return hs_config_for_bank(pool, server, bank);
}

static struct hs_prompt build(struct hs_pool *pool, const struct draw *d, enum op op)
{
	struct hs_config *cfg = config_of(pool, d);
	const char *sample = d->text[T_SAMPLE];
	struct hs_directive_text rows[] = {{"name", d->text[T_DIRECTIVE]}, {"blank", " \n"}};
	struct hs_consolidation_fact fact = {.id = "id", .text = sample};
	struct hs_retain_prompt_in retain = {.cfg = cfg,
		.chunk = sample,
		.context = sample,
		.chunk_no = 1,
		.n_chunks = 1,
		.event_us = HS_TIME_NONE,
		.strict = d->strict};
	struct hs_consolidation_prompt_in consolidation = {
		.cfg = cfg, .facts = &fact, .n_facts = 1, .free_slots = -1, .strict = d->strict};
	struct hs_reflect_prompt_in reflect = {.cfg = cfg,
		.bank_name = d->text[T_BANK_NAME],
		.mission = d->text[T_REFLECT_MISSION],
		.skepticism = 3,
		.literalism = 3,
		.empathy = 3,
		.directives = rows,
		.n_directives = d->n_directives,
		.with_models = true,
		.with_recall = true,
		.budget = d->budget ? "mid" : NULL,
		.question = sample};
	struct hs_prompt p;

	switch (op) {
	case RETAIN:
		hs_prompt_retain(pool, &retain, &p);
		break;
	case CONSOLIDATION:
		hs_prompt_consolidation(pool, &consolidation, &p);
		break;
	default:
		hs_prompt_reflect(pool, &reflect, &p);
	}
	return p;
}

/* ---- what must stand where ---- */

/* The blocks of a text: op, field or section they name ("" both: builtin of the user message). */
struct home {
	enum op op;
	const char *field, *section;
	bool always; /* it is a sample or a name, in every prompt of the operation */
};
static const struct home homes[TEXTS] = {
	[T_RETAIN_MISSION] = {RETAIN, "retain_mission", "", false},
	[T_CUSTOM] = {RETAIN, "retain_custom_instructions", "", false},
	[T_OBSERVATIONS_MISSION] = {CONSOLIDATION, "observations_mission", "", false},
	[T_REFLECT_MISSION] = {REFLECT, "reflect_mission", "", false},
	[T_LANGUAGE] = {OPS, "llm_output_language", "", false},
	[T_LABEL] = {RETAIN, "entity_labels", "", false},
	[T_DIRECTIVE] = {REFLECT, "", "directives", false},
	[T_BANK_NAME] = {REFLECT, "", "bank_identity", true},
	[T_SAMPLE] = {OPS, "", "", true},
};

static bool chunks(const struct draw *d)
{
	return !strcmp(d->mode, "chunks");
}

/* Is the text part of the prompt? */
static bool sent(const struct draw *d, enum op op, enum text_id id)
{
	if ((homes[id].op != op && homes[id].op != OPS) || (op == RETAIN && chunks(d)))
		return false;
	if (id == T_CUSTOM)
		return !strcmp(d->mode, "custom") && set(d, id);
	if (id == T_DIRECTIVE)
		return d->n_directives > 0;
	return homes[id].always || set(d, id);
}

/* As it stands in its block: a role is trimmed, labels are JSON, a fact is one line. */
static const char *shown(struct hs_pool *pool, const struct draw *d, enum op op, enum text_id id)
{
	const char *text = d->text[id];
	json_auto_t *v = NULL;
	char *line;

	if (id == T_REFLECT_MISSION)
		return hs_str_trim(pool, text);
	if (id == T_LABEL) {
		v = json_string(text);
		return hs_json_text(pool, v);
	}
	if (id != T_SAMPLE || op != CONSOLIDATION)
		return text;
	line = hs_pool_strdup(pool, text);
	for (char *s = line; *s; s++)
		*s = *s == '\n' || *s == '\r' ? ' ' : *s;
	return line;
}

/* "<id.serial>": the mark at a text's begin. */
static const char *mark_of(struct hs_pool *pool, const char *text)
{
	const char *begin = strchr(text, '<');

	return hs_pool_strndup(pool, begin, (size_t)(strchr(begin, '>') - begin) + 1);
}

static size_t texts_in(const struct hs_message *m, const struct home *home, const char *text,
	const char *mark, size_t *ret_foreign)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct hs_block *b = &m->v[i];
		bool own = !strcmp(b->field, home->field) && !strcmp(b->section, home->section);

		n += own && strstr(b->text, text);
		*ret_foreign += !own && strstr(b->text, mark);
	}
	return n;
}

static void check_texts(
	struct hs_pool *pool, const struct draw *d, enum op op, const struct hs_prompt *p)
{
	for (int i = 0; i < TEXTS; i++) {
		enum text_id id = (enum text_id)i;
		size_t foreign = 0, n;
		const char *text, *mark;

		if (!set(d, id))
			continue;
		text = shown(pool, d, op, id);
		mark = mark_of(pool, text);
		n = texts_in(&p->system, &homes[id], text, mark, &foreign) +
		    texts_in(&p->user, &homes[id], text, mark, &foreign);
		if (foreign)
			fail_msg("text %d of operation %d stands in a block of another field", i,
				op);
		if (sent(d, op, id) != (n > 0))
			fail_msg("text %d of operation %d: sent %d, in %zu blocks", i, op,
				sent(d, op, id), n);
		if (n > 1 && id != T_DIRECTIVE && id != T_SAMPLE)
			fail_msg("text %d of operation %d stands in %zu blocks", i, op, n);
	}
}

/* ---- active or not ---- */

/* The activity of a setting's blocks: -1 = it has no slot. */
static int activity(const struct draw *d, enum op op, const char *field)
{
	bool custom = !strcmp(d->mode, "custom"), verbatim = !strcmp(d->mode, "verbatim");

	if (!strcmp(field, "llm_output_language"))
		return op == RETAIN && chunks(d) ? -1 : 1;
	if (op == CONSOLIDATION)
		return strcmp(field, "observations_mission") ? -1 : 1;
	if (op == REFLECT)
		return strcmp(field, "reflect_mission") ? -1 : set(d, T_REFLECT_MISSION);
	if (chunks(d))
		return strcmp(field, "retain_extraction_mode") ? -1 : 0;
	if (!strcmp(field, "retain_mission"))
		return set(d, T_RETAIN_MISSION);
	if (!strcmp(field, "retain_custom_instructions"))
		return custom ? set(d, T_CUSTOM) : -1;
	if (!strcmp(field, "retain_extract_causal_links"))
		return verbatim ? -1 : d->causal;
	if (!strcmp(field, "retain_optional_fact_dimensions"))
		return d->optional;
	if (!strcmp(field, "entity_labels"))
		return d->text[T_LABEL] != NULL;
	if (!strcmp(field, "entities_allow_free_form"))
		return d->text[T_LABEL] ? 1 : -1;
	return strcmp(field, "retain_extraction_mode") ? -1 : 1;
}

static const char *const fields[] = {"llm_output_language", "observations_mission",
	"reflect_mission", "retain_mission", "retain_custom_instructions",
	"retain_extract_causal_links", "retain_optional_fact_dimensions", "entity_labels",
	"entities_allow_free_form", "retain_extraction_mode"};

static void check_message(struct hs_pool *pool, const struct hs_message *m)
{
	const char *whole = hs_message_text(pool, m), *at = whole;

	for (size_t i = 0; i < m->n; i++) {
		const struct hs_block *b = &m->v[i];

		assert_int_equal(b->active, *b->text != '\0');
		assert_true(!b->config || *b->field);
		assert_int_equal(strncmp(at, b->text, strlen(b->text)), 0);
		at += strlen(b->text);
		/* white space between two blocks hangs at the first */
		assert_true(!b->active || b->config || *b->section || !strchr(" \n", *b->text) ||
			    !strcmp(m->role, "user"));
	}
	assert_string_equal(at, "");
}

static void check_activity(const struct draw *d, enum op op, const struct hs_prompt *p)
{
	const struct hs_message *messages[] = {&p->system, &p->user};

	for (size_t f = 0; f < HS_COUNT(fields); f++) {
		int want = activity(d, op, fields[f]);
		size_t n = 0;

		for (size_t m = 0; m < 2; m++)
			for (size_t i = 0; i < messages[m]->n; i++)
				if (!strcmp(messages[m]->v[i].field, fields[f])) {
					n++;
					if (messages[m]->v[i].active != (want == 1))
						fail_msg("%s of operation %d: active %d, wanted %d",
							fields[f], op, messages[m]->v[i].active,
							want);
				}
		if ((n > 0) != (want >= 0))
			fail_msg("%s of operation %d: %zu blocks, wanted %d", fields[f], op, n,
				want);
	}
}

/* ---- switching ---- */

struct knob {
	const char *field, *section;
	enum text_id text; /* TEXTS: a flag */
};
static const struct knob knobs[] = {
	{"retain_mission", "", T_RETAIN_MISSION},
	{"retain_custom_instructions", "", T_CUSTOM},
	{"observations_mission", "", T_OBSERVATIONS_MISSION},
	{"reflect_mission", "", T_REFLECT_MISSION},
	{"llm_output_language", "", T_LANGUAGE},
	{"entity_labels", "", T_LABEL},
	{"retain_extract_causal_links", "", TEXTS},
	{"retain_optional_fact_dimensions", "", TEXTS},
	{"entities_allow_free_form", "", TEXTS},
	{"", "directives", TEXTS},
	{"", "bank_identity", T_BANK_NAME},
};

static struct draw turned(struct hs_pool *pool, const struct draw *d, const struct knob *k)
{
	struct draw other = *d;

	if (k->text == T_BANK_NAME)
		other.text[k->text] = random_text(pool, k->text);
	else if (k->text != TEXTS)
		other.text[k->text] =
			set(d, k->text) && roll(2) ? NULL : random_text(pool, k->text);
	else if (!strcmp(k->field, "retain_extract_causal_links"))
		other.causal = !d->causal;
	else if (!strcmp(k->field, "retain_optional_fact_dimensions"))
		other.optional = !d->optional;
	else if (!strcmp(k->field, "entities_allow_free_form"))
		other.free_form = !d->free_form;
	else
		other.n_directives = d->n_directives ? 0 : 1;
	return other;
}

/* Bytes of text in front of the first block of the setting; SIZE_MAX when there is none. */
static size_t slot(const struct hs_message *m, const struct knob *k)
{
	size_t bytes = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (!strcmp(m->v[i].field, k->field) && !strcmp(m->v[i].section, k->section))
			return bytes;
		bytes += strlen(m->v[i].text);
	}
	return SIZE_MAX;
}

static void check_front(struct hs_pool *pool, const struct hs_message *a,
	const struct hs_message *b, const struct knob *k)
{
	const char *one = hs_message_text(pool, a), *two = hs_message_text(pool, b);
	size_t at = slot(a, k), other = slot(b, k);

	if (at == SIZE_MAX && other == SIZE_MAX) {
		assert_string_equal(one, two);
		return;
	}
	if (at != SIZE_MAX && other != SIZE_MAX && k->text != T_LANGUAGE)
		assert_int_equal(at, other);
	at = at < other ? at : other;
	/* an instruction at the very end is parted from what it follows by white space */
	if (k->text == T_LANGUAGE)
		while (at > 0 && strchr(" \r\n\t", (at < strlen(one) ? one : two)[at - 1]))
			at--;
	if (strncmp(one, two, at))
		fail_msg("switching %s%s changes the %s message in front of its slot", k->field,
			k->section, a->role);
}

static void check_switch(struct hs_pool *pool, const struct draw *d, enum op op,
	const struct hs_prompt *p, const struct knob *k)
{
	struct draw other = turned(pool, d, k);
	struct hs_prompt q = build(pool, &other, op);

	check_front(pool, &p->system, &q.system, k);
	check_front(pool, &p->user, &q.user, k);
}

/* ---- the run ---- */

static void check_draw(struct hs_pool *pool, const struct draw *d)
{
	for (int i = 0; i < OPS; i++) {
		enum op op = (enum op)i;
		struct hs_prompt p = build(pool, d, op);

		check_message(pool, &p.system);
		check_message(pool, &p.user);
		check_texts(pool, d, op, &p);
		check_activity(d, op, &p);
		for (int n = 0; n < SWITCHES; n++)
			check_switch(pool, d, op, &p, &knobs[roll(HS_COUNT(knobs))]);
	}
}

static void blocks_hold_over_random_configurations(void **state)
{
	(void)state;
	for (int n = 0; n < CONFIGURATIONS; n++) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct draw d = random_draw(pool);

		check_draw(pool, &d);
	}
}

static struct hs_block block_with(const char *text)
{
	return (struct hs_block){.text = text, .field = "", .section = ""};
}

static void a_heading_is_the_first_one_cut_and_lowered(void **state)
{
	static const char *const pairs[][2] = {
		{"", ""},
		{"no heading\n#none\n", ""},
		{"text\n## WHAT TO KEEP\nx\n## SECOND\n", "What to keep"},
		{"# RULES - all of them", "Rules"},
		{"### RULES (all)\n", "Rules"},
		{"## RULES – all\n", "Rules"},
		{"## TWO-PART re-do\r\n", "Two-part re-do"},
		{"## \n", ""},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_block b;

	(void)state;
	for (size_t i = 0; i < HS_COUNT(pairs); i++) {
		b = block_with(pairs[i][0]);
		assert_string_equal(hs_block_heading(pool, &b), pairs[i][1]);
	}
	b = block_with("## MISSION\nx");
	b.config = true;
	assert_string_equal(hs_block_heading(pool, &b), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_hold_over_random_configurations),
		cmocka_unit_test(a_heading_is_the_first_one_cut_and_lowered),
	};

	return cmocka_run_group_tests_name("preview_property", tests, NULL, NULL);
}
