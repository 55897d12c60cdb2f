/* marey report: reads recordings, summarizes, prints the requested tables. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/cli.h"
#include "report/report_gates.h"
#include "report/report_mpi.h"
#include "report/report_options.h"

/* Rows that fit on a screen. */
#define DEFAULT_LIMIT 30
#define NOT_GIVEN UINT32_MAX

static struct {
    bool json, csv, markdown, all, per_iteration;
    const char *unit, *color, *output, *html, *table, *process;
    uint32_t limit, jobs;
    struct report_gates gates;
} given = {.color = "auto", .limit = NOT_GIVEN};

static const struct cli_option options[] = {
    {"per-iteration", 0, CLI_FLAG, NULL, &given.per_iteration,
     "CSV with every range in every iteration"},
    {"process", 0, CLI_TEXT, "PID|NAME", &given.process,
     "only these processes: a PID, worker (of a data loader),\n"
     "worker0, main (all others), or part of the command"},
    {"limit", 'n', CLI_COUNT, "N", &given.limit,
     "at most N rows, 0 for all (default: 30; all with --json and\n"
     "--csv)"},
    {"all", 'a', CLI_FLAG, NULL, &given.all, "all rows"},
    CLI_UNIT_OPTION(&given.unit),
    {"json", 0, CLI_FLAG, NULL, &given.json, "an object: ranges, lost_events, cost, and more"},
    {"csv", 0, CLI_FLAG, NULL, &given.csv, "one table as CSV, times in nanoseconds"},
    {"markdown", 0, CLI_FLAG, NULL, &given.markdown,
     "the diagnosis and one table as Markdown, for a pull request"},
    {"table", 0, CLI_TEXT, "NAME", &given.table,
     "the table: ranges, tree, processes, ... as in --json;\n"
     "docs/reference/analyses.md lists those of --gpu, --samples and\n"
     "the others"},
    {"html", 0, CLI_TEXT, "FILE", &given.html,
     "a page with timeline, tables, iterations and flame graph, in\n"
     "one file that opens in any browser"},
    {"fail-on", 0, CLI_TEXT, "ID[,ID...]", &given.gates.ids,
     "exit with 1 if the diagnosis has one of these findings;\n"
     "'marey explain' lists them"},
    {"fail-if-compute-below", 0, CLI_TEXT, "PERCENT", &given.gates.compute,
     "exit with 1 if the GPU computes for less than this share of\n"
     "each step: '60' or '60%'"},
    {"output", 'o', CLI_TEXT, "FILE", &given.output, "output file (default: -, standard output)"},
    CLI_COLOR_OPTION(&given.color),
    {"jobs", 'j', CLI_COUNT, "N", &given.jobs, "threads to read with (default: one per CPU core)"},
};

/* ---- options ---- */

static struct report_choice choice;

/* An MPI launcher forwards our output, possibly through a pseudo-terminal that nobody sees directly. */
static bool is_relayed;

/* Some MPI launchers end the job when a process exits with an error, and drop output they have not read yet. */
static int flush_for_launcher(int status)
{
    fflush(stdout);
    if (is_relayed && status != CLI_FINE)
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    return status;
}

static struct marey_text_options text_wants(FILE *out)
{
    return (struct marey_text_options){.width = is_relayed ? 0 : cli_terminal_width(out),
                                       .color = !(is_relayed && strcmp(given.color, "auto") == 0) &&
                                                cli_wants_color(out, given.color),
                                       .unit = given.unit};
}

static uint32_t limit_wanted(void)
{
    const bool is_for_people = !given.json && !given.csv;
    return given.all                  ? 0
           : given.limit != NOT_GIVEN ? given.limit
           : is_for_people            ? DEFAULT_LIMIT
                                      : 0;
}

/* The input of a report. */
struct input {
    const struct cli_recordings *recordings;
    marey_report *made;            /* made by several processes; NULL: not yet */
    const marey_report *diagnosis; /* for the gates; NULL: none are given */
    int n_files;                   /* files of other tools instead of recordings */
    char **files;
    bool is_for_python; /* files that marey.itwinai reads */
};

static struct marey_report_options report_wants(const char *doing)
{
    return (struct marey_report_options){.settings = report_options_settings(limit_wanted()),
                                         .tables = given.table != NULL ? given.table : "",
                                         .n_jobs = given.jobs,
                                         .progress = cli_progress,
                                         .progress_ctx = (void *)doing};
}

