#include "store/bank.h"

#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "db/row.h"
#include "db/tx.h"
#include "json/json.h"

#define BANK_COLUMNS                                                                               \
	"SELECT bank_no, bank_id, name, mission, skepticism, literalism, empathy, config, created_at, " \
	"updated_at FROM banks "

enum { SQL_FIND, SQL_FIND_NO, SQL_INSERT, SQL_CLOCK };
static const char *const sql[] = {
	[SQL_FIND] = (BANK_COLUMNS "WHERE bank_id = ?"),
	[SQL_FIND_NO] = (BANK_COLUMNS "WHERE bank_no = ?"),
	[SQL_INSERT] = ("INSERT INTO banks (bank_id, name, mission, config, created_at, "
		"updated_at) VALUES (?, ?, '', '{}', ?, ?)"),
	[SQL_CLOCK] = ("INSERT INTO bank_clock (bank_no, last_write_at) VALUES (?, "
		"UTC_TIMESTAMP(6))"),
};
HS_SQL_LIST(hs_bank_sql, sql);

static const struct hs_col bank_cols[] = {
	HS_COL_INT(struct hs_bank, bank_no),
	HS_COL_STR(struct hs_bank, bank_id),
	HS_COL_STR(struct hs_bank, name),
	HS_COL_STR(struct hs_bank, mission),
	HS_COL_INT(struct hs_bank, skepticism),
	HS_COL_INT(struct hs_bank, literalism),
	HS_COL_INT(struct hs_bank, empathy),
	HS_COL_STR(struct hs_bank, config),
	HS_COL_TIME(struct hs_bank, created_us),
	HS_COL_TIME(struct hs_bank, updated_us),
};

/* Unicode category Cc is exactly these two ranges. */
static bool has_control(const char *s)
{
	size_t n = strlen(s), step;
	uint32_t cp;

	for (; n > 0; s += step, n -= step) {
		step = hs_utf8_next(s, n, &cp);
		if (step == 0)
			return true;
		if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0))
			return true;
	}
	return false;
}

enum hs_rc hs_bank_id_check(const char *bank_id, struct hs_err *err)
{
	if (hs_str_empty(bank_id))
		return hs_fail(err, HS_E_BAD_REQUEST, "Bank id must not be empty");
	if (strlen(bank_id) > HS_BANK_ID_BYTES)
		return hs_fail(err, HS_E_BAD_REQUEST, "Bank id must be at most %d bytes",
			HS_BANK_ID_BYTES);
	if (has_control(bank_id))
		return hs_fail(
			err, HS_E_BAD_REQUEST, "Bank id must not contain control characters");
	if (bank_id[0] == '_')
		return hs_fail(err, HS_E_BAD_REQUEST, "Bank id must not start with '_'");
	return HS_OK;
}

enum hs_rc hs_bank_missing(const char *bank_id, struct hs_err *err)
{
	return hs_fail(err, HS_E_BANK_MISSING, "Bank '%s' not found", bank_id);
}

static enum hs_rc find(struct hs_db *db, struct hs_pool *pool, int which, struct hs_bind key,
	struct hs_bank *ret, bool *ret_found, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[which], &key, 1, &rows, err));
	*ret_found = rows.n > 0;
	if (rows.n > 0)
		hs_row_read(pool, bank_cols, HS_COUNT(bank_cols), rows.v, ret);
	return HS_OK;
}

enum hs_rc hs_bank_find(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	struct hs_bank *ret, struct hs_err *err)
{
	bool found = false;

	/* a longer id cannot exist, and the column would not take it */
	if (strlen(bank_id) <= HS_BANK_ID_BYTES)
		HS_TRY(find(db, pool, SQL_FIND, hs_b_str(bank_id), ret, &found, err));
	return found ? HS_OK : hs_bank_missing(bank_id, err);
}

enum hs_rc hs_bank_find_no(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	struct hs_bank *ret, struct hs_err *err)
{
	bool found;

	HS_TRY(find(db, pool, SQL_FIND_NO, hs_b_int(bank_no), ret, &found, err));
	return found ? HS_OK : hs_fail(err, HS_E_BANK_MISSING, "the bank has been deleted");
}

struct ensure {
	struct hs_pool *pool;
	const char *bank_id;
	struct hs_bank *bank;
	bool made;
};

static enum hs_rc ensure(struct hs_db *db, void *arg, struct hs_err *err)
{
	struct ensure *e = arg;
	int64_t now = hs_now_us();
	struct hs_err mine;
	enum hs_rc rc;
	bool found;

	e->made = false;
	HS_TRY(find(db, e->pool, SQL_FIND, hs_b_str(e->bank_id), e->bank, &found, err));
	if (found)
		return HS_OK;
	hs_err_clear(&mine);
	rc = hs_db_exec(db, sql[SQL_INSERT],
		HS_BINDS(
			hs_b_str(e->bank_id), hs_b_str(e->bank_id), hs_b_time(now), hs_b_time(now)),
		NULL, &mine);
	if (rc == HS_OK) {
		e->made = true;
		HS_TRY(hs_db_exec(db, sql[SQL_CLOCK],
			HS_BINDS(hs_b_int((int64_t)hs_db_insert_id(db))), NULL, err));
	} else if (rc != HS_E_DB_DUPLICATE) {
		return hs_fail_foreign(err, rc, mine.foreign, "%s", mine.msg);
	}
	/* made here, or by someone else a moment ago */
	HS_TRY(find(db, e->pool, SQL_FIND, hs_b_str(e->bank_id), e->bank, &found, err));
	return found ? HS_OK
		     : hs_fail(err, HS_E_DB_DEADLOCK, "bank '%s' came and went", e->bank_id);
}

enum hs_rc hs_bank_ensure(struct hs_db *db, struct hs_pool *pool, const char *bank_id,
	struct hs_bank *ret, bool *ret_made, struct hs_err *err)
{
	struct ensure e = {.pool = pool, .bank_id = bank_id, .bank = ret};

	HS_TRY(hs_bank_id_check(bank_id, err));
	HS_TRY(hs_tx_open(db) ? ensure(db, &e, err) : hs_tx_run(db, ensure, &e, err));
	if (ret_made)
		*ret_made = e.made;
	return HS_OK;
}

enum hs_rc hs_bank_config(struct hs_pool *pool, const struct hs_config *server,
	const struct hs_bank *bank, struct hs_config **ret, struct hs_err *err)
{
	json_t *overrides;

	HS_TRY(hs_json_load(pool, bank->config, &overrides, err));
	if (!json_is_object(overrides))
		return hs_fail(
			err, HS_E_PARSE, "the stored configuration of bank '%s'", bank->bank_id);
	*ret = hs_config_for_bank(pool, server, overrides);
	return HS_OK;
}
