/*
 * loop: the sampling loop: when to sample, which processes, and what is cached between rounds.
 *
 *   sampler.c            options, life of the loop, counts              <marey/sampler.h>
 *     sampler_loop.c, sampler_context.c   when: intervals, missed rounds; state of one thread
 *     sampler_family.c     which: processes, children, launchers, exec
 *       target*.c            one process: interpreters, threads, frames to the number of a stack, native frames
 *       target_program.c     one process without Python: native stacks of its threads
 *       thread_state.c       on a CPU or waiting, and for what, from /proc
 *       thread_stop.c        stops one thread for exact samples
 *     system_counters.c    counters of the whole tree: contention, faults, I/O
 *   stacks_read.c        all threads of many processes once
 *   live*.c              counts for `marey top`
 *
 * Input: pids. Output: samples in a store. Only this folder stops threads, and it resumes each one. A thread that has
 * not run since its last sample, as the kernel's switch count shows, has the same stack, so it is neither read nor
 * stopped. The cost of a round is proportional to the number of threads that ran. Does not know the layouts of
 * interpreters (remote/), the rules of unwinding (unwind/), or analyses.
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
    struct marey__remote_span *spans; /* n_bytes 0: unreadable */
    size_t n, spans_cap;
    uint8_t *bytes; /* does not move while a batch is in use */
    size_t n_bytes, bytes_cap;
};
#define MAREY__BATCH_NONE SIZE_MAX
void marey__batch_clear(struct marey__batch *batch);
/* Adds a place and returns its index; MAREY__BATCH_NONE if there is no room. */
size_t marey__batch_add(struct marey__batch *batch, uint64_t at, size_t n_bytes);
/* Copies the places from `first` on. An unreadable one is skipped, at the cost of one more call. */
void marey__batch_read(struct marey__batch *batch, struct marey__remote *remote, size_t first);
/* The copy, lent until the batch is cleared; NULL if there is none. */
static inline const uint8_t *marey__batch_at(const struct marey__batch *batch, size_t index)
{
    return index < batch->n && batch->spans[index].n_bytes != 0 ? batch->spans[index].to : NULL;
}

/* ---- thread_state.c ---- */

struct marey__thread_files {
    int schedstat_fd, syscall_fd; /* -1: not kept open */
};
struct marey__thread_state {
    uint64_t run_ns, slices; /* the kernel's counts at the last check */
    bool is_known;           /* some state could be read */
    bool is_running;         /* on a CPU core, or queued for one */
    bool has_slept; /* off the CPU since the previous check: its stack cannot have changed */
    bool is_gone;
    int64_t call;    /* the current system call; -1: none */
    uint64_t place;  /* the call's first argument: of a futex its address */
    uint64_t sp, pc; /* in the program, during that call; 0: unknown */
    uint64_t looked_ns;
};
/* A counter of files that may still be kept open, shared by all. Each sampler has its own. */
void marey__thread_files_init(struct marey__thread_files *files);
void marey__thread_files_fini(struct marey__thread_files *files, int *n_spare);
/* Reads a thread's state. `n_spare` files may be kept open by this and other threads. */
void marey__thread_look(struct marey__thread_files *files, pid_t pid, pid_t tid, int *n_spare,
                        struct marey__thread_state *state);
/* Whether it has not run since `state` was read. */
bool marey__thread_has_not_run(const struct marey__thread_files *files, pid_t pid, pid_t tid,
                               const struct marey__thread_state *state);

/* ---- thread_stop.c ---- */