/* Prints the short form of another analysis. */
static int print_short(const char *name, const struct cli_recordings *recordings, FILE *out)
{
    const struct marey_write_options wants = {.text = text_wants(out), .is_short = 1};
    marey_report *made CLI_FINALLY(cli_destroy_report) = NULL;
    marey_status status = marey_report_create(name, recordings->list, recordings->n, NULL, &made);
    if (status == MAREY_EFORMAT)
        return CLI_FINE; /* no data after all */
    if (status == MAREY_OK)
        status = marey_report_write(made, "text", &wants, out);
    return cli_status(status);
}

/* Prints what follows the ranges: runs, and short forms of other analyses. */
static int print_rest(const struct cli_recordings *recordings, FILE *out)
{
    const struct marey_analysis *analysis;
    cli_print_runs(recordings, out);
    for (size_t i = 0; (analysis = report_options_below(recordings, i)) != NULL; i++)
        CLI_TRY(print_short(analysis->name, recordings, out));
    return CLI_FINE;
}

/* The diagnosis that the gates check. */
static marey_status make_diagnosis(const struct cli_recordings *recordings, marey_report **out)
{
    return marey_report_create("diagnosis", recordings->list, recordings->n, NULL, out);
}

/* The report that comes first, if there is one and nothing else was requested; NULL otherwise. */
static const struct marey_analysis *lead_of(const struct input *input)
{
    const bool has_lead = (choice.is_plain || choice.is_instead) && given.table == NULL &&
                          input->n_files == 0 && input->recordings->n != 0 &&
                          input->diagnosis == NULL;
    return has_lead ? report_options_lead(input->recordings) : NULL;
}

static marey_status make_lead(const struct input *input, marey_report **lead)
{
    const struct cli_recordings *const recordings = input->recordings;
    const struct marey_analysis *const analysis = lead_of(input);
    if (analysis == NULL)
        return MAREY_OK;
    const marey_status status =
        marey_report_create(analysis->name, recordings->list, recordings->n, NULL, lead);
    return status == MAREY_EFORMAT ? MAREY_OK : status; /* a sampler's log may have no process */
}

static marey_status write_report(const marey_report *made, const marey_report *section,
                                 const marey_report *lead, FILE *out)
{
    const struct marey_write_options wants = {.text = text_wants(out),
                                              .table = given.table,
                                              .limit = limit_wanted(),
                                              .is_short = given.markdown,
                                              .section = section,
                                              .lead = lead};
    const char *const format = given.json       ? "json"
                               : given.csv      ? "csv"
                               : given.markdown ? "markdown"
                                                : "text";
    const bool is_section =
        section != NULL && !given.json && (given.csv || given.markdown || given.table != NULL);
    return marey_report_write(is_section ? section : made, format, &wants, out);
}

static marey_status make_report(const struct input *input, marey_report **made, marey_report **section)
{
    struct marey_report_options how = report_wants("reading");
    const char *const name = choice.analysis->name;
    marey_recording *const *const list = input->recordings->list;
    const size_t n = input->recordings->n;
    marey_status status = MAREY_OK;
    if (input->n_files != 0)
        status = marey_report_create_files(name, (const char *const *)input->files,
                                           (size_t)input->n_files, &how, made);
    else if (*made == NULL)
        status = marey_report_create(name, list, n, &how, made);
    how.settings = report_options_section_settings();
    if (status == MAREY_OK && choice.section != NULL)
        status = marey_report_create(choice.section->name, list, n, &how, section);
    cli_progress_end();
    return status;
}

static int print_report(const struct input *input, FILE *out)
{
    marey_report *section CLI_FINALLY(cli_destroy_report) = NULL;
    marey_report *lead CLI_FINALLY(cli_destroy_report) = NULL;
    marey_report *made = input->made;
    const bool has_rest =
        choice.is_plain && !given.json && !given.csv && !given.markdown && input->n_files == 0;
    if (lead_of(input) != NULL || (has_rest && report_options_below(input->recordings, 0) != NULL))
        marey_recordings_keep_events(input->recordings->list, input->recordings->n);
    marey_status status = make_report(input, &made, &section);
    if (status == MAREY_OK)
        status = make_lead(input, &lead);
    if (status == MAREY_OK)
        status = write_report(made, section,
                              choice.is_plain && given.table == NULL && input->diagnosis != NULL
                                  ? input->diagnosis
                                  : lead,
                              out);
    if (input->made == NULL)
        marey_report_destroy(made);
    CLI_TRY(cli_status(status));
    return has_rest ? print_rest(input->recordings, out) : CLI_FINE;
}

