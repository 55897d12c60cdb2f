/*
 * memory_*.c: what was allocated when and where, and what of it stayed.
 *
 *   memory_recording.c   from recordings: samples, resident memory, phases, iterations
 *   memory_cuda.c        from recordings: CUDA's memory as CUPTI tells it
 *   memory_trace.c       from a trace of torch.profiler: its [memory] events
 *   memory_snapshot.c    from a snapshot of torch's CUDA allocator, a pickle
 *        |
 *   a pool: blocks with begin, end, bytes and a stack; readings of what is held in all
 *        |
 *   memory_where.c       what is shown of a stack, by which blocks are grouped
 *   memory_peak.c        when most was alive, in each phase too, and what that was
 *   memory_live.c        how much was alive over time
 *   memory_growth.c      what is more after each iteration
 *   memory_report.c, memory_tables.c
 */
#ifndef KYMO_MEMORY_WHOLE_H
#define KYMO_MEMORY_WHOLE_H

#include "analyze/analyze_internal.h"
#include <kymo/memory_report.h>

#define KYMO__ALIVE UINT64_MAX /* the end of a block that was not freed */
#define KYMO__NO_STACK UINT32_MAX

/* A block, or what a sampled one stands for. */
struct kymo__held_block {
    uint64_t begin_ns, end_ns;
    double bytes, count, variance; /* the last of `bytes`; 0: it is exact */
    uint32_t stack;                /* KYMO__NO_STACK: unknown */
    uint32_t where;                /* memory_where.c: a number of the report's names */
    bool is_before;                /* it was there before anything was told */
    uint32_t category, module;     /* numbers of the report's names; KYMO__NO_NAME: none */
};

/* How much there was of something, by time. */
struct kymo__memory_readings {
    struct kymo__memory_reading {
        uint64_t ns;
        double bytes;
    } * at;
    size_t n, cap;
};

/* Phases and iterations. */
struct kymo__held_span {
    uint64_t begin_ns, end_ns;
    uint32_t name; /* of a phase, a number of the report's names */
};
struct kymo__held_spans {
    struct kymo__held_span *at;
    size_t n, cap;
};

