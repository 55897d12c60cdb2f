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

#include <math.h>

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

/* ---- events with more to tell ---- */

struct event {
    size_t packet, event;
};

/* A packet in the scratch buffer up to its event's type. */
static struct event open_event(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                               uint32_t type)
{
    struct sequence *sequence = lane->own;
    struct event open;
    open.packet = kymo__perfetto_packet(x, sequence->id);
    pb_uint(&x->texts, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    pb_uint(&x->texts, PACKET_TIMESTAMP, ns - sequence->clock_ns);
    sequence->clock_ns = ns;
    open.event = pb_open(&x->texts, PACKET_TRACK_EVENT);
    pb_uint(&x->texts, EVENT_TYPE, type);
    return open;
}

static void close_event(struct kymo__export *x, struct event open)
{
    pb_close(&x->texts, open.event);
    kymo__perfetto_packet_done(x, open.packet);
}

/* The prepared fields of a site behind its type: name, category, place. */
static void put_site(struct kymo__export *x, uint32_t slot)
{
    const struct site_bytes *bytes = &((const struct site_bytes *)x->sites)[slot];
    kymo__buf_put(&x->texts, bytes->begin + BEGIN_TYPE_AT + 1, bytes->begin_len - BEGIN_TYPE_AT - 1u);
}

/*
 * Viewers keep integers with a sign and would show 2^64 - 1 as -1; what does not fit goes as its
 * digits.
 */
static void put_unsigned(struct kymo__buf *buf, uint64_t value)
{
    char digits[40];
    if (value <= INT64_MAX)
        pb_uint(buf, ANNOTATION_UINT, value);
    else
        pb_text(buf, ANNOTATION_STRING, digits, (size_t)(kymo__put_u64(digits, value) - digits));
}

/* A NaN goes as text too: viewers have it as null and show nothing. */
static void put_double(struct kymo__buf *buf, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    if (isnan(value))
        pb_text(buf, ANNOTATION_STRING, "NaN", 3);
    else
        pb_fixed64(buf, ANNOTATION_DOUBLE, bits);
}

static void put_annotation(struct kymo__buf *buf, const char *name,
                           const struct kymo__payload *payload)
{
    const size_t annotation = pb_open(buf, EVENT_ANNOTATIONS);
    pb_text(buf, ANNOTATION_NAME, name, strlen(name));
    switch (payload->type) {
    case KYMO_PAYLOAD_I64:
        pb_uint(buf, ANNOTATION_INT, payload->bits);
        break;
    case KYMO_PAYLOAD_U64:
        put_unsigned(buf, payload->bits);
        break;
    case KYMO_PAYLOAD_F64:
        put_double(buf, payload->bits);
        break;
    case KYMO_PAYLOAD_TEXT:
        pb_text(buf, ANNOTATION_STRING, payload->text, payload->len);
        break;
    default: /* of a later version: the name alone */
        break;
    }
    pb_close(buf, annotation);
}

static void put_with_payload(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                             uint32_t slot, uint32_t type, const struct kymo__payload *payload)
{
    const struct event event = open_event(x, lane, ns, type);
    put_site(x, slot);
    const struct kymo__payload calls = {.type = KYMO_PAYLOAD_U64, .bits = payload->repeat - 1};
    if (payload->type != 0)
        put_annotation(&x->texts, "payload", payload);
    if (payload->repeat != 0)
        put_annotation(&x->texts, "calls", &calls);
    close_event(x, event);
}

/* ---- the walker ---- */

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

/* The end of a range whose own end was lost carries a word about it. */
static void put_cut(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns)
{
    const struct event event = open_event(x, lane, ns, TYPE_END);
    const size_t annotation = pb_open(&x->texts, EVENT_ANNOTATIONS);
    pb_text(&x->texts, ANNOTATION_NAME, "end_lost", 8);
    pb_uint(&x->texts, ANNOTATION_BOOL, 1);
    pb_close(&x->texts, annotation);
    close_event(x, event);
}

static inline void on_end(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                          const struct kymo__open_range *range, bool is_cut)
{
    (void)range;
    if (is_cut) {
        put_cut(x, lane, ns);
        return;
    }
    uint8_t *len, *p = put_head(x, lane->own, ns, &len);
    memcpy(p, end_bytes, sizeof end_bytes);
    end_packet(x, len, p + sizeof end_bytes);
}

static void on_counter(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                       uint32_t site, double value)
{
    const uint64_t uuid = kymo__perfetto_counter(x, kymo__site_slot(x, site));
    const struct event event = open_event(x, lane, ns, TYPE_COUNTER);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    pb_uint(&x->texts, EVENT_TRACK_UUID, uuid);
    pb_fixed64(&x->texts, EVENT_DOUBLE_VALUE, bits);
    close_event(x, event);
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
    const struct event event = open_event(x, lane, ns, begins ? TYPE_BEGIN : TYPE_END);
    if (begins)
        put_site(x, slot);
    pb_uint(&x->texts, EVENT_TRACK_UUID, uuid);
    close_event(x, event);
}

static void on_lost(struct kymo__export *x, struct kymo__export_lane *lane, uint64_t ns,
                    uint64_t n_events)
{
    const struct kymo__payload count = {.type = KYMO_PAYLOAD_U64, .bits = n_events};
    const struct event event = open_event(x, lane, KYMO__MAX(ns, lane->last_ns), TYPE_INSTANT);
    pb_text(&x->texts, EVENT_NAME, "kymo: events lost", 17);
    if (n_events != 0)
        put_annotation(&x->texts, "count", &count);
    close_event(x, event);
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
    .start = kymo__perfetto_start,
    .process = kymo__perfetto_process,
    .batch = kymo__perfetto_batch,
    .span = kymo__perfetto_span,
};
