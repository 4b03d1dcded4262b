/* hindsight-mental-models: mental models of a bank. */
#include "llm/embed.h"
#include "models.h"
#include "store/schema.h"
#include "web/program.h"

static enum hs_rc start(struct hs_app *app, struct hs_err *err)
{
	struct hs_embedder *embedder = NULL;

	HS_TRY(hs_embedder_new(app->pool, app->cfg, &embedder, err));
	app->data = embedder;
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
