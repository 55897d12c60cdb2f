/*
 * memory: what was allocated when and where, and what stayed allocated.
 *
 *   memory_recording.c   recordings: samples, resident memory, phases, iterations
 *   memory_cuda.c        recordings: CUDA memory from CUPTI
 *   memory_trace.c       traces of torch.profiler: their [memory] events
 *   memory_snapshot.c    snapshots of torch's CUDA allocator, a pickle
 *        |
 *   a pool: blocks with start, end, bytes and a stack
 *        |
 *   memory_where.c, memory_peak.c, memory_growth.c   by stack, at the peak, over time, per iteration
 *   memory_report.c, memory_tables.c
 *   memory_timeline*.c   a trace's memory over time by category (docs/internals/memory-categories.md)
 *
 * Input: recordings, torch traces, pickles. Output: tables and timelines.
 */
#ifndef MAREY_ANALYZE_MEMORY_INTERNAL_H
#define MAREY_ANALYZE_MEMORY_INTERNAL_H

#include "analyze/walk/internal.h"
#include "import/kineto/internal.h"
#include "import/stacks/internal.h"
#include "report/internal.h"
#include <marey/memory_timeline.h>
#include <marey/table.h>

#define MAREY__ALIVE UINT64_MAX /* the end of a block that was not freed */
#define MAREY__NO_STACK UINT32_MAX

/* A block, or what a sampled one represents. */
struct marey__held_block {
    uint64_t begin_ns, end_ns;
    double bytes, count, variance; /* the last of `bytes`; 0: it is exact */
    uint32_t stack;                /* MAREY__NO_STACK: unknown */
    uint32_t where;                /* memory_where.c: a number of the report's names */
    bool is_before;                /* it was there before anything was given */
    uint32_t category, module;     /* numbers of the report's names; MAREY__NO_NAME: none */
};

/* How much there was of something, by time. */
struct marey__memory_readings {
    struct marey__memory_reading {
        uint64_t ns;
        double bytes;
    } * at;
    size_t n, cap;
};

/* Phases and iterations. */
struct marey__held_span {
    uint64_t begin_ns, end_ns;
    uint32_t name; /* of a phase, a number of the report's names */
};
struct marey__held_spans {
    struct marey__held_span *at;
    size_t n, cap;
};

/* One heap: the memory of a process, or of a device as one process used it. */
struct marey__memory_pool {
    int64_t pid;
    int32_t rank;       /* -1: unknown */
    char device[24];    /* "host", "cuda:0" */
    const char *source; /* where it is from; static */
    uint64_t first_ns, last_ns;
    uint64_t interval,
        last_interval; /* bytes between two samples, at first and at last; 0 and 1: all blocks are here */
    uint64_t n_samples, n_dropped, n_unfollowed, cost_ns;
    struct marey__held_block *blocks; /* by begin */
    size_t n_blocks, blocks_cap;
    struct marey__held_spans phases, iterations;
    struct marey__memory_readings resident,
        reserved;                /* of the process; of torch's allocator for the device */
    double peak_resident, limit; /* as the kernel says; 0: not known */
    bool is_ordered;             /* times are numbers of events, not nanoseconds */

