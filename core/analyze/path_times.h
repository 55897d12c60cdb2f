/* stacks.c: times by path, of recordings and of those to compare them with. */
#ifndef KYMO_PATH_TIMES_H
#define KYMO_PATH_TIMES_H

#include "analyze/analyze_internal.h"

enum kymo__side { KYMO__NEW, KYMO__OLD, KYMO__N_SIDES };

struct kymo__stack_times {
    uint64_t count, self_ns;
    uint64_t total_ns; /* its own and its children's self times: those of ranges left open count, too */
};

/* How to make stacks. */
struct kymo__stacks_options {
    const char *filter; /* ranges it leaves out count as time of the one around them */
    /* A range's name as it shall be; NULL: as it is. Names that become equal are one. */
    void (*clean)(struct kymo__buf *buf, const char *text, size_t len);
    /* The outermost frame for a thread; NULL: none. */
    void (*label)(struct kymo__buf *buf, const struct kymo_process *process,
                  const struct kymo_lane_info *lane);
    bool numbers_labels; /* a label that was used in this recording gets " #2" behind it, else it is shared */
    kymo_progress *progress;
    void *progress_ctx;
    uint64_t n_words; /* of all recordings to be added, for the progress */
};

struct kymo__stacks {
    const struct kymo__stacks_options *options;
    struct kymo__names names;
    struct kymo__arena texts;
    struct kymo__tree tree; /* node 0 is the whole; the sums are not in the nodes but in `times` */
    struct kymo__stack_times *times[KYMO__N_SIDES]; /* by node */
    size_t n_times[KYMO__N_SIDES], cap[KYMO__N_SIDES];
    uint64_t n_processes[KYMO__N_SIDES], n_threads[KYMO__N_SIDES], lost_events[KYMO__N_SIDES];
    bool has_async; /* async ranges were met, which no stack can hold */
    bool has_overlaps; /* so were ranges that overlap others of their thread: in a stack, time would count twice */
    uint64_t n_too_deep; /* ranges left out, being nested too deep */
    uint64_t n_words_done;
};

/* Fini takes one that could not be made, too. */
KYMO_WARN_UNUSED kymo_status kymo__stacks_init(struct kymo__stacks *stacks,
                                               const struct kymo__stacks_options *options);
void kymo__stacks_fini(struct kymo__stacks *stacks);
/* Add what was recorded. The recordings lend their texts until fini. */
KYMO_WARN_UNUSED kymo_status kymo__stacks_add(struct kymo__stacks *stacks, enum kymo__side side,
                                              kymo_recording *const *recordings, size_t n);
/* Once all are added: sum up the totals. */
KYMO_WARN_UNUSED kymo_status kymo__stacks_finish(struct kymo__stacks *stacks);

#endif
