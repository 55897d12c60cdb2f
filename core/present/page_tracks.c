/*
 * Events of a process on their way from the summary's walk to rows of the page. A range goes to the row of its depth
 * when it ends. Within a row begins are then in order: what ends later at the same depth was on the stack above the
 * earlier one, or began after it.
 */
#include <string.h>

#include "present/page_internal.h"

/* Whether a range with so many frames around it, the thread's own among them, is less deep than what is shown. */
static bool is_shallow(const struct kymo__page_process *process, size_t n_frames)
{
    const uint32_t max_depth = process->page->options->summary.max_depth;
    return max_depth == 0 || n_frames <= max_depth;
}

static struct kymo__page_track *track_of(struct kymo__page_process *process,
                                         const struct kymo__lane_walk *lane)
{
    return &process->lanes[lane->info->lane];
}

/* ---- what ends ---- */

static bool on_call(void *ctx, const struct kymo__lane_walk *lane, const struct kymo__frame *frame,
                    uint64_t end_ns)
{
    struct kymo__page_process *process = ctx;
    struct kymo__page_track *track = track_of(process, lane);
    const size_t depth = lane->n_frames - 1;
    const uint64_t start_ns = kymo__page_ns(process, frame->start_ns);
    const uint64_t duration_ns = end_ns > frame->start_ns ? end_ns - frame->start_ns : 0;
    uint32_t site = frame->site;
    track->last_ns = end_ns;
    if (!is_shallow(process, lane->n_frames) || !kymo__page_take_site(process, &site))
        return true;
    if (KYMO_UNLIKELY(depth >= KYMO__PAGE_DEPTH)) {
        track->n_too_deep++;
        return true;
    }
    if (KYMO_UNLIKELY(frame->repeat != 0) && !kymo__page_add_calls(process, track, frame))
        return false;
    struct kymo__page_row *row = kymo__page_track_row(track, depth);
    if (row == NULL)
        return false;
    if (KYMO_LIKELY(process->thin.below_ns == 0))
        return kymo__page_row_put(process->page, row, start_ns, duration_ns, site);
    const struct kymo__page_event event = {.start_ns = start_ns, .value = duration_ns, .id = site};
    return kymo__page_thin_add(process, row, &event, 2);
}

/* What is on the stack will not be seen to end. */
bool kymo__page_add_unfinished(struct kymo__page_process *process,
                               const struct kymo__lane_walk *lane, bool is_lost, uint64_t last_ns)
{
    struct kymo__page_track *track = track_of(process, lane);
    for (size_t i = 1; i < lane->n_frames && i <= KYMO__PAGE_DEPTH; i++) {
        const struct kymo__frame *frame = &lane->frames[i];
        uint32_t site = frame->site;
        if (!is_shallow(process, i) || !kymo__page_take_site(process, &site))
            continue;
        if (!kymo__grow(&track->unfinished, &track->unfinished_cap, track->n_unfinished + 1,
                        sizeof *track->unfinished))
            return false;
        track->unfinished[track->n_unfinished++] = (struct kymo__page_unfinished){
            .start_ns = kymo__page_ns(process, frame->start_ns),
            .last_ns = kymo__page_ns(process, KYMO__MAX(last_ns, frame->start_ns)),
            .site = site,
            .depth = (uint32_t)i - 1,
            .is_lost = is_lost,
        };
    }
    return true;
}

/* Events are missing between the last one known and `ns`; `n` of them, 0 unknown. */
static bool add_loss(struct kymo__page_process *process, const struct kymo__lane_walk *lane,
                     uint64_t ns, uint64_t n)
{
    struct kymo__page_track *track = track_of(process, lane);
    const uint64_t begun_ns = lane->n_frames > 1 ? lane->frames[lane->n_frames - 1].start_ns : 0;
    const uint64_t first_ns = process->info->first_ns;
    const uint64_t last_ns = KYMO__MAX(KYMO__MAX(track->last_ns, begun_ns), first_ns);
    const struct kymo__page_event event = {
        .start_ns = kymo__page_ns(process, KYMO__MIN(last_ns, ns)),
        .value = ns > last_ns ? ns - last_ns : 0,
        .id = (uint32_t)KYMO__MIN(n, (uint64_t)UINT32_MAX),
    };
    return kymo__page_row_add(process->page, &track->losses, &event) &&
           kymo__page_add_unfinished(process, lane, true, last_ns);
}

