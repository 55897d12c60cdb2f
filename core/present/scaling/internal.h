/*
 * scaling: outputs of scaling reports.
 *
 *     marey_scaling -- scaling_list.c     -- which rows are a series, and its name
 *                   -- scaling_sentence.c -- whether it scales, how far, what limits it
 *                   -- scaling_drawn.c    -- tables for people   --+
 *                   -- scaling_bars.c, scaling_lines.c -- charts --+-- scaling_text.c, scaling_page.c
 *
 * Input: an analysis of analyze/scaling. Output: text, charts, a page.
 */
#ifndef MAREY_PRESENT_SCALING_INTERNAL_H
#define MAREY_PRESENT_SCALING_INTERNAL_H

#include "analyze/scaling/internal.h"
#include "present/draw/internal.h"

/* ---- scaling_list.c   ---- */

/* Rows of `points` that belong together. */
struct marey__scaling_line {
    size_t first, n;
    const char *name; /* "" for the only one without a name. Lent by the list */
};

struct marey__scaling_list {
    const marey_table *points;
    struct marey__scaling_line *series;
    size_t n;
    struct marey__arena texts;
};

/* A failed one may be finished. */
MAREY_WARN_UNUSED marey_status marey__scaling_list_init(struct marey__scaling_list *list,
                                                        marey_scaling *scaling);
void marey__scaling_list_fini(struct marey__scaling_list *list);

/* A number of any type; NaN where there is none. */
double marey__scaling_number(const marey_table *table, size_t row, const char *column);
/* What a column is of the sum of several; NaN where one of them is not known. */
double marey__scaling_share(const marey_table *points, size_t row, const char *column,
                            const char *const *columns, size_t n);

/* ---- scaling_sentence.c ---- */

/* One or two sentences about a series, without an end of line. */
void marey__scaling_sentence(struct marey__buf *line, marey_scaling *scaling,
                             const struct marey__scaling_list *list, size_t series);

/* ---- scaling_drawn.c ---- */

enum { MAREY__SCALING_SECTIONS = 7 };
const char *marey__scaling_heading(size_t section);
/*
 * One of the tables for people, without columns that say nothing; `width` 0: with all the others. `*out` is NULL when
 * there is nothing to tell.
 */
MAREY_WARN_UNUSED marey_status marey__scaling_drawn(marey_scaling *scaling, size_t section,
                                                    uint32_t width, marey_table **out);

/* ---- scaling_pictures.c, scaling_lines.c, scaling_bars.c ---- */

/* A picture on its way. */
struct marey__scaling_drawing {
    marey_scaling *scaling;
    struct marey__scaling_list list;
    struct marey__chart_words words;
    struct marey__buf *svg;
    char y_title[96], title[96]; /* room for words with a unit in them */
};

struct marey__scaling_unit {
    const char *name;
    double times;
};
/* The largest unit that keeps `most`, of seconds or joules, above one. */
struct marey__scaling_unit marey__scaling_unit_for(double most, bool is_joules);
/* The largest sum of a row's columns, `n` or fewer with NULL behind the last. */
double marey__scaling_largest(const marey_table *table, const char *const *columns, size_t n);
/* NaN also without a column. */
double marey__scaling_optional(const marey_table *table, size_t row, const char *column);

/* Draw the picture of this name when it is one of lines, or of bars; false in `is_drawn` where there is nothing to draw. */
MAREY_WARN_UNUSED marey_status marey__scaling_draw_lines(struct marey__scaling_drawing *drawing,
                                                         const char *name, bool *is_known,
                                                         bool *is_drawn);
MAREY_WARN_UNUSED marey_status marey__scaling_draw_bars(struct marey__scaling_drawing *drawing,
                                                        const char *name, bool *is_known,
                                                        bool *is_drawn);

/* MAREY_EINVAL for a name that no picture has, MAREY_EFORMAT when there is nothing to draw; `svg` is then as it was. */
MAREY_WARN_UNUSED marey_status marey__scaling_picture_put(marey_scaling *scaling, const char *picture,
                                                          bool has_style, struct marey__buf *svg);

#endif
