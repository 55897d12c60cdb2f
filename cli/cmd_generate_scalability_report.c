/* marey generate-scalability-report: itwinai's command of that name. 'marey scale' has the same runs and says more. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <marey/legacy.h>
#include <marey/scaling.h>

#include "cli_mlflow.h"
#include "scale.h"

static struct {
    const char *uri, *experiment, *runs, *plot_dir, *suffix, *log_dir, *run_ids;
    bool communication, no_warnings;
} given = {
    .uri = "mllogs/mlflow", .experiment = "unnamed-experiment", .plot_dir = "plots", .suffix = ".svg"};

static const struct cli_option options[] = {
    {"tracking-uri", 0, CLI_TEXT, "URI|DIR", &given.uri,
     "the MLflow store: a folder, sqlite:///FILE, a server (default:\n"
     "mllogs/mlflow)"},
    {"experiment-name", 0, CLI_TEXT, "NAME", &given.experiment,
     "which of its experiments (default: unnamed-experiment)"},
    {"run-names", 0, CLI_TEXT, "NAME,...", &given.runs,
     "training runs to take (default: all of the experiment)"},
    {"plot-dir", 0, CLI_TEXT, "DIR", &given.plot_dir, "where pictures go (default: plots)"},
    {"plot-file-suffix", 0, CLI_TEXT, ".svg", &given.suffix,
     "taken for itwinai's sake: pictures are .svg, whatever it says"},
    {"include-communication", 0, CLI_FLAG, NULL, &given.communication,
     "computation against communication as well, by itwinai's rule"},
    {"no-warnings", 0, CLI_FLAG, NULL, &given.no_warnings,
     "leave out what is to be known of these numbers"},
    {"log-dir", 0, CLI_TEXT, "DIR", &given.log_dir,
     "files of itwinai 0.2 to 0.3.3 (scalability-metrics) instead of a\n"
     "store"},
    {"run-ids", 0, CLI_TEXT, "ID,...", &given.run_ids,
     "with --log-dir: folders in it to take (default: all)"},
};

/* In itwinai's order, with the pictures of each. */
static const struct section {
    const char *name, *title, *pictures[3];
} sections[] = {
    {"epoch", "Epoch Time", {"absolute_epoch_time", "relative_epoch_time_speedup"}},
    {"gpu", "GPU", {"gpu_energy_plot", "utilization_plot"}},
    {"computation", "Computation", {"computation_vs_other_plot"}},
    {"communication", "Communication", {"computation_vs_communication_plot"}},
};
#define N_SECTIONS (sizeof sections / sizeof sections[0])

static bool is_wanted(const struct section *section)
{
    return given.communication || section != &sections[N_SECTIONS - 1];
}

/* ---- reading ---- */

static int read_folder(marey_scaling_runs *runs, const char *path)
{
    const struct marey_scaling_read_options wants = {.progress = cli_progress,
                                                     .progress_ctx = (void *)"reading"};
    const marey_status status = marey_scaling_runs_read(runs, path, &wants);
    cli_progress_end();
    if (status == MAREY_EFORMAT)
        cli_say("%s", marey_last_error());
    return status == MAREY_OK        ? CLI_FINE
           : status == MAREY_EFORMAT ? CLI_NO
                                     : cli_fail("%s", marey_last_error());
}

/* Each of the folders that --run-ids names. */
static int read_ids(marey_scaling_runs *runs)
{
    char *const ids = strdup(given.run_ids);
    char *rest = NULL, path[PATH_MAX];
    int status = ids != NULL ? CLI_FINE : cli_fail("out of memory");
    for (char *id = ids != NULL ? strtok_r(ids, ",", &rest) : NULL;
         id != NULL && status == CLI_FINE; id = strtok_r(NULL, ",", &rest)) {
        snprintf(path, sizeof path, "%s/%s", given.log_dir, id);
        status = read_folder(runs, path);
    }
    free(ids);
    return status;
}

static int read_runs(marey_scaling_runs *runs)
{
    const struct cli_mlflow store = {
        .uri = given.uri, .experiment = given.experiment, .runs = given.runs};
    if (given.log_dir != NULL)
        return given.run_ids != NULL ? read_ids(runs) : read_folder(runs, given.log_dir);
    if (given.uri[0] == '\0')
        cli_say("--tracking-uri is empty: the current folder is taken for the store");
    return cli_mlflow_read(runs, &store, NULL);
}

/* ---- telling ---- */

static void print_head(const char *title)
{
    printf("\n########## %s Report ##########\n", title);
}

static void print_nothing(const struct section *section)
{
    printf("No %s Data Found\n", section->title);
}

static void tell_notes(marey_scaling *scaling)
{
    const marey_table *const notes = marey_scaling_table(scaling, "notes");
    for (size_t i = 0; !given.no_warnings && i < marey_table_n_rows(notes); i++) {
        const struct marey_cell note = marey_table_cell(notes, i, 0);
        cli_say("%.*s", (int)note.len, note.as.text);
    }
}

/* Whether some point, or some other, has a number in that column. */
static bool has_number(marey_scaling *scaling, const char *column, bool wanted)
{
    const marey_table *const points = marey_scaling_table(scaling, "points");
    const size_t c = (size_t)marey_table_find(points, column);
    for (size_t row = 0; row < marey_table_n_rows(points); row++)
        if (!marey_table_cell(points, row, c).is_null == wanted)
            return true;
    return false;
}

static void tell_fraction(marey_scaling *scaling, const char *column, const char *rule,
                          const char *otherwise)
{
    if (has_number(scaling, column, true))
        printf("%s\n", rule);
    if (has_number(scaling, column, false) && has_number(scaling, "compute_s", true))
        printf("%s\n", otherwise);
}

