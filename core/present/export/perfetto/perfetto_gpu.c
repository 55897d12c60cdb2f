/*
 * GPU streams: below each process a track per device, below that one per stream.
 *
 *   GPU 0
 *     stream 7      [ step .................... ]        an annotation may contain work
 *                     [ gemm ][ gemm ]  [ copy ]
 *     stream 7              [ reduce ]                   overlapping work gets a further track of the same name
 *
 * Work has a begin and an end with times on the trace's clock: its end may be after the begin of the
 * next work, and the deltas of a sequence cannot go back.
 */
#include "codec/internal.h"
#include "present/export/perfetto/internal.h"

enum {
    MAX_ROWS = 64,  /* further work shares the last row */
    MAX_OPEN = 256, /* limit on running pieces; beyond, the oldest is forgotten */
};

/* ---- tracks ---- */

static uint64_t device_uuid(const struct marey__export *x, int32_t device)
{
    return process_uuid(x) | UINT64_C(1) << 61 | (uint32_t)device;
}

static uint64_t row_uuid(const struct marey__export *x, const struct marey__export_lane *lane,
                         uint32_t row)
{
    if (row == 0)
        return lane_uuid(x, lane);
    return process_uuid(x) | UINT64_C(1) << 60 | (uint64_t)lane->stack.info->lane << 8 | row;
}

void marey__perfetto_stream_track(struct marey__export *x, const struct marey__export_lane *lane,
                                  uint32_t row)
{
    char name[48];
    struct marey__buf *buf = &x->texts;
    const struct marey_lane_info *info = lane->stack.info;
    pb_uint(buf, TRACK_UUID, row_uuid(x, lane, row));
    pb_uint(buf, TRACK_PARENT_UUID, device_uuid(x, info->device));
    if (info->name[0] != '\0') {
        pb_text(buf, TRACK_NAME, info->name, strlen(info->name));
        return;
    }
    const int len = snprintf(name, sizeof name, "stream %d", (int32_t)info->stream);
    pb_text(buf, TRACK_NAME, name, (size_t)len);
}

/* Repeated for each of its streams, which is harmless. */
void marey__perfetto_device(struct marey__export *x, int32_t device)
{
    char name[32];
    const int len = snprintf(name, sizeof name, "GPU %d", device);
    marey__perfetto_child_track(x, device_uuid(x, device), name, (size_t)len, false);
}

static void put_row(struct marey__export *x, const struct marey__export_lane *lane, uint32_t row)
{
    const struct marey__perfetto_message track =
        marey__perfetto_open(x, ((struct sequence *)lane->own)->id, PACKET_TRACK_DESCRIPTOR);
    marey__perfetto_stream_track(x, lane, row);
    marey__perfetto_close(x, track);
}

/* ---- rows: lane->stack.open has running work; `start_ns` is its end, `site` its row and `payload` its kind ---- */

static void forget_done(struct marey__export_lane *lane, uint64_t ns)
{
    size_t n = 0;
    for (size_t i = 0; i < lane->stack.n_open; i++)
        if (lane->stack.open[i].start_ns > ns)
            lane->stack.open[n++] = lane->stack.open[i];
    if (n == MAX_OPEN)
        memmove(lane->stack.open, lane->stack.open + 1, --n * sizeof lane->stack.open[0]);
    lane->stack.n_open = n;
}

static bool fits(const struct marey__export_lane *lane, uint32_t row, uint64_t end_ns)
{
    for (size_t i = lane->stack.n_open; i-- > 0;)
        if (lane->stack.open[i].site == row)
            return lane->stack.open[i].payload == MAREY_WORK_ANNOTATION &&
                   lane->stack.open[i].start_ns >= end_ns;
    return true;
}

static uint32_t find_row(struct marey__export *x, struct marey__export_lane *lane,
                         const struct marey__stream_work *work)
{
    const uint64_t end_ns = work->ns + work->duration_ns;
    uint32_t row = 0;
    forget_done(lane, work->ns);
    while (row + 1 < MAX_ROWS && !fits(lane, row, end_ns))
        row++;
    if (marey__export_lane_has_room(x, lane))
        lane->stack.open[lane->stack.n_open++] =
            (struct marey__frame){.start_ns = end_ns, .site = row, .payload = work->kind};
    struct sequence *sequence = lane->own;
    if (row >= sequence->n_rows) {
        sequence->n_rows = row + 1;
        if (row != 0)
            put_row(x, lane, row);
    }
    return row;
}

