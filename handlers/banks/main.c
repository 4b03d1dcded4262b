/* hindsight-banks: health, version, metrics, banks, configuration, stats, directives. */
#include "banks.h"

#include "store/schema.h"
#include "web/program.h"
#include "web/system.h"

static const struct hs_route *const tables[] = {hs_system_routes, bank_routes, NULL};

int main(int argc, char **argv)
{
	static const struct hs_program program = {
		.name = "hindsight-banks", .tables = tables, .on_connect = hs_schema_check,
		.metrics = bank_metrics,
	};

	return hs_program_main(argc, argv, &program);
}
