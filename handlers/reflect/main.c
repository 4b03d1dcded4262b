#include "reflect.h"

#include "store/schema.h"
#include "web/program.h"
#include "web/system.h"

static enum hs_rc start(struct hs_app *app, struct hs_err *err)
{
	struct reflect_data *data = HS_NEW(app->pool, struct reflect_data);

	HS_TRY(hs_llm_new(app->pool, app->cfg, &data->llm, err));
	HS_TRY(hs_embedder_new(app->pool, app->cfg, &data->embedder, err));
	app->data = data;
	return HS_OK;
}

static const struct hs_route *const tables[] = {reflect_routes, hs_system_routes, NULL};

static const struct hs_program program = {
	.name = "hindsight-reflect",
	.tables = tables,
	.threads = 64,
	.start = start,
	.on_connect = hs_schema_check,
};

int main(int argc, char **argv)
{
	return hs_program_main(argc, argv, &program);
}
