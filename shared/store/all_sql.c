#include "store/all_sql.h"

#define LISTS(X)                                                                                   \
	X(hs_automatic_sql) \
	X(hs_bank_sql) \
	X(hs_bank_write_sql) \
	X(hs_clock_sql) \
	X(hs_directive_sql) \
	X(hs_document_read_sql) \
	X(hs_document_sql) \
	X(hs_entity_read_sql) \
	X(hs_evidence_sql) \
	X(hs_health_sql) \
	X(hs_memory_clear_sql) \
	X(hs_memory_delete_sql) \
	X(hs_memory_read_sql) \
	X(hs_memory_sql) \
	X(hs_mental_model_sql) \
	X(hs_observation_sql) \
	X(hs_operation_claim_sql) \
	X(hs_operation_list_sql) \
	X(hs_operation_sql) \
	X(hs_posting_sql) \
	X(hs_purge_sql) \
	X(hs_schema_sql) \
	X(hs_stats_sql) \
	X(hs_vector_sql)

#define DECLARE(list) extern const struct hs_sql_list list;
LISTS(DECLARE)

#define NAME(list) &list,
const struct hs_sql_list *const hs_all_sql[] = {LISTS(NAME) NULL};
