/*
 * marey/report.h: from recordings to reports, tables and exports (libmarey-tools).
 *
 * An analysis reads recordings and returns tables; a presenter draws a table; an export writes the events for another
 * tool. All of it streams: memory grows with names, threads and tree nodes, not with events.
 */
#ifndef MAREY_REPORT_H
#define MAREY_REPORT_H

#include <stdio.h>

#include <marey/recording.h>
#include <marey/table.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called now and then with the share done, 0..1. NULL for none. */
typedef void marey_progress(void *ctx, double share);

/*
 * What one kind of measurement took from the program, estimated from a calibration inside the program: `count` operations,
 * which took between low_ns and high_ns in all.
 */
enum marey_cost_kind {
    MAREY_COST_GPU,    /* calls of CUDA, traced by CUPTI */
    MAREY_COST_CALLS,  /* calls of Python */
    MAREY_COST_MEMORY, /* allocations */
    MAREY_N_COSTS
};
struct marey_cost_part {
    uint64_t count, low_ns, high_ns;
    uint32_t n_processes, n_unknown; /* that measured it; of these, whose cost is not known */
};

/* What the measuring took from the program, and what it lost. */
struct marey_cost {
    uint64_t events;        /* words recorded */
    uint64_t in_program_ns; /* events times the cost of one, measured by the program that ran */
    uint64_t flush_cpu_ns;  /* CPU time of the flush threads */
    uint64_t log_bytes;
    uint64_t program_ns; /* sum over processes of first to last event, of the whole log where there is none */
    uint64_t lost_events, lost_first_ns,
        lost_last_ns; /* times from that process's first event, kept or lost */
    struct marey_cost_part parts[MAREY_N_COSTS];
    uint64_t low_ns, high_ns; /* in_program_ns and the parts, as far as they are known */
    uint32_t n_stopped,
        n_cut; /* processes whose recording stopped before they ended; whose log has no end */
    uint32_t is_sampled; /* non-zero: a sampler ran, whose cost is not in here */
};

/* Presenters of one table. Each returns MAREY_EIO when the stream refuses. */
struct marey_text_options {
    uint32_t width;   /* columns of the terminal; 0: no limit */
    uint32_t color;   /* non-zero: ANSI colours */
    const char *unit; /* "ns", "us", "ms", "s": all times in it; NULL: what fits each */
    const char *tree; /* a column to indent by `depth`; NULL: none */
};
MAREY_API marey_status marey_present_text(const marey_table *table,
                                          const struct marey_text_options *options, FILE *out);
MAREY_API marey_status marey_present_csv(const marey_table *table, FILE *out);
/*
 * Append the rows to the file `path`, which is made where there is none; the line of names goes into an empty one. One
 * write for all rows: whoever reads meanwhile, or after a kill, finds whole lines, and where the disk is full the file
 * is left as it was. MAREY_EINVAL for a file that begins with other columns. One process at a time for each file.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_append_csv(const marey_table *table, const char *path);
/* A JSON list of objects, one per row, keys the column names. */
MAREY_API marey_status marey_present_json(const marey_table *table, FILE *out);
/*
 * An HTML table of the first `max_rows` rows, 0 for all, with a sentence below where there are more; every text is
 * escaped. For notebooks; a whole page is made by <marey/page.h>.
 */
MAREY_API marey_status marey_present_html(const marey_table *table, size_t max_rows, FILE *out);
/* A JSON object: each table's name, and its rows as above. */
MAREY_API marey_status marey_present_json_tables(const marey_table *const *tables, size_t n,
                                                 FILE *out);

/* ---- reports ---- */

/*
 * A report is what an analysis makes of recordings: named tables with typed columns, notes, and what the measuring cost.
 * Each analysis has an entry in one registry; marey_analysis_at() lists them. The command line, the page, Python and
 * docs/reference/analyses.md read the same entries.
 *
 *     marey_report *report;
 *     const char *const settings[] = {"first", NULL};
 *     const struct marey_report_options options = {.settings = settings};
 *     marey_report_create("epochs", &recording, 1, &options, &report);
 *     marey_report_write(report, "text", NULL, stdout);
 */
typedef struct marey_report marey_report;

