/*
 * compare: two sets of runs: what changed, by how much, and with which uncertainty.
 *
 *   compare_read.c, compare_stats.c, compare_program.c   recordings, files of statistics, whole programs
 *   compare_rank.c        digests of a run's times: medians of the run and of its blocks; intervals
 *   compare_change.c      from two digests to a change with an interval and a verdict
 *   compare_findings.c    findings of the diagnosis that are gone, smaller or new, from its report
 *   compare.c, compare_tables.c, compare_notes.c   runs to tables; compare_text.c: text, Markdown and JSON
 *
 * Statistics work on logarithms of times, because changes are ratios and noise grows with duration.
 *
 * Input: recordings or files. Output: the tables of a report. Does not know how a diagnosis is made, nor the page,
 * which reads this folder's types.
 */
#ifndef MAREY_ANALYZE_COMPARE_INTERNAL_H
#define MAREY_ANALYZE_COMPARE_INTERNAL_H

#include "analyze/walk/internal.h"
#include "report/internal.h"
#include <marey/compare.h>

struct marey__compare_options {
    double smallest_percent; /* as in struct marey_compare_options */
    const char *filter;      /* ranges and functions; NULL: all */
    uint64_t skip;   /* iterations to skip at the start of each run, marked as warm-up or not */
    uint32_t n_jobs; /* reading threads; 0: one per CPU core */
    marey_progress *progress;
    void *progress_ctx;
    /* As in struct marey__samples_filter: functions of all threads and of idle processes; imports at start-up. */
    bool idle, startup;
};

/* ---- compare_rank.c: digests of a series of times ---- */

enum {
    MAREY__BLOCKS = 16,       /* of a run; coarser blocks are averages of neighbors */
    MAREY__FEWEST_BLOCKS = 4, /* no test is possible with fewer */
    MAREY__FEWEST_TIMES = 8,  /* of a single run on a side */
    MAREY__QUANTILES = 33,    /* the minimum, the maximum, and those between in equal steps */
};

struct marey__digest {
    size_t n;                         /* number of times */
    double log_median;                /* -INFINITY if the median is 0 */
    size_t n_blocks;                  /* MAREY__BLOCKS, half as many, or 0 for fewer times */
    double log_blocks[MAREY__BLOCKS]; /* medians of successive blocks */
    float quantiles[MAREY__QUANTILES];
};

/* `scratch` has space for `n` values. Times are not negative or NaN; `n` is not 0. */
void marey__digest_make(struct marey__digest *digest, const float *times, size_t n,
                        uint32_t *scratch);
/* The same with quantiles; uses a sample of very many times. */
void marey__digest_make_whole(struct marey__digest *digest, const float *times, size_t n,
                              uint32_t *scratch);
/* Half as many blocks, each the average of two. */
void marey__digest_halve(struct marey__digest *digest);
/* The average of digests of one run's processes; `into` has `weight` of them so far. */
void marey__digest_average(struct marey__digest *into, const struct marey__digest *from,
                           size_t weight);

/* The median; sorts `values`. `n` is not 0. */
double marey__median(double *values, size_t n);

/* ---- compare_rank.c: intervals that assume no distribution ---- */

/* The documented confidence is 95 %; the target is slightly higher, because assumptions hold only approximately. */
#define MAREY__CONFIDENCE 0.96

struct marey__change_interval {
    double estimate, low, high;
};

/*
 * Which of the sorted differences bound an interval of MAREY__CONFIDENCE: the n-th from each end; 0 if there are too
 * few. Exact up to about 25 values a side, by the normal approximation above.
 */
size_t marey__mann_whitney_bound(size_t n_a, size_t n_b);
size_t marey__signed_rank_bound(size_t n);

/* By how much `b` exceeds `a`. `has_interval` is false if there are too few values for 95 %. */
MAREY_WARN_UNUSED marey_status marey__shift_of_two(const double *a, size_t n_a, const double *b,
                                                   size_t n_b, struct marey__change_interval *out,
                                                   bool *has_interval);
/* The center of `values`. */
MAREY_WARN_UNUSED marey_status marey__shift_of_one(const double *values, size_t n,
                                                   struct marey__change_interval *out,
                                                   bool *has_interval);

/* ---- compare_change.c: digests to a change ---- */

struct marey__run_digest {
    const struct marey__digest *digest;
    double start;
};

/* Set the reason why no change can be reported. */
void marey__change_set_unknown(struct marey_change *out, const char *reason);

MAREY_WARN_UNUSED marey_status marey__change_of_runs(const struct marey__run_digest *a, size_t n_a,
                                                     const struct marey__run_digest *b, size_t n_b,
                                                     double smallest_percent,
                                                     struct marey_change *out);

/* ---- compare_read.c: one process to digests ---- */

struct marey__range_times {
    const char *text; /* borrowed from the recording */
    size_t len;
    struct marey__digest digest;
    double weight_ns; /* mean over all iterations, including those without it; without iterations the total */
};

/* Times of a process. */
struct marey__process_times {
    struct marey__range_times *ranges;
    size_t n_ranges, cap;
    struct marey__digest whole; /* of iterations, if there are any */
    double whole_ns;            /* their mean */
    size_t n_iterations;        /* that count */
    size_t n_left_out;          /* warm-up, incomplete, or skipped by an option */
    bool has_sums;              /* of calls that are not known individually */
};

/* The process's iterations without warm-up and without the first `skip`; all calls if there are no iterations. */
MAREY_WARN_UNUSED marey_status marey__process_times_read(struct marey__process_times *times,
                                                         marey_recording *recording, size_t process,
                                                         const struct marey__compare_options *options);
