/* Pictures of bars, by number of workers and series: a row of the table for each. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/scaling/internal.h"

struct bars_picture {
    const char *name, *title, *y_title;
    const char *itwinai;               /* its name there, where the picture is the same; NULL */
    const char *parts[4], *columns[4]; /* a part without a column is what is missing to all of it */
    uint32_t colors[4];
    const char *low, *high;
    double times, y_at_most;
    bool is_of_runs;            /* from the table of runs: the median of repeats */
    bool is_share;              /* of all columns together */
    bool is_seconds, is_joules; /* the unit fits the largest */
    const char *note;
};

static const struct bars_picture pictures[] = {
    {.name = "step-breakdown",
     .title = "What a step is made of",
     .y_title = "time of a step, mean over ranks",
     .parts = {"computation", "exposed communication", "exposed copies", "idle"},
     .columns = {"compute_s", "communication_s", "memory_s", "idle_s"},
     .colors = {0, 1, 5, 7},
     .times = 1,
     .is_seconds = true},
    {.name = "energy",
     .title = "Energy of an epoch",
     .y_title = "energy of an epoch, all workers",
     .parts = {"energy"},
     .columns = {"joules_per_epoch"},
     .low = "joules_low",
     .high = "joules_high",
     .times = 1,
     .is_joules = true},
    {.name = "gpu_energy_plot",
     .title = "Energy of a run",
     .y_title = "energy of a run (Wh), median of repeats",
     .parts = {"energy"},
     .columns = {"joules"},
     .times = 1.0 / 3600,
     .is_of_runs = true,
     .note = "Of one run with all its workers; repeats are not added up."},
    {.name = "gpu_energy_plot", /* where it is known of epochs alone */
     .title = "Energy of an epoch",
     .y_title = "energy of an epoch (Wh), all workers",
     .parts = {"energy"},
     .columns = {"joules_per_epoch"},
     .low = "joules_low",
     .high = "joules_high",
     .times = 1.0 / 3600},
    {.name = "utilization",
     .itwinai = "utilization_plot",
     .title = "GPU utilization",
     .y_title = "utilization (%)",
     .parts = {"utilization"},
     .columns = {"utilization"},
     .times = 100,
     .y_at_most = 100},
    {.name = "computation_vs_other_plot",
     .title = "Computation and other, as itwinai counts",
     .y_title = "share of GPU time (%)",
     .parts = {"computation", "other"},
     .columns = {"computation_fraction"},
     .colors = {0, 7},
     .times = 100,
     .y_at_most = 100,
     .note = "Sums of durations: what ran at the same time counts twice. Do not compare strategies "
             "by it."},
    {.name = "computation_vs_other_plot", /* of runs without averages */
     .title = "Computation and other",
     .y_title = "share of a step (%), mean over ranks",
     .parts = {"computation", "exposed communication", "exposed copies", "idle"},
     .columns = {"compute_s", "communication_s", "memory_s", "idle_s"},
     .colors = {0, 1, 5, 7},
     .times = 100,
     .y_at_most = 100,
     .is_share = true},
    {.name = "computation_vs_communication_plot",
     .title = "Computation and communication, as itwinai counts",
     .y_title = "share of the two (%)",
     .parts = {"computation", "communication"},
     .columns = {"computation_vs_communication"},
     .colors = {0, 1},
     .times = 100,
     .y_at_most = 100,
     .note = "Sums of durations: what ran at the same time counts twice. Do not compare strategies "
             "by it."},
    {.name = "computation_vs_communication_plot",
     .title = "Computation and exposed communication",
     .y_title = "share of the two (%)",
     .parts = {"computation", "exposed communication"},
     .columns = {"compute_s", "communication_s"},
     .colors = {0, 1},
     .times = 100,
     .y_at_most = 100,
     .is_share = true},
};

/* What bars are made of, by number of workers and series; those without any value are not among them. */
struct grid {
    uint32_t *workers; /* by number */
    size_t *slots;     /* of each series of the list; SIZE_MAX: none */
    size_t n_groups, n_series, n_parts;
    const char **groups, **series;
    uint32_t *colors; /* of series, as in other pictures */
    char (*labels)[16];
    double *values, *low, *high;
    double *repeats; /* room to find a median in */
};

static void grid_fini(struct grid *grid)
{
    marey__free(grid->workers);
    marey__free(grid->slots);
    marey__free(grid->groups);
    marey__free(grid->series);
    marey__free(grid->colors);
    marey__free(grid->labels);
    marey__free(grid->values);
    marey__free(grid->low);
    marey__free(grid->high);
    marey__free(grid->repeats);
}

/* ---- values ---- */

