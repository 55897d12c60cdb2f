/*
 * sampler: the loop that looks at Python processes, and what it knows of them between two looks.
 *
 *   sampler.c           options, the loop's life, counts              <marey/sampler.h>
 *     sampler_loop.c      when: gaps, sleeping, what was missed
 *     sampler_family.c    who: processes, their children, launchers, exec
 *       looker.c            what all looks share
 *       target.c            one process: one look at all its threads
 *         target_list.c       its interpreters and threads
 *         target_read.c       what is read of a thread, all of it by one call: addresses are those of last time
 *         target_walk.c       copies -> frames, from the innermost on
 *         target_stack.c      frames -> the number of a stack
 *         target_native.c     native frames besides
 *         thread_state.c      on a processor or not, and why not, from /proc
 *         thread_stop.c       one thread stopped for a moment
 *   stacks_read.c       all threads of many processes once, side by side
 *
 * A thread that has slept since it was read last cannot have another stack: the kernel's count of how often it was given
 * a processor says so. It is neither read nor stopped again. So a round costs as much as there are threads that move.
 */
#ifndef MAREY_SAMPLER_INTERNAL_H
#define MAREY_SAMPLER_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "sampler/remote/remote.h"
#include "sampler/store/samples.h"
#include "sampler/unwind/unwind.h"
#include <marey/sampler.h>

/* ---- batch.c: many places of a process, copied by one call ---- */

struct marey__batch {
    struct marey__remote_span *spans; /* n_bytes 0: it could not be read */
    size_t n, spans_cap;
    uint8_t *bytes; /* never moves while a batch is in use */
    size_t n_bytes, bytes_cap;
};
#define MAREY__BATCH_NONE SIZE_MAX
MAREY_WARN_UNUSED bool marey__batch_init(struct marey__batch *batch);
void marey__batch_fini(struct marey__batch *batch);
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
    uint64_t sp, pc; /* of the program while it is in that call; 0: not told */
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
    MAREY__STOPPED,     /* it stands still until marey__thread_go */
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
/* Let it go on; how long it stood. */
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

