/*
 * record: one recording per process, from a thread's event to bytes in a log that survives kill -9.
 *
 *   thread -- lane --> chunk of the pool (a shared file mapping) --full--> flush thread -- pack --> log file
 *                          ^------------------- free ------------------------'
 *
 * A lane is a thread's place to write: it owns one chunk at a time and stores 8-byte words into it, with no lock and no
 * atomic read-modify-write. Full chunks go through a queue to the flush thread, which packs them, appends them to the
 * log and gives them back. The pool belongs to the kernel as much as to us: when the process dies, whoever opens the
 * recording next finds the last chunks there and seals the log with them (seal.c).
 *
 * Locks, outermost first: record.lock (open and close) > flush.lock (its thread) > lanes.lock (the registry) > a lane's
 * lock (its chunk) > intern.lock > log.lock (the file). A fork takes all but the lanes' own and the last.
 */
#ifndef KYMO_RECORD_INTERNAL_H
#define KYMO_RECORD_INTERNAL_H

#include <limits.h>
#include <pthread.h>

#include "base/base_internal.h"
#include "clock/clock_internal.h"
#include "intern/intern_internal.h"
#include "record/log_format.h"
#include "stack/stack_internal.h"
#include <kymo/recording.h>
#include <kymo/switchboard.h>

/* ---- what a recording is opened with (switchboard/options.c fills it) ---- */

enum kymo__pool_place { KYMO__POOL_AUTO, KYMO__POOL_IN_DIR, KYMO__POOL_SHM, KYMO__POOL_ANONYMOUS };

struct kymo__settings {
    char path[PATH_MAX];
    uint64_t pool_bytes, disk_bytes;
    enum kymo_policy policy;
    enum kymo_clock clock;
    enum kymo__pool_place pool_place;
    bool check_nesting, follow_fork;
    bool nvtx_out;    /* ranges also go to an NVTX tool */
    uint32_t wrapper; /* bits of the enable word for the range wrapper; 0: it stays as it is */
    bool has_warmup;  /* the first `warmup` iterations are marked */
    uint64_t warmup;
    struct kymo__stopwatch_settings {
        bool is_wanted; /* any of these was given: it is switched on */
        bool has_warmup, has_print_every, has_gpu;
        uint64_t warmup, print_every;
        int gpu; /* enum kymo_stopwatch_gpu */
    } stopwatch;
    struct kymo__dump_settings {
        uint32_t given; /* KYMO__GIVEN_… of the fields that follow; not 0: the dumper is switched on */
        int layout, mode, policy; /* as the enums of <kymo/dump.h> */
        uint64_t memory_bytes, disk_bytes, first, last, every, flight_steps;
        bool durable;
        char dir[512];
    } dump;
    struct kymo__gpu_settings {
        bool is_wanted;                        /* GPU work is recorded */
        bool syncs;                            /* and streams that wait */
        uint32_t wait, warmup, active, repeat; /* iterations; `active` 0: all of them */
    } gpu;
    struct kymo__energy_settings {
        bool is_wanted;
        uint32_t hz; /* power readings a second; 0: the default */
    } energy;
    struct kymo__memory_settings {
        bool is_wanted;
        uint64_t interval; /* bytes between two samples; 0: the default, which may grow */
    } memory;
    struct kymo__calls_settings {
        bool is_wanted, no_builtins;
        int signatures; /* a level, 0 to 4; -1: the default */
        uint64_t memory_bytes;
        char modules[512]; /* names with ':' between; "": all */
    } calls;
    const char *role; /* a static text for a process that only measures others: it has no rank; else NULL */
    bool by_environment; /* KYMO started it: the program's own first kymo_start() joins it */
    int rank, world_size, local_rank; /* -1: unknown */
    char run_id[64];
    char experiment[64], strategy[64]; /* "": not said */
};

enum {
    KYMO__GIVEN_DIR = 1 << 0,
    KYMO__GIVEN_LAYOUT = 1 << 1,
    KYMO__GIVEN_MODE = 1 << 2,
    KYMO__GIVEN_POLICY = 1 << 3,
    KYMO__GIVEN_MEMORY = 1 << 4,
    KYMO__GIVEN_DISK = 1 << 5,
    KYMO__GIVEN_FIRST = 1 << 6,
    KYMO__GIVEN_LAST = 1 << 7,
    KYMO__GIVEN_EVERY = 1 << 8,
    KYMO__GIVEN_FLIGHT = 1 << 9,
    KYMO__GIVEN_DURABLE = 1 << 10,
};

