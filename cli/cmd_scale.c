/* marey scale: runs with different numbers of workers; does it scale, how far, why not further? */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scale.h"

enum { MOST_FORECASTS = 32, MOST_NAME = 256 };

static struct {
    bool json, markdown, with_first, itwinai_names;
    const char *csv, *mlflow, *experiment, *strategy, *measure, *kind, *forecast, *html, *pictures,
        *gate, *output, *color;
    uint32_t workers, jobs;
} given = {.color = "auto"};

static const struct cli_option options[] = {
    {"measure", 'm', CLI_CHOICE, "epoch|step", &given.measure,
     "what is timed (default: epochs, where the runs have them)"},
    {"kind", 'k', CLI_CHOICE, "strong|weak", &given.kind,
     "whether all do the same work, or each worker does (default:\n"
     "told from samples)"},
    {"with-first", 0, CLI_FLAG, NULL, &given.with_first,
     "count first epochs too; they are left out as warm-up"},
    {"forecast", 'f', CLI_TEXT, "N,N,...", &given.forecast,
     "numbers of workers to forecast (default: 2, 4 and 8 times\n"
     "the most that were measured)"},
    {"mlflow", 0, CLI_TEXT, "URI|DIR", &given.mlflow,
     "runs of an MLflow store as well, as itwinai and marey log them"},
    {"experiment", 0, CLI_TEXT, "NAME", &given.experiment,
     "the experiment of all runs; of a store, which one to read\n"
     "(default: all of it)"},
    {"strategy", 0, CLI_TEXT, "NAME", &given.strategy,
     "the series of all runs; NAME=RUN says it for one"},
    {"workers", 'w', CLI_COUNT, "N", &given.workers, "how many workers each of these runs had"},
    {"fail-below-efficiency", 0, CLI_TEXT, "PERCENT", &given.gate,
     "exit with 1 when a number of workers has less of ideal\n"
     "speedup than this with confidence: '70' or '70%'"},
    {"html", 0, CLI_TEXT, "FILE", &given.html, "a page as well: pictures and tables"},
    {"pictures", 'p', CLI_TEXT, "DIR", &given.pictures, "each picture as well, as DIR/NAME.svg"},
    {"itwinai-names", 0, CLI_FLAG, NULL, &given.itwinai_names,
     "the six pictures of itwinai, by its names"},
    {"json", 0, CLI_FLAG, NULL, &given.json,
     "an object: summary, points, fits, forecast, best, runs, notes"},
    {"csv", 0, CLI_MAYBE, "TABLE", &given.csv, "one of these tables as CSV (default: points)"},
    {"markdown", 0, CLI_FLAG, NULL, &given.markdown, "for a pull request"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "write there (default: -, standard output)"},
    {"color", 0, CLI_CHOICE, "auto|always|never", &given.color,
     "auto: when standard output is a terminal"},
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs,
     "threads to read with (default: as many as there are cores)"},
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

static bool read_path(marey_scaling_runs *runs, const char *path,
                      const struct marey_scaling_read_options *wants)
{
    const marey_status status = marey_scaling_runs_read(runs, path, wants);
    cli_progress_end();
    if (status != MAREY_OK)
        cli_fail("%s", marey_last_error());
    return status == MAREY_OK;
}

/* Measurements that a command of marey.itwinai writes as CSV: "mlflow" of a store, "measurements" of itwinai's files. */
static bool read_converted(marey_scaling_runs *runs, const char *command, const char *from,
                           const struct marey_scaling_read_options *wants)
{
    const char *const folder = getenv("TMPDIR");
    char csv[PATH_MAX];
    char *const paths[] = {(char *)(uintptr_t)from, csv};
    struct cli_words words = {0};
    if (snprintf(csv, sizeof csv, "%s/marey-XXXXXX.csv",
                 folder != NULL && folder[0] != '\0' ? folder : "/tmp") >= (int)sizeof csv) {
        cli_fail("the path in TMPDIR is too long");
        return false;
    }
    const int fd = mkstemps(csv, 4);
    if (fd < 0) {
        cli_fail("cannot write %s: %s", csv, strerror(errno));
        return false;
    }
    close(fd);
    cli_add_word(&words, "%s", command);
    if (strcmp(command, "mlflow") == 0 && given.experiment != NULL)
        cli_add_word(&words, "--experiment=%s", given.experiment);
    const bool is_done =
        cli_python(&words, 2, paths, stdout) == CLI_FINE && read_path(runs, csv, wants);
    unlink(csv);
    return is_done;
}

static bool read_run(marey_scaling_runs *runs, const char *argument)
{
    char name[MOST_NAME];
    const size_t len = name_length(argument);
    const char *const path = argument + (len != 0 ? len + 1 : 0);
    int has_itwinai = 0;
    if (len >= sizeof name) {
        cli_fail("the name of a series has %d letters at most: '%.20s...'", MOST_NAME - 1, argument);
        return false;
    }
    snprintf(name, sizeof name, "%.*s", (int)len, argument);
    struct marey_scaling_read_options wants = {
        .experiment = given.experiment,
        .strategy = len != 0 ? name : given.strategy,
        .workers = given.workers,
        .n_jobs = given.jobs,
        .progress = cli_progress,
        .progress_ctx = (void *)"reading",
        .has_itwinai = &has_itwinai,
    };
    if (!read_path(runs, path, &wants))
        return false;
    wants.has_itwinai = NULL;
    wants.source = path;
    return !has_itwinai || read_converted(runs, "measurements", path, &wants);
}

