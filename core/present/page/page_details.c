/*
 * What events carry besides a name and times: payloads, arguments, what was communicated, copied, launched, and flows.
 *
 * Texts of a process lie one behind the other. A track has a row with one entry for each, where the begin and the site
 * are those of the event and the value is where its text begins; a text is a JSON value. Launches and flows are rows as
 * well, with a correlation or an id for their value, by which the page finds the other end.
 */
#include <inttypes.h>
#include <string.h>

#include "present/export/export_walk.h"
#include "present/page/internal.h"

/* Texts of a process at most: arguments of every operator may be larger than all else. What comes later is counted. */
enum { MAX_TEXTS = 16 << 20 };

/* A text for the event that begins at `ns`; it was put behind what the process has, from `at` on. */
static bool add_text(struct marey__page_process *process, struct marey__page_track *track,
                     uint64_t ns, uint32_t site, size_t at)
{
    const struct marey__page_event event = {
        .start_ns = marey__page_ns(process, ns), .value = at, .id = site};
    marey__buf_put(&process->texts, "", 1);
    return !process->texts.failed && marey__page_row_add(process->page, &track->texts, &event);
}

static bool has_room(struct marey__page_process *process)
{
    if (process->texts.len < MAX_TEXTS)
        return true;
    process->n_texts_left_out++;
    return false;
}

static void put_payload(struct marey__buf *texts, const struct marey__payload *payload)
{
    double value;
    if (payload->type == MAREY_PAYLOAD_I64) {
        marey__buf_printf(texts, "%" PRId64, (int64_t)payload->bits);
    } else if (payload->type == MAREY_PAYLOAD_U64) {
        marey__buf_printf(texts, "%" PRIu64, payload->bits);
    } else if (payload->type == MAREY_PAYLOAD_F64) {
        memcpy(&value, &payload->bits, sizeof value);
        marey__json_put_f64(texts, value);
    } else {
        marey__json_put(texts, payload->text, payload->len);
    }
}

bool marey__page_add_payload(struct marey__page_process *process, struct marey__page_track *track,
                             const uint64_t *words, uint64_t ns)
{
    const struct marey__payload payload = marey__record_payload(words, marey_record_length(words[0]));
    uint32_t site = marey_record_site(words[1]);
    if (payload.type == 0 || !marey__page_take_site(process, &site) || !has_room(process))
        return true;
    const size_t at = process->texts.len;
    put_payload(&process->texts, &payload);
    return add_text(process, track, ns, site, at);
}

bool marey__page_add_calls(struct marey__page_process *process, struct marey__page_track *track,
                           const struct marey__frame *frame)
{
    uint32_t site = frame->site;
    if (!marey__page_take_site(process, &site) || !has_room(process))
        return true;
    const size_t at = process->texts.len;
    marey__buf_printf(&process->texts, "{\"calls\":%" PRIu64 "}", frame->repeat - 1);
    return add_text(process, track, frame->start_ns, site, at);
}

/* Arguments come as a JSON object, of whoever made the trace; what is none becomes a text. */
static void put_arguments(struct marey__buf *texts, const uint64_t *words)
{
    const size_t room = (marey_record_length(words[0]) - 2) * sizeof words[0];
    const size_t len = MAREY__MIN((size_t)words[1], room);
    marey__json_put(texts, (const char *)(words + 2), len);
}

static void put_communication(struct marey__page_process *process, const uint64_t *words)
{
    struct marey__buf *texts = &process->texts;
    struct marey_communication what;
    marey_record_communication(words, &what);
    const struct marey_site_info *group =
        marey_recording_site(process->recording, process->info->index, what.group);
    marey__buf_printf(
        texts, "{\"communication\":\"%s\",\"bytes given\":%" PRIu64 ",\"bytes got\":%" PRIu64,
        marey__collective_name(what.what), what.bytes_in, what.bytes_out);
    if (what.group != 0) {
        marey__buf_puts(texts, ",\"group\":");
        marey__json_put(texts, group->name, group->name_len);
    }
    if (what.group_size != 0)
        marey__buf_printf(texts, ",\"ranks\":%u", what.group_size);
    if (what.peer >= 0)
        marey__buf_printf(texts, ",\"peer\":%d", what.peer);
    marey__buf_puts(texts, "}");
}

bool marey__page_add_about(struct marey__page_process *process, struct marey__page_track *track,
                           const uint64_t *words, uint64_t ns, uint32_t site)
{
    if (!marey__page_take_site(process, &site) || !has_room(process))
        return true;
    const size_t at = process->texts.len;
    if (marey_record_type_of(words[0]) == MAREY_RECORD_ARGUMENTS)
        put_arguments(&process->texts, words);
    else
        put_communication(process, words);
    return add_text(process, track, ns, site, at);
}