/* ---- identity.c: who this process is ---- */

/* What the launcher's variables say, -1 for nothing, and which of them said it. */
struct kymo__launch {
    int rank, world_size, local_rank;
    const char *rank_from, *world_from, *local_from; /* names of variables; NULL: none */
};
KYMO_PRIVATE_API void kymo__identity_launch(struct kymo__launch *out);
/* Where launchers put the rank: the first that is a number counts. NULL ends it. */
KYMO_PRIVATE_API extern const char *const kymo__rank_variables[];
/* The launcher's name for the run; false when it gives none. */
KYMO_PRIVATE_API bool kymo__identity_run_id(char *out, size_t size);
/* Fill rank, world size, local rank and run id from the launcher's variables where `s` does not have them. */
void kymo__identity_fill(struct kymo__settings *s);
/* The command line of this process as a shell would take it: arguments with spaces in quotes. */
KYMO_PRIVATE_API void kymo__identity_command(struct kymo__buf *out);
/* The host's name, letters that are awkward in file names replaced. */
KYMO_PRIVATE_API void kymo__identity_host(char *out, size_t size);
KYMO_PRIVATE_API uint64_t kymo__identity_random(void);
/* Of process `pid`: field 22 of /proc/PID/stat, 0 when it is gone. */
KYMO_PRIVATE_API uint64_t kymo__identity_start_time(int64_t pid);
KYMO_PRIVATE_API void kymo__identity_boot_id(char *out, size_t size);
KYMO_PRIVATE_API uint64_t kymo__identity_pid_namespace(void);
/* The version of kymo, and which process of which machine this is, for the start of a log. */
void kymo__identity_describe(struct kymo__buf *texts);

/* ---- machine.c: what its figures depend on; texts of the log ---- */
void kymo__machine_describe(struct kymo__buf *texts);
/* What CUDA's variables say now about the devices that the process may use. */
void kymo__machine_describe_devices(struct kymo__buf *texts);

/* ---- directory.c ---- */
/* Create the directory of a recording by this process, if it is not there. */
kymo_status kymo__recording_create_own(const char *path);

/* ---- pack.c: words to bytes ---- */

typedef struct kymo__packer kymo__packer;
KYMO_PRIVATE_API kymo__packer *kymo__packer_create(void);
KYMO_PRIVATE_API void kymo__packer_destroy(kymo__packer *packer);
/*
 * Fill `block` (lengths and flags) for `n` words and return their packed bytes, lent until the next call; at most
 * KYMO__CHUNK_WORDS words.
 */
KYMO_PRIVATE_API const void *kymo__pack_words(kymo__packer *packer, const uint64_t *words, size_t n,
                                              struct kymo__block *block);
/* What a chunk holds, up to the first zero. */
struct kymo__extent {
    size_t n_words;
    size_t n_events; /* a record is one, and one that tells of a gap is none */
    uint64_t last_ticks; /* of the last event, or where the longest work of a stream ends; 0 without any */
};
struct kymo__extent kymo__chunk_extent(const struct kymo__chunk_head *chunk);

/* ---- log_write.c: the file ---- */

struct kymo__log {
    pthread_mutex_t lock; /* guards everything below, and the order of blocks */
    struct kymo__held_file file;
    bool is_created; /* by kymo__log_create(), so the file has a name; else it may have none */
    uint64_t size;   /* of whole blocks; the file is cut back to it when a write fails */
    uint64_t last_words_at; /* where the last block of words begins; 0: none can be given up */
    struct kymo__loss_entry last_words; /* what is lost without it */
    bool is_broken; /* a write failed; nothing more is written. Release; loaded anywhere with acquire */
    char failure[512]; /* the sentence of that write; stands still once `is_broken` is seen */
    bool *lanes_told;  /* by lane: its thread's block is in the log. Of whoever has the packer */
    size_t n_lanes_told;
    struct kymo__buf sites; /* gathered for the next block; these two are guarded by intern.lock */
    bool is_gathering;
    char path[PATH_MAX];
};

/* Create NAME in `dir`, locked by flock; the path is in `log->path`. */
KYMO_PRIVATE_API kymo_status kymo__log_create(struct kymo__log *log, const char *dir,
                                              const char *name);
