/*
 * Events of a process on their way from the summary's walk to rows of the page. A range goes to the row of its depth
 * when it ends. Within a row begins are then in order: what ends later at the same depth was on the stack above the
 * earlier one, or began after it.
 */
#include <string.h>

#include "present/page_internal.h"

/* Iterations times names whose times are kept; beyond, the series show whole iterations alone. */
enum { MAX_SERIES = 1 << 22 };

static uint64_t page_ns(const struct kymo__page_process *process, uint64_t ns)
{
    const uint64_t on_clock = ns + (uint64_t)process->shift_ns, origin = process->page->origin_ns;
    return on_clock > origin ? on_clock - origin : 0;
}

/* The site as the page knows it, 0 for unknown ones; false where the filter leaves it out. */
static inline bool take_site(struct kymo__page_process *process, uint32_t *site)
{
    *site = *site <= process->info->n_sites ? *site : 0;
    uint8_t *use = &process->uses[*site];
    if (*use == KYMO__SITE_SKIPPED)
        return false;
    *use = KYMO__SITE_USED;
    return true;
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
    struct kymo__page_event event = {
        .start_ns = page_ns(process, frame->start_ns),
        .value = end_ns > frame->start_ns ? end_ns - frame->start_ns : 0,
        .id = frame->site,
    };
    track->last_ns = end_ns;
    if (!take_site(process, &event.id))
        return true;
    if (KYMO_UNLIKELY(depth >= KYMO__PAGE_DEPTH)) {
        track->n_too_deep++;
        return true;
    }
    struct kymo__page_row *row = kymo__page_track_row(track, depth);
    return row != NULL && kymo__page_row_add(process->page, row, &event);
}

