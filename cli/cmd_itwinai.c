/*
 * Commands of itwinai. generate-flamegraph is 'marey export'; the others are in Python, marey/itwinai/_report.py.
 */
#include "lib/cli.h"

/* Passes the given options. */
static int run_in_python(const struct cli_command *command)
{
    struct cli_words words = {0};
    cli_add_word(&words, "%s", command->name);
    cli_add_options(&words, command);
    return cli_python(&words, 0, NULL, stdout);
}

static bool has_file(const char *command, const char *file, int n_args, char **args)
{
    if (n_args > 0)
        cli_fail("%s takes its file with --file, not as '%s'", command, args[0]);
    else if (file == NULL)
        cli_fail("%s needs --file: a file that 'py-spy record -f raw' wrote, or a folder of them",
                 command);
    return n_args == 0 && file != NULL;
}

/* ---- generate-scalability-report ---- */

static struct {
    const char *uri, *experiment, *runs, *plot_dir, *suffix, *log_dir, *run_ids;
    bool communication, no_warnings;
} scaling;

static const struct cli_option scaling_options[] = {
    {"tracking-uri", 0, CLI_TEXT, "URI|DIR", &scaling.uri,
     "the MLflow store: a folder, sqlite:///FILE, a server (default:\n"
     "mllogs/mlflow)"},
    {"experiment-name", 0, CLI_TEXT, "NAME", &scaling.experiment,
     "which of its experiments (default: unnamed-experiment)"},
    {"run-names", 0, CLI_TEXT, "NAME,...", &scaling.runs,
     "training runs to take (default: all of the experiment)"},
    {"plot-dir", 0, CLI_TEXT, "DIR", &scaling.plot_dir, "folder of the plots (default: plots)"},
    {"plot-file-suffix", 0, CLI_TEXT, ".svg", &scaling.suffix,
     "accepted for compatibility: plots are always .svg"},
    {"include-communication", 0, CLI_FLAG, NULL, &scaling.communication,
     "computation against communication as well, by itwinai's rule"},
    {"no-warnings", 0, CLI_FLAG, NULL, &scaling.no_warnings, "leave out notes about these numbers"},
    {"log-dir", 0, CLI_TEXT, "DIR", &scaling.log_dir,
     "files of itwinai 0.2 to 0.3.3 (scalability-metrics) instead of a\n"
     "store"},
    {"run-ids", 0, CLI_TEXT, "ID,...", &scaling.run_ids,
     "with --log-dir: folders in it to take (default: all)"},
};

static int generate_scalability_report(int n_args, char **args)
{
    if (n_args > 0)
        return cli_fail("generate-scalability-report takes no arguments, and this is one: '%s'",
                        args[0]);
    return run_in_python(&cli_command_generate_scalability_report);
}

const struct cli_command cli_command_generate_scalability_report = {
    .name = "generate-scalability-report",
    .usage = "[OPTIONS]",
    .brief = "itwinai's tables and plots of an MLflow store",
    .about =
        "Reads runs that itwinai, or marey's MLflowLogger, logged into MLflow, and prints "
        "itwinai's\n"
        "tables: time of an epoch, GPU energy and utilization, computation, with its columns and\n"
        "some more. Its six plots are written as SVG. Unlike there, first epochs are left out,\n"
        "repeats are not added up, each strategy has its own baseline, and a report without data\n"
        "is an error. 'marey scale --mlflow URI' reads the same runs and reports more.\n"
        "\n"
        "Runs in Python: $MAREY_PYTHON, else python3 on the PATH. MLflow stores need mlflow there.",
    CLI_OPTIONS(scaling_options),
    .examples =
        "  marey generate-scalability-report --experiment-name scaling\n"
        "  marey generate-scalability-report --tracking-uri sqlite:///mlflow.db --run-names a,b\n"
        "  marey generate-scalability-report --log-dir scalability-metrics --run-ids first",
    .exits = "0 fine, 2 wrong usage or input, or nothing to report.",
    .is_itwinai_command = true,
    .run = generate_scalability_report,
};

/* ---- generate-py-spy-report ---- */

static struct {
    const char *file, *num_rows, *library, *by, *color;
    bool all, merge, no_merge, json, csv;
} spy = {.num_rows = "10", .library = "itwinai", .color = "auto"};

