#include "engine/model.h"

#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "db/tx.h"
#include "engine/document.h"
#include "json/json.h"
#include "store/operation.h"
#include "store/vector.h"

#define EMPTY_STRUCTURE "{\"version\":2,\"sections\":[]}"
/* How often a change starts over because the other half of the embedded text moved. */
#define VECTOR_TRIES 8

static bool id_fits(const char *id)
{
	static const char *const chars = "abcdefghijklmnopqrstuvwxyz0123456789-";

	return strlen(id) <= HS_MODEL_ID_CHARS && id[0] != '-' && id[strspn(id, chars)] == '\0';
}

void hs_model_id_read(struct hs_check *ck, const struct hs_field *f, json_t *v, void *place)
{
	const char *id = json_string_value(v);

	(void)f;
	if (json_is_null(v))
		return;
	if (!id) {
		hs_check_fault(ck, "string_type", "Input should be a valid string", v, NULL);
		return;
	}
	if (*id == '\0')
		return;
	if (!id_fits(id))
		hs_check_value_error(ck, v,
			"an id holds lower-case letters, digits and hyphens, begins with no hyphen and has at most %d characters",
			HS_MODEL_ID_CHARS);
	else
		*(const char **)place = hs_pool_strdup(hs_check_pool(ck), id);
}

static enum hs_rc provider_set(const struct hs_run *run, struct hs_err *err)
{
	if (strcmp(hs_cfg_llm_provider(run->server, "mental_model_refresh"), "none") != 0)
		return HS_OK;
	return hs_fail(err, HS_E_LLM_NONE,
		"Mental model refresh requires an LLM provider. Current provider is set to 'none'."
		" Set HINDSIGHT_API_LLM_PROVIDER.");
}

enum hs_rc hs_model_vector(struct hs_run *run, const char *name, const char *content,
	struct hs_mm_vector *ret, struct hs_err *err)
{
	const char *text = *content ? hs_pool_printf(run->pool, "%s %s", name, content) : name;
	struct hs_strs texts = {1, &text};
	struct hs_vec vec;

	*ret = (struct hs_mm_vector){0};
	if (hs_embedder_none(run->embedder))
		return HS_OK;
	HS_TRY(hs_embed(run->embedder, run->pool, &texts, false, run->deadline_us, &vec, err));
	HS_TRY(hs_embedder_no(
		run->db, run->pool, hs_embedder_tag(run->embedder), &ret->embedder_no, err));
	ret->v = vec.v;
	ret->dim = vec.dim;
	return HS_OK;
}

/* ---- history ---- */

static void keep_member(json_t *to, json_t *from, const char *key)
{
	if (json_object_get(from, key))
		json_object_set(to, key, json_object_get(from, key));
}

const char *hs_model_version(
	struct hs_pool *pool, const char *content, const char *reflect_response)
{
	json_t *response = NULL, *entry = hs_json_keep(pool, json_object()), *slice = json_object();

	if (hs_json_load(pool, reflect_response, &response, NULL) != HS_OK)
		response = NULL;
	keep_member(slice, response, "based_on");
	keep_member(slice, response, "trace");
	json_object_set_new(entry, "previous_content", json_string(content));
	json_object_set(
		entry, "previous_reflect_response", json_object_size(slice) ? slice : json_null());
	json_decref(slice);
	return hs_json_text(pool, entry);
}

const char *hs_model_failure(
	struct hs_pool *pool, const char *outcome, const char *reason, const char *message)
{
	json_t *entry = json_pack("{s:n, s:n, s:s, s:s, s:s}", "previous_content",
		"previous_reflect_response", "outcome", outcome, "failure_reason", reason,
		"error_message", message);

	return hs_json_text(pool, hs_json_keep(pool, entry));
}

int64_t hs_model_history_keep(const struct hs_config *cfg)
{
	int64_t n = hs_cfg_int(cfg, HS_S_mental_model_history_max_entries);

	return n < 0 ? 0 : n;
}

