/*
 * slots - at most N of something at once, across all programs of a host.
 *
 * Floor:   llm; C library only. One file a name in run_dir; a slot is a locked byte of it (open file
 *          description locks), so the kernel frees the slots of a program that dies. Without a usable
 *          run_dir the file is in memory and the cap holds in this process only.
 * Thread:  read-only after hs_slots_new; any thread may take and give back.
 * Errors:  HS_E_CANCELLED, HS_E_TIMEOUT (deadline passed) while waiting; HS_E_IO.
 */
#ifndef HS_LLM_SLOTS_H
#define HS_LLM_SLOTS_H

#include "base/err.h"
#include "base/pool.h"

struct hs_slots;

struct hs_slot_wait {
	int64_t deadline_us;          /* on hs_mono_us; 0 = none */
	bool (*cancelled)(void *arg); /* NULL = never */
	void *cancel_arg;
};

/* cap <= 0: no limit. run_dir may be NULL or "". */
struct hs_slots *hs_slots_new(
	struct hs_pool *pool, const char *run_dir, const char *name, int64_t cap);
/* Waits for a free slot. *ret_slot is to be given back with hs_slot_free; -1 = nothing was needed. */
HS_MUST enum hs_rc hs_slot_take(const struct hs_slots *slots, const struct hs_slot_wait *wait,
	int *ret_slot, struct hs_err *err);
/* Gives a slot back; -1 is fine. *slot becomes -1. Also a cleanup attribute. */
void hs_slot_free(int *slot);

#endif
