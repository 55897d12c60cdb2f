/*
 * fields: describes the rows of a merge, for summary_bytes.c to serialize and join them.
 */
#ifndef MAREY_ANALYZE_SUMMARY_FIELDS_H
#define MAREY_ANALYZE_SUMMARY_FIELDS_H

#include <assert.h>

#include "analyze/summary/internal.h"

/* ---- fields ---- */

enum kind {
    U32, /* 32 bits, signed or not */
    U64,
    U128,
    SKETCH,
    U32_OR_END, /* a row with 0 here has no further fields */
    RAW,        /* floating point */
    FLAG,
    BYTE, /* a uint32_t or enum below 256 */
    TEXT,
    NAME,
    NAME_OR_NONE,
    PROCESS,
    ITERATION_ROW_OR_NONE,
    LANE,
};

/* Adjacent members of one type. */
struct field {
    size_t offset, size;
    enum kind kind;
};

/* When adding a field to one of these, serialize it below if other processes need it, and increment VERSION. */
#define HAS_SIZE(type, size)                                                                       \
    static_assert(sizeof(struct type) == (size), "a new field may need to be serialized")
HAS_SIZE(marey_process,
         432); /* members used only by a run or by the walk over the log are not serialized */
HAS_SIZE(marey_lane_info, 32);
HAS_SIZE(marey_site_info, 48);
HAS_SIZE(marey__name_stats, 112);
HAS_SIZE(marey__name_row, 40);
HAS_SIZE(marey__open_row, 24);
HAS_SIZE(marey__counter, 48);
HAS_SIZE(marey__iteration_name, 176);
HAS_SIZE(marey__iteration_row, 272);
HAS_SIZE(marey__outlier_row, 40);
HAS_SIZE(marey__span, 64);
HAS_SIZE(marey__rank_step, 24);
HAS_SIZE(marey__phase_stats, 40); /* late_ns is used only by the walk */
HAS_SIZE(marey__merged_work, 120);
HAS_SIZE(marey__gpu_range, 24);
HAS_SIZE(marey__iteration_merge, 432);
HAS_SIZE(marey__gpu_merge, 80);
HAS_SIZE(marey__merge, 1072);

#define SPAN(type, first, last, kind)                                                              \
    {                                                                                              \
        offsetof(struct type, first),                                                              \
            offsetof(struct type, last) + sizeof((struct type *)0)->last -                         \
                offsetof(struct type, first),                                                      \
            kind                                                                                   \
    }
#define FIELD(type, name, kind) SPAN(type, name, name, kind)

static const struct field process_fields[] = {
    FIELD(marey_process, index, U32),
    SPAN(marey_process, pid, ppid, U64),
    SPAN(marey_process, rank, local_rank, U32),
    SPAN(marey_process, host, note, TEXT),
    SPAN(marey_process, start_unix_ns, flush_cpu_ns, U64),
    FIELD(marey_process, event_cost_ns, RAW),
    FIELD(marey_process, mono_to_unix_ns, U64),
    SPAN(marey_process, n_sites, n_lanes, U32),
    SPAN(marey_process, version, versions, TEXT),
    FIELD(marey_process, load, RAW),
    SPAN(marey_process, source, backend, TEXT),
    FIELD(marey_process, n_words, U64),
    SPAN(marey_process, devices, energy_sources, TEXT),
    FIELD(marey_process, energy_cpu_ns, U64),
    SPAN(marey_process, worker, is_cut, U32),
    SPAN(marey_process, memory, memory_cost, TEXT),
    SPAN(marey_process, open_ns, start_time, U64),
};

static const struct field lane_fields[] = {
    FIELD(marey_lane_info, lane, U32),  FIELD(marey_lane_info, kind, BYTE),
    FIELD(marey_lane_info, tid, U64),   SPAN(marey_lane_info, device, stream, U32),
    FIELD(marey_lane_info, name, TEXT),
};

static const struct field stats_fields[] = {
    FIELD(marey__name_stats, calls, SKETCH),
    SPAN(marey__name_stats, total_ns, steady_ns, U64),
    SPAN(marey__name_stats, n_threads, n_processes, U32),
};

static const struct field mark_fields[] = {{0, sizeof(uint64_t), U64}};