static bool on_gap(void *ctx, const struct kymo__lane_walk *lane, const struct kymo_batch *batch)
{
    struct kymo__page_process *process = ctx;
    /* Without a word behind the gap it goes on to the end. */
    const uint64_t ns =
        batch->n != 0 ? kymo_batch_ns(batch, batch->words[0]) : process->info->last_ns;
    return add_loss(process, lane, ns, 0);
}

/* ---- points in time ---- */

static bool on_mark(void *ctx, const struct kymo__lane_walk *lane, uint32_t site, uint64_t ns)
{
    struct kymo__page_process *process = ctx;
    struct kymo__page_track *track = track_of(process, lane);
    struct kymo__page_event event = {.start_ns = kymo__page_ns(process, ns), .id = site};
    track->last_ns = ns;
    return !kymo__page_take_site(process, &event.id) ||
           kymo__page_row_add(process->page, &track->marks, &event);
}

static bool add_counter(struct kymo__page_process *process, const uint64_t *words, uint64_t ns)
{
    struct kymo__page_event event = {
        .start_ns = kymo__page_ns(process, ns), .value = words[2], .id = kymo_record_site(words[1])};
    if (!kymo__page_take_site(process, &event.id))
        return true;
    uint32_t *number = &process->counter_rows[event.id];
    if (*number == 0)
        *number = (uint32_t)process->counters.n_rows + 1;
    struct kymo__page_row *row = kymo__page_track_row(&process->counters, *number - 1);
    if (row == NULL)
        return false;
    row->values = KYMO__PAGE_DOUBLES;
    row->id = event.id;
    return kymo__page_row_add(process->page, row, &event);
}

/* ---- what overlaps ---- */

static bool add_async(struct kymo__page_process *process, const struct kymo__async_half *begin,
                      uint64_t duration_ns)
{
    uint32_t site = begin->name;
    if (!kymo__page_take_site(process, &site))
        return true;
    if (!kymo__grow(&process->asyncs, &process->asyncs_cap, process->n_asyncs + 1,
                    sizeof *process->asyncs))
        return false;
    process->asyncs[process->n_asyncs++] = (struct kymo__page_event){
        .start_ns = kymo__page_ns(process, begin->ns), .value = duration_ns, .id = site};
    return true;
}

static bool take_async(struct kymo__page_process *process, const struct kymo__lane_walk *lane,
                       const uint64_t *words, uint64_t ns)
{
    const struct kymo__async_half half = {
        .handle = words[2],
        .ns = ns,
        .name = kymo_record_site(words[1]),
        .lane = lane->info->lane,
        .is_begin = kymo_record_type_of(words[0]) == KYMO_RECORD_ASYNC_BEGIN,
    };
    struct kymo__async_half other;
    bool failed;
    if (!kymo__async_match(&process->pending, &half, &other, &failed))
        return !failed;
    const struct kymo__async_half *begin = half.is_begin ? &half : &other,
                                  *end = half.is_begin ? &other : &half;
    return add_async(process, begin, end->ns > begin->ns ? end->ns - begin->ns : 0);
}

static bool add_gpu_work(struct kymo__page_process *process, const struct kymo_batch *batch,
                         const uint64_t *words)
{
    struct kymo__page_track *track = &process->lanes[batch->lane->lane];
    const uint64_t ns = kymo_batch_ns(batch, words[0]);
    struct kymo__page_event event = {
        .start_ns = kymo__page_ns(process, ns),
        .value = kymo_batch_duration_ns(batch, words[2]),
        .id = kymo_record_site(words[1]),
    };
    track->last_ns = ns;
    track->last_site = event.id;
    if (!kymo__page_take_site(process, &event.id))
        return true;
    struct kymo__page_row *row = kymo__page_free_row(track, event.start_ns);
    if (row == NULL)
        return false;
    if (process->thin.below_ns == 0)
        return kymo__page_row_add(process->page, row, &event) &&
               kymo__page_add_work_details(process, track, words, ns, event.id);
    /* Short ones have no details: nearly all of them are drawn as one with others. */
    return kymo__page_thin_add(process, row, &event, kymo_record_length(words[0])) &&
           (event.value < process->thin.below_ns ||
            kymo__page_add_work_details(process, track, words, ns, event.id));
}

