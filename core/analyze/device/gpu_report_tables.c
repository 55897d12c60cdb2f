/* The tables of a GPU report that have rows for each name: kernels, their shapes, copies, ranges. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/device/gpu_report_internal.h"
#include "analyze/summary/internal.h"

static const struct marey_column kernel_columns[] = {
    MAREY__NAME_COLUMN,
    MAREY__GPU_TEXT_COLUMN("kind"),
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("total_ns", "total"),
    MAREY__NS_COLUMN("mean_ns", "mean"),
    MAREY__NS_COLUMN("min_ns", "min"),
    MAREY__NS_COLUMN("p50_ns", "median"),
    MAREY__NS_COLUMN("p99_ns", "p99"),
    MAREY__NS_COLUMN("max_ns", "max"),
    MAREY__SHARE_COLUMN("of GPU"),
    MAREY__GPU_BYTES_COLUMN("bytes", NULL),
    MAREY__GPU_RATE_COLUMN,
};

static const struct marey_column shape_columns[] = {
    MAREY__NAME_COLUMN,
    MAREY__GPU_TEXT_COLUMN("grid"),
    MAREY__GPU_TEXT_COLUMN("block"),
    {"registers", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    MAREY__GPU_BYTES_COLUMN("shared_bytes", "shared"),
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("total_ns", "total"),
    MAREY__NS_COLUMN("mean_ns", "mean"),
    MAREY__NS_COLUMN("min_ns", "min"),
    MAREY__NS_COLUMN("p50_ns", "median"),
    MAREY__NS_COLUMN("max_ns", "max"),
    MAREY__SHARE_COLUMN("of GPU"),
};

static const struct marey_column range_columns[] = {
    MAREY__NAME_COLUMN,
    MAREY__GPU_TEXT_COLUMN("category"),
    MAREY__TALLY_COLUMN("calls", NULL),
    MAREY__TALLY_COLUMN("launches", NULL),
    MAREY__TALLY_COLUMN("work", NULL),
    MAREY__NS_COLUMN("gpu_ns", "GPU"),
    MAREY__NS_COLUMN("self_gpu_ns", "self GPU"),
    MAREY__SHARE_COLUMN("of GPU"),
    MAREY__NS_COLUMN("launch_ns", "launch calls"),
    MAREY__NS_COLUMN("self_launch_ns", "self launch"),
    MAREY__NS_COLUMN("delay_mean_ns", "delay mean"),
    MAREY__NS_COLUMN("delay_p50_ns", "delay median"),
    MAREY__NS_COLUMN("delay_p99_ns", "delay p99"),
    MAREY__NS_COLUMN("delay_max_ns", "delay max"),
};

static const struct marey_column bound_columns[] = {
    MAREY__NAME_COLUMN,
    MAREY__GPU_TEXT_COLUMN("verdict"),
    MAREY__NS_COLUMN("span_ns", "span"),
    MAREY__NS_COLUMN("launch_wait_ns", "launch wait"),
    MAREY__GPU_SHARE_COLUMN("launch_wait_share", "launch wait %"),
    MAREY__NS_COLUMN("host_wait_ns", "host wait"),
    MAREY__GPU_SHARE_COLUMN("host_wait_share", "host wait %"),
    MAREY__TALLY_COLUMN("launches", NULL),
    MAREY__NUMBER_COLUMN("launches_per_ms", "launches/ms"),
    MAREY__NS_COLUMN("work_mean_ns", "mean work"),
};

/* ---- cells ---- */

static void put_name(marey_table *table, const marey_gpu_report *report, uint32_t name)
{
    marey_table_text(table, report->names.names[name].text, report->names.names[name].len);
}

static bool is_wanted(const marey_gpu_report *report, uint32_t name)
{
    return marey__name_matches(report->filter, report->names.names[name].text,
                               report->names.names[name].len);
}

static void put_bytes(marey_table *table, const struct marey__gpu_sum *sum)
{
    if (sum->bytes == 0)
        marey_table_null(table);
    else
        marey_table_u64(table, sum->bytes);
}

/* Rounded, as a mean is. */
static void put_mean(marey_table *table, uint64_t sum, uint64_t n)
{
    if (n == 0)
        marey_table_null(table);
    else
        marey_table_u64(table, (sum + n / 2) / n);
}

/* ---- work ---- */

static uint64_t busy_of_all(const marey_gpu_report *report)
{
    uint64_t busy_ns = 0;
    for (size_t i = 0; i < report->n_processes; i++)
        for (size_t d = 0; d < report->processes[i].set.n_devices; d++)
            busy_ns += report->processes[i].devices[d].busy_ns;
    return busy_ns;
}

