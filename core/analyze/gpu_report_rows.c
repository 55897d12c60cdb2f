/* The tables of a GPU report that have rows for each process: devices, streams, iterations, gaps. */
#include "analyze/gpu_report_internal.h"

static const struct kymo_column device_columns[] = {
    KYMO__GPU_DEVICE_COLUMNS,
    KYMO__NS_COLUMN("span_ns", "span"),
    KYMO__NS_COLUMN("busy_ns", "busy"),
    KYMO__GPU_SHARE_COLUMN("busy_share", "busy %"),
    KYMO__TALLY_COLUMN("kernels", NULL),
    KYMO__TALLY_COLUMN("copies", NULL),
    KYMO__TALLY_COLUMN("sets", NULL),
    KYMO__TALLY_COLUMN("launches", NULL),
    KYMO__NUMBER_COLUMN("launches_per_ms", "launches/ms"),
    KYMO__NS_COLUMN("launch_ns", "launch calls"),
    KYMO__NS_COLUMN("delay_p50_ns", "delay median"),
    KYMO__NS_COLUMN("launch_wait_ns", "launch wait"),
    KYMO__GPU_SHARE_COLUMN("launch_wait_share", "launch wait %"),
    KYMO__NS_COLUMN("host_wait_ns", "host wait"),
    KYMO__GPU_SHARE_COLUMN("host_wait_share", "host wait %"),
    KYMO__NS_COLUMN("other_idle_ns", "other idle"),
};

static const struct kymo_column stream_columns[] = {
    KYMO__GPU_DEVICE_COLUMNS,
    {"stream", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},
    KYMO__NAME_COLUMN,
    KYMO__TALLY_COLUMN("kernels", NULL),
    KYMO__TALLY_COLUMN("copies", NULL),
    KYMO__TALLY_COLUMN("sets", NULL),
    KYMO__NS_COLUMN("busy_ns", "busy"),
    KYMO__GPU_SHARE_COLUMN("busy_share", "busy %"),
    KYMO__GPU_BYTES_COLUMN("bytes", NULL),
};

