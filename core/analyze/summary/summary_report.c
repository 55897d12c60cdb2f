/*
 * The report "ranges", the default of `marey report`: its columns, tables, settings and its entry in the registry.
 *
 * Columns: a recursive range counts once in total_ns, by its outermost call; mean and quantiles are over all calls.
 * Quantiles are within 0.8 %. `share` is the total over the time from the first to the last event, summed over
 * processes; in `threads` of that process, in `phases` of processes with phases. A range that never ended, or whose end
 * was lost, is not counted. Ranges are grouped by name, across call sites.
 *
 * Steps: warm-up and steps with lost events are counted, but excluded from everything else. A row of `iterations` is
 * the time of a name in a step, over all threads of the process, split where a range continues into the next step. A
 * step in which it did not run counts as 0; `ran` is the number in which it ran. steady_ns and `share` exclude the
 * first step of processes without marked warm-up. rank_min_ns and rank_max_ns are the lowest and highest mean of a
 * process. `slowest` counts the steps in which a rank took longest, behind_ns is its distance from the mean of the
 * others. An outlier is longer than the third quartile plus three interquartile ranges, and than 1.2 medians; `longer`
 * is the innermost range that explains it. A process has at most 16 outliers.
 *
 * Ranks are processes other than data loader workers. The value of a name is its mean time in a step (`per`:
 * "iteration"), or its time in the run (`per`: "run"). mad_ns is the median distance from the median; `score` is the
 * distance from the median over 1.48 times that, or over a hundredth of the median if that is more. With five or more
 * ranks, an outlier has a score above five and a distance of more than a hundredth of the whole.
 *
 * GPU activity: `share` is of the summed times of kernels, copies and memsets. gpu_ranges has for each range name the
 * activity launched in it or in ranges within it; self_gpu_ns excludes the latter.
 */
#include <stdio.h>

#include "analyze/summary/internal.h"

/* ---- columns ---- */

#define INTEGER(name, title) COLUMN(name, title, MAREY_TYPE_I64, MAREY_UNIT_NONE)
#define BOOL(name, title) COLUMN(name, title, MAREY_TYPE_BOOL, MAREY_UNIT_NONE)
#define BYTES(name, title, type) COLUMN(name, title, type, MAREY_UNIT_BYTES)
#define NAME TEXT("name")
#define CALLS COUNT("count", NULL)
#define PROCESS NUMBER("rank"), NUMBER("pid")
#define TOTALS CALLS, NS("total_ns", "total"), NS("self_ns", "self")
#define QUANTILES                                                                                  \
    NS("min_ns", "min"), NS("p50_ns", "median"), NS("p90_ns", "p90"), NS("p99_ns", "p99"),         \
        NS("max_ns", "max")
#define RANGE                                                                                      \
    NAME, TOTALS, NS("mean_ns", "mean"), QUANTILES, SHARE("share", "of run"),                      \
        COUNT("threads", NULL), COUNT("processes", "procs")

static const struct marey_column ranges[] = {RANGE};
static const struct marey_column async[] = {RANGE};
const struct marey_column marey__tree_columns[MAREY__N_TREE_COLUMNS] = {WHOLE("depth"), NAME, TOTALS,
                                                                        SHARE("share", "of run")};
static const struct marey_column threads[] = {
    PROCESS, INTEGER("tid", NULL), TEXT("thread"), NAME, TOTALS, SHARE("share", "of process")};
static const struct marey_column ranks[] = {PROCESS, NAME, TOTALS};
static const struct marey_column processes[] = {
    PROCESS,
    TEXT("host"),
    TEXT("command"),
    {"start_unix_ns", "start", MAREY_TYPE_U64, MAREY_UNIT_UNIX_NS},
    NS("duration_ns", "duration"),
    COUNT("events", NULL),
    COUNT("lost_events", "lost"),
    {"event_cost_ns", "per event", MAREY_TYPE_F64, MAREY_UNIT_NS},
    NS("flush_cpu_ns", "flush"),
    BYTES("log_bytes", "log", MAREY_TYPE_U64),
    TEXT("clock"),
    TEXT("end"),
    TEXT("devices"),
    TEXT("energy_sources"),
    NS("energy_cpu_ns", "energy"),
    INTEGER("worker", NULL),
};
static const struct marey_column counters[] = {
    NAME, CALLS, REAL("min", NULL), REAL("mean", NULL), REAL("max", NULL), REAL("last", NULL)};
