/*
 * itwinai's older files as runs. A file of GPU power says how many GPUs there are and a file of epochs how many nodes;
 * both together are a run where run, strategy, repeat and nodes agree. Averages say a share of computation for a strategy
 * and a number of GPUs, over all runs thrown together: each such run gets it.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/device/legacy_energy.h"
#include "analyze/scaling/scaling_read.h"

struct old {
    const struct marey__scaling_reading *reading;
    const char *path;
    struct marey__old_energy energy;
    struct marey__legacy legacy;
    marey_table *gpus, *repeats,
        *fractions; /* as marey_legacy_energy_read() and marey_legacy_read() have them */
    bool *is_taken; /* by run: epochs that were put to GPUs */
    bool *is_told;  /* by row of `fractions`: some run has it */
};

/* ---- files ---- */

/* A file that is damaged is told, and what was read of it counts. */
static marey_status tell_failure(const struct old *old, marey_status status, bool *is_other)
{
    if (status == MAREY_OK || status == MAREY_ENOMEM || *is_other)
        return status;
    return marey__scaling_read_note(old->reading, "Read in part: %s.", marey_last_error());
}

static marey_status read_energy(void *ctx, marey__byte_source *bytes, const char *path, bool *is_other)
{
    struct old *old = ctx;
    return tell_failure(old, marey__old_energy_read(&old->energy, bytes, path, is_other), is_other);
}

static marey_status read_averages(void *ctx, marey__byte_source *bytes, const char *path,
                                  bool *is_other)
{
    struct old *old = ctx;
    return tell_failure(old, marey__legacy_read_csv(&old->legacy, bytes, path, is_other), is_other);
}

/* A single file is of one of the two kinds. */
static marey_status read_files(struct old *old)
{
    size_t n_energy = 0, n_averages = 0;
    const marey_status of_energy = marey__csv_read_path(old->path, read_energy, old, &n_energy);
    if (of_energy == MAREY_ENOMEM)
        return of_energy;
    const marey_status of_averages = marey__csv_read_path(old->path, read_averages, old, &n_averages);
    if (of_averages == MAREY_ENOMEM || (of_energy != MAREY_OK && of_averages != MAREY_OK))
        return of_averages;
    const uint64_t n_dropped = old->energy.n_dropped + old->legacy.n_dropped;
    if (n_dropped != 0)
        MAREY_TRY(marey__scaling_read_note(old->reading,
                                           "%s: %" PRIu64
                                           " rows of itwinai's files lack something, and "
                                           "are left out.",
                                           old->path, n_dropped));
    MAREY_TRY(marey__old_energy_tables(&old->energy, &old->gpus, &old->repeats));
    return marey__legacy_table(&old->legacy, &old->fractions);
}

/* ---- cells ---- */

static struct marey_cell cell_at(const marey_table *table, size_t row, const char *column)
{
    return marey_table_cell(table, row, (size_t)marey_table_find(table, column));
}

static double real_at(const marey_table *table, size_t row, const char *column)
{
    const struct marey_cell cell = cell_at(table, row, column);
    return cell.is_null ? NAN : cell.as.f64;
}

static bool is_text(struct marey_cell cell, const char *text)
{
    return cell.len == strlen(text) && memcmp(cell.as.text, text, cell.len) == 0;
}

/* ---- epochs ---- */

/* The epochs of GPUs in row `row`; run_keys.n for none. */
static size_t find_epochs(const struct old *old, size_t row)
{
    size_t i = 0;
    for (; i < old->energy.run_keys.n; i++) {
        const struct marey__old_run *run = &old->energy.runs[i];
        if (run->is_epochs && run->repeat + 1 == cell_at(old->gpus, row, "repeat").as.u64 &&
            run->num_gpus == cell_at(old->gpus, row, "nodes").as.u64 &&
            is_text(cell_at(old->gpus, row, "run"), run->name) &&
            is_text(cell_at(old->gpus, row, "strategy"), run->strategy))
            break;
    }
    return i;
}

/* How many GPUs so many nodes have, by what any run says, best one of the strategy; 0: nobody says. */
static uint64_t gpus_of_nodes(const struct old *old, const struct marey__old_run *epochs)
{
    uint64_t found = 0;
    for (size_t i = 0; i < marey_table_n_rows(old->gpus); i++) {
        if (cell_at(old->gpus, i, "nodes").as.u64 != epochs->num_gpus)
            continue;
        const uint64_t n = cell_at(old->gpus, i, "num_gpus").as.u64;
        if (is_text(cell_at(old->gpus, i, "strategy"), epochs->strategy))
            return n;
        found = found == 0 ? n : found;
    }
    return found;
}

/* ---- a run ---- */

static void add_fractions(const struct old *old, struct marey_scaling_run *run)
{
    for (size_t i = 0; i < marey_table_n_rows(old->fractions); i++) {
        if (!cell_at(old->fractions, i, "rank").is_null ||
            cell_at(old->fractions, i, "num_gpus").as.u64 != run->workers ||
            !is_text(cell_at(old->fractions, i, "strategy"), run->strategy))
            continue;
        run->computation_fraction = real_at(old->fractions, i, "computation_fraction");
        run->computation_vs_communication =
            real_at(old->fractions, i, "computation_vs_communication");
        old->is_told[i] = true;
    }
}

