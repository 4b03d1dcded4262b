#include "admin.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config.h"

static int sample(struct admin *a)
{
	fputs(hs_config_sample(a->pool), stdout);
	return 0;
}

static const struct command {
	const char *name, *help;
	int (*run)(struct admin *a);
	bool needs_config;
} commands[] = {
	{"migrate", "create the database when missing and bring its schema up to date",
		admin_migrate, true},
	{"check", "say what works, what does not, and what to do", admin_check, true},
	{"sample-config", "print a configuration file with every setting, commented", sample,
		false},
	{"settings", "the same as sample-config", sample, false},
};

static void usage(FILE *to)
{
	fputs("Usage: hindsight-admin [--config FILE] COMMAND\n\nCommands:\n", to);
	for (size_t i = 0; i < HS_COUNT(commands); i++)
		fprintf(to, "  %-14s %s\n", commands[i].name, commands[i].help);
	fputs("\nOptions:\n"
	      "  --config FILE  configuration file (else HINDSIGHT_CONFIG, else the usual places)\n"
	      "  --dir DIR      migrate: folder with the numbered SQL files\n"
	      "                 (else HINDSIGHT_MIGRATIONS_DIR, else " HS_MIGRATIONS_DIR ")\n"
	      "  --version      print the version\n"
	      "  --help         print this text\n",
		to);
}

int admin_fail(const struct hs_err *err)
{
	fprintf(stderr, "hindsight-admin: %s\n", err->msg[0] ? err->msg : hs_rc_text(err->rc));
	return 1;
}

enum hs_rc admin_config(struct admin *a, struct hs_config **ret, struct hs_err *err)
{
	return hs_config_load(a->pool, a->config_path, a->program, HS_SYSCONFDIR, ret, err);
}

static int run(struct admin *a, const char *name)
{
	struct hs_err err;

	hs_err_clear(&err);
	for (size_t i = 0; i < HS_COUNT(commands); i++) {
		if (strcmp(commands[i].name, name) != 0)
			continue;
		if (commands[i].needs_config && admin_config(a, &a->cfg, &err) != HS_OK)
			return admin_fail(&err);
		return commands[i].run(a);
	}
	fprintf(stderr, "hindsight-admin: there is no command '%s'\n", name);
	usage(stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"dir", required_argument, NULL, 'd'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct admin a = {.pool = pool, .program = argv[0]};
	int c;

	hs_log_init("hindsight-admin", "warning", false);
	while ((c = getopt_long(argc, argv, "c:d:vh", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			a.config_path = optarg;
			break;
		case 'd':
			a.dir = optarg;
			break;
		case 'v':
			puts("hindsight-admin " PACKAGE_VERSION);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc - 1) {
		usage(stderr);
		return 2;
	}
	return run(&a, argv[optind]);
}