enum marey__stopped {
    MAREY__STOPPED,     /* it stays stopped until marey__thread_resume */
    MAREY__STOP_FAILED, /* it keeps running: traced by another process, or not permitted */
    MAREY__STOP_GONE,
    MAREY__STOP_LATE, /* it did not stop in time; marey__stops_resume_late resumes it once it does */
};
/* The stops of one tracing thread. */
struct marey__stops {
    struct marey__late_stop {
        pid_t tid;
    } * late;
    size_t n_late, late_cap;
    long patience_ns;  /* for a thread that has to wait for a CPU core first; below a second */
    int signal;        /* to deliver when the stopped thread resumes */
    uint64_t begin_ns; /* of the current stop */
    timer_t timer;     /* ends a wait that takes too long */
    bool has_timer;
    int policy;           /* scheduling policy before the priority was raised */
    bool is_raised;       /* the priority is raised for the current stop */
    bool has_no_priority; /* raising it is not permitted, or it could not be lowered again */
};
enum marey__stopped marey__thread_stop(struct marey__stops *stops, pid_t tid);
/* Resumes the thread; returns how long it was stopped. */
uint64_t marey__thread_resume(struct marey__stops *stops, pid_t tid);
/* Resumes threads that stopped too late. `is_last`: waits for them. */
void marey__stops_resume_late(struct marey__stops *stops, bool is_last);
void marey__stops_fini(struct marey__stops *stops);

/* ---- one thread of a target ---- */

#define MAREY__WALK_MAX ((size_t)1 << 17) /* frames; more are truncated */
enum { MAREY__CFRAMES = 8, MAREY__STRAYS = 64 };

/* Special values in place of a code address. */
enum {
    MAREY__WALK_MARK = 1, /* outer frames are missing here */
    MAREY__WALK_TASK = 2, /* the instruction is the number of a task name */
};
static inline bool marey__is_code(uint64_t address)
{
    return address > MAREY__WALK_TASK;
}
struct marey__walk_frame {
    uint64_t code, instruction;
    uint32_t tlbc_index;
    uint32_t stack; /* number of the stack that ends with this frame; 0: not assigned yet */
};
struct marey__walk {
    struct marey__walk_frame *frames; /* innermost first */
    size_t n, cap;
};

/* A frame in context->walk that belongs to a generator or coroutine, and its address. */
struct marey__walk_coroutine {
    uint64_t at;
    size_t index;
};

/* A chunk of the data stack of 3.11 and later. */
struct marey__chunk {
    uint64_t at, size; /* size: as allocated */
    uint64_t n_used;   /* bytes from `at` that hold frames */
    uint64_t n_copied; /* bytes of the copy */
    size_t copy;       /* in the batch */
};
/* Something outside the chunks: a generator's frame, a cframe. */
struct marey__place {
    uint64_t at;
    unsigned used; /* number of the last read in which it was useful */
    size_t copy;
};

/* Where a thread's data were last time; the next read starts there. */
struct marey__places {
    unsigned n_reads;
    struct marey__chunk *chunks, *chunks_before; /* newest first */
    size_t n_chunks, chunks_cap, chunks_before_cap;
    uint64_t reach,
        reach_before; /* used size of the newest chunk, in this run of reads and the previous one */
    struct marey__place cframes[MAREY__CFRAMES]; /* 3.11 and 3.12; latest first */
    size_t n_cframes;
    struct marey__place strays[MAREY__STRAYS]; /* frames outside chunks, latest first */
    size_t n_strays;
    struct marey__place *heap, *heap_before; /* up to 3.10: all frames, innermost first */
    size_t n_heap, heap_cap, n_heap_before, heap_before_cap;
    size_t state_copy;
    size_t reference_copy; /* a first copy of the end of the newest chunk, to detect changes */
    uint64_t reference_at, reference_bytes;
};

struct marey__target_thread {
    uint64_t address;     /* of its thread state */
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
    bool is_read;  /* stack and flags remain valid while it sleeps */
    bool is_due;   /* to be read in this round */
    bool is_exact; /* in this round */
    bool is_listed;
    uint64_t name_ns; /* when to read its name again */
    unsigned n_named;
};

/* ---- target.c: one process ---- */

struct marey__target_interpreter {
    uint64_t address, gil, threads_head;
    uint64_t id, switch_number;
    uint64_t holder; /* in this round: the thread state that has the GIL, 0: none */
    bool has_gil, is_collecting;
    size_t head_copy, gc_copy, gil_copy;
};

