/*
 * Streams of GPUs and flows, as Kineto writes them, so that tools which know its files take ours as well:
 *
 *   {"ph":"X","pid":DEVICE,"tid":STREAM,"ts":...,"dur":...,"name":...,"cat":"kernel","args":{"device":...}}
 *   {"ph":"s",...,"id":CORRELATION,"cat":"ac2g","name":"ac2g"}     at the begin of the range that launched it
 *   {"ph":"f",...,"id":CORRELATION,"cat":"ac2g","name":"ac2g","bp":"e"}          at its own
 *
 * Several processes may have the same device; then a device of a process has a pid of its own above all that Linux
 * gives, and its arguments say which it is.
 */
#include "present/export/chrome_export.h"

#include <stdio.h>

enum { FIRST_GPU_PID = 5000000, MAX_DEVICES = 1 << 16 };

/* ---- all processes ---- */

/* Not a process: the devices of all of them. */
#define ANY_PROCESS (UINT32_MAX - 1)

static bool survey_lanes(struct marey__export *x, struct marey__chrome_export *chrome,
                         size_t recording, size_t process, uint32_t number, struct marey__pairs *seen)
{
    const marey_recording *of = x->recordings[recording];
    const struct marey_process *info = marey_recording_process(of, process);
    bool failed = false;
    chrome->is_kineto |= info->source[0] != '\0';
    for (uint32_t i = 0; i < info->n_lanes && !failed; i++) {
        const struct marey_lane_info *lane = marey_recording_lane(of, process, i);
        if (lane->kind != MAREY_LANE_GPU)
            continue;
        chrome->is_kineto = true;
        const uint32_t device = (uint32_t)lane->device;
        if (marey__pairs_add(seen, number, device, &failed) && !failed &&
            !marey__pairs_add(seen, ANY_PROCESS, device, &failed))
            chrome->pids_are_devices = false;
    }
    return !failed;
}

bool marey__chrome_survey(struct marey__export *x, struct marey__chrome_export *chrome)
{
    struct marey__pairs seen = {0};
    const struct marey_process *process;
    bool is_complete = true;
    uint32_t number = 0;
    chrome->pids_are_devices = true;
    for (size_t r = 0; r < x->n_recordings; r++)
        for (size_t i = 0; is_complete && i < marey_recording_n_logs(x->recordings[r]); i++)
            is_complete = survey_lanes(x, chrome, r, i, number++, &seen);
    for (uint32_t i = 0; is_complete && (process = marey__export_nth(x, i)) != NULL; i++) {
        const int64_t pid = x->has_own_ids ? (int64_t)i + 1 : process->pid;
        bool failed = false;
        if (pid >= 0 && pid < MAX_DEVICES &&
            !marey__pairs_add(&seen, ANY_PROCESS, (uint32_t)pid, &failed))
            chrome->pids_are_devices = false;
        is_complete = !failed;
    }
    marey__pairs_fini(&seen);
    return is_complete;
}

static int64_t gpu_pid(const struct marey__export *x, int32_t device)
{
    if (marey__chrome_of(x)->pids_are_devices)
        return device;
    return FIRST_GPU_PID + (int64_t)x->process_number * MAX_DEVICES + (uint16_t)device;
}

/* The rank is the file's, where it has one process. */
static void put_distributed(struct marey__buf *buf, const struct marey_process *process)
{
    if (process == NULL || process->rank < 0)
        return;
    marey__buf_puts(buf, "\"distributedInfo\":{");
    if (process->backend[0] != '\0') {
        marey__buf_puts(buf, "\"backend\": ");
        marey__json_put(buf, process->backend, strlen(process->backend));
        marey__buf_puts(buf, ", ");
    }
    marey__buf_printf(buf, "\"rank\": %d", process->rank);
    if (process->world_size > 0)
        marey__buf_printf(buf, ", \"world_size\": %d", process->world_size);
    marey__buf_puts(buf, "},\n");
}

void marey__chrome_kineto_head(const struct marey__export *x, struct marey__buf *buf)
{
    marey__buf_puts(buf, "\"schemaVersion\":1,\n");
    put_distributed(buf, marey__export_nth(x, 1) == NULL ? marey__export_nth(x, 0) : NULL);
    marey__buf_printf(buf, "\"baseTimeNanoseconds\":%lld,\n", (long long)x->origin_unix_ns);
}

/* ---- one stream ---- */

static void put_device(struct marey__export *x, struct marey__buf *buf, int32_t device)
{
    struct marey__buf name = {0};
    const int64_t pid = gpu_pid(x, device);
    marey__buf_puts(buf, ",");
    marey__chrome_open_meta(buf, pid, 0, "process_name", "name");
    marey__export_process_name(x, &name);
    marey__json_put(buf, name.data, name.len);
    marey__buf_puts(buf, "}},");
    marey__chrome_open_meta(buf, pid, 0, "process_labels", "labels");
    marey__buf_printf(buf, "\"GPU %d\"}},", device);
    marey__chrome_open_meta(buf, pid, 0, "process_sort_index", "sort_index");
    marey__buf_printf(buf, "%lld}}", (long long)FIRST_GPU_PID + x->process_number * 1000 + device);
    buf->failed |= name.failed;
    marey__buf_fini(&name);
}

