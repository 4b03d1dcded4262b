#include "memories.h"

#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/retain.h"
#include "json/json.h"

static struct hs_retain_item *items_of(struct hs_ctx *c, const struct retain_body *b)
{
	struct hs_retain_item *items = HS_NEW_ARRAY(c->pool, struct hs_retain_item, b->items.n + 1);

	for (size_t i = 0; i < b->items.n; i++)
		items[i] = hs_item_make(c->pool, b->items.v[i], &b->document_tags);
	return items;
}

#define SHOWN_IDS 10 /* in an error text */

static enum hs_rc unique_documents(struct hs_ctx *c, const struct hs_retain_item *items, size_t n)
{
	struct hs_strs ids = {0}, sorted, twice = {0};

	for (size_t i = 0; i < n; i++)
		if (items[i].document_id)
			hs_strs_add(c->pool, &ids, items[i].document_id);
	sorted = hs_strs_sorted_set(c->pool, &ids);
	if (sorted.n == ids.n)
		return HS_OK;
	for (size_t i = 0; i < sorted.n && twice.n < SHOWN_IDS; i++) {
		size_t times = 0;

		for (size_t k = 0; k < ids.n && times < 2; k++)
			times += strcmp(sorted.v[i], ids.v[k]) == 0;
		if (times > 1)
			hs_strs_add(c->pool, &twice, hs_pool_printf(c->pool, "'%s'", sorted.v[i]));
	}
	return hs_fail(&c->err, HS_E_BAD_REQUEST,
		"Batch contains duplicate document_ids: [%s]. Each item of an async batch needs a document of its own; "
		"use async=false to store several items as one document.",
		hs_strs_join(c->pool, &twice, ", "));
}

/* ---- answers ---- */

static void out_usage(struct hs_out *o, const struct hs_llm_usage *u)
{
	hs_out_open(o, "usage", '{');
	hs_out_int(o, "input_tokens", u->input);
	hs_out_int(o, "output_tokens", u->output);
	hs_out_int(o, "total_tokens", u->input + u->output);
	hs_out_int(o, "cached_tokens", 0);
	hs_out_int(o, "thoughts_tokens", 0);
	hs_out_close(o, '}');
}

/* usage NULL and ids empty print null; several ids are listed beside the first. */
static void answer(struct hs_ctx *c, int64_t items_count, bool async, const struct hs_strs *ids,
	const struct hs_llm_usage *usage)
{
	struct hs_out o = hs_reply(c);

	hs_out_open(&o, NULL, '{');
	hs_out_bool(&o, "success", true);
	hs_out_str(&o, "bank_id", c->bank_id);
	hs_out_int(&o, "items_count", items_count);
	hs_out_bool(&o, "async", async);
	hs_out_str(&o, "operation_id", ids->n ? ids->v[0] : NULL);
	if (ids->n > 1)
		hs_out_strs(&o, "operation_ids", ids);
	else
		hs_out_null(&o, "operation_ids");
	if (usage)
		out_usage(&o, usage);
	else
		hs_out_null(&o, "usage");
	hs_out_close(&o, '}');
}

/* ---- the two ways ---- */

static enum hs_rc store_now(struct hs_ctx *c, const struct hs_retain_item *items, size_t n)
{
	struct hs_run run = memories_run(c);
	struct hs_retain_out out;
	struct hs_strs none = {0};
	struct hs_bank bank;
	enum hs_rc rc;

	if (!n) {
		answer(c, 0, false, &none, &run.usage);
		return HS_OK;
	}
	HS_TRY(hs_bank_ensure(c->db, c->pool, c->bank_id, &bank, NULL, &c->err));
	rc = hs_retain_run(&run, &bank, items, n, &out, &c->err);
	if (rc == HS_E_CANCELLED)
		return hs_fail(&c->err, HS_E_CLIENT_GONE,
			"the client closed the connection during retain");
	HS_TRY(rc);
	answer(c, out.items_count, false, &none, &out.usage);
	return HS_OK;
}

/* Items of one strategy become one parent operation; strategies in order of first appearance. */
static enum hs_rc store_later(
	struct hs_ctx *c, const struct retain_body *b, const struct hs_retain_item *items, size_t n)
{
	struct hs_run run = memories_run(c);
	struct hs_retain_item *group = HS_NEW_ARRAY(c->pool, struct hs_retain_item, n + 1);
	bool *done = HS_NEW_ARRAY(c->pool, bool, n + 1);
	struct hs_strs ids = {0};
	int64_t stored = 0, count;

	HS_TRY(unique_documents(c, items, n));
	for (size_t i = 0; b->operation_id && i < n; i++)
		if (!hs_str_eq(items[i].strategy, items[0].strategy))
			return hs_fail(&c->err, HS_E_BAD_REQUEST,
				"operation_id requires all retain items to resolve to a single strategy");
	for (size_t i = 0; i < n; i++) {
		const char *id;
		size_t m = 0;

		for (size_t k = i; k < n; k++) {
			if (done[k] || !hs_str_eq(items[k].strategy, items[i].strategy))
				continue;
			done[k] = true;
			group[m++] = items[k];
		}
		if (!m)
			continue;
		HS_TRY(hs_retain_submit(
			&run, c->bank_id, b->operation_id, group, m, &id, &count, &c->err));
		hs_strs_add(c->pool, &ids, id);
		stored += count;
	}
	answer(c, stored, true, &ids, NULL);
	return HS_OK;
}

enum hs_rc retain_post(struct hs_ctx *c, const void *query, const void *body)
{
	const struct retain_body *b = body;
	const struct hs_retain_item *items = items_of(c, b);
	struct hs_run run = memories_run(c);
	int64_t started_us = hs_mono_us();
	enum hs_rc rc;

	(void)query;
	HS_TRY(hs_items_check(&run, c->bank_id, items, b->items.n, &c->err));
	rc = b->async ? store_later(c, b, items, b->items.n) : store_now(c, items, b->items.n);
	if (rc != HS_E_CLIENT_GONE)
		hs_metrics_operation(
			"retain", "api", NULL, NULL, rc == HS_OK, hs_mono_us() - started_us);
	return rc;
}
