/*
 * summary: all processes of some recordings added up by name, path, thread, rank and iteration.
 *
 *   summary.c                    reads and merges, several processes at a time
 *   summary_merge.c, iteration_merge.c, gpu_merge.c, summary_sites.c   one process into the sums
 *   summary_bytes.c, fields.h, partial.c   sums joined across MPI processes, in any order
 *   summary_order.c              the order of processes at the end
 *   summary_tables.c, summary_tree.c, iteration_tables.c, gpu_tables.c, rank_*.c, summary_notes.c   tables
 *   stacks.c                     sums by path, for flame graphs and collapsed stacks
 *
 *   summary_report.c             the report "ranges": columns, tables, settings, its entry in the registry
 *   summary_text*.c, summary_json.c   that as text and as JSON
 *
 * Input: walked processes (walk/). Output: the tables of "ranges".
 */
#ifndef MAREY_ANALYZE_SUMMARY_INTERNAL_H
#define MAREY_ANALYZE_SUMMARY_INTERNAL_H

#include <string.h>

#include "analyze/walk/internal.h"
#include "present/draw/internal.h"

struct marey__name_stats {
    struct marey__sketch calls;
    uint64_t total_ns, self_ns;
    uint64_t steady_ns; /* of the self time: in the steady parts of processes */
    uint32_t n_threads, n_processes;
};

/* A name's share in a thread (`lane` set) or in a process. */
struct marey__name_row {
    uint32_t process; /* in marey__merge.processes; not in rows of processes */
    uint32_t name;
    uint64_t count, total_ns, self_ns;
    union {
        const struct marey_lane_info *lane; /* in rows of threads */
        uint64_t iteration_ns; /* in rows of processes: time in the iterations that count */
    };
};

/*
 * The rows of all processes as bytes, some 11 for each: there is one for each rank and name. A process's rows come the
 * heaviest first; a zero ends them.
 */
struct marey__rank_rows {
    struct marey__buf bytes;
    size_t *starts; /* by process: where its rows begin */
    size_t starts_cap;
};

struct marey__open_row {
    uint32_t process, name;
    const struct marey_lane_info *lane;
    uint64_t since_ns; /* after the process's first event */
};

/* A process's own; they are added up in the order of processes, since sums of such numbers depend on it. */
struct marey__counter_row {
    uint32_t process, name;
    struct marey__counter counter;
};

/* A site, where it was met first. */
struct marey__site_row {
    uint32_t process, id;
    struct marey_site_info info; /* its texts are lent */
};

struct marey__site_rows {
    struct marey__names keys;  /* numbers as in `rows` */
    struct marey__arena texts; /* of the keys */
    struct marey__site_row *rows;
    size_t n, cap;
};

/* A sentence of a recording about itself. */
struct marey__note_row {
    uint32_t recording;
    bool is_note; /* of a process that measured: after those about logs */
    const char *text;
};

/* What a recording has besides processes of the program; for a look at all its logs together. */
struct marey__left_out {
    uint32_t recording;
    uint64_t n_broken, n_empty;             /* logs */
    const struct marey_process **measuring; /* processes of a role; the array is the row's */
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
        first_whole_ns; /* of that: first iterations, as marey__iteration_values has them */
    uint32_t n_processes;
    uint32_t highest_process; /* whose mean is the highest */
    double lowest_mean_ns, highest_mean_ns;
};

/* The iterations of one process. */
enum { MAREY__N_RANK_QUANTILES = 33 };
struct marey__iteration_row {
    uint32_t process; /* in marey__merge.processes */
    uint32_t recording;
    uint64_t n_iterations, n_warmup, n_cut;
    uint64_t n_counted, sum_ns, p50_ns, p99_ns;
    double std_ns;
    double samples;
    uint64_t samples_ns;
    bool has_data;
    uint64_t data_ns;       /* of the range that is data loading, */
    uint64_t data_whole_ns; /* in this time: without the first iteration, as shares are */
    uint64_t n_compared;    /* iterations that other ranks have as well */
    uint64_t n_slowest;     /* of these, in which it was the slowest */
    double behind_ns;       /* by how much in those, against the mean of the others, summed up */
    float quantiles[MAREY__N_RANK_QUANTILES]; /* of those that count, at even steps from the least to the longest */
};