static bool open_stream(struct marey__export *x, struct marey__export_lane *lane)
{
    const struct marey_lane_info *info = lane->stack.info;
    const int64_t pid = gpu_pid(x, info->device);
    const int32_t stream = (int32_t)info->stream;
    struct marey__buf buf = {0};
    bool failed;
    if (!marey__chrome_lane(x, lane, pid, stream))
        return false;
    if (marey__pairs_add(&marey__chrome_of(x)->gpus, x->process_number, (uint32_t)info->device,
                         &failed))
        put_device(x, &buf, info->device);
    buf.failed |= failed;
    marey__buf_puts(&buf, ",");
    marey__chrome_open_meta(&buf, pid, stream, "thread_name", "name");
    if (info->name[0] != '\0')
        marey__json_put(&buf, info->name, strlen(info->name));
    else
        marey__buf_printf(&buf, "\"stream %d\"", stream);
    marey__buf_puts(&buf, "}},");
    marey__chrome_open_meta(&buf, pid, stream, "thread_sort_index", "sort_index");
    marey__buf_printf(&buf, "%d}}", stream);
    marey__export_put_last(x, &buf);
    return x->status == MAREY_OK;
}

/* ---- flows ---- */

/* ,"id":7 and the text after it. Readers keep 53 bits of a number; beyond, it is a text. */
static void put_arrow(struct marey__export *x, const struct marey__export_lane *lane, uint64_t ns,
                      char phase, uint64_t id)
{
    char text[48];
    const bool is_large = id >= UINT64_C(1) << 53;
    x->out.p = marey__chrome_head(x, lane, ns, phase);
    const int len = snprintf(text, sizeof text, is_large ? ",\"id\":\"0x%llx\"" : ",\"id\":%llu",
                             (unsigned long long)id);
    marey__out_put(&x->out, text, (size_t)len);
}

static void put_launch_arrow(struct marey__export *x, const struct marey__export_lane *lane,
                             uint64_t ns, bool begins, uint64_t correlation)
{
    put_arrow(x, lane, ns, begins ? 's' : 'f', correlation);
    marey__out_puts(&x->out, begins ? ",\"cat\":\"ac2g\",\"name\":\"ac2g\"}"
                                    : ",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\"}");
}

void marey__chrome_launches(struct marey__export *x, const struct marey__export_lane *lane,
                            uint64_t ns, const struct marey__payload *payload)
{
    const uint64_t *record;
    for (uint32_t at = 0; (record = marey__next_record(payload, &at)) != NULL;)
        if (marey_record_type_of(record[0]) == MAREY_RECORD_LAUNCH && record[1] != 0)
            put_launch_arrow(x, lane, ns, true, record[1]);
}

void marey__chrome_flow(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                        const uint64_t *words)
{
    static const char phases[] = {
        [MAREY_FLOW_BEGIN] = 's', [MAREY_FLOW_STEP] = 't', [MAREY_FLOW_END] = 'f'};
    const uint32_t site = marey_record_site(words[1]);
    if (words[3] >= sizeof phases || (lane->own == NULL && !open_stream(x, lane)))
        return;
    put_arrow(x, lane, ns, phases[words[3]], words[2]);
    marey__chrome_open_tail(x, site);
    marey__out_puts(&x->out, words[3] == MAREY_FLOW_END ? ",\"bp\":\"e\"}" : "}");
}

/* ---- work ---- */

static const char *category_of(uint32_t kind)
{
    static const char *const names[] = {
        [MAREY_WORK_KERNEL] = "kernel",  [MAREY_WORK_COPY] = "gpu_memcpy",
        [MAREY_WORK_SET] = "gpu_memset", [MAREY_WORK_ANNOTATION] = "gpu_user_annotation",
        [MAREY_WORK_SYNC] = "cuda_sync", [MAREY_WORK_MEMORY] = "gpu_memory",
    };
    return kind < MAREY__COUNT_OF(names) && names[kind] != NULL ? names[kind] : "kernel";
}

static void put_flows(struct marey__export *x, struct marey__export_lane *lane,
                      const struct marey__stream_work *work)
{
    const uint64_t *record;
    for (uint32_t at = 0; (record = marey__next_record(&work->payload, &at)) != NULL;)
        if (marey_record_type_of(record[0]) == MAREY_RECORD_FLOW)
            marey__chrome_flow(x, lane, work->ns, record);
}

void marey__chrome_work(struct marey__export *x, struct marey__export_lane *lane,
                        const struct marey__stream_work *work)
{
    if (lane->own == NULL && !open_stream(x, lane))
        return;
    x->out.p = marey__chrome_duration(marey__chrome_head(x, lane, work->ns, 'X'), work->duration_ns);
    marey__chrome_open_tail(x, work->site);
    if (marey__export_site(x, work->site)->category[0] == '\0') {
        marey__out_puts(&x->out, ",\"cat\":\"");
        marey__out_puts(&x->out, category_of(work->kind));
        marey__out_puts(&x->out, "\"");
    }
    marey__chrome_work_args(x, lane->stack.info, work);
    marey__out_puts(&x->out, "}");
    if (work->correlation != 0)
        put_launch_arrow(x, lane, work->ns, false, work->correlation);
    put_flows(x, lane, work);
}
