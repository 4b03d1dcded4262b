/*
 * Numbered SQL files, forward only. Every file may run twice: MariaDB commits at each statement that
 * changes a table, so a run that was broken off is finished by the next.
 */
#include "admin.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/schema.h"
#include "text/hash.h"

#define FILE_MAX ((size_t)4 * 1024 * 1024)
#define LOCK_WAIT_S 120
#define SE_BAD_DB 1049

enum { SQL_LOCK, SQL_UNLOCK, SQL_APPLIED, SQL_RECORD };
static const char *const sql[] = {
	[SQL_LOCK] = "SELECT GET_LOCK(CONCAT('hindsight_migrate.', DATABASE()), ?)",
	[SQL_UNLOCK] = "SELECT RELEASE_LOCK(CONCAT('hindsight_migrate.', DATABASE()))",
	[SQL_APPLIED] = "SELECT version, checksum FROM schema_migrations ORDER BY version",
	[SQL_RECORD] = ("INSERT INTO schema_migrations (version, checksum, applied_at) VALUES (?, "
		"?, ?)"),
};

static const char table_sql[] =
	"CREATE TABLE IF NOT EXISTS schema_migrations ("
	"version INT NOT NULL, checksum CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
	"applied_at DATETIME(6) NOT NULL, PRIMARY KEY (version)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";

struct file {
	int version;
	const char *name, *text;
	char checksum[HS_SHA256_HEX];
};
struct files {
	struct file *v;
	size_t n;
};

/* ---- the folder ---- */

static int is_migration(const struct dirent *e)
{
	const char *s = e->d_name;

	for (int i = 0; i < 4; i++)
		if (!isdigit((unsigned char)s[i]))
			return 0;
	return s[4] == '_' && hs_str_ends(s, ".sql");
}

static enum hs_rc read_file(
	struct hs_pool *pool, const char *path, const char **ret, struct hs_err *err)
{
	struct hs_buf *b = hs_buf_new(pool, FILE_MAX);
	char part[8192];
	FILE *f = fopen(path, "re");
	size_t n;
	bool bad;

	if (!f)
		return hs_fail_foreign(
			err, HS_E_IO, errno, "cannot open %s: %s", path, strerror(errno));
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		hs_buf_add(b, part, n);
	bad = ferror(f);
	fclose(f);
	if (bad)
		return hs_fail(err, HS_E_IO, "cannot read %s", path);
	HS_TRY(hs_buf_ok(b, path, err));
	*ret = b->data;
	return HS_OK;
}

static enum hs_rc read_entry(
	struct hs_pool *pool, const char *dir, const char *name, struct file *f, struct hs_err *err)
{
	int64_t version;

	if (!hs_str_to_i64(hs_pool_strndup(pool, name, 4), &version))
		return hs_fail(err, HS_E_IO, "%s has no number", name);
	f->version = (int)version;
	f->name = hs_pool_strdup(pool, name);
	HS_TRY(read_file(pool, hs_pool_printf(pool, "%s/%s", dir, name), &f->text, err));
	hs_sha256_hex(f->text, strlen(f->text), f->checksum);
	return HS_OK;
}

static enum hs_rc check_numbers(const struct files *files, const char *dir, struct hs_err *err)
{
	for (size_t i = 0; i < files->n; i++)
		if (files->v[i].version != (int)i + 1)
			return hs_fail(err, HS_E_IO, "%s: %s should have the number %zu", dir,
				files->v[i].name, i + 1);
	if (files->n != HS_SCHEMA_VERSION)
		return hs_fail(err, HS_E_IO,
			"%s holds %zu migrations, this program knows %d: use its own folder (--dir)",
			dir, files->n, HS_SCHEMA_VERSION);
	return HS_OK;
}

static enum hs_rc read_folder(
	struct hs_pool *pool, const char *dir, struct files *ret, struct hs_err *err)
{
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_migration, alphasort);
	enum hs_rc rc = HS_OK;

	if (n < 0)
		return hs_fail_foreign(
			err, HS_E_IO, errno, "cannot read the folder %s: %s", dir, strerror(errno));
	ret->n = (size_t)n;
	ret->v = HS_NEW_ARRAY(pool, struct file, ret->n);
	for (int i = 0; i < n; i++) {
		if (rc == HS_OK)
			rc = read_entry(pool, dir, names[i]->d_name, &ret->v[i], err);
		free(names[i]);
	}
	free(names);
	return rc == HS_OK ? check_numbers(ret, dir, err) : rc;
}

/* ---- the database ---- */

/* The name goes into the text of CREATE DATABASE: nothing but these characters. */
static bool plain_name(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	return n > 0 && n <= 64 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-$") == n;
}

static enum hs_rc create_database(struct admin *a, struct hs_err *err)
{
	const char *name = hs_cfg_str(a->cfg, HS_S_database_name);
	struct hs_config *without;
	struct hs_db *db;
	enum hs_rc rc;

	if (!plain_name(name))
		return hs_fail(err, HS_E_CONFIG,
			"database_name may hold letters, digits, '_', '-' and '$' only");
	HS_TRY(admin_config(a, &without, err));
	HS_TRY(hs_config_set(without, "database_name", "", err));
	db = hs_db_new(without);
	rc = hs_db_script(db,
		hs_pool_printf(a->pool,
			"CREATE DATABASE IF NOT EXISTS `%s` CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
			name),
		err);
	hs_db_free(&db);
	if (rc != HS_OK)
		return hs_fail_context(
			err, "the database '%s' is missing and cannot be created", name);
	printf("created database %s\n", name);
	return HS_OK;
}

