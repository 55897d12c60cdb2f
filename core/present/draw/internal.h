/*
 * draw: tables and charts as text, CSV, JSON, Markdown, HTML and SVG.
 *
 *   text.c, function_table.c  a table for a terminal; colors; notes; tables of functions
 *   csv.c, json.c, markup.c   the other formats (markup: XML, HTML, Markdown); one escape function each
 *   chart*.c                  SVG charts with title, axes, units, legend and a description for screen readers
 *   out.c                     buffered output with a writer thread, numbers as text without printf
 *
 * Input: marey_table. Output: bytes. Does not know recordings or analyses: a table is names, types and units. The
 * buffer or the stream records out of memory.
 */
#ifndef MAREY_PRESENT_DRAW_INTERNAL_H
#define MAREY_PRESENT_DRAW_INTERNAL_H

#include "base/internal.h"
#include <marey/report.h>
#include <marey/table.h>

/* ---- text.c ---- */

/* How to draw a table. */
struct marey__text_view {
    const marey_table *table;
    struct marey_text_options options;
    size_t n_rows;           /* from the first on */
    const char *const *hide; /* columns to omit, NULL after the last; may be NULL */
    size_t widest_text;      /* limit on text width, whatever the available width; 0: 80 */
    size_t step;             /* draw every step-th row; 0: all */
};
marey_status marey__text_draw(const struct marey__text_view *view, FILE *out);
/* A cell that is neither null nor text, formatted for people; `unit` as in marey_text_options. */
void marey__text_number(struct marey__buf *buf, const struct marey_cell *cell,
                        const struct marey_column *column, const char *unit);

/* ---- csv.c ---- */

/* A string: quoted if needed, valid UTF-8, without NUL; "'" is put before a formula (= + - @). */
void marey__csv_put(struct marey__buf *line, const char *text, size_t len);
/* The line of names and the first rows. */
MAREY_WARN_UNUSED marey_status marey__csv_rows(const marey_table *table, size_t max_rows, FILE *out);

/* ---- markup.c: XML, HTML, Markdown ---- */

/*
 * `text` escaped for XML between tags and in quotes: valid UTF-8, & < > " ' escaped, and characters forbidden in XML,
 * such as most control characters, replaced by U+FFFD. Every text of a page or chart uses this function.
 */
void marey__xml_put(struct marey__buf *buf, const char *text, size_t len);

/* The first rows of a table as HTML, escaped; a sentence below gives the number of omitted rows. 0: all. */
void marey__html_table(struct marey__buf *html, const marey_table *table, size_t max_rows);

/* A text or the cell of a table: without bars and line breaks, and escaped against HTML and emphasis. */
void marey__markdown_put(struct marey__buf *line, const char *text, size_t len);
/* A whole table, titles first; times in `unit`, NULL: a fitting unit for each. */
void marey__markdown_table(struct marey__buf *lines, const marey_table *table, size_t limit,
                           const char *unit);

/* ---- json.c ---- */

/* The first `n_rows` rows as a list of objects, one per line; `indent` precedes each. */
marey_status marey__json_rows(const marey_table *table, size_t n_rows, const char *indent, FILE *out);
/* All rows as a member of an object, under the table's name and followed by a comma; `line` is written first. */
MAREY_WARN_UNUSED marey_status marey__json_named_rows(struct marey__buf *line,
                                                      const marey_table *table, FILE *out);
/*
 * Append the last member of an object, a list of texts: the first column of a table, under its name. Closes the object.
 */
void marey__json_last_texts(struct marey__buf *line, const marey_table *table);

/* The rest of an object that `line` begins: tables by name, then notes. Flushes. */
MAREY_WARN_UNUSED marey_status marey__json_report(struct marey__buf *line, marey_table *const *tables,
                                                  size_t n, const marey_table *notes, FILE *out);

/* A cell's value; with `for_script` numbers above 2^53 are strings. */
void marey__json_value(struct marey__buf *json, const struct marey_cell *cell, enum marey_type type,
                       bool for_script);