static const struct kymo_column iteration_columns[] = {
    KYMO__GPU_DEVICE_COLUMNS,
    {"iteration", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
    KYMO__NS_COLUMN("span_ns", "span"),
    KYMO__NS_COLUMN("busy_ns", "busy"),
    KYMO__GPU_SHARE_COLUMN("busy_share", "busy %"),
    KYMO__TALLY_COLUMN("launches", NULL),
    KYMO__TALLY_COLUMN("work", NULL),
    KYMO__NS_COLUMN("gpu_ns", "GPU"),
    KYMO__NS_COLUMN("launch_ns", "launch calls"),
    KYMO__NS_COLUMN("launch_wait_ns", "launch wait"),
    KYMO__GPU_SHARE_COLUMN("launch_wait_share", "launch wait %"),
    KYMO__NS_COLUMN("host_wait_ns", "host wait"),
};

static const struct kymo_column gap_columns[] = {
    KYMO__GPU_DEVICE_COLUMNS,
    KYMO__NS_COLUMN("begin_ns", "begin"),
    KYMO__NS_COLUMN("duration_ns", "duration"),
    KYMO__GPU_TEXT_COLUMN("reason"),
    KYMO__GPU_SHARE_COLUMN("reason_share", "of it"),
    KYMO__GPU_TEXT_COLUMN("before"),
    KYMO__GPU_TEXT_COLUMN("after"),
    KYMO__GPU_TEXT_COLUMN("range"),
    {"iteration", NULL, KYMO_TYPE_U64, KYMO_UNIT_NONE},
};

/* ---- cells ---- */

void kymo__gpu_put_quantile(kymo_table *table, const struct kymo__sketch *sketch, double q)
{
    if (sketch->count == 0)
        kymo_table_null(table);
    else
        kymo_table_u64(table, kymo__sketch_quantile(sketch, q));
}

/* So many in `ns`, for each `unit_ns`. */
void kymo__gpu_put_rate(kymo_table *table, uint64_t n, uint64_t ns, double unit_ns)
{
    if (ns == 0)
        kymo_table_null(table);
    else
        kymo_table_f64(table, (double)n * unit_ns / (double)ns);
}

void kymo__gpu_put_text(kymo_table *table, const char *text)
{
    if (text == NULL || text[0] == '\0')
        kymo_table_null(table);
    else
        kymo__put_string(table, text);
}

static void put_device(kymo_table *table, const struct kymo__gpu_process *p, size_t device)
{
    kymo__put_process(table, p->set.process);
    kymo_table_i64(table, p->devices[device].device);
}

/* ---- devices and streams ---- */

static void fill_devices(kymo_table *table, const struct kymo__gpu_process *p)
{
    for (size_t d = 0; d < p->set.n_devices; d++) {
        const struct kymo__gpu_device *device = &p->devices[d];
        put_device(table, p, d);
        kymo_table_u64(table, device->span_ns);
        kymo_table_u64(table, device->busy_ns);
        kymo__put_share(table, device->busy_ns, device->span_ns);
        for (size_t kind = KYMO_WORK_KERNEL; kind <= KYMO_WORK_SET; kind++)
            kymo_table_u64(table, device->n[kind]);
        kymo_table_u64(table, device->n_launches);
        kymo__gpu_put_rate(table, device->n_launches, device->span_ns, 1e6);
        kymo_table_u64(table, device->launch_ns);
        kymo__gpu_put_quantile(table, &device->delays, 0.5);
        kymo_table_u64(table, device->launch_wait_ns);
        kymo__put_share(table, device->launch_wait_ns, device->span_ns);
        kymo_table_u64(table, device->host_wait_ns);
        kymo__put_share(table, device->host_wait_ns, device->span_ns);
        kymo_table_u64(table, device->span_ns - device->busy_ns - device->launch_wait_ns -
                                  device->host_wait_ns);
    }
}

static void fill_streams(kymo_table *table, const struct kymo__gpu_process *p)
{
    for (uint32_t i = 0; p->streams != NULL && i < p->set.process->n_lanes; i++) {
        const struct kymo_lane_info *lane = kymo_recording_lane(p->recording, p->process, i);
        const struct kymo__gpu_stream *stream = &p->streams[i];
        const struct kymo__device_row *row = stream->row;
        if (row == NULL)
            continue;
        kymo__put_process(table, p->set.process);
        kymo_table_i64(table, lane->device);
        kymo_table_i64(table, (int32_t)lane->stream);
        kymo__put_string(table, lane->name);
        for (size_t kind = KYMO_WORK_KERNEL; kind <= KYMO_WORK_SET; kind++)
            kymo_table_u64(table, stream->n[kind]);
        kymo_table_u64(table, row->span_ns - row->atoms.ns[0]);
        kymo__put_share(table, row->span_ns - row->atoms.ns[0], row->span_ns);
        kymo_table_u64(table, stream->bytes);
    }
}

static void fill_iterations(kymo_table *table, const struct kymo__gpu_process *p)
{
    for (size_t d = 0; d < p->set.n_devices; d++)
        for (size_t i = 0; i < p->set.n_steps; i++) {
            const struct kymo__gpu_iteration *it = &p->iterations[d * p->set.n_steps + i];
            put_device(table, p, d);
            kymo_table_u64(table, p->set.steps[i].number);
            kymo_table_u64(table, it->span_ns);
            kymo_table_u64(table, it->busy_ns);
            kymo__put_share(table, it->busy_ns, it->span_ns);
            kymo_table_u64(table, it->n_launches);
            kymo_table_u64(table, it->n_work);
            kymo_table_u64(table, it->gpu_ns);
            kymo_table_u64(table, it->launch_ns);
            kymo_table_u64(table, it->launch_wait_ns);
            kymo__put_share(table, it->launch_wait_ns, it->span_ns);
            kymo_table_u64(table, it->host_wait_ns);
        }
}

/* ---- gaps ---- */

static void put_site_name(kymo_table *table, const struct kymo__gpu_process *p, uint32_t site)
{
    const struct kymo_site_info *info = kymo_recording_site(p->recording, p->process, site);
    kymo_table_text(table, info->name, info->name_len);
}

static void fill_gaps(kymo_table *table, const struct kymo__gpu_process *p)
{
    for (size_t i = 0; i < p->n_gaps; i++) {
        const struct kymo__gpu_gap *gap = &p->gaps[i];
        const uint64_t ns = gap->end_ns - gap->begin_ns;
        put_device(table, p, gap->device);
        kymo_table_u64(table, gap->begin_ns - KYMO__MIN(gap->begin_ns, p->set.process->first_ns));
        kymo_table_u64(table, ns);
        if (gap->reason_ns == 0)
            kymo_table_null(table);
        else
            kymo__put_string(table, kymo__idle_words[gap->reason].id);
        kymo__put_share(table, gap->reason_ns, ns);
        put_site_name(table, p, gap->before);
        put_site_name(table, p, gap->next);
        kymo__gpu_put_text(table, gap->path);
        if (gap->step == KYMO__NO_INDEX)
            kymo_table_null(table);
        else
            kymo_table_u64(table, p->set.steps[gap->step].number);
    }
}

const struct kymo__gpu_rows kymo__gpu_rows[KYMO__N_GPU_ROWS] = {
    {KYMO__GPU_DEVICES, "devices", device_columns, KYMO__COUNT_OF(device_columns), fill_devices},
    {KYMO__GPU_STREAMS, "streams", stream_columns, KYMO__COUNT_OF(stream_columns), fill_streams},
    {KYMO__GPU_ITERATIONS, "iterations", iteration_columns, KYMO__COUNT_OF(iteration_columns),
     fill_iterations},
    {KYMO__GPU_GAPS, "gaps", gap_columns, KYMO__COUNT_OF(gap_columns), fill_gaps},
};
