/* marey report --energy: joules instead of times. Also the few lines about energy below a usual report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_energy.h"

/* The table of each word that --by takes. */
static const struct {
    const char *by, *table;
} tables[] = {
    {"run", "runs"},     {"repeat", "repeats"}, {"device", "devices"},       {"rank", "ranks"},
    {"node", "nodes"},   {"epoch", "epochs"},   {"iteration", "iterations"}, {"phase", "phases"},
    {"range", "ranges"},
};

static const char *table_of(const char *by)
{
    for (size_t i = 0; by != NULL && i < sizeof tables / sizeof tables[0]; i++)
        if (strcmp(tables[i].by, by) == 0)
            return tables[i].table;
    return NULL;
}

static bool parse_number(const char *option, const char *text, double least, double *out)
{
    char *end;
    if (text == NULL)
        return true;
    *out = strtod(text, &end);
    if (end != text && *end == '\0' && isfinite(*out) && *out >= least)
        return true;
    cli_fail("--%s takes a number of %g or more, and not '%s'", option, least, text);
    return false;
}

static marey_status print(marey_energy_report *report, const struct report_energy *wants, FILE *out)
{
    if (wants->json)
        return marey_energy_report_json(report, out);
    if (wants->csv) {
        marey_table *table =
            marey_energy_report_table(report, wants->by != NULL ? table_of(wants->by) : "runs");
        if (wants->limit != 0)
            marey_table_truncate(table, wants->limit);
        return marey_present_csv(table, out);
    }
    const struct marey_energy_text_options text = {
        .text = wants->text,
        .by = table_of(wants->by),
        .limit = wants->limit,
        .is_short = wants->is_short,
    };
    return marey_energy_report_text(report, &text, out);
}

int report_energy(const struct cli_recordings *recordings, const struct report_energy *wants,
                  FILE *out)
{
    struct marey_energy_report_options options = {
        .filter = wants->filter,
        .group = wants->group,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
    };
    marey_energy_report *report = NULL;
    if (!parse_number("co2", wants->co2, 0, &options.co2_g_per_kwh) ||
        !parse_number("pue", wants->pue, 1, &options.pue))
        return CLI_BAD;
    marey_status status =
        marey_energy_report_create(recordings->list, recordings->n, &options, &report);
    cli_progress_end();
    if (wants->is_short && status == MAREY_EFORMAT)
        return CLI_FINE; /* counters without a reading */
    if (wants->is_short)
        fputs("\n", out);
    if (status == MAREY_OK)
        status = print(report, wants, out);
    marey_energy_report_destroy(report);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

/* ---- itwinai's files ---- */

int report_energy_files(int n, char **paths, const struct report_energy *wants, FILE *out)
{
    struct cli_words words = {0};
    cli_add_word(&words, "energy");
    cli_add_word(&words, "--width=%u", (unsigned)wants->text.width);
    if (wants->json || wants->csv)
        cli_add_word(&words, "--%s", wants->json ? "json" : "csv");
    return cli_python(&words, n, paths, out);
}

int report_energy_write(int n, char **paths, const char *folder, const char *strategy)
{
    struct cli_words words = {0};
    cli_add_word(&words, "power");
    cli_add_word(&words, "--folder=%s", folder);
    if (strategy != NULL)
        cli_add_word(&words, "--strategy=%s", strategy);
    return cli_python(&words, n, paths, stdout);
}