/* State shared by the targets of one sampler; used by one thread. */
struct marey__sampler_context {
    marey_samples *samples;
    pthread_mutex_t *store_lock; /* NULL: the store is not shared */
    struct marey__batch batch;
    struct marey__walk walk; /* of the thread being read */
    struct marey__unwind_run *runs;
    size_t n_runs, runs_cap;
    struct marey__stops stops;
    struct marey__unwind_files *native_files; /* NULL: no native frames beside Python's */
    struct marey__unwind_files *program_files; /* for programs without Python; created for the first one */
    struct marey__native_frame *native;
    struct marey__unwind_merged *merged;
    size_t merged_cap;
    int n_spare_files;
    uint64_t random;
};
/* False on out of memory; call marey__sampler_context_fini in either case. */
MAREY_WARN_UNUSED bool marey__sampler_context_init(struct marey__sampler_context *context,
                                                   marey_samples *samples,
                                                   pthread_mutex_t *store_lock, bool is_native,
                                                   uint64_t seed);
void marey__sampler_context_fini(struct marey__sampler_context *context);
/* In (0, 1]. */
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

/* Cache of the locations of instructions; a newer one replaces another in the same slot. */
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
    bool is_program;                     /* without Python: no layout, no interpreters */
    struct marey__program_place *places; /* for a program: a cache of locations by address */
    struct marey__target_interpreter *interpreters;
    size_t n_interpreters, interpreters_cap;
    struct marey__target_thread *threads;
    size_t n_threads, threads_cap;
    struct marey_samples_seen *seen;
    size_t n_seen, seen_cap;
    struct marey__location_slot *locations; /* allocated on first use */
    struct marey__task_names {
        struct marey__task_name *list;
        size_t n, cap, last;
    } tasks;
    size_t head_copy; /* of the runtime */
    uint64_t interpreters_head;
    unsigned n_since_listed; /* looks */
    uint64_t listed_ns, checked_ns, opened_ns, codes_checked_ns;
    bool is_stale;    /* interpreters or threads must be listed again */
    bool is_doubtful; /* it may be another program by now, or gone */
    bool is_ended, is_replaced;
    double mean_stop_ns; /* recent mean of exact rounds; below 0: unknown */
    double mean_look_ns; /* recent mean of our time */
    uint64_t at_ns;      /* of the last round */
    uint64_t weight_ns;  /* of the next round */
    struct marey_samples_counts counts;
};
/* Takes ownership of `remote`, even on failure. */
MAREY_WARN_UNUSED marey_status marey__target_create(struct marey__sampler_context *context,
                                                    struct marey__remote *remote, int worker,
                                                    struct marey__target **out);
void marey__target_destroy(struct marey__sampler_context *context, struct marey__target *target);
/* Reads all threads into target->seen. False: the process has ended or been replaced. */
bool marey__target_look(struct marey__sampler_context *context, struct marey__target *target,
                        enum marey__round how);

/* target_list.c: updates stale lists. False: the process has ended, or runs another program. */
bool marey__target_refresh(struct marey__sampler_context *context, struct marey__target *target);

/* Updates the name of a thread that is new, or whose name is due. */
void marey__target_name_thread(struct marey__sampler_context *context, struct marey__target *target,
                               struct marey__target_thread *thread, const char *name);
/* Lists a thread by its key, adding it if new. NULL on out of memory. */
struct marey__target_thread *marey__target_list_thread(struct marey__target *target, uint64_t address,
                                                       pid_t tid, uint32_t interpreter);

/* ---- target_program.c: a process without Python ---- */

/* Prepares unwinding of the target. MAREY_ENOMEM, MAREY_EUNAVAILABLE. */
MAREY_WARN_UNUSED marey_status marey__program_target_init(struct marey__sampler_context *context,
                                                          struct marey__target *target);
/* Lists its threads again. */
void marey__program_target_list(struct marey__sampler_context *context, struct marey__target *target);
/* Reads the native stacks of due threads; stops only running ones. */
void marey__program_target_read(struct marey__sampler_context *context, struct marey__target *target);

/* Adds; the longest stop is the maximum. */
void marey__counts_add(struct marey_samples_counts *sum, const struct marey_samples_counts *more);

/* ---- target_walk.c ---- */
/* Adds the places of a thread that must be read to the batch. */
void marey__thread_plan(struct marey__sampler_context *context, struct marey__target *target,
                        struct marey__target_thread *thread);
void marey__places_fini(struct marey__places *places);

