/*
 * strategy - which retain strategy is in force, and the configuration under it. One resolver for the
 * real retain and for whoever shows what it would do.
 *
 * Floor:   config. Rules: contract retain-recall 2.9, reflect B4. The name given, else
 *          retain_default_strategy; a blank one counts as none. Its bank-configurable fields are laid
 *          over the bank's, others ignored; an unknown name, or a value that is no object, changes
 *          nothing.
 * Errors:  HS_E_BAD_REQUEST naming the strategy when its chunk sizes cannot work.
 */
#ifndef HS_CONFIG_STRATEGY_H
#define HS_CONFIG_STRATEGY_H

#include "config/config.h"

struct hs_strategy {
	const char *name; /* asked for; NULL = none */
	bool is_default;  /* the name is from retain_default_strategy */
	json_t *fields;   /* of the strategy in force; NULL = none, or no such strategy */
	const struct hs_config *cfg; /* effective */
};

HS_MUST enum hs_rc hs_strategy_find(struct hs_pool *pool, const struct hs_config *bank,
	const char *asked, struct hs_strategy *ret, struct hs_err *err);
/* Does the strategy in force give this setting a value of its own? */
bool hs_strategy_sets(const struct hs_strategy *s, enum hs_setting_id id);

#endif
