/*
 * marey/report.h: reports, tables and exports from recordings (libmarey-tools).
 *
 * An analysis reads recordings and returns tables; a presenter prints a table; an export writes the events for another
 * tool. All of them stream: memory grows with names, threads and tree nodes, not with events.
 */
#ifndef MAREY_REPORT_H
#define MAREY_REPORT_H

#include <stdio.h>

#include <marey/recording.h>
#include <marey/table.h>

MAREY_BEGIN_C

/* Called repeatedly with the completed share, 0..1. NULL: none. */
typedef void marey_progress(void *ctx, double share);

/*
 * Overhead of one kind of measurement, estimated by a calibration inside the program: `count` operations, which took
 * between low_ns and high_ns in total.
 */
enum marey_cost_kind {
    MAREY_COST_GPU,    /* CUDA calls, traced by CUPTI */
    MAREY_COST_CALLS,  /* Python calls */
    MAREY_COST_MEMORY, /* allocations */
    MAREY_N_COSTS
};
struct marey_cost_part {
    uint64_t count, low_ns, high_ns;
    uint32_t n_processes, n_unknown; /* processes that measured it; those with unknown cost */
};

/* Overhead of the measurement, and lost events. */
struct marey_cost {
    uint64_t events;        /* words recorded */
    uint64_t in_program_ns; /* events times the cost of one, as measured in the program */
    uint64_t flush_cpu_ns;  /* CPU time of the flush threads */
    uint64_t log_bytes;
    uint64_t program_ns; /* sum over processes of first to last event; without events, of the whole log */
    uint64_t lost_events, lost_first_ns,
        lost_last_ns; /* relative to that process's first event, recorded or lost */
    struct marey_cost_part parts[MAREY_N_COSTS];
    uint64_t low_ns, high_ns; /* in_program_ns and the known parts */
    uint32_t n_stopped,
        n_cut; /* processes that stopped recording before they ended; with a truncated log */
    uint32_t is_sampled; /* non-zero: a sampler ran; its cost is not included */
};

/* Presenters of one table. MAREY_EIO on a write error. */
struct marey_text_options {
    uint32_t width;   /* columns of the terminal; 0: no limit */
    uint32_t color;   /* non-zero: ANSI colors */
    const char *unit; /* "ns", "us", "ms", "s": unit of all times; NULL: a suitable one for each */
    const char *tree; /* a column to indent by `depth`; NULL: none */
};
MAREY_API marey_status marey_present_text(const marey_table *table,
                                          const struct marey_text_options *options, FILE *out);
MAREY_API marey_status marey_present_csv(const marey_table *table, FILE *out);
/*
 * Append the rows to the file `path`, created if missing; an empty file gets the header line first. Writes all rows at
 * once: concurrent readers, and readers after a kill, see complete lines, and a full disk leaves the file unchanged.
 * MAREY_EINVAL: the file has other columns. One process at a time per file.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_append_csv(const marey_table *table, const char *path);
/* A JSON list of objects, one per row; keys are the column names. */
MAREY_API marey_status marey_present_json(const marey_table *table, FILE *out);
/*
 * An HTML table of the first `max_rows` rows (0: all), with a note below if there are more. Text is escaped. For notebooks;
 * <marey/page.h> writes whole pages.
 */
MAREY_API marey_status marey_present_html(const marey_table *table, size_t max_rows, FILE *out);
/* A JSON object: table names, with their rows as above. */
MAREY_API marey_status marey_present_json_tables(const marey_table *const *tables, size_t n,
                                                 FILE *out);

/* ---- reports ---- */

/*
 * A report is the result of an analysis: named tables with typed columns, notes, and the measurement's overhead. Each
 * analysis has an entry in one registry, see marey_analysis_at(). The command line, the page, Python and
 * docs/reference/analyses.md use the same entries.
 *
 *     marey_report *report;
 *     const char *const settings[] = {"first", NULL};
 *     const struct marey_report_options options = {.settings = settings};
 *     marey_report_create("epochs", &recording, 1, &options, &report);
 *     marey_report_write(report, "text", NULL, stdout);
 */
