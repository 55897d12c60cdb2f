/*
 * The bytes of a log and of a pool, shared by the writer (core/record) and the reader (core/read). Little-endian.
 * docs/formats/recording.md describes the same, with an example in bytes. The layouts here never change within a
 * version; new block types and keys may be added, and readers skip unknown ones.
 *
 *   log:   block, block, block, ...           the first is MAREY__BLOCK_LOG
 *   block: struct marey__block, then packed_len bytes, then zeros up to a multiple of 8
 *   pool:  struct marey__pool_head in one chunk-sized slot, then chunks: struct marey__chunk_head and words
 */
#ifndef MAREY_LOG_FORMAT_H
#define MAREY_LOG_FORMAT_H

#include "base/internal.h"

#include <assert.h>
#include <stdint.h>

#define MAREY__BLOCK_MAGIC 0x4b4c424du          /* "MBLK" */
#define MAREY__POOL_MAGIC 0x3130304c4f4f504dull /* "MPOOL001" */
#define MAREY__LOG_VERSION 1

static inline int marey__is_block_magic(uint32_t magic)
{
    return magic == MAREY__BLOCK_MAGIC || magic == MAREY__OLD_BLOCK_MAGIC;
}

static inline int marey__is_pool_magic(uint64_t magic)
{
    return magic == MAREY__POOL_MAGIC || magic == MAREY__OLD_POOL_MAGIC;
}

enum marey__block_type {
    MAREY__BLOCK_LOG =
        1, /* key/value strings about this process; always first, more may follow and override */
    MAREY__BLOCK_SITES = 2, /* sites, each struct marey__site_entry and its strings */
    MAREY__BLOCK_LANE = 3,  /* struct marey__lane_entry: a thread or GPU stream, and its name */
    MAREY__BLOCK_WORDS = 4, /* words of one lane: delta-coded, in byte planes, zstd */
    MAREY__BLOCK_CLOCK = 5, /* struct marey__clock_entry, one or more */
    MAREY__BLOCK_LOSS = 6,  /* struct marey__loss_entry: totals so far; the last one wins */
    MAREY__BLOCK_END = 7, /* key/value strings: how it ended, what it cost; the log is finalized */
    MAREY__BLOCK_CALLS = 8,   /* functions, signatures, paths and their times */
    MAREY__BLOCK_SAMPLES = 9, /* stacks of threads of other processes, with timestamps */
};

enum marey__block_flags {
    MAREY__FLAG_ZSTD = 1u << 0,   /* the payload is a zstd frame of raw_len bytes */
    MAREY__FLAG_PLANES = 1u << 1, /* before compression: words in delta-coded byte planes */
};

/* Larger blocks are damage, not data. */
#define MAREY__BLOCK_MAX (64u << 20)

/* Blocks of calls and samples compress well, but a claimed ratio of thousands is damage. */
static inline int marey__packing_is_sound(uint64_t raw_len, uint64_t packed_len)
{
    return raw_len <= 4096 + 512 * packed_len;
}

struct marey__block {
    uint32_t magic;
    uint8_t type;
    uint8_t version;
    uint16_t flags;
    uint32_t lane;     /* WORDS and LANE; else 0 */
    uint32_t sequence; /* WORDS: the lane's chunks are numbered from 0, SAMPLES: the blocks; a missing
                          number is a gap */
    uint32_t raw_len;    /* bytes after unpacking */
    uint32_t packed_len; /* bytes that follow */
    uint64_t first_tick; /* WORDS: the chunk's base, to which the words' ticks are relative */
    uint64_t last_tick;
    uint32_t n_events; /* WORDS: a record counts as one; 0: not counted. Else 0 */
    uint32_t crc;      /* CRC-32C of this header with crc 0, then of the packed bytes */
};
static_assert(sizeof(struct marey__block) == 48, "on disk");

/* Key/value strings: u32 key length, u32 value length, key, value; no terminators, repeated to the end. */

struct marey__site_entry {
    uint32_t id;
    uint32_t line;
    uint32_t color;
    uint32_t name_len, category_len, domain_len,
        file_len; /* the strings follow in this order, then zeros to a multiple of 4 */
};
static_assert(sizeof(struct marey__site_entry) == 28, "on disk");

