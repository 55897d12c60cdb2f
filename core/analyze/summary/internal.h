/*
 * summary: sums over all processes of some recordings by name, path, thread, rank and iteration.
 *
 *   summary.c                    reads and merges processes in parallel
 *   summary_merge.c, iteration_merge.c, gpu_merge.c, summary_sites.c   add one process to the sums
 *   summary_bytes.c, fields.h, partial.c   join sums across MPI processes, in any order
 *   summary_order.c              the final order of processes
 *   summary_tables.c, summary_tree.c, iteration_tables.c, gpu_tables.c, rank_*.c, summary_notes.c   tables
 *   stacks.c                     sums by path, for flame graphs and collapsed stacks
 *   summary_report.c             the report "ranges": columns, tables, settings, its entry in the registry
 *   summary_text*.c, summary_json.c   the same as text and as JSON
 *
 * Input: walked processes (walk/). Output: the tables of "ranges". Does not replay events itself, and does not know the
 * rules for gaps, depth and unmatched ends, nor any other analysis.
 */
#ifndef MAREY_ANALYZE_SUMMARY_INTERNAL_H
#define MAREY_ANALYZE_SUMMARY_INTERNAL_H

#include <string.h>

#include "analyze/walk/internal.h"
#include "present/draw/internal.h"

struct marey__name_stats {
    struct marey__sketch calls;
    uint64_t total_ns, self_ns;
    uint64_t steady_ns; /* of the self time: within the steady parts of processes */
    uint32_t n_threads, n_processes;
};

/* A name's sums in a thread (`lane` set) or in a process. */
struct marey__name_row {
    uint32_t process; /* index in marey__merge.processes; unused in rows of processes */
    uint32_t name;
    uint64_t count, total_ns, self_ns;
    union {
        const struct marey_lane_info *lane; /* in rows of threads */
        uint64_t iteration_ns; /* in rows of processes: time in the iterations that count */
    };
};

/*
 * The rows of all processes, serialized to about 11 bytes each, because there is one per rank and name. A process's
 * rows are sorted, the heaviest first; a zero ends them.
 */
struct marey__rank_rows {
    struct marey__buf bytes;
    size_t *starts; /* by process: offset of its rows */
    size_t starts_cap;
};

struct marey__open_row {
    uint32_t process, name;
    const struct marey_lane_info *lane;
    uint64_t since_ns; /* after the process's first event */
};

/* One per process; added up in the order of processes, because floating-point sums depend on it. */
struct marey__counter_row {
    uint32_t process, name;
    struct marey__counter counter;
};

/* A site, with the place where it was first found. */
struct marey__site_row {
    uint32_t process, id;
    struct marey_site_info info; /* its texts are borrowed */
};

struct marey__site_rows {
    struct marey__names keys;  /* numbers index `rows` */
    struct marey__arena texts; /* of the keys */
    struct marey__site_row *rows;
    size_t n, cap;
};

/* A note or warning of a recording. */
struct marey__note_row {
    uint32_t recording;
    bool is_note; /* from a process that measured; comes after those about logs */
    const char *text;
};

/* A recording's contents besides the processes of the program, for checking all its logs together. */
struct marey__exclusions {
    uint32_t recording;
    uint64_t n_broken, n_empty;             /* logs */
    const struct marey_process **measuring; /* processes with a role; the array belongs to the row */
    size_t n_measuring, cap;
};

struct marey__row_list {
    struct marey__name_row *rows;
    size_t n, cap;
};

/* A name in the iterations of all processes that have it there. */
struct marey__iteration_name {
    struct marey__iteration_values values;
    uint64_t n_iterations, whole_ns; /* of these processes, whether it ran or not */
    uint64_t n_first,
        first_whole_ns; /* of whole_ns: first iterations, as in marey__iteration_values */
    uint32_t n_processes;
    uint32_t highest_process; /* the one with the highest mean */
    double lowest_mean_ns, highest_mean_ns;
};

