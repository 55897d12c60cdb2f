/*
 * Merges the iterations of all processes: times by name, a row per process, outliers, and which rank of a recording was
 * slowest in each iteration.
 */
#include <math.h>
#include <string.h>

#include "analyze/summary/internal.h"

void marey__iteration_merge_fini(struct marey__iteration_merge *it)
{
    for (size_t i = 0; i < it->n_names; i++)
        marey__sketch_fini(&it->names[i].values.ns);
    marey__sketch_fini(&it->whole.ns);
    marey__sketch_fini(&it->no_range.ns);
    MAREY__FREE_ALL(it->names, it->rows, it->outliers, it->epochs, it->phases);
    for (size_t i = 0; i < it->n_rank_steps; i++)
        marey__free(it->rank_steps[i].steps);
    marey__free(it->rank_steps);
    *it = (struct marey__iteration_merge){0};
}

double marey__iteration_std(const struct marey__iteration_values *values, uint64_t n)
{
    if (n < 2)
        return 0;
    const double sum = (double)values->ns.sum;
    const double squares = (double)values->sum_of_squares - sum * (sum / (double)n);
    return squares > 0 ? sqrt(squares / (double)(n - 1)) : 0;
}

/* ---- by name ---- */

static bool add_name(struct marey__iteration_name *into, const struct marey__iteration_values *values,
                     const struct marey__iteration_stats *stats, uint32_t process)
{
    const uint64_t n = stats->whole.ns.count;
    if (values->ns.count == 0)
        return true;
    const double mean = (double)values->ns.sum / (double)n;
    if (into->n_processes == 0 || mean < into->lowest_mean_ns)
        into->lowest_mean_ns = mean;
    if (into->n_processes == 0 || mean > into->highest_mean_ns) {
        into->highest_mean_ns = mean;
        into->highest_process = process;
    }
    into->n_processes++;
    into->n_iterations += n;
    into->whole_ns += stats->whole.ns.sum;
    into->n_first += stats->n_first;
    into->first_whole_ns += stats->whole.first_ns;
    return marey__iteration_values_merge(&into->values, values);
}

static bool add_names(struct marey__merge *merge, const struct marey__process_walk *walk,
                      uint32_t process, const uint32_t *names)
{
    struct marey__iteration_merge *it = &merge->iterations;
    const struct marey__iteration_stats *stats = &walk->iteration_stats;
    if (!marey__cover_names(&merge->names, &it->names, &it->n_names, &it->names_cap,
                            sizeof *it->names))
        return false;
    for (size_t i = 0; i < walk->names.n; i++)
        if (!add_name(&it->names[names[i]], &stats->by_name[i], stats, process))
            return false;
    it->n_first += stats->n_first;
    return marey__iteration_values_merge(&it->whole, &stats->whole) &&
           marey__iteration_values_merge(&it->no_range, &stats->no_range);
}

static uint64_t steady_ns_of(const struct marey__iteration_stats *stats)
{
    return stats->n_steady != 0 ? stats->steady_end_ns - stats->steady_begin_ns : 0;
}

static bool add_phases(struct marey__merge *merge, const struct marey__process_walk *walk,
                       const uint32_t *names)
{
    struct marey__iteration_merge *it = &merge->iterations;
    const struct marey__phase_stats *phases = walk->iteration_stats.phases;
    if (phases == NULL)
        return true;
    if (!marey__cover_names(&merge->names, &it->phases, &it->n_phases, &it->phases_cap,
                            sizeof *it->phases))
        return false;
    for (size_t i = 0; i < walk->names.n; i++) {
        struct marey__phase_stats *into = &it->phases[names[i]];
        into->count += phases[i].count;
        into->total_ns += phases[i].total_ns;
        into->n_iterations += phases[i].n_iterations;
        into->steady_ns += walk->iteration_stats.n_steady != 0 ? phases[i].steady_ns : 0;
    }
    it->steady_phased_ns += steady_ns_of(&walk->iteration_stats);
    it->phased_ns += walk->info->last_ns - MAREY__MIN(walk->info->first_ns, walk->info->last_ns);
    return true;
}