static enum hs_rc connect_db(struct admin *a, struct hs_db *db, struct hs_err *err)
{
	enum hs_rc rc = hs_db_ping(db, err);

	if (rc != HS_OK && err->foreign == SE_BAD_DB) {
		hs_err_clear(err);
		HS_TRY(create_database(a, err));
		rc = hs_db_ping(db, err);
	}
	return rc;
}

static enum hs_rc take_lock(struct hs_db *db, struct hs_pool *pool, struct hs_err *err)
{
	struct hs_rows rows;

	HS_TRY(hs_db_select(db, pool, sql[SQL_LOCK], HS_BINDS(hs_b_int(LOCK_WAIT_S)), &rows, err));
	if (rows.n == 0 || rows.v[0].i != 1)
		return hs_fail(err, HS_E_DB_BUSY,
			"another migration has been running for %d seconds: wait for it",
			LOCK_WAIT_S);
	return HS_OK;
}

/* A statement ends with ';' at the end of a line; lines that begin with "--" are comments. */
static enum hs_rc apply_text(
	struct hs_db *db, struct hs_pool *pool, const struct file *f, struct hs_err *err)
{
	struct hs_buf *b = hs_buf_new(pool, FILE_MAX);
	int line_no = 0;

	for (const char *line = f->text, *end; *line; line = *end ? end + 1 : end) {
		size_t n = strcspn(line, "\n");

		end = line + n;
		line_no++;
		while (n > 0 && isspace((unsigned char)line[n - 1]))
			n--;
		if (n == 0 || strncmp(line, "--", 2) == 0)
			continue;
		hs_buf_add(b, line, n);
		hs_buf_char(b, '\n');
		if (line[n - 1] != ';')
			continue;
		hs_buf_cut(b, b->len - 2);
		if (hs_db_script(db, b->data, err) != HS_OK)
			return hs_fail_context(
				err, "%s, statement that ends at line %d", f->name, line_no);
		hs_buf_reset(b);
	}
	if (b->len > 0)
		return hs_fail(err, HS_E_IO, "%s: the last statement has no ';'", f->name);
	return HS_OK;
}

static enum hs_rc apply(
	struct hs_db *db, struct hs_pool *pool, const struct file *f, struct hs_err *err)
{
	HS_TRY(apply_text(db, pool, f, err));
	HS_TRY(hs_db_exec(db, sql[SQL_RECORD],
		HS_BINDS(hs_b_int(f->version), hs_b_str(f->checksum), hs_b_time(hs_now_us())), NULL,
		err));
	printf("applied %s\n", f->name);
	return HS_OK;
}

/* What the database has already must be what the folder says. */
static enum hs_rc check_applied(
	const struct files *files, const struct hs_rows *rows, struct hs_err *err)
{
	if (rows->n > files->n)
		return hs_fail(err, HS_E_DB_SCHEMA,
			"the database has %zu migrations, this program knows %zu: install a newer release",
			rows->n, files->n);
	for (size_t i = 0; i < rows->n; i++) {
		const struct hs_val *row = hs_row(rows, i);

		if (row[0].i != files->v[i].version)
			return hs_fail(err, HS_E_DB_SCHEMA,
				"the table schema_migrations has a gap before version %d",
				(int)row[0].i);
		if (!hs_str_eq(row[1].s, files->v[i].checksum))
			return hs_fail(err, HS_E_DB_SCHEMA,
				"%s was changed after it was applied: use the folder of the release that made this database",
				files->v[i].name);
	}
	return HS_OK;
}

static enum hs_rc migrate(
	struct admin *a, struct hs_db *db, const struct files *files, struct hs_err *err)
{
	struct hs_rows rows, unlocked;

	HS_TRY(connect_db(a, db, err));
	HS_TRY(take_lock(db, a->pool, err));
	HS_TRY(hs_db_script(db, table_sql, err));
	HS_TRY(hs_db_select(db, a->pool, sql[SQL_APPLIED], HS_NO_BINDS, &rows, err));
	HS_TRY(check_applied(files, &rows, err));
	for (size_t i = rows.n; i < files->n; i++)
		HS_TRY(apply(db, a->pool, &files->v[i], err));
	return hs_db_select(db, a->pool, sql[SQL_UNLOCK], HS_NO_BINDS, &unlocked, err);
}

int admin_migrate(struct admin *a)
{
	const char *env = getenv("HINDSIGHT_MIGRATIONS_DIR");
	const char *dir = a->dir ? a->dir : !hs_str_empty(env) ? env : HS_MIGRATIONS_DIR;
	struct files files = {0};
	struct hs_err err;
	struct hs_db *db;
	enum hs_rc rc;

	hs_err_clear(&err);
	if (read_folder(a->pool, dir, &files, &err) != HS_OK)
		return admin_fail(&err);
	/* a change of a large table takes its time */
	if (hs_config_set(a->cfg, "db_command_timeout", "0", &err) != HS_OK ||
		hs_config_set(a->cfg, "db_statement_timeout", "0", &err) != HS_OK)
		return admin_fail(&err);
	db = hs_db_new(a->cfg);
	rc = migrate(a, db, &files, &err);
	hs_db_free(&db);
	if (rc != HS_OK)
		return admin_fail(&err);
	printf("schema is at version %d\n", HS_SCHEMA_VERSION);
	return 0;
}
