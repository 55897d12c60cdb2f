/* stacks.c: times by path, of recordings and of those to compare them with. */
#ifndef MAREY_PATH_TIMES_H
#define MAREY_PATH_TIMES_H

#include "analyze/walk/internal.h"

enum marey__side { MAREY__NEW, MAREY__OLD, MAREY__N_SIDES };

struct marey__stack_times {
    uint64_t count, self_ns;
    uint64_t total_ns; /* its own and its children's self times: those of ranges left open count, too */
};

/* How to make stacks. */
struct marey__stacks_options {
    const char *filter; /* ranges it leaves out count as time of the one around them */
    /* A range's name as it shall be; NULL: as it is. Names that become equal are one. */
    void (*clean)(struct marey__buf *buf, const char *text, size_t len);
    /* The outermost frame for a thread; NULL: none. */
    void (*label)(struct marey__buf *buf, const struct marey_process *process,
                  const struct marey_lane_info *lane);
    bool numbers_labels; /* a label that was used in this recording gets " #2" behind it, else it is shared */
    marey_progress *progress;
    void *progress_ctx;
    uint64_t n_words; /* of all recordings to be added, for the progress */
};

struct marey__stacks {
    const struct marey__stacks_options *options;
    struct marey__names names;
    struct marey__arena texts;
    struct marey__tree tree; /* node 0 is the whole; the sums are not in the nodes but in `times` */
    struct marey__stack_times *times[MAREY__N_SIDES]; /* by node */
    size_t n_times[MAREY__N_SIDES], cap[MAREY__N_SIDES];
    uint64_t n_processes[MAREY__N_SIDES], n_threads[MAREY__N_SIDES], lost_events[MAREY__N_SIDES];
    bool has_async;      /* async ranges were met, which no stack can hold */
    uint64_t n_too_deep; /* ranges left out, being nested too deep */
    uint64_t n_words_done;
};

/* Fini takes one that could not be made, too. */
MAREY_WARN_UNUSED marey_status marey__stacks_init(struct marey__stacks *stacks,
                                                  const struct marey__stacks_options *options);
void marey__stacks_fini(struct marey__stacks *stacks);
/* Add what was recorded. The recordings lend their texts until fini. */
MAREY_WARN_UNUSED marey_status marey__stacks_add(struct marey__stacks *stacks, enum marey__side side,
                                                 marey_recording *const *recordings, size_t n);
/* Once all are added: sum up the totals. */
MAREY_WARN_UNUSED marey_status marey__stacks_finish(struct marey__stacks *stacks);

#endif