static bool add_epochs(struct marey__iteration_merge *it,
                       const struct marey__iteration_stats *stats, uint32_t process)
{
    if (!marey__grow(&it->epochs, &it->epochs_cap, it->n_epochs + stats->n_epochs, sizeof *it->epochs))
        return false;
    for (size_t i = 0; i < stats->n_epochs; i++)
        it->epochs[it->n_epochs++] = (struct marey__epoch_row){process, stats->epochs[i]};
    return true;
}

/* ---- outliers ---- */

/* Typical times of one process. */
struct typical {
    const struct marey__iteration_stats *stats;
    const struct marey__names *names;
    uint64_t p50_ns, threshold_ns;
};

static struct typical find_typical(const struct marey__iteration_stats *stats,
                                   const struct marey__names *names)
{
    const struct marey__sketch *whole = &stats->whole.ns;
    const uint64_t p25 = marey__sketch_quantile(whole, 0.25),
                   p75 = marey__sketch_quantile(whole, 0.75),
                   p50 = marey__sketch_quantile(whole, 0.5);
    const uint64_t far_out = p75 + 3 * (p75 - MAREY__MIN(p25, p75));
    return (struct typical){stats, names, p50, MAREY__MAX(far_out, p50 + p50 / 5)};
}

/* The excess of a part over its mean. */
static uint64_t extra_of(const struct typical *typical, const struct marey__long_part *part)
{
    const uint64_t n = typical->stats->whole.ns.count;
    const uint64_t mean = typical->stats->by_name[part->name].ns.sum / n;
    return part->ns > mean ? part->ns - mean : 0;
}

static bool is_wait(const struct typical *typical, const struct marey__long_part *part)
{
    const struct marey__name *name = &typical->names->names[part->name];
    return marey__name_is_wait(name->text, name->len);
}

/*
 * The part that explains a long iteration. A range is longer because one within it is, so among the parts within 10 %
 * of the largest excess, choose the one with the smallest total. NULL if no part explains half of the excess, or if
 * waiting for others does: they are the cause.
 */
static const struct marey__long_part *find_longer(const struct typical *typical,
                                                  const struct marey__long_iteration *iteration)
{
    const struct marey__long_part *found = NULL;
    const uint64_t least = (iteration->ns - typical->p50_ns) / 2;
    uint64_t most = 0;
    for (size_t i = 0; i < iteration->n_parts; i++) {
        const uint64_t extra = extra_of(typical, &iteration->parts[i]);
        if (!is_wait(typical, &iteration->parts[i]))
            most = MAREY__MAX(most, extra);
        else if (extra > least)
            return NULL;
    }
    if (most < least)
        return NULL;
    for (size_t i = 0; i < iteration->n_parts; i++) {
        const struct marey__long_part *part = &iteration->parts[i];
        const struct marey__iteration_values *values = typical->stats->by_name;
        if (extra_of(typical, part) < most - most / 10 || is_wait(typical, part))
            continue;
        if (found == NULL || values[part->name].ns.sum < values[found->name].ns.sum)
            found = part;
    }
    return found;
}

MAREY__ORDER(longest_first, struct marey__outlier_row, MAREY__DOWN(ns) MAREY__UP(number))

static bool add_outliers(struct marey__iteration_merge *it, const struct marey__process_walk *walk,
                         uint32_t process, const uint32_t *names)
{
    const struct marey__iteration_stats *stats = &walk->iteration_stats;
    const struct typical typical = find_typical(stats, &walk->names);
    const size_t first = it->n_outliers;
    if (!marey__grow(&it->outliers, &it->outliers_cap, first + stats->n_longest, sizeof *it->outliers))
        return false;
    for (size_t i = 0; i < stats->n_longest; i++) {
        const struct marey__long_iteration *iteration = &stats->longest[i];
        if (iteration->ns <= typical.threshold_ns)
            continue;
        const struct marey__long_part *longer = find_longer(&typical, iteration);
        it->outliers[it->n_outliers++] = (struct marey__outlier_row){
            .process = process,
            .name = longer != NULL ? names[longer->name] : MAREY__NO_NAME,
            .number = iteration->span.number,
            .ns = iteration->ns,
            .typical_ns = typical.p50_ns,
            .extra_ns = longer != NULL ? extra_of(&typical, longer) : iteration->ns - typical.p50_ns,
        };
    }
    if (it->n_outliers - first > 1)
        qsort(it->outliers + first, it->n_outliers - first, sizeof *it->outliers, longest_first);
    return true;
}