static void fill_shapes(marey_table *table, const marey_gpu_report *report)
{
    const uint64_t busy_ns = busy_of_all(report);
    for (size_t i = 0; i < report->sums.n; i++) {
        const struct marey__gpu_sum *sum = &report->sums.sums[i];
        char text[80];
        if (sum->kind != MAREY_WORK_KERNEL || !is_wanted(report, sum->name))
            continue;
        put_name(table, report, sum->name);
        if (sum->shape == MAREY__NO_INDEX) {
            for (size_t c = 0; c < 4; c++)
                marey_table_null(table);
        } else {
            const struct marey__launch_shape s = marey__launch_shape_at(&report->shapes, sum->shape);
            snprintf(text, sizeof text, "%" PRIu64 "x%" PRIu64 "x%" PRIu64, s.grid[0], s.grid[1],
                     s.grid[2]);
            marey__put_string(table, text);
            snprintf(text, sizeof text, "%" PRIu64 "x%" PRIu64 "x%" PRIu64, s.block[0], s.block[1],
                     s.block[2]);
            marey__put_string(table, text);
            marey_table_u64(table, s.registers);
            marey_table_u64(table, s.shared_bytes);
        }
        marey_table_u64(table, sum->calls.count);
        marey_table_u64(table, sum->calls.sum);
        put_mean(table, sum->calls.sum, sum->calls.count);
        marey_table_u64(table, sum->calls.min);
        marey__gpu_put_quantile(table, &sum->calls, 0.5);
        marey_table_u64(table, sum->calls.max);
        marey__put_share(table, sum->calls.sum, busy_ns);
    }
    marey__sort_by(table, "block", 0);
    marey__sort_by(table, "grid", 0);
    marey__sort_by(table, "name", 0);
    marey__sort_by(table, "total_ns", 1);
}

static void put_kernel(marey_table *table, const marey_gpu_report *report,
                       const struct marey__gpu_sum *sum, uint64_t busy_ns)
{
    put_name(table, report, sum->name);
    marey__put_string(table, marey__work_kind_name(sum->kind));
    marey_table_u64(table, sum->calls.count);
    marey_table_u64(table, sum->calls.sum);
    put_mean(table, sum->calls.sum, sum->calls.count);
    marey_table_u64(table, sum->calls.min);
    marey__gpu_put_quantile(table, &sum->calls, 0.5);
    marey__gpu_put_quantile(table, &sum->calls, 0.99);
    marey_table_u64(table, sum->calls.max);
    marey__put_share(table, sum->calls.sum, busy_ns);
    put_bytes(table, sum);
    marey__put_byte_rate(table, sum->bytes, sum->bytes_ns);
}

/* By name and kind, whatever the shapes; those are done with, so their sketches may be taken. */
static bool fill_kernels(marey_gpu_report *report)
{
    marey_table *kernels = report->tables[MAREY__GPU_KERNELS],
                *copies = report->tables[MAREY__GPU_COPIES];
    const uint64_t busy_ns = busy_of_all(report);
    struct marey__gpu_sums by_name = {0};
    bool done = true;
    for (size_t i = 0; done && i < report->sums.n; i++)
        done = marey__gpu_sums_add(&by_name, report->sums.sums[i].name, MAREY__NO_INDEX,
                                   &report->sums.sums[i]);
    for (size_t i = 0; done && i < by_name.n; i++) {
        const struct marey__gpu_sum *sum = &by_name.sums[i];
        if (!is_wanted(report, sum->name))
            continue;
        put_kernel(kernels, report, sum, busy_ns);
        const struct marey__name *name = &report->names.names[sum->name];
        if (sum->kind != MAREY_WORK_KERNEL)
            marey__put_copy(copies, &(struct marey__copy){.name = name->text,
                                                          .len = name->len,
                                                          .calls = &sum->calls,
                                                          .bytes = sum->bytes,
                                                          .bytes_ns = sum->bytes_ns});
    }
    marey__gpu_sums_fini(&by_name);
    marey__sort_by(kernels, "kind", 0);
    marey__sort_by(kernels, "name", 0);
    marey__sort_by(kernels, "total_ns", 1);
    marey__sort_by(copies, "name", 0);
    marey__sort_by(copies, "total_ns", 1);
    return done;
}

/* ---- ranges ---- */

static void put_range(marey_table *table, const marey_gpu_report *report,
                      const struct marey__launching *range, uint64_t all_gpu_ns)
{
    put_name(table, report, range->name);
    marey__gpu_put_text(table, range->category);
    marey_table_u64(table, range->calls);
    marey_table_u64(table, range->n_launches);
    marey_table_u64(table, range->n_work);
    marey_table_u64(table, range->gpu_ns);
    marey_table_u64(table, range->self_gpu_ns);
    marey__put_share(table, range->gpu_ns, all_gpu_ns);
    marey_table_u64(table, range->launch_ns);
    marey_table_u64(table, range->self_launch_ns);
    put_mean(table, range->delays.sum, range->delays.count);
    marey__gpu_put_quantile(table, &range->delays, 0.5);
    marey__gpu_put_quantile(table, &range->delays, 0.99);
    marey_table_u64(table, range->delays.max);
}

