#include <string.h>

#include "base/id.h"
#include "base/tokens.h"
#include "db/tx.h"
#include "engine/retain_run.h"
#include "json/json.h"
#include "store/operation.h"

struct submit {
	struct hs_run *run;
	const char *bank_id, *operation_id;
	const struct retain_pack *packs;
	size_t n_packs, n_items;
	int64_t tokens;
	const char *id; /* out: the parent */
};

/* The one document of these items; NULL when there are none or several, or one without an id. */
static const char *only_document(const struct hs_retain_item *const *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!items[i]->document_id ||
			strcmp(items[i]->document_id, items[0]->document_id) != 0)
			return NULL;
	return n ? items[0]->document_id : NULL;
}

static const char *only_document_of_all(const struct submit *s)
{
	const char *id = s->n_packs ? only_document(s->packs[0].items, s->packs[0].n) : NULL;

	return s->n_packs == 1 ? id : NULL;
}

static json_t *parent_metadata(const struct submit *s)
{
	json_t *m = json_object();
	const char *document_id = only_document_of_all(s);

	json_object_set_new(m, "items_count", json_integer((json_int_t)s->n_items));
	json_object_set_new(m, "total_tokens", json_integer(s->tokens));
	json_object_set_new(m, "num_sub_batches", json_integer((json_int_t)s->n_packs));
	json_object_set_new(m, "is_parent", json_true());
	if (document_id)
		json_object_set_new(m, "document_id", json_string(document_id));
	return m;
}

static enum hs_rc insert_child(
	struct hs_db *db, const struct submit *s, int64_t bank_no, size_t at, struct hs_err *err)
{
	const struct retain_pack *p = &s->packs[at];
	struct hs_pool *pool = s->run->pool;
	struct hs_retain_item *items = HS_NEW_ARRAY(pool, struct hs_retain_item, p->n + 1);
	const char *document_id = only_document(p->items, p->n), *id;
	json_t *m = hs_json_keep(pool, json_object());
	struct hs_submit sub;

	for (size_t i = 0; i < p->n; i++)
		items[i] = *p->items[i];
	json_object_set_new(m, "items_count", json_integer((json_int_t)p->n));
	json_object_set_new(m, "parent_operation_id", json_string(s->id));
	json_object_set_new(m, "sub_batch_index", json_integer((json_int_t)at + 1));
	json_object_set_new(m, "total_sub_batches", json_integer((json_int_t)s->n_packs));
	if (document_id)
		json_object_set_new(m, "document_id", json_string(document_id));
	sub = (struct hs_submit){
		.operation_type = "retain",
		.payload = hs_json_keep(pool, hs_retain_items_json(items, p->n)),
		.metadata = m,
		.subject_id = document_id,
		.parent_id = s->id,
	};
	return hs_operation_insert(db, pool, bank_no, &sub, &id, err);
}

static enum hs_rc submit_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct submit *s = arg;
	struct hs_bank bank;
	struct hs_submit parent;

	HS_TRY(hs_bank_ensure(db, s->run->pool, s->bank_id, &bank, NULL, err));
	parent = (struct hs_submit){
		.operation_id = s->operation_id,
		.operation_type = "batch_retain",
		.metadata = hs_json_keep(s->run->pool, parent_metadata(s)),
		.subject_id = only_document_of_all(s),
		.is_parent = true,
	};
	HS_TRY(hs_operation_insert(db, s->run->pool, bank.bank_no, &parent, &s->id, err));
	for (size_t i = 0; i < s->n_packs; i++)
		HS_TRY(insert_child(db, s, bank.bank_no, i, err));
	return HS_OK;
}

/* The client's id is taken: by this bank's own batch it is the answer, else a conflict. */
static enum hs_rc taken(struct hs_run *run, const char *bank_id, const char *operation_id,
	const char **ret_id, int64_t *ret_items, struct hs_err *err)
{
	struct hs_bank bank;
	struct hs_operation op;
	json_t *metadata;

	if (hs_bank_find(run->db, run->pool, bank_id, &bank, err) != HS_OK ||
		hs_operation_get(run->db, run->pool, bank.bank_no, operation_id, false, &op, err) !=
			HS_OK ||
		strcmp(op.operation_type, "batch_retain") != 0) {
		if (err->rc != HS_OK && err->rc != HS_E_NOT_FOUND && err->rc != HS_E_BANK_MISSING)
			return err->rc;
		return hs_fail(
			err, HS_E_CONFLICT, "operation_id %s is already in use", operation_id);
	}
	HS_TRY(hs_json_load(run->pool, op.result_metadata, &metadata, err));
	*ret_id = op.operation_id;
	*ret_items = hs_json_int(metadata, "items_count", 0);
	return HS_OK;
}

enum hs_rc hs_retain_submit(struct hs_run *run, const char *bank_id, const char *operation_id,
	const struct hs_retain_item *items, size_t n, const char **ret_id, int64_t *ret_items,
	struct hs_err *err)
{
	struct submit s = {
		.run = run, .bank_id = bank_id, .operation_id = operation_id, .n_items = n};
	const struct hs_retain_item **list =
		HS_NEW_ARRAY(run->pool, const struct hs_retain_item *, n + 1);
	enum hs_rc rc;

	for (size_t i = 0; i < n; i++) {
		if (items[i].append)
			return hs_fail(err, HS_E_NOT_IMPLEMENTED,
				"update_mode='append' is not implemented yet");
		list[i] = &items[i];
	}
	s.packs = hs_retain_packs(run->pool, list, n,
		hs_cfg_int(run->server, HS_S_retain_batch_tokens), &s.tokens, &s.n_packs);
	rc = hs_tx_run(run->db, submit_tx, &s, err);
	if (rc == HS_E_DB_DUPLICATE && operation_id) {
		hs_err_clear(err);
		return taken(run, bank_id, operation_id, ret_id, ret_items, err);
	}
	if (rc != HS_OK)
		return rc;
	hs_queue_poke(run->server);
	*ret_id = s.id;
	*ret_items = (int64_t)n;
	return HS_OK;
}
