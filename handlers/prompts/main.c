/* hindsight-prompts: the prompts an operation would send. Calls no model and writes nothing. */
#include "prompts.h"

#include "store/schema.h"
#include "web/program.h"
#include "web/system.h"

static const struct hs_route *const tables[] = {prompt_routes, hs_system_routes, NULL};

int main(int argc, char **argv)
{
	static const struct hs_program program = {
		.name = "hindsight-prompts",
		.tables = tables,
		.on_connect = hs_schema_check,
	};

	return hs_program_main(argc, argv, &program);
}
