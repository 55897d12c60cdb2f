/*
 * scaling: what its presenters share. The answer is a few sentences, tables for people made of those of the analysis, and
 * pictures:
 *
 *     kymo_scaling -- scaling_list.c    -- which rows are a series, what it is called
 *                  -- scaling_sentence.c -- whether it scales, how far, why it stops
 *                  -- scaling_drawn.c    -- tables for people   --.
 *                  -- scaling_pictures.c -- charts              --'-- scaling_text.c, scaling_page.c
 */
#ifndef KYMO_PRESENT_SCALING_OUT_H
#define KYMO_PRESENT_SCALING_OUT_H

#include "analyze/scaling_whole.h"
#include "present/chart.h"
#include "present/present_internal.h"

/* ---- scaling_list.c   ---- */

/* Rows of `points` that belong together. */
struct kymo__scaling_line {
    size_t first, n;
    const char *name; /* "" for the only one without a name. Lent by the list */
};

struct kymo__scaling_list {
    const kymo_table *points;
    struct kymo__scaling_line *series;
    size_t n;
    struct kymo__arena texts;
};

/* A failed one may be finished. */
KYMO_WARN_UNUSED kymo_status kymo__scaling_list_init(struct kymo__scaling_list *list,
                                                     kymo_scaling *scaling);
void kymo__scaling_list_fini(struct kymo__scaling_list *list);

/* A number of any type; NaN where there is none. */
double kymo__scaling_number(const kymo_table *table, size_t row, const char *column);
/* What a column is of the sum of several; NaN where one of them is not known. */
double kymo__scaling_share(const kymo_table *points, size_t row, const char *column,
                           const char *const *columns, size_t n);

/* ---- scaling_sentence.c ---- */

/* One or two sentences about a series, without an end of line. */
void kymo__scaling_sentence(struct kymo__buf *line, kymo_scaling *scaling,
                            const struct kymo__scaling_list *list, size_t series);

/* ---- scaling_drawn.c ---- */

enum { KYMO__SCALING_SECTIONS = 7 };
const char *kymo__scaling_heading(size_t section);
/*
 * One of the tables for people, without columns that say nothing; `width` 0: with all the others. `*out` is NULL when
 * there is nothing to tell.
 */
KYMO_WARN_UNUSED kymo_status kymo__scaling_drawn(kymo_scaling *scaling, size_t section,
                                                 uint32_t width, kymo_table **out);

/* ---- scaling_pictures.c, scaling_lines.c, scaling_bars.c ---- */

/* A picture on its way. */
struct kymo__scaling_drawing {
    kymo_scaling *scaling;
    struct kymo__scaling_list list;
    struct kymo__chart_words words;
    struct kymo__buf *svg;
    char y_title[96], title[96]; /* room for words with a unit in them */
};

struct kymo__scaling_unit {
    const char *name;
    double times;
};
/* The largest unit that keeps `most`, of seconds or joules, above one. */
struct kymo__scaling_unit kymo__scaling_unit_for(double most, bool is_joules);
/* The largest sum of a row's columns, `n` or fewer with NULL behind the last. */
double kymo__scaling_largest(const kymo_table *table, const char *const *columns, size_t n);
/* NaN also without a column. */
double kymo__scaling_optional(const kymo_table *table, size_t row, const char *column);

/* Draw the picture of this name when it is one of lines, or of bars; false in `is_drawn` where there is nothing to draw. */
KYMO_WARN_UNUSED kymo_status kymo__scaling_draw_lines(struct kymo__scaling_drawing *drawing,
                                                      const char *name, bool *is_known,
                                                      bool *is_drawn);
KYMO_WARN_UNUSED kymo_status kymo__scaling_draw_bars(struct kymo__scaling_drawing *drawing,
                                                     const char *name, bool *is_known,
                                                     bool *is_drawn);

/* KYMO_EINVAL for a name that no picture has, KYMO_EFORMAT when there is nothing to draw; `svg` is then as it was. */
KYMO_WARN_UNUSED kymo_status kymo__scaling_picture_put(kymo_scaling *scaling, const char *picture,
                                                       bool has_style, struct kymo__buf *svg);

#endif
