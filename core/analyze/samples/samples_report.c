/* The report of samples: from recordings to sums, from sums to tables. */
#include <string.h>

#include "analyze/samples/internal.h"
#include "analyze/walk/internal.h"

/* ---- columns ---- */

#define PLACE(prefix) TEXT(prefix), TEXT(prefix "_file"), WHOLE(prefix "_line")
#define WHAT SHARE("error", "+-"), SHARE("cpu", "on CPU"), SHARE("gil", "GIL"), TEXT("waits")
#define SUMS COUNT("samples", NULL), NS("self_ns", "self"), SHARE("share", "of samples"), WHAT
#define FRAME_SUMS                                                                                 \
    COUNT("samples", NULL), NS("self_ns", "self"), NS("total_ns", "total time"),                   \
        SHARE("share", "of samples"), SHARE("total_share", "total"), WHAT
#define WHERE TEXT("function"), TEXT("file"), WHOLE("line")

static const struct marey_column functions[] = {WHERE, TEXT("module"), TEXT("kind"), FRAME_SUMS};
static const struct marey_column lines[] = {WHERE, TEXT("module"), FRAME_SUMS};
static const struct marey_column files[] = {TEXT("file"), FRAME_SUMS};
static const struct marey_column modules[] = {TEXT("module"), FRAME_SUMS};
static const struct marey_column threads[] = {NUMBER("rank"),
                                              NUMBER("pid"),
                                              NUMBER("tid"),
                                              TEXT("thread"),
                                              {"main", NULL, MAREY_TYPE_BOOL, MAREY_UNIT_NONE},
                                              SUMS};
static const struct marey_column processes[] = {NUMBER("rank"), NUMBER("worker"), NUMBER("pid"),
                                                TEXT("command"), SUMS};
static const struct marey_column ranks[] = {NUMBER("rank"), COUNT("processes", NULL), SUMS};
static const struct marey_column stacks[] = {TEXT("stack"), SUMS};
static const struct marey_column contacts[] = {WHERE,
                                               PLACE("contact"),
                                               PLACE("caller"),
                                               COUNT("samples", NULL),
                                               NS("self_ns", "self"),
                                               SHARE("share", "of samples"),
                                               SHARE("error", "+-")};
#define LEAF                                                                                       \
    TEXT("name"), TEXT("path"), WHOLE("line"), TEXT("library_function_name"),                      \
        TEXT("library_function_path"), WHOLE("library_function_line"), COUNT("samples", NULL),     \
        NS("self_ns", "self"), SHARE("share", "of samples"), SHARE("error", "+-")
static const struct marey_column leaves[] = {LEAF};
static const struct marey_column leaf_paths[] = {LEAF};
static const struct marey_column waits[] = {TEXT("waits"),         WHERE,
                                            TEXT("thread"),        COUNT("samples", NULL),
                                            NS("self_ns", "time"), SHARE("share", "of samples")};
static const struct marey_column gil[] = {NUMBER("rank"),       NUMBER("pid"),
                                          TEXT("thread"),       NS("held_ns", "time held"),
                                          SHARE("held", NULL),  NS("wants_ns", "time waited"),
                                          SHARE("wants", NULL), REAL("switches_per_s", NULL)};
static const struct marey_column audit[] = {TEXT("host"),
                                            NUMBER("pid"),
                                            TEXT("strategy"),
                                            REAL("rate_hz", NULL),
                                            REAL("achieved_hz", NULL),
                                            REAL("seconds", NULL),
                                            COUNT("rounds", NULL),
                                            COUNT("asked", NULL),
                                            COUNT("missed", NULL),
                                            SHARE("missed_share", NULL),
                                            COUNT("samples", NULL),
                                            COUNT("rejected", NULL),
                                            SHARE("rejected_share", NULL),
                                            COUNT("unstable", NULL),
                                            SHARE("unstable_share", NULL),
                                            COUNT("exact", NULL),
                                            SHARE("exact_share", NULL),
                                            COUNT("audit", NULL),
                                            COUNT("stops", NULL),
                                            NS("stop_ns", NULL),
                                            NS("stop_max_ns", NULL),
                                            SHARE("cost_share", NULL),
                                            NS("sampler_cpu_ns", NULL),
                                            SHARE("sampler_cpu_share", NULL),
                                            COUNT("bytes_read", NULL),
                                            REAL("bytes_per_sample", NULL),
                                            COUNT("log_bytes", NULL),
                                            COUNT("skipped", NULL),
                                            COUNT("slowed", NULL),
                                            TEXT("end"),
                                            SHARE("distance", NULL),
                                            SHARE("distance_low", NULL),
                                            SHARE("distance_high", NULL),
                                            SHARE("distance_by_chance", NULL)};
