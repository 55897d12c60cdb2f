/* marey report --calls: functions instead of ranges. */
#include <string.h>

#include "report_calls.h"

static const struct {
    const char *by, *table;
} ways[] = {
    {"function", "functions"}, {"signature", "signatures"}, {"shape", "shapes"},
    {"path", "paths"},         {"thread", "threads"},
};

static const char *table_of(const char *by)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(ways[i].by, by) == 0)
            return ways[i].table;
    return NULL;
}

bool report_calls_knows(const char *by)
{
    return table_of(by) != NULL;
}

static const char *table_wanted(const struct report_calls *wants)
{
    if (wants->table != NULL)
        return wants->table;
    if (wants->callers != NULL)
        return "callers";
    if (wants->callees != NULL)
        return "callees";
    return wants->by != NULL ? table_of(wants->by) : "functions";
}

static int print(marey_calls_report *report, const struct report_calls *wants, FILE *out)
{
    const char *const name = table_wanted(wants);
    marey_table *const table = marey_calls_report_table(report, name);
    marey_status status;
    if (table == NULL)
        return cli_fail("no table '%s' of calls; --json has all of them", name);
    if (wants->limit != 0 && wants->csv)
        marey_table_truncate(table, wants->limit);
    if (wants->json)
        status = marey_calls_report_json(report, out);
    else if (wants->csv)
        status = marey_present_csv(table, out);
    else
        status =
            marey_calls_report_text(report,
                                    &(struct marey_calls_text_options){
                                        .text = wants->text, .table = name, .limit = wants->limit},
                                    out);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

int report_calls(const struct cli_recordings *recordings, const struct report_calls *wants, FILE *out)
{
    const bool by_signature = wants->by != NULL && strcmp(wants->by, "signature") == 0;
    const struct marey_calls_report_options options = {.filter =
                                                           wants->callers != NULL   ? wants->callers
                                                           : wants->callees != NULL ? wants->callees
                                                                                    : wants->filter,
                                                       .sort = wants->sort,
                                                       .by_signature = by_signature,
                                                       .subtract = wants->subtract,
                                                       .startup = wants->startup};
    marey_calls_report *report = NULL;
    const marey_status status =
        marey_calls_report_create(recordings->list, recordings->n, &options, &report);
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int result = print(report, wants, out);
    marey_calls_report_destroy(report);
    return result;
}
