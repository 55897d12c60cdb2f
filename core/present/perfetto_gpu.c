/*
 * Streams of GPUs: below each process a track for each device, below it one for each stream.
 *
 *   GPU 0
 *     stream 7      [ step .................... ]        an annotation may have work in it
 *                     [ gemm ][ gemm ]  [ copy ]
 *     stream 7              [ reduce ]                   work that overlaps other work has a further track of that name
 *
 * A piece of work is a begin and an end, with times on the trace's own clock: the end may lie behind the begin of the
 * next, and the deltas of a sequence never go back.
 */
#include "present/perfetto_internal.h"

#include <stdio.h>

enum {
    MAX_ROWS = 64,  /* what does not fit shares the last */
    MAX_OPEN = 256, /* pieces that are remembered while they run; the oldest is forgotten */
};

/* ---- tracks ---- */

static uint64_t device_uuid(const struct kymo__export *x, int32_t device)
{
    return process_uuid(x) | UINT64_C(1) << 61 | (uint32_t)device;
}

static uint64_t row_uuid(const struct kymo__export *x, const struct kymo__export_lane *lane,
                         uint32_t row)
{
    if (row == 0)
        return lane_uuid(x, lane);
    return process_uuid(x) | UINT64_C(1) << 60 | (uint64_t)lane->info->lane << 8 | row;
}

void kymo__perfetto_stream_track(struct kymo__export *x, const struct kymo__export_lane *lane,
                                 uint32_t row)
{
    char name[48];
    struct kymo__buf *buf = &x->texts;
    const struct kymo_lane_info *info = lane->info;
    pb_uint(buf, TRACK_UUID, row_uuid(x, lane, row));
    pb_uint(buf, TRACK_PARENT_UUID, device_uuid(x, info->device));
    if (info->name[0] != '\0') {
        pb_text(buf, TRACK_NAME, info->name, strlen(info->name));
        return;
    }
    const int len = snprintf(name, sizeof name, "stream %d", (int32_t)info->stream);
    pb_text(buf, TRACK_NAME, name, (size_t)len);
}

/* Said again by each of its streams, which does no harm. */
void kymo__perfetto_device(struct kymo__export *x, int32_t device)
{
    char name[32];
    const int len = snprintf(name, sizeof name, "GPU %d", device);
    kymo__perfetto_child_track(x, device_uuid(x, device), name, (size_t)len, false);
}

static void put_row(struct kymo__export *x, const struct kymo__export_lane *lane, uint32_t row)
{
    const size_t packet = kymo__perfetto_packet(x, ((struct sequence *)lane->own)->id);
    const size_t track = pb_open(&x->texts, PACKET_TRACK_DESCRIPTOR);
    kymo__perfetto_stream_track(x, lane, row);
    pb_close(&x->texts, track);
    kymo__perfetto_packet_done(x, packet);
}

/* ---- rows: lane->open has what runs, `start_ns` being its end, `site` its row and `payload` its kind ---- */

static void forget_done(struct kymo__export_lane *lane, uint64_t ns)
{
    size_t n = 0;
    for (size_t i = 0; i < lane->n_open; i++)
        if (lane->open[i].start_ns > ns)
            lane->open[n++] = lane->open[i];
    if (n == MAX_OPEN)
        memmove(lane->open, lane->open + 1, --n * sizeof lane->open[0]);
    lane->n_open = n;
}

static bool fits(const struct kymo__export_lane *lane, uint32_t row, uint64_t end_ns)
{
    for (size_t i = lane->n_open; i-- > 0;)
        if (lane->open[i].site == row)
            return lane->open[i].payload == KYMO_WORK_ANNOTATION && lane->open[i].start_ns >= end_ns;
    return true;
}

static uint32_t find_row(struct kymo__export *x, struct kymo__export_lane *lane,
                         const struct kymo__stream_work *work)
{
    const uint64_t end_ns = work->ns + work->duration_ns;
    uint32_t row = 0;
    forget_done(lane, work->ns);
    while (row + 1 < MAX_ROWS && !fits(lane, row, end_ns))
        row++;
    if (lane->n_open < lane->cap_open || kymo__export_lane_grow(x, lane))
        lane->open[lane->n_open++] =
            (struct kymo__open_range){.start_ns = end_ns, .site = row, .payload = work->kind};
    struct sequence *sequence = lane->own;
    if (row >= sequence->n_rows) {
        sequence->n_rows = row + 1;
        if (row != 0)
            put_row(x, lane, row);
    }
    return row;
}