static const struct marey_column marks[] = {NAME, CALLS};
static const struct marey_column open[] = {PROCESS, TEXT("thread"), NAME, NS("since_ns", "since")};

#define RATES                                                                                      \
    REAL("iterations_per_s", "iterations/s"), REAL("samples", NULL),                               \
        REAL("samples_per_s", "samples/s"), SHARE("data_share", "data")
static const struct marey_column iterations[] = {NAME,
                                                 CALLS,
                                                 COUNT("ran", NULL),
                                                 NS("mean_ns", "mean"),
                                                 NS("std_ns", "std"),
                                                 QUANTILES,
                                                 NS("steady_ns", "steady"),
                                                 SHARE("share", "of steady"),
                                                 NS("rank_min_ns", "rank min"),
                                                 NS("rank_max_ns", "rank max"),
                                                 INTEGER("max_rank", "of rank")};
static const struct marey_column iteration_ranks[] = {PROCESS,
                                                      COUNT("iterations", NULL),
                                                      COUNT("warmup", NULL),
                                                      COUNT("cut", NULL),
                                                      NS("mean_ns", "mean"),
                                                      NS("std_ns", "std"),
                                                      NS("p50_ns", "median"),
                                                      NS("p99_ns", "p99"),
                                                      RATES,
                                                      COUNT("slowest", NULL),
                                                      SHARE("slowest_share", "slowest in"),
                                                      NS("behind_ns", "behind by")};
static const struct marey_column throughput[] = {COUNT("ranks", NULL), COUNT("iterations", NULL),
                                                 COUNT("warmup", NULL), COUNT("cut", NULL), RATES};
static const struct marey_column epochs[] = {
    PROCESS,
    COLUMN("number", "epoch", MAREY_TYPE_U64, MAREY_UNIT_NONE),
    COUNT("iterations", NULL),
    NS("duration_ns", "duration"),
    REAL("samples", NULL),
    BOOL("ended", NULL),
};
#define PHASE(whole)                                                                               \
    NAME, CALLS, COUNT("iterations", NULL), NS("total_ns", "total"), NS("steady_ns", "steady"),    \
        SHARE("share", whole)
static const struct marey_column phases[] = {PHASE("of run")};
static const struct marey_column steady_phases[] = {PHASE("of steady")};
static const struct marey_column outliers[] = {
    PROCESS,        WHOLE("iteration"),  NS("duration_ns", "duration"), NS("usual_ns", "typical"),
    TEXT("longer"), NS("extra_ns", "by")};
static const struct marey_column steady[] = {NAME, NS("self_ns", "self"),
                                             SHARE("share", "of steady")};
static const struct marey_column workers[] = {NUMBER("rank"),        INTEGER("worker", NULL),
                                              NUMBER("pid"),         COUNT("batches", NULL),
                                              NS("busy_ns", "busy"), NS("duration_ns", "duration"),
                                              SHARE("share", "busy")};

static const struct marey_column kernels[] = {NAME,
                                              TEXT("kind"),
                                              CALLS,
                                              NS("total_ns", "total"),
                                              NS("mean_ns", "mean"),
                                              QUANTILES,
                                              SHARE("share", "of GPU"),
                                              COUNT("streams", NULL),
                                              COUNT("devices", NULL),
                                              COUNT("processes", "procs")};
const struct marey_column marey__copy_columns[MAREY__N_COPY_COLUMNS] = {
    NAME,
    TEXT("direction"),
    CALLS,
    BYTES("bytes", NULL, MAREY_TYPE_U64),
    NS("total_ns", "total"),
    NS("mean_ns", "mean"),
    NS("min_ns", "min"),
    NS("max_ns", "max"),
    BYTES("bytes_per_s", "bytes/s", MAREY_TYPE_F64),
};
static const struct marey_column gpu_ranges[] = {
    NAME, CALLS, NS("gpu_ns", "GPU"), NS("self_gpu_ns", "self GPU"), SHARE("share", "of GPU")};

#define DIFFERENCE                                                                                 \
    {"by_ns", "by", MAREY_TYPE_I64, MAREY_UNIT_NS}, SHARE("by_share", "that is"),                  \
        REAL("score", NULL)
static const struct marey_column rank_spread[] = {NAME,
                                                  TEXT("per"),
                                                  COUNT("ranks", NULL),
                                                  NS("median_ns", "median"),
                                                  NS("mad_ns", "mad"),
                                                  NS("p25_ns", "p25"),
                                                  NS("p75_ns", "p75"),
                                                  NS("min_ns", "min"),
                                                  INTEGER("min_rank", "of rank"),
                                                  NS("max_ns", "max"),
                                                  INTEGER("max_rank", "of rank"),
                                                  SHARE("spread", NULL),
                                                  COUNT("outliers", NULL)};
