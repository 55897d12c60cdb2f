/* Pictures of lines: a row of the table for each. Time, speedup, efficiency and throughput over workers, beside what would be ideal. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/scaling/internal.h"

enum ideal {
    IDEAL_TIME, /* the baseline's time, divided by the times as many workers; in weak scaling the same */
    IDEAL_SPEEDUP,    /* times as many workers */
    IDEAL_EFFICIENCY, /* all of it */
    IDEAL_THROUGHPUT, /* the baseline's, times as many workers */
};

struct lines_picture {
    const char *name, *title, *y_title, *column, *low, *high;
    enum marey__chart_scale x_scale, y_scale;
    enum ideal ideal;
    double times, y_at_most;
};

static const struct lines_picture pictures[] = {
    {"epoch-time", "Time", "", "time_s", "low_s", "high_s", MAREY__CHART_LOG2, MAREY__CHART_LOG10,
     IDEAL_TIME, 1, 0},
    {"absolute_epoch_time", "Time", "", "time_s", "low_s", "high_s", MAREY__CHART_LOG10,
     MAREY__CHART_LOG10, IDEAL_TIME, 1, 0},
    {"speedup", "Speedup over the smallest number of workers", "speedup (times)", "speedup",
     "speedup_low", "speedup_high", MAREY__CHART_LOG2, MAREY__CHART_LOG2, IDEAL_SPEEDUP, 1, 0},
    {"relative_epoch_time_speedup", "Speedup over the smallest number of workers",
     "speedup (times)", "speedup", "speedup_low", "speedup_high", MAREY__CHART_LOG2,
     MAREY__CHART_LOG2, IDEAL_SPEEDUP, 1, 0},
    {"efficiency", "Parallel efficiency", "efficiency (% of ideal)", "efficiency", "efficiency_low",
     "efficiency_high", MAREY__CHART_LOG2, MAREY__CHART_LINEAR, IDEAL_EFFICIENCY, 100, 100},
    {"throughput", "Throughput", "throughput (samples/s)", "throughput", NULL, NULL,
     MAREY__CHART_LOG2, MAREY__CHART_LOG10, IDEAL_THROUGHPUT, 1, 0},
};

/* Whether all points are measured by "epoch" or "step"; NULL: some by each. */
static const char *measure_of(const marey_table *points)
{
    const char *measure =
        marey_table_n_rows(points) != 0 ? marey__cell_of(points, 0, "measure").as.text : NULL;
    for (size_t row = 1; row < marey_table_n_rows(points); row++)
        if (strcmp(marey__cell_of(points, row, "measure").as.text, measure) != 0)
            return NULL;
    return measure;
}

/* "Time of an epoch", in a unit that fits; what it multiplies seconds by. */
static double name_times(struct marey__scaling_drawing *drawing, const struct lines_picture *picture)
{
    const char *measure = measure_of(drawing->list.points), *columns[] = {picture->column};
    const struct marey__scaling_unit unit =
        marey__scaling_unit_for(marey__scaling_largest(drawing->list.points, columns, 1), false);
    const char *what = measure == NULL                 ? "an epoch or step"
                       : strcmp(measure, "epoch") == 0 ? "an epoch"
                                                       : "a step";
    snprintf(drawing->title, sizeof drawing->title, "Time of %s", what);
    snprintf(drawing->y_title, sizeof drawing->y_title, "median time of %s (%s)", what, unit.name);
    drawing->words.title = drawing->title;
    drawing->words.y_title = drawing->y_title;
    return unit.times;
}