enum marey__walked {
    MAREY__WALKED,
    MAREY__WALK_REJECTED, /* inconsistent */
    MAREY__WALK_ENDED,    /* the thread has ended */
};
/*
 * Converts a thread's copies to context->walk. `flags` gets UNSTABLE, TRUNCATED, NO_FRAMES, EXCEPTION. Data missing in
 * the copies are read now; unless `is_still`, that counts as a change during the read.
 */
enum marey__walked marey__thread_walk(struct marey__sampler_context *context,
                                      struct marey__target *target,
                                      struct marey__target_thread *thread, bool is_still,
                                      uint32_t *flags);

/* ---- target_stack.c ---- */
/* Reads new frames' code objects while the thread is stopped: unknown ones, and those that may have been replaced. */
void marey__walk_check_codes(struct marey__target *target, const struct marey__walk *walk,
                             const struct marey__walk *before);
/* Converts context->walk to the thread's stack; false if some frame is invalid. */
bool marey__thread_resolve(struct marey__sampler_context *context, struct marey__target *target,
                           struct marey__target_thread *thread, uint32_t *stack);

/* Inserts a mark with the name of the thread's current task around the frames of its coroutine, one of `n`. */
void marey__walk_put_task(struct marey__sampler_context *context, struct marey__target *target,
                          uint64_t thread_state, const struct marey__walk_coroutine *coroutines,
                          size_t n);
void marey__task_names_fini(struct marey__task_names *names);

/* The processes of a sampler: those given by the user, and their descendants. Internal to core/sampler. */

enum marey__member_kind {
    MAREY__MEMBER_YOUNG, /* it may still become a Python */
    MAREY__MEMBER_PYTHON,
    MAREY__MEMBER_PROGRAM, /* no Python; native stacks are sampled while no member is a Python */
    MAREY__MEMBER_OTHER,   /* not Python; its children may be, and it may exec another program */
    MAREY__MEMBER_ENDED,
};

struct marey__family_member {
    pid_t pid, parent;
    uint64_t start_time;
    enum marey__member_kind kind;
    struct marey__target *target; /* for a Python or a program */
    int worker;                   /* its worker number below its parent; -1: not a worker */
    bool is_named;                /* given by the user */
    bool is_counted;              /* as a Python, or as skipped */
    uint64_t began_ns;            /* when it, or a new program in it, was first seen */
    uint64_t retry_ns;            /* when to check again whether it is a Python */
    uint64_t ended_ns;
    uint64_t program; /* changes with exec */
};

struct marey__family {
    struct marey__sampler_context *context;
    struct marey__family_member *members;
    size_t n, cap;
    bool has_children; /* include descendants */
    bool has_programs; /* sample programs without Python too */
    bool is_calm;      /* searches for children less often */
    uint64_t patience_ns;
    int loadavg_fd;
    uint64_t last_pid;   /* the newest pid on the machine */
    uint64_t changed_ns; /* when that changed last */
    uint64_t born_ns;    /* when a child was last found */
    uint64_t polled_ns,
        searched_ns; /* when children were last searched for; in all threads of all processes */
    uint64_t n_processes, n_born, n_skipped, ended_target_ns;
    char refusal[512];                 /* why the last process that may not be read may not; "" */
    struct marey_samples_counts ended; /* sums over ended processes */
};
void marey__family_init(struct marey__family *family, struct marey__sampler_context *context,
                        bool has_children, uint32_t patience_ms);
void marey__family_fini(struct marey__family *family);
/*
 * Adds a process given by the user. Waits for it, and for a Python among its descendants, for a limited time if that
 * may never come. Fails with the process's own error message.
 */
MAREY_WARN_UNUSED marey_status marey__family_name(struct marey__family *family, pid_t pid);
/* The same while the sampler runs: without waiting. */
marey_status marey__family_join(struct marey__family *family, pid_t pid);
/* When to call marey__family_poll next; sooner if the caller `is_awake` anyway. */
uint64_t marey__family_due_ns(const struct marey__family *family, bool is_awake);
/* Searches for children, for Pythons that were not ready, and for exec. */
void marey__family_poll(struct marey__family *family, uint64_t now_ns);
/* After a failed read: marks the process as ended, or checks it again. */
void marey__family_recheck(struct marey__family *family, struct marey__family_member *member);
/* Whether anything is left to wait for. */
bool marey__family_is_over(const struct marey__family *family);
size_t marey__family_count(const struct marey__family *family, enum marey__member_kind kind);

