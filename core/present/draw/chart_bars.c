/*
 * Bar charts: groups along the axis, each with a bar per series, each bar with stacked parts. If colors mark parts, a
 * letter below each bar identifies its series.
 */
#include <math.h>

#include "present/draw/internal.h"

/* Pixels. */
enum {
    LEAST_PLOT = 540,
    MOST_PLOT = 1600,
    LEAST_BAR = 22,
    MOST_BAR = 64,
    GROUP_GAP = 18,
    LETTER_LINE = 16,
    MOST_ENTRIES = 64,
};

struct layout {
    const struct marey__bars *bars;
    struct marey__plot frame;
    double group_width, bar_width;
    bool has_letters;
};

static const double *value_at(const struct marey__bars *bars, size_t g, size_t s)
{
    return &bars->values[(g * bars->n_series + s) * bars->n_parts];
}

/* NaN if it has no part. */
static double height_of(const struct marey__bars *bars, size_t g, size_t s)
{
    double sum = 0;
    size_t n = 0;
    for (size_t p = 0; p < bars->n_parts; p++) {
        const double value = value_at(bars, g, s)[p];
        if (isfinite(value) && value >= 0) {
            sum += value;
            n++;
        }
    }
    return n != 0 ? sum : NAN;
}

static double bound_at(const double *bounds, const struct marey__bars *bars, size_t g, size_t s)
{
    return bounds != NULL ? bounds[g * bars->n_series + s] : NAN;
}

/* ---- the layout ---- */

static bool fit_heights(struct layout *layout)
{
    const struct marey__bars *bars = layout->bars;
    double most = -1;
    for (size_t g = 0; g < bars->n_groups; g++)
        for (size_t s = 0; s < bars->n_series; s++) {
            const double height = height_of(bars, g, s), high = bound_at(bars->high, bars, g, s);
            if (isfinite(height))
                most = fmax(most, isfinite(high) ? fmax(height, high) : height);
        }
    if (most < 0)
        return false;
    marey__axis_fit(&layout->frame.y, 0, fmax(most, bars->y_at_most));
    return true;
}

static double fit_widths(struct layout *layout)
{
    const double n_groups = (double)layout->bars->n_groups, n_series = (double)layout->bars->n_series;
    const double least = n_groups * (n_series * LEAST_BAR + GROUP_GAP);
    const double plot = fmin(fmax(least, LEAST_PLOT), MOST_PLOT);
    layout->group_width = plot / n_groups;
    layout->bar_width =
        fmin((layout->group_width - fmin(GROUP_GAP, layout->group_width / 4)) / n_series, MOST_BAR);
    return plot;
}

static double group_middle(const struct layout *layout, size_t g)
{
    return layout->frame.x.from + ((double)g + 0.5) * layout->group_width;
}

/* The bars of a group are side by side around its center. */
static double bar_left(const struct layout *layout, size_t g, size_t series)
{
    size_t n = 0, n_before = 0;
    for (size_t s = 0; s < layout->bars->n_series; s++)
        if (isfinite(height_of(layout->bars, g, s))) {
            n++;
            n_before += s < series;
        }
    return group_middle(layout, g) + ((double)n_before - (double)n / 2) * layout->bar_width;
}

static void letter_of(size_t s, char sign[4])
{
    snprintf(sign, 4, s < 26 ? "%c" : "%c2", (char)('A' + s % 26));
}

/* ---- bars ---- */

static uint32_t color_of(const struct marey__bars *bars, size_t s, size_t p)
{
    return bars->n_parts > 1 ? bars->part_colors[p] : bars->series_colors[s];
}

static void put_part(struct layout *layout, size_t g, size_t s, size_t p, double below)
{
    const struct marey__bars *bars = layout->bars;
    struct marey__buf *svg = layout->frame.svg;
    const double value = value_at(bars, g, s)[p];
    const double top = marey__axis_at(&layout->frame.y, below + value),
                 bottom = marey__axis_at(&layout->frame.y, below);
    char number[24];
    marey__buf_printf(svg,
                      "<rect class=\"bar f%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                      "height=\"%.1f\"><title>",
                      color_of(bars, s, p), bar_left(layout, g, s) + 1, top,
                      fmax(layout->bar_width - 2, 1), bottom - top);
    marey__xml_put(svg, bars->series[s], strlen(bars->series[s]));
    marey__buf_puts(svg, bars->series[s][0] != '\0' ? ", " : "");
    marey__xml_put(svg, bars->groups[g], strlen(bars->groups[g]));
    if (bars->n_parts > 1) {
        marey__buf_puts(svg, ", ");
        marey__xml_put(svg, bars->parts[p], strlen(bars->parts[p]));
    }
    marey__buf_printf(svg, ": %s</title></rect>\n", marey__axis_number(value, number));
}

