/* From a command line to the report of one analysis, and from that to a file. */
#include "report/analysis_command.h"

#include <string.h>

#include "report/report_options.h"

static struct {
    bool json, markdown;
    const char *csv, *output, *color;
    uint32_t jobs;
} given = {.color = "auto"};

static const struct cli_option formats[] = {
    {"json", 0, CLI_FLAG, NULL, &given.json, "an object: a summary, all tables and notes"},
    {"csv", 0, CLI_MAYBE, "TABLE", &given.csv,
     "one table as CSV; docs/reference/analyses.md lists them"},
    {"markdown", 0, CLI_FLAG, NULL, &given.markdown, "for a pull request"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "output file (default: -, standard output)"},
    CLI_COLOR_OPTION(&given.color),
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs, "threads to read with (default: one per CPU core)"},
};

void analysis_command_prepare(struct cli_command *command)
{
    report_options_prepend(command);
    report_options_append(command, formats, sizeof formats / sizeof formats[0]);
}

static bool has_table(const struct marey_analysis *about)
{
    char names[256] = "";
    for (size_t i = 0; i < about->n_tables; i++) {
        if (strcmp(about->tables[i].name, given.csv) == 0)
            return true;
        cli_append(names, sizeof names, i + 1 < about->n_tables ? ", " : " and ",
                   about->tables[i].name);
    }
    return cli_refuse("unknown table '%s'; the tables are %s", given.csv, names);
}

bool analysis_command_check(const char *analysis)
{
    return cli_exclude(cli_find_command(analysis), "json csv markdown") &&
           (given.csv == NULL || given.csv[0] == '\0' || has_table(report_options_find(analysis))) &&
           report_options_check(analysis);
}

static void complete(struct marey_report_options *options)
{
    options->settings = report_options_settings(0);
    options->n_jobs = given.jobs;
    options->progress = cli_progress;
    options->progress_ctx = (void *)"reading";
}

int analysis_command_make(const char *analysis, char *const *paths, int n,
                          struct marey_report_options *options, const bool *is_reported,
                          marey_report **out)
{
    complete(options);
    const marey_status status =
        marey_report_create_files(analysis, (const char *const *)paths, (size_t)n, options, out);
    cli_progress_end();
    if (status == MAREY_OK)
        return CLI_FINE;
    return is_reported != NULL && *is_reported ? CLI_BAD : cli_fail("%s", marey_last_error());
}

int analysis_command_open(const char *analysis, char *const *paths, int n,
                          struct cli_recordings *recordings, marey_report **out)
{
    struct marey_report_options options = {0};
    cli_use_jobs(given.jobs);
    if (!cli_open(recordings, (char **)paths, n))
        return CLI_BAD;
    complete(&options);
    const marey_status status =
        marey_report_create(analysis, recordings->list, recordings->n, &options, out);
    cli_progress_end();
    return cli_status(status);
}

struct writing {
    const marey_report *report;
    uint32_t limit;
    const char *unit;
};

static int print(void *ctx, FILE *out)
{
    const struct writing *const writing = ctx;
    const char *const format = given.json          ? "json"
                               : given.csv != NULL ? "csv"
                               : given.markdown    ? "markdown"
                                                   : "text";
    const struct marey_write_options wants = {
        .text = {.width = cli_terminal_width(out),
                 .color = cli_wants_color(out, given.color),
                 .unit = writing->unit},
        .limit = given.csv == NULL ? writing->limit : 0,
        .table = given.csv != NULL && given.csv[0] != '\0' ? given.csv : NULL,
    };
    return cli_status(marey_report_write(writing->report, format, &wants, out));
}

int analysis_command_write(const marey_report *report, uint32_t limit, const char *unit)
{
    struct writing writing = {report, limit, unit};
    return cli_print_file(given.output, print, &writing, NULL);
}

static int print_page(void *ctx, FILE *out)
{
    return cli_status(marey_report_write(ctx, "html", NULL, out));
}

int analysis_command_write_page(const marey_report *report, const char *path)
{
    return cli_print_file(path, print_page, (void *)report, CLI_PAGE_NEXT);
}
