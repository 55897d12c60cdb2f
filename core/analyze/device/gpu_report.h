/*
 * gpu: kernels, launches and waits of devices.
 *
 *   for each process, in parallel                                           then
 *   work.c, work_facts.c ── gpu_launches.c: by name, kind and shape ──────┐
 *                                           by the ranges around launches ┼──> gpu_report.c (merge)
 *                        ── gpu_waits.c: gaps, waits for the host ────────┘    gpu_report_tables.c
 *                        ── idle.c: reasons of the longest gaps                gpu_report_text.c
 *
 * GPU activity (a kernel, copy or memset) belongs to the ranges that were open on the launching thread at its launch, the
 * activity of a CUDA graph to those around the launch of the graph. Calls of the CUDA runtime or driver are not ranges here.
 * docs/guide/gpu.md defines the columns.
 */
#ifndef MAREY_ANALYZE_GPU_REPORT_H
#define MAREY_ANALYZE_GPU_REPORT_H

#include "analyze/device/internal.h"

enum {
    /* A longer wait for the host is more than launch latency: the host does something else. */
    MAREY__LAUNCH_WAIT_NS = 100000,
    MAREY__N_GAPS = 20,
    MAREY__MAX_GAPS = 1000,
    /* Device bits of one process; further devices share a bit in a name's span. */
    MAREY__MAX_DEVICE_BITS = 64,
};

/* ---- gpu_launches.c: work by name, kind and shape ---- */

struct marey__gpu_sum {
    uint32_t name, kind, shape; /* the key; MAREY__NO_INDEX: unknown shape */
    struct marey__sketch calls;
    uint64_t bytes, bytes_ns; /* of activity with known bytes */
};

struct marey__gpu_sums {
    struct marey__key_map keys;
    struct marey__gpu_sum *sums;
    size_t n, cap;
};
/* Add `from` to that sum, which may take its sketch. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__gpu_sums_add(struct marey__gpu_sums *sums, uint32_t name,
                                           uint32_t shape, struct marey__gpu_sum *from);
void marey__gpu_sums_fini(struct marey__gpu_sums *sums);

/* Activity of a stream, by kind. */
struct marey__gpu_stream {
    uint64_t n[MAREY_WORK_SET + 1];
    uint64_t bytes;
    const struct marey__device_row *row; /* its busy time; NULL: no work */
};

/* ---- by the ranges around launches ---- */

/* Work of one launch. */
struct marey__launched {
    uint64_t n_work, gpu_ns;
    uint64_t first_ns, last_ns; /* begin of its first work, end of its last */
    uint64_t devices;           /* bits */
    size_t last_device;         /* 1 + the device on which it was counted last */
};

/* Ranges of one name. */
struct marey__launching {
    uint32_t name;
    const char *category;
    union {
        struct {
            uint64_t calls, n_launches, n_work, gpu_ns, self_gpu_ns, launch_ns, self_launch_ns;
            uint64_t span_ns, launch_wait_ns, host_wait_ns;
        };
        uint64_t sums[10];
    };
    struct marey__sketch delays;
    uint64_t devices;      /* bits */
    uint64_t stamp;        /* the launch or gap counted last */
    uint64_t last_wait_ns; /* time counted so far for that gap */
};

struct marey__gpu_device {
    int32_t device;
    uint64_t span_ns, busy_ns;
    uint64_t n[MAREY_WORK_SET + 1]; /* by kind */
    uint64_t n_launches, launch_ns;
    struct marey__sketch delays;
    uint64_t launch_wait_ns, host_wait_ns;
};

struct marey__gpu_iteration {
    uint64_t span_ns, busy_ns;
    uint64_t n_launches, launch_ns, n_work, gpu_ns, launch_wait_ns, host_wait_ns;
};

struct marey__gpu_gap {
    uint64_t begin_ns, end_ns;
    size_t device;         /* index in the work set */
    uint32_t before, next; /* sites */
    uint32_t launch;       /* of the next activity, or MAREY__NO_INDEX */
    uint32_t step;         /* or MAREY__NO_INDEX */
    enum marey__idle_reason reason;
    uint64_t reason_ns;
    char *path; /* of ranges; NULL: none */
};

struct marey__gpu_process {
    marey_recording *recording;
    size_t process;
    struct marey__work_set set; /* afterwards without work, launches and ranges */
    struct marey__names names;  /* of work and ranges, borrowed from the recording */
    struct marey__gpu_sums sums;
    struct marey__gpu_stream *streams;       /* by lane */
    struct marey__gpu_device *devices;       /* as in the set */
    struct marey__device_rows stream_rows;   /* rows that `row` of streams points to */
    struct marey__launched *launched;        /* by launch */
    struct marey__gpu_iteration *iterations; /* [d * n_steps + i] */
    struct marey__launching *ranges;         /* by name; unused ones have no launches */
    size_t n_ranges, ranges_cap;
    uint32_t *range_names; /* by range of the set; MAREY__NO_NAME: a runtime call */
    struct marey__gpu_gap *gaps;
    size_t n_gaps;
    uint64_t n_unlinked, n_work;
};

/* The name for work launched in no range. */
extern const char marey__no_range[];

/* These read the set's work; false on out of memory. */
MAREY_WARN_UNUSED bool marey__gpu_sum_work(struct marey__gpu_process *p);
MAREY_WARN_UNUSED bool marey__gpu_sum_launches(struct marey__gpu_process *p);
MAREY_WARN_UNUSED bool marey__gpu_sum_waits(struct marey__gpu_process *p, size_t max_gaps);
/* Find the reasons of the longest gaps. */
MAREY_WARN_UNUSED marey_status marey__gpu_explain_gaps(struct marey__gpu_process *p,
                                                       const struct marey__rules *rules);
/* The entry of a name in an array by name, created if needed; NULL on out of memory. */
struct marey__launching *marey__launching_of(struct marey__launching **ranges, size_t *n,
                                             size_t *cap, uint32_t name);

/* ---- gpu_report.c, gpu_report_tables.c, gpu_report_text.c ---- */

enum marey__gpu_table {
    MAREY__GPU_DEVICES,
    MAREY__GPU_KERNELS,
    MAREY__GPU_SHAPES,
    MAREY__GPU_COPIES,
    MAREY__GPU_STREAMS,
    MAREY__GPU_RANGES,
    MAREY__GPU_LAUNCH_BOUND,
    MAREY__GPU_ITERATIONS,
    MAREY__GPU_GAPS,
    MAREY__GPU_WARNINGS,
    MAREY__N_GPU_TABLES,
};
extern const struct marey_table_definition marey__gpu_tables[MAREY__N_GPU_TABLES];

/* State of making a report. */
struct marey__gpu_report {
    marey_table **tables;
    const char *filter;
    size_t max_gaps;
    struct marey__rules rules;
    struct marey__gpu_process *processes;
    size_t n_processes;
    struct marey__names names, shapes; /* of all processes */
    struct marey__gpu_sums sums;
    struct marey__launching *ranges; /* by name */
    size_t n_ranges, ranges_cap;
};
/* Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__gpu_fill_tables(const struct marey__gpu_report *report);

/* marey_report.data: the recorded program, for Nsight Compute commands. */
struct marey__gpu_program {
    size_t n_processes;
    char command[]; /* quoted for a shell; "": unknown */
};
marey__put_answer marey__gpu_text;

#endif
