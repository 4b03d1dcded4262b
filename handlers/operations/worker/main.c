/* hindsight-worker: runs what is queued. --drain ends when nothing is left to do now. */
#include "worker.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config.h"
#include "store/schema.h"

#define ERROR_PAUSE_MS 1000
#define UNWIND_US (5 * HS_SECOND_US) /* after the grace: cancelled jobs come back */
#define STEP_MS 20

struct options {
	const char *config;
	bool drain;
};

static void usage(FILE *to)
{
	fputs("Usage: hindsight-worker [--config FILE] [--drain]\n\n"
	      "Runs queued operations until SIGTERM.\n\n"
	      "  --config FILE  configuration file (else HINDSIGHT_CONFIG, else the usual places)\n"
	      "  --drain        end when nothing can be run now (for hosts with cron only)\n"
	      "  --version      print the version\n"
	      "  --help         print this text\n",
		to);
}

/* -1: go on; else the exit status. */
static int read_options(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"drain", no_argument, NULL, 'd'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:dvh", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->config = optarg;
			break;
		case 'd':
			o->drain = true;
			break;
		case 'v':
			puts("hindsight-worker " PACKAGE_VERSION);
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

/* A name of its own at each start: recovery goes by leases, never by names. */
static void make_id(struct worker *w)
{
	const char *own = hs_cfg_str(w->cfg, HS_S_worker_id);
	char host[128] = "host", random[9];

	if (gethostname(host, sizeof(host)) != 0)
		hs_log(HS_LOG_WARN, "worker", "error=%s", hs_log_quote(strerror(errno)));
	host[sizeof(host) - 1] = '\0';
	hs_random_hex(random, 4);
	snprintf(w->id, sizeof(w->id), "%.128s-%ld-%s", hs_str_empty(own) ? host : own,
		(long)getpid(), random);
}

static enum hs_rc load(
	struct worker *w, const struct options *o, const char *program, struct hs_err *err)
{
	struct hs_config *cfg;

	HS_TRY(hs_config_load(w->pool, o->config, program, HS_SYSCONFDIR, &cfg, err));
	hs_log_init("hindsight-worker", hs_cfg_str(cfg, HS_S_log_level),
		hs_str_eq(hs_cfg_str(cfg, HS_S_log_format), "json"));
	hs_metrics_open_in(hs_cfg_str(cfg, HS_S_run_dir));
	w->cfg = cfg;
	w->drain = o->drain;
	/* a draining worker looks at least once for dead workers' operations and rows to purge */
	w->purging = o->drain;
	w->lease_s = hs_cfg_int(cfg, HS_S_worker_lease_seconds);
	make_id(w);
	HS_TRY(hs_llm_new(w->pool, cfg, &w->llm, err));
	HS_TRY(hs_embedder_new(w->pool, cfg, &w->embedder, err));
	w->db = hs_db_new(cfg);
	hs_db_on_connect(w->db, hs_schema_check, NULL);
	return HS_OK;
}

/* A database that is away does not stop the start; a schema that does not fit does. */
static enum hs_rc check_schema(struct worker *w, struct hs_err *err)
{
	enum hs_rc rc = hs_db_ping(w->db, err);

	if (rc == HS_E_DB_SCHEMA)
		return rc;
	if (rc != HS_OK)
		hs_log(HS_LOG_WARN, "database", "error=%s", hs_log_quote(err->msg));
	return HS_OK;
}

/* ---- threads ---- */

static enum hs_rc start_thread(
	pthread_t *thread, void *(*fn)(void *arg), void *arg, struct hs_err *err)
{
	int no = pthread_create(thread, NULL, fn, arg);

	return no == 0 ? HS_OK
		       : hs_fail_foreign(
				 err, HS_E_IO, no, "cannot start a thread: %s", strerror(no));
}

static enum hs_rc start_threads(struct worker *w, struct hs_err *err)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	w->n_jobs = (size_t)hs_cfg_int(w->cfg, HS_S_worker_max_slots);
	w->jobs = HS_NEW_ARRAY(w->pool, struct job, w->n_jobs);
	for (size_t i = 0; i < w->n_jobs; i++) {
		struct job *j = &w->jobs[i];

		j->w = w;
		j->pool = hs_pool_new();
		j->db = hs_db_new(w->cfg);
		hs_db_on_connect(j->db, hs_schema_check, NULL);
		HS_TRY(start_thread(&j->thread, job_thread, j, err));
	}
	HS_TRY(start_thread(&w->lease_thread, lease_thread, w, err));
	return start_thread(&w->upkeep_thread, upkeep_thread, w, err);
}

static void join_threads(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->lease_thread, NULL);
	pthread_join(w->upkeep_thread, NULL);
	for (size_t i = 0; i < w->n_jobs; i++) {
		pthread_join(w->jobs[i].thread, NULL);
		hs_db_free(&w->jobs[i].db);
		hs_pool_free(&w->jobs[i].pool);
	}
}

