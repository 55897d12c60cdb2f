/* Line charts with marks, error bars, and dashed lines for the ideal. */
#include <math.h>

#include "present/draw/internal.h"

/* Pixels; limit on described values per series. */
enum { PLOT_WIDTH = 540, TICK_GAP = 10, MOST_TICKS = 256, MOST_DESCRIBED = 40 };

static bool is_in(enum marey__chart_scale scale, double value)
{
    return isfinite(value) && (scale == MAREY__CHART_LINEAR || value > 0);
}

static bool is_drawn(const struct marey__chart *chart, const struct marey__chart_point *point)
{
    return is_in(chart->x_scale, point->x) && is_in(chart->y_scale, point->y);
}

static void widen(double *low, double *high, double value)
{
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

/* The ends of both axes; false if nothing would be drawn. */
static bool fit_axes(const struct marey__chart *chart, struct marey__plot *frame)
{
    double x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
    bool has_point = false;
    for (size_t s = 0; s < chart->n_series; s++)
        for (size_t i = 0; i < chart->series[s].n; i++) {
            const struct marey__chart_point *p = &chart->series[s].points[i];
            if (!is_drawn(chart, p))
                continue;
            has_point |= !chart->series[s].is_ideal;
            widen(&x_low, &x_high, p->x);
            widen(&y_low, &y_high, p->y);
            if (is_in(chart->y_scale, p->low) && is_in(chart->y_scale, p->high)) {
                widen(&y_low, &y_high, p->low);
                widen(&y_low, &y_high, p->high);
            }
        }
    if (!has_point)
        return false;
    if (chart->y_at_most != 0)
        y_high = fmax(y_high, chart->y_at_most);
    frame->x.scale = chart->x_scale;
    frame->y.scale = chart->y_scale;
    marey__axis_fit(&frame->x, x_low, x_high);
    marey__axis_fit(&frame->y, y_low, y_high);
    return true;
}

/* ---- x axis: ticks at measured values ---- */

static size_t collect_xs(const struct marey__chart *chart, double xs[MOST_TICKS])
{
    size_t n = 0;
    for (size_t s = 0; s < chart->n_series; s++)
        for (size_t i = 0; i < chart->series[s].n && n < MOST_TICKS; i++) {
            const struct marey__chart_point *p = &chart->series[s].points[i];
            size_t at = 0;
            while (at < n && xs[at] < p->x)
                at++;
            if (chart->series[s].is_ideal || !is_drawn(chart, p) || (at < n && xs[at] == p->x))
                continue;
            memmove(&xs[at + 1], &xs[at], (n - at) * sizeof xs[0]);
            xs[at] = p->x;
            n++;
        }
    return n;
}

static bool is_power_of_two(double x)
{
    return x >= 1 && log2(x) == floor(log2(x));
}

/* Whether the label of xs[i] does not overlap existing ones. */
static bool has_room(const struct marey__plot *frame, const double *xs, const bool *has_label,
                     size_t n, size_t i)
{
    char a[24], b[24];
    const double half = marey__text_pixels(marey__axis_number(xs[i], a)) / 2;
    for (size_t j = 0; j < n; j++) {
        const double apart =
            fabs(marey__axis_at(&frame->x, xs[j]) - marey__axis_at(&frame->x, xs[i]));
        if (has_label[j] &&
            apart < half + marey__text_pixels(marey__axis_number(xs[j], b)) / 2 + TICK_GAP)
            return false;
    }
    return true;
}

/* Powers of two are labelled first, because they are the most useful of many close counts. */
static void put_x_axis(const struct marey__chart *chart, struct marey__plot *frame)
{
    double xs[MOST_TICKS];
    bool has_label[MOST_TICKS] = {0};
    char number[24];
    const size_t n = collect_xs(chart, xs);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < n; i++)
            if ((round == 1 || is_power_of_two(xs[i])) && !has_label[i])
                has_label[i] = has_room(frame, xs, has_label, n, i);
    for (size_t i = 0; i < n; i++) {
        const double x = marey__axis_at(&frame->x, xs[i]);
        marey__buf_printf(frame->svg, "<path class=\"edge\" d=\"M%.1f %.1fv5\"/>\n", x,
                          frame->y.from);
        if (has_label[i])
            marey__plot_text(frame->svg, x, frame->y.from + 19, "tick",
                             marey__axis_number(xs[i], number));
    }
}

/* ---- series ---- */

static void put_tip(struct marey__buf *tip, const struct marey__chart *chart,
                    const struct marey__chart_series *series, const struct marey__chart_point *p)
{
    char number[24];
    tip->len = 0;
    if (series->name != NULL)
        marey__buf_printf(tip, "%s, ", series->name);
    marey__buf_printf(tip, "%s %s: ", chart->words.x_title, marey__axis_number(p->x, number));
    marey__buf_puts(tip, marey__axis_number(p->y, number));
    if (isfinite(p->low) && isfinite(p->high)) {
        marey__buf_printf(tip, " (%s to ", marey__axis_number(p->low, number));
        marey__buf_printf(tip, "%s)", marey__axis_number(p->high, number));
    }
    marey__buf_put(tip, "", 1);
}

