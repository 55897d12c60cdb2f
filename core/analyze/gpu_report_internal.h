/*
 * gpu_report: kernels, launches and waits of devices (kymo/gpu_report.h).
 *
 *   for each process, several at a time                                      then
 *   work.c, work_facts.c ── gpu_sums.c: by name, kind and shape ──────────┐
 *                        ── gpu_launches.c: by the ranges around launches ┼──> gpu_report.c (merge)
 *                        ── gpu_waits.c: gaps, and who was waited for ────┘    gpu_report_tables.c
 *                        ── idle.c: why, of the longest gaps
 */
#ifndef KYMO_GPU_REPORT_INTERNAL_H
#define KYMO_GPU_REPORT_INTERNAL_H

#include "analyze/breakdown_internal.h"
#include "analyze/idle.h"
#include <kymo/gpu_report.h>

enum {
    /* A wait for the host up to this long is what launching takes; beyond, the host does something else. */
    KYMO__LAUNCH_WAIT_NS = 100000,
    KYMO__N_GAPS = 20,
    /* Beyond so many devices of one process, a name's span counts for this many. */
    KYMO__MAX_DEVICE_BITS = 64,
};

/* ---- gpu_sums.c: work by name, kind and shape ---- */

struct kymo__gpu_sum {
    struct kymo__sketch calls;
    uint64_t bytes, bytes_ns; /* of those that tell their bytes */
    uint32_t name, kind;
    uint32_t shape; /* or KYMO__NO_INDEX */
};

struct kymo__gpu_sums {
    struct kymo__names keys; /* the sum of each has its number */
    struct kymo__arena texts;
    struct kymo__gpu_sum *sums;
    size_t n, cap;
};
/* The sum of these three, made when new; NULL without memory. */
struct kymo__gpu_sum *kymo__gpu_sum_of(struct kymo__gpu_sums *sums, uint32_t name, uint32_t kind,
                                       uint32_t shape);
/* Add `from` to that sum; its sketch may be gone afterwards. False without memory. */
KYMO_WARN_UNUSED bool kymo__gpu_sums_add(struct kymo__gpu_sums *sums, uint32_t name, uint32_t shape,
                                         struct kymo__gpu_sum *from);
void kymo__gpu_sums_fini(struct kymo__gpu_sums *sums);

/* What a stream did, by kind. */
struct kymo__gpu_stream {
    uint64_t n[KYMO_WORK_SET + 1];
    uint64_t bytes;
    const struct kymo__device_row *row; /* how long it was busy; NULL: it had no work */
};

/* ---- gpu_launches.c: by the ranges around launches ---- */

/* What one launch came to. */
struct kymo__launched {
    uint64_t n_work, gpu_ns;
    uint64_t first_ns, last_ns; /* begin of its first work, end of its last */
    uint64_t devices;           /* bits */
    size_t last_device;         /* 1 + the device that it was counted on last */
};

/* Ranges of one name. */
struct kymo__launching {
    uint32_t name;
    const char *category;
    uint64_t calls, n_launches, n_work, gpu_ns, self_gpu_ns, launch_ns, self_launch_ns;
    struct kymo__sketch delays;
    uint64_t span_ns;
    uint64_t launch_wait_ns, host_wait_ns;
    uint64_t devices;      /* bits */
    uint64_t stamp;        /* the launch or gap that was counted last */
    uint64_t last_wait_ns; /* what that gap counts for so far */
};

struct kymo__gpu_device {
    int32_t device;
    uint64_t span_ns, busy_ns;
    uint64_t n[KYMO_WORK_SET + 1]; /* by kind */
    uint64_t n_launches, launch_ns;
    struct kymo__sketch delays;
    uint64_t launch_wait_ns, host_wait_ns;
};

struct kymo__gpu_iteration {
    uint64_t span_ns, busy_ns;
    uint64_t n_launches, launch_ns, n_work, gpu_ns, launch_wait_ns, host_wait_ns;
};

struct kymo__gpu_gap {
    uint64_t begin_ns, end_ns;
    size_t device;         /* in the work set */
    uint32_t before, next; /* sites */
    uint32_t launch;       /* of what comes next; or KYMO__NO_INDEX */
    uint32_t step;         /* or KYMO__NO_INDEX */
    enum kymo__idle_reason reason;
    uint64_t reason_ns;
    char *path; /* of ranges; NULL: none */
};

