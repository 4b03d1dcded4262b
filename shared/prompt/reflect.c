#include "base/limits.h"
#include "prompt/build.h"

static bool traits_plain(const struct hs_reflect_prompt_in *in)
{
	return in->skepticism == 3 && in->literalism == 3 && in->empathy == 3;
}

static const char *trait(const char *const levels[6], int64_t v)
{
	return levels[v < 1 ? 1 : v > 5 ? 5 : v];
}

static const char *disposition_sentences(
	struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	static const char *const skepticism[] = {"", hs_tpl_reflect_skepticism_1,
		hs_tpl_reflect_skepticism_2, hs_tpl_reflect_skepticism_3,
		hs_tpl_reflect_skepticism_4, hs_tpl_reflect_skepticism_5};
	static const char *const literalism[] = {"", hs_tpl_reflect_literalism_1,
		hs_tpl_reflect_literalism_2, hs_tpl_reflect_literalism_3,
		hs_tpl_reflect_literalism_4, hs_tpl_reflect_literalism_5};
	static const char *const empathy[] = {"", hs_tpl_reflect_empathy_1,
		hs_tpl_reflect_empathy_2, hs_tpl_reflect_empathy_3, hs_tpl_reflect_empathy_4,
		hs_tpl_reflect_empathy_5};

	if (traits_plain(in))
		return "";
	return hs_prompt_cat(pool, " ", trait(skepticism, in->skepticism), " ",
		trait(literalism, in->literalism), " ", trait(empathy, in->empathy), NULL);
}

static const char *disposition_line(struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	return hs_pool_printf(pool,
		"Disposition (1 to 5): skepticism %lld, literalism %lld, empathy %lld.",
		(long long)in->skepticism, (long long)in->literalism, (long long)in->empathy);
}

static void directives(
	struct hs_pool *pool, struct hs_message *m, const struct hs_reflect_prompt_in *in)
{
	const char *list = hs_directive_list(pool, in);

	hs_block_section(pool, m, "directives",
		*list ? hs_prompt_cat(pool, hs_tpl_reflect_rules_heading, "\n", list, HS_GAP, NULL)
		      : NULL);
}

static void reminder(
	struct hs_pool *pool, struct hs_message *m, const struct hs_reflect_prompt_in *in)
{
	const char *list = hs_directive_list(pool, in);

	if (*list)
		hs_block_section(pool, m, "directives",
			hs_prompt_cat(
				pool, hs_tpl_reflect_reminder_heading, "\n", list, HS_GAP, NULL));
}

/* The mission takes the place of the default role, and stands nowhere else. */
static void role(struct hs_pool *pool, struct hs_message *m, const struct hs_reflect_prompt_in *in,
	const char *default_role)
{
	bool set = !hs_str_blank(in->mission);

	hs_block_setting(pool, m, in->cfg, HS_S_reflect_mission,
		set ? hs_prompt_cat(pool, hs_str_trim(pool, in->mission), HS_GAP, NULL) : NULL);
	m->v[m->n - 1].value = set ? in->mission : NULL;
	if (!set)
		hs_block_builtin(pool, m, hs_prompt_cat(pool, default_role, HS_GAP, NULL));
}

static void default_language(
	struct hs_pool *pool, struct hs_message *m, const struct hs_reflect_prompt_in *in)
{
	if (!hs_output_language(in->cfg))
		hs_block_setting(pool, m, in->cfg, HS_S_llm_output_language,
			hs_prompt_cat(pool, hs_tpl_reflect_language, HS_GAP, NULL));
}

static void output_language(
	struct hs_pool *pool, struct hs_message *m, const struct hs_reflect_prompt_in *in)
{
	const char *language = hs_output_language(in->cfg);

	if (language)
		hs_block_setting(pool, m, in->cfg, HS_S_llm_output_language,
			hs_output_language_text(pool, language));
}

/* What stands between a user message's text and the output language behind it. */
static const char *end_gap(const struct hs_reflect_prompt_in *in)
{
	return hs_output_language(in->cfg) ? HS_GAP : "";
}

/* Numbered lines, one for each that applies. */
struct steps {
	struct hs_buf *b;
	int n;
};

static void step(struct steps *s, bool applies, const char *text)
{
	if (!applies)
		return;
	hs_buf_printf(s->b, "%d. ", ++s->n);
	hs_buf_str(s->b, text);
	hs_buf_char(s->b, '\n');
}

