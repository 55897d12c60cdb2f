/*
 * The pictures of report, by name. Those with itwinai's names show what its own show, with axes that say what is drawn.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/scaling/internal.h"

/* The largest unit that keeps the largest value above one. */
struct marey__scaling_unit marey__scaling_unit_for(double most, bool is_joules)
{
    static const struct marey__scaling_unit seconds[] = {{"s", 1}, {"ms", 1e3}, {"µs", 1e6}},
                                            joules[] = {{"MJ", 1e-6}, {"kJ", 1e-3}, {"J", 1}};
    const struct marey__scaling_unit *units = is_joules ? joules : seconds;
    for (size_t i = 0; i < 2; i++)
        if (most * units[i].times >= 1)
            return units[i];
    return units[2];
}

double marey__scaling_largest(const marey_table *table, const char *const *columns, size_t n)
{
    double most = 0;
    for (size_t row = 0; row < marey_table_n_rows(table); row++) {
        double sum = 0;
        for (size_t c = 0; c < n && columns[c] != NULL; c++) {
            const double value = marey__scaling_number(table, row, columns[c]);
            sum += isfinite(value) ? value : 0;
        }
        most = fmax(most, sum);
    }
    return most;
}

double marey__scaling_optional(const marey_table *table, size_t row, const char *column)
{
    return column != NULL ? marey__scaling_number(table, row, column) : NAN;
}

static marey_status draw_named(struct marey__scaling_drawing *drawing, const char *name,
                               bool *is_drawn)
{
    bool is_known = false;
    drawing->words.id = name;
    drawing->words.x_title = "workers";
    MAREY_TRY(marey__scaling_draw_lines(drawing, name, &is_known, is_drawn));
    if (!is_known)
        MAREY_TRY(marey__scaling_draw_bars(drawing, name, &is_known, is_drawn));
    return is_known ? MAREY_OK : marey__fail(MAREY_EINVAL, "there is no picture '%s'", name);
}

marey_status marey__scaling_picture_put(const marey_report *report, const char *picture,
                                        bool has_style, struct marey__buf *svg)
{
    struct marey__scaling_drawing drawing = {
        .report = report, .svg = svg, .words = {.has_style = has_style}};
    bool is_drawn = false;
    marey_status status = marey__scaling_list_init(&drawing.list, report);
    if (status == MAREY_OK)
        status = draw_named(&drawing, picture, &is_drawn);
    marey__scaling_list_fini(&drawing.list);
    if (status == MAREY_OK && !is_drawn)
        return marey__fail(MAREY_EFORMAT, "these runs do not have what the picture '%s' shows",
                           picture);
    return status;
}

marey_status marey__scaling_svg(const marey_report *report,
                                const struct marey_write_options *options, FILE *out)
{
    struct marey__buf svg = {0};
    marey_status status = marey__scaling_picture_put(
        report, options->table != NULL ? options->table : "speedup", true, &svg);
    if (status == MAREY_OK)
        status = marey__buf_to_stream(&svg, out);
    marey__buf_fini(&svg);
    return status;
}