/* Open an existing log to add to it, `size` bytes being whole. Takes `fd`. */
KYMO_PRIVATE_API void kymo__log_adopt(struct kymo__log *log, int fd, uint64_t size);
KYMO_PRIVATE_API void kymo__log_close(struct kymo__log *log);
/* Any thread. */
KYMO_PRIVATE_API bool kymo__log_is_broken(const struct kymo__log *log);
KYMO_PRIVATE_API uint64_t kymo__log_size(struct kymo__log *log);
/* Append one block; fills magic, version and crc. Any thread. */
KYMO_PRIVATE_API kymo_status kymo__log_append(struct kymo__log *log, struct kymo__block *block,
                                              const void *bytes, size_t len);
KYMO_PRIVATE_API kymo_status kymo__log_append_texts(struct kymo__log *log, enum kymo__block_type type,
                                                    const struct kymo__buf *texts);
KYMO_PRIVATE_API kymo_status kymo__log_append_moment(struct kymo__log *log, bool is_tsc);
kymo_status kymo__log_append_lane(struct kymo__log *log, const struct kymo__chunk_head *chunk);
/* The block of a thread that the program has named, with that name. */
kymo_status kymo__log_append_thread(struct kymo__log *log, uint32_t lane, int64_t tid);
kymo_status kymo__log_append_loss(struct kymo__log *log, const struct kymo__pool_head *pool);
/* Whether nobody has asked about `lane` before; when memory is out, always. */
bool kymo__log_lane_is_new(struct kymo__log *log, uint32_t lane);
/* The chunk's words, behind a block for its thread if the log has none yet. KYMO_OK for an empty one. */
kymo_status kymo__log_append_chunk(struct kymo__log *log, kymo__packer *packer,
                                   const struct kymo__chunk_head *chunk, size_t *n_events);
/* Key/value texts, as LOG and END blocks hold them. */
KYMO_PRIVATE_API void kymo__texts_put(struct kymo__buf *texts, const char *key, const char *value);
KYMO_PRIVATE_API void kymo__texts_printf(struct kymo__buf *texts, const char *key, const char *fmt,
                                         ...) KYMO_PRINTF(3, 4);
/* How the process ended, as an END block has it: `how`, or that a write failed, why and when. */
void kymo__texts_put_end(struct kymo__buf *texts, const char *how,
                         const struct kymo__pool_head *pool);
/* Let the next append write, although an earlier one failed. */
void kymo__log_try_again(struct kymo__log *log);
/*
 * Cut the log off before its last block of words, so that a full disk has room for an ending; `*lost` is what was in the
 * block. Later blocks go too: they describe words that are not in the log. False where there is none, or on error.
 */
bool kymo__log_drop_last_words(struct kymo__log *log, struct kymo__loss_entry *lost);
void kymo__site_put(struct kymo__buf *out, const struct kymo__site *site);

/* ---- queue.c: a bounded queue of chunk numbers, many writers and readers, no lock ---- */

struct kymo__queue_cell {
    uint32_t turn; /* whose turn this cell is: release / acquire */
    uint32_t value;
};
struct kymo__queue {
    struct kymo__queue_cell *cells;
    uint32_t mask;
    uint32_t head __attribute__((aligned(64))); /* next to take */
    uint32_t tail __attribute__((aligned(64))); /* next to fill */
};
bool kymo__queue_init(struct kymo__queue *queue, uint32_t n);
void kymo__queue_fini(struct kymo__queue *queue);
bool kymo__queue_put(struct kymo__queue *queue, uint32_t value);
bool kymo__queue_take(struct kymo__queue *queue, uint32_t *value);
uint32_t kymo__queue_length(const struct kymo__queue *queue);

/* ---- pool.c: the shared mapping and its chunks ---- */

struct kymo__pool {
    struct kymo__pool_head *head; /* slot 0 of the mapping; release, as whoever loses an event loads it with acquire */
    size_t bytes;                /* of the mapping, which is the budget */
    uint32_t n_max;              /* chunks the budget allows */
    struct kymo__held_file file; /* none: anonymous */
    char path[PATH_MAX];         /* "" when anonymous */
    uint64_t id;                 /* random; also in the log, to recognize a copy of the log */
    pthread_mutex_t grow_lock;
    struct kymo__queue free, full;
};

