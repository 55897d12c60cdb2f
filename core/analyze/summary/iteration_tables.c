/* Rows of the tables of steps, epochs and phases. */
#include <math.h>

#include "analyze/summary/internal.h"

uint64_t marey__round_ns(double ns)
{
    /* An imported trace may have times up to 64 bits, which a double rounds up to 2^64. */
    return ns >= 0x1p64 ? UINT64_MAX : ns > 0 ? (uint64_t)(ns + 0.5) : 0;
}

static const struct marey_process *process_of(const struct marey__table_context *m, uint32_t process)
{
    return m->merge->processes[process];
}

/* ---- iterations ---- */

/* The number of iterations and the time that a row refers to. */
struct of {
    uint64_t n, whole_ns;
    uint64_t n_first,
        first_ns; /* of whole_ns: first iterations, excluded from steady means and shares */
};

static void put_steady(marey_table *table, const struct marey__iteration_values *values,
                       const struct of *of)
{
    const bool is_all = of->n_first == 0 || of->n_first >= of->n;
    const uint64_t ns = values->ns.sum - (is_all ? 0 : MAREY__MIN(values->first_ns, values->ns.sum)),
                   whole_ns = of->whole_ns - (is_all ? 0 : MAREY__MIN(of->first_ns, of->whole_ns));
    MAREY__PUT_ROW(table, ROUNDED((double)ns / (double)(of->n - (is_all ? 0 : of->n_first))),
                   RATIO(ns, whole_ns));
}

/* Distributions over iterations; a missing value counts as 0. */
static void put_values(marey_table *table, const struct marey__iteration_values *values,
                       const struct of *of)
{
    const uint64_t n = of->n;
    const struct marey__sketch *ns = &values->ns;
    const uint64_t n_zeros = n - MAREY__MIN(ns->count, n);
    MAREY__PUT_ROW(table, U64(n), U64(ns->count), ROUNDED((double)ns->sum / (double)n),
                   ROUNDED(marey__iteration_std(values, n)), U64(n_zeros != 0 ? 0 : ns->min),
                   U64(marey__sketch_quantile_with_zeros(ns, n_zeros, 0.5)),
                   U64(marey__sketch_quantile_with_zeros(ns, n_zeros, 0.9)),
                   U64(marey__sketch_quantile_with_zeros(ns, n_zeros, 0.99)), U64(ns->max));
    put_steady(table, values, of);
}

static void put_rank_range(marey_table *table, const struct marey__table_context *m, double lowest,
                           double highest, uint32_t process)
{
    MAREY__PUT_ROW(table, ROUNDED(lowest), ROUNDED(highest), RANK_OF(process_of(m, process)->rank));
}

static struct of of_whole(const struct marey__iteration_merge *it)
{
    return (struct of){it->whole.ns.count, it->whole.ns.sum, it->n_first, it->whole.first_ns};
}

static void put_whole(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__iteration_merge *it = &m->merge->iterations;
    const struct marey__iteration_row *lowest = NULL, *highest = NULL;
    for (size_t i = 0; i < it->n_rows; i++) {
        const struct marey__iteration_row *row = &it->rows[i];
        if (row->n_counted == 0)
            continue;
        const double mean = (double)row->sum_ns / (double)row->n_counted;
        if (lowest == NULL || mean < (double)lowest->sum_ns / (double)lowest->n_counted)
            lowest = row;
        if (highest == NULL || mean > (double)highest->sum_ns / (double)highest->n_counted)
            highest = row;
    }
    if (lowest == NULL)
        return;
    const struct of of = of_whole(it);
    marey__put_string(table, MAREY__WHOLE_ITERATION);
    put_values(table, &it->whole, &of);
    put_rank_range(table, m, (double)lowest->sum_ns / (double)lowest->n_counted,
                   (double)highest->sum_ns / (double)highest->n_counted, highest->process);
}

