/* The report of calls: from recordings to the tree, from the tree to tables. */
#include <string.h>

#include "analyze/calls.h"
#include <kymo/samples_report.h>

static kymo_status no_memory(void)
{
    return kymo__fail(KYMO_ENOMEM, "no memory for the report of calls");
}

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
    for (*which = 0; *which < KYMO__COUNT_OF(sorts); ++*which)
        if (strcmp(sorts[*which].name, name) == 0)
            return true;
    return false;
}

/* Names from A to Z, everything else from the largest on, unless it is turned round. */
static void sort_table(kymo_table *table, const char *sort)
{
    size_t which;
    const bool is_reversed = sort[0] == '-';
    if (!find_sort(sort + is_reversed, &which))
        return;
    for (size_t i = 0; i < 2; i++) {
        const int column = kymo_table_find(table, sorts[which].columns[i]);
        if (column < 0)
            continue;
        const bool is_text = kymo_table_column(table, (size_t)column)->type == KYMO_TYPE_TEXT;
        kymo_table_sort(table, (size_t)column, is_text == is_reversed);
        return;
    }
}

static void sort_tables(struct kymo_calls_report *report)
{
    static const enum kymo__calls_table plain[] = {KYMO__CALLS_FUNCTIONS, KYMO__CALLS_BY_SIGNATURE,
                                                   KYMO__CALLS_THREADS};
    static const enum kymo__calls_table pairs[] = {KYMO__CALLS_CALLERS, KYMO__CALLS_CALLEES};
    const char *const sort = report->options.sort;
    for (size_t i = 0; i < KYMO__COUNT_OF(plain); i++)
        sort_table(report->tables[plain[i]], sort);
    /* By function, and within one as asked; the sort is stable. */
    for (size_t i = 0; i < KYMO__COUNT_OF(pairs); i++) {
        sort_table(report->tables[pairs[i]],
                   strcmp(sort, "percall") == 0 || strcmp(sort, "-percall") == 0 ? "total" : sort);
        sort_table(report->tables[pairs[i]], "name");
    }
}

static kymo_status make_tables(struct kymo_calls_report *report)
{
    KYMO_TRY(kymo__calls_tables_create(report));
    if (!kymo__calls_tables_fill(report))
        return no_memory();
    sort_tables(report);
    for (size_t i = 0; i < KYMO__N_CALLS_TABLES; i++)
        KYMO_TRY(kymo_table_status(report->tables[i]));
    return KYMO_OK;
}

static kymo_status read_calls(struct kymo_calls_report *report, kymo_recording *const *recordings,
                              size_t n)
{
    static const struct kymo_samples_filter all = {.startup = 1};
    const bool has_startup = report->options.startup != 0;
    KYMO_TRY(has_startup && !kymo__calls_are_there(recordings, n) &&
                     kymo_samples_are_there(recordings, n)
                 ? kymo__calls_read_samples(&report->calls, recordings, n, &all, false)
                 : kymo__calls_read(&report->calls, recordings, n));
    if (!has_startup && !kymo__calls_drop_startup(&report->calls))
        return no_memory();
    if (report->calls.n_nodes < 2 && report->calls.n_killed != 0)
        return kymo__fail(
            KYMO_EFORMAT,
            "no call is here: the process died, by a kill or _exit, before its calls were "
            "written, which is every 5 s and at its end");
    if (report->calls.n_nodes < 2)
        return kymo__fail(KYMO_EFORMAT,
                          "no call and no range was recorded; record calls with kymo run --calls, "
                          "kymo.start(calls=True) or kymo.Profile");
    if (report->options.subtract)
        report->subtracted_ns = kymo__calls_subtract(&report->calls);
    return KYMO_OK;
}

kymo_status kymo_calls_report_create(kymo_recording *const *recordings, size_t n,
                                     const struct kymo_calls_report_options *options,
                                     kymo_calls_report **out)
{
    struct kymo_calls_report_options wants = {0};
    size_t which;
    if (options != NULL)
        wants = *options;
    if (wants.sort == NULL)
        wants.sort = "self";
    if (!find_sort(wants.sort + (wants.sort[0] == '-'), &which))
        return kymo__fail(
            KYMO_EINVAL,
            "calls cannot be sorted by '%s'; it may be self, total, calls, percall or "
            "name",
            wants.sort);
    struct kymo_calls_report *const report = kymo__calloc(1, sizeof *report);
    if (report == NULL)
        return no_memory();
    report->options = wants;
    kymo_status status = read_calls(report, recordings, n);
    if (status == KYMO_OK)
        status = make_tables(report);
    if (status != KYMO_OK) {
        kymo_calls_report_destroy(report);
        return status;
    }
    *out = report;
    return KYMO_OK;
}

void kymo_calls_report_destroy(kymo_calls_report *report)
{
    if (report == NULL)
        return;
    for (size_t i = 0; i < KYMO__N_CALLS_TABLES; i++)
        kymo_table_destroy(report->tables[i]);
    kymo__calls_fini(&report->calls);
    kymo__free(report);
}

int kymo_calls_are_there(kymo_recording *const *recordings, size_t n)
{
    return kymo__calls_are_there(recordings, n);
}

kymo_table *kymo_calls_report_table(kymo_calls_report *report, const char *name)
{
    for (size_t i = 0; i < KYMO__N_CALLS_TABLES; i++)
        if (strcmp(kymo_table_name(report->tables[i]), name) == 0)
            return report->tables[i];
    return NULL;
}
