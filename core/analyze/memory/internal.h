/*
 * memory: allocations by time and place, live memory, leaks.
 *
 *   memory_recording.c   recordings: samples, resident memory, phases, iterations
 *   memory_cuda.c        recordings: CUDA memory from CUPTI
 *   memory_trace.c       traces of torch.profiler: their [memory] events
 *   memory_snapshot.c    snapshots of torch's CUDA allocator, a pickle
 *        |
 *   a pool: blocks with start, end, bytes and a stack
 *        |
 *   memory_where.c, memory_peak.c, memory_growth.c   by stack, at the peak, over time, per iteration
 *   memory_report.c, memory_tables.c, memory_text.c  the report
 *   memory_timeline*.c   a trace's memory over time by category (docs/internals/memory-categories.md)
 *
 * Input: recordings, torch traces, pickles. Output: tables and timelines; present/memory writes files of them. Does not
 * know the hooks that sampled the allocations.
 */
#ifndef MAREY_ANALYZE_MEMORY_INTERNAL_H
#define MAREY_ANALYZE_MEMORY_INTERNAL_H

#include "analyze/walk/internal.h"
#include "import/kineto/internal.h"
#include "import/stacks/internal.h"
#include "report/internal.h"
#include <marey/memory_timeline.h>
#include <marey/table.h>

#define MAREY__ALIVE UINT64_MAX /* end of a block that was not freed */
#define MAREY__NO_STACK UINT32_MAX

/* A block, or the blocks that a sample represents. */
struct marey__held_block {
    uint64_t begin_ns, end_ns;
    double bytes, count, variance; /* variance of `bytes`; 0: exact */
    uint32_t stack;                /* MAREY__NO_STACK: unknown */
    uint32_t where;                /* memory_where.c: a number of the report's names */
    bool is_before;                /* allocated before recording started */
    uint32_t category, module;     /* numbers of the report's names; MAREY__NO_NAME: none */
};

/* A quantity by time. */
struct marey__memory_readings {
    struct marey__memory_reading {
        uint64_t ns;
        double bytes;
    } * at;
    size_t n, cap;
};

/* A phase or an iteration. */
struct marey__held_span {
    uint64_t begin_ns, end_ns;
    uint32_t name; /* of a phase, a number of the report's names */
};
struct marey__held_spans {
    struct marey__held_span *at;
    size_t n, cap;
};

/* One heap: the memory of a process, or of a device as used by one process. */
struct marey__memory_pool {
    int64_t pid;
    int32_t rank;       /* -1: unknown */
    char device[24];    /* "host", "cuda:0" */
    const char *source; /* data source; static */
    uint64_t first_ns, last_ns;
    uint64_t interval,
        last_interval; /* bytes between two samples, at the start and at the end; 0 and 1: all blocks are recorded */
    uint64_t n_samples, n_dropped, n_unfollowed, cost_ns;
    struct marey__held_block *blocks; /* by begin */
    size_t n_blocks, blocks_cap;
    struct marey__held_spans phases, iterations;
    struct marey__memory_readings resident,
        reserved;                /* of the process; of torch's allocator for the device */
    double peak_resident, limit; /* from the kernel; 0: unknown */
    bool is_ordered;             /* times are numbers of events instead of nanoseconds */

    /* memory_peak.c */
    uint64_t peak_ns;
    double peak_bytes, peak_plus_minus, end_bytes;
    /* A snapshot's final state, if `has_segments`. */
    bool has_segments;
    double segment_bytes, allocated_bytes, inactive_bytes, largest_free;
    double whole_bytes; /* inactive_bytes in segments without any active block */
    uint64_t n_segments, n_free;
};

/* A stack: frames as numbers of the report's names, the innermost first. */
struct marey__memory_stack {
    size_t first, n; /* in `frames` */
};

enum marey__memory_table {
    MAREY__MEMORY_POOLS,
    MAREY__MEMORY_PHASES,
    MAREY__MEMORY_CATEGORIES,
    MAREY__MEMORY_MODULES,
    MAREY__MEMORY_STACKS,
    MAREY__MEMORY_GROWTH,
    MAREY__MEMORY_FRAGMENTATION,
    MAREY__MEMORY_RESIDENT,
    MAREY__MEMORY_LIVE,
    MAREY__MEMORY_NOTES,
    MAREY__N_MEMORY_TABLES,
};