/* One cell's value; one row as an object. */
void marey__json_cell(struct marey__buf *line, const marey_table *table, size_t row, size_t column);
void marey__json_row(struct marey__buf *line, const marey_table *table, size_t row);

/*
 * JSON by a printf()-like pattern: ' is a quote, %s a quoted and escaped string (%.*s of a given length; NULL: null),
 * %d and %u integers, with l, ll or z before them, %i an integer that is null below 0, %x a bool, %f a double. The
 * second function writes numbers above 2^53 as strings, for JavaScript.
 */
void marey__json_printf(struct marey__buf *json, const char *pattern, ...) MAREY_PRINTF(2, 3);
void marey__script_printf(struct marey__buf *json, const char *pattern, ...) MAREY_PRINTF(2, 3);

/* ---- out.c: one large buffer before write(2), or two alternating buffers and a writer thread ---- */

struct marey__writer {
    bool is_running;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    int fd;
    const char *bytes; /* being written, `len` bytes; owned by the caller */
    size_t len;
    bool is_ending;
    int error; /* the first errno */
};

#define MAREY__OUT_BYTES (1u << 20)
/* Maximum size of a plain event in any format, covered by a single reservation. */
#define MAREY__OUT_EVENT 256u

struct marey__out {
    int fd;
    marey_status status; /* the first failure; later output is discarded */
    char *p;             /* where the next byte goes */
    char *limit;         /* beyond this, MAREY__OUT_EVENT bytes no longer fit */
    char *data;
    uint64_t n_flushed; /* bytes that have left the buffer */
    char *other;        /* the buffer used by the writer; NULL without a writer */
    struct marey__writer writer;
};

MAREY_WARN_UNUSED marey_status marey__out_init(struct marey__out *out, int fd);
void marey__out_fini(struct marey__out *out);
/* Pass the buffer to write(2), or to the writer. */
void marey__out_flush(struct marey__out *out);
/* Flush, and wait until everything is written; `status` has a failure. */
void marey__out_drain(struct marey__out *out);
/* Drain, then continue with `fd`. */
void marey__out_redirect(struct marey__out *out, int fd);
/* The final drain; also ends the writer. */
void marey__out_finish(struct marey__out *out);
/* Append `len` bytes, of any number. */
void marey__out_put(struct marey__out *out, const void *bytes, size_t len);

static inline void marey__out_puts(struct marey__out *out, const char *text)
{
    marey__out_put(out, text, strlen(text));
}

/* Bytes put so far. */
static inline uint64_t marey__out_tell(const struct marey__out *out)
{
    return out->n_flushed + (uint64_t)(out->p - out->data);
}

/* Byte number `at` if still in the buffer, else NULL. */
static inline char *marey__out_at(const struct marey__out *out, uint64_t at)
{
    return at >= out->n_flushed ? out->data + (at - out->n_flushed) : NULL;
}

/* Space for MAREY__OUT_EVENT bytes; the caller writes them and advances out->p. */
static inline char *marey__out_room(struct marey__out *out)
{
    if (MAREY_UNLIKELY(out->p > out->limit))
        marey__out_flush(out);
    return out->p;
}

/* Copy a whole file from marey__temporary_open to `out`. */
MAREY_WARN_UNUSED marey_status marey__temporary_copy(int fd, struct marey__out *out);

static inline void marey__out_put_u64(struct marey__out *out, uint64_t value)
{
    out->p = marey__u64_text(marey__out_room(out), value);
}

/* ---- numbers as text: like marey__u64_text, up to MAREY__NUMBER_ROOM bytes ---- */

/* Nanoseconds as microseconds with three decimals: 1234567 is 1234.567. */
char *marey__put_us(char *p, uint64_t ns);
/* The shortest text that reads back as `value`; "null" if it is not finite. */
char *marey__put_f64(char *p, double value);
void marey__json_put_f64(struct marey__buf *buf, double value);
/* The same for CSV: nan, inf and -inf, which spreadsheets and pandas accept. */
char *marey__put_f64_csv(char *p, double value);

