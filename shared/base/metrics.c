#include "base/metrics.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x31534d4853480002)
#define ROWS 2048u
#define LABELS_BYTES 328
#define VALUE_BYTES 96
#define BUCKETS 15
#define BUSY_SLOTS 1024u

enum family {
	OPERATION, LLM, HTTP, TOKENS_IN, TOKENS_OUT, TOKENS_CACHED, TOKENS_THOUGHTS,
	RETAINED, CONSOLIDATION_FAILURES, IN_PROGRESS, FAMILY__MAX
};

static const double operation_bounds[] = {
	.1, .25, .5, .75, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120,
};
static const double llm_bounds[] = {.1, .25, .5, 1, 2, 3, 5, 10, 15, 30, 60, 120};
static const double http_bounds[] = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30};

/* A histogram with its counter, or a counter alone (no bounds). */
static const struct {
	const char *histogram, *counter, *help;
	const double *bounds;
	size_t n_bounds;
} families[FAMILY__MAX] = {
	[OPERATION] = {"hindsight_operation_duration_seconds",
		"hindsight_operation_operations_total",
		"Operations and how long they took", operation_bounds, HS_COUNT(operation_bounds)},
	[LLM] = {"hindsight_llm_duration_seconds", "hindsight_llm_calls_total",
		"Model calls and how long they took", llm_bounds, HS_COUNT(llm_bounds)},
	[HTTP] = {"hindsight_http_duration_seconds", "hindsight_http_requests_total",
		"HTTP requests and how long they took", http_bounds, HS_COUNT(http_bounds)},
	[TOKENS_IN] = {NULL, "hindsight_llm_tokens_input_tokens_total", "Tokens sent to models",
		NULL, 0},
	[TOKENS_OUT] = {NULL, "hindsight_llm_tokens_output_tokens_total",
		"Tokens written by models", NULL, 0},
	[TOKENS_CACHED] = {NULL, "hindsight_llm_tokens_cached_input_tokens_total",
		"Tokens sent and served from the provider's cache", NULL, 0},
	[TOKENS_THOUGHTS] = {NULL, "hindsight_llm_tokens_thoughts_tokens_total",
		"Tokens spent on reasoning", NULL, 0},
	[RETAINED] = {NULL, "hindsight_retain_documents_total", "Documents retained", NULL, 0},
	[CONSOLIDATION_FAILURES] = {NULL, "hindsight_consolidation_batch_failures_calls_total",
		"Consolidation calls that failed", NULL, 0},
	[IN_PROGRESS] = {NULL, "hindsight_http_requests_in_progress_requests",
		"Requests that are served now", NULL, 0},
};

/* used: 0 free, else family + 1; set last, so a reader sees whole rows. */
struct row {
	_Atomic uint32_t used;
	char labels[LABELS_BYTES];
	_Atomic uint64_t count, sum_us;
	_Atomic uint64_t buckets[BUCKETS];
};
/* One running request: pid 0 = free; row is that of its labels + 1. */
struct busy {
	_Atomic int32_t pid;
	_Atomic uint32_t row;
};
struct table {
	uint64_t magic;
	_Atomic uint64_t dropped;
	struct row rows[ROWS];
	struct busy busy[BUSY_SLOTS];
};

/* The one process-wide table; set at the start, before the threads. */
static struct {
	struct table *table;
	int fd;
	pthread_mutex_t lock;
} shared = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

static struct table *map(int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* A file of this layout, or -1. A new or empty file gets its size under the lock. */
static int file_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0660);
	struct stat st;

	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0 &&
		(st.st_size == (off_t)sizeof(struct table) ||
			(st.st_size == 0 && ftruncate(fd, (off_t)sizeof(struct table)) == 0))) {
		(void)flock(fd, LOCK_UN);
		return fd;
	}
	close(fd);
	return -1;
}

static bool open_file(const char *path)
{
	shared.fd = file_open(path);
	shared.table = shared.fd < 0 ? NULL : map(shared.fd);
	if (shared.table && (shared.table->magic == 0 || shared.table->magic == MAGIC)) {
		shared.table->magic = MAGIC;
		return true;
	}
	hs_metrics_close();
	return false;
}

