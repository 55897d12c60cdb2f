/* Rows of the tables of ranges, threads, processes, counters and marks; summary_report.c has the columns. */
#include <string.h>

#include "analyze/summary/internal.h"

/* ---- cells ---- */

void marey__put_name(marey_table *table, const struct marey__making *m, uint32_t name)
{
    marey_table_text(table, m->merge->names.names[name].text, m->merge->names.names[name].len);
}

bool marey__is_wanted(const struct marey__making *m, uint32_t name)
{
    const struct marey__name *n = &m->merge->names.names[name];
    return marey__name_matches(m->filter, n->text, n->len);
}

bool marey__is_range_wanted(const struct marey__making *m, uint32_t name)
{
    return (m->shallow == NULL || m->shallow[name]) && marey__is_wanted(m, name);
}

static uint64_t duration_of(const struct marey_process *process)
{
    return process->last_ns > process->first_ns ? process->last_ns - process->first_ns : 0;
}

/* ---- ranges and async ranges ---- */

static void put_stats(marey_table *table, const struct marey__making *m, uint32_t name,
                      const struct marey__name_stats *stats, bool is_async)
{
    const struct marey__sketch *calls = &stats->calls;
    marey__put_name(table, m, name);
    marey_table_u64(table, calls->count);
    marey_table_u64(table, stats->total_ns);
    marey_table_u64(table, stats->self_ns);
    marey_table_u64(table, (calls->sum + calls->count / 2) / calls->count);
    marey_table_u64(table, calls->min);
    marey_table_u64(table, marey__sketch_quantile(calls, 0.5));
    marey_table_u64(table, marey__sketch_quantile(calls, 0.9));
    marey_table_u64(table, marey__sketch_quantile(calls, 0.99));
    marey_table_u64(table, calls->max);
    marey__put_share(table, stats->total_ns, m->cost->program_ns);
    if (is_async) /* it may begin on one thread and end on another */
        marey_table_null(table);
    else
        marey_table_u64(table, stats->n_threads);
    marey_table_u64(table, stats->n_processes);
}

static void fill_stats(marey_table *table, const struct marey__making *m,
                       const struct marey__name_stats *stats, size_t n, bool is_async)
{
    for (uint32_t name = 0; name < n; name++)
        if (stats[name].calls.count != 0 &&
            (is_async ? marey__is_wanted(m, name) : marey__is_range_wanted(m, name)))
            put_stats(table, m, name, &stats[name], is_async);
    marey__sort_by(table, "name", 0);
    marey__sort_by(table, "total_ns", 1);
}

marey_status marey__fill_ranges(marey_table *table, const struct marey__making *m)
{
    fill_stats(table, m, m->merge->ranges, m->merge->n_ranges, false);
    return MAREY_OK;
}

marey_status marey__fill_async(marey_table *table, const struct marey__making *m)
{
    fill_stats(table, m, m->merge->async, m->merge->n_async, true);
    return MAREY_OK;
}

/* ---- threads, ranks, open ranges ---- */

marey_status marey__fill_threads(marey_table *table, const struct marey__making *m)
{
    for (size_t i = 0; i < m->merge->threads.n; i++) {
        const struct marey__name_row *row = &m->merge->threads.rows[i];
        const struct marey_process *process = m->merge->processes[row->process];
        if (!marey__is_range_wanted(m, row->name))
            continue;
        marey__put_process(table, process);
        marey_table_i64(table, row->lane->tid);
        marey__put_string(table, row->lane->name);
        marey__put_name(table, m, row->name);
        marey_table_u64(table, row->count);
        marey_table_u64(table, row->total_ns);
        marey_table_u64(table, row->self_ns);
        marey__put_share(table, row->total_ns, duration_of(process));
    }
    return MAREY_OK;
}

marey_status marey__fill_ranks(marey_table *table, const struct marey__making *m)
{
    struct marey__name_row row;
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const uint8_t *at = marey__rank_rows_of(m->merge, i);
        while (marey__rank_row_next(m->merge, &at, &row)) {
            if (!marey__is_range_wanted(m, row.name))
                continue;
            marey__put_process(table, m->merge->processes[i]);
            marey__put_name(table, m, row.name);
            marey_table_u64(table, row.count);
            marey_table_u64(table, row.total_ns);
            marey_table_u64(table, row.self_ns);
        }
    }
    return MAREY_OK;
}

