/* marey scale: runs with different numbers of workers; does it scale, how far, why not further? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis_command.h"
#include "report_options.h"
#include "scale.h"

static struct {
    bool itwinai_names;
    const char *html, *pictures, *gate;
} given;

static const struct cli_option options[] = {
    {"fail-below-efficiency", 0, CLI_TEXT, "PERCENT", &given.gate,
     "exit with 1 when a number of workers has less of ideal\n"
     "speedup than this with confidence: '70' or '70%'"},
    {"html", 0, CLI_TEXT, "FILE", &given.html, "a page as well: charts and tables"},
    {"pictures", 'p', CLI_TEXT, "DIR", &given.pictures, "each chart as well, as DIR/NAME.svg"},
    {"itwinai-names", 0, CLI_FLAG, NULL, &given.itwinai_names,
     "the six charts of itwinai, by its names"},
};

/* ---- reading ---- */

/*
 * NAME=PATH: how long the name is; 0 for a path alone. What is there as a whole is a path, whatever its name has in it.
 */
static size_t name_length(const char *argument)
{
    const size_t len = strcspn(argument, "=/");
    return argument[len] == '=' && access(argument, F_OK) != 0 ? len : 0;
}

/* Python has said what failed. */
static bool is_reported;

static marey_status convert(void *ctx, const char *command, const char *from, const char *csv)
{
    char *const paths[] = {(char *)(uintptr_t)from, (char *)(uintptr_t)csv};
    struct cli_words words = {0};
    (void)ctx;
    cli_progress_end();
    cli_add_word(&words, "%s", command);
    if (strcmp(command, "mlflow") == 0 && report_options_value("experiment") != NULL)
        cli_add_word(&words, "--experiment=%s", report_options_value("experiment"));
    is_reported = cli_python(&words, 2, paths, stdout) != CLI_FINE;
    return is_reported ? MAREY_EIO : MAREY_OK;
}

static int make(int n, char **args, marey_report **report)
{
    char **const series = calloc((size_t)n + 1, sizeof *series);
    char **const paths = calloc((size_t)n + 1, sizeof *paths);
    struct marey_report_options how = {.groups = (const char *const *)series, .convert = convert};
    int status = CLI_BAD;
    bool is_done = series != NULL && paths != NULL;
    for (int i = 0; is_done && i < n; i++) {
        const size_t len = name_length(args[i]);
        paths[i] = args[i] + (len != 0 ? len + 1 : 0);
        is_done = len == 0 || (series[i] = strndup(args[i], len)) != NULL;
    }
    if (!is_done)
        cli_say("out of memory");
    else
        status = analysis_command_make("scale", paths, n, &how, &is_reported, report);
    for (int i = 0; series != NULL && i < n; i++)
        free(series[i]);
    free(series);
    free(paths);
    return status;
}

/* ---- the report ---- */

static int write_all(const marey_report *report, double gate)
{
    const bool is_page = given.html != NULL && strcmp(given.html, "-") == 0;
    int status = CLI_FINE; /* files first: a reader of the answer that has seen enough ends us */
    if (given.html != NULL)
        status = analysis_command_write_page(report, given.html);
    if (status == CLI_FINE && given.pictures != NULL)
        status = scale_write_pictures(report, given.pictures, given.itwinai_names);
    if (status == CLI_FINE && !is_page)
        status = analysis_command_write(report, 0, NULL);
    if (status == CLI_FINE && given.gate != NULL)
        status = scale_check_gate(report, gate);
    return status;
}

static int run(int n_args, char **args)
{
    double gate = 0;
    marey_report *report = NULL;
    if (n_args == 0 && report_options_value("mlflow") == NULL)
        return cli_fail("scale needs runs with different numbers of workers: "
                        "marey scale one.marey two.marey four.marey");
    if (!analysis_command_check("scale"))
        return CLI_BAD;
    if (given.itwinai_names && given.pictures == NULL)
        return cli_fail("--itwinai-names goes with --pictures DIR");
    if (given.gate != NULL && !cli_percent("fail-below-efficiency", given.gate, &gate))
        return CLI_BAD;
    int status = make(n_args, args, &report);
    if (status == CLI_FINE)
        status = write_all(report, gate);
    marey_report_destroy(report);
    return status;
}

static void prepare(void)
{
    analysis_command_prepare(&cli_command_scale, "scale");
}

struct cli_command cli_command_scale = {
    .name = "scale",
    .usage = "RUN.marey|FOLDER|FILE.csv|NAME=RUN... [OPTIONS]",
    .brief = "does it scale: speedup and efficiency over workers",
    .about =
        "Reads runs of one program with different numbers of workers and says whether it gets\n"
        "faster, how much, until when, and what of a step holds it back. Takes recordings,\n"
        "folders of recordings or of traces of PyTorch's profiler (a folder for each run), CSV\n"
        "files of measurements, and runs in an MLflow store. Runs with as many workers are\n"
        "repeats: medians of them, with 95 % intervals, never sums. Runs of one strategy are a\n"
        "series, which begins with its own smallest number of workers. First epochs are left out\n"
        "as warm-up. Fits of Amdahl's law and of the universal scalability law forecast larger\n"
        "runs.",
    .prepare = prepare,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples = "  marey scale one.marey two.marey four.marey\n"
                "  marey scale runs/ --html scaling.html\n"
                "  marey scale ddp=ddp-runs/ horovod=horovod-runs/ --pictures pictures\n"
                "  marey scale measurements.csv --forecast 64,128\n"
                "  marey scale --mlflow mllogs/mlflow --experiment scaling\n"
                "  marey scale runs/ --csv=points > points.csv\n"
                "  marey scale runs/ --fail-below-efficiency 70%        for CI",
    .exits = "0 fine, 1 the gate failed: less efficient than asked for, 2 wrong usage or\n"
             "input, or no run at all.",
    .run = run,
};
