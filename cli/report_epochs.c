/* kymo report --epochs: how long an epoch takes, on which rank, in which phases. */
#include "report_epochs.h"

static int print_csv(kymo_epoch_report *report, const struct report_epochs *wants, FILE *out)
{
    kymo_table *table =
        kymo_epoch_report_table(report, wants->table != NULL ? wants->table : "ranks");
    if (table == NULL)
        return cli_fail("no table '%s' of epochs; there are epochs, ranks, averages, phases and "
                        "notes",
                        wants->table);
    if (wants->limit != 0)
        kymo_table_truncate(table, wants->limit);
    return kymo_present_csv(table, out) == KYMO_OK ? CLI_FINE : cli_fail("%s", kymo_last_error());
}

static int print(kymo_epoch_report *report, const struct report_epochs *wants, FILE *out)
{
    const struct kymo_epoch_text_options text = {.text = wants->text, .limit = wants->limit};
    if (wants->csv)
        return print_csv(report, wants, out);
    const kymo_status status = wants->json ? kymo_epoch_report_json(report, out)
                                           : kymo_epoch_report_text(report, &text, out);
    return status == KYMO_OK ? CLI_FINE : cli_fail("%s", kymo_last_error());
}

int report_epochs(const struct cli_recordings *recordings, const struct report_epochs *wants,
                  FILE *out)
{
    const struct kymo_epoch_report_options options = {
        .with_first = wants->with_first,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
    };
    kymo_epoch_report *report = NULL;
    const kymo_status status =
        kymo_epoch_report_create(recordings->list, recordings->n, &options, &report);
    cli_progress_end();
    if (status != KYMO_OK)
        return cli_fail("%s", kymo_last_error());
    const int printed = print(report, wants, out);
    kymo_epoch_report_destroy(report);
    return printed;
}