/* ---- processes, and the slowest one ---- */

static void add_data(struct marey__iteration_row *row, const char *data,
                     const struct marey__process_walk *walk)
{
    for (size_t i = 0; data != NULL && i < walk->names.n; i++) {
        const struct marey__name *name = &walk->names.names[i];
        const struct marey__sketch *ns = &walk->iteration_stats.by_name[i].ns;
        if (ns->count == 0 || name->len != strlen(data) || memcmp(name->text, data, name->len) != 0)
            continue;
        const struct marey__iteration_stats *stats = &walk->iteration_stats;
        const bool is_all = stats->whole.ns.count <= stats->n_first;
        row->has_data = true;
        row->data_ns = ns->sum - (is_all ? 0 : stats->by_name[i].first_ns);
        row->data_whole_ns = stats->whole.ns.sum - (is_all ? 0 : stats->whole.first_ns);
    }
}

static bool add_row(struct marey__iteration_merge *it, const struct marey__process_walk *walk,
                    uint32_t process)
{
    const struct marey__iteration_stats *stats = &walk->iteration_stats;
    const struct marey__sketch *whole = &stats->whole.ns;
    if (!marey__grow(&it->rows, &it->rows_cap, it->n_rows + 1, sizeof *it->rows))
        return false;
    struct marey__iteration_row *row = &it->rows[it->n_rows++];
    *row = (struct marey__iteration_row){
        .process = process,
        .recording = walk->recording_number,
        .n_iterations = stats->n_iterations,
        .n_warmup = stats->n_warmup,
        .n_cut = stats->n_cut,
        .n_counted = whole->count,
        .sum_ns = whole->sum,
        .p50_ns = marey__sketch_quantile(whole, 0.5),
        .p99_ns = marey__sketch_quantile(whole, 0.99),
        .std_ns = marey__iteration_std(&stats->whole, whole->count),
        .samples = stats->samples,
        .samples_ns = stats->samples_ns,
    };
    for (int i = 0; i < MAREY__N_RANK_QUANTILES; i++)
        row->quantiles[i] =
            (float)marey__sketch_quantile(whole, (double)i / (MAREY__N_RANK_QUANTILES - 1));
    add_data(row, it->data, walk);
    return true;
}

void marey__rank_step_add(struct marey__rank_step *step, const struct marey__rank_step *from)
{
    const bool is_first = step->n == 0;
    step->sum_ns += from->sum_ns;
    step->n += from->n;
    if (!is_first && from->slowest_ns == step->slowest_ns)
        step->slowest = MAREY__NO_NAME;
    if (!is_first && from->slowest_ns <= step->slowest_ns)
        return;
    step->slowest_ns = from->slowest_ns;
    step->slowest = from->slowest;
}

/* Integers, so that sums do not depend on the order. A damaged file may produce a float of 2^64. */
static uint64_t whole_ns(float ns)
{
    return ns < 0x1p63f ? (uint64_t)ns : UINT64_C(1) << 63;
}

struct marey__rank_steps *marey__rank_steps_of(struct marey__iteration_merge *it,
                                               uint32_t recording, size_t n)
{
    size_t i = it->n_rank_steps;
    while (i > 0 && it->rank_steps[i - 1].recording != recording)
        i--;
    if (i == 0) {
        if (!marey__grow(&it->rank_steps, &it->rank_steps_cap, it->n_rank_steps + 1,
                         sizeof *it->rank_steps))
            return NULL;
        i = ++it->n_rank_steps;
        it->rank_steps[i - 1] = (struct marey__rank_steps){.recording = recording};
    }
    struct marey__rank_steps *steps = &it->rank_steps[i - 1];
    return marey__extend(&steps->steps, &steps->n, &steps->cap, n, sizeof *steps->steps) ? steps
                                                                                         : NULL;
}

