/*
 * memory: samples the program's allocations, and reads its resident memory.
 *
 *   a hook -- memory_sample.c: sampled? --> memory_queue.c --> memory_write.c, on the flush thread --> records
 *                 |       memory_blocks.c: is the freed block a sampled one?       each stack once
 *                 '------ memory_places.c: the Python stack
 *   memory.c: options, start and stop, forks       memory_resident.c: /proc       memory_cost.c: cost of a hook
 *
 * Input: malloc, free and Python's allocations, from libmarey-memory.so and the extension. Output: records. Does not
 * know the allocator that calls it, nor Python objects. malloc may be called while any lock is held, so a hook does not
 * touch the recording: it adds an entry to a queue, and the flush thread turns entries into records ten times a second.
 * kill -9 loses the entries that are still in the queue. All memory of this folder is mapped with MADV_WIPEONFORK.
 *
 * A block of s bytes is sampled with probability 1 - exp(-s / interval), as if each byte were chosen independently, and
 * counts as its size divided by that probability: sums are unbiased. Above MAREY__MEMORY_RATE samples per second, or
 * when sampling takes 1 % of the time, the interval doubles unless the user set it; each sample carries its own.
 */
#ifndef MAREY_INSTRUMENT_MEMORY_INTERNAL_H
#define MAREY_INSTRUMENT_MEMORY_INTERNAL_H

#include "base/internal.h"
#include "switchboard/internal.h"
#include <marey/memory.h>
#include <marey/range.h>

enum {
    MAREY__MEMORY_INTERVAL = 512 << 10, /* bytes between two samples by default */
    MAREY__MEMORY_RATE = 1000,          /* samples per second that suffice */
    MAREY__MEMORY_FRAMES = 32,          /* innermost frames of a stack */
    MAREY__MEMORY_PLACES = 24,          /* innermost Python frames */
};

/* ---- memory.c ---- */

/* Opens the pending recording in a separate thread. */
void marey__memory_open_beside(void);
/* Zeroed memory that is zeroed again in a forked child; NULL on out of memory. Never freed. */
void *marey__memory_map(size_t bytes);

/* ---- memory_blocks.c: sampled blocks, by address ---- */

/* Allocates the tables; false on out of memory. Does nothing if they exist. */
bool marey__blocks_open(void);
const uint8_t *marey__blocks_marks(void);
/* Any thread. False if the table is full: the block's free will not be recorded. */
bool marey__blocks_put(const void *block, uint64_t number);
/* Removes a block. Returns its number, 0 if it is not in the table. */
uint64_t marey__blocks_take(const void *block);
/* Removes all; no other thread may use the table. */
void marey__blocks_clear(void);

/* ---- memory_queue.c: from threads to the flush thread ---- */

enum marey__memory_kind { MAREY__MEMORY_TAKE, MAREY__MEMORY_GIVE };

struct marey__memory_entry {
    uint64_t tick, number, bytes, interval;
    int64_t tid;
    uint32_t n_frames, n_places;
    uint8_t kind, source;
    uint64_t frames[MAREY__MEMORY_FRAMES]; /* return addresses, innermost first */
    uint32_t places[MAREY__MEMORY_PLACES]; /* numbers of memory_places.c, innermost first */
};

bool marey__memory_queue_open(void);
/* Reserves an entry, to be filled and published; NULL if the queue is full. Any thread. */
struct marey__memory_entry *marey__memory_queue_claim(uint64_t *ticket);
void marey__memory_queue_publish(uint64_t ticket);
/* The next entry, lent until it is released; NULL if the queue is empty. One thread at a time. */
const struct marey__memory_entry *marey__memory_queue_next(void);
void marey__memory_queue_release(void);
/* Whether it is more than half full. */
bool marey__memory_queue_is_filling(void);

/* ---- memory_places.c: places in interpreted code, as numbers ---- */

struct marey__memory_text {
    char name[128], file[256];
    uint32_t line;
};
bool marey__places_open(void);
/* This thread's places as numbers, innermost first. Returns how many. Assigns numbers as needed; 0 is "some other place". */
size_t marey__places_now(uint32_t *out, size_t n);
const struct marey__memory_text *marey__place_text(uint32_t number);
const struct marey_memory_interpreter *marey__memory_interpreter(void);

/* ---- memory_sample.c ---- */

struct marey__memory_counts {
    uint64_t n_reported, n_dropped,
        n_unfollowed; /* samples; lost because the queue was full; blocks without room in the table */
    uint64_t ticks;   /* spent in recording samples */
    uint64_t n_allocations; /* estimated from the samples */
};
/* Starts sampling; an interval of 0 is the default, which may double, and 1 samples every allocation. */
void marey__memory_sample_start(uint64_t interval);
uint64_t marey__memory_interval(void);
/* Called periodically by the flush thread: doubles the interval if there are too many samples. */
void marey__memory_adapt(uint64_t elapsed_ns);
void marey__memory_counts_get(struct marey__memory_counts *out);
/* Marks allocations of this thread as marey's own from now on. */
void marey__memory_exclude_thread(void);
void marey__memory_sample_after_fork(void);

/* ---- memory_cost.c ---- */

/* Writes the cost so far into the recording. Caller holds the lock of memory.c. */
void marey__memory_cost_record(const struct marey__memory_counts *counts);

/* ---- memory_write.c ---- */

/* Converts the queue to records. One thread at a time. */
void marey__memory_write(void);
/* A recording begins, without stacks. */
void marey__memory_write_reset(void);
/* In a forked child. */
void marey__memory_write_forget(void);

/* ---- memory_resident.c ---- */

/* Writes resident memory into the recording; the first time also the limit of the process's cgroup. */
void marey__memory_resident_read(bool is_first, bool is_last);
/* The number after `key` ("VmHWM:") in text like /proc/self/status, in bytes; 0 if missing. */
MAREY_PRIVATE_API uint64_t marey__memory_status_bytes(const char *text, size_t len, const char *key);
/* The path of the memory cgroup in text like /proc/self/cgroup (version 2, the line 0::PATH); false if missing. */
MAREY_PRIVATE_API bool marey__memory_cgroup(const char *text, size_t len, char *out, size_t size);
/* Reads a limit in the folder of a cgroup; false if there is none. */
typedef bool marey__cgroup_limit(const char *folder, double *out);
/* The lowest limit above 0 of `group`, which is overwritten, and its parents below `root`; 0 if there is none. */
MAREY_PRIVATE_API double marey__cgroup_lowest(const char *root, char *group,
                                              marey__cgroup_limit *read_limit);
/* The number in the file `name` of a cgroup. */
MAREY_PRIVATE_API bool marey__cgroup_number(const char *folder, const char *name, double *out);
MAREY_PRIVATE_API marey__cgroup_limit marey__cgroup_memory_max;

#endif