static int heaviest_first(const void *a, const void *b, void *ctx)
{
    const struct marey__merge *merge = ctx;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint64_t x_ns = merge->iterations.names[x].values.ns.sum,
                   y_ns = merge->iterations.names[y].values.ns.sum;
    if (x_ns != y_ns)
        return x_ns < y_ns ? 1 : -1;
    return marey__names_compare(&merge->names, x, y);
}

/* Time outside all ranges on the thread that records iterations; with it, outermost ranges add up to the whole. */
static void put_no_range(marey_table *table, const struct marey__iteration_merge *it)
{
    const struct of of = of_whole(it);
    marey__put_string(table, MAREY__NO_RANGE);
    put_values(table, &it->no_range, &of);
    MAREY__PUT_ROW(table, NO_CELL, NO_CELL, NO_CELL); /* of ranks */
}

void marey__fill_iterations(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__iteration_merge *it = &m->merge->iterations;
    uint32_t *const order MAREY__FREED = marey__calloc(it->n_names + 1, sizeof *order);
    size_t n = 0;
    if (order == NULL) {
        *m->failed = true;
        return;
    }
    for (uint32_t name = 0; name < it->n_names; name++)
        if (it->names[name].n_processes != 0 && marey__is_range_wanted(m, name))
            order[n++] = name;
    qsort_r(order, n, sizeof *order, heaviest_first, (void *)m->merge);
    put_whole(table, m);
    for (size_t i = 0; i < n; i++) {
        const struct marey__iteration_name *name = &it->names[order[i]];
        MAREY__PUT_ROW(table, NAMED(m, order[i]));
        put_values(
            table, &name->values,
            &(struct of){name->n_iterations, name->whole_ns, name->n_first, name->first_whole_ns});
        put_rank_range(table, m, name->lowest_mean_ns, name->highest_mean_ns, name->highest_process);
    }
    if (n != 0 && m->filter == NULL && it->no_range.ns.sum != 0)
        put_no_range(table, it);
}

/* ---- ranks ---- */

void marey__fill_iteration_ranks(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__iteration_merge *it = &m->merge->iterations;
    for (size_t i = 0; i < it->n_rows; i++) {
        const struct marey__iteration_row *row = &it->rows[i];
        MAREY__PUT_ROW(
            table, PROCESS_OF(process_of(m, row->process)), U64(row->n_iterations),
            U64(row->n_warmup), U64(row->n_cut),
            KNOWN(row->n_counted != 0, ROUNDED((double)row->sum_ns / (double)row->n_counted)),
            ROUNDED(row->std_ns), U64(row->p50_ns), U64(row->p99_ns),
            KNOWN(row->sum_ns != 0, FINITE((double)row->n_counted * 1e9 / (double)row->sum_ns)),
            KNOWN(row->samples > 0, FINITE(row->samples)),
            KNOWN(row->samples > 0, FINITE(row->samples * 1e9 / (double)row->samples_ns)),
            RATIO(row->data_ns, row->has_data ? row->data_whole_ns : 0),
            /* null without other ranks */
            KNOWN(row->n_compared != 0, U64(row->n_slowest)), RATIO(row->n_slowest, row->n_compared),
            KNOWN(row->n_slowest != 0, ROUNDED(row->behind_ns / (double)row->n_slowest)));
    }
}

/* ---- throughput ---- */

/* Ranks run in parallel, so their samples per second add up; recordings do not. */
void marey__fill_throughput(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__iteration_merge *it = &m->merge->iterations;
    struct marey__iteration_row all = {0};
    double samples_per_s = 0;
    uint64_t data_whole_ns = 0;
    for (size_t i = 0; i < it->n_rows; i++) {
        const struct marey__iteration_row *row = &it->rows[i];
        all.n_iterations += row->n_iterations;
        all.n_warmup += row->n_warmup;
        all.n_cut += row->n_cut;
        all.n_counted += row->n_counted;
        all.sum_ns += row->sum_ns;
        all.samples += row->samples;
        all.data_ns += row->data_ns;
        data_whole_ns += row->data_whole_ns;
        if (row->samples_ns != 0)
            samples_per_s += row->samples * 1e9 / (double)row->samples_ns;
        all.recording += i == 0 || row->recording != it->rows[i - 1].recording;
    }
    if (it->n_rows == 0)
        return;
    MAREY__PUT_ROW(table, U64(it->n_rows), U64(all.n_iterations), U64(all.n_warmup), U64(all.n_cut),
                   KNOWN(all.sum_ns != 0, FINITE((double)all.n_counted * 1e9 / (double)all.sum_ns)),
                   KNOWN(all.samples > 0, FINITE(all.samples)),
                   KNOWN(samples_per_s > 0, FINITE(samples_per_s / (double)all.recording)),
                   RATIO(all.data_ns, data_whole_ns));
}