/* ---- lines of a report for a terminal, optionally with colors ---- */

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

struct marey__lines {
    struct marey__buf line; /* the current line */
    FILE *out;
    bool has_color;
};

static inline const char *marey__style(const struct marey__lines *lines, const char *code)
{
    return lines->has_color ? code : "";
}

static inline marey_status marey__lines_end(struct marey__lines *lines)
{
    marey__buf_puts(&lines->line, "\n");
    return marey__buf_to_stream(&lines->line, lines->out);
}

/* text.c: a line for each row of a table of texts; `apart`: preceded by an empty line. */
MAREY_WARN_UNUSED marey_status marey__lines_put_notes(struct marey__lines *lines,
                                                      const marey_table *notes);
MAREY_WARN_UNUSED marey_status marey__lines_put_notes_apart(struct marey__lines *lines,
                                                            const marey_table *notes);

/* A report being written, as text or in another format. */
struct marey__report_writer {
    const marey_report *report;
    const struct marey_write_options *options;
    struct marey__lines lines;
};

/* Call after the last line, with its `status`; returns whether all lines were written. */
static inline marey_status marey__lines_close(struct marey__lines *lines, marey_status status)
{
    marey__buf_fini(&lines->line);
    if (status == MAREY_OK && fflush(lines->out) != 0)
        status = marey__fail_errno("write the report");
    return status;
}

/* ==== chart ==== */

/*
 * chart: charts as SVG. A chart always has a title, axes with titles and units, a legend if there is more than
 * one series, and a description with its numbers for screen readers. Its style follows the reader's light or
 * dark mode by a media query; it contains no script. Every text is escaped.
 *
 *      struct marey__chart (lines)  --.
 *                                     >--  frame and ticks: chart.c  --  <svg>
 *      struct marey__bars           --'
 *
 * A chart appends to a buffer, which records out of memory.
 */

enum marey__chart_scale { MAREY__CHART_LINEAR, MAREY__CHART_LOG2, MAREY__CHART_LOG10 };

enum {
    MAREY__CHART_COLORS = 8, /* as in chart.css */
    MAREY__CHART_MUTED = MAREY__CHART_COLORS,
};

/* Common members of lines and bars. Texts are borrowed. */
struct marey__chart_words {
    const char *id;    /* prefix of element ids; unique in a page: letters, digits, dashes */
    const char *title; /* of the chart */
    const char *x_title, *y_title; /* with the unit */
    const char *note;              /* a line below; NULL: none */
    bool has_style;                /* includes the style: for a separate file */
};

/* ---- lines ---- */

struct marey__chart_point {
    double x, y;
    double low, high; /* an error bar; NaN: none */
};

struct marey__chart_series {
    const char *name; /* NULL: not in the legend */
    const struct marey__chart_point *points;
    size_t n; /* by x; points that are not finite, or not above 0 on a logarithmic axis, are omitted */
    uint32_t color;
    bool is_ideal; /* dashed, without marks */
};

struct marey__chart {
    struct marey__chart_words words;
    enum marey__chart_scale x_scale, y_scale;
    double y_at_most; /* minimum end of the axis; 0: where values end */
    const struct marey__chart_series *series;
    size_t n_series;
};

/* Returns false, with nothing written, if there is no point to draw. */
bool marey__chart_lines(const struct marey__chart *chart, struct marey__buf *svg);

/* ---- bars: groups of series of stacked parts ---- */

struct marey__bars {
    struct marey__chart_words words;
    const char *const *groups, *const *series, *const *parts;
    size_t n_groups, n_series, n_parts; /* with one part, colors mark series; with several, parts */
    const uint32_t *series_colors;
    const uint32_t *part_colors; /* if there are several parts */
    const double *values;        /* [group][series][part]; NaN: none */
    const double *low, *high;    /* [group][series] for the whole bar; NULL, NaN: none */
    bool labels_first;           /* the label above a bar is its first part; else its height */
    double y_at_most;            /* as above */
};