static bool add_gpu_record(struct kymo__page_process *process, const struct kymo_batch *batch,
                           const uint64_t *words)
{
    struct kymo__page_track *track = &process->lanes[batch->lane->lane];
    switch (kymo_record_type_of(words[0])) {
    case KYMO_RECORD_GPU:
        return add_gpu_work(process, batch, words);
    case KYMO_RECORD_ARGUMENTS:
    case KYMO_RECORD_COMMUNICATION:
        return kymo__page_add_about(process, track, words, track->last_ns, track->last_site);
    case KYMO_RECORD_FLOW:
        return kymo__page_add_flow(process, track, words, kymo_batch_ns(batch, words[0]));
    default:
        return true;
    }
}

static bool on_gpu(void *ctx, const struct kymo_batch *batch)
{
    struct kymo__page_process *process = ctx;
    for (size_t i = 0, step; i < batch->n; i += step) {
        const uint64_t word = batch->words[i];
        const bool is_record = kymo_word_kind(word) == KYMO_KIND_RECORD;
        step = is_record ? KYMO__MAX(kymo_record_length(word), 1u) : 1;
        if (is_record && !add_gpu_record(process, batch, batch->words + i))
            return false;
    }
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct kymo__page_event *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

bool kymo__page_place_asyncs(struct kymo__page_process *process)
{
    if (process->n_asyncs != 0)
        qsort(process->asyncs, process->n_asyncs, sizeof *process->asyncs, by_start);
    for (size_t i = 0; i < process->n_asyncs; i++) {
        const struct kymo__page_event *event = &process->asyncs[i];
        struct kymo__page_row *row = kymo__page_free_row(&process->async, event->start_ns);
        if (row == NULL || !kymo__page_row_add(process->page, row, event))
            return false;
    }
    return true;
}

/* Async ranges that never ended: in a row of their own each, as far as is known of them. */
bool kymo__page_add_open_asyncs(struct kymo__page_process *process)
{
    struct kymo__page_track *track = &process->async;
    for (size_t i = 0; i < process->pending.n_slots; i++) {
        const struct kymo__async_half *half = &process->pending.slots[i];
        uint32_t site = half->name;
        if (half->handle == 0 || !half->is_begin || !kymo__page_take_site(process, &site))
            continue;
        if (!kymo__grow(&track->unfinished, &track->unfinished_cap, track->n_unfinished + 1,
                        sizeof *track->unfinished))
            return false;
        track->unfinished[track->n_unfinished] = (struct kymo__page_unfinished){
            .start_ns = kymo__page_ns(process, half->ns),
            .last_ns = kymo__page_ns(process, process->info->last_ns),
            .site = site,
            .depth = (uint32_t)KYMO__MIN(track->n_rows + track->n_unfinished,
                                         (size_t)KYMO__PAGE_DEPTH - 1),
        };
        track->n_unfinished++;
    }
    return true;
}

/* Arguments and communication are about the range begun last. */
static bool add_about(struct kymo__page_process *process, const struct kymo__lane_walk *lane,
                      const uint64_t *words)
{
    if (lane->n_frames <= 1)
        return true;
    const struct kymo__frame *frame = &lane->frames[lane->n_frames - 1];
    return kymo__page_add_about(process, track_of(process, lane), words, frame->start_ns,
                                frame->site);
}

static bool on_record(void *ctx, const struct kymo__lane_walk *lane, const uint64_t *words,
                      uint64_t ns)
{
    struct kymo__page_process *process = ctx;
    struct kymo__page_track *track = track_of(process, lane);
    switch (kymo_record_type_of(words[0])) {
    case KYMO_RECORD_BEGIN:
        return kymo__page_add_payload(process, track, words, ns);
    case KYMO_RECORD_MARK:
        return on_mark(ctx, lane, kymo_record_site(words[1]), ns) &&
               kymo__page_add_payload(process, track, words, ns);
    case KYMO_RECORD_COUNTER:
        return add_counter(process, words, ns);
    case KYMO_RECORD_ASYNC_BEGIN:
    case KYMO_RECORD_ASYNC_END:
        return take_async(process, lane, words, ns);
    case KYMO_RECORD_ARGUMENTS:
    case KYMO_RECORD_COMMUNICATION:
        return add_about(process, lane, words);
    case KYMO_RECORD_LAUNCH:
        return kymo__page_add_launch(process, track, words, ns);
    case KYMO_RECORD_FLOW:
        return kymo__page_add_flow(process, track, words, ns);
    case KYMO_RECORD_GAP:
        return add_loss(process, lane, ns, words[1]);
    default:
        return true;
    }
}

const struct kymo__walk_tap kymo__page_tap = {
    .call = on_call, .mark = on_mark, .record = on_record, .gap = on_gap, .gpu = on_gpu};
