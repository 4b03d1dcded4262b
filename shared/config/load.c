#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "config/internal.h"
#include "config/yaml.h"

#define ENV_PREFIX "HINDSIGHT_API_"
#define SECRET_MAX 65536

extern char **environ;

static bool is_json(const char *key)
{
	int id = hs_setting_find(key);

	return id >= 0 && hs_settings[id].type == HS_ST_JSON;
}

/* ---- secrets in files of their own ---- */

/* The secret that "<name>_file" stands for, -1 when it is no such key. */
static int secret_of_file_key(struct hs_pool *pool, const char *key)
{
	int id;

	if (!hs_str_ends(key, "_file"))
		return -1;
	id = hs_setting_find(hs_pool_strndup(pool, key, strlen(key) - 5));
	return id >= 0 && (hs_settings[id].flags & HS_SF_SECRET) ? id : -1;
}

static enum hs_rc read_secret(
	struct hs_pool *pool, const char *path, const char **ret, struct hs_err *err)
{
	FILE *f = fopen(path, "re");
	char *text;
	size_t n;

	if (!f)
		return hs_fail_foreign(
			err, HS_E_CONFIG, errno, "cannot open %s: %s", path, strerror(errno));
	text = hs_pool_alloc(pool, SECRET_MAX + 1);
	n = fread(text, 1, SECRET_MAX, f);
	fclose(f);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n] = '\0';
	if (n == 0 || strlen(text) != n)
		return hs_fail(err, HS_E_CONFIG, "%s holds no usable text", path);
	*ret = text;
	return HS_OK;
}

/* ---- values ---- */

static enum hs_rc set_value(struct hs_config *cfg, int id, const char *text, struct hs_err *err)
{
	HS_TRY(hs_value_from_text(cfg->pool, &hs_settings[id], text, &cfg->v[id], err));
	cfg->v[id].given = true;
	return HS_OK;
}

/* HS_E_NOT_FOUND when there is no such key. */
static enum hs_rc set_named(
	struct hs_config *cfg, const char *key, const char *text, struct hs_err *err)
{
	int id = hs_setting_find(key);
	const char *secret = NULL;

	if (id >= 0)
		return set_value(cfg, id, text, err);
	id = secret_of_file_key(cfg->pool, key);
	if (id < 0)
		return hs_fail(err, HS_E_NOT_FOUND, "unknown key '%.200s'", key);
	HS_TRY(read_secret(cfg->pool, text, &secret, err));
	return set_value(cfg, id, secret, err);
}

static enum hs_rc load_file(struct hs_config *cfg, const char *path, struct hs_err *err)
{
	struct hs_yaml_file file = {0};

	HS_TRY(hs_yaml_read(cfg->pool, path, is_json, &file, err));
	for (size_t i = 0; i < file.n; i++) {
		struct hs_err reason = {0};
		const struct hs_yaml_entry *e = &file.v[i];

		/* `name:` without a value leaves the default, but only for names that exist */
		if (!e->value && (hs_setting_find(e->key) >= 0 ||
					 secret_of_file_key(cfg->pool, e->key) >= 0))
			continue;
		if (set_named(cfg, e->key, e->value ? e->value : "", &reason) != HS_OK)
			return hs_fail(err, HS_E_CONFIG, "%s:%d: %s", path, e->line, reason.msg);
	}
	return HS_OK;
}

/* Empty variables unset what cannot be empty. */
static bool skip_empty(int id, const char *text)
{
	const struct hs_setting *s = &hs_settings[id];

	return text[0] == '\0' && !(s->flags & (HS_SF_OMIT | HS_SF_NULL)) &&
	       (s->choices || (s->type != HS_ST_STR && s->type != HS_ST_LIST));
}

static enum hs_rc set_variable(struct hs_config *cfg, const char *name, const char *text,
	struct hs_strs *unknown, struct hs_err *err)
{
	const char *key = hs_str_lower_ascii(cfg->pool, name + strlen(ENV_PREFIX));
	struct hs_err reason = {0};
	int id = hs_setting_find(key);
	enum hs_rc rc;

