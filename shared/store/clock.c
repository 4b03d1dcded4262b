#include "store/clock.h"

#include <inttypes.h>

enum { SQL_ADVANCE, SQL_READ, SQL_LOCK };
static const char *const sql[] = {
	[SQL_ADVANCE] = ("UPDATE bank_clock SET last_write_at = GREATEST(UTC_TIMESTAMP(6), "
		"last_write_at + INTERVAL 1 MICROSECOND) WHERE bank_no = ?"),
	[SQL_READ] = "SELECT last_write_at FROM bank_clock WHERE bank_no = ?",
	[SQL_LOCK] = "SELECT last_write_at FROM bank_clock WHERE bank_no = ? FOR UPDATE",
};
HS_SQL_LIST(hs_clock_sql, sql);

static enum hs_rc gone(int64_t bank_no, struct hs_err *err)
{
	return hs_fail(err, HS_E_BANK_MISSING, "bank %" PRId64 " has been deleted", bank_no);
}

static enum hs_rc read_clock(
	struct hs_db *db, int64_t bank_no, int which, int64_t *ret_us, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[which], HS_BINDS(hs_b_int(bank_no)), &rows, err));
	if (rows.n == 0)
		return gone(bank_no, err);
	*ret_us = rows.v[0].i;
	return HS_OK;
}

enum hs_rc hs_clock_advance(
	struct hs_db *db, int64_t bank_no, int64_t *ret_stamp_us, struct hs_err *err)
{
	uint64_t found;

	HS_TRY(hs_db_exec(db, sql[SQL_ADVANCE], HS_BINDS(hs_b_int(bank_no)), &found, err));
	if (found == 0)
		return gone(bank_no, err);
	return read_clock(db, bank_no, SQL_READ, ret_stamp_us, err);
}

enum hs_rc hs_clock_lock(struct hs_db *db, int64_t bank_no, struct hs_err *err)
{
	int64_t ignored;

	return read_clock(db, bank_no, SQL_LOCK, &ignored, err);
}

enum hs_rc hs_clock_read(struct hs_db *db, int64_t bank_no, int64_t *ret_us, struct hs_err *err)
{
	return read_clock(db, bank_no, SQL_READ, ret_us, err);
}