static const struct field thread_row_fields[] = {
    FIELD(marey__name_row, process, PROCESS),
    FIELD(marey__name_row, name, NAME),
    SPAN(marey__name_row, count, self_ns, U64),
    FIELD(marey__name_row, lane, LANE),
};

static const struct field process_row_fields[] = {
    FIELD(marey__name_row, name, NAME),
    SPAN(marey__name_row, count, iteration_ns, U64),
};

static const struct field open_fields[] = {
    FIELD(marey__open_row, process, PROCESS),
    FIELD(marey__open_row, name, NAME),
    FIELD(marey__open_row, lane, LANE),
    FIELD(marey__open_row, since_ns, U64),
};

static const struct field counter_fields[] = {
    FIELD(marey__counter_row, process, PROCESS),
    FIELD(marey__counter_row, name, NAME),
    FIELD(marey__counter_row, counter, RAW),
};

static const struct field note_fields[] = {
    FIELD(marey__note_row, recording, U32),
    FIELD(marey__note_row, is_note, FLAG),
    FIELD(marey__note_row, text, TEXT),
};

/* The name of a site is a string with a length. */
static const struct field site_fields[] = {
    FIELD(marey__site_row, process, PROCESS),
    FIELD(marey__site_row, id, U32),
    SPAN(marey__site_row, info.category, info.file, TEXT),
    SPAN(marey__site_row, info.line, info.color, U32),
};

static const struct field left_out_fields[] = {
    FIELD(marey__exclusions, recording, U32),
    SPAN(marey__exclusions, n_broken, n_empty, U64),
};

static const struct field iteration_name_fields[] = {
    FIELD(marey__iteration_name, n_processes, U32_OR_END),
    FIELD(marey__iteration_name, values.ns, SKETCH),
    FIELD(marey__iteration_name, values.sum_of_squares, U128),
    FIELD(marey__iteration_name, values.first_ns, U64),
    SPAN(marey__iteration_name, n_iterations, first_whole_ns, U64),
    FIELD(marey__iteration_name, highest_process, PROCESS),
    SPAN(marey__iteration_name, lowest_mean_ns, highest_mean_ns, RAW),
};

static const struct field phase_fields[] = {
    FIELD(marey__phase_stats, count, U64),
    FIELD(marey__phase_stats, total_ns, U64),
    FIELD(marey__phase_stats, n_iterations, U64),
    FIELD(marey__phase_stats, steady_ns, U64),
};

static const struct field iteration_row_fields[] = {
    FIELD(marey__iteration_row, process, PROCESS),
    FIELD(marey__iteration_row, recording, U32),
    SPAN(marey__iteration_row, n_iterations, p99_ns, U64),
    SPAN(marey__iteration_row, std_ns, samples, RAW),
    FIELD(marey__iteration_row, samples_ns, U64),
    FIELD(marey__iteration_row, has_data, FLAG),
    SPAN(marey__iteration_row, data_ns, data_whole_ns, U64),
    FIELD(marey__iteration_row, quantiles, RAW),
};

static const struct field outlier_fields[] = {
    FIELD(marey__outlier_row, process, PROCESS),
    FIELD(marey__outlier_row, name, NAME_OR_NONE),
    SPAN(marey__outlier_row, number, extra_ns, U64),
};

static const struct field epoch_fields[] = {
    FIELD(marey__epoch_row, process, PROCESS),
    FIELD(marey__epoch_row, span.kind, BYTE),
    SPAN(marey__epoch_row, span.begin_ns, span.number, U64),
    SPAN(marey__epoch_row, span.site, span.flags, U32),
    FIELD(marey__epoch_row, span.samples, RAW),
    FIELD(marey__epoch_row, span.n_iterations, U64),
    FIELD(marey__epoch_row, span.is_open, FLAG),
};

static const struct field rank_step_fields[] = {
    FIELD(marey__rank_step, n, U32_OR_END),
    FIELD(marey__rank_step, slowest_ns, RAW),
    FIELD(marey__rank_step, slowest, ITERATION_ROW_OR_NONE),
    FIELD(marey__rank_step, sum_ns, U64),
};

static const struct field work_fields[] = {
    FIELD(marey__merged_work, calls, SKETCH),
    SPAN(marey__merged_work, bytes, bytes_ns, U64),
    SPAN(marey__merged_work, n_streams, n_processes, U32),
};

