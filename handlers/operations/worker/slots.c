#include "slots.h"

static const struct row {
	const char *type;
	enum hs_setting_id reserved;
} rows[SLOT__MAX] = {
	[SLOT_CONSOLIDATION] = {"consolidation", HS_S_worker_consolidation_reserved_slots},
	[SLOT_RETAIN] = {"retain", HS_S_worker_retain_reserved_slots},
	[SLOT_FILE_CONVERT_RETAIN] = {"file_convert_retain",
		HS_S_worker_file_convert_retain_reserved_slots},
	[SLOT_REFRESH] = {"refresh_mental_model", HS_S_worker_refresh_mental_model_reserved_slots},
	[SLOT_GRAPH_MAINTENANCE] = {"graph_maintenance",
		HS_S_worker_graph_maintenance_reserved_slots},
	[SLOT_IMPORT_DOCUMENTS] = {"import_documents", HS_S_worker_import_documents_reserved_slots},
	[SLOT_EXPORT_DOCUMENTS] = {"export_documents", HS_S_worker_export_documents_reserved_slots},
	[SLOT_IMPORT_BANK] = {"import_bank", HS_S_worker_import_bank_reserved_slots},
	[SLOT_EXPORT_BANK] = {"export_bank", HS_S_worker_export_bank_reserved_slots},
	[SLOT_CLONE_BANK] = {"clone_bank", HS_S_worker_clone_bank_reserved_slots},
};

void slots_init(struct slots *s, const struct hs_config *cfg)
{
	*s = (struct slots){.max = (int)hs_cfg_int(cfg, HS_S_worker_max_slots)};
	s->shared = s->max;
	for (int i = SLOT_OTHER + 1; i < SLOT__MAX; i++) {
		s->reserved[i] = (int)hs_cfg_int(cfg, rows[i].reserved);
		s->shared -= s->reserved[i];
	}
}

enum slot_kind slot_of(const char *operation_type)
{
	for (int i = SLOT_OTHER + 1; i < SLOT__MAX; i++)
		if (hs_str_eq(rows[i].type, operation_type))
			return (enum slot_kind)i;
	return SLOT_OTHER;
}

/* Slots of the shared pool that a kind holds. */
static int over(const struct slots *s, int kind)
{
	return s->running[kind] > s->reserved[kind] ? s->running[kind] - s->reserved[kind] : 0;
}

int slots_free_reserved(const struct slots *s, enum slot_kind kind)
{
	return s->running[kind] < s->reserved[kind] ? s->reserved[kind] - s->running[kind] : 0;
}

int slots_free_shared(const struct slots *s)
{
	int used = 0;

	for (int i = 0; i < SLOT__MAX; i++)
		used += over(s, i);
	return used < s->shared ? s->shared - used : 0;
}

bool slots_retain_may_share(const struct slots *s)
{
	int left = slots_free_shared(s);

	return left > 1 || (left == 1 && (s->shared == 1 || over(s, SLOT_RETAIN) < s->shared - 1));
}