static const char *levels(struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	struct steps s = {.b = hs_buf_new(pool, HS_PROMPT_MAX)};

	hs_buf_str(s.b, hs_tpl_reflect_levels_heading);
	hs_buf_char(s.b, '\n');
	step(&s, in->with_models, hs_tpl_reflect_level_models);
	step(&s, in->with_observations,
		in->with_recall ? hs_tpl_reflect_level_observations
				: hs_tpl_reflect_level_observations_last);
	step(&s, in->with_recall, hs_tpl_reflect_level_recall);
	hs_buf_str(s.b, hs_tpl_reflect_levels_rules);
	hs_buf_char(s.b, '\n');
	if (s.n > 1) {
		hs_buf_str(s.b, hs_tpl_reflect_levels_down);
		hs_buf_char(s.b, '\n');
	}
	hs_buf_str(s.b, in->with_recall ? hs_tpl_reflect_levels_absence_recall
					: hs_tpl_reflect_levels_absence_other);
	return s.b->data;
}

static const char *workflow(struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	struct steps s = {.b = hs_buf_new(pool, HS_PROMPT_MAX)};

	hs_buf_str(s.b, hs_tpl_reflect_workflow_heading);
	hs_buf_char(s.b, '\n');
	step(&s, in->with_models,
		"Search the standing documents; read those by id whose snippet looks right.");
	step(&s, in->with_observations, "Search the observations for what is still open.");
	step(&s, in->with_recall,
		"Recall single facts for details, for what is new, and to check what is stale.");
	step(&s, in->with_expand,
		"Expand a memory only when its wording or its surroundings matter.");
	step(&s, true,
		"Call answer_ready as soon as the results state the answer, or all levels are searched.");
	step(&s, true, "When you are asked for the answer, call done.");
	hs_buf_char(s.b, '\n');
	return s.b->data;
}

static const char *depth(const char *budget)
{
	static const struct {
		const char *name, *text;
	} depths[] = {
		{"low", hs_tpl_reflect_depth_low},
		{"mid", hs_tpl_reflect_depth_mid},
		{"high", hs_tpl_reflect_depth_high},
	};

	for (size_t i = 0; budget && i < HS_COUNT(depths); i++)
		if (hs_str_eq(depths[i].name, budget))
			return depths[i].text;
	return NULL;
}

static void add(struct hs_pool *pool, struct hs_message *m, const char *text)
{
	if (text)
		hs_block_builtin(pool, m, hs_prompt_cat(pool, text, HS_GAP, NULL));
}

static void system_message(
	struct hs_pool *pool, struct hs_message *m, const struct hs_reflect_prompt_in *in)
{
	add(pool, m, hs_tpl_reflect_only_retrieved);
	directives(pool, m, in);
	role(pool, m, in, hs_tpl_reflect_role_default);
	add(pool, m, hs_tpl_reflect_task);
	default_language(pool, m, in);
	add(pool, m, hs_tpl_reflect_principles);
	add(pool, m, levels(pool, in));
	add(pool, m, hs_tpl_reflect_queries);
	add(pool, m, depth(in->budget));
	hs_block_builtin(pool, m, workflow(pool, in));
	add(pool, m, in->document ? hs_tpl_reflect_output_document : hs_tpl_reflect_output_answer);
	hs_block_time(pool, m, in->now_us);
	hs_block_section(pool, m, "bank_identity",
		hs_prompt_cat(pool, hs_tpl_reflect_bank, " ", in->bank_name ? in->bank_name : "",
			HS_GAP, NULL));
	hs_block_section(pool, m, "disposition",
		hs_prompt_cat(pool, disposition_line(pool, in), disposition_sentences(pool, in),
			HS_GAP, NULL));
	if (!hs_str_blank(in->extra_context))
		hs_block_builtin(pool, m,
			hs_prompt_cat(pool, hs_tpl_reflect_context_heading, "\n", in->extra_context,
				HS_GAP, NULL));
	reminder(pool, m, in);
}

void hs_prompt_reflect(
	struct hs_pool *pool, const struct hs_reflect_prompt_in *in, struct hs_prompt *ret)
{
	*ret = (struct hs_prompt){.system = {.role = "system"}, .user = {.role = "user"}};
	system_message(pool, &ret->system, in);
	hs_block_builtin(pool, &ret->user, hs_prompt_cat(pool, in->question, end_gap(in), NULL));
	output_language(pool, &ret->user, in);
}

static const char *length_hint(struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	if (in->max_tokens <= 0)
		return "";
	return hs_pool_printf(pool, "Length: at most about %lld tokens; come to a clean end.",
		(long long)in->max_tokens);
}

const char *hs_prompt_closing(struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	const char *language = hs_output_language(in->cfg);
	const char *hint = length_hint(pool, in);

	return hs_prompt_cat(pool, hs_tpl_closing_head, " ",
		in->document ? hs_tpl_closing_document : hs_tpl_closing_answer, HS_GAP,
		"Question: ", in->question, HS_GAP, hs_tpl_closing_found, *hint ? " " : "", hint,
		language ? HS_GAP : "", language ? hs_output_language_text(pool, language) : "",
		NULL);
}