/* A frame in looker->walk that is part of a generator or a coroutine, and its address. */
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
/* Something that stands alone: a frame of a generator, a cframe. */
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
struct marey__looker {
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
/* False without memory; marey__looker_fini takes what was made. */
MAREY_WARN_UNUSED bool marey__looker_init(struct marey__looker *looker, marey_samples *samples,
                                          pthread_mutex_t *store_lock, bool is_native, uint64_t seed);
void marey__looker_fini(struct marey__looker *looker);
/* From 0 to 1, never 0. */
double marey__looker_random(struct marey__looker *looker);
static inline void marey__looker_lock(const struct marey__looker *looker)
{
    if (looker->store_lock != NULL)
        pthread_mutex_lock(looker->store_lock);
}
static inline void marey__looker_unlock(const struct marey__looker *looker)
{
    if (looker->store_lock != NULL)
        pthread_mutex_unlock(looker->store_lock);
}

enum marey__look {
    MAREY__LOOK_SNAPSHOT,
    MAREY__LOOK_EXACT,
    MAREY__LOOK_AUDIT,
};

struct marey__location_cache {
    struct marey__location_slot {
        uint64_t code, instruction;
        uint32_t generation, location;
    } * slots;
    size_t n, n_slots; /* a power of two, or 0 */
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
    struct marey__location_cache locations;
    struct marey__task_names {
        struct marey__task_name *list;
        size_t n, cap, last;
    } tasks;
    size_t head_copy; /* of the runtime */
    uint64_t interpreters_head;
    uint64_t listed_ns, checked_ns, opened_ns, met_ns;
    bool is_stale;    /* interpreters or threads are to be listed again */
    bool is_doubtful; /* it may be another program by now, or none */
    bool is_ended, is_replaced;
    double mean_stop_ns; /* of an exact round, lately; below 0: not known */
    double mean_look_ns; /* how long we were at it */
    uint64_t at_ns;      /* of the last look */
    uint64_t weight_ns;  /* for which the next round stands */
    struct marey_samples_counts counts;
};
/* `remote` is taken over, also when this fails. */
MAREY_WARN_UNUSED marey_status marey__target_create(struct marey__looker *looker,
                                                    struct marey__remote *remote, int worker,
                                                    struct marey__target **out);
void marey__target_destroy(struct marey__looker *looker, struct marey__target *target);
/* Look at all threads; target->seen has the result. False: the process has ended or been replaced. */
bool marey__target_look(struct marey__looker *looker, struct marey__target *target,
                        enum marey__look how);

/* target_list.c: list anew what has changed. False: the process has ended, or begun another program. */
bool marey__target_keep_up(struct marey__looker *looker, struct marey__target *target);

/* Sums; the longest stop is the longest of both. */
void marey__counts_add(struct marey_samples_counts *sum, const struct marey_samples_counts *more);

/* ---- target_read.c ---- */
/* Put what is to be read of a thread into the batch. */
void marey__thread_plan(struct marey__looker *looker, struct marey__target *target,
                        struct marey__target_thread *thread);
/*
 * Have copies of all chunks that the copied thread state leads to; `*is_torn` when some had to be read only now. False: the
 * chain leads nowhere.
 */
bool marey__places_refresh(struct marey__looker *looker, struct marey__target *target,
                           struct marey__places *places, const uint8_t *state, bool *is_torn);
/* The cframe at `at` is read from now on as well, as long as others do not take its place. */
void marey__places_expect_cframe(struct marey__places *places, uint64_t at);
/* The copy of the cframe at `at`, made now when there is none; NULL: it cannot be read. */
const uint8_t *marey__places_cframe(struct marey__looker *looker, struct marey__target *target,
                                    struct marey__places *places, uint64_t at, bool *is_torn);
/* A frame that was in no copy is at `at`: read it, and the next time with the others. NULL: it cannot be read. */
const uint8_t *marey__places_stray(struct marey__looker *looker, struct marey__target *target,
                                   struct marey__places *places, uint64_t at, bool *is_torn);
void marey__places_fini(struct marey__places *places);

/* ---- target_walk.c ---- */
enum marey__walked {
    MAREY__WALKED,
    MAREY__WALK_REJECTED, /* nothing can be made of it */
    MAREY__WALK_ENDED,    /* there is no such thread any more */
};
/*
 * From the copies of a thread to looker->walk. `flags` gets UNSTABLE, TRUNCATED, NO_FRAMES, EXCEPTION. What is not in the
 * copies is read now; unless `is_still`, that is a change while it was read.
 */
enum marey__walked marey__thread_walk(struct marey__looker *looker, struct marey__target *target,
                                      struct marey__target_thread *thread, bool is_still,
                                      uint32_t *flags);

/* ---- target_stack.c ---- */
/*
 * Have the code objects read of the frames that were not there before, while the thread stands still: those that are not
 * known, and those that may have left their place to others.
 */
void marey__walk_meet(struct marey__target *target, const struct marey__walk *walk,
                      const struct marey__walk *before);
/* The location of a frame; 0: its code cannot be read. */
uint32_t marey__frame_location(struct marey__looker *looker, struct marey__target *target,
                               const struct marey__walk_frame *frame);
/* The stack of looker->walk, which becomes the thread's; false: some frame is none. */
bool marey__thread_resolve(struct marey__looker *looker, struct marey__target *target,
                           struct marey__target_thread *thread, uint32_t *stack);
void marey__locations_fini(struct marey__location_cache *cache);

/* ---- target_tasks.c ---- */
/* Put a mark with the name of the task that the thread runs around the frames of its coroutine, one of `n`. */
void marey__walk_put_task(struct marey__looker *looker, struct marey__target *target,
                          uint64_t thread_state, const struct marey__walk_coroutine *coroutines,
                          size_t n);
uint32_t marey__task_location(struct marey__looker *looker, struct marey__target *target,
                              uint64_t name);
void marey__task_names_fini(struct marey__task_names *names);

/* ---- target_native.c ---- */
struct marey__native_copy {
    struct marey__unwind_input input;
    bool is_there;
    bool is_sure; /* set by marey__native_resolve: it is whole, and each frame was found by a rule */
};
/* While the thread is stopped: registers and stack, read with the rest of the batch from `first` on. */
void marey__native_plan(struct marey__looker *looker, struct marey__target *target, pid_t tid,
                        struct marey__native_copy *copy, size_t *index);
/* The same of a thread that sleeps in a system call. Of its registers the kernel tells two, which most stacks need no more of. */
void marey__native_plan_asleep(struct marey__looker *looker, struct marey__target *target,
                               const struct marey__thread_state *state,
                               struct marey__native_copy *copy, size_t *index);
/* The merged stack; the thread's walk and looker->runs are the Python side. Adds to `flags`. */
uint32_t marey__native_resolve(struct marey__looker *looker, struct marey__target *target,
                               const struct marey__target_thread *thread,
                               struct marey__native_copy *copy, size_t index, uint32_t *flags);

#endif
