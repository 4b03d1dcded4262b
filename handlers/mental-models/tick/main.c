/* hindsight-refresh-tick: queues the refreshes that are due, once. */
#include "tick.h"

#include <getopt.h>
#include <stdio.h>

#include "base/log.h"
#include "config.h"
#include "store/schema.h"

static void usage(FILE *to)
{
	fputs("Usage: hindsight-refresh-tick [--config FILE]\n\n"
	      "Queues scheduled refreshes that are due, brings back operations of dead workers\n"
	      "and queues forgotten consolidations; then it ends. Run it every minute, by the systemd\n"
	      "timer or by cron.\n\n"
	      "  --config FILE  configuration file (else HINDSIGHT_CONFIG, else the usual places)\n"
	      "  --version      print the version\n"
	      "  --help         print this text\n",
		to);
}

/* -1: go on; else the exit status. */
static int read_options(int argc, char **argv, const char **ret_config)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:vh", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			*ret_config = optarg;
			break;
		case 'v':
			puts("hindsight-refresh-tick " PACKAGE_VERSION);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind == argc)
		return -1;
	usage(stderr);
	return 2;
}

static enum hs_rc start(struct hs_pool *pool, const char *file, const char *program,
	struct hs_config **ret_cfg, struct hs_db **ret_db, struct hs_err *err)
{
	HS_TRY(hs_config_load(pool, file, program, HS_SYSCONFDIR, ret_cfg, err));
	hs_log_init("hindsight-refresh-tick", hs_cfg_str(*ret_cfg, HS_S_log_level),
		hs_str_eq(hs_cfg_str(*ret_cfg, HS_S_log_format), "json"));
	*ret_db = hs_db_new(*ret_cfg);
	hs_db_on_connect(*ret_db, hs_schema_check, NULL);
	return hs_db_ping(*ret_db, err);
}

int main(int argc, char **argv)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	HS_AUTO(hs_db_free) struct hs_db *db = NULL;
	const char *file = NULL;
	struct hs_config *cfg;
	struct hs_err err;
	int status = read_options(argc, argv, &file);

	if (status >= 0)
		return status;
	hs_log_init("hindsight-refresh-tick", "info", false);
	hs_err_clear(&err);
	if (start(pool, file, argv[0], &cfg, &db, &err) != HS_OK) {
		hs_log(HS_LOG_ERROR, "start", "error=%s", hs_log_quote(err.msg));
		return 1;
	}
	return tick(db, cfg);
}
