#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "db/tx.h"
#include "engine/retain_run.h"
#include "json/json.h"
#include "store/bulk.h"
#include "store/clock.h"
#include "store/observation.h"
#include "store/operation.h"

struct write {
	const struct retain_doc *d;
	struct retain_batch *b;
	enum retain_outcome outcome;
	int64_t stamp_us;
	bool pending; /* facts wait for consolidation because of this transaction */
};

/* ---- the document row ---- */

static struct hs_doc_row new_row(const struct write *w)
{
	const struct retain_doc *d = w->d;
	bool keep_text = hs_cfg_bool(d->cfg, HS_S_store_document_text);

	return (struct hs_doc_row){
		.document_id = d->document_id,
		.original_text = keep_text ? d->body : NULL,
		.text_chars = keep_text ? (int64_t)hs_utf8_chars(d->body, strlen(d->body)) : 0,
		.content_hash = d->hash,
		.retain_params = d->params,
		.tags = d->tags,
		.created_us = w->stamp_us,
		.updated_us = w->stamp_us,
	};
}

/* The row as it is now, locked; *ret_found tells whether there is one. */
static enum hs_rc lock_row(struct hs_db *db, const struct write *w, struct hs_doc_row *ret,
	bool *ret_found, struct hs_err *err)
{
	struct hs_err miss = {0};
	enum hs_rc rc = hs_document_find(
		db, w->b->pool, w->d->bank->bank_no, w->d->document_id, false, true, ret, &miss);

	*ret_found = rc == HS_OK;
	if (rc == HS_OK || rc == HS_E_NOT_FOUND)
		return HS_OK;
	*err = miss;
	return rc;
}

static enum hs_rc replace(
	struct hs_db *db, struct write *w, const struct hs_doc_row *old, struct hs_err *err)
{
	int64_t bank_no = w->d->bank->bank_no;
	struct hs_doc_row row = new_row(w);
	struct hs_deleted gone = {0};

	if (old) {
		if (old->updated_us > w->d->since_us) {
			w->outcome = RETAIN_OVERTAKEN;
			return HS_OK;
		}
		row.created_us = old->created_us;
		HS_TRY(hs_document_delete(db, w->b->pool, bank_no, w->d->document_id, &gone, err));
		w->pending = gone.requeued > 0;
	}
	return hs_document_put(db, w->b->pool, bank_no, &row, err);
}

/* ---- the same text again: tags, metadata and scopes of what is there ---- */

/* What the observations of a fact are grouped by (contract 5.3): when it changes they are void. */
static const char *scope_key(struct hs_pool *pool, const char *scopes, const struct hs_strs *tags)
{
	struct hs_strs set = hs_strs_sorted_set(pool, tags);
	const char *own = hs_strs_join(pool, &set, "\x1f");

	if (!scopes || strcmp(scopes, "[]") == 0 || strcmp(scopes, "\"combined\"") == 0)
		return hs_pool_printf(pool, "own %s", own);
	if (strcmp(scopes, "\"shared\"") == 0 || strcmp(scopes, "[[]]") == 0)
		return "shared";
	if (scopes[0] == '"' || strchr(scopes, '*'))
		return hs_pool_printf(pool, "%s %s", scopes, own);
	return scopes;
}

static const struct hs_retain_item *item_of(const struct retain_doc *d, int64_t chunk_index)
{
	return chunk_index >= 0 && (size_t)chunk_index < d->n_pieces ? d->pieces[chunk_index].item
								     : d->items[0];
}

struct kept {
	int64_t *swept; /* units whose scope changed */
	size_t n_swept;
};

static enum hs_rc keep_unit(struct hs_db *db, struct write *w, const struct hs_unit_meta *old,
	struct kept *kept, struct hs_err *err)
{
	struct hs_pool *pool = w->b->pool;
	const struct hs_retain_item *it = item_of(w->d, old->chunk_index);
	int64_t bank_no = w->d->bank->bank_no;
	struct hs_unit_meta now = *old;
	bool changed;