/* What a setting of an analysis takes. */
enum marey_setting_kind {
    MAREY_SETTING_FLAG,   /* no value: "first" */
    MAREY_SETTING_COUNT,  /* a whole number: "group=10" */
    MAREY_SETTING_NUMBER, /* a finite number of 0 or more: "co2=380.5"; of a PERCENT also "2%" */
    MAREY_SETTING_TEXT,   /* any string */
    MAREY_SETTING_CHOICE, /* one of the words in `value` */
    MAREY_SETTING_TEXTS   /* any string, and it may be given several times */
};
/* An option of an analysis. */
struct marey_setting {
    const char *name;
    enum marey_setting_kind kind;
    const char *value; /* what help calls the value, or the choices a|b|c; NULL for a flag */
    const char *help;  /* lines for help */
};
/* A table of an analysis. */
struct marey_table_definition {
    const char *name;
    const struct marey_column *columns; /* NULL: they depend on the recording */
    size_t n_columns;
    const char *by;   /* the word that selects it: the setting "by=epoch"; NULL: none does */
    const char *help; /* one line */
};
/* An analysis as the registry describes it. */
struct marey_analysis {
    const char *name;
    const char *help;     /* lines for help */
    const char *needs;    /* how to record what it reads */
    const char *examples; /* lines for help; NULL: none */
    const struct marey_setting *settings;
    size_t n_settings;
    const struct marey_table_definition *tables; /* as JSON has them */
    size_t n_tables;
    const char *csv; /* the table that CSV has by default */
    /* The command that prints it. NULL: a switch of `marey report`. */
    const char *command;
    int is_section; /* its switch adds it to the report of ranges: after the tables, in JSON as an object of its name */
    int needs_arguments; /* of the events of traces: marey_import_options.keep_arguments */
};
/* Analysis number `i`; NULL after the last. The first, "ranges", is what `marey report` prints without a switch. */
MAREY_API const struct marey_analysis *marey_analysis_at(size_t i);

/*
 * Write measurements that only marey.itwinai (Python) reads to the file `csv`: for "measurements" those of itwinai's files at
 * `from`, for "mlflow" those of a store. The thread that creates the report calls it.
 */
typedef marey_status marey_convert(void *ctx, const char *command, const char *from, const char *csv);

/* Settings and what else a report takes; zero is the default. */
struct marey_report_options {
    const char *const *settings; /* "first", "co2=380"; NULL after the last. NULL: none */
    uint32_t n_jobs;             /* threads to read logs with; 0: as many as there are cores */
    /*
     * Tables that will be written besides those that settings ask for, comma separated; "": none. Others that are large may
     * be empty: "ranges" skips `threads` and `ranks`. NULL: all tables are wanted.
     */
    const char *tables;
    marey_progress *progress;
    void *progress_ctx;
    /* For each path of marey_report_create_files(), in its order. NULL, or one that is NULL: none. */
    const char *const *groups; /* the series of "scale"; the sides of "compare", "A" or "B", else the first path is A */
    const char *const *names; /* what notes call it; else its path */
    marey_convert *convert;   /* NULL: files that need it are refused */
    void *convert_ctx;
};
/* MAREY_EINVAL when there is no such analysis, or it does not take one of these settings; reads no recording. */
MAREY_API MAREY_WARN_UNUSED marey_status marey_report_check(const char *analysis,
                                                            const char *const *settings);
/*
 * Read `n` recordings as one. They are lent until this returns. MAREY_EFORMAT when they do not have what the analysis
 * reads; the sentence says how to record it. MAREY_EINVAL as marey_report_check().
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_report_create(const char *analysis, marey_recording *const *recordings, size_t n,
                    const struct marey_report_options *options, marey_report **out);
/*
 * The same of `n` paths: recordings and traces as marey_open() takes them, or files that the analysis reads by itself, as
 * CUDA snapshots for "memory". "scale" and "compare" take paths only.
 */
MAREY_API MAREY_WARN_UNUSED marey_status
marey_report_create_files(const char *analysis, const char *const *paths, size_t n,
                          const struct marey_report_options *options, marey_report **out);
MAREY_API void marey_report_destroy(marey_report *report);
/* 1 when `path` is such a file, by its first bytes; 0 also where the analysis reads none. */
MAREY_API int marey_report_is_file(const char *analysis, const char *path);
/* 0 when the recordings have nothing that the analysis reads; 1 when there may be something. Reads no events. */
MAREY_API int marey_report_is_there(const char *analysis, marey_recording *const *recordings,
                                    size_t n);

/* The analysis that made it. */
MAREY_API const struct marey_analysis *marey_report_analysis(const marey_report *report);
/* Its tables, lent until it is destroyed; NULL for a name it does not have, or after the last. */
MAREY_API marey_table *marey_report_table(const marey_report *report, const char *name);
MAREY_API marey_table *marey_report_table_at(const marey_report *report, size_t i);
/* Note number `i`: a sentence about the figures, lent; NULL after the last. The table `notes` has the same. */
MAREY_API const char *marey_report_note(const marey_report *report, size_t i);
/* 1 when a recording has bytes that are not as they were written: the report is not complete. */
MAREY_API int marey_report_is_damaged(const marey_report *report);
/* What measuring cost the recorded programs. */
MAREY_API void marey_report_cost(const marey_report *report, struct marey_cost *out);

