/* hindsight-mcp: the tools of agents. */
#include "mcp.h"

#include <stdlib.h>

#include "store/schema.h"
#include "web/program.h"
#include "web/system.h"

#define THREADS 32

static enum hs_rc start(struct hs_app *app, struct hs_err *err)
{
	struct mcp_data *data = HS_NEW(app->pool, struct mcp_data);
	const char *bank = getenv("HINDSIGHT_MCP_BANK_ID");

	data->default_bank = hs_str_empty(bank) ? "default" : bank;
	HS_TRY(hs_llm_new(app->pool, app->cfg, &data->llm, err));
	HS_TRY(hs_embedder_new(app->pool, app->cfg, &data->embedder, err));
	app->data = data;
	return HS_OK;
}

static const struct hs_route *const tables[] = {hs_system_routes, NULL};

int main(int argc, char **argv)
{
	static const struct hs_program program = {
		.name = "hindsight-mcp",
		.tables = tables,
		.threads = THREADS,
		.start = start,
		.serve = mcp_serve,
		.on_connect = hs_schema_check,
	};

	return hs_program_main(argc, argv, &program);
}
