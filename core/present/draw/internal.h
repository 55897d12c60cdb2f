/*
 * draw: tables and charts as text, CSV, JSON, Markdown, HTML and SVG.
 *
 *   text.c                    a table for a terminal; colours; notes
 *   csv.c, json.c, markup.c   the other formats (markup: XML, HTML, Markdown); one escape function each
 *   chart*.c                  SVG charts with title, axes, units, legend and a description for screen readers
 *   out.c                     buffered output with a writer thread, numbers as text without printf
 *
 * Input: marey_table. Output: bytes. Knows no analysis. The buffer or the stream reports out of memory.
 */
#ifndef MAREY_PRESENT_DRAW_INTERNAL_H
#define MAREY_PRESENT_DRAW_INTERNAL_H

#include "base/internal.h"
#include <marey/report.h>
#include <marey/table.h>

/* ---- text.c ---- */

/* A table as it is to be drawn. */
struct marey__text_view {
    const marey_table *table;
    struct marey_text_options options;
    size_t n_rows;           /* from the first on */
    const char *const *hide; /* columns not to be drawn, NULL behind the last; may be NULL */
    size_t widest_text;      /* longer texts are cut, whatever room there is; 0: 80 */
    size_t step;             /* only one in so many rows; 0: each */
};
marey_status marey__text_draw(const struct marey__text_view *view, FILE *out);
/* A cell that is neither null nor text, as people read it; `unit` as in marey_text_options. */
void marey__text_number(struct marey__buf *buf, const struct marey_cell *cell,
                        const struct marey_column *column, const char *unit);

/* ---- csv.c ---- */

/* A string: quoted where it must be, valid UTF-8, without NUL; "'" comes before what would be a formula (= + - @). */
void marey__csv_put(struct marey__buf *line, const char *text, size_t len);
/* The line of names and the first rows. */
MAREY_WARN_UNUSED marey_status marey__csv_rows(const marey_table *table, size_t max_rows, FILE *out);

/* ---- markup.c: XML, HTML, Markdown ---- */

/*
 * `text` as XML holds it between tags and in quotes: valid UTF-8, & < > " ' escaped, and what no XML may hold, as most
 * control characters, replaced by U+FFFD. Every text of a page or chart goes through here.
 */
void marey__xml_put(struct marey__buf *buf, const char *text, size_t len);

/* The first rows of a table as HTML, everything escaped; where some are left out, a sentence below says how many. 0: all. */
void marey__html_table(struct marey__buf *html, const marey_table *table, size_t max_rows);

/* A text or the cell of a table: no bar, no line break, nothing that a renderer takes for HTML or emphasis. */
void marey__markdown_put(struct marey__buf *line, const char *text, size_t len);
/* All of a table, titles first; times in `unit`, NULL: in what fits each. */
void marey__markdown_table(struct marey__buf *lines, const marey_table *table, size_t limit,
                           const char *unit);

/* ---- json.c ---- */

/* The first `n_rows` rows as a list of objects, one in a line; `indent` comes before each. */
marey_status marey__json_rows(const marey_table *table, size_t n_rows, const char *indent, FILE *out);
/* All rows as a member of an object, under the table's name and with a comma behind; what `line` has comes first. */
MAREY_WARN_UNUSED marey_status marey__json_named_rows(struct marey__buf *line,
                                                      const marey_table *table, FILE *out);
/* Append the last member of an object, a list of texts: the first column of a table, under its name. Closes the object. */
void marey__json_last_texts(struct marey__buf *line, const marey_table *table);

/* The rest of an object that `line` begins: tables by their names, then notes. Flushes. */
MAREY_WARN_UNUSED marey_status marey__json_report(struct marey__buf *line, marey_table *const *tables,
                                                  size_t n, const marey_table *notes, FILE *out);

/* A cell's value; with `for_script` numbers beyond 2^53 are strings. */
void marey__json_value(struct marey__buf *json, const struct marey_cell *cell, enum marey_type type,
                       bool for_script);
/* One cell's value; one row as an object. */
void marey__json_cell(struct marey__buf *line, const marey_table *table, size_t row, size_t column);
void marey__json_row(struct marey__buf *line, const marey_table *table, size_t row);

