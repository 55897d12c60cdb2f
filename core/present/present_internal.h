/*
 * present: what the presenters of tables share. Presenters of events have export_internal.h.
 */
#ifndef KYMO_PRESENT_INTERNAL_H
#define KYMO_PRESENT_INTERNAL_H

#include "table/table_internal.h"
#include <kymo/compare.h>
#include <kymo/report.h>

/* ---- text.c ---- */

/* A table as it is to be drawn. */
struct kymo__text_view {
    const kymo_table *table;
    struct kymo_text_options options;
    size_t n_rows;           /* from the first on */
    const char *const *hide; /* columns not to be drawn, NULL behind the last; may be NULL */
    size_t widest_text;      /* longer texts are cut, whatever room there is; 0: 80 */
};
kymo_status kymo__text_draw(const struct kymo__text_view *view, FILE *out);
/* A cell that is neither null nor text, as people read it; `unit` as in kymo_text_options. */
void kymo__text_number(struct kymo__buf *buf, const struct kymo_cell *cell,
                       const struct kymo_column *column, const char *unit);

/* ---- breakdown_why_out.c: parts of a breakdown; nothing where it has nothing of the kind ---- */

struct kymo_breakdown;
kymo_status kymo__idle_draw(const struct kymo_breakdown *b, const struct kymo_text_options *options,
                            FILE *out);
kymo_status kymo__collectives_draw(const struct kymo_breakdown *b,
                                   const struct kymo_text_options *options, FILE *out);

/* ---- compare_out.c ---- */

/* The sentence that a comparison comes to. */
void kymo__compare_sentence(kymo_comparison *c, struct kymo__buf *line);

/* ---- csv.c ---- */

/* A string: quoted where it must be, valid UTF-8, without NUL; "'" comes before what would be a formula (= + - @). */
void kymo__csv_put(struct kymo__buf *line, const char *text, size_t len);
/* The line of names, and the line of one row, each with its end. */
void kymo__csv_header(const kymo_table *table, struct kymo__buf *line);
void kymo__csv_row(const kymo_table *table, size_t row, struct kymo__buf *line);

/* ---- xml.c ---- */

/*
 * `text` as XML holds it between tags and in quotes: valid UTF-8, & < > " ' escaped, and what no XML may hold, as most
 * control characters, replaced by U+FFFD. Every text of a page or picture goes through here.
 */
void kymo__xml_put(struct kymo__buf *buf, const char *text, size_t len);

/* ---- html_table.c ---- */

/* The first rows of a table as HTML, everything escaped; where some are left out, a sentence below says how many. 0: all. */
void kymo__html_table(struct kymo__buf *html, const kymo_table *table, size_t max_rows);

/* ---- markdown.c ---- */

/* A text or the cell of a table: no bar, no line break, nothing that a renderer takes for HTML or emphasis. */
void kymo__markdown_put(struct kymo__buf *line, const char *text, size_t len);
/* All of a table, titles first. */
void kymo__markdown_table(struct kymo__buf *lines, const kymo_table *table);

/* ---- json.c ---- */

/* The first `n_rows` rows as a list of objects, one in a line; `indent` stands before each. */
kymo_status kymo__json_rows(const kymo_table *table, size_t n_rows, const char *indent, FILE *out);
/* All rows as a member of an object, under the table's name and with a comma behind; what `line` has comes first. */
KYMO_WARN_UNUSED kymo_status kymo__json_named_rows(struct kymo__buf *line, const kymo_table *table,
                                                   FILE *out);
/* Append the last member of an object, a list of texts: the first column of a table, under its name. Closes the object. */
void kymo__json_last_texts(struct kymo__buf *line, const kymo_table *table);

/* A report as one object: its tables by their names, then its notes. Flushes. */
KYMO_WARN_UNUSED kymo_status kymo__json_report(kymo_table *const *tables, size_t n,
                                               const kymo_table *notes, FILE *out);

/* One cell's value; one row as an object. */
void kymo__json_cell(struct kymo__buf *line, const kymo_table *table, size_t row, size_t column);
void kymo__json_row(struct kymo__buf *line, const kymo_table *table, size_t row);

#endif