void hs_metrics_close(void)
{
	if (shared.table)
		munmap(shared.table, sizeof(struct table));
	if (shared.fd >= 0)
		close(shared.fd);
	shared.table = NULL;
	shared.fd = -1;
}

void hs_metrics_open(const char *path)
{
	hs_metrics_close();
	if (path) {
		if (open_file(path))
			return;
		/* another release's layout: begin anew, those that mapped the old file keep it */
		(void)unlink(path);
		if (open_file(path))
			return;
	}
	shared.table = map(-1);
}

void hs_metrics_open_in(const char *run_dir)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/metrics", run_dir ? run_dir : "");

	hs_metrics_open(run_dir && *run_dir && n > 0 && (size_t)n < sizeof(path) ? path : NULL);
}

static uint32_t hash(enum family family, const char *labels)
{
	uint32_t h = 2166136261u ^ (uint32_t)family;

	for (; *labels; labels++)
		h = (h ^ (unsigned char)*labels) * 16777619u;
	return h;
}

/* The row, or the free place where it would go (*ret_found false), or NULL when the table is full. */
static struct row *probe(enum family family, const char *labels, bool *ret_found)
{
	uint32_t at = hash(family, labels);

	*ret_found = false;
	for (uint32_t i = 0; i < ROWS; i++) {
		struct row *r = &shared.table->rows[(at + i) % ROWS];
		uint32_t used = atomic_load_explicit(&r->used, memory_order_acquire);

		if (used == 0)
			return r;
		if (used == (uint32_t)family + 1 && strcmp(r->labels, labels) == 0) {
			*ret_found = true;
			return r;
		}
	}
	return NULL;
}

static struct row *row_add(enum family family, const char *labels)
{
	bool found;
	struct row *r;

	pthread_mutex_lock(&shared.lock);
	if (shared.fd >= 0)
		(void)flock(shared.fd, LOCK_EX);
	r = probe(family, labels, &found);
	if (r && !found) {
		snprintf(r->labels, sizeof(r->labels), "%s", labels);
		atomic_store_explicit(&r->used, (uint32_t)family + 1, memory_order_release);
	}
	if (shared.fd >= 0)
		(void)flock(shared.fd, LOCK_UN);
	pthread_mutex_unlock(&shared.lock);
	return r;
}

static struct row *row_of(enum family family, const char *labels)
{
	bool found;
	struct row *r;

	if (!shared.table)
		return NULL;
	r = probe(family, labels, &found);
	if (!found)
		r = row_add(family, labels);
	if (!r)
		atomic_fetch_add(&shared.table->dropped, 1);
	return r;
}

static void observe(enum family family, const char *labels, int64_t duration_us)
{
	struct row *r = row_of(family, labels);
	size_t i = 0;

	if (!r)
		return;
	while (i < families[family].n_bounds &&
		(double)duration_us / 1e6 > families[family].bounds[i])
		i++;
	if (i < families[family].n_bounds)
		atomic_fetch_add_explicit(&r->buckets[i], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->sum_us, duration_us > 0 ? (uint64_t)duration_us : 0,
		memory_order_relaxed);
	atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
}

/* Escaped as label values are; cut at VALUE_BYTES. */
static const char *value(char out[VALUE_BYTES], const char *s)
{
	size_t n = 0;

	for (; s && *s && n + 3 < VALUE_BYTES; s++) {
		if (*s == '\\' || *s == '"')
			out[n++] = '\\';
		out[n++] = (unsigned char)*s < ' ' ? '?' : *s;
	}
	out[n] = '\0';
	return out;
}

void hs_metrics_http(const char *method, const char *endpoint, int status, int64_t duration_us)
{
	char labels[LABELS_BYTES], m[VALUE_BYTES], e[VALUE_BYTES];

	snprintf(labels, sizeof(labels),
		"method=\"%s\",endpoint=\"%s\",status_code=\"%d\",status_class=\"%dxx\"",
		value(m, method), value(e, endpoint), status, status / 100);
	observe(HTTP, labels, duration_us);
}

void hs_metrics_operation(const char *operation, const char *source, const char *budget,
	const char *max_tokens, bool success, int64_t duration_us)
{
	char labels[LABELS_BYTES], o[VALUE_BYTES], s[VALUE_BYTES], b[VALUE_BYTES], t[VALUE_BYTES];

	snprintf(labels, sizeof(labels),
		"operation=\"%.60s\",source=\"%.30s\",budget=\"%.30s\",max_tokens=\"%.30s\",success=\"%s\"",
		value(o, operation), value(s, source), value(b, budget), value(t, max_tokens),
		success ? "true" : "false");
	observe(OPERATION, labels, duration_us);
}