typedef struct marey_report marey_report;

/* Value type of a setting of an analysis. */
enum marey_setting_kind {
    MAREY_SETTING_FLAG,   /* no value: "first" */
    MAREY_SETTING_COUNT,  /* a whole number: "group=10" */
    MAREY_SETTING_NUMBER, /* a finite number >= 0: "co2=380.5"; a PERCENT also "2%" */
    MAREY_SETTING_TEXT,   /* any string */
    MAREY_SETTING_CHOICE, /* one of the words in `value` */
    MAREY_SETTING_TEXTS   /* any string, and it may be given several times */
};
/* An option of an analysis. */
struct marey_setting {
    const char *name;
    enum marey_setting_kind kind;
    const char *value; /* placeholder in help, or the choices a|b|c; NULL for a flag */
    const char *help;  /* lines for help */
    char letter;       /* short option; 0: none */
    int selects;       /* selects what is counted: `marey export --samples` takes it, too */
    const char *alias; /* another name, which reports and exports accept; NULL: none */
    /* The command of marey.itwinai (Python) that `marey report` runs for it; reports reject it. NULL: none. */
    const char *python;
};
/* A table of an analysis. */
struct marey_table_definition {
    const char *name;
    const struct marey_column *columns; /* NULL: they depend on the recording */
    size_t n_columns;
    const char *by;   /* value of the setting "by" that selects it, as in "by=epoch"; NULL: none */
    const char *help; /* one line */
};
/* An analysis as the registry describes it. */
struct marey_analysis {
    const char *name;
    const char *help;     /* lines for help */
    const char *needs;    /* how to record its input */
    const char *examples; /* lines for help; NULL: none */
    const struct marey_setting *settings;
    size_t n_settings;
    const struct marey_table_definition *tables; /* in the order of the JSON output */
    size_t n_tables;
    const char *csv; /* default table for CSV */
    /* The command that prints it. NULL: a switch of `marey report`. */
    const char *command;
    int is_section; /* its switch adds it to the report of ranges: after the tables, in JSON as an object with its name */
    int needs_arguments; /* event arguments of traces: marey_import_options.keep_arguments */
    const char *option;  /* of `marey run`, which records its input: "calls"; NULL: none */
    const char *python; /* the command of marey.itwinai (Python) that reports CSV files; NULL: none */
    int leads; /* its short form comes above the report of ranges, where recordings have the data */
    int adds_lines; /* its short form comes below the report of ranges, where recordings have the data; 2: and it
                       replaces that report where there are no processes */
};
/* Analysis number `i`; NULL after the last. The first, "ranges", is what `marey report` prints without a switch. */
MAREY_API const struct marey_analysis *marey_analysis_at(size_t i);

/*
 * Convert measurements that only marey.itwinai (Python) can read to the file `csv`: for "measurements" itwinai's files at
 * `from`, for "mlflow" a store. Called on the thread that creates the report.
 */
typedef marey_status marey_convert(void *ctx, const char *command, const char *from, const char *csv);

