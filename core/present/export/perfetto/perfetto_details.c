/*
 * Events with more than a name, built field by field in x->texts: payloads, launches, communication,
 * arguments from another tool, and arrows:
 *
 *   debug_annotations   payload, calls, correlation, collective ..., each argument under its own name
 *   flow_ids            the same number at a launch and at its work, at both ends of a flow
 */
#include "codec/internal.h"
#include "present/export/perfetto/internal.h"

#include <math.h>

void marey__perfetto_site(struct marey__export *x, uint32_t slot)
{
    const struct site_bytes *bytes = &((const struct site_bytes *)x->sites)[slot];
    marey__buf_put(&x->texts, bytes->begin + BEGIN_TYPE_AT + 1,
                   bytes->begin_len - BEGIN_TYPE_AT - 1u);
}

/* ---- annotations ---- */

/* Viewers use signed integers and would show 2^64 - 1 as -1; larger numbers are written as digits. */
static void put_unsigned(struct marey__buf *buf, uint64_t value)
{
    char digits[40];
    if (value <= INT64_MAX)
        pb_uint(buf, ANNOTATION_UINT, value);
    else
        pb_text(buf, ANNOTATION_STRING, digits, (size_t)(marey__u64_text(digits, value) - digits));
}

/* A NaN is written as text too: viewers treat it as null and show nothing. */
static void put_double(struct marey__buf *buf, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        pb_text(buf, ANNOTATION_STRING, "NaN", 3);
    else
        pb_fixed64(buf, ANNOTATION_DOUBLE, bits);
}

static size_t open_annotation(struct marey__buf *buf, const char *name, size_t len)
{
    const size_t annotation = pb_open(buf, EVENT_ANNOTATIONS);
    pb_text(buf, ANNOTATION_NAME, name, len);
    return annotation;
}

void marey__perfetto_annotate(struct marey__buf *buf, const char *name,
                              const struct marey__payload *payload)
{
    const size_t annotation = open_annotation(buf, name, strlen(name));
    double value;
    switch (payload->type) {
    case MAREY_PAYLOAD_I64:
        pb_uint(buf, ANNOTATION_INT, payload->bits);
        break;
    case MAREY_PAYLOAD_U64:
        put_unsigned(buf, payload->bits);
        break;
    case MAREY_PAYLOAD_F64:
        memcpy(&value, &payload->bits, sizeof value);
        put_double(buf, value);
        break;
    case MAREY_PAYLOAD_TEXT:
        pb_text(buf, ANNOTATION_STRING, payload->text, payload->len);
        break;
    default: /* of a later version: only the name */
        break;
    }
    pb_close(buf, annotation);
}

void marey__perfetto_annotate_true(struct marey__buf *buf, const char *name)
{
    const size_t annotation = open_annotation(buf, name, strlen(name));
    pb_uint(buf, ANNOTATION_BOOL, 1);
    pb_close(buf, annotation);
}

void marey__perfetto_annotate_count(struct marey__buf *buf, const char *name, uint64_t count)
{
    const struct marey__payload value = {.type = MAREY_PAYLOAD_U64, .bits = count};
    marey__perfetto_annotate(buf, name, &value);
}

static void annotate_text(struct marey__buf *buf, const char *name, const char *text, size_t len)
{
    const struct marey__payload value = {
        .type = MAREY_PAYLOAD_TEXT, .text = text, .len = (uint32_t)len};
    marey__perfetto_annotate(buf, name, &value);
}

/* ---- arguments: JSON to nested annotations ---- */

/* As an integer if it fits. */
static void put_number(struct marey__buf *buf, const struct marey__json *json)
{
    const double number = marey__json_number(json, MAREY__JSON_NUMBER);
    int64_t whole;
    if (strcspn(json->text, ".eE") >= json->text_len && fabs(number) < 1e18 &&
        marey__decimal(json->text, json->text_len, 0, &whole))
        pb_uint(buf, ANNOTATION_INT, (uint64_t)whole);
    else
        put_double(buf, number);
}