static bool is_run_of(const marey_table *runs, size_t run, const marey_table *points, size_t row)
{
    return strcmp(marey__cell_of(runs, run, "experiment").as.text,
                  marey__cell_of(points, row, "experiment").as.text) == 0 &&
           strcmp(marey__cell_of(runs, run, "strategy").as.text,
                  marey__cell_of(points, row, "strategy").as.text) == 0 &&
           marey__cell_of(runs, run, "workers").as.u64 ==
               marey__cell_of(points, row, "workers").as.u64;
}

/* Of the runs of a point that know it; NaN: none does. */
static double median_of_runs(const struct marey__scaling_drawing *drawing, struct grid *grid,
                             size_t row, const char *column)
{
    const marey_table *runs = marey_report_table(drawing->report, "runs");
    size_t n = 0;
    for (size_t run = 0; run < marey_table_n_rows(runs); run++) {
        const double value = marey__scaling_number(runs, run, column);
        if (!isfinite(value) || !is_run_of(runs, run, drawing->list.points, row))
            continue;
        size_t at = n++;
        for (; at > 0 && grid->repeats[at - 1] > value; at--)
            grid->repeats[at] = grid->repeats[at - 1];
        grid->repeats[at] = value;
    }
    return n == 0 ? NAN : (grid->repeats[(n - 1) / 2] + grid->repeats[n / 2]) / 2;
}

static double value_of(const struct marey__scaling_drawing *drawing,
                       const struct bars_picture *picture, struct grid *grid, size_t row, size_t part)
{
    if (picture->columns[part] == NULL)
        return 1 - marey__scaling_number(drawing->list.points, row, picture->columns[0]);
    if (picture->is_share)
        return marey__scaling_share(drawing->list.points, row, picture->columns[part],
                                    picture->columns, grid->n_parts);
    return picture->is_of_runs
               ? median_of_runs(drawing, grid, row, picture->columns[part])
               : marey__scaling_number(drawing->list.points, row, picture->columns[part]);
}

static bool has_value(const struct marey__scaling_drawing *drawing,
                      const struct bars_picture *picture, struct grid *grid, size_t row)
{
    for (size_t p = 0; p < grid->n_parts; p++)
        if (isfinite(value_of(drawing, picture, grid, row, p)))
            return true;
    return false;
}

/* ---- groups and series ---- */

static size_t find_group(const struct grid *grid, uint64_t workers)
{
    size_t g = 0;
    while (g < grid->n_groups && grid->workers[g] < workers)
        g++;
    return g;
}

static void add_group(struct grid *grid, uint64_t workers)
{
    const size_t g = find_group(grid, workers);
    if (g < grid->n_groups && grid->workers[g] == workers)
        return;
    memmove(&grid->workers[g + 1], &grid->workers[g], (grid->n_groups - g) * sizeof grid->workers[0]);
    grid->workers[g] = (uint32_t)workers;
    grid->n_groups++;
}

static void add_series(struct grid *grid, const struct marey__scaling_drawing *drawing, size_t s)
{
    if (grid->slots[s] != SIZE_MAX)
        return;
    grid->series[grid->n_series] = drawing->list.series[s].name;
    grid->colors[grid->n_series] = (uint32_t)(s % MAREY__CHART_COLORS);
    grid->slots[s] = grid->n_series++;
}

static void collect(struct grid *grid, const struct marey__scaling_drawing *drawing,
                    const struct bars_picture *picture)
{
    const struct marey__scaling_list *list = &drawing->list;
    for (size_t s = 0; s < list->n; s++) {
        const struct marey__scaling_line *of = &list->series[s];
        grid->slots[s] = SIZE_MAX;
        for (size_t row = of->first; row < of->first + of->n; row++)
            if (has_value(drawing, picture, grid, row)) {
                add_group(grid, marey__cell_of(list->points, row, "workers").as.u64);
                add_series(grid, drawing, s);
            }
    }
    for (size_t g = 0; g < grid->n_groups; g++) {
        snprintf(grid->labels[g], sizeof grid->labels[g], "%" PRIu32, grid->workers[g]);
        grid->groups[g] = grid->labels[g];
    }
}

static marey_status grid_init(struct grid *grid, const struct marey__scaling_drawing *drawing,
                              const struct bars_picture *picture)
{
    const size_t n_runs = marey_table_n_rows(marey_report_table(drawing->report, "runs"));
    const size_t n_rows = marey_table_n_rows(drawing->list.points) + 1,
                 n_series = drawing->list.n + 1;
    while (grid->n_parts < MAREY__COUNT_OF(picture->parts) && picture->parts[grid->n_parts] != NULL)
        grid->n_parts++;
    grid->workers = marey__calloc(n_rows, sizeof *grid->workers);
    grid->groups = marey__calloc(n_rows, sizeof *grid->groups);
    grid->labels = marey__calloc(n_rows, sizeof *grid->labels);
    grid->slots = marey__calloc(n_series, sizeof *grid->slots);
    grid->series = marey__calloc(n_series, sizeof *grid->series);
    grid->colors = marey__calloc(n_series, sizeof *grid->colors);
    grid->repeats = marey__calloc(n_runs + 1, sizeof *grid->repeats);
    MAREY__TRY_MEMORY(grid->workers != NULL && grid->groups != NULL && grid->labels != NULL &&
                      grid->slots != NULL && grid->series != NULL && grid->colors != NULL &&
                      grid->repeats != NULL);
    collect(grid, drawing, picture);
    const size_t n_bars = grid->n_groups * grid->n_series;
    grid->values = marey__calloc(n_bars * grid->n_parts + 1, sizeof *grid->values);
    grid->low = marey__calloc(n_bars + 1, sizeof *grid->low);
    grid->high = marey__calloc(n_bars + 1, sizeof *grid->high);
    return grid->values != NULL && grid->low != NULL && grid->high != NULL ? MAREY_OK
                                                                           : marey__no_memory();
}

