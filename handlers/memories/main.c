/* hindsight-memories: retain, recall, consolidate, and what reads and deletes memories. */
#include "memories.h"
#include "read.h"

#include "store/schema.h"
#include "web/program.h"
#include "web/system.h"

static enum hs_rc start(struct hs_app *app, struct hs_err *err)
{
	struct memories_data *data = HS_NEW(app->pool, struct memories_data);

	HS_TRY(hs_llm_new(app->pool, app->cfg, &data->llm, err));
	HS_TRY(hs_embedder_new(app->pool, app->cfg, &data->embedder, err));
	app->data = data;
	return HS_OK;
}

static bool gone(void *arg)
{
	return hs_request_gone(arg);
}

struct hs_run memories_run(struct hs_ctx *c)
{
	const struct memories_data *data = c->app->data;

	return (struct hs_run){
		.db = c->db,
		.pool = c->pool,
		.server = c->cfg,
		.llm = data->llm,
		.embedder = data->embedder,
		.cancelled = gone,
		.cancel_arg = c,
		.source = "api",
	};
}

static const struct hs_route *const tables[] = {
	memories_routes, hs_memory_read_routes, hs_system_routes, NULL};

int main(int argc, char **argv)
{
	static const struct hs_program program = {
		.name = "hindsight-memories",
		.tables = tables,
		.start = start,
		.on_connect = hs_schema_check,
	};

	return hs_program_main(argc, argv, &program);
}