/* State of making a report of memory. */
struct marey__memory_report {
    struct {
        const char *filter; /* of stacks, by any of their frames; NULL: all */
        uint32_t n_stacks;  /* rows of `stacks` and `growth` per pool */
    } options;
    struct marey__memory_pool *pools;
    size_t n_pools, pools_cap;
    struct marey__names names; /* frames, phases, categories, modules */
    struct marey__arena texts; /* storage of the names */
    uint8_t *codes;            /* enum marey__frame_code of names that are frames, by name */
    size_t codes_cap;
    struct marey__memory_stack *stacks;
    size_t n_stacks, stacks_cap;
    uint32_t *frames;
    size_t n_frames, frames_cap;
    marey_table *const *tables; /* of the report, by enum marey__memory_table */
};

/* The number of a text, which is copied if new; MAREY__NO_NAME on out of memory. */
uint32_t marey__memory_name(struct marey__memory_report *report, const char *text, size_t len);
/* A new pool, zeroed; NULL on out of memory. Adding one moves earlier pools. */
struct marey__memory_pool *marey__memory_pool_add(struct marey__memory_report *report);
bool marey__memory_block_add(struct marey__memory_pool *pool, const struct marey__held_block *block);
bool marey__memory_reading_add(struct marey__memory_readings *readings, uint64_t ns, double bytes);
bool marey__memory_span_add(struct marey__held_spans *spans, uint64_t begin_ns, uint64_t end_ns,
                            uint32_t name);
/* Add a span that is a phase or an iteration; `site` has the name of a phase. Returns false on out of memory. */
bool marey__memory_progress_add(struct marey__memory_report *report, const struct marey__span *span,
                                const struct marey_site_info *site,
                                struct marey__held_spans *iterations,
                                struct marey__held_spans *phases);
/* A stack of `n` names, the innermost first; MAREY__NO_STACK on out of memory. */
uint32_t marey__memory_stack_add(struct marey__memory_report *report, const uint32_t *names,
                                 size_t n);
/* A frame: "forward (model.py:12)". `file` is a whole path, or empty; MAREY__NO_NAME on out of memory. */
uint32_t marey__memory_frame(struct marey__memory_report *report, const char *function, size_t len,
                             const char *file, int64_t line);
/* A frame given as text: "torch/nn/modules/linear.py(134): forward". */
uint32_t marey__memory_frame_text(struct marey__memory_report *report, const char *text, size_t len);

/* ---- sources ---- */

MAREY_WARN_UNUSED marey_status marey__memory_read_recording(struct marey__memory_report *report,
                                                            marey_recording *recording);
/* Add pools of CUDA memory recorded by CUPTI, if any. */
MAREY_WARN_UNUSED marey_status marey__memory_read_cuda(struct marey__memory_report *report,
                                                       marey_recording *recording,
                                                       const struct marey_process *process);
MAREY_WARN_UNUSED marey_status marey__memory_read_snapshot(struct marey__memory_report *report,
                                                           const char *path);
MAREY_WARN_UNUSED marey_status marey__memory_read_trace(struct marey__memory_report *report,
                                                        const char *path);

/* A report of a snapshot in memory, called `name` in messages. In memory_report.c. */
MAREY_WARN_UNUSED marey_status marey__memory_report_bytes(const char *name, const void *bytes,
                                                          size_t len, marey_report **out);
/* ---- memory_where.c ---- */

enum marey__frame_code {
    MAREY__FRAME_NATIVE,
    MAREY__FRAME_LIBRARY, /* Python, of an installed package */
    MAREY__FRAME_OWN,     /* Python, of the program */
};
/* Set each block's `where`. Returns false on out of memory. */
bool marey__memory_find_where(struct marey__memory_report *report);

/* ---- memory_peak.c ---- */

/*
 * Sort the blocks and find the peak, of blocks or, if there are none, of reserved memory. Returns false on out of
 * memory.
 */
