/*
 * GPU streams and flows in Kineto's form, so that tools for its files accept ours as well:
 *
 *   {"ph":"X","pid":DEVICE,"tid":STREAM,"ts":...,"dur":...,"name":...,"cat":"kernel","args":{"device":...}}
 *   {"ph":"s",...,"id":CORRELATION,"cat":"ac2g","name":"ac2g"}     at the begin of the range that launched it
 *   {"ph":"f",...,"id":CORRELATION,"cat":"ac2g","name":"ac2g","bp":"e"}          at its own
 *
 * If several processes share a device number, each device of a process gets a separate pid above Linux's
 * range, and its arguments have the device number.
 */
#include "present/export/chrome_export.h"

#include <math.h>

enum { FIRST_GPU_PID = 5000000, MAX_DEVICES = 1 << 16 };

/* ---- all processes ---- */

/* Marks a device shared by processes. */
#define ANY_PROCESS (UINT32_MAX - 1)

/* Returns false on out of memory. */
static bool survey_lanes(struct marey__export *x, size_t recording, size_t process, uint32_t number,
                         struct marey__pairs *seen)
{
    struct marey__chrome_export *chrome = x->own;
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

void marey__chrome_survey(struct marey__export *x)
{
    struct marey__pairs seen MAREY__FINALLY(marey__pairs_fini) = {0};
    const struct marey_process *process;
    bool is_complete = true;
    uint32_t number = 0;
    marey__chrome_of(x)->pids_are_devices = true;
    for (size_t r = 0; r < x->n_recordings; r++)
        for (size_t i = 0; is_complete && i < marey_recording_n_logs(x->recordings[r]); i++)
            is_complete = survey_lanes(x, r, i, number++, &seen);
    for (uint32_t i = 0; is_complete && (process = marey__export_nth(x, i)) != NULL; i++) {
        const int64_t pid = x->has_own_ids ? (int64_t)i + 1 : process->pid;
        bool failed = false;
        if (pid >= 0 && pid < MAX_DEVICES &&
            !marey__pairs_add(&seen, ANY_PROCESS, (uint32_t)pid, &failed))
            marey__chrome_of(x)->pids_are_devices = false;
        is_complete = !failed;
    }
    if (!is_complete)
        x->status = marey__no_memory();
}

static int64_t gpu_pid(const struct marey__export *x, int32_t device)
{
    if (marey__chrome_of(x)->pids_are_devices)
        return device;
    return FIRST_GPU_PID + (int64_t)x->process_number * MAX_DEVICES + (uint16_t)device;
}

/* The rank is the file's if it has one process. */
static void put_distributed(struct marey__buf *buf, const struct marey_process *process)
{
    if (process == NULL || process->rank < 0)
        return;
    marey__buf_puts(buf, "\"distributedInfo\":{");
    if (process->backend[0] != '\0')
        marey__json_printf(buf, "'backend': %s, ", process->backend);
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
    char label[24];
    const int64_t pid = gpu_pid(x, device);
    const int len = snprintf(label, sizeof label, "GPU %d", device);
    marey__export_process_name(x, &name);
    marey__chrome_meta(buf, pid, 0, "process_name", name.data, name.len);
    marey__chrome_meta(buf, pid, 0, "process_labels", label, (size_t)len);
    marey__chrome_meta_index(buf, pid, 0, "process",
                             (int64_t)FIRST_GPU_PID + x->process_number * 1000 + device);
    marey__buf_end(&name, buf);
}

static bool open_stream(struct marey__export *x, struct marey__export_lane *lane)
{
    const struct marey_lane_info *info = lane->stack.info;
    const int64_t pid = gpu_pid(x, info->device);
    const int32_t stream = (int32_t)info->stream;
    struct marey__buf buf = {0};
    char number[32];
    bool failed;
    if (!marey__chrome_lane(x, lane, pid, stream))
        return false;
    marey__out_puts(&x->out, ",");
    if (marey__pairs_add(&marey__chrome_of(x)->gpus, x->process_number, (uint32_t)info->device,
                         &failed))
        put_device(x, &buf, info->device);
    buf.failed |= failed;
    snprintf(number, sizeof number, "stream %d", stream);
    const char *const name = info->name[0] != '\0' ? info->name : number;
    marey__chrome_meta(&buf, pid, stream, "thread_name", name, strlen(name));
    marey__chrome_meta_index(&buf, pid, stream, "thread", stream);
    marey__export_put_last(x, &buf);
    return x->status == MAREY_OK;
}

/* ---- flows ---- */

/* ,"id":7 and the text after it. Readers keep 53 bits of a number; larger ids are texts. */
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

/*
 * ---- the arguments of an event ----
 *
 * Arguments from an imported trace are written unchanged, which keeps Kineto's data about a
 * kernel (grid, registers). Without them, arguments are made from the recording,
 * with Kineto's names.
 */

/* `,"KEY":`, without the comma if it is the first. */
static void put_key(struct marey__buf *buf, const char *key)
{
    if (buf->len > 0 && buf->data[buf->len - 1] != '{')
        marey__buf_puts(buf, ",");
    marey__buf_printf(buf, "\"%s\":", key);
}

/* Viewers use signed integers and would show 2^64 - 1 as -1; larger numbers are written as quoted digits. */
static void put_unsigned(struct marey__buf *buf, uint64_t value)
{
    const char *quote = value > INT64_MAX ? "\"" : "";
    marey__buf_puts(buf, quote);
    marey__buf_put_u64(buf, value);
    marey__buf_puts(buf, quote);
}

static void put_count(struct marey__buf *buf, const char *key, uint64_t value)
{
    put_key(buf, key);
    put_unsigned(buf, value);
}

/*
 * JSON has no syntax for values that are not finite, such as a diverged loss. Viewers reject null as the value of a
 * counter, and parse these texts as numbers.
 */
char *marey__chrome_double(char *p, double value)
{
    if (isnan(value))
        return stpcpy(p, "\"NaN\"");
    if (isinf(value))
        return stpcpy(p, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return marey__put_f64(p, value);
}

static void put_payload(struct marey__buf *buf, const struct marey__payload *payload)
{
    char number[40];
    double value;
    put_key(buf, "payload");
    switch (payload->type) {
    case MAREY_PAYLOAD_I64:
        marey__buf_put_i64(buf, (int64_t)payload->bits);
        break;
    case MAREY_PAYLOAD_U64:
        put_unsigned(buf, payload->bits);
        break;
    case MAREY_PAYLOAD_F64:
        memcpy(&value, &payload->bits, sizeof value);
        marey__buf_put(buf, number, (size_t)(marey__chrome_double(number, value) - number));
        break;
    case MAREY_PAYLOAD_TEXT:
        marey__json_put(buf, payload->text, payload->len);
        break;
    default: /* of a later version */
        marey__buf_puts(buf, "null");
        break;
    }
}

/* Kineto counts elements of a type; ours are bytes, which is also a type. */
static void put_communication(struct marey__export *x, struct marey__buf *buf,
                              const struct marey_communication *what)
{
    put_key(buf, "Collective name");
    marey__buf_printf(buf, "\"%s\"", marey__collective_name(what->what));
    if (what->bytes_in != 0 || what->bytes_out != 0) {
        put_key(buf, "dtype");
        marey__buf_puts(buf, "\"Byte\"");
        put_count(buf, "In msg nelems", what->bytes_in);
        put_count(buf, "Out msg nelems", what->bytes_out);
    }
    if (what->group_size != 0)
        put_count(buf, "Group size", what->group_size);
    if (what->group != 0) {
        const struct marey_site_info *group = marey__export_site(x, what->group);
        put_key(buf, "Process Group Name");
        marey__json_put(buf, group->name, group->name_len);
        put_key(buf, "Process Group Ranks");
        marey__json_put(buf, group->domain, strlen(group->domain));
    }
    if (what->sequence != UINT64_MAX)
        put_count(buf, "Seq", what->sequence);
    if (what->peer >= 0)
        put_count(buf, what->what == MAREY_COLLECTIVE_RECV ? "Src Rank" : "Dst Rank",
                  (uint32_t)what->peer);
}

/* Returns true if the event has arguments. `*found` gets those of `keys` that it has. */
static bool put_given(struct marey__buf *buf, const struct marey__details *details,
                      const char *const *keys, size_t n, uint32_t *found)
{
    *found = 0;
    if (details->arguments == NULL)
        return false;
    if (!marey__arguments_look(details->arguments, details->arguments_len, keys, n, found)) {
        put_key(buf, "arguments"); /* invalid: as a text */
        marey__json_put(buf, details->arguments, details->arguments_len);
        return true;
    }
    const size_t before = buf->len;
    const bool is_first = buf->data == NULL || before == 0 || buf->data[before - 1] == '{';
    if (!is_first)
        marey__buf_puts(buf, ",");
    if (!marey__arguments_put(buf, details->arguments, details->arguments_len))
        buf->len = before;
    return true;
}

static void open_args(struct marey__buf *buf)
{
    buf->len = 0;
    marey__buf_puts(buf, ",\"args\":{");
}

static void close_args(struct marey__export *x, struct marey__buf *buf)
{
    marey__buf_puts(buf, "}");
    marey__export_put(x, buf);
}

void marey__chrome_args(struct marey__export *x, const struct marey__payload *payload, bool is_cut)
{
    static const char *const keys[] = {"correlation", "External id"};
    const uint64_t around = marey__chrome_of(x)->around;
    struct marey__buf *buf = text_of(x);
    struct marey__details details;
    uint32_t found;
    marey__details_of(payload, &details);
    open_args(buf);
    if (payload->type != 0)
        put_payload(buf, payload);
    if (payload->repeat != 0)
        put_count(buf, "calls", payload->repeat - 1);
    const bool is_given = put_given(buf, &details, keys, MAREY__COUNT_OF(keys), &found);
    if (details.correlation != 0 && (found & 1) == 0)
        put_count(buf, keys[0], details.correlation);
    if (around != 0 && (found & 2) == 0)
        put_count(buf, keys[1], around);
    if (details.communicates && !is_given)
        put_communication(x, buf, &details.communication);
    if (is_cut) {
        put_key(buf, "end_lost");
        marey__buf_puts(buf, "true");
    }
    close_args(x, buf);
}

static void put_work_args(struct marey__export *x, const struct marey_lane_info *lane,
                          const struct marey__stream_work *work)
{
    static const char *const keys[] = {"device", "stream", "correlation", "bytes"};
    struct marey__buf *buf = text_of(x);
    struct marey__details details;
    uint32_t found;
    marey__work_details_of(x, work, &details);
    open_args(buf);
    const bool is_given =
        put_given(buf, &details, keys, MAREY__COUNT_OF(keys), &found) && !details.is_shared;
    /* If the pid is the device and the tid the stream, given arguments need not repeat them. */
    const bool wants_place = !is_given || !marey__chrome_of(x)->pids_are_devices;
    if (wants_place && (found & 1) == 0) {
        put_key(buf, keys[0]);
        marey__buf_printf(buf, "%d", lane->device);
    }
    if (wants_place && (found & 2) == 0) {
        put_key(buf, keys[1]);
        marey__buf_printf(buf, "%d", (int32_t)lane->stream);
    }
    if (work->correlation != 0 && (found & 4) == 0)
        put_count(buf, keys[2], work->correlation);
    if (work->bytes != 0 && (found & 8) == 0)
        put_count(buf, keys[3], work->bytes);
    if (details.communicates && !is_given)
        put_communication(x, buf, &details.communication);
    close_args(x, buf);
}

/* ---- GPU work ---- */

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
    put_work_args(x, lane->stack.info, work);
    marey__out_puts(&x->out, "}");
    if (work->correlation != 0)
        put_launch_arrow(x, lane, work->ns, false, work->correlation);
    put_flows(x, lane, work);
}
