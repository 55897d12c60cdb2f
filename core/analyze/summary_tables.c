/*
 * The summary's tables, from what was merged. Each has its columns beside the function that fills
 * it.
 */
#include <string.h>

#include "analyze/analyze_internal.h"
#include "analyze/gpu_tables.h"
#include "analyze/ranks.h"

/* ---- cells ---- */

void kymo__put_string(kymo_table *table, const char *text)
{
    kymo_table_text(table, text, strlen(text));
}

void kymo__put_name(kymo_table *table, const struct kymo__making *m, uint32_t name)
{
    kymo_table_text(table, m->merge->names.names[name].text, m->merge->names.names[name].len);
}

static void put_rank(kymo_table *table, const struct kymo_process *process)
{
    if (process->rank < 0)
        kymo_table_null(table);
    else
        kymo_table_i64(table, process->rank);
}

void kymo__put_process(kymo_table *table, const struct kymo_process *process)
{
    put_rank(table, process);
    kymo_table_i64(table, process->pid);
}

void kymo__put_share(kymo_table *table, uint64_t part_ns, uint64_t whole_ns)
{
    if (whole_ns == 0)
        kymo_table_null(table);
    else
        kymo_table_f64(table, (double)part_ns / (double)whole_ns);
}

bool kymo__is_wanted(const struct kymo__making *m, uint32_t name)
{
    const struct kymo__name *n = &m->merge->names.names[name];
    return kymo__name_matches(m->filter, n->text, n->len);
}

bool kymo__is_range_wanted(const struct kymo__making *m, uint32_t name)
{
    return (m->shallow == NULL || m->shallow[name]) && kymo__is_wanted(m, name);
}

static uint64_t duration_of(const struct kymo_process *process)
{
    return process->last_ns > process->first_ns ? process->last_ns - process->first_ns : 0;
}

void kymo__sort_by(kymo_table *table, const char *column, int descending)
{
    kymo_table_sort(table, (size_t)kymo_table_find(table, column), descending);
}

/* ---- ranges and async ranges ---- */

static const struct kymo_column range_columns[] = {
    KYMO__NAME_COLUMN,
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("total_ns", "total"),
    KYMO__NS_COLUMN("self_ns", "self"),
    KYMO__NS_COLUMN("mean_ns", "mean"),
    KYMO__NS_COLUMN("min_ns", "min"),
    KYMO__NS_COLUMN("p50_ns", "median"),
    KYMO__NS_COLUMN("p90_ns", "p90"),
    KYMO__NS_COLUMN("p99_ns", "p99"),
    KYMO__NS_COLUMN("max_ns", "max"),
    KYMO__SHARE_COLUMN("of run"),
    {"threads", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"processes", "procs", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
};

static void put_stats(kymo_table *table, const struct kymo__making *m, uint32_t name,
                      const struct kymo__name_stats *stats, bool is_async)
{
    const struct kymo__sketch *calls = &stats->calls;
    kymo__put_name(table, m, name);
    kymo_table_u64(table, calls->count);
    kymo_table_u64(table, stats->total_ns);
    kymo_table_u64(table, stats->self_ns);
    kymo_table_u64(table, (calls->sum + calls->count / 2) / calls->count);
    kymo_table_u64(table, calls->min);
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.5));
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.9));
    kymo_table_u64(table, kymo__sketch_quantile(calls, 0.99));
    kymo_table_u64(table, calls->max);
    kymo__put_share(table, stats->total_ns, m->cost->program_ns);
    if (is_async) /* it may begin on one thread and end on another */
        kymo_table_null(table);
    else
        kymo_table_u64(table, stats->n_threads);
    kymo_table_u64(table, stats->n_processes);
}

static void fill_stats(kymo_table *table, const struct kymo__making *m,
                       const struct kymo__name_stats *stats, size_t n, bool is_async)
{
    for (uint32_t name = 0; name < n; name++)
        if (stats[name].calls.count != 0 &&
            (is_async ? kymo__is_wanted(m, name) : kymo__is_range_wanted(m, name)))
            put_stats(table, m, name, &stats[name], is_async);
    kymo__sort_by(table, "name", 0);
    kymo__sort_by(table, "total_ns", 1);
}

static kymo_status fill_ranges(kymo_table *table, const struct kymo__making *m)
{
    fill_stats(table, m, m->merge->ranges, m->merge->n_ranges, false);
    return KYMO_OK;
}

static kymo_status fill_async(kymo_table *table, const struct kymo__making *m)
{
    fill_stats(table, m, m->merge->async, m->merge->n_async, true);
    return KYMO_OK;
}

