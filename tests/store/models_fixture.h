/*
 * models_fixture - a bank with memories and mental models for tests on a real database.
 */
#ifndef HS_MODELS_FIXTURE_H
#define HS_MODELS_FIXTURE_H

#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "db/tx.h"
#include "engine/model_scope.h"
#include "json/json.h"
#include "store/bank.h"
#include "store/clock.h"

struct fixture {
	struct hs_pool *pool;
	struct hs_config *cfg;
	struct hs_db *db;
	struct hs_bank bank;
	struct hs_err err;
};

/* The call must succeed; its message is shown when not. */
#define OK(f, call)                                                                                \
	do {                                                                                       \
		if ((call) != HS_OK)                                                               \
			fail_msg("%s: %s", #call, (f)->err.msg);                                   \
	} while (0)

static inline void fixture_cfg(struct fixture *f, const char *name, const char *value)
{
	OK(f, hs_config_set(f->cfg, name, value, &f->err));
}

static inline int fixture_setup(void **state)
{
	struct hs_pool *pool = hs_pool_new();
	struct fixture *f = HS_NEW(pool, struct fixture);
	char id[HS_UUID_TEXT];

	f->pool = pool;
	f->cfg = hs_config_defaults(pool);
	fixture_cfg(f, "database_socket", getenv("HS_TEST_DB_SOCKET"));
	fixture_cfg(f, "database_name", getenv("HS_TEST_DB_NAME"));
	fixture_cfg(f, "database_user", "root");
	f->db = hs_db_new(f->cfg);
	hs_uuid_v4(id);
	OK(f, hs_bank_ensure(f->db, pool, hs_pool_strdup(pool, id), &f->bank, NULL, &f->err));
	*state = f;
	return 0;
}

static inline int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	struct hs_pool *pool = f->pool;

	hs_db_free(&f->db);
	hs_pool_free(&pool);
	return 0;
}

static inline int64_t fixture_clock(struct fixture *f)
{
	int64_t us = 0;

	OK(f, hs_clock_read(f->db, f->bank.bank_no, &us, &f->err));
	return us;
}

/* ---- memories ---- */

struct fixture_memory {
	struct fixture *f;
	const char *id, *type, *tags; /* tags: JSON text */
};

static inline enum hs_rc fixture_memory_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct fixture_memory *m = arg;
	struct fixture *f = m->f;
	json_t *tags = NULL, *tag;
	int64_t stamp;
	size_t i;

	HS_TRY(hs_clock_advance(db, f->bank.bank_no, &stamp, err));
	HS_TRY(hs_db_exec(db,
		"INSERT INTO memory_units (bank_no, id, fact_type, text, tags, created_at, updated_at)"
		" VALUES (?, ?, ?, 'text', ?, ?, ?)",
		HS_BINDS(hs_b_int(f->bank.bank_no), hs_b_str(m->id), hs_b_str(m->type),
			hs_b_str(m->tags), hs_b_time(stamp), hs_b_time(stamp)),
		NULL, err));
	HS_TRY(hs_json_load(f->pool, m->tags, &tags, err));
	json_array_foreach(tags, i, tag)
		HS_TRY(hs_db_exec(db,
			"INSERT INTO unit_tags (bank_no, tag, unit_no)"
			" SELECT bank_no, ?, unit_no FROM memory_units WHERE bank_no = ? AND id = ?",
			HS_BINDS(hs_b_str(json_string_value(tag)), hs_b_int(f->bank.bank_no),
				hs_b_str(m->id)),
			NULL, err));
	return HS_OK;
}

static inline const char *fixture_memory(struct fixture *f, const char *type, const char *tags)
{
	struct fixture_memory m = {f, hs_uuid_v4_new(f->pool), type, tags};

	OK(f, hs_tx_run(f->db, fixture_memory_in_tx, &m, &f->err));
	return m.id;
}

static inline enum hs_rc fixture_edit_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct fixture_memory *m = arg;
	int64_t stamp;

	HS_TRY(hs_clock_advance(db, m->f->bank.bank_no, &stamp, err));
	return hs_db_exec(db,
		"UPDATE memory_units SET text = 'edited', updated_at = ? WHERE bank_no = ? AND id = ?",
		HS_BINDS(hs_b_time(stamp), hs_b_int(m->f->bank.bank_no), hs_b_str(m->id)), NULL,
		err);
}

static inline void fixture_edit(struct fixture *f, const char *id)
{
	struct fixture_memory m = {f, id, NULL, NULL};

	OK(f, hs_tx_run(f->db, fixture_edit_in_tx, &m, &f->err));
}