/* System message of the calls that write an answer without tools. */
static void synthesis_system(
	struct hs_pool *pool, struct hs_message *m, const struct hs_reflect_prompt_in *in)
{
	directives(pool, m, in);
	hs_block_builtin(
		pool, m, hs_prompt_cat(pool, hs_tpl_synthesis_only_retrieved, HS_GAP, NULL));
	role(pool, m, in, hs_tpl_synthesis_role_default);
	hs_block_builtin(pool, m, hs_prompt_cat(pool, hs_tpl_synthesis_rules, HS_GAP, NULL));
	default_language(pool, m, in);
	reminder(pool, m, in);
	hs_block_time(pool, m, in->now_us);
}

static void synthesis_user(struct hs_pool *pool, struct hs_message *m,
	const struct hs_reflect_prompt_in *in, const char *heading, const struct hs_strs *parts,
	const char *fence, const char *instructions)
{
	struct hs_buf *b = hs_buf_new(pool, 2 * HS_PROMPT_MAX);
	const char *hint = length_hint(pool, in);

	hs_block_section(pool, m, "bank_identity",
		hs_prompt_cat(pool, hs_tpl_reflect_bank, " ", in->bank_name ? in->bank_name : "",
			"\n", NULL));
	hs_block_section(pool, m, "disposition",
		hs_prompt_cat(pool, disposition_line(pool, in), HS_GAP, NULL));
	if (!hs_str_blank(in->extra_context))
		hs_block_builtin(pool, m,
			hs_prompt_cat(pool, hs_tpl_reflect_context_heading, "\n", in->extra_context,
				HS_GAP, NULL));
	hs_buf_str(b, heading);
	hs_buf_char(b, '\n');
	for (size_t i = 0; i < parts->n; i++) {
		hs_buf_str(b, fence);
		hs_buf_char(b, '\n');
		hs_buf_str(b, parts->v[i]);
		hs_buf_str(b, "\n```\n\n");
	}
	if (!parts->n) {
		hs_buf_str(b, hs_tpl_synthesis_no_data);
		hs_buf_str(b, HS_GAP);
	}
	hs_block_builtin(pool, m,
		hs_prompt_cat(pool, b->data, "## QUESTION\n", in->question, HS_GAP, instructions,
			*hint ? " " : "", hint, end_gap(in), NULL));
	output_language(pool, m, in);
}

void hs_prompt_synthesis(struct hs_pool *pool, const struct hs_reflect_prompt_in *in,
	const struct hs_strs *data, struct hs_prompt *ret)
{
	*ret = (struct hs_prompt){.system = {.role = "system"}, .user = {.role = "user"}};
	synthesis_system(pool, &ret->system, in);
	synthesis_user(
		pool, &ret->user, in, "## DATA", data, "```json", hs_tpl_synthesis_instructions);
}

void hs_prompt_claims(struct hs_pool *pool, const struct hs_reflect_prompt_in *in, const char *part,
	struct hs_prompt *ret)
{
	*ret = (struct hs_prompt){.system = {.role = "system"}, .user = {.role = "user"}};
	hs_block_builtin(pool, &ret->system, hs_prompt_cat(pool, hs_tpl_claims_task, HS_GAP, NULL));
	default_language(pool, &ret->system, in);
	hs_block_builtin(pool, &ret->user,
		hs_prompt_cat(pool, "## DATA\n```json\n", part, "\n```\n\n## QUESTION\n",
			in->question, end_gap(in), NULL));
	output_language(pool, &ret->user, in);
}

void hs_prompt_reduce(struct hs_pool *pool, const struct hs_reflect_prompt_in *in,
	const struct hs_strs *claims, struct hs_prompt *ret)
{
	*ret = (struct hs_prompt){.system = {.role = "system"}, .user = {.role = "user"}};
	synthesis_system(pool, &ret->system, in);
	synthesis_user(pool, &ret->user, in,
		"## DATA\nNotes, one fenced section for each part:", claims, "```",
		hs_tpl_reduce_instructions);
}

void hs_prompt_rewrite(struct hs_pool *pool, const struct hs_reflect_prompt_in *in,
	const char *answer, struct hs_prompt *ret)
{
	*ret = (struct hs_prompt){.system = {.role = "system"}, .user = {.role = "user"}};
	directives(pool, &ret->system, in);
	hs_block_builtin(
		pool, &ret->system, in->document ? hs_tpl_rewrite_document : hs_tpl_rewrite_task);
	hs_block_builtin(pool, &ret->user,
		hs_prompt_cat(pool,
			hs_pool_printf(pool,
				"Shorten this to at most about %lld tokens; come to a clean end.",
				(long long)in->max_tokens),
			in->document ? " Give the json object only." : "", HS_GAP, answer,
			end_gap(in), NULL));
	output_language(pool, &ret->user, in);
}