	if (id >= 0 && (hs_settings[id].flags & HS_SF_NO_ENV)) {
		hs_strs_add(cfg->pool, unknown, name);
		return HS_OK;
	}
	if (id >= 0 && skip_empty(id, text))
		return HS_OK;
	rc = set_named(cfg, key, text, &reason);
	if (rc == HS_E_NOT_FOUND) {
		hs_strs_add(cfg->pool, unknown, name);
		return HS_OK;
	}
	return rc == HS_OK ? HS_OK : hs_fail(err, HS_E_CONFIG, "%s: %s", name, reason.msg);
}

static enum hs_rc load_environment(struct hs_config *cfg, struct hs_err *err)
{
	struct hs_strs unknown = {0, NULL};

	for (char **e = environ; e && *e; e++) {
		const char *eq = strchr(*e, '=');

		if (!eq || !hs_str_starts(*e, ENV_PREFIX))
			continue;
		HS_TRY(set_variable(cfg, hs_pool_strndup(cfg->pool, *e, (size_t)(eq - *e)), eq + 1,
			&unknown, err));
	}
	for (size_t i = 0; i < unknown.n; i++)
		hs_log(HS_LOG_WARN, "unknown_variable", "name=%s", hs_log_quote(unknown.v[i]));
	return HS_OK;
}

/* ---- which file ---- */

static const char *if_readable(const char *path)
{
	return access(path, F_OK) == 0 ? path : NULL;
}

/* A program started by its bare name (CGI under suexec) asks the kernel where it lies. */
static const char *program_folder(struct hs_pool *pool, const char *program_path)
{
	const char *slash = program_path ? strrchr(program_path, '/') : NULL;
	char self[PATH_MAX];
	ssize_t n;

	if (!program_path)
		return NULL;
	if (slash)
		return hs_pool_strndup(pool, program_path, (size_t)(slash - program_path));
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n <= 0)
		return NULL;
	self[n] = '\0';
	return hs_pool_strndup(pool, self, (size_t)(strrchr(self, '/') - self));
}

/* hindsight.yaml in the folder above the program's own, else one above that: on a shared host the
 * first may be the document root. */
static const char *above_program(struct hs_pool *pool, const char *program_path)
{
	const char *folder = program_folder(pool, program_path), *found;

	if (!folder)
		return NULL;
	found = if_readable(hs_pool_printf(pool, "%s/../hindsight.yaml", folder));
	return found ? found :
		if_readable(hs_pool_printf(pool, "%s/../../hindsight.yaml", folder));
}

static const char *find_file(
	struct hs_pool *pool, const char *path, const char *program_path, const char *sysconfdir)
{
	const char *env = getenv("HINDSIGHT_CONFIG"), *found;

	if (!hs_str_empty(path))
		return path;
	if (!hs_str_empty(env))
		return env;
	found = above_program(pool, program_path);
	if (found || hs_str_empty(sysconfdir))
		return found;
	return if_readable(hs_pool_printf(pool, "%s/hindsight/hindsight.yaml", sysconfdir));
}

/* ---- rules between settings ---- */

struct slot_rows {
	enum hs_setting_id reserved, old;
};

static const struct slot_rows slot_rows[] = {
#define SLOTS(kind)                                                                                \
	{                                                                                          \
		HS_S_worker_##kind##_reserved_slots, HS_S_worker_##kind##_max_slots                \
	}
	SLOTS(consolidation),
	SLOTS(retain),
	SLOTS(file_convert_retain),
	SLOTS(refresh_mental_model),
	SLOTS(graph_maintenance),
	SLOTS(import_documents),
	SLOTS(export_documents),
	SLOTS(import_bank),
	SLOTS(export_bank),
	SLOTS(clone_bank),
#undef SLOTS
};

static enum hs_rc take_old_slot_names(struct hs_config *cfg, struct hs_err *err)
{
	for (size_t i = 0; i < HS_COUNT(slot_rows); i++) {
		const struct slot_rows *r = &slot_rows[i];

		if (cfg->v[r->old].null)
			continue;
		if (cfg->v[r->reserved].given)
			return hs_fail(err, HS_E_CONFIG, "%s and its old name %s are both set",
				hs_settings[r->reserved].name, hs_settings[r->old].name);
		cfg->v[r->reserved] = cfg->v[r->old];
	}
	return HS_OK;
}

