/* The tables of a GPU report: rows per process, and rows per name. */
#include <inttypes.h>

#include "analyze/device/gpu_report.h"
#include "analyze/summary/internal.h"

/* ---- columns ---- */

#define BYTES(name, title) COLUMN(name, title, MAREY_TYPE_U64, MAREY_UNIT_BYTES)
#define DEVICE_COLUMNS NUMBER("rank"), NUMBER("pid"), NUMBER("device")

static const struct marey_column device_columns[] = {
    DEVICE_COLUMNS,
    NS("span_ns", "span"),
    NS("busy_ns", "busy"),
    SHARE("busy_share", "busy %"),
    COUNT("kernels", NULL),
    COUNT("copies", NULL),
    COUNT("sets", NULL),
    COUNT("launches", NULL),
    REAL("launches_per_ms", "launches/ms"),
    NS("launch_ns", "launch calls"),
    NS("delay_p50_ns", "delay median"),
    NS("launch_wait_ns", "launch wait"),
    SHARE("launch_wait_share", "launch wait %"),
    NS("host_wait_ns", "host wait"),
    SHARE("host_wait_share", "host wait %"),
    NS("other_idle_ns", "other idle"),
};

static const struct marey_column stream_columns[] = {
    DEVICE_COLUMNS,        NUMBER("stream"),
    TEXT("name"),          COUNT("kernels", NULL),
    COUNT("copies", NULL), COUNT("sets", NULL),
    NS("busy_ns", "busy"), SHARE("busy_share", "busy %"),
    BYTES("bytes", NULL),
};

static const struct marey_column iteration_columns[] = {
    DEVICE_COLUMNS,
    WHOLE("iteration"),
    NS("span_ns", "span"),
    NS("busy_ns", "busy"),
    SHARE("busy_share", "busy %"),
    COUNT("launches", NULL),
    COUNT("work", NULL),
    NS("gpu_ns", "GPU"),
    NS("launch_ns", "launch calls"),
    NS("launch_wait_ns", "launch wait"),
    SHARE("launch_wait_share", "launch wait %"),
    NS("host_wait_ns", "host wait"),
};

static const struct marey_column gap_columns[] = {
    DEVICE_COLUMNS,
    NS("begin_ns", "begin"),
    NS("duration_ns", "duration"),
    TEXT("reason"),
    SHARE("reason_share", "of it"),
    TEXT("before"),
    TEXT("after"),
    TEXT("range"),
    WHOLE("iteration"),
};

static const struct marey_column kernel_columns[] = {
    TEXT("name"),           TEXT("kind"),
    COUNT("count", NULL),   NS("total_ns", "total"),
    NS("mean_ns", "mean"),  NS("min_ns", "min"),
    NS("p50_ns", "median"), NS("p99_ns", "p99"),
    NS("max_ns", "max"),    SHARE("share", "of GPU"),
    BYTES("bytes", NULL),   COLUMN("bytes_per_s", "bytes/s", MAREY_TYPE_F64, MAREY_UNIT_BYTES),
};

static const struct marey_column shape_columns[] = {
    TEXT("name"),
    TEXT("grid"),
    TEXT("block"),
    WHOLE("registers"),
    BYTES("shared_bytes", "shared"),
    COUNT("count", NULL),
    NS("total_ns", "total"),
    NS("mean_ns", "mean"),
    NS("min_ns", "min"),
    NS("p50_ns", "median"),
    NS("max_ns", "max"),
    SHARE("share", "of GPU"),
};

static const struct marey_column range_columns[] = {
    TEXT("name"),
    TEXT("category"),
    COUNT("calls", NULL),
    COUNT("launches", NULL),
    COUNT("work", NULL),
    NS("gpu_ns", "GPU"),
    NS("self_gpu_ns", "self GPU"),
    SHARE("share", "of GPU"),
    NS("launch_ns", "launch calls"),
    NS("self_launch_ns", "self launch"),
    NS("delay_mean_ns", "delay mean"),
    NS("delay_p50_ns", "delay median"),
    NS("delay_p99_ns", "delay p99"),
    NS("delay_max_ns", "delay max"),
};

static const struct marey_column bound_columns[] = {
    TEXT("name"),
    TEXT("verdict"),
    NS("span_ns", "span"),
    NS("launch_wait_ns", "launch wait"),
    SHARE("launch_wait_share", "launch wait %"),
    NS("host_wait_ns", "host wait"),
    SHARE("host_wait_share", "host wait %"),
    COUNT("launches", NULL),
    REAL("launches_per_ms", "launches/ms"),
    NS("work_mean_ns", "mean work"),
};

