#include "banks.h"

#include "base/limits.h"
#include "store/scope.h"

#define BANK "/v1/default/banks/{bank_id}"
#define TRAIT HS_RANGE(1, 5)

static const struct hs_field list_fields[] = {
	HS_STR(struct list_query, q, .flags = HS_NULLABLE,
		.doc = "part of the id or name, any case"),
	HS_INT(struct list_query, limit, HS_RANGE(0, HS_PAGE_MAX), .flags = HS_CLAMP_MAX,
		.def = "100",
		.doc = "rows of the page"),
	HS_INT(struct list_query, offset, HS_MIN(0), .def = "0", .doc = "rows to skip"),
};
static const struct hs_shape list_shape = HS_SHAPE(list_query, list_fields);

static const struct hs_field stats_fields[] = {
	HS_BOOL(struct stats_query, refresh, .def = "false", .doc = "count anew"),
};
static const struct hs_shape stats_shape = HS_SHAPE(stats_query, stats_fields);

static const struct hs_field directives_fields[] = {
	HS_STRS(struct directives_query, tags, .flags = HS_REPEATED | HS_NULLABLE,
		.doc = "tags to look for; untagged directives are always shown"),
	HS_ENUM(struct directives_query, tags_match, hs_list_match_names, .def = "any",
		.doc = "shares a tag, has every tag, or has exactly these tags"),
	HS_BOOL(struct directives_query, active_only, .def = "true",
		.doc = "leave inactive ones out"),
	HS_INT(struct directives_query, limit, HS_RANGE(1, 1000), .def = "100",
		.doc = "rows of the page"),
	HS_INT(struct directives_query, offset, HS_MIN(0), .def = "0", .doc = "rows to skip"),
};
static const struct hs_shape directives_shape = HS_SHAPE(directives_query, directives_fields);

static const struct hs_field disposition_fields[] = {
	HS_INT(struct disposition, skepticism, TRAIT, .flags = HS_REQUIRED,
		.doc = "1 trusting, 5 doubting"),
	HS_INT(struct disposition, literalism, TRAIT, .flags = HS_REQUIRED,
		.doc = "1 free, 5 literal"),
	HS_INT(struct disposition, empathy, TRAIT, .flags = HS_REQUIRED,
		.doc = "1 detached, 5 empathic"),
};
static const struct hs_shape disposition_shape = HS_SHAPE(disposition, disposition_fields);

/* Fields named like a setting become overrides of the bank; only values other than null count. */
static const struct hs_field bank_fields[] = {
	HS_STR(struct bank_body, name, .flags = HS_NULLABLE, .doc = "shown to people"),
	HS_STR(struct bank_body, reflect_mission, .flags = HS_NULLABLE,
		.doc = "what the bank answers for"),
	HS_STR(struct bank_body, mission, .flags = HS_NULLABLE,
		.doc = "older name of reflect_mission"),
	HS_STR(struct bank_body, background, .flags = HS_NULLABLE,
		.doc = "older name of reflect_mission"),
	HS_OBJ(struct bank_body, disposition, &disposition_shape, .flags = HS_NULLABLE,
		.doc = "all three traits"),
	HS_INT(struct bank_body, disposition_skepticism, TRAIT, .flags = HS_NULLABLE,
		.doc = "trait"),
	HS_INT(struct bank_body, disposition_literalism, TRAIT, .flags = HS_NULLABLE,
		.doc = "trait"),
	HS_INT(struct bank_body, disposition_empathy, TRAIT, .flags = HS_NULLABLE, .doc = "trait"),
	HS_STR(struct bank_body, retain_mission, .flags = HS_NULLABLE, .doc = "what to remember"),
	HS_STR(struct bank_body, retain_extraction_mode, .flags = HS_NULLABLE,
		.doc = "how facts are taken"),
	HS_STR(struct bank_body, retain_custom_instructions, .flags = HS_NULLABLE,
		.doc = "rules of the custom mode"),
	HS_STR(struct bank_body, observations_mission, .flags = HS_NULLABLE,
		.doc = "what observations are for"),
	HS_INT(struct bank_body, retain_chunk_size, .flags = HS_NULLABLE,
		.doc = "characters of a chunk"),
	HS_INT(struct bank_body, retain_structured_chunk_size, .flags = HS_NULLABLE,
		.doc = "the same for structured text"),
	HS_INT(struct bank_body, retain_max_attachments_per_chunk, .flags = HS_NULLABLE,
		.doc = "attachments"),
	HS_BOOL(struct bank_body, enable_observations, .flags = HS_NULLABLE,
		.doc = "make observations"),
	HS_BOOL(struct bank_body, enable_text_search, .flags = HS_NULLABLE, .doc = "keyword arm"),
	HS_BOOL(struct bank_body, enable_temporal_retrieval, .flags = HS_NULLABLE,
		.doc = "time arm"),
	HS_BOOL(struct bank_body, enable_graph_retrieval, .flags = HS_NULLABLE, .doc = "graph arm"),
	HS_BOOL(struct bank_body, enable_reranking, .flags = HS_NULLABLE, .doc = "reranker"),
};
const struct hs_shape bank_body_shape = HS_SHAPE(bank_body, bank_fields);

