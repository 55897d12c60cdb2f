/* The report of calls: from recordings to the tree, from the tree to tables. */
#include <string.h>

#include "analyze/calls/calls.h"
#include <marey/samples_report.h>

/* Columns that rows may be sorted by, as people call them; a table sorts by those that it has. */
static const struct {
    const char *name, *columns[2];
} sorts[] = {
    {"self", {"self_ns", "total_ns"}},  {"total", {"total_ns", "self_ns"}},
    {"calls", {"calls", "self_ns"}},    {"percall", {"total_per_call_ns", "per_call_ns"}},
    {"name", {"function", "function"}},
};

static bool find_sort(const char *name, size_t *which)
{
    for (*which = 0; *which < MAREY__COUNT_OF(sorts); ++*which)
        if (strcmp(sorts[*which].name, name) == 0)
            return true;
    return false;
}

/* Names from A to Z, everything else from the largest on, unless it is turned round. */
static void sort_table(marey_table *table, const char *sort)
{
    size_t which;
    const bool is_reversed = sort[0] == '-';
    if (!find_sort(sort + is_reversed, &which))
        return;
    for (size_t i = 0; i < 2; i++) {
        const int column = marey_table_find(table, sorts[which].columns[i]);
        if (column < 0)
            continue;
        const bool is_text = marey_table_column(table, (size_t)column)->type == MAREY_TYPE_TEXT;
        marey_table_sort(table, (size_t)column, is_text == is_reversed);
        return;
    }
}

static void sort_tables(struct marey_calls_report *report)
{
    static const enum marey__calls_table plain[] = {MAREY__CALLS_FUNCTIONS,
                                                    MAREY__CALLS_BY_SIGNATURE, MAREY__CALLS_THREADS};
    static const enum marey__calls_table pairs[] = {MAREY__CALLS_CALLERS, MAREY__CALLS_CALLEES};
    const char *const sort = report->options.sort;
    for (size_t i = 0; i < MAREY__COUNT_OF(plain); i++)
        sort_table(report->tables[plain[i]], sort);
    /* By function, and within one as asked; the sort is stable. */
    for (size_t i = 0; i < MAREY__COUNT_OF(pairs); i++) {
        sort_table(report->tables[pairs[i]],
                   strcmp(sort, "percall") == 0 || strcmp(sort, "-percall") == 0 ? "total" : sort);
        sort_table(report->tables[pairs[i]], "name");
    }
}

static marey_status make_tables(struct marey_calls_report *report)
{
    MAREY_TRY(marey__calls_tables_create(report));
    MAREY__TRY_MEMORY(marey__calls_tables_fill(report));
    sort_tables(report);
    for (size_t i = 0; i < MAREY__N_CALLS_TABLES; i++)
        MAREY_TRY(marey_table_status(report->tables[i]));
    return MAREY_OK;
}

static marey_status read_calls(struct marey_calls_report *report,
                               marey_recording *const *recordings, size_t n)
{
    static const struct marey_samples_filter all = {.startup = 1};
    const bool has_startup = report->options.startup != 0;
    MAREY_TRY(has_startup && !marey__calls_are_there(recordings, n) &&
                      marey_samples_are_there(recordings, n)
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

marey_status marey_calls_report_create(marey_recording *const *recordings, size_t n,
                                       const struct marey_calls_report_options *options,
                                       marey_calls_report **out)
{
    struct marey_calls_report_options wants = {0};
    size_t which;
    if (options != NULL)
        wants = *options;
    if (wants.sort == NULL)
        wants.sort = "self";
    if (!find_sort(wants.sort + (wants.sort[0] == '-'), &which))
        return marey__fail(
            MAREY_EINVAL,
            "calls cannot be sorted by '%s'; it may be self, total, calls, percall or "
            "name",
            wants.sort);
    struct marey_calls_report *const report = marey__calloc(1, sizeof *report);
    MAREY__TRY_MEMORY(report != NULL);
    report->options = wants;
    marey_status status = read_calls(report, recordings, n);
    if (status == MAREY_OK)
        status = make_tables(report);
    if (status != MAREY_OK) {
        marey_calls_report_destroy(report);
        return status;
    }
    *out = report;
    return MAREY_OK;
}

void marey_calls_report_destroy(marey_calls_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < MAREY__N_CALLS_TABLES; i++)
        marey_table_destroy(report->tables[i]);
    marey__calls_fini(&report->calls);
    marey__free(report);
}

int marey_calls_are_there(marey_recording *const *recordings, size_t n)
{
    return marey__calls_are_there(recordings, n);
}

marey_table *marey_calls_report_table(marey_calls_report *report, const char *name)
{
    for (size_t i = 0; i < MAREY__N_CALLS_TABLES; i++)
        if (strcmp(marey_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