/* ---- create ---- */

struct creation {
	struct hs_run *run;
	const char *bank_id;
	struct hs_mm_new row;
	const char *operation_id;
};

static enum hs_rc create_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct creation *c = arg;
	struct hs_refresh_submit submit = {.mental_model_id = c->row.id, .name = c->row.name};
	struct hs_bank bank;

	HS_TRY(hs_bank_ensure(db, c->run->pool, c->bank_id, &bank, NULL, err));
	HS_TRY(hs_mm_insert(db, c->run->pool, bank.bank_no, c->bank_id, &c->row, err));
	return hs_submit_refresh(
		db, c->run->pool, bank.bank_no, &submit, &c->operation_id, NULL, err);
}

static const char *new_id(struct hs_pool *pool)
{
	char hex[33];

	hs_random_hex(hex, 16);
	return hs_pool_printf(pool, "mm-%s", hex);
}

enum hs_rc hs_model_create(struct hs_run *run, const struct hs_model_new *in, const char **ret_id,
	const char **ret_operation_id, struct hs_err *err)
{
	const struct hs_trigger *t = in->trigger ? in->trigger : hs_trigger_read(run->pool, NULL);
	struct creation c = {
		.run = run,
		.bank_id = in->bank_id,
		.row =
			{
				.id = in->id ? in->id : new_id(run->pool),
				.name = in->name,
				.source_query = in->source_query,
				.structured_content = EMPTY_STRUCTURE,
				.tags = in->tags,
				.max_tokens = in->max_tokens,
				.trigger = hs_trigger_text(run->pool, t),
				.has_cron = t->refresh_cron || t->full_refresh_cron,
				.after_consolidation = t->refresh_after_consolidation,
			},
	};

	HS_TRY(provider_set(run, err));
	HS_TRY(hs_bank_id_check(in->bank_id, err));
	HS_TRY(hs_model_vector(run, in->name, "", &c.row.vector, err));
	HS_TRY(hs_tx_run(run->db, create_in_tx, &c, err));
	hs_queue_poke(run->server);
	*ret_id = c.row.id;
	*ret_operation_id = c.operation_id;
	return HS_OK;
}

/* ---- patch ---- */

struct patching {
	struct hs_run *run;
	const struct hs_model_patch *in;
	struct hs_mm seen;          /* as read before the transaction */
	struct hs_mm_vector vector; /* of the new name and the content seen */
	bool moved;                 /* the content is another one by now */
};

static enum hs_rc patch_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct patching *p = arg;
	const struct hs_model_patch *in = p->in;
	struct hs_mm_change c = {
		.name = in->name, .source_query = in->source_query, .tags = in->tags};
	struct hs_mm m;

	HS_TRY(hs_mm_lock(db, p->run->pool, p->seen.bank_no, in->id, &m, err));
	p->moved = in->name && strcmp(m.content, p->seen.content) != 0;
	if (p->moved)
		return HS_OK;
	c.set_vector = in->name != NULL;
	c.vector = p->vector;
	if (in->max_tokens) {
		c.set_max_tokens = true;
		c.max_tokens = *in->max_tokens;
	}
	if (in->trigger) {
		const struct hs_trigger *t = hs_trigger_merge(
			p->run->pool, hs_trigger_read(p->run->pool, m.trigger), in->trigger);

		c.trigger = hs_trigger_text(p->run->pool, t);
		c.has_cron = t->refresh_cron || t->full_refresh_cron;
		c.after_consolidation = t->refresh_after_consolidation;
	}
	return hs_mm_update(db, p->run->pool, p->seen.bank_no, in->id, &c, err);
}

enum hs_rc hs_model_patch(struct hs_run *run, const struct hs_model_patch *in, struct hs_err *err)
{
	struct patching p = {.run = run, .in = in, .moved = true};
	bool any = in->name || in->source_query || in->max_tokens || in->tags || in->trigger;