/* What much work has in common lies there once. */
static bool add_shared_text(struct marey__page_process *process, struct marey__page_track *track,
                            uint64_t ns, uint32_t site, uint32_t details)
{
    const struct marey_site_info *info =
        marey_recording_site(process->recording, process->info->index, details);
    if (details > process->info->n_sites || info->name_len == 0)
        return true;
    if (process->shared_texts == NULL) {
        process->shared_texts =
            marey__calloc((size_t)process->info->n_sites + 1, sizeof *process->shared_texts);
        if (process->shared_texts == NULL)
            return false;
    }
    const uint32_t known = process->shared_texts[details];
    if (known == 0) {
        if (!has_room(process))
            return true;
        const size_t at = process->texts.len;
        marey__json_put(&process->texts, info->name, info->name_len);
        process->shared_texts[details] = (uint32_t)at + 1;
        return add_text(process, track, ns, site, at);
    }
    const struct marey__page_event event = {
        .start_ns = marey__page_ns(process, ns), .value = known - 1, .id = site};
    return marey__page_row_add(process->page, &track->texts, &event);
}

/* Launches with the same sizes share their text. */
static bool add_launch_text(struct marey__page_process *process, struct marey__page_track *track,
                            uint64_t ns, uint32_t site, const struct marey_launch *launch)
{
    const size_t n = process->launches.n;
    uint32_t number = marey__names_find(&process->launches, (const char *)launch, sizeof *launch);
    if (number == MAREY__NO_NAME) {
        if (!has_room(process))
            return true;
        char text[MAREY__LAUNCH_JSON_MAX];
        const size_t len = marey__launch_json(launch, text), at = process->texts.len;
        const char *const key =
            marey__arena_text(&process->launch_keys, (const char *)launch, sizeof *launch);
        if (key == NULL || !marey__grow(&process->launch_texts, &process->launch_texts_cap, n + 1,
                                        sizeof *process->launch_texts))
            return false;
        number = marey__names_number(&process->launches, key, sizeof *launch);
        if (number == MAREY__NO_NAME)
            return false;
        marey__json_put(&process->texts, text, len);
        process->launch_texts[number] = (uint32_t)at;
        return add_text(process, track, ns, site, at);
    }
    const struct marey__page_event event = {
        .start_ns = marey__page_ns(process, ns), .value = process->launch_texts[number], .id = site};
    return marey__page_row_add(process->page, &track->texts, &event);
}

bool marey__page_add_work_details(struct marey__page_process *process,
                                  struct marey__page_track *track, const uint64_t *words,
                                  uint64_t ns, uint32_t site)
{
    static const char *const kinds[] = {"work",       "kernel",          "copy",  "set",
                                        "annotation", "synchronisation", "memory"};
    const uint32_t kind = marey_record_work_kind(words[1]);
    const uint64_t correlation = words[3], bytes = words[4];
    const struct marey__page_event link = {
        .start_ns = marey__page_ns(process, ns), .value = correlation, .id = site};
    if (correlation != 0 && !marey__page_row_add(process->page, &track->links, &link))
        return false;
    const uint32_t details = marey_record_work_details(words[1]);
    struct marey_launch launch;
    if (marey_record_launch(words, &launch) && !add_launch_text(process, track, ns, site, &launch))
        return false;
    if (details != 0 && !add_shared_text(process, track, ns, site, details))
        return false;
    if (bytes == 0 || !has_room(process))
        return true;
    const size_t at = process->texts.len;
    marey__buf_printf(&process->texts, "{\"kind\":\"%s\",\"bytes\":%" PRIu64 "}",
                      kinds[kind < MAREY__COUNT_OF(kinds) ? kind : 0], bytes);
    return add_text(process, track, ns, site, at);
}

bool marey__page_add_launch(struct marey__page_process *process, struct marey__page_track *track,
                            const uint64_t *words, uint64_t ns)
{
    const struct marey__page_event event = {.start_ns = marey__page_ns(process, ns),
                                            .value = words[1]};
    return words[1] == 0 || marey__page_row_add(process->page, &track->links, &event);
}

bool marey__page_add_flow(struct marey__page_process *process, struct marey__page_track *track,
                          const uint64_t *words, uint64_t ns)
{
    const struct marey__page_event event = {
        .start_ns = marey__page_ns(process, ns),
        .value = words[2],
        .id = (uint32_t)MAREY__MIN(words[3], (uint64_t)MAREY_FLOW_END),
    };
    return marey__page_row_add(process->page, &track->flows, &event);
}
