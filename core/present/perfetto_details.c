/*
 * Events with more to tell than their name: built field by field in x->texts. A payload, what a range launched or
 * communicated, the arguments that another tool gave it, and arrows:
 *
 *   debug_annotations   payload, calls, correlation, collective ..., each argument by its own name
 *   flow_ids            the same number at a launch and at its work, at both ends of a flow
 */
#include "analyze/json_reader.h"
#include "present/perfetto_internal.h"

#include <math.h>

enum { MAX_DEPTH = 32 };

struct kymo__perfetto_event kymo__perfetto_open(struct kymo__export *x,
                                                struct kymo__export_lane *lane, uint64_t ns,
                                                uint32_t type)
{
    struct sequence *sequence = lane->own;
    struct kymo__perfetto_event open;
    open.packet = kymo__perfetto_packet(x, sequence->id);
    pb_uint(&x->texts, PACKET_SEQUENCE_FLAGS, SEQUENCE_NEEDS_STATE);
    pb_uint(&x->texts, PACKET_TIMESTAMP, ns - sequence->clock_ns);
    sequence->clock_ns = ns;
    open.event = pb_open(&x->texts, PACKET_TRACK_EVENT);
    pb_uint(&x->texts, EVENT_TYPE, type);
    return open;
}

void kymo__perfetto_close(struct kymo__export *x, struct kymo__perfetto_event open)
{
    pb_close(&x->texts, open.event);
    kymo__perfetto_packet_done(x, open.packet);
}

void kymo__perfetto_site(struct kymo__export *x, uint32_t slot)
{
    const struct site_bytes *bytes = &((const struct site_bytes *)x->sites)[slot];
    kymo__buf_put(&x->texts, bytes->begin + BEGIN_TYPE_AT + 1, bytes->begin_len - BEGIN_TYPE_AT - 1u);
}

/* ---- annotations ---- */

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
static void put_double(struct kymo__buf *buf, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        pb_text(buf, ANNOTATION_STRING, "NaN", 3);
    else
        pb_fixed64(buf, ANNOTATION_DOUBLE, bits);
}

static size_t open_annotation(struct kymo__buf *buf, const char *name, size_t len)
{
    const size_t annotation = pb_open(buf, EVENT_ANNOTATIONS);
    pb_text(buf, ANNOTATION_NAME, name, len);
    return annotation;
}

void kymo__perfetto_annotate(struct kymo__buf *buf, const char *name,
                             const struct kymo__payload *payload)
{
    const size_t annotation = open_annotation(buf, name, strlen(name));
    double value;
    switch (payload->type) {
    case KYMO_PAYLOAD_I64:
        pb_uint(buf, ANNOTATION_INT, payload->bits);
        break;
    case KYMO_PAYLOAD_U64:
        put_unsigned(buf, payload->bits);
        break;
    case KYMO_PAYLOAD_F64:
        memcpy(&value, &payload->bits, sizeof value);
        put_double(buf, value);
        break;
    case KYMO_PAYLOAD_TEXT:
        pb_text(buf, ANNOTATION_STRING, payload->text, payload->len);
        break;
    default: /* of a later version: the name alone */
        break;
    }
    pb_close(buf, annotation);
}

void kymo__perfetto_annotate_count(struct kymo__buf *buf, const char *name, uint64_t count)
{
    const struct kymo__payload value = {.type = KYMO_PAYLOAD_U64, .bits = count};
    kymo__perfetto_annotate(buf, name, &value);
}

static void annotate_text(struct kymo__buf *buf, const char *name, const char *text, size_t len)
{
    const struct kymo__payload value = {.type = KYMO_PAYLOAD_TEXT, .text = text, .len = (uint32_t)len};
    kymo__perfetto_annotate(buf, name, &value);
}

/* ---- arguments: JSON to annotations within annotations ---- */

/* The digits behind which the reader stands, as an integer where they are one that fits. */
static void put_number(struct kymo__buf *buf, const struct kymo__json_reader *reader)
{
    char digits[32];
    size_t n = 0;
    const char *from = reader->at;
    while (from > reader->start && n < sizeof digits && strchr("-0123456789", from[-1]) != NULL) {
        from--;
        n++;
    }
    const bool is_whole = from > reader->start && strchr(".eE+", from[-1]) == NULL && n > 0;
    if (!is_whole || fabs(reader->number) >= 1e18) {
        put_double(buf, reader->number);
        return;
    }
    memcpy(digits, from, n);
    digits[KYMO__MIN(n, sizeof digits - 1)] = '\0';
    pb_uint(buf, ANNOTATION_INT, (uint64_t)strtoll(digits, NULL, 10));
}