/* ---- GPU work ---- */

static struct marey__perfetto_message open_edge(struct marey__export *x,
                                                const struct marey__export_lane *lane, uint64_t ns,
                                                uint32_t type, uint32_t row)
{
    const struct marey__perfetto_message edge =
        marey__perfetto_open_at(x, lane->own, ns, PACKET_TRACK_EVENT);
    pb_uint(&x->texts, EVENT_TYPE, type);
    if (row != 0)
        pb_uint(&x->texts, EVENT_TRACK_UUID, row_uuid(x, lane, row));
    return edge;
}

/* Facts contained in the arguments are not written twice. */
static void put_facts(struct marey__export *x, const struct marey__stream_work *work)
{
    static const char *const keys[] = {"correlation", "bytes"};
    struct marey__details details;
    uint32_t found = 0;
    marey__work_details_of(x, work, &details);
    if (details.arguments != NULL)
        marey__arguments_look(details.arguments, details.arguments_len, keys, MAREY__COUNT_OF(keys),
                              &found);
    if (work->correlation != 0 && (found & 1) == 0)
        marey__perfetto_annotate_count(&x->texts, keys[0], work->correlation);
    if (work->bytes != 0 && (found & 2) == 0)
        marey__perfetto_annotate_count(&x->texts, keys[1], work->bytes);
    if (work->correlation != 0)
        marey__perfetto_arrow(x, &x->texts, work->correlation);
    marey__perfetto_records(x, &work->payload, 0);
    if (details.is_shared)
        marey__perfetto_arguments(&x->texts, details.arguments, details.arguments_len);
}

/* Open the lane and intern the name at its first use; false on out of memory. */
static bool prepare(struct marey__export *x, struct marey__export_lane *lane, uint32_t slot)
{
    if (lane->own == NULL && !marey__perfetto_lane(x, lane))
        return false;
    if (!sequence_knows(lane->own, slot))
        marey__perfetto_intern(x, lane, slot);
    return x->status == MAREY_OK;
}

void marey__perfetto_work(struct marey__export *x, struct marey__export_lane *lane,
                          const struct marey__stream_work *work)
{
    const uint32_t slot = marey__site_slot(x, work->site);
    if (!prepare(x, lane, slot))
        return;
    const uint32_t row = find_row(x, lane, work);
    const struct marey__perfetto_message event = open_edge(x, lane, work->ns, TYPE_BEGIN, row);
    marey__perfetto_site(x, slot);
    if (marey__export_site(x, work->site)->category[0] == '\0') {
        const char *kind = marey__work_kind_name(work->kind);
        pb_text(&x->texts, EVENT_CATEGORY, kind, strlen(kind));
    }
    put_facts(x, work);
    marey__perfetto_close(x, event);
    marey__perfetto_close(x, open_edge(x, lane, work->ns + work->duration_ns, TYPE_END, row));
}

/*
 * A flow that does not start at the begin of its range or work: an instant with its name carries it, because viewers
 * derive the flow's direction from timestamps.
 */
void marey__perfetto_flow(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                          const uint64_t *words)
{
    const uint32_t slot = marey__site_slot(x, marey_record_site(words[1]));
    if (!prepare(x, lane, slot))
        return;
    const struct marey__perfetto_message event = open_edge(x, lane, ns, TYPE_INSTANT, 0);
    marey__perfetto_site(x, slot);
    marey__perfetto_flow_end(x, words);
    marey__perfetto_close(x, event);
}

/*
 * ---- perfetto-gpu ----
 *
 * The same trace with GPU work as Perfetto's GPU events (format perfetto-gpu), which newer viewers support better
 * than slices: they have a table of kernels, and list streams below GPUs and below processes.
 *
 *   interned, for each stream   its hardware queue ("stream 7"), its work's names as stages, its process as a context
 *   gpu_render_stage_event      event_id, duration, queue, stage, device; launch: grid, block and the rest; extra_data
 *   the launching range         gpu_correlation: the same event_id, for all work of a graph
 *
 * Viewers arrange overlapping work themselves. Those up to v54 show these events without arrows, so this
 * is a separate format.
 */

enum { API_CUDA = 4, CATEGORY_OTHER = 0, CATEGORY_COMPUTE = 2 };
/* Interned numbers of queues come after those of sites. */
enum { FIRST_QUEUE = 1 << 21 };