/* Make the pool of a log, in zeroed or retired storage; `note` gets a sentence when it could not be made safe against kill -9. */
kymo_status kymo__pool_create(struct kymo__pool *pool, const struct kymo__settings *s,
                              const struct kymo__log *log, struct kymo__buf *note);
/*
 * Allocate some more chunks unless `enough` are free by now; false at the budget, when the file system is full, or when
 * another thread is at it for too long.
 */
bool kymo__pool_grow(struct kymo__pool *pool, uint32_t enough);
bool kymo__pool_can_grow(const struct kymo__pool *pool);
struct kymo__chunk_head *kymo__pool_chunk(const struct kymo__pool *pool, uint32_t number);
uint32_t kymo__pool_number(const struct kymo__pool *pool, const struct kymo__chunk_head *chunk);
/*
 * Drop the file. The addresses stay mapped, to anonymous memory: a thread that was just storing a word when the
 * recording stopped must not fault.
 */
void kymo__pool_retire(struct kymo__pool *pool, bool keep_file);
/* Events in chunks that wait for the flush thread, as far as can be seen from beside. */
uint64_t kymo__pool_n_events_waiting(const struct kymo__pool *pool);

/* ---- lane.c: a thread's place to write ---- */

struct kymo__lane {
    uint32_t is_busy; /* an event is being written: one from a signal handler is counted as lost. The owner's */
    uint64_t *pos; /* where the next word goes; NULL: nowhere. The owner's */
    uint64_t *limit; /* `pos` at or past it takes the slow way. The owner's; others store NULL to make it so */
    uint64_t base_tick; /* of the chunk. The owner's */
    uint64_t *record_end,
        record_tick; /* where the last record ends, or the chunk begins; its tick. The owner's */
    uint64_t floor_tick;            /* of the last event in the chunks before. The owner's */
    struct kymo__chunk_head *chunk; /* guarded by `lock` */
    uint32_t generation; /* of the recording that `id` belongs to; written by the owner under `lock` */
    uint32_t id;
    uint32_t next_sequence;
    int64_t tid;
    enum kymo_lane_kind kind;
    char name[16]; /* of a lane that is no thread's */
    uint64_t gap_events, gap_first_tick,
        gap_last_tick;    /* lost since the last event that was kept. The owner's */
    pthread_mutex_t lock; /* the owner on the slow way, and whoever closes the recording */
    struct kymo__lane *next, **link; /* the registry; guarded by lanes.lock */
};

extern __thread struct kymo__lane *kymo__lane_self __attribute__((tls_model("initial-exec")));

/* Everything that is not the quick case: first event, full chunk, ticks past 40 bits, switched off, lost. */
void kymo__lane_put_slowly(uint32_t tag);

/* An id that nobody gave must not become another kind. */
static inline uint32_t kymo__tag(enum kymo_kind kind, uint32_t id)
{
    return (uint32_t)kind << 20 | (id & 0xfffffu);
}

/*
 * Store one word at `pos`, which is below the limit; the lane is busy and is no longer so afterwards. The zero behind
 * the word is stored first, so that whoever reads a dead process's chunk up to the first zero sees whole words only.
 */
static inline void kymo__lane_store(struct kymo__lane *lane, uint64_t *pos, uint64_t word)
{
    __atomic_store_n(&pos[1], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pos[0], word, __ATOMIC_RELEASE); /* meets the acquire in kymo__chunk_extent() */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lane->pos = pos + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lane->is_busy = 0;
}

/*
 * The lane is busy before anything of it is read: a signal handler that records in between would move `pos`, or even
 * give the chunk away, behind our back. Returns the ticks of the word; 0 when it took the slow way.
 */
static inline uint64_t kymo__lane_put_at(uint32_t tag, bool is_tsc)
{
    struct kymo__lane *const lane = kymo__lane_self;
    if (KYMO_UNLIKELY(lane->is_busy)) {
        kymo__lane_put_slowly(tag);
        return 0;
    }
    lane->is_busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t *const pos = lane->pos;
    const uint64_t ticks = kymo__clock_ticks_of(is_tsc) - lane->base_tick;
    if (KYMO_UNLIKELY(pos >= __atomic_load_n(&lane->limit, __ATOMIC_RELAXED) || ticks >> 40 != 0)) {
        lane->is_busy = 0;
        kymo__lane_put_slowly(tag);
        return 0;
    }
    kymo__lane_store(lane, pos, ticks << 24 | tag);
    return lane->base_tick + ticks;
}

