/*
 * The charts of a report, by name. Those with itwinai's names show the same data as itwinai's, with labelled axes.
 *
 * A line chart has time, speedup, efficiency or throughput over workers, with the ideal line. A bar chart has a group
 * for each number of workers, with a bar for each series.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/compare/internal.h"
#include "analyze/scaling/internal.h"

enum { MAX_PARTS = 4, MAX_ROOMS = 10 };

enum ideal {
    BARS,             /* a bar chart */
    IDEAL_TIME,       /* the baseline's, divided by the ideal speedup; constant in weak scaling */
    IDEAL_SPEEDUP,    /* workers over the baseline's workers */
    IDEAL_EFFICIENCY, /* 1 */
    IDEAL_THROUGHPUT, /* the baseline's times the ideal speedup */
};

enum unit { FIXED, SECONDS, JOULES }; /* for the last two, the unit fits the largest value */

struct chart {
    const char *name, *alias; /* alias: itwinai's name; NULL: none */
    const char *title, *y_title;
    const char *columns[MAX_PARTS], *low, *high;
    enum ideal ideal;
    enum unit unit;
    double times, y_at_most;
    const char *note;
    /* Lines: */
    enum marey__chart_scale x_scale, y_scale;
    /* Bars: */
    const char *parts[MAX_PARTS]; /* a part without a column is 1 minus the first */
    uint32_t colors[MAX_PARTS];
    bool is_of_runs; /* from the table of runs: the median of repeats */
    bool is_share;   /* of the sum of all columns */
};

#define STEP_PARTS                                                                                 \
    .parts = {"computation", "exposed communication", "exposed copies", "idle"},                   \
    .columns = {"compute_s", "communication_s", "memory_s", "idle_s"}, .colors = {0, 1, 5, 7}
#define EPOCH_TIME                                                                                 \
    .title = "Time", .columns = {"time_s"}, .low = "low_s", .high = "high_s", .ideal = IDEAL_TIME, \
    .unit = SECONDS, .y_scale = MAREY__CHART_LOG10
#define EPOCH_ENERGY                                                                               \
    .title = "Energy of an epoch", .parts = {"energy"}, .columns = {"joules_per_epoch"},           \
    .low = "joules_low", .high = "joules_high"
#define OVERLAP_NOTE                                                                               \
    "Sums of durations: what ran at the same time counts twice. Do not compare strategies by it."