/* Every source of runs: paths, and a store. */
static bool read_all(marey_scaling_runs *runs, int n_args, char **args)
{
    const struct marey_scaling_read_options of_store = {.strategy = given.strategy,
                                                        .source = "MLflow"};
    for (int i = 0; i < n_args; i++)
        if (!read_run(runs, args[i]))
            return false;
    return given.mlflow == NULL || read_converted(runs, "mlflow", given.mlflow, &of_store);
}

/* "64,128" */
static bool parse_forecast(const char *text, uint32_t counts[MOST_FORECASTS], size_t *n)
{
    for (*n = 0; *n < MOST_FORECASTS; text++) {
        char *end;
        const long count = strtol(text, &end, 10);
        if (end == text || count < 1 || count > INT32_MAX || (*end != ',' && *end != '\0'))
            break;
        counts[(*n)++] = (uint32_t)count;
        if (*end == '\0')
            return true;
        text = end;
    }
    cli_fail("--forecast takes up to %d numbers of workers such as 64,128, not '%s'",
             MOST_FORECASTS, given.forecast);
    return false;
}

/* ---- the answer ---- */

static marey_status print_table(marey_scaling *scaling, FILE *out)
{
    return marey_present_csv(
        marey_scaling_table(scaling, given.csv[0] != '\0' ? given.csv : "points"), out);
}

static int print(void *ctx, FILE *out)
{
    marey_scaling *const scaling = ctx;
    const struct marey_text_options wants = {.width = cli_terminal_width(out),
                                             .color = cli_wants_color(out, given.color)};
    const marey_status status = given.json          ? marey_scaling_json(scaling, out)
                                : given.csv != NULL ? print_table(scaling, out)
                                : given.markdown    ? marey_scaling_markdown(scaling, out)
                                                    : marey_scaling_text(scaling, &wants, out);
    return status == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

static int print_page(void *ctx, FILE *out)
{
    return marey_scaling_html(ctx, out) == MAREY_OK ? CLI_FINE : cli_fail("%s", marey_last_error());
}

static int answer(marey_scaling *scaling, double gate)
{
    if (given.csv != NULL && given.csv[0] != '\0' && marey_scaling_table(scaling, given.csv) == NULL)
        return cli_fail(
            "there is no table '%s'; there are points, fits, forecast, best, runs and notes",
            given.csv);
    const bool is_page = given.html != NULL && strcmp(given.html, "-") == 0;
    int status = CLI_FINE; /* files first: a reader of the answer that has seen enough ends us */
    if (given.html != NULL)
        status = cli_print_file(given.html, print_page, scaling,
                                "open it in a browser; it needs nothing else");
    if (status == CLI_FINE && given.pictures != NULL)
        status = scale_write_pictures(scaling, given.pictures, given.itwinai_names);
    if (status == CLI_FINE && !is_page)
        status = cli_print_file(given.output, print, scaling, NULL);
    if (status == CLI_FINE && given.gate != NULL)
        status = scale_check_gate(scaling, gate);
    return status;
}

static int tell(const marey_scaling_runs *runs, double gate)
{
    uint32_t forecast[MOST_FORECASTS];
    struct marey_scaling_options wants = {.with_first = given.with_first,
                                          .kind = given.kind,
                                          .measure = given.measure,
                                          .forecast = forecast};
    marey_scaling *scaling = NULL;
    if (given.forecast != NULL && !parse_forecast(given.forecast, forecast, &wants.n_forecast))
        return CLI_BAD;
    if (marey_scaling_create(runs, &wants, &scaling) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int status = answer(scaling, gate);
    marey_scaling_destroy(scaling);
    return status;
}

static int run(int n_args, char **args)
{
    double gate = 0;
    if (n_args == 0 && given.mlflow == NULL)
        return cli_fail("scale needs runs with different numbers of workers: "
                        "marey scale one.marey two.marey four.marey");
    if (given.json + (given.csv != NULL) + given.markdown > 1)
        return cli_fail("--json, --csv and --markdown exclude one another");
    if (given.itwinai_names && given.pictures == NULL)
        return cli_fail("--itwinai-names goes with --pictures DIR");
    if (given.gate != NULL && !cli_percent("fail-below-efficiency", given.gate, &gate))
        return CLI_BAD;
    marey_scaling_runs *runs = NULL;
    if (marey_scaling_runs_create(&runs) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    const int status = read_all(runs, n_args, args) ? tell(runs, gate) : CLI_BAD;
    marey_scaling_runs_destroy(runs);
    return status;
}

const struct cli_command cli_command_scale = {
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
