/*
 * Scaling as itwinai's report has it: its tables and columns. What they say is ours: medians without warm-up in place of means
 * with it, energy of one run in place of the sum over repeats, and keys below their own titles.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/walk/columns.h"
#include "present/scaling/scaling_out.h"

struct making {
    marey_scaling *scaling;
    const marey_table *points;
    marey_table *table;
    bool failed; /* without memory */
};

static double number(const marey_table *table, size_t row, const char *column)
{
    const struct marey_cell cell = marey__cell_of(table, row, column);
    return cell.is_null ? NAN : cell.as.f64;
}

static bool is_text(const marey_table *table, size_t row, const char *column,
                    const struct marey_cell *other)
{
    const struct marey_cell cell = marey__cell_of(table, row, column);
    return cell.len == other->len &&
           (cell.len == 0 || memcmp(cell.as.text, other->as.text, cell.len) == 0);
}

static void put(marey_table *table, double value, const char *format, double times)
{
    char text[64];
    if (isnan(value)) {
        marey_table_null(table);
        return;
    }
    snprintf(text, sizeof text, format, value * times);
    marey_table_text(table, text, strlen(text));
}

static void put_key(struct making *m, size_t row)
{
    const struct marey_cell strategy = marey__cell_of(m->points, row, "strategy");
    marey_table_text(m->table, strategy.as.text, strategy.len);
    marey_table_u64(m->table, marey__cell_of(m->points, row, "workers").as.u64);
}

static void put_runs(struct making *m, size_t row)
{
    marey_table_u64(m->table, marey__cell_of(m->points, row, "runs").as.u64);
}

/* ---- epochs ---- */

static void put_epoch(struct making *m, size_t row)
{
    char text[64];
    const double low = number(m->points, row, "low_s"), high = number(m->points, row, "high_s"),
                 time = number(m->points, row, "time_s");
    const struct marey_cell measure = marey__cell_of(m->points, row, "measure");
    if (isnan(time) || measure.is_null || strcmp(measure.as.text, "epoch") != 0)
        return;
    put_key(m, row);
    put(m->table, time, "%.2f s", 1);
    snprintf(text, sizeof text, "%.2f .. %.2f s", low, high);
    if (isnan(low) || isnan(high))
        marey_table_null(m->table);
    else
        marey_table_text(m->table, text, strlen(text));
    put(m->table, number(m->points, row, "speedup"), "%.2f", 1);
    put(m->table, number(m->points, row, "efficiency"), "%.1f %%", 100);
    put_runs(m, row);
}

/* ---- GPUs ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the joules of a point's runs; NaN when none of them has any. */
static double joules_of(struct making *m, size_t row)
{
    const marey_table *const runs = marey_scaling_table(m->scaling, "runs");
    const struct marey_cell experiment = marey__cell_of(m->points, row, "experiment"),
                            strategy = marey__cell_of(m->points, row, "strategy");
    const uint64_t workers = marey__cell_of(m->points, row, "workers").as.u64;
    double *const joules = marey__calloc(marey_table_n_rows(runs) + 1, sizeof *joules);
    size_t n = 0;
    m->failed |= joules == NULL;
    for (size_t i = 0; joules != NULL && i < marey_table_n_rows(runs); i++) {
        joules[n] = number(runs, i, "joules");
        n += marey__cell_of(runs, i, "workers").as.u64 == workers && !isnan(joules[n]) &&
             is_text(runs, i, "experiment", &experiment) && is_text(runs, i, "strategy", &strategy);
    }
    if (n != 0)
        qsort(joules, n, sizeof *joules, by_size);
    const double median = n != 0 ? (joules[(n - 1) / 2] + joules[n / 2]) / 2 : NAN;
    marey__free(joules);
    return median;
}

static void put_gpu(struct making *m, size_t row)
{
    enum { JOULES_PER_WH = 3600 };
    const double joules = joules_of(m, row), utilization = number(m->points, row, "utilization");
    if (isnan(joules) && isnan(utilization))
        return;
    put_key(m, row);
    put(m->table, joules, "%.2f Wh", 1.0 / JOULES_PER_WH);
    put(m->table, utilization, "%.2f %%", 100);
    put_runs(m, row);
}

/* ---- fractions ---- */

/* By itwinai's rule of names, from its averages; else what the first `n` parts of a step say. */
static void put_fraction(struct making *m, size_t row, const char *column, size_t n)
{
    static const char *const parts[] = {"compute_s", "communication_s", "memory_s", "idle_s"};
    double fraction = number(m->points, row, column);
    if (isnan(fraction))
        fraction = marey__scaling_share(m->points, row, parts[0], parts, n);
    if (isnan(fraction))
        return;
    put_key(m, row);
    put(m->table, fraction, "%.2f %%", 100);
}

static void put_computation(struct making *m, size_t row)
{
    put_fraction(m, row, "computation_fraction", 4);
}

static void put_communication(struct making *m, size_t row)
{
    put_fraction(m, row, "computation_vs_communication", 2);
}

/* ---- all ---- */

static const struct marey_column epoch_columns[] = {
    TEXT("strategy"), WHOLE("global_world_size"), TEXT("avg_epoch_time"), TEXT("interval"),
    TEXT("speedup"),  TEXT("efficiency"),         WHOLE("runs")};
static const struct marey_column gpu_columns[] = {TEXT("strategy"), WHOLE("global_world_size"),
                                                  TEXT("total_energy_wh"), TEXT("utilization"),
                                                  WHOLE("runs")};
static const struct marey_column computation_columns[] = {TEXT("strategy"), WHOLE("num_gpus"),
                                                          TEXT("computation_fraction")};
static const struct marey_column communication_columns[] = {TEXT("strategy"), WHOLE("num_gpus"),
                                                            TEXT("computation_vs_communication")};

static const struct section {
    const char *name;
    const struct marey_column *columns;
    size_t n;
    void (*put)(struct making *m, size_t row);
} sections[] = {
    {"epoch", epoch_columns, MAREY__COUNT_OF(epoch_columns), put_epoch},
    {"gpu", gpu_columns, MAREY__COUNT_OF(gpu_columns), put_gpu},
    {"computation", computation_columns, MAREY__COUNT_OF(computation_columns), put_computation},
    {"communication", communication_columns, MAREY__COUNT_OF(communication_columns),
     put_communication},
};

marey_status marey_scaling_itwinai(marey_scaling *scaling, const char *name, marey_table **out)
{
    const struct section *section = NULL;
    for (size_t i = 0; i < MAREY__COUNT_OF(sections); i++)
        if (strcmp(sections[i].name, name) == 0)
            section = &sections[i];
    if (section == NULL)
        return marey__fail(MAREY_EINVAL, "itwinai's report has no part '%s'", name);
    struct making m = {.scaling = scaling, .points = marey_scaling_table(scaling, "points")};
    MAREY_TRY(marey_table_create(name, section->columns, section->n, &m.table));
    for (size_t row = 0; row < marey_table_n_rows(m.points); row++)
        section->put(&m, row);
    const marey_status status = m.failed ? marey__no_memory() : marey_table_status(m.table);
    if (status == MAREY_OK)
        *out = m.table;
    else
        marey_table_destroy(m.table);
    return status;
}
