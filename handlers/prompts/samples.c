/* What stands in the place of a bank's data: fixed, in «…» so that nobody takes it for prompt text. */
#include "prompts.h"

#include "base/clock.h"
#include "engine/reflect_prompt.h"
#include "json/json.h"
#include "llm/llm.h"

#define CHUNK "«the text to remember: one chunk of what was retained»"
#define CONTEXT "«the context given with the text»"
#define QUESTION "«the question asked»"
#define FACT_ID "«id of a new fact»"
#define FACT "«a new fact about the subject»"
#define OBSERVATION_ID "«id of an observation»"
#define OBSERVATION "«an observation about the subject»"
#define SOURCE "«an earlier fact about the subject»"

static void retain(
	struct hs_ctx *c, const struct hs_config *cfg, bool strict, struct hs_prompt *ret)
{
	struct hs_retain_prompt_in in = {
		.cfg = cfg,
		.chunk = CHUNK,
		.context = CONTEXT,
		.chunk_no = 1,
		.n_chunks = 1,
		.event_us = hs_now_us(),
		.strict = strict,
	};

	hs_prompt_retain(c->pool, &in, ret);
}

static json_t *observations(struct hs_pool *pool, const char *when)
{
	return hs_json_keep(
		pool, json_pack("[{s:s, s:s, s:i, s:s, s:[{s:s, s:s}]}]", "id", OBSERVATION_ID,
			      "text", OBSERVATION, "proof_count", 1, "mentioned_at", when,
			      "source_memories", "text", SOURCE, "mentioned_at", when));
}

static void consolidation(
	struct hs_ctx *c, const struct hs_config *cfg, bool strict, struct hs_prompt *ret)
{
	int64_t now_us = hs_now_us();
	struct hs_consolidation_fact fact = {
		.id = FACT_ID,
		.text = FACT,
		.occurred_start_us = HS_TIME_NONE,
		.occurred_end_us = HS_TIME_NONE,
		.mentioned_us = now_us,
	};
	struct hs_consolidation_prompt_in in = {
		.cfg = cfg,
		.facts = &fact,
		.n_facts = 1,
		.observations = observations(c->pool, hs_time_text(c->pool, now_us)),
		.free_slots = -1,
		.strict = strict,
	};

	hs_prompt_consolidation(c->pool, &in, ret);
}

/* At its maximum: every tool, the directives that hold for all, nothing of a request. */
static enum hs_rc reflect(struct hs_ctx *c, const struct preview *p, const struct hs_config *cfg,
	struct hs_prompt *ret, struct hs_err *err)
{
	struct hs_reflect_prompt_in in = hs_reflect_prompt_of(p->bank, p->bank_cfg);
	struct hs_scope untagged = hs_scope_all();
	struct hs_directive *rows;
	size_t n;

	untagged.match = HS_EXACT;
	untagged.plus_untagged = true;
	HS_TRY(hs_directives_load(c->db, c->pool, p->bank->bank_no, &untagged, &rows, &n, err));
	hs_reflect_prompt_directives(c->pool, rows, n, &in);
	in.cfg = cfg;
	in.question = QUESTION;
	in.now_us = hs_now_us();
	hs_prompt_reflect(c->pool, &in, ret);
	return HS_OK;
}

/* The builder sees what a prompt may show and no more. */
static const struct hs_config *prompt_fields(struct hs_pool *pool, const struct hs_config *cfg)
{
	static const enum hs_setting_id ids[] = {
		HS_S_llm_output_language,
		HS_S_retain_extraction_mode,
		HS_S_retain_mission,
		HS_S_retain_custom_instructions,
		HS_S_retain_extract_causal_links,
		HS_S_retain_optional_fact_dimensions,
		HS_S_entity_labels,
		HS_S_entities_allow_free_form,
		HS_S_observations_mission,
		HS_S_reflect_mission,
	};

	return hs_config_only(pool, cfg, ids, HS_COUNT(ids));
}

enum hs_rc preview_build(struct hs_ctx *c, struct preview *p, struct hs_err *err)
{
	const struct hs_config *cfg = prompt_fields(c->pool, p->strategy.cfg);

	switch (p->operation) {
	case PREVIEW_RETAIN:
		retain(c, cfg, hs_llm_strict(p->strategy.cfg, "retain"), &p->prompt);
		return HS_OK;
	case PREVIEW_CONSOLIDATION:
		consolidation(c, cfg, hs_llm_strict(p->strategy.cfg, "consolidation"), &p->prompt);
		return HS_OK;
	default:
		return reflect(c, p, cfg, &p->prompt, err);
	}
}
