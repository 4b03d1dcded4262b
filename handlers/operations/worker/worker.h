/*
 * worker - the daemon `hindsight-worker`: claims queued operations and runs them.
 *
 * Floor:   handlers. Rules: contract banks 9, DESIGN 7.
 * Threads: main waits for signals, pokes and ended jobs, and claims (claim.c); one thread a slot runs
 *          jobs (run.c); one keeps leases and sees cancellations (lease.c); one does upkeep
 *          (upkeep.c). Each has a connection of its own. `lock` guards every member marked so.
 */
#ifndef HS_WORKER_H
#define HS_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/run.h"
#include "slots.h"
#include "store/operation.h"

#define WORKER_ID_TEXT 256
#define STAGE_TEXT 64

enum job_state { JOB_IDLE, JOB_READY, JOB_RUNNING };

/* One slot. */
struct job {
	struct worker *w;
	pthread_t thread;
	enum job_state state;   /* lock */
	struct hs_operation op; /* strings live in pool */
	struct hs_claim claim;
	struct hs_pool *pool; /* of the job, cleared when it ends */
	struct hs_db *db;
	_Atomic bool lost;      /* cancelled, or another worker has it */
	_Atomic bool stop;      /* the worker ends: unwind */
	struct hs_run *run;     /* while it runs; its own thread only */
	int64_t wall_us;        /* 0 = no limit */
	char stage[STAGE_TEXT]; /* last progress, for the text of a wall limit */
};

struct worker {
	const struct hs_config *cfg;
	struct hs_pool *pool;
	struct hs_db *db; /* main's */
	struct hs_llm *llm;
	struct hs_embedder *embedder;
	char id[WORKER_ID_TEXT];
	int64_t lease_s;
	bool drain;
	struct job *jobs;
	size_t n_jobs;
	pthread_mutex_t lock;
	pthread_cond_t wake;  /* a job is ready, or the worker ends */
	bool ending;          /* lock */
	_Atomic bool broken;  /* a result could not be written for minutes: end */
	_Atomic bool purging; /* rows of deleted banks are left */
	int done_fd;          /* eventfd: a job ended */
	int64_t last_bank;    /* fairness: served last */
	pthread_t lease_thread, upkeep_thread;
};

/* claim.c: fill free slots; *ret_n = how many operations were taken. */
HS_MUST enum hs_rc worker_claim(struct worker *w, size_t *ret_n, struct hs_err *err);
size_t worker_running(struct worker *w);

/* run.c */
void *job_thread(void *job);
/* Give the row back as a lease that ran out would. */
void job_hand_back(struct worker *w, struct hs_db *db, struct job *j);

/* lease.c, upkeep.c */
void *lease_thread(void *worker);
void *upkeep_thread(void *worker);
/* Sleep, but not longer than the worker lives; false when it ends. */
bool worker_sleep(struct worker *w, int64_t us);

/* poke.c: the datagram socket run_dir/worker.sock; -1 when it cannot be made (polling remains). */
int poke_open(const struct hs_config *cfg);
void poke_drain(int fd);
void poke_close(const struct hs_config *cfg, int fd);

#endif
