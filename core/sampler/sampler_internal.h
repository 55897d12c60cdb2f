/*
 * sampler: the loop that looks at Python processes, and what it knows of them between two looks.
 *
 *   sampler.c           options, the loop's life, counts              <kymo/sampler.h>
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
#ifndef KYMO_SAMPLER_INTERNAL_H
#define KYMO_SAMPLER_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "remote/remote.h"
#include "samples/samples.h"
#include "unwind/unwind.h"
#include <kymo/sampler.h>

/* ---- batch.c: many places of a process, copied by one call ---- */

struct kymo__batch {
    struct kymo__remote_span *spans; /* n_bytes 0: it could not be read */
    size_t n, spans_cap;
    uint8_t *bytes; /* never moves while a batch is in use */
    size_t n_bytes, bytes_cap;
};
#define KYMO__BATCH_NONE SIZE_MAX
KYMO_WARN_UNUSED bool kymo__batch_init(struct kymo__batch *batch);
void kymo__batch_fini(struct kymo__batch *batch);
void kymo__batch_clear(struct kymo__batch *batch);
/* The index of the place from now on; KYMO__BATCH_NONE when there is no room. */
size_t kymo__batch_add(struct kymo__batch *batch, uint64_t at, size_t n_bytes);
/* Copy the places from `first` on. One that cannot be read is left out, and costs a call more. */
void kymo__batch_read(struct kymo__batch *batch, struct kymo__remote *remote, size_t first);
/* The copy, lent until the batch is cleared; NULL: there is none. */
static inline const uint8_t *kymo__batch_at(const struct kymo__batch *batch, size_t index)
{
    return index < batch->n && batch->spans[index].n_bytes != 0 ? batch->spans[index].to : NULL;
}

/* ---- thread_state.c ---- */

