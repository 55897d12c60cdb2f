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
        .strategy = wants->itwinai == NULL    ? NULL
                    : wants->strategy != NULL ? wants->strategy
                                              : "unknown",
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
    if (status == MAREY_OK && wants->itwinai != NULL)
        status = marey_energy_report_write_itwinai(report, wants->itwinai);
    if (status == MAREY_OK)
        status = print(report, wants, out);
    marey_energy_report_destroy(report);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

/* ---- itwinai's files ---- */

static marey_status print_old(marey_table *runs, marey_table *repeats,
                              const struct report_energy *wants, FILE *out)
{
    const marey_table *const both[] = {runs, repeats};
    if (wants->json)
        return marey_present_json_tables(both, 2, out);
    if (wants->csv)
        return marey_present_csv(runs, out);
    fputs("runs\n", out);
    const marey_status status = marey_present_text(runs, &wants->text, out);
    if (status != MAREY_OK)
        return status;
    fputs("\nrepeats: mean of runs, and what itwinai adds up\n", out);
    return marey_present_text(repeats, &wants->text, out);
}

int report_old_energy(int n, char **paths, const struct report_energy *wants, FILE *out)
{
    marey_table *runs = NULL, *repeats = NULL;
    uint64_t n_dropped = 0;
    marey_status status =
        marey_legacy_energy_read((const char *const *)paths, (size_t)n, &runs, &repeats, &n_dropped);
    if (status == MAREY_OK)
        status = print_old(runs, repeats, wants, out);
    marey_table_destroy(runs);
    marey_table_destroy(repeats);
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    if (n_dropped != 0)
        cli_say("%llu rows without a power, an interval, a strategy or a number of GPUs are left "
                "out",
                (unsigned long long)n_dropped);
    return CLI_FINE;
}