static void fill_bar(const struct marey__scaling_drawing *drawing, const struct bars_picture *picture,
                     double times, struct grid *grid, size_t row, size_t slot)
{
    const marey_table *points = drawing->list.points;
    const size_t g = find_group(grid, marey__cell_of(points, row, "workers").as.u64);
    if (g == grid->n_groups || grid->workers[g] != marey__cell_of(points, row, "workers").as.u64)
        return;
    const size_t bar = g * grid->n_series + slot;
    for (size_t p = 0; p < grid->n_parts; p++)
        grid->values[bar * grid->n_parts + p] = times * value_of(drawing, picture, grid, row, p);
    grid->low[bar] = times * marey__scaling_optional(points, row, picture->low);
    grid->high[bar] = times * marey__scaling_optional(points, row, picture->high);
}

static void fill_grid(const struct marey__scaling_drawing *drawing,
                      const struct bars_picture *picture, double times, struct grid *grid)
{
    const struct marey__scaling_list *list = &drawing->list;
    const size_t n_bars = grid->n_groups * grid->n_series;
    for (size_t i = 0; i < n_bars * grid->n_parts; i++)
        grid->values[i] = NAN;
    for (size_t i = 0; i < n_bars; i++)
        grid->low[i] = grid->high[i] = NAN;
    for (size_t s = 0; s < list->n; s++)
        for (size_t i = 0; grid->slots[s] != SIZE_MAX && i < list->series[s].n; i++)
            fill_bar(drawing, picture, times, grid, list->series[s].first + i, grid->slots[s]);
}

/* ---- the picture ---- */

static double name_bars(struct marey__scaling_drawing *drawing, const struct bars_picture *picture)
{
    drawing->words.title = picture->title;
    drawing->words.y_title = picture->y_title;
    drawing->words.note = picture->note;
    if (!picture->is_seconds && !picture->is_joules)
        return picture->times;
    const struct marey__scaling_unit unit =
        marey__scaling_unit_for(marey__scaling_largest(drawing->list.points, picture->columns,
                                                       MAREY__COUNT_OF(picture->columns)),
                                picture->is_joules);
    snprintf(drawing->y_title, sizeof drawing->y_title, "%s (%s)", picture->y_title, unit.name);
    drawing->words.y_title = drawing->y_title;
    return unit.times;
}

static marey_status draw(struct marey__scaling_drawing *drawing, const struct bars_picture *picture,
                         bool *is_drawn)
{
    struct grid grid = {0};
    const marey_status status = grid_init(&grid, drawing, picture);
    if (status == MAREY_OK) {
        fill_grid(drawing, picture, name_bars(drawing, picture), &grid);
        const struct marey__bars bars = {.words = drawing->words,
                                         .groups = grid.groups,
                                         .series = grid.series,
                                         .parts = picture->parts,
                                         .n_groups = grid.n_groups,
                                         .n_series = grid.n_series,
                                         .series_colors = grid.colors,
                                         .n_parts = grid.n_parts,
                                         .part_colors = picture->colors,
                                         .values = grid.values,
                                         .low = grid.low,
                                         .high = grid.high,
                                         .tells_first = picture->columns[grid.n_parts - 1] == NULL,
                                         .y_at_most = picture->y_at_most};
        *is_drawn = marey__chart_bars(&bars, drawing->svg);
    }
    grid_fini(&grid);
    return status;
}

marey_status marey__scaling_draw_bars(struct marey__scaling_drawing *drawing, const char *name,
                                      bool *is_known, bool *is_drawn)
{
    /* Of several rows with the name, the first that there are data for. */
    for (size_t i = 0; i < MAREY__COUNT_OF(pictures) && !*is_drawn; i++)
        if (strcmp(pictures[i].name, name) == 0 ||
            (pictures[i].itwinai != NULL && strcmp(pictures[i].itwinai, name) == 0)) {
            *is_known = true;
            MAREY_TRY(draw(drawing, &pictures[i], is_drawn));
        }
    return MAREY_OK;
}