static void put_spec(struct marey__buf *buf, uint64_t iid, const char *name, size_t len,
                     uint32_t category)
{
    const size_t spec = pb_open(buf, INTERNED_GPU_SPECIFICATIONS);
    pb_uint(buf, SPECIFICATION_IID, iid);
    pb_text(buf, SPECIFICATION_NAME, name, len);
    pb_uint(buf, SPECIFICATION_CATEGORY, category);
    pb_close(buf, spec);
}

static uint64_t context_of(const struct marey__export *x)
{
    return (uint64_t)x->process_number + 1;
}

/* Unlike other interned data, queues have numbers that are unique in the trace. */
static uint64_t queue_of(const struct marey__export *x, const struct marey__export_lane *lane)
{
    return (uint64_t)FIRST_QUEUE + x->n_lanes_before + lane->stack.info->lane;
}

static struct marey__perfetto_message open_interned(struct marey__export *x,
                                                    const struct marey__export_lane *lane)
{
    return marey__perfetto_open_at(x, lane->own, MAREY__PERFETTO_NO_TIME, PACKET_INTERNED_DATA);
}

static void intern_queue(struct marey__export *x, const struct marey__export_lane *lane)
{
    char text[48];
    const struct marey__perfetto_message interned = open_interned(x, lane);
    const char *name = lane->stack.info->name[0] != '\0' ? lane->stack.info->name : text;
    struct marey__buf *buf = &x->texts;
    snprintf(text, sizeof text, "stream %d", (int32_t)lane->stack.info->stream);
    put_spec(buf, queue_of(x, lane), name, strlen(name), CATEGORY_OTHER);
    const size_t context = pb_open(buf, INTERNED_GRAPHICS_CONTEXTS);
    pb_uint(buf, CONTEXT_IID, context_of(x));
    pb_uint(buf, CONTEXT_PID, (uint64_t)x->pid);
    pb_uint(buf, CONTEXT_API, API_CUDA);
    pb_close(buf, context);
    marey__perfetto_close(x, interned);
}

static bool open_lane(struct marey__export *x, struct marey__export_lane *lane)
{
    if (!marey__perfetto_lane(x, lane))
        return false;
    intern_queue(x, lane);
    return x->status == MAREY_OK;
}

/* The name of the work as a stage, which every viewer draws. */
static void intern_stage(struct marey__export *x, struct marey__export_lane *lane, uint32_t slot,
                         uint32_t kind)
{
    const struct marey_site_info *site = marey__export_site(x, slot);
    marey__perfetto_intern(x, lane, slot);
    if (x->status != MAREY_OK)
        return;
    const struct marey__perfetto_message interned = open_interned(x, lane);
    put_spec(&x->texts, marey__perfetto_iid(slot), site->name, site->name_len,
             kind == MAREY_WORK_KERNEL ? CATEGORY_COMPUTE : CATEGORY_OTHER);
    marey__perfetto_close(x, interned);
}

static void put_dimensions(struct marey__buf *buf, uint32_t field, const uint64_t sizes[3])
{
    const size_t dimensions = pb_open(buf, field);
    for (uint32_t i = 0; i < 3; i++)
        pb_uint(buf, i + 1, sizes[i]);
    pb_close(buf, dimensions);
}

static void put_arg(struct marey__buf *buf, const char *name, uint64_t value)
{
    const size_t arg = pb_open(buf, LAUNCH_ARGS);
    pb_text(buf, LAUNCH_ARG_NAME, name, strlen(name));
    pb_uint(buf, LAUNCH_ARG_UINT, value);
    pb_close(buf, arg);
}

/* Viewers list work below its process by `device` and `stream`. */
static void put_launch(struct marey__buf *buf, const struct marey_lane_info *lane,
                       const struct marey__stream_work *work, const struct marey__details *details)
{
    struct marey__launch_config config = marey__launch_config_of(&work->launch);
    const bool has_config =
        work->has_launch
            ? work->launch.block[0] != 0
            : details->arguments != NULL &&
                  marey__launch_config_read(details->arguments, details->arguments_len, &config);
    const size_t launch = pb_open(buf, STAGE_LAUNCH);
    if (has_config) {
        put_dimensions(buf, LAUNCH_GRID, config.grid);
        put_dimensions(buf, LAUNCH_BLOCK, config.block);
        put_arg(buf, "registers_per_thread", config.registers);
        put_arg(buf, "shared_mem", config.shared_bytes);
    }
    put_arg(buf, "device", (uint64_t)lane->device);
    put_arg(buf, "stream", lane->stream);
    if (work->correlation != 0)
        put_arg(buf, "correlation", work->correlation);
    if (work->bytes != 0)
        put_arg(buf, "bytes", work->bytes);
    pb_close(buf, launch);
}

