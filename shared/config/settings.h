/*
 * settings - the one table of settings: name, type, default, limits, scope, secret, help.
 *
 * Floor:   config; uses json. settings.def is the list; the YAML loader, the environment, PATCH and
 *          GET /config, `hindsight-admin check`, the docs and conf/hindsight.yaml come from it.
 * Source:  contract banks-config-operations.md section 6.
 */
#ifndef HS_CONFIG_SETTINGS_H
#define HS_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hs_stype {
	HS_ST_STR, /* string */
	HS_ST_INT, /* 64-bit integer */
	HS_ST_NUM, /* number */
	HS_ST_BOOL,
	HS_ST_LIST, /* comma-separated strings; JSON list in a PATCH */
	HS_ST_JSON, /* JSON value: object or list as `shape` of the row says */
};

enum hs_sscope {
	HS_SC_SERVER, /* file and environment only */
	HS_SC_BANK,   /* a bank may override it */
};

/* setting flags */
#define HS_SF_NULL 0x01u /* may be null: unset */
#define HS_SF_SECRET                                                                               \
	0x02u /* credential or base URL: never shown, 400 on PATCH; <name>_file works */
#define HS_SF_NO_ENV 0x04u     /* not read from the environment */
#define HS_SF_LATER 0x08u      /* stored and shown, without effect yet */
#define HS_SF_OBJECT 0x10u     /* HS_ST_JSON: objects only */
#define HS_SF_ARRAY 0x20u      /* HS_ST_JSON: lists only (with HS_SF_OBJECT: either) */
#define HS_SF_OWN 0x40u        /* ours, not in the reference */
#define HS_SF_TEXT 0x80u       /* HS_ST_JSON: plain text is a JSON string */
#define HS_SF_OMIT 0x100u      /* none, default, off, unset or empty = explicitly null: not sent */
#define HS_SF_ABOVE_MIN 0x200u /* the value must be above min, not equal to it */

struct hs_setting {
	const char *name; /* lower snake case: "retain_chunk_size" */
	enum hs_stype type;
	const char *def; /* default as text; NULL = null */
	enum hs_sscope scope;
	unsigned flags;
	double min, max;     /* numbers; min > max = no limits */
	const char *choices; /* "a|b|c", NULL = any */
	const char *help;    /* one sentence for people */
};

/* HS_S_retain_chunk_size … */
enum hs_setting_id {
#define S(name, type, def, scope, flags, min, max, choices, help) HS_S_##name,
#include "config/settings.def"
#undef S
	HS_S__MAX
};

extern const struct hs_setting hs_settings[HS_S__MAX];

/* -1 when there is none. name in lower snake case. */
int hs_setting_find(const char *name);

#endif