/*
 * JSON by a pattern as of printf(): ' is a quote, %s a string with its quotes, escaped (%.*s of so many bytes; NULL: null), %d
 * and %u whole numbers, with l, ll or z before them, %i one that is null below 0, %x a bool, %f a double. The second
 * function writes numbers beyond 2^53 as strings, for JavaScript.
 */
void marey__json_printf(struct marey__buf *json, const char *pattern, ...) MAREY_PRINTF(2, 3);
void marey__script_printf(struct marey__buf *json, const char *pattern, ...) MAREY_PRINTF(2, 3);

/* ---- out.c: one large buffer in front of write(2), or two in turns in front of a thread that writes ---- */

struct marey__writer {
    bool is_running;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    int fd;
    const char *bytes; /* being written, `len` of them; lent by the caller */
    size_t len;
    bool is_ending;
    int error; /* the first errno */
};

#define MAREY__OUT_BYTES (1u << 20)
/* What one event of plain words may take in any format; a single reservation covers it. */
#define MAREY__OUT_EVENT 256u

struct marey__out {
    int fd;
    marey_status status; /* the first failure; what comes after is swallowed */
    char *p;             /* where the next byte goes */
    char *limit;         /* past this, MAREY__OUT_EVENT bytes no longer fit */
    char *data;
    uint64_t n_flushed; /* bytes that have left the buffer */
    char *other;        /* the buffer that the writer may be writing; NULL without a writer */
    struct marey__writer writer;
};

MAREY_WARN_UNUSED marey_status marey__out_init(struct marey__out *out, int fd);
void marey__out_fini(struct marey__out *out);
/* Hand what is there to write(2), or to the writer. */
void marey__out_flush(struct marey__out *out);
/* Flush, and wait until all is written; a failure is in `status`. */
void marey__out_drain(struct marey__out *out);
/* Drain, then go on into `fd`. */
void marey__out_redirect(struct marey__out *out, int fd);
/* The last drain: it also ends the writer. */
void marey__out_finish(struct marey__out *out);
/* Append `len` bytes, however many. */
void marey__out_put(struct marey__out *out, const void *bytes, size_t len);

static inline void marey__out_puts(struct marey__out *out, const char *text)
{
    marey__out_put(out, text, strlen(text));
}

/* How many bytes have been put so far. */
static inline uint64_t marey__out_tell(const struct marey__out *out)
{
    return out->n_flushed + (uint64_t)(out->p - out->data);
}

/* Byte number `at` while it has not left the buffer, else NULL. */
static inline char *marey__out_at(const struct marey__out *out, uint64_t at)
{
    return at >= out->n_flushed ? out->data + (at - out->n_flushed) : NULL;
}

/* Room for MAREY__OUT_EVENT bytes; the caller writes them and moves out->p itself. */
static inline char *marey__out_room(struct marey__out *out)
{
    if (MAREY_UNLIKELY(out->p > out->limit))
        marey__out_flush(out);
    return out->p;
}

/* Copy a whole file of marey__temporary_open into `out`. */
MAREY_WARN_UNUSED marey_status marey__temporary_copy(int fd, struct marey__out *out);

static inline void marey__out_put_u64(struct marey__out *out, uint64_t value)
{
    out->p = marey__u64_text(marey__out_room(out), value);
}

/* ---- numbers as text: like marey__u64_text, up to MAREY__NUMBER_ROOM bytes ---- */

/* Nanoseconds as microseconds with three decimals: 1234567 is 1234.567. */
char *marey__put_us(char *p, uint64_t ns);
/* The shortest text that reads back as `value`; "null" when it is not finite. */
char *marey__put_f64(char *p, double value);
void marey__json_put_f64(struct marey__buf *buf, double value);
/* The same for CSV: nan, inf and -inf, which spreadsheets and pandas know. */
char *marey__put_f64_csv(char *p, double value);

/* ---- lines of a report for a terminal, with colours where these are wanted ---- */

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

