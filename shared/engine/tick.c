#include "engine/tick.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/automatic.h"
#include "engine/cron.h"
#include "engine/model_scope.h"
#include "json/json.h"
#include "store/automatic.h"
#include "store/operation.h"

#define PAGE 500

struct look {
	struct hs_db *db;
	struct hs_pool *pool; /* of the page */
	int64_t now_us;
	struct hs_tick *count;
};

/* A model whose schedule has fired. */
struct due {
	const struct hs_mm *m;
	bool full, stale;
};

/* ---- which have fired ---- */

/* The schedule of one member; false when there is none or it cannot be read. */
static bool read_cron(struct look *l, const struct hs_mm *m, json_t *trigger, const char *member,
	struct hs_cron *ret)
{
	const char *text = hs_json_str(trigger, member);
	struct hs_err err;

	if (hs_str_blank(text))
		return false;
	hs_err_clear(&err);
	if (hs_cron_parse(hs_str_trim(l->pool, text), ret, &err) == HS_OK)
		return true;
	l->count->bad++;
	hs_log(HS_LOG_WARN, "bad_schedule",
		"bank_no=%" PRId64 " mental_model_id=%s member=%s error=%s", m->bank_no,
		hs_log_quote(m->id), member, hs_log_quote(err.msg));
	return false;
}

/* HS_TIME_NONE is before every time. */
static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What a full rebuild would do away with: edits since the last one. */
static bool ran_since_full(const struct hs_mm *m)
{
	return m->last_full_refreshed_us == HS_TIME_NONE ||
	       m->last_refreshed_us > m->last_full_refreshed_us;
}

static bool is_due(struct look *l, const struct hs_auto_model *a, bool *ret_full)
{
	json_t *trigger = NULL;
	struct hs_cron plain, full;
	bool has_plain, has_full;

	if (hs_json_load(l->pool, a->m.trigger, &trigger, NULL) != HS_OK) {
		l->count->bad++;
		hs_log(HS_LOG_WARN, "bad_trigger", "bank_no=%" PRId64 " mental_model_id=%s",
			a->m.bank_no, hs_log_quote(a->m.id));
		return false;
	}
	has_plain = read_cron(l, &a->m, trigger, "refresh_cron", &plain);
	has_full = read_cron(l, &a->m, trigger, "full_refresh_cron", &full);
	*ret_full = has_full && ran_since_full(&a->m) &&
		    hs_cron_fired(&full, a->m.last_full_refreshed_us, l->now_us);
	return *ret_full ||
	       (has_plain && hs_cron_fired(&plain,
				     later(a->m.last_refreshed_us, a->cron_checked_us), l->now_us));
}

static struct due *find_due(struct look *l, const struct hs_auto_model *v, size_t n, size_t *ret_n)
{
	struct due *due = HS_NEW_ARRAY(l->pool, struct due, n ? n : 1);

	*ret_n = 0;
	for (size_t i = 0; i < n; i++) {
		bool full = false;

		if (is_due(l, &v[i], &full))
			due[(*ret_n)++] = (struct due){&v[i].m, full, full};
	}
	return due;
}

/* A refresh that waits or runs serves the schedule, too: those models are left alone. */
static enum hs_rc leave_out_open(struct look *l, struct due *due, size_t *n, struct hs_err *err)
{
	const struct hs_mm **v = HS_NEW_ARRAY(l->pool, const struct hs_mm *, *n);
	bool *open = HS_NEW_ARRAY(l->pool, bool, *n);
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++)
		v[i] = due[i].m;
	HS_TRY(hs_auto_open(l->db, l->pool, v, *n, open, err));
	for (size_t i = 0; i < *n; i++)
		if (!open[i])
			due[kept++] = due[i];
	*n = kept;
	return HS_OK;
}

/* ---- which are stale ---- */

/* Due models of one bank: those without a full rebuild are asked, in one aggregate. */
static enum hs_rc ask_bank(
	struct look *l, struct due *due, size_t n, int64_t clock_us, struct hs_err *err)
{
	struct hs_mm *asked = HS_NEW_ARRAY(l->pool, struct hs_mm, n);
	bool *stale = HS_NEW_ARRAY(l->pool, bool, n);
	size_t n_asked = 0;