struct kymo__gpu_process {
    kymo_recording *recording;
    size_t process;
    struct kymo__work_set set; /* once it is done: without work, launches and ranges */
    struct kymo__names names;  /* of work and ranges, lent by the recording */
    struct kymo__gpu_sums sums;
    struct kymo__gpu_stream *streams;       /* by lane */
    struct kymo__gpu_device *devices;       /* as in the set */
    struct kymo__device_rows stream_rows;   /* what `row` of streams is of */
    struct kymo__launched *launched;        /* by launch */
    struct kymo__gpu_iteration *iterations; /* [d * n_steps + i] */
    struct kymo__launching *ranges;         /* by name; those without a launch are none */
    size_t n_ranges, ranges_cap;
    uint32_t *range_names; /* by range of the set; KYMO__NO_NAME: a call of a runtime */
    struct kymo__gpu_gap *gaps;
    size_t n_gaps;
    uint64_t n_unlinked, n_work;
};

/* What work was launched in no range is called. */
extern const char kymo__no_range[];

/* These take the set's work; false without memory. */
KYMO_WARN_UNUSED bool kymo__gpu_sum_work(struct kymo__gpu_process *p);
KYMO_WARN_UNUSED bool kymo__gpu_sum_launches(struct kymo__gpu_process *p);
KYMO_WARN_UNUSED bool kymo__gpu_sum_waits(struct kymo__gpu_process *p, size_t max_gaps);
/* Why the longest gaps are. */
KYMO_WARN_UNUSED kymo_status kymo__gpu_explain_gaps(struct kymo__gpu_process *p,
                                                    const struct kymo__rules *rules);
/* The entry of a name in an array by name, made when new; NULL without memory. */
struct kymo__launching *kymo__launching_of(struct kymo__launching **ranges, size_t *n, size_t *cap,
                                           uint32_t name);

/* ---- gpu_report.c, gpu_report_rows.c, gpu_report_tables.c ---- */

#define KYMO__GPU_TEXT_COLUMN(name)                                                                \
    {                                                                                              \
        name, NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE                                                 \
    }
#define KYMO__GPU_SHARE_COLUMN(name, title)                                                        \
    {                                                                                              \
        name, title, KYMO_TYPE_F64, KYMO_UNIT_SHARE                                                \
    }
#define KYMO__GPU_BYTES_COLUMN(name, title)                                                        \
    {                                                                                              \
        name, title, KYMO_TYPE_U64, KYMO_UNIT_BYTES                                                \
    }
#define KYMO__GPU_RATE_COLUMN                                                                      \
    {                                                                                              \
        "bytes_per_s", "bytes/s", KYMO_TYPE_F64, KYMO_UNIT_BYTES                                   \
    }
#define KYMO__GPU_DEVICE_COLUMNS                                                                   \
    KYMO__RANK_COLUMN, KYMO__PID_COLUMN,                                                           \
    {                                                                                              \
        "device", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE                                              \
    }

enum kymo__gpu_table {
    KYMO__GPU_DEVICES,
    KYMO__GPU_KERNELS,
    KYMO__GPU_SHAPES,
    KYMO__GPU_COPIES,
    KYMO__GPU_STREAMS,
    KYMO__GPU_RANGES,
    KYMO__GPU_LAUNCH_BOUND,
    KYMO__GPU_ITERATIONS,
    KYMO__GPU_GAPS,
    KYMO__GPU_WARNINGS,
    KYMO__N_GPU_TABLES,
};

struct kymo_gpu_report {
    kymo_table *tables[KYMO__N_GPU_TABLES];
    /* While it is made. */
    const char *filter;
    size_t max_gaps;
    struct kymo__rules rules;
    struct kymo__gpu_process *processes;
    size_t n_processes;
    struct kymo__names names, shapes; /* of all processes */
    struct kymo__gpu_sums sums;
    struct kymo__launching *ranges; /* by name */
    size_t n_ranges, ranges_cap;
};

/* A table that has rows for each process. In gpu_report_rows.c. */
struct kymo__gpu_rows {
    enum kymo__gpu_table table;
    const char *name;
    const struct kymo_column *columns;
    size_t n_columns;
    void (*fill)(kymo_table *table, const struct kymo__gpu_process *p);
};
enum { KYMO__N_GPU_ROWS = 4 };
extern const struct kymo__gpu_rows kymo__gpu_rows[KYMO__N_GPU_ROWS];

/* Cells; null for no values, for a time of 0, for no text. */
void kymo__gpu_put_quantile(kymo_table *table, const struct kymo__sketch *sketch, double q);
/* So many in `ns`, for each `unit_ns`. */
void kymo__gpu_put_rate(kymo_table *table, uint64_t n, uint64_t ns, double unit_ns);
void kymo__gpu_put_text(kymo_table *table, const char *text);

KYMO_WARN_UNUSED kymo_status kymo__gpu_report_make_tables(kymo_gpu_report *report);

#endif