struct marey__outlier_row {
    uint32_t process;
    uint32_t name; /* the range that was longer than typical; MAREY__NO_NAME: none was */
    uint64_t number, ns, usual_ns, extra_ns;
};

struct marey__epoch_row {
    uint32_t process;
    struct marey__span span;
};

/* One iteration over the ranks of a recording: 24 bytes. */
struct marey__rank_step {
    float slowest_ns;
    uint32_t slowest; /* row; MAREY__NO_NAME: two took equally long */
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
    const char *data; /* the range that is data loading; NULL: not said */
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
    uint64_t phased_ns; /* from the first event to the last of processes that have phases */
    uint64_t steady_ns,
        steady_phased_ns; /* steady parts: of all processes, of those that have phases */
    struct marey__rank_steps *rank_steps; /* that are not finished, one for a recording */
    size_t n_rank_steps, rank_steps_cap;
    bool keeps_rank_steps; /* further ranks of any recording may come: a recording's end ends nothing */
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
    uint32_t *by_name; /* as in struct marey__gpu_walk; these two may know fewer names, or none */
    size_t n_by_name, by_name_cap;
    struct marey__gpu_range *ranges;
    size_t n_ranges, ranges_cap;
    uint64_t work_ns; /* of all work, added up */
};

struct marey__merge {
    struct marey__names names;
    struct marey__name_stats *ranges; /* these four by name; the two in the middle may know fewer names */
    struct marey__name_stats *async;
    struct marey__counter *counters;
    uint64_t *marks;
    size_t n_ranges, n_async, n_counters, n_marks;
    size_t ranges_cap, async_cap, counters_cap, marks_cap;
    struct marey__tree tree;
    struct marey__row_list threads;
    struct marey__rank_rows ranks;
    bool without_threads; /* nobody wants rows of threads */
    struct marey__open_row *open;
    size_t n_open, open_cap;
    const struct marey_process **processes; /* lent by the recordings */
    size_t n_processes, processes_cap;
    uint32_t *process_recordings; /* the number of each one's recording */
    size_t process_recordings_cap;
    struct marey__counter_row *counter_rows; /* `counters` is made of these at the end */
    size_t n_counter_rows, counter_rows_cap;
    struct marey__site_rows sites;
    struct marey__note_row *notes;
    size_t n_notes, notes_cap;
    struct marey__left_out *left_out;
    size_t n_left_out, left_out_cap;
    uint64_t n_threads, n_orphans, n_cut_off, n_unwound, n_async_dropped, n_overlapping, n_too_deep;
    struct marey__iteration_merge iterations;
    struct marey__gpu_merge gpu;
};

MAREY_WARN_UNUSED marey_status marey__merge_init(struct marey__merge *merge);
void marey__merge_fini(struct marey__merge *merge);
/* Add what was seen in one process; its sketches may be gone from `walk` afterwards. */
MAREY_WARN_UNUSED marey_status marey__merge_add(struct marey__merge *merge,
                                                struct marey__process_walk *walk);

/* What the recordings say of themselves and of their sites; once the processes of all of them are added. */
MAREY_WARN_UNUSED bool marey__merge_add_recordings(struct marey__merge *merge,
                                                   marey_recording *const *recordings, size_t n);
/*
 * Once all is added: processes in their order, counters added up, the slowest ranks counted. In
 * summary_order.c.
 */
MAREY_WARN_UNUSED marey_status marey__merge_finish(struct marey__merge *merge);
/* Whether process `a` comes before `b`. */
bool marey__merge_is_before(const struct marey__merge *merge, uint32_t a, uint32_t b);
/* Add a site, unless it is there; of two the one that was met first stays. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__merge_add_site(struct marey__merge *merge,
                                             const struct marey__site_row *site);
/* What is left out of a recording, zeroed when new; NULL on out of memory. */
struct marey__left_out *marey__merge_left_out(struct marey__merge *merge, uint32_t recording);
/* Put one more measuring process there. */
MAREY_WARN_UNUSED bool marey__left_out_add(struct marey__left_out *left_out,
                                           const struct marey_process *process);