/* Add the durations of the process in the last row. */
static bool add_rank_steps(struct marey__iteration_merge *it,
                           const struct marey__iteration_stats *stats, uint32_t recording)
{
    const struct marey__rank_steps *steps = marey__rank_steps_of(it, recording, stats->n_durations);
    if (steps == NULL)
        return false;
    for (size_t i = 0; i < stats->n_durations; i++) {
        const float ns = stats->durations[i];
        if (ns > 0)
            marey__rank_step_add(&steps->steps[i],
                                 &(struct marey__rank_step){.slowest_ns = ns,
                                                            .slowest = (uint32_t)it->n_rows - 1,
                                                            .sum_ns = whole_ns(ns),
                                                            .n = 1});
    }
    return true;
}

static void finish_rank_steps(struct marey__iteration_merge *it, const struct marey__rank_steps *steps)
{
    uint64_t n_compared = 0;
    for (size_t i = 0; i < steps->n; i++) {
        const struct marey__rank_step *step = &steps->steps[i];
        if (step->n < 2)
            continue;
        n_compared++;
        if (step->slowest == MAREY__NO_NAME)
            continue;
        const double others =
            (double)(step->sum_ns - whole_ns(step->slowest_ns)) / (double)(step->n - 1);
        it->rows[step->slowest].n_slowest++;
        it->rows[step->slowest].behind_ns += (double)step->slowest_ns - others;
    }
    for (size_t i = 0; i < it->n_rows; i++)
        if (it->rows[i].recording == steps->recording)
            it->rows[i].n_compared = n_compared;
}

void marey__iteration_merge_finish(struct marey__iteration_merge *it)
{
    for (size_t i = 0; i < it->n_rank_steps; i++) {
        finish_rank_steps(it, &it->rank_steps[i]);
        marey__free(it->rank_steps[i].steps);
    }
    it->n_rank_steps = 0;
}

/* Number of compared ranks in the rows of one recording, from `first` on. */
static size_t count_compared(const struct marey__iteration_merge *it, size_t first)
{
    size_t n = 0;
    for (size_t i = first; i < it->n_rows && it->rows[i].recording == it->rows[first].recording; i++)
        n += it->rows[i].n_compared != 0;
    return n;
}

const struct marey__iteration_row *marey__iteration_straggler(const struct marey__iteration_merge *it)
{
    const struct marey__iteration_row *found = NULL;
    size_t n_ranks = 0;
    for (size_t i = 0; i < it->n_rows; i++) {
        const struct marey__iteration_row *row = &it->rows[i];
        if (i == 0 || row->recording != row[-1].recording)
            n_ranks = count_compared(it, i);
        if (n_ranks < 2)
            continue;
        const double n = (double)row->n_compared, due = 1 / (double)n_ranks;
        const double share = (double)row->n_slowest / n;
        if (share >= 1.5 * due && share > due + 3 * sqrt(due * (1 - due) / n) &&
            (found == NULL || row->n_slowest > found->n_slowest))
            found = row;
    }
    return found;
}

/* ---- all iterations ---- */

bool marey__iteration_merge_add(struct marey__merge *merge, const struct marey__process_walk *walk,
                                uint32_t process, const uint32_t *names)
{
    struct marey__iteration_merge *it = &merge->iterations;
    const struct marey__iteration_stats *stats = &walk->iteration_stats;
    if (!it->keeps_rank_steps && it->n_rank_steps != 0 &&
        it->rank_steps[0].recording != walk->recording_number)
        marey__iteration_merge_finish(it);
    if (!add_phases(merge, walk, names) || !add_epochs(it, stats, process))
        return false;
    if (stats->n_iterations == 0)
        return true;
    it->steady_ns += steady_ns_of(stats);
    return add_names(merge, walk, process, names) && add_row(it, walk, process) &&
           add_outliers(it, walk, process, names) &&
           (walk->info->rank < 0 || add_rank_steps(it, stats, walk->recording_number));
}
