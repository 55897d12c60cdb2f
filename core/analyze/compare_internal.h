/*
 * compare: what stands between series of times and a verdict.
 *
 *   times of a run ── compare_digest.c ──> medians, of the run and of its blocks ── compare_change.c ──> change, verdict
 *                                          recordings: averaged over processes       compare_rank.c  intervals by ranks
 *   compare_read.c reads recordings, compare_stats.c files of stats,                compare_t.c     and by Student's t
 *   compare.c puts runs and regions together
 *
 * All statistics are on the logarithms of times: a change is a ratio, and noise grows with what it disturbs.
 */
#ifndef KYMO_COMPARE_INTERNAL_H
#define KYMO_COMPARE_INTERNAL_H

#include "analyze/analyze_internal.h"
#include <kymo/compare.h>

/* ---- compare_digest.c: what is kept of a series ---- */

enum {
    KYMO__BLOCKS = 16,       /* of a run; coarser ones are averages of neighbours */
    KYMO__FEWEST_BLOCKS = 4, /* below, no test can tell anything */
    KYMO__FEWEST_TIMES = 8,  /* of a run that has to stand for itself */
    KYMO__QUANTILES = 33,    /* the least, the largest, and those between in equal steps */
};

struct kymo__digest {
    size_t n;          /* times */
    double log_median; /* -INFINITY when the median is 0 */
    size_t n_blocks;   /* KYMO__BLOCKS, half as many, or 0 for fewer times than these */
    double log_blocks[KYMO__BLOCKS]; /* medians of successive blocks */
    bool has_quantiles;              /* only where a page wants them */
    float quantiles[KYMO__QUANTILES];
};

/* `scratch` has room for `n` values. No time is negative or no number; `n` is not 0. */
void kymo__digest_make(struct kymo__digest *digest, const float *times, size_t n, uint32_t *scratch);
/* Fill in the quantiles, of a sample where there are many times. */
void kymo__digest_spread(struct kymo__digest *digest, const float *times, size_t n,
                         uint32_t *scratch);
/* Half as many blocks, each the average of two. */
void kymo__digest_halve(struct kymo__digest *digest);
/* The average of digests of one run's processes, `weight` of them in `into` so far. */
void kymo__digest_average(struct kymo__digest *into, const struct kymo__digest *from, size_t weight);

/* The median, by sorting `values` in place. `n` is not 0. */
double kymo__median(double *values, size_t n);

/* ---- compare_rank.c: intervals that assume no distribution ---- */

/* 95 % is promised; a little more is aimed at, for where an assumption bends. */
#define KYMO__CONFIDENCE 0.96

struct kymo__change_interval {
    double estimate, low, high;
};

/*
 * Which of the sorted differences bound an interval of KYMO__CONFIDENCE: the n-th from each end; 0 when there are too few for one.
 * Exact up to some 25 values a side, by the normal approximation above.
 */
size_t kymo__mann_whitney_bound(size_t n_a, size_t n_b);
size_t kymo__signed_rank_bound(size_t n);

/* Of how much `b` lies above `a`. `has_interval` is false when there are too few values for 95 %. */
KYMO_WARN_UNUSED kymo_status kymo__shift_of_two(const double *a, size_t n_a, const double *b,
                                                size_t n_b, struct kymo__change_interval *out,
                                                bool *has_interval);
/* Of the centre of `values`. */
KYMO_WARN_UNUSED kymo_status kymo__shift_of_one(const double *values, size_t n,
                                                struct kymo__change_interval *out,
                                                bool *has_interval);

/* ---- compare_t.c: Student's t ---- */

/* The value that |t| with `df` (at least 1) degrees of freedom stays below with probability `p`. */
double kymo__t_quantile(double p, double df);

/* ---- compare_change.c: digests to a change ---- */

struct kymo__run_digest {
    const struct kymo__digest *digest;
    double start;
};

/* Fill in the change and its verdict; or say that there is none to be had, and why. */
void kymo__change_set(struct kymo_change *out, const struct kymo__change_interval *interval,
                      double smallest);
void kymo__change_set_unknown(struct kymo_change *out, const char *reason);

KYMO_WARN_UNUSED kymo_status kymo__change_of_runs(const struct kymo__run_digest *a, size_t n_a,
                                                  const struct kymo__run_digest *b, size_t n_b,
                                                  double smallest_percent, struct kymo_change *out);

/* ---- compare_read.c, compare_calls.c: one process to digests ---- */

struct kymo__region_times {
    const char *text; /* lent by the recording */
    size_t len;
    struct kymo__digest digest;
    double weight_ns; /* for each iteration, those without it counted; without iterations all of it */
};

/* What is kept of a process. */
struct kymo__process_times {
    struct kymo__region_times *regions;
    size_t n_regions, cap;
    struct kymo__digest whole; /* of iterations, where there are any */
    double whole_ns;           /* their mean */
    size_t n_iterations;       /* counted */
    size_t n_left_out;         /* warm-up, not complete, or skipped on demand */
    bool has_sums;             /* of calls that are not known one by one */
    bool wants_quantiles;
};

/* The process's iterations without the warm-up and without the first `skip`; every call where there are no iterations. */
KYMO_WARN_UNUSED kymo_status kymo__process_times_read(struct kymo__process_times *times,
                                                      kymo_recording *recording, size_t process,
                                                      const struct kymo_compare_options *options);