/* Append a row to those of the process that was added last, or with NULL end them; `bytes.failed` without memory. */
void marey__rank_row_put(struct marey__merge *merge, const struct marey__name_row *row);
/* The rows of a process: the next one at `*at`, which begins there; false behind the last, and NULL for bytes that are none. */
const uint8_t *marey__rank_rows_of(const struct marey__merge *merge, size_t process);
bool marey__rank_row_next(const struct marey__merge *merge, const uint8_t **at,
                          struct marey__name_row *row);
/* Room for as many processes. */
MAREY_WARN_UNUSED bool marey__merge_grow_processes(struct marey__merge *merge, size_t n);

/*
 * Add the GPU work of a process, and what its ranges have launched; `names` are its names as the summary numbers them.
 * The sketches may be gone from `walk` afterwards. Returns false on out of memory.
 */
MAREY_WARN_UNUSED bool marey__gpu_merge_add(struct marey__merge *merge,
                                            struct marey__process_walk *walk, const uint32_t *names);
void marey__gpu_merge_fini(struct marey__gpu_merge *gpu);
/* Room for the names that there are. */
MAREY_WARN_UNUSED bool marey__gpu_merge_cover(struct marey__merge *merge);
/* The work of a name and kind, made when new; NULL on out of memory. */
struct marey__merged_work *marey__gpu_merge_work(struct marey__gpu_merge *gpu, uint32_t name,
                                                 uint32_t kind);

/* Add the iterations of a process; `names` are its names as the summary numbers them. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__iteration_merge_add(struct marey__merge *merge,
                                                  const struct marey__process_walk *walk,
                                                  uint32_t process, const uint32_t *names);
/* Who was slowest, in the recordings that are not finished. */
void marey__iteration_merge_finish(struct marey__iteration_merge *iterations);
/* The iterations of a recording's ranks, at least `n` of them; NULL on out of memory. */
struct marey__rank_steps *marey__rank_steps_of(struct marey__iteration_merge *iterations,
                                               uint32_t recording, size_t n);
/* Add an iteration of other ranks to the same iteration of these ranks. */
void marey__rank_step_add(struct marey__rank_step *step, const struct marey__rank_step *from);
void marey__iteration_merge_fini(struct marey__iteration_merge *iterations);
/* The standard deviation of `n` values, those that are not in `values` being zero; 0 for one. */
double marey__iteration_std(const struct marey__iteration_values *values, uint64_t n);
/* The numbers in `into` of all names of `from`, new ones added; false on out of memory. In summary_merge.c. */
bool marey__map_names(struct marey__names *into, const struct marey__names *from, uint32_t *numbers);
/* Make `*n` elements of the array at `array` as many as there are names, new ones zeroed. In summary_merge.c. */
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

/* What the report "ranges" keeps besides its tables. */
struct marey__summary {
    int32_t straggler; /* its row in the table iteration_ranks; -1: none */
    uint64_t n_threads;
    char source[24]; /* the tool that all was imported from; "" when something was not */
    char shown[64];  /* tables that settings ask for, comma separated */
};
static inline const struct marey__summary *marey__summary_of(const marey_report *report)
{
    return report->data;
}

/* The settings of "ranges", read. */
struct marey__summary_options {
    const char *filter, *data; /* NULL: none */
    uint32_t max_depth;        /* of ranges that are shown; 0: all */
    uint32_t n_jobs;
    marey_progress *progress;
    void *progress_ctx;
    bool has_threads, has_ranks; /* these tables are wanted, which grow with ranks times names */
};
struct marey__summary_options marey__summary_options_of(const struct marey__request *request);

/*
 * Called for every process of a summary. `begin` may set the walk's tap and the visitor of its spans, `end` comes after its
 * last event; both on the thread that walks it, several processes at a time. `number` counts the processes of all
 * recordings, from 0.
 */
struct marey__summary_tap {
    marey_status (*begin)(void *ctx, struct marey__process_walk *walk, size_t number);
    marey_status (*end)(void *ctx, struct marey__process_walk *walk, size_t number);
    void *ctx;
};
/* marey__request.input of "ranges". */
struct marey__summary_input {
    const struct marey__summary_tap *tap;
    struct marey__merge *merge; /* sums that are complete; NULL: the recordings are read */
};
/* Add up all processes of the recordings, which lend their texts. */
MAREY_WARN_UNUSED marey_status marey__summary_merge(marey_recording *const *recordings, size_t n,
                                                    const struct marey__summary_options *options,
                                                    const struct marey__summary_tap *tap,
                                                    struct marey__merge *merge);

