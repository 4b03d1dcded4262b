#include "store/operation.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "db/row.h"
#include "json/json.h"
#include "store/clock.h"

enum {
	SQL_INSERT, SQL_GET, SQL_GET_PAYLOAD, SQL_FIND, SQL_CONSOLIDATIONS, SQL_LOCK_MODEL,
	SQL_OPEN_REFRESH, SQL_SET_PAYLOAD, SQL_UNPARK,
};
static const char *const sql[] = {
	[SQL_INSERT] = ("INSERT INTO async_operations (operation_id, bank_no, operation_type, "
		"status, task_payload, result_metadata, subject_id, parent_id, is_parent, "
		"created_at, updated_at) VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?, "
		"UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))"),
	[SQL_GET] = ("SELECT NULL, " HS_OPERATION_COLUMNS " FROM async_operations WHERE "
		"operation_id = ? AND bank_no = ?"),
	[SQL_GET_PAYLOAD] = ("SELECT task_payload, " HS_OPERATION_COLUMNS " FROM async_operations "
		"WHERE operation_id = ? AND bank_no = ?"),
	/* a client's own id is global: whose bank it is, is what is asked */
	[SQL_FIND] = ("SELECT NULL, " HS_OPERATION_COLUMNS " FROM async_operations WHERE "
		"operation_id = ?"),
	[SQL_CONSOLIDATIONS] = ("SELECT operation_id, task_payload FROM async_operations WHERE "
		"bank_no = ? AND operation_type = 'consolidation' AND status = 'pending' ORDER BY "
		"created_at, operation_id"),
	[SQL_LOCK_MODEL] = ("SELECT last_refresh_failed_at FROM mental_models WHERE bank_no = ? "
		"AND id = ? FOR UPDATE"),
	[SQL_OPEN_REFRESH] = ("SELECT operation_id, status, task_payload FROM async_operations "
		"WHERE bank_no = ? AND operation_type = 'refresh_mental_model' AND status IN "
		"('pending', 'processing') AND subject_id = ? ORDER BY created_at, operation_id"),
	[SQL_SET_PAYLOAD] = ("UPDATE async_operations SET task_payload = ?, updated_at = "
		"UTC_TIMESTAMP(6) WHERE operation_id = ? AND bank_no = ? AND status = 'pending'"),
	[SQL_UNPARK] = ("UPDATE async_operations SET task_payload = ?, next_retry_at = NULL, "
		"updated_at = UTC_TIMESTAMP(6) WHERE operation_id = ? AND bank_no = ? AND status "
		"= 'pending'"),
};
HS_SQL_LIST(hs_operation_sql, sql);

static const struct hs_col cols[] = {
	HS_COL_STR(struct hs_operation, task_payload),
	HS_COL_STR(struct hs_operation, operation_id),
	HS_COL_STR(struct hs_operation, operation_type),
	HS_COL_STR(struct hs_operation, status),
	HS_COL_STR(struct hs_operation, result_metadata),
	HS_COL_STR(struct hs_operation, error_message),
	HS_COL_STR(struct hs_operation, worker_id),
	HS_COL_STR(struct hs_operation, subject_id),
	HS_COL_STR(struct hs_operation, parent_id),
	HS_COL_INT(struct hs_operation, bank_no),
	HS_COL_INT(struct hs_operation, retry_count),
	HS_COL_INT(struct hs_operation, attempt),
	HS_COL_BOOL(struct hs_operation, is_parent),
	HS_COL_TIME(struct hs_operation, next_retry_us),
	HS_COL_TIME(struct hs_operation, claimed_us),
	HS_COL_TIME(struct hs_operation, lease_until_us),
	HS_COL_TIME(struct hs_operation, created_us),
	HS_COL_TIME(struct hs_operation, updated_us),
	HS_COL_TIME(struct hs_operation, completed_us),
};

void hs_operation_read(struct hs_pool *pool, const struct hs_val *row, struct hs_operation *ret)
{
	hs_row_read(pool, cols, HS_COUNT(cols), row, ret);
}

struct hs_operation *hs_operations_read(struct hs_pool *pool, const struct hs_rows *rows)
{
	return hs_rows_read(pool, cols, HS_COUNT(cols), sizeof(struct hs_operation), rows);
}

enum hs_rc hs_operation_missing(const char *bank_id, const char *operation_id, struct hs_err *err)
{
	return hs_fail(
		err, HS_E_NOT_FOUND, "Operation %s not found for bank %s", operation_id, bank_id);
}

