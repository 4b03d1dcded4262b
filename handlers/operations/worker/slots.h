/*
 * slots - how many jobs of which kind a worker may run (contract banks 9.1).
 *
 * Floor:   handlers; pure. Every kind has reserved slots that only it may use; what is left of
 *          `max` is shared. A kind over its reservation uses the shared pool.
 */
#ifndef HS_WORKER_SLOTS_H
#define HS_WORKER_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

enum slot_kind {
	SLOT_OTHER, /* kinds without a reservation, unknown ones too */
	SLOT_CONSOLIDATION,
	SLOT_RETAIN,
	SLOT_FILE_CONVERT_RETAIN,
	SLOT_REFRESH,
	SLOT_GRAPH_MAINTENANCE,
	SLOT_IMPORT_DOCUMENTS,
	SLOT_EXPORT_DOCUMENTS,
	SLOT_IMPORT_BANK,
	SLOT_EXPORT_BANK,
	SLOT_CLONE_BANK,
	SLOT__MAX
};

struct slots {
	int max, shared; /* shared = max - sum of reservations */
	int reserved[SLOT__MAX], running[SLOT__MAX];
};

/* Loading the configuration has refused reservations above worker_max_slots. */
void slots_init(struct slots *s, const struct hs_config *cfg);
enum slot_kind slot_of(const char *operation_type);
int slots_free_reserved(const struct slots *s, enum slot_kind kind);
int slots_free_shared(const struct slots *s);
/* The last shared slot is not for a retain when retains hold all the others. */
bool slots_retain_may_share(const struct slots *s);

#endif
