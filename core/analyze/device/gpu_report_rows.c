/* The tables of a GPU report that have rows for each process: devices, streams, iterations, gaps. */
#include "analyze/device/gpu_report_internal.h"

static const struct marey_column device_columns[] = {
    MAREY__GPU_DEVICE_COLUMNS,
    MAREY__NS_COLUMN("span_ns", "span"),
    MAREY__NS_COLUMN("busy_ns", "busy"),
    MAREY__GPU_SHARE_COLUMN("busy_share", "busy %"),
    MAREY__TALLY_COLUMN("kernels", NULL),
    MAREY__TALLY_COLUMN("copies", NULL),
    MAREY__TALLY_COLUMN("sets", NULL),
    MAREY__TALLY_COLUMN("launches", NULL),
    MAREY__NUMBER_COLUMN("launches_per_ms", "launches/ms"),
    MAREY__NS_COLUMN("launch_ns", "launch calls"),
    MAREY__NS_COLUMN("delay_p50_ns", "delay median"),
    MAREY__NS_COLUMN("launch_wait_ns", "launch wait"),
    MAREY__GPU_SHARE_COLUMN("launch_wait_share", "launch wait %"),
    MAREY__NS_COLUMN("host_wait_ns", "host wait"),
    MAREY__GPU_SHARE_COLUMN("host_wait_share", "host wait %"),
    MAREY__NS_COLUMN("other_idle_ns", "other idle"),
};