static const struct marey_column totals[] = {COUNT("samples", NULL), NS("self_ns", "self"),
                                             REAL("seconds", NULL),  COUNT("processes", NULL),
                                             COUNT("threads", NULL), COUNT("functions", NULL),
                                             COUNT("stacks", NULL),  TEXT("what")};

#define TABLE(columns) #columns, columns, MAREY__COUNT_OF(columns)
static const struct marey_table_definition definitions[MAREY__N_SAMPLES_TABLES] = {
    [MAREY__SAMPLES_FUNCTIONS] =
        {TABLE(functions), "function",
         "functions; error is half of the 95 % confidence interval of the share"},
    [MAREY__SAMPLES_LINES] = {TABLE(lines), "line", "lines of source, and their most frequent wait"},
    [MAREY__SAMPLES_FILES] = {TABLE(files), "file", "files"},
    [MAREY__SAMPLES_MODULES] = {TABLE(modules), "module", "modules"},
    [MAREY__SAMPLES_THREADS] = {TABLE(threads), "thread",
                                "threads: shares on a CPU core, and holding the GIL"},
    [MAREY__SAMPLES_PROCESSES] = {TABLE(processes), "process", "processes"},
    [MAREY__SAMPLES_RANKS] = {TABLE(ranks), "rank", "ranks"},
    [MAREY__SAMPLES_STACKS] = {TABLE(stacks), "stack", "whole stacks, the outermost frame first"},
    [MAREY__SAMPLES_CONTACTS] = {TABLE(contacts), "contact", "ways into `library`, and from where"},
    [MAREY__SAMPLES_LEAVES] = {TABLE(leaves), NULL, "innermost functions that call into `library`"},
    [MAREY__SAMPLES_LEAF_PATHS] = {TABLE(leaf_paths), NULL, "the same by the path to them"},
    [MAREY__SAMPLES_WAITS] = {TABLE(waits), "wait", "waits of threads by cause and place"},
    [MAREY__SAMPLES_GIL] = {TABLE(gil), "gil", "who held the interpreter lock"},
    [MAREY__SAMPLES_AUDIT] =
        {TABLE(audit), "audit",
         "quality of the sampling: completed and missed rounds, doubtful samples, overhead"},
    [MAREY__SAMPLES_TOTALS] = {TABLE(totals), "total", "one row: all samples that count"},
    [MAREY__SAMPLES_NOTES] = {"notes", marey__warning_columns, 1, "note", "notes on the figures"},
};

/* ---- order ---- */

static const struct marey__table_order orders[] = {
    {"self", {"self_ns", "held_ns"}},
    {"total", {"total_ns", "self_ns", "held_ns"}},
    {"samples", {"samples", "held_ns"}},
    {"name", {"function", "file", "module", "thread", "name"}},
    {0},
};

/* ---- the report ---- */

static marey_status make_tables(struct marey__samples_report *r)
{
    MAREY__TRY_MEMORY(marey__samples_put_frames(r) && marey__samples_put_owners(r) &&
                      marey__samples_put_library_calls(r) && marey__samples_put_waits(r) &&
                      marey__samples_put_gil(r) && marey__samples_put_audit(r));
    marey__samples_put_totals(r);
    MAREY__TRY_MEMORY(marey__samples_put_notes(r));
    for (size_t i = 0; i < MAREY__SAMPLES_AUDIT; i++)
        marey__table_order(r->tables[i], orders, r->options.sort);
    return MAREY_OK;
}

static marey_status make_report(struct marey__samples_report *r, marey_recording *const *recordings,
                                size_t n)
{
    MAREY_TRY(marey__samples_open(&r->set, recordings, n));
    if (r->set.n_sources == 0 && r->set.n_imported == 0)
        return marey__fail(MAREY_EFORMAT, "this recording has no samples; 'marey attach PID -o "
                                          "RUN.marey' and 'marey run --sample' record them");
    MAREY_TRY(marey__samples_choose(&r->set, &r->options.filter, false, &r->chosen));
    MAREY_TRY(marey__samples_sums_make(r));
    return make_tables(r);
}

static struct marey__samples_filter filter_of(const struct marey__request *request)
{
    const char *const epoch = marey__setting(request, "epoch");
    return (struct marey__samples_filter){
        .mode = marey__setting(request, "mode"),
        .idle = marey__setting_is_on(request, "idle"),
        .range = marey__setting(request, "range"),
        .iterations = marey__setting(request, "iterations"),
        .epochs = epoch != NULL ? epoch : marey__setting(request, "epochs"),
        .phase = marey__setting(request, "phase"),
        .thread = marey__setting(request, "thread"),
        .rank = marey__setting(request, "rank"),
        .process = marey__setting(request, "process"),
        .startup = marey__setting_is_on(request, "startup"),
    };
}

marey_status marey__samples_filter_parse(const char *const *settings,
                                         struct marey__samples_filter *out)
{
    const struct marey_report_options options = {.settings = settings};
    *out = filter_of(&(struct marey__request){.options = &options});
    return marey_report_check("samples", settings);
}

