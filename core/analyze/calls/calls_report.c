/* The report of calls: from recordings to the tree, from the tree to tables. */
#include <string.h>

#include "analyze/calls/internal.h"
#include "analyze/samples/internal.h"
#include <marey/samples_report.h>

static const struct marey__table_order orders[] = {
    {"self", {"self_ns", "total_ns"}},
    {"total", {"total_ns", "self_ns"}},
    {"calls", {"calls", "self_ns"}},
    {"percall", {"total_per_call_ns", "per_call_ns"}},
    {"name", {"function"}},
    {0},
};

static void sort_tables(struct marey__calls_report *report)
{
    static const enum marey__calls_table plain[] = {MAREY__CALLS_FUNCTIONS,
                                                    MAREY__CALLS_BY_SIGNATURE, MAREY__CALLS_THREADS};
    static const enum marey__calls_table pairs[] = {MAREY__CALLS_CALLERS, MAREY__CALLS_CALLEES};
    const char *const sort = report->options.sort;
    for (size_t i = 0; i < MAREY__COUNT_OF(plain); i++)
        marey__table_order(report->tables[plain[i]], orders, sort);
    /* By function, and within one as asked; the sort is stable. */
    for (size_t i = 0; i < MAREY__COUNT_OF(pairs); i++) {
        marey__table_order(report->tables[pairs[i]], orders,
                           strcmp(sort, "percall") == 0 || strcmp(sort, "-percall") == 0 ? "total"
                                                                                         : sort);
        marey__table_order(report->tables[pairs[i]], orders, "name");
    }
}

static marey_status read_calls(struct marey__calls_report *report,
                               marey_recording *const *recordings, size_t n)
{
    static const struct marey_samples_filter all = {.startup = 1};
    const bool has_startup = report->options.startup;
    MAREY_TRY(has_startup && !marey__calls_are_there(recordings, n) &&
                      marey__samples_are_there(recordings, n)
                  ? marey__calls_read_samples(&report->calls, recordings, n, &all, false)
                  : marey__calls_read(&report->calls, recordings, n));
    if (!has_startup && !marey__calls_drop_startup(&report->calls))
        return marey__no_memory();
    if (report->calls.n_nodes < 2 && report->calls.n_killed != 0)
        return marey__fail(
            MAREY_EFORMAT,
            "no call is here: the process died, by a kill or _exit, before its calls were "
            "written, which is every 5 s and at its end");
    if (report->calls.n_nodes < 2)
        return marey__fail(
            MAREY_EFORMAT,
            "no call and no range was recorded; record calls with marey run --calls, "
            "marey.start(calls=True) or marey.Profile");
    if (report->options.subtract)
        report->subtracted_ns = marey__calls_subtract(&report->calls);
    return MAREY_OK;
}

/* ---- the report ---- */

static void destroy(void *data)
{
    struct marey__calls_report *const calls = data;
    marey__calls_fini(&calls->calls);
    marey__free(calls);
}

/* `callers` and `callees` filter functions and select a table. */
static marey_status take_settings(struct marey__calls_report *calls, marey_report *report,
                                  const struct marey__request *request)
{
    const char *const by = marey__setting(request, "by"), *sort = marey__setting(request, "sort"),
                      *const callers = marey__setting(request, "callers"),
                      *const callees = marey__setting(request, "callees");
    sort = sort != NULL ? sort : "self";
    if (!marey__table_order_is_known(orders, sort))
        return marey__fail(
            MAREY_EINVAL,
            "calls cannot be sorted by '%s'; it may be self, total, calls, percall or name", sort);
    if (callers != NULL && callees != NULL)
        return marey__fail(MAREY_EINVAL, "callers and callees exclude one another");
    if (callers != NULL || callees != NULL)
        report->table = callers != NULL ? "callers" : "callees";
    calls->options.filter = callers != NULL   ? callers
                            : callees != NULL ? callees
                                              : marey__setting(request, "filter");
    calls->options.sort = sort;
    calls->options.by_signature = by != NULL && strcmp(by, "signature") == 0;
    calls->options.subtract = marey__setting_is_on(request, "subtract");
    calls->options.startup = marey__setting_is_on(request, "startup");
    return MAREY_OK;
}

static marey_status make(marey_report *report, const struct marey__request *request)
{
    struct marey__calls_report *const calls = marey__calloc(1, sizeof *calls);
    MAREY__TRY_MEMORY(calls != NULL);
    report->data = calls;
    calls->tables = report->tables;
    MAREY_TRY(take_settings(calls, report, request));
    MAREY_TRY(read_calls(calls, request->recordings, request->n));
    MAREY__TRY_MEMORY(marey__calls_tables_fill(calls));
    sort_tables(calls);
    return MAREY_OK;
}

static bool is_there(marey_recording *const *recordings, size_t n, const marey_report *ranges)
{
    (void)ranges;
    return marey__calls_are_there(recordings, n);
}

/* ---- the entry ---- */

static const struct marey_setting settings[] = {
    {"callers", MAREY_SETTING_TEXT, "NAME", "who called NAME, a name or a pattern"},
    {"callees", MAREY_SETTING_TEXT, "NAME", "whom NAME called"},
    {"filter", MAREY_SETTING_TEXT, "PATTERN", "only functions whose name matches"},
    {"sort", MAREY_SETTING_TEXT, "COLUMN",
     "self (default), total, calls, percall, name; -COLUMN reverses"},
    {"subtract", MAREY_SETTING_FLAG, NULL, "subtract the cost of measuring from the times"},
    {"startup", MAREY_SETTING_FLAG, NULL, "imports at start-up count as well"},
};

extern const struct marey__analysis marey__analysis_calls;
const struct marey__analysis marey__analysis_calls = {
    .about =
        {.name = "calls",
         .help = "functions of a call profiler (marey run --calls,\n"
                 "marey.Profile): how often, how long; else samples or ranges",
         .needs = "'marey run --calls', marey.start(calls=True) and marey.Profile record them",
         .examples =
             "  marey report train.marey --calls             functions, by self time\n"
             "  marey report train.marey --calls --by shape  which arguments make a function slow\n"
             "  marey report old.prof --calls --callers dot  a profile of cProfile",
         .settings = settings,
         .n_settings = MAREY__COUNT_OF(settings),
         .tables = marey__calls_tables,
         .n_tables = MAREY__N_CALLS_TABLES,
         .csv = "functions"},
    .make = make,
    .destroy = destroy,
    .text = marey__calls_text,
    .draws_tables = true,
    .is_there = is_there,
};