static inline enum hs_rc fixture_remove_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct fixture_memory *m = arg;

	HS_TRY(hs_clock_lock(db, m->f->bank.bank_no, err));
	HS_TRY(hs_db_exec(db,
		"DELETE t FROM unit_tags t JOIN memory_units u ON u.bank_no = t.bank_no AND u.unit_no = t.unit_no"
		" WHERE u.bank_no = ? AND u.id = ?",
		HS_BINDS(hs_b_int(m->f->bank.bank_no), hs_b_str(m->id)), NULL, err));
	return hs_db_exec(db, "DELETE FROM memory_units WHERE bank_no = ? AND id = ?",
		HS_BINDS(hs_b_int(m->f->bank.bank_no), hs_b_str(m->id)), NULL, err);
}

static inline void fixture_remove(struct fixture *f, const char *id)
{
	struct fixture_memory m = {f, id, NULL, NULL};

	OK(f, hs_tx_run(f->db, fixture_remove_in_tx, &m, &f->err));
}

/* ---- models ---- */

struct fixture_model {
	struct fixture *f;
	struct hs_mm_new row;
	struct hs_mm_change change;
};

static inline enum hs_rc fixture_model_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct fixture_model *m = arg;

	return hs_mm_insert(db, m->f->pool, m->f->bank.bank_no, m->f->bank.bank_id, &m->row, err);
}

/* tags and trigger are JSON text; NULL = none */
static inline enum hs_rc fixture_try_model(struct fixture *f, const char *id, const char *tags,
	const char *trigger, const struct hs_mm_vector *vector)
{
	struct fixture_model m = {.f = f};
	json_t *list = NULL;

	OK(f, hs_json_load(f->pool, tags, &list, &f->err));
	m.row = (struct hs_mm_new){.id = id,
		.name = id,
		.source_query = "?",
		.max_tokens = 2048,
		.tags = hs_json_strs(f->pool, list),
		.trigger = hs_trigger_text(f->pool, hs_trigger_read(f->pool, trigger))};
	if (vector)
		m.row.vector = *vector;
	return hs_tx_run(f->db, fixture_model_in_tx, &m, &f->err);
}

static inline const char *fixture_model(
	struct fixture *f, const char *id, const char *tags, const char *trigger)
{
	OK(f, fixture_try_model(f, id, tags, trigger, NULL));
	return id;
}

static inline enum hs_rc fixture_change_in_tx(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct fixture_model *m = arg;
	struct hs_mm row;

	HS_TRY(hs_mm_lock(db, m->f->pool, m->f->bank.bank_no, m->row.id, &row, err));
	return hs_mm_update(db, m->f->pool, m->f->bank.bank_no, m->row.id, &m->change, err);
}

static inline void fixture_change(struct fixture *f, const char *id, struct hs_mm_change change)
{
	struct fixture_model m = {.f = f, .row = {.id = id}, .change = change};

	OK(f, hs_tx_run(f->db, fixture_change_in_tx, &m, &f->err));
}

static inline struct hs_mm_page fixture_list(
	struct fixture *f, struct hs_mm_list in, bool **ret_stale)
{
	struct hs_mm_page page;

	in.bank_id = f->bank.bank_id;
	if (in.limit == 0)
		in.limit = -1;
	OK(f, hs_mm_list(f->db, f->pool, &in, &page, &f->err));
	*ret_stale = HS_NEW_ARRAY(f->pool, bool, page.n + 1);
	OK(f, hs_models_stale(f->db, f->pool, page.bank_no, page.clock_us, page.v, page.n,
		      *ret_stale, &f->err));
	return page;
}

/* The single read's answer, which the list's must equal. */
static inline bool fixture_stale(struct fixture *f, const char *id)
{
	struct hs_mm m;
	struct hs_mm_page page;
	bool single = false, *all;

	OK(f, hs_mm_get(f->db, f->pool, f->bank.bank_id, id, HS_FULL, &m, &f->err));
	OK(f, hs_model_stale(f->db, f->pool, &m, &single, &f->err));
	page = fixture_list(f, (struct hs_mm_list){0}, &all);
	for (size_t i = 0; i < page.n; i++)
		if (strcmp(page.v[i].id, id) == 0 && all[i] != single)
			fail_msg("%s: the list says %d, the single read %d", id, all[i], single);
	return single;
}

/* No database: the test program is skipped. */
#define FIXTURE_MAIN_CHECK                                                                         \
	do {                                                                                       \
		if (!getenv("HS_TEST_DB_SOCKET") || !getenv("HS_TEST_DB_NAME"))                    \
			return 77;                                                                 \
	} while (0)
#define FIXTURE_CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

#endif