/* The iterations of one process. */
enum { MAREY__N_RANK_QUANTILES = 33 };
struct marey__iteration_row {
    uint32_t process; /* index in marey__merge.processes */
    uint32_t recording;
    uint64_t n_iterations, n_warmup, n_cut;
    uint64_t n_counted, sum_ns, p50_ns, p99_ns;
    double std_ns;
    double samples;
    uint64_t samples_ns;
    bool has_data;
    uint64_t data_ns;       /* of the range for data loading, */
    uint64_t data_whole_ns; /* within this time, which excludes the first iteration, as for shares */
    uint64_t n_compared;    /* iterations that other ranks have as well */
    uint64_t n_slowest;     /* of these, in which it was the slowest */
    double behind_ns;       /* sum over those of the difference from the mean of the others */
    float quantiles[MAREY__N_RANK_QUANTILES]; /* of counted iterations, at even steps from the shortest to the longest */
};

struct marey__outlier_row {
    uint32_t process;
    uint32_t name; /* the range that was longer than typical; MAREY__NO_NAME: none */
    uint64_t number, ns, typical_ns, extra_ns;
};

struct marey__epoch_row {
    uint32_t process;
    struct marey__span span;
};

/* One iteration over the ranks of a recording: 24 bytes. */
struct marey__rank_step {
    float slowest_ns;
    uint32_t slowest; /* row; MAREY__NO_NAME: a tie */
    uint64_t sum_ns;
    uint32_t n;
};

/* The iterations of a recording's ranks. */
struct marey__rank_steps {
    uint32_t recording;
    struct marey__rank_step *steps; /* by the iteration's place */
    size_t n, cap;
};

/* iteration_merge.c: the iterations of all processes. */
struct marey__iteration_merge {
    const char *data; /* the range for data loading; NULL: not set */
    struct marey__iteration_values whole, no_range;
    uint64_t n_first;
    struct marey__iteration_name *names;
    size_t n_names, names_cap;
    struct marey__iteration_row *rows;
    size_t n_rows, rows_cap;
    struct marey__outlier_row *outliers;
    size_t n_outliers, outliers_cap;
    struct marey__epoch_row *epochs;
    size_t n_epochs, epochs_cap;
    struct marey__phase_stats *phases; /* by name */
    size_t n_phases, phases_cap;
    uint64_t phased_ns; /* from the first event to the last of processes with phases */
    uint64_t steady_ns, steady_phased_ns; /* steady parts: of all processes, of those with phases */
    struct marey__rank_steps *rank_steps; /* unfinished ones, one per recording */
    size_t n_rank_steps, rank_steps_cap;
    bool keeps_rank_steps; /* further ranks of any recording may follow, so the end of a recording finishes nothing */
};

/* gpu_merge.c: the work of all processes. */
struct marey__merged_work {
    struct marey__sketch calls;
    uint64_t bytes, bytes_ns;
    uint32_t name, kind;
    uint32_t next; /* as in struct marey__work_stats */
    uint32_t n_streams, n_devices, n_processes;
};

/* Work launched in ranges of a name. */
struct marey__gpu_range {
    uint64_t count, total_ns, self_ns;
};

struct marey__gpu_merge {
    struct marey__merged_work *works;
    size_t n_works, works_cap;
    uint32_t *by_name; /* as in struct marey__gpu_walk; these two may cover fewer names, or none */
    size_t n_by_name, by_name_cap;
    struct marey__gpu_range *ranges;
    size_t n_ranges, ranges_cap;
    uint64_t work_ns; /* sum over all work */
};

struct marey__merge {
    struct marey__names names;
    struct marey__name_stats *ranges; /* these four by name; the two in the middle may cover fewer names */
    struct marey__name_stats *async;
    struct marey__counter *counters;
    uint64_t *marks;
    size_t n_ranges, n_async, n_counters, n_marks;
    size_t ranges_cap, async_cap, counters_cap, marks_cap;
    struct marey__tree tree;
    struct marey__row_list threads;
    struct marey__rank_rows ranks;
    bool without_threads; /* rows of threads are not needed */
    struct marey__open_row *open;
    size_t n_open, open_cap;
    const struct marey_process **processes; /* borrowed from the recordings */
    size_t n_processes, processes_cap;
    uint32_t *process_recordings; /* by process: the number of its recording */
    size_t process_recordings_cap;
    struct marey__counter_row *counter_rows; /* become `counters` in the end */
    size_t n_counter_rows, counter_rows_cap;
    struct marey__site_rows sites;
    struct marey__note_row *notes;
    size_t n_notes, notes_cap;
    struct marey__exclusions *exclusions;
    size_t n_exclusions, exclusions_cap;
    uint64_t n_threads, n_orphans, n_cut_off, n_unwound, n_async_dropped, n_overlapping, n_too_deep;
    struct marey__iteration_merge iterations;
    struct marey__gpu_merge gpu;
};

