/* A process of the page, from its first event to its end: callbacks, iterations, and data known only at the end. */
#include "present/page/internal.h"

/* Limit on iterations times names; beyond, the series show only whole iterations. */
enum { MAX_SERIES = 1 << 22 };

/* ---- iterations, epochs, phases ---- */

static bool add_to_series(struct marey__page_process *process, size_t row_number, uint64_t place,
                          uint64_t ns, uint32_t flags)
{
    const struct marey__page_event event = {.start_ns = place, .value = ns, .id = flags};
    struct marey__page_row *row = marey__page_track_row(&process->series, row_number);
    return row != NULL && marey__page_row_add(process->page, row, &event);
}

/* The whole iteration, followed by its names, numbered as in the walk plus one. */
static bool add_iteration(struct marey__page_process *process,
                          const struct marey__iteration *iteration)
{
    const struct marey__span *span = &iteration->span;
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

/* For tables and the heat map. */
static bool take_stats(void *ctx, const struct marey__span *span,
                       const struct marey__iteration *iteration)
{
    struct marey__page_process *process = ctx;
    return marey__iteration_stats_take(process->walk, span, iteration) &&
           (iteration == NULL || process->line == NULL ||
            marey__heat_line_take(process->line, iteration));
}

static bool on_span(void *ctx, const struct marey__span *span,
                    const struct marey__iteration *iteration)
{
    struct marey__page_process *process = ctx;
    struct marey__page_event event = {
        .start_ns = marey__page_ns(process, span->begin_ns),
        .value = span->end_ns - span->begin_ns,
        .id = span->kind == MAREY__SPAN_PHASE ? span->site : (uint32_t)span->number,
    };
    if (span->kind == MAREY__SPAN_PHASE && !marey__page_take_site(process, &event.id))
        return take_stats(process, span, iteration);
    struct marey__page_row *row = marey__page_track_row(&process->progress, span->kind);
    return row != NULL && marey__page_row_add(process->page, row, &event) &&
           (iteration == NULL || add_iteration(process, iteration)) &&
           take_stats(process, span, iteration);
}

/* Label the rows of the series, while the walk's names exist. */
static bool label_series(struct marey__page_process *process)
{
    static const char whole[] = MAREY__WHOLE_ITERATION;
    struct marey__page_track *series = &process->series;
    if (series->n_rows == 0)
        return true;
    series->labels = marey__calloc(series->n_rows, sizeof *series->labels);
    if (series->labels == NULL)
        return false;
    series->labels[0] = (struct marey__name){.text = whole, .len = sizeof whole - 1};
    for (size_t i = 1; i < series->n_rows; i++)
        series->labels[i] = process->walk->names.names[i - 1];
    return true;
}

/* ---- a process ---- */

static void apply_filter(struct marey__page_process *process, const char *filter)
{
    for (uint32_t site = 1; filter != NULL && site <= process->info->n_sites; site++) {
        const struct marey_site_info *info =
            marey_recording_site(process->recording, process->info->index, site);
        if (!marey__name_matches(filter, info->name, info->name_len))
            process->uses[site] = MAREY__SITE_SKIPPED;
    }
}

static bool prepare(struct marey__page_process *process)
{
    const size_t n_sites = (size_t)process->info->n_sites + 1, n_lanes = process->info->n_lanes;
    process->uses = marey__calloc(n_sites, sizeof *process->uses);
    process->counter_rows = marey__calloc(n_sites, sizeof *process->counter_rows);
    process->lanes = marey__calloc(n_lanes + 1, sizeof *process->lanes);
    if (process->uses == NULL || process->counter_rows == NULL || process->lanes == NULL)
        return false;
    for (size_t i = 0; i < n_lanes; i++) {
        struct marey__page_track *track = &process->lanes[i];
        track->lane = marey_recording_lane(process->recording, process->info->index, (uint32_t)i);
        track->kind = track->lane->kind == MAREY_LANE_GPU ? MAREY__TRACK_GPU : MAREY__TRACK_THREAD;
        track->texts.values = track->links.values = track->flows.values = MAREY__PAGE_NUMBERS;
    }
    process->async.kind = MAREY__TRACK_ASYNC;
    process->counters.kind = MAREY__TRACK_COUNTERS;
    process->progress.kind = MAREY__TRACK_PROGRESS;
    process->series.kind = MAREY__TRACK_SERIES;
    return true;
}

static void name_process(struct marey__page *page, struct marey__page_process *process,
                         struct marey__process_walk *walk)
{
    *process = (struct marey__page_process){
        .page = page,
        .recording = walk->recording,
        .info = walk->info,
        .walk = walk,
        .offset_ns =
            (page->is_wall_clock ? (uint64_t)walk->info->mono_to_unix_ns : 0) - page->origin_ns,
    };
}

marey_status marey__page_begin_process(void *ctx, struct marey__process_walk *walk, size_t number)
{
    struct marey__page *page = ctx;
    struct marey__page_process *process = &page->processes[number];
    name_process(page, process, walk);
    MAREY__TRY_MEMORY(prepare(process));
    /* With many ranks, lines were made during the first walk. */
    if (!page->has_many && !marey__heat_line_begin(page->heat, walk, number, &process->line))
        return marey__no_memory();
    apply_filter(process, page->wants.filter);
    marey__page_thin_init(process);
    walk->tap = &marey__page_tap;
    walk->tap_ctx = process;
    walk->iterations.visitor = on_span;
    walk->iterations.visitor_ctx = process;
    return MAREY_OK;
}

marey_status marey__page_end_process(void *ctx, struct marey__process_walk *walk, size_t number)
{
    struct marey__page *page = ctx;
    struct marey__page_process *process = &page->processes[number];
    bool ok = marey__page_place_asyncs(process) && marey__page_add_open_asyncs(process) &&
              label_series(process);
    for (size_t i = 0; ok && i < walk->info->n_lanes; i++)
        if (walk->lanes[i] != NULL)
            ok = marey__page_end_lane(process, walk->lanes[i]);
    for (size_t i = 0; ok && i < walk->info->n_lanes; i++)
        for (size_t k = 0; ok && k < process->lanes[i].n_rows; k++)
            ok = marey__page_thin_flush(process, &process->lanes[i].rows[k]);
    for (size_t i = 0; i < walk->info->n_lanes; i++)
        marey__page_track_finish(page, &process->lanes[i]);
    marey__page_track_finish(page, &process->async);
    marey__page_track_finish(page, &process->counters);
    marey__page_track_finish(page, &process->progress);
    marey__page_track_finish(page, &process->series);
    MAREY__TRY_MEMORY(ok);
    return marey__page_end_rank(ctx, walk, number);
}

void marey__page_process_fini(struct marey__page_process *process)
{
    for (size_t i = 0; process->lanes != NULL && i < process->info->n_lanes; i++)
        marey__page_track_fini(&process->lanes[i]);
    marey__page_track_fini(&process->async);
    marey__page_track_fini(&process->counters);
    marey__page_track_fini(&process->progress);
    marey__page_track_fini(&process->series);
    marey__async_match_fini(&process->pending);
    marey__buf_fini(&process->texts);
    marey__free(process->shared_texts);
    marey__names_fini(&process->shared);
    marey__arena_fini(&process->shared_keys);
    MAREY__FREE_ALL(process->lanes, process->asyncs, process->counter_rows, process->uses);
    marey__heat_line_destroy(process->line);
}

/*
 * ---- a page of many ranks ----
 * All their events would be too large for a browser, so all are read for the tables and the
 * heat map, and then some again for the timeline: the slowest, the fastest, a median one, the first, and those
 * with the longest single iterations.
 */

enum { N_SLOWEST = 8, N_FASTEST = 2, N_LONGEST = 4 };

marey_status marey__page_begin_rank(void *ctx, struct marey__process_walk *walk, size_t number)
{
    struct marey__page *page = ctx;
    struct marey__page_process *process = &page->processes[number];
    name_process(page, process, walk);
    MAREY__TRY_MEMORY(marey__heat_line_begin(page->heat, walk, number, &process->line));
    walk->iterations.visitor = take_stats;
    walk->iterations.visitor_ctx = process;
    return MAREY_OK;
}

marey_status marey__page_end_rank(void *ctx, struct marey__process_walk *walk, size_t number)
{
    struct marey__page_process *process = &((struct marey__page *)ctx)->processes[number];
    (void)walk;
    const bool done = process->line == NULL || marey__heat_line_end(process->line);
    marey__heat_line_destroy(process->line);
    process->line = NULL;
    process->walk = NULL;
    return done ? MAREY_OK : marey__no_memory();
}

/* The process of a table row; UINT32_MAX: none, as for a worker. */
static uint32_t find_process(const struct marey__page *page, const marey_table *table, size_t row)
{
    const struct marey_cell rank = marey__cell_of(table, row, "rank"),
                            pid = marey__cell_of(table, row, "pid");
    const int host = marey_table_find(table, "host");
    for (uint32_t i = 0; i < page->n_of_program; i++) {
        const struct marey_process *info = page->processes[i].info;
        if (info->pid == pid.as.i64 && (rank.is_null ? info->rank < 0 : info->rank == rank.as.i64) &&
            (host < 0 || strcmp(marey_table_cell(table, row, (size_t)host).as.text, info->host) == 0))
            return i;
    }
    return UINT32_MAX;
}

static void choose(struct marey__page *page, uint32_t process)
{
    for (size_t i = 0; i < page->n_chosen; i++)
        if (page->chosen[i] == process)
            return;
    if (process != UINT32_MAX && page->n_chosen < MAREY__PAGE_CHOSEN)
        page->chosen[page->n_chosen++] = process;
}

/* Those with the longest iterations relative to their rank's typical time. */
static void choose_longest(struct marey__page *page)
{
    const marey_table *outliers = page->summary->tables[MAREY__TABLE_OUTLIERS];
    uint64_t below = UINT64_MAX;
    for (size_t k = 0; k < N_LONGEST; k++) {
        uint64_t most = 0;
        size_t found = 0;
        for (size_t row = 0; row < marey_table_n_rows(outliers); row++) {
            const uint64_t extra = marey__cell_of(outliers, row, "extra_ns").as.u64;
            if (extra > most && extra < below) {
                most = extra;
                found = row;
            }
        }
        if (most == 0)
            return;
        choose(page, find_process(page, outliers, found));
        below = most;
    }
}

void marey__page_choose_ranks(struct marey__page *page)
{
    const marey_table *times = page->summary->tables[MAREY__TABLE_RANK_TIMES];
    const size_t n = marey_table_n_rows(times);
    for (size_t i = 0; i < N_SLOWEST && i < n; i++)
        choose(page, find_process(page, times, i));
    for (size_t i = 0; i < N_FASTEST && i < n; i++)
        choose(page, find_process(page, times, n - 1 - i));
    if (n != 0)
        choose(page, find_process(page, times, n / 2));
    choose(page, 0);
    choose_longest(page);
}

bool marey__page_is_chosen(const struct marey__page *page, size_t process)
{
    bool is_chosen = !page->has_many || process >= page->n_of_program;
    for (size_t i = 0; i < page->n_chosen; i++)
        is_chosen |= page->chosen[i] == process;
    return is_chosen;
}
