/*
 * collectives: what ranks do together, matched over all of them.
 *
 *   collectives_keep.c, collectives_join.c, collectives.c ── the calls of each process
 *   collectives_match.c ── which of them are one collective
 *   collectives_clocks.c ── what they tell of the clocks of hosts
 *   collectives_tables.c
 *
 *   rank 0   ──────[ wait ███████ transfer ]──
 *   rank 1   ────────────[██████ transfer ]───     the last to arrive waits for nobody
 *
 * A collective cannot move data before all ranks have come. So the shortest of its durations is what moving takes, and
 * what a rank needed beyond that it waited for others.
 *
 * The i-th call of a kind in a group on one rank belongs to the i-th on another: by the group's own sequence number where
 * the trace has it, else in order of begin. Sends and receives are between two and are not matched.
 */
#ifndef MAREY_COLLECTIVES_H
#define MAREY_COLLECTIVES_H

#include "analyze/device/breakdown_internal.h"

/* How the clocks of ranks relate. */
enum marey__clocks {
    MAREY__CLOCKS_APART,   /* not at all: no skew */
    MAREY__CLOCKS_WALL,    /* by the time of day, as good as the hosts keep it */
    MAREY__CLOCKS_ALIGNED, /* by what ranks of all hosts did together */
    MAREY__CLOCKS_SAME,    /* one machine */
};

/* One call on one rank. 72 bytes. */
struct marey__rank_call {
    uint64_t begin_ns, end_ns; /* of its process's clock */
    uint64_t bytes;
    uint64_t sequence; /* in its group; UINT64_MAX: unknown */
    /* Once matched: what it took beyond the shortest; how long after the first it began; what others waited for it. */
    uint64_t wait_ns, late_ns, held_ns;
    uint32_t turn;   /* the how manieth of those that are alike on its rank */
    uint32_t kind;   /* in marey__collectives.kinds */
    uint32_t member; /* in marey__collectives.members */
    bool is_matched, is_first, is_last;
};

/* A process that takes part. */
struct marey__member {
    const struct marey_process *process;
    uint32_t job;     /* those of one are matched with one another */
    int64_t shift_ns; /* where clocks are aligned: to be added to this one's */
};

/* Calls that are matched with one another: of one group and sort. */
struct marey__collective_kind {
    const char *what;
    uint32_t group; /* in marey__collectives.groups */
    enum marey_collective collective;
    uint32_t group_size; /* 0: unknown */
    bool is_between_two; /* a send or receive */
    bool is_by_order;    /* some have no sequence number */
    /* Once matched. Of those that at least two ranks have: */
    uint64_t n_matched, n_ranks;          /* ranks: the most that one has */
    uint64_t bytes, transfer_ns, skew_ns; /* sums */
    double wait_ns;                       /* a sum of means over ranks */
    uint64_t timed_bytes, timed_ns;       /* of those whose bytes and transfer are known */
    uint64_t n_apart;                     /* no moment is in all of them */
    uint64_t n_short;                     /* some rank that has others of the kind is missing */
    uint64_t n_lone;                      /* calls that no other rank has */
    uint32_t slowest; /* member whom others waited for longest; MAREY__NO_INDEX: none */
    uint64_t n_slowest, slowest_held_ns; /* how often it came last; what others waited then */
};

/* What one member did in one group. */
struct marey__member_sum {
    uint32_t member, group;
    uint64_t n_calls, n_between_two, ns; /* all */
    uint64_t n_matched, wait_ns, transfer_ns, late_ns, held_ns, n_first, n_last;
};

/* Texts are lent by the recordings, or lie in the arena. */
struct marey__collectives {
    struct marey__names keys, groups;
    struct marey__arena texts;
    struct marey__collective_kind *kinds; /* by key */
    size_t kinds_cap;
    struct marey__member *members;
    size_t n_members, members_cap;
    struct marey__rank_call *calls;
    size_t n_calls, calls_cap;
    struct marey__member_sum *sums; /* by member, then group */
    size_t n_sums, sums_cap;
    enum marey__clocks clocks;
    /* Where they are aligned: machines, how far off one can be, by how many collectives; whether clocks ran apart meanwhile. */
    uint64_t n_nodes, uncertainty_ns, n_aligned_by;
    bool has_drifted;
};

/*
 * Leave in `set->collectives` what is to be compared with other ranks. Indices of them do not hold any more. False without
 * memory.
 */
MAREY_WARN_UNUSED bool marey__collectives_keep(struct marey__work_set *set);
/* Make one of an operation and the wait for it. False without memory. */
MAREY_WARN_UNUSED bool marey__collectives_join(struct marey__work_set *set);
/* Take the calls of a process; the recordings lend their texts until the tables are made. Starts from zeroes. */
MAREY_WARN_UNUSED marey_status marey__collectives_add(struct marey__collectives *all, uint32_t job,
                                                      const struct marey__work_set *set);
/* Once all are there. */
MAREY_WARN_UNUSED marey_status marey__collectives_match(struct marey__collectives *all);
void marey__collectives_fini(struct marey__collectives *all);
/* How many calls from calls[i] on are one collective, once they are sorted. */
size_t marey__collective_length(const struct marey__collectives *all, size_t i);
/* collectives_clocks.c: bring the clocks of several hosts together, where calls, which are sorted, tell enough. */
MAREY_WARN_UNUSED marey_status marey__collectives_align(struct marey__collectives *all);

enum { MAREY__N_COLLECTIVE_COLUMNS = 13, MAREY__N_COLLECTIVE_RANK_COLUMNS = 9 };
extern const struct marey_column marey__collective_columns[MAREY__N_COLLECTIVE_COLUMNS];
extern const struct marey_column marey__collective_rank_columns[MAREY__N_COLLECTIVE_RANK_COLUMNS];
void marey__collectives_put(marey_table *table, const struct marey__collectives *all);
void marey__collectives_put_ranks(marey_table *table, const struct marey__collectives *all);
/* Sentences about what could not be matched, into a table of one column of text. */
void marey__collectives_put_warnings(marey_table *table, const struct marey__collectives *all);

/* Bus bandwidth is this times bytes over time, with `n` ranks: the convention of nccl-tests. */
double marey__bus_factor(enum marey_collective what, uint32_t n);

#endif
