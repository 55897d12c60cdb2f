/*
 * report: the one type that every analysis returns, and the registry of analyses.
 *
 *   registry.c   all analyses, one line each
 *   settings.c   "first", "co2=380": checked against the analysis's entry, then read by it
 *   report.c     marey_report: created through the entry, owns the tables
 *   write.c      text, JSON, CSV and Markdown of a report
 *   sort.c       rows by a column, for text, JSON and CSV
 *   cost.c, cost_text.c   what measuring cost, from the processes of recordings
 *   rows.c       cells and rows common to many tables
 *
 * An analysis is a folder in analyze/ with one `const struct marey__analysis`: its name, settings, tables and
 * functions. The command line, the page, Python and docs/reference/analyses.md read that entry.
 *
 * Input: recordings, the name of an analysis, its settings. Output: tables, notes and cost, written in a format. Knows
 * analyses only as the symbols in registry.c; does not read events.
 */
#ifndef MAREY_REPORT_INTERNAL_H
#define MAREY_REPORT_INTERNAL_H

#include "base/internal.h"
#include <marey/recording.h>
#include <marey/report.h>

/* ---- the entry of an analysis ---- */

/* Input of a report. All pointers are borrowed until make() returns. */
struct marey__request {
    marey_recording *const *recordings;
    size_t n;
    const char *const *paths; /* files of another tool instead; NULL: recordings */
    const void *bytes;        /* content of the first path; NULL: read it from disk */
    size_t n_bytes;
    const void *input; /* input of a type known to the analysis, instead of recordings and paths; NULL: none */
    const struct marey_report_options *options; /* never NULL */
};

/* State of writing a report in one format; defined in present/draw/internal.h. */
struct marey__report_writer;
typedef marey_status marey__put_answer(struct marey__report_writer *writer);

struct marey__analysis {
    struct marey_analysis about;
    /* Further checks of settings, before anything is read. NULL: none. */
    marey_status (*check)(const struct marey__request *request);
    /*
     * Fill report->tables, which are empty and in the order of about.tables. `data` may keep what text output needs
     * beyond the tables; destroy() frees it. Returns MAREY_EFORMAT, from marey__report_missing(), if the recordings
     * have no such data.
     */
    marey_status (*make)(marey_report *report, const struct marey__request *request);
    void (*destroy)(void *data);
    /* NULL: each table is drawn below its line of help. `draws_tables`: also draws a single one, options->table. */
    marey__put_answer *text;
    bool draws_tables;
    bool sorts_csv; /* its setting "sort" names a column, by which CSV of each table is sorted */
    /* NULL: an object of all tables up to the notes. */
    marey__put_answer *json;
    /* Other formats, and Markdown if it is more than the tables; an empty entry ends the list. NULL: none. */
    const struct marey__report_format {
        const char *name;
        marey__put_answer *put;
    } * formats;
    bool reads_paths; /* reads any path itself, and no recordings */
    bool visits_again; /* visits the events of a process several times: they stay in memory meanwhile */
    /* Whether it makes a report of this file of another tool. NULL: it reads recordings, or `reads_paths`. */
    bool (*is_file)(const char *path);
    /*
     * Whether reading the recordings is worthwhile; must not read events. `ranges` is that report of the same
     * recordings, or NULL. NULL: always.
     */
    bool (*is_there)(marey_recording *const *recordings, size_t n, const marey_report *ranges);
    /*
     * Tables of the page, in order, ended by an empty entry: among the others under their titles, or as a list of the
     * index under `page_key`. NULL: none. The page shows them if is_there() returns true.
     */
    const struct marey__page_table {
        const char *table, *title; /* NULL: the name of the table */
    } * page;
    const char *page_key;
    const char *page_setting; /* its setting for the page; "filter": with the page's value; NULL: none */
    bool (*is_on_page)(const marey_report *report); /* whether the page has something to show; NULL: always */
};

struct marey_report {
    const struct marey__analysis *analysis;
    marey_table **tables; /* as analysis->about.tables; NULL where not created */
    char *title;          /* of the recordings */
    const char *table;    /* selected by settings, comma-separated; NULL: none */
    char sort[64]; /* column that CSV is sorted by; "-" before it reverses; "": the table's order */
    const char *csv; /* default table of CSV; NULL: about.csv */
    bool is_damaged; /* its input is damaged */
    struct marey_cost cost;
    void *data;
};

/* Initializes `about` from an array. */
#define MAREY__SETTINGS(list) .settings = (list), .n_settings = MAREY__COUNT_OF(list)
#define MAREY__TABLES(list) .tables = (list), .n_tables = MAREY__COUNT_OF(list)

/* One in each folder, listed in registry.c. */
extern const struct marey__analysis marey__analysis_ranges, marey__analysis_breakdown,
    marey__analysis_gpu, marey__analysis_epochs, marey__analysis_energy, marey__analysis_memory,
    marey__analysis_calls, marey__analysis_samples, marey__analysis_operators, marey__analysis_path,
    marey__analysis_scale, marey__analysis_compare, marey__analysis_diff, marey__analysis_diagnosis;
