/*
 * templates - the wording of the prompts, made from the files of templates/ at build time.
 *
 * Floor:   prompt. Texts have no white space at their end; the builder separates blocks.
 */
#ifndef HS_PROMPT_TEMPLATES_H
#define HS_PROMPT_TEMPLATES_H

/* templates/retain.txt */
extern const char hs_tpl_retain_task_concise[];
extern const char hs_tpl_retain_task_verbose[];
extern const char hs_tpl_retain_task_verbatim[];
extern const char hs_tpl_retain_language[];
extern const char hs_tpl_retain_guidelines_concise[];
extern const char hs_tpl_retain_guidelines_verbose[];
extern const char hs_tpl_retain_guidelines_verbatim[];
extern const char hs_tpl_retain_heading_keep[];
extern const char hs_tpl_retain_heading_give[];
extern const char hs_tpl_retain_fields_what[];
extern const char hs_tpl_retain_fields_what_verbose[];
extern const char hs_tpl_retain_fields_when_where_who[];
extern const char hs_tpl_retain_fields_why[];
extern const char hs_tpl_retain_fields_why_verbose[];
extern const char hs_tpl_retain_fields_rest[];
extern const char hs_tpl_retain_fields_rules[];
extern const char hs_tpl_retain_examples[];
extern const char hs_tpl_retain_causal[];
extern const char hs_tpl_retain_filler[];
extern const char hs_tpl_retain_optional[];
extern const char hs_tpl_retain_reply_schema[];
extern const char hs_tpl_retain_reply_schema_verbatim[];
extern const char hs_tpl_retain_labels[];
extern const char hs_tpl_retain_labels_free[];
extern const char hs_tpl_retain_labels_only[];
extern const char hs_tpl_retain_labels_groups[];
extern const char hs_tpl_retain_focus[];
extern const char hs_tpl_retain_user_task[];
extern const char hs_tpl_retain_user_task_verbatim[];
extern const char hs_tpl_retain_schema_json[];

/* templates/consolidation.txt */
extern const char hs_tpl_consolidation_role[];
extern const char hs_tpl_consolidation_language[];
extern const char hs_tpl_consolidation_rules[];
extern const char hs_tpl_consolidation_input[];
extern const char hs_tpl_consolidation_decision[];
extern const char hs_tpl_consolidation_output[];
extern const char hs_tpl_consolidation_reply_schema[];
extern const char hs_tpl_consolidation_mission_default[];
extern const char hs_tpl_consolidation_user_end[];
extern const char hs_tpl_consolidation_schema_json[];

/* templates/reflect.txt */
extern const char hs_tpl_reflect_only_retrieved[];
extern const char hs_tpl_reflect_rules_heading[];
extern const char hs_tpl_reflect_role_default[];
extern const char hs_tpl_reflect_task[];
extern const char hs_tpl_reflect_language[];
extern const char hs_tpl_reflect_principles[];
extern const char hs_tpl_reflect_levels_heading[];
extern const char hs_tpl_reflect_level_models[];
extern const char hs_tpl_reflect_level_observations[];
extern const char hs_tpl_reflect_level_observations_last[];
extern const char hs_tpl_reflect_level_recall[];
extern const char hs_tpl_reflect_levels_rules[];
extern const char hs_tpl_reflect_levels_down[];
extern const char hs_tpl_reflect_levels_absence_recall[];
extern const char hs_tpl_reflect_levels_absence_other[];
extern const char hs_tpl_reflect_queries[];
extern const char hs_tpl_reflect_depth_low[];
extern const char hs_tpl_reflect_depth_mid[];
extern const char hs_tpl_reflect_depth_high[];
extern const char hs_tpl_reflect_workflow_heading[];
extern const char hs_tpl_reflect_output_answer[];
extern const char hs_tpl_reflect_output_document[];
extern const char hs_tpl_reflect_bank[];
extern const char hs_tpl_reflect_skepticism_1[];
extern const char hs_tpl_reflect_skepticism_2[];
extern const char hs_tpl_reflect_skepticism_3[];
extern const char hs_tpl_reflect_skepticism_4[];
extern const char hs_tpl_reflect_skepticism_5[];
extern const char hs_tpl_reflect_literalism_1[];
extern const char hs_tpl_reflect_literalism_2[];
extern const char hs_tpl_reflect_literalism_3[];
extern const char hs_tpl_reflect_literalism_4[];
extern const char hs_tpl_reflect_literalism_5[];
extern const char hs_tpl_reflect_empathy_1[];
extern const char hs_tpl_reflect_empathy_2[];
extern const char hs_tpl_reflect_empathy_3[];
extern const char hs_tpl_reflect_empathy_4[];
extern const char hs_tpl_reflect_empathy_5[];
extern const char hs_tpl_reflect_context_heading[];
extern const char hs_tpl_reflect_reminder_heading[];
extern const char hs_tpl_closing_head[];
extern const char hs_tpl_closing_answer[];
extern const char hs_tpl_closing_document[];
extern const char hs_tpl_closing_found[];
extern const char hs_tpl_synthesis_role_default[];
extern const char hs_tpl_synthesis_only_retrieved[];
extern const char hs_tpl_synthesis_rules[];
extern const char hs_tpl_synthesis_no_data[];
extern const char hs_tpl_synthesis_instructions[];
extern const char hs_tpl_claims_task[];
extern const char hs_tpl_reduce_instructions[];
extern const char hs_tpl_rewrite_task[];
extern const char hs_tpl_rewrite_document[];
extern const char hs_tpl_refresh_context[];

