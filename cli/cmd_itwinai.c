/*
 * Commands of itwinai. generate-flamegraph is 'marey export'; the others are in Python, marey/itwinai/_report.py.
 */
#include "lib/cli.h"

/* ---- generate-scalability-report ---- */

const struct cli_command cli_command_generate_scalability_report = {
    .name = "generate-scalability-report",
    .usage = "[OPTIONS]",
    .brief = "itwinai's tables and plots of an MLflow store",
    .about =
        "Prints itwinai's tables and writes its plots, of runs in an MLflow store. First epochs\n"
        "are left out, repeats are not added up, each strategy has its own baseline. A report\n"
        "without data is an error. Runs in Python ($MAREY_PYTHON, else python3 on the PATH), "
        "which\n"
        "needs mlflow for stores. 'marey scale --mlflow URI' reads the same runs, reports more.",
    .examples =
        "  marey generate-scalability-report --experiment-name scaling\n"
        "  marey generate-scalability-report --tracking-uri sqlite:///mlflow.db --run-names a,b\n"
        "  marey generate-scalability-report --log-dir scalability-metrics --run-ids first",
    .exits = "0 fine, 2 wrong usage or input, or nothing to report.",
    .is_itwinai_command = true,
    .is_in_python = true,
};

/* ---- generate-py-spy-report ---- */

const struct cli_command cli_command_generate_py_spy_report = {
    .name = "generate-py-spy-report",
    .usage = "--file FILE|DIR [OPTIONS]",
    .brief = "itwinai's table of py-spy's stacks",
    .about =
        "Prints innermost frames with the nearest frame of a library around each, most samples\n"
        "first, of a file that 'py-spy record -f raw' wrote, or any profile of samples that marey\n"
        "imports. Runs in Python. 'marey report --samples' has the same and more.",
    .examples = "  marey generate-py-spy-report --file train.raw\n"
                "  marey generate-py-spy-report --file py-spy-output --num-rows all "
                "--aggregate-leaf-paths\n"
                "  marey generate-py-spy-report --file train.raw --library-name torch\n"
                "  marey generate-py-spy-report --file train.raw --by function",
    .is_itwinai_command = true,
    .is_in_python = true,
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
    (void)args;
    static struct cli_words words; /* options point into it */
    int status;
    if (n_args > 0 || flames.file == NULL)
        return cli_fail(
            "generate-flamegraph takes its file by --file: one that 'py-spy record -f raw' "
            "wrote, or a folder of them");
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