bool marey__memory_find_peak(struct marey__memory_pool *pool);
/* Add rows of phases and of live memory at the peak to the tables. Returns false on out of memory. */
bool marey__memory_put_phases(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool);
bool marey__memory_put_alive(struct marey__memory_report *report,
                             const struct marey__memory_pool *pool);

/* Add rows of live memory over time. Returns false on out of memory. */
bool marey__memory_put_live(struct marey__memory_report *report,
                            const struct marey__memory_pool *pool);

/* ---- memory_growth.c ---- */

/* A line through points at distance 1. */
struct marey__memory_line {
    double slope, low, high; /* slope per step; low and high with 95 % confidence */
};
/*
 * By medians of slopes, which tolerates outliers. `n` is from 3 to MAREY__LINE_POINTS. Returns false on out of memory.
 */
enum { MAREY__LINE_POINTS = 400 };
MAREY_WARN_UNUSED bool marey__memory_line(const double *y, size_t n, struct marey__memory_line *out);
bool marey__memory_put_growth(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool);

/* memory_text.c */
marey__put_answer marey__memory_text;

/* ---- memory_tables.c ---- */

extern const struct marey_table_definition marey__memory_tables[MAREY__N_MEMORY_TABLES];
/* The first three cells of each row, which identify the pool. A name of the report. */
#define MAREY__MEMORY_WHOSE(pool)                                                                  \
    RANK_OF((pool)->rank), RANK_OF((pool)->pid > 0 ? (pool)->pid : -1), STRING((pool)->device)
#define MAREY__MEMORY_NAME(report, number)                                                         \
    STRING_N((report)->names.names[number].text, (report)->names.names[number].len)
void marey__memory_put_pool(struct marey__memory_report *report,
                            const struct marey__memory_pool *pool);
/* Seconds since the start; null if unknown, or if timestamps are only ordered. */
struct marey__cell marey__memory_moment(const struct marey__memory_pool *pool, uint64_t ns,
                                        bool is_known);
void marey__memory_put_resident(struct marey__memory_report *report,
                                const struct marey__memory_pool *pool);
/* A stack, the innermost frame first, separated by " < "; null for none. */
void marey__memory_put_stack(marey_table *table, const struct marey__memory_report *report,
                             uint32_t stack);

/* ==== memory_timeline ==== */

/*
 * The memory of a trace over time: blocks with a begin, an end and a category.
 *
 *   torchtrace: [memory] events, operators, annotations, roles
 *     memory_timeline_blocks.c ── an allocation and its release become a block; roles name blocks
 *     memory_timeline_phases.c ── the phase and the operator at a timestamp; the category of a block
 *     memory_timeline.c        ── the timeline: blocks' begins and ends in order, with the peak of each device
 *     memory_timeline_tables.c ── the peaks, as tables
 *   presenters: memory_json_out.c, memory_page_out.c, memory_snapshot_out.c
 *
 * docs/internals/memory-categories.md has the rules and their limits.
 */

/* Time of a block from before the first event; also, of one still alive after the last. */
#define MAREY__MEMORY_BEFORE INT64_MIN
#define MAREY__MEMORY_NEVER INT64_MAX
#define MAREY__MEMORY_NONE UINT32_MAX

struct marey__memory_block {
    int64_t made_ns, freed_ns; /* Unix time, or one of the constants above */
    uint64_t address; /* 0: memory from before the first event, known only from the device's sum */
    int64_t bytes;
    marey__torch_id stack, freed_stack; /* of allocation and release */
    marey__torch_id name;               /* from a role: "fc.weight"; 0: none */
    uint32_t device;                    /* index in the timeline */
    uint32_t thread;                    /* allocating thread, index in the trace */
    uint32_t made_event, freed_event;   /* memory events of the trace; NONE: not recorded */
    uint32_t made_change, freed_change; /* changes of the device; NONE: not released */
    uint32_t older;                     /* the previous block at the same address, or NONE */
    uint8_t category;                   /* enum marey_memory_category */
    uint8_t has_role;
};

/* ---- phases ---- */

