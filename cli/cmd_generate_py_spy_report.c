/* marey generate-py-spy-report: itwinai's command of that name, and what its table leaves out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "report_samples.h"

static struct {
    const char *file, *num_rows, *library, *by, *color;
    bool all, merge, no_merge, json, csv;
} given = {.num_rows = "10", .library = "itwinai", .color = "auto"};

static const struct cli_option options[] = {
    {"file", 0, CLI_TEXT, "FILE|DIR", &given.file,
     "what py-spy record -f raw wrote; of a folder every such file in\n"
     "it, added up"},
    {"num-rows", 0, CLI_TEXT, "N|all", &given.num_rows, "rows at most (default: 10)"},
    {"all", 'a', CLI_FLAG, NULL, &given.all, "the same as --num-rows all"},
    {"aggregate-leaf-paths", 0, CLI_FLAG, NULL, &given.merge,
     "one row for all stacks with the same innermost frame and the\n"
     "same frame of the library (default: a row for each stack)"},
    {"no-aggregate-leaf-paths", 0, CLI_FLAG, NULL, &given.no_merge, "the default"},
    {"library-name", 0, CLI_TEXT, "NAME", &given.library,
     "whose nearest frame is shown: a folder or file of that name on\n"
     "the frame's path (default: itwinai)"},
    {"by", 0, CLI_CHOICE, "function|line|file|module|process|thread|rank|stack", &given.by,
     "another table: self and inclusive time of each of these"},
    {"json", 0, CLI_FLAG, NULL, &given.json, "an object with all tables"},
    {"csv", 0, CLI_FLAG, NULL, &given.csv, "the table as CSV"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "with --by: auto: when standard output is a terminal"},
};

/* 0: all. */
static bool parse_rows(uint32_t *limit)
{
    char *end;
    *limit = 0;
    if (given.all || strcmp(given.num_rows, "all") == 0)
        return true;
    const unsigned long n = strtoul(given.num_rows, &end, 10);
    *limit = (uint32_t)n;
    return given.num_rows[0] >= '0' && given.num_rows[0] <= '9' && *end == '\0' && n > 0 &&
           n <= UINT32_MAX;
}

/* Where several processes were sampled at once their shares are not of one thread's time. */
static void tell_processes(marey_samples_report *report)
{
    const marey_table *const processes = marey_samples_report_table(report, "processes");
    const size_t n = marey_table_n_rows(processes);
    if (n > 1)
        cli_say("samples of %zu processes are added up; --by process tells them apart", n);
}

static marey_status print_leaves(marey_samples_report *report, uint32_t limit)
{
    if (!given.csv)
        return marey_samples_report_leaves(report, given.merge, limit, stdout);
    marey_table *const table =
        marey_samples_report_table(report, given.merge ? "leaf_paths" : "leaves");
    if (limit != 0)
        marey_table_truncate(table, limit);
    return marey_present_csv(table, stdout);
}

static int show_leaves(const struct cli_recordings *recordings, uint32_t limit)
{
    const struct marey_samples_report_options wants = {.library = given.library, .native = 1};
    marey_samples_report *report = NULL;
    if (marey_samples_report_create(recordings->list, recordings->n, &wants, &report) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    tell_processes(report);
    const int status =
        print_leaves(report, limit) == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
    marey_samples_report_destroy(report);
    return status;
}

static int show(const struct cli_recordings *recordings, uint32_t limit)
{
    if (given.by == NULL && !given.json)
        return show_leaves(recordings, limit);
    const struct report_samples wants = {.text = {.width = cli_terminal_width(stdout),
                                                  .color = cli_wants_color(stdout, given.color)},
                                         .by = given.by,
                                         .library = given.library,
                                         .limit = limit,
                                         .native = true,
                                         .json = given.json,
                                         .csv = given.csv};
    return report_samples(recordings, &wants, stdout);
}

/* What is not of the stacks: lines that are none, files that were left out. How many samples there are the table says. */
static void tell_left_out(const struct cli_recordings *recordings)
{
    for (size_t i = 0; i < marey_recording_n_processes(recordings->list[0]); i++) {
        const char *line = marey_recording_process(recordings->list[0], i)->note;
        for (size_t len; *line != '\0'; line += len + (line[len] == '\n')) {
            len = strcspn(line, "\n");
            if (memmem(line, len, "left out", strlen("left out")) != NULL)
                cli_say("%.*s", (int)len, line);
        }
    }
}

static int generate(int n_args, char **args)
{
    uint32_t limit;
    if (n_args > 0)
        return cli_fail("generate-py-spy-report takes its file by --file, not as '%s'", args[0]);
    if (given.file == NULL)
        return cli_fail(
            "generate-py-spy-report needs --file: what py-spy record -f raw wrote, or a "
            "folder of such files");
    if (!parse_rows(&limit))
        return cli_fail("--num-rows takes a number from 1 on, or all, not '%s'", given.num_rows);
    if (given.merge && given.no_merge)
        return cli_fail("--aggregate-leaf-paths and --no-aggregate-leaf-paths exclude each other");
    struct cli_recordings recordings;
    if (!cli_open(&recordings, (char **)&given.file, 1))
        return CLI_BAD;
    tell_left_out(&recordings);
    const int status = cli_tell_damage(&recordings, show(&recordings, limit));
    cli_close(&recordings);
    return status;
}

const struct cli_command cli_command_generate_py_spy_report = {
    .name = "generate-py-spy-report",
    .usage = "--file FILE|DIR [OPTIONS]",
    .brief = "itwinai's table of py-spy's stacks",
    .about =
        "Reads what 'py-spy record -f raw' wrote, or any profile of samples that marey knows, and\n"
        "prints innermost frames with the nearest frame of a library around each, most samples\n"
        "first: the table of itwinai's command of this name. Frames of any kind are taken: of\n"
        "native code, threads and processes, without lines, of modules. No sample is lost, so "
        "that\n"
        "shares are of all of them.\n"
        "\n"
        "With --by self and inclusive time by function, line, file, module, process or thread.\n"
        "'marey report --samples' has the same and more, also of what marey sampled itself.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  marey generate-py-spy-report --file train.raw\n"
                "  marey generate-py-spy-report --file py-spy-output --num-rows all "
                "--aggregate-leaf-paths\n"
                "  marey generate-py-spy-report --file train.raw --library-name torch\n"
                "  marey generate-py-spy-report --file train.raw --by function",
    .is_of_itwinai = true,
    .run = generate,
};