static marey_status check(const struct marey__request *request)
{
    const struct marey__samples_filter filter = filter_of(request);
    const char *const sort = marey__setting(request, "sort");
    if (sort != NULL && !marey__table_order_is_known(orders, sort))
        return marey__fail(
            MAREY_EINVAL,
            "samples cannot be sorted by '%s'; it may be self, total, samples or name", sort);
    if (marey__setting_is_on(request, "library") && marey__setting_is_on(request, "by"))
        return marey__fail(MAREY_EINVAL, "library selects a table and excludes by");
    return marey__samples_check(&filter);
}

static void take_settings(struct marey__samples_report *r, marey_report *report,
                          const struct marey__request *request)
{
    const char *const sort = marey__setting(request, "sort");
    r->options.filter = filter_of(request);
    r->options.sort = sort != NULL ? sort : "self";
    r->options.library = marey__setting(request, "library");
    r->options.names = marey__setting(request, "filter");
    r->options.native = marey__setting_is_on(request, "native");
    if (r->options.library != NULL)
        report->table = "contacts";
}

static void report_fini(struct marey__samples_report *r)
{
    marey__samples_sums_fini(&r->sums);
    marey__samples_chosen_destroy(r->chosen);
    marey__samples_fini(&r->set);
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    struct marey__samples_report r MAREY__FINALLY(report_fini) = {.tables = report->tables};
    take_settings(&r, report, request);
    return make_report(&r, request->recordings, request->n);
}

static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)ranges;
    return marey__samples_are_there(recordings, n);
}

/* ---- registry entry ---- */

static const struct marey_setting settings[] = {
    {"mode", MAREY_SETTING_CHOICE, "wall|cpu|gil|exception",
     "main thread: wall clock, other threads: on CPU (the default);\n"
     "threads on CPU; holders of the GIL; threads that handle an\n"
     "exception",
     .selects = 1},
    {"idle", MAREY_SETTING_FLAG, NULL, "all threads all the time, idle processes too", .selects = 1},
    {"range", MAREY_SETTING_TEXT, "NAME", "threads that have a range NAME open", .selects = 1},
    {"iterations", MAREY_SETTING_TEXT, "slow|A..B", "slow iterations only, or these", .selects = 1},
    {"epoch", MAREY_SETTING_TEXT, "A..B", "these epochs, or one", .alias = "epochs", .selects = 1},
    {"phase", MAREY_SETTING_TEXT, "NAME", "this phase of the program", .selects = 1},
    {"thread", MAREY_SETTING_TEXT, "NAME", "threads of this name; as --filter", .selects = 1},
    {"rank", MAREY_SETTING_TEXT, "R", "processes of this rank", 'r', .selects = 1},
    {"process", MAREY_SETTING_TEXT, "PID|NAME",
     "these processes: a PID, worker, worker0, main, or a part of\n"
     "the command",
     .selects = 1},
    {"startup", MAREY_SETTING_FLAG, NULL, "imports at start-up count as well", .selects = 1},
    {"library", MAREY_SETTING_TEXT, "NAME",
     "calls into a library, a folder or file of that name, and who\n"
     "called into it"},
    {"native", MAREY_SETTING_FLAG, NULL,
     "native functions by themselves (default: their time is that of\n"
     "the Python function that called them)"},
    {"filter", MAREY_SETTING_TEXT, "PATTERN", "only rows whose name matches", 'f'},
    {"sort", MAREY_SETTING_TEXT, "COLUMN", "self (default), total, samples, name; -COLUMN reverses",
     's'},
};

static const struct marey__page_table page_tables[] = {
    {"lines", NULL}, {"functions", NULL}, {"threads", NULL}, {"waits", NULL},  {"processes", NULL},
    {"ranks", NULL}, {"files", NULL},     {"modules", NULL}, {"stacks", NULL}, {"gil", NULL},
    {"audit", NULL}, {"totals", NULL},    {"notes", NULL},   {NULL, NULL},
};

const struct marey__analysis marey__analysis_samples = {
    .about = {.name = "samples",
              .help = "stack samples (marey attach, marey run --sample): functions\n"
                      "and lines, with the error of each",
              .needs = "'marey attach PID -o RUN.marey' and 'marey run --sample' record them",
              .examples = "  marey report train.marey --samples           functions and lines\n"
                          "  marey report train.marey --samples --iterations=slow --by line",
              MAREY__SETTINGS(settings),
              MAREY__TABLES(definitions),
              .csv = "functions",
              .option = "sample",
              .adds_lines = 2},
    .check = check,
    .make = make,
    .text = marey__samples_text,
    .draws_tables = true,
    .is_there = is_there,
    .page = page_tables,
    .page_key = "samples",
};
