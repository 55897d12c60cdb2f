/*
 * Data of a range besides its name: its payload, and records of its launches, communication and arguments.
 * It is kept while the range is open, one entry per range, stacked like the ranges:
 *
 *   lane->payloads   | struct marey__payload | text | records |  ...                open_range.payload: offset plus one
 *
 * Entries consist of whole words, so that records can be read in place.
 */
#include <math.h>

#include "codec/internal.h"
#include "present/export/export_walk.h"

enum {
    MAX_RECORDS = 1 << 14, /* limit on words kept per range, for damaged files */
};

void marey__payload_put(struct marey__buf *into, const struct marey__payload *payload)
{
    static const char zeros[8];
    marey__buf_put(into, payload, sizeof *payload);
    marey__buf_put(into, payload->text, payload->len);
    marey__buf_put(into, zeros, marey__whole_words(payload->len) - payload->len);
    marey__buf_put(into, payload->records, payload->n_words * sizeof payload->records[0]);
}

/* The reference of a range to the entry at `at`. */
static uint32_t place_of(struct marey__export *x, const struct marey__export_lane *lane, size_t at)
{
    if (lane->payloads.failed) {
        x->status = marey__no_memory();
        return 0;
    }
    return lane->payloads.len > at ? (uint32_t)at + 1 : 0;
}

uint32_t marey__export_lane_keep(struct marey__export *x, struct marey__export_lane *lane,
                                 const struct marey__payload *payload)
{
    const size_t at = lane->payloads.len;
    const bool has_any = payload->type != 0 || payload->repeat != 0 || payload->n_words != 0;
    if (has_any && at < UINT32_MAX - 1)
        marey__payload_put(&lane->payloads, payload);
    return place_of(x, lane, at);
}

/* Make an entry of `size` bytes the last one: the range's, or a new empty one. */
static void move_to_end(struct marey__export *x, struct marey__export_lane *lane,
                        struct marey__frame *range, size_t size)
{
    const size_t at = lane->payloads.len;
    char *entry = marey__buf_extend(&lane->payloads, size);
    if (entry != NULL && range->payload != 0)
        memcpy(entry, lane->payloads.data + range->payload - 1, size);
    else if (entry != NULL)
        memset(entry, 0, size);
    range->payload = place_of(x, lane, at);
}

void marey__export_lane_note(struct marey__export *x, struct marey__export_lane *lane,
                             const uint64_t *words, size_t len)
{
    if (lane->stack.n_open == 0 || lane->stack.n_too_deep != 0)
        return;
    struct marey__frame *range = marey__stack_top(&lane->stack);
    struct marey__payload payload = marey__open_payload(lane, range);
    if (payload.n_words + len > MAX_RECORDS || lane->payloads.len >= UINT32_MAX / 2)
        return;
    const size_t size = sizeof payload + marey__whole_words(payload.len) +
                        payload.n_words * sizeof payload.records[0];
    /* If it is not the last, a range after it was removed from the middle of the stack. */
    if (range->payload == 0 || range->payload - 1 + size != lane->payloads.len)
        move_to_end(x, lane, range, size);
    marey__buf_put(&lane->payloads, words, len * sizeof words[0]);
    if (range->payload == 0 || place_of(x, lane, 0) == 0)
        return;
    payload.n_words += (uint32_t)len;
    memcpy(lane->payloads.data + range->payload - 1, &payload, sizeof payload);
}

size_t marey__export_look_ahead(uint64_t begin, const uint64_t *words, size_t n)
{
    size_t i = 0;
    while (i < n && i < MAX_RECORDS && marey_word_kind(words[i]) == MAREY_KIND_RECORD) {
        const uint32_t type = marey_record_type_of(words[i]);
        const bool is_about_it = type >= MAREY_RECORD_LAUNCH && type <= MAREY_RECORD_ARGUMENTS;
        const bool is_flow =
            type == MAREY_RECORD_FLOW && marey_word_ticks(words[i]) == marey_word_ticks(begin);
        const size_t len = marey_record_length(words[i]);
        if ((!is_about_it && !is_flow) || len < 2 || len > n - i)
            break;
        i += len;
    }
    return i;
}

void marey__details_of(const struct marey__payload *payload, struct marey__details *details)
{
    const uint64_t *record;
    *details = (struct marey__details){0};
    for (uint32_t at = 0; (record = marey__next_record(payload, &at)) != NULL;) {
        const uint32_t type = marey_record_type_of(record[0]);
        if (type == MAREY_RECORD_LAUNCH && details->correlation == 0) {
            details->correlation = record[1];
        } else if (type == MAREY_RECORD_COMMUNICATION) {
            details->communicates = true;
            marey_record_communication(record, &details->communication);
        } else if (type == MAREY_RECORD_ARGUMENTS) {
            details->arguments = (const char *)(record + 2);
            details->arguments_len = (size_t)record[1];
        }
    }
}