static int print_series(const struct cli_recordings *recordings, FILE *out)
{
    const marey_status status = marey_report_per_iteration(recordings->list, recordings->n,
                                                           report_options_value("filter"), out);
    return cli_status(status);
}

/* ---- in Python ---- */

static int print_in_python(const struct input *input, FILE *out)
{
    struct cli_words words = {0};
    cli_add_word(&words, "%s", choice.analysis->python);
    cli_add_word(&words, "--width=%u", (unsigned)text_wants(out).width);
    if (given.json || given.csv)
        cli_add_word(&words, "--%s", given.json ? "json" : "csv");
    return cli_python(&words, input->n_files, input->files, out);
}

/* Runs the additional actions that settings of marey.itwinai request. */
static int run_in_python(int n, char **paths)
{
    struct cli_words words = {0};
    return report_options_add_python(choice.analysis, &words) ? cli_python(&words, n, paths, stdout)
                                                              : CLI_FINE;
}

/* ---- from paths to a file ---- */

static int print(void *ctx, FILE *out)
{
    const struct input *const input = ctx;
    if (input->is_for_python)
        return print_in_python(input, out);
    return given.per_iteration ? print_series(input->recordings, out) : print_report(input, out);
}

static int report_to(struct input *input)
{
    return cli_print_file(given.output, print, input, NULL);
}

static marey_status write_page(void *ctx, int fd)
{
    const struct cli_recordings *recordings = ctx;
    struct marey_page_options wants = {.report = report_wants("writing the page")};
    wants.report.tables = NULL; /* the page has all tables */
    const marey_status status = marey_page_write(recordings->list, recordings->n, &wants, fd);
    cli_progress_end();
    return status;
}

/* The gates, when all went well so far. `diagnosis` is made where it is NULL. */
static int judge(const struct cli_recordings *recordings, const marey_report *diagnosis, int status)
{
    marey_report *made CLI_FINALLY(cli_destroy_report) = NULL;
    if (status != CLI_FINE || !report_gates_are_given(&given.gates))
        return status;
    if (diagnosis == NULL)
        CLI_TRY(cli_status(make_diagnosis(recordings, &made)));
    return report_gates_judge(&given.gates, diagnosis != NULL ? diagnosis : made);
}

static int make_page(int n_args, char **args)
{
    struct cli_recordings recordings CLI_FINALLY(cli_close) = {0};
    if (!cli_open(&recordings, args, n_args) || !cli_select_process(&recordings, given.process))
        return CLI_BAD;
    const int status = cli_write_file(given.html, write_page, &recordings, CLI_PAGE_NEXT);
    return judge(&recordings, NULL, cli_report_damage(&recordings, status));
}

/* For recordings without processes, such as only samplers: the analysis that has data; NULL: the ranges. */
static const struct marey_analysis *instead_of_ranges(const struct cli_recordings *recordings)
{
    for (size_t i = 0; i < recordings->n; i++)
        if (marey_recording_n_processes(recordings->list[i]) != 0)
            return NULL;
    const struct marey_analysis *analysis;
    for (size_t i = 0; (analysis = report_options_below(recordings, i)) != NULL; i++)
        if (analysis->adds_lines == 2)
            return analysis;
    return NULL;
}

/*
 * Each log needs the same few buffers for a millisecond. Returning them to the system in between would cost 10 % of the
 * time of a report over thousands of logs.
 */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

/* The given option whose report must be made by one process; NULL: several processes can share the work. */
static const char *single_process_option(void)
{
    return given.process != NULL                     ? "--process"
           : given.html != NULL                      ? "--html"
           : report_gates_are_given(&given.gates)    ? "--fail-on"
           : choice.analysis != marey_analysis_at(0) ? choice.analysis->name
           : choice.section != NULL                  ? choice.section->name
           : given.per_iteration                     ? "--per-iteration"
                                                     : NULL;
}

/* Prints a report made by several processes. One process makes the parts below it, and opens all logs for that. */
static int print_share(struct report_share *share, int n_args, char **args)
{
    struct cli_recordings whole CLI_FINALLY(cli_close) = {0};
    int status = share->has_below && !cli_open(&whole, args, n_args) ? CLI_BAD : CLI_FINE;
    if (status == CLI_FINE)
        status = report_to(&(struct input){
            .recordings = share->has_below ? &whole : &share->recordings, .made = share->report});
    if (status == CLI_FINE && share->damaged != NULL)
        status = cli_fail("%s is damaged; only the readable part is included", share->damaged);
    marey_report_destroy(share->report);
    cli_close(&share->recordings);
    return status;
}