/* ---- summary_text.c, summary_text_iterations.c, summary_json.c ---- */

marey__put_answer marey__summary_text, marey__summary_json;
/*
 * The tables that `list` names (NULL: ranges) in that order, each once, into `tables`, which has room for all. After
 * `ranges` come kernels, copies, async ranges, counters and marks where there are any, after `iterations` their ranks (of
 * several), epochs, phases, outliers and workers.
 */
size_t marey__summary_choose(const marey_report *report, const char *list, marey_table **tables);

/* Lines about steps, where there are any: times, rates, the largest ranges, outliers, the straggler. */
MAREY_WARN_UNUSED marey_status marey__summary_put_iterations(const marey_report *report,
                                                             struct marey__lines *lines);
/* One line about the workers of data loaders, where there are any: how busy they were. */
MAREY_WARN_UNUSED marey_status marey__summary_put_workers(const marey_report *report,
                                                          struct marey__lines *lines);
/* More than so many ranks are shown by exception. */
enum { MAREY__FEW_RANKS = 16, MAREY__RANK_ROWS = 10 };
bool marey__summary_has_many_ranks(const marey_report *report);
/* Lines about many ranks: the median, the slowest and the fastest, outliers, hosts. */
MAREY_WARN_UNUSED marey_status marey__summary_put_ranks(const marey_report *report,
                                                        struct marey__lines *lines);

/* ---- tables in the making ---- */

struct marey__ranks;
struct marey__making {
    const struct marey__merge *merge;
    const char *filter;
    const struct marey_cost *cost;
    const struct marey__ranks *ranks; /* in ranks.h */
    uint32_t max_depth;               /* of ranges that are shown; 0: all are */
    const uint8_t *shallow;           /* by name: whether a range of it is; NULL: all are */
    bool *failed;                     /* set on out of memory */
};

/* Cells: the string with this number, and a time rounded to ns. */
#define NAMED(making, name)                                                                        \
    STRING_N((making)->merge->names.names[name].text, (making)->merge->names.names[name].len)

uint64_t marey__round_ns(double ns);
#define ROUNDED(ns) U64(marey__round_ns(ns))
/* Whether they are two ranks; else one repeats the other. Processes without a rank are two if they ran at the same time. */
bool marey__is_other_rank(const struct marey_process *a, const struct marey_process *b);
/* Whether the name passes the filter. */
bool marey__is_wanted(const struct marey__making *m, uint32_t name);
/* And whether ranges of that name are shown, by their depth. */
bool marey__is_range_wanted(const struct marey__making *m, uint32_t name);

enum { MAREY__N_TREE_COLUMNS = 6 };
extern const struct marey_column marey__tree_columns[MAREY__N_TREE_COLUMNS];
/* The rows of each table. */
typedef void marey__fill(marey_table *table, const struct marey__making *m);
#define MAREY__DECLARE_FILL(number, name) marey__fill marey__fill_##name;
MAREY__SUMMARY_TABLES(MAREY__DECLARE_FILL)
#undef MAREY__DECLARE_FILL
/* How the row of whole iterations is called. */
#define MAREY__WHOLE_ITERATION "(whole iteration)"
#define MAREY__NO_RANGE "(no range)"
/*
 * The row of `iterations` of the rank that is slowest more often than chance would have it, or NULL: more than three
 * standard deviations above its due, and at least half as often again.
 */
const struct marey__iteration_row *
marey__find_straggler(const struct marey__iteration_merge *iterations);

/* ==== gpu_tables ==== */

/*
 * gpu_tables: the summary's tables of GPU work; copies and memory sets, which the report of GPU work has alike.
 */