/* ---- work ---- */

static struct kymo__perfetto_event open_edge(struct kymo__export *x,
                                             const struct kymo__export_lane *lane, uint64_t ns,
                                             uint32_t type, uint32_t row)
{
    struct kymo__perfetto_event open;
    struct kymo__buf *buf = &x->texts;
    open.packet = kymo__perfetto_packet(x, ((struct sequence *)lane->own)->id);
    pb_uint(buf, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    pb_uint(buf, PACKET_TIMESTAMP, ns);
    pb_uint(buf, PACKET_CLOCK_ID, kymo__perfetto_clock(x));
    open.event = pb_open(buf, PACKET_TRACK_EVENT);
    pb_uint(buf, EVENT_TYPE, type);
    if (row != 0)
        pb_uint(buf, EVENT_TRACK_UUID, row_uuid(x, lane, row));
    return open;
}

/* What arguments tell already is not said twice. */
static void put_facts(struct kymo__export *x, const struct kymo__stream_work *work)
{
    static const char *const keys[] = {"correlation", "bytes"};
    struct kymo__details details;
    uint32_t found = 0;
    kymo__work_details_of(x, work, &details);
    if (details.arguments != NULL)
        kymo__arguments_look(details.arguments, details.arguments_len, keys, KYMO__COUNT_OF(keys),
                             &found);
    if (work->correlation != 0 && (found & 1) == 0)
        kymo__perfetto_annotate_count(&x->texts, keys[0], work->correlation);
    if (work->bytes != 0 && (found & 2) == 0)
        kymo__perfetto_annotate_count(&x->texts, keys[1], work->bytes);
    if (work->correlation != 0)
        kymo__perfetto_arrow(x, &x->texts, work->correlation);
    kymo__perfetto_records(x, &work->payload, 0);
    if (details.is_shared)
        kymo__perfetto_arguments(&x->texts, details.arguments, details.arguments_len);
}

void kymo__perfetto_work(struct kymo__export *x, struct kymo__export_lane *lane,
                         const struct kymo__stream_work *work)
{
    const uint32_t slot = kymo__site_slot(x, work->site);
    if (lane->own == NULL && !kymo__perfetto_lane(x, lane))
        return;
    if (!sequence_knows(lane->own, slot))
        kymo__perfetto_intern(x, lane, slot);
    if (x->status != KYMO_OK)
        return;
    const uint32_t row = find_row(x, lane, work);
    struct kymo__perfetto_event event = open_edge(x, lane, work->ns, TYPE_BEGIN, row);
    kymo__perfetto_site(x, slot);
    if (kymo__export_site(x, work->site)->category[0] == '\0') {
        const char *kind = kymo__work_kind_name(work->kind);
        pb_text(&x->texts, EVENT_CATEGORY, kind, strlen(kind));
    }
    put_facts(x, work);
    kymo__perfetto_close(x, event);
    event = open_edge(x, lane, work->ns + work->duration_ns, TYPE_END, row);
    kymo__perfetto_close(x, event);
}

/*
 * A flow that is told away from the begin of its range, or of a stream's work: an instant of its name carries it, since
 * that keeps its moment, by which viewers tell its direction.
 */
void kymo__perfetto_flow(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                         const uint64_t *words)
{
    const uint32_t slot = kymo__site_slot(x, kymo_record_site(words[1]));
    if (lane->own == NULL && !kymo__perfetto_lane(x, lane))
        return;
    if (!sequence_knows(lane->own, slot))
        kymo__perfetto_intern(x, lane, slot);
    if (x->status != KYMO_OK)
        return;
    const struct kymo__perfetto_event event = open_edge(x, lane, ns, TYPE_INSTANT, 0);
    kymo__perfetto_site(x, slot);
    kymo__perfetto_flow_end(x, words);
    kymo__perfetto_close(x, event);
}