/* The label above a bar, if there is space: its height, or its first part. */
static void put_label(struct layout *layout, size_t g, size_t s, double height)
{
    const struct marey__bars *bars = layout->bars;
    char label[24];
    const double high = bound_at(bars->high, bars, g, s);
    const double top = isfinite(high) ? fmax(height, high) : height;
    const double shown = bars->labels_first ? value_at(bars, g, s)[0] : height;
    marey__axis_number(shown, label);
    if (marey__text_pixels(label) * 0.9 > layout->bar_width + 1 && shown >= 9.5 && shown < 1000)
        snprintf(label, sizeof label, "%.0f", shown); /* a rounded value is better than none */
    if (marey__text_pixels(label) * 0.9 <= layout->bar_width + 1)
        marey__plot_text(layout->frame.svg, bar_left(layout, g, s) + layout->bar_width / 2,
                         marey__axis_at(&layout->frame.y, top) - 5, "value", label);
}

static void put_bar(struct layout *layout, size_t g, size_t s)
{
    const struct marey__bars *bars = layout->bars;
    const double height = height_of(bars, g, s);
    const double middle = bar_left(layout, g, s) + layout->bar_width / 2;
    const double low = bound_at(bars->low, bars, g, s), high = bound_at(bars->high, bars, g, s);
    double below = 0;
    if (!isfinite(height))
        return;
    for (size_t p = 0; p < bars->n_parts; p++) {
        const double value = value_at(bars, g, s)[p];
        if (!isfinite(value) || value < 0)
            continue;
        put_part(layout, g, s, p, below);
        below += value;
    }
    if (isfinite(low) && isfinite(high))
        marey__plot_error_bar(layout->frame.svg, middle, marey__axis_at(&layout->frame.y, low),
                              marey__axis_at(&layout->frame.y, high), MAREY__CHART_MUTED);
    put_label(layout, g, s, height);
    if (layout->has_letters) {
        char sign[4];
        letter_of(s, sign);
        marey__plot_text(layout->frame.svg, middle, layout->frame.y.from + 15, "value", sign);
    }
}

static void put_groups(struct layout *layout)
{
    const struct marey__bars *bars = layout->bars;
    for (size_t g = 0; g < bars->n_groups; g++) {
        for (size_t s = 0; s < bars->n_series; s++)
            put_bar(layout, g, s);
        marey__plot_text(layout->frame.svg, group_middle(layout, g),
                         layout->frame.y.from + 19 + (layout->has_letters ? LETTER_LINE : 0),
                         "tick", bars->groups[g]);
    }
}

/* ---- description ---- */

static size_t make_legend(const struct layout *layout,
                          struct marey__legend_entry entries[MOST_ENTRIES])
{
    const struct marey__bars *bars = layout->bars;
    size_t n = 0;
    for (size_t p = 0; bars->n_parts > 1 && p < bars->n_parts && n < MOST_ENTRIES; p++)
        entries[n++] = (struct marey__legend_entry){
            .name = bars->parts[p], .color = bars->part_colors[p], .shape = MAREY__MARK_BOX};
    for (size_t s = 0; bars->n_series > 1 && s < bars->n_series && n < MOST_ENTRIES; s++) {
        entries[n] = (struct marey__legend_entry){
            .name = bars->series[s], .color = color_of(bars, s, 0), .shape = MAREY__MARK_BOX};
        if (layout->has_letters)
            letter_of(s, entries[n].sign);
        n++;
    }
    return n;
}

static void describe_bar(struct marey__buf *text, const struct marey__bars *bars, size_t g, size_t s)
{
    char number[24];
    if (!isfinite(height_of(bars, g, s)))
        return;
    marey__buf_printf(text, " %s%s%s:", bars->series[s], bars->series[s][0] != '\0' ? " " : "",
                      bars->groups[g]);
    for (size_t p = 0; p < bars->n_parts; p++)
        if (isfinite(value_at(bars, g, s)[p]))
            marey__buf_printf(text, "%s %s%s%s", p == 0 ? "" : ",",
                              bars->n_parts > 1 ? bars->parts[p] : "", bars->n_parts > 1 ? " " : "",
                              marey__axis_number(value_at(bars, g, s)[p], number));
    marey__buf_puts(text, ".");
}

static void describe(void *ctx, struct marey__buf *text)
{
    const struct marey__bars *bars = ctx;
    for (size_t g = 0; g < bars->n_groups; g++)
        for (size_t s = 0; s < bars->n_series; s++)
            describe_bar(text, bars, g, s);
}

bool marey__chart_bars(const struct marey__bars *bars, struct marey__buf *svg)
{
    struct marey__legend_entry entries[MOST_ENTRIES];
    struct layout layout = {.bars = bars,
                            .frame = {.words = &bars->words, .svg = svg, .legend = entries},
                            .has_letters = bars->n_parts > 1 && bars->n_series > 1};
    if (bars->n_groups == 0 || bars->n_series == 0 || !fit_heights(&layout))
        return false;
    const double plot = fit_widths(&layout);
    layout.frame.n_legend = make_legend(&layout, entries);
    marey__plot_lay(&layout.frame, plot, layout.has_letters ? LETTER_LINE : 0);
    marey__plot_begin(&layout.frame, describe, (void *)bars);
    put_groups(&layout);
    marey__plot_end(&layout.frame);
    return true;
}
