/* What a sampler's log gathers between two writes (samples_log.c), and how it becomes a block (samples_pack.c). */
#ifndef KYMO_SAMPLES_LOG_H
#define KYMO_SAMPLES_LOG_H

#include "record/record_internal.h"
#include "samples/samples.h"

/* What became of a thread since the round before. */
enum kymo__samples_change_kind {
    KYMO__CHANGE_STACK = 1,
    KYMO__CHANGE_FLAGS = 2,
    KYMO__CHANGE_WAIT = 4,
    KYMO__CHANGE_GONE = 8,
};
struct kymo__samples_change {
    uint32_t round; /* of the process in this block, from 0 */
    uint32_t what;
    struct kymo_samples_seen now;
};

/* Rounds of one process that were not written yet. */
struct kymo__samples_run {
    uint64_t *at_ns, *weights_ns; /* 0: the time since the round before */
    size_t n_rounds, at_cap, weights_cap;
    struct kymo__samples_change *changes;
    size_t n_changes, changes_cap;
    uint32_t *present; /* threads of the last round */
    size_t n_present, present_cap;
    uint64_t n_samples;
    uint64_t last_ns; /* of the last round ever; 0: none */
};

struct kymo__samples_run_pack {
    uint32_t process;
    unsigned most_shift; /* times are in units of 2^that ns at most */
};
/* The entry A of a run that has rounds. */
void kymo__samples_pack_run(struct kymo__buf *out, const struct kymo__samples_run *run,
                            struct kymo__samples_run_pack how);

/* Definitions from number `from` + 1 on. */
void kymo__samples_pack_process(struct kymo__buf *out, const kymo_samples *samples, uint32_t process);
void kymo__samples_pack_thread(struct kymo__buf *out, const kymo_samples *samples, uint32_t thread);
void kymo__samples_pack_functions(struct kymo__buf *out, const kymo_samples *samples, uint32_t from);
void kymo__samples_pack_locations(struct kymo__buf *out, const kymo_samples *samples, uint32_t from);
void kymo__samples_pack_stacks(struct kymo__buf *out, const kymo_samples *samples, uint32_t from);
void kymo__samples_pack_counts(struct kymo__buf *out, const kymo_samples *samples, uint32_t process);

#endif