MAREY_WARN_UNUSED marey_status marey__merge_init(struct marey__merge *merge);
void marey__merge_fini(struct marey__merge *merge);
/* Add the sums of one process. May take the sketches out of `walk`. */
MAREY_WARN_UNUSED marey_status marey__merge_add(struct marey__merge *merge,
                                                struct marey__process_walk *walk);

/* Add the recordings' notes and sites, after all their processes. */
MAREY_WARN_UNUSED bool marey__merge_add_recordings(struct marey__merge *merge,
                                                   marey_recording *const *recordings, size_t n);
/* After adding everything: order processes, add up counters, count the slowest ranks. In summary_order.c. */
MAREY_WARN_UNUSED marey_status marey__merge_finish(struct marey__merge *merge);
/* Whether process `a` comes before `b`. */
bool marey__merge_is_before(const struct marey__merge *merge, uint32_t a, uint32_t b);
/* Add a site unless it exists; the first one found is kept. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__merge_add_site(struct marey__merge *merge,
                                             const struct marey__site_row *site);
/* The excluded contents of a recording, zeroed if new; NULL on out of memory. */
struct marey__exclusions *marey__merge_exclusions(struct marey__merge *merge, uint32_t recording);
/* Add a measuring process to it. */
MAREY_WARN_UNUSED bool marey__exclusions_add(struct marey__exclusions *exclusions,
                                             const struct marey_process *process);
/* Append a row of the process added last; NULL ends its rows. Sets `bytes.failed` on out of memory. */
void marey__rank_row_put(struct marey__merge *merge, const struct marey__name_row *row);
/*
 * The rows of a process: the first is at the returned address. Call the function below for each at `*at`; it returns
 * false after the last, and sets NULL for invalid bytes.
 */
const uint8_t *marey__rank_rows_of(const struct marey__merge *merge, size_t process);
bool marey__rank_row_next(const struct marey__merge *merge, const uint8_t **at,
                          struct marey__name_row *row);
/* Grow the arrays to this many processes. */
MAREY_WARN_UNUSED bool marey__merge_grow_processes(struct marey__merge *merge, size_t n);

/*
 * Add the GPU work of a process, and the work launched by its ranges; `names` maps its names to the summary's. May take
 * the sketches out of `walk`. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__gpu_merge_add(struct marey__merge *merge,
                                            struct marey__process_walk *walk, const uint32_t *names);
void marey__gpu_merge_fini(struct marey__gpu_merge *gpu);
/* Grow the arrays to the current names. */
MAREY_WARN_UNUSED bool marey__gpu_merge_cover(struct marey__merge *merge);
/* The work of a name and kind, created if needed; NULL on out of memory. */
struct marey__merged_work *marey__gpu_merge_work(struct marey__gpu_merge *gpu, uint32_t name,
                                                 uint32_t kind);

/* Add the iterations of a process; `names` maps its names to the summary's. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__iteration_merge_add(struct marey__merge *merge,
                                                  const struct marey__process_walk *walk,
                                                  uint32_t process, const uint32_t *names);
/* Count the slowest ranks of unfinished recordings. */
void marey__iteration_merge_finish(struct marey__iteration_merge *iterations);
/* The iterations of a recording's ranks, at least `n`; NULL on out of memory. */
struct marey__rank_steps *marey__rank_steps_of(struct marey__iteration_merge *iterations,
                                               uint32_t recording, size_t n);