static double ideal_at(const struct marey__scaling_drawing *drawing,
                       const struct lines_picture *picture,
                       const struct marey__scaling_line *series, size_t row)
{
    const marey_table *points = drawing->list.points;
    const double more = marey__scaling_number(points, row, "ideal"),
                 first = marey__scaling_number(points, series->first, picture->column);
    const char *kind = marey__cell_of(points, row, "kind").as.text;
    switch (picture->ideal) {
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

/* One dashed line is enough where it would be the same for all. */
static bool has_one_ideal(const struct marey__scaling_drawing *drawing,
                          const struct lines_picture *picture)
{
    const struct marey__scaling_list *list = &drawing->list;
    if (picture->ideal == IDEAL_EFFICIENCY)
        return true;
    for (size_t s = 1; s < list->n; s++)
        if (marey__scaling_number(list->points, list->series[s].first, "workers") !=
            marey__scaling_number(list->points, list->series[0].first, "workers"))
            return false;
    return picture->ideal == IDEAL_SPEEDUP || list->n == 1;
}

static void fill_series(const struct marey__scaling_drawing *drawing,
                        const struct lines_picture *picture, double times,
                        const struct marey__scaling_line *of, struct marey__chart_point *points,
                        struct marey__chart_point *ideals)
{
    const marey_table *table = drawing->list.points;
    for (size_t row = of->first; row < of->first + of->n; row++) {
        const double x = marey__scaling_number(table, row, "workers");
        points[row] = (struct marey__chart_point){
            .x = x,
            .y = times * marey__scaling_number(table, row, picture->column),
            .low = times * marey__scaling_optional(table, row, picture->low),
            .high = times * marey__scaling_optional(table, row, picture->high),
        };
        ideals[row] = (struct marey__chart_point){
            .x = x, .y = times * ideal_at(drawing, picture, of, row), .low = NAN, .high = NAN};
    }
}

static bool has_any(const struct marey__chart_series *series)
{
    for (size_t i = 0; i < series->n; i++)
        if (isfinite(series->points[i].y))
            return true;
    return false;
}

/* The one line for all: over all numbers of workers, whichever series has them. It keeps the first of `series`. */
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

/* The series first, then what would be ideal for each, then how the legend calls that. */
static void fill_lines(const struct marey__scaling_drawing *drawing,
                       const struct lines_picture *picture, double times,
                       struct marey__chart_point *points, struct marey__chart_series *series)
{
    const struct marey__scaling_list *list = &drawing->list;
    const size_t n_rows = marey_table_n_rows(list->points);
    struct marey__chart_point *ideals = points + n_rows;
    const bool is_one = has_one_ideal(drawing, picture);
    bool has_ideal = false;
    for (size_t s = 0; s < list->n; s++) {
        const struct marey__scaling_line *of = &list->series[s];
        const uint32_t color = (uint32_t)(s % MAREY__CHART_COLORS);
        fill_series(drawing, picture, times, of, points, ideals);
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
}

static marey_status draw(struct marey__scaling_drawing *drawing,
                         const struct lines_picture *picture, bool *is_drawn)
{
    const size_t n_rows = marey_table_n_rows(drawing->list.points), n = drawing->list.n;
    struct marey__chart_point *points = marey__calloc(2 * n_rows + 1, sizeof *points);
    struct marey__chart_series *series = marey__calloc(2 * n + 1, sizeof *series);
    marey_status status = points != NULL && series != NULL ? MAREY_OK : marey__no_memory();
    drawing->words.title = picture->title;
    drawing->words.y_title = picture->y_title;
    if (status == MAREY_OK) {
        const double times =
            picture->ideal == IDEAL_TIME ? name_times(drawing, picture) : picture->times;
        fill_lines(drawing, picture, times, points, series);
        const struct marey__chart chart = {.words = drawing->words,
                                           .x_scale = picture->x_scale,
                                           .y_scale = picture->y_scale,
                                           .y_at_most = picture->y_at_most,
                                           .series = series,
                                           .n_series = 2 * n + 1};
        *is_drawn = marey__chart_lines(&chart, drawing->svg);
    }
    marey__free(points);
    marey__free(series);
    return status;
}

marey_status marey__scaling_draw_lines(struct marey__scaling_drawing *drawing, const char *name,
                                       bool *is_known, bool *is_drawn)
{
    for (size_t i = 0; i < MAREY__COUNT_OF(pictures); i++)
        if (strcmp(pictures[i].name, name) == 0) {
            *is_known = true;
            return draw(drawing, &pictures[i], is_drawn);
        }
    return MAREY_OK;
}