/* What the larger of the two waits is called where it takes a tenth of the span; NULL: neither does. */
static const char *verdict_on(const struct marey__launching *range)
{
    const bool is_launch = range->launch_wait_ns >= range->host_wait_ns;
    const uint64_t wait_ns = is_launch ? range->launch_wait_ns : range->host_wait_ns;
    if (wait_ns == 0 || range->span_ns == 0 || wait_ns < range->span_ns / 10)
        return NULL;
    return is_launch ? "launch-bound" : "host-bound";
}

static void put_bound(marey_table *table, const marey_gpu_report *report,
                      const struct marey__launching *range)
{
    put_name(table, report, range->name);
    marey__gpu_put_text(table, verdict_on(range));
    if (range->span_ns != 0)
        marey_table_u64(table, range->span_ns);
    else
        marey_table_null(table); /* (no range) */
    marey_table_u64(table, range->launch_wait_ns);
    marey__put_share(table, range->launch_wait_ns, range->span_ns);
    marey_table_u64(table, range->host_wait_ns);
    marey__put_share(table, range->host_wait_ns, range->span_ns);
    marey_table_u64(table, range->n_launches);
    marey__gpu_put_rate(table, range->n_launches, range->span_ns, 1e6);
    put_mean(table, range->gpu_ns, range->n_work);
}

static void fill_ranges(const marey_gpu_report *report)
{
    marey_table *ranges = report->tables[MAREY__GPU_RANGES],
                *bound = report->tables[MAREY__GPU_LAUNCH_BOUND];
    uint64_t all_gpu_ns = 0;
    for (size_t i = 0; i < report->sums.n; i++)
        all_gpu_ns += report->sums.sums[i].calls.sum;
    for (size_t i = 0; i < report->n_ranges; i++) {
        const struct marey__launching *range = &report->ranges[i];
        if (range->n_launches == 0 || !is_wanted(report, range->name))
            continue;
        put_range(ranges, report, range, all_gpu_ns);
        if (range->span_ns != 0 || range->launch_wait_ns != 0 || range->host_wait_ns != 0)
            put_bound(bound, report, range);
    }
    marey__sort_by(ranges, "name", 0);
    marey__sort_by(ranges, "gpu_ns", 1);
    marey__sort_by(bound, "name", 0);
    marey__sort_by(bound, "host_wait_ns", 1);
    marey__sort_by(bound, "launch_wait_ns", 1);
}

/* ---- all of them ---- */

#define MAKE(table, name, columns)                                                                 \
    marey_table_create(name, columns, MAREY__COUNT_OF(columns), &report->tables[table])

static marey_status make_tables(marey_gpu_report *report)
{
    for (size_t i = 0; i < MAREY__N_GPU_ROWS; i++) {
        const struct marey__gpu_rows *rows = &marey__gpu_rows[i];
        MAREY_TRY(marey_table_create(rows->name, rows->columns, rows->n_columns,
                                     &report->tables[rows->table]));
    }
    MAREY_TRY(MAKE(MAREY__GPU_KERNELS, "kernels", kernel_columns));
    MAREY_TRY(MAKE(MAREY__GPU_SHAPES, "shapes", shape_columns));
    MAREY_TRY(MAKE(MAREY__GPU_COPIES, "copies", marey__copy_columns));
    MAREY_TRY(MAKE(MAREY__GPU_RANGES, "ranges", range_columns));
    MAREY_TRY(MAKE(MAREY__GPU_LAUNCH_BOUND, "launch_bound", bound_columns));
    return MAKE(MAREY__GPU_WARNINGS, "warnings", marey__warning_columns);
}

static void fill_warnings(marey_table *table, const marey_gpu_report *report)
{
    char text[160];
    uint64_t n_unlinked = 0, n_work = 0;
    for (size_t i = 0; i < report->n_processes; i++) {
        n_unlinked += report->processes[i].n_unlinked;
        n_work += report->processes[i].n_work;
    }
    if (n_unlinked == 0)
        return;
    snprintf(text, sizeof text,
             "GPU work whose launch is not in the recording: %" PRIu64 " of %" PRIu64
             "; it is in no range.",
             n_unlinked, n_work);
    marey__put_string(table, text);
}

marey_status marey__gpu_report_make_tables(marey_gpu_report *report)
{
    marey_table **tables = report->tables;
    MAREY_TRY(make_tables(report));
    fill_shapes(tables[MAREY__GPU_SHAPES], report);
    fill_ranges(report);
    MAREY__TRY_MEMORY(fill_kernels(report));
    for (size_t i = 0; i < report->n_processes * MAREY__N_GPU_ROWS; i++) {
        const struct marey__gpu_rows *rows = &marey__gpu_rows[i % MAREY__N_GPU_ROWS];
        rows->fill(tables[rows->table], &report->processes[i / MAREY__N_GPU_ROWS]);
    }
    marey__sort_by(tables[MAREY__GPU_GAPS], "duration_ns", 1);
    marey_table_truncate(tables[MAREY__GPU_GAPS], report->max_gaps);
    fill_warnings(tables[MAREY__GPU_WARNINGS], report);
    for (size_t t = 0; t < MAREY__N_GPU_TABLES; t++)
        MAREY_TRY(marey_table_status(tables[t]));
    return MAREY_OK;
}