static void tell_meaning(marey_scaling *scaling, const struct section *section)
{
    if (given.no_warnings)
        return;
    if (strcmp(section->name, "epoch") == 0)
        printf(
            "avg_epoch_time is the median over epochs and runs, without each run's first epoch;\n"
            "interval is where it lies with 95 %% confidence.\n");
    else if (strcmp(section->name, "gpu") == 0)
        printf(
            "total_energy_wh is that of one run, the median of repeats; it is never added up.\n");
    else if (strcmp(section->name, "computation") == 0)
        tell_fraction(scaling, "computation_fraction", marey_legacy_warning(),
                      "For runs without itwinai's averages, computation_fraction is the share of "
                      "computation in a step,\nas 'marey breakdown' measures it.");
    else
        tell_fraction(scaling, "computation_vs_communication",
                      "computation_vs_communication is the share of computation in both, by "
                      "itwinai's rule of\nnames, which misses NCCL's kernels of today.",
                      "For runs without itwinai's averages, it is computation against exposed "
                      "communication,\nas 'marey breakdown' measures them.");
}

static int write_pictures(marey_scaling *scaling, const struct section *section, size_t *n_written)
{
    int status = CLI_FINE;
    for (size_t i = 0; section->pictures[i] != NULL && status == CLI_FINE; i++)
        status = scale_write_picture(scaling, given.plot_dir, section->pictures[i], n_written);
    return status;
}

static int show_section(marey_scaling *scaling, const struct section *section, size_t *n_written)
{
    marey_table *table = NULL;
    if (marey_scaling_itwinai(scaling, section->name, &table) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    int status = CLI_FINE;
    print_head(section->title);
    if (marey_table_n_rows(table) == 0) {
        print_nothing(section);
    } else if (marey_present_presto(table, stdout) != MAREY_OK) {
        status = cli_fail("%s", marey_last_error());
    } else {
        tell_meaning(scaling, section);
        status = write_pictures(scaling, section, n_written);
    }
    marey_table_destroy(table);
    return status;
}

static int show(marey_scaling *scaling)
{
    char quoted[4096];
    size_t n_written = 0;
    int status = CLI_FINE;
    if (mkdir(given.plot_dir, 0777) != 0 && errno != EEXIST)
        return cli_fail("cannot make the directory %s: %s", given.plot_dir, strerror(errno));
    for (size_t i = 0; i < N_SECTIONS && status == CLI_FINE; i++)
        if (is_wanted(&sections[i]))
            status = show_section(scaling, &sections[i], &n_written);
    fflush(stdout);
    if (status == CLI_FINE)
        cli_say("wrote %zu pictures into %s", n_written,
                cli_quote(given.plot_dir, quoted, sizeof quoted));
    return status;
}

/* Success is for those who got an answer. */
static int show_nothing(void)
{
    for (size_t i = 0; i < N_SECTIONS; i++)
        if (is_wanted(&sections[i])) {
            print_head(sections[i].title);
            print_nothing(&sections[i]);
        }
    return CLI_BAD;
}

static int show_runs(const marey_scaling_runs *runs)
{
    marey_scaling *scaling = NULL;
    const marey_status made = marey_scaling_create(runs, NULL, &scaling);
    if (made != MAREY_OK) {
        cli_fail("%s", marey_last_error());
        return made == MAREY_EFORMAT ? show_nothing() : CLI_BAD;
    }
    const int status = show(scaling);
    tell_notes(scaling);
    marey_scaling_destroy(scaling);
    return status;
}

static int generate(int n_args, char **args)
{
    marey_scaling_runs *runs = NULL;
    if (n_args > 0)
        return cli_fail("generate-scalability-report takes no arguments, and this is one: '%s'",
                        args[0]);
    if (given.run_ids != NULL && given.log_dir == NULL)
        return cli_fail("--run-ids goes with --log-dir; runs of a store are chosen by --run-names");
    if (strcmp(given.suffix, ".svg") != 0)
        cli_say("pictures are written as .svg, not as %s: they open in any browser", given.suffix);
    if (marey_scaling_runs_create(&runs) != MAREY_OK)
        return cli_fail("%s", marey_last_error());
    int status = read_runs(runs);
    if (status == CLI_FINE)
        status = show_runs(runs);
    else if (status == CLI_NO)
        status = show_nothing();
    marey_scaling_runs_destroy(runs);
    return status;
}

const struct cli_command cli_command_generate_scalability_report = {
    .name = "generate-scalability-report",
    .usage = "[OPTIONS]",
    .brief = "itwinai's tables and pictures of an MLflow store",
    .about =
        "Reads runs that itwinai, or marey's MLflowLogger, logged into MLflow, and prints "
        "itwinai's\n"
        "tables: time of an epoch, GPU energy and utilization, computation, with its columns and\n"
        "some more. Its six pictures are written as SVG. Unlike there, first epochs are left out,\n"
        "repeats are not added up, each strategy has a baseline of its own, and nothing found is\n"
        "no success. 'marey scale --mlflow URI' has the same runs and says more.\n"
        "\n"
        "MLflow is asked by Python: $MAREY_PYTHON, else python3 on the PATH, which must have "
        "mlflow.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .examples =
        "  marey generate-scalability-report --experiment-name scaling\n"
        "  marey generate-scalability-report --tracking-uri sqlite:///mlflow.db --run-names a,b\n"
        "  marey generate-scalability-report --log-dir scalability-metrics --run-ids first",
    .exits = "0 fine, 2 wrong usage or input, or nothing to report.",
    .is_of_itwinai = true,
    .run = generate,
};
