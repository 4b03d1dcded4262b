#include "engine/model_body.h"

#include "base/limits.h"

static const struct hs_field create_fields[] = {
	HS_CUSTOM(struct hs_model_body, id, hs_model_id_read, .flags = HS_NULLABLE,
		.doc = "id of one's own; empty or null: generated"),
	HS_STR(struct hs_model_body, name, .flags = HS_REQUIRED | HS_NOT_BLANK, .has_max = true,
		.max = 256, .doc = "shown to people"),
	HS_STR(struct hs_model_body, source_query, .flags = HS_REQUIRED | HS_NOT_BLANK,
		.has_max = true, .max = HS_TEXT_CHARS,
		.doc = "the question that the document answers"),
	HS_STRS(struct hs_model_body, tags, .flags = HS_TAG_LIST,
		.doc = "what it reads and where it is shown"),
	HS_INT(struct hs_model_body, max_tokens, HS_RANGE(256, 8192), .def = "2048",
		.doc = "wanted length of the document"),
	HS_OBJ(struct hs_model_body, trigger, &hs_trigger_shape,
		.doc = "when and how it refreshes"),
};
const struct hs_shape hs_model_create_shape = HS_SHAPE(hs_model_body, create_fields);

static const struct hs_field change_fields[] = {
	HS_STR(struct hs_model_body, name, .flags = HS_NULLABLE | HS_NOT_BLANK, .has_max = true,
		.max = 256, .doc = "shown to people"),
	HS_STR(struct hs_model_body, source_query, .flags = HS_NULLABLE | HS_NOT_BLANK,
		.has_max = true, .max = HS_TEXT_CHARS,
		.doc = "the question that the document answers"),
	HS_STRS(struct hs_model_body, tags, .flags = HS_NULLABLE | HS_TAG_LIST, .doc = "[] clears"),
	HS_INT(struct hs_model_body, max_tokens, .flags = HS_NULLABLE, HS_RANGE(256, 8192),
		.doc = "wanted length of the document"),
	HS_OBJ(struct hs_model_body, trigger, &hs_trigger_patch_shape, .flags = HS_NULLABLE,
		.doc = "members sent are laid over the stored ones; null resets one"),
};
const struct hs_shape hs_model_change_shape = HS_SHAPE(hs_model_body, change_fields);

struct hs_model_new hs_model_new_of(const char *bank_id, const struct hs_model_body *b)
{
	return (struct hs_model_new){
		.bank_id = bank_id,
		.id = b->id,
		.name = b->name,
		.source_query = b->source_query,
		.tags = b->tags,
		.max_tokens = b->max_tokens,
		.trigger = b->trigger,
	};
}

struct hs_model_patch hs_model_patch_of(
	const char *bank_id, const char *id, const struct hs_model_body *b)
{
	return (struct hs_model_patch){
		.bank_id = bank_id,
		.id = id,
		.name = b->name,
		.source_query = b->source_query,
		.max_tokens =
			hs_given(&hs_model_change_shape, b, "max_tokens") ? &b->max_tokens : NULL,
		.tags = hs_given(&hs_model_change_shape, b, "tags") ? &b->tags : NULL,
		.trigger = b->trigger,
	};
}
