/*
 * config - effective values: defaults < YAML file < environment < bank overrides.
 *
 * Floor:   config; uses json and base. Process-wide value object, read-only once loaded.
 * Shapes:  struct hs_config holds one value per row of the settings table. A bank's configuration
 *          is a copy with its overrides laid over (hs_config_for_bank): resolved on every use.
 * Owns:    strings live as long as the config's pool.
 * Errors:  HS_E_CONFIG naming file, line and key: unknown key, bad value, impossible combination.
 *          An unknown HINDSIGHT_API_* variable is one warning in the log.
 * Start:   file by --config, HINDSIGHT_CONFIG, hindsight.yaml in the folder above the program or the
 *          one above that, then sysconfdir/hindsight/hindsight.yaml; none is fine. Keys flat or grouped (llm: {provider: …}).
 *          Secrets also as <name>_file (file or environment).
 */
#ifndef HS_CONFIG_CONFIG_H
#define HS_CONFIG_CONFIG_H

#include <jansson.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/str.h"
#include "config/settings.h"

struct hs_config;

/* program_path: argv[0], for the folder above it. path may be NULL. sysconfdir: compiled-in path. */
HS_MUST enum hs_rc hs_config_load(struct hs_pool *pool, const char *path, const char *program_path,
	const char *sysconfdir, struct hs_config **ret, struct hs_err *err);
/* Only defaults, no file, no environment: tests. */
struct hs_config *hs_config_defaults(struct hs_pool *pool);
/* Set one value from text (tests, command line); HS_E_CONFIG when it does not fit. */
HS_MUST enum hs_rc hs_config_set(
	struct hs_config *cfg, const char *name, const char *text, struct hs_err *err);

/* Typed reads; a null value gives NULL / def_if_null. Asking for another type is an assert. */
const char *hs_cfg_str(const struct hs_config *cfg, enum hs_setting_id id);
int64_t hs_cfg_int(const struct hs_config *cfg, enum hs_setting_id id);  /* null = 0 */
double hs_cfg_num(const struct hs_config *cfg, enum hs_setting_id id);   /* null = 0 */
bool hs_cfg_bool(const struct hs_config *cfg, enum hs_setting_id id);    /* null = false */
json_t *hs_cfg_json(const struct hs_config *cfg, enum hs_setting_id id); /* borrowed; NULL = null */
struct hs_strs hs_cfg_list(const struct hs_config *cfg, enum hs_setting_id id);
bool hs_cfg_null(const struct hs_config *cfg, enum hs_setting_id id);
/* Set by file or environment, not by default. */
bool hs_cfg_explicit(const struct hs_config *cfg, enum hs_setting_id id);
/* The value as JSON (new reference), for GET /config. */
json_t *hs_cfg_value(const struct hs_config *cfg, enum hs_setting_id id);

/* A bank's configuration in the pool: server values with the stored overrides (object, may be NULL)
 * laid over. Stored rubbish: a non-string in a string field is used as its JSON text, any other
 * mismatch is ignored with a warning. Provider none forces chunks mode and observations off. */
struct hs_config *hs_config_for_bank(
	struct hs_pool *pool, const struct hs_config *server, json_t *overrides);
/* Lay a retain strategy over a bank's configuration: bank-configurable fields only. */
struct hs_config *hs_config_with_strategy(
	struct hs_pool *pool, const struct hs_config *bank, json_t *strategy);
/* A copy in which only these settings have their value; all others have their default. */
struct hs_config *hs_config_only(struct hs_pool *pool, const struct hs_config *cfg,
	const enum hs_setting_id *ids, size_t n);

/* Name of the provider of an operation in use: one of the choices of llm_provider. op is
 * "retain", "reflect", "consolidation", "mental_model_refresh" or NULL for the general one. */
const char *hs_cfg_llm_provider(const struct hs_config *cfg, const char *op);

/* Print conf/hindsight.yaml (every setting, commented) to a pool string. */
char *hs_config_sample(struct hs_pool *pool);

#endif
