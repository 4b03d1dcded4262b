/*
 * admin - the command line `hindsight-admin`: what its commands share.
 *
 * Floor:   handlers. One function a command; it prints for people and gives the exit status:
 *          0 fine, 1 something is wrong (said on stderr), 2 wrong use.
 */
#ifndef HS_ADMIN_H
#define HS_ADMIN_H

#include "config/config.h"
#include "db/db.h"

struct admin {
	struct hs_pool *pool;
	const char *program, *config_path, *dir;
	struct hs_config *cfg; /* NULL for commands without configuration */
};

int admin_migrate(struct admin *a);
int admin_check(struct admin *a);
/* Read the configuration again, to be changed by the caller. */
HS_MUST enum hs_rc admin_config(struct admin *a, struct hs_config **ret, struct hs_err *err);
/* "hindsight-admin: …" on stderr; gives 1. */
int admin_fail(const struct hs_err *err);

#endif
