/*
 * present: what the presenters of tables share. Presenters of events have export_internal.h.
 */
#ifndef MAREY_PRESENT_INTERNAL_H
#define MAREY_PRESENT_INTERNAL_H

#include "base/table_internal.h"
#include <marey/report.h>

/* ---- text.c ---- */

/* A table as it is to be drawn. */
struct marey__text_view {
    const marey_table *table;
    struct marey_text_options options;
    size_t n_rows;           /* from the first on */
    const char *const *hide; /* columns not to be drawn, NULL behind the last; may be NULL */
    size_t widest_text;      /* longer texts are cut, whatever room there is; 0: 80 */
};
marey_status marey__text_draw(const struct marey__text_view *view, FILE *out);
/* A cell that is neither null nor text, as people read it; `unit` as in marey_text_options. */
void marey__text_number(struct marey__buf *buf, const struct marey_cell *cell,
                        const struct marey_column *column, const char *unit);

/* ---- breakdown_why_out.c: parts of a breakdown; nothing where it has nothing of the kind ---- */

struct marey_breakdown;
marey_status marey__idle_draw(const struct marey_breakdown *b,
                              const struct marey_text_options *options, FILE *out);
marey_status marey__collectives_draw(const struct marey_breakdown *b,
                                     const struct marey_text_options *options, FILE *out);

/* ---- compare_out.c ---- */

/* The sentence that a comparison comes to. */
struct marey_comparison;
void marey__compare_sentence(struct marey_comparison *c, struct marey__buf *line);

/* ---- csv.c ---- */

/* A string: quoted where it must be, valid UTF-8, without NUL; "'" comes before what would be a formula (= + - @). */
void marey__csv_put(struct marey__buf *line, const char *text, size_t len);
/* The line of names, and the line of one row, each with its end. */
void marey__csv_header(const marey_table *table, struct marey__buf *line);
void marey__csv_row(const marey_table *table, size_t row, struct marey__buf *line);
/* The line of names and the first rows. */
MAREY_WARN_UNUSED marey_status marey__csv_rows(const marey_table *table, size_t max_rows, FILE *out);

/* ---- xml.c ---- */

/*
 * `text` as XML holds it between tags and in quotes: valid UTF-8, & < > " ' escaped, and what no XML may hold, as most
 * control characters, replaced by U+FFFD. Every text of a page or picture goes through here.
 */
void marey__xml_put(struct marey__buf *buf, const char *text, size_t len);

/* ---- html_table.c ---- */

/* The first rows of a table as HTML, everything escaped; where some are left out, a sentence below says how many. 0: all. */
void marey__html_table(struct marey__buf *html, const marey_table *table, size_t max_rows);

/* ---- markdown.c ---- */

/* A text or the cell of a table: no bar, no line break, nothing that a renderer takes for HTML or emphasis. */
void marey__markdown_put(struct marey__buf *line, const char *text, size_t len);
/* All of a table, titles first. */
void marey__markdown_table(struct marey__buf *lines, const marey_table *table);

/* ---- json.c ---- */

/* The first `n_rows` rows as a list of objects, one in a line; `indent` stands before each. */
marey_status marey__json_rows(const marey_table *table, size_t n_rows, const char *indent, FILE *out);
/* All rows as a member of an object, under the table's name and with a comma behind; what `line` has comes first. */
MAREY_WARN_UNUSED marey_status marey__json_named_rows(struct marey__buf *line,
                                                      const marey_table *table, FILE *out);
/* Append the last member of an object, a list of texts: the first column of a table, under its name. Closes the object. */
void marey__json_last_texts(struct marey__buf *line, const marey_table *table);

/* A report as one object: its tables by their names, then its notes. Flushes. */
MAREY_WARN_UNUSED marey_status marey__json_report(marey_table *const *tables, size_t n,
                                                  const marey_table *notes, FILE *out);

/* One cell's value; one row as an object. */
void marey__json_cell(struct marey__buf *line, const marey_table *table, size_t row, size_t column);
void marey__json_row(struct marey__buf *line, const marey_table *table, size_t row);

#endif
