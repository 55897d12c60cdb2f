/* The processes of a sampler: those that were named, and their descendants. Inside of core/sampler. */
#ifndef MAREY_SAMPLER_FAMILY_H
#define MAREY_SAMPLER_FAMILY_H

#include "sampler/loop/sampler_internal.h"

enum marey__member_kind {
    MAREY__MEMBER_YOUNG, /* it may still become a Python */
    MAREY__MEMBER_PYTHON,
    MAREY__MEMBER_OTHER, /* no Python; its children may be, and it may begin another program */
    MAREY__MEMBER_ENDED,
};

struct marey__member {
    pid_t pid, parent;
    uint64_t start_time;
    enum marey__member_kind kind;
    struct marey__target *target; /* of a Python */
    int worker;                   /* its number among its parent's; -1: it is none */
    bool is_named;                /* by the user */
    bool is_counted;              /* as a Python, or as skipped */
    uint64_t began_ns;            /* when we saw that it, or another program in it, had begun */
    uint64_t retry_ns;            /* when to look again at what is no Python yet */
    uint64_t ended_ns;
    uint64_t program; /* another number when it begins another program */
};

struct marey__family {
    struct marey__looker *looker;
    struct marey__member *members;
    size_t n, cap;
    bool has_children; /* descendants are wanted */
    uint64_t patience_ns;
    int loadavg_fd;
    uint64_t last_pid;               /* the newest process of the machine */
    uint64_t changed_ns;             /* when that changed last */
    uint64_t born_ns;                /* when a child was found last */
    uint64_t polled_ns, searched_ns; /* looked for children; in all threads of all processes */
    uint64_t n_processes, n_born, n_skipped, ended_target_ns;
    struct marey_samples_counts ended; /* sums of the ones that ended */
};
void marey__family_init(struct marey__family *family, struct marey__looker *looker,
                        bool has_children, uint32_t patience_ms);
void marey__family_fini(struct marey__family *family);
/*
 * A process that the user named. Waits for it, and for a Python among its descendants, as long as it may take, unless that is
 * for ever. Fails with the sentence of the process itself.
 */
MAREY_WARN_UNUSED marey_status marey__family_name(struct marey__family *family, pid_t pid);
/* The same while the sampler runs: it is looked at with the others. */
marey_status marey__family_join(struct marey__family *family, pid_t pid);
/* When to call the next one; sooner where somebody `is_awake` anyway. */
uint64_t marey__family_due_ns(const struct marey__family *family, bool is_awake);
/* Look for children, for Pythons that were not ready, for other programs begun. */
void marey__family_poll(struct marey__family *family, uint64_t now_ns);
/* After a look that failed: it has ended, or is looked at anew. */
void marey__family_settle(struct marey__family *family, struct marey__member *member);
/* Whether anything is left to wait for. */
bool marey__family_is_over(const struct marey__family *family);
size_t marey__family_count(const struct marey__family *family, enum marey__member_kind kind);

#endif