static const struct marey_column rank_times[] = {PROCESS,
                                                 TEXT("host"),
                                                 TEXT("per"),
                                                 NS("mean_ns", "mean"),
                                                 NS("median_ns", "median"),
                                                 DIFFERENCE,
                                                 BOOL("outlier", NULL),
                                                 SHARE("slow_share", "slow in"),
                                                 TEXT("longer"),
                                                 NS("longer_by_ns", "longer by")};
static const struct marey_column rank_outliers[] = {
    PROCESS,   TEXT("host"), NAME, TEXT("per"), NS("mean_ns", "mean"), NS("median_ns", "median"),
    DIFFERENCE};
static const struct marey_column rank_hosts[] = {TEXT("host"),
                                                 TEXT("per"),
                                                 COUNT("ranks", NULL),
                                                 NS("median_ns", "median"),
                                                 NS("others_ns", "elsewhere"),
                                                 DIFFERENCE,
                                                 COUNT("outliers", NULL),
                                                 BOOL("outlier", NULL)};
static const struct marey_column sites[] = {NAME,           TEXT("category"), TEXT("domain"),
                                            WHOLE("color"), TEXT("file"),     WHOLE("line")};

/* ---- tables ---- */

#define TABLE(columns, help) TABLE_OF(#columns, columns, help)
static const struct marey_table_definition tables[MAREY__N_TABLES] = {
    [MAREY__TABLE_RANGES] = TABLE(
        ranges, "ranges by name, the largest total first; self time excludes the ranges inside"),
    [MAREY__TABLE_TREE] = {"tree", marey__tree_columns, MAREY__N_TREE_COLUMNS, NULL,
                           "ranges by path, depth first, the heaviest child first"},
    [MAREY__TABLE_THREADS] = TABLE(threads, "ranges by thread"),
    [MAREY__TABLE_RANKS] = TABLE(ranks, "ranges by rank"),
    [MAREY__TABLE_PROCESSES] =
        TABLE(processes, "processes, what measuring cost them, how they ended"),
    [MAREY__TABLE_ASYNC] = TABLE(async, "async ranges by name; they may end on another thread"),
    [MAREY__TABLE_COUNTERS] = TABLE(counters, "counters"),
    [MAREY__TABLE_MARKS] = TABLE(marks, "marks by name"),
    [MAREY__TABLE_OPEN] = TABLE(open, "ranges that were open at the end, and since when"),
    [MAREY__TABLE_ITERATIONS] =
        TABLE(iterations, "the whole step, then the time of each range in it"),
    [MAREY__TABLE_ITERATION_RANKS] =
        TABLE(iteration_ranks, "steps by rank, and how often each was the slowest"),
    [MAREY__TABLE_THROUGHPUT] = TABLE(throughput, "one row: steps and training samples per second"),
    [MAREY__TABLE_EPOCHS] = TABLE(epochs, "epochs by rank"),
    [MAREY__TABLE_PHASES] = TABLE(phases, "phases: of the steady part, else of the run"),
    [MAREY__TABLE_OUTLIERS] = TABLE(
        outliers, "the longest steps that are outliers, and the range that was longer in them"),
    [MAREY__TABLE_STEADY] =
        TABLE(steady, "self time in the steady part: from the end of the warm-up, or of the first "
                      "step, to the end of the last step"),
    [MAREY__TABLE_KERNELS] = TABLE(kernels, "GPU activity by name and kind"),
    [MAREY__TABLE_COPIES] = {"copies", marey__copy_columns, MAREY__N_COPY_COLUMNS, NULL,
                             "copies and memsets of GPUs: bytes and bandwidth"},
    [MAREY__TABLE_GPU_RANGES] = TABLE(gpu_ranges, "GPU activity by the ranges that launched it"),
    [MAREY__TABLE_WORKERS] = TABLE(workers, "workers of data loaders"),
    [MAREY__TABLE_RANK_SPREAD] = TABLE(rank_spread, "the whole, then each range, over ranks"),
    [MAREY__TABLE_RANK_TIMES] =
        TABLE(rank_times, "ranks, the slowest first: difference from the median, how often each is "
                          "slow, and in which range"),
    [MAREY__TABLE_RANK_OUTLIERS] = TABLE(rank_outliers, "ranges of ranks that are outliers"),
    [MAREY__TABLE_RANK_HOSTS] = TABLE(rank_hosts, "machines, the slowest first"),
    [MAREY__TABLE_SITES] = TABLE(sites, "call sites: source position of each name"),
    [MAREY__TABLE_WARNINGS] = {"warnings", marey__warning_columns, 1, NULL, "notes on the figures"},
};