void kymo__process_times_fini(struct kymo__process_times *times);
/* A region with `n` times in `ns`; `scratch` as for kymo__digest_make. */
KYMO_WARN_UNUSED bool kymo__process_times_add(struct kymo__process_times *times,
                                              const struct kymo__name *name, const float *ns,
                                              size_t n, double weight_ns, uint32_t *scratch);
/* Every call of every range, for a process without iterations. */
KYMO_WARN_UNUSED kymo_status kymo__process_times_of_calls(struct kymo__process_times *times,
                                                          kymo_recording *recording, size_t process,
                                                          const struct kymo_compare_options *options);

/* ---- compare_runs.c: processes to runs ---- */

struct kymo__run_region {
    size_t n_processes; /* 0: the run does not have it */
    struct kymo__digest digest;
    double weight_ns;
};

struct kymo__compared_run {
    const char *path, *id; /* lent: by the arena, by the recording; the id is "" for stats */
    double start;          /* seconds since 1970; 0: not known */
    const struct kymo_process *first; /* one of its processes; NULL for stats */
    size_t n_processes;
    int32_t world_size; /* -1: unknown */
    size_t n_iterations, n_left_out;
    bool has_sums;
    struct kymo__run_region whole;
    struct kymo__run_region *regions; /* by name */
    size_t n_regions, cap;
    struct kymo__run_region wall, cpu;  /* of the program, where `kymo run` waited for it */
    const char *exit_status;            /* "" it ended with 0, or nobody knows */
    struct kymo__run_region *functions; /* self times, by name of a function */
    size_t n_functions, functions_cap;
    bool has_samples, has_calls;  /* that the functions are from */
    uint64_t startup_ns, idle_ns; /* left out of them: imports at start-up, idle processes */
};

struct kymo__compared_runs {
    struct kymo__compared_run *runs;
    size_t n, cap;
};

/* A new run at the end; NULL without memory. */
struct kymo__compared_run *kymo__runs_add(struct kymo__compared_runs *side);
void kymo__runs_fini(struct kymo__compared_runs *side);
/* The run of `path` that the process or the program belongs to, made when new; NULL without memory. */
struct kymo__compared_run *kymo__runs_find(struct kymo__compared_runs *side, const char *path,
                                           const struct kymo_process *process);
/* Take what a process gave into the run; names get numbers. */
KYMO_WARN_UNUSED bool kymo__run_take(struct kymo__compared_run *run, struct kymo__names *names,
                                     const struct kymo__process_times *times);
/* The region's place in the run, made when new; NULL without memory. */
struct kymo__run_region *kymo__run_region(struct kymo__compared_run *run, uint32_t name);

/* ---- compare_stats.c: a file of stats to runs ---- */

/* Whether the file looks like one: it begins with a brace. */
bool kymo__is_stats(const char *path);
KYMO_WARN_UNUSED kymo_status kymo__stats_read(struct kymo__compared_runs *side,
                                              struct kymo__names *names, struct kymo__arena *texts,
                                              const char *path,
                                              const struct kymo_compare_options *options);
/* The same from memory; `path` for sentences. */
KYMO_WARN_UNUSED kymo_status kymo__stats_parse(struct kymo__compared_runs *side,
                                               struct kymo__names *names, struct kymo__arena *texts,
                                               const char *path, const char *text, size_t len,
                                               const struct kymo_compare_options *options);

/* ---- compare.c, compare_tables.c, compare_notes.c ---- */

/* The name of the whole iteration, as a Stopwatch calls it. */
#define KYMO__WHOLE "(iteration)"
/* Rows of the table `program`. */
#define KYMO__WALL "(wall time)"
#define KYMO__CPU "(CPU time)"

enum kymo__comparison_table {
    KYMO__COMPARED_REGIONS,
    KYMO__COMPARED_ITERATION,
    KYMO__COMPARED_PROGRAM,
    KYMO__COMPARED_FUNCTIONS,
    KYMO__COMPARED_ONLY,
    KYMO__COMPARED_RUNS,
    KYMO__COMPARED_WARNINGS,
    KYMO__COMPARED_QUANTILES,
    KYMO__N_COMPARED,
};

struct kymo__source {
    enum kymo_compare_side side;
    const char *path;
    kymo_recording *recording; /* NULL: stats */
};

struct kymo_comparison {
    struct kymo__source *sources;
    size_t n_sources, sources_cap;
    struct kymo__arena texts;
    struct kymo__names names, function_names;
    struct kymo__compared_runs sides[2];
    kymo_table *tables[KYMO__N_COMPARED];
};

/* compare_program.c: wall and CPU time of the runs of a recording; self times of functions that the options choose. */
KYMO_WARN_UNUSED kymo_status kymo__runs_add_programs(struct kymo__compared_runs *side,
                                                     const struct kymo__source *source);
KYMO_WARN_UNUSED kymo_status kymo__runs_add_functions(kymo_comparison *c,
                                                      const struct kymo__source *source,
                                                      const struct kymo_compare_options *options);

KYMO_WARN_UNUSED kymo_status kymo__comparison_make_tables(kymo_comparison *c,
                                                          const struct kymo_compare_options *options);
/* compare_quantiles.c: how the times of each region are distributed in each run; without rows where nobody wants it. */
enum { KYMO__N_QUANTILE_COLUMNS = 3 + KYMO__QUANTILES };
extern const struct kymo_column kymo__quantile_columns[KYMO__N_QUANTILE_COLUMNS];
void kymo__comparison_quantiles(kymo_table *table, const kymo_comparison *c);
/* What the two sides' machines and runs have that makes a comparison doubtful. */
void kymo__comparison_notes(kymo_table *warnings, const kymo_comparison *c);

#endif