static enum hs_rc slot_rule(const struct hs_config *cfg, struct hs_err *err)
{
	int64_t sum = 0;

	for (size_t i = 0; i < HS_COUNT(slot_rows); i++)
		sum += hs_cfg_int(cfg, slot_rows[i].reserved);
	if (sum > hs_cfg_int(cfg, HS_S_worker_max_slots))
		return hs_fail(err, HS_E_CONFIG,
			"the reserved slots of the worker add up to %lld, more than "
			"worker_max_slots = %lld",
			(long long)sum, (long long)hs_cfg_int(cfg, HS_S_worker_max_slots));
	return HS_OK;
}

static enum hs_rc key_rule(const struct hs_config *cfg, struct hs_err *err)
{
	const char *mode = hs_cfg_str(cfg, HS_S_tenant_extension);

	if (hs_str_empty(mode) || hs_str_ends(mode, "DefaultTenantExtension"))
		return HS_OK;
	if (!hs_str_ends(mode, "ApiKeyTenantExtension"))
		return hs_fail(err, HS_E_CONFIG,
			"tenant_extension '%.200s' does not exist here; only the API key "
			"mode does",
			mode);
	if (hs_str_empty(hs_cfg_str(cfg, HS_S_tenant_api_key)))
		return hs_fail(err, HS_E_CONFIG,
			"tenant_extension asks for keys, but tenant_api_key is not set");
	return HS_OK;
}

static enum hs_rc retain_rule(const struct hs_config *cfg, struct hs_err *err)
{
	int64_t tokens = hs_cfg_int(cfg, HS_S_retain_max_completion_tokens);

	if (strcmp(hs_cfg_llm_provider(cfg, "retain"), "none") == 0 ||
		tokens > hs_cfg_int(cfg, HS_S_retain_chunk_size))
		return HS_OK;
	return hs_fail(err, HS_E_CONFIG,
		"retain_max_completion_tokens (%lld) must exceed retain_chunk_size "
		"(%lld)",
		(long long)tokens, (long long)hs_cfg_int(cfg, HS_S_retain_chunk_size));
}

static enum hs_rc budget_rule(const struct hs_config *cfg, struct hs_err *err)
{
	if (hs_cfg_int(cfg, HS_S_recall_budget_min) <= hs_cfg_int(cfg, HS_S_recall_budget_max))
		return HS_OK;
	return hs_fail(err, HS_E_CONFIG, "recall_budget_min must not be above recall_budget_max");
}

/* Plain segments only: what is compared with a decoded path must not hold escapes or a query. */
static enum hs_rc base_path_rule(const struct hs_config *cfg, struct hs_err *err)
{
	const char *s = hs_cfg_str(cfg, HS_S_base_path);

	if (hs_str_empty(s) || (!strpbrk(s, "?#%\\ \t\r\n") && !strstr(s, "..")))
		return HS_OK;
	return hs_fail(err, HS_E_CONFIG,
		"base_path '%.200s' is no plain path; it should look like /hindsight", s);
}

enum hs_rc hs_config_rules(const struct hs_config *cfg, struct hs_err *err)
{
	HS_TRY(base_path_rule(cfg, err));
	HS_TRY(slot_rule(cfg, err));
	HS_TRY(key_rule(cfg, err));
	HS_TRY(retain_rule(cfg, err));
	return budget_rule(cfg, err);
}

enum hs_rc hs_config_load(struct hs_pool *pool, const char *path, const char *program_path,
	const char *sysconfdir, struct hs_config **ret, struct hs_err *err)
{
	struct hs_config *cfg = hs_config_defaults(pool);
	const char *file = find_file(pool, path, program_path, sysconfdir);

	if (file)
		HS_TRY(load_file(cfg, file, err));
	HS_TRY(load_environment(cfg, err));
	HS_TRY(take_old_slot_names(cfg, err));
	HS_TRY(hs_config_rules(cfg, err));
	*ret = cfg;
	return HS_OK;
}
