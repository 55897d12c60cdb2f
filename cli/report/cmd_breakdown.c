/* marey breakdown: computation, communication, copies and idle time of each device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/analysis_command.h"

static struct {
    bool print_rules, legacy;
    const char *unit, *averages, *strategy;
} given;

static const struct cli_option options[] = {
    {"print-rules", 0, CLI_FLAG, NULL, &given.print_rules, "print the built-in rules in this format"},
    CLI_UNIT_OPTION(&given.unit),
    {"legacy", 0, CLI_FLAG, NULL, &given.legacy,
     "also print itwinai's computation_fraction, with its errors\n"
     "explained. itwinai's files of averages (AVERAGES.csv, or a\n"
     "folder of them) give only that"},
    {"write-averages", 0, CLI_TEXT, "FILE", &given.averages,
     "write the averages it is computed from, as itwinai's CSV"},
    {"strategy", 0, CLI_TEXT, "NAME", &given.strategy,
     "strategy column in that file (default: unknown)"},
};

/* itwinai's charts need Python, which calls this command for the rest. */
static int run_with_itwinai(int n_args, char **args)
{
    struct cli_words words = {0};
    cli_add_word(&words, "breakdown");
    cli_add_options(&words, &cli_command_breakdown);
    return cli_python(&words, n_args, args, stdout);
}

static int run(int n_args, char **args)
{
    struct cli_recordings recordings CLI_FINALLY(cli_close) = {0};
    marey_report *report CLI_FINALLY(cli_destroy_report) = NULL;
    if (given.print_rules)
        return fputs(marey_breakdown_rules(), stdout) >= 0
                   ? CLI_FINE
                   : cli_fail("cannot write: %s", strerror(errno));
    if (n_args == 0)
        return cli_fail("breakdown needs a recording or a trace: marey breakdown RUN.marey");
    if (!analysis_command_check("breakdown"))
        return CLI_BAD;
    if (given.legacy || given.averages != NULL)
        return run_with_itwinai(n_args, args);
    CLI_TRY(analysis_command_open("breakdown", args, n_args, &recordings, &report));
    return cli_report_damage(&recordings, analysis_command_write(report, 0, given.unit));
}

struct cli_command cli_command_breakdown = {
    .name = "breakdown",
    .usage = "RUN.marey|TRACE|FOLDER... [OPTIONS]",
    .brief = "computation, communication and idle time of devices",
    .about =
        "Prints for each GPU of each rank how long it computed, how long it communicated with\n"
        "nothing computing in parallel (exposed) and hidden by computation, how long it only\n"
        "copied, and how long it was idle, and why. Each nanosecond counts once, so the parts\n"
        "add up to the total. With several ranks: how long they waited for one another. Reads\n"
        "traces of PyTorch's profiler directly, one file or a folder of ranks. A program without\n"
        "a GPU is broken down by its ranges of category communication, copy, data, idle and\n"
        "wait; it computes in the rest of its time.",
    CLI_OPTIONS(options),
    .examples = "  marey breakdown trace.json.gz\n"
                "  marey breakdown traces/ --by step --window steps\n"
                "  marey breakdown train.marey --json | jq .summary\n"
                "  marey breakdown --print-rules > my.rules\n"
                "  marey breakdown --legacy torch_profiling_averages.csv",
    .run = run,
};
