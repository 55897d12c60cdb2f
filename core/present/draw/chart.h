/*
 * chart: pictures as SVG. A picture always has a title, axes with titles and units, a legend where there is more than
 * one thing to tell apart, and a description with its numbers for whoever cannot see it. Its style follows the light or
 * dark mode of the reader by a media query; there is no script in it. Every text is escaped.
 *
 *      struct marey__chart (lines)  --.
 *                                     >--  frame: chart.c, ticks: chart_axis.c  --  <svg>
 *      struct marey__bars           --'
 *
 * A chart appends to a buffer. Running out of memory shows there, as with any buffer.
 */
#ifndef MAREY_PRESENT_CHART_H
#define MAREY_PRESENT_CHART_H

#include <stdbool.h>

#include "base/base_internal.h"

enum marey__chart_scale { MAREY__CHART_LINEAR, MAREY__CHART_LOG2, MAREY__CHART_LOG10 };

enum {
    MAREY__CHART_COLORS = 8, /* chart.css has as many */
    MAREY__CHART_MUTED = MAREY__CHART_COLORS,
};

/* What lines and bars have in common. Texts are lent. */
struct marey__chart_words {
    const char *id;                /* of its elements; unique in a page: letters, digits, dashes */
    const char *title;             /* what is shown */
    const char *x_title, *y_title; /* with the unit */
    const char *note;              /* a line below; NULL: none */
    bool has_style; /* with the style inside: a file of its own, not part of a page */
};

/* ---- lines ---- */

struct marey__chart_point {
    double x, y;
    double low, high; /* an error bar; NaN: none */
};

struct marey__chart_series {
    const char *name; /* NULL: not in the legend */
    const struct marey__chart_point *points;
    size_t n; /* by x; what is not finite, or not above 0 on a logarithmic axis, is left out */
    uint32_t color;
    bool is_ideal; /* dashed, without marks */
};

struct marey__chart {
    struct marey__chart_words words;
    enum marey__chart_scale x_scale, y_scale;
    double y_at_most; /* an axis ends there even when no value reaches it; 0: where values end */
    const struct marey__chart_series *series;
    size_t n_series;
};

/* False, with nothing written, when there is no point to draw. */
bool marey__chart_lines(const struct marey__chart *chart, struct marey__buf *svg);

/* ---- bars: groups of series of parts that are stacked ---- */

struct marey__bars {
    struct marey__chart_words words;
    const char *const *groups, *const *series, *const *parts;
    size_t n_groups, n_series, n_parts; /* one part: series have colours. Several: parts have */
    const uint32_t *series_colors;
    const uint32_t *part_colors; /* of several parts */
    const double *values;        /* [group][series][part]; NaN: none */
    const double *low, *high;    /* [group][series] of the whole bar; NULL, NaN: none */
    bool tells_first;            /* above a bar stands its first part; else its height */
    double y_at_most;            /* as above */
};

bool marey__chart_bars(const struct marey__bars *bars, struct marey__buf *svg);

/* ---- the frame: chart.c ---- */

struct marey__axis {
    enum marey__chart_scale scale;
    double low, high; /* values at its ends */
    double from, to;  /* where these are, in pixels */
    double ticks[32];
    size_t n_ticks;
};

struct marey__legend_entry {
    const char *name;
    char sign[4];   /* in place of a mark: "A" */
    uint32_t color; /* of the mark; none where there is a sign */
    uint32_t shape; /* of the mark: MAREY__MARK_BOX, or one of lines */
    bool is_dashed;
};
enum { MAREY__MARK_BOX = 100, MAREY__MARK_SHAPES = 4 };

struct marey__plot {
    const struct marey__chart_words *words;
    struct marey__buf *svg;
    struct marey__axis x, y; /* x of bars has no values: its ticks are set by groups */
    double width, height;
    size_t n_legend;
    const struct marey__legend_entry *legend;
};

/* Room for title, legend and titles of axes: sets where axes begin and end, and the size. Then the ticks of y are known. */
void marey__plot_lay(struct marey__plot *frame, double plot_width, double below);
/* From <svg> to the grid; `describe` writes the numbers for whoever cannot see. */
void marey__plot_begin(struct marey__plot *frame,
                       void (*describe)(void *ctx, struct marey__buf *svg), void *ctx);
void marey__plot_end(struct marey__plot *frame);
/* A mark in the colour and shape of a series, with a tooltip where `tip` is not NULL. */
void marey__plot_mark(struct marey__buf *svg, double x, double y, uint32_t shape, uint32_t color,
                      const char *tip);
/* An error bar. */
void marey__plot_error_bar(struct marey__buf *svg, double x, double low, double high, uint32_t color);
/* Text in the middle of `x`; `style` is a class of chart.css. */
void marey__plot_text(struct marey__buf *svg, double x, double y, const char *style,
                      const char *text);

/* ---- chart_axis.c ---- */

/* Ends and ticks of an axis for values from `low` to `high`. */
void marey__axis_fit(struct marey__axis *axis, double low, double high);
/* Where a value is, in pixels. */
double marey__axis_at(const struct marey__axis *axis, double value);
/* A number in a few digits that count: "0.25", "12", "1.5 M". Returned in `into`. */
const char *marey__axis_number(double value, char into[24]);
/* How wide a text will be about, in pixels. */
double marey__text_pixels(const char *text);

#endif