const struct marey_table_definition marey__gpu_tables[MAREY__N_GPU_TABLES] = {
    [MAREY__GPU_DEVICES] = TABLE_OF("devices", device_columns, "GPUs"),
    [MAREY__GPU_KERNELS] = TABLE_OF("kernels", kernel_columns, "GPU activity by name"),
    [MAREY__GPU_SHAPES] = TABLE_OF("shapes", shape_columns, "kernels by grid and block size"),
    [MAREY__GPU_COPIES] = TABLE_OF("copies", marey__copy_columns, "copies and memsets"),
    [MAREY__GPU_STREAMS] = TABLE_OF("streams", stream_columns, "streams"),
    [MAREY__GPU_RANGES] =
        TABLE_OF("ranges", range_columns, "GPU activity by the ranges that launched it"),
    [MAREY__GPU_LAUNCH_BOUND] =
        TABLE_OF("launch_bound", bound_columns, "where GPUs wait for the host"),
    [MAREY__GPU_ITERATIONS] = TABLE_OF("iterations", iteration_columns, "iterations"),
    [MAREY__GPU_GAPS] = TABLE_OF("gaps", gap_columns, "longest gaps"),
    [MAREY__GPU_WARNINGS] = TABLE_OF("warnings", marey__warning_columns, "notes on the figures"),
};

/* ---- cells ---- */

static struct marey__cell quantile_of(const struct marey__sketch *sketch, double q)
{
    return KNOWN(sketch->count != 0, U64(marey__sketch_quantile(sketch, q)));
}

static struct marey__cell per_ms(uint64_t n, uint64_t ns)
{
    return KNOWN(ns != 0, F64((double)n * 1e6 / (double)ns));
}

static struct marey__cell mean_of(uint64_t sum, uint64_t n)
{
    return KNOWN(n != 0, U64((sum + n / 2) / n));
}

/* Null for an empty string, too. */
static struct marey__cell text_of(const char *text)
{
    return KNOWN(text != NULL && text[0] != '\0', STRING(text));
}

#define DEVICE_OF(p, number) PROCESS_OF((p)->set.process), I64((p)->devices[number].device)
#define BY_KIND(n) U64((n)[MAREY_WORK_KERNEL]), U64((n)[MAREY_WORK_COPY]), U64((n)[MAREY_WORK_SET])
#define NAME_OF(list, i) STRING_N((list).names[i].text, (list).names[i].len)

/* ---- devices and streams ---- */

static void fill_devices(marey_table *table, const struct marey__gpu_process *p)
{
    for (size_t d = 0; d < p->set.n_devices; d++) {
        const struct marey__gpu_device *device = &p->devices[d];
        MAREY__PUT_ROW(
            table, DEVICE_OF(p, d), U64(device->span_ns), U64(device->busy_ns),
            RATIO(device->busy_ns, device->span_ns), BY_KIND(device->n), U64(device->n_launches),
            per_ms(device->n_launches, device->span_ns), U64(device->launch_ns),
            quantile_of(&device->delays, 0.5), U64(device->launch_wait_ns),
            RATIO(device->launch_wait_ns, device->span_ns), U64(device->host_wait_ns),
            RATIO(device->host_wait_ns, device->span_ns),
            U64(device->span_ns - device->busy_ns - device->launch_wait_ns - device->host_wait_ns));
    }
}

static void fill_streams(marey_table *table, const struct marey__gpu_process *p)
{
    for (uint32_t i = 0; p->streams != NULL && i < p->set.process->n_lanes; i++) {
        const struct marey_lane_info *lane = marey_recording_lane(p->recording, p->process, i);
        const struct marey__gpu_stream *stream = &p->streams[i];
        const struct marey__device_row *row = stream->row;
        if (row == NULL)
            continue;
        const uint64_t busy_ns = row->span_ns - row->atoms.ns[0];
        MAREY__PUT_ROW(table, PROCESS_OF(p->set.process), I64(lane->device),
                       I64((int32_t)lane->stream), STRING(lane->name), BY_KIND(stream->n),
                       U64(busy_ns), RATIO(busy_ns, row->span_ns), U64(stream->bytes));
    }
}

