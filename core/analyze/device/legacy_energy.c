/*
 * Joules of itwinai's files. It adds up power times the nominal interval, over all repeats of a run. Here each run stands
 * for itself, trapezoids stand over the numbers of the readings, so that missing ones do not count as nothing, and where
 * the epochs of the run are known, their time says how far readings really were apart: reading itself took a while, which
 * the nominal interval leaves out.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/device/legacy_energy.h"

static const struct marey_column run_columns[] = {
    {"run", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"repeat", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"strategy", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"num_gpus", "GPUs", MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"nodes", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"measured_gpus", "measured", MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"readings", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    MAREY__NUMBER_COLUMN("interval_s", "interval"),
    MAREY__NUMBER_COLUMN("real_interval_s", "real"),
    MAREY__NUMBER_COLUMN("duration_s", "s"),
    MAREY__NUMBER_COLUMN("joules", "J"),
    MAREY__NUMBER_COLUMN("plus_minus_j", "+/-"),
    MAREY__NUMBER_COLUMN("mean_w", "mean W"),
    MAREY__NUMBER_COLUMN("peak_w", "peak W"),
    {"utilization", NULL, MAREY_TYPE_F64, MAREY_UNIT_SHARE},
    {"epochs", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    MAREY__NUMBER_COLUMN("epoch_time_s", "s/epoch"),
    MAREY__NUMBER_COLUMN("joules_per_epoch", "J/epoch"),
    MAREY__NUMBER_COLUMN("itwinai_wh", "itwinai Wh"),
    {"note", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
};
static const struct marey_column repeat_columns[] = {
    {"strategy", NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE},
    {"num_gpus", "GPUs", MAREY_TYPE_U64, MAREY_UNIT_NONE},
    {"runs", NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE},
    MAREY__NUMBER_COLUMN("mean_j", "mean J"),
    MAREY__NUMBER_COLUMN("low_j", "from J"),
    MAREY__NUMBER_COLUMN("high_j", "to J"),
    MAREY__NUMBER_COLUMN("itwinai_wh", "itwinai Wh"),
};

/* A run's GPUs together. */
struct total {
    const struct marey__old_run *run, *epochs; /* the second NULL: not known */
    uint64_t n_gpus, n_nodes, n_readings;
    double nominal_j, joules, interval_s, duration_s, mean_w, peak_w, sum_w, sum_use, n_use;
};

/* ---- sums ---- */

/* Held for half an interval at both ends, since a reading stands for the time around it. */
static double gpu_joules(const struct marey__old_gpu *gpu, double interval_s)
{
    return interval_s * (gpu->trapezoids_w + (gpu->first_w + gpu->last_w) / 2);
}

static const struct marey__old_run *find_epochs(const struct marey__old_energy *energy,
                                                const struct total *total)
{
    for (size_t i = 0; i < energy->run_keys.n; i++) {
        const struct marey__old_run *run = &energy->runs[i];
        if (run->is_epochs && run->num_gpus == total->n_nodes &&
            run->repeat == total->run->repeat && strcmp(run->name, total->run->name) == 0 &&
            strcmp(run->strategy, total->run->strategy) == 0)
            return run;
    }
    return NULL;
}

/* What the readings alone say, of all runs. */
static void add_gpus(const struct marey__old_energy *energy, struct total *totals)
{
    for (size_t i = 0; i < energy->run_keys.n; i++)
        totals[i] = (struct total){.run = &energy->runs[i], .interval_s = energy->runs[i].interval_s};
    for (size_t i = 0; i < energy->gpu_keys.n; i++) {
        const struct marey__old_gpu *gpu = &energy->gpus[i];
        struct total *total = &totals[gpu->run];
        total->n_gpus++;
        total->n_nodes = MAREY__MAX(total->n_nodes, gpu->node + 1);
        total->n_readings += gpu->n;
        total->nominal_j += gpu_joules(gpu, total->interval_s);
        total->sum_w += gpu->sum_w;
        total->peak_w += gpu->peak_w;
        total->sum_use += gpu->sum_use;
        total->n_use += gpu->n_use;
        total->duration_s = fmax(total->duration_s, (gpu->last_index + 1) * total->run->interval_s);
    }
}

/* Training and its readings began and ended together, or the files are not of one run. */
static void take_epochs(const struct marey__old_energy *energy, struct total *total)
{
    const struct marey__old_run *epochs = find_epochs(energy, total);
    const double ratio = epochs != NULL ? epochs->epochs_s / total->duration_s : 0;
    const bool fits = ratio > 0.5 && ratio < 3;
    total->epochs = fits ? epochs : NULL;
    total->interval_s *= fits ? ratio : 1;
    total->duration_s *= fits ? ratio : 1;
    total->joules = total->nominal_j * (fits ? ratio : 1);
    total->mean_w = total->joules / total->duration_s;
}

/* ---- rows ---- */

static void put_real(marey_table *table, double value, bool is_known)
{
    if (is_known && isfinite(value))
        marey_table_f64(table, value);
    else
        marey_table_null(table);
}

static double old_wh(const struct total *total)
{
    return total->sum_w * total->run->interval_s / 3600;
}

