/*
 * clock - the commit clock: bank_clock(bank_no, last_write_at).
 *
 * Floor:   store. The first statement of every transaction that writes memories is hs_clock_advance;
 *          the row lock is held to the commit, so stamps of one bank are strictly ordered by commit.
 * Stamps:  created_at and updated_at of new units, updated_at of units whose text, type, dates,
 *          context, tags or state change. consolidated_at, links and counters never move it.
 * Errors:  HS_E_BANK_MISSING when the bank is gone: nothing may be stored then.
 */
#ifndef HS_STORE_CLOCK_H
#define HS_STORE_CLOCK_H

#include "db/db.h"

/* Lock and advance: GREATEST(now, last_write_at + 1 µs). */
HS_MUST enum hs_rc hs_clock_advance(
	struct hs_db *db, int64_t bank_no, int64_t *ret_stamp_us, struct hs_err *err);
/* Lock without advancing: deletes and bookkeeping. */
HS_MUST enum hs_rc hs_clock_lock(struct hs_db *db, int64_t bank_no, struct hs_err *err);
/* The committed value, read plainly: the cutoff of a refresh. */
HS_MUST enum hs_rc hs_clock_read(
	struct hs_db *db, int64_t bank_no, int64_t *ret_us, struct hs_err *err);
extern const struct hs_sql_list hs_clock_sql;

#endif
