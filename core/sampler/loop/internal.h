/*
 * loop: the sampling loop: when to sample, which processes, and what is cached between rounds.
 *
 *   sampler.c            options, life of the loop, counts              <marey/sampler.h>
 *     sampler_loop.c       when: intervals, sleeping, missed rounds
 *     sampler_family.c     which: processes, children, launchers, exec
 *       target*.c            one process: interpreters, threads, frames to the number of a stack, native frames
 *       thread_state.c       on a CPU or waiting, and for what, from /proc
 *       thread_stop.c        stops one thread for exact samples
 *   stacks_read.c        all threads of many processes once
 *   live*.c              counts for `marey top`
 *
 * Input: pids. Output: samples in a store. Only this folder stops threads, and it resumes each one. A
 * thread that has not run since its last sample has the same stack: the kernel's switch count proves it, so it is neither
 * read nor stopped. A round costs in proportion to the threads that ran.
 */
#ifndef MAREY_SAMPLER_LOOP_INTERNAL_H
#define MAREY_SAMPLER_LOOP_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "base/internal.h"
#include "sampler/remote/internal.h"
#include "sampler/store/internal.h"
#include "sampler/unwind/internal.h"
#include <marey/live.h>
#include <marey/sampler.h>

/* ---- batches: many places of a process, copied by one call ---- */

struct marey__batch {
    struct marey__remote_span *spans; /* n_bytes 0: it could not be read */
    size_t n, spans_cap;
    uint8_t *bytes; /* never moves while a batch is in use */
    size_t n_bytes, bytes_cap;
};
#define MAREY__BATCH_NONE SIZE_MAX
void marey__batch_clear(struct marey__batch *batch);
/* The index of the place from now on; MAREY__BATCH_NONE when there is no room. */
size_t marey__batch_add(struct marey__batch *batch, uint64_t at, size_t n_bytes);
/* Copy the places from `first` on. One that cannot be read is left out, and costs a call more. */
void marey__batch_read(struct marey__batch *batch, struct marey__remote *remote, size_t first);
/* The copy, lent until the batch is cleared; NULL: there is none. */
static inline const uint8_t *marey__batch_at(const struct marey__batch *batch, size_t index)
{
    return index < batch->n && batch->spans[index].n_bytes != 0 ? batch->spans[index].to : NULL;
}

/* ---- thread_state.c ---- */

struct marey__thread_files {
    int schedstat_fd, syscall_fd; /* -1: not kept open */
};
struct marey__thread_state {
    uint64_t run_ns, slices; /* the kernel's counts at the last look */
    bool is_known;           /* something could be learned */
    bool is_running;         /* on a processor, or waiting for one */
    bool has_slept; /* off the processor without a break since the look before: nothing of it can have changed */
    bool is_gone;
    int64_t call;    /* the system call it is in; -1: none */
    uint64_t place;  /* that call's first argument: of a futex its address */
    uint64_t sp, pc; /* of the program while it is in that call; 0: unknown */
    uint64_t looked_ns;
};
/* How many files may be kept open, by all; counted down. Each sampler has its own. */
void marey__thread_files_init(struct marey__thread_files *files);
void marey__thread_files_fini(struct marey__thread_files *files, int *n_spare);
/* Look. `n_spare` files may be kept open by this and others. */
void marey__thread_look(struct marey__thread_files *files, pid_t pid, pid_t tid, int *n_spare,
                        struct marey__thread_state *state);
/* Whether it has not had a processor since the look in `state`. */
bool marey__thread_slept_on(const struct marey__thread_files *files, pid_t pid, pid_t tid,
                            const struct marey__thread_state *state);

/* ---- thread_stop.c ---- */

enum marey__stopped {
    MAREY__STOPPED,     /* it is stopped until marey__thread_go */
    MAREY__STOP_FAILED, /* it goes on: traced by another, or not allowed */
    MAREY__STOP_GONE,
    MAREY__STOP_LATE, /* it did not stop in time; marey__stops_settle lets it go when it does */
};
/* What one tracing thread has under way. */
struct marey__stops {
    struct marey__late_stop {
        pid_t tid;
    } * late;
    size_t n_late, late_cap;
    long patience_ns;  /* for a thread that has to wait for a processor first; below a second */
    int signal;        /* what the stopped thread shall get when it goes on */
    uint64_t begin_ns; /* of the stop under way */
    timer_t timer;     /* ends a wait that takes too long */
    bool has_timer;
    int policy;           /* of the scheduler, before the priority was raised */
    bool is_raised;       /* the priority, for the stop under way */
    bool has_no_priority; /* a higher one is refused, or could not be given back */
};
enum marey__stopped marey__thread_stop(struct marey__stops *stops, pid_t tid);
/* Let it go on; returns how long it was stopped. */
uint64_t marey__thread_go(struct marey__stops *stops, pid_t tid);
/* Let those go on that came to a stop too late. `is_last`: wait for them. */
void marey__stops_settle(struct marey__stops *stops, bool is_last);
void marey__stops_fini(struct marey__stops *stops);

