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
#include "present/export/perfetto/internal.h"

#include <stdio.h>

enum {
    MAX_ROWS = 64,  /* what does not fit shares the last */
    MAX_OPEN = 256, /* pieces that are remembered while they run; the oldest is forgotten */
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

/* Said again by each of its streams, which does no harm. */
void marey__perfetto_device(struct marey__export *x, int32_t device)
{
    char name[32];
    const int len = snprintf(name, sizeof name, "GPU %d", device);
    marey__perfetto_child_track(x, device_uuid(x, device), name, (size_t)len, false);
}

static void put_row(struct marey__export *x, const struct marey__export_lane *lane, uint32_t row)
{
    const size_t packet = marey__perfetto_packet(x, ((struct sequence *)lane->own)->id);
    const size_t track = pb_open(&x->texts, PACKET_TRACK_DESCRIPTOR);
    marey__perfetto_stream_track(x, lane, row);
    pb_close(&x->texts, track);
    marey__perfetto_packet_done(x, packet);
}

/* ---- rows: lane->stack.open has what runs, `start_ns` being its end, `site` its row and `payload` its kind ---- */

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

/* ---- work ---- */

static struct marey__perfetto_event open_edge(struct marey__export *x,
                                              const struct marey__export_lane *lane, uint64_t ns,
                                              uint32_t type, uint32_t row)
{
    struct marey__perfetto_event open;
    struct marey__buf *buf = &x->texts;
    open.packet = marey__perfetto_packet(x, ((struct sequence *)lane->own)->id);
    pb_uint(buf, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    pb_uint(buf, PACKET_TIMESTAMP, ns);
    pb_uint(buf, PACKET_CLOCK_ID, marey__perfetto_clock(x));
    open.event = pb_open(buf, PACKET_TRACK_EVENT);
    pb_uint(buf, EVENT_TYPE, type);
    if (row != 0)
        pb_uint(buf, EVENT_TRACK_UUID, row_uuid(x, lane, row));
    return open;
}

/* Facts that the arguments have are not written twice. */
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

void marey__perfetto_work(struct marey__export *x, struct marey__export_lane *lane,
                          const struct marey__stream_work *work)
{
    const uint32_t slot = marey__site_slot(x, work->site);
    if (lane->own == NULL && !marey__perfetto_lane(x, lane))
        return;
    if (!sequence_knows(lane->own, slot))
        marey__perfetto_intern(x, lane, slot);
    if (x->status != MAREY_OK)
        return;
    const uint32_t row = find_row(x, lane, work);
    struct marey__perfetto_event event = open_edge(x, lane, work->ns, TYPE_BEGIN, row);
    marey__perfetto_site(x, slot);
    if (marey__export_site(x, work->site)->category[0] == '\0') {
        const char *kind = marey__work_kind_name(work->kind);
        pb_text(&x->texts, EVENT_CATEGORY, kind, strlen(kind));
    }
    put_facts(x, work);
    marey__perfetto_close(x, event);
    event = open_edge(x, lane, work->ns + work->duration_ns, TYPE_END, row);
    marey__perfetto_close(x, event);
}

/*
 * A flow away from the begin of its range, or of a stream's work: an instant of its name carries it, since
 * that keeps its timestamp, from which viewers get its direction.
 */
void marey__perfetto_flow(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                          const uint64_t *words)
{
    const uint32_t slot = marey__site_slot(x, marey_record_site(words[1]));
    if (lane->own == NULL && !marey__perfetto_lane(x, lane))
        return;
    if (!sequence_knows(lane->own, slot))
        marey__perfetto_intern(x, lane, slot);
    if (x->status != MAREY_OK)
        return;
    const struct marey__perfetto_event event = open_edge(x, lane, ns, TYPE_INSTANT, 0);
    marey__perfetto_site(x, slot);
    marey__perfetto_flow_end(x, words);
    marey__perfetto_close(x, event);
}