/* ---- system_counters.c ---- */

struct marey__system_counters;
/* NULL without memory. */
struct marey__system_counters *marey__system_counters_create(void);
/* Reads the counters of all members when they are due, and writes them into the log. */
MAREY_WARN_UNUSED marey_status marey__system_counters_read(struct marey__system_counters *counters,
                                                           const struct marey__family *family,
                                                           struct marey__samples_log *log,
                                                           uint64_t now_ns);
void marey__system_counters_destroy(struct marey__system_counters *counters);

/* The whole sampler. Internal to core/sampler. */

struct marey_sampler {
    bool has_pauses; /* see marey__samples_is_pause() */
    uint64_t seed;
    /* constant after create */
    double rate_hz, duration_s, max_slowdown, audit_share;
    bool is_exact;  /* exact rounds, as far as the budget permits */
    bool is_strict; /* skip a round that cannot be exact */
    bool has_fixed_gaps;
    marey_samples *samples;
    struct marey__samples_log *log; /* NULL: nothing is written */
    struct marey__sampler_context context;
    struct marey__family family;
    struct marey__system_counters *counters; /* NULL: not wanted */
    marey_sampler_on_round_fn *on_round;
    void *on_round_ctx;

    /* used only by the sampler's thread */
    uint64_t begin_ns, next_ns, published_ns;
    uint64_t n_asked, n_missed, n_late, late_ns;
    uint64_t cpu_begin_ns;
    double n_workers;    /* of these, workers of data loaders */
    double n_looked;     /* mean processes per round */
    double mean_look_ns; /* recent mean of our time for an exact round */
    double mean_stop_ns; /* recent mean for an exact round */

    _Atomic int is_stopped; /* stored by any thread, loaded only by the loop. Relaxed: it guards nothing */

    pthread_mutex_t lock; /* guards the fields below */
    pid_t *joining;       /* added by any thread, taken by the sampler's thread */
    size_t n_joining, joining_cap;
    struct marey_sampler_counts published; /* stored by the sampler's thread, read by any */
};

/* sampler_loop.c */
marey_status marey__sampler_loop(struct marey_sampler *sampler);
/* Updates the published counts, for other threads and for the recording. */
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
    uint64_t seen_ns;             /* 0: never */
    uint64_t stack_ns, cpu_ns;    /* when a stack last changed, and when it last used CPU time */
    uint64_t cpu_used_ns, cpu_at; /* CPU time at that time */
    size_t n_threads;
    pid_t pid;
};

struct marey_live {
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t made;  /* signaled when a table is ready */
    uint64_t window_ns, first_ns, last_ns;
    struct marey__live_bucket buckets[MAREY__LIVE_BUCKETS];
    size_t newest;
    struct marey__live_thread *threads; /* by 1-based number */
    size_t n_threads, threads_cap;
    struct marey__live_process *processes; /* by 1-based number */
    size_t n_processes, processes_cap;
    uint64_t n_lost;

    bool is_wanted; /* a table is requested */
    enum marey_live_by by;
    unsigned flags;
    marey_table *table; /* the result; NULL: out of memory */
};

/* The callback for marey_sampler_on_round. */
marey_sampler_on_round_fn marey__live_round;

/* Whether a thread or process was seen in the last seconds and so counts as alive. */
bool marey__live_is_recent(const struct marey_live *live, uint64_t seen_ns);

/* ---- live_tables.c ---- */

/* Makes the requested table; NULL on out of memory. Called in the sampler's thread, which holds the lock. */
marey_table *marey__live_make(struct marey_live *live, const marey_samples *samples);

/* "train.py:12", "torch/nn/modules/module.py:1501", "libtorch_cpu.so": a location for display. `line` 0: omitted. */
void marey__live_place(struct marey__buf *buf, const struct marey_samples_function *function,
                       uint32_t line);

#endif
