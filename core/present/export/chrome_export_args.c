/*
 * The arguments of an event. Those that an imported trace gave it go out as they came, so that what Kineto knows of a
 * kernel (its grid, its registers) is still there. Where there are none, they are made of what the recording knows,
 * under the names that Kineto gives to it.
 */
#include "present/export/chrome_export.h"

#include <math.h>

static struct marey__buf *text_of(const struct marey__export *x)
{
    return &marey__chrome_of(x)->text;
}

/* `,"KEY":`, without the comma where it is the first. */
static void put_key(struct marey__buf *buf, const char *key)
{
    if (buf->len > 0 && buf->data[buf->len - 1] != '{')
        marey__buf_puts(buf, ",");
    marey__buf_printf(buf, "\"%s\":", key);
}

/*
 * Viewers keep integers with a sign and would show 2^64 - 1 as -1; what does not fit goes as its
 * digits in quotes.
 */
static void put_unsigned(struct marey__buf *buf, uint64_t value)
{
    const char *quote = value > INT64_MAX ? "\"" : "";
    marey__buf_puts(buf, quote);
    marey__buf_put_u64(buf, value);
    marey__buf_puts(buf, quote);
}

static void put_count(struct marey__buf *buf, const char *key, uint64_t value)
{
    put_key(buf, key);
    put_unsigned(buf, value);
}

/*
 * JSON has no word for what is not finite, which a loss may well become. Viewers refuse null as the
 * value of a counter, and read these texts as the numbers they are.
 */
char *marey__chrome_double(char *p, double value)
{
    if (isnan(value))
        return stpcpy(p, "\"NaN\"");
    if (isinf(value))
        return stpcpy(p, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return marey__put_f64(p, value);
}

static void put_payload(struct marey__buf *buf, const struct marey__payload *payload)
{
    char number[40];
    double value;
    put_key(buf, "payload");
    switch (payload->type) {
    case MAREY_PAYLOAD_I64:
        marey__buf_put_i64(buf, (int64_t)payload->bits);
        break;
    case MAREY_PAYLOAD_U64:
        put_unsigned(buf, payload->bits);
        break;
    case MAREY_PAYLOAD_F64:
        memcpy(&value, &payload->bits, sizeof value);
        marey__buf_put(buf, number, (size_t)(marey__chrome_double(number, value) - number));
        break;
    case MAREY_PAYLOAD_TEXT:
        marey__json_put(buf, payload->text, payload->len);
        break;
    default: /* of a later version */
        marey__buf_puts(buf, "null");
        break;
    }
}

/* ---- communication ---- */

/* Kineto counts elements of a type; ours are bytes, which is a type as well. */
static void put_communication(struct marey__export *x, struct marey__buf *buf,
                              const struct marey_communication *what)
{
    put_key(buf, "Collective name");
    marey__buf_printf(buf, "\"%s\"", marey__collective_name(what->what));
    if (what->bytes_in != 0 || what->bytes_out != 0) {
        put_key(buf, "dtype");
        marey__buf_puts(buf, "\"Byte\"");
        put_count(buf, "In msg nelems", what->bytes_in);
        put_count(buf, "Out msg nelems", what->bytes_out);
    }
    if (what->group_size != 0)
        put_count(buf, "Group size", what->group_size);
    if (what->group != 0) {
        const struct marey_site_info *group = marey__export_site(x, what->group);
        put_key(buf, "Process Group Name");
        marey__json_put(buf, group->name, group->name_len);
        put_key(buf, "Process Group Ranks");
        marey__json_put(buf, group->domain, strlen(group->domain));
    }
    if (what->sequence != UINT64_MAX)
        put_count(buf, "Seq", what->sequence);
    if (what->peer >= 0)
        put_count(buf, what->what == MAREY_COLLECTIVE_RECV ? "Src Rank" : "Dst Rank",
                  (uint32_t)what->peer);
}

/* ---- what was given ---- */

/* True when the event has arguments. Of `keys`, `*found` gets those it has. */
static bool put_given(struct marey__buf *buf, const struct marey__details *details,
                      const char *const *keys, size_t n, uint32_t *found)
{
    *found = 0;
    if (details->arguments == NULL)
        return false;
    if (!marey__arguments_look(details->arguments, details->arguments_len, keys, n, found)) {
        put_key(buf, "arguments"); /* not sound: as a text */
        marey__json_put(buf, details->arguments, details->arguments_len);
        return true;
    }
    const size_t before = buf->len;
    const bool is_first = buf->data == NULL || before == 0 || buf->data[before - 1] == '{';
    if (!is_first)
        marey__buf_puts(buf, ",");
    if (!marey__arguments_put(buf, details->arguments, details->arguments_len))
        buf->len = before;
    return true;
}

static void open_args(struct marey__buf *buf)
{
    buf->len = 0;
    marey__buf_puts(buf, ",\"args\":{");
}

static void close_args(struct marey__export *x, struct marey__buf *buf)
{
    marey__buf_puts(buf, "}");
    marey__export_put(x, buf);
}

void marey__chrome_args(struct marey__export *x, const struct marey__payload *payload, bool is_cut)
{
    static const char *const keys[] = {"correlation", "External id"};
    const uint64_t around = marey__chrome_of(x)->around;
    struct marey__buf *buf = text_of(x);
    struct marey__details details;
    uint32_t found;
    marey__details_of(payload, &details);
    open_args(buf);
    if (payload->type != 0)
        put_payload(buf, payload);
    if (payload->repeat != 0)
        put_count(buf, "calls", payload->repeat - 1);
    const bool is_given = put_given(buf, &details, keys, MAREY__COUNT_OF(keys), &found);
    if (details.correlation != 0 && (found & 1) == 0)
        put_count(buf, keys[0], details.correlation);
    if (around != 0 && (found & 2) == 0)
        put_count(buf, keys[1], around);
    if (details.communicates && !is_given)
        put_communication(x, buf, &details.communication);
    if (is_cut) {
        put_key(buf, "end_lost");
        marey__buf_puts(buf, "true");
    }
    close_args(x, buf);
}

void marey__chrome_work_args(struct marey__export *x, const struct marey_lane_info *lane,
                             const struct marey__stream_work *work)
{
    static const char *const keys[] = {"device", "stream", "correlation", "bytes"};
    struct marey__buf *buf = text_of(x);
    struct marey__details details;
    uint32_t found;
    marey__work_details_of(x, work, &details);
    open_args(buf);
    const bool is_given =
        put_given(buf, &details, keys, MAREY__COUNT_OF(keys), &found) && !details.is_shared;
    /* Where the device is the pid and the stream the tid, what was given may do without them. */
    const bool wants_place = !is_given || !marey__chrome_of(x)->pids_are_devices;
    if (wants_place && (found & 1) == 0) {
        put_key(buf, keys[0]);
        marey__buf_printf(buf, "%d", lane->device);
    }
    if (wants_place && (found & 2) == 0) {
        put_key(buf, keys[1]);
        marey__buf_printf(buf, "%d", (int32_t)lane->stream);
    }
    if (work->correlation != 0 && (found & 4) == 0)
        put_count(buf, keys[2], work->correlation);
    if (work->bytes != 0 && (found & 8) == 0)
        put_count(buf, keys[3], work->bytes);
    if (details.communicates && !is_given)
        put_communication(x, buf, &details.communication);
    close_args(x, buf);
}