/* Out of line, so that the caller needs no stack frame: on the machines people have, it is never called. */
void kymo__lane_put_monotonic(uint32_t tag);

static inline void kymo__lane_put(uint32_t tag)
{
    if (KYMO_LIKELY(__atomic_load_n(&kymo__clock_is_tsc, __ATOMIC_RELAXED)))
        kymo__lane_put_at(tag, true);
    else
        kymo__lane_put_monotonic(tag);
}

/* A record of `n` words behind its header; `n` at most KYMO__RECORD_WORDS_MAX. */
enum { KYMO__RECORD_WORDS_MAX = 1024 };
void kymo__lane_put_record(enum kymo_record_type type, const uint64_t *words, size_t n);
/* One of the past: at `tick`, but not before the lane's last event and not after now, as lanes are in order of time. */
void kymo__lane_put_record_at(uint64_t tick, enum kymo_record_type type, const uint64_t *words,
                              size_t n);

/* This thread's lane while a recording takes events, attached if need be; else NULL. */
struct kymo__lane *kymo__lane_get(void);
/*
 * While this thread holds a lock that the slow way takes, its lane is set aside: an event from a signal handler is then
 * counted as lost rather than waiting for the thread it interrupted. Returns what to give to kymo__lane_resume().
 */
struct kymo__lane *kymo__lane_set_aside(void);
void kymo__lane_resume(struct kymo__lane *lane);
/* Whether it is: what this thread allocates now is kymo's own. */
bool kymo__lane_is_aside(void);
/* Take every lane's chunk away and queue it: the recording is closing. */
void kymo__lanes_close(void);
/* The number that thread `tid` has in the open recording; false: none yet. */
bool kymo__lanes_find(int64_t tid, uint32_t *number);
void kymo__lanes_before_fork(void);
void kymo__lanes_after_fork(bool in_child);
/* Words in chunks that threads own right now. */
uint64_t kymo__lanes_n_events(void);
/* Picoseconds that one event costs here and now. */
uint64_t kymo__lane_measure_cost(void);

/* What side_lane.c needs of lane.c. The lane's lock is held, but for the last two. */
bool kymo__lane_is_current(const struct kymo__lane *lane); /* of the recording that is open */
void kymo__lane_join(struct kymo__lane *lane);
bool kymo__lane_renew(struct kymo__lane *lane, uint64_t base_tick); /* an empty chunk under it */
void kymo__lane_store_record(struct kymo__lane *lane, uint64_t tick, enum kymo_record_type type,
                             const uint64_t *words, size_t n); /* there is room */
void kymo__lane_register(struct kymo__lane *lane);
void kymo__lane_retire(struct kymo__lane *lane); /* what it holds goes to the log; it is freed */

/* ---- side_lane.c: a lane that is no thread's, such as a stream's; its records carry their own ticks ---- */

/* `name` (copied) is cut to 15 bytes. NULL without memory. A forked child's copies are gone: it must forget them. */
struct kymo__lane *kymo__side_lane_open(enum kymo_lane_kind kind, int64_t tid, const char *name);
/*
 * Write a record of `n` words behind its header. Ticks must not go back. Any thread, one at a time for each lane; not
 * from a signal handler. False when it is not taken: no recording is open, or the event was lost and counted.
 */
bool kymo__side_lane_put(struct kymo__lane *lane, uint64_t tick, enum kymo_record_type type,
                         const uint64_t *words, size_t n);
void kymo__side_lane_close(struct kymo__lane *lane);

/* ---- thread_names.c ---- */

enum { KYMO__THREAD_NAME_MAX = 64 };
/* What kymo_name_thread() called the thread, NUL-terminated; its length, 0 for nothing. */
size_t kymo__thread_name(int64_t tid, char into[KYMO__THREAD_NAME_MAX]);
void kymo__thread_names_after_fork(void);

/* ---- flush.c: the thread that writes ---- */

