/* What a sampler's log gathers between two writes (samples_log.c), and how it becomes a block (samples_pack.c). */
#ifndef MAREY_SAMPLES_LOG_H
#define MAREY_SAMPLES_LOG_H

#include "record/record_internal.h"
#include "sampler/store/samples.h"

/* What became of a thread since the round before. */
enum marey__samples_change_kind {
    MAREY__CHANGE_STACK = 1,
    MAREY__CHANGE_FLAGS = 2,
    MAREY__CHANGE_WAIT = 4,
    MAREY__CHANGE_GONE = 8,
};
struct marey__samples_change {
    uint32_t round; /* of the process in this block, from 0 */
    uint32_t what;
    struct marey_samples_seen now;
};

/* Rounds of one process that were not written yet. */
struct marey__samples_run {
    uint64_t *at_ns, *weights_ns; /* 0: the time since the round before */
    size_t n_rounds, at_cap, weights_cap;
    struct marey__samples_change *changes;
    size_t n_changes, changes_cap;
    uint32_t *present; /* threads of the last round */
    size_t n_present, present_cap;
    uint64_t n_samples;
    uint64_t last_ns; /* of the last round ever; 0: none */
};

/* What the last round said of a thread. */
struct marey__samples_known {
    struct marey_samples_seen seen;
    uint64_t turn; /* of the round that it was seen in last; 0: it is not in this block */
};

struct marey__samples_log {
    struct marey__log file;
    const marey_samples *samples;
    struct marey__samples_run *runs; /* by process */
    size_t n_runs, runs_cap;
    struct marey__samples_known *known; /* by thread */
    size_t n_known, known_cap;
    uint64_t turn; /* rounds so far */
    size_t n_rounds, n_changes;
    uint64_t n_samples;                           /* not written yet */
    const char **thread_names;                    /* as they were written */
    struct marey_samples_process *processes_told; /* the same */
    size_t thread_names_cap, processes_told_cap;
    uint32_t n_processes, n_threads, n_functions, n_locations, n_stacks; /* written */
    uint32_t n_blocks;
    uint64_t written_ns, counted_ns, moment_ns;
    unsigned most_shift;
    struct marey__buf raw, packed;
    struct ZSTD_CCtx_s *zstd;
};

struct marey__samples_run_pack {
    uint32_t process;
    unsigned most_shift; /* times are in units of 2^that ns at most */
};
/* The entry A of a run that has rounds. */
void marey__samples_pack_run(struct marey__buf *out, const struct marey__samples_run *run,
                             struct marey__samples_run_pack how);

/* Definitions from number `from` + 1 on. */
void marey__samples_pack_process(struct marey__buf *out, const marey_samples *samples,
                                 uint32_t process);
void marey__samples_pack_thread(struct marey__buf *out, const marey_samples *samples,
                                uint32_t thread);
void marey__samples_pack_functions(struct marey__buf *out, const marey_samples *samples,
                                   uint32_t from);
void marey__samples_pack_locations(struct marey__buf *out, const marey_samples *samples,
                                   uint32_t from);
void marey__samples_pack_stacks(struct marey__buf *out, const marey_samples *samples, uint32_t from);
void marey__samples_pack_counts(struct marey__buf *out, const marey_samples *samples,
                                uint32_t process);

#endif