static void fill_iterations(marey_table *table, const struct marey__gpu_process *p)
{
    for (size_t d = 0; d < p->set.n_devices; d++)
        for (size_t i = 0; i < p->set.n_steps; i++) {
            const struct marey__gpu_iteration *it = &p->iterations[d * p->set.n_steps + i];
            MAREY__PUT_ROW(table, DEVICE_OF(p, d), U64(p->set.steps[i].number), U64(it->span_ns),
                           U64(it->busy_ns), RATIO(it->busy_ns, it->span_ns), U64(it->n_launches),
                           U64(it->n_work), U64(it->gpu_ns), U64(it->launch_ns),
                           U64(it->launch_wait_ns), RATIO(it->launch_wait_ns, it->span_ns),
                           U64(it->host_wait_ns));
        }
}

/* ---- gaps ---- */

static void fill_gaps(marey_table *table, const struct marey__gpu_process *p)
{
    for (size_t i = 0; i < p->n_gaps; i++) {
        const struct marey__gpu_gap *gap = &p->gaps[i];
        const uint64_t ns = gap->end_ns - gap->begin_ns;
        const struct marey_site_info *const before = marey__work_site(&p->set, gap->before),
                                            *const next = marey__work_site(&p->set, gap->next);
        const uint64_t first_ns = MAREY__MIN(gap->begin_ns, p->set.process->first_ns);
        MAREY__PUT_ROW(table, DEVICE_OF(p, gap->device), U64(gap->begin_ns - first_ns), U64(ns),
                       KNOWN(gap->reason_ns != 0, STRING(marey__idle_words[gap->reason].id)),
                       RATIO(gap->reason_ns, ns), STRING_N(before->name, before->name_len),
                       STRING_N(next->name, next->name_len), text_of(gap->path),
                       KNOWN(gap->step != MAREY__NO_INDEX, U64(p->set.steps[gap->step].number)));
    }
}

static bool is_wanted(const struct marey__gpu_report *report, uint32_t name)
{
    return marey__name_matches(report->filter, report->names.names[name].text,
                               report->names.names[name].len);
}

/* ---- work ---- */

static uint64_t busy_of_all(const struct marey__gpu_report *report)
{
    uint64_t busy_ns = 0;
    for (size_t i = 0; i < report->n_processes; i++)
        for (size_t d = 0; d < report->processes[i].set.n_devices; d++)
            busy_ns += report->processes[i].devices[d].busy_ns;
    return busy_ns;
}

static const char *size_text(const uint64_t size[3], char into[80])
{
    snprintf(into, 80, "%" PRIu64 "x%" PRIu64 "x%" PRIu64, size[0], size[1], size[2]);
    return into;
}

static void fill_shapes(marey_table *table, const struct marey__gpu_report *report)
{
    const uint64_t busy_ns = busy_of_all(report);
    for (size_t i = 0; i < report->sums.n; i++) {
        const struct marey__gpu_sum *sum = &report->sums.sums[i];
        if (sum->kind != MAREY_WORK_KERNEL || !is_wanted(report, sum->name))
            continue;
        const bool is_known = sum->shape != MAREY__NO_INDEX;
        struct marey__launch_config s = {0};
        char grid[80], block[80];
        if (is_known)
            s = marey__launch_config_at(&report->shapes, sum->shape);
        MAREY__PUT_ROW(
            table, NAME_OF(report->names, sum->name),
            KNOWN(is_known, STRING(size_text(s.grid, grid))),
            KNOWN(is_known, STRING(size_text(s.block, block))), KNOWN(is_known, U64(s.registers)),
            KNOWN(is_known, U64(s.shared_bytes)), U64(sum->calls.count), U64(sum->calls.sum),
            mean_of(sum->calls.sum, sum->calls.count), U64(sum->calls.min),
            quantile_of(&sum->calls, 0.5), U64(sum->calls.max), RATIO(sum->calls.sum, busy_ns));
    }
    MAREY__SORT_BY(table, "-total_ns", "name", "grid", "block");
}

static void put_kernel(marey_table *table, const struct marey__gpu_report *report,
                       const struct marey__gpu_sum *sum, uint64_t busy_ns)
{
    MAREY__PUT_ROW(table, NAME_OF(report->names, sum->name),
                   STRING(marey__work_kind_name(sum->kind)), U64(sum->calls.count),
                   U64(sum->calls.sum), mean_of(sum->calls.sum, sum->calls.count),
                   U64(sum->calls.min), quantile_of(&sum->calls, 0.5),
                   quantile_of(&sum->calls, 0.99), U64(sum->calls.max),
                   RATIO(sum->calls.sum, busy_ns), KNOWN(sum->bytes != 0, U64(sum->bytes)));
    marey__put_byte_rate(table, sum->bytes, sum->bytes_ns);
}

/*
 * By name and kind, over all shapes. Takes the sketches of the shapes, whose table is already
 * filled.
 */