/* ---- threads, ranks, open ranges ---- */

static const struct kymo_column thread_columns[] = {
    KYMO__RANK_COLUMN,
    KYMO__PID_COLUMN,
    {"tid", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE},
    {"thread", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__NAME_COLUMN,
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("total_ns", "total"),
    KYMO__NS_COLUMN("self_ns", "self"),
    KYMO__SHARE_COLUMN("of process"),
};

static kymo_status fill_threads(kymo_table *table, const struct kymo__making *m)
{
    for (size_t i = 0; i < m->merge->threads.n; i++) {
        const struct kymo__name_row *row = &m->merge->threads.rows[i];
        const struct kymo_process *process = m->merge->processes[row->process];
        if (!kymo__is_range_wanted(m, row->name))
            continue;
        kymo__put_process(table, process);
        kymo_table_i64(table, row->lane->tid);
        kymo__put_string(table, row->lane->name);
        kymo__put_name(table, m, row->name);
        kymo_table_u64(table, row->count);
        kymo_table_u64(table, row->total_ns);
        kymo_table_u64(table, row->self_ns);
        kymo__put_share(table, row->total_ns, duration_of(process));
    }
    return KYMO_OK;
}

static const struct kymo_column rank_columns[] = {
    KYMO__RANK_COLUMN,
    KYMO__PID_COLUMN,
    KYMO__NAME_COLUMN,
    KYMO__COUNT_COLUMN,
    KYMO__NS_COLUMN("total_ns", "total"),
    KYMO__NS_COLUMN("self_ns", "self"),
};

static kymo_status fill_ranks(kymo_table *table, const struct kymo__making *m)
{
    for (size_t i = 0; i < m->merge->ranks.n; i++) {
        const struct kymo__name_row *row = &m->merge->ranks.rows[i];
        const struct kymo_process *process = m->merge->processes[row->process];
        if (!kymo__is_range_wanted(m, row->name))
            continue;
        kymo__put_process(table, process);
        kymo__put_name(table, m, row->name);
        kymo_table_u64(table, row->count);
        kymo_table_u64(table, row->total_ns);
        kymo_table_u64(table, row->self_ns);
    }
    return KYMO_OK;
}

static const struct kymo_column open_columns[] = {
    KYMO__RANK_COLUMN,
    KYMO__PID_COLUMN,
    {"thread", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__NAME_COLUMN,
    KYMO__NS_COLUMN("since_ns", "since"),
};

static kymo_status fill_open(kymo_table *table, const struct kymo__making *m)
{
    for (size_t i = 0; i < m->merge->n_open; i++) {
        const struct kymo__open_row *row = &m->merge->open[i];
        const struct kymo_process *process = m->merge->processes[row->process];
        kymo__put_process(table, process);
        kymo__put_string(table, row->lane->name);
        kymo__put_name(table, m, row->name);
        kymo_table_u64(table, row->since_ns);
    }
    return KYMO_OK;
}

/* ---- processes ---- */

#define WORKER_COLUMN                                                                              \
    {                                                                                              \
        "worker", NULL, KYMO_TYPE_I64, KYMO_UNIT_NONE                                              \
    }

static const struct kymo_column process_columns[] = {
    KYMO__RANK_COLUMN,
    KYMO__PID_COLUMN,
    {"host", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"command", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"start_unix_ns", "start", KYMO_TYPE_U64, KYMO_UNIT_UNIX_NS},
    KYMO__NS_COLUMN("duration_ns", "duration"),
    {"events", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"lost_events", "lost", KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    {"event_cost_ns", "per event", KYMO_TYPE_F64, KYMO_UNIT_NS},
    KYMO__NS_COLUMN("flush_cpu_ns", "flush"),
    {"log_bytes", "log", KYMO_TYPE_U64, KYMO_UNIT_BYTES},
    {"clock", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"end", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"devices", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    {"energy_sources", NULL, KYMO_TYPE_TEXT, KYMO_UNIT_NONE},
    KYMO__NS_COLUMN("energy_cpu_ns", "energy"),
    WORKER_COLUMN,
};

static void put_worker(kymo_table *table, const struct kymo_process *process)
{
    if (process->worker < 0)
        kymo_table_null(table);
    else
        kymo_table_i64(table, process->worker);
}

static kymo_status fill_processes(kymo_table *table, const struct kymo__making *m)
{
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const struct kymo_process *process = m->merge->processes[i];
        kymo__put_process(table, process);
        kymo__put_string(table, process->host);
        kymo__put_string(table, process->command);
        kymo_table_u64(table, process->start_unix_ns);
        kymo_table_u64(table, duration_of(process));
        kymo_table_u64(table, process->n_events);
        kymo_table_u64(table, process->lost_events);
        kymo_table_f64(table, process->event_cost_ns);
        kymo_table_u64(table, process->flush_cpu_ns);
        kymo_table_u64(table, process->log_bytes);
        kymo__put_string(table, process->clock);
        kymo__put_string(table, process->end);
        kymo__put_string(table, process->devices);
        kymo__put_string(table, process->energy_sources);
        kymo_table_u64(table, process->energy_cpu_ns);
        put_worker(table, process);
    }
    return KYMO_OK;
}

/* ---- workers of data loaders ---- */

static const struct kymo_column worker_columns[] = {
    KYMO__RANK_COLUMN,
    WORKER_COLUMN,
    KYMO__PID_COLUMN,
    {"batches", NULL, KYMO_TYPE_U64, KYMO_UNIT_COUNT},
    KYMO__NS_COLUMN("busy_ns", "busy"),
    KYMO__NS_COLUMN("duration_ns", "duration"),
    KYMO__SHARE_COLUMN("busy"),
};

/* The first row of a process, or of the next one that has any: rows come in the order of processes. */
static size_t first_row_of(const struct kymo__merge *merge, size_t process)
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
static void put_work(kymo_table *table, const struct kymo__making *m, size_t number)
{
    const struct kymo_process *process = m->merge->processes[number];
    uint64_t n_batches = 0, busy_ns = 0;
    for (size_t i = first_row_of(m->merge, number); i < m->merge->ranks.n; i++) {
        const struct kymo__name_row *row = &m->merge->ranks.rows[i];
        const struct kymo__name *name = &m->merge->names.names[row->name];
        if (row->process != number)
            break;
        busy_ns += row->self_ns;
        if (name->len == strlen(KYMO_FETCH) && memcmp(name->text, KYMO_FETCH, name->len) == 0)
            n_batches += row->count;
    }
    kymo_table_u64(table, n_batches);
    kymo_table_u64(table, busy_ns);
    kymo_table_u64(table, duration_of(process));
    kymo__put_share(table, busy_ns, duration_of(process));
}

static kymo_status fill_workers(kymo_table *table, const struct kymo__making *m)
{
    for (size_t i = 0; i < m->merge->n_processes; i++) {
        const struct kymo_process *process = m->merge->processes[i];
        if (process->worker < 0)
            continue;
        put_rank(table, process);
        put_worker(table, process);
        kymo_table_i64(table, process->pid);
        put_work(table, m, i);
    }
    kymo__sort_by(table, "worker", 0);
    kymo__sort_by(table, "rank", 0);
    return KYMO_OK;
}

/* ---- counters and marks ---- */

static const struct kymo_column counter_columns[] = {
    KYMO__NAME_COLUMN,
    KYMO__COUNT_COLUMN,
    {"min", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"mean", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"max", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
    {"last", NULL, KYMO_TYPE_F64, KYMO_UNIT_NONE},
};

static kymo_status fill_counters(kymo_table *table, const struct kymo__making *m)
{
    for (uint32_t name = 0; name < m->merge->n_counters; name++) {
        const struct kymo__counter *counter = &m->merge->counters[name];
        if (counter->count == 0 || !kymo__is_wanted(m, name))
            continue;
        kymo__put_name(table, m, name);
        kymo_table_u64(table, counter->count);
        kymo_table_f64(table, counter->min);
        kymo_table_f64(table, counter->sum / (double)counter->count);
        kymo_table_f64(table, counter->max);
        kymo_table_f64(table, counter->last);
    }
    kymo__sort_by(table, "name", 0);
    return KYMO_OK;
}

static const struct kymo_column mark_columns[] = {KYMO__NAME_COLUMN, KYMO__COUNT_COLUMN};

static kymo_status fill_marks(kymo_table *table, const struct kymo__making *m)
{
    for (uint32_t name = 0; name < m->merge->n_marks; name++) {
        if (m->merge->marks[name] == 0 || !kymo__is_wanted(m, name))
            continue;
        kymo__put_name(table, m, name);
        kymo_table_u64(table, m->merge->marks[name]);
    }
    kymo__sort_by(table, "name", 0);
    kymo__sort_by(table, "count", 1);
    return KYMO_OK;
}

/* ---- all of them ---- */

static const struct kymo__table_kind kinds[KYMO__N_TABLES] = {
#define KIND KYMO__TABLE_KIND
    [KYMO__TABLE_RANGES] = KIND("ranges", range_columns, fill_ranges),
    [KYMO__TABLE_TREE] = {"tree", kymo__tree_columns, KYMO__N_TREE_COLUMNS, kymo__fill_tree},
    [KYMO__TABLE_THREADS] = KIND("threads", thread_columns, fill_threads),
    [KYMO__TABLE_RANKS] = KIND("ranks", rank_columns, fill_ranks),
    [KYMO__TABLE_PROCESSES] = KIND("processes", process_columns, fill_processes),
    [KYMO__TABLE_ASYNC] = KIND("async", range_columns, fill_async),
    [KYMO__TABLE_COUNTERS] = KIND("counters", counter_columns, fill_counters),
    [KYMO__TABLE_MARKS] = KIND("marks", mark_columns, fill_marks),
    [KYMO__TABLE_OPEN] = KIND("open", open_columns, fill_open),
    [KYMO__TABLE_WORKERS] = KIND("workers", worker_columns, fill_workers),
    [KYMO__TABLE_SITES] = {"sites", kymo__site_columns, KYMO__N_SITE_COLUMNS, kymo__fill_sites},
    [KYMO__TABLE_WARNINGS] = {"warnings", kymo__warning_columns, 1, kymo__fill_warnings},
#undef KIND
};

static const struct kymo__table_kind *kind_of(enum kymo__summary_table table)
{
    if (table == KYMO__TABLE_KERNELS)
        return &kymo__kernels_kind;
    if (table == KYMO__TABLE_COPIES)
        return &kymo__copies_kind;
    if (table == KYMO__TABLE_GPU_RANGES)
        return &kymo__gpu_ranges_kind;
    if (table >= KYMO__TABLE_RANK_SPREAD && table < KYMO__TABLE_RANK_SPREAD + KYMO__N_RANK_TABLES)
        return &kymo__rank_kinds[table - KYMO__TABLE_RANK_SPREAD];
    const bool is_of_iterations = table >= KYMO__TABLE_ITERATIONS &&
                                  table < KYMO__TABLE_ITERATIONS + KYMO__N_ITERATION_TABLES;
    return is_of_iterations ? &kymo__iteration_kinds[table - KYMO__TABLE_ITERATIONS] : &kinds[table];
}

bool kymo__is_table_wanted(const struct kymo_summary_options *options, const char *name)
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

static kymo_status make_tables(kymo_summary *summary, const struct kymo__making *making,
                               const struct kymo_summary_options *options)
{
    for (size_t t = 0; t < KYMO__N_TABLES; t++) {
        const struct kymo__table_kind *kind = kind_of((enum kymo__summary_table)t);
        const bool is_large = t == KYMO__TABLE_THREADS || t == KYMO__TABLE_RANKS;
        KYMO_TRY(kymo_table_create(kind->name, kind->columns, kind->n_columns, &summary->tables[t]));
        if (is_large && !kymo__is_table_wanted(options, kind->name))
            continue;
        KYMO_TRY(kind->fill(summary->tables[t], making));
        KYMO_TRY(kymo_table_status(summary->tables[t]));
    }
    return KYMO_OK;
}

/* By name: whether a range of it is less than so deep in others. NULL without memory. */
static uint8_t *find_shallow(const struct kymo__merge *merge, uint32_t max_depth)
{
    uint8_t *const shallow = kymo__calloc(merge->names.n + 1, sizeof *shallow);
    for (size_t i = 1; shallow != NULL && i < merge->tree.n; i++)
        if (merge->tree.nodes[i].depth <= max_depth)
            shallow[merge->tree.nodes[i].name] = 1;
    return shallow;
}

kymo_status kymo__summary_make_tables(kymo_summary *summary, const struct kymo__merge *merge,
                                      const struct kymo_summary_options *options)
{
    struct kymo__ranks ranks;
    const uint32_t max_depth = options->max_depth;
    uint8_t *const shallow = max_depth != 0 ? find_shallow(merge, max_depth) : NULL;
    const struct kymo__making making = {merge,  options->filter, &summary->cost,
                                        &ranks, max_depth,       shallow};
    const kymo_status status = kymo__ranks_make(&ranks, merge) && (max_depth == 0 || shallow != NULL)
                                   ? make_tables(summary, &making, options)
                                   : kymo__fail(KYMO_ENOMEM, "no memory for the tables");
    kymo__ranks_fini(&ranks);
    kymo__free(shallow);
    return status;
}
