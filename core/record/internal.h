/*
 * record: one recording per process, from a thread's event to bytes in a log that survives kill -9.
 *
 *   thread -- lane --> chunk of the pool (a shared file mapping) --full--> flush thread -- pack --> log file
 *                          ^------------------- free ------------------------'
 *
 * A lane belongs to one thread. It owns one chunk at a time and stores 8-byte words into it, without a lock and without
 * an atomic read-modify-write. Full chunks go through a queue to the flush thread, which compresses them, appends them
 * to the log and returns them. The pool is a file: when the process dies, the next process that opens the recording
 * finds the last chunks there and finalizes the log with them (finalize.c).
 *
 *   lane.c, side_lane.c     where threads, and streams of a GPU, write      queue.c, pool.c   chunks
 *   flush.c, pack.c         the thread that writes; words to bytes          log_write.c       the file (log_format.h)
 *   record.c, directory.c   opening and closing                             finalize.c        logs of dead processes
 *   clock.c                 ticks of the time-stamp counter, or CLOCK_MONOTONIC
 *   intern.c, handle.c      names to ids for the life of the process; lookups take no lock
 *   stack.c                 the open ranges of each thread, while a check or an NVTX tool needs them
 *   usage.c, usage_tree.c   CPU time, page faults and memory between two timestamps
 *   identity.c, machine.c, thread_names.c, run_log.c   rank, host, versions; threads; the exit of a program
 *
 * Input: words, records and names from instruments. Output: one log per process. Does not know the instruments: their
 * settings are opaque bytes here, and their files are removed through a registered cleaner.
 *
 * Locks, outermost first: record.lock (open and close) > flush.lock (its thread) > lanes.lock (the registry) > a lane's
 * lock (its chunk) > intern.lock > log.lock (the file). fork() takes all of these except the lanes' locks and log.lock.
 */
#ifndef MAREY_RECORD_INTERNAL_H
#define MAREY_RECORD_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <time.h>

#include "base/internal.h"
#include "record/log_format.h"
#include <marey/range.h>
#include <marey/recording.h>
#include <marey/stopwatch.h>
#include <marey/switchboard.h>

/* A clock sample: one timestamp on three clocks. The tick was read between two monotonic reads `width_ns` apart. */
struct marey__moment {
    uint64_t tick, monotonic_ns, realtime_ns, width_ns;
};

/* Stored only by marey__clock_choose, before a recording opens. Relaxed, as a late event of the previous one may read it. */
extern bool marey__clock_is_tsc;

