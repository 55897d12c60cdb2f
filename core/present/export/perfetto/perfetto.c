/*
 * Events as Perfetto packets, about 14 bytes each:
 *
 *   0a LEN                    a packet of the trace
 *      40 DELTA               nanoseconds since the sequence's last packet
 *      50 SEQUENCE 68 02      the sequence of deltas and interned names; the same for a whole lane
 *      5a LEN 48 TYPE 50 NAME 18 CATEGORY 90 02 PLACE; the same for all begins of a site
 *
 * Everything after DELTA is prepared and copied; a range's end needs no name. Events rarer than
 * ranges (payloads, counters, async ranges) are built field by field.
 */
#include "present/export/perfetto/internal.h"

static const uint8_t end_bytes[4] = {PACKET_TRACK_EVENT << 3 | PB_BYTES, 2,
                                     EVENT_TYPE << 3 | PB_VARINT, TYPE_END};

/* The low 28 bits of `value` with a zero bit after every seven bits. */
static inline uint32_t spread_sevens(uint32_t value)
{
    return (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2 |
           (value & 0xfe00000) << 3;
}

/*
 * A varint, without a loop for deltas below a quarter of a second; may store up to 4 bytes more
 * than its length.
 */
static inline uint8_t *put_delta(uint8_t *p, uint64_t delta)
{
    if (MAREY_UNLIKELY(delta >= 1u << 28))
        return pb_varint_at(p, delta);
    const uint32_t len = (38u - (uint32_t)__builtin_clz((uint32_t)delta | 1)) / 7;
    const uint32_t continued = 0x80808080u & ((1u << (8 * (len - 1))) - 1);
    const uint32_t bytes = spread_sevens((uint32_t)delta) | continued;
    memcpy(p, &bytes, sizeof bytes);
    return p + len;
}

/* A packet up to its body; `*len` is the position of its one-byte length, to be set later. */
static inline uint8_t *put_head(struct marey__export *x, struct sequence *sequence, uint64_t ns,
                                uint8_t **len)
{
    uint8_t *p = (uint8_t *)marey__out_room(&x->out);
    p[0] = TRACE_PACKET << 3 | PB_BYTES;
    p[2] = PACKET_TIMESTAMP << 3 | PB_VARINT;
    *len = p + 1;
    p = put_delta(p + 3, ns - sequence->clock_ns);
    sequence->clock_ns = ns;
    memcpy(p, sequence->head, HEAD_ROOM);
    return p + sequence->head_len;
}

static inline void end_packet(struct marey__export *x, uint8_t *len, uint8_t *end)
{
    *len = (uint8_t)(end - len - 1);
    x->out.p = (char *)end;
}

/* ---- the walker ---- */

static void put_with_payload(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                             uint32_t slot, uint32_t type, const struct marey__payload *payload)
{
    const struct marey__perfetto_message event = marey__perfetto_open_event(x, lane, ns, type);
    marey__perfetto_site(x, slot);
    if (payload->type != 0)
        marey__perfetto_annotate(&x->texts, "payload", payload);
    if (payload->repeat != 0)
        marey__perfetto_annotate_count(&x->texts, "calls", payload->repeat - 1);
    marey__perfetto_records(x, payload, 0);
    marey__perfetto_close(x, event);
}

/* A begin or a mark: they differ in one byte. */
static inline void put_named(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                             uint32_t site, uint8_t type, const struct marey__payload *payload)
{
    const uint32_t slot = marey__site_slot(x, site);
    if (MAREY_UNLIKELY(!sequence_knows(lane->own, slot)))
        marey__perfetto_intern(x, lane, slot);
    if (MAREY_UNLIKELY(payload != NULL)) {
        put_with_payload(x, lane, ns, slot, type, payload);
        return;
    }
    const struct site_bytes *bytes = &((const struct site_bytes *)x->sites)[slot];
    uint8_t *len, *p = put_head(x, lane->own, ns, &len);
    memcpy(p, bytes->begin, BEGIN_ROOM);
    p[BEGIN_TYPE_AT] = type;
    end_packet(x, len, p + bytes->begin_len);
}

static inline void on_begin(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                            uint32_t site, const struct marey__payload *payload)
{
    put_named(x, lane, ns, site, TYPE_BEGIN, payload);
}

static inline void on_mark(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                           uint32_t site, const struct marey__payload *payload)
{
    put_named(x, lane, ns, site, TYPE_INSTANT, payload);
}

/* Records about a range after its begin are written at its end, with a note if the end was lost. */
static void put_end_with(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                         const struct marey__payload *payload, bool is_cut)
{
    const struct marey__perfetto_message event = marey__perfetto_open_event(x, lane, ns, TYPE_END);
    if (is_cut)
        marey__perfetto_annotate_true(&x->texts, "end_lost");
    marey__perfetto_records(x, payload, payload->n_early);
    marey__perfetto_close(x, event);
}

static inline void on_end(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                          const struct marey__frame *range, bool is_cut)
{
    if (MAREY_UNLIKELY(is_cut || range->payload != 0)) {
        const struct marey__payload payload = marey__open_payload(lane, range);
        if (is_cut || payload.n_words > payload.n_early) {
            put_end_with(x, lane, ns, &payload, is_cut);
            return;
        }
    }
    uint8_t *len, *p = put_head(x, lane->own, ns, &len);
    memcpy(p, end_bytes, sizeof end_bytes);
    end_packet(x, len, p + sizeof end_bytes);
}

static void on_counter(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                       uint32_t site, double value)
{
    const uint64_t uuid = marey__perfetto_counter(x, marey__site_slot(x, site));
    const struct marey__perfetto_message event =
        marey__perfetto_open_event(x, lane, ns, TYPE_COUNTER);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    pb_uint(&x->texts, EVENT_TRACK_UUID, uuid);
    pb_fixed64(&x->texts, EVENT_DOUBLE_VALUE, bits);
    marey__perfetto_close(x, event);
}

static void on_async(struct marey__export *x, struct marey__export_lane *lane,
                     const struct marey__async_half *half)
{
    const uint32_t slot = marey__site_slot(x, half->name);
    const uint64_t uuid = marey__perfetto_async_uuid(x, half->handle);
    if (half->is_begin) {
        marey__perfetto_async(x, slot, uuid);
        if (!sequence_knows(lane->own, slot))
            marey__perfetto_intern(x, lane, slot);
    }
    const struct marey__perfetto_message event =
        marey__perfetto_open_event(x, lane, half->ns, half->is_begin ? TYPE_BEGIN : TYPE_END);
    if (half->is_begin)
        marey__perfetto_site(x, slot);
    pb_uint(&x->texts, EVENT_TRACK_UUID, uuid);
    marey__perfetto_close(x, event);
}

static void on_lost(struct marey__export *x, struct marey__export_lane *lane, uint64_t ns,
                    uint64_t n_events)
{
    const struct marey__perfetto_message event =
        marey__perfetto_open_event(x, lane, MAREY__MAX(ns, lane->stack.last_ns), TYPE_INSTANT);
    pb_text(&x->texts, EVENT_NAME, "marey: events lost", 18);
    if (n_events != 0)
        marey__perfetto_annotate_count(&x->texts, "count", n_events);
    marey__perfetto_close(x, event);
}

static const struct marey__walker walker = {.begin = on_begin,
                                            .end = on_end,
                                            .mark = on_mark,
                                            .counter = on_counter,
                                            .async = on_async,
                                            .lost = on_lost,
                                            .looks_ahead = true};
MAREY__EXPORT_BATCH(marey__perfetto_lane);

marey_status marey__perfetto_batch(struct marey__export *x, struct marey__export_lane *lane,
                                   const struct marey_batch *batch)
{
    return on_batch(x, lane, batch);
}

/*
 * Processes need no end: ranges left open stay open, and viewers draw them to the end of the trace.
 */
const struct marey__export_format marey__export_perfetto = {
    .info =
        {
            .name = "perfetto",
            .extensions = ".pftrace",
            .brief = "compact timeline for ui.perfetto.dev; the default",
            .next = "open it at https://ui.perfetto.dev; it stays in your browser",
            .split = "perfetto-tar",
            .takes = MAREY_EXPORT_FILTER,
            .is_binary = true,
        },
    .is_timeline = true,
    .start = marey__perfetto_start,
    .marks_findings = true,
    .process = marey__perfetto_process,
    .batch = marey__perfetto_batch,
    .span = marey__perfetto_span,
    .work = marey__perfetto_work,
    .flow = marey__perfetto_flow,
    .has_samples_beside = true,
};