/* registry.c. Both return NULL for an unknown name, or past the last. */
const struct marey__analysis *marey__analysis_find(const char *name);
const struct marey__analysis *marey__analysis_at(size_t i);
enum { MAREY__MAX_ANALYSES = 16 };

/* ---- settings.c: settings of a checked request ---- */

/* The value, "" for a flag; NULL if not given. Owned by the request. */
const char *marey__setting(const struct marey__request *request, const char *name);
/* The `nth` value of a setting given several times. */
const char *marey__setting_nth(const struct marey__request *request, const char *name, size_t nth);
bool marey__setting_is_on(const struct marey__request *request, const char *name);
/* 0 if not given. */
uint32_t marey__setting_count(const struct marey__request *request, const char *name);

/* ---- report.c: for analyses ---- */

/* marey_report_create() for any request with checked settings. */
MAREY_WARN_UNUSED marey_status marey__report_make(const char *analysis,
                                                  const struct marey__request *request,
                                                  marey_report **out);

/* Fails with MAREY_EFORMAT: the recordings have no such data, and how to record it. */
MAREY_WARN_UNUSED marey_status marey__report_missing(const marey_report *report);
/* The table of this name; NULL if there is none. */
marey_table *marey__report_table(const marey_report *report, const char *name, size_t len);
/* Whether a comma-separated list contains the name. */
bool marey__is_listed(const char *list, const char *name);
void marey__report_progress(const struct marey__request *request, double share);
/* The table of notes; NULL if there is none. */
const marey_table *marey__report_notes(const marey_report *report);

/* ---- write.c: for text ---- */

/* A table with its title. `hides`: columns to omit. */
struct marey__report_view {
    const marey_table *table;
    const char *title;
    size_t n_rows; /* from the first on; options->limit of them are drawn */
    const struct marey_write_options *options;
    bool (*hides)(const void *ctx, const marey_table *table, size_t column);
    const void *ctx;
    size_t widest_text; /* as in marey__text_view */
    size_t step;        /* likewise; if set, all rows are drawn, whatever the limit */
};
struct marey__lines;
MAREY_WARN_UNUSED marey_status marey__report_draw(struct marey__lines *lines,
                                                  const struct marey__report_view *view);
/* Whether any row has a value: not null, not an empty string, not false. */
bool marey__table_has_values(const marey_table *table, size_t column);

/* ---- sort.c ---- */

/*
 * Sort by a column: its name, its title, or its name without "_ns"; "-" before it reverses. Text sorts from A to Z,
 * anything else from the largest. Rows of a tree keep their order. MAREY_EINVAL, listing the columns, if there is no
 * such column.
 */
MAREY_WARN_UNUSED marey_status marey__table_sort(marey_table *table, const char *sort);

/* ---- cost_text.c ---- */

/* The line on cost, without a line end; false if there is nothing to print. */
bool marey__cost_put(struct marey__buf *line, const struct marey_cost *cost);
/* The line that lists what the cost excludes, likewise. */
bool marey__cost_put_missing(struct marey__buf *line, const struct marey_cost *cost);
/* The JSON array of its parts. */
void marey__cost_put_json(struct marey__buf *buf, const struct marey_cost *cost);

/* ---- cost.c ---- */

void marey__cost_add(struct marey_cost *cost, const struct marey_process *process);
/* Call after adding the processes of these recordings. */
void marey__cost_finish(struct marey_cost *cost, marey_recording *const *recordings, size_t n);
/* The cost of all processes of recordings. */
void marey__cost_of(struct marey_cost *cost, marey_recording *const *recordings, size_t n);

/* ---- columns by kind; this header is included by .c files and by other folders' internal.h only ---- */

#define COLUMN(name, title, type, unit)                                                            \
    {                                                                                              \
        name, title, type, unit                                                                    \
    }
#define TEXT(name) COLUMN(name, NULL, MAREY_TYPE_TEXT, MAREY_UNIT_NONE)
#define FLAG(name) COLUMN(name, NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE)
#define NUMBER(name) COLUMN(name, NULL, MAREY_TYPE_I64, MAREY_UNIT_NONE) /* a rank, a pid */
#define WHOLE(name) COLUMN(name, NULL, MAREY_TYPE_U64, MAREY_UNIT_NONE)  /* a line */
#define COUNT(name, title) COLUMN(name, title, MAREY_TYPE_U64, MAREY_UNIT_COUNT)
#define NS(name, title) COLUMN(name, title, MAREY_TYPE_U64, MAREY_UNIT_NS)
#define MEAN(name, title) COLUMN(name, title, MAREY_TYPE_F64, MAREY_UNIT_NS)
#define REAL(name, title) COLUMN(name, title, MAREY_TYPE_F64, MAREY_UNIT_NONE)
#define SHARE(name, title) COLUMN(name, title, MAREY_TYPE_F64, MAREY_UNIT_SHARE)

