/* Rows of the tables of ranges, threads, processes, counters and marks; summary_report.c has the columns. */
#include <string.h>

#include "analyze/summary/internal.h"

/* ---- cells ---- */

bool marey__is_wanted(const struct marey__table_context *m, uint32_t name)
{
    const struct marey__name *n = &m->merge->names.names[name];
    return marey__name_matches(m->filter, n->text, n->len);
}

bool marey__is_range_wanted(const struct marey__table_context *m, uint32_t name)
{
    return (m->shallow == NULL || m->shallow[name]) && marey__is_wanted(m, name);
}

static uint64_t duration_of(const struct marey_process *process)
{
    return process->last_ns > process->first_ns ? process->last_ns - process->first_ns : 0;
}

/* ---- ranges and async ranges ---- */

static void put_stats(marey_table *table, const struct marey__table_context *m, uint32_t name,
                      const struct marey__name_stats *stats, bool is_async)
{
    const struct marey__sketch *calls = &stats->calls;
    MAREY__PUT_ROW(table, NAMED(m, name), U64(calls->count), U64(stats->total_ns),
                   U64(stats->self_ns), U64((calls->sum + calls->count / 2) / calls->count),
                   U64(calls->min), U64(marey__sketch_quantile(calls, 0.5)),
                   U64(marey__sketch_quantile(calls, 0.9)), U64(marey__sketch_quantile(calls, 0.99)),
                   U64(calls->max), RATIO(stats->total_ns, m->cost->program_ns));
    /* An async range may begin on one thread and end on another. */
    MAREY__PUT_ROW(table, KNOWN(!is_async, U64(stats->n_threads)), U64(stats->n_processes));
}

static void fill_stats(marey_table *table, const struct marey__table_context *m,
                       const struct marey__name_stats *stats, size_t n, bool is_async)
{
    for (uint32_t name = 0; name < n; name++)
        if (stats[name].calls.count != 0 &&
            (is_async ? marey__is_wanted(m, name) : marey__is_range_wanted(m, name)))
            put_stats(table, m, name, &stats[name], is_async);
    MAREY__SORT_BY(table, "-total_ns", "name");
}

void marey__fill_ranges(marey_table *table, const struct marey__table_context *m)
{
    fill_stats(table, m, m->merge->ranges, m->merge->n_ranges, false);
}

void marey__fill_async(marey_table *table, const struct marey__table_context *m)
{
    fill_stats(table, m, m->merge->async, m->merge->n_async, true);
}

/* ---- threads, ranks, open ranges ---- */

void marey__fill_threads(marey_table *table, const struct marey__table_context *m)
{
    for (size_t i = 0; i < m->merge->threads.n; i++) {
        const struct marey__name_row *row = &m->merge->threads.rows[i];
        const struct marey_process *process = m->merge->processes[row->process];
        if (!marey__is_range_wanted(m, row->name))
            continue;
        MAREY__PUT_ROW(table, PROCESS_OF(process), I64(row->lane->tid), STRING(row->lane->name),
                       NAMED(m, row->name), U64(row->count), U64(row->total_ns), U64(row->self_ns),
                       RATIO(row->total_ns, duration_of(process)));
    }
}

void marey__fill_ranks(marey_table *table, const struct marey__table_context *m)
{
    struct marey__name_row row;
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const uint8_t *at = marey__rank_rows_of(m->merge, i);
        while (marey__rank_row_next(m->merge, &at, &row)) {
            if (!marey__is_range_wanted(m, row.name))
                continue;
            MAREY__PUT_ROW(table, PROCESS_OF(m->merge->processes[i]), NAMED(m, row.name),
                           U64(row.count), U64(row.total_ns), U64(row.self_ns));
        }
    }
}

void marey__fill_open(marey_table *table, const struct marey__table_context *m)
{
    for (size_t i = 0; i < m->merge->n_open; i++) {
        const struct marey__open_row *row = &m->merge->open[i];
        const struct marey_process *process = m->merge->processes[row->process];
        MAREY__PUT_ROW(table, PROCESS_OF(process), STRING(row->lane->name), NAMED(m, row->name),
                       U64(row->since_ns));
    }
}

/* ---- processes ---- */

void marey__fill_processes(marey_table *table, const struct marey__table_context *m)
{
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const struct marey_process *process = m->merge->processes[i];
        MAREY__PUT_ROW(table, PROCESS_OF(process), STRING(process->host), STRING(process->command),
                       U64(process->start_unix_ns), U64(duration_of(process)),
                       U64(process->n_events), U64(process->lost_events),
                       F64(process->event_cost_ns), U64(process->flush_cpu_ns),
                       U64(process->log_bytes), STRING(process->clock), STRING(process->end),
                       STRING(process->devices), STRING(process->energy_sources),
                       U64(process->energy_cpu_ns), RANK_OF(process->worker));
    }
}

/* ---- workers of data loaders ---- */

/* A worker's busy time is the sum of self times, which count no time twice. */
static void put_work(marey_table *table, const struct marey__table_context *m, size_t number)
{
    const struct marey_process *process = m->merge->processes[number];
    uint64_t n_batches = 0, busy_ns = 0;
    const uint8_t *at = marey__rank_rows_of(m->merge, number);
    for (struct marey__name_row row; marey__rank_row_next(m->merge, &at, &row);) {
        const struct marey__name *name = &m->merge->names.names[row.name];
        busy_ns += row.self_ns;
        n_batches += marey__text_is(name->text, name->len, MAREY_FETCH) ? row.count : 0;
    }
    MAREY__PUT_ROW(table, U64(n_batches), U64(busy_ns), U64(duration_of(process)),
                   RATIO(busy_ns, duration_of(process)));
}

void marey__fill_workers(marey_table *table, const struct marey__table_context *m)
{
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const struct marey_process *process = m->merge->processes[i];
        if (process->worker < 0)
            continue;
        MAREY__PUT_ROW(table, RANK_OF(process->rank), RANK_OF(process->worker), I64(process->pid));
        put_work(table, m, i);
    }
    MAREY__SORT_BY(table, "rank", "worker");
}

/* ---- counters and marks ---- */

void marey__fill_counters(marey_table *table, const struct marey__table_context *m)
{
    for (uint32_t name = 0; name < m->merge->n_counters; name++) {
        const struct marey__counter *counter = &m->merge->counters[name];
        if (counter->count == 0 || !marey__is_wanted(m, name))
            continue;
        MAREY__PUT_ROW(table, NAMED(m, name), U64(counter->count), F64(counter->min),
                       F64(counter->sum / (double)counter->count), F64(counter->max),
                       F64(counter->last));
    }
    MAREY__SORT_BY(table, "name");
}

void marey__fill_marks(marey_table *table, const struct marey__table_context *m)
{
    for (uint32_t name = 0; name < m->merge->n_marks; name++) {
        if (m->merge->marks[name] == 0 || !marey__is_wanted(m, name))
            continue;
        MAREY__PUT_ROW(table, NAMED(m, name), U64(m->merge->marks[name]));
    }
    MAREY__SORT_BY(table, "-count", "name");
}