/* Merge an iteration of other ranks into the same iteration of these ranks. */
void marey__rank_step_add(struct marey__rank_step *step, const struct marey__rank_step *from);
void marey__iteration_merge_fini(struct marey__iteration_merge *iterations);
/* The standard deviation of `n` values; those missing in `values` are zero. 0 if `n` is one. */
double marey__iteration_std(const struct marey__iteration_values *values, uint64_t n);
/* The numbers in `into` of all names of `from`, adding new ones; false on out of memory. In summary_merge.c. */
bool marey__map_names(struct marey__names *into, const struct marey__names *from, uint32_t *numbers);
/* Grow the array at `array` from `*n` elements to the number of names, new ones zeroed. In summary_merge.c. */
bool marey__cover_names(const struct marey__names *names, void *array, size_t *n, size_t *cap,
                        size_t size);

/* ---- the summary ---- */

/* The tables of "ranges", in their order. */
/* clang-format off */
#define MAREY__SUMMARY_TABLES(X) \
    X(RANGES, ranges) X(TREE, tree) X(THREADS, threads) X(RANKS, ranks) X(PROCESSES, processes) \
    X(ASYNC, async) X(COUNTERS, counters) X(MARKS, marks) X(OPEN, open) \
    X(ITERATIONS, iterations) X(ITERATION_RANKS, iteration_ranks) X(THROUGHPUT, throughput) \
    X(EPOCHS, epochs) X(PHASES, phases) X(OUTLIERS, outliers) X(STEADY, steady) \
    X(KERNELS, kernels) X(COPIES, copies) X(GPU_RANGES, gpu_ranges) X(WORKERS, workers) \
    X(RANK_SPREAD, rank_spread) X(RANK_TIMES, rank_times) X(RANK_OUTLIERS, rank_outliers) \
    X(RANK_HOSTS, rank_hosts) X(SITES, sites) X(WARNINGS, warnings)
/* clang-format on */

enum marey__summary_table {
#define MAREY__TABLE_NUMBER(number, name) MAREY__TABLE_##number,
    MAREY__SUMMARY_TABLES(MAREY__TABLE_NUMBER) MAREY__N_TABLES,
#undef MAREY__TABLE_NUMBER
};

/* Data of the report "ranges" besides its tables. */
struct marey__summary {
    int32_t straggler; /* its row in the table iteration_ranks; -1: none */
    uint64_t n_threads;
    char source[24]; /* the tool from which everything was imported; "" if mixed or none */
    char shown[64];  /* tables selected by settings, comma-separated */
};
static inline const struct marey__summary *marey__summary_of(const marey_report *report)
{
    return report->data;
}

/* The parsed settings of "ranges". */
struct marey__summary_options {
    const char *filter, *data; /* NULL: none */
    uint32_t max_depth;        /* of ranges to show; 0: all */
    uint32_t n_jobs;
    marey_progress *progress;
    void *progress_ctx;
    bool has_threads, has_ranks; /* needed: these tables grow with ranks times names */
};
struct marey__summary_options marey__summary_options_of(const struct marey__request *request);

/*
 * Called for every process of a summary. `begin` may set the walk's tap and its visitor of spans; `end` comes after the
 * last event. Both run on the thread that walks the process, and several processes run in parallel. `number` counts the
 * processes of all recordings, from 0.
 */
struct marey__summary_tap {
    marey_status (*begin)(void *ctx, struct marey__process_walk *walk, size_t number);
    marey_status (*end)(void *ctx, struct marey__process_walk *walk, size_t number);
    void *ctx;
};
/* marey__request.input of "ranges". */
struct marey__summary_input {
    const struct marey__summary_tap *tap;
    struct marey__merge *merge; /* complete sums; NULL: read the recordings */
};
/* Add up all processes of the recordings, which must outlive the sums. */
MAREY_WARN_UNUSED marey_status marey__summary_merge(marey_recording *const *recordings, size_t n,
                                                    const struct marey__summary_options *options,
                                                    const struct marey__summary_tap *tap,
                                                    struct marey__merge *merge);

/* ---- summary_text.c, summary_text_iterations.c, summary_json.c ---- */

