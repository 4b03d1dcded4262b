#include "web/system.h"

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

static enum hs_rc metrics(struct hs_ctx *c, const void *query, const void *body)
{
	(void)query;
	(void)body;
	(void)hs_reply(c);
	c->res->content_type = "text/plain; version=0.0.4; charset=utf-8";
	hs_metrics_print(c->res->body);
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
