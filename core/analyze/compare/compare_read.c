/* Reads recordings into runs: the times of each process by range, and the assignment of processes to runs. */
#include <string.h>

#include "analyze/compare/internal.h"
#include "analyze/walk/internal.h"

void marey__process_times_fini(struct marey__process_times *times)
{
    marey__free(times->ranges);
    *times = (struct marey__process_times){0};
}

bool marey__process_times_add(struct marey__process_times *times, const struct marey__name *name,
                              const float *ns, size_t n, double weight_ns, uint32_t *scratch)
{
    if (!marey__grow(&times->ranges, &times->cap, times->n_ranges + 1, sizeof *times->ranges))
        return false;
    struct marey__range_times *range = &times->ranges[times->n_ranges++];
    *range =
        (struct marey__range_times){.text = name->text, .len = name->len, .weight_ns = weight_ns};
    marey__digest_make_whole(&range->digest, ns, n, scratch);
    return true;
}

/* ---- iterations ---- */

/*
 * Move the values of iterations that count to the front of `values`; with `without_zeros` only those in which it ran.
 */
static size_t keep_counted(const struct marey__series *series, uint64_t skip, const float *values,
                           float *out, bool without_zeros, double *sum)
{
    size_t n = 0;
    *sum = 0;
    for (size_t i = skip; i < series->n_iterations; i++) {
        out[n] = values[i];
        const bool counts = series->flags[i] == 0;
        *sum += counts ? (double)values[i] : 0;
        n += counts && (values[i] > 0 || !without_zeros);
    }
    return n;
}

static bool add_ranges(struct marey__process_times *times, const struct marey__series *series,
                       const struct marey__compare_options *options, float *values, uint32_t *scratch)
{
    for (size_t i = 0; i < series->n_names; i++) {
        const struct marey__series_name *name = &series->names[i];
        double sum;
        if (!marey__name_matches(options->filter, name->text, name->len))
            continue;
        const size_t n = keep_counted(series, options->skip, name->ns, values, true, &sum);
        const struct marey__name text = {.text = name->text, .len = name->len};
        if (n != 0 && !marey__process_times_add(times, &text, values, n,
                                                sum / (double)times->n_iterations, scratch))
            return false;
    }
    return true;
}

static bool digest_series(struct marey__process_times *times, const struct marey__series *series,
                          const struct marey__compare_options *options)
{
    const size_t n = series->n_iterations;
    float *const values MAREY__FREED = marey__calloc(n + 1, sizeof *values);
    uint32_t *const scratch MAREY__FREED = marey__calloc(n + 1, sizeof *scratch);
    double sum;
    if (values == NULL || scratch == NULL)
        return false;
    times->n_iterations = keep_counted(series, options->skip, series->ns, values, false, &sum);
    times->n_left_out = n - times->n_iterations;
    if (times->n_iterations == 0)
        return true;
    marey__digest_make_whole(&times->whole, values, times->n_iterations, scratch);
    times->whole_ns = sum / (double)times->n_iterations;
    return add_ranges(times, series, options, values, scratch);
}

/*
 * ---- calls of ranges ----
 *
 * In programs without iterations each call is an observation. A name keeps at most a million calls; beyond, every second
 * one is dropped, and so on. A profile has sums over calls or samples instead of single calls, so a
 * name has one observation for the whole run, its total time.
 */

enum { MAX_CALLS = 1 << 20 };

struct calls {
    float *ns;
    size_t n, cap;
    uint64_t count, stride; /* one of `stride` is kept; 0 means 1 */
    double total_ns;
    bool is_sum; /* some represent several calls */
};

static void thin_out(struct calls *calls)
{
    calls->n /= 2;
    for (size_t i = 0; i < calls->n; i++)
        calls->ns[i] = calls->ns[2 * i];
    calls->stride *= 2;
}

static bool take_call(void *ctx, const struct marey__lane_walk *lane,
                      const struct marey__frame *frame, uint64_t end_ns)
{
    struct calls *calls = (struct calls *)ctx + frame->name;
    uint64_t duration_ns = end_ns > frame->start_ns ? end_ns - frame->start_ns : 0;
    /* Only the outermost range of a recursion has the whole sum. */
    if (frame->repeat != 0 && !lane->tree.nodes[frame->node].is_outermost)
        duration_ns = 0;
    calls->stride += calls->stride == 0;
    calls->total_ns += (double)duration_ns;
    calls->is_sum |= frame->repeat != 0;
    if (calls->count++ % calls->stride != 0)
        return true;
    if (!MAREY__PUSH(calls->ns, calls->n, calls->cap, (float)duration_ns))
        return false;
    if (calls->n == MAX_CALLS)
        thin_out(calls);
    return true;
}

