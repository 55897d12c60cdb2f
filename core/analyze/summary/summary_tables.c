/*
 * The summary's tables, from what was merged. Each has its columns beside the function that fills
 * it.
 */
#include <string.h>

#include "analyze/summary/internal.h"

/* ---- cells ---- */

void marey__put_name(marey_table *table, const struct marey__making *m, uint32_t name)
{
    marey_table_text(table, m->merge->names.names[name].text, m->merge->names.names[name].len);
}

static void put_rank(marey_table *table, const struct marey_process *process)
{
    if (process->rank < 0)
        marey_table_null(table);
    else
        marey_table_i64(table, process->rank);
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

static const struct marey_column range_columns[] = {
    MAREY__NAME_COLUMN,
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("total_ns", "total"),
    MAREY__NS_COLUMN("self_ns", "self"),
    MAREY__NS_COLUMN("mean_ns", "mean"),
    MAREY__NS_COLUMN("min_ns", "min"),
    MAREY__NS_COLUMN("p50_ns", "median"),
    MAREY__NS_COLUMN("p90_ns", "p90"),
    MAREY__NS_COLUMN("p99_ns", "p99"),
    MAREY__NS_COLUMN("max_ns", "max"),
    MAREY__SHARE_COLUMN("of run"),
    {"threads", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    {"processes", "procs", MAREY_TYPE_U64, MAREY_UNIT_COUNT},
};

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

static marey_status fill_ranges(marey_table *table, const struct marey__making *m)
{
    fill_stats(table, m, m->merge->ranges, m->merge->n_ranges, false);
    return MAREY_OK;
}

static marey_status fill_async(marey_table *table, const struct marey__making *m)
{
    fill_stats(table, m, m->merge->async, m->merge->n_async, true);
    return MAREY_OK;
}

/* ---- threads, ranks, open ranges ---- */

static const struct marey_column thread_columns[] = {
    MAREY__RANK_COLUMN,
    MAREY__PID_COLUMN,
    {"tid", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE},
    {"thread", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__NAME_COLUMN,
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("total_ns", "total"),
    MAREY__NS_COLUMN("self_ns", "self"),
    MAREY__SHARE_COLUMN("of process"),
};

static marey_status fill_threads(marey_table *table, const struct marey__making *m)
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

static const struct marey_column rank_columns[] = {
    MAREY__RANK_COLUMN,
    MAREY__PID_COLUMN,
    MAREY__NAME_COLUMN,
    MAREY__COUNT_COLUMN,
    MAREY__NS_COLUMN("total_ns", "total"),
    MAREY__NS_COLUMN("self_ns", "self"),
};

static marey_status fill_ranks(marey_table *table, const struct marey__making *m)
{
    for (size_t i = 0; i < m->merge->ranks.n; i++) {
        const struct marey__name_row *row = &m->merge->ranks.rows[i];
        const struct marey_process *process = m->merge->processes[row->process];
        if (!marey__is_range_wanted(m, row->name))
            continue;
        marey__put_process(table, process);
        marey__put_name(table, m, row->name);
        marey_table_u64(table, row->count);
        marey_table_u64(table, row->total_ns);
        marey_table_u64(table, row->self_ns);
    }
    return MAREY_OK;
}

static const struct marey_column open_columns[] = {
    MAREY__RANK_COLUMN,
    MAREY__PID_COLUMN,
    {"thread", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__NAME_COLUMN,
    MAREY__NS_COLUMN("since_ns", "since"),
};

static marey_status fill_open(marey_table *table, const struct marey__making *m)
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

#define WORKER_COLUMN                                                                              \
    {                                                                                              \
        "worker", NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE                                            \
    }

static const struct marey_column process_columns[] = {
    MAREY__RANK_COLUMN,
    MAREY__PID_COLUMN,
    {"host", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"command", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"start_unix_ns", "start", MAREY_TYPE_U64, MAREY_UNIT_UNIX_NS},
    MAREY__NS_COLUMN("duration_ns", "duration"),
    {"events", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    {"lost_events", "lost", MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    {"event_cost_ns", "per event", MAREY_TYPE_F64, MAREY_UNIT_NS},
    MAREY__NS_COLUMN("flush_cpu_ns", "flush"),
    {"log_bytes", "log", MAREY_TYPE_U64, MAREY_UNIT_BYTES},
    {"clock", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"end", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"devices", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"energy_sources", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    MAREY__NS_COLUMN("energy_cpu_ns", "energy"),
    WORKER_COLUMN,
};

static void put_worker(marey_table *table, const struct marey_process *process)
{
    if (process->worker < 0)
        marey_table_null(table);
    else
        marey_table_i64(table, process->worker);
}

static marey_status fill_processes(marey_table *table, const struct marey__making *m)
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
        put_worker(table, process);
    }
    return MAREY_OK;
}

/* ---- workers of data loaders ---- */

static const struct marey_column worker_columns[] = {
    MAREY__RANK_COLUMN,
    WORKER_COLUMN,
    MAREY__PID_COLUMN,
    {"batches", NULL, MAREY_TYPE_U64, MAREY_UNIT_COUNT},
    MAREY__NS_COLUMN("busy_ns", "busy"),
    MAREY__NS_COLUMN("duration_ns", "duration"),
    MAREY__SHARE_COLUMN("busy"),
};

/* The first row of a process, or of the next one that has any: rows come in the order of processes. */
static size_t first_row_of(const struct marey__merge *merge, size_t process)
{
    size_t low = 0, high = merge->ranks.n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (merge->ranks.rows[middle].process < process)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What is in no other range of the process is in none twice: self times add up to the time in ranges. */
static void put_work(marey_table *table, const struct marey__making *m, size_t number)
{
    const struct marey_process *process = m->merge->processes[number];
    uint64_t n_batches = 0, busy_ns = 0;
    for (size_t i = first_row_of(m->merge, number); i < m->merge->ranks.n; i++) {
        const struct marey__name_row *row = &m->merge->ranks.rows[i];
        const struct marey__name *name = &m->merge->names.names[row->name];
        if (row->process != number)
            break;
        busy_ns += row->self_ns;
        if (name->len == strlen(MAREY_FETCH) && memcmp(name->text, MAREY_FETCH, name->len) == 0)
            n_batches += row->count;
    }
    marey_table_u64(table, n_batches);
    marey_table_u64(table, busy_ns);
    marey_table_u64(table, duration_of(process));
    marey__put_share(table, busy_ns, duration_of(process));
}

static marey_status fill_workers(marey_table *table, const struct marey__making *m)
{
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const struct marey_process *process = m->merge->processes[i];
        if (process->worker < 0)
            continue;
        put_rank(table, process);
        put_worker(table, process);
        marey_table_i64(table, process->pid);
        put_work(table, m, i);
    }
    marey__sort_by(table, "worker", 0);
    marey__sort_by(table, "rank", 0);
    return MAREY_OK;
}

/* ---- counters and marks ---- */

static const struct marey_column counter_columns[] = {
    MAREY__NAME_COLUMN,
    MAREY__COUNT_COLUMN,
    {"min", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
    {"mean", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
    {"max", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
    {"last", NULL, MAREY_TYPE_F64, MAREY_UNIT_NONE},
};

static marey_status fill_counters(marey_table *table, const struct marey__making *m)
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

static const struct marey_column mark_columns[] = {MAREY__NAME_COLUMN, MAREY__COUNT_COLUMN};

static marey_status fill_marks(marey_table *table, const struct marey__making *m)
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

/* ---- all of them ---- */

static const struct marey__table_kind kinds[MAREY__N_TABLES] = {
#define KIND MAREY__TABLE_KIND
    [MAREY__TABLE_RANGES] = KIND("ranges", range_columns, fill_ranges),
    [MAREY__TABLE_TREE] = {"tree", marey__tree_columns, MAREY__N_TREE_COLUMNS, marey__fill_tree},
    [MAREY__TABLE_THREADS] = KIND("threads", thread_columns, fill_threads),
    [MAREY__TABLE_RANKS] = KIND("ranks", rank_columns, fill_ranks),
    [MAREY__TABLE_PROCESSES] = KIND("processes", process_columns, fill_processes),
    [MAREY__TABLE_ASYNC] = KIND("async", range_columns, fill_async),
    [MAREY__TABLE_COUNTERS] = KIND("counters", counter_columns, fill_counters),
    [MAREY__TABLE_MARKS] = KIND("marks", mark_columns, fill_marks),
    [MAREY__TABLE_OPEN] = KIND("open", open_columns, fill_open),
    [MAREY__TABLE_WORKERS] = KIND("workers", worker_columns, fill_workers),
    [MAREY__TABLE_SITES] = {"sites", marey__site_columns, MAREY__N_SITE_COLUMNS, marey__fill_sites},
    [MAREY__TABLE_WARNINGS] = {"warnings", marey__warning_columns, 1, marey__fill_warnings},
#undef KIND
};

static const struct marey__table_kind *kind_of(enum marey__summary_table table)
{
    if (table == MAREY__TABLE_KERNELS)
        return &marey__kernels_kind;
    if (table == MAREY__TABLE_COPIES)
        return &marey__copies_kind;
    if (table == MAREY__TABLE_GPU_RANGES)
        return &marey__gpu_ranges_kind;
    if (table >= MAREY__TABLE_RANK_SPREAD && table < MAREY__TABLE_RANK_SPREAD + MAREY__N_RANK_TABLES)
        return &marey__rank_kinds[table - MAREY__TABLE_RANK_SPREAD];
    const bool is_of_iterations = table >= MAREY__TABLE_ITERATIONS &&
                                  table < MAREY__TABLE_ITERATIONS + MAREY__N_ITERATION_TABLES;
    return is_of_iterations ? &marey__iteration_kinds[table - MAREY__TABLE_ITERATIONS]
                            : &kinds[table];
}

bool marey__is_table_wanted(const struct marey_summary_options *options, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = options->tables; at != NULL && *at != '\0'; at += at[0] == ',') {
        const size_t this_len = strcspn(at, ",");
        if (this_len == len && memcmp(at, name, len) == 0)
            return true;
        at += this_len;
    }
    return options->tables == NULL;
}

static marey_status make_tables(marey_summary *summary, const struct marey__making *making,
                                const struct marey_summary_options *options)
{
    for (size_t t = 0; t < MAREY__N_TABLES; t++) {
        const bool is_steady = t == MAREY__TABLE_PHASES && making->merge->iterations.steady_phased_ns;
        const struct marey__table_kind *kind =
            is_steady ? &marey__steady_phases_kind : kind_of((enum marey__summary_table)t);
        const bool is_large = t == MAREY__TABLE_THREADS || t == MAREY__TABLE_RANKS;
        MAREY_TRY(marey_table_create(kind->name, kind->columns, kind->n_columns, &summary->tables[t]));
        if (is_large && !marey__is_table_wanted(options, kind->name))
            continue;
        MAREY_TRY(kind->fill(summary->tables[t], making));
        MAREY_TRY(marey_table_status(summary->tables[t]));
    }
    return MAREY_OK;
}

/* By name: whether a range of it is less than so deep in others. NULL without memory. */
static uint8_t *find_shallow(const struct marey__merge *merge, uint32_t max_depth)
{
    uint8_t *const shallow = marey__calloc(merge->names.n + 1, sizeof *shallow);
    for (size_t i = 1; shallow != NULL && i < merge->tree.n; i++)
        if (merge->tree.nodes[i].depth <= max_depth)
            shallow[merge->tree.nodes[i].name] = 1;
    return shallow;
}

marey_status marey__summary_make_tables(marey_summary *summary, const struct marey__merge *merge,
                                        const struct marey_summary_options *options)
{
    struct marey__ranks ranks;
    const uint32_t max_depth = options->max_depth;
    uint8_t *const shallow = max_depth != 0 ? find_shallow(merge, max_depth) : NULL;
    const struct marey__making making = {merge,  options->filter, &summary->cost,
                                         &ranks, max_depth,       shallow};
    const marey_status status =
        marey__ranks_make(&ranks, merge) && (max_depth == 0 || shallow != NULL)
            ? make_tables(summary, &making, options)
            : marey__no_memory();
    marey__ranks_fini(&ranks);
    marey__free(shallow);
    return status;
}