static marey__fill *const fills[MAREY__N_TABLES] = {
#define FILL(number, name) [MAREY__TABLE_##number] = marey__fill_##name,
    MAREY__SUMMARY_TABLES(FILL)
#undef FILL
};

static marey_status fill_tables(marey_report *report, const struct marey__table_context *context,
                                const struct marey__summary_options *options)
{
    marey_table **const phased = &report->tables[MAREY__TABLE_PHASES];
    if (context->merge->iterations.steady_phased_ns != 0) {
        marey_table_destroy(*phased);
        *phased = NULL;
        MAREY_TRY(marey_table_create("phases", steady_phases, MAREY__COUNT_OF(steady_phases), phased));
    }
    for (size_t t = 0; t < MAREY__N_TABLES; t++)
        if ((t != MAREY__TABLE_THREADS || options->has_threads) &&
            (t != MAREY__TABLE_RANKS || options->has_ranks))
            fills[t](report->tables[t], context);
    return *context->failed ? marey__no_memory() : MAREY_OK;
}

/* By name: whether any range of it is nested less deep than max_depth. NULL on out of memory. */
static uint8_t *find_shallow(const struct marey__merge *merge, uint32_t max_depth)
{
    uint8_t *const shallow = marey__calloc(merge->names.n + 1, sizeof *shallow);
    for (size_t i = 1; shallow != NULL && i < merge->tree.n; i++)
        if (merge->tree.nodes[i].depth <= max_depth)
            shallow[merge->tree.nodes[i].name] = 1;
    return shallow;
}

static marey_status make_tables(marey_report *report, const struct marey__merge *merge,
                                const struct marey__summary_options *options)
{
    struct marey__ranks compared MAREY__FINALLY(marey__ranks_fini);
    const uint32_t max_depth = options->max_depth;
    bool failed = !marey__ranks_make(&compared, merge);
    uint8_t *const shallow MAREY__FREED = max_depth != 0 ? find_shallow(merge, max_depth) : NULL;
    const struct marey__table_context context = {
        merge, options->filter, &report->cost, &compared, max_depth, shallow, &failed};
    MAREY__TRY_MEMORY(!failed && (max_depth == 0 || shallow != NULL));
    return fill_tables(report, &context, options);
}

/* ---- creating the report ---- */

static bool is_wanted(const struct marey__request *request, const char *table)
{
    return request->options->tables == NULL || marey__setting_is_on(request, table) ||
           marey__is_listed(request->options->tables, table);
}

struct marey__summary_options marey__summary_options_of(const struct marey__request *request)
{
    return (struct marey__summary_options){
        .filter = marey__setting(request, "filter"),
        .data = marey__setting(request, "data"),
        .max_depth = marey__setting_count(request, "depth"),
        .n_jobs = request->options->n_jobs,
        .progress = request->options->progress,
        .progress_ctx = request->options->progress_ctx,
        .has_threads = is_wanted(request, "threads"),
        .has_ranks = is_wanted(request, "ranks"),
    };
}

/* The tables selected by settings, comma-separated; NULL: none. */
static const char *list_shown(struct marey__summary *summary, const struct marey__request *request)
{
    static const char *const names[] = {"tree", "threads", "ranks", "iterations"};
    size_t len = 0;
    for (size_t i = 0; i < MAREY__COUNT_OF(names); i++) {
        if (!marey__setting_is_on(request, names[i]))
            continue;
        snprintf(summary->shown + len, sizeof summary->shown - len, "%s%s", len != 0 ? "," : "",
                 names[i]);
        len = strlen(summary->shown);
    }
    return len != 0 ? summary->shown : NULL;
}