static const char *token_bucket(int64_t n)
{
	static const struct {
		int64_t below;
		const char *name;
	} steps[] = {
		{100, "0-100"}, {500, "100-500"}, {1000, "500-1k"}, {5000, "1k-5k"},
		{10000, "5k-10k"}, {50000, "10k-50k"},
	};

	for (size_t i = 0; i < HS_COUNT(steps); i++)
		if (n < steps[i].below)
			return steps[i].name;
	return "50k+";
}

static void count_tokens(enum family family, const char *labels, int64_t n)
{
	char with_bucket[LABELS_BYTES];
	struct row *r;

	if (n <= 0)
		return;
	snprintf(with_bucket, sizeof(with_bucket), "%.290s,token_bucket=\"%s\"", labels,
		token_bucket(n));
	r = row_of(family, with_bucket);
	if (r)
		atomic_fetch_add_explicit(&r->count, (uint64_t)n, memory_order_relaxed);
}

void hs_metrics_llm(const char *provider, const char *model, const char *scope, bool success,
	int64_t duration_us, int64_t input_tokens, int64_t output_tokens, int64_t cached_tokens,
	int64_t thoughts_tokens)
{
	char labels[LABELS_BYTES], p[VALUE_BYTES], m[VALUE_BYTES], s[VALUE_BYTES];

	snprintf(labels, sizeof(labels),
		"provider=\"%.40s\",model=\"%s\",scope=\"%.60s\",success=\"%s\"",
		value(p, provider), value(m, model), value(s, scope), success ? "true" : "false");
	observe(LLM, labels, duration_us);
	count_tokens(TOKENS_IN, labels, input_tokens);
	count_tokens(TOKENS_OUT, labels, output_tokens);
	count_tokens(TOKENS_CACHED, labels, cached_tokens);
	count_tokens(TOKENS_THOUGHTS, labels, thoughts_tokens);
}

static void count_one(enum family family, const char *labels)
{
	struct row *r = row_of(family, labels);

	if (r)
		atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed);
}

void hs_metrics_retained(bool facts)
{
	count_one(RETAINED, facts ? "outcome=\"facts\"" : "outcome=\"no_facts\"");
}

void hs_metrics_consolidation_failure(bool retry, const char *error_type)
{
	char labels[LABELS_BYTES], e[VALUE_BYTES];

	snprintf(labels, sizeof(labels), "failure_class=\"%s\",error_type=\"%s\"",
		retry ? "retry" : "fail_fast", value(e, error_type));
	count_one(CONSOLIDATION_FAILURES, labels);
}

/* ---- running requests ---- */

static bool alive(int32_t pid)
{
	return pid != 0 && (kill(pid, 0) == 0 || errno == EPERM);
}

/* A free slot; when there is none, that of a process which died. -1: all are taken. */
static int slot_take(void)
{
	static _Atomic uint32_t next;
	uint32_t at = (uint32_t)getpid() + atomic_fetch_add(&next, 1);

	for (int reap = 0; reap < 2; reap++) {
		for (uint32_t i = 0; i < BUSY_SLOTS; i++) {
			struct busy *b = &shared.table->busy[(at + i) % BUSY_SLOTS];
			int32_t was = reap ? atomic_load(&b->pid) : 0;

			if (!alive(was) &&
				atomic_compare_exchange_strong(&b->pid, &was, (int32_t)getpid()))
				return (int)((at + i) % BUSY_SLOTS);
		}
	}
	return -1;
}

int hs_metrics_begin(const char *method, const char *endpoint)
{
	char labels[LABELS_BYTES], m[VALUE_BYTES], e[VALUE_BYTES];
	struct row *r;
	int slot;

	snprintf(labels, sizeof(labels), "method=\"%s\",endpoint=\"%s\"", value(m, method),
		value(e, endpoint));
	r = row_of(IN_PROGRESS, labels);
	slot = r ? slot_take() : -1;
	if (slot >= 0)
		atomic_store(&shared.table->busy[slot].row,
			(uint32_t)(r - shared.table->rows) + 1);
	return slot;
}

