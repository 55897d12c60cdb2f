/* marey report --memory: bytes instead of times. */
#include "report_memory.h"

static marey_status print(marey_memory_report *report, const struct report_memory *wants, FILE *out)
{
    if (wants->json)
        return marey_memory_report_json(report, out);
    if (wants->csv) {
        marey_table *table =
            marey_memory_report_table(report, wants->table != NULL ? wants->table : "stacks");
        if (table == NULL) {
            cli_fail("no table '%s' of memory; --json has all of them", wants->table);
            return MAREY_EINVAL;
        }
        if (wants->limit != 0)
            marey_table_truncate(table, wants->limit);
        return marey_present_csv(table, out);
    }
    const struct marey_memory_text_options text = {.text = wants->text, .limit = wants->limit};
    return marey_memory_report_text(report, &text, out);
}

/* With the report that `status` tells of. */
static int finish(marey_status status, marey_memory_report *report,
                  const struct report_memory *wants, FILE *out)
{
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    status = print(report, wants, out);
    marey_memory_report_destroy(report);
    if (status == MAREY_EINVAL)
        return CLI_BAD; /* it was said */
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

static struct marey_memory_report_options options_of(const struct report_memory *wants)
{
    return (struct marey_memory_report_options){.filter = wants->filter, .n_stacks = wants->limit};
}

int report_memory(const struct cli_recordings *recordings, const struct report_memory *wants,
                  FILE *out)
{
    marey_memory_report *report = NULL;
    const struct marey_memory_report_options options = options_of(wants);
    const marey_status status =
        marey_memory_report_create(recordings->list, recordings->n, &options, &report);
    return finish(status, report, wants, out);
}

int report_memory_files(int n, char **paths, const struct report_memory *wants, FILE *out)
{
    marey_memory_report *report = NULL;
    const struct marey_memory_report_options options = options_of(wants);
    const marey_status status =
        marey_memory_report_files((const char *const *)paths, (size_t)n, &options, &report);
    return finish(status, report, wants, out);
}