/* The value that begins with `token`, into the open annotation. The text is valid. */
static void put_json(struct marey__buf *buf, struct marey__json *json, enum marey__json_token token)
{
    if (token == MAREY__JSON_STRING) {
        pb_text(buf, ANNOTATION_STRING, json->text, json->text_len);
    } else if (token == MAREY__JSON_NUMBER) {
        put_number(buf, json);
    } else if (token == MAREY__JSON_TRUE || token == MAREY__JSON_FALSE) {
        pb_uint(buf, ANNOTATION_BOOL, token == MAREY__JSON_TRUE);
    } else if (token == MAREY__JSON_NULL) {
        pb_text(buf, ANNOTATION_STRING, "null", 4);
    } else if (token == MAREY__JSON_ARRAY) {
        while (marey__json_next_item(json, &token)) {
            const size_t item = pb_open(buf, ANNOTATION_LIST);
            put_json(buf, json, token);
            pb_close(buf, item);
        }
    } else if (token == MAREY__JSON_OBJECT) {
        while (marey__json_next_key(json)) {
            const size_t entry = pb_open(buf, ANNOTATION_DICT);
            pb_text(buf, ANNOTATION_NAME, json->text, json->text_len);
            put_json(buf, json, marey__json_next(json));
            pb_close(buf, entry);
        }
    }
}

void marey__perfetto_arguments(struct marey__buf *buf, const char *text, size_t len)
{
    struct marey__json json;
    uint32_t found;
    if (!marey__arguments_look(text, len, NULL, 0, &found)) { /* nested too deeply, for example */
        annotate_text(buf, "arguments", text, len);
        return;
    }
    marey__json_init_text(&json, text, len, MAREY__JSON_STRICT | MAREY__JSON_NAN);
    marey__json_next(&json);
    while (marey__json_next_key(&json)) {
        const size_t annotation = open_annotation(buf, json.text, json.text_len);
        put_json(buf, &json, marey__json_next(&json));
        pb_close(buf, annotation);
    }
    marey__json_fini(&json);
}

/* ---- records ---- */

static void put_communication(const struct marey__export *x, struct marey__buf *buf,
                              const uint64_t *record)
{
    struct marey_communication what;
    marey_record_communication(record, &what);
    const char *name = marey__collective_name(what.what);
    annotate_text(buf, "collective", name, strlen(name));
    if (what.group != 0) {
        const struct marey_site_info *group = marey__export_site(x, what.group);
        annotate_text(buf, "group", group->name, group->name_len);
        annotate_text(buf, "group_ranks", group->domain, strlen(group->domain));
    }
    if (what.group_size != 0)
        marey__perfetto_annotate_count(buf, "group_size", what.group_size);
    if (what.bytes_in != 0 || what.bytes_out != 0) {
        marey__perfetto_annotate_count(buf, "bytes_in", what.bytes_in);
        marey__perfetto_annotate_count(buf, "bytes_out", what.bytes_out);
    }
    if (what.sequence != UINT64_MAX)
        marey__perfetto_annotate_count(buf, "sequence", what.sequence);
    if (what.peer >= 0)
        marey__perfetto_annotate_count(buf, "peer", (uint32_t)what.peer);
}

void marey__perfetto_arrow(const struct marey__export *x, struct marey__buf *buf, uint64_t correlation)
{
    if (marey__perfetto_is_native(x))
        marey__perfetto_submits(x, buf, correlation);
    else
        pb_fixed64(buf, EVENT_FLOW_IDS, marey__perfetto_flow_id(x, NULL, correlation));
}

void marey__perfetto_flow_end(struct marey__export *x, const uint64_t *record)
{
    const struct marey_site_info *site = marey__export_site(x, marey_record_site(record[1]));
    pb_fixed64(&x->texts, record[3] == MAREY_FLOW_END ? EVENT_LAST_FLOW_IDS : EVENT_FLOW_IDS,
               marey__perfetto_flow_id(x, site, record[2]));
}

void marey__perfetto_records(struct marey__export *x, const struct marey__payload *payload,
                             uint32_t from)
{
    struct marey__buf *buf = &x->texts;
    struct marey__details details;
    const uint64_t *record;
    uint32_t found = 0;
    marey__details_of(payload, &details);
    if (details.arguments != NULL)
        marey__arguments_look(details.arguments, details.arguments_len,
                              (const char *const[]){"correlation"}, 1, &found);
    while ((record = marey__next_record(payload, &from)) != NULL) {
        const uint32_t type = marey_record_type_of(record[0]);
        if (type == MAREY_RECORD_LAUNCH) {
            if (found == 0)
                marey__perfetto_annotate_count(buf, "correlation", record[1]);
            marey__perfetto_arrow(x, buf, record[1]);
        } else if (type == MAREY_RECORD_COMMUNICATION) {
            put_communication(x, buf, record);
        } else if (type == MAREY_RECORD_ARGUMENTS) {
            marey__perfetto_arguments(buf, (const char *)(record + 2), (size_t)record[1]);
        } else if (type == MAREY_RECORD_FLOW) {
            marey__perfetto_flow_end(x, record);
        }
    }
}
