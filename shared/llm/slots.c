#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "llm/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

#define FIRST_PAUSE_US 2000
#define LONGEST_PAUSE_US 50000

struct hs_slots {
	const char *path;
	int64_t cap;
};

static void close_memory(void *arg)
{
	int *fd = arg;

	close(*fd);
}

/* A file that lives in memory; it is opened again under its name in /proc, as each holder needs an
 * open file of its own. */
static const char *memory_path(struct hs_pool *pool, const char *name)
{
	int *fd = HS_NEW(pool, int);

	*fd = memfd_create(name, MFD_CLOEXEC);
	if (*fd < 0)
		return NULL;
	hs_pool_defer(pool, close_memory, fd);
	return hs_pool_printf(pool, "/proc/self/fd/%d", *fd);
}

static int open_file(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660);
}

struct hs_slots *hs_slots_new(
	struct hs_pool *pool, const char *run_dir, const char *name, int64_t cap)
{
	struct hs_slots *slots = HS_NEW(pool, struct hs_slots);
	int fd = -1;

	slots->cap = cap;
	if (cap <= 0)
		return slots;
	if (!hs_str_empty(run_dir)) {
		slots->path = hs_pool_printf(pool, "%s/llm-%s.slots", run_dir, name);
		fd = open_file(slots->path);
	}
	if (fd >= 0)
		close(fd);
	else
		slots->path = memory_path(pool, name);
	return slots;
}

static int open_holder(const struct hs_slots *slots)
{
	int fd = open_file(slots->path);

	if (fd < 0 && errno == ELOOP) /* the link in /proc to the file in memory */
		fd = open(slots->path, O_RDWR | O_CLOEXEC);
	return fd;
}

/* Lock one of the cap bytes, beginning anywhere. */
static bool try_lock(const struct hs_slots *slots, int fd)
{
	int64_t first = (int64_t)(hs_random_unit() * (double)slots->cap);

	for (int64_t i = 0; i < slots->cap; i++) {
		struct flock lock = {.l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = (first + i) % slots->cap,
			.l_len = 1};

		if (!fcntl(fd, F_OFD_SETLK, &lock))
			return true;
	}
	return false;
}

static enum hs_rc wait_for(
	const struct hs_slots *slots, const struct hs_slot_wait *wait, int fd, struct hs_err *err)
{
	int64_t pause_us = FIRST_PAUSE_US;

	while (!try_lock(slots, fd)) {
		if (wait->cancelled && wait->cancelled(wait->cancel_arg))
			return hs_fail(err, HS_E_CANCELLED,
				"cancelled while waiting for a free model call");
		if (wait->deadline_us && hs_mono_us() >= wait->deadline_us)
			return hs_fail(err, HS_E_TIMEOUT,
				"the time limit was reached while waiting for a free model call");
		hs_sleep_us(pause_us);
		pause_us = pause_us * 2 > LONGEST_PAUSE_US ? LONGEST_PAUSE_US : pause_us * 2;
	}
	return HS_OK;
}

enum hs_rc hs_slot_take(const struct hs_slots *slots, const struct hs_slot_wait *wait,
	int *ret_slot, struct hs_err *err)
{
	enum hs_rc rc;
	int fd;

	*ret_slot = -1;
	if (!slots || slots->cap <= 0)
		return HS_OK;
	if (!slots->path)
		return hs_fail(err, HS_E_IO, "no file to count model calls in");
	fd = open_holder(slots);
	if (fd < 0)
		return hs_fail_foreign(
			err, HS_E_IO, errno, "cannot open the file that counts model calls");
	rc = wait_for(slots, wait, fd, err);
	if (rc == HS_OK)
		*ret_slot = fd;
	else
		close(fd);
	return rc;
}

void hs_slot_free(int *slot)
{
	if (*slot >= 0)
		close(*slot);
	*slot = -1;
}