/* Settings and other options of a report; zero: default. */
struct marey_report_options {
    const char *const *settings; /* "first", "co2=380"; NULL after the last. NULL: none */
    uint32_t n_jobs;             /* threads to read logs; 0: one per core */
    /*
     * Tables to create besides those that settings select, comma separated; "": none. Other large tables may be empty:
     * "ranges" skips `threads` and `ranks`. NULL: all tables.
     */
    const char *tables;
    marey_progress *progress;
    void *progress_ctx;
    /* For each path of marey_report_create_files(), in order. NULL, or a NULL element: none. */
    const char *const *groups; /* the series of "scale"; the sides of "compare", "A" or "B", else the first path is A */
    const char *const *names; /* name in notes; else its path */
    marey_convert *convert;   /* NULL: files that need it are rejected */
    void *convert_ctx;
};
/* MAREY_EINVAL: unknown analysis or invalid setting. Reads no recording. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_report_check(const char *analysis,
                                                            const char *const *settings);
/*
 * Read `n` recordings as one; lent for the call. MAREY_EFORMAT: they lack the data for the analysis; the message describes
 * how to record it. MAREY_EINVAL as marey_report_check().
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_report_create(const char *analysis, marey_recording *const *recordings, size_t n,
                    const struct marey_report_options *options, marey_report **out);
/*
 * The same for `n` paths: recordings and traces as for marey_open(), or files that only this analysis reads, such as CUDA
 * snapshots for "memory". "scale" and "compare" accept only paths.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_report_create_files(const char *analysis, const char *const *paths, size_t n,
                          const struct marey_report_options *options, marey_report **out);
MAREY_API void marey_report_destroy(marey_report *report);
/* Returns 1 if `path` is such a file, by its first bytes; 0 also if the analysis reads none. */
MAREY_API int marey_report_is_file(const char *analysis, const char *path);
/* Returns 0 if the recordings have no data for the analysis, 1 if they may have. Reads no events. */
MAREY_API int marey_report_is_there(const char *analysis, marey_recording *const *recordings,
                                    size_t n);

/* The analysis of the report. */
MAREY_API const struct marey_analysis *marey_report_analysis(const marey_report *report);
/* Its tables, lent until destroy; NULL for an unknown name, or after the last. */
MAREY_API marey_table *marey_report_table(const marey_report *report, const char *name);
MAREY_API marey_table *marey_report_table_at(const marey_report *report, size_t i);
/* Note number `i`: a sentence about the results, lent; NULL after the last. Same as the table `notes`. */
MAREY_API const char *marey_report_note(const marey_report *report, size_t i);
/* Returns 1 if a recording is damaged and the report incomplete. */
MAREY_API int marey_report_is_damaged(const marey_report *report);
/* Measurement overhead in the recorded programs. */
MAREY_API void marey_report_cost(const marey_report *report, struct marey_cost *out);

/* The page of a finding of "diagnosis": what it means, how to fix it, when it is wrong. All strings are static. */
struct marey_finding_page {
    const char *id;    /* "input-bound" */
    const char *brief; /* one line */
    const char *text;  /* Markdown: docs/findings/ID.md */
};
/* Page number `i`, by id; NULL after the last. */
MAREY_API const struct marey_finding_page *marey_finding_page_at(size_t i);

/* Options to write a report; zero: default. */
struct marey_write_options {
    struct marey_text_options text;
    /* Only this table; in text and Markdown also several, comma separated. NULL: as settings select, else the default. */
    const char *table;
    uint32_t limit; /* rows of a table in text and CSV; 0: all */
    int is_short; /* non-zero: short form, for a section of another report; in Markdown the table of CSV */
    const marey_report *section; /* "ranges": printed after the tables, in JSON an object with its name. Lent. NULL: none */
    const marey_report *lead; /* printed before everything else; JSON: a member by its name, unless the analysis has JSON of its own */
    const char *title;        /* of an HTML page; NULL: from the input */
};
/*
 * Write the report as "text", "json" (all tables and notes), "csv" (one table) or "markdown"; "scale" and "compare" also as
 * "html", which needs a stream with a file descriptor, "scale" as "svg" (the chart options->table). MAREY_EINVAL: unknown format, table or chart. MAREY_EFORMAT: a chart without data.
 * MAREY_EIO: write error.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_report_write(const marey_report *report,
                                                            const char *format,
                                                            const struct marey_write_options *options,
                                                            FILE *out);

/*
 * Per-iteration series as CSV: one line per iteration, including warm-up, and range that ran in it, for all processes:
 *   rank,pid,iteration,warmup,cut,name,ns,samples
 * The first line of an iteration has the name "(whole iteration)" and its duration. `filter` as in the summary. `cut` is 1 if
 * events were lost. Streams: memory does not grow with the number of iterations.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_report_per_iteration(marey_recording *const *recordings,
                                                                    size_t n, const char *filter,
                                                                    FILE *out);

/* Content of a format. */
enum marey_export_content {
    MAREY_EXPORT_EVENTS,    /* single events: ranges, marks, counter values, GPU activity */
    MAREY_EXPORT_PATHS,     /* sums by path of nested ranges, functions or frames */
    MAREY_EXPORT_FUNCTIONS, /* sums by function, with callers */
};
/* Options that only some formats accept; for the others marey_export returns MAREY_EINVAL. */
enum marey_export_takes {
    MAREY_EXPORT_FILTER = 1 << 0,
    MAREY_EXPORT_BY = 1 << 1,
    MAREY_EXPORT_BASELINE = 1 << 2,
    MAREY_EXPORT_WINDOW = 1 << 3, /* from_ns, until_ns, launched_before and about */
    MAREY_EXPORT_STARTUP =
        1 << 4, /* startup; the others ignore it and always include imports at start-up */
};