/* ---- one thread of a target ---- */

#define MAREY__WALK_MAX ((size_t)1 << 17) /* frames; more are cut */
enum { MAREY__CFRAMES = 8, MAREY__STRAYS = 64 };

/* In place of an address of code. */
enum {
    MAREY__WALK_MARK = 1, /* outer frames are missing here */
    MAREY__WALK_TASK = 2, /* the instruction is the number of a task's name */
};
static inline bool marey__is_code(uint64_t address)
{
    return address > MAREY__WALK_TASK;
}
struct marey__walk_frame {
    uint64_t code, instruction;
    uint32_t tlbc_index;
    uint32_t stack; /* number of the stack that ends with this frame; 0: not made yet */
};
struct marey__walk {
    struct marey__walk_frame *frames; /* innermost first */
    size_t n, cap;
};

/* A frame in context->walk that is part of a generator or a coroutine, and its address. */
struct marey__walk_coroutine {
    uint64_t at;
    size_t index;
};

/* A piece of the data stack of 3.11 and later. */
struct marey__chunk {
    uint64_t at, size; /* size: as it was made */
    uint64_t n_used;   /* bytes from `at` on that hold frames */
    uint64_t n_copied; /* bytes of the copy */
    size_t copy;       /* in the batch */
};
/* Something outside of chunks: a frame of a generator, a cframe. */
struct marey__place {
    uint64_t at;
    unsigned used; /* in which read it was of use last */
    size_t copy;
};

/* Where things of a thread were last time; the next read goes there. */
struct marey__places {
    unsigned n_reads;
    struct marey__chunk *chunks, *chunks_before; /* the newest first */
    size_t n_chunks, chunks_cap, chunks_before_cap;
    uint64_t reach,
        reach_before; /* how far the newest chunk was used, in this run of reads and in the one before */
    struct marey__place cframes[MAREY__CFRAMES]; /* 3.11 and 3.12; the latest first */
    size_t n_cframes;
    struct marey__place strays[MAREY__STRAYS]; /* frames outside of chunks, the latest first */
    size_t n_strays;
    struct marey__place *heap, *heap_before; /* to 3.10: all frames, innermost first */
    size_t n_heap, heap_cap, n_heap_before, heap_before_cap;
    size_t state_copy;
    size_t twin_copy; /* of the end of the newest chunk, made before anything else: has it changed since? */
    uint64_t twin_at, twin_bytes;
};

struct marey__target_thread {
    uint64_t address;     /* of its state */
    uint32_t interpreter; /* index in the target */
    pid_t tid;
    uint32_t number; /* in the store */
    struct marey__thread_files files;
    struct marey__thread_state state;
    struct marey__places places;
    struct marey__walk walk;
    uint32_t stack, flags, wait;
    int64_t wait_call;
    uint64_t wait_place;
    bool is_read;  /* stack and flags hold for as long as it sleeps */
    bool is_due;   /* of this round: it is to be read */
    bool is_exact; /* of this round */
    bool is_listed;
    uint64_t name_ns; /* when to ask for its name again */
    unsigned n_named;
};

/* ---- target.c: one process ---- */

struct marey__target_interpreter {
    uint64_t address, gil, threads_head;
    uint64_t id, switch_number;
    uint64_t holder; /* of this round: the thread state that has the lock, 0 nobody */
    bool has_gil, is_collecting;
    size_t head_copy, gc_copy, gil_copy;
};

/* What targets of one sampler share; of one thread. */
struct marey__sampler_context {
    marey_samples *samples;
    pthread_mutex_t *store_lock; /* NULL: nobody else uses the store */
    struct marey__batch batch;
    struct marey__walk walk; /* of the thread that is being read */
    struct marey__unwind_run *runs;
    size_t n_runs, runs_cap;
    struct marey__stops stops;
    struct marey__unwind_files *native_files; /* NULL: no native frames */
    struct marey__native_frame *native;
    struct marey__unwind_merged *merged;
    size_t merged_cap;
    int n_spare_files;
    uint64_t random;
};
/* False without memory; marey__sampler_context_fini takes what was made. */
MAREY_WARN_UNUSED bool marey__sampler_context_init(struct marey__sampler_context *context,
                                                   marey_samples *samples,
                                                   pthread_mutex_t *store_lock, bool is_native,
                                                   uint64_t seed);