struct marey__lane_entry {
    int64_t tid;   /* of a GPU stream: the device in the upper 32 bits, the stream in the lower */
    uint32_t kind; /* enum marey_lane_kind */
    uint32_t name_len; /* the name follows */
};
static_assert(sizeof(struct marey__lane_entry) == 16, "on disk");

/* A clock sample. The tick was read between two monotonic reads `width_ns` apart. */
struct marey__clock_entry {
    uint64_t tick;
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
    uint64_t width_ns;
};
static_assert(sizeof(struct marey__clock_entry) == 32, "on disk");

struct marey__loss_entry {
    uint64_t n_events;
    uint64_t first_tick, last_tick;
};
static_assert(sizeof(struct marey__loss_entry) == 24, "on disk");

/* ---- the pool ---- */

#define MAREY__CHUNK_BYTES (32u << 10)
#define MAREY__CHUNK_HEAD_BYTES 128u
#define MAREY__CHUNK_WORDS ((MAREY__CHUNK_BYTES - MAREY__CHUNK_HEAD_BYTES) / 8)

enum marey__chunk_state {
    MAREY__CHUNK_FREE = 0,
    MAREY__CHUNK_OWNED = 1, /* a thread writes into it, or did so when the process died */
    MAREY__CHUNK_FULL = 2,  /* waits for the flush thread */
};

/*
 * Words end at the first zero word: a writer stores a zero after an event before it stores the event, so a chunk needs
 * no length and no clearing. A record's header is stored last.
 */
struct marey__chunk_head {
    uint32_t state; /* written with release; a chunk whose words are in the log is FREE */
    uint32_t lane;
    uint32_t sequence;
    uint32_t kind; /* enum marey_lane_kind; the next two as in a LANE block */
    uint64_t base_tick;
    int64_t tid;
    char thread_name[16];
    uint8_t pad[MAREY__CHUNK_HEAD_BYTES - 48];
};
static_assert(sizeof(struct marey__chunk_head) == MAREY__CHUNK_HEAD_BYTES, "shared layout");

struct marey__pool_head {
    uint64_t magic;
    uint32_t version;
    uint32_t chunk_bytes;
    uint32_t n_chunks;  /* slots in use so far, without this head's slot; only grows */
    uint32_t is_broken; /* non-zero: the log is incomplete; the words here are missing there */
    uint64_t n_lost;    /* all updated by threads that lose events */
    uint64_t lost_first_tick, lost_last_tick;
    uint64_t id; /* as in the log; 0: made before there was one. It and the next have been 0 before */
    uint64_t log_inode;   /* of the log, which distinguishes it from its copies */
    uint64_t broken_tick; /* when it broke; later events are lost. 0: unknown */
    char failure[512];    /* why, as a sentence */
};
static_assert(sizeof(struct marey__pool_head) <= MAREY__CHUNK_BYTES, "shared layout");

/* Keys of LOG and END blocks. */
#define MAREY__KEY_PID "pid"
#define MAREY__KEY_PPID "ppid"
#define MAREY__KEY_RANK "rank"
#define MAREY__KEY_WORLD "world_size"
#define MAREY__KEY_LOCAL_RANK "local_rank"
#define MAREY__KEY_WORKER                                                                          \
    "worker" /* worker number of a data loader, from 0; absent or negative: none */
#define MAREY__KEY_HOST "host"
#define MAREY__KEY_COMMAND "command" /* in shell syntax: arguments with spaces are quoted */
#define MAREY__KEY_RUN_ID "run_id"
#define MAREY__KEY_VERSION "version" /* of the library that wrote the log */
#define MAREY__KEY_CLOCK "clock"     /* tsc, monotonic */
#define MAREY__KEY_TICK_HZ "tick_hz" /* a first guess; the CLOCK blocks decide */
#define MAREY__KEY_EVENT_COST "event_cost_ps"
/* The cost of an instrument so far: COUNT LOW_PS HIGH_PS (picoseconds per event), or "unknown". */
#define MAREY__KEY_GPU_COST "gpu_cost"       /* calls of CUDA */
#define MAREY__KEY_CALLS_COST "calls_cost"   /* calls of Python */
#define MAREY__KEY_MEMORY_COST "memory_cost" /* allocations */
#define MAREY__COST_UNKNOWN "unknown"
#define MAREY__KEY_POOL "pool" /* path of the pool, "" for anonymous memory */
#define MAREY__KEY_POOL_ID                                                                         \
    "pool_id" /* of that pool, in hexadecimal; absent in logs of earlier versions */
