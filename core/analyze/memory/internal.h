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
 *   memory_report.c, memory_tables.c, memory_text.c
 *
 * Comes in: recordings, or files of torch. Goes out: a report of ten tables. The entry is in memory_report.c; nothing here
 * knows the command line or the page.
 */
#ifndef MAREY_MEMORY_INTERNAL_H
#define MAREY_MEMORY_INTERNAL_H

#include "analyze/walk/internal.h"
#include "report/internal.h"

#define MAREY__ALIVE UINT64_MAX /* the end of a block that was not freed */
#define MAREY__NO_STACK UINT32_MAX

/* A block, or what a sampled one stands for. */
struct marey__held_block {
    uint64_t begin_ns, end_ns;
    double bytes, count, variance; /* the last of `bytes`; 0: it is exact */
    uint32_t stack;                /* MAREY__NO_STACK: unknown */
    uint32_t where;                /* memory_where.c: a number of the report's names */
    bool is_before;                /* it was there before anything was told */
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

/* The number of a text, which is copied; MAREY__NO_NAME without memory. */
uint32_t marey__memory_name(struct marey__memory_report *report, const char *text, size_t len);
/* A new pool, zeroed; NULL without memory. Pools move when another is added. */
struct marey__memory_pool *marey__memory_pool_add(struct marey__memory_report *report);
bool marey__memory_block_add(struct marey__memory_pool *pool, const struct marey__held_block *block);
bool marey__memory_reading_add(struct marey__memory_readings *readings, uint64_t ns, double bytes);
bool marey__memory_span_add(struct marey__held_spans *spans, uint64_t begin_ns, uint64_t end_ns,
                            uint32_t name);
/* A stack of `n` names, the innermost first; MAREY__NO_STACK without memory. */
uint32_t marey__memory_stack_add(struct marey__memory_report *report, const uint32_t *names,
                                 size_t n);
/* A frame: "forward (model.py:12)". `file` is a whole path, or empty; MAREY__NO_NAME without memory. */
uint32_t marey__memory_frame(struct marey__memory_report *report, const char *function, size_t len,
                             const char *file, int64_t line);
/* A frame whose text is known: "torch/nn/modules/linear.py(134): forward". */
uint32_t marey__memory_frame_text(struct marey__memory_report *report, const char *text, size_t len);
void marey__memory_note(struct marey__memory_report *report, const char *fmt, ...) MAREY_PRINTF(2, 3);

/* ---- sources ---- */

MAREY_WARN_UNUSED marey_status marey__memory_read_recording(struct marey__memory_report *report,
                                                            marey_recording *recording);
/* Pools of what CUPTI told of CUDA's memory, where it told anything. */
MAREY_WARN_UNUSED marey_status marey__memory_read_cuda(struct marey__memory_report *report,
                                                       marey_recording *recording,
                                                       const struct marey_process *process);
MAREY_WARN_UNUSED marey_status marey__memory_read_file(struct marey__memory_report *report,
                                                       const char *path);
MAREY_WARN_UNUSED marey_status marey__memory_read_snapshot(struct marey__memory_report *report,
                                                           const char *path);
MAREY_WARN_UNUSED marey_status marey__memory_read_trace(struct marey__memory_report *report,
                                                        const char *path);

/* A report of a snapshot's bytes, called `name` in sentences. In memory_report.c. */
MAREY_WARN_UNUSED marey_status marey__memory_report_bytes(const char *name, const void *bytes,
                                                          size_t len, marey_report **out);
/* Whether it is a snapshot or a trace, by its first bytes; a trace only when the path ends as one. */
bool marey__memory_is_file(const char *path);

/* ---- memory_where.c ---- */

enum marey__frame_code {
    MAREY__FRAME_NATIVE,
    MAREY__FRAME_LIBRARY, /* Python's, of an installed package */
    MAREY__FRAME_OWN,     /* Python's, of the program itself */
};
/* Fill in each block's `where`. False without memory. */
bool marey__memory_find_where(struct marey__memory_report *report);

/* ---- memory_peak.c ---- */

/* Sort the blocks and find the peak, of blocks or, where there are none, of what is reserved. False without memory. */
bool marey__memory_find_peak(struct marey__memory_pool *pool);
/* One change of what is alive. */
struct marey__memory_edge {
    uint64_t ns;
    double bytes, alive; /* the latter behind it */
};
/* Every change in order of time; free it. NULL without memory, or without blocks. */
struct marey__memory_edge *marey__memory_edges(const struct marey__memory_pool *pool, size_t *n);
/* Rows of phases, and of what was alive at the peak, into the report's tables. False without memory. */
bool marey__memory_put_phases(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool);
bool marey__memory_put_alive(struct marey__memory_report *report,
                             const struct marey__memory_pool *pool);

/* ---- memory_live.c ---- */

/* Rows of what was alive over time. False without memory. */
bool marey__memory_put_live(struct marey__memory_report *report,
                            const struct marey__memory_pool *pool);

/* ---- memory_growth.c ---- */

/* Points (in steps of 1) and the line through them. */
struct marey__memory_line {
    double slope, low, high; /* for a step; the latter two with 95 % confidence */
};
/* By medians of slopes, so that some points may be anything. `n` at least 3, at most MAREY__LINE_POINTS. False without memory. */
enum { MAREY__LINE_POINTS = 400 };
MAREY_WARN_UNUSED bool marey__memory_line(const double *y, size_t n, struct marey__memory_line *out);
bool marey__memory_put_growth(struct marey__memory_report *report,
                              const struct marey__memory_pool *pool);

/* memory_text.c */
MAREY_WARN_UNUSED marey_status marey__memory_text(const marey_report *report,
                                                  const struct marey_write_options *options,
                                                  FILE *out);

/* ---- memory_tables.c ---- */

extern const struct marey_table_definition marey__memory_tables[MAREY__N_MEMORY_TABLES];
/* The first three cells of each row: whose it is. */
void marey__memory_put_whose(marey_table *table, const struct marey__memory_pool *pool);
void marey__memory_put_pool(struct marey__memory_report *report,
                            const struct marey__memory_pool *pool);
/* When something was, since the begin; null where that is not known, or moments have no time. */
void marey__memory_put_moment(marey_table *table, const struct marey__memory_pool *pool,
                              uint64_t ns, bool is_known);
void marey__memory_put_resident(struct marey__memory_report *report,
                                const struct marey__memory_pool *pool);
void marey__memory_put_text(marey_table *table, const struct marey__memory_report *report,
                            uint32_t name);
/* A stack, the innermost frame first, " < " between them; null for none. */
void marey__memory_put_stack(marey_table *table, const struct marey__memory_report *report,
                             uint32_t stack);
void marey__memory_put_bytes(marey_table *table, double bytes, bool is_known);

#endif
