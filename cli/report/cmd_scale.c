/* marey scale: speedup over numbers of workers, its projection, and its limits. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/analysis_command.h"
#include "report/report_options.h"

/*
 * ---- the gate ----
 *
 * A point fails if its whole interval is below the limit, so that noise fails no build; without an interval its value
 * counts. A gate without a point to check is an error, not a success.
 */

static struct marey_cell cell_of(const marey_table *points, size_t row, const char *column)
{
    return marey_table_cell(points, row, (size_t)marey_table_find(points, column));
}

/* "torch-ddp with 8 workers", into `into`. */
static const char *name_point(const marey_table *points, size_t row, char *into, size_t size)
{
    const struct marey_cell experiment = cell_of(points, row, "experiment"),
                            strategy = cell_of(points, row, "strategy");
    snprintf(into, size, "%s%s%s%swith %" PRIu64 " workers", experiment.as.text,
             experiment.len != 0 ? " " : "", strategy.as.text, strategy.len != 0 ? " " : "",
             cell_of(points, row, "workers").as.u64);
    return into;
}

/* Whether the point fails. Prints it, also if it only may fail. */
static bool report_point(const marey_table *points, size_t row, double percent)
{
    char name[256];
    const struct marey_cell value = cell_of(points, row, "efficiency"),
                            low = cell_of(points, row, "efficiency_low"),
                            high = cell_of(points, row, "efficiency_high");
    const double efficiency = value.as.f64 * 100;
    const bool has_interval = !low.is_null && !high.is_null;
    if (efficiency >= percent)
        return false;
    name_point(points, row, name, sizeof name);
    if (!has_interval)
        cli_say("%s: efficiency %.1f %%, %.1f below %g %%; single runs, so this may be noise", name,
                efficiency, percent - efficiency, percent);
    else if (high.as.f64 * 100 < percent)
        cli_say("%s: efficiency %.1f %% (%.1f to %.1f %%), %.1f below %g %%", name, efficiency,
                low.as.f64 * 100, high.as.f64 * 100, percent - efficiency, percent);
    else
        cli_say(
            "%s: efficiency %.1f %% (%.1f to %.1f %%) may be below %g %%; repeat the runs to know",
            name, efficiency, low.as.f64 * 100, high.as.f64 * 100, percent);
    return !has_interval || high.as.f64 * 100 < percent;
}

static int check_gate(const marey_report *report, double percent)
{
    const marey_table *points = marey_report_table(report, "points");
    size_t n_judged = 0, n_failed = 0;
    for (size_t row = 0; row < marey_table_n_rows(points); row++) {
        const struct marey_cell ideal = cell_of(points, row, "ideal"),
                                efficiency = cell_of(points, row, "efficiency");
        if (ideal.is_null || efficiency.is_null || ideal.as.f64 <= 1)
            continue; /* the baseline's efficiency is 1 */
        n_judged++;
        n_failed += report_point(points, row, percent);
    }
    if (n_judged == 0)
        return cli_fail("--fail-below-efficiency needs runs with at least two numbers of workers");
    return n_failed != 0 ? CLI_NO : CLI_FINE;
}

/* ---- charts as files ---- */

static const char *const own[] = {"epoch-time", "speedup",     "efficiency", "step-breakdown",
                                  "energy",     "utilization", "throughput", NULL};
static const char *const itwinai[] = {"absolute_epoch_time",
                                      "relative_epoch_time_speedup",
                                      "gpu_energy_plot",
                                      "utilization_plot",
                                      "computation_vs_other_plot",
                                      "computation_vs_communication_plot",
                                      NULL};

struct chart {
    char *svg;
    size_t len;
};

/* Drawn in memory first, so that a chart without data leaves no file. */
static marey_status draw(const marey_report *report, const char *name, struct chart *chart)
{
    FILE *out = open_memstream(&chart->svg, &chart->len);
    if (out == NULL)
        return MAREY_ENOMEM;
    const struct marey_write_options wants = {.table = name};
    const marey_status status = marey_report_write(report, "svg", &wants, out);
    return fclose(out) == 0 ? status : MAREY_ENOMEM;
}

static int print_svg(void *ctx, FILE *out)
{
    const struct chart *chart = ctx;
    return fwrite(chart->svg, 1, chart->len, out) == chart->len
               ? CLI_FINE
               : cli_fail("cannot write a chart: %s", strerror(errno));
}

/* Writes into an existing directory and counts in `*n_written`. A chart without data leaves no file. */
static int write_chart(const marey_report *report, const char *directory, const char *name,
                       size_t *n_written)
{
    struct chart chart = {0};
    char path[4096];
    const marey_status status = draw(report, name, &chart);
    int written = CLI_FINE;
    if (snprintf(path, sizeof path, "%s/%s.svg", directory, name) >= (int)sizeof path)
        written = cli_fail("the path %s is too long", directory);
    else if (status == MAREY_OK)
        written = cli_print_file(path, print_svg, &chart, NULL);
    else if (status != MAREY_EFORMAT) /* the runs lack data for this chart */
        written = cli_fail("%s", marey_last_error());
    *n_written += status == MAREY_OK && written == CLI_FINE;
    free(chart.svg);
    return written;
}