static const struct marey_column stream_columns[] = {
    MAREY__GPU_DEVICE_COLUMNS,
    {"stream", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
    MAREY__NAME_COLUMN,
    MAREY__TALLY_COLUMN("kernels", NULL),
    MAREY__TALLY_COLUMN("copies", NULL),
    MAREY__TALLY_COLUMN("sets", NULL),
    MAREY__NS_COLUMN("busy_ns", "busy"),
    MAREY__GPU_SHARE_COLUMN("busy_share", "busy %"),
    MAREY__GPU_BYTES_COLUMN("bytes", NULL),
};

static const struct marey_column iteration_columns[] = {
    MAREY__GPU_DEVICE_COLUMNS,
    {"iteration", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    MAREY__NS_COLUMN("span_ns", "span"),
    MAREY__NS_COLUMN("busy_ns", "busy"),
    MAREY__GPU_SHARE_COLUMN("busy_share", "busy %"),
    MAREY__TALLY_COLUMN("launches", NULL),
    MAREY__TALLY_COLUMN("work", NULL),
    MAREY__NS_COLUMN("gpu_ns", "GPU"),
    MAREY__NS_COLUMN("launch_ns", "launch calls"),
    MAREY__NS_COLUMN("launch_wait_ns", "launch wait"),
    MAREY__GPU_SHARE_COLUMN("launch_wait_share", "launch wait %"),
    MAREY__NS_COLUMN("host_wait_ns", "host wait"),
};

static const struct marey_column gap_columns[] = {
    MAREY__GPU_DEVICE_COLUMNS,
    MAREY__NS_COLUMN("begin_ns", "begin"),
    MAREY__NS_COLUMN("duration_ns", "duration"),
    MAREY__GPU_TEXT_COLUMN("reason"),
    MAREY__GPU_SHARE_COLUMN("reason_share", "of it"),
    MAREY__GPU_TEXT_COLUMN("before"),
    MAREY__GPU_TEXT_COLUMN("after"),
    MAREY__GPU_TEXT_COLUMN("range"),
    {"iteration", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
};

/* ---- cells ---- */

void marey__gpu_put_quantile(marey_table *table, const struct marey__sketch *sketch, double q)
{
    if (sketch->count == 0)
        marey_table_null(table);
    else
        marey_table_u64(table, marey__sketch_quantile(sketch, q));
}

/* So many in `ns`, for each `unit_ns`. */
void marey__gpu_put_rate(marey_table *table, uint64_t n, uint64_t ns, double unit_ns)
{
    if (ns == 0)
        marey_table_null(table);
    else
        marey_table_f64(table, (double)n * unit_ns / (double)ns);
}

void marey__gpu_put_text(marey_table *table, const char *text)
{
    if (text == NULL || text[0] == '\0')
        marey_table_null(table);
    else
        marey__put_string(table, text);
}

static void put_device(marey_table *table, const struct marey__gpu_process *p, size_t device)
{
    marey__put_process(table, p->set.process);
    marey_table_i64(table, p->devices[device].device);
}

/* ---- devices and streams ---- */

static void fill_devices(marey_table *table, const struct marey__gpu_process *p)
{
    for (size_t d = 0; d < p->set.n_devices; d++) {
        const struct marey__gpu_device *device = &p->devices[d];
        put_device(table, p, d);
        marey_table_u64(table, device->span_ns);
        marey_table_u64(table, device->busy_ns);
        marey__put_share(table, device->busy_ns, device->span_ns);
        for (size_t kind = MAREY_WORK_KERNEL; kind <= MAREY_WORK_SET; kind++)
            marey_table_u64(table, device->n[kind]);
        marey_table_u64(table, device->n_launches);
        marey__gpu_put_rate(table, device->n_launches, device->span_ns, 1e6);
        marey_table_u64(table, device->launch_ns);
        marey__gpu_put_quantile(table, &device->delays, 0.5);
        marey_table_u64(table, device->launch_wait_ns);
        marey__put_share(table, device->launch_wait_ns, device->span_ns);
        marey_table_u64(table, device->host_wait_ns);
        marey__put_share(table, device->host_wait_ns, device->span_ns);
        marey_table_u64(table, device->span_ns - device->busy_ns - device->launch_wait_ns -
                                   device->host_wait_ns);
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
        marey__put_process(table, p->set.process);
        marey_table_i64(table, lane->device);
        marey_table_i64(table, (int32_t)lane->stream);
        marey__put_string(table, lane->name);
        for (size_t kind = MAREY_WORK_KERNEL; kind <= MAREY_WORK_SET; kind++)
            marey_table_u64(table, stream->n[kind]);
        marey_table_u64(table, row->span_ns - row->atoms.ns[0]);
        marey__put_share(table, row->span_ns - row->atoms.ns[0], row->span_ns);
        marey_table_u64(table, stream->bytes);
    }
}

static void fill_iterations(marey_table *table, const struct marey__gpu_process *p)
{
    for (size_t d = 0; d < p->set.n_devices; d++)
        for (size_t i = 0; i < p->set.n_steps; i++) {
            const struct marey__gpu_iteration *it = &p->iterations[d * p->set.n_steps + i];
            put_device(table, p, d);
            marey_table_u64(table, p->set.steps[i].number);
            marey_table_u64(table, it->span_ns);
            marey_table_u64(table, it->busy_ns);
            marey__put_share(table, it->busy_ns, it->span_ns);
            marey_table_u64(table, it->n_launches);
            marey_table_u64(table, it->n_work);
            marey_table_u64(table, it->gpu_ns);
            marey_table_u64(table, it->launch_ns);
            marey_table_u64(table, it->launch_wait_ns);
            marey__put_share(table, it->launch_wait_ns, it->span_ns);
            marey_table_u64(table, it->host_wait_ns);
        }
}

/* ---- gaps ---- */

static void put_site_name(marey_table *table, const struct marey__gpu_process *p, uint32_t site)
{
    const struct marey_site_info *info = marey_recording_site(p->recording, p->process, site);
    marey_table_text(table, info->name, info->name_len);
}

static void fill_gaps(marey_table *table, const struct marey__gpu_process *p)
{
    for (size_t i = 0; i < p->n_gaps; i++) {
        const struct marey__gpu_gap *gap = &p->gaps[i];
        const uint64_t ns = gap->end_ns - gap->begin_ns;
        put_device(table, p, gap->device);
        marey_table_u64(table, gap->begin_ns - MAREY__MIN(gap->begin_ns, p->set.process->first_ns));
        marey_table_u64(table, ns);
        if (gap->reason_ns == 0)
            marey_table_null(table);
        else
            marey__put_string(table, marey__idle_words[gap->reason].id);
        marey__put_share(table, gap->reason_ns, ns);
        put_site_name(table, p, gap->before);
        put_site_name(table, p, gap->next);
        marey__gpu_put_text(table, gap->path);
        if (gap->step == MAREY__NO_INDEX)
            marey_table_null(table);
        else
            marey_table_u64(table, p->set.steps[gap->step].number);
    }
}

const struct marey__gpu_rows marey__gpu_rows[MAREY__N_GPU_ROWS] = {
    {MAREY__GPU_DEVICES, "devices", device_columns, MAREY__COUNT_OF(device_columns), fill_devices},
    {MAREY__GPU_STREAMS, "streams", stream_columns, MAREY__COUNT_OF(stream_columns), fill_streams},
    {MAREY__GPU_ITERATIONS, "iterations", iteration_columns, MAREY__COUNT_OF(iteration_columns),
     fill_iterations},
    {MAREY__GPU_GAPS, "gaps", gap_columns, MAREY__COUNT_OF(gap_columns), fill_gaps},
};