	now.metadata = it->metadata && json_object_size(it->metadata)
			       ? hs_json_text(pool, it->metadata)
			       : NULL;
	if (it->observation_scopes)
		now.observation_scopes = hs_json_text(pool, it->observation_scopes);
	if (strcmp(scope_key(pool, old->observation_scopes, &old->tags),
		    scope_key(pool, now.observation_scopes, &it->tags)) != 0)
		kept->swept[kept->n_swept++] = old->unit_no;
	if (!hs_str_eq(now.metadata, old->metadata) ||
		!hs_str_eq(now.observation_scopes, old->observation_scopes))
		HS_TRY(hs_unit_set_meta(db, bank_no, &now, err));
	return hs_unit_retag(db, pool, bank_no, w->stamp_us, old->unit_no, &old->tags, &it->tags,
		&changed, err);
}

static enum hs_rc keep(
	struct hs_db *db, struct write *w, const struct hs_doc_row *old, struct hs_err *err)
{
	struct hs_pool *pool = w->b->pool;
	int64_t bank_no = w->d->bank->bank_no;
	struct hs_doc_row row = new_row(w);
	struct hs_deleted gone = {0};
	struct kept kept;
	struct hs_unit_meta *units;
	size_t n;

	if (!old || strcmp(old->content_hash, w->d->hash) != 0) {
		w->outcome = RETAIN_REPLAN;
		return HS_OK;
	}
	row.created_us = old->created_us;
	HS_TRY(hs_document_put(db, pool, bank_no, &row, err));
	HS_TRY(hs_units_of_document(db, pool, bank_no, w->d->document_id, &units, &n, err));
	kept = (struct kept){HS_NEW_ARRAY(pool, int64_t, n + 1), 0};
	for (size_t i = 0; i < n; i++)
		HS_TRY(keep_unit(db, w, &units[i], &kept, err));
	if (!kept.n_swept)
		return HS_OK;
	HS_TRY(hs_observation_sweep(db, pool, bank_no, kept.swept, kept.n_swept, &gone, err));
	w->pending = true;
	return hs_units_mark(db, pool, bank_no, kept.swept, kept.n_swept, false, HS_TIME_NONE, err);
}

static enum hs_rc open_document(struct hs_db *db, struct write *w, struct hs_err *err)
{
	struct hs_doc_row old;
	bool found;

	HS_TRY(lock_row(db, w, &old, &found, err));
	if (!w->b->first) {
		if (!found || strcmp(old.content_hash, w->d->hash) != 0)
			w->outcome = RETAIN_OVERTAKEN;
		return HS_OK;
	}
	return w->d->plan == RETAIN_KEEP ? keep(db, w, found ? &old : NULL, err)
					 : replace(db, w, found ? &old : NULL, err);
}

/* ---- facts ---- */

static enum hs_rc write_chunks(struct hs_db *db, const struct write *w, struct hs_err *err)
{
	const struct retain_batch *b = w->b;
	struct hs_chunk_row *rows = HS_NEW_ARRAY(b->pool, struct hs_chunk_row, b->n_pieces + 1);
	bool keep_text = hs_cfg_bool(w->d->cfg, HS_S_store_document_text);

	for (size_t i = 0; i < b->n_pieces; i++)
		rows[i] = (struct hs_chunk_row){b->pieces[i]->index,
			keep_text ? b->pieces[i]->text : "", b->pieces[i]->hash, w->stamp_us};
	return hs_chunks_put(
		db, b->pool, w->d->bank->bank_no, w->d->document_id, rows, b->n_pieces, err);
}

static enum hs_rc write_causes(struct hs_db *db, const struct write *w, struct hs_err *err)
{
	const struct retain_batch *b = w->b;
	struct hs_link *links;
	size_t n = 0;

	for (size_t i = 0; i < b->n_facts; i++)
		n += b->facts[i].n_causes;
	links = HS_NEW_ARRAY(b->pool, struct hs_link, n + 1);
	n = 0;
	for (size_t i = 0; i < b->n_facts; i++)
		for (size_t k = 0; k < b->facts[i].n_causes; k++)
			links[n++] = (struct hs_link){b->facts[i].unit.unit_no,
				b->facts[b->facts[i].causes[k]].unit.unit_no, "caused_by", 1.0};
	return hs_links_insert(db, b->pool, w->d->bank->bank_no, links, n, err);
}