/* templates/delta.txt */
extern const char hs_tpl_delta_role[];
extern const char hs_tpl_delta_language[];
extern const char hs_tpl_delta_inputs[];
extern const char hs_tpl_delta_rules[];
extern const char hs_tpl_delta_operations[];
extern const char hs_tpl_delta_output[];
extern const char hs_tpl_delta_reply_schema[];
extern const char hs_tpl_delta_budget_over[];
extern const char hs_tpl_delta_budget_near[];
extern const char hs_tpl_delta_output_budget[];
extern const char hs_tpl_delta_hidden[];
extern const char hs_tpl_delta_task[];
extern const char hs_tpl_delta_reask[];
extern const char hs_tpl_delta_reask_map[];
extern const char hs_tpl_delta_reask_end[];
extern const char hs_tpl_delta_context[];
extern const char hs_tpl_delta_schema_json[];

/* templates/tools.txt */
extern const char hs_tpl_tool_search_mental_models[];
extern const char hs_tpl_tool_stale_recall[];
extern const char hs_tpl_tool_stale_observations[];
extern const char hs_tpl_tool_read_mental_models[];
extern const char hs_tpl_tool_search_observations[];
extern const char hs_tpl_tool_search_observations_only[];
extern const char hs_tpl_tool_recall[];
extern const char hs_tpl_tool_expand[];
extern const char hs_tpl_tool_answer_ready[];
extern const char hs_tpl_tool_absence_recall[];
extern const char hs_tpl_tool_absence_search[];
extern const char hs_tpl_tool_done[];
extern const char hs_tpl_tool_reason[];
extern const char hs_tpl_tool_query[];
extern const char hs_tpl_tool_max_results[];
extern const char hs_tpl_tool_models_max_tokens[];
extern const char hs_tpl_tool_model_ids[];
extern const char hs_tpl_tool_observations_max_tokens[];
extern const char hs_tpl_tool_recall_max_tokens[];
extern const char hs_tpl_tool_recall_max_chunk_tokens[];
extern const char hs_tpl_tool_memory_ids_expand[];
extern const char hs_tpl_tool_depth[];
extern const char hs_tpl_tool_answer_found[];
extern const char hs_tpl_tool_answer[];
extern const char hs_tpl_tool_answer_language[];
extern const char hs_tpl_tool_document[];
extern const char hs_tpl_tool_heading[];
extern const char hs_tpl_tool_level[];
extern const char hs_tpl_tool_blocks[];
extern const char hs_tpl_tool_memory_ids[];
extern const char hs_tpl_tool_observation_ids[];
extern const char hs_tpl_tool_mental_model_ids[];
extern const char hs_tpl_tool_directives[];
extern const char hs_tpl_tool_compliance[];

#endif