static inline uint64_t marey__clock_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
/* The value of `clock` in `ns` from now, for pthread functions with an absolute timeout. */
static inline struct timespec marey__clock_after(clockid_t clock, uint64_t ns)
{
    const uint64_t until = marey__clock_ns(clock) + ns;
    return (struct timespec){(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
}

static inline uint64_t marey__clock_ticks_of(bool is_tsc)
{
#if defined(__x86_64__)
    if (MAREY_LIKELY(is_tsc))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (MAREY_LIKELY(is_tsc)) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    (void)is_tsc;
    return marey__clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t marey__clock_ticks(void)
{
    return marey__clock_ticks_of(__atomic_load_n(&marey__clock_is_tsc, __ATOMIC_RELAXED));
}

/* Whether the counter has a constant rate; and whether the kernel uses it too, which MAREY_CLOCK_AUTO requires. */
MAREY_PRIVATE_API bool marey__clock_is_invariant(void);
MAREY_PRIVATE_API bool marey__clock_is_trusted(void);
/* Chooses the clock of ticks. Fails only if `want` is MAREY_CLOCK_TSC and the counter is unreliable. */
marey_status marey__clock_choose(enum marey_clock want);
/* "tsc" or "monotonic". */
const char *marey__clock_name(void);
/* Ticks per second, best estimate so far; the clock samples in the log are more accurate. */
uint64_t marey__clock_hz(void);
/* Samples the clocks, with the tightest bracket of a few tries. */
MAREY_PRIVATE_API void marey__clock_moment(bool is_tsc, struct marey__moment *out);

/* ==== intern ==== */

/*
 * intern: permanent numbers for names. A site is a name with its place, category, domain and color; equal content gives
 * an equal id. Finding a known site takes no lock; a new one takes `intern.lock` and is reported to the listener.
 */

enum {
    MAREY__SITE_OTHER = 1,        /* "(other names)": all names after the ids run out */
    MAREY__SITE_LIMIT = 1u << 20, /* ids are 20 bits */
    MAREY__NAME_MAX = 1u << 20,   /* bytes of a name that are kept */
};

/* Immutable and never freed once it has an id. Strings are NUL-terminated besides their length, never NULL. */
struct marey__site {
    marey_id id;
    uint32_t hash;
    uint32_t line, color;
    uint32_t name_len;
    const char *name, *category, *domain, *file;
};

/* The site's strings are lent; its id and hash are ignored; NULL strings count as "". Never 0. */
marey_id marey__intern(const struct marey__site *lent);

/* NULL for an id that was never assigned. */
const struct marey__site *marey__intern_get(marey_id id);
/* Ids assigned so far; the first is 1. */
uint32_t marey__intern_count(void);
/* How many requests came after the ids ran out. */
uint64_t marey__intern_n_other(void);

/*
 * Calls `listener` for each site from id 1 on, then once with NULL, then for each new site, always under the lock,
 * until it is replaced. NULL removes the listener. The listener must not intern. If it returns false for the NULL,
 * because it could not store the known sites, it is removed and false is returned.
 */
typedef bool marey__site_listener(const struct marey__site *site);
bool marey__intern_listen(marey__site_listener *listener);

/* ---- handle.c: numbers for names, equal in every process ---- */

/* The handle of `name` (copied), registered from now on. 1 to 2^63-1. */
uint64_t marey__handle_of(const char *name, size_t len);
/* The id of a handle, 0 if it is not registered. Lock-free. */
marey_id marey__handle_id(uint64_t handle);
void marey__handles_before_fork(void);
void marey__handles_after_fork(void);

/* Around fork: the child must not inherit a half-changed table. */
void marey__intern_before_fork(void);
void marey__intern_after_fork(bool in_child);

/* ==== stack ==== */

/*
 * stack: the open ranges of each thread, maintained while something needs them: a nesting check, an NVTX tool (whose
 * domains pop one by one), the range wrapper. A recording needs no stacks; its reader reconstructs them.
 *
 * Without a user nothing is pushed, so a stack is valid only from the time a user registered. Setting one of
 * MAREY__STACK_USERS requires a call of marey__stack_needed(); older stacks then count as empty.
 */

/* The bits of the enable word that require stacks. */
#define MAREY__STACK_USERS (MAREY_ON_CHECKED | MAREY_ON_NVTX | MAREY_ON_WRAPPER)

/* An id with flags above it. */
typedef uint32_t marey__entry;
enum {
    MAREY__ENTRY_ID = 0xfffff,
    MAREY__ENTRY_WRAPPER = 1 << 20, /* pushed by the range wrapper */
    MAREY__ENTRY_NVTX = 1 << 21,    /* reported to an NVTX tool */
};

struct marey__stack {
    marey__entry *entries; /* owner only; moves under `lock` */
    size_t depth;          /* stored by the owner, loaded by others */
    size_t cap;            /* owner only */
    uint32_t generation;   /* stored by the owner, loaded by others */
    int64_t tid;
    pthread_mutex_t lock;              /* taken by the owner when entries move, and by visitors */
    struct marey__stack *next, **link; /* the registry; guarded by its lock */
};

extern __thread struct marey__stack *marey__stack_self __attribute__((tls_model("initial-exec")));

/* Call after setting a bit of MAREY__STACK_USERS; `before` is the previous enable word. */
void marey__stack_needed(uint32_t before);

/* This thread's stack, emptied if it is older than the current users. On out of memory reports it and returns NULL. */
struct marey__stack *marey__stack_renew(void);
extern uint32_t marey__stack_generation; /* written only by marey__stack_needed. Relaxed */

static inline struct marey__stack *marey__stack_get(void)
{
    struct marey__stack *const stack = marey__stack_self;
    if (MAREY_LIKELY(stack != NULL && stack->generation == __atomic_load_n(&marey__stack_generation,
                                                                           __ATOMIC_RELAXED)))
        return stack;
    return marey__stack_renew();
}

/* Makes room for one more; false on out of memory. */
bool marey__stack_grow(struct marey__stack *stack);

/* On out of memory, which was reported, the entry is dropped. */
static inline void marey__stack_push(marey__entry entry)
{
    struct marey__stack *const stack = marey__stack_get();
    if (MAREY_UNLIKELY(stack == NULL || (stack->depth == stack->cap && !marey__stack_grow(stack))))
        return;
    __atomic_store_n(&stack->entries[stack->depth], entry, __ATOMIC_RELAXED);
    /* Release: pairs with the acquire in visit_stack(). */
    __atomic_store_n(&stack->depth, stack->depth + 1, __ATOMIC_RELEASE);
}

/* Removes the entry at `place`; those above it move down. */
static inline marey__entry marey__stack_remove(struct marey__stack *stack, size_t place)
{
    const marey__entry entry = stack->entries[place];
    const size_t depth = stack->depth - 1;
    for (size_t i = place; i < depth; i++)
        __atomic_store_n(&stack->entries[i], stack->entries[i + 1], __ATOMIC_RELAXED);
    __atomic_store_n(&stack->depth, depth, __ATOMIC_RELAXED);
    return entry;
}

/*
 * Removes the topmost entry with id `id`, else with its name; for 0 the topmost. Returns 0 if there is none: the range
 * began before the stack was needed.
 */
marey__entry marey__stack_take(marey_id id);

/* Calls `visit` for each thread with open ranges: `depth` of them, the outermost `n` in `stack`. Locks are held. */
typedef void marey__stack_visitor(void *ctx, int64_t tid, const marey_id *stack, size_t n,
                                  size_t depth);
void marey__stacks_visit(marey__stack_visitor *visit, void *ctx);

/* The child keeps the stack of the forking thread, because it will end those ranges. */
void marey__stacks_before_fork(void);
void marey__stacks_after_fork(bool in_child);

/* ---- settings of a recording (filled by switchboard/options.c) ---- */

enum marey__pool_place {
    MAREY__POOL_AUTO,
    MAREY__POOL_IN_DIR,
    MAREY__POOL_SHM,
    MAREY__POOL_ANONYMOUS
};

enum { MAREY__INSTRUMENT_SETTINGS_BYTES = 2048 };

struct marey__settings {
    char path[PATH_MAX];
    uint64_t pool_bytes, disk_bytes;
    enum marey_policy policy;
    enum marey_clock clock;
    enum marey__pool_place pool_place;
    bool check_nesting, follow_fork;
    bool nvtx_out;    /* ranges also go to an NVTX tool */
    uint32_t wrapper; /* bits of the enable word for the range wrapper; 0: unchanged */
    const char *role; /* a static string for a process that only measures others and has no rank; else NULL */
    bool by_environment; /* the environment started it: the program's first marey_start() joins it */
    int rank, world_size, local_rank; /* -1: unknown */
    char run_id[64];
    char experiment[64], strategy[64]; /* "": not given */
    /* The settings of each instrument; only the switchboard knows their layout, see marey__settings_of(). */
    uint64_t of_instruments[MAREY__INSTRUMENT_SETTINGS_BYTES / 8];
};

/* ---- identity.c: identity of this process ---- */

/* The launcher's variables, -1 for unset, and which variables they came from. */
struct marey__launch {
    int rank, world_size, local_rank;
    const char *rank_from, *world_from, *local_from; /* names of variables; NULL: none */
};
MAREY_PRIVATE_API void marey__identity_launch(struct marey__launch *out);
/* Variables of launchers with the rank: the first that is a number wins. NULL-terminated. */
MAREY_PRIVATE_API extern const char *const marey__rank_variables[];
/* The launcher's name for the run; false if there is none. */
MAREY_PRIVATE_API bool marey__identity_run_id(char *out, size_t size);
/* Fills the rank, world size, local rank and run id that `s` lacks from the launcher's variables. */
void marey__identity_fill(struct marey__settings *s);
/* The command line of this process in shell syntax: arguments with spaces are quoted. */
MAREY_PRIVATE_API void marey__identity_command(struct marey__buf *out);
/* The host name, with characters that are awkward in file names replaced. */
MAREY_PRIVATE_API void marey__identity_host(char *out, size_t size);
MAREY_PRIVATE_API uint64_t marey__identity_random(void);
/* Field 22 of /proc/PID/stat, 0 if the process is gone. */
uint64_t marey__identity_start_time(int64_t pid);
void marey__identity_boot_id(char *out, size_t size);
uint64_t marey__identity_pid_namespace(void);
/* The version of marey, and the identity of process and machine, for the start of a log. */
MAREY_PRIVATE_API void marey__identity_describe(struct marey__buf *texts);

/* ---- machine.c: properties of the machine, for the log ---- */
void marey__machine_describe(struct marey__buf *texts);
/* The current values of CUDA's variables about visible devices. */
void marey__machine_describe_devices(struct marey__buf *texts);

/* ---- directory.c ---- */
/* Creates the directory of a recording by this process if it does not exist. */
marey_status marey__recording_create_own(const char *path);

/* ---- pack.c: words to bytes ---- */

typedef struct marey__packer marey__packer;
MAREY_PRIVATE_API marey__packer *marey__packer_create(void);
MAREY_PRIVATE_API void marey__packer_destroy(marey__packer *packer);
/* Fills `block` for `n` words (at most MAREY__CHUNK_WORDS). Returns the packed bytes, lent until the next call. */
MAREY_PRIVATE_API const void *marey__pack_words(marey__packer *packer, const uint64_t *words,
                                                size_t n, struct marey__block *block);
/* The content of a chunk, up to the first zero. */
struct marey__extent {
    size_t n_words;
    size_t n_events;     /* a record counts as one, a gap record as none */
    uint64_t last_ticks; /* of the last event, or where the longest GPU activity ends; 0 if empty */
};
MAREY_PRIVATE_API struct marey__extent marey__chunk_extent(const struct marey__chunk_head *chunk);

/* ---- log_write.c: the file ---- */

struct marey__log {
    pthread_mutex_t lock; /* guards everything below, and the order of blocks */
    struct marey__held_file file;
    bool is_created; /* by marey__log_create(), so the file has a name; otherwise it may have none */
    uint64_t size;   /* whole blocks; a failed write is truncated back to it */
    uint64_t last_words_at; /* offset of the last block of words; 0: none can be dropped */
    struct marey__loss_entry last_words; /* the loss if that block is dropped */
    bool is_broken; /* a write failed; nothing more is written. Release; loaded with acquire by any thread */
    char failure[512];          /* the error message; constant once `is_broken` is seen */
    bool *lane_headers_written; /* by lane: its LANE block is in the log. Used by the packer's owner */
    size_t n_lane_headers;
    struct marey__buf sites; /* collected for the next block; both guarded by intern.lock */
    bool is_gathering;
    char path[PATH_MAX];
};

/* Creates NAME in `dir`, locked by flock; sets `log->path`. */
MAREY_PRIVATE_API marey_status marey__log_create(struct marey__log *log, const char *dir,
                                                 const char *name);
/* Opens an existing log for appending, of which `size` bytes are whole. Takes ownership of `fd`. */
MAREY_PRIVATE_API void marey__log_adopt(struct marey__log *log, int fd, uint64_t size);
MAREY_PRIVATE_API void marey__log_close(struct marey__log *log);
/* Any thread. */
MAREY_PRIVATE_API bool marey__log_is_broken(const struct marey__log *log);
MAREY_PRIVATE_API uint64_t marey__log_size(struct marey__log *log);
/* Appends one block; fills in magic, version and crc. Any thread. */
MAREY_PRIVATE_API marey_status marey__log_append(struct marey__log *log, struct marey__block *block,
                                                 const void *bytes, size_t len);
MAREY_PRIVATE_API marey_status marey__log_append_texts(struct marey__log *log,
                                                       enum marey__block_type type,
                                                       const struct marey__buf *texts);
MAREY_PRIVATE_API marey_status marey__log_append_moment(struct marey__log *log, bool is_tsc);
marey_status marey__log_append_lane(struct marey__log *log, const struct marey__chunk_head *chunk);
/* Appends the LANE block of a thread named by the program. */
marey_status marey__log_append_thread(struct marey__log *log, uint32_t lane, int64_t tid);
marey_status marey__log_append_loss(struct marey__log *log, const struct marey__pool_head *pool);
/* True on the first call for `lane`; on out of memory always. */
bool marey__log_lane_is_new(struct marey__log *log, uint32_t lane);
/* Appends the chunk's words, after a LANE block if the log has none yet. MAREY_OK for an empty chunk. */
marey_status marey__log_append_chunk(struct marey__log *log, marey__packer *packer,
                                     const struct marey__chunk_head *chunk, size_t *n_events);
/* Appends a key/value pair in the format of LOG and END blocks. */
MAREY_PRIVATE_API void marey__texts_put(struct marey__buf *texts, const char *key, const char *value);
MAREY_PRIVATE_API void marey__texts_printf(struct marey__buf *texts, const char *key,
                                           const char *fmt, ...) MAREY_PRINTF(3, 4);
/* The END block's description of how the process ended: `how`, or that a write failed, why and when. */
void marey__texts_put_end(struct marey__buf *texts, const char *how,
                          const struct marey__pool_head *pool);
/* Lets the next append write again after a failure. */
void marey__log_try_again(struct marey__log *log);
/*
 * Truncates the log before its last block of words, so that a full disk has room for the END block; `*lost` gets its
 * content. Later blocks go too: they describe words that are no longer in the log. False if there is none, or on error.
 */
bool marey__log_drop_last_words(struct marey__log *log, struct marey__loss_entry *lost);
MAREY_PRIVATE_API void marey__site_put(struct marey__buf *out, const struct marey__site *site);

/* ---- queue.c: a bounded queue of chunk numbers, many writers and readers, no lock ---- */

struct marey__queue_cell {
    uint32_t turn; /* release / acquire */
    uint32_t value;
};
struct marey__queue {
    struct marey__queue_cell *cells;
    uint32_t mask;
    uint32_t head __attribute__((aligned(64))); /* next to take */
    uint32_t tail __attribute__((aligned(64))); /* next to fill */
};
bool marey__queue_init(struct marey__queue *queue, uint32_t n);
void marey__queue_fini(struct marey__queue *queue);
bool marey__queue_put(struct marey__queue *queue, uint32_t value);
bool marey__queue_take(struct marey__queue *queue, uint32_t *value);
uint32_t marey__queue_length(const struct marey__queue *queue);

/* ---- pool.c: the shared mapping and its chunks ---- */

struct marey__pool {
    struct marey__pool_head *head; /* slot 0 of the mapping; release, as a thread that loses an event loads
                                      it with acquire */
    size_t bytes;                  /* of the mapping, which is the budget */
    uint32_t n_max;                /* chunks within the budget */
    struct marey__held_file file; /* none: anonymous */
    char path[PATH_MAX];          /* "" when anonymous */
    uint64_t id;                  /* random; also in the log, to recognize a copy of the log */
    pthread_mutex_t grow_lock;
    struct marey__queue free, full;
};

/* Creates the pool of a log, in zeroed or retired storage; `note` gets a message if the pool will not survive kill -9. */
marey_status marey__pool_create(struct marey__pool *pool, const struct marey__settings *s,
                                const struct marey__log *log, struct marey__buf *note);
/* Allocates chunks unless `enough` are free. False at the budget, on a full disk, or if another thread takes too long. */
bool marey__pool_grow(struct marey__pool *pool, uint32_t enough);
bool marey__pool_can_grow(const struct marey__pool *pool);
struct marey__chunk_head *marey__pool_chunk(const struct marey__pool *pool, uint32_t number);
uint32_t marey__pool_number(const struct marey__pool *pool, const struct marey__chunk_head *chunk);
/* Releases the file. Its addresses are remapped to anonymous memory, for a thread that is just storing a word. */
void marey__pool_retire(struct marey__pool *pool, bool keep_file);
/* An estimate of the events in chunks that wait for the flush thread. */
uint64_t marey__pool_n_events_waiting(const struct marey__pool *pool);

/* ---- lane.c: a thread's place to write ---- */

struct marey__lane {
    uint32_t is_busy; /* an event is being written: one from a signal handler counts as lost. Owner only */
    uint64_t *pos; /* where the next word goes, or NULL. Owner only */
    uint64_t *limit; /* `pos` at or past it takes the slow way. The owner's; others store NULL to make it so */
    uint64_t base_tick; /* of the chunk. Owner only */
    uint64_t *record_end,
        record_tick;     /* end of the last record, or start of the chunk; its tick. Owner only */
    uint64_t floor_tick; /* of the last event in earlier chunks. Owner only */
    struct marey__chunk_head *chunk; /* guarded by `lock` */
    uint32_t generation; /* of the recording that `id` belongs to; written by the owner under `lock` */
    uint32_t id;
    uint32_t next_sequence;
    int64_t tid;
    enum marey_lane_kind kind;
    char name[16]; /* of a lane that does not belong to a thread */
    uint64_t gap_events, gap_first_tick,
        gap_last_tick; /* lost since the last event that was kept. Owner only */
    pthread_mutex_t lock; /* taken by the owner on the slow path, and by the thread that closes the recording */
    struct marey__lane *next, **link; /* the registry; guarded by lanes.lock */
};

extern __thread struct marey__lane *marey__lane_self __attribute__((tls_model("initial-exec")));

/* The slow path: first event, full chunk, ticks past 40 bits, switched off, lost. */
void marey__lane_put_slowly(uint32_t tag);

/* Masked, so that an invalid id cannot change the kind. */
static inline uint32_t marey__tag(enum marey_kind kind, uint32_t id)
{
    return (uint32_t)kind << 20 | (id & 0xfffffu);
}

/*
 * Stores one word at `pos`, which is below the limit, and clears `is_busy`. The zero after the word is stored first, so
 * that a reader of a dead process's chunk sees only whole words up to the first zero.
 */
static inline void marey__lane_store(struct marey__lane *lane, uint64_t *pos, uint64_t word)
{
    __atomic_store_n(&pos[1], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pos[0], word, __ATOMIC_RELEASE); /* meets the acquire in marey__chunk_extent() */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lane->pos = pos + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lane->is_busy = 0;
}

/*
 * Sets `is_busy` before reading the lane: otherwise a signal handler that records in between could move `pos` or give
 * the chunk away. Returns the ticks of the word; 0 if it took the slow path.
 */
static inline uint64_t marey__lane_put_at(uint32_t tag, bool is_tsc)
{
    struct marey__lane *const lane = marey__lane_self;
    if (MAREY_UNLIKELY(lane->is_busy)) {
        marey__lane_put_slowly(tag);
        return 0;
    }
    lane->is_busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t *const pos = lane->pos;
    const uint64_t ticks = marey__clock_ticks_of(is_tsc) - lane->base_tick;
    if (MAREY_UNLIKELY(pos >= __atomic_load_n(&lane->limit, __ATOMIC_RELAXED) || ticks >> 40 != 0)) {
        lane->is_busy = 0;
        marey__lane_put_slowly(tag);
        return 0;
    }
    marey__lane_store(lane, pos, ticks << 24 | tag);
    return lane->base_tick + ticks;
}

/* Not inlined, so that the caller needs no stack frame: rarely called on current machines. */
void marey__lane_put_monotonic(uint32_t tag);

static inline void marey__lane_put(uint32_t tag)
{
    if (MAREY_LIKELY(__atomic_load_n(&marey__clock_is_tsc, __ATOMIC_RELAXED)))
        marey__lane_put_at(tag, true);
    else
        marey__lane_put_monotonic(tag);
}

/* Writes a record of `n` words after its header; `n` at most MAREY__RECORD_WORDS_MAX. */
enum { MAREY__RECORD_WORDS_MAX = 1024 };
void marey__lane_put_record(enum marey_record_type type, const uint64_t *words, size_t n);
/* The same for an event in the past: at `tick`, but not before the lane's last event (lanes are ordered) nor after now. */
void marey__lane_put_record_at(uint64_t tick, enum marey_record_type type, const uint64_t *words,
                               size_t n);

/*
 * While this thread holds a lock of the slow path, its lane is set aside: an event from a signal handler then counts as
 * lost instead of deadlocking. Returns the argument for marey__lane_resume().
 */
struct marey__lane *marey__lane_set_aside(void);
void marey__lane_resume(struct marey__lane *lane);
/* Whether it is set aside: what this thread now allocates belongs to marey. */
bool marey__lane_is_aside(void);
/* Takes every lane's chunk and queues it, when the recording closes. */
void marey__lanes_close(void);
/* The lane number of thread `tid` in the open recording; false if it has none yet. */
bool marey__lanes_find(int64_t tid, uint32_t *number);
void marey__lanes_before_fork(void);
void marey__lanes_after_fork(bool in_child);
/* Words in chunks that threads currently own. */
uint64_t marey__lanes_n_events(void);
/* The cost of one event on this machine, in picoseconds. */
uint64_t marey__lane_measure_cost(void);

/* For side_lane.c. Caller holds the lane's lock, except for the last two. */
bool marey__lane_is_current(const struct marey__lane *lane); /* belongs to the open recording */
void marey__lane_join(struct marey__lane *lane);
bool marey__lane_renew(struct marey__lane *lane, uint64_t base_tick); /* gives it an empty chunk */
void marey__lane_store_record(struct marey__lane *lane, uint64_t tick, enum marey_record_type type,
                              const uint64_t *words, size_t n); /* room is available */
void marey__lane_register(struct marey__lane *lane);
void marey__lane_retire(struct marey__lane *lane); /* queues its chunk and frees it */

/* ---- side_lane.c: a lane that belongs to no thread, such as a stream's; its records carry their own ticks ---- */

/* `name` is copied and truncated to 15 bytes. NULL on out of memory. A forked child must forget its side lanes. */
struct marey__lane *marey__side_lane_open(enum marey_lane_kind kind, int64_t tid, const char *name);
/*
 * Writes a record of `n` words after its header. Ticks must not decrease. Any thread, one at a time per lane; not from
 * a signal handler. False if no recording is open, or the event was lost and counted.
 */
bool marey__side_lane_put(struct marey__lane *lane, uint64_t tick, enum marey_record_type type,
                          const uint64_t *words, size_t n);
void marey__side_lane_close(struct marey__lane *lane);

/* ---- thread_names.c ---- */

enum { MAREY__THREAD_NAME_MAX = 64 };
/* The name from marey_name_thread(), NUL-terminated. Returns its length, 0 for none. */
size_t marey__thread_name(int64_t tid, char into[MAREY__THREAD_NAME_MAX]);
void marey__thread_names_after_fork(void);

/* ---- flush.c: the flush thread ---- */

void marey__flush_start(void);
/* Ends the thread and waits for it. */
void marey__flush_stop(void);
/* Wakes it if it sleeps; starts it if a fork ended it. From any thread on the slow path. */
void marey__flush_nudge(void);
/* Wakes it even without full chunks. From any thread, also within malloc. */
void marey__flush_wake(void);
/*
 * Adds a function that the thread calls whenever it is awake, about every `period_ns`, while a recording is open. It is
 * called without locks and may write events. It cannot be removed; at most two exist, and adding one again is allowed.
 */
void marey__flush_add_visitor(void (*visit)(void), uint64_t period_ns);
/* Writes the queue of full chunks from the calling thread. */
void marey__flush_drain(void);
/* Ends the thread, if it ends soon, and prevents a start until after the fork. */
void marey__flush_before_fork(void);
/* Whether the child's copy of the thread's data is consistent. */
bool marey__flush_after_fork(bool in_child);

/* ---- finalize.c: completes logs of dead processes from their pools ---- */

/* Called with path and name of each finalized file of a recording: removes leftovers of a killed process. */
typedef void marey__finalize_cleaner(const char *path, const char *name);
/* Call from constructors. */
void marey__finalize_add_cleaner(marey__finalize_cleaner *clean);

/* ---- record.c: the recording of this process ---- */

enum marey__record_state {
    MAREY__RECORD_CLOSED,
    MAREY__RECORD_PENDING, /* enabled by the environment or a fork; the first event opens it */
    MAREY__RECORD_OPEN,
};

struct marey__record {
    pthread_mutex_t lock;           /* guards opening and closing */
    enum marey__record_state state; /* written under the lock; others load it with acquire */
    uint32_t generation; /* counts recordings; a lane of an older one attaches anew. Stored under the lock, relaxed */
    int64_t owner; /* the pid that opened it: a child made by a raw clone() must not touch it */
    char path[PATH_MAX]; /* of the open or last recording */
    char versions[256];  /* from marey_set_versions(); guarded by the lock */
    char experiment[64],
        strategy[64]; /* from marey_set_experiment(), for later recordings too; guarded by the lock */
    bool is_rank_set; /* by marey_set_rank(), for this recording and later ones; guarded by the lock */
    int set_rank, set_world_size;
    uint32_t n_worker; /* loader worker number from 1, set by marey_set_worker(); 0: not a worker. Guarded by the lock */
    struct marey__settings settings;
    struct marey__pool pool;
    struct marey__log log;
    marey__packer *packer; /* used by the flush thread, and by the closing thread after that has ended */
    uint32_t next_lane;                      /* incremented atomically */
    uint64_t n_events_flushed, flush_cpu_ns; /* written by the thread that uses the packer */
    bool is_full; /* the disk budget is used up: chunks stay in the pool. Relaxed */
    bool is_closing; /* everything goes to the log now, no flush thread starts. Stored before flush.lock */
    bool has_failed; /* the user was informed that this recording stopped. Relaxed */
    uint32_t nesting_errors;
    uint32_t *n_family_open; /* recordings of this process and its forked children that are open, or were
                                open when their process died. Shared memory, atomic. NULL before the first */
    uint64_t n_lost_last, log_bytes_last; /* of the recording that was closed last */
};
extern struct marey__record marey__record;

/* Opens now, or at the first event. */
marey_status marey__record_open(const struct marey__settings *settings);
/* The default limit for one process's log in the directory `path`: 4 GiB, or a tenth of the free space. */
MAREY_PRIVATE_API uint64_t marey__record_disk_budget(const char *path);
void marey__record_open_later(const struct marey__settings *settings);
/* Opens a pending recording at its first event. Returns false if that failed; the recording is then closed. */
bool marey__record_open_pending(void);
/* `how` goes into the END block. */
marey_status marey__record_close(const char *how);
/* Whether a forked child may have died with its recording open. */
bool marey__record_family_is_open(void);
/* Whether the open recording belongs to another process, which made this one by a raw clone(). */
bool marey__record_is_foreign(void);
/* Counts `n` events lost between two ticks. Any thread, also from a signal handler. */
void marey__record_lost(uint64_t n, uint64_t first_tick, uint64_t last_tick);
/* A write failed: reports it and switches recording off. From any writer. */
void marey__record_failed(const char *why);
/* Writes a key/value pair about the process into the open log; a note for the reader of the recording. */
void marey__record_text(const char *key, const char *value);
void marey__record_note(const char *sentence);
/* Writes the cost of an instrument so far, under a key of log_format.h: from `low_ps` to `high_ps` for each of `n` events. */
void marey__record_cost(const char *key, uint64_t n, uint64_t low_ps, uint64_t high_ps);
void marey__record_before_fork(void);
void marey__record_after_fork(bool in_child);

/* ==== usage ==== */

/*
 * usage: resources used between two timestamps: CPU time of a thread, the process, the process with its descendants,
 * the machine; page faults, context switches, resident memory.
 *
 *     struct marey__usage begin, end, sum = {0};
 *     marey__usage_begin(mask, &begin); ... marey__usage_end(mask, &end);
 *     marey__usage_add(&sum, &begin, &end);
 *     marey__usage_processors(sum.process_cpu_ns, sum.wall_ns)      1.0: one CPU core, fully busy
 *
 * CPU times are kernel counters in nanoseconds, read at the timestamp itself, so that an interval of microseconds is as
 * accurate as one of hours. Only the machine's counter has ticks of 10 ms. Each counter is stored with the time at
 * which it was read; the cost of reading one is not included in the others.
 *
 *   usage.c        reading, adding
 *   usage_tree.c   the descendants of this process and what they have used, including ended ones
 */

#define MAREY__USAGE_ALL                                                                           \
    (MAREY_USAGE_THREAD_CPU | MAREY_USAGE_PROCESS_CPU | MAREY_USAGE_TREE_CPU |                     \
     MAREY_USAGE_MACHINE_CPU | MAREY_USAGE_FAULTS | MAREY_USAGE_RSS)

/* Counters at a timestamp, or sums of differences. Fields outside the mask stay unchanged. */
struct marey__usage {
    uint64_t wall_ns, thread_cpu_ns, process_cpu_ns;
    uint64_t tree_wall_ns, tree_cpu_ns;
    uint64_t machine_wall_ns, machine_cpu_ns;
    uint64_t n_minor_faults, n_major_faults; /* of the thread; a major one waited for a disk */
    uint64_t n_switches,
        n_switches_involuntary; /* of the thread; voluntary switches are not included in involuntary ones */
    int64_t rss_bytes;
};

/* Whether all counters in `mask` are readable: MAREY_EINVAL for unknown bits, MAREY_EUNAVAILABLE. Any thread; about 20 us. */
MAREY_WARN_UNUSED marey_status marey__usage_check(uint32_t mask);

/*
 * Reads the counters at the start or end of an interval: costly ones first at the start and last at the end. An
 * unreadable counter reads 0. Any thread; only the tree takes a lock. Allocates only for a process that is new in the
 * tree. Not for signal handlers.
 */
void marey__usage_begin(uint32_t mask, struct marey__usage *out);
void marey__usage_end(uint32_t mask, struct marey__usage *out);

/* sum += end - begin, per counter; a counter that decreased adds nothing, except rss_bytes, which is signed. */
void marey__usage_add(struct marey__usage *sum, const struct marey__usage *begin,
                      const struct marey__usage *end);
/* sum += other: sums of several threads. */
void marey__usage_merge(struct marey__usage *sum, const struct marey__usage *other);

/* The average number of busy CPU cores; 0 if no time has passed. */
static inline double marey__usage_processors(uint64_t cpu_ns, uint64_t wall_ns)
{
    return wall_ns > 0 ? (double)cpu_ns / (double)wall_ns : 0;
}

/* ---- usage_tree.c ---- */

/*
 * CPU time of this process and its descendants, alive or ended, since they started: a counter that never decreases. The
 * difference of two reads includes descendants that started or ended in between.
 */
uint64_t marey__tree_cpu_ns(void);
/* Parses the last number of /proc/loadavg, or the busy ticks in the first line of /proc/stat; false for other text. */
bool marey__parse_last_pid(const char *text, size_t len, uint64_t *out);
bool marey__parse_machine_ticks(const char *text, size_t len, uint64_t *out);
/* Number of known descendants, for tests. */
size_t marey__tree_n_processes(void);
/* Number of scans of all of /proc, for tests. */
uint64_t marey__tree_n_scans(void);
/* In a forked child, which has no descendants yet, and whose parent's threads may have held the lock. */
void marey__tree_after_fork(void);

#endif
