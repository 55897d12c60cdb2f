/*
 * Adds events from the summary's walk to rows of the page. A range goes to the row of its depth when it ends. Begins
 * within a row are then ordered: a range that ends later at the same depth was on the stack above the earlier one, or
 * began after it.
 */
#include "present/export/export_walk.h"
#include "present/page/internal.h"

/*
 * ---- data of events besides names and times ----
 *
 * Payloads, arguments, communication, copies and launches are texts of the process, each a JSON value. A track has a row
 * with an entry for each, with the begin and site of the event; the value is the offset of its text. Launches and flows are
 * rows as well, with a correlation or id as their value, by which the page finds the other end.
 */

/* Limit on texts of a process: arguments of every operator may be larger than all else. Later ones are counted. */
enum { MAX_TEXTS = 16 << 20 };

static bool add_event(struct marey__page_process *process, struct marey__page_row *row, uint64_t ns,
                      uint64_t value, uint32_t id)
{
    const struct marey__page_event event = {marey__page_ns(process, ns), value, id};
    return marey__page_row_add(process->page, row, &event);
}

/* Record the text at offset `at` for the event that begins at `ns`. */
static bool add_text(struct marey__page_process *process, struct marey__page_track *track,
                     uint64_t ns, uint32_t site, size_t at)
{
    marey__buf_put(&process->texts, "", 1);
    return !process->texts.failed && add_event(process, &track->texts, ns, at, site);
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

static bool add_payload(struct marey__page_process *process, struct marey__page_track *track,
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

static bool add_calls(struct marey__page_process *process, struct marey__page_track *track,
                      const struct marey__frame *frame)
{
    uint32_t site = frame->site;
    if (!marey__page_take_site(process, &site) || !has_room(process))
        return true;
    const size_t at = process->texts.len;
    marey__buf_printf(&process->texts, "{\"calls\":%" PRIu64 "}", frame->repeat - 1);
    return add_text(process, track, frame->start_ns, site, at);
}

/* Arguments are a JSON object from the tool that made the trace; anything else becomes a text. */
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
    marey__json_printf(texts, "{'communication':%s,'bytes given':%" PRIu64 ",'bytes got':%" PRIu64,
                       marey__collective_name(what.what), what.bytes_in, what.bytes_out);
    if (what.group != 0)
        marey__json_printf(texts, ",'group':%.*s", (int)group->name_len, group->name);
    if (what.group_size != 0)
        marey__buf_printf(texts, ",\"ranks\":%u", what.group_size);
    if (what.peer >= 0)
        marey__buf_printf(texts, ",\"peer\":%d", what.peer);
    marey__buf_puts(texts, "}");
}

static bool add_about_text(struct marey__page_process *process, struct marey__page_track *track,
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

/* A text shared by many events is stored once, under a key of `len` bytes; `put` writes it. */
static bool add_shared_text(struct marey__page_process *process, struct marey__page_track *track,
                            uint64_t ns, uint32_t site, const void *key, size_t len,
                            void (*put)(struct marey__page_process *process, const void *key))
{
    uint32_t number = marey__names_find(&process->shared, key, len);
    if (number == MAREY__NO_NAME) {
        if (!has_room(process))
            return true;
        const size_t at = process->texts.len;
        number = marey__names_keep(&process->shared, &process->shared_keys, key, len);
        if (number == MAREY__NO_NAME ||
            !marey__grow(&process->shared_texts, &process->shared_texts_cap, process->shared.n,
                         sizeof *process->shared_texts))
            return false;
        put(process, key);
        process->shared_texts[number] = (uint32_t)at;
        return add_text(process, track, ns, site, at);
    }
    return add_event(process, &track->texts, ns, process->shared_texts[number], site);
}

static void put_launch(struct marey__page_process *process, const void *key)
{
    char text[MAREY__LAUNCH_JSON_MAX];
    const size_t len = marey__launch_json(key, text);
    marey__json_put(&process->texts, text, len);
}

/* The key is a site whose name is the text. */
static void put_details(struct marey__page_process *process, const void *key)
{
    const struct marey_site_info *const site =
        marey_recording_site(process->recording, process->info->index, *(const uint32_t *)key);
    marey__json_put(&process->texts, site->name, site->name_len);
}

static bool add_work_details(struct marey__page_process *process, struct marey__page_track *track,
                             const uint64_t *words, uint64_t ns, uint32_t site)
{
    static const char *const kinds[] = {"work",       "kernel",          "copy",  "set",
                                        "annotation", "synchronisation", "memory"};
    const uint32_t kind = marey_record_work_kind(words[1]);
    const uint64_t correlation = words[3], bytes = words[4];
    if (correlation != 0 && !add_event(process, &track->links, ns, correlation, site))
        return false;
    const uint32_t details = marey_record_work_details(words[1]);
    struct marey_launch launch;
    if (marey_record_launch(words, &launch) &&
        !add_shared_text(process, track, ns, site, &launch, sizeof launch, put_launch))
        return false;
    const bool has_details =
        details != 0 && details <= process->info->n_sites &&
        marey_recording_site(process->recording, process->info->index, details)->name_len != 0;
    if (has_details &&
        !add_shared_text(process, track, ns, site, &details, sizeof details, put_details))
        return false;
    if (bytes == 0 || !has_room(process))
        return true;
    const size_t at = process->texts.len;
    marey__buf_printf(&process->texts, "{\"kind\":\"%s\",\"bytes\":%" PRIu64 "}",
                      kinds[kind < MAREY__COUNT_OF(kinds) ? kind : 0], bytes);
    return add_text(process, track, ns, site, at);
}

static bool add_flow(struct marey__page_process *process, struct marey__page_track *track,
                     const uint64_t *words, uint64_t ns)
{
    return add_event(process, &track->flows, ns, words[2],
                     (uint32_t)MAREY__MIN(words[3], (uint64_t)MAREY_FLOW_END));
}

/* ---- tracks ---- */

/* Whether ranges at this depth, from 0, are shown. */
static bool is_shallow(const struct marey__page_process *process, size_t depth)
{
    const uint32_t max_depth = process->page->wants.max_depth;
    return max_depth == 0 || depth < max_depth;
}

static struct marey__page_track *track_of(struct marey__page_process *process,
                                          const struct marey__lane_walk *lane)
{
    return &process->lanes[lane->stack.info->lane];
}

/* ---- ends ---- */

static bool on_call(void *ctx, const struct marey__lane_walk *lane,
                    const struct marey__frame *frame, uint64_t end_ns)
{
    struct marey__page_process *process = ctx;
    struct marey__page_track *track = track_of(process, lane);
    const size_t depth = lane->stack.n_open;
    const uint64_t start_ns = marey__page_ns(process, frame->start_ns);
    const uint64_t duration_ns = end_ns > frame->start_ns ? end_ns - frame->start_ns : 0;
    uint32_t site = frame->site;
    track->last_ns = end_ns;
    if (!is_shallow(process, depth) || !marey__page_take_site(process, &site))
        return true;
    if (MAREY_UNLIKELY(depth >= MAREY__PAGE_DEPTH)) {
        track->n_too_deep++;
        return true;
    }
    if (MAREY_UNLIKELY(frame->repeat != 0) && !add_calls(process, track, frame))
        return false;
    struct marey__page_row *row = marey__page_track_row(track, depth);
    if (row == NULL)
        return false;
    if (MAREY_LIKELY(process->thin.below_ns == 0))
        return marey__page_row_put(process->page, row, start_ns, duration_ns, site);
    const struct marey__page_event event = {.start_ns = start_ns, .value = duration_ns, .id = site};
    return marey__page_thin_add(process, row, &event, 2);
}

/* A range at `depth` with an unknown end. */
static bool add_unfinished(struct marey__page_process *process, struct marey__page_track *track,
                           const struct marey__frame *frame, size_t depth, bool is_lost,
                           uint64_t last_ns)
{
    uint32_t site = frame->site;
    if (depth >= MAREY__PAGE_DEPTH || !is_shallow(process, depth) ||
        !marey__page_take_site(process, &site))
        return true;
    const struct marey__page_unfinished range = {
        .start_ns = marey__page_ns(process, frame->start_ns),
        .last_ns = marey__page_ns(process, MAREY__MAX(last_ns, frame->start_ns)),
        .site = site,
        .depth = (uint32_t)depth,
        .is_lost = is_lost,
    };
    return MAREY__PUSH(track->unfinished, track->n_unfinished, track->unfinished_cap, range);
}

static bool on_cut(void *ctx, const struct marey__lane_walk *lane, const struct marey__frame *frame,
                   uint64_t last_ns)
{
    struct marey__page_process *process = ctx;
    return add_unfinished(process, track_of(process, lane), frame, lane->stack.n_open, true, last_ns);
}

/* Events are missing between the last one and `ns`; `n` of them, 0 unknown. */
static bool on_gap(void *ctx, const struct marey__lane_walk *lane, uint64_t ns, uint64_t n)
{
    struct marey__page_process *process = ctx;
    const uint64_t last_ns = MAREY__MAX(lane->stack.last_ns, process->info->first_ns);
    return add_event(process, &track_of(process, lane)->losses, MAREY__MIN(last_ns, ns),
                     ns > last_ns ? ns - last_ns : 0, (uint32_t)MAREY__MIN(n, (uint64_t)UINT32_MAX));
}

bool marey__page_end_lane(struct marey__page_process *process, const struct marey__lane_walk *lane)
{
    struct marey__page_track *track = track_of(process, lane);
    const uint64_t last_ns = process->info->last_ns;
    for (size_t i = 0; i < lane->stack.n_open && i < MAREY__PAGE_DEPTH; i++)
        if (!add_unfinished(process, track, &lane->stack.open[i], i, false, last_ns))
            return false;
    /* A gap without later events extends to the end. */
    return !lane->is_blind || on_gap(process, lane, last_ns, 0);
}

/* ---- points ---- */

static bool on_mark(void *ctx, const struct marey__lane_walk *lane, uint32_t site, uint64_t ns)
{
    struct marey__page_process *process = ctx;
    struct marey__page_track *track = track_of(process, lane);
    track->last_ns = ns;
    return !marey__page_take_site(process, &site) || add_event(process, &track->marks, ns, 0, site);
}

static bool add_counter(struct marey__page_process *process, const uint64_t *words, uint64_t ns)
{
    uint32_t site = marey_record_site(words[1]);
    if (!marey__page_take_site(process, &site))
        return true;
    uint32_t *number = &process->counter_rows[site];
    if (*number == 0)
        *number = (uint32_t)process->counters.n_rows + 1;
    struct marey__page_row *row = marey__page_track_row(&process->counters, *number - 1);
    if (row == NULL)
        return false;
    row->values = MAREY__PAGE_DOUBLES;
    row->id = site;
    return add_event(process, row, ns, words[2], site);
}

/* ---- overlapping events ---- */

static bool add_async(struct marey__page_process *process, const struct marey__async_half *begin,
                      uint64_t duration_ns)
{
    uint32_t site = begin->name;
    if (!marey__page_take_site(process, &site))
        return true;
    return MAREY__PUSH(process->asyncs, process->n_asyncs, process->asyncs_cap,
                       (struct marey__page_event){.start_ns = marey__page_ns(process, begin->ns),
                                                  .value = duration_ns,
                                                  .id = site});
}

static bool take_async(struct marey__page_process *process, const struct marey__lane_walk *lane,
                       const uint64_t *words, uint64_t ns)
{
    const struct marey__async_half half = {
        .handle = words[2],
        .ns = ns,
        .name = marey_record_site(words[1]),
        .lane = lane->stack.info->lane,
        .is_begin = marey_record_type_of(words[0]) == MAREY_RECORD_ASYNC_BEGIN,
    };
    struct marey__async_half other;
    bool failed;
    if (!marey__async_match(&process->pending, &half, &other, &failed))
        return !failed;
    const struct marey__async_half *begin = half.is_begin ? &half : &other,
                                   *end = half.is_begin ? &other : &half;
    return add_async(process, begin, end->ns > begin->ns ? end->ns - begin->ns : 0);
}

static bool add_gpu_work(struct marey__page_process *process, const struct marey_batch *batch,
                         const uint64_t *words)
{
    struct marey__page_track *track = &process->lanes[batch->lane->lane];
    const uint64_t ns = marey_batch_ns(batch, words[0]);
    struct marey__page_event event = {
        .start_ns = marey__page_ns(process, ns),
        .value = marey_batch_duration_ns(batch, words[2]),
        .id = marey_record_site(words[1]),
    };
    track->last_ns = ns;
    track->last_site = event.id;
    if (!marey__page_take_site(process, &event.id))
        return true;
    struct marey__page_row *row = marey__page_free_row(track, event.start_ns);
    if (row == NULL)
        return false;
    if (process->thin.below_ns == 0)
        return marey__page_row_add(process->page, row, &event) &&
               add_work_details(process, track, words, ns, event.id);
    /* Short ones have no details, because nearly all of them are merged. */
    return marey__page_thin_add(process, row, &event, marey_record_length(words[0])) &&
           (event.value < process->thin.below_ns ||
            add_work_details(process, track, words, ns, event.id));
}

static bool add_gpu_record(struct marey__page_process *process, const struct marey_batch *batch,
                           const uint64_t *words)
{
    struct marey__page_track *track = &process->lanes[batch->lane->lane];
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_GPU:
        return add_gpu_work(process, batch, words);
    case MAREY_RECORD_ARGUMENTS:
    case MAREY_RECORD_COMMUNICATION:
        return add_about_text(process, track, words, track->last_ns, track->last_site);
    case MAREY_RECORD_FLOW:
        return add_flow(process, track, words, marey_batch_ns(batch, words[0]));
    default:
        return true;
    }
}

static bool on_gpu(void *ctx, const struct marey_batch *batch)
{
    struct marey__page_process *process = ctx;
    for (size_t i = 0, step; i < batch->n; i += step) {
        const uint64_t word = batch->words[i];
        const bool is_record = marey_word_kind(word) == MAREY_KIND_RECORD;
        step = is_record ? MAREY__MAX(marey_record_length(word), 1u) : 1;
        if (is_record && !add_gpu_record(process, batch, batch->words + i))
            return false;
    }
    return true;
}

bool marey__page_place_asyncs(struct marey__page_process *process)
{
    if (process->n_asyncs != 0)
        qsort(process->asyncs, process->n_asyncs, sizeof *process->asyncs,
              marey__compare_u64); /* by `start_ns`, the first member */
    for (size_t i = 0; i < process->n_asyncs; i++) {
        const struct marey__page_event *event = &process->asyncs[i];
        struct marey__page_row *row = marey__page_free_row(&process->async, event->start_ns);
        if (row == NULL || !marey__page_row_add(process->page, row, event))
            return false;
    }
    return true;
}

/* Async ranges that never ended: each in a separate row, as far as known. */
bool marey__page_add_open_asyncs(struct marey__page_process *process)
{
    struct marey__page_track *track = &process->async;
    for (size_t i = 0; i < process->pending.n_slots; i++) {
        const struct marey__async_half *half = &process->pending.slots[i];
        uint32_t site = half->name;
        if (half->handle == 0 || !half->is_begin || !marey__page_take_site(process, &site))
            continue;
        const struct marey__page_unfinished range = {
            .start_ns = marey__page_ns(process, half->ns),
            .last_ns = marey__page_ns(process, process->info->last_ns),
            .site = site,
            .depth = (uint32_t)MAREY__MIN(track->n_rows + track->n_unfinished,
                                          (size_t)MAREY__PAGE_DEPTH - 1),
        };
        if (!MAREY__PUSH(track->unfinished, track->n_unfinished, track->unfinished_cap, range))
            return false;
    }
    return true;
}

/* Arguments and communication describe the range begun last. */
static bool add_about(struct marey__page_process *process, const struct marey__lane_walk *lane,
                      const uint64_t *words)
{
    if (lane->stack.n_open == 0)
        return true;
    const struct marey__frame *frame = marey__stack_top(&lane->stack);
    return add_about_text(process, track_of(process, lane), words, frame->start_ns, frame->site);
}

static bool on_record(void *ctx, const struct marey__lane_walk *lane, const uint64_t *words,
                      uint64_t ns)
{
    struct marey__page_process *process = ctx;
    struct marey__page_track *track = track_of(process, lane);
    switch (marey_record_type_of(words[0])) {
    case MAREY_RECORD_BEGIN:
        return add_payload(process, track, words, ns);
    case MAREY_RECORD_MARK:
        return on_mark(ctx, lane, marey_record_site(words[1]), ns) &&
               add_payload(process, track, words, ns);
    case MAREY_RECORD_COUNTER:
        return add_counter(process, words, ns);
    case MAREY_RECORD_ASYNC_BEGIN:
    case MAREY_RECORD_ASYNC_END:
        return take_async(process, lane, words, ns);
    case MAREY_RECORD_ARGUMENTS:
    case MAREY_RECORD_COMMUNICATION:
        return add_about(process, lane, words);
    case MAREY_RECORD_LAUNCH:
        return words[1] == 0 || add_event(process, &track->links, ns, words[1], 0);
    case MAREY_RECORD_FLOW:
        return add_flow(process, track, words, ns);
    default:
        return true;
    }
}

const struct marey__walk_tap marey__page_tap = {
    .call = on_call,
    .cut = on_cut,
    .mark = on_mark,
    .record = on_record,
    .gap = on_gap,
    .gpu = on_gpu,
};
