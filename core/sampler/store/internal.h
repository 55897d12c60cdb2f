/*
 * store: samples of other processes in memory, and their log.
 *
 *   sampler --> samples.c: each item once, by number; a tree of stacks --> samples_log.c: SAMPLES blocks
 *                                ^                                         counters_log.c: COUNTER records
 *               analyze/samples: definitions of all samplers' logs of a recording, merged
 *
 * Input: frames, threads, states. Output: blocks of the log. Used by one thread at a time. <marey/samples.h> describes
 * the contents. Does not know where frames come from: the sampler and readers of logs use the same functions.
 */
#ifndef MAREY_SAMPLER_STORE_INTERNAL_H
#define MAREY_SAMPLER_STORE_INTERNAL_H

#include "base/internal.h"
#include "record/internal.h"
#include <marey/samples.h>

/* NULL on out of memory. */
marey_samples *marey__samples_create(void);

/*
 * The number of an item: that of an equal existing one, else a new one. 0 on out of memory, or beyond 2^28; callers may
 * continue with 0. Strings are copied and may contain any bytes up to their NUL.
 */
/* Equal: host, pid and start time. Newly known values (command, Python) replace the old ones. */
uint32_t marey__samples_process(marey_samples *samples, const struct marey_samples_process *process);
/* Equal: process, tid and interpreter. A new name renames it. */
uint32_t marey__samples_thread(marey_samples *samples, uint32_t process, int64_t tid,
                               const char *name, uint64_t interpreter, bool is_main);
void marey__samples_rename(marey_samples *samples, uint32_t thread, const char *name);
uint32_t marey__samples_function(marey_samples *samples, enum marey_frame_kind kind, const char *name,
                                 const char *file, const char *module, uint32_t first_line);
uint32_t marey__samples_location(marey_samples *samples, uint32_t function, uint32_t line);
/* `parent` 0: `location` is the outermost frame. */
uint32_t marey__samples_stack(marey_samples *samples, uint32_t parent, uint32_t location);
/* Sets the totals so far; `process` 0: of the whole sampler. */
void marey__samples_set_counts(marey_samples *samples, uint32_t process,
                               const struct marey_samples_counts *counts);

/* ---- the sampler's log ---- */

/* Visible for tests. */
struct marey__samples_log {
    struct marey__log file;
    const marey_samples *samples;
    struct marey__samples_run *runs; /* by process */
    size_t n_runs, runs_cap;
    struct marey__samples_known *known; /* by thread */
    size_t n_known, known_cap;
    uint64_t turn; /* number of the current round */
    size_t n_rounds, n_changes;
    uint64_t n_samples;                              /* not written yet */
    const char **thread_names;                       /* as written */
    struct marey_samples_process *processes_written; /* likewise */
    size_t thread_names_cap, processes_told_cap;
    uint32_t n_processes, n_threads, n_functions, n_locations, n_stacks; /* written so far */
    uint32_t n_blocks;
    uint64_t written_ns, counted_ns, moment_ns;
    unsigned most_shift;
    struct marey__buf raw, packed;
    uint64_t *words, words_base_ns, words_last_ns; /* of counters, not written yet */
    size_t n_words, words_cap;
    uint32_t n_word_blocks;
    marey__packer *packer; /* NULL: no counters so far */
    struct ZSTD_CCtx_s *zstd;
};
struct marey__samples_log_options {
    double rate_hz;
    const char *strategy; /* "exact", "snapshot" */
    bool is_native;
    uint64_t seed;
    bool has_pauses;
    uint64_t resolution_ns; /* of round times; 0: 2^16, see docs/formats/recording.md */
};

/* Pauses of a sampler: blocks of CLOCK_MONOTONIC without samples, derived from the seed recorded in the log. */
#define MAREY__PAUSE_BLOCK_NS UINT64_C(500000000)
enum { MAREY__PAUSE_ONE_IN = 8 };
static inline bool marey__samples_is_pause(uint64_t seed, uint64_t ns)
{
    const uint64_t block = ns / MAREY__PAUSE_BLOCK_NS;
    return marey__hash_mix(seed ^ (block + 1), UINT64_C(0x9e3779b97f4a7c15)) % MAREY__PAUSE_ONE_IN ==
           0;
}

/*
 * Opens a new log in the directory of an existing recording (marey_recording_create). Holds a flock until it is closed,
 * or the process ends. `samples` is lent until close. MAREY_EIO, MAREY_ENOMEM.
 */
MAREY_WARN_UNUSED marey_status
marey__samples_log_open(const char *directory, const struct marey__samples_log_options *options,
                        const marey_samples *samples, struct marey__samples_log **out);
/*
 * Adds a round; rounds of a process are in order of time. It is copied and written later; an unchanged thread costs
 * some nanoseconds. After a failed write, every call fails with its message.
 */
marey_status marey__samples_log_round(struct marey__samples_log *log,
                                      const struct marey_samples_round *round);
/* Writes pending data if they are a second old or a megabyte long. Call it periodically, also without rounds. */
marey_status marey__samples_log_tick(struct marey__samples_log *log);
/* ---- counters_log.c: counters of the process tree, as COUNTER records on a lane of this log ---- */

enum marey__system_counter {
    MAREY__SYSTEM_RUNNING, /* mean since the previous value, as are the other rates */
    MAREY__SYSTEM_WAITING,
    MAREY__SYSTEM_CORES,
    MAREY__SYSTEM_THREADS,
    MAREY__SYSTEM_PROCESSES,
    MAREY__SYSTEM_SWITCHES,
    MAREY__SYSTEM_FAULTS,
    MAREY__SYSTEM_BYTES_READ,
    MAREY__SYSTEM_IO_STALL,
    MAREY__SYSTEM_SWAP,
    MAREY__SYSTEM_THROTTLED,
    MAREY__SYSTEM_RESIDENT,
    MAREY__SYSTEM_ANONYMOUS,   /* of the process that has most */
    MAREY__SYSTEM_GROUP_LIMIT, /* of memory, by a cgroup; 0: none */
    MAREY__SYSTEM_MACHINE_MEMORY,
    MAREY__SYSTEM_UNIQUE, /* resident; pages that processes share count once */
    MAREY__SYSTEM_COUNTERS,
};
/* Their sites have this category, and the key as domain. */
#define MAREY__SYSTEM_CATEGORY "system"
extern const struct marey__counter_name {
    const char *name, *key;
} marey__system_counter_names[MAREY__SYSTEM_COUNTERS];
/* One value of each. Written with the next block of samples. */
marey_status marey__samples_log_counters(struct marey__samples_log *log, uint64_t at_ns,
                                         const double values[MAREY__SYSTEM_COUNTERS]);
/* Writes what waits. */
marey_status marey__samples_log_write_counters(struct marey__samples_log *log);

/* Bytes so far. */
uint64_t marey__samples_log_size(struct marey__samples_log *log);
/* Writes the rest and how it ended ("stop", "exit"). Always frees the log. Accepts NULL. */
marey_status marey__samples_log_close(struct marey__samples_log *log, const char *how);

#endif