/* ---- epochs, phases, outliers ---- */

void marey__fill_epochs(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__iteration_merge *it = &m->merge->iterations;
    for (size_t i = 0; i < it->n_epochs; i++) {
        const struct marey__span *span = &it->epochs[i].span;
        MAREY__PUT_ROW(table, PROCESS_OF(process_of(m, it->epochs[i].process)), U64(span->number),
                       U64(span->n_iterations), U64(span->end_ns - span->begin_ns),
                       KNOWN(span->samples > 0, FINITE(span->samples)), TRUTH(!span->is_open));
    }
}

/* Time in the steady part, and its share; without a steady part, the share of the run. */
static void put_phase_share(marey_table *table, const struct marey__iteration_merge *it,
                            uint64_t total_ns, uint64_t steady_ns)
{
    const bool is_steady = it->steady_phased_ns != 0;
    MAREY__PUT_ROW(table, KNOWN(is_steady, U64(steady_ns)),
                   is_steady ? RATIO(steady_ns, it->steady_phased_ns)
                             : RATIO(total_ns, it->phased_ns));
}

/* Shares are of the time of processes with phases; the remaining time is a row, too. */
void marey__fill_phases(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__iteration_merge *it = &m->merge->iterations;
    uint64_t in_phases_ns = 0, steady_ns = 0;
    for (uint32_t name = 0; name < it->n_phases; name++) {
        const struct marey__phase_stats *phase = &it->phases[name];
        if (phase->count == 0)
            continue;
        MAREY__PUT_ROW(table, NAMED(m, name), U64(phase->count), U64(phase->n_iterations),
                       U64(phase->total_ns));
        put_phase_share(table, it, phase->total_ns, phase->steady_ns);
        in_phases_ns += phase->total_ns;
        steady_ns += phase->steady_ns;
    }
    if (in_phases_ns < it->phased_ns) {
        MAREY__PUT_ROW(table, STRING("(no phase)"), NO_CELL, NO_CELL,
                       U64(it->phased_ns - in_phases_ns));
        put_phase_share(table, it, it->phased_ns - in_phases_ns,
                        it->steady_phased_ns - MAREY__MIN(steady_ns, it->steady_phased_ns));
    }
    MAREY__SORT_BY(table, "-total_ns", "name");
}

void marey__fill_outliers(marey_table *table, const struct marey__table_context *m)
{
    const struct marey__iteration_merge *it = &m->merge->iterations;
    for (size_t i = 0; i < it->n_outliers; i++) {
        const struct marey__outlier_row *row = &it->outliers[i];
        MAREY__PUT_ROW(table, PROCESS_OF(process_of(m, row->process)), U64(row->number),
                       U64(row->ns), U64(row->typical_ns),
                       KNOWN(row->name != MAREY__NO_NAME, NAMED(m, row->name)), U64(row->extra_ns));
    }
}

/* ---- the steady part ---- */

void marey__fill_steady(marey_table *table, const struct marey__table_context *m)
{
    for (uint32_t name = 0; name < m->merge->n_ranges; name++) {
        const struct marey__name_stats *stats = &m->merge->ranges[name];
        if (stats->steady_ns == 0 || !marey__is_range_wanted(m, name))
            continue;
        MAREY__PUT_ROW(table, NAMED(m, name), U64(stats->steady_ns),
                       RATIO(stats->steady_ns, m->merge->iterations.steady_ns));
    }
    MAREY__SORT_BY(table, "-self_ns", "name");
}
