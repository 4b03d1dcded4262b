/*
 * internal - the inside of struct hs_config, for the files of this folder.
 *
 * Floor:   config.
 */
#ifndef HS_CONFIG_INTERNAL_H
#define HS_CONFIG_INTERNAL_H

#include "config/config.h"
#include "config/value.h"

struct hs_config {
	struct hs_pool *pool;
	struct hs_value v[HS_S__MAX];
};

/* Combinations that cannot work: contract banks 6, "Start must fail when". */
HS_MUST enum hs_rc hs_config_rules(const struct hs_config *cfg, struct hs_err *err);

#endif
