/* hindsight-operations: the queue as clients see it. */
#include "operations.h"
#include "store/schema.h"
#include "web/program.h"

static const struct hs_route *const tables[] = {op_routes, NULL};

static const struct hs_program program = {
	.name = "hindsight-operations",
	.tables = tables,
	.on_connect = hs_schema_check,
};

int main(int argc, char **argv)
{
	return hs_program_main(argc, argv, &program);
}