void hs_metrics_end(int slot)
{
	if (slot < 0 || !shared.table)
		return;
	atomic_store(&shared.table->busy[slot].row, 0);
	atomic_store(&shared.table->busy[slot].pid, 0);
}

/* ---- printing ---- */

static void print_head(struct hs_buf *buf, const char *name, const char *help, const char *type)
{
	hs_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_histogram(struct hs_buf *buf, enum family f, const struct row *r)
{
	const char *name = families[f].histogram;
	unsigned long long below = 0;

	for (size_t i = 0; i < families[f].n_bounds; i++) {
		below += atomic_load(&r->buckets[i]);
		hs_buf_printf(buf, "%s_bucket{%s,le=\"%g\"} %llu\n", name, r->labels,
			families[f].bounds[i], below);
	}
	hs_buf_printf(buf, "%s_bucket{%s,le=\"+Inf\"} %llu\n", name, r->labels,
		(unsigned long long)atomic_load(&r->count));
	hs_buf_printf(buf, "%s_sum{%s} %.6f\n", name, r->labels,
		(double)atomic_load(&r->sum_us) / 1e6);
	hs_buf_printf(buf, "%s_count{%s} %llu\n", name, r->labels,
		(unsigned long long)atomic_load(&r->count));
}

static void print_counter(struct hs_buf *buf, enum family f, const struct row *r)
{
	hs_buf_printf(buf, "%s{%s} %llu\n", families[f].counter, r->labels,
		(unsigned long long)atomic_load(&r->count));
}

static void print_rows(struct hs_buf *buf, enum family f,
	void (*print)(struct hs_buf *buf, enum family f, const struct row *r))
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *r = &shared.table->rows[i];

		if (atomic_load_explicit(&r->used, memory_order_acquire) == (uint32_t)f + 1)
			print(buf, f, r);
	}
}

static void print_in_progress(struct hs_buf *buf, enum family f, const struct row *r)
{
	uint32_t row = (uint32_t)(r - shared.table->rows) + 1;
	unsigned n = 0;

	for (uint32_t i = 0; i < BUSY_SLOTS; i++)
		n += atomic_load(&shared.table->busy[i].row) == row &&
			alive(atomic_load(&shared.table->busy[i].pid));
	hs_buf_printf(buf, "%s{%s} %u\n", families[f].counter, r->labels, n);
}

static size_t entries(const char *dir)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	if (!d)
		return 0;
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static double seconds(struct timeval tv)
{
	return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static void print_process(struct hs_buf *buf)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) != 0)
		return;
	print_head(buf, "hindsight_process_cpu_seconds", "Processor time of this process", "gauge");
	hs_buf_printf(buf, "hindsight_process_cpu_seconds{type=\"user\"} %.3f\n",
		seconds(u.ru_utime));
	hs_buf_printf(buf, "hindsight_process_cpu_seconds{type=\"system\"} %.3f\n",
		seconds(u.ru_stime));
	print_head(buf, "hindsight_process_memory_bytes", "Memory of this process", "gauge");
	hs_buf_printf(buf, "hindsight_process_memory_bytes{type=\"rss_max\"} %lld\n",
		(long long)u.ru_maxrss * 1024);
	print_head(buf, "hindsight_process_open_fds", "Open descriptors of this process", "gauge");
	hs_buf_printf(buf, "hindsight_process_open_fds %zu\n", entries("/proc/self/fd"));
	print_head(buf, "hindsight_process_threads", "Threads of this process", "gauge");
	hs_buf_printf(buf, "hindsight_process_threads %zu\n", entries("/proc/self/task"));
}

void hs_metrics_print(struct hs_buf *buf)
{
	for (enum family f = 0; shared.table && f < FAMILY__MAX; f++) {
		if (families[f].histogram) {
			print_head(buf, families[f].histogram, families[f].help, "histogram");
			print_rows(buf, f, print_histogram);
		}
		print_head(buf, families[f].counter, families[f].help,
			f == IN_PROGRESS ? "gauge" : "counter");
		print_rows(buf, f, f == IN_PROGRESS ? print_in_progress : print_counter);
	}
	print_process(buf);
}
