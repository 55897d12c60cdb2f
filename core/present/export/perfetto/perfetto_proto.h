/*
 * Hand-written protobuf, as far as a Perfetto trace needs it:
 * https://perfetto.dev/docs/reference/trace-packet-proto. Messages are built in a growing buffer; a
 * nested one reserves four bytes for its length, filled in when it closes (a varint may be padded).
 * buf->failed records out of memory.
 */
#ifndef MAREY_PERFETTO_PROTO_H
#define MAREY_PERFETTO_PROTO_H

#include "base/internal.h"

enum { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2 };

/* Field numbers used, by message. */
enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_GPU_RENDER_STAGE = 53,
    PACKET_CLOCK_ID = 58,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
    PACKET_FIRST_ON_SEQUENCE = 87,
};
enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum { DEFAULTS_TRACK_EVENT = 11, DEFAULTS_CLOCK_ID = 58 };
enum { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2 };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2, CLOCK_IS_INCREMENTAL = 3 };
/* Numbers from 64 on are clocks of one sequence. */
enum { CLOCK_BUILTIN_REALTIME = 1, CLOCK_BUILTIN_MONOTONIC = 3, CLOCK_OF_SEQUENCE = 64 };
enum {
    EVENT_CATEGORY_IIDS = 3,
    EVENT_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK_UUID = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_LOCATION_IID = 34,
    EVENT_DOUBLE_VALUE = 44,
    EVENT_FLOW_IDS = 47,
    EVENT_LAST_FLOW_IDS = 48,
    EVENT_GPU_CORRELATION = 3000,
};
enum { CORRELATION_SUBMITTED = 1 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { INTERNED_CATEGORIES = 1, INTERNED_NAMES = 2, INTERNED_LOCATIONS = 4 };
enum { INTERNED_GRAPHICS_CONTEXTS = 23, INTERNED_GPU_SPECIFICATIONS = 24 };
enum { CONTEXT_IID = 1, CONTEXT_PID = 2, CONTEXT_API = 3 };
enum { SPECIFICATION_IID = 1, SPECIFICATION_NAME = 2, SPECIFICATION_CATEGORY = 4 };
enum {
    STAGE_EVENT_ID = 1,
    STAGE_DURATION = 2,
    STAGE_CONTEXT = 5,
    STAGE_EXTRA_DATA = 6,
    STAGE_GPU_ID = 11,
    STAGE_QUEUE_IID = 13,
    STAGE_STAGE_IID = 14,
    STAGE_LAUNCH = 21,
};
enum { EXTRA_NAME = 1, EXTRA_VALUE = 2 };
enum { LAUNCH_GRID = 1, LAUNCH_BLOCK = 2, LAUNCH_ARGS = 3 };
enum { LAUNCH_ARG_NAME = 2, LAUNCH_ARG_UINT = 4 };
enum { INTERNED_IID = 1, INTERNED_TEXT = 2, LOCATION_LINE = 4 };
enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT_UUID = 5,
    TRACK_COUNTER = 8,
    TRACK_ORDER_RANK = 12,
    TRACK_PROCESS_ORDERING = 19,
};
enum { ORDERING_EXPLICIT = 1 };
enum {
    PROCESS_PID = 1,
    PROCESS_COMMAND_LINE = 2,
    PROCESS_SORT_INDEX = 3,
    PROCESS_NAME = 6,
    PROCESS_LABELS = 8
};
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum {
    ANNOTATION_BOOL = 2,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10,
    ANNOTATION_DICT = 11,
    ANNOTATION_LIST = 12,
};

#define PB_VARINT_MAX 10

/* Write `value` at `p`, at most PB_VARINT_MAX bytes; returns the end. */
static inline uint8_t *pb_varint_at(uint8_t *p, uint64_t value)
{
    while (value >= 0x80) {
        *p++ = (uint8_t)value | 0x80;
        value >>= 7;
    }
    *p++ = (uint8_t)value;
    return p;
}

static inline void pb_varint(struct marey__buf *buf, uint64_t value)
{
    uint8_t bytes[PB_VARINT_MAX];
    marey__buf_put(buf, bytes, (size_t)(pb_varint_at(bytes, value) - bytes));
}

static inline void pb_uint(struct marey__buf *buf, uint32_t field, uint64_t value)
{
    pb_varint(buf, field << 3 | PB_VARINT);
    pb_varint(buf, value);
}

static inline void pb_fixed64(struct marey__buf *buf, uint32_t field, uint64_t bits)
{
    pb_varint(buf, field << 3 | PB_FIXED64);
    marey__buf_put(buf, &bits, sizeof bits); /* little-endian, like all supported machines */
}

/* Begin a nested message; pass the result to pb_close. */
static inline size_t pb_open(struct marey__buf *buf, uint32_t field)
{
    pb_varint(buf, field << 3 | PB_BYTES);
    marey__buf_put(buf, "\x80\x80\x80\x00", 4);
    return buf->len;
}

static inline void pb_close(struct marey__buf *buf, size_t opened)
{
    if (buf->failed)
        return;
    const size_t len = buf->len - opened;
    uint8_t *at = (uint8_t *)buf->data + opened - 4;
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)((len >> (7 * i) & 0x7f) | (i < 3 ? 0x80 : 0));
}

/* Text of any bytes, converted to valid UTF-8 as string fields require. */
static inline void pb_text(struct marey__buf *buf, uint32_t field, const char *text, size_t len)
{
    const size_t opened = pb_open(buf, field);
    marey__utf8_put(buf, text, len);
    pb_close(buf, opened);
}

#endif