/* Kinds of which one at a time runs in a bank: their subject is the bank itself. */
static bool is_bank_wide(const char *type)
{
	return hs_str_eq(type, "consolidation") || hs_str_eq(type, "graph_maintenance");
}

enum hs_rc hs_operation_insert(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_submit *s, const char **ret_id, struct hs_err *err)
{
	const char *id = s->operation_id ? s->operation_id : hs_uuid_v7_new(pool);
	const char *subject = is_bank_wide(s->operation_type) ? "" : s->subject_id;

	HS_TRY(hs_db_exec(db, sql[SQL_INSERT],
		HS_BINDS(hs_b_str(id), hs_b_int(bank_no), hs_b_str(s->operation_type),
			hs_b_str(s->payload ? hs_json_text(pool, s->payload) : NULL),
			hs_b_str(s->metadata ? hs_json_text(pool, s->metadata) : "{}"),
			hs_b_str(subject), hs_b_str(s->parent_id), hs_b_bool(s->is_parent)),
		NULL, err));
	*ret_id = id;
	return HS_OK;
}

void hs_queue_poke(const struct hs_config *cfg)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *dir = hs_cfg_str(cfg, HS_S_run_dir);
	int fd, n;

	if (hs_str_empty(dir))
		return;
	n = snprintf(to.sun_path, sizeof(to.sun_path), "%s/worker.sock", dir);
	if (n < 0 || (size_t)n >= sizeof(to.sun_path))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	/* nobody listening, or too many pokes waiting already: the worker polls anyway */
	(void)!sendto(fd, "p", 1, MSG_NOSIGNAL, (const struct sockaddr *)&to, sizeof(to));
	close(fd);
}

enum hs_rc hs_operation_get(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const char *operation_id, bool with_payload, struct hs_operation *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[with_payload ? SQL_GET_PAYLOAD : SQL_GET],
		HS_BINDS(hs_b_str(operation_id), hs_b_int(bank_no)), &rows, err));
	if (rows.n == 0)
		return hs_fail(err, HS_E_NOT_FOUND, "Operation %s not found", operation_id);
	hs_operation_read(pool, rows.v, ret);
	return HS_OK;
}

enum hs_rc hs_operation_find(struct hs_db *db, struct hs_pool *pool, const char *operation_id,
	struct hs_operation *ret, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_FIND], HS_BINDS(hs_b_str(operation_id)), &rows, err));
	if (rows.n == 0)
		return hs_fail(err, HS_E_NOT_FOUND, "Operation %s not found", operation_id);
	hs_operation_read(pool, rows.v, ret);
	return HS_OK;
}

/* ---- consolidation ---- */

/* A waiting one takes the wish in: manual stays manual, and a chain goes on counting its rounds though
 * a write has queued a first round meanwhile. False when there is nothing to change. */
static bool take_in(json_t *payload, const struct hs_consolidation_submit *s)
{
	bool manual = s->manual && !hs_json_bool(payload, "manual", false);
	bool round = s->round > hs_json_int(payload, "round", 1);

	if (manual)
		json_object_set_new(payload, "manual", json_true());
	if (round)
		json_object_set_new(payload, "round", json_integer(s->round));
	return manual || round;
}

static enum hs_rc fold_consolidation(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_consolidation_submit *s, const char **ret_id, struct hs_err *err)
{
	struct hs_rows rows;

	*ret_id = NULL;
	HS_TRY(hs_db_select(
		db, pool, sql[SQL_CONSOLIDATIONS], HS_BINDS(hs_b_int(bank_no)), &rows, err));
	for (size_t i = 0; i < rows.n && !*ret_id; i++) {
		const struct hs_val *row = hs_row(&rows, i);
		uint64_t found = 1;
		json_t *payload;

		HS_TRY(hs_json_load(pool, row[1].s, &payload, err));
		if (hs_json_arr(payload, "observation_scopes"))
			continue;
		if (take_in(payload, s))
			HS_TRY(hs_db_exec(db, sql[SQL_SET_PAYLOAD],
				HS_BINDS(hs_b_str(hs_json_text(pool, payload)), hs_b_str(row[0].s),
					hs_b_int(bank_no)),
				&found, err));
		/* not found: a worker took it between the two statements */
		if (found)
			*ret_id = row[0].s;
	}
	return HS_OK;
}

enum hs_rc hs_submit_consolidation(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_consolidation_submit *s, const char **ret_id, bool *ret_deduplicated,
	struct hs_err *err)
{
	bool scoped = s->scopes && !json_is_null(s->scopes);
	struct hs_submit submit = {.operation_type = "consolidation"};
	const char *folded = NULL;
	enum hs_rc rc;