/* `epochs` is run_keys.n for none. */
static marey_status add_run(const struct old *old, struct marey_scaling_run *run, size_t epochs,
                            const char *name, uint64_t repeat)
{
    struct marey__buf text = {0};
    double *epoch_s = marey__calloc(old->energy.n_epochs + 1, sizeof *epoch_s);
    marey__buf_printf(&text, "%s: %s%s%s", old->path, name, name[0] != '\0' ? ", " : "",
                      run->strategy);
    if (repeat > 1)
        marey__buf_printf(&text, " (repeat %" PRIu64 ")", repeat);
    marey__buf_put(&text, "", 1);
    if (epoch_s == NULL || text.failed) {
        marey__free(epoch_s);
        marey__buf_fini(&text);
        return marey__no_memory();
    }
    for (size_t i = 0; i < old->energy.n_epochs; i++)
        if (old->energy.epochs[i].run == epochs && old->energy.epochs[i].s > 0)
            epoch_s[run->n_epochs++] = old->energy.epochs[i].s;
    run->epoch_s = epoch_s;
    run->name = text.data;
    add_fractions(old, run);
    const marey_status status = marey__scaling_read_add(old->reading, run);
    marey__free(epoch_s);
    marey__buf_fini(&text);
    return status;
}

/* Power of some of the GPUs says nothing of the run. */
static marey_status add_gpus(const struct old *old, size_t row)
{
    const struct marey_cell strategy = cell_at(old->gpus, row, "strategy"),
                            name = cell_at(old->gpus, row, "run");
    struct marey_scaling_run run = marey__scaling_run_unknown("");
    const uint64_t n_gpus = cell_at(old->gpus, row, "num_gpus").as.u64,
                   n_measured = cell_at(old->gpus, row, "measured_gpus").as.u64;
    const size_t epochs = find_epochs(old, row);
    run.strategy = strategy.as.text;
    run.workers = (uint32_t)n_gpus;
    run.nodes = (uint32_t)cell_at(old->gpus, row, "nodes").as.u64;
    run.utilization = real_at(old->gpus, row, "utilization");
    if (n_measured == n_gpus)
        run.joules = real_at(old->gpus, row, "joules");
    else
        MAREY_TRY(marey__scaling_read_note(old->reading,
                                           "%s: power is known of %" PRIu64 " of %" PRIu64
                                           " GPUs of %s, so that its energy is not.",
                                           old->path, n_measured, n_gpus, run.strategy));
    if (epochs < old->energy.run_keys.n)
        old->is_taken[epochs] = true;
    return add_run(old, &run, epochs, name.as.text, cell_at(old->gpus, row, "repeat").as.u64);
}

static marey_status add_epochs(const struct old *old, size_t i)
{
    const struct marey__old_run *epochs = &old->energy.runs[i];
    const uint64_t n_gpus = gpus_of_nodes(old, epochs);
    struct marey_scaling_run run = marey__scaling_run_unknown("");
    run.strategy = epochs->strategy;
    run.nodes = (uint32_t)epochs->num_gpus;
    run.workers = n_gpus != 0 ? (uint32_t)n_gpus : run.nodes;
    if (n_gpus == 0)
        MAREY_TRY(marey__scaling_read_note(old->reading,
                                           "%s: no file says how many GPUs %" PRIu64
                                           " nodes of %s have, "
                                           "so that nodes count as workers.",
                                           old->path, epochs->num_gpus, epochs->strategy));
    return add_run(old, &run, i, epochs->name, epochs->repeat + 1);
}

static marey_status add_averages(const struct old *old, size_t row)
{
    struct marey_scaling_run run = marey__scaling_run_unknown("");
    run.strategy = cell_at(old->fractions, row, "strategy").as.text;
    run.workers = (uint32_t)cell_at(old->fractions, row, "num_gpus").as.u64;
    return add_run(old, &run, old->energy.run_keys.n, "averages", 1);
}

/* ---- all ---- */

static marey_status add_all(struct old *old)
{
    old->is_taken = marey__calloc(old->energy.run_keys.n + 1, sizeof *old->is_taken);
    old->is_told = marey__calloc(marey_table_n_rows(old->fractions) + 1, sizeof *old->is_told);
    MAREY__TRY_MEMORY(old->is_taken != NULL && old->is_told != NULL);
    for (size_t i = 0; i < marey_table_n_rows(old->gpus); i++)
        MAREY_TRY(add_gpus(old, i));
    for (size_t i = 0; i < old->energy.run_keys.n; i++)
        if (old->energy.runs[i].is_epochs && !old->is_taken[i])
            MAREY_TRY(add_epochs(old, i));
    for (size_t i = 0; i < marey_table_n_rows(old->fractions); i++)
        if (!old->is_told[i] && cell_at(old->fractions, i, "rank").is_null)
            MAREY_TRY(add_averages(old, i));
    return MAREY_OK;
}

marey_status marey__scaling_read_old(const struct marey__scaling_reading *reading, const char *path)
{
    struct old old = {.reading = reading, .path = path};
    marey_status status = read_files(&old);
    if (status == MAREY_OK)
        status = add_all(&old);
    marey_table_destroy(old.gpus);
    marey_table_destroy(old.repeats);
    marey_table_destroy(old.fractions);
    marey__free(old.is_taken);
    marey__free(old.is_told);
    marey__old_energy_fini(&old.energy);
    marey__legacy_fini(&old.legacy);
    return status;
}