/* ---- the loop ---- */

struct fds {
	int signal, poke;
};

/* Waits for a poke, an ended job, a signal or the time. True when the worker shall end. */
static bool wait_for(struct worker *w, const struct fds *f, int timeout_ms)
{
	struct pollfd p[] = {{f->signal, POLLIN, 0}, {w->done_fd, POLLIN, 0}, {f->poke, POLLIN, 0}};
	struct signalfd_siginfo info;
	eventfd_t n;

	if (poll(p, HS_COUNT(p), timeout_ms) <= 0)
		return false;
	if (p[1].revents)
		(void)!eventfd_read(w->done_fd, &n);
	if (p[2].revents)
		poke_drain(f->poke);
	if (!p[0].revents)
		return false;
	return read(f->signal, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

static bool drained(struct worker *w, size_t taken)
{
	return w->drain && taken == 0 && worker_running(w) == 0 && !w->purging;
}

static void loop(struct worker *w, const struct fds *f)
{
	int poll_ms = (int)hs_cfg_int(w->cfg, HS_S_worker_poll_interval_ms), timeout_ms = 0;

	while (!w->broken && !wait_for(w, f, timeout_ms)) {
		struct hs_err err;
		size_t taken;

		hs_err_clear(&err);
		if (worker_claim(w, &taken, &err) != HS_OK) {
			hs_log(HS_LOG_WARN, "claim", "error=%s", hs_log_quote(err.msg));
			timeout_ms = ERROR_PAUSE_MS;
			/* nobody waits for a draining worker that cannot read its queue */
			w->broken = w->broken || (w->drain && worker_running(w) == 0);
			continue;
		}
		if (drained(w, taken))
			return;
		/* what was just claimed may have freed the way for more */
		timeout_ms = taken > 0 ? 0 : w->drain && poll_ms > STEP_MS ? STEP_MS : poll_ms;
	}
}

/* ---- the end ---- */

static bool wait_idle(struct worker *w, const struct fds *f, int64_t us)
{
	int64_t end = hs_mono_us() + us;

	while (worker_running(w) > 0 && hs_mono_us() < end)
		if (wait_for(w, f, STEP_MS))
			_exit(0);
	return worker_running(w) == 0;
}

/* What runs may end; then it is cancelled; then it is given back as it is. */
static bool end_jobs(struct worker *w, const struct fds *f)
{
	if (wait_idle(w, f, hs_cfg_int(w->cfg, HS_S_shutdown_grace_seconds) * HS_SECOND_US))
		return true;
	for (size_t i = 0; i < w->n_jobs; i++)
		w->jobs[i].stop = true;
	if (wait_idle(w, f, UNWIND_US))
		return true;
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_jobs; i++)
		if (w->jobs[i].state != JOB_IDLE)
			job_hand_back(w, w->db, &w->jobs[i]);
	pthread_mutex_unlock(&w->lock);
	return false;
}

static int serve(struct worker *w)
{
	struct fds f = {-1, -1};
	struct hs_err err;
	sigset_t set;

	hs_err_clear(&err);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	f.signal = signalfd(-1, &set, SFD_CLOEXEC);
	w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f.signal < 0 || w->done_fd < 0 || start_threads(w, &err) != HS_OK) {
		hs_log(HS_LOG_ERROR, "start", "error=%s",
			hs_log_quote(err.msg[0] ? err.msg : strerror(errno)));
		return 1;
	}
	if (!w->drain)
		f.poke = poke_open(w->cfg);
	hs_log(HS_LOG_INFO, "start", "worker=%s slots=%zu provider=%s", hs_log_quote(w->id),
		w->n_jobs, hs_cfg_llm_provider(w->cfg, NULL));
	loop(w, &f);
	poke_close(w->cfg, f.poke);
	f.poke = -1;
	hs_log(HS_LOG_INFO, "stop", "worker=%s running=%zu", hs_log_quote(w->id),
		worker_running(w));
	if (!end_jobs(w, &f))
		_exit(0);
	join_threads(w);
	close(f.signal);
	close(w->done_fd);
	return w->broken ? 1 : 0;
}

int main(int argc, char **argv)
{
	HS_AUTO(hs_pool_free) struct hs_pool *pool = hs_pool_new();
	struct worker w = {.pool = pool};
	struct options o = {0};
	int status = read_options(argc, argv, &o);
	struct hs_err err;

	if (status >= 0)
		return status;
	hs_log_init("hindsight-worker", "info", false);
	hs_err_clear(&err);
	if (load(&w, &o, argv[0], &err) != HS_OK || check_schema(&w, &err) != HS_OK) {
		hs_log(HS_LOG_ERROR, "start", "error=%s", hs_log_quote(err.msg));
		hs_db_free(&w.db);
		return 1;
	}
	status = serve(&w);
	hs_db_free(&w.db);
	return status;
}