marey__put_answer marey__summary_text, marey__summary_json;
/*
 * The tables in `list` (NULL: ranges), in order and each once, into `tables`, which needs space for all. `ranges` is
 * followed by kernels, copies, async ranges, counters and marks if present; `iterations` by their ranks (if several),
 * epochs, phases, outliers and workers.
 */
size_t marey__summary_choose(const marey_report *report, const char *list, marey_table **tables);

/* Lines about steps, if there are any: times, rates, the largest ranges, outliers, the straggler. */
MAREY_WARN_UNUSED marey_status marey__summary_put_iterations(const marey_report *report,
                                                             struct marey__lines *lines);
/* One line about data loader workers, if there are any: how busy they were. */
MAREY_WARN_UNUSED marey_status marey__summary_put_workers(const marey_report *report,
                                                          struct marey__lines *lines);
/* Beyond this number of ranks, only exceptions are shown. */
enum { MAREY__FEW_RANKS = 16, MAREY__RANK_ROWS = 10 };
bool marey__summary_has_many_ranks(const marey_report *report);
/* Lines about many ranks: the median, the slowest and the fastest, outliers, hosts. */
MAREY_WARN_UNUSED marey_status marey__summary_put_ranks(const marey_report *report,
                                                        struct marey__lines *lines);

/* ---- filling tables ---- */

struct marey__ranks;
struct marey__table_context {
    const struct marey__merge *merge;
    const char *filter;
    const struct marey_cost *cost;
    const struct marey__ranks *ranks; /* in ranks.h */
    uint32_t max_depth;               /* of ranges to show; 0: all */
    const uint8_t *shallow;           /* by name: whether any range of it is shown; NULL: all */
    bool *failed;                     /* set on out of memory */
};

/* Cells: the string with this number, and a time rounded to ns. */
#define NAMED(context, name)                                                                       \
    STRING_N((context)->merge->names.names[name].text, (context)->merge->names.names[name].len)

uint64_t marey__round_ns(double ns);
#define ROUNDED(ns) U64(marey__round_ns(ns))
/*
 * Whether they are two different ranks; otherwise one is a repetition. Processes without a rank are two if they ran at
 * the same time.
 */
bool marey__is_other_rank(const struct marey_process *a, const struct marey_process *b);
/* Whether the name passes the filter. */
bool marey__is_wanted(const struct marey__table_context *m, uint32_t name);
/* And whether ranges of that name are shown, by their depth. */
bool marey__is_range_wanted(const struct marey__table_context *m, uint32_t name);

enum { MAREY__N_TREE_COLUMNS = 6 };
extern const struct marey_column marey__tree_columns[MAREY__N_TREE_COLUMNS];
/* The rows of each table. */
typedef void marey__fill(marey_table *table, const struct marey__table_context *m);
#define MAREY__DECLARE_FILL(number, name) marey__fill marey__fill_##name;
MAREY__SUMMARY_TABLES(MAREY__DECLARE_FILL)
#undef MAREY__DECLARE_FILL
/* The name of the row for whole iterations. */
#define MAREY__WHOLE_ITERATION "(whole iteration)"
#define MAREY__NO_RANGE "(no range)"
/*
 * The row of `iterations` of the rank that is slowest significantly often, or NULL: more than three standard deviations
 * and half again above the expected count.
 */
const struct marey__iteration_row *
marey__iteration_straggler(const struct marey__iteration_merge *iterations);

/* ==== gpu_tables ==== */

/*
 * gpu_tables: the summary's tables of GPU work; copies and memsets, shared with the report of GPU work.
 */

enum { MAREY__N_COPY_COLUMNS = 9 };
extern const struct marey_column marey__copy_columns[MAREY__N_COPY_COLUMNS];
/* Cells of a copy or memset; `calls` and the other sums are over all of that name. */
struct marey__copy {
    const char *name;
    size_t len;
    const struct marey__sketch *calls;
    uint64_t bytes, bytes_ns;
};
void marey__put_copy(marey_table *table, const struct marey__copy *copy);
/* Bytes per second; null without a size. */
void marey__put_byte_rate(marey_table *table, uint64_t bytes, uint64_t ns);

/* ==== ranks ==== */