marey_status marey__fill_open(marey_table *table, const struct marey__making *m)
{
    for (size_t i = 0; i < m->merge->n_open; i++) {
        const struct marey__open_row *row = &m->merge->open[i];
        const struct marey_process *process = m->merge->processes[row->process];
        marey__put_process(table, process);
        marey__put_string(table, row->lane->name);
        marey__put_name(table, m, row->name);
        marey_table_u64(table, row->since_ns);
    }
    return MAREY_OK;
}

/* ---- processes ---- */

marey_status marey__fill_processes(marey_table *table, const struct marey__making *m)
{
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const struct marey_process *process = m->merge->processes[i];
        marey__put_process(table, process);
        marey__put_string(table, process->host);
        marey__put_string(table, process->command);
        marey_table_u64(table, process->start_unix_ns);
        marey_table_u64(table, duration_of(process));
        marey_table_u64(table, process->n_events);
        marey_table_u64(table, process->lost_events);
        marey_table_f64(table, process->event_cost_ns);
        marey_table_u64(table, process->flush_cpu_ns);
        marey_table_u64(table, process->log_bytes);
        marey__put_string(table, process->clock);
        marey__put_string(table, process->end);
        marey__put_string(table, process->devices);
        marey__put_string(table, process->energy_sources);
        marey_table_u64(table, process->energy_cpu_ns);
        marey__put_rank(table, process->worker);
    }
    return MAREY_OK;
}

/* ---- workers of data loaders ---- */

/* What is in no other range of the process is in none twice: self times add up to the time in ranges. */
static void put_work(marey_table *table, const struct marey__making *m, size_t number)
{
    const struct marey_process *process = m->merge->processes[number];
    uint64_t n_batches = 0, busy_ns = 0;
    const uint8_t *at = marey__rank_rows_of(m->merge, number);
    for (struct marey__name_row row; marey__rank_row_next(m->merge, &at, &row);) {
        const struct marey__name *name = &m->merge->names.names[row.name];
        busy_ns += row.self_ns;
        n_batches += marey__text_is(name->text, name->len, MAREY_FETCH) ? row.count : 0;
    }
    marey_table_u64(table, n_batches);
    marey_table_u64(table, busy_ns);
    marey_table_u64(table, duration_of(process));
    marey__put_share(table, busy_ns, duration_of(process));
}

marey_status marey__fill_workers(marey_table *table, const struct marey__making *m)
{
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const struct marey_process *process = m->merge->processes[i];
        if (process->worker < 0)
            continue;
        marey__put_rank(table, process->rank);
        marey__put_rank(table, process->worker);
        marey_table_i64(table, process->pid);
        put_work(table, m, i);
    }
    marey__sort_by(table, "worker", 0);
    marey__sort_by(table, "rank", 0);
    return MAREY_OK;
}

/* ---- counters and marks ---- */

marey_status marey__fill_counters(marey_table *table, const struct marey__making *m)
{
    for (uint32_t name = 0; name < m->merge->n_counters; name++) {
        const struct marey__counter *counter = &m->merge->counters[name];
        if (counter->count == 0 || !marey__is_wanted(m, name))
            continue;
        marey__put_name(table, m, name);
        marey_table_u64(table, counter->count);
        marey_table_f64(table, counter->min);
        marey_table_f64(table, counter->sum / (double)counter->count);
        marey_table_f64(table, counter->max);
        marey_table_f64(table, counter->last);
    }
    marey__sort_by(table, "name", 0);
    return MAREY_OK;
}

marey_status marey__fill_marks(marey_table *table, const struct marey__making *m)
{
    for (uint32_t name = 0; name < m->merge->n_marks; name++) {
        if (m->merge->marks[name] == 0 || !marey__is_wanted(m, name))
            continue;
        marey__put_name(table, m, name);
        marey_table_u64(table, m->merge->marks[name]);
    }
    marey__sort_by(table, "name", 0);
    marey__sort_by(table, "count", 1);
    return MAREY_OK;
}
