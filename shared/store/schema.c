#include "store/schema.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"

#define BAD_FOR_US (5 * HS_SECOND_US)
#define SE_NO_TABLE 1146

enum { SQL_VERSION };
static const char *const sql[] = {
	[SQL_VERSION] = "SELECT COALESCE(MAX(version), 0) FROM schema_migrations",
};
HS_SQL_LIST(hs_schema_sql, sql);

/* One answer for all threads: a wrong schema is asked again every 5 s, not by every request. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t bad_until_us;
static char bad_text[256];

static bool known_bad(struct hs_err *err)
{
	bool bad;

	pthread_mutex_lock(&lock);
	bad = hs_mono_us() < bad_until_us;
	if (bad)
		hs_fail(err, HS_E_DB_SCHEMA, "%s", bad_text);
	pthread_mutex_unlock(&lock);
	return bad;
}

static enum hs_rc bad(struct hs_err *err, int64_t version)
{
	pthread_mutex_lock(&lock);
	bad_until_us = hs_mono_us() + BAD_FOR_US;
	if (version == 0)
		snprintf(bad_text, sizeof(bad_text),
			"the database has no hindsight schema: run hindsight-admin migrate");
	else if (version < HS_SCHEMA_VERSION)
		snprintf(bad_text, sizeof(bad_text),
			"database schema is version %" PRId64
			", this program needs %d: run hindsight-admin migrate",
			version, HS_SCHEMA_VERSION);
	else
		snprintf(bad_text, sizeof(bad_text),
			"database schema is version %" PRId64
			", this program knows %d: install a newer release",
			version, HS_SCHEMA_VERSION);
	hs_fail(err, HS_E_DB_SCHEMA, "%s", bad_text);
	pthread_mutex_unlock(&lock);
	return HS_E_DB_SCHEMA;
}

enum hs_rc hs_schema_check(struct hs_db *db, void *arg, struct hs_err *err)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = NULL;
	struct hs_rows rows;
	struct hs_err mine;
	enum hs_rc rc;

	(void)arg;
	if (known_bad(err))
		return HS_E_DB_SCHEMA;
	hs_err_clear(&mine);
	pool = hs_pool_new();
	rc = hs_db_select(db, pool, sql[SQL_VERSION], HS_NO_BINDS, &rows, &mine);
	if (mine.foreign == SE_NO_TABLE)
		return bad(err, 0);
	if (rc != HS_OK)
		return hs_fail_foreign(err, rc, mine.foreign, "%s", mine.msg);
	if (rows.v[0].i != HS_SCHEMA_VERSION)
		return bad(err, rows.v[0].i);
	return HS_OK;
}