void marey__process_times_fini(struct marey__process_times *times);
/* Add a range with `n` times in `ns`; `scratch` as for marey__digest_make. */
MAREY_WARN_UNUSED bool marey__process_times_add(struct marey__process_times *times,
                                                const struct marey__name *name, const float *ns,
                                                size_t n, double weight_ns, uint32_t *scratch);

/* ---- tables ---- */

/* The name of the whole iteration, as in a Stopwatch. */
#define MAREY__WHOLE "(iteration)"
/* Rows of the table `program`. */
#define MAREY__WALL "(wall time)"
#define MAREY__CPU "(CPU time)"
enum { MAREY__WALL_NUMBER, MAREY__CPU_NUMBER }; /* numbers of these names */

enum marey__comparison_table {
    MAREY__COMPARED_RANGES,
    MAREY__COMPARED_ITERATION,
    MAREY__COMPARED_PROGRAM,
    MAREY__COMPARED_FUNCTIONS,
    MAREY__COMPARED_ONLY, /* the tables before it have changes */
    MAREY__COMPARED_RUNS,
    MAREY__COMPARED_FINDINGS,
    MAREY__COMPARED_WARNINGS,
    MAREY__COMPARED_QUANTILES,
    MAREY__N_COMPARED,
};

/* ---- compare_read.c: processes to runs ---- */

struct marey__run_range {
    size_t n_processes; /* 0: not in this run */
    struct marey__digest digest;
    double weight_ns;
};

struct marey__compared_run {
    const char *path, *id; /* owned by the arena and by the recording; the id is "" for stats */
    double start;          /* seconds since 1970; 0: unknown */
    const struct marey_process *first; /* one of its processes; NULL for stats */
    size_t n_processes;
    int32_t world_size; /* -1: unknown */
    size_t n_iterations, n_left_out;
    bool has_sums;
    struct marey__run_ranges {
        struct marey__run_range *list; /* by name */
        size_t n, cap;
    } of[MAREY__COMPARED_ONLY];   /* by table; for functions self times */
    const char *exit_status;      /* "": 0 or unknown */
    bool has_samples, has_calls;  /* sources of the functions */
    uint64_t startup_ns, idle_ns; /* excluded from them: imports at start-up, idle processes */
};

struct marey__compared_runs {
    struct marey__compared_run *runs;
    size_t n, cap;
};

/* Append a new run; NULL on out of memory. */
struct marey__compared_run *marey__runs_add(struct marey__compared_runs *side);
void marey__runs_fini(struct marey__compared_runs *side);
/* The run in `path` of the process or the program, created if needed; NULL on out of memory. */
struct marey__compared_run *marey__runs_find(struct marey__compared_runs *side, const char *path,
                                             const struct marey_process *process);
/* The run's times of this name in a table, created if needed; NULL on out of memory. */
struct marey__run_range *marey__run_range(struct marey__compared_run *run,
                                          enum marey__comparison_table table, uint32_t name);
/* Add a process's times to the run; names get numbers. */
MAREY_WARN_UNUSED bool marey__run_take(struct marey__compared_run *run, struct marey__names *names,
                                       const struct marey__process_times *times);
enum marey__compare_side { MAREY__A, MAREY__B };

struct marey__source {
    enum marey__compare_side side;
    const char *path;
    marey_recording *recording; /* NULL: stats */
};

/* State of making a comparison. */
struct marey__comparison {
    struct marey__source *sources;
    size_t n_sources, sources_cap;
    struct marey__arena texts;
    struct marey__names names[MAREY__COMPARED_ONLY]; /* by table */
    struct marey__compared_runs sides[2];
    marey_table **tables; /* of the report */
};

/* compare_stats.c: reads a stats file. Whether the file looks like one: it begins with a brace. */
bool marey__is_stats(const char *path);
MAREY_WARN_UNUSED marey_status marey__stats_read(struct marey__comparison *c,
                                                 const struct marey__source *source,
                                                 const struct marey__compare_options *options);
/* The same from memory. */
MAREY_WARN_UNUSED marey_status marey__stats_parse(struct marey__comparison *c,
                                                  const struct marey__source *source,
                                                  const char *text, size_t len,
                                                  const struct marey__compare_options *options);
/*
 * compare_program.c: wall and CPU time of the runs of a recording; self times of the functions selected by the options.
 */
MAREY_WARN_UNUSED marey_status marey__runs_add_programs(struct marey__comparison *c,
                                                        const struct marey__source *source);
MAREY_WARN_UNUSED marey_status marey__runs_add_functions(struct marey__comparison *c,
                                                         const struct marey__source *source,
                                                         const struct marey__compare_options *options);

MAREY_WARN_UNUSED marey_status marey__comparison_make_tables(
    struct marey__comparison *c, const struct marey__compare_options *options);
/* Notes on differences between machines and runs that make a comparison doubtful. */
void marey__comparison_notes(marey_table *warnings, const struct marey__comparison *c);

/* compare_findings.c: the table of findings, where both sides have a diagnosis; a row as one sentence without its full stop. */
MAREY_WARN_UNUSED marey_status marey__compare_findings(struct marey__comparison *c);
void marey__compare_finding_line(const marey_table *table, size_t row, struct marey__buf *line);

extern const struct marey_table_definition marey__compare_tables[MAREY__N_COMPARED];

/* ---- compare_text.c: formats of the report ---- */

/* The sentence that summarizes a comparison. */
void marey__compare_sentence(const marey_report *report, struct marey__buf *line);
marey__put_answer marey__compare_text, marey__compare_markdown, marey__compare_json;

/* present/page/page_compare.c: the page. */
marey__put_answer marey__page_compare;

#endif