	for (size_t i = 0; i < n; i++)
		if (!due[i].full)
			asked[n_asked++] = *due[i].m;
	HS_TRY(hs_models_stale(
		l->db, l->pool, due[0].m->bank_no, clock_us, asked, n_asked, stale, err));
	n_asked = 0;
	for (size_t i = 0; i < n; i++)
		if (!due[i].full)
			due[i].stale = stale[n_asked++];
	return HS_OK;
}

static size_t bank_end(const struct due *due, size_t n, size_t at)
{
	size_t end = at;

	while (end < n && due[end].m->bank_no == due[at].m->bank_no)
		end++;
	return end;
}

/* Leaves out models of deleted banks, which wait to be purged. */
static enum hs_rc ask(struct look *l, struct due *due, size_t *n, struct hs_err *err)
{
	int64_t *bank_no = HS_NEW_ARRAY(l->pool, int64_t, *n),
		*clock_us = HS_NEW_ARRAY(l->pool, int64_t, *n);
	size_t banks = 0, kept = 0, bank = 0, end;

	for (size_t at = 0; at < *n; at = bank_end(due, *n, at))
		bank_no[banks++] = due[at].m->bank_no;
	HS_TRY(hs_auto_clocks(l->db, l->pool, bank_no, banks, clock_us, err));
	for (size_t at = 0; at < *n; at = end, bank++) {
		end = bank_end(due, *n, at);
		if (clock_us[bank] == HS_TIME_NONE)
			continue;
		HS_TRY(ask_bank(l, due + at, end - at, clock_us[bank], err));
		for (size_t i = at; i < end; i++)
			due[kept++] = due[i];
	}
	*n = kept;
	return HS_OK;
}

/* ---- what follows ---- */

static enum hs_rc act(struct look *l, const struct due *due, size_t n, struct hs_err *err)
{
	const struct hs_mm **fresh = HS_NEW_ARRAY(l->pool, const struct hs_mm *, n);
	size_t n_fresh = 0;
	bool queued;

	for (size_t i = 0; i < n; i++) {
		if (!due[i].stale) {
			fresh[n_fresh++] = due[i].m;
			continue;
		}
		HS_TRY(hs_automatic_submit(l->db, l->pool, due[i].m, due[i].full, &queued, err));
		l->count->queued += queued;
	}
	l->count->due += (int64_t)n;
	l->count->fresh += (int64_t)n_fresh;
	return hs_auto_checked(l->db, l->pool, fresh, n_fresh, l->now_us, err);
}

static enum hs_rc look_at(
	struct look *l, const struct hs_auto_model *v, size_t n, struct hs_err *err)
{
	size_t n_due;
	struct due *due = find_due(l, v, n, &n_due);

	l->count->seen += (int64_t)n;
	if (n_due > 0)
		HS_TRY(leave_out_open(l, due, &n_due, err));
	if (n_due > 0)
		HS_TRY(ask(l, due, &n_due, err));
	return n_due > 0 ? act(l, due, n_due, err) : HS_OK;
}

enum hs_rc hs_tick_look(struct hs_db *db, int64_t now_us, struct hs_tick *ret, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *run = hs_pool_new();
	int64_t after_no = 0;
	const char *after_id = "";
	size_t n = PAGE;

	*ret = (struct hs_tick){0};
	while (n == PAGE) {
		HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
		struct look l = {db, pool, now_us, ret};
		struct hs_auto_model *v;

		HS_TRY(hs_auto_scheduled(db, pool, after_no, after_id, PAGE, &v, &n, err));
		HS_TRY(look_at(&l, v, n, err));
		if (n == 0)
			break;
		after_no = v[n - 1].m.bank_no;
		after_id = hs_pool_strdup(run, v[n - 1].m.id);
	}
	return HS_OK;
}

enum hs_rc hs_tick_run(struct hs_db *db, const struct hs_config *cfg, bool *ret_mine,
	struct hs_tick *ret, struct hs_err *err)
{
	int64_t every_s = hs_cfg_int(cfg, HS_S_mental_model_refresh_tick_seconds);

	*ret_mine = false;
	*ret = (struct hs_tick){0};
	if (every_s <= 0 || !hs_automatic_possible(cfg))
		return HS_OK;
	HS_TRY(hs_state_claim(db, HS_TICK_STATE, every_s, ret_mine, err));
	if (!*ret_mine)
		return HS_OK;
	HS_TRY(hs_tick_look(db, hs_now_us(), ret, err));
	if (ret->queued > 0)
		hs_queue_poke(cfg);
	return HS_OK;
}