#define MAREY__KEY_POLICY "policy"
#define MAREY__KEY_BOOT_ID "boot_id"
#define MAREY__KEY_PID_NS "pid_ns"
#define MAREY__KEY_START_TIME "pid_start_time" /* field 22 of /proc/PID/stat */
#define MAREY__KEY_CPU "cpu"           /* model; this and the next five may be missing or empty */
#define MAREY__KEY_CPUS "cpus"         /* CPU cores that the process may use */
#define MAREY__KEY_GOVERNOR "governor" /* of the first CPU core */
#define MAREY__KEY_GPU "gpu"           /* models of NVIDIA GPUs */
#define MAREY__KEY_KERNEL "kernel"
#define MAREY__KEY_VERSIONS                                                                        \
    "versions" /* versions of libraries, as given by the program; the last one wins */
#define MAREY__KEY_EXPERIMENT                                                                      \
    "experiment" /* what is compared, "mnist"; this and the next may be missing, the last one wins */
#define MAREY__KEY_STRATEGY "strategy" /* how the training is distributed, "torch-ddp" */
#define MAREY__KEY_LOAD "load_percent" /* of the last minute, times 100 */
#define MAREY__KEY_STEPS "steps"       /* how steps are found; the last one wins */
#define MAREY__KEY_NOTE "note"         /* a sentence; may be repeated */
#define MAREY__KEY_END "end" /* stop, exit, unclosed (killed, or left by _exit), write failed */
#define MAREY__KEY_FAILURE "failure"         /* after a failed write: why, a sentence */
#define MAREY__KEY_FAILED_TICK "failed_tick" /* and when: later events are lost. Absent: unknown */
#define MAREY__KEY_SOURCE "source"           /* an imported file: its format */
#define MAREY__KEY_EVENTS                                                                          \
    "events" /* an imported file: its number of events, if it has fewer than words */
#define MAREY__KEY_BACKEND "backend" /* of communication between ranks */
#define MAREY__KEY_DEVICES                                                                         \
    "devices" /* UUIDs of the CUDA devices of the process, in CUDA's order, comma-separated */
#define MAREY__KEY_ROLE "role" /* "energy", "sampler", "run": the process only measures */
#define MAREY__ROLE_RUN "run"
#define MAREY__KEY_WALL "wall_ns" /* of a run: from its start to its end */
#define MAREY__KEY_RUN_CPU                                                                         \
    "cpu_ns" /* of a run: user and system time of the program and the descendants it waited for */
#define MAREY__KEY_EXIT "exit_status" /* of a run: "0" to "255", or "signal 9" */
#define MAREY__ROLE_SAMPLER "sampler"
#define MAREY__KEY_SAMPLING                                                                        \
    "sampling" /* how the sampler works, lines KEY=VALUE: rate, strategy, native, seed */
#define MAREY__KEY_ENERGY_SOURCES                                                                  \
    "energy_sources" /* a line per device: what is read, how often it changes, what is missing */
#define MAREY__KEY_FLUSH_CPU "flush_cpu_ns"
#define MAREY__KEY_VISIBLE "cuda_visible_devices" /* the variable of that name; absent: not set */
#define MAREY__KEY_DEVICE_ORDER "cuda_device_order"
#define MAREY__KEY_GPUS                                                                            \
    "gpus" /* of the machine, a line each, separated by tabs: UUID, model, MIG slices */
#define MAREY__KEY_MEMORY                                                                          \
    "memory" /* how memory is measured, lines KEY=VALUE: malloc, python (yes, or why not), interval */
#define MAREY__KEY_MEMORY_COUNTS                                                                   \
    "memory_counts" /* what came of it, the same: told, dropped, unfollowed, ticks, last_interval */
#define MAREY__KEY_ENERGY_CPU "energy_cpu_ns" /* CPU time of the energy thread */

#endif