/* The value that begins with `token` into the annotation that is open. The text is known to be sound. */
static void put_json(struct kymo__buf *buf, struct kymo__json_reader *reader,
                     enum kymo__json_token token, int depth)
{
    bool is_first = true;
    if (depth > MAX_DEPTH) {
        (void)!kymo__json_skip(reader, token);
    } else if (token == KYMO__JSON_TEXT) {
        pb_text(buf, ANNOTATION_STRING, reader->text.data, reader->text.len);
    } else if (token == KYMO__JSON_NUMBER) {
        put_number(buf, reader);
    } else if (token == KYMO__JSON_TRUE || token == KYMO__JSON_FALSE) {
        pb_uint(buf, ANNOTATION_BOOL, token == KYMO__JSON_TRUE);
    } else if (token == KYMO__JSON_NULL) {
        pb_text(buf, ANNOTATION_STRING, "null", 4);
    } else if (token == KYMO__JSON_LIST) {
        while (kymo__json_next_item(reader, &is_first, &token)) {
            const size_t item = pb_open(buf, ANNOTATION_LIST);
            put_json(buf, reader, token, depth + 1);
            pb_close(buf, item);
        }
    } else if (token == KYMO__JSON_OBJECT) {
        while (kymo__json_next_key(reader, &is_first)) {
            const size_t entry = pb_open(buf, ANNOTATION_DICT);
            pb_text(buf, ANNOTATION_NAME, reader->text.data, reader->text.len);
            put_json(buf, reader, kymo__json_next(reader), depth + 1);
            pb_close(buf, entry);
        }
    }
}

void kymo__perfetto_arguments(struct kymo__buf *buf, const char *text, size_t len)
{
    struct kymo__json_reader reader = {.start = text, .at = text, .end = text + len};
    uint32_t found;
    bool is_first = true;
    if (!kymo__arguments_look(text, len, NULL, 0, &found)) {
        annotate_text(buf, "arguments", text, len);
        return;
    }
    kymo__json_next(&reader);
    while (kymo__json_next_key(&reader, &is_first)) {
        const size_t annotation = open_annotation(buf, reader.text.data, reader.text.len);
        put_json(buf, &reader, kymo__json_next(&reader), 0);
        pb_close(buf, annotation);
    }
    kymo__json_fini(&reader);
}

/* ---- records ---- */

static void put_communication(const struct kymo__export *x, struct kymo__buf *buf,
                              const uint64_t *record)
{
    struct kymo_communication what;
    kymo_record_communication(record, &what);
    const char *name = kymo__collective_name(what.what);
    annotate_text(buf, "collective", name, strlen(name));
    if (what.group != 0) {
        const struct kymo_site_info *group = kymo__export_site(x, what.group);
        annotate_text(buf, "group", group->name, group->name_len);
        annotate_text(buf, "group_ranks", group->domain, strlen(group->domain));
    }
    if (what.group_size != 0)
        kymo__perfetto_annotate_count(buf, "group_size", what.group_size);
    if (what.bytes_in != 0 || what.bytes_out != 0) {
        kymo__perfetto_annotate_count(buf, "bytes_in", what.bytes_in);
        kymo__perfetto_annotate_count(buf, "bytes_out", what.bytes_out);
    }
    if (what.sequence != UINT64_MAX)
        kymo__perfetto_annotate_count(buf, "sequence", what.sequence);
    if (what.peer >= 0)
        kymo__perfetto_annotate_count(buf, "peer", (uint32_t)what.peer);
}

void kymo__perfetto_arrow(const struct kymo__export *x, struct kymo__buf *buf, uint64_t correlation)
{
    if (kymo__perfetto_is_native(x))
        kymo__perfetto_submits(x, buf, correlation);
    else
        pb_fixed64(buf, EVENT_FLOW_IDS, kymo__perfetto_flow_id(x, NULL, correlation));
}

void kymo__perfetto_flow_end(struct kymo__export *x, const uint64_t *record)
{
    const struct kymo_site_info *site = kymo__export_site(x, kymo_record_site(record[1]));
    pb_fixed64(&x->texts, record[3] == KYMO_FLOW_END ? EVENT_LAST_FLOW_IDS : EVENT_FLOW_IDS,
               kymo__perfetto_flow_id(x, site, record[2]));
}

void kymo__perfetto_records(struct kymo__export *x, const struct kymo__payload *payload, uint32_t from)
{
    struct kymo__buf *buf = &x->texts;
    struct kymo__details details;
    const uint64_t *record;
    uint32_t found = 0;
    kymo__details_of(payload, &details);
    if (details.arguments != NULL)
        kymo__arguments_look(details.arguments, details.arguments_len,
                             (const char *const[]){"correlation"}, 1, &found);
    while ((record = kymo__next_record(payload, &from)) != NULL) {
        const uint32_t type = kymo_record_type_of(record[0]);
        if (type == KYMO_RECORD_LAUNCH) {
            if (found == 0)
                kymo__perfetto_annotate_count(buf, "correlation", record[1]);
            kymo__perfetto_arrow(x, buf, record[1]);
        } else if (type == KYMO_RECORD_COMMUNICATION) {
            put_communication(x, buf, record);
        } else if (type == KYMO_RECORD_ARGUMENTS) {
            kymo__perfetto_arguments(buf, (const char *)(record + 2), (size_t)record[1]);
        } else if (type == KYMO_RECORD_FLOW) {
            kymo__perfetto_flow_end(x, record);
        }
    }
}