static void put_run(marey_table *table, const struct total *total)
{
    const struct marey__old_run *run = total->run, *epochs = total->epochs;
    const double doubt = fabs(total->joules - total->nominal_j) +
                         total->mean_w * total->interval_s; /* half of one at each end */
    const char *note = run->has_intervals               ? "several intervals: the last is taken"
                       : total->n_gpus != run->num_gpus ? "not all GPUs were measured"
                       : epochs == NULL ? "nominal interval: epoch times are not known"
                                        : "";
    marey__put_string(table, run->name);
    marey_table_u64(table, run->repeat + 1);
    marey__put_string(table, run->strategy);
    marey_table_u64(table, run->num_gpus);
    marey_table_u64(table, total->n_nodes);
    marey_table_u64(table, total->n_gpus);
    marey_table_u64(table, total->n_readings);
    put_real(table, run->interval_s, true);
    put_real(table, total->interval_s, epochs != NULL);
    put_real(table, total->duration_s, true);
    put_real(table, total->joules, true);
    put_real(table, doubt, true);
    put_real(table, total->mean_w, true);
    put_real(table, total->peak_w, true);
    put_real(table, total->sum_use / total->n_use / 100, total->n_use > 0);
    if (epochs != NULL)
        marey_table_u64(table, epochs->n_epochs);
    else
        marey_table_null(table);
    put_real(table, epochs != NULL ? epochs->epochs_s / (double)epochs->n_epochs : 0, epochs != NULL);
    put_real(table, epochs != NULL ? total->joules / (double)epochs->n_epochs : 0, epochs != NULL);
    put_real(table, old_wh(total), true);
    marey__put_string(table, note);
}

static bool is_same_job(const struct marey__old_run *a, const struct marey__old_run *b)
{
    return a->is_epochs == b->is_epochs && a->num_gpus == b->num_gpus &&
           strcmp(a->strategy, b->strategy) == 0;
}

/* Runs of one strategy and number of GPUs, told with the first of them. */
static void put_repeats(marey_table *table, const struct total *totals, size_t n_runs, size_t first)
{
    const struct marey__old_run *run = totals[first].run;
    double n = 0, sum = 0, squares = 0, wh = 0;
    for (size_t i = 0; i < first; i++)
        if (is_same_job(totals[i].run, run))
            return;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = first; i < n_runs; i++) {
            if (!is_same_job(totals[i].run, run))
                continue;
            const double off = pass == 1 ? totals[i].joules - sum / n : 0;
            squares += off * off;
            n += pass == 0;
            sum += pass == 0 ? totals[i].joules : 0;
            wh += pass == 0 ? old_wh(&totals[i]) : 0;
        }
    const double half = n > 1 ? marey__t_quantile(0.95, n - 1) * sqrt(squares / (n - 1) / n) : 0;
    marey__put_string(table, run->strategy);
    marey_table_u64(table, run->num_gpus);
    marey_table_u64(table, (uint64_t)n);
    put_real(table, sum / n, true);
    put_real(table, sum / n - half, n > 1);
    put_real(table, sum / n + half, n > 1);
    put_real(table, wh, true);
}

static marey_status fill(const struct marey__old_energy *energy, marey_table *runs,
                         marey_table *repeats)
{
    const size_t n = energy->run_keys.n;
    struct total *totals = marey__calloc(n + 1, sizeof *totals);
    MAREY__TRY_MEMORY(totals != NULL);
    add_gpus(energy, totals);
    for (size_t i = 0; i < n; i++)
        if (!energy->runs[i].is_epochs) {
            take_epochs(energy, &totals[i]);
            put_run(runs, &totals[i]);
        }
    for (size_t i = 0; i < n; i++)
        if (!energy->runs[i].is_epochs)
            put_repeats(repeats, totals, n, i);
    marey__free(totals);
    MAREY_TRY(marey_table_status(runs));
    return marey_table_status(repeats);
}

marey_status marey__old_energy_tables(const struct marey__old_energy *energy, marey_table **runs,
                                      marey_table **repeats)
{
    marey_table *of_runs = NULL, *of_repeats = NULL;
    marey_status status =
        marey_table_create("runs", run_columns, MAREY__COUNT_OF(run_columns), &of_runs);
    if (status == MAREY_OK)
        status = marey_table_create("repeats", repeat_columns, MAREY__COUNT_OF(repeat_columns),
                                    &of_repeats);
    if (status == MAREY_OK)
        status = fill(energy, of_runs, of_repeats);
    if (status != MAREY_OK) {
        marey_table_destroy(of_runs);
        marey_table_destroy(of_repeats);
        return status;
    }
    *runs = of_runs;
    *repeats = of_repeats;
    return MAREY_OK;
}

/* ---- files ---- */

static marey_status read_energy(void *ctx, marey__byte_source *bytes, const char *path, bool *is_other)
{
    return marey__old_energy_read(ctx, bytes, path, is_other);
}

marey_status marey_legacy_energy_read(const char *const *paths, size_t n, marey_table **runs,
                                      marey_table **repeats, uint64_t *n_dropped)
{
    struct marey__old_energy energy = {0};
    marey_status status = MAREY_OK;
    size_t n_files;
    for (size_t i = 0; status == MAREY_OK && i < n; i++)
        status = marey__csv_read_path(paths[i], read_energy, &energy, &n_files);
    if (status == MAREY_OK && energy.gpu_keys.n == 0)
        status = marey__fail(MAREY_EFORMAT,
                             "%s has no readings of GPU power as itwinai 0.3 wrote them "
                             "(gpu-energy-data/*.csv)",
                             n > 0 ? paths[0] : "nothing");
    if (status == MAREY_OK)
        status = marey__old_energy_tables(&energy, runs, repeats);
    if (status == MAREY_OK)
        *n_dropped = energy.n_dropped;
    marey__old_energy_fini(&energy);
    return status;
}
