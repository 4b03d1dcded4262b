/* hindsight-mental-models: mental models of a bank. */
#include "models.h"
#include "store/schema.h"
#include "web/program.h"

static enum hs_rc start(struct hs_app *app, struct hs_err *err)
{
	struct mm_data *data = HS_NEW(app->pool, struct mm_data);

	HS_TRY(hs_llm_new(app->pool, app->cfg, &data->llm, err));
	HS_TRY(hs_embedder_new(app->pool, app->cfg, &data->embedder, err));
	app->data = data;
	return HS_OK;
}

static const struct hs_route *const tables[] = {mm_routes, NULL};

static const struct hs_program program = {
	.name = "hindsight-mental-models",
	.tables = tables,
	.start = start,
	.on_connect = hs_schema_check,
	.thread_start = mm_thread_start,
	.thread_end = mm_thread_end,
};

int main(int argc, char **argv)
{
	return hs_program_main(argc, argv, &program);
}