static const struct cli_option spy_options[] = {
    {"file", 0, CLI_TEXT, "FILE|DIR", &spy.file,
     "a file of 'py-spy record -f raw'; of a folder every such file in\n"
     "it, added up"},
    {"num-rows", 0, CLI_TEXT, "N|all", &spy.num_rows, "rows at most (default: 10)"},
    {"all", 'a', CLI_FLAG, NULL, &spy.all, "the same as --num-rows all"},
    {"aggregate-leaf-paths", 0, CLI_FLAG, NULL, &spy.merge,
     "one row for all stacks with the same innermost frame and the\n"
     "same frame of the library (default: a row for each stack)"},
    {"no-aggregate-leaf-paths", 0, CLI_FLAG, NULL, &spy.no_merge, "the default"},
    {"library-name", 0, CLI_TEXT, "NAME", &spy.library,
     "whose nearest frame is shown: a folder or file of that name on\n"
     "the frame's path (default: itwinai)"},
    {"by", 0, CLI_CHOICE, "function|line|file|module|process|thread|rank|stack", &spy.by,
     "another table: self and inclusive time of each of these"},
    {"json", 0, CLI_FLAG, NULL, &spy.json, "an object with all tables"},
    {"csv", 0, CLI_FLAG, NULL, &spy.csv, "the table as CSV"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &spy.color,
     "with --by: auto: when standard output is a terminal"},
};

static int generate_py_spy_report(int n_args, char **args)
{
    return has_file("generate-py-spy-report", spy.file, n_args, args)
               ? run_in_python(&cli_command_generate_py_spy_report)
               : CLI_BAD;
}

const struct cli_command cli_command_generate_py_spy_report = {
    .name = "generate-py-spy-report",
    .usage = "--file FILE|DIR [OPTIONS]",
    .brief = "itwinai's table of py-spy's stacks",
    .about =
        "Reads a file that 'py-spy record -f raw' wrote, or any profile of samples that marey\n"
        "imports, and prints innermost frames with the nearest frame of a library around each,\n"
        "most samples first: the table of itwinai's command of this name. Takes frames of any\n"
        "kind: of native code, threads and processes, without lines, of modules. No sample is\n"
        "lost, so that shares are of all of them.\n"
        "\n"
        "With --by self and inclusive time by function, line, file, module, process or thread.\n"
        "'marey report --samples' has the same and more, also of what marey sampled itself.",
    CLI_OPTIONS(spy_options),
    .examples = "  marey generate-py-spy-report --file train.raw\n"
                "  marey generate-py-spy-report --file py-spy-output --num-rows all "
                "--aggregate-leaf-paths\n"
                "  marey generate-py-spy-report --file train.raw --library-name torch\n"
                "  marey generate-py-spy-report --file train.raw --by function",
    .is_itwinai_command = true,
    .run = generate_py_spy_report,
};

/* ---- generate-flamegraph ---- */

static struct {
    const char *file, *output, *by;
} flames = {.output = "flamegraph.svg"};

static const struct cli_option flames_options[] = {
    {"file", 0, CLI_TEXT, "FILE|DIR", &flames.file,
     "a file of 'py-spy record -f raw', or stacks and numbers of another\n"
     "tool; of a folder every such file in it"},
    {"output-filename", 0, CLI_TEXT, "FILE", &flames.output,
     "the SVG (default: flamegraph.svg); - is standard output"},
    {"by", 0, CLI_CHOICE, "thread|rank", &flames.by,
     "separate threads or ranks (default: all added up)"},
};

static int generate_flamegraph(int n_args, char **args)
{
    static struct cli_words words; /* options point into it */
    int status;
    if (!has_file("generate-flamegraph", flames.file, n_args, args))
        return CLI_BAD;
    cli_add_word(&words, "--to=flamegraph");
    cli_add_word(&words, "--output=%s", flames.output);
    if (flames.by != NULL)
        cli_add_word(&words, "--by=%s", flames.by);
    cli_add_word(&words, "--");
    cli_add_word(&words, "%s", flames.file);
    if (words.failed)
        return cli_fail("out of memory for arguments");
    return cli_parse(&cli_command_export, words.list, &n_args, &status)
               ? cli_command_export.run(n_args, words.list)
               : status;
}

const struct cli_command cli_command_generate_flamegraph = {
    .name = "generate-flamegraph",
    .usage = "--file FILE|DIR [--output-filename FILE]",
    .brief = "a flame graph of py-spy's stacks",
    .about =
        "Draws a flame graph of a file that 'py-spy record -f raw' wrote, or of any profile or\n"
        "trace that marey imports: itwinai's command of this name, without Perl. The SVG opens\n"
        "in any browser and can be searched and zoomed. An existing file is replaced when the\n"
        "new one is complete. 'marey export -o FILE.svg' has more: filters, and what changed\n"
        "between two runs.",
    CLI_OPTIONS(flames_options),
    .examples =
        "  marey generate-flamegraph --file train.raw\n"
        "  marey generate-flamegraph --file train.raw --output-filename train.svg --by thread",
    .is_itwinai_command = true,
    .run = generate_flamegraph,
};