void marey__sampler_context_fini(struct marey__sampler_context *context);
/* From 0 to 1, never 0. */
double marey__sampler_context_random(struct marey__sampler_context *context);
static inline void marey__sampler_context_lock(const struct marey__sampler_context *context)
{
    if (context->store_lock != NULL)
        pthread_mutex_lock(context->store_lock);
}
static inline void marey__sampler_context_unlock(const struct marey__sampler_context *context)
{
    if (context->store_lock != NULL)
        pthread_mutex_unlock(context->store_lock);
}

enum marey__round {
    MAREY__LOOK_SNAPSHOT,
    MAREY__LOOK_EXACT,
    MAREY__LOOK_AUDIT,
};

/* The location of an instruction; the latest of those that fall on one slot. */
struct marey__location_slot {
    uint64_t code, instruction;
    uint32_t generation, location;
};

struct marey__target {
    pid_t pid;
    uint32_t number; /* in the store */
    struct marey__remote *remote;
    const struct marey__remote_layout *layout;
    struct marey__unwind *unwind;
    struct marey__target_interpreter *interpreters;
    size_t n_interpreters, interpreters_cap;
    struct marey__target_thread *threads;
    size_t n_threads, threads_cap;
    struct marey_samples_seen *seen;
    size_t n_seen, seen_cap;
    struct marey__location_slot *locations; /* a cache; NULL: none yet */
    struct marey__task_names {
        struct marey__task_name *list;
        size_t n, cap, last;
    } tasks;
    size_t head_copy; /* of the runtime */
    uint64_t interpreters_head;
    uint64_t listed_ns, checked_ns, opened_ns, codes_checked_ns;
    bool is_stale;    /* interpreters or threads are to be listed again */
    bool is_doubtful; /* it may be another program by now, or none */
    bool is_ended, is_replaced;
    double mean_stop_ns; /* of an exact round, lately; below 0: not known */
    double mean_look_ns; /* how long we were at it */
    uint64_t at_ns;      /* of the last look */
    uint64_t weight_ns;  /* that the next round represents */
    struct marey_samples_counts counts;
};
/* `remote` is taken over, also when this fails. */
MAREY_WARN_UNUSED marey_status marey__target_create(struct marey__sampler_context *context,
                                                    struct marey__remote *remote, int worker,
                                                    struct marey__target **out);
void marey__target_destroy(struct marey__sampler_context *context, struct marey__target *target);
/* Look at all threads; target->seen has the result. False: the process has ended or been replaced. */
bool marey__target_look(struct marey__sampler_context *context, struct marey__target *target,
                        enum marey__round how);

/* target_list.c: list anew what has changed. False: the process has ended, or begun another program. */
bool marey__target_keep_up(struct marey__sampler_context *context, struct marey__target *target);

/* Sums; the longest stop is the longest of both. */
void marey__counts_add(struct marey_samples_counts *sum, const struct marey_samples_counts *more);

/* ---- target_walk.c ---- */
/* Put what is to be read of a thread into the batch. */
void marey__thread_plan(struct marey__sampler_context *context, struct marey__target *target,
                        struct marey__target_thread *thread);
void marey__places_fini(struct marey__places *places);

enum marey__walked {
    MAREY__WALKED,
    MAREY__WALK_REJECTED, /* nothing can be made of it */
    MAREY__WALK_ENDED,    /* the thread has ended */
};
/*
 * From the copies of a thread to context->walk. `flags` gets UNSTABLE, TRUNCATED, NO_FRAMES, EXCEPTION. What is not in the
 * copies is read now; unless `is_still`, that is a change while it was read.
 */
enum marey__walked marey__thread_walk(struct marey__sampler_context *context,
                                      struct marey__target *target,
                                      struct marey__target_thread *thread, bool is_still,
                                      uint32_t *flags);

/* ---- target_stack.c ---- */
/* Have the new frames' code objects read while the thread is stopped: unknown ones, and those that may have been replaced. */
void marey__walk_check_codes(struct marey__target *target, const struct marey__walk *walk,
                             const struct marey__walk *before);
/* The stack of context->walk, which becomes the thread's; false: some frame is none. */
bool marey__thread_resolve(struct marey__sampler_context *context, struct marey__target *target,
                           struct marey__target_thread *thread, uint32_t *stack);

/* Put a mark with the name of the task that the thread runs around the frames of its coroutine, one of `n`. */
void marey__walk_put_task(struct marey__sampler_context *context, struct marey__target *target,
                          uint64_t thread_state, const struct marey__walk_coroutine *coroutines,
                          size_t n);
void marey__task_names_fini(struct marey__task_names *names);

/* The processes of a sampler: those that were named, and their descendants. Inside of core/sampler. */

enum marey__member_kind {
    MAREY__MEMBER_YOUNG, /* it may still become a Python */
    MAREY__MEMBER_PYTHON,
    MAREY__MEMBER_OTHER, /* no Python; its children may be, and it may begin another program */
    MAREY__MEMBER_ENDED,
};