bool marey__chart_bars(const struct marey__bars *bars, struct marey__buf *svg);

/* ---- the frame: chart.c ---- */

struct marey__axis {
    enum marey__chart_scale scale;
    double low, high; /* values at its ends */
    double from, to;  /* their positions in pixels */
    double ticks[32];
    size_t n_ticks;
};

struct marey__legend_entry {
    const char *name;
    char sign[4];   /* instead of a mark: "A" */
    uint32_t color; /* of the mark; unused with a sign */
    uint32_t shape; /* of the mark: MAREY__MARK_BOX, or one for lines */
    bool is_dashed;
};
enum { MAREY__MARK_BOX = 100, MAREY__MARK_SHAPES = 4 };

struct marey__plot {
    const struct marey__chart_words *words;
    struct marey__buf *svg;
    struct marey__axis x, y; /* in bar charts, groups set the ticks of x, which has no values */
    double width, height;
    size_t n_legend;
    const struct marey__legend_entry *legend;
};

/* Compute the layout of title, legend and axis titles: sets the ends of the axes, the size, and the ticks of y. */
void marey__plot_lay(struct marey__plot *frame, double plot_width, double below);
/* From <svg> to the grid; `describe` writes the numbers for screen readers. */
void marey__plot_begin(struct marey__plot *frame,
                       void (*describe)(void *ctx, struct marey__buf *text), void *ctx);
void marey__plot_end(struct marey__plot *frame);
/* A mark in the color and shape of a series, with a tooltip if `tip` is not NULL. */
void marey__plot_mark(struct marey__buf *svg, double x, double y, uint32_t shape, uint32_t color,
                      const char *tip);
/* An error bar. */
void marey__plot_error_bar(struct marey__buf *svg, double x, double low, double high, uint32_t color);
/* Text centered at `x`; `style` is a class of chart.css. */
void marey__plot_text(struct marey__buf *svg, double x, double y, const char *style,
                      const char *text);

/* Ends and ticks of an axis for values from `low` to `high`. */
void marey__axis_fit(struct marey__axis *axis, double low, double high);
/* The position of a value in pixels. */
double marey__axis_at(const struct marey__axis *axis, double value);
/* A number with few significant digits: "0.25", "12", "1.5 M". Returned in `into`. */
const char *marey__axis_number(double value, char into[24]);
/* Estimated width of a text in pixels. */
double marey__text_pixels(const char *text);

/* ---- function_table.c: tables of functions on a terminal ---- */

/* A copy of a cell, appended to `into`. */
void marey__table_copy_cell(marey_table *into, const marey_table *table, size_t row, size_t column);

/* Numbers first, without empty columns; then functions, each combined from several columns. */
struct marey__function_table {
    const char *table, *title;           /* of a report; the line above it, NULL: none */
    const char *columns[12], *places[4]; /* prefixes of the columns, "caller"; NULL after the last */
};
/* The one for a table; NULL: none. An empty entry ends the list. */
const struct marey__function_table *
marey__function_table_find(const struct marey__function_table *list, const char *table);
/* An empty line and the first `n_rows`; with `shows_rest`, the total number. */
MAREY_WARN_UNUSED marey_status marey__function_table_put(const struct marey__function_table *how,
                                                         const marey_table *table, size_t n_rows,
                                                         const struct marey_text_options *options,
                                                         bool shows_rest, struct marey__lines *lines);

/*
 * A function with its arguments, as profilers write it: "dot(a:int)"; a method "Class.method(a:int)", its __init__
 * "Class(a:int)". Without a signature, only the name.
 */
void marey__call_label_of(struct marey__buf *label, const char *name, const char *text,
                          bool is_signed);
/* A function as pstats writes it: "dot.py:7(dot)", "{built-in method builtins.len}". */
void marey__call_place(struct marey__buf *text, const char *file, uint64_t line, const char *label,
                       size_t len);

#endif