/* A file format that marey_export writes. All strings are static. */
struct marey_export_format {
    const char *name;       /* "perfetto" */
    const char *extensions; /* of its files, the default first: ".db .sqlite" */
    const char *brief;      /* one line: "compact timeline" */
    const char *details;    /* more sentences; NULL: none */
    const char *next;       /* a hint for the user: how to open the file */
    const char *missing;    /* NULL, or why this build cannot write it and what to install */
    const char *split;      /* the format with one file per process; NULL: it cannot be split */
    /* "-journal -wal": suffixes of leftover files that would corrupt a new file of that name; NULL: none. */
    const char *leftovers;
    enum marey_export_content content;
    uint32_t takes; /* bits of enum marey_export_takes */
    int is_binary;
};
/* Format number `i`, from 0; NULL past the last. docs/reference/formats.md lists them. */
MAREY_API const struct marey_export_format *marey_export_format_at(size_t i);

struct marey_export_options {
    const char *filter; /* as in the summary */
    marey_progress *progress;
    void *progress_ctx;
    /* Formats without MAREY_EXPORT_BY and MAREY_EXPORT_BASELINE reject these. */
    const char *by; /* "thread" or "rank": used as outermost frame; NULL: merge all */
    marey_recording *const *baseline; /* lent; recordings to compare with */
    size_t n_baseline;
    /* Formats without MAREY_EXPORT_WINDOW reject these. */
    uint64_t from_ns,
        until_ns; /* only events in between, CLOCK_MONOTONIC of its machine; 0: from the start, to the end */
    uint64_t launched_before; /* select GPU activity by launch number instead of `until_ns`; 0: by `until_ns` */
    const char *about; /* a JSON object to store under the key "marey"; NULL: none */
    int calls; /* export the call profile, laid out as ranges, instead of ranges; default without ranges */
    /*
     * Export the samples that these settings of the analysis "samples" select instead of ranges, NULL after the last; some
     * event formats hold both. Lent. NULL: all samples are exported if there is nothing else, and together with events in
     * timelines.
     */
    const char *const *samples;
    /*
     * Formats with MAREY_EXPORT_STARTUP, of calls and samples: include imports at start-up; else they are omitted, and
     * their time is added to `startup_ns` (may be NULL). Likewise `idle_ns` and idle processes, whose samples are omitted
     * unless the filter of samples has `idle`.
     */
    int startup;
    uint64_t *startup_ns, *idle_ns;
    uint64_t *n_too_deep; /* not NULL: add the number of ranges omitted because they are nested too deep */
    uint64_t *n_unmatched; /* the same for begins and ends of async ranges, if too many were open at once */
};
/*
 * Export recordings to `fd` in the format of this name. Writes to `fd` in large blocks, to a regular file in other threads,
 * and leaves it open. The readable part of a damaged recording is exported. MAREY_EINVAL: unknown format.
 * MAREY_EUNAVAILABLE: not supported by this build.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_export(marey_recording *const *recordings, size_t n,
                                                      const char *format,
                                                      const struct marey_export_options *options,
                                                      int fd);

MAREY_END_C
#endif