	for (int i = 0; p.moved && i < VECTOR_TRIES; i++) {
		HS_TRY(hs_mm_find(run->db, run->pool, in->bank_id, in->id, &p.seen, err));
		if (!any)
			return HS_OK;
		if (in->name)
			HS_TRY(hs_model_vector(run, in->name, p.seen.content, &p.vector, err));
		HS_TRY(hs_tx_run(run->db, patch_in_tx, &p, err));
	}
	if (p.moved)
		return hs_fail(err, HS_E_DB_BUSY,
			"mental model '%s' changed at every try to rename it", in->id);
	return HS_OK;
}

/* ---- clear ---- */

struct clearing {
	struct hs_run *run;
	struct hs_mm seen;
	struct hs_mm_vector vector; /* of the name seen */
	bool moved;
};

static enum hs_rc clear_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct clearing *c = arg;
	struct hs_pool *pool = c->run->pool;
	struct hs_mm_change change = {.set_content = true,
		.content = "",
		.set_refreshed_query = true,
		.set_vector = true,
		.vector = c->vector};
	struct hs_mm m;

	HS_TRY(hs_mm_lock(db, pool, c->seen.bank_no, c->seen.id, &m, err));
	c->moved = strcmp(m.name, c->seen.name) != 0;
	if (c->moved)
		return HS_OK;
	if (!hs_content_unwritten(m.content) &&
		hs_cfg_bool(c->run->server, HS_S_enable_mental_model_history))
		HS_TRY(hs_mm_history_add(db, pool, m.bank_no, m.id, false,
			hs_model_version(pool, m.content, m.reflect_response), hs_now_us(),
			hs_model_history_keep(c->run->server), err));
	return hs_mm_update(db, pool, m.bank_no, m.id, &change, err);
}

enum hs_rc hs_model_clear(
	struct hs_run *run, const char *bank_id, const char *id, struct hs_err *err)
{
	struct clearing c = {.run = run, .moved = true};

	for (int i = 0; c.moved && i < VECTOR_TRIES; i++) {
		HS_TRY(hs_mm_find(run->db, run->pool, bank_id, id, &c.seen, err));
		HS_TRY(hs_model_vector(run, c.seen.name, "", &c.vector, err));
		HS_TRY(hs_tx_run(run->db, clear_in_tx, &c, err));
	}
	if (c.moved)
		return hs_fail(err, HS_E_DB_BUSY,
			"mental model '%s' changed at every try to clear it", id);
	return HS_OK;
}

/* ---- refresh ---- */

struct submission {
	struct hs_run *run;
	int64_t bank_no;
	struct hs_refresh_submit in;
	const char *operation_id;
};

static enum hs_rc submit_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct submission *s = arg;

	return hs_submit_refresh(db, s->run->pool, s->bank_no, &s->in, &s->operation_id, NULL, err);
}

enum hs_rc hs_model_refresh(struct hs_run *run, const char *bank_id, const char *id, bool full,
	const char **ret_operation_id, struct hs_err *err)
{
	struct submission s = {.run = run};
	struct hs_mm m;
	enum hs_rc rc;

	HS_TRY(provider_set(run, err));
	rc = hs_mm_find(run->db, run->pool, bank_id, id, &m, err);
	if (rc == HS_OK) {
		s.bank_no = m.bank_no;
		s.in = (struct hs_refresh_submit){
			.mental_model_id = m.id, .name = m.name, .full = full};
		rc = hs_tx_run(run->db, submit_in_tx, &s, err);
	}
	if (rc == HS_E_NOT_FOUND)
		return hs_fail(
			err, HS_E_NOT_FOUND, "Mental model %s not found in bank %s", id, bank_id);
	HS_TRY(rc);
	hs_queue_poke(run->server);
	*ret_operation_id = s.operation_id;
	return HS_OK;
}