static void put_path(const struct marey__chart *chart, struct marey__plot *frame,
                     const struct marey__chart_series *series)
{
    struct marey__buf *svg = frame->svg;
    bool has_begun = false;
    marey__buf_printf(svg, "<path class=\"%s s%u\" d=\"", series->is_ideal ? "ideal" : "line",
                      series->color);
    for (size_t i = 0; i < series->n; i++) {
        if (!is_drawn(chart, &series->points[i]))
            continue;
        marey__buf_printf(svg, "%s%.1f %.1f", has_begun ? "L" : "M",
                          marey__axis_at(&frame->x, series->points[i].x),
                          marey__axis_at(&frame->y, series->points[i].y));
        has_begun = true;
    }
    marey__buf_puts(svg, "\"/>\n");
}

static void put_marks(const struct marey__chart *chart, struct marey__plot *frame,
                      const struct marey__chart_series *series, uint32_t shape)
{
    struct marey__buf tip = {0};
    for (size_t i = 0; i < series->n; i++) {
        const struct marey__chart_point *p = &series->points[i];
        if (!is_drawn(chart, p))
            continue;
        const double x = marey__axis_at(&frame->x, p->x);
        if (is_in(chart->y_scale, p->low) && is_in(chart->y_scale, p->high))
            marey__plot_error_bar(frame->svg, x, marey__axis_at(&frame->y, p->low),
                                  marey__axis_at(&frame->y, p->high), series->color);
        put_tip(&tip, chart, series, p);
        marey__plot_mark(frame->svg, x, marey__axis_at(&frame->y, p->y), shape, series->color,
                         tip.failed ? NULL : tip.data);
    }
    marey__buf_end(&tip, frame->svg);
}

static void put_series(const struct marey__chart *chart, struct marey__plot *frame)
{
    for (size_t s = 0; s < chart->n_series; s++)
        if (chart->series[s].is_ideal)
            put_path(chart, frame, &chart->series[s]);
    for (size_t s = 0; s < chart->n_series; s++)
        if (!chart->series[s].is_ideal)
            put_path(chart, frame, &chart->series[s]);
    uint32_t shape = 0;
    for (size_t s = 0; s < chart->n_series; s++)
        if (!chart->series[s].is_ideal)
            put_marks(chart, frame, &chart->series[s], shape++);
}

/* ---- description ---- */

static void describe(void *ctx, struct marey__buf *text)
{
    const struct marey__chart *chart = ctx;
    char x[24], y[24];
    for (size_t s = 0; s < chart->n_series; s++) {
        const struct marey__chart_series *series = &chart->series[s];
        size_t n = 0;
        for (size_t i = 0; !series->is_ideal && i < series->n && n < MOST_DESCRIBED; i++) {
            if (!is_drawn(chart, &series->points[i]))
                continue;
            marey__buf_printf(text, "%s%s %s: %s", n == 0 ? " " : ", ",
                              n == 0 && series->name != NULL ? series->name : "",
                              marey__axis_number(series->points[i].x, x),
                              marey__axis_number(series->points[i].y, y));
            n++;
        }
        marey__buf_puts(text, n != 0 ? "." : "");
    }
}

enum { MOST_ENTRIES = 64 };

/* One series needs no legend, unless there is a dashed line to explain. */
static size_t make_legend(const struct marey__chart *chart,
                          struct marey__legend_entry entries[MOST_ENTRIES])
{
    size_t n = 0;
    uint32_t shape = 0;
    for (size_t s = 0; s < chart->n_series && n < MOST_ENTRIES; s++) {
        const struct marey__chart_series *series = &chart->series[s];
        const uint32_t own = shape;
        shape += !series->is_ideal;
        if (series->name != NULL)
            entries[n++] = (struct marey__legend_entry){.name = series->name,
                                                        .color = series->color,
                                                        .shape = own,
                                                        .is_dashed = series->is_ideal};
    }
    return n;
}

bool marey__chart_lines(const struct marey__chart *chart, struct marey__buf *svg)
{
    struct marey__legend_entry entries[MOST_ENTRIES];
    struct marey__plot frame = {.words = &chart->words, .svg = svg, .legend = entries};
    if (!fit_axes(chart, &frame))
        return false;
    frame.n_legend = make_legend(chart, entries);
    marey__plot_lay(&frame, PLOT_WIDTH, 0);
    marey__plot_begin(&frame, describe, (void *)chart);
    put_x_axis(chart, &frame);
    put_series(chart, &frame);
    marey__plot_end(&frame);
    return true;
}