static int write_charts(const marey_report *report, const char *directory, bool has_itwinai_names)
{
    char quoted[4096];
    size_t n = 0, n_names = 0;
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return cli_fail("cannot make the directory %s: %s", directory, strerror(errno));
    for (const char *const *name = has_itwinai_names ? itwinai : own; *name != NULL; name++) {
        CLI_TRY(write_chart(report, directory, *name, &n));
        n_names++;
    }
    cli_say("wrote %zu charts into %s%s", n, cli_quote(directory, quoted, sizeof quoted),
            n < n_names ? "; for the others these runs have no data" : "");
    return CLI_FINE;
}

/* ---- the command ---- */

static struct {
    bool itwinai_names;
    const char *html, *pictures, *gate;
} given;

static const struct cli_option options[] = {
    {"fail-below-efficiency", 0, CLI_TEXT, "PERCENT", &given.gate,
     "exit with 1 if the efficiency at some number of workers is\n"
     "below this with confidence: '70' or '70%'"},
    {"html", 0, CLI_TEXT, "FILE", &given.html, "also write a page with charts and tables"},
    {"pictures", 'p', CLI_TEXT, "DIR", &given.pictures, "also write each chart as DIR/NAME.svg"},
    {"itwinai-names", 0, CLI_FLAG, NULL, &given.itwinai_names,
     "write itwinai's six charts under its names"},
};

/* ---- reading ---- */

/* NAME=PATH: the length of the name; 0 for only a path. An existing file is a path, even with = in its name. */
static size_t name_length(const char *argument)
{
    const size_t len = strcspn(argument, "=/");
    return argument[len] == '=' && access(argument, F_OK) != 0 ? len : 0;
}

/* Python has reported the failure. */
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
    char **const series CLI_FREED = calloc((size_t)n + 1, sizeof *series);
    char **const paths CLI_FREED = calloc((size_t)n + 1, sizeof *paths);
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
    return status;
}

/* ---- the report ---- */

static int write_all(const marey_report *report, double gate)
{
    const bool is_page = given.html != NULL && strcmp(given.html, "-") == 0;
    /* Files first: the reader of the output may close it and end us. */
    if (given.html != NULL)
        CLI_TRY(analysis_command_write_page(report, given.html));
    if (given.pictures != NULL)
        CLI_TRY(write_charts(report, given.pictures, given.itwinai_names));
    if (!is_page)
        CLI_TRY(analysis_command_write(report, 0, NULL));
    return given.gate != NULL ? check_gate(report, gate) : CLI_FINE;
}

static int run(int n_args, char **args)
{
    double gate = 0;
    marey_report *report CLI_FINALLY(cli_destroy_report) = NULL;
    if (n_args == 0 && report_options_value("mlflow") == NULL)
        return cli_fail("scale needs runs with different numbers of workers: "
                        "marey scale one.marey two.marey four.marey");
    if (!analysis_command_check("scale"))
        return CLI_BAD;
    if (given.itwinai_names && given.pictures == NULL)
        return cli_fail("--itwinai-names goes with --pictures DIR");
    if (given.gate != NULL && !cli_percent("fail-below-efficiency", given.gate, &gate))
        return CLI_BAD;
    CLI_TRY(make(n_args, args, &report));
    return write_all(report, gate);
}

struct cli_command cli_command_scale = {
    .name = "scale",
    .usage = "RUN.marey|FOLDER|FILE.csv|NAME=RUN... [OPTIONS]",
    .brief = "speedup and efficiency by number of workers",
    .about =
        "Reads runs of one program with different numbers of workers and reports speedup,\n"
        "efficiency, a forecast, and what limits a step. Takes recordings, folders of recordings\n"
        "or of torch.profiler traces (one folder per run), CSV files of measurements, and runs in\n"
        "an MLflow store. Runs with the same number of workers are repeats: reported as medians\n"
        "with 95 % intervals, never sums. Runs of one strategy are a series, whose baseline is\n"
        "its smallest number of workers. First epochs are excluded as warm-up. Fits of Amdahl's\n"
        "law and of the universal scalability law forecast larger runs.",
    CLI_OPTIONS(options),
    .examples = "  marey scale one.marey two.marey four.marey\n"
                "  marey scale runs/ --html scaling.html\n"
                "  marey scale ddp=ddp-runs/ horovod=horovod-runs/ --pictures pictures\n"
                "  marey scale measurements.csv --forecast 64,128\n"
                "  marey scale --mlflow mllogs/mlflow --experiment scaling\n"
                "  marey scale runs/ --csv=points > points.csv\n"
                "  marey scale runs/ --fail-below-efficiency 70%        for CI",
    .exits = "0 fine, 1 the gate failed: less efficient than required, 2 wrong usage or\n"
             "input, or no runs.",
    .run = run,
};