static bool check_options(int n_args)
{
    const bool is_default = choice.analysis == marey_analysis_at(0);
    if (n_args == 0)
        cli_say("report needs a recording: marey report RUN.marey");
    else if (given.per_iteration && !choice.is_plain)
        cli_say(
            "--per-iteration writes a CSV file of ranges and goes with --filter and --output only");
    else if (!is_default && given.html != NULL)
        cli_say("--%s and --html exclude one another", choice.analysis->name);
    else /* each of these is all output; a page is not printed */
        return cli_exclude(&cli_command_report, "json csv markdown html per-iteration") &&
               cli_exclude(&cli_command_report, "html output") && report_gates_check(&given.gates);
    return false;
}

static int report_recordings(int n_args, char **args)
{
    struct cli_recordings recordings CLI_FINALLY(cli_close) = {0};
    /* Grid and block sizes are in the arguments of a trace. */
    const bool needs_whole = choice.section != NULL && choice.section->needs_arguments;
    if (!(needs_whole ? cli_open_whole : cli_open)(&recordings, args, n_args) ||
        !cli_select_process(&recordings, given.process))
        return CLI_BAD;
    const struct marey_analysis *const other =
        choice.is_plain && !given.per_iteration && given.table == NULL
            ? instead_of_ranges(&recordings)
            : NULL;
    marey_report *diagnosis CLI_FINALLY(cli_destroy_report) = NULL;
    int status = CLI_FINE;
    if (report_gates_are_given(&given.gates))
        status = cli_status(make_diagnosis(&recordings, &diagnosis));
    if (status == CLI_FINE && other != NULL && !report_options_turn_on(other->name, &choice))
        status = CLI_BAD;
    choice.is_instead = other != NULL;
    if (status == CLI_FINE)
        status = cli_report_damage(&recordings, report_to(&(struct input){.recordings = &recordings,
                                                                          .diagnosis = diagnosis}));
    return flush_for_launcher(judge(&recordings, diagnosis, status));
}

static int report(int n_args, char **args)
{
    if (!report_options_choose(&choice, args, &n_args) || !check_options(n_args))
        return CLI_BAD;
    keep_memory();
    cli_use_jobs(given.jobs);
    struct report_share share;
    const struct marey_report_options wants = report_wants("reading");
    const enum report_mpi who = report_mpi(n_args, args, &wants, single_process_option(), &share);
    is_relayed = share.is_job;
    switch (who) {
    case REPORT_DONE:
        return flush_for_launcher(print_share(&share, n_args, args));
    case REPORT_LEAVE:
        return CLI_FINE;
    case REPORT_BAD:
        return CLI_BAD;
    case REPORT_ALONE:
        break;
    }
    if (given.html != NULL)
        return make_page(n_args, args);
    const bool is_for_python = choice.analysis->python != NULL && cli_is_csv(args[0]);
    const bool is_file = is_for_python || marey_report_is_file(choice.analysis->name, args[0]);
    if (is_file && report_gates_are_given(&given.gates))
        return cli_fail("--fail-on and --fail-if-compute-below need a recording of 'marey run'");
    if (is_file)
        return report_to(&(struct input){.recordings = &(struct cli_recordings){0},
                                         .n_files = n_args,
                                         .files = args,
                                         .is_for_python = is_for_python});
    CLI_TRY(run_in_python(n_args, args));
    return report_recordings(n_args, args);
}

struct cli_command cli_command_report = {
    .name = "report",
    .usage = "RUN.marey|TRACE|FOLDER... [OPTIONS]",
    .brief = "where the time went: a table of ranges",
    .about =
        "Prints a table of ranges: how often each one ran, its total time and self time\n"
        "(without the ranges inside it), typical and worst times, and its share of the run.\n"
        "Ranks, processes and several recordings are merged. Lost events, missing logs and\n"
        "the overhead of measuring follow the table. Reads traces and profiles of other tools\n"
        "too; 'marey import --help' lists them.",
    CLI_OPTIONS(options),
    .examples =
        "  marey report train.marey --html train.html   a page with everything\n"
        "  marey report trace.json.gz --tree            a trace of torch.profiler\n"
        "  marey report train.marey --json | jq '.ranges[0]'\n"
        "  marey report train.marey --fail-on input-bound,sync-bound   for CI\n"
        "  mpirun -n 8 marey report train.marey         thousands of logs, read by eight processes",
    .exits = "0 fine, 1 a gate failed: --fail-on or --fail-if-compute-below,\n"
             "2 wrong usage or input.",
    .run = report,
};
