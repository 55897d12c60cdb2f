/*
 * present: what the presenters of tables share. Presenters of events have export_internal.h.
 */
#ifndef KYMO_PRESENT_INTERNAL_H
#define KYMO_PRESENT_INTERNAL_H

#include "base/base_internal.h"
#include <kymo/report.h>

/* ---- text_units.c: numbers as people read them ---- */

/* Three digits that count and a unit: "1.23 ms". With `unit` ("ns", "us", "ms", "s") the bare number in that unit. */
void kymo__text_duration(struct kymo__buf *buf, double ns, const char *unit);
/* "950", "1.20 M". */
void kymo__text_amount(struct kymo__buf *buf, double n);
/* "2.10 MB". */
void kymo__text_bytes(struct kymo__buf *buf, double n);
/* "12.3 %". */
void kymo__text_share(struct kymo__buf *buf, double share);
/* "1 thread", "2 threads"; past ten thousand "1.20 M events". `thing` takes an s, or an es behind an s. */
void kymo__text_count_of(struct kymo__buf *buf, uint64_t n, const char *thing);

/*
 * A name or other text from outside, fit for a terminal: valid UTF-8, control characters as \n, \t, \x1b, and when it
 * is wider than `width` (0: no limit) its middle replaced by "...". Returns its width in columns.
 */
size_t kymo__text_put(struct kymo__buf *buf, const char *text, size_t len, size_t width);

/* ---- text.c ---- */

/* A table as it is to be drawn. */
struct kymo__text_view {
    const kymo_table *table;
    struct kymo_text_options options;
    size_t n_rows;           /* from the first on */
    const char *const *hide; /* columns not to be drawn, NULL behind the last; may be NULL */
};
kymo_status kymo__text_draw(const struct kymo__text_view *view, FILE *out);

/* ---- csv.c ---- */

/* One field: quoted where it must be, valid UTF-8, without NUL, which no reader of CSV takes. */
void kymo__csv_put(struct kymo__buf *line, const char *text, size_t len);

/* ---- xml.c ---- */

/*
 * `text` as XML holds it between tags and in quotes: valid UTF-8, & < > " ' escaped, and what no XML may hold, as most
 * control characters, replaced by U+FFFD. Every text of a page or picture goes through here.
 */
void kymo__xml_put(struct kymo__buf *buf, const char *text, size_t len);

/* ---- json.c ---- */

/* The first `n_rows` rows as a list of objects, one in a line; `indent` stands before each. */
kymo_status kymo__json_rows(const kymo_table *table, size_t n_rows, const char *indent, FILE *out);

/* One row as an object. */
void kymo__json_row(struct kymo__buf *line, const kymo_table *table, size_t row);

/* ---- all of them ---- */

/* Hand the buffer to the stream and empty it. KYMO_ENOMEM when it had failed, KYMO_EIO when the stream refuses. */
KYMO_WARN_UNUSED kymo_status kymo__buf_to_stream(struct kymo__buf *buf, FILE *out);

#endif