static marey_status sort_tables(const marey_report *report, const struct marey__request *request)
{
    const char *const sort = marey__setting(request, "sort"), *const chosen =
                                                                  request->options->tables;
    if (sort == NULL)
        return MAREY_OK; /* sorted by total already */
    /* Another table that is written may have columns that ranges lack, and vice versa. */
    static const enum marey__summary_table sorted[] = {MAREY__TABLE_ASYNC, MAREY__TABLE_KERNELS,
                                                       MAREY__TABLE_RANGES};
    marey_status status = MAREY_OK;
    for (size_t i = 0; i < MAREY__COUNT_OF(sorted); i++)
        status = marey__table_sort(report->tables[sorted[i]], sort);
    return chosen != NULL && chosen[0] != '\0' ? MAREY_OK : status;
}

static void note_source(struct marey__summary *summary, const struct marey__merge *merge)
{
    for (size_t i = 0; i < merge->n_processes; i++)
        if (merge->processes[i]->source[0] == '\0')
            return;
    if (merge->n_processes != 0)
        snprintf(summary->source, sizeof summary->source, "%s", merge->processes[0]->source);
}

static marey_status fill(marey_report *report, const struct marey__request *request,
                         const struct marey__summary_options *options, struct marey__merge *merge)
{
    struct marey__summary *const summary = marey__calloc(1, sizeof *summary);
    MAREY__TRY_MEMORY(summary != NULL);
    report->data = summary;
    MAREY_TRY(marey__merge_finish(merge));
    const struct marey__iteration_merge *const steps = &merge->iterations;
    const struct marey__iteration_row *const straggler = marey__iteration_straggler(steps);
    summary->straggler = straggler != NULL ? (int32_t)(straggler - steps->rows) : -1;
    summary->n_threads = merge->n_threads;
    note_source(summary, merge);
    /* A merge may have processes from logs read by others. */
    report->cost = (struct marey_cost){0};
    for (size_t i = 0; i < merge->n_processes; i++)
        marey__cost_add(&report->cost, merge->processes[i]);
    marey__cost_finish(&report->cost, request->recordings, request->n);
    MAREY_TRY(make_tables(report, merge, options));
    report->table = list_shown(summary, request);
    return sort_tables(report, request);
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    const struct marey__summary_input *const input = request->input;
    const struct marey__summary_options options = marey__summary_options_of(request);
    struct marey__merge merge MAREY__FINALLY(marey__merge_fini) = {0};
    if (input != NULL && input->merge != NULL)
        return fill(report, request, &options, input->merge);
    MAREY_TRY(marey__merge_init(&merge));
    MAREY_TRY(marey__summary_merge(request->recordings, request->n, &options,
                                   input != NULL ? input->tap : NULL, &merge));
    MAREY_TRY(fill(report, request, &options, &merge));
    marey__report_progress(request, 1);
    return MAREY_OK;
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"tree", MAREY_SETTING_FLAG, NULL, "ranges as a call tree"},
    {"threads", MAREY_SETTING_FLAG, NULL, "a row for each range and thread"},
    {"ranks", MAREY_SETTING_FLAG, NULL,
     "a row for each range and rank; of more than 16 ranks the\n"
     "median and the outliers: --all shows each row"},
    {"iterations", MAREY_SETTING_FLAG, NULL,
     "the time of each range per iteration, without warm-up;\nranks, epochs, phases and outliers"},
    {"data", MAREY_SETTING_TEXT, "RANGE",
     "the range in which an iteration waits for its data: print\n"
     "its share of the time"},
    {"sort", MAREY_SETTING_TEXT, "COLUMN",
     "name, count, total, self, mean, min, p50, p90, p99, max, share\n"
     "(default: total); -COLUMN reverses",
     's'},
    {"filter", MAREY_SETTING_TEXT, "PATTERN",
     "only ranges whose name has this word in it, or matches it\n"
     "where it has one of *?[",
     'f'},
    {"depth", MAREY_SETTING_COUNT, "N", "only ranges less than N deep in others (default: all)", 'd'},
};

const struct marey__analysis marey__analysis_ranges = {
    .about = {.name = "ranges",
              .help = "where the time went: ranges, steps, ranks, processes",
              .needs = "'marey run' records ranges",
              .examples =
                  "  marey report train.marey                     the table, heaviest first\n"
                  "  marey report train.marey --tree --depth 3    who called whom\n"
                  "  marey report train.marey -f 'data*' -s p99   some ranges, slowest tail first\n"
                  "  marey report train.marey --iterations        what an iteration is made of",
              MAREY__SETTINGS(settings),
              MAREY__TABLES(tables),
              .csv = "ranges"},
    .make = make,
    .destroy = marey__free,
    .text = marey__summary_text,
    .draws_tables = true,
    .sorts_csv = true,
    .json = marey__summary_json,
};