struct marey__lines {
    struct marey__buf line; /* the one that is being made */
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

/* text.c: a line for each row of a table of texts; `apart`: with an empty line before the first. */
MAREY_WARN_UNUSED marey_status marey__lines_put_notes(struct marey__lines *lines,
                                                      const marey_table *notes);
MAREY_WARN_UNUSED marey_status marey__lines_put_notes_apart(struct marey__lines *lines,
                                                            const marey_table *notes);

/* A report that is being written, as text or in another format. */
struct marey__answer {
    const marey_report *report;
    const struct marey_write_options *options;
    struct marey__lines lines;
};

/* The last line was written, with `status`; whether all of them have arrived. */
static inline marey_status marey__lines_close(struct marey__lines *lines, marey_status status)
{
    marey__buf_fini(&lines->line);
    if (status == MAREY_OK && fflush(lines->out) != 0)
        status = marey__fail_errno("write the report");
    return status;
}

/* ==== chart ==== */

/*
 * chart: charts as SVG. A chart always has a title, axes with titles and units, a legend where there is more than
 * one series, and a description with its numbers for screen readers. Its style follows the light or
 * dark mode of the reader by a media query; there is no script in it. Every text is escaped.
 *
 *      struct marey__chart (lines)  --.
 *                                     >--  frame and ticks: chart.c  --  <svg>
 *      struct marey__bars           --'
 *
 * A chart appends to a buffer. Running out of memory shows there, as with any buffer.
 */

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
    bool has_style;                /* with the style inside: a separate file, not part of a page */
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
    bool labels_first;           /* the label above a bar is its first part; else its height */
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
/* From <svg> to the grid; `describe` puts the numbers for screen readers. */
void marey__plot_begin(struct marey__plot *frame,
                       void (*describe)(void *ctx, struct marey__buf *text), void *ctx);
void marey__plot_end(struct marey__plot *frame);
/* A mark in the colour and shape of a series, with a tooltip where `tip` is not NULL. */
void marey__plot_mark(struct marey__buf *svg, double x, double y, uint32_t shape, uint32_t color,
                      const char *tip);
/* An error bar. */
void marey__plot_error_bar(struct marey__buf *svg, double x, double low, double high, uint32_t color);
/* Text in the middle of `x`; `style` is a class of chart.css. */
void marey__plot_text(struct marey__buf *svg, double x, double y, const char *style,
                      const char *text);

/* Ends and ticks of an axis for values from `low` to `high`. */
void marey__axis_fit(struct marey__axis *axis, double low, double high);
/* Where a value is, in pixels. */
double marey__axis_at(const struct marey__axis *axis, double value);
/* A number in a few digits that count: "0.25", "12", "1.5 M". Returned in `into`. */
const char *marey__axis_number(double value, char into[24]);
/* How wide a text will be about, in pixels. */
double marey__text_pixels(const char *text);

/* ---- function_table.c: tables of functions on a terminal ---- */

/* A copy of a cell, appended to `into`. */
void marey__table_copy_cell(marey_table *into, const marey_table *table, size_t row, size_t column);

/* Numbers first, without columns that say nothing; then functions, each made of several columns. */
struct marey__function_table {
    const char *table, *title; /* of a report; the line above it, NULL: none */
    const char *columns[12],
        *places[4]; /* the latter: prefixes of the columns, "caller"; NULL behind the last */
};
/* That of a table; NULL: there is none. The list ends with an empty one. */
const struct marey__function_table *
marey__function_table_find(const struct marey__function_table *list, const char *table);
/* An empty line and the first `n_rows`; with `shows_rest`, of how many these are. */
MAREY_WARN_UNUSED marey_status marey__function_table_put(const struct marey__function_table *how,
                                                         const marey_table *table, size_t n_rows,
                                                         const struct marey_text_options *options,
                                                         bool shows_rest, struct marey__lines *lines);

/*
 * A function with its arguments, as profilers call it: "dot(a:int)"; of a method "Class.method(a:int)", of its __init__
 * "Class(a:int)". One that is not signed has only its name.
 */
void marey__call_label_of(struct marey__buf *label, const char *name, const char *text,
                          bool is_signed);
/* A function as pstats writes it: "dot.py:7(dot)", "{built-in method builtins.len}". */
void marey__call_place(struct marey__buf *text, const char *file, uint64_t line, const char *label,
                       size_t len);

#endif
