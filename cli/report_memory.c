/* kymo report --memory: bytes instead of times. */
#include "report_memory.h"

static kymo_status print(kymo_memory_report *report, const struct report_memory *wants, FILE *out)
{
    if (wants->json)
        return kymo_memory_report_json(report, out);
    if (wants->csv) {
        kymo_table *table =
            kymo_memory_report_table(report, wants->table != NULL ? wants->table : "stacks");
        if (table == NULL) {
            cli_fail("no table '%s' of memory; --json has all of them", wants->table);
            return KYMO_EINVAL;
        }
        if (wants->limit != 0)
            kymo_table_truncate(table, wants->limit);
        return kymo_present_csv(table, out);
    }
    const struct kymo_memory_text_options text = {.text = wants->text, .limit = wants->limit};
    return kymo_memory_report_text(report, &text, out);
}

/* With the report that `status` tells of. */
static int finish(kymo_status status, kymo_memory_report *report, const struct report_memory *wants,
                  FILE *out)
{
    cli_progress_end();
    if (status != KYMO_OK)
        return cli_fail("%s", kymo_last_error());
    status = print(report, wants, out);
    kymo_memory_report_destroy(report);
    if (status == KYMO_EINVAL)
        return CLI_BAD; /* it was said */
    return status == KYMO_OK ? CLI_FINE : cli_fail("%s", kymo_last_error());
}

static struct kymo_memory_report_options options_of(const struct report_memory *wants)
{
    return (struct kymo_memory_report_options){.filter = wants->filter, .n_stacks = wants->limit};
}

int report_memory(const struct cli_recordings *recordings, const struct report_memory *wants,
                  FILE *out)
{
    kymo_memory_report *report = NULL;
    const struct kymo_memory_report_options options = options_of(wants);
    const kymo_status status =
        kymo_memory_report_create(recordings->list, recordings->n, &options, &report);
    return finish(status, report, wants, out);
}

int report_memory_files(int n, char **paths, const struct report_memory *wants, FILE *out)
{
    kymo_memory_report *report = NULL;
    const struct kymo_memory_report_options options = options_of(wants);
    const kymo_status status =
        kymo_memory_report_files((const char *const *)paths, (size_t)n, &options, &report);
    return finish(status, report, wants, out);
}
