/*
 * The same trace with the work of GPUs as Perfetto's own GPU events (format perfetto-gpu), which newer viewers know more
 * of than of slices: they have a table of kernels, and list streams below GPUs and below processes.
 *
 *   interned, for each stream   its hardware queue ("stream 7"), the names of its work as stages, its process as a context
 *   gpu_render_stage_event      event_id, duration, queue, stage, device; launch: grid, block and the rest; extra_data
 *   the range that launched it  gpu_correlation: the same event_id. All work of a graph has it
 *
 * Viewers find rows for work that overlaps by themselves. Those up to v54 show these events without arrows: that is why
 * it is a format of its own.
 */
#include "analyze/device/internal.h"
#include "codec/internal.h"
#include "present/export/perfetto/internal.h"

#include <stdio.h>

enum { API_CUDA = 4, CATEGORY_OTHER = 0, CATEGORY_COMPUTE = 2 };
/* Interned numbers of queues lie behind those of sites. */
enum { FIRST_QUEUE = 1 << 21 };

/* ---- interned data ---- */

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

/* Unlike all else that is interned, queues have numbers that are unique in the trace. */
static uint64_t queue_of(const struct marey__export *x, const struct marey__export_lane *lane)
{
    return (uint64_t)FIRST_QUEUE + x->n_lanes_before + lane->stack.info->lane;
}

static size_t open_interned(struct marey__export *x, const struct marey__export_lane *lane,
                            size_t *packet)
{
    *packet = marey__perfetto_packet(x, ((struct sequence *)lane->own)->id);
    pb_uint(&x->texts, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    return pb_open(&x->texts, PACKET_INTERNED_DATA);
}

static void close_interned(struct marey__export *x, size_t packet, size_t interned)
{
    pb_close(&x->texts, interned);
    marey__perfetto_packet_done(x, packet);
}

static void intern_queue(struct marey__export *x, const struct marey__export_lane *lane)
{
    char text[48];
    size_t packet;
    const size_t interned = open_interned(x, lane, &packet);
    const char *name = lane->stack.info->name[0] != '\0' ? lane->stack.info->name : text;
    struct marey__buf *buf = &x->texts;
    snprintf(text, sizeof text, "stream %d", (int32_t)lane->stack.info->stream);
    put_spec(buf, queue_of(x, lane), name, strlen(name), CATEGORY_OTHER);
    const size_t context = pb_open(buf, INTERNED_GRAPHICS_CONTEXTS);
    pb_uint(buf, CONTEXT_IID, context_of(x));
    pb_uint(buf, CONTEXT_PID, (uint64_t)x->pid);
    pb_uint(buf, CONTEXT_API, API_CUDA);
    pb_close(buf, context);
    close_interned(x, packet, interned);
}

static bool open_lane(struct marey__export *x, struct marey__export_lane *lane)
{
    if (!marey__perfetto_lane(x, lane))
        return false;
    intern_queue(x, lane);
    return x->status == MAREY_OK;
}

/* The name of the work as a stage: every viewer draws that. */
static void intern_stage(struct marey__export *x, struct marey__export_lane *lane, uint32_t slot,
                         uint32_t kind)
{
    const struct marey_site_info *site = marey__export_site(x, slot);
    marey__perfetto_intern(x, lane, slot);
    if (x->status != MAREY_OK)
        return;
    size_t packet;
    const size_t interned = open_interned(x, lane, &packet);
    put_spec(&x->texts, marey__perfetto_iid(slot), site->name, site->name_len,
             kind == MAREY_WORK_KERNEL ? CATEGORY_COMPUTE : CATEGORY_OTHER);
    close_interned(x, packet, interned);
}

/* ---- the launch ---- */

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

/* By `device` and `stream` viewers list work below its process. */
static void put_launch(struct marey__buf *buf, const struct marey_lane_info *lane,
                       const struct marey__stream_work *work, const struct marey__details *details)
{
    struct marey__launch_shape shape = {0};
    const bool has_shape =
        details->arguments != NULL &&
        marey__launch_shape_read(details->arguments, details->arguments_len, &shape);
    const size_t launch = pb_open(buf, STAGE_LAUNCH);
    if (has_shape) {
        put_dimensions(buf, LAUNCH_GRID, shape.grid);
        put_dimensions(buf, LAUNCH_BLOCK, shape.block);
        put_arg(buf, "registers_per_thread", shape.registers);
        put_arg(buf, "shared_mem", shape.shared_bytes);
    }
    put_arg(buf, "device", (uint64_t)lane->device);
    put_arg(buf, "stream", lane->stream);
    if (work->correlation != 0)
        put_arg(buf, "correlation", work->correlation);
    if (work->bytes != 0)
        put_arg(buf, "bytes", work->bytes);
    pb_close(buf, launch);
}

/* Each argument as a text, for viewers that know nothing of launches. */
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

/* ---- work ---- */

/* That of its launch. What has none needs an id all the same, which nothing else has. */
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
    const size_t packet = marey__perfetto_packet(x, ((struct sequence *)lane->own)->id);
    pb_uint(buf, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    pb_uint(buf, PACKET_TIMESTAMP, work->ns);
    pb_uint(buf, PACKET_CLOCK_ID, marey__perfetto_clock(x));
    const size_t stage = pb_open(buf, PACKET_GPU_RENDER_STAGE);
    pb_uint(buf, STAGE_EVENT_ID, event_id(x, lane, work));
    pb_uint(buf, STAGE_DURATION, work->duration_ns);
    pb_uint(buf, STAGE_QUEUE_IID, queue_of(x, lane));
    pb_uint(buf, STAGE_STAGE_IID, marey__perfetto_iid(marey__site_slot(x, work->site)));
    pb_uint(buf, STAGE_GPU_ID, (uint64_t)lane->stack.info->device);
    pb_uint(buf, STAGE_CONTEXT, context_of(x));
    put_extra(buf, &details);
    put_launch(buf, lane->stack.info, work, &details);
    pb_close(buf, stage);
    marey__perfetto_packet_done(x, packet);
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
    .process = marey__perfetto_process,
    .batch = marey__perfetto_batch,
    .span = marey__perfetto_span,
    .work = on_work,
    .flow = marey__perfetto_flow,
};