static enum hs_rc write_facts(struct hs_db *db, struct write *w, struct hs_err *err)
{
	struct retain_batch *b = w->b;
	int64_t bank_no = w->d->bank->bank_no;
	struct hs_entity_use *uses = HS_NEW_ARRAY(b->pool, struct hs_entity_use, b->n_facts + 1);
	struct hs_unit *units = HS_NEW_ARRAY(b->pool, struct hs_unit, b->n_facts + 1);

	if (!b->n_facts)
		return HS_OK;
	for (size_t i = 0; i < b->n_facts; i++)
		uses[i] = b->facts[i].use;
	HS_TRY(hs_entities_use(db, b->pool, bank_no, w->stamp_us, uses, b->n_facts, err));
	for (size_t i = 0; i < b->n_facts; i++) {
		units[i] = b->facts[i].unit;
		units[i].entities = uses[i].entity_nos;
		units[i].n_entities = uses[i].names.n;
	}
	HS_TRY(hs_units_insert(db, b->pool, bank_no, w->stamp_us, units, b->n_facts, err));
	for (size_t i = 0; i < b->n_facts; i++)
		b->facts[i].unit.unit_no = units[i].unit_no;
	HS_TRY(write_chunks(db, w, err));
	return write_causes(db, w, err);
}

/* ---- the transaction ---- */

static bool consolidates(const struct hs_config *cfg)
{
	return hs_cfg_bool(cfg, HS_S_enable_observations) &&
	       hs_cfg_bool(cfg, HS_S_enable_auto_consolidation);
}

static enum hs_rc submit(
	struct hs_db *db, struct hs_pool *pool, int64_t bank_no, struct hs_err *err)
{
	struct hs_consolidation_submit s = {.round = 1};
	const char *id;
	bool folded;

	return hs_submit_consolidation(db, pool, bank_no, &s, &id, &folded, err);
}

static enum hs_rc write_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct write *w = arg;
	int64_t bank_no = w->d->bank->bank_no;

	w->outcome = RETAIN_WRITTEN;
	w->pending = false;
	HS_TRY(hs_clock_advance(db, bank_no, &w->stamp_us, err));
	HS_TRY(open_document(db, w, err));
	if (w->outcome != RETAIN_WRITTEN)
		return HS_OK;
	HS_TRY(write_facts(db, w, err));
	w->pending = w->pending || w->b->n_facts > 0;
	if (w->d->last && w->b->last && (w->pending || *w->d->pending) && consolidates(w->d->cfg))
		HS_TRY(submit(db, w->b->pool, bank_no, err));
	return HS_OK;
}

enum hs_rc hs_retain_write(const struct retain_doc *d, struct retain_batch *b,
	enum retain_outcome *ret, struct hs_err *err)
{
	struct write w = {.d = d, .b = b};

	HS_TRY(hs_tx_run(b->run.db, write_tx, &w, err));
	*ret = w.outcome;
	if (w.outcome != RETAIN_WRITTEN)
		return HS_OK;
	*d->pending = *d->pending || w.pending;
	if (d->last && b->last && *d->pending && consolidates(d->cfg))
		hs_queue_poke(b->run.server);
	return HS_OK;
}

struct follow_up {
	struct hs_pool *pool;
	int64_t bank_no;
};

static enum hs_rc follow_up_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	const struct follow_up *f = arg;

	HS_TRY(hs_clock_lock(db, f->bank_no, err));
	return submit(db, f->pool, f->bank_no, err);
}

enum hs_rc hs_retain_follow_up(struct hs_run *run, const struct hs_bank *bank,
	const struct hs_config *cfg, struct hs_err *err)
{
	struct follow_up f = {run->pool, bank->bank_no};

	if (!consolidates(cfg))
		return HS_OK;
	HS_TRY(hs_tx_run(run->db, follow_up_tx, &f, err));
	hs_queue_poke(run->server);
	return HS_OK;
}