/* One heap: the memory of a process, or of a device as one process used it. */
struct kymo__memory_pool {
    int64_t pid;
    int32_t rank;       /* -1: unknown */
    char device[24];    /* "host", "cuda:0" */
    const char *source; /* where it is from; static */
    uint64_t first_ns, last_ns;
    uint64_t interval,
        last_interval; /* bytes between two samples, at first and at last; 0 and 1: all blocks are here */
    uint64_t n_samples, n_dropped, n_unfollowed, cost_ns;
    struct kymo__held_block *blocks; /* by begin */
    size_t n_blocks, blocks_cap;
    struct kymo__held_spans phases, iterations;
    struct kymo__memory_readings resident,
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
struct kymo__memory_stack {
    size_t first, n; /* in `frames` */
};

enum kymo__memory_table {
    KYMO__MEMORY_POOLS,
    KYMO__MEMORY_PHASES,
    KYMO__MEMORY_CATEGORIES,
    KYMO__MEMORY_MODULES,
    KYMO__MEMORY_STACKS,
    KYMO__MEMORY_GROWTH,
    KYMO__MEMORY_FRAGMENTATION,
    KYMO__MEMORY_RESIDENT,
    KYMO__MEMORY_LIVE,
    KYMO__MEMORY_NOTES,
    KYMO__N_MEMORY_TABLES,
};

struct kymo_memory_report {
    struct kymo_memory_report_options options;
    struct kymo__memory_pool *pools;
    size_t n_pools, pools_cap;
    struct kymo__names names; /* frames, phases, categories, modules */
    struct kymo__arena texts; /* of them */
    uint8_t *codes;           /* enum kymo__frame_code of those that are frames, by name */
    size_t codes_cap;
    struct kymo__memory_stack *stacks;
    size_t n_stacks, stacks_cap;
    uint32_t *frames;
    size_t n_frames, frames_cap;
    kymo_table *tables[KYMO__N_MEMORY_TABLES];
};

/* The number of a text, which is copied; KYMO__NO_NAME without memory. */
uint32_t kymo__memory_name(struct kymo_memory_report *report, const char *text, size_t len);
/* A new pool, zeroed; NULL without memory. Pools move when another is added. */
struct kymo__memory_pool *kymo__memory_pool_add(struct kymo_memory_report *report);
bool kymo__memory_block_add(struct kymo__memory_pool *pool, const struct kymo__held_block *block);
bool kymo__memory_reading_add(struct kymo__memory_readings *readings, uint64_t ns, double bytes);
bool kymo__memory_span_add(struct kymo__held_spans *spans, uint64_t begin_ns, uint64_t end_ns,
                           uint32_t name);
/* A stack of `n` names, the innermost first; KYMO__NO_STACK without memory. */
uint32_t kymo__memory_stack_add(struct kymo_memory_report *report, const uint32_t *names, size_t n);
/* A frame: "forward (model.py:12)". `file` is a whole path, or empty; KYMO__NO_NAME without memory. */
uint32_t kymo__memory_frame(struct kymo_memory_report *report, const char *function, size_t len,
                            const char *file, int64_t line);
/* A frame whose text is known: "torch/nn/modules/linear.py(134): forward". */
uint32_t kymo__memory_frame_text(struct kymo_memory_report *report, const char *text, size_t len);
void kymo__memory_note(struct kymo_memory_report *report, const char *fmt, ...) KYMO_PRINTF(2, 3);
kymo_status kymo__memory_no_memory(void);

/* ---- sources ---- */

KYMO_WARN_UNUSED kymo_status kymo__memory_read_recording(struct kymo_memory_report *report,
                                                         kymo_recording *recording);
/* Pools of what CUPTI told of CUDA's memory, where it told anything. */
KYMO_WARN_UNUSED kymo_status kymo__memory_read_cuda(struct kymo_memory_report *report,
                                                    kymo_recording *recording,
                                                    const struct kymo_process *process);
KYMO_WARN_UNUSED kymo_status kymo__memory_read_file(struct kymo_memory_report *report,
                                                    const char *path);
KYMO_WARN_UNUSED kymo_status kymo__memory_read_snapshot(struct kymo_memory_report *report,
                                                        const char *path);
KYMO_WARN_UNUSED kymo_status kymo__memory_read_trace(struct kymo_memory_report *report,
                                                     const char *path);

/* A report of a snapshot's bytes, called `name` in sentences; as kymo_memory_report_files(). In memory_report.c. */
KYMO_WARN_UNUSED kymo_status kymo__memory_report_bytes(const char *name, const void *bytes,
                                                       size_t len, kymo_memory_report **out);

/* ---- memory_where.c ---- */

enum kymo__frame_code {
    KYMO__FRAME_NATIVE,
    KYMO__FRAME_LIBRARY, /* Python's, of an installed package */
    KYMO__FRAME_OWN,     /* Python's, of the program itself */
};
/* Fill in each block's `where`. False without memory. */
bool kymo__memory_find_where(struct kymo_memory_report *report);

/* ---- memory_peak.c ---- */

/* Sort the blocks and find the peak, of blocks or, where there are none, of what is reserved. False without memory. */
bool kymo__memory_find_peak(struct kymo__memory_pool *pool);
/* One change of what is alive. */
struct kymo__memory_edge {
    uint64_t ns;
    double bytes, alive; /* the latter behind it */
};
/* Every change in order of time; free it. NULL without memory, or without blocks. */
struct kymo__memory_edge *kymo__memory_edges(const struct kymo__memory_pool *pool, size_t *n);
/* Rows of phases, and of what was alive at the peak, into the report's tables. False without memory. */
bool kymo__memory_put_phases(struct kymo_memory_report *report, const struct kymo__memory_pool *pool);
bool kymo__memory_put_alive(struct kymo_memory_report *report, const struct kymo__memory_pool *pool);

/* ---- memory_live.c ---- */

/* Rows of what was alive over time. False without memory. */
bool kymo__memory_put_live(struct kymo_memory_report *report, const struct kymo__memory_pool *pool);

/* ---- memory_growth.c ---- */

/* Points (in steps of 1) and the line through them. */
struct kymo__memory_line {
    double slope, low, high; /* for a step; the latter two with 95 % confidence */
};
/* By medians of slopes, so that some points may be anything. `n` at least 3, at most KYMO__LINE_POINTS. False without memory. */
enum { KYMO__LINE_POINTS = 400 };
KYMO_WARN_UNUSED bool kymo__memory_line(const double *y, size_t n, struct kymo__memory_line *out);
bool kymo__memory_put_growth(struct kymo_memory_report *report, const struct kymo__memory_pool *pool);

/* ---- memory_tables.c ---- */

KYMO_WARN_UNUSED kymo_status kymo__memory_tables_create(struct kymo_memory_report *report);
/* The first three cells of each row: whose it is. */
void kymo__memory_put_whose(kymo_table *table, const struct kymo__memory_pool *pool);
void kymo__memory_put_pool(struct kymo_memory_report *report, const struct kymo__memory_pool *pool);
/* When something was, since the begin; null where that is not known, or moments have no time. */
void kymo__memory_put_moment(kymo_table *table, const struct kymo__memory_pool *pool, uint64_t ns,
                             bool is_known);
void kymo__memory_put_resident(struct kymo_memory_report *report,
                               const struct kymo__memory_pool *pool);
void kymo__memory_put_text(kymo_table *table, const struct kymo_memory_report *report, uint32_t name);
/* A stack, the innermost frame first, " < " between them; null for none. */
void kymo__memory_put_stack(kymo_table *table, const struct kymo_memory_report *report,
                            uint32_t stack);
void kymo__memory_put_bytes(kymo_table *table, double bytes, bool is_known);

#endif
