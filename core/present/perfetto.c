/*
 * Events as Perfetto packets, some 14 bytes each:
 *
 *   0a LEN                    a packet of the trace
 *      40 DELTA               nanoseconds since the sequence's last packet
 *      50 SEQUENCE 68 02      whose deltas and interned names these are; the same for a whole lane
 *      5a LEN 48 TYPE 50 NAME 18 CATEGORY 90 02 PLACE; the same for all begins of a site
 *
 * Everything behind DELTA is prepared and copied; a range's end needs no name. What is rarer than a
 * range (payloads, counters, async ranges) is put together field by field.
 */
#include "present/perfetto_internal.h"

static const uint8_t end_bytes[4] = {PACKET_TRACK_EVENT << 3 | PB_BYTES, 2,
                                     EVENT_TYPE << 3 | PB_VARINT, TYPE_END};

/* The low 28 bits of `value` with a zero bit above each seven of them. */
static inline uint32_t spread_sevens(uint32_t value)
{
    return (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2 |
           (value & 0xfe00000) << 3;
}

/*
 * A varint without a loop for what is below a quarter of a second; may store up to 4 bytes more
 * than it takes.
 */
static inline uint8_t *put_delta(uint8_t *p, uint64_t delta)
{
    if (KYMO_UNLIKELY(delta >= 1u << 28))
        return pb_varint_at(p, delta);
    const uint32_t len = (38u - (uint32_t)__builtin_clz((uint32_t)delta | 1)) / 7;
    const uint32_t continued = 0x80808080u & ((1u << (8 * (len - 1))) - 1);
    const uint32_t bytes = spread_sevens((uint32_t)delta) | continued;
    memcpy(p, &bytes, sizeof bytes);
    return p + len;
}

/* A packet up to its body; `*len` is where its length goes once it is known, in one byte. */
static inline uint8_t *put_head(struct kymo__export *x, struct sequence *sequence, uint64_t ns,
                                uint8_t **len)
{
    uint8_t *p = (uint8_t *)kymo__out_room(&x->out);
    p[0] = TRACE_PACKET << 3 | PB_BYTES;
    p[2] = PACKET_TIMESTAMP << 3 | PB_VARINT;
    *len = p + 1;
    p = put_delta(p + 3, ns - sequence->clock_ns);
    sequence->clock_ns = ns;
    memcpy(p, sequence->head, HEAD_ROOM);
    return p + sequence->head_len;
}

static inline void end_packet(struct kymo__export *x, uint8_t *len, uint8_t *end)
{
    *len = (uint8_t)(end - len - 1);
    x->out.p = (char *)end;
}

/* ---- the walker ---- */

static void put_with_payload(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                             uint32_t slot, uint32_t type, const struct kymo__payload *payload)
{
    const struct kymo__perfetto_event event = kymo__perfetto_open(x, lane, ns, type);
    kymo__perfetto_site(x, slot);
    if (payload->type != 0)
        kymo__perfetto_annotate(&x->texts, "payload", payload);
    if (payload->repeat != 0)
        kymo__perfetto_annotate_count(&x->texts, "calls", payload->repeat - 1);
    kymo__perfetto_records(x, payload, 0);
    kymo__perfetto_close(x, event);
}

/* A begin or a mark: they differ in one byte. */
static inline void put_named(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                             uint32_t site, uint8_t type, const struct kymo__payload *payload)
{
    const uint32_t slot = kymo__site_slot(x, site);
    if (KYMO_UNLIKELY(!sequence_knows(lane->own, slot)))
        kymo__perfetto_intern(x, lane, slot);
    if (KYMO_UNLIKELY(payload != NULL)) {
        put_with_payload(x, lane, ns, slot, type, payload);
        return;
    }
    const struct site_bytes *bytes = &((const struct site_bytes *)x->sites)[slot];
    uint8_t *len, *p = put_head(x, lane->own, ns, &len);
    memcpy(p, bytes->begin, BEGIN_ROOM);
    p[BEGIN_TYPE_AT] = type;
    end_packet(x, len, p + bytes->begin_len);
}

static inline void on_begin(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                            uint32_t site, const struct kymo__payload *payload)
{
    put_named(x, lane, ns, site, TYPE_BEGIN, payload);
}

static inline void on_mark(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                           uint32_t site, const struct kymo__payload *payload)
{
    put_named(x, lane, ns, site, TYPE_INSTANT, payload);
}

/* What was said of a range after its begin stands at its end, and a word where its own end was lost. */
static void put_end_with(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                         const struct kymo__payload *payload, bool is_cut)
{
    const struct kymo__perfetto_event event = kymo__perfetto_open(x, lane, ns, TYPE_END);
    if (is_cut) {
        const size_t annotation = pb_open(&x->texts, EVENT_ANNOTATIONS);
        pb_text(&x->texts, ANNOTATION_NAME, "end_lost", 8);
        pb_uint(&x->texts, ANNOTATION_BOOL, 1);
        pb_close(&x->texts, annotation);
    }
    kymo__perfetto_records(x, payload, payload->n_early);
    kymo__perfetto_close(x, event);
}

static inline void on_end(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                          const struct kymo__open_range *range, bool is_cut)
{
    if (KYMO_UNLIKELY(is_cut || range->payload != 0)) {
        const struct kymo__payload payload = kymo__open_payload(lane, range);
        if (is_cut || payload.n_words > payload.n_early) {
            put_end_with(x, lane, ns, &payload, is_cut);
            return;
        }
    }
    uint8_t *len, *p = put_head(x, lane->own, ns, &len);
    memcpy(p, end_bytes, sizeof end_bytes);
    end_packet(x, len, p + sizeof end_bytes);
}

static void on_counter(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                       uint32_t site, double value)
{
    const uint64_t uuid = kymo__perfetto_counter(x, kymo__site_slot(x, site));
    const struct kymo__perfetto_event event = kymo__perfetto_open(x, lane, ns, TYPE_COUNTER);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    pb_uint(&x->texts, EVENT_TRACK_UUID, uuid);
    pb_fixed64(&x->texts, EVENT_DOUBLE_VALUE, bits);
    kymo__perfetto_close(x, event);
}

static void on_async(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                     uint32_t site, uint64_t handle, bool begins)
{
    const uint32_t slot = kymo__site_slot(x, site);
    const uint64_t uuid = kymo__perfetto_async_uuid(x, handle);
    if (begins) {
        kymo__perfetto_async(x, slot, uuid);
        if (!sequence_knows(lane->own, slot))
            kymo__perfetto_intern(x, lane, slot);
    }
    const struct kymo__perfetto_event event =
        kymo__perfetto_open(x, lane, ns, begins ? TYPE_BEGIN : TYPE_END);
    if (begins)
        kymo__perfetto_site(x, slot);
    pb_uint(&x->texts, EVENT_TRACK_UUID, uuid);
    kymo__perfetto_close(x, event);
}

static void on_lost(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                    uint64_t n_events)
{
    const struct kymo__perfetto_event event =
        kymo__perfetto_open(x, lane, KYMO__MAX(ns, lane->last_ns), TYPE_INSTANT);
    pb_text(&x->texts, EVENT_NAME, "kymo: events lost", 17);
    if (n_events != 0)
        kymo__perfetto_annotate_count(&x->texts, "count", n_events);
    kymo__perfetto_close(x, event);
}

KYMO__EXPORT_BATCH(kymo__perfetto_lane, on_begin, NULL);

kymo_status kymo__perfetto_batch(struct kymo__export *x, struct kymo__export_lane *lane,
                                 const struct kymo_batch *batch)
{
    return on_batch(x, lane, batch);
}

/*
 * Nothing closes a process: ranges left open stay open, and viewers draw them to the end of the
 * trace.
 */
const struct kymo__export_format kymo__export_perfetto = {
    .name = "perfetto",
    .draws_time = true,
    .is_timeline = true,
    .start = kymo__perfetto_start,
    .process = kymo__perfetto_process,
    .batch = kymo__perfetto_batch,
    .span = kymo__perfetto_span,
    .work = kymo__perfetto_work,
    .flow = kymo__perfetto_flow,
};
