/* marey report --epochs: how long an epoch takes, on which rank, in which phases. */
#include "report_epochs.h"

static int print_csv(marey_epoch_report *report, const struct report_epochs *wants, FILE *out)
{
    marey_table *table =
        marey_epoch_report_table(report, wants->table != NULL ? wants->table : "ranks");
    if (table == NULL)
        return cli_fail("no table '%s' of epochs; there are epochs, ranks, averages, phases and "
                        "notes",
                        wants->table);
    if (wants->limit != 0)
        marey_table_truncate(table, wants->limit);
    return marey_present_csv(table, out) == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

static int print(marey_epoch_report *report, const struct report_epochs *wants, FILE *out)
{
    const struct marey_epoch_text_options text = {.text = wants->text, .limit = wants->limit};
    if (wants->csv)
        return print_csv(report, wants, out);
    const marey_status status = wants->json ? marey_epoch_report_json(report, out)
                                            : marey_epoch_report_text(report, &text, out);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

int report_epochs(const struct cli_recordings *recordings, const struct report_epochs *wants,
                  FILE *out)
{
    const struct marey_epoch_report_options options = {
        .with_first = wants->with_first,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
    };
    marey_epoch_report *report = NULL;
    const marey_status status =
        marey_epoch_report_create(recordings->list, recordings->n, &options, &report);
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int printed = print(report, wants, out);
    marey_epoch_report_destroy(report);
    return printed;
}