static bool digest_calls(struct marey__process_times *times, const struct marey__names *names,
                         const struct calls *calls, const char *filter)
{
    size_t most = 1;
    for (size_t i = 0; i < names->n; i++)
        most = MAREY__MAX(most, calls[i].n);
    uint32_t *const scratch MAREY__FREED = marey__calloc(most, sizeof *scratch);
    bool ok = scratch != NULL;
    for (size_t i = 0; ok && i < names->n; i++) {
        const float sum = (float)calls[i].total_ns;
        times->has_sums |= calls[i].is_sum;
        if (calls[i].n != 0 && marey__name_matches(filter, names->names[i].text, names->names[i].len))
            ok = marey__process_times_add(
                times, &names->names[i], calls[i].is_sum ? &sum : calls[i].ns,
                calls[i].is_sum ? 1 : calls[i].n, calls[i].total_ns, scratch);
    }
    return ok;
}

static marey_status read_calls(struct marey__process_times *times, marey_recording *recording,
                               size_t process, const struct marey__compare_options *options)
{
    static const struct marey__walk_tap tap = {.call = take_call};
    struct marey__process_walk walk;
    marey_status status = marey__process_walk_init(&walk, recording, process);
    struct calls *const calls =
        status == MAREY_OK ? marey__calloc(walk.names.n, sizeof *calls) : NULL;
    if (calls != NULL) {
        walk.tap = &tap;
        walk.tap_ctx = calls;
        status = marey__process_walk_run(&walk);
    }
    if (status == MAREY_OK &&
        (calls == NULL || !digest_calls(times, &walk.names, calls, options->filter)))
        status = marey__no_memory();
    for (size_t i = 0; calls != NULL && i < walk.names.n; i++)
        marey__free(calls[i].ns);
    marey__free(calls);
    marey__process_walk_fini(&walk);
    return status;
}

marey_status marey__process_times_read(struct marey__process_times *times, marey_recording *recording,
                                       size_t process, const struct marey__compare_options *options)
{
    struct marey__series series;
    *times = (struct marey__process_times){0};
    MAREY_TRY(marey__series_read(&series, recording, process, 0));
    marey_status status = MAREY_OK;
    if (series.n_iterations == 0)
        status = read_calls(times, recording, process, options);
    else if (!digest_series(times, &series, options))
        status = marey__no_memory();
    marey__series_fini(&series);
    if (status != MAREY_OK)
        marey__process_times_fini(times);
    return status;
}

/* ---- runs ---- */

struct marey__compared_run *marey__runs_add(struct marey__compared_runs *side)
{
    if (!marey__grow(&side->runs, &side->cap, side->n + 1, sizeof *side->runs))
        return NULL;
    struct marey__compared_run *run = &side->runs[side->n++];
    *run = (struct marey__compared_run){.path = "", .id = "", .exit_status = "", .world_size = -1};
    return run;
}

struct marey__compared_run *marey__runs_find(struct marey__compared_runs *side, const char *path,
                                             const struct marey_process *process)
{
    for (size_t i = 0; i < side->n; i++)
        if (side->runs[i].path == path && strcmp(side->runs[i].id, process->run_id) == 0)
            return &side->runs[i];
    struct marey__compared_run *run = marey__runs_add(side);
    if (run == NULL)
        return NULL;
    run->path = path;
    run->id = process->run_id;
    run->first = process;
    run->start = (double)process->start_unix_ns / 1e9;
    run->world_size = process->world_size;
    return run;
}

void marey__runs_fini(struct marey__compared_runs *side)
{
    for (size_t i = 0; i < side->n; i++)
        for (size_t t = 0; t < MAREY__COUNT_OF(side->runs[i].of); t++)
            marey__free(side->runs[i].of[t].list);
    marey__free(side->runs);
    *side = (struct marey__compared_runs){0};
}

struct marey__run_range *marey__run_range(struct marey__compared_run *run,
                                          enum marey__comparison_table table, uint32_t name)
{
    struct marey__run_ranges *const of = &run->of[table];
    return marey__extend(&of->list, &of->n, &of->cap, (size_t)name + 1, sizeof *of->list)
               ? &of->list[name]
               : NULL;
}

/* Ranks have equal weight: the run's time is their mean. Returns false without a range. */
static bool average(struct marey__run_range *range, const struct marey__digest *digest,
                    double weight_ns)
{
    if (range == NULL)
        return false;
    marey__digest_average(&range->digest, digest, range->n_processes);
    range->n_processes++;
    range->weight_ns += (weight_ns - range->weight_ns) / (double)range->n_processes;
    return true;
}

bool marey__run_take(struct marey__compared_run *run, struct marey__names *names,
                     const struct marey__process_times *times)
{
    for (size_t i = 0; i < times->n_ranges; i++) {
        const struct marey__range_times *from = &times->ranges[i];
        const uint32_t name = marey__names_number(names, from->text, from->len);
        if (name == MAREY__NO_NAME || !average(marey__run_range(run, MAREY__COMPARED_RANGES, name),
                                               &from->digest, from->weight_ns))
            return false;
    }
    if (times->n_iterations != 0 && !average(marey__run_range(run, MAREY__COMPARED_ITERATION, 0),
                                             &times->whole, times->whole_ns))
        return false;
    run->n_iterations = MAREY__MAX(run->n_iterations, times->n_iterations);
    run->n_left_out = MAREY__MAX(run->n_left_out, times->n_left_out);
    run->has_sums |= times->has_sums;
    return true;
}
