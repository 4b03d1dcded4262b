#include "engine/jobs.h"

#include <inttypes.h>

#include "engine/consolidate.h"
#include "engine/refresh.h"
#include "engine/retain.h"
#include "json/json.h"

#define SAMPLE_CHARS 500
#define SAMPLE_MAX 5

typedef enum hs_rc job_fn(struct hs_run *run, const struct hs_bank *bank, json_t *payload,
	json_t **ret_metadata, struct hs_err *err);

/* ---- retain ---- */

static json_t *retain_metadata(struct hs_pool *pool, const struct hs_retain_out *out)
{
	json_t *meta = json_object(), *sample;

	json_object_set_new(meta, "unit_ids_count", json_integer(out->unit_ids_count));
	json_object_set_new(
		meta, "extraction_errors_count", json_integer(out->extraction_errors_count));
	json_object_set_new(meta, "document_ids", hs_json_from_strs(&out->document_ids));
	if (out->extraction_errors.n == 0)
		return meta;
	sample = json_array();
	for (size_t i = 0; i < out->extraction_errors.n && i < SAMPLE_MAX; i++)
		json_array_append_new(sample,
			json_string(hs_utf8_cut(pool, out->extraction_errors.v[i], SAMPLE_CHARS)));
	json_object_set_new(meta, "extraction_errors_sample", sample);
	return meta;
}

static enum hs_rc run_retain(struct hs_run *run, const struct hs_bank *bank, json_t *payload,
	json_t **ret_metadata, struct hs_err *err)
{
	struct hs_retain_out out = {0};
	struct hs_retain_item *items;
	enum hs_rc rc;
	size_t n;

	rc = hs_retain_items_read(run->pool, payload, &items, &n, err);
	if (rc != HS_OK)
		return hs_fail(err, HS_E_PAYLOAD, "the contents of this retain cannot be read");
	rc = hs_retain_run(run, bank, items, n, &out, err);
	/* counted on failure too: part of the batches may be stored */
	*ret_metadata = retain_metadata(run->pool, &out);
	HS_TRY(rc);
	if (out.extraction_errors_count > 0 &&
		hs_cfg_bool(run->server, HS_S_fail_on_extraction_errors))
		return hs_fail(err, HS_E_UNPROCESSABLE,
			"%" PRId64 " parts of the content could not be extracted",
			out.extraction_errors_count);
	return HS_OK;
}

/* ---- consolidation, refresh ---- */

static enum hs_rc run_consolidation(struct hs_run *run, const struct hs_bank *bank, json_t *payload,
	json_t **ret_metadata, struct hs_err *err)
{
	struct hs_consolidate_in in = {
		.bank = bank,
		.scopes = json_object_get(payload, "observation_scopes"),
		.round = hs_json_int(payload, "round", 1),
		.manual = hs_json_bool(payload, "manual", false),
	};

	if (json_is_null(in.scopes))
		in.scopes = NULL;
	return hs_consolidate_run(run, &in, ret_metadata, err);
}

static enum hs_rc run_refresh(struct hs_run *run, const struct hs_bank *bank, json_t *payload,
	json_t **ret_metadata, struct hs_err *err)
{
	struct hs_refresh_in in = {
		.bank = bank,
		.mental_model_id = hs_json_str(payload, "mental_model_id"),
		.automatic = hs_json_bool(payload, "_automatic", false),
		.full = hs_str_eq(hs_json_str(payload, "_mode"), "full"),
	};

	if (hs_str_empty(in.mental_model_id))
		return hs_fail(err, HS_E_PAYLOAD, "the payload names no mental model");
	return hs_refresh_run(run, &in, ret_metadata, err);
}

/* ---- the table ---- */

static const struct kind {
	const char *type;
	job_fn *run;
	enum hs_setting_id wall;
	const char *wall_name;
} kinds[] = {
	{"retain", run_retain, HS_S_retain_wall_timeout, "retain_wall_timeout"},
	{"consolidation", run_consolidation, HS_S_consolidation_wall_timeout,
		"consolidation_wall_timeout"},
	{"refresh_mental_model", run_refresh, HS_S_reflect_wall_timeout, "reflect_wall_timeout"},
};

static const struct kind *find_kind(const char *type)
{
	for (size_t i = 0; i < HS_COUNT(kinds); i++)
		if (hs_str_eq(kinds[i].type, type))
			return &kinds[i];
	return NULL;
}

int64_t hs_job_wall_seconds(
	const struct hs_config *cfg, const char *operation_type, const char **ret_setting)
{
	const struct kind *k = find_kind(operation_type);

	*ret_setting = k ? k->wall_name : NULL;
	return k ? hs_cfg_int(cfg, k->wall) : 0;
}

enum hs_rc hs_job_run(struct hs_run *run, const struct hs_operation *op, json_t **ret_metadata,
	struct hs_err *err)
{
	const struct kind *k = find_kind(op->operation_type);
	struct hs_bank bank;
	json_t *payload;

	*ret_metadata = NULL;
	if (!k)
		return hs_fail(
			err, HS_E_PAYLOAD, "unknown operation type '%s'", op->operation_type);
	if (hs_json_load(run->pool, op->task_payload, &payload, err) != HS_OK)
		return hs_fail(err, HS_E_PAYLOAD, "the payload is no JSON");
	if (!json_is_object(payload))
		return hs_fail(err, HS_E_PAYLOAD, "the payload is no JSON object");
	HS_TRY(hs_bank_find_no(run->db, run->pool, op->bank_no, &bank, err));
	return k->run(run, &bank, payload, ret_metadata, err);
}