enum { MAREY__N_COPY_COLUMNS = 9 };
extern const struct marey_column marey__copy_columns[MAREY__N_COPY_COLUMNS];
/* The cells of a copy or memory set, `calls` and so on being of all that are called so. */
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
 * The ranks of a summary compared: typical times and outliers.
 *
 *   rows of processes and names (summary_merge.c), of iterations (iteration_merge.c)
 *        --> rank_values.c: values by name, medians, who is far from them  --> rank_tables.c
 *
 * A rank is a process of the program that loads no data for another. Its value of a name is the time of that name in an
 * iteration, on average; of names that run in none, and of programs without iterations, the total time.
 */

struct marey__rank_value {
    uint32_t process; /* in marey__merge.processes */
    double ns;
};

/* A name over the ranks that have it. */
struct marey__rank_name {
    uint32_t name; /* MAREY__NO_NAME: the whole iteration, or the whole run */
    bool is_per_iteration;
    bool is_wait;
    size_t n; /* ranks that have it; of these the lowest value and the highest: */
    struct marey__rank_value low, high;
    double median_ns, p25_ns, p75_ns;
    double mad_ns;                    /* the median of the distances from the median */
    size_t first_outlier, n_outliers; /* among those of all names */
};

/* One rank. */
struct marey__rank_row {
    uint32_t process;
    const struct marey__iteration_row *iterations; /* NULL: it has none that count */
    double ns;       /* of the whole: a mean iteration, else from the first event to the last */
    uint32_t longer; /* the innermost range that makes it slower than others; MAREY__NO_NAME: none */
    double longer_ns; /* by how much, against the median */
    double slow_share; /* of its iterations that take longer than a rank may on average; negative: not known */
};

/* A machine. */
struct marey__rank_host {
    const char *host;
    size_t n_ranks, n_outliers;
    double median_ns, others_ns; /* of its ranks, and of those elsewhere */
    double sigma_ns;             /* how far the first may lie from the second by chance */
};

struct marey__ranks {
    struct marey__rank_name whole;
    struct marey__rank_name *names; /* per iteration first, then the heaviest first */
    size_t n_names;
    struct marey__rank_row *rows; /* the slowest first */
    size_t n_rows;
    struct marey__rank_host *hosts; /* the slowest first */
    size_t n_hosts;
    struct marey__rank_value *outliers; /* of one name after the other, the highest first */
    size_t n_outliers, outliers_cap;
};

/* What is known of the ranks; with fewer than two, nothing. Fini takes a half-made one. Returns false on out of memory. */
MAREY_WARN_UNUSED bool marey__ranks_make(struct marey__ranks *ranks,
                                         const struct marey__merge *merge);
void marey__ranks_fini(struct marey__ranks *ranks);

/* With fewer ranks, an outlier may be chance. */
enum { MAREY__RANKS_TO_JUDGE = 5 };
/* How many typical distances a value lies from the median; a distance is a hundredth of the median at least. */
double marey__rank_score(const struct marey__rank_name *name, double ns);
/* Far from the others: five such distances, and more than a hundredth of the whole. In rank_values.c. */
bool marey__rank_is_outlier(const struct marey__ranks *ranks, const struct marey__rank_name *name,
                            double ns);
bool marey__rank_host_is_outlier(const struct marey__rank_host *host);

/* ==== summary_bytes ==== */

/*
 * A merge as bytes, for another process that continues it. Only the same version of marey reads them; they are not
 * stored: "MAREYPRT", a version, the content as numbers (LEB128), doubles and texts, and a CRC-32C of all before it.
 */

/* What a merge lends texts from that came as bytes; fini when nobody has a pointer into it any more. */
struct marey__lender {
    struct marey__arena texts;
    void **blocks; /* of processes and lanes, which stay where they are */
    size_t n, cap;
};
void marey__lender_fini(struct marey__lender *lender);

/* Append the merge, which is not finished (marey__merge_finish); `out->failed` without memory. */
void marey__merge_pack(struct marey__merge *merge, struct marey__buf *out);
/*
 * Add such bytes, which are checked like any that come from outside, to a merge. MAREY_EFORMAT when they are not a merge, or
 * one of another version; the merge is then only good for marey__merge_fini.
 */
MAREY_WARN_UNUSED marey_status marey__merge_unpack(struct marey__merge *merge,
                                                   struct marey__lender *lender, const void *bytes,
                                                   size_t len);

#endif