static const struct hs_field profile_fields[] = {
	HS_OBJ(struct profile_body, disposition, &disposition_shape, .flags = HS_REQUIRED,
		.doc = "all three traits"),
};
static const struct hs_shape profile_shape = HS_SHAPE(profile_body, profile_fields);

static const struct hs_field background_fields[] = {
	HS_STR(struct background_body, content, .flags = HS_REQUIRED, .doc = "text to add"),
};
static const struct hs_shape background_shape = HS_SHAPE(background_body, background_fields);

static const struct hs_field config_fields[] = {
	HS_DICT(struct config_body, updates, .flags = HS_REQUIRED,
		.doc = "settings to override; null clears"),
};
static const struct hs_shape config_shape = HS_SHAPE(config_body, config_fields);

static const struct hs_field directive_fields[] = {
	HS_STR(struct directive_body, name, .flags = HS_REQUIRED, .doc = "shown to people"),
	HS_STR(struct directive_body, content, .flags = HS_REQUIRED, .doc = "the rule"),
	HS_INT(struct directive_body, priority, .def = "0", .doc = "higher comes first"),
	HS_BOOL(struct directive_body, is_active, .def = "true", .doc = "whether it is followed"),
	HS_STRS(struct directive_body, tags, .flags = HS_TAG_LIST,
		.doc = "where it holds; none = everywhere"),
};
static const struct hs_shape directive_shape = HS_SHAPE(directive_body, directive_fields);

static const struct hs_field directive_change_fields[] = {
	HS_STR(struct directive_body, name, .flags = HS_NULLABLE, .doc = "shown to people"),
	HS_STR(struct directive_body, content, .flags = HS_NULLABLE, .doc = "the rule"),
	HS_INT(struct directive_body, priority, .flags = HS_NULLABLE, .doc = "higher comes first"),
	HS_BOOL(struct directive_body, is_active, .flags = HS_NULLABLE,
		.doc = "whether it is followed"),
	HS_STRS(struct directive_body, tags, .flags = HS_NULLABLE | HS_TAG_LIST,
		.doc = "[] makes it global"),
};
const struct hs_shape directive_change_shape = HS_SHAPE(directive_body, directive_change_fields);

#define CONFIG_API .feature = HS_S_enable_bank_config_api + 1, \
	.feature_text = "The bank configuration API is switched off"

const struct hs_route bank_routes[] = {
	HS_ROUTE(GET, "/v1/default/banks", bank_list, .query = &list_shape),
	HS_ROUTE(PUT, BANK, bank_put, .body = &bank_body_shape),
	HS_ROUTE(PATCH, BANK, bank_patch, .body = &bank_body_shape),
	HS_ROUTE(DELETE, BANK, bank_delete),
	HS_ROUTE(GET, BANK "/profile", bank_profile),
	HS_ROUTE(PUT, BANK "/profile", profile_gone, .body = &profile_shape, .flags = HS_R_OPEN),
	HS_ROUTE(POST, BANK "/background", profile_gone, .body = &background_shape,
		.flags = HS_R_OPEN),
	HS_ROUTE(GET, BANK "/config", config_get, .flags = HS_R_ADMIN),
	HS_ROUTE(PATCH, BANK "/config", config_patch, .body = &config_shape, .flags = HS_R_ADMIN,
		CONFIG_API),
	HS_ROUTE(DELETE, BANK "/config", config_delete, .flags = HS_R_ADMIN, CONFIG_API),
	HS_ROUTE(GET, BANK "/stats", stats_get, .query = &stats_shape),
	HS_ROUTE(GET, BANK "/directives", directive_list, .query = &directives_shape),
	HS_ROUTE(POST, BANK "/directives", directive_create, .body = &directive_shape),
	HS_ROUTE(GET, BANK "/directives/{directive_id}", directive_get),
	HS_ROUTE(PATCH, BANK "/directives/{directive_id}", directive_update,
		.body = &directive_change_shape),
	HS_ROUTE(DELETE, BANK "/directives/{directive_id}", directive_delete),
	{.pattern = NULL},
};
