/* marey diff: compares two dumps and finds the first difference. */
#include <stdio.h>

#include "report/analysis_command.h"
#include "report/report_options.h"

static uint32_t limit = 30; /* rows that fit on a screen */

static const struct cli_option options[] = {
    {"limit", 'n', CLI_COUNT, "N", &limit, "at most N tensors (default: 30; 0: all of them)"},
};

/* Whether a value could not be compared. */
static bool is_partial(const marey_report *report)
{
    const marey_table *const steps = marey_report_table(report, "steps");
    const size_t unknown = (size_t)marey_table_find(steps, "unknown");
    for (size_t row = 0; row < marey_table_n_rows(steps); row++)
        if (marey_table_cell(steps, row, unknown).as.u64 != 0)
            return true;
    return false;
}

static int diff(int n_args, char **args)
{
    const bool compares_ranks = report_options_value("ranks") != NULL;
    marey_report *report CLI_FINALLY(cli_destroy_report) = NULL;
    if (compares_ranks && n_args != 1)
        return cli_fail("diff --ranks takes one dump: marey diff --ranks DUMP");
    if (!compares_ranks && n_args != 2)
        return cli_fail("diff takes two dumps: marey diff NEW REFERENCE");
    if (!analysis_command_check("diff"))
        return CLI_BAD;
    struct marey_report_options how = {0};
    CLI_TRY(analysis_command_make("diff", args, n_args, &how, NULL, &report));
    CLI_TRY(analysis_command_write(report, limit, NULL));
    if (is_partial(report))
        return cli_fail("some values could not be compared, so the result is incomplete");
    return marey_table_n_rows(marey_report_table(report, "first")) != 0 ? CLI_NO : CLI_FINE;
}

struct cli_command cli_command_diff = {
    .name = "diff",
    .usage = "A B [OPTIONS]",
    .brief = "compare two dumps of tensors; find the first difference",
    .about =
        "Compares dump A, the new one, with dump B, the reference, and names the first difference\n"
        "in the order of execution: step, phase, tensor, element, both values and their bits; and\n"
        "the first operation whose inputs agree and whose outputs do not. A dump is a directory\n"
        "that marey.TensorDumper, <marey/dump.h> or ACCV-Lab wrote, or one file: .safetensors,\n"
        ".npy, .json, .png, .bin. The two may differ in layout and format. Values are paired by\n"
        "path; where paths differ, by order and digests. Tensors with equal digests are not read.",
    CLI_OPTIONS(options),
    .examples =
        "  marey diff new reference\n"
        "  marey diff new reference --bitwise\n"
        "  marey diff new reference --atol 1e-5 --rtol 1e-4 -t '*.grad=1e-3'\n"
        "  marey diff new reference --noise reference2   two references show the noise\n"
        "  marey diff new.npy reference.safetensors --allow-missing\n"
        "  marey diff --ranks dumps --filter '*.weight'  are parameters equal on all ranks?\n"
        "  marey diff new reference --json | jq .first",
    .exits = "0 the same, 1 different, 2 wrong usage or input, or not all was comparable\n"
             "(also if the rest differs).",
    .run = diff,
};