enum marey__memory_phase {
    MAREY__MEMORY_IN_NONE,
    MAREY__MEMORY_IN_DATA,
    MAREY__MEMORY_IN_FORWARD,
    MAREY__MEMORY_IN_BACKWARD,
    MAREY__MEMORY_IN_STEP,   /* Optimizer.step itself */
    MAREY__MEMORY_IN_UPDATE, /* around it: clipping, zero_grad */
    MAREY__MEMORY_IN_OTHER,  /* evaluation, checkpoints, logging */
};

struct marey__memory_span {
    int64_t begin_ns, end_ns;
    uint8_t phase; /* enum marey__memory_phase */
};
/* The innermost span from a time until the next piece; NONE for no phase. */
struct marey__memory_piece {
    int64_t begin_ns;
    uint32_t span;
};
struct marey__memory_phases {
    struct marey__memory_span *spans; /* by begin */
    size_t n_spans, spans_cap;
    struct marey__memory_piece *pieces; /* by begin */
    size_t n_pieces, pieces_cap;
    struct marey__memory_span *operators; /* outermost ones, by thread, then begin; their phase is not used */
    size_t n_operators, operators_cap;
    size_t *first_operator; /* by thread plus one: index of its first operator */
};
/* ---- the timeline ---- */

/* The begin or end of a block. */
struct marey__memory_change {
    uint32_t block;
    bool is_end;
};

struct marey__memory_device {
    int32_t type, id;                     /* torch's numbers: 0 CPU, 1 CUDA; the CPU's id is -1 */
    struct marey__memory_change *changes; /* by time; blocks from before the first event come first */
    size_t n_changes;
    size_t n_before;        /* number of changes for blocks from before the first event */
    int64_t peak_bytes;     /* maximum bytes at one time, */
    size_t peak_change;     /* reached at this change; 0 without changes */
    int64_t reserved_bytes; /* maximum reserved by the allocator; 0 if not recorded */
};

struct marey__memory_timeline {
    const struct marey__torch_trace *trace; /* borrowed */
    struct marey__memory_block *blocks;
    size_t n_blocks, blocks_cap;
    struct marey__memory_device *devices; /* by type, then id: the CPU first */
    size_t n_devices, devices_cap;
    struct marey__memory_change *changes; /* of all devices, in one array */
    struct marey__memory_phases phases;
    int64_t n_bytes; /* sum over all blocks; as it does not overflow, no partial sum does */
    uint64_t n_lost; /* releases without an allocation, and blocks without a recorded release */
};

/* "CPU", "GPU 0", "device 20:1". */
void marey__memory_device_name(const struct marey__memory_device *device, char name[32]);
/* The default device: the first GPU, else the CPU. The timeline must have devices. */
const struct marey__memory_device *
marey__memory_main_device(const struct marey__memory_timeline *timeline);
/* The time of a change; MAREY__MEMORY_BEFORE for blocks from before the first event. */
int64_t marey__memory_change_ns(const struct marey__memory_timeline *timeline,
                                const struct marey__memory_change *change);

/* ---- internal to memory ---- */

/* Create blocks and devices from the trace's events and roles, unordered. Returns false on out of memory. */
bool marey__memory_make_blocks(struct marey__memory_timeline *timeline);

/* Returns false on out of memory; call fini in any case. */
bool marey__memory_phases_init(struct marey__memory_phases *phases,
                               const struct marey__torch_trace *trace);
void marey__memory_phases_fini(struct marey__memory_phases *phases);
/* The span at a timestamp, or NULL. */
const struct marey__memory_span *marey__memory_span_at(const struct marey__memory_phases *phases,
                                                       int64_t ns);
/* Set the category of each block without a role, by the timeline's phases. Returns false on out of memory. */
bool marey__memory_classify(struct marey__memory_timeline *timeline);

/* Snapshots of torch's allocator, from bytes. */

/* Add a pool per device in a snapshot, called `name` in messages. Fails with MAREY_EFORMAT or MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__memory_take_snapshot(struct marey__memory_report *report,
                                                           const char *name, const void *bytes,
                                                           size_t len);
#endif