	HS_TRY(hs_clock_lock(db, bank_no, err));
	if (!scoped)
		HS_TRY(fold_consolidation(db, pool, bank_no, s, &folded, err));
	if (ret_deduplicated)
		*ret_deduplicated = folded != NULL;
	if (folded) {
		*ret_id = folded;
		return HS_OK;
	}
	submit.payload =
		json_pack("{s:O?, s:I, s:b}", "observation_scopes", scoped ? s->scopes : NULL,
			"round", (json_int_t)(s->round > 0 ? s->round : 1), "manual", s->manual);
	if (!submit.payload)
		return hs_fail(err, HS_E_INTERNAL, "cannot write the payload of a consolidation");
	rc = hs_operation_insert(db, pool, bank_no, &submit, ret_id, err);
	json_decref(submit.payload);
	return rc;
}

/* ---- refresh ---- */

static enum hs_rc insert_refresh(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_refresh_submit *s, const char **ret_id, struct hs_err *err)
{
	struct hs_submit submit = {
		.operation_type = "refresh_mental_model", .subject_id = s->mental_model_id};
	enum hs_rc rc;

	submit.payload = json_pack("{s:s}", "mental_model_id", s->mental_model_id);
	submit.metadata = json_pack("{s:s, s:s}", "mental_model_id", s->mental_model_id, "name",
		s->name ? s->name : "");
	if (!submit.payload || !submit.metadata) {
		rc = hs_fail(err, HS_E_INTERNAL, "cannot write the payload of a refresh");
	} else {
		if (s->automatic)
			json_object_set_new(submit.payload, "_automatic", json_true());
		if (s->full)
			json_object_set_new(submit.payload, "_mode", json_string("full"));
		rc = hs_operation_insert(db, pool, bank_no, &submit, ret_id, err);
	}
	json_decref(submit.payload);
	json_decref(submit.metadata);
	return rc;
}

/* Fold into one open operation: *ret_folded false when it cannot take the wish in. */
static enum hs_rc fold_refresh(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_refresh_submit *s, const struct hs_val *row, bool *ret_folded,
	struct hs_err *err)
{
	bool full, automatic;
	uint64_t found;
	json_t *payload;

	*ret_folded = false;
	if (hs_str_eq(row[1].s, "processing")) {
		*ret_folded = s->automatic;
		return HS_OK;
	}
	HS_TRY(hs_json_load(pool, row[2].s, &payload, err));
	if (!json_is_object(payload))
		return HS_OK;
	full = s->full && !hs_str_eq(hs_json_str(payload, "_mode"), "full");
	automatic = hs_json_bool(payload, "_automatic", false);
	if (s->automatic && !full) {
		*ret_folded = true;
		return HS_OK;
	}
	if (full)
		json_object_set_new(payload, "_mode", json_string("full"));
	if (automatic && !s->automatic)
		json_object_del(payload, "_automatic");
	HS_TRY(hs_db_exec(db, sql[s->automatic ? SQL_SET_PAYLOAD : SQL_UNPARK],
		HS_BINDS(hs_b_str(hs_json_text(pool, payload)), hs_b_str(row[0].s),
			hs_b_int(bank_no)),
		&found, err));
	*ret_folded = found > 0;
	return HS_OK;
}

enum hs_rc hs_submit_refresh(struct hs_db *db, struct hs_pool *pool, int64_t bank_no,
	const struct hs_refresh_submit *s, const char **ret_id, bool *ret_folded,
	struct hs_err *err)
{
	struct hs_rows model, open;
	bool folded = false;

	*ret_id = NULL;
	if (ret_folded)
		*ret_folded = false;
	HS_TRY(hs_db_select(db, pool, sql[SQL_LOCK_MODEL],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(s->mental_model_id)), &model, err));
	if (model.n == 0)
		return hs_fail(
			err, HS_E_NOT_FOUND, "Mental model '%s' not found", s->mental_model_id);
	if (s->automatic && !model.v[0].null)
		return HS_OK;
	HS_TRY(hs_db_select(db, pool, sql[SQL_OPEN_REFRESH],
		HS_BINDS(hs_b_int(bank_no), hs_b_str(s->mental_model_id)), &open, err));
	for (size_t i = 0; i < open.n && !folded; i++) {
		HS_TRY(fold_refresh(db, pool, bank_no, s, hs_row(&open, i), &folded, err));
		if (folded)
			*ret_id = hs_row(&open, i)[0].s;
	}
	if (ret_folded)
		*ret_folded = folded;
	return folded ? HS_OK : insert_refresh(db, pool, bank_no, s, ret_id, err);
}
