/* marey breakdown: computation, communication, other; what each device did in each nanosecond. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static struct {
    bool json, csv, print_rules, legacy;
    const char *by, *window, *rules, *unit, *color, *output, *averages, *strategy;
    uint32_t jobs;
} given = {.color = "auto"};

static const struct cli_option options[] = {
    {"by", 'b', CLI_CHOICE, "step|range|stream|process-group", &given.by,
     "one more table: a row for each of these. Work belongs to the\n"
     "step and to the ranges that it was launched in"},
    {"window", 'w', CLI_CHOICE, "gpu_span|steps", &given.window,
     "the time that the first line is of: from the first GPU work\n"
     "to the last (default), or all steps, to the end of the last\n"
     "work launched in each"},
    {"rules", 0, CLI_TEXT, "FILE", &given.rules,
     "rules that are asked before marey's own what computes,\n"
     "communicates and copies"},
    {"print-rules", 0, CLI_FLAG, NULL, &given.print_rules, "print marey's own rules, as such a file"},
    {"unit", 'u', CLI_CHOICE, "ns|us|ms|s", &given.unit,
     "one unit for all times (default: what fits each)"},
    {"json", 0, CLI_FLAG, NULL, &given.json,
     "an object: summary, devices, by, idle, collectives, rules,\n"
     "warnings. Times are whole nanoseconds"},
    {"csv", 0, CLI_FLAG, NULL, &given.csv, "the table of devices, or the one of --by, as CSV"},
    {"legacy", 0, CLI_FLAG, NULL, &given.legacy,
     "itwinai's computation_fraction as well, with what is wrong\n"
     "with it. Of its own files of averages (AVERAGES.csv, or a\n"
     "folder of them) that alone"},
    {"write-averages", 0, CLI_TEXT, "FILE", &given.averages,
     "write the averages that it is made of, as its CSV"},
    {"strategy", 0, CLI_TEXT, "NAME", &given.strategy,
     "what that file calls the strategy (default: unknown)"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "write there (default: -, standard output)"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "auto: when standard output is a terminal"},
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs,
     "processes to read at a time (default: as many as there are\n"
     "cores)"},
};

static struct marey_text_options text_options(FILE *out)
{
    return (struct marey_text_options){.width = cli_terminal_width(out),
                                       .color = cli_wants_color(out, given.color),
                                       .unit = given.unit};
}

static int exit_status(marey_status status)
{
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

static int print_breakdown(void *ctx, FILE *out)
{
    marey_breakdown *const breakdown = ctx;
    const struct marey_text_options wants = text_options(out);
    return exit_status(
        given.json  ? marey_breakdown_json(breakdown, out)
        : given.csv ? marey_present_csv(
                          marey_breakdown_table(breakdown, given.by != NULL ? "by" : "devices"), out)
                    : marey_breakdown_text(breakdown, &wants, out));
}

/* ---- averages of itwinai ---- */

struct fractions {
    marey_table *table;
    struct marey_legacy_source source;
};

static int print_fractions(void *ctx, FILE *out)
{
    const struct fractions *fractions = ctx;
    const struct marey_text_options wants = text_options(out);
    if (given.csv)
        return exit_status(marey_present_csv(fractions->table, out));
    if (!given.json)
        return exit_status(marey_legacy_text(fractions->table, &fractions->source, &wants, out));
    fputs("{\n  \"legacy\": ", out);
    const marey_status status = marey_legacy_json(fractions->table, &fractions->source, out);
    fputs("\n}\n", out);
    return exit_status(status);
}

static int tell_fractions(char **paths, int n)
{
    struct fractions fractions = {0};
    if (given.averages != NULL)
        return cli_fail("--write-averages takes recordings or traces, not files of averages");
    if (marey_legacy_read((const char *const *)paths, (size_t)n, &fractions.table,
                          &fractions.source) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int status = cli_print_file(given.output, print_fractions, &fractions, NULL);
    marey_table_destroy(fractions.table);
    return status;
}

static int print_averages(void *ctx, FILE *out)
{
    return exit_status(marey_present_csv(ctx, out));
}

static int write_averages(const struct cli_recordings *recordings)
{
    marey_table *averages = NULL;
    if (marey_averages_create(recordings->list, recordings->n, given.strategy, &averages) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int status = cli_print_file(given.averages, print_averages, averages, NULL);
    marey_table_destroy(averages);
    return status;
}

/* How many of the paths are files of averages. */
static int count_averages(char **paths, int n)
{
    int n_averages = 0;
    for (int i = 0; given.legacy && i < n; i++)
        n_averages += marey_legacy_is_file(paths[i]);
    return n_averages;
}

/* ---- the breakdown ---- */

static int break_down(const struct cli_recordings *recordings)
{
    const struct marey_breakdown_options wants = {
        .rules = given.rules,
        .by = given.by,
        .window = given.window,
        .legacy = given.legacy,
        .n_jobs = given.jobs,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
    };
    marey_breakdown *breakdown = NULL;
    const marey_status status =
        marey_breakdown_create(recordings->list, recordings->n, &wants, &breakdown);
    cli_progress_end();
    if (status != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int printed = cli_print_file(given.output, print_breakdown, breakdown, NULL);
    marey_breakdown_destroy(breakdown);
    return printed;
}

static int run(int n_args, char **args)
{
    if (given.print_rules)
        return fputs(marey_breakdown_rules(), stdout) >= 0
                   ? CLI_FINE
                   : cli_fail("cannot write: %s", strerror(errno));
    if (n_args == 0)
        return cli_fail("breakdown needs a recording or a trace: marey breakdown RUN.marey");
    if (given.json && given.csv)
        return cli_fail("--json and --csv exclude one another");
    const int n_averages = count_averages(args, n_args);
    if (n_averages != 0 && n_averages != n_args)
        return cli_fail(
            "--legacy takes files of averages or recordings and traces, not both at once");
    if (n_averages != 0)
        return tell_fractions(args, n_args);
    struct cli_recordings recordings;
    cli_use_jobs(given.jobs);
    if (!cli_open(&recordings, args, n_args))
        return CLI_BAD;
    int status = break_down(&recordings);
    if (status == CLI_FINE && given.averages != NULL)
        status = write_averages(&recordings);
    status = cli_tell_damage(&recordings, status);
    cli_close(&recordings);
    return status;
}

const struct cli_command cli_command_breakdown = {
    .name = "breakdown",
    .usage = "RUN.marey|TRACE|FOLDER... [OPTIONS]",
    .brief = "computation, communication, other: what devices did",
    .about =
        "Says for each GPU of each rank how long it computed, how long it communicated with\n"
        "nothing computing beside it (exposed) and hidden behind computation, how long it only\n"
        "copied, and how long it was idle, and why. Each nanosecond counts once, so the parts\n"
        "add up to the whole. Of several ranks it tells how long they waited for one another.\n"
        "Takes traces of PyTorch's profiler as they are, one file or a folder of ranks. A\n"
        "program without a GPU is told by its ranges: those of category communication, copy,\n"
        "data, idle and wait; it computes in the rest of its time.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  marey breakdown trace.json.gz\n"
                "  marey breakdown traces/ --by step --window steps\n"
                "  marey breakdown train.marey --json | jq .summary\n"
                "  marey breakdown --print-rules > my.rules\n"
                "  marey breakdown --legacy torch_profiling_averages.csv",
    .run = run,
};
