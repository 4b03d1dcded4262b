#include "engine/retain.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/strategy.h"
#include "engine/chunk.h"
#include "engine/retain_run.h"
#include "json/json.h"
#include "store/clock.h"
#include "store/vector.h"
#include "text/hash.h"

#define PLAN_TRIES 3  /* a document that changes between plan and write is planned anew */
#define SAMPLES_MAX 5 /* error texts kept */
#define SAMPLE_CHARS 500

/* One call, one strategy after the other. */
struct call {
	struct hs_run *run;
	const struct hs_bank *bank;
	const struct hs_config *bank_cfg;
	struct hs_retain_out *out;
	int64_t embedder_no;
	bool pending;           /* something written waits for consolidation */
	int64_t pieces, unread; /* pieces extracted, pieces that could not be read */
	size_t made_ids;
	struct retain_links *links;
};

/* ---- the document ---- */

static const char *hash_of(struct hs_pool *pool, const char *text)
{
	char hex[HS_SHA256_HEX];

	hs_sha256_hex(text, strlen(text), hex);
	return hs_pool_strdup(pool, hex);
}

/* A job makes the same ids when it runs again, so that a crash leaves no half document behind. */
static const char *made_id(struct call *c)
{
	struct hs_pool *pool = c->run->pool;
	char hex[HS_SHA256_HEX];
	const char *seed;

	if (!c->run->operation_id)
		return hs_uuid_v4_new(pool);
	seed = hs_pool_printf(pool, "%s document %zu", c->run->operation_id, c->made_ids++);
	hs_sha256_hex(seed, strlen(seed), hex);
	hex[12] = '8';
	hex[16] = 'a';
	return hs_pool_printf(
		pool, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static struct hs_strs union_of_tags(
	struct hs_pool *pool, const struct hs_retain_item *const *items, size_t n)
{
	struct hs_strs tags = {0};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < items[i]->tags.n; k++)
			hs_strs_add(pool, &tags, items[i]->tags.v[k]);
	return hs_strs_unique(pool, &tags);
}

static const char *body_of(
	struct hs_pool *pool, const struct hs_retain_item *const *items, size_t n)
{
	struct hs_strs parts = {0};

	if (n == 1)
		return items[0]->content;
	for (size_t i = 0; i < n; i++)
		hs_strs_add(pool, &parts, items[i]->content);
	return hs_strs_join(pool, &parts, "\n");
}

/* Each item is cut by itself, the pieces are numbered through. */
static void cut(struct retain_doc *d)
{
	struct hs_pool *pool = d->run->pool;
	size_t max = (size_t)hs_cfg_int(d->cfg, HS_S_retain_chunk_size), cap = 0;
	size_t structured = hs_cfg_null(d->cfg, HS_S_retain_structured_chunk_size)
				    ? max
				    : (size_t)hs_cfg_int(d->cfg, HS_S_retain_structured_chunk_size);

	for (size_t i = 0; i < d->n_items; i++) {
		struct hs_strs chunks = hs_chunk(pool, d->items[i]->content, max, structured);

		if (d->n_pieces + chunks.n > cap) {
			size_t want = 2 * (d->n_pieces + chunks.n);

			d->pieces = hs_pool_regrow(pool, d->pieces,
				d->n_pieces * sizeof(*d->pieces), want * sizeof(*d->pieces));
			cap = want;
		}
		for (size_t k = 0; k < chunks.n; k++) {
			d->pieces[d->n_pieces] = (struct retain_piece){d->items[i], chunks.v[k],
				hash_of(pool, chunks.v[k]), (int64_t)d->n_pieces, false};
			d->n_pieces++;
		}
	}
}

/* The same text with chunks that fit the new cut: keep them, else the document is replaced whole. */
static enum hs_rc make_plan(struct retain_doc *d, struct hs_err *err)
{
	struct hs_pool *pool = d->run->pool;
	struct hs_err miss = {0};
	struct hs_chunk_row *stored;
	struct hs_doc_row row;
	size_t n;
	enum hs_rc rc;

	d->plan = RETAIN_REPLACE;
	for (size_t i = 0; i < d->n_pieces; i++)
		d->pieces[i].stored = false;
	rc = hs_document_find(
		d->run->db, pool, d->bank->bank_no, d->document_id, false, false, &row, &miss);
	if (rc == HS_E_NOT_FOUND || (rc == HS_OK && strcmp(row.content_hash, d->hash) != 0))
		return HS_OK;
	if (rc != HS_OK) {
		*err = miss;
		return rc;
	}
	HS_TRY(hs_chunk_hashes(
		d->run->db, pool, d->bank->bank_no, d->document_id, &stored, &n, err));
	for (size_t i = 0; i < n; i++) {
		int64_t at = stored[i].chunk_index;

		if (at < 0 || (size_t)at >= d->n_pieces ||
			strcmp(d->pieces[at].hash, stored[i].content_hash) != 0)
			return HS_OK;
	}
	for (size_t i = 0; i < n; i++)
		d->pieces[stored[i].chunk_index].stored = true;
	d->plan = RETAIN_KEEP;
	return HS_OK;
}

/* ---- batches ---- */

static void note(struct call *c, const struct retain_batch *b)
{
	struct hs_retain_out *out = c->out;

	c->pieces += (int64_t)b->n_pieces;
	c->unread += b->errors;
	out->unit_ids_count += (int64_t)b->n_facts;
	out->extraction_errors_count += b->errors;
	for (size_t i = 0; i < b->error_sample.n && out->extraction_errors.n < SAMPLES_MAX; i++)
		hs_strs_add(c->run->pool, &out->extraction_errors,
			hs_utf8_cut(c->run->pool, b->error_sample.v[i], SAMPLE_CHARS));
}

static void show_progress(struct call *c, const struct retain_doc *d, size_t done)
{
	json_t *detail;

	if (!c->run->progress)
		return;
	detail = hs_json_keep(c->run->pool, json_object());
	json_object_set_new(detail, "facts_committed", json_integer(c->out->unit_ids_count));
	c->run->progress(
		c->run->progress_arg, "storing", (int64_t)done, (int64_t)d->n_pieces, detail);
}

/* Every piece of the call came back unreadable. */
static bool nothing_read(int64_t pieces, int64_t unread, int64_t facts)
{
	return pieces > 0 && unread >= pieces && !facts;
}

static enum hs_rc unreadable(struct hs_err *err)
{
	return hs_fail(err, HS_E_EXTRACT,
		"Fact extraction failed: every part of the content came back cut off");
}

/* Extract, write and link one batch. */
static enum hs_rc run_batch(struct call *c, struct retain_doc *d, struct retain_batch *b,
	enum retain_outcome *ret, struct hs_err *err)
{
	b->run = *c->run;
	b->run.pool = b->pool;
	HS_TRY(hs_retain_facts(d, b, err));
	c->run->usage = b->run.usage;
	if (b->first && b->last && d->last &&
		nothing_read(c->pieces + (int64_t)b->n_pieces, c->unread + b->errors,
			c->out->unit_ids_count + (int64_t)b->n_facts))
		return unreadable(err);
	HS_TRY(hs_retain_write(d, b, ret, err));
	if (*ret != RETAIN_WRITTEN)
		return HS_OK;
	hs_retain_links_add(c->links, b);
	note(c, b);
	return HS_OK;
}

/* Pieces still to be extracted, in order. */
static const struct retain_piece **open_pieces(
	struct hs_pool *pool, const struct retain_doc *d, size_t *ret_n)
{
	const struct retain_piece **v =
		HS_NEW_ARRAY(pool, const struct retain_piece *, d->n_pieces + 1);
	size_t n = 0;

	for (size_t i = 0; i < d->n_pieces; i++)
		if (!d->pieces[i].stored)
			v[n++] = &d->pieces[i];
	*ret_n = n;
	return v;
}

static enum hs_rc run_batches(
	struct call *c, struct retain_doc *d, enum retain_outcome *ret, struct hs_err *err)
{
	size_t n, step = (size_t)hs_cfg_int(d->cfg, HS_S_retain_chunk_batch_size), at = 0;
	const struct retain_piece **pieces = open_pieces(c->run->pool, d, &n);

	if (!step)
		step = n + 1;
	do {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct retain_batch b = {.pool = pool,
			.pieces = pieces + at,
			.n_pieces = n - at < step ? n - at : step,
			.first = at == 0};

		HS_TRY(hs_run_check(c->run, err));
		b.last = at + b.n_pieces >= n;
		HS_TRY(run_batch(c, d, &b, ret, err));
		if (*ret != RETAIN_WRITTEN)
			return HS_OK;
		at += b.n_pieces;
		show_progress(c, d, d->n_pieces - n + at);
	} while (at < n);
	return HS_OK;
}

static enum hs_rc run_document(struct call *c, struct retain_doc *d, struct hs_err *err)
{
	struct hs_pool *pool = c->run->pool;
	enum retain_outcome outcome = RETAIN_REPLAN;
	int64_t facts_before = c->out->unit_ids_count;

	d->run = c->run;
	d->bank = c->bank;
	d->embedder_no = c->embedder_no;
	d->pending = &c->pending;
	d->body = body_of(pool, d->items, d->n_items);
	d->hash = hash_of(pool, d->body);
	d->params = hs_retain_params(pool, d->items[0]);
	d->tags = union_of_tags(pool, d->items, d->n_items);
	hs_strs_add(pool, &c->out->document_ids, d->document_id);
	cut(d);
	for (int i = 0; i < PLAN_TRIES && outcome == RETAIN_REPLAN; i++) {
		HS_TRY(make_plan(d, err));
		HS_TRY(run_batches(c, d, &outcome, err));
	}
	if (outcome == RETAIN_REPLAN)
		return hs_fail(err, HS_E_DB_BUSY, "document %s kept changing while it was stored",
			d->document_id);
	hs_metrics_retained(c->out->unit_ids_count > facts_before);
	if (outcome == RETAIN_OVERTAKEN && d->last && c->pending)
		return hs_retain_follow_up(c->run, c->bank, d->cfg, err);
	return HS_OK;
}

/* ---- documents of a sub-batch ---- */

struct docs {
	struct retain_doc *v;
	size_t n;
};

/* Items of one id are one document; without any id the sub-batch is one, else each is its own. A pack
 * holds the items of one document side by side. */
static struct docs group(struct call *c, const struct retain_pack *p)
{
	struct docs docs = {HS_NEW_ARRAY(c->run->pool, struct retain_doc, p->n + 1), 0};
	bool any_id = false;

	for (size_t i = 0; i < p->n; i++)
		any_id = any_id || p->items[i]->document_id;
	for (size_t i = 0; i < p->n; i++) {
		const char *id = p->items[i]->document_id;

		if (!i || !(id ? hs_str_eq(p->items[i - 1]->document_id, id) : !any_id)) {
			docs.v[docs.n].document_id = id ? id : made_id(c);
			docs.v[docs.n++].items = p->items + i;
		}
		docs.v[docs.n - 1].n_items++;
	}
	return docs;
}

static enum hs_rc strategy_config(
	struct call *c, const char *asked, const struct hs_config **ret, struct hs_err *err)
{
	struct hs_strategy s;

	HS_TRY(hs_strategy_find(c->run->pool, c->bank_cfg, asked, &s, err));
	if (s.name && !s.fields)
		hs_log(HS_LOG_WARN, "strategy_unknown", "bank=%s strategy=%s",
			hs_log_quote(c->bank->bank_id), hs_log_quote(s.name));
	*ret = s.cfg;
	return HS_OK;
}

static enum hs_rc run_group(struct call *c, const struct hs_retain_item *const *items, size_t n,
	bool last, struct hs_err *err)
{
	const struct hs_config *cfg;
	struct retain_pack *packs;
	size_t n_packs;
	int64_t tokens, since_us;

	HS_TRY(strategy_config(c, items[0]->strategy, &cfg, err));
	HS_TRY(hs_clock_read(c->run->db, c->bank->bank_no, &since_us, err));
	packs = hs_retain_packs(c->run->pool, items, n,
		hs_cfg_int(c->run->server, HS_S_retain_batch_tokens), &tokens, &n_packs);
	for (size_t p = 0; p < n_packs; p++) {
		struct docs docs = group(c, &packs[p]);

		for (size_t i = 0; i < docs.n; i++) {
			docs.v[i].cfg = cfg;
			docs.v[i].since_us = since_us;
			docs.v[i].last = last && p + 1 == n_packs && i + 1 == docs.n;
			HS_TRY(run_document(c, &docs.v[i], err));
		}
	}
	return HS_OK;
}

/* ---- the call ---- */

/* Items of one strategy, in order of first appearance; done[i] marks those taken. */
static size_t take_strategy(
	const struct hs_retain_item *items, size_t n, bool *done, const struct hs_retain_item **ret)
{
	const struct hs_retain_item *first = NULL;
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		if (done[i] || (first && !hs_str_eq(items[i].strategy, first->strategy)))
			continue;
		first = first ? first : &items[i];
		done[i] = true;
		ret[m++] = &items[i];
	}
	return m;
}