/* How a report is written; zero is the default. */
struct marey_write_options {
    struct marey_text_options text;
    /* Only this one, in text and Markdown also several, comma separated; NULL: as settings ask for, else the default. */
    const char *table;
    uint32_t limit; /* rows of a table in text and CSV; 0: all */
    int is_short;   /* non-zero: a few lines, for a section of another report */
    const marey_report *section; /* "ranges": printed after the tables, in JSON an object of its name. Lent. NULL: none */
};
/*
 * Write it as "text", "json" (all tables and notes), "csv" (one table) or "markdown"; "scale" also as "html" and as "svg",
 * a chart that options->table names. MAREY_EINVAL for another format or an unknown table or chart, MAREY_EFORMAT for a chart
 * without data, MAREY_EIO when the stream fails.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_report_write(const marey_report *report,
                                                            const char *format,
                                                            const struct marey_write_options *options,
                                                            FILE *out);

/*
 * The series: a line of CSV for each iteration, warm-up among them, and each range that ran in it, for all processes:
 *   rank,pid,iteration,warmup,cut,name,ns,samples
 * The first line of an iteration is named "(whole iteration)" and has its duration. `filter` as in the summary. `cut`
 * is 1 where events were lost. Streams: memory does not grow with the number of iterations.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_report_per_iteration(marey_recording *const *recordings,
                                                                    size_t n, const char *filter,
                                                                    FILE *out);

/* What a format holds. */
enum marey_export_content {
    MAREY_EXPORT_EVENTS,    /* single events: ranges, marks, counter values, GPU activity */
    MAREY_EXPORT_PATHS,     /* sums by path of ranges, functions or frames within one another */
    MAREY_EXPORT_FUNCTIONS, /* sums by function, with callers */
};
/* Options that only some formats take; marey_export refuses them for the others with MAREY_EINVAL. */
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
    /* "-journal -wal": appended to a file's name, files that would damage a new file of that name; NULL: none. */
    const char *leftovers;
    enum marey_export_content content;
    uint32_t takes; /* bits of enum marey_export_takes */
    int is_binary;
};
/* Format number `i`, from 0; NULL past the last. docs/reference/formats.md lists them. */
MAREY_API const struct marey_export_format *marey_export_format_at(size_t i);

struct marey_samples_filter;
struct marey_export_options {
    const char *filter; /* as in the summary */
    marey_progress *progress;
    void *progress_ctx;
    /* Formats without MAREY_EXPORT_BY and MAREY_EXPORT_BASELINE refuse these. */
    const char *by; /* "thread" or "rank": that is the outermost frame; NULL: all are merged */
    marey_recording *const *baseline; /* lent; what to compare with */
    size_t n_baseline;
    /* Formats without MAREY_EXPORT_WINDOW refuse these. */
    uint64_t from_ns,
        until_ns; /* what lies in between, on CLOCK_MONOTONIC of its machine; 0: from the begin, to the end */
    uint64_t launched_before; /* GPU work by the number of its launch and not by `until_ns`; 0: by that */
    const char *about; /* a JSON object, which the file has under the key "marey"; NULL: none */
    int calls; /* the calls of a call profiler, laid out as ranges, instead of ranges; so are recordings without any range */
    /*
     * Export the samples that this filter selects instead of ranges; some formats of events hold both. Lent. NULL: samples
     * are exported where there is nothing else, and beside events in timelines; then by the defaults of a filter.
     */
    const struct marey_samples_filter *samples; /* <marey/samples_report.h> */
    /*
     * Formats with MAREY_EXPORT_STARTUP, of calls and samples: include imports at start-up; else they are left out, and
     * their time is added to `startup_ns` where it is not NULL. Likewise `idle_ns` and idle processes, whose samples are
     * left out unless the filter of samples has `idle`.
     */
    int startup;
    uint64_t *startup_ns, *idle_ns;
    uint64_t *n_too_deep; /* where it is not NULL, has the ranges added that are left out, being nested too deep */
    uint64_t *n_unmatched; /* the same for begins and ends of async ranges, where too many were in flight */
};
/*
 * Export recordings to `fd` in the format of this name. `fd` is written with large writes, for a regular file by threads
 * beside this one, and stays open. A damaged recording is exported as far as it can be read. MAREY_EINVAL for an unknown
 * format, MAREY_EUNAVAILABLE for one that this build lacks.
 */
MAREY_API MAREY_WARN_UNUSED marey_status marey_export(marey_recording *const *recordings, size_t n,
                                                      const char *format,
                                                      const struct marey_export_options *options,
                                                      int fd);

#ifdef __cplusplus
}
#endif
#endif