static bool fill_kernels(const struct marey__gpu_report *report)
{
    marey_table *kernels = report->tables[MAREY__GPU_KERNELS],
                *copies = report->tables[MAREY__GPU_COPIES];
    const uint64_t busy_ns = busy_of_all(report);
    struct marey__gpu_sums by_name MAREY__FINALLY(marey__gpu_sums_fini) = {0};
    for (size_t i = 0; i < report->sums.n; i++)
        if (!marey__gpu_sums_add(&by_name, report->sums.sums[i].name, MAREY__NO_INDEX,
                                 &report->sums.sums[i]))
            return false;
    for (size_t i = 0; i < by_name.n; i++) {
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
    MAREY__SORT_BY(kernels, "-total_ns", "name", "kind");
    MAREY__SORT_BY(copies, "-total_ns", "name");
    return true;
}

/* ---- ranges ---- */

static void put_range(marey_table *table, const struct marey__gpu_report *report,
                      const struct marey__launching *range, uint64_t all_gpu_ns)
{
    MAREY__PUT_ROW(table, NAME_OF(report->names, range->name), text_of(range->category),
                   U64(range->calls), U64(range->n_launches), U64(range->n_work), U64(range->gpu_ns),
                   U64(range->self_gpu_ns), RATIO(range->gpu_ns, all_gpu_ns), U64(range->launch_ns),
                   U64(range->self_launch_ns), mean_of(range->delays.sum, range->delays.count),
                   quantile_of(&range->delays, 0.5), quantile_of(&range->delays, 0.99),
                   U64(range->delays.max));
}

/* By the larger of the two waits if it is at least a tenth of the span; else NULL. */
static const char *verdict_on(const struct marey__launching *range)
{
    const bool is_launch = range->launch_wait_ns >= range->host_wait_ns;
    const uint64_t wait_ns = is_launch ? range->launch_wait_ns : range->host_wait_ns;
    if (wait_ns == 0 || range->span_ns == 0 || wait_ns < range->span_ns / 10)
        return NULL;
    return is_launch ? "launch-bound" : "host-bound";
}

static void put_bound(marey_table *table, const struct marey__gpu_report *report,
                      const struct marey__launching *range)
{
    MAREY__PUT_ROW(table, NAME_OF(report->names, range->name), text_of(verdict_on(range)),
                   KNOWN(range->span_ns != 0, U64(range->span_ns)), /* null: (no range) */
                   U64(range->launch_wait_ns), RATIO(range->launch_wait_ns, range->span_ns),
                   U64(range->host_wait_ns), RATIO(range->host_wait_ns, range->span_ns),
                   U64(range->n_launches), per_ms(range->n_launches, range->span_ns),
                   mean_of(range->gpu_ns, range->n_work));
}

static void fill_ranges(const struct marey__gpu_report *report)
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
    MAREY__SORT_BY(ranges, "-gpu_ns", "name");
    MAREY__SORT_BY(bound, "-launch_wait_ns", "-host_wait_ns", "name");
}

/* ---- all tables ---- */

static void fill_warnings(marey_table *table, const struct marey__gpu_report *report)
{
    uint64_t n_unlinked = 0, n_work = 0;
    for (size_t i = 0; i < report->n_processes; i++) {
        n_unlinked += report->processes[i].n_unlinked;
        n_work += report->processes[i].n_work;
    }
    if (n_unlinked != 0)
        marey__put_note(table,
                        "GPU activity whose launch is not in the recording: %" PRIu64 " of %" PRIu64
                        " (it belongs to no range).",
                        n_unlinked, n_work);
}

bool marey__gpu_fill_tables(const struct marey__gpu_report *report)
{
    marey_table **const tables = report->tables;
    fill_shapes(tables[MAREY__GPU_SHAPES], report);
    fill_ranges(report);
    if (!fill_kernels(report))
        return false;
    for (size_t i = 0; i < report->n_processes; i++) {
        fill_devices(tables[MAREY__GPU_DEVICES], &report->processes[i]);
        fill_streams(tables[MAREY__GPU_STREAMS], &report->processes[i]);
        fill_iterations(tables[MAREY__GPU_ITERATIONS], &report->processes[i]);
        fill_gaps(tables[MAREY__GPU_GAPS], &report->processes[i]);
    }
    MAREY__SORT_BY(tables[MAREY__GPU_GAPS], "-duration_ns");
    marey_table_truncate(tables[MAREY__GPU_GAPS], report->max_gaps);
    fill_warnings(tables[MAREY__GPU_WARNINGS], report);
    return true;
}