/* Each argument as a text, for viewers without support for launches. */
static void put_extra(struct marey__buf *buf, const struct marey__details *details)
{
    const char *const text = details->arguments;
    struct marey__json json;
    if (text == NULL)
        return;
    marey__json_init_text(&json, text, details->arguments_len, MAREY__JSON_STRICT | MAREY__JSON_NAN);
    bool is_sound = marey__json_next(&json) == MAREY__JSON_OBJECT;
    while (is_sound && marey__json_next_key(&json)) {
        const size_t extra = pb_open(buf, STAGE_EXTRA_DATA);
        pb_text(buf, EXTRA_NAME, json.text, json.text_len);
        const char *from = text + marey__json_offset(&json);
        is_sound = marey__json_skip(&json);
        const char *const end = text + marey__json_offset(&json);
        while (from < end && *from == ' ')
            from++;
        pb_text(buf, EXTRA_VALUE, from, (size_t)(end - from));
        pb_close(buf, extra);
    }
    marey__json_fini(&json);
}

/* That of its launch. Work without a launch needs a unique id as well. */
static uint64_t event_id(const struct marey__export *x, const struct marey__export_lane *lane,
                         const struct marey__stream_work *work)
{
    if (work->correlation != 0)
        return marey__perfetto_flow_id(x, NULL, work->correlation);
    return marey__perfetto_flow_id(x, marey__export_site(x, work->site),
                                   work->ns ^ (uint64_t)lane->stack.info->lane << 40);
}

static void put_stage(struct marey__export *x, const struct marey__export_lane *lane,
                      const struct marey__stream_work *work)
{
    struct marey__buf *buf = &x->texts;
    struct marey__details details;
    marey__work_details_of(x, work, &details);
    const struct marey__perfetto_message stage =
        marey__perfetto_open_at(x, lane->own, work->ns, PACKET_GPU_RENDER_STAGE);
    pb_uint(buf, STAGE_EVENT_ID, event_id(x, lane, work));
    pb_uint(buf, STAGE_DURATION, work->duration_ns);
    pb_uint(buf, STAGE_QUEUE_IID, queue_of(x, lane));
    pb_uint(buf, STAGE_STAGE_IID, marey__perfetto_iid(marey__site_slot(x, work->site)));
    pb_uint(buf, STAGE_GPU_ID, (uint64_t)lane->stack.info->device);
    pb_uint(buf, STAGE_CONTEXT, context_of(x));
    put_extra(buf, &details);
    put_launch(buf, lane->stack.info, work, &details);
    marey__perfetto_close(x, stage);
}

static void on_work(struct marey__export *x, struct marey__export_lane *lane,
                    const struct marey__stream_work *work)
{
    const uint32_t slot = marey__site_slot(x, work->site);
    if (lane->own == NULL && !open_lane(x, lane))
        return;
    if (!sequence_knows(lane->own, slot))
        intern_stage(x, lane, slot, work->kind);
    if (x->status == MAREY_OK)
        put_stage(x, lane, work);
}

void marey__perfetto_submits(const struct marey__export *x, struct marey__buf *buf,
                             uint64_t correlation)
{
    const size_t submits = pb_open(buf, EVENT_GPU_CORRELATION);
    pb_uint(buf, CORRELATION_SUBMITTED, marey__perfetto_flow_id(x, NULL, correlation));
    pb_close(buf, submits);
}

const struct marey__export_format marey__export_perfetto_gpu = {
    .info =
        {
            .name = "perfetto-gpu",
            .extensions = ".gpu.pftrace",
            .brief = "as perfetto, with GPU activity as Perfetto's own GPU events",
            .details = "Grid and block sizes are data, and viewers from v55 on list the kernels. "
                       "Older viewers show no arrows from launches to kernels.",
            .next = "open it at https://ui.perfetto.dev, v55 or later",
            .takes = MAREY_EXPORT_FILTER,
            .is_binary = true,
        },
    .start = marey__perfetto_start,
    .marks_findings = true,
    .process = marey__perfetto_process,
    .batch = marey__perfetto_batch,
    .span = marey__perfetto_span,
    .work = on_work,
    .flow = marey__perfetto_flow,
};