static const struct field gpu_range_fields[] = {SPAN(marey__gpu_range, count, self_ns, U64)};

static const struct field total_fields[] = {
    SPAN(marey__merge, n_threads, n_too_deep, U64),
    SPAN(marey__merge, iterations.phased_ns, iterations.steady_phased_ns, U64),
    FIELD(marey__merge, iterations.n_first, U64),
    FIELD(marey__merge, iterations.whole.ns, SKETCH),
    FIELD(marey__merge, iterations.whole.sum_of_squares, U128),
    FIELD(marey__merge, iterations.whole.first_ns, U64),
    FIELD(marey__merge, iterations.no_range.ns, SKETCH),
    FIELD(marey__merge, iterations.no_range.sum_of_squares, U128),
    FIELD(marey__merge, iterations.no_range.first_ns, U64),
    FIELD(marey__merge, gpu.work_ns, U64),
};

/* ---- lists ---- */

static inline bool is_counter_valid(const void *row)
{
    return ((const struct marey__counter_row *)row)->counter.count != 0;
}

/* Iterations in which a name did not run count as zeros. */
static inline bool is_iteration_name_valid(const void *row)
{
    const struct marey__iteration_name *name = row;
    return name->n_processes == 0 ||
           (name->n_iterations != 0 && name->values.ns.count <= name->n_iterations);
}

static inline bool is_epoch_valid(const void *row)
{
    return ((const struct marey__epoch_row *)row)->span.kind <= MAREY__SPAN_PHASE;
}

/* A list of rows in a merge: one per name, or any number belonging to processes. */
enum list_kind { ROWS, BY_NAME, BY_EVERY_NAME };
static const struct list {
    enum list_kind kind;
    size_t rows, n, cap; /* offsets in the merge */
    size_t size;         /* of a row */
    const struct field *fields;
    size_t n_fields;
    bool (*is_valid)(const void *row); /* NULL: always */
} lists[] = {
#define LIST(kind, rows, n, cap, fields, is_valid)                                                 \
    {                                                                                              \
        kind, offsetof(struct marey__merge, rows), offsetof(struct marey__merge, n),               \
            offsetof(struct marey__merge, cap), sizeof *((struct marey__merge *)0)->rows, fields,  \
            MAREY__COUNT_OF(fields), is_valid                                                      \
    }
    LIST(BY_EVERY_NAME, ranges, n_ranges, ranges_cap, stats_fields, NULL),
    LIST(BY_NAME, async, n_async, async_cap, stats_fields, NULL),
    LIST(BY_EVERY_NAME, marks, n_marks, marks_cap, mark_fields, NULL),
    LIST(ROWS, threads.rows, threads.n, threads.cap, thread_row_fields, NULL),
    LIST(ROWS, open, n_open, open_cap, open_fields, NULL),
    LIST(ROWS, counter_rows, n_counter_rows, counter_rows_cap, counter_fields, is_counter_valid),
    LIST(ROWS, notes, n_notes, notes_cap, note_fields, NULL),
    LIST(BY_NAME, iterations.names, iterations.n_names, iterations.names_cap, iteration_name_fields,
         is_iteration_name_valid),
    LIST(BY_NAME, iterations.phases, iterations.n_phases, iterations.phases_cap, phase_fields, NULL),
    LIST(ROWS, iterations.rows, iterations.n_rows, iterations.rows_cap, iteration_row_fields, NULL),
    LIST(ROWS, iterations.outliers, iterations.n_outliers, iterations.outliers_cap, outlier_fields,
         NULL),
    LIST(ROWS, iterations.epochs, iterations.n_epochs, iterations.epochs_cap, epoch_fields,
         is_epoch_valid),
    LIST(BY_NAME, gpu.ranges, gpu.n_ranges, gpu.ranges_cap, gpu_range_fields, NULL),
#undef LIST
};

static inline void *at(void *start, size_t offset)
{
    return (char *)start + offset;
}

/* The rows of a list. */
static inline char *rows_of(struct marey__merge *merge, const struct list *list)
{
    char *rows;
    memcpy(&rows, at(merge, list->rows), sizeof rows);
    return rows;
}

static inline size_t *n_of(struct marey__merge *merge, const struct list *list)
{
    return at(merge, list->n);
}

#endif
