/* kymo breakdown: computation, communication, other; what each device did in each nanosecond. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static struct {
    bool json, csv, print_rules;
    const char *by, *window, *rules, *unit, *color, *output;
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
     "rules that are asked before kymo's own what computes,\n"
     "communicates and copies"},
    {"print-rules", 0, CLI_FLAG, NULL, &given.print_rules, "print kymo's own rules, as such a file"},
    {"unit", 'u', CLI_CHOICE, "ns|us|ms|s", &given.unit,
     "one unit for all times (default: what fits each)"},
    {"json", 0, CLI_FLAG, NULL, &given.json,
     "an object: summary, devices, by, rules, warnings. Times are\n"
     "whole nanoseconds"},
    {"csv", 0, CLI_FLAG, NULL, &given.csv, "the table of devices, or the one of --by, as CSV"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "write there (default: -, standard output)"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "auto: when standard output is a terminal"},
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs,
     "processes to read at a time (default: as many as there are\n"
     "cores)"},
};

static int print(kymo_breakdown *breakdown, FILE *out)
{
    const struct kymo_text_options wants = {.width = cli_terminal_width(out),
                                            .color = cli_wants_color(out, given.color),
                                            .unit = given.unit};
    kymo_status status;
    if (given.json)
        status = kymo_breakdown_json(breakdown, out);
    else if (given.csv)
        status = kymo_present_csv(
            kymo_breakdown_table(breakdown, given.by != NULL ? "by" : "devices"), out);
    else
        status = kymo_breakdown_text(breakdown, &wants, out);
    return status == KYMO_OK ? CLI_FINE : cli_fail("%s", kymo_last_error());
}

static int print_to(kymo_breakdown *breakdown, const char *path)
{
    if (path == NULL || strcmp(path, "-") == 0)
        return print(breakdown, stdout);
    FILE *out = fopen(path, "w");
    if (out == NULL)
        return cli_fail("cannot write %s: %s", path, strerror(errno));
    int status = print(breakdown, out);
    if (fclose(out) != 0 && status == CLI_FINE)
        status = cli_fail("cannot write %s: %s", path, strerror(errno));
    return status;
}

static int break_down(const struct cli_recordings *recordings)
{
    const struct kymo_breakdown_options wants = {
        .rules = given.rules,
        .by = given.by,
        .window = given.window,
        .n_jobs = given.jobs,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
    };
    kymo_breakdown *breakdown = NULL;
    const kymo_status status =
        kymo_breakdown_create(recordings->list, recordings->n, &wants, &breakdown);
    cli_progress_end();
    if (status != KYMO_OK)
        return cli_fail("%s", kymo_last_error());
    const int printed = print_to(breakdown, given.output);
    kymo_breakdown_destroy(breakdown);
    return printed;
}

static int run(int n_args, char **args)
{
    if (given.print_rules)
        return fputs(kymo_breakdown_rules(), stdout) >= 0
                   ? CLI_FINE
                   : cli_fail("cannot write: %s", strerror(errno));
    if (n_args == 0)
        return cli_fail("breakdown needs a recording or a trace: kymo breakdown RUN.kymo");
    if (given.json && given.csv)
        return cli_fail("--json and --csv exclude one another");
    signal(SIGPIPE, SIG_DFL); /* a reader that has seen enough ends us without a word */
    struct cli_recordings recordings;
    if (!cli_open(&recordings, args, n_args))
        return CLI_BAD;
    const int status = cli_tell_damage(&recordings, break_down(&recordings));
    cli_close(&recordings);
    return status;
}

const struct cli_command cli_command_breakdown = {
    .name = "breakdown",
    .usage = "RUN.kymo|TRACE|FOLDER... [OPTIONS]",
    .brief = "computation, communication, other: what devices did",
    .about =
        "Says for each GPU of each rank how long it computed, how long it communicated with\n"
        "nothing computing beside it (exposed) and hidden behind computation, how long it only\n"
        "copied, and how long it was idle. Each nanosecond counts once, so the parts add up to\n"
        "the whole. Takes traces of PyTorch's profiler as they are, one file or a folder of\n"
        "ranks. A program without a GPU is told by its ranges: those of category communication,\n"
        "copy, data, idle and wait; it computes in the rest of its time.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  kymo breakdown trace.json.gz\n"
                "  kymo breakdown traces/ --by step --window steps\n"
                "  kymo breakdown train.kymo --json | jq .summary\n"
                "  kymo breakdown --print-rules > my.rules",
    .run = run,
};
