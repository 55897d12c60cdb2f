/*
 * calls: the call profiler's data: a tree of calls for each thread, with counts and times.
 *
 *   enter, leave --> calls_tree.c: the thread's stack --> its nodes --+--> calls_sums.c: sums by function and by pair
 *                    calls_names.c: functions, signatures             '--> calls_write.c: CALLS blocks, as differences
 *   calls.c: profiles, threads, forks, options, the profile that goes into the recording
 *
 * Input: function entries and exits from the Python extension. Output: blocks of the log, written by the flush thread.
 * Does not know Python objects or other instruments: functions and signatures are numbers with names.
 *
 * Ownership: only the thread itself uses its stack and hash table, and only it writes its nodes; log writers read them.
 * A node is complete once n_nodes counts it. Its sums are guarded by the thread's sequence number, which is odd while
 * they change: a reader gets consistent sums or retries, and the thread never waits. Functions, signatures and the list
 * of threads change under the profile's lock, which the hot path does not take.
 */
#ifndef MAREY_INSTRUMENT_CALLS_INTERNAL_H
#define MAREY_INSTRUMENT_CALLS_INTERNAL_H

#include "base/internal.h"
#include "record/internal.h"
#include "switchboard/internal.h"
#include <marey/calls.h>

enum {
    MAREY__CALLS_CHUNK = 63,        /* nodes allocated together */
    MAREY__CALLS_MEMORY = 64 << 20, /* the default budget */
};

struct marey__calls_sums {
    uint64_t calls, resumes, self, total, max;
};

/* One cache line: an ordinary call touches only this and the stack. */
struct marey__calls_node {
    uint32_t number, parent; /* within the profile, 1-based; 0: none */
    uint32_t function, signature;
    struct marey__calls_node *last_child; /* the last entered callee. Owner only */
    struct marey__calls_sums sums; /* stored by the owner with release within an odd sequence */
};
static_assert(sizeof(struct marey__calls_node) == 64, "one cache line");

/* What the recording has of a chunk's nodes. */
struct marey__calls_written {
    size_t n_nodes;
    struct marey__calls_sums sums[MAREY__CALLS_CHUNK];
};

struct marey__calls_chunk { /* cache-line aligned */
    struct marey__calls_node nodes[MAREY__CALLS_CHUNK];
    void *block;                          /* the allocation */
    struct marey__calls_chunk *next;      /* stored before n_nodes counts one of its nodes */
    struct marey__calls_written *written; /* NULL: nothing. Guarded by write_lock */
};

struct marey__calls_frame {
    struct marey__calls_node *node;
    uint64_t start, callees; /* ticks */
    uint32_t function;
    bool is_resumed;
};

struct marey_calls_thread {
    struct marey__calls_frame *top, *limit; /* the innermost; the last that fits */
    uint32_t sequence;                      /* odd while sums change; release */
    uint8_t timer;                          /* enum marey__calls_timer */
    struct marey__calls_frame *stack;       /* the first entry is not a call */
    size_t n_stack;
    uint64_t n_skipped; /* entered while the stack could not grow */
    struct marey__calls_node root;
    struct marey__calls_node *other;  /* "(other paths)"; NULL: none so far */
    struct marey__calls_node **slots; /* by parent, function and signature */
    size_t n_slots, n_used;
    struct marey__calls_chunk *chunks, *last_chunk; /* the first: release */
    uint64_t n_nodes;                               /* release */
    uint64_t n_other;                               /* calls below `other`; relaxed */
    uint64_t n_to_write; /* nodes to write this time. Guarded by write_lock */
    struct marey_calls *calls;
    uint32_t number; /* from 1 */
    int64_t tid;
    uint64_t last; /* the last CPU time read */
    char name[MAREY__THREAD_NAME_MAX];
    struct marey_calls_thread *next; /* guarded by the profile's lock */
};

enum marey__calls_timer {
    MAREY__TIMER_TSC,
    MAREY__TIMER_MONOTONIC,
    MAREY__TIMER_CPU,
    MAREY__TIMER_USER
};

struct marey__calls_name {                /* a function */
    struct marey_calls_function function; /* strings owned by the profile */
    bool is_released;
};
struct marey__calls_text { /* a signature */
    uint32_t function;
    char *text;
    size_t len;
    double elements;
};

struct marey_calls {
    pthread_mutex_t write_lock; /* held while walking or freeing nodes; taken before `lock` */
    pthread_mutex_t lock;       /* guards everything not documented otherwise */
    uint32_t flags;
    enum marey__calls_timer timer;
    double ns_per_tick; /* for the user's timer and the CPU timer; 0: ticks */
    uint64_t budget;
    uint64_t n_bytes, n_nodes, n_widened, cost_ps; /* relaxed, any thread */
    uint32_t last_node; /* numbers of freed nodes are not reused. Relaxed, any thread */
    struct marey__moment begin;
    struct marey__calls_name *names;
    size_t n_names, names_cap;
    struct marey__index by_texts; /* functions */
    struct marey__calls_text *texts;
    size_t n_texts, texts_cap;
    struct marey__index known; /* signatures */
    struct marey_calls_thread *threads, **threads_end;
    uint32_t n_threads;
    struct marey__calls_recorded {
        size_t names, texts, threads;
        uint64_t calls;       /* including resumed generators */
    } recorded;               /* what the recording has. Guarded by write_lock */
    struct marey_calls *next; /* the registry of calls.c; guarded by its lock */
};

/* ---- calls.c ---- */

/* Charges memory to the budget; false if it is used up, unless `must`. */
bool marey__calls_spend(struct marey_calls *calls, size_t bytes, bool must);

/* ---- calls_tree.c ---- */

/* Allocates the stack; false on out of memory. */
bool marey__calls_tree_init(struct marey_calls_thread *thread);
void marey__calls_tree_clear(struct marey_calls_thread *thread);
void marey__calls_tree_fini(struct marey_calls_thread *thread);
/* Ends all open calls now. */
void marey__calls_tree_settle(struct marey_calls_thread *thread, uint64_t now);
/* The current time of the thread's timer; callable from other threads. */
uint64_t marey__calls_now(struct marey_calls_thread *thread);
/* Reads consistent sums; false if the thread changed them at each try. */
bool marey__calls_sums_get(const struct marey_calls_thread *thread,
                           const struct marey__calls_node *node, struct marey__calls_sums *out);

/* ---- calls_names.c ---- */

void marey__calls_names_fini(struct marey_calls *calls);

/* ---- calls_write.c ---- */

/* The recording that gets differences has nothing of `calls` yet. */
void marey__calls_append_reset(struct marey_calls *calls);
/* Writes blocks of `calls`: differences to what was written if `is_delta`, else everything. */
marey_status marey__calls_append(struct marey_calls *calls, struct marey__log *log, bool is_delta,
                                 uint32_t profile);

#endif