/* What is on the stack will not be seen to end. */
static bool add_unfinished(struct kymo__page_process *process, const struct kymo__lane_walk *lane,
                           bool is_lost, uint64_t last_ns)
{
    struct kymo__page_track *track = track_of(process, lane);
    for (size_t i = 1; i < lane->n_frames && i <= KYMO__PAGE_DEPTH; i++) {
        const struct kymo__frame *frame = &lane->frames[i];
        uint32_t site = frame->site;
        if (!take_site(process, &site))
            continue;
        if (!kymo__grow(&track->unfinished, &track->unfinished_cap, track->n_unfinished + 1,
                        sizeof *track->unfinished))
            return false;
        track->unfinished[track->n_unfinished++] = (struct kymo__page_unfinished){
            .start_ns = page_ns(process, frame->start_ns),
            .last_ns = page_ns(process, KYMO__MAX(last_ns, frame->start_ns)),
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
        .start_ns = page_ns(process, KYMO__MIN(last_ns, ns)),
        .value = ns > last_ns ? ns - last_ns : 0,
        .id = (uint32_t)KYMO__MIN(n, (uint64_t)UINT32_MAX),
    };
    return kymo__page_row_add(process->page, &track->losses, &event) &&
           add_unfinished(process, lane, true, last_ns);
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
    struct kymo__page_event event = {.start_ns = page_ns(process, ns), .id = site};
    track->last_ns = ns;
    return !take_site(process, &event.id) || kymo__page_row_add(process->page, &track->marks, &event);
}

static bool add_counter(struct kymo__page_process *process, const uint64_t *words, uint64_t ns)
{
    struct kymo__page_event event = {
        .start_ns = page_ns(process, ns), .value = words[2], .id = kymo_record_site(words[1])};
    if (!take_site(process, &event.id))
        return true;
    uint32_t *number = &process->counter_rows[event.id];
    if (*number == 0)
        *number = (uint32_t)process->counters.n_rows + 1;
    struct kymo__page_row *row = kymo__page_track_row(&process->counters, *number - 1);
    if (row == NULL)
        return false;
    row->has_bits = true;
    row->id = event.id;
    return kymo__page_row_add(process->page, row, &event);
}

/* ---- what overlaps ---- */

static bool add_async(struct kymo__page_process *process, const struct kymo__async_half *begin,
                      uint64_t duration_ns)
{
    uint32_t site = begin->name;
    if (!take_site(process, &site))
        return true;
    if (!kymo__grow(&process->asyncs, &process->asyncs_cap, process->n_asyncs + 1,
                    sizeof *process->asyncs))
        return false;
    process->asyncs[process->n_asyncs++] = (struct kymo__page_event){
        .start_ns = page_ns(process, begin->ns), .value = duration_ns, .id = site};
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
    struct kymo__page_event event = {
        .start_ns = page_ns(process, kymo_batch_ns(batch, words[0])),
        .value = kymo_batch_duration_ns(batch, words[2]),
        .id = kymo_record_site(words[1]),
    };
    if (!take_site(process, &event.id))
        return true;
    struct kymo__page_row *row = kymo__page_free_row(track, event.start_ns);
    return row != NULL && kymo__page_row_add(process->page, row, &event);
}

static bool on_gpu(void *ctx, const struct kymo_batch *batch)
{
    struct kymo__page_process *process = ctx;
    for (size_t i = 0, step; i < batch->n; i += step) {
        const uint64_t word = batch->words[i];
        const bool is_record = kymo_word_kind(word) == KYMO_KIND_RECORD;
        step = is_record ? KYMO__MAX(kymo_record_length(word), 1u) : 1;
        if (is_record && kymo_record_type_of(word) == KYMO_RECORD_GPU &&
            !add_gpu_work(process, batch, batch->words + i))
            return false;
    }
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct kymo__page_event *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool place_asyncs(struct kymo__page_process *process)
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
static bool add_open_asyncs(struct kymo__page_process *process)
{
    struct kymo__page_track *track = &process->async;
    for (size_t i = 0; i < process->pending.n_slots; i++) {
        const struct kymo__async_half *half = &process->pending.slots[i];
        uint32_t site = half->name;
        if (half->handle == 0 || !half->is_begin || !take_site(process, &site))
            continue;
        if (!kymo__grow(&track->unfinished, &track->unfinished_cap, track->n_unfinished + 1,
                        sizeof *track->unfinished))
            return false;
        track->unfinished[track->n_unfinished] = (struct kymo__page_unfinished){
            .start_ns = page_ns(process, half->ns),
            .last_ns = page_ns(process, process->info->last_ns),
            .site = site,
            .depth = (uint32_t)KYMO__MIN(track->n_rows + track->n_unfinished,
                                         (size_t)KYMO__PAGE_DEPTH - 1),
        };
        track->n_unfinished++;
    }
    return true;
}

static bool on_record(void *ctx, const struct kymo__lane_walk *lane, const uint64_t *words,
                      uint64_t ns)
{
    struct kymo__page_process *process = ctx;
    switch (kymo_record_type_of(words[0])) {
    case KYMO_RECORD_MARK:
        return on_mark(ctx, lane, kymo_record_site(words[1]), ns);
    case KYMO_RECORD_COUNTER:
        return add_counter(process, words, ns);
    case KYMO_RECORD_ASYNC_BEGIN:
    case KYMO_RECORD_ASYNC_END:
        return take_async(process, lane, words, ns);
    case KYMO_RECORD_GAP:
        return add_loss(process, lane, ns, words[1]);
    default:
        return true;
    }
}

/* ---- iterations, epochs, phases ---- */

static bool add_to_series(struct kymo__page_process *process, size_t row_number, uint64_t place,
                          uint64_t ns, uint32_t flags)
{
    const struct kymo__page_event event = {.start_ns = place, .value = ns, .id = flags};
    struct kymo__page_row *row = kymo__page_track_row(&process->series, row_number);
    return row != NULL && kymo__page_row_add(process->page, row, &event);
}

/* The whole iteration, then what ran in it; names are numbered as the walk does, behind the whole. */
static bool add_iteration(struct kymo__page_process *process, const struct kymo__iteration *iteration)
{
    const struct kymo__span *span = &iteration->span;
    const uint64_t place = process->n_iterations++;
    if (!add_to_series(process, 0, place, span->end_ns - span->begin_ns, span->flags))
        return false;
    process->n_series += iteration->n_ran;
    for (size_t i = 0; process->n_series < MAX_SERIES && i < iteration->n_ran; i++) {
        const uint32_t name = iteration->ran[i];
        if (!add_to_series(process, (size_t)name + 1, place, iteration->times[name].ns, span->flags))
            return false;
    }
    return true;
}

static bool on_span(void *ctx, const struct kymo__span *span, const struct kymo__iteration *iteration)
{
    struct kymo__page_process *process = ctx;
    struct kymo__page_event event = {
        .start_ns = page_ns(process, span->begin_ns),
        .value = span->end_ns - span->begin_ns,
        .id = span->kind == KYMO__SPAN_PHASE ? span->site : (uint32_t)span->number,
    };
    if (span->kind == KYMO__SPAN_PHASE && !take_site(process, &event.id))
        return kymo__iteration_stats_take(process->walk, span, iteration);
    struct kymo__page_row *row = kymo__page_track_row(&process->progress, span->kind);
    return row != NULL && kymo__page_row_add(process->page, row, &event) &&
           (iteration == NULL || add_iteration(process, iteration)) &&
           kymo__iteration_stats_take(process->walk, span, iteration);
}

/* What the rows of the series are about, while the walk's names are there. */
static bool label_series(struct kymo__page_process *process)
{
    static const char whole[] = KYMO__WHOLE_ITERATION;
    struct kymo__page_track *series = &process->series;
    if (series->n_rows == 0)
        return true;
    series->labels = kymo__calloc(series->n_rows, sizeof *series->labels);
    if (series->labels == NULL)
        return false;
    series->labels[0] = (struct kymo__name){.text = whole, .len = sizeof whole - 1};
    for (size_t i = 1; i < series->n_rows; i++)
        series->labels[i] = process->walk->names.names[i - 1];
    return true;
}

/* ---- a process ---- */

static kymo_status no_memory(const struct kymo__page_process *process)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the page's events of %s", process->info->log_path);
}

static void apply_filter(struct kymo__page_process *process, const char *filter)
{
    for (uint32_t site = 1; filter != NULL && site <= process->info->n_sites; site++) {
        const struct kymo_site_info *info =
            kymo_recording_site(process->recording, process->info->index, site);
        if (!kymo__name_matches(filter, info->name, info->name_len))
            process->uses[site] = KYMO__SITE_SKIPPED;
    }
}

static bool prepare(struct kymo__page_process *process)
{
    const size_t n_sites = (size_t)process->info->n_sites + 1, n_lanes = process->info->n_lanes;
    process->uses = kymo__calloc(n_sites, sizeof *process->uses);
    process->counter_rows = kymo__calloc(n_sites, sizeof *process->counter_rows);
    process->lanes = kymo__calloc(n_lanes + 1, sizeof *process->lanes);
    if (process->uses == NULL || process->counter_rows == NULL || process->lanes == NULL)
        return false;
    for (size_t i = 0; i < n_lanes; i++) {
        struct kymo__page_track *track = &process->lanes[i];
        track->lane = kymo_recording_lane(process->recording, process->info->index, (uint32_t)i);
        track->kind = track->lane->kind == KYMO_LANE_GPU ? KYMO__TRACK_GPU : KYMO__TRACK_THREAD;
    }
    process->async.kind = KYMO__TRACK_ASYNC;
    process->counters.kind = KYMO__TRACK_COUNTERS;
    process->progress.kind = KYMO__TRACK_PROGRESS;
    process->series.kind = KYMO__TRACK_SERIES;
    return true;
}

kymo_status kymo__page_begin_process(void *ctx, struct kymo__process_walk *walk, size_t number)
{
    static const struct kymo__walk_tap tap = {
        .call = on_call, .mark = on_mark, .record = on_record, .gap = on_gap, .gpu = on_gpu};
    struct kymo__page *page = ctx;
    struct kymo__page_process *process = &page->processes[number];
    *process = (struct kymo__page_process){
        .page = page,
        .recording = walk->recording,
        .info = walk->info,
        .walk = walk,
        .shift_ns = page->is_wall_clock ? walk->info->mono_to_unix_ns : 0,
    };
    if (!prepare(process))
        return no_memory(process);
    apply_filter(process, page->options->summary.filter);
    walk->tap = &tap;
    walk->tap_ctx = process;
    walk->iterations.visitor = on_span;
    walk->iterations.visitor_ctx = process;
    return KYMO_OK;
}

kymo_status kymo__page_end_process(void *ctx, struct kymo__process_walk *walk, size_t number)
{
    struct kymo__page *page = ctx;
    struct kymo__page_process *process = &page->processes[number];
    bool ok = place_asyncs(process) && add_open_asyncs(process) && label_series(process);
    for (size_t i = 0; ok && i < walk->info->n_lanes; i++)
        if (walk->lanes[i] != NULL)
            ok = add_unfinished(process, walk->lanes[i], false, walk->info->last_ns);
    for (size_t i = 0; i < walk->info->n_lanes; i++)
        kymo__page_track_finish(page, &process->lanes[i]);
    kymo__page_track_finish(page, &process->async);
    kymo__page_track_finish(page, &process->counters);
    kymo__page_track_finish(page, &process->progress);
    kymo__page_track_finish(page, &process->series);
    process->walk = NULL;
    return ok ? KYMO_OK : no_memory(process);
}

void kymo__page_process_fini(struct kymo__page_process *process)
{
    for (size_t i = 0; process->lanes != NULL && i < process->info->n_lanes; i++)
        kymo__page_track_fini(&process->lanes[i]);
    kymo__page_track_fini(&process->async);
    kymo__page_track_fini(&process->counters);
    kymo__page_track_fini(&process->progress);
    kymo__page_track_fini(&process->series);
    kymo__async_match_fini(&process->pending);
    kymo__free(process->lanes);
    kymo__free(process->asyncs);
    kymo__free(process->counter_rows);
    kymo__free(process->uses);
}