/*
 * ---- arguments ----
 *
 * A JSON object from another tool. Recordings may be damaged and tools may write invalid JSON, so the text is
 * validated before it becomes part of another file.
 */

enum { MAX_DEPTH = 32 };

static uint32_t bit_of(const struct marey__json *json, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (marey__json_is(json, keys[i]))
            return 1u << i;
    return 0;
}

bool marey__arguments_look(const char *text, size_t len, const char *const *keys, size_t n,
                           uint32_t *found)
{
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    marey__json_init_text(&json, text, len, MAREY__JSON_STRICT | MAREY__JSON_NAN);
    enum marey__json_token token = marey__json_next(&json);
    bool is_sound = token == MAREY__JSON_OBJECT;
    *found = 0;
    while (is_sound && (token = marey__json_next(&json)) != MAREY__JSON_END) {
        if (token == MAREY__JSON_KEY && json.depth == 1)
            *found |= bit_of(&json, keys, n);
        is_sound = token != MAREY__JSON_MISTAKE && json.depth <= MAX_DEPTH;
    }
    return is_sound;
}

static bool has_wild_numbers(const char *text, size_t len)
{
    return memmem(text, len, "NaN", 3) != NULL || memmem(text, len, "nan", 3) != NULL ||
           memmem(text, len, "Infinity", 8) != NULL;
}

/* The part of `text` between `from` and `to`, with quotes around numbers that are invalid in JSON. */
static void put_quoted(struct marey__buf *buf, const char *text, size_t len, const char *from,
                       const char *to)
{
    struct marey__json json MAREY__FINALLY(marey__json_fini);
    enum marey__json_token token;
    marey__json_init_text(&json, text, len, MAREY__JSON_STRICT | MAREY__JSON_NAN);
    while ((token = marey__json_next(&json)) != MAREY__JSON_END && token != MAREY__JSON_MISTAKE) {
        const double number = marey__json_number(&json, token);
        if (token != MAREY__JSON_NUMBER || isfinite(number))
            continue;
        const char *const end = text + marey__json_offset(&json);
        marey__utf8_put(buf, from, (size_t)(end - json.text_len - from));
        marey__buf_puts(buf, isnan(number) ? "\"NaN\""
                             : number > 0  ? "\"Infinity\""
                                           : "\"-Infinity\"");
        from = end;
    }
    marey__utf8_put(buf, from, (size_t)(to - from));
}

bool marey__arguments_put(struct marey__buf *buf, const char *text, size_t len)
{
    const char *from = memchr(text, '{', len), *to = memrchr(text, '}', len);
    from++;
    while (from < to && (*from == ' ' || *from == '\n' || *from == '\t' || *from == '\r'))
        from++;
    if (from >= to)
        return false;
    if (has_wild_numbers(from, (size_t)(to - from)))
        put_quoted(buf, text, len, from, to);
    else
        marey__utf8_put(buf, from, (size_t)(to - from));
    return true;
}

size_t marey__launch_json(const struct marey_launch *l, char into[MAREY__LAUNCH_JSON_MAX])
{
    size_t n = 0;
    marey__append(into, MAREY__LAUNCH_JSON_MAX, &n, "{");
    if (l->block[0] != 0)
        marey__append(into, MAREY__LAUNCH_JSON_MAX, &n,
                      "\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"registers per thread\":%u,"
                      "\"shared memory\":%" PRIu64,
                      l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
                      l->registers, (uint64_t)l->static_shared_bytes + l->dynamic_shared_bytes);
    if (l->graph != 0)
        marey__append(into, MAREY__LAUNCH_JSON_MAX, &n,
                      "%s\"graph id\":%u,\"graph node id\":%" PRIu64, n > 1 ? "," : "", l->graph,
                      l->graph_node);
    marey__append(into, MAREY__LAUNCH_JSON_MAX, &n, "}");
    return n;
}

void marey__work_details_of(const struct marey__export *x, const struct marey__stream_work *work,
                            struct marey__details *details)
{
    marey__details_of(&work->payload, details);
    if (details->arguments == NULL && work->has_launch) {
        details->arguments_len = marey__launch_json(&work->launch, details->launch);
        details->arguments = details->launch;
        details->is_shared = true;
    }
    if (details->arguments != NULL || work->details == 0)
        return;
    const struct marey_site_info *site = marey__export_site(x, work->details);
    if (site->name_len == 0)
        return;
    details->arguments = site->name;
    details->arguments_len = site->name_len;
    details->is_shared = true;
}