/*
 * Compares the ranks of a summary: typical times and outliers.
 *
 *   rows of processes and names (summary_merge.c), of iterations (iteration_merge.c)
 *        --> rank_values.c: values by name, medians, outliers  --> rank_tables.c
 *
 * A rank is a process of the program that is not a data loader worker. Its value of a name is the mean time of that name
 * per iteration; for names outside iterations, and programs without iterations, the total time.
 */

struct marey__rank_value {
    uint32_t process; /* index in marey__merge.processes */
    double ns;
};

/* A name over the ranks that have it. */
struct marey__rank_name {
    uint32_t name; /* MAREY__NO_NAME: the whole iteration, or the whole run */
    bool is_per_iteration;
    bool is_wait;
    size_t n; /* ranks that have it, and of these the lowest and the highest value */
    struct marey__rank_value low, high;
    double median_ns, p25_ns, p75_ns;
    double mad_ns;                    /* median distance from the median */
    size_t first_outlier, n_outliers; /* in the list of all outliers */
};

/* One rank. */
struct marey__rank_row {
    uint32_t process;
    const struct marey__iteration_row *iterations; /* NULL: no iterations that count */
    double ns;       /* of the whole: a mean iteration, else from the first event to the last */
    uint32_t longer; /* the innermost range that makes it slower than others; MAREY__NO_NAME: none */
    double longer_ns; /* the excess over the median */
    double slow_share; /* share of its iterations longer than a typical rank's mean may be; negative: unknown */
};

/* A machine. */
struct marey__rank_host {
    const char *host;
    size_t n_ranks, n_outliers;
    double median_ns, others_ns; /* of its ranks, and of all other ranks */
    double sigma_ns;             /* expected random difference of the two */
};

struct marey__ranks {
    struct marey__rank_name whole;
    struct marey__rank_name *names; /* per iteration first, then the heaviest first */
    size_t n_names;
    struct marey__rank_row *rows; /* the slowest first */
    size_t n_rows;
    struct marey__rank_host *hosts; /* the slowest first */
    size_t n_hosts;
    struct marey__rank_value *outliers; /* sorted by name, then the highest first */
    size_t n_outliers, outliers_cap;
};

/*
 * Compare the ranks; empty for fewer than two. fini() accepts a partially initialized one. Returns false on out of
 * memory.
 */
MAREY_WARN_UNUSED bool marey__ranks_make(struct marey__ranks *ranks,
                                         const struct marey__merge *merge);
void marey__ranks_fini(struct marey__ranks *ranks);

/* With fewer ranks, an outlier may be chance. */
enum { MAREY__RANKS_TO_JUDGE = 5 };
/* The distance from the median in typical distances, which are at least a hundredth of the median. */
double marey__rank_score(const struct marey__rank_name *name, double ns);
/* An outlier: at least FAR typical distances away, and more than a hundredth of the whole. In rank_values.c. */
bool marey__rank_is_outlier(const struct marey__ranks *ranks, const struct marey__rank_name *name,
                            double ns);
bool marey__rank_host_is_outlier(const struct marey__rank_host *host);

/* ==== summary_bytes ==== */

/*
 * A serialized merge, for another process to continue. Only the same version of marey reads it, and it is never
 * stored: "MAREYPRT", a version, the content as numbers (LEB128), doubles and texts, and a CRC-32C of everything before.
 */

/* Owns the texts of a merge that was deserialized; call fini when nothing points into it. */
struct marey__merge_storage {
    struct marey__arena texts;
    void **blocks; /* of processes and lanes, at stable addresses */
    size_t n, cap;
};
void marey__merge_storage_fini(struct marey__merge_storage *storage);

/* Append the merge, which must not be finished (marey__merge_finish); sets `out->failed` on out of memory. */
void marey__merge_pack(struct marey__merge *merge, struct marey__buf *out);
/*
 * Add serialized, untrusted bytes to a merge. MAREY_EFORMAT if they are invalid or of another version; the merge can
 * then only be finalized.
 */
MAREY_WARN_UNUSED marey_status marey__merge_unpack(struct marey__merge *merge,
                                                   struct marey__merge_storage *storage,
                                                   const void *bytes, size_t len);

#endif