/* A definition of a table without row selection by a setting. */
#define TABLE_OF(name, columns, help)                                                              \
    {                                                                                              \
        name, columns, MAREY__COUNT_OF(columns), NULL, help                                        \
    }

/* ---- rows.c: cells and rows common to many tables ---- */

/*
 * A cell of a row that is appended as a whole: MAREY__PUT_ROW(table, U64(n), STRING(name), KNOWN(n != 0, U64(ns / n))).
 */
struct marey__cell {
    enum marey_type type; /* 0: null */
    union {
        uint64_t u64;
        int64_t i64;
        double f64;
        const char *text; /* borrowed, `len` bytes; NULL: null */
    };
    size_t len;
};
void marey__put_cells(marey_table *table, const struct marey__cell *cells, size_t n);
#define MAREY__PUT_ROW(table, ...)                                                                 \
    marey__put_cells((table), (const struct marey__cell[]){__VA_ARGS__},                           \
                     sizeof(const struct marey__cell[]){__VA_ARGS__} / sizeof(struct marey__cell))
/* Short names, for .c files. */
#define MAREY__CELL(of, ...) ((struct marey__cell){.type = (of), __VA_ARGS__})
#define NO_CELL MAREY__CELL(0)
#define U64(value) MAREY__CELL(MAREY_TYPE_U64, .u64 = (value))
#define I64(value) MAREY__CELL(MAREY_TYPE_I64, .i64 = (value))
#define F64(value) MAREY__CELL(MAREY_TYPE_F64, .f64 = (value))
#define TRUTH(value) MAREY__CELL(MAREY_TYPE_BOOL, .u64 = (value))
#define STRING_N(string, n) MAREY__CELL(MAREY_TYPE_TEXT, .text = (string), .len = (n))
#define STRING(string) marey__string_cell(string)
/*
 * Cells that are null if: unknown (the value is then not computed); not finite, or not above 0; a rank below 0; a share
 * of an empty whole.
 */
#define KNOWN(is_known, cell) ((is_known) ? (cell) : NO_CELL)
#define FINITE(value) marey__finite_cell(value)
#define POSITIVE(value) marey__positive_cell(value)
#define RANK_OF(rank) KNOWN((rank) >= 0, I64(rank))
#define RATIO(part, whole) KNOWN((whole) != 0, FINITE((double)(part) / (double)(whole)))
/* Two cells. */
#define PROCESS_OF(process) RANK_OF((process)->rank), I64((process)->pid)
struct marey__cell marey__finite_cell(double value);
struct marey__cell marey__positive_cell(double value);
static inline struct marey__cell marey__string_cell(const char *string)
{
    return STRING_N(string, strlen(string));
}

void marey__put_string(marey_table *table, const char *text);
/* A formatted string, truncated to 1023 bytes. */
void marey__put_note(marey_table *table, const char *fmt, ...) MAREY_PRINTF(2, 3);
/* Null if the value is unknown or not finite. */
void marey__put_real(marey_table *table, double value, bool is_known);
void marey__put_u64_or_null(marey_table *table, uint64_t value, bool is_known);
/* Null if unknown (negative). */
void marey__put_rank(marey_table *table, int64_t rank);
/* Its rank, null if unknown, and its pid. */
void marey__put_process(marey_table *table, const struct marey_process *process);
/* Null if the whole is 0. */
void marey__put_share(marey_table *table, uint64_t part_ns, uint64_t whole_ns);
/* By several columns, the first being the most significant; "-" before a name: the largest first. */
void marey__sort_by(marey_table *table, const char *const *columns, size_t n);
#define MAREY__SORT_BY(table, ...)                                                                 \
    marey__sort_by((table), (const char *const[]){__VA_ARGS__},                                    \
                   sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *))
/*
 * An order of rows by name; a table is sorted by the first of these columns that it has. Lists end with an empty entry.
 */
struct marey__table_order {
    const char *name, *columns[5];
};
/* A '-' before the name `how` reverses the order. */
bool marey__table_order_is_known(const struct marey__table_order *orders, const char *how);
/* Strings from A to Z, numbers from the largest. */
void marey__table_order(marey_table *table, const struct marey__table_order *orders, const char *how);
/* The column of a table of notes. */
extern const struct marey_column marey__warning_columns[1];
/* For MAREY__FINALLY: destroys a table. Accepts NULL. */
static inline void marey__table_end(marey_table *const *table)
{
    marey_table_destroy(*table);
}
/* A process's notes, one per line; the process is named unless it is the only one. */
void marey__put_notes(marey_table *table, const struct marey_process *process, bool is_alone);
/* Whether a process has a GPU stream. */
bool marey__has_streams(const marey_recording *recording, size_t process);
/* "a.marey", "a.marey and b.marey", "a.marey and 7 more"; free with marey__free. NULL on out of memory. */
char *marey__recordings_title(marey_recording *const *recordings, size_t n);

#endif
