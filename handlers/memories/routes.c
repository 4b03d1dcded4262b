#include "memories.h"

#include <string.h>

#include "base/id.h"
#include "base/limits.h"

#define BANK "/v1/default/banks/{bank_id}"

/* ---- retain ---- */

static void read_operation_id(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	char id[HS_UUID_TEXT];
	const char *s = json_string_value(v);

	(void)f;
	if (!s)
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
	else if (!hs_uuid_parse(s, id))
		hs_check_value_error(ck, v, "operation_id must be a valid UUID");
	else
		*(const char **)place = hs_pool_strdup(hs_check_pool(ck), id);
}

/* document_tags count to every item's tags. */
static void retain_rule(struct hs_check *ck, void *obj)
{
	const struct retain_body *b = obj;

	for (size_t i = 0; i < b->items.n; i++) {
		const struct hs_item_in *it = b->items.v[i];

		if (it->tags.n + b->document_tags.n <= HS_TAGS_PER_ITEM)
			continue;
		hs_check_push(ck, "items");
		hs_check_push_index(ck, i);
		hs_check_value_error(
			ck, NULL, "an item may have at most %d tags", HS_TAGS_PER_ITEM);
		hs_check_pop(ck);
		hs_check_pop(ck);
	}
}

#define T struct retain_body
static const struct hs_field retain_fields[] = {
	HS_OBJS(T, items, &hs_item_shape, .flags = HS_REQUIRED, HS_RANGE(0, HS_ITEMS_PER_REQUEST),
		.doc = "what to store"),
	HS_BOOL(T, async, .def = "false", .doc = "answer at once, store in the background"),
	HS_STRS(T, document_tags, .flags = HS_NULLABLE | HS_TAG_LIST,
		.doc = "deprecated: added to every item's tags"),
	HS_CUSTOM(T, operation_id, read_operation_id, .flags = HS_NULLABLE,
		.doc = "own id of the operation"),
};
#undef T
static const struct hs_shape retain_shape =
	HS_SHAPE(retain_body, retain_fields, .rule = retain_rule);

/* ---- consolidate ---- */

static const struct hs_field consolidate_fields[] = {
	HS_CUSTOM(struct consolidate_body, observation_scopes, hs_tag_lists_read,
		.flags = HS_NULLABLE, .doc = "only facts whose tags contain one of these sets"),
};
static const struct hs_shape consolidate_shape = HS_SHAPE(consolidate_body, consolidate_fields);

/* Storing now is long when a model or an embedding service is called; handing it to the worker never is. */
static bool retain_is_long(const struct hs_config *cfg, const void *query, const void *body)
{
	static const char *const built_in[] = {"extractive", "none", "hash", "local"};
	const char *used[] = {
		hs_cfg_llm_provider(cfg, "retain"), hs_cfg_str(cfg, HS_S_embeddings_provider)};
	const struct retain_body *b = body;
	size_t local = 0;

	(void)query;
	for (size_t i = 0; i < HS_COUNT(used); i++)
		for (size_t k = 0; k < HS_COUNT(built_in); k++)
			local += strcmp(used[i], built_in[k]) == 0;
	return !b->async && b->items.n > 0 && local < HS_COUNT(used);
}

const struct hs_route memories_routes[] = {
	HS_ROUTE(POST, BANK "/memories", retain_post, .body = &retain_shape, .flags = HS_R_LONG,
		.long_call = retain_is_long, .long_name = "retain"),
	HS_ROUTE(POST, BANK "/memories/recall", recall_post, .body = &hs_recall_body_shape,
		.flags = HS_R_READ),
	HS_ROUTE(POST, BANK "/consolidate", consolidate_post, .body = &consolidate_shape,
		.flags = HS_R_BODY_OPTIONAL),
	{.pattern = NULL},
};
