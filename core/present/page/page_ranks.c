/*
 * A page of many ranks. Their events would make it larger than a browser opens, so all are read for the tables and the
 * heat map, and then some once more for the timeline: the slowest, the fastest, one in the middle, the first, and those
 * that had the longest single iterations.
 */
#include <string.h>

#include "present/page/internal.h"

enum { N_SLOWEST = 8, N_FASTEST = 2, N_LONGEST = 4 };

/* ---- all of them: tables and heat map ---- */

static bool on_span(void *ctx, const struct marey__span *span,
                    const struct marey__iteration *iteration)
{
    struct marey__page_process *process = ctx;
    return marey__iteration_stats_take(process->walk, span, iteration) &&
           (iteration == NULL || process->line == NULL ||
            marey__heat_line_take(process->line, iteration));
}

marey_status marey__page_begin_rank(void *ctx, struct marey__process_walk *walk, size_t number)
{
    struct marey__page *page = ctx;
    struct marey__page_process *process = &page->processes[number];
    marey__page_name_process(page, process, walk);
    MAREY__TRY_MEMORY(marey__heat_line_begin(page->heat, walk, number, &process->line));
    walk->iterations.visitor = on_span;
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

/* ---- some of them: the timeline ---- */

/* The process that a row of a table is about; UINT32_MAX: none, as of a worker. */
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

/* Those with the longest iterations, against what is usual on their rank. */
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