enum hs_rc hs_retain_run(struct hs_run *run, const struct hs_bank *bank,
	const struct hs_retain_item *items, size_t n, struct hs_retain_out *ret, struct hs_err *err)
{
	struct call c = {.run = run, .bank = bank, .out = ret};
	struct hs_retain_item *own = hs_pool_memdup(run->pool, items, n * sizeof(*items));
	const struct hs_retain_item **group_items =
		HS_NEW_ARRAY(run->pool, const struct hs_retain_item *, n + 1);
	bool *done = HS_NEW_ARRAY(run->pool, bool, n + 1);
	struct hs_config *cfg;
	int64_t now_us = hs_now_us();
	enum hs_rc rc = HS_OK;

	*ret = (struct hs_retain_out){.items_count = (int64_t)n};
	for (size_t i = 0; i < n; i++) {
		if (own[i].append)
			return hs_fail(err, HS_E_NOT_IMPLEMENTED,
				"update_mode='append' is not implemented yet");
		if (!own[i].unset_time && own[i].time_us == HS_TIME_NONE)
			own[i].time_us = now_us;
	}
	HS_TRY(hs_bank_config(run->pool, run->server, bank, &cfg, err));
	c.bank_cfg = cfg;
	if (run->embedder && !hs_embedder_none(run->embedder))
		HS_TRY(hs_embedder_no(
			run->db, run->pool, hs_embedder_tag(run->embedder), &c.embedder_no, err));
	c.links = hs_retain_links_new(run, bank, cfg, c.embedder_no);
	for (size_t left = n; left > 0 && rc == HS_OK;) {
		size_t m = take_strategy(own, n, done, group_items);

		left -= m;
		rc = run_group(&c, group_items, m, left == 0, err);
	}
	hs_retain_links_flush(c.links);
	ret->usage = run->usage;
	HS_TRY(rc);
	return nothing_read(c.pieces, c.unread, ret->unit_ids_count) ? unreadable(err) : HS_OK;
}