void kymo__flush_start(void);
/* Ask it to end and wait until it has. */
void kymo__flush_stop(void);
/* Wake it if it sleeps; start it if a fork parked it. From any thread on the slow way. */
void kymo__flush_nudge(void);
/* Wake it, whether there are chunks or not. From any thread, also within malloc. */
void kymo__flush_wake(void);
/*
 * A function that the thread calls whenever it is awake, and that is about every `period_ns`, while a recording is open. It
 * is called without a lock, and may write events. It stays; there are two of them at most, each added once or more.
 */
void kymo__flush_add_visitor(void (*visit)(void), uint64_t period_ns);
/* Write what is in the queue of full chunks, in this thread. */
void kymo__flush_drain(void);
/* End the thread, if it is quick about it, and let none start until after the fork. */
void kymo__flush_before_fork(void);
/* Whether the child's copy of what the thread worked with is whole. */
bool kymo__flush_after_fork(bool in_child);

/* ---- record.c: the recording of this process ---- */

enum kymo__record_state {
    KYMO__RECORD_CLOSED,
    KYMO__RECORD_PENDING, /* switched on by the environment or a fork; the first event opens it */
    KYMO__RECORD_OPEN,
};

struct kymo__record {
    pthread_mutex_t lock;          /* guards opening and closing */
    enum kymo__record_state state; /* written under the lock; others load it with acquire */
    uint32_t generation; /* counts recordings; a lane of an older one attaches anew. Stored under the lock, relaxed */
    int64_t owner; /* the pid that opened it: a child made by a raw clone() must keep its hands off */
    char path[PATH_MAX]; /* of the recording that is open or was last */
    char versions[256];  /* as kymo_set_versions() told; guarded by the lock */
    char experiment[64],
        strategy[64]; /* as kymo_set_experiment() told, for later recordings too; by the lock */
    bool is_rank_told; /* by kymo_set_rank(), for this recording and later ones; guarded by the lock */
    int told_rank, told_world_size;
    uint32_t n_worker; /* which worker of a loader this is, from 1, as kymo_set_worker() told; 0: none. By the lock */
    struct kymo__settings settings;
    struct kymo__pool pool;
    struct kymo__log log;
    kymo__packer *packer; /* the flush thread's, or the closing thread's once that has ended */
    uint32_t next_lane;   /* taken atomically */
    uint64_t n_events_flushed, flush_cpu_ns; /* written by the thread that has the packer */
    bool is_full; /* the disk budget is spent: chunks stay in the pool. Relaxed */
    bool is_closing; /* everything goes to the log now, and no flush thread starts. Stored before flush.lock */
    bool has_failed; /* the user was told that this recording stopped. Relaxed */
    uint32_t nesting_errors;
    uint32_t *n_family_open; /* recordings that are open, or were when their process died, of this process and of those
                                it forked: shared memory, atomic. NULL before the first */
    uint64_t n_lost_last, log_bytes_last; /* of the recording that was closed last */
};
extern struct kymo__record kymo__record;

/* Open now, or at the first event. */
kymo_status kymo__record_open(const struct kymo__settings *settings);
/* What one process's log in the directory `path` may take when no option says: 4 GiB, or a tenth of what is free. */
KYMO_PRIVATE_API uint64_t kymo__record_disk_budget(const char *path);
void kymo__record_open_later(const struct kymo__settings *settings);
/* At the first event of a pending recording; false when it could not be opened (it is then closed). */
bool kymo__record_open_pending(void);
/* `how` is what the END block says. */
kymo_status kymo__record_close(const char *how);
/* Whether a process that this one forked may have died with its recording open. */
bool kymo__record_family_is_open(void);
/* Whether the open recording is another process's: a raw clone() made this one. */
bool kymo__record_is_foreign(void);
/* Count `n` events lost between two ticks. Any thread, also from a signal handler. */
void kymo__record_lost(uint64_t n, uint64_t first_tick, uint64_t last_tick);
/* A write failed: say so, switch off. From whoever writes. */
void kymo__record_failed(const char *why);
/* A text about the process, into the log that is open; a sentence for the reader of the recording. */
void kymo__record_text(const char *key, const char *value);
void kymo__record_note(const char *sentence);
/* What an instrument has cost the program so far, by a key of log_format.h: between two costs for each of `n`. */
void kymo__record_cost(const char *key, uint64_t n, uint64_t low_ps, uint64_t high_ps);
void kymo__record_before_fork(void);
void kymo__record_after_fork(bool in_child);

#endif
