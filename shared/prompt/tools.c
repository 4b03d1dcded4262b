#include "prompt/build.h"

static json_t *text_param(const char *about)
{
	return json_pack("{s:s, s:s}", "type", "string", "description", about);
}

static json_t *int_param(const char *about)
{
	return json_pack("{s:s, s:s}", "type", "integer", "description", about);
}

static json_t *list_param(const char *about)
{
	return json_pack("{s:s, s:{s:s}, s:s}", "type", "array", "items", "type", "string",
		"description", about);
}

static json_t *found_param(void)
{
	return json_pack("{s:s, s:s}", "type", "boolean", "description", hs_tpl_tool_answer_found);
}

/* Steals properties and required. */
static void tool_add(
	json_t *tools, const char *name, const char *about, json_t *properties, json_t *required)
{
	json_array_append_new(tools, json_pack("{s:s, s:s, s:{s:s, s:o, s:o}}", "name", name,
					     "description", about, "parameters", "type", "object",
					     "properties", properties, "required", required));
}

static void model_tools(struct hs_pool *pool, json_t *tools, bool with_recall)
{
	tool_add(tools, "search_mental_models",
		hs_prompt_cat(pool, hs_tpl_tool_search_mental_models, " ",
			with_recall ? hs_tpl_tool_stale_recall : hs_tpl_tool_stale_observations,
			NULL),
		json_pack("{s:o, s:o, s:o}", "reason", text_param(hs_tpl_tool_reason), "query",
			text_param(hs_tpl_tool_query), "max_results",
			int_param(hs_tpl_tool_max_results)),
		json_pack("[s, s]", "reason", "query"));
	tool_add(tools, "read_mental_models", hs_tpl_tool_read_mental_models,
		json_pack("{s:o, s:o, s:o}", "reason", text_param(hs_tpl_tool_reason),
			"mental_model_ids", list_param(hs_tpl_tool_model_ids), "max_tokens",
			int_param(hs_tpl_tool_models_max_tokens)),
		json_pack("[s, s]", "reason", "mental_model_ids"));
}

static void observation_tool(json_t *tools, bool with_recall)
{
	tool_add(tools, "search_observations",
		with_recall ? hs_tpl_tool_search_observations
			    : hs_tpl_tool_search_observations_only,
		json_pack("{s:o, s:o, s:o}", "reason", text_param(hs_tpl_tool_reason), "query",
			text_param(hs_tpl_tool_query), "max_tokens",
			int_param(hs_tpl_tool_observations_max_tokens)),
		json_pack("[s, s]", "reason", "query"));
}

static void recall_tool(json_t *tools)
{
	tool_add(tools, "recall", hs_tpl_tool_recall,
		json_pack("{s:o, s:o, s:o, s:o}", "reason", text_param(hs_tpl_tool_reason), "query",
			text_param(hs_tpl_tool_query), "max_tokens",
			int_param(hs_tpl_tool_recall_max_tokens), "max_chunk_tokens",
			int_param(hs_tpl_tool_recall_max_chunk_tokens)),
		json_pack("[s, s]", "reason", "query"));
}

static void expand_tool(json_t *tools)
{
	tool_add(tools, "expand", hs_tpl_tool_expand,
		json_pack("{s:o, s:o, s:{s:s, s:[s, s], s:s}}", "reason",
			text_param(hs_tpl_tool_reason), "memory_ids",
			list_param(hs_tpl_tool_memory_ids_expand), "depth", "type", "string",
			"enum", "chunk", "document", "description", hs_tpl_tool_depth),
		json_pack("[s, s, s]", "reason", "memory_ids", "depth"));
}

static json_t *document_param(const char *about)
{
	json_t *section = json_pack("{s:s, s:{s:o, s:o, s:o}, s:[s, s, s]}", "type", "object",
		"properties", "heading", text_param(hs_tpl_tool_heading), "level",
		int_param(hs_tpl_tool_level), "blocks", list_param(hs_tpl_tool_blocks), "required",
		"heading", "level", "blocks");

	return json_pack("{s:s, s:s, s:{s:{s:s, s:o}}, s:[s]}", "type", "object", "description",
		about, "properties", "sections", "type", "array", "items", section, "required",
		"sections");
}

static void done_tool(struct hs_pool *pool, json_t *tools, const struct hs_reflect_prompt_in *in)
{
	const char *language = hs_output_language(in->cfg);
	const char *rules = hs_directive_list(pool, in);
	const char *about = hs_prompt_cat(pool,
		in->document ? hs_tpl_tool_document : hs_tpl_tool_answer, language ? "" : " ",
		language ? "" : hs_tpl_tool_answer_language, *rules ? " " : "",
		*rules ? hs_tpl_tool_directives : "", *rules ? "\n" : "", rules, NULL);
	json_t *properties = json_object(), *required = json_array();

	if (in->document)
		json_object_set_new(properties, "document", document_param(about));
	else
		json_object_set_new(properties, "answer", text_param(about));
	json_array_append_new(required, json_string(in->document ? "document" : "answer"));
	json_object_set_new(properties, "memory_ids", list_param(hs_tpl_tool_memory_ids));
	json_object_set_new(
		properties, "mental_model_ids", list_param(hs_tpl_tool_mental_model_ids));
	json_object_set_new(properties, "observation_ids", list_param(hs_tpl_tool_observation_ids));
	json_object_set_new(properties, "answer_found", found_param());
	json_array_append_new(required, json_string("answer_found"));
	if (*rules) {
		json_object_set_new(properties, "directive_compliance",
			text_param(hs_prompt_cat(pool, hs_tpl_tool_compliance, "\n", rules, NULL)));
		json_array_append_new(required, json_string("directive_compliance"));
	}
	tool_add(tools, "done",
		hs_prompt_cat(pool, hs_tpl_tool_done, language ? " " : "",
			language ? hs_output_language_text(pool, language) : "", NULL),
		properties, required);
}

json_t *hs_prompt_reflect_tools(struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	json_t *tools = json_array();

	if (in->with_models)
		model_tools(pool, tools, in->with_recall);
	if (in->with_observations)
		observation_tool(tools, in->with_recall);
	if (in->with_recall)
		recall_tool(tools);
	if (in->with_expand)
		expand_tool(tools);
	tool_add(tools, "answer_ready",
		hs_prompt_cat(pool, hs_tpl_tool_answer_ready, " ",
			in->with_recall ? hs_tpl_tool_absence_recall : hs_tpl_tool_absence_search,
			NULL),
		json_pack("{s:o}", "answer_found", found_param()),
		json_pack("[s]", "answer_found"));
	done_tool(pool, tools, in);
	return tools;
}

json_t *hs_prompt_done_tool(struct hs_pool *pool, const struct hs_reflect_prompt_in *in)
{
	json_t *tools = json_array();

	done_tool(pool, tools, in);
	return tools;
}