struct kymo__thread_files {
    int schedstat_fd, syscall_fd; /* -1: not kept open */
};
struct kymo__thread_state {
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
void kymo__thread_files_init(struct kymo__thread_files *files);
void kymo__thread_files_fini(struct kymo__thread_files *files, int *n_spare);
/* Look. `n_spare` files may be kept open by this and others. */
void kymo__thread_look(struct kymo__thread_files *files, pid_t pid, pid_t tid, int *n_spare,
                       struct kymo__thread_state *state);
/* Whether it has not had a processor since the look in `state`. */
bool kymo__thread_slept_on(const struct kymo__thread_files *files, pid_t pid, pid_t tid,
                           const struct kymo__thread_state *state);

/* ---- thread_stop.c ---- */

enum kymo__stopped {
    KYMO__STOPPED,     /* it stands still until kymo__thread_go */
    KYMO__STOP_FAILED, /* it goes on: traced by another, or not allowed */
    KYMO__STOP_GONE,
    KYMO__STOP_LATE, /* it did not stop in time; kymo__stops_settle lets it go when it does */
};
/* What one tracing thread has under way. */
struct kymo__stops {
    struct kymo__late_stop {
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
enum kymo__stopped kymo__thread_stop(struct kymo__stops *stops, pid_t tid);
/* Let it go on; how long it stood. */
uint64_t kymo__thread_go(struct kymo__stops *stops, pid_t tid);
/* Let those go on that came to a stop too late. `is_last`: wait for them. */
void kymo__stops_settle(struct kymo__stops *stops, bool is_last);
void kymo__stops_fini(struct kymo__stops *stops);

/* ---- one thread of a target ---- */

#define KYMO__WALK_MAX ((size_t)1 << 17) /* frames; more are cut */
enum { KYMO__CFRAMES = 8, KYMO__STRAYS = 64 };

/* In place of an address of code. */
enum {
    KYMO__WALK_MARK = 1, /* outer frames are missing here */
    KYMO__WALK_TASK = 2, /* the instruction is the number of a task's name */
};
static inline bool kymo__is_code(uint64_t address)
{
    return address > KYMO__WALK_TASK;
}
struct kymo__walk_frame {
    uint64_t code, instruction;
    uint32_t tlbc_index;
    uint32_t stack; /* number of the stack that ends with this frame; 0: not made yet */
};
struct kymo__walk {
    struct kymo__walk_frame *frames; /* innermost first */
    size_t n, cap;
};

/* A frame in looker->walk that is part of a generator or a coroutine, and its address. */
struct kymo__walk_coroutine {
    uint64_t at;
    size_t index;
};

/* A piece of the data stack of 3.11 and later. */
struct kymo__chunk {
    uint64_t at, size; /* size: as it was made */
    uint64_t n_used;   /* bytes from `at` on that hold frames */
    uint64_t n_copied; /* bytes of the copy */
    size_t copy;       /* in the batch */
};
/* Something that stands alone: a frame of a generator, a cframe. */
struct kymo__place {
    uint64_t at;
    unsigned used; /* in which read it was of use last */
    size_t copy;
};

/* Where things of a thread were last time; the next read goes there. */
struct kymo__places {
    unsigned n_reads;
    struct kymo__chunk *chunks, *chunks_before; /* the newest first */
    size_t n_chunks, chunks_cap, chunks_before_cap;
    uint64_t reach,
        reach_before; /* how far the newest chunk was used, in this run of reads and in the one before */
    struct kymo__place cframes[KYMO__CFRAMES]; /* 3.11 and 3.12; the latest first */
    size_t n_cframes;
    struct kymo__place strays[KYMO__STRAYS]; /* frames outside of chunks, the latest first */
    size_t n_strays;
    struct kymo__place *heap, *heap_before; /* to 3.10: all frames, innermost first */
    size_t n_heap, heap_cap, n_heap_before, heap_before_cap;
    size_t state_copy;
    size_t twin_copy; /* of the end of the newest chunk, made before anything else: has it changed since? */
    uint64_t twin_at, twin_bytes;
};

struct kymo__target_thread {
    uint64_t address;     /* of its state */
    uint32_t interpreter; /* index in the target */
    pid_t tid;
    uint32_t number; /* in the store */
    struct kymo__thread_files files;
    struct kymo__thread_state state;
    struct kymo__places places;
    struct kymo__walk walk;
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

struct kymo__target_interpreter {
    uint64_t address, gil, threads_head;
    uint64_t id, switch_number;
    uint64_t holder; /* of this round: the thread state that has the lock, 0 nobody */
    bool has_gil, is_collecting;
    size_t head_copy, gc_copy, gil_copy;
};

/* What targets of one sampler share; of one thread. */
struct kymo__looker {
    kymo_samples *samples;
    pthread_mutex_t *store_lock; /* NULL: nobody else uses the store */
    struct kymo__batch batch;
    struct kymo__walk walk; /* of the thread that is being read */
    struct kymo__unwind_run *runs;
    size_t n_runs, runs_cap;
    struct kymo__stops stops;
    struct kymo__unwind_files *native_files; /* NULL: no native frames */
    struct kymo__native_frame *native;
    struct kymo__unwind_merged *merged;
    size_t merged_cap;
    int n_spare_files;
    uint64_t random;
};
/* False without memory; kymo__looker_fini takes what was made. */
KYMO_WARN_UNUSED bool kymo__looker_init(struct kymo__looker *looker, kymo_samples *samples,
                                        pthread_mutex_t *store_lock, bool is_native, uint64_t seed);
void kymo__looker_fini(struct kymo__looker *looker);
/* From 0 to 1, never 0. */
double kymo__looker_random(struct kymo__looker *looker);
static inline void kymo__looker_lock(const struct kymo__looker *looker)
{
    if (looker->store_lock != NULL)
        pthread_mutex_lock(looker->store_lock);
}
static inline void kymo__looker_unlock(const struct kymo__looker *looker)
{
    if (looker->store_lock != NULL)
        pthread_mutex_unlock(looker->store_lock);
}

enum kymo__look {
    KYMO__LOOK_SNAPSHOT,
    KYMO__LOOK_EXACT,
    KYMO__LOOK_AUDIT,
};

struct kymo__location_cache {
    struct kymo__location_slot {
        uint64_t code, instruction;
        uint32_t generation, location;
    } * slots;
    size_t n, n_slots; /* a power of two, or 0 */
};

struct kymo__target {
    pid_t pid;
    uint32_t number; /* in the store */
    struct kymo__remote *remote;
    const struct kymo__remote_layout *layout;
    struct kymo__unwind *unwind;
    struct kymo__target_interpreter *interpreters;
    size_t n_interpreters, interpreters_cap;
    struct kymo__target_thread *threads;
    size_t n_threads, threads_cap;
    struct kymo_samples_seen *seen;
    size_t n_seen, seen_cap;
    struct kymo__location_cache locations;
    struct kymo__task_names {
        struct kymo__task_name *list;
        size_t n, cap, last;
    } tasks;
    size_t head_copy, gil_copy, gc_copy; /* of the runtime */
    uint64_t interpreters_head;
    uint64_t listed_ns, checked_ns, opened_ns, met_ns;
    bool is_stale;    /* interpreters or threads are to be listed again */
    bool is_doubtful; /* it may be another program by now, or none */
    bool is_ended, is_replaced;
    double mean_stop_ns; /* of an exact round, lately; below 0: not known */
    double mean_look_ns; /* how long we were at it */
    uint64_t at_ns;      /* of the last look */
    uint64_t weight_ns;  /* for which the next round stands */
    struct kymo_samples_counts counts;
};
/* `remote` is taken over, also when this fails. */
KYMO_WARN_UNUSED kymo_status kymo__target_create(struct kymo__looker *looker,
                                                 struct kymo__remote *remote, int worker,
                                                 struct kymo__target **out);
void kymo__target_destroy(struct kymo__looker *looker, struct kymo__target *target);
/* Look at all threads; target->seen has the result. False: the process has ended or been replaced. */
bool kymo__target_look(struct kymo__looker *looker, struct kymo__target *target, enum kymo__look how);

/* target_list.c: list anew what has changed. False: the process has ended, or begun another program. */
bool kymo__target_keep_up(struct kymo__looker *looker, struct kymo__target *target);

/* Sums; the longest stop is the longest of both. */
void kymo__counts_add(struct kymo_samples_counts *sum, const struct kymo_samples_counts *more);

/* ---- target_read.c ---- */
/* Put what is to be read of a thread into the batch. */
void kymo__thread_plan(struct kymo__looker *looker, struct kymo__target *target,
                       struct kymo__target_thread *thread);
/*
 * Have copies of all chunks that the copied thread state leads to; `*is_torn` when some had to be read only now. False: the
 * chain leads nowhere.
 */
bool kymo__places_refresh(struct kymo__looker *looker, struct kymo__target *target,
                          struct kymo__places *places, const uint8_t *state, bool *is_torn);
/* The cframe at `at` is read from now on as well, as long as others do not take its place. */
void kymo__places_expect_cframe(struct kymo__places *places, uint64_t at);
/* The copy of the cframe at `at`, made now when there is none; NULL: it cannot be read. */
const uint8_t *kymo__places_cframe(struct kymo__looker *looker, struct kymo__target *target,
                                   struct kymo__places *places, uint64_t at, bool *is_torn);
/* A frame that was in no copy is at `at`: read it, and the next time with the others. NULL: it cannot be read. */
const uint8_t *kymo__places_stray(struct kymo__looker *looker, struct kymo__target *target,
                                  struct kymo__places *places, uint64_t at, bool *is_torn);
void kymo__places_fini(struct kymo__places *places);

/* ---- target_walk.c ---- */
enum kymo__walked {
    KYMO__WALKED,
    KYMO__WALK_REJECTED, /* nothing can be made of it */
    KYMO__WALK_ENDED,    /* there is no such thread any more */
};
/*
 * From the copies of a thread to looker->walk. `flags` gets UNSTABLE, TRUNCATED, NO_FRAMES, EXCEPTION. What is not in the
 * copies is read now; unless `is_still`, that is a change while it was read.
 */
enum kymo__walked kymo__thread_walk(struct kymo__looker *looker, struct kymo__target *target,
                                    struct kymo__target_thread *thread, bool is_still,
                                    uint32_t *flags);

/* ---- target_stack.c ---- */
/*
 * Have the code objects read of the frames that were not there before, while the thread stands still: those that are not
 * known, and those that may have left their place to others.
 */
void kymo__walk_meet(struct kymo__target *target, const struct kymo__walk *walk,
                     const struct kymo__walk *before);
/* The location of a frame; 0: its code cannot be read. */
uint32_t kymo__frame_location(struct kymo__looker *looker, struct kymo__target *target,
                              const struct kymo__walk_frame *frame);
/* The stack of looker->walk, which becomes the thread's; false: some frame is none. */
bool kymo__thread_resolve(struct kymo__looker *looker, struct kymo__target *target,
                          struct kymo__target_thread *thread, uint32_t *stack);
void kymo__locations_fini(struct kymo__location_cache *cache);

/* ---- target_tasks.c ---- */
/* Put a mark with the name of the task that the thread runs around the frames of its coroutine, one of `n`. */
void kymo__walk_put_task(struct kymo__looker *looker, struct kymo__target *target,
                         uint64_t thread_state, const struct kymo__walk_coroutine *coroutines,
                         size_t n);
uint32_t kymo__task_location(struct kymo__looker *looker, struct kymo__target *target, uint64_t name);
void kymo__task_names_fini(struct kymo__task_names *names);

/* ---- target_native.c ---- */
struct kymo__native_copy {
    struct kymo__unwind_input input;
    bool is_there;
    bool is_sure; /* set by kymo__native_resolve: it is whole, and each frame was found by a rule */
};
/* While the thread is stopped: registers and stack, read with the rest of the batch from `first` on. */
void kymo__native_plan(struct kymo__looker *looker, struct kymo__target *target, pid_t tid,
                       struct kymo__native_copy *copy, size_t *index);
/* The same of a thread that sleeps in a system call. Of its registers the kernel tells two, which most stacks need no more of. */
void kymo__native_plan_asleep(struct kymo__looker *looker, struct kymo__target *target,
                              const struct kymo__thread_state *state,
                              struct kymo__native_copy *copy, size_t *index);
/* The merged stack; the thread's walk and looker->runs are the Python side. Adds to `flags`. */
uint32_t kymo__native_resolve(struct kymo__looker *looker, struct kymo__target *target,
                              const struct kymo__target_thread *thread,
                              struct kymo__native_copy *copy, size_t index, uint32_t *flags);

#endif