    /* memory_peak.c */
    uint64_t peak_ns;
    double peak_bytes, peak_plus_minus, end_bytes;
    /* A snapshot's last state; `has_segments` where there is one. */
    bool has_segments;
    double segment_bytes, allocated_bytes, inactive_bytes, largest_free;
    double whole_bytes; /* of inactive_bytes, those in segments that nothing else is in */
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

/* A report of memory in the making. */
struct marey__memory_report {
    struct {
        const char *filter; /* of stacks by any of their frames; NULL: all */
        uint32_t n_stacks;  /* rows of `stacks` and of `growth` for each pool */
    } options;
    struct marey__memory_pool *pools;
    size_t n_pools, pools_cap;
    struct marey__names names; /* frames, phases, categories, modules */
    struct marey__arena texts; /* of them */
    uint8_t *codes;            /* enum marey__frame_code of those that are frames, by name */
    size_t codes_cap;
    struct marey__memory_stack *stacks;
    size_t n_stacks, stacks_cap;
    uint32_t *frames;
    size_t n_frames, frames_cap;
    marey_table *const *tables; /* of the report, by enum marey__memory_table */
};

/* The number of a text, which is copied; MAREY__NO_NAME on out of memory. */
uint32_t marey__memory_name(struct marey__memory_report *report, const char *text, size_t len);
/* A new pool, zeroed; NULL on out of memory. Pools move when another is added. */
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
/* A frame whose text is known: "torch/nn/modules/linear.py(134): forward". */
uint32_t marey__memory_frame_text(struct marey__memory_report *report, const char *text, size_t len);

/* ---- sources ---- */

MAREY_WARN_UNUSED marey_status marey__memory_read_recording(struct marey__memory_report *report,
                                                            marey_recording *recording);
/* Pools of what CUPTI told of CUDA's memory, where it told anything. */
MAREY_WARN_UNUSED marey_status marey__memory_read_cuda(struct marey__memory_report *report,
                                                       marey_recording *recording,
                                                       const struct marey_process *process);
MAREY_WARN_UNUSED marey_status marey__memory_read_snapshot(struct marey__memory_report *report,
                                                           const char *path);
MAREY_WARN_UNUSED marey_status marey__memory_read_trace(struct marey__memory_report *report,
                                                        const char *path);

/* A report of a snapshot's bytes, called `name` in sentences. In memory_report.c. */
MAREY_WARN_UNUSED marey_status marey__memory_report_bytes(const char *name, const void *bytes,
                                                          size_t len, marey_report **out);
/* ---- memory_where.c ---- */

enum marey__frame_code {
    MAREY__FRAME_NATIVE,
    MAREY__FRAME_LIBRARY, /* Python's, of an installed package */
    MAREY__FRAME_OWN,     /* Python's, of the program itself */
};
/* Fill in each block's `where`. Returns false on out of memory. */
bool marey__memory_find_where(struct marey__memory_report *report);

/* ---- memory_peak.c ---- */

/* Sort the blocks and find the peak, of blocks or, where there are none, of what is reserved. Returns false on out of memory. */
bool marey__memory_find_peak(struct marey__memory_pool *pool);
/* Rows of phases, and of what was alive at the peak, into the report's tables. Returns false on out of memory. */
bool marey__memory_put_phases(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool);
bool marey__memory_put_alive(struct marey__memory_report *report,
                             const struct marey__memory_pool *pool);

/* Rows of what was alive over time. Returns false on out of memory. */
bool marey__memory_put_live(struct marey__memory_report *report,
                            const struct marey__memory_pool *pool);

/* ---- memory_growth.c ---- */

/* Points (in steps of 1) and the line through them. */
struct marey__memory_line {
    double slope, low, high; /* for a step; the latter two with 95 % confidence */
};
/* By medians of slopes, so that some points may be anything. `n` at least 3, at most MAREY__LINE_POINTS. Returns false on out of memory. */
enum { MAREY__LINE_POINTS = 400 };
MAREY_WARN_UNUSED bool marey__memory_line(const double *y, size_t n, struct marey__memory_line *out);
bool marey__memory_put_growth(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool);

/* memory_text.c */
marey__put_answer marey__memory_text;

/* ---- memory_tables.c ---- */

extern const struct marey_table_definition marey__memory_tables[MAREY__N_MEMORY_TABLES];
/* The first three cells of each row: whose it is. */
void marey__memory_put_whose(marey_table *table, const struct marey__memory_pool *pool);
void marey__memory_put_pool(struct marey__memory_report *report,
                            const struct marey__memory_pool *pool);
/* When something was, since the begin; null where that is not known, or timestamps have no time. */
void marey__memory_put_moment(marey_table *table, const struct marey__memory_pool *pool,
                              uint64_t ns, bool is_known);
void marey__memory_put_resident(struct marey__memory_report *report,
                                const struct marey__memory_pool *pool);
void marey__memory_put_text(marey_table *table, const struct marey__memory_report *report,
                            uint32_t name);
/* A stack, the innermost frame first, " < " between them; null for none. */
void marey__memory_put_stack(marey_table *table, const struct marey__memory_report *report,
                             uint32_t stack);

/* ==== memory_timeline ==== */

/*
 * The memory of a trace over time: allocations with a begin, an end and a category.
 *
 *   torchtrace: [memory] events, operators, annotations, roles
 *     memory_timeline_blocks.c ── an allocation and its release become a block; roles name blocks
 *     memory_timeline_phases.c ── the phase and the operator at a timestamp; the category of a block
 *     memory_timeline.c        ── all of it, then blocks' begins and ends in order, with the peak of each device
 *     memory_timeline_tables.c ── the same of the peaks, as tables
 *   presenters: memory_json_out.c, memory_page_out.c, memory_snapshot_out.c
 *
 * docs/internals/memory-categories.md has the rules and their limits.
 */

/* Times of a block that was there before the first event, and of one that is there after the last. */
#define MAREY__MEMORY_BEFORE INT64_MIN
#define MAREY__MEMORY_NEVER INT64_MAX
#define MAREY__MEMORY_NONE UINT32_MAX

struct marey__memory_block {
    int64_t made_ns, freed_ns; /* Unix time, or one of the two above */
    uint64_t address;          /* 0: what was there before and is known by the device's sum alone */
    int64_t bytes;
    marey__torch_id stack, freed_stack; /* where it was made and released */
    marey__torch_id name;               /* by a role: "fc.weight"; 0: none */
    uint32_t device;                    /* of the timeline's */
    uint32_t thread;                    /* that made it, of the trace's */
    uint32_t made_event, freed_event; /* of the trace's memory events; NONE: no event reports it */
    uint32_t made_change, freed_change; /* of the device's changes; NONE: it was not released */
    uint32_t older;                     /* the block at the same place before it, or NONE */
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
/* From an instant on, until the next piece begins: the innermost span, NONE for no phase. */
struct marey__memory_piece {
    int64_t begin_ns;
    uint32_t span;
};
struct marey__memory_phases {
    struct marey__memory_span *spans; /* by begin */
    size_t n_spans, spans_cap;
    struct marey__memory_piece *pieces; /* by begin */
    size_t n_pieces, pieces_cap;
    struct marey__memory_span *operators; /* outermost ones, by thread, then begin; their phase says nothing */
    size_t n_operators, operators_cap;
    size_t *first_operator; /* by thread, and one more: where its operators begin */
};
/* ---- the timeline ---- */

/* A block begins or ends. */
struct marey__memory_change {
    uint32_t block;
    bool is_end;
};

struct marey__memory_device {
    int32_t type, id; /* as torch numbers them: 0 CPU, 1 CUDA; the CPU's id is -1 */
    struct marey__memory_change *changes; /* by time; those that were there before come first */
    size_t n_changes;
    size_t n_before;        /* of them, for blocks that were there before */
    int64_t peak_bytes;     /* the most there was at once, */
    size_t peak_change;     /* from this change on. 0 of 0 changes: none */
    int64_t reserved_bytes; /* the most that the allocator had taken, 0 where it is not reported */
};

struct marey__memory_timeline {
    const struct marey__torch_trace *trace; /* lent */
    struct marey__memory_block *blocks;
    size_t n_blocks, blocks_cap;
    struct marey__memory_device *devices; /* by type, then id: the CPU first */
    size_t n_devices, devices_cap;
    struct marey__memory_change *changes; /* of all devices, in one piece */
    struct marey__memory_phases phases;
    int64_t n_bytes; /* of all blocks together: as long as it fits, every sum of some of them does */
    uint64_t n_lost; /* releases of what was never made, and blocks whose release was not recorded */
};

/* "CPU", "GPU 0", "device 20:1". */
void marey__memory_device_name(const struct marey__memory_device *device, char name[32]);
/* The device whose memory is asked for first: the first GPU, else the CPU. Only of a timeline that has devices. */
const struct marey__memory_device *
marey__memory_main_device(const struct marey__memory_timeline *timeline);
/* When a change was, MAREY__MEMORY_BEFORE for what was there before. */
int64_t marey__memory_change_ns(const struct marey__memory_timeline *timeline,
                                const struct marey__memory_change *change);

/* ---- inside ---- */

/* Blocks and devices of the trace's events and roles, in no order that is promised. Returns false on out of memory. */
bool marey__memory_make_blocks(struct marey__memory_timeline *timeline);

/* Returns false on out of memory; fini in any case. */
bool marey__memory_phases_init(struct marey__memory_phases *phases,
                               const struct marey__torch_trace *trace);
void marey__memory_phases_fini(struct marey__memory_phases *phases);
/* The span at a timestamp, or NULL. */
const struct marey__memory_span *marey__memory_span_at(const struct marey__memory_phases *phases,
                                                       int64_t ns);
/* Give each block without a role its category, by the timeline's phases. Returns false on out of memory. */
bool marey__memory_classify(struct marey__memory_timeline *timeline);

/* Snapshots of torch's allocator, from bytes. */

/* Pools of the devices that a snapshot, called `name` in sentences, reports of. MAREY_EFORMAT, MAREY_ENOMEM. */
MAREY_WARN_UNUSED marey_status marey__memory_take_snapshot(struct marey__memory_report *report,
                                                           const char *name, const void *bytes,
                                                           size_t len);
#endif