struct marey__family_member {
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
    struct marey__sampler_context *context;
    struct marey__family_member *members;
    size_t n, cap;
    bool has_children; /* descendants are wanted */
    bool is_calm;      /* searches children less often */
    uint64_t patience_ns;
    int loadavg_fd;
    uint64_t last_pid;               /* the newest process of the machine */
    uint64_t changed_ns;             /* when that changed last */
    uint64_t born_ns;                /* when a child was found last */
    uint64_t polled_ns, searched_ns; /* looked for children; in all threads of all processes */
    uint64_t n_processes, n_born, n_skipped, ended_target_ns;
    struct marey_samples_counts ended; /* sums of the ones that ended */
};
void marey__family_init(struct marey__family *family, struct marey__sampler_context *context,
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
void marey__family_settle(struct marey__family *family, struct marey__family_member *member);
/* Whether anything is left to wait for. */
bool marey__family_is_over(const struct marey__family *family);
size_t marey__family_count(const struct marey__family *family, enum marey__member_kind kind);

/* The sampler as a whole. Inside of core/sampler. */

struct marey_sampler {
    bool has_pauses; /* see marey__samples_is_pause() */
    uint64_t seed;
    /* set by create */
    double rate_hz, duration_s, max_slowdown, audit_share;
    bool is_exact;  /* rounds are exact, as far as the budget allows */
    bool is_strict; /* a round that may not be exact is left out */
    bool has_fixed_gaps;
    marey_samples *samples;
    struct marey__samples_log *log; /* NULL: nothing is written */
    struct marey__sampler_context context;
    struct marey__family family;
    marey_sampler_on_round_fn *on_round;
    void *on_round_ctx;

    /* only the sampler's thread */
    uint64_t begin_ns, next_ns, published_ns;
    uint64_t n_asked, n_missed, n_late, late_ns;
    uint64_t cpu_begin_ns;
    double n_looked;     /* processes in a round */
    double mean_look_ns; /* how long an exact round took us, lately */
    double mean_stop_ns; /* of an exact round, lately */

    _Atomic int is_stopped; /* stored by any thread; only the loop loads it. Relaxed: it guards nothing */

    pthread_mutex_t lock; /* guards what is below */
    pid_t *joining;       /* put by anybody, taken by the sampler's thread */
    size_t n_joining, joining_cap;
    struct marey_sampler_counts published; /* put by the sampler's thread, read by anybody */
};

/* sampler_loop.c */
marey_status marey__sampler_loop(struct marey_sampler *sampler);
/* Sums as they are now, for others to read and for the recording. */
void marey__sampler_publish_counts(struct marey_sampler *sampler);

/* ---- live.c ---- */

struct marey__live_sum {
    uint32_t thread, stack; /* numbers in the store; the key */
    uint64_t wall_ns, cpu_ns, gil_ns, gc_ns;
};

struct marey__live_bucket {
    uint64_t begin_ns;
    struct marey__live_sum *sums;
    size_t n, cap;
    struct marey__key_map map;
};

enum { MAREY__LIVE_BUCKETS = 10 };

struct marey__live_thread {
    uint32_t process, stack, flags, wait; /* process 0: never seen */
    uint64_t seen_ns;
    bool is_main;
};

struct marey__live_process {
    uint64_t seen_ns; /* 0: never */
    uint64_t stack_ns,
        cpu_ns; /* when a stack last changed, and when it last took time of a processor */
    uint64_t cpu_used_ns, cpu_at; /* what its clock said then */
    size_t n_threads;
    pid_t pid;
};

struct marey_live {
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t made;  /* a table was */
    uint64_t window_ns, first_ns, last_ns;
    struct marey__live_bucket buckets[MAREY__LIVE_BUCKETS];
    size_t newest;
    struct marey__live_thread *threads; /* by number, from 1 */
    size_t n_threads, threads_cap;
    struct marey__live_process *processes; /* by number, from 1 */
    size_t n_processes, processes_cap;
    uint64_t n_lost;

    bool is_wanted; /* a table is asked for */
    enum marey_live_by by;
    unsigned flags;
    marey_table *table; /* the answer; NULL: no memory */
};

/* What hangs on a sampler. */
marey_sampler_on_round_fn marey__live_round;

/* Where a thread or process counts as here: it was seen in the last seconds. */
bool marey__live_is_recent(const struct marey_live *live, uint64_t seen_ns);

/* ---- live_tables.c ---- */

/* The table that is asked for; NULL without memory. In the sampler's thread, with the lock held. */
marey_table *marey__live_make(struct marey_live *live, const marey_samples *samples);

/* "train.py:12", "torch/nn/modules/module.py:1501", "libtorch_cpu.so": where it is, for people. `line` 0: without. */
void marey__live_place(struct marey__buf *buf, const struct marey_samples_function *function,
                       uint32_t line);

#endif
