#include "web/system.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "web/program.h"

#define NOT_SERVED (-1)

/* Features of this release: the setting that decides, or NOT_SERVED when its routes do not exist. */
static const struct {
	const char *name;
	int setting;
} features[] = {
	{"observations", HS_S_enable_observations},
	{"mcp", HS_S_mcp_enabled},
	{"worker", HS_S_worker_enabled},
	{"bank_config_api", HS_S_enable_bank_config_api},
	{"bank_llm_health", NOT_SERVED},
	{"file_upload_api", NOT_SERVED},
	{"document_export_api", NOT_SERVED},
	{"document_import_api", NOT_SERVED},
	{"audit_log", NOT_SERVED},
	{"llm_trace", NOT_SERVED},
	{"store_document_text", HS_S_store_document_text},
};

static enum hs_rc health_bad(struct hs_ctx *c)
{
	struct hs_out o = hs_reply_status(c, 503);

	hs_response_header(c->res, "Retry-After", "1");
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "status", "unhealthy");
	hs_out_str(&o, "database", "error");
	hs_out_str(&o, "error", hs_err_public(&c->err));
	hs_out_close(&o, '}');
	return HS_OK;
}

static enum hs_rc health_ready(struct hs_ctx *c, const void *query, const void *body)
{
	int64_t began_us = hs_mono_us();
	struct hs_out o;

	(void)query;
	(void)body;
	if (hs_db_ping(c->db, &c->err) != HS_OK)
		return health_bad(c);
	o = hs_reply(c);
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "status", "healthy");
	hs_out_str(&o, "database", "connected");
	hs_out_num(&o, "db_acquire_ms", (double)(hs_mono_us() - began_us) / 1000.0);
	hs_out_close(&o, '}');
	return HS_OK;
}

static enum hs_rc health_live(struct hs_ctx *c, const void *query, const void *body)
{
	int64_t up_us = hs_mono_us() - c->app->started_us;
	struct hs_out o = hs_reply(c);

	(void)query;
	(void)body;
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "status", "alive");
	hs_out_str(&o, "version", HS_API_VERSION);
	hs_out_num(&o, "uptime_seconds", (double)(up_us / 100000) / 10.0);
	hs_out_close(&o, '}');
	return HS_OK;
}

static enum hs_rc version(struct hs_ctx *c, const void *query, const void *body)
{
	struct hs_out o = hs_reply(c);

	(void)query;
	(void)body;
	hs_out_open(&o, NULL, '{');
	hs_out_str(&o, "api_version", HS_API_VERSION);
	hs_out_open(&o, "features", '{');
	for (size_t i = 0; i < HS_COUNT(features); i++)
		hs_out_bool(&o, features[i].name, features[i].setting != NOT_SERVED &&
			hs_cfg_bool(c->cfg, (enum hs_setting_id)features[i].setting));
	hs_out_close(&o, '}');
	hs_out_str(&o, "llm_provider", hs_cfg_llm_provider(c->cfg, NULL));
	hs_out_close(&o, '}');
	return HS_OK;
}

static void gauge(struct hs_buf *out, const char *name, const char *help, double value)
{
	hs_buf_printf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %.9g\n", name, help, name, name,
		value);
}

/* Of this process; each thread has a connection of its own, so nobody waits for another's. */
static void print_connections(const struct hs_app *app, struct hs_buf *out)
{
	struct hs_db_figures f = hs_db_figures();
	int idle = f.open - atomic_load(&app->busy);

	gauge(out, "hindsight_db_pool_size", "Open database connections of this process", f.open);
	gauge(out, "hindsight_db_pool_idle", "Those of threads without a request",
		idle > 0 ? idle : 0);
	gauge(out, "hindsight_db_pool_min", "Connections that are always open", 0);
	gauge(out, "hindsight_db_pool_max", "Connections at most", app->threads);
	gauge(out, "hindsight_db_pool_waiting", "Requests that wait for a connection", 0);
	gauge(out, "hindsight_db_pool_acquire_wait_seconds",
		"How long opening the last connection took", (double)f.wait_us / 1e6);
}

/* Figures of the database are left out while it is away: the others are wanted most then. */
static enum hs_rc metrics(struct hs_ctx *c, const void *query, const void *body)
{
	const struct hs_program *program = c->app->program;

	(void)query;
	(void)body;
	(void)hs_reply(c);
	c->res->content_type = "text/plain; version=0.0.4; charset=utf-8";
	hs_metrics_print(c->res->body);
	print_connections(c->app, c->res->body);
	if (program->metrics && program->metrics(c, c->res->body) != HS_OK) {
		hs_log(HS_LOG_WARN, "metrics", "code=%s error=%s", hs_rc_name(c->err.rc),
			hs_log_quote(c->err.msg));
		hs_err_clear(&c->err);
	}
	return HS_OK;
}

const struct hs_route hs_system_routes[] = {
	HS_ROUTE(GET, "/health", health_ready, .flags = HS_R_OPEN),
	HS_ROUTE(GET, "/health/ready", health_ready, .flags = HS_R_OPEN),
	HS_ROUTE(GET, "/health/live", health_live, .flags = HS_R_OPEN),
	HS_ROUTE(GET, "/version", version, .flags = HS_R_OPEN),
	HS_ROUTE(GET, "/v1/version", version, .flags = HS_R_OPEN),
	HS_ROUTE(GET, "/metrics", metrics, .flags = HS_R_OPEN),
	{.pattern = NULL},
};