/* Of several entries with one name, the first with data is drawn. */
static const struct chart charts[] = {
    {.name = "epoch-time", EPOCH_TIME, .x_scale = MAREY__CHART_LOG2},
    {.name = "absolute_epoch_time", EPOCH_TIME, .x_scale = MAREY__CHART_LOG10},
    {.name = "speedup",
     .alias = "relative_epoch_time_speedup",
     .title = "Speedup over the smallest number of workers",
     .y_title = "speedup (times)",
     .columns = {"speedup"},
     .low = "speedup_low",
     .high = "speedup_high",
     .x_scale = MAREY__CHART_LOG2,
     .y_scale = MAREY__CHART_LOG2,
     .ideal = IDEAL_SPEEDUP,
     .times = 1},
    {.name = "efficiency",
     .title = "Parallel efficiency",
     .y_title = "efficiency (% of ideal)",
     .columns = {"efficiency"},
     .low = "efficiency_low",
     .high = "efficiency_high",
     .x_scale = MAREY__CHART_LOG2,
     .ideal = IDEAL_EFFICIENCY,
     .times = 100,
     .y_at_most = 100},
    {.name = "throughput",
     .title = "Throughput",
     .y_title = "throughput (samples/s)",
     .columns = {"throughput"},
     .x_scale = MAREY__CHART_LOG2,
     .y_scale = MAREY__CHART_LOG10,
     .ideal = IDEAL_THROUGHPUT,
     .times = 1},
    {.name = "step-breakdown",
     .title = "What a step is made of",
     .y_title = "time of a step, mean over ranks",
     STEP_PARTS,
     .unit = SECONDS},
    {.name = "energy", EPOCH_ENERGY, .y_title = "energy of an epoch, all workers", .unit = JOULES},
    {.name = "gpu_energy_plot",
     .title = "Energy of a run",
     .y_title = "energy of a run (Wh), median of repeats",
     .parts = {"energy"},
     .columns = {"joules"},
     .times = 1.0 / 3600,
     .is_of_runs = true,
     .note = "Of one run with all its workers; repeats are not added up."},
    {.name = "gpu_energy_plot", /* if only the energy of epochs is known */
     EPOCH_ENERGY,
     .y_title = "energy of an epoch (Wh), all workers",
     .times = 1.0 / 3600},
    {.name = "utilization",
     .alias = "utilization_plot",
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
     .note = OVERLAP_NOTE},
    {.name = "computation_vs_other_plot", /* for runs without averages */
     .title = "Computation and other",
     .y_title = "share of a step (%), mean over ranks",
     STEP_PARTS,
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
     .note = OVERLAP_NOTE},
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

/* One chart being drawn. */
struct drawing {
    const struct chart *chart;
    const struct marey__scaling_list *list;
    const marey_table *runs;
    struct marey__chart_words words;
    char y_title[96], title[96]; /* including a unit or a measure */
    double times;                /* factor for column values */
    struct marey__buf *svg;
    void *rooms[MAX_ROOMS]; /* arrays of this chart */
    size_t n_rooms;
    bool failed; /* out of memory */
};

/* An array of `n` + 1 elements, freed with the drawing. Sets `failed` on out of memory. */
static void *room(struct drawing *d, size_t n, size_t size)
{
    void *made = d->rooms[d->n_rooms++] = marey__calloc(n + 1, size);
    d->failed |= made == NULL;
    return made;
}

/* ---- titles and units ---- */

/* The largest sum of a row's columns. */
static double largest(const struct drawing *d)
{
    double most = 0;
    for (size_t row = 0; row < marey_table_n_rows(d->list->points); row++) {
        double sum = 0;
        for (size_t c = 0; c < MAX_PARTS && d->chart->columns[c] != NULL; c++) {
            const double value = marey__scaling_number(d->list->points, row, d->chart->columns[c]);
            sum += isfinite(value) ? value : 0;
        }
        most = fmax(most, sum);
    }
    return most;
}

/* "an epoch" if all points are measured by epochs. */
static const char *measured_thing(const marey_table *points)
{
    const char *measure =
        marey_table_n_rows(points) != 0 ? marey__cell_of(points, 0, "measure").as.text : NULL;
    for (size_t row = 1; measure != NULL && row < marey_table_n_rows(points); row++)
        if (strcmp(marey__cell_of(points, row, "measure").as.text, measure) != 0)
            return "an epoch or step";
    return measure == NULL                 ? "an epoch or step"
           : strcmp(measure, "epoch") == 0 ? "an epoch"
                                           : "a step";
}

/* Titles, and the largest unit that keeps the largest value above one. */
static void choose_titles(struct drawing *d)
{
    static const struct {
        const char *name;
        double times;
    } units[][3] = {
        [SECONDS] = {{"s", 1}, {"ms", 1e3}, {"µs", 1e6}}, [JOULES] = {{"MJ", 1e-6}, {"kJ", 1e-3}, {"J", 1}}};
    const struct chart *chart = d->chart;
    d->words.title = chart->title;
    d->words.y_title = chart->y_title;
    d->words.note = chart->note;
    d->times = chart->times;
    if (chart->unit == FIXED)
        return;
    const double most = largest(d);
    size_t u = 0;
    while (u < 2 && !(most * units[chart->unit][u].times >= 1))
        u++;
    d->times = units[chart->unit][u].times;
    d->words.y_title = d->y_title;
    if (chart->ideal != IDEAL_TIME) {
        snprintf(d->y_title, sizeof d->y_title, "%s (%s)", chart->y_title,
                 units[chart->unit][u].name);
        return;
    }
    const char *thing = measured_thing(d->list->points);
    snprintf(d->title, sizeof d->title, "Time of %s", thing);
    snprintf(d->y_title, sizeof d->y_title, "median time of %s (%s)", thing,
             units[chart->unit][u].name);
    d->words.title = d->title;
}

/* ---- lines ---- */

static double ideal_at(const struct drawing *d, const struct marey__scaling_line *series, size_t row)
{
    const marey_table *points = d->list->points;
    const double more = marey__scaling_number(points, row, "ideal"),
                 first = marey__scaling_number(points, series->first, d->chart->columns[0]);
    const char *kind = marey__cell_of(points, row, "kind").as.text;
    switch (d->chart->ideal) {
    case IDEAL_SPEEDUP:
        return more;
    case IDEAL_EFFICIENCY:
        return 1;
    case IDEAL_THROUGHPUT:
        return first * more;
    default:
        return strcmp(kind, "strong") == 0 ? first / more : strcmp(kind, "weak") == 0 ? first : NAN;
    }
}

/* Whether one dashed line suffices, because it is the same for all. */
static bool has_one_ideal(const struct drawing *d)
{
    const struct marey__scaling_list *list = d->list;
    if (d->chart->ideal == IDEAL_EFFICIENCY)
        return true;
    for (size_t s = 1; s < list->n; s++)
        if (marey__scaling_number(list->points, list->series[s].first, "workers") !=
            marey__scaling_number(list->points, list->series[0].first, "workers"))
            return false;
    return d->chart->ideal == IDEAL_SPEEDUP || list->n == 1;
}

static void fill_series(const struct drawing *d, const struct marey__scaling_line *of,
                        struct marey__chart_point *points, struct marey__chart_point *ideals)
{
    const marey_table *table = d->list->points;
    for (size_t row = of->first; row < of->first + of->n; row++) {
        const double x = marey__scaling_number(table, row, "workers");
        points[row] = (struct marey__chart_point){
            .x = x,
            .y = d->times * marey__scaling_number(table, row, d->chart->columns[0]),
            .low = d->times * marey__scaling_number(table, row, d->chart->low),
            .high = d->times * marey__scaling_number(table, row, d->chart->high),
        };
        ideals[row] = (struct marey__chart_point){
            .x = x, .y = d->times * ideal_at(d, of, row), .low = NAN, .high = NAN};
    }
}

static bool has_any(const struct marey__chart_series *series)
{
    for (size_t i = 0; i < series->n; i++)
        if (isfinite(series->points[i].y))
            return true;
    return false;
}

/* Make one line for all series, over all their workers; it becomes the first of `series`. */
static void join_ideals(struct marey__chart_series *series, size_t n,
                        struct marey__chart_point *ideals, size_t n_ideals)
{
    struct marey__chart_point first = ideals[0], last = ideals[0];
    for (size_t i = 0; i < n_ideals; i++) {
        first = ideals[i].x < first.x ? ideals[i] : first;
        last = ideals[i].x > last.x ? ideals[i] : last;
    }
    ideals[0] = first;
    ideals[1] = last;
    series[0] = (struct marey__chart_series){
        .points = ideals, .n = 2, .color = MAREY__CHART_MUTED, .is_ideal = true};
    for (size_t s = 1; s < n; s++)
        series[s].n = 0;
}

/* The series, then the ideal of each; then the ideal's name in the legend. */
static bool draw_lines(struct drawing *d)
{
    const struct marey__scaling_list *list = d->list;
    const size_t n_rows = marey_table_n_rows(list->points);
    struct marey__chart_point *points = room(d, n_rows, sizeof *points),
                              *ideals = room(d, n_rows, sizeof *ideals);
    struct marey__chart_series *series = room(d, 2 * list->n, sizeof *series);
    const bool is_one = has_one_ideal(d);
    bool has_ideal = false;
    if (d->failed)
        return false;
    for (size_t s = 0; s < list->n; s++) {
        const struct marey__scaling_line *of = &list->series[s];
        const uint32_t color = (uint32_t)(s % MAREY__CHART_COLORS);
        fill_series(d, of, points, ideals);
        series[s] =
            (struct marey__chart_series){.points = &points[of->first], .n = of->n, .color = color};
        series[list->n + s] =
            (struct marey__chart_series){.points = &ideals[of->first],
                                         .n = of->n,
                                         .color = list->n == 1 ? (uint32_t)MAREY__CHART_MUTED : color,
                                         .is_ideal = true};
        has_ideal |= has_any(&series[list->n + s]);
        if (has_any(&series[s]))
            series[s].name = of->name[0] != '\0' ? of->name : "measured";
    }
    if (is_one && list->n > 1)
        join_ideals(&series[list->n], list->n, ideals, n_rows);
    series[2 * list->n] = (struct marey__chart_series){.name = !has_ideal ? NULL
                                                               : is_one   ? "ideal"
                                                                          : "ideal for each",
                                                       .color = MAREY__CHART_MUTED,
                                                       .is_ideal = true};
    const struct marey__chart chart = {.words = d->words,
                                       .x_scale = d->chart->x_scale,
                                       .y_scale = d->chart->y_scale,
                                       .y_at_most = d->chart->y_at_most,
                                       .series = series,
                                       .n_series = 2 * list->n + 1};
    return marey__chart_lines(&chart, d->svg);
}

/* ---- bars ---- */

/* The median of a column over the runs of a point with a value; NaN: none. `repeats` has space for all runs. */
static double median_of_runs(const struct drawing *d, double *repeats, size_t row, const char *column)
{
    const marey_table *points = d->list->points;
    size_t n = 0;
    for (size_t run = 0; run < marey_table_n_rows(d->runs); run++) {
        const double value = marey__scaling_number(d->runs, run, column);
        if (isfinite(value) && marey__scaling_is_same_series(d->runs, run, points, row) &&
            marey__cell_of(d->runs, run, "workers").as.u64 ==
                marey__cell_of(points, row, "workers").as.u64)
            repeats[n++] = value;
    }
    return n == 0 ? NAN : marey__median(repeats, n);
}

static double value_of(const struct drawing *d, double *repeats, size_t row, size_t part)
{
    const struct chart *chart = d->chart;
    const marey_table *points = d->list->points;
    if (chart->columns[part] == NULL)
        return 1 - marey__scaling_number(points, row, chart->columns[0]);
    if (chart->is_of_runs)
        return median_of_runs(d, repeats, row, chart->columns[part]);
    const double value = marey__scaling_number(points, row, chart->columns[part]);
    if (!chart->is_share)
        return value;
    double sum = 0;
    for (size_t i = 0; i < MAX_PARTS && chart->columns[i] != NULL; i++)
        sum += marey__scaling_number(points, row, chart->columns[i]);
    return sum > 0 ? value / sum : NAN;
}

/* Bars by number of workers and series. Workers and series without any value are omitted. */
struct grid {
    size_t n_parts, n_groups, n_series;
    uint32_t *workers; /* of groups, ascending */
    const char **groups, **series;
    char (*labels)[16];
    uint32_t *colors;   /* of series, as in other charts */
    double *row_values; /* n_parts for each row of the points */
    double *values, *low, *high;
};

static size_t find_group(const struct grid *grid, uint64_t workers)
{
    size_t g = 0;
    while (g < grid->n_groups && grid->workers[g] < workers)
        g++;
    return g;
}

static bool row_has_values(const struct grid *grid, size_t row)
{
    for (size_t p = 0; p < grid->n_parts; p++)
        if (isfinite(grid->row_values[row * grid->n_parts + p]))
            return true;
    return false;
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

static void collect(struct grid *grid, const struct drawing *d, double *repeats)
{
    const struct marey__scaling_list *list = d->list;
    for (size_t s = 0; s < list->n; s++) {
        bool any = false;
        for (size_t row = list->series[s].first; row < list->series[s].first + list->series[s].n;
             row++) {
            for (size_t p = 0; p < grid->n_parts; p++)
                grid->row_values[row * grid->n_parts + p] = d->times * value_of(d, repeats, row, p);
            if (!row_has_values(grid, row))
                continue;
            add_group(grid, marey__cell_of(list->points, row, "workers").as.u64);
            any = true;
        }
        if (!any)
            continue;
        grid->series[grid->n_series] = list->series[s].name;
        grid->colors[grid->n_series++] = (uint32_t)(s % MAREY__CHART_COLORS);
    }
    for (size_t g = 0; g < grid->n_groups; g++) {
        snprintf(grid->labels[g], sizeof grid->labels[g], "%" PRIu32, grid->workers[g]);
        grid->groups[g] = grid->labels[g];
    }
}

/* Bars of NaN are not drawn. */
static void fill_bars(struct grid *grid, const struct drawing *d)
{
    const marey_table *points = d->list->points;
    const size_t n_bars = grid->n_groups * grid->n_series;
    for (size_t i = 0; i < n_bars * grid->n_parts; i++)
        grid->values[i] = NAN;
    for (size_t i = 0; i < n_bars; i++)
        grid->low[i] = grid->high[i] = NAN;
    for (size_t s = 0, slot = 0; s < d->list->n; s++) {
        const struct marey__scaling_line *of = &d->list->series[s];
        bool any = false;
        for (size_t row = of->first; row < of->first + of->n; row++) {
            if (!row_has_values(grid, row))
                continue;
            const size_t g = find_group(grid, marey__cell_of(points, row, "workers").as.u64),
                         bar = g * grid->n_series + slot;
            memcpy(&grid->values[bar * grid->n_parts], &grid->row_values[row * grid->n_parts],
                   grid->n_parts * sizeof(double));
            grid->low[bar] = d->times * marey__scaling_number(points, row, d->chart->low);
            grid->high[bar] = d->times * marey__scaling_number(points, row, d->chart->high);
            any = true;
        }
        slot += any;
    }
}

static bool draw_bars(struct drawing *d)
{
    const struct chart *chart = d->chart;
    const size_t n_rows = marey_table_n_rows(d->list->points), n_series = d->list->n;
    struct grid grid = {0};
    while (grid.n_parts < MAX_PARTS && chart->parts[grid.n_parts] != NULL)
        grid.n_parts++;
    grid.workers = room(d, n_rows, sizeof *grid.workers);
    grid.groups = room(d, n_rows, sizeof *grid.groups);
    grid.labels = room(d, n_rows, sizeof *grid.labels);
    grid.series = room(d, n_series, sizeof *grid.series);
    grid.colors = room(d, n_series, sizeof *grid.colors);
    grid.row_values = room(d, n_rows * grid.n_parts, sizeof(double));
    double *repeats = room(d, marey_table_n_rows(d->runs), sizeof *repeats);
    if (d->failed)
        return false;
    collect(&grid, d, repeats);
    const size_t n_bars = grid.n_groups * grid.n_series;
    grid.values = room(d, n_bars * grid.n_parts, sizeof(double));
    grid.low = room(d, n_bars, sizeof(double));
    grid.high = room(d, n_bars, sizeof(double));
    if (d->failed)
        return false;
    fill_bars(&grid, d);
    const struct marey__bars bars = {.words = d->words,
                                     .groups = grid.groups,
                                     .series = grid.series,
                                     .parts = chart->parts,
                                     .n_groups = grid.n_groups,
                                     .n_series = grid.n_series,
                                     .series_colors = grid.colors,
                                     .n_parts = grid.n_parts,
                                     .part_colors = chart->colors,
                                     .values = grid.values,
                                     .low = grid.low,
                                     .high = grid.high,
                                     .labels_first = chart->columns[grid.n_parts - 1] == NULL,
                                     .y_at_most = chart->y_at_most};
    return marey__chart_bars(&bars, d->svg);
}

/* ---- charts by name ---- */

static marey_status draw_named(struct drawing *d, const char *name)
{
    bool is_known = false, is_drawn = false;
    d->words.id = name;
    for (size_t i = 0; i < MAREY__COUNT_OF(charts) && !is_drawn; i++) {
        d->chart = &charts[i];
        if (strcmp(d->chart->name, name) != 0 &&
            (d->chart->alias == NULL || strcmp(d->chart->alias, name) != 0))
            continue;
        is_known = true;
        choose_titles(d);
        is_drawn = d->chart->ideal != BARS ? draw_lines(d) : draw_bars(d);
        while (d->n_rooms > 0)
            marey__free(d->rooms[--d->n_rooms]);
        MAREY__TRY_MEMORY(!d->failed);
    }
    if (!is_known)
        return marey__fail(MAREY_EINVAL, "there is no chart '%s'", name);
    return is_drawn ? MAREY_OK
                    : marey__fail(MAREY_EFORMAT, "these runs have no data for the chart '%s'", name);
}

marey_status marey__scaling_chart_put(const marey_report *report, const char *chart, bool has_style,
                                      struct marey__buf *svg)
{
    struct drawing drawing = {.list = report->data,
                              .runs = marey_report_table(report, "runs"),
                              .svg = svg,
                              .words = {.has_style = has_style, .x_title = "workers"}};
    return draw_named(&drawing, chart);
}

marey_status marey__scaling_svg(struct marey__report_writer *writer)
{
    const char *const chart = writer->options->table != NULL ? writer->options->table : "speedup";
    MAREY_TRY(marey__scaling_chart_put(writer->report, chart, true, &writer->lines.line));
    return marey__buf_to_stream(&writer->lines.line, writer->lines.out);
}
